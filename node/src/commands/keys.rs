//! `quorumwire keys`: the file with the cluster's secrets.
use crate::keys::SecretFile;
use anyhow::Context as _;
use quorumwire_wire::limits::CLUSTER_NAME_BYTES_MAX;
use std::path::PathBuf;
use std::process::ExitCode;

/// Make and rotate the secrets of a cluster's data planes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A rotation without a failed request, each step on every replica before the next (a running server takes
the file in again upon SIGHUP):
  quorumwire keys add    --file secret.toml   # then copy the file to all replicas, SIGHUP
  quorumwire keys use    --file secret.toml   # copy, SIGHUP
  quorumwire keys remove --file secret.toml   # copy, SIGHUP
Clients of the data planes get keys of their own, and new ones after `add` and before `remove`:
  quorumwire keys clients --file secret.toml --cluster quorumwire --out clients.toml")]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Make a file with a first secret
    New(File),
    /// Add a secret that is accepted and not used yet
    Add(File),
    /// Use the newer of two secrets
    Use(File),
    /// Remove the older of two secrets
    Remove(File),
    /// Show which secrets there are, not the secrets themselves
    Show(File),
    /// Write a file with the clients' keys only: whoever has it can ask, and cannot speak as a replica
    Clients(Clients),
}

#[derive(Debug, clap::Args)]
struct File {
    /// The secret file; readable by its owner only
    #[arg(long, value_name = "FILE")]
    file: PathBuf,
}

#[derive(Debug, clap::Args)]
struct Clients {
    /// The secret file; readable by its owner only
    #[arg(long, value_name = "FILE")]
    file: PathBuf,
    /// Name of the cluster, as its replicas have it
    #[arg(long, value_name = "NAME", value_parser = cluster_name)]
    cluster: String,
    /// Where to write the clients' keys; replaces an older file
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

fn cluster_name(text: &str) -> Result<String, String> {
    if (1..=CLUSTER_NAME_BYTES_MAX).contains(&text.len()) {
        Ok(text.to_owned())
    } else {
        Err(format!("allowed: 1 to {CLUSTER_NAME_BYTES_MAX} bytes"))
    }
}

/// Changes the file and says what it holds.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    type Step = fn(&mut SecretFile) -> anyhow::Result<()>;
    let (file, step): (_, Step) = match &arguments.command {
        Command::New(file) => {
            let secrets = SecretFile::generate()?;
            secrets.create(&file.file)?;
            println!("{}: {}", file.file.display(), secrets.describe());
            return Ok(ExitCode::SUCCESS);
        }
        Command::Show(file) => {
            let secrets = SecretFile::load(&file.file)?;
            println!("{}: {}", file.file.display(), secrets.describe());
            return Ok(ExitCode::SUCCESS);
        }
        Command::Clients(arguments) => {
            let secrets = SecretFile::load(&arguments.file)?;
            let keys = secrets.keys(&arguments.cluster)?.for_clients()?;
            let out = arguments.out.display();
            keys.write(&arguments.out)
                .with_context(|| format!("writing {out}"))?;
            println!("{out}: {}", secrets.describe());
            return Ok(ExitCode::SUCCESS);
        }
        Command::Add(file) => (file, SecretFile::add),
        Command::Use(file) => (file, SecretFile::use_newest),
        Command::Remove(file) => (file, SecretFile::remove_oldest),
    };
    let mut secrets = SecretFile::load(&file.file)?;
    step(&mut secrets)?;
    secrets.replace(&file.file)?;
    println!("{}: {}", file.file.display(), secrets.describe());
    Ok(ExitCode::SUCCESS)
}

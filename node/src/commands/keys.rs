//! `quorumwire keys`: the file with the cluster's secrets.
use crate::keys::SecretFile;
use std::path::PathBuf;
use std::process::ExitCode;

/// Make and rotate the secrets of a cluster's data planes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A rotation without a failed request, each step on every replica before the next (a running server takes
the file in again upon SIGHUP):
  quorumwire keys add    --file secret.toml   # then copy the file to all replicas, SIGHUP
  quorumwire keys use    --file secret.toml   # copy, SIGHUP
  quorumwire keys remove --file secret.toml   # copy, SIGHUP")]
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
}

#[derive(Debug, clap::Args)]
struct File {
    /// The secret file; readable by its owner only
    #[arg(long, value_name = "FILE")]
    file: PathBuf,
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

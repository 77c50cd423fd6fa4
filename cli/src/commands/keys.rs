//! `quorumwire keys`: the folder with all of a cluster's keys, or one file with the data planes' secret only.
mod next;

use anyhow::{Context as _, bail};
use quorumwire_interfaces::ReplicaId;
use quorumwire_node::key_folder::{DAYS_MAX, KeyFolder, Step};
use quorumwire_node::keys::SecretFile;
use quorumwire_node::options::Refused;
use quorumwire_wire::limits::{CLUSTER_NAME_BYTES_MAX, MEMBERS_MAX};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Make and rotate a cluster's keys: certificates of its replicas, and the secret of its data planes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
All that a cluster needs, in one folder; docs/security.md says which file goes where:
  quorumwire keys new --dir KEYS --members 0=10.0.0.10,1=10.0.0.11,2=10.0.0.12
  quorumwire keys add --dir KEYS --member 3=10.0.0.13
What a client shows to servers with the option client-tls-ca:
  quorumwire keys client --dir KEYS web-1
New certificates before the old ones expire (copy them, SIGHUP):
  quorumwire keys renew --dir KEYS
A new authority and secret without a failed request, each step on every replica before the next (copy what
has changed, SIGHUP):
  quorumwire keys rotate --dir KEYS --step add
  quorumwire keys rotate --dir KEYS --step use
  quorumwire keys rotate --dir KEYS --step remove

The secret of data planes alone is a file, for clusters without TLS.
A rotation without a failed request, each step on every replica before the next (a running server takes
the file in again upon SIGHUP):
  quorumwire keys add    --file secret.toml   # then copy the file to all replicas, SIGHUP
  quorumwire keys use    --file secret.toml   # copy, SIGHUP
  quorumwire keys remove --file secret.toml   # copy, SIGHUP
Clients of the data planes get keys of their own, and new ones after `add` and before `remove`:
  quorumwire keys plane-clients --file secret.toml --cluster quorumwire --out clients.toml")]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Make all that a new cluster needs, or a file with a first secret
    New(New),
    /// Make the certificate of one more replica, or add a secret that is accepted and not used yet
    Add(Add),
    /// Make the certificate of a client, for servers with the option client-tls-ca
    Client(Client),
    /// Make all certificates of a folder anew, under the same authority
    Renew(Dir),
    /// Replace the authority and the secret of a folder, step by step
    Rotate(Rotate),
    /// Use the newer of two secrets
    Use(File),
    /// Remove the older of two secrets
    Remove(File),
    /// Show which secrets there are, not the secrets themselves
    Show(Show),
    /// Write a file with the keys of the data planes' clients only: whoever has it can ask, and cannot speak
    /// as a replica
    PlaneClients(PlaneClients),
}

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "quorumwire keys new <--dir <DIR> --members <ID[=HOST],...>|--file <FILE>> [OPTIONS]"
)]
struct New {
    /// The folder to make
    #[arg(
        long,
        value_name = "DIR",
        requires = "members",
        required_unless_present = "file",
        conflicts_with = "file"
    )]
    dir: Option<PathBuf>,
    /// The replicas, by id; with the host name or address by which clients reach each, if any
    #[arg(long, value_name = "ID[=HOST],...", value_delimiter = ',', value_parser = member,
          requires = "dir")]
    members: Vec<(ReplicaId, Vec<String>)>,
    /// Name of the cluster, as its replicas have it
    #[arg(long, value_name = "NAME", value_parser = cluster_name, default_value = "quorumwire")]
    cluster: String,
    /// How long certificates last
    #[arg(long, value_name = "DAYS", default_value_t = 365,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(DAYS_MAX)))]
    days: u32,
    /// Make a file with a secret of data planes, and nothing else
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
#[command(override_usage = "quorumwire keys add <--dir <DIR> --member <ID[=HOST]>|--file <FILE>>")]
struct Add {
    /// The folder
    #[arg(
        long,
        value_name = "DIR",
        requires = "member",
        required_unless_present = "file",
        conflicts_with = "file"
    )]
    dir: Option<PathBuf>,
    /// The replica, with the host name or address by which clients reach it, if any
    #[arg(long, value_name = "ID[=HOST]", value_parser = member, requires = "dir")]
    member: Option<(ReplicaId, Vec<String>)>,
    /// The secret file, to which a secret is added
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct Client {
    /// The folder
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// What the client is called: its files are `client-NAME.pem` and `client-NAME-key.pem`
    #[arg(value_name = "NAME")]
    name: String,
}

#[derive(Debug, clap::Args)]
#[command(override_usage = "quorumwire keys show <--dir <DIR>|--file <FILE>>")]
struct Show {
    /// The folder
    #[arg(
        long,
        value_name = "DIR",
        required_unless_present = "file",
        conflicts_with = "file"
    )]
    dir: Option<PathBuf>,
    /// The secret file
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct Dir {
    /// The folder
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
}

/// See [`Step`].
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum StepWord {
    /// Make a new authority and secret; both are accepted and not used yet
    Add,
    /// Use them: new certificates for all
    Use,
    /// Accept the old ones no longer
    Remove,
}

impl From<StepWord> for Step {
    fn from(step: StepWord) -> Self {
        match step {
            StepWord::Add => Self::Add,
            StepWord::Use => Self::Use,
            StepWord::Remove => Self::Remove,
        }
    }
}

#[derive(Debug, clap::Args)]
struct Rotate {
    /// The folder
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Which step
    #[arg(long, value_enum)]
    step: StepWord,
}

#[derive(Debug, clap::Args)]
struct File {
    /// The secret file; readable by its owner only
    #[arg(long, value_name = "FILE")]
    file: PathBuf,
}

#[derive(Debug, clap::Args)]
struct PlaneClients {
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

/// A replica as `3`, `3=HOST` or, so that what `--members` of a server has can be given, `3=HOST:PORT`.
fn member(text: &str) -> Result<(ReplicaId, Vec<String>), String> {
    let allowed = || "allowed: ID or ID=HOST".to_owned();
    let (id, host) = match text.split_once('=') {
        Some((id, host)) => (id, Some(host)),
        None => (text, None),
    };
    let id = ReplicaId(id.parse().map_err(|_| allowed())?);
    let host = host.map(|host| {
        let with_port = host
            .parse::<std::net::SocketAddr>()
            .map(|it| it.ip().to_string());
        with_port.unwrap_or_else(|_| {
            let name = host
                .rsplit_once(':')
                .filter(|(name, _)| !name.contains(':'));
            name.map_or(host, |(name, _)| name).to_owned()
        })
    });
    if host.as_deref() == Some("") {
        return Err(allowed());
    }
    Ok((id, host.into_iter().collect()))
}

/// Changes the folder or file and says what it holds.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        Command::New(new) => match (&new.dir, &new.file) {
            (Some(dir), _) => {
                let members: BTreeMap<_, _> = new.members.iter().cloned().collect();
                if members.len() != new.members.len() || members.len() > MEMBERS_MAX {
                    bail!("--members: each id once, and at most {MEMBERS_MAX}");
                }
                let folder = KeyFolder::create(dir, &new.cluster, &members, new.days)?;
                show_folder(&folder)?;
                say(&next::of_new(dir, folder.cluster(), &members))
            }
            (None, Some(file)) => {
                if file.symlink_metadata().is_ok() {
                    let allowed = "a file that is not there yet; `quorumwire keys add --file` adds a secret to one that is";
                    bail!(Refused::flag("file", file.display().to_string(), allowed));
                }
                let secrets = SecretFile::generate()?;
                secrets.create(file)?;
                show_file(file, &secrets)?;
                say(&next::of_file(file, None))
            }
            (None, None) => bail!("--dir or --file is needed"),
        },
        Command::Add(add) => match (&add.dir, &add.member, &add.file) {
            (Some(dir), Some((id, names)), _) => {
                let mut folder = KeyFolder::open(dir)?;
                folder.add_member(*id, names)?;
                show_folder(&folder)?;
                say(&next::of_add(dir, folder.cluster(), *id, names))
            }
            (_, _, Some(file)) => change_file(file, Step::Add),
            (_, _, None) => bail!("--dir and --member, or --file, are needed"),
        },
        Command::Client(client) => {
            let mut folder = KeyFolder::open(&client.dir)?;
            folder.add_client(&client.name)?;
            show_folder(&folder)?;
            say(&next::of_client(&client.dir, &client.name))
        }
        Command::Renew(arguments) => {
            let folder = KeyFolder::open(&arguments.dir)?;
            folder.renew()?;
            show_folder(&folder)?;
            say(&next::of_renew(&arguments.dir, folder.has_clients()))
        }
        Command::Rotate(arguments) => {
            let folder = KeyFolder::open(&arguments.dir)?;
            let step = Step::from(arguments.step);
            folder.rotate(step)?;
            show_folder(&folder)?;
            say(&next::of_rotate(&arguments.dir, step, folder.has_clients()))
        }
        Command::Show(show) => match (&show.dir, &show.file) {
            (Some(dir), _) => show_folder(&KeyFolder::open(dir)?),
            (None, Some(file)) => show_file(file, &SecretFile::load(file)?),
            (None, None) => bail!("--dir or --file is needed"),
        },
        Command::PlaneClients(arguments) => write_clients(arguments),
        Command::Use(file) => change_file(&file.file, Step::Use),
        Command::Remove(file) => change_file(&file.file, Step::Remove),
    }
    .map(|()| ExitCode::SUCCESS)
}

fn change_file(file: &Path, step: Step) -> anyhow::Result<()> {
    let mut secrets = SecretFile::load(file)?;
    match step {
        Step::Add => secrets.add()?,
        Step::Use => secrets.use_newest()?,
        Step::Remove => secrets.remove_oldest()?,
    }
    secrets.replace(file)?;
    show_file(file, &secrets)?;
    say(&next::of_file(file, Some(step)))
}

fn say(what_is_next: &str) -> anyhow::Result<()> {
    out!("{what_is_next}").map_err(Into::into)
}

fn write_clients(arguments: &PlaneClients) -> anyhow::Result<()> {
    let secrets = SecretFile::load(&arguments.file)?;
    let keys = secrets.keys(&arguments.cluster)?.for_clients()?;
    let out = &arguments.out;
    keys.write(out)
        .with_context(|| format!("writing {}", out.display()))?;
    show_file(out, &secrets)
}

#[allow(clippy::unnecessary_wraps)] // as its siblings have it
fn show_file(file: &Path, secrets: &SecretFile) -> anyhow::Result<()> {
    outln!("{}: {}", file.display(), secrets.describe())?;
    Ok(())
}

fn show_folder(folder: &KeyFolder) -> anyhow::Result<()> {
    outln!("{}", folder.describe()?)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_is_an_id_with_or_without_a_host() {
        let of = |text: &str| member(text).map(|(id, names)| (id.0, names.concat()));
        assert_eq!(of("3"), Ok((3, String::new())));
        assert_eq!(of("3=a.example"), Ok((3, "a.example".into())));
        assert_eq!(of("3=a.example:7400"), Ok((3, "a.example".into())));
        assert_eq!(of("3=10.0.0.1:7400"), Ok((3, "10.0.0.1".into())));
        assert_eq!(of("3=[fd00::1]:7400"), Ok((3, "fd00::1".into())));
        assert_eq!(of("3=fd00::1"), Ok((3, "fd00::1".into())));
        assert!(of("x").is_err() && of("3=").is_err() && of("70000").is_err());
    }
}

//! `quorumwire dev`: a cluster on this machine in one command, until it is told to stop.
mod program;
mod restart;

use super::interrupt::{Input, Interrupt, Interrupted};
use super::local_cluster::{
    FolderState, LocalCluster, Program, ReplicaAddresses, ServiceAddresses, ending,
};
use clap::builder::PossibleValuesParser;
use quorumwire_node::options::{Durability, Hosts, Refused};
use quorumwire_node::planes::words_on_loopback;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Starts replicas as processes of their own on loopback, waits until one leads, and stops them all on Ctrl-C
/// or SIGTERM, and when its terminal, the reader of its output or the pipe on its input has gone. A replica
/// that dies is reported, and started again when --restart says so.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  quorumwire dev                                    # three replicas, gone when it ends
  quorumwire dev --dir /tmp/try                     # the next start finds the data again
  quorumwire dev --plane socket                     # replicate in data planes over UDP
  quorumwire dev --json -- --election-timeout-ms 500
  quorumwire dev -- redis-server --port 6379        # three replicas of the real Redis: docs/run.md
  quorumwire dev -- --learners 1,2                  # values in one order for all: docs/library.md
  quorumwire dev --serve 8080 -- /opt/my-server     # the port is not among its arguments
  quorumwire dev --restart 1 --dir /tmp/try         # replica 1 was killed: start it again, from another terminal

In DIR: dev.json (addresses), keys/ (certificates and secrets), N/ (data of replica N), N.log (what it logged).")]
pub struct Arguments {
    /// How many [default: what DIR holds, or 3]
    #[arg(long, value_name = "N", value_parser = ["1", "3", "5", "7"])]
    replicas: Option<String>,
    /// What an acknowledgement means: on disk, or in memory, at a majority
    #[arg(long, value_enum, value_name = "WORD", default_value = "sync")]
    durability: DurabilityWord,
    /// Where the common case runs: in the servers over TCP, or in data planes
    #[arg(long, value_name = "WORD", value_parser = PossibleValuesParser::new(words_on_loopback()), default_value = "none")]
    plane: String,
    /// Folder to keep the cluster in [default: a temporary one, removed at the end]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Have the `quorumwire dev` that runs in DIR start this replica again
    #[arg(long, value_name = "ID", requires = "dir",
          conflicts_with_all = ["replicas", "durability", "plane", "insecure", "json", "serve", "words"])]
    restart: Option<u16>,
    /// Let replicas speak to each other in the clear, to see what TLS costs
    #[arg(long)]
    insecure: bool,
    /// Print one JSON line when a leader serves, and nothing else
    #[arg(long)]
    json: bool,
    /// The port at which the program listens, if its arguments do not name it behind --port, -p, --listen
    /// or -l
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    serve: Option<u16>,
    /// More options for each replica; or a program of which each replica runs one, as `quorumwire run` does;
    /// or options, another `--`, and a program
    #[arg(last = true, value_name = "SERVER OPTIONS | COMMAND [ARG...]")]
    words: Vec<String>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum DurabilityWord {
    /// On disk: nothing is lost even if all replicas are killed
    Sync,
    /// In memory: faster, and gone when a majority is killed at once
    Memory,
}

/// Runs the cluster.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if let (Some(id), Some(dir)) = (arguments.restart, &arguments.dir) {
        outln!("{}", restart::ask(dir, id)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let (more, program) = program::split(&arguments.words, arguments.serve)?;
    check_server_options(more)?;
    let interrupt = Interrupt::listen(Input::Ends)?;
    let count = arguments.replicas.as_deref().map(str::parse).transpose()?;
    let durability = match arguments.durability {
        DurabilityWord::Sync => Durability::Sync,
        DurabilityWord::Memory => Durability::Memory,
    };
    let (dir, _removed_at_the_end) = if let Some(dir) = &arguments.dir {
        (dir.clone(), None)
    } else {
        let made = tempfile::Builder::new()
            .prefix("quorumwire-dev-")
            .tempdir()?;
        (made.path().to_owned(), Some(made))
    };
    let options = server_options(arguments, more);
    let (mut cluster, opened) =
        LocalCluster::open_serving(&dir, count, durability, &options, program.as_ref())?;
    cluster.has_tls = !arguments.insecure;
    cluster.is_temporary = arguments.dir.is_none();
    cluster.check_arguments()?;
    match opened {
        FolderState::New => {}
        FolderState::Again => errln!("starting the cluster in {} again", dir.display()),
        FolderState::Emptied => errln!(
            "{}: the data of the last run was in memory and is gone; a new cluster begins",
            dir.display()
        ),
    }
    let all_died = match serve(&mut cluster, arguments, &dir, &interrupt) {
        // What is not read, or waited for, any more is no reason for a disorderly end.
        Err(error) if error.is::<Interrupted>() || interrupt.has_come() => false,
        served => served?,
    };
    if all_died {
        errln!(
            "\nerror: no replica is left: all have ended, see above. `quorumwire dev` ends, too"
        );
        return Ok(ExitCode::FAILURE);
    }
    errln!("stopping all replicas");
    cluster.stop(&interrupt)?;
    errln!("all replicas have stopped");
    Ok(ExitCode::SUCCESS)
}

/// Runs the replicas until something ends them; whether it was their own death.
fn serve(
    cluster: &mut LocalCluster,
    arguments: &Arguments,
    dir: &Path,
    interrupt: &Interrupt,
) -> anyhow::Result<bool> {
    cluster.start_all()?;
    let leader = cluster.wait_for_leader(interrupt)?.id;
    cluster.wait_for_program(interrupt)?;
    if arguments.json {
        outln!("{}", as_json(cluster, leader))?;
    } else {
        out!("{}", as_text(cluster, leader, dir))?;
    }
    watch(cluster, interrupt, dir)
}

/// What each server is told besides its own addresses.
fn server_options(arguments: &Arguments, more: &[String]) -> Vec<String> {
    let plane = [
        ("--plane", arguments.plane.as_str()),
        ("--listen-plane", "127.0.0.1:0"),
    ];
    let plane = plane.iter().flat_map(|(name, value)| [*name, value]);
    let more = more.iter().map(String::as_str);
    plane.chain(more).map(str::to_owned).collect()
}

/// Options of `dev` itself that servers have, too.
const DEV_OPTIONS: [&str; 4] = ["dir", "durability", "plane", "insecure"];
/// What `dev` chooses for each replica.
const CHOSEN: [&str; 19] = [
    "id",
    "cluster",
    "members",
    "listen-peer",
    "listen-memcached",
    "listen-redis",
    "listen-client",
    "listen-http",
    "advertise-peer",
    "advertise-memcached",
    "advertise-redis",
    "advertise-client",
    "advertise-http",
    "advertise-plane",
    "listen-plane",
    "secret-file",
    "tls-ca",
    "tls-cert",
    "tls-key",
];

/// Refuses what servers would be told twice, or what `dev` could not ask them through.
fn check_server_options(given: &[String]) -> Result<(), Refused> {
    for word in given {
        let Some(option) = word.strip_prefix("--") else {
            continue;
        };
        let name = option.split('=').next().unwrap_or_default();
        let why = if DEV_OPTIONS.contains(&name) {
            format!("put it before `--`: `quorumwire dev` has a --{name} of its own")
        } else if CHOSEN.contains(&name) {
            "leave it out: `quorumwire dev` chooses it for each replica".to_owned()
        } else if name.starts_with("client-tls") {
            "leave it out: the clients' ports of `quorumwire dev` have no TLS; to try it, start servers by hand \
             (docs/security.md)"
                .to_owned()
        } else {
            continue;
        };
        return Err(Refused::because(name, word.clone(), why));
    }
    Ok(())
}

/// Reports replicas that die, and starts those again that somebody asks for, until a signal comes; whether
/// none is left before.
fn watch(cluster: &mut LocalCluster, interrupt: &Interrupt, dir: &Path) -> anyhow::Result<bool> {
    while !interrupt.has_come() {
        let mut ended = Vec::new();
        for (id, status) in cluster.ended()? {
            errln!("replica {id} {}", ending(status));
            if status.code().is_some() {
                errln!("{}", cluster.log_tail(id));
            }
            ended.push(id);
        }
        if !cluster.any_runs() {
            return Ok(true);
        }
        for id in ended {
            errln!("to start it again: {}", restart_command(id, dir));
        }
        for id in restart::asked_for(cluster, dir)? {
            match cluster.start(id) {
                Ok(()) => errln!("replica {id} was started again"),
                Err(error) => errln!("replica {id} was not started again: {error:#}"),
            }
        }
        thread::sleep(POLL_INTERVAL);
    }
    Ok(false)
}

fn as_json(cluster: &LocalCluster, leader: u16) -> serde_json::Value {
    let replica = |place: &ReplicaAddresses| {
        let pid = cluster.pid(place.id);
        match &place.service {
            ServiceAddresses::Store { .. } if cluster.hosts() == Hosts::Values => json!({
                "id": place.id,
                "pid": pid,
                "client": place.client,
                "http": place.http,
            }),
            ServiceAddresses::Store { memcached, redis } => json!({
                "id": place.id,
                "pid": pid,
                "memcached": memcached,
                "redis": redis,
                "client": place.client,
                "http": place.http,
            }),
            ServiceAddresses::Program { server } => json!({
                "id": place.id,
                "pid": pid,
                "server": server,
                "http": place.http,
            }),
        }
    };
    let replicas: Vec<_> = cluster.replicas().iter().map(replica).collect();
    json!({ "replicas": replicas, "leader": leader })
}

fn port(address: &str) -> String {
    let port = address.rsplit_once(':').map(|(_, port)| port);
    port.unwrap_or(address).to_owned()
}

/// For people: ports only, which leaves room in a terminal, and what to try.
fn as_text(cluster: &LocalCluster, leader: u16, dir: &Path) -> String {
    let headings: &[&str] = match cluster.hosts() {
        Hosts::Store => &["ID", "PID", "MEMCACHED", "REDIS", "CLIENT", "HTTP", ""],
        Hosts::Values => &["ID", "PID", "CLIENT", "HTTP", ""],
        Hosts::Program => &["ID", "PID", "SERVER", "HTTP", ""],
    };
    let mut rows = vec![headings.iter().map(|&it| it.to_owned()).collect::<Vec<_>>()];
    for place in cluster.replicas() {
        let pid = cluster.pid(place.id).map(|pid| pid.to_string());
        let leads = if place.id == leader { "leader" } else { "" };
        let mut row = vec![place.id.to_string(), pid.unwrap_or_default()];
        match &place.service {
            ServiceAddresses::Store { .. } if cluster.hosts() == Hosts::Values => {
                row.push(port(&place.client));
            }
            ServiceAddresses::Store { memcached, redis } => {
                row.extend([memcached, redis, &place.client].map(|it| port(it)));
            }
            ServiceAddresses::Program { server } => row.push(port(server)),
        }
        row.extend([port(&place.http), leads.to_owned()]);
        rows.push(row);
    }
    let table = super::status::columns(&rows);
    let Some(first) = cluster.replicas().first() else {
        return table;
    };
    let (id, http) = (first.id, &first.http);
    let to_try = match cluster.hosts() {
        Hosts::Values => values_to_try(cluster.replicas(), dir),
        Hosts::Store | Hosts::Program => what_to_try(&first.service, cluster.program()),
    };
    let restart = restart_command(id, dir);
    let (own, dir) = (own_name(), dir.display());
    format!(
        "{table}All listen on 127.0.0.1. Try it, at any replica:\n{to_try}\
         \x20 {own} status --dir {dir}\n\
         \x20 http://{http}/    # the dashboard, in a browser\n\
         Kill one (kill -9 PID), try again, and have it started again:\n\
         \x20 {restart}\n\
         Ctrl-C stops all.\n"
    )
}

/// How a client asks for something at these addresses.
fn what_to_try(at: &ServiceAddresses, program: Option<&Program>) -> String {
    match at {
        ServiceAddresses::Store { memcached, redis } => format!(
            "\x20 redis-cli -p {} set greeting hello\n\
             \x20 exec 3<>/dev/tcp/127.0.0.1/{}       # memcached's protocol, in bash\n\
             \x20 printf 'get greeting\\r\\nquit\\r\\n' >&3; cat <&3\n",
            port(redis),
            port(memcached)
        ),
        ServiceAddresses::Program { server } => {
            let file = program.and_then(|it| Path::new(it.command.first()?).file_name());
            if file.is_some_and(|file| file == "redis-server") {
                format!("\x20 redis-cli -p {} set greeting hello\n", port(server))
            } else {
                format!("\x20 {server}    # its clients connect here\n")
            }
        }
    }
}

/// What a client of values is told, and how to see how far learners are.
fn values_to_try(replicas: &[ReplicaAddresses], dir: &Path) -> String {
    let addresses: Vec<_> = replicas.iter().map(|it| &it.client).collect();
    format!(
        "\x20 addresses = {addresses:?}    # client.toml of libquorumwire: docs/library.md\n\
         \x20 {} values list --dir {}\n",
        own_name(),
        dir.display()
    )
}

/// What starts a replica again.
fn restart_command(id: u16, dir: &Path) -> String {
    format!("{} dev --restart {id} --dir {}", own_name(), dir.display())
}

/// How this program is called: by the path that was typed, if one was, for it may be in no folder of PATH.
fn own_name() -> String {
    let called = std::env::args().next().filter(|name| name.contains('/'));
    called.unwrap_or_else(|| "quorumwire".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{CHOSEN, DEV_OPTIONS, check_server_options};
    use quorumwire_node::options::TABLE;

    fn said(words: &[&str]) -> String {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let refused = check_server_options(&words).err();
        refused.map_or(String::new(), |error| error.to_string())
    }

    #[test]
    fn what_servers_cannot_be_told_is_refused_by_name() {
        for (words, option, why) in [
            (&["--client-tls", "on"][..], "client-tls", "no TLS"),
            (&["--client-tls=on"], "client-tls", "no TLS"),
            (&["--client-tls-ca", "x"], "client-tls-ca", "no TLS"),
            (
                &["--log-level", "debug", "--plane", "auto"],
                "plane",
                "before `--`",
            ),
            (&["--durability=sync"], "durability", "before `--`"),
            (&["--id", "7"], "id", "leave it out"),
            (
                &["--listen-plane", "[::1]:1"],
                "listen-plane",
                "leave it out",
            ),
        ] {
            let text = said(words);
            assert!(
                text.contains(option) && text.contains(why),
                "{words:?}: {text}"
            );
        }
        for words in [
            &["--election-timeout-ms", "500"][..],
            &["--memory-limit-mib=64", "--log-level", "debug"],
            &["--on-follower", "refuse"],
            &[],
        ] {
            assert_eq!(said(words), "", "{words:?}");
        }
        for name in CHOSEN.iter().chain(&DEV_OPTIONS) {
            assert!(TABLE.iter().any(|spec| spec.name == *name), "{name}");
        }
    }
}

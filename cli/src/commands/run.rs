//! `quorumwire run`: one replica of a program that was not written for it.
use super::server::die_with_parent;
use crate::flags::ProgramFlags;
use anyhow::Context as _;
use clap::ArgMatches;
use clap::parser::ValueSource;
use quorumwire_node::options::{
    BY_COMMAND, ProgramPort, Refused, SaveCommands, ServedOptions, ServerOptions, Transport,
    program_words, unknown_variables,
};
use quorumwire_node::server::served::profiles::{SAVE_SIGNALS, name_of, number_of, profile_of};
use quorumwire_node::server::served::trial::try_program;
use quorumwire_node::{logging, server};
use quorumwire_ops::http::Http;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Runs a server that knows nothing of this as one of several equal replicas: each has the same input, which
/// is the log, and answers the clients that come to it. Its clients connect to any replica, at the port where
/// the server listens. Runs until SIGTERM or SIGINT.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  quorumwire dev -- redis-server --port 6379      # a whole cluster on this machine, in one command

  # the three replicas of Redis on one machine, one by one: each in a terminal of its own
  mkdir data
  M=0=127.0.0.1:7410,1=127.0.0.1:7420,2=127.0.0.1:7430
  quorumwire run --id 0 --dir data/0 --members $M --listen-peer 127.0.0.1:7410 \\
    --listen-client 127.0.0.1:7412 --listen-http 127.0.0.1:7418 \\
    --publish 6379=127.0.0.1:6380 -- redis-server --port 6379
  quorumwire run --id 1 --dir data/1 --members $M --listen-peer 127.0.0.1:7420 \\
    --listen-client 127.0.0.1:7422 --listen-http 127.0.0.1:7428 \\
    --publish 6379=127.0.0.1:6381 -- redis-server --port 6379
  quorumwire run --id 2 --dir data/2 --members $M --listen-peer 127.0.0.1:7430 \\
    --listen-client 127.0.0.1:7432 --listen-http 127.0.0.1:7438 \\
    --publish 6379=127.0.0.1:6382 -- redis-server --port 6379

  # keys for them (the name of the cluster is that of --cluster, and `/run`)
  quorumwire keys new --cluster quorumwire/run --dir KEYS --members 0=10.0.0.1,1=10.0.0.2,2=10.0.0.3")]
pub struct Arguments {
    #[command(flatten)]
    flags: ProgramFlags,
    /// Serve a port that the program opens, for TCP or UDP, at another address; `PORT/tcp` and `PORT/udp`
    /// mean that one only. May be given several times [default: where the program listens]
    #[arg(long, env = "QUORUMWIRE_PUBLISH", value_name = "PORT=IP:PORT", value_delimiter = ',', value_parser = published)]
    publish: Vec<(ProgramPort, SocketAddr)>,
    /// What a follower does with the program's clients: pass on to the leader what they do, or refuse them,
    /// and cut those that it has when it no longer leads
    #[arg(long, env = "QUORUMWIRE_FOLLOWERS", value_name = "WHAT", value_enum, default_value_t = Followers::Forward)]
    followers: Followers,
    /// The signal upon which the program saves itself in its folder and ends, to begin again from there;
    /// `none`: it cannot, and the whole log is kept [default: TERM for redis-server and valkey-server,
    /// or none]
    #[arg(long, env = "QUORUMWIRE_SAVE_SIGNAL", value_name = "SIGNAL", value_parser = save_signal, conflicts_with = "snapshot_command")]
    save_signal: Option<SaveSignal>,
    /// The command by which the program is saved at a cut, on every replica, of a program that saves itself
    /// upon no signal. `sh` runs it in the program's folder. It puts what the program is to begin from into
    /// the folder that `$QUORUMWIRE_SAVE` names; `$QUORUMWIRE_PID` is the program's process, which is ended
    /// then
    #[arg(
        long,
        env = "QUORUMWIRE_SNAPSHOT_COMMAND",
        value_name = "COMMAND",
        requires = "restore_command"
    )]
    snapshot_command: Option<String>,
    /// The command that is run, in the folder in which the program begins, before it begins from what was
    /// saved: that lies in the folder that `$QUORUMWIRE_SAVE` names
    #[arg(
        long,
        env = "QUORUMWIRE_RESTORE_COMMAND",
        value_name = "COMMAND",
        requires = "snapshot_command"
    )]
    restore_command: Option<String>,
    /// How long the program may take to save itself upon its signal, and each of these commands
    /// [default: 600]
    #[arg(long, env = "QUORUMWIRE_SAVE_TIMEOUT_S", value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    save_timeout_s: Option<u64>,
    /// Have CRIU save the program: refused, with the reason
    #[arg(long, value_name = "HOW", value_parser = ["criu"])]
    snapshot: Option<String>,
    /// Have the program save itself when the log behind the last time has grown so much; clients are cut then
    /// [default: 512]
    #[arg(long, env = "QUORUMWIRE_CUT_LOG_MIB", value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=65_536))]
    cut_log_mib: Option<u64>,
    /// For a program that cannot save itself: when the log has grown so much, all of which is kept on disk
    /// and in memory, no client is served any more [default: 1024]
    #[arg(long, env = "QUORUMWIRE_WHOLE_LOG_MAX_MIB", value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=1_048_576))]
    whole_log_max_mib: Option<u64>,
    /// Do not compare what the replicas' programs say to clients, of a program that says something else on
    /// each by right. Give it to all replicas or to none
    #[arg(long, env = "QUORUMWIRE_UNCHECKED_OUTPUT")]
    unchecked_output: bool,
    /// Serve a program of which several threads serve clients: one goes at a time, in an order that is the
    /// same on all replicas [default for memcached, slapd and clamd]
    #[arg(long, env = "QUORUMWIRE_SERIAL")]
    serial: bool,
    /// With `--serial`, how long a turn may last: a thread that has not come back to wait by then ends its
    /// replica [default: 30]
    #[arg(long, env = "QUORUMWIRE_SERIAL_TURN_S", value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    serial_turn_s: Option<u64>,
    /// Let the program connect to other servers, which is refused else. Each replica's does so by itself,
    /// and what others say is not in the log: what the program tells its clients must not depend on it. Give
    /// it to all replicas or to none
    #[arg(long, env = "QUORUMWIRE_ALLOW_OUTBOUND")]
    allow_outbound: bool,
    /// Say whether the program can be served, and where it listens: its file is looked at, it is started, a
    /// client connects, says nothing and goes, it saves itself if it can, and begins from that. Nothing else
    /// is done
    #[arg(long)]
    check: bool,
    /// Die as soon as this parent process is gone
    #[arg(long, value_name = "PID", hide = true)]
    die_with_parent: Option<i32>,
    /// The program and what it is told
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Arguments {
    /// What the configuration file says of options that the table of all servers does not have, and that
    /// neither the command line nor the environment says.
    pub(super) fn words_of_file(&self, given: &ArgMatches) -> Result<Vec<String>, Refused> {
        let words = program_words(&self.flags.0, &|variable| std::env::var_os(variable))?;
        let is_said = |name: &str| {
            let source = given.value_source(&name.replace('-', "_"));
            source.is_some_and(|it| it != ValueSource::DefaultValue)
        };
        let words = words.into_iter().filter(|(name, _)| !is_said(name));
        Ok(words.flat_map(|(_, words)| words).collect())
    }

    /// Refuses what has no effect for such a program: whoever says it means something.
    fn check_effect(&self, is_serial: bool, saves: bool) -> Result<(), Refused> {
        let not_serial = "the program is served without --serial, so its turns have no limit";
        let saves_not = "the program cannot save itself as far as is known: see --save-signal and --snapshot-command";
        let saves_itself =
            "the program can be saved, so not the whole log is kept: see --cut-log-mib";
        for (name, given, has_effect, why) in [
            ("serial-turn-s", self.serial_turn_s, is_serial, not_serial),
            ("save-timeout-s", self.save_timeout_s, saves, saves_not),
            ("cut-log-mib", self.cut_log_mib, saves, saves_not),
            (
                "whole-log-max-mib",
                self.whole_log_max_mib,
                !saves,
                saves_itself,
            ),
        ] {
            if let (Some(given), false) = (given, has_effect) {
                return Err(Refused::because(name, given.to_string(), why));
            }
        }
        Ok(())
    }

    /// Refuses what the options alone, without environment, have wrong.
    pub(super) fn check(&self) -> Result<(), Refused> {
        self.flags.0.check()
    }
}

/// What followers do with clients.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
enum Followers {
    Forward,
    Refuse,
}

/// None: the program cannot save itself.
#[derive(Clone, Copy, Debug)]
struct SaveSignal(Option<u8>);

fn save_signal(text: &str) -> Result<SaveSignal, String> {
    if text == "none" {
        return Ok(SaveSignal(None));
    }
    let name = text.strip_prefix("SIG").unwrap_or(text);
    let known = SAVE_SIGNALS.iter().find(|(known, _)| *known == name);
    known
        .map(|(_, signal)| SaveSignal(Some(number_of(*signal))))
        .ok_or_else(|| {
            let names = SAVE_SIGNALS.map(|(name, _)| name).join(", ");
            format!("allowed: {names}, none")
        })
}

fn published(text: &str) -> Result<(ProgramPort, SocketAddr), String> {
    let parsed = text.split_once('=').and_then(|(port, at)| {
        let (number, transport) = match port.split_once('/') {
            None => (port, None),
            Some((number, "tcp")) => (number, Some(Transport::Tcp)),
            Some((number, "udp")) => (number, Some(Transport::Udp)),
            Some(_) => return None,
        };
        let number = number.parse().ok().filter(|number| *number != 0)?;
        Some((ProgramPort { number, transport }, at.parse().ok()?))
    });
    parsed.ok_or_else(|| {
        "allowed: PORT=IP:PORT, the port that the program opens (1 to 65535) and where clients connect instead, \
         such as 6379=127.0.0.1:6380; PORT/tcp or PORT/udp for one of the two only"
            .to_owned()
    })
}

/// Runs the replica.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if let Some(parent) = arguments.die_with_parent {
        die_with_parent(parent)?;
    }
    let mut command = arguments.command.clone();
    let profile = profile_of(&command);
    if arguments.snapshot.is_some() {
        return Err(Refused::because("snapshot", "criu", WHY_NOT_CRIU).into());
    }
    let is_serial = arguments.serial || profile.is_serial;
    let commands = arguments.snapshot_command.clone();
    let commands = commands.zip(arguments.restore_command.clone());
    let save_commands = commands.map(|(snapshot, restore)| SaveCommands { snapshot, restore });
    let save_signal = match (&save_commands, arguments.save_signal) {
        (Some(_), _) => None,
        (None, Some(given)) => given.0,
        (None, None) => profile.save_signal,
    };
    let saves = save_commands.is_some() || save_signal.is_some();
    arguments.check_effect(is_serial, saves)?;
    command.extend(profile.arguments_with(save_signal));
    let served = ServedOptions {
        command,
        followers_refuse: arguments.followers == Followers::Refuse,
        save_signal,
        save_commands,
        save_time_max: Duration::from_secs(arguments.save_timeout_s.unwrap_or(SAVE_TIMEOUT_S)),
        cut_log_bytes: arguments.cut_log_mib.unwrap_or(CUT_LOG_MIB) << 20,
        whole_log_bytes_max: arguments.whole_log_max_mib.unwrap_or(WHOLE_LOG_MAX_MIB) << 20,
        published: arguments.publish.iter().copied().collect(),
        unchecked_output: arguments.unchecked_output,
        unchecked_commands: profile.unchecked_commands,
        allow_outbound: arguments.allow_outbound,
        serial_turn_max: is_serial
            .then(|| Duration::from_secs(arguments.serial_turn_s.unwrap_or(SERIAL_TURN_S))),
    };
    if arguments.check {
        return check(&served);
    }
    let mut options = ServerOptions::load(&arguments.flags.0)?;
    options.served = Some(served);
    logging::start(&options);
    for warning in unknown_variables(std::env::vars_os().map(|(name, _)| name)) {
        tracing::warn!(
            warning,
            "the environment has what looks like an option and is none"
        );
    }
    if profile.has_save_points {
        tracing::warn!(
            "save points of Redis are taken back: it cannot save in the background here, and needs not; the log has \
             all writes"
        );
    }
    server::run_program(&options, &Http).context("run")?;
    Ok(ExitCode::SUCCESS)
}

/// Whether it is installed or not.
const WHY_NOT_CRIU: &str = "CRIU cannot bring back the memory that a program shares with its replica. A program is \
                            saved upon a signal (--save-signal) or by --snapshot-command";
/// What holds unless it is told otherwise.
const SERIAL_TURN_S: u64 = 30;
const SAVE_TIMEOUT_S: u64 = 600;
const CUT_LOG_MIB: u64 = 512;
const WHOLE_LOG_MAX_MIB: u64 = 1024;

/// Says what is known of the program, and tries it.
fn check(served: &ServedOptions) -> anyhow::Result<ExitCode> {
    let says = |program: &str, seconds| errln!("{program} listens nowhere yet, after {seconds} s");
    let tried = try_program(served, &AtomicBool::new(false), says).context("run --check")?;
    let tcp = tried.listens.iter().map(ToString::to_string);
    let udp = tried.datagrams.iter().map(|at| format!("{at} (UDP)"));
    let listens: Vec<String> = tcp.chain(udp).collect();
    outln!("it can be served: it listens at {}", listens.join(", "))?;
    match served.how_to_save() {
        Some(BY_COMMAND) => outln!("it is saved by command, so the log stays short")?,
        Some(number) => {
            let name = name_of(number).unwrap_or_default();
            outln!("it saves itself upon {name} (signal {number}), so the log stays short")?;
        }
        None => outln!(
            "it cannot save itself as far as is known, so the whole log is kept: see --save-signal and \
             --snapshot-command"
        )?,
    }
    if let Some(name) = tried.known_as {
        outln!(
            "it runs as {name}, and is not treated as that, since COMMAND has another name: see --save-signal and --serial"
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::{Arguments, ProgramPort, Transport, published};
    use clap::Args as _;
    use quorumwire_node::options::{CONFIG, PROGRAM_OPTIONS, TABLE};
    use std::ffi::OsStr;

    /// All but what is said once, of one start.
    #[test]
    fn all_options_may_stand_in_the_environment_and_in_the_file() {
        let command = Arguments::augment_args(clap::Command::new("run"));
        let own = command.get_arguments().filter(|it| {
            let name = it.get_id().as_str();
            let is_server = std::iter::once(&CONFIG).chain(TABLE.iter());
            !is_server.clone().any(|spec| spec.name == name)
                && !["snapshot", "check", "die_with_parent", "command"].contains(&name)
        });
        let mut names = Vec::new();
        for argument in own {
            let name = argument.get_long().unwrap();
            let variable = format!("QUORUMWIRE_{}", name.replace('-', "_").to_uppercase());
            assert_eq!(argument.get_env(), Some(OsStr::new(&variable)));
            names.push(name);
        }
        assert_eq!(names, PROGRAM_OPTIONS);
    }

    #[test]
    fn where_a_port_is_published_says_both_ends() {
        let at = "127.0.0.1:6380".parse().unwrap();
        for (text, transport) in [
            ("6379=127.0.0.1:6380", None),
            ("6379/tcp=127.0.0.1:6380", Some(Transport::Tcp)),
            ("6379/udp=127.0.0.1:6380", Some(Transport::Udp)),
        ] {
            let port = ProgramPort {
                number: 6379,
                transport,
            };
            assert_eq!(published(text), Ok((port, at)));
        }
        for wrong in [
            "abc",
            "6379",
            "0=127.0.0.1:1",
            "70000=127.0.0.1:1",
            "6379=:1",
            "=1.2.3.4:5",
            "53/sctp=127.0.0.1:1",
            "53/=127.0.0.1:1",
            "0/udp=127.0.0.1:1",
        ] {
            let said = published(wrong).unwrap_err();
            assert!(said.starts_with("allowed: PORT=IP:PORT"), "{wrong}: {said}");
        }
    }
}

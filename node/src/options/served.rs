//! What the server of a program is told of it.
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

/// Options that only `quorumwire run` has, which its command line describes. They may stand in the
/// environment and in the configuration file as all others.
pub const PROGRAM_OPTIONS: [&str; 12] = [
    "publish",
    "followers",
    "save-signal",
    "snapshot-command",
    "restore-command",
    "save-timeout-s",
    "cut-log-mib",
    "whole-log-max-mib",
    "unchecked-output",
    "serial",
    "serial-turn-s",
    "allow-outbound",
];

/// How clients reach a port of a served program.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Transport {
    /// By connections.
    Tcp,
    /// By datagrams.
    Udp,
}

/// Ports that a served program opens.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct ProgramPort {
    /// Its number.
    pub number: u16,
    /// None: for both.
    pub transport: Option<Transport>,
}

impl fmt::Display for ProgramPort {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transport = match self.transport {
            Some(Transport::Tcp) => "/tcp",
            Some(Transport::Udp) => "/udp",
            None => "",
        };
        write!(out, "{}{transport}", self.number)
    }
}

/// A program that is served: its input is the log.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ServedOptions {
    /// Its file, and what it is told.
    pub command: Vec<OsString>,
    /// Where clients connect, by the port at which the program listens; else at the same port, on loopback
    /// unless [`insecure`](super::ServerOptions::insecure).
    pub published: BTreeMap<ProgramPort, SocketAddr>,
    /// A replica that does not lead serves no client.
    pub followers_refuse: bool,
    /// The signal upon which the program saves itself in its folder and ends, so that it can begin from
    /// there. None: it cannot, and the whole log is kept.
    pub save_signal: Option<u8>,
    /// Instead: the commands by which it saves itself, and is given that.
    pub save_commands: Option<SaveCommands>,
    /// How long it may take to save itself, and each command.
    pub save_time_max: Duration,
    /// It does so when the log behind the last time has grown to this size.
    pub cut_log_bytes: u64,
    /// Without a way to save it: when the log has grown to this size, no client is served.
    pub whole_log_bytes_max: u64,
    /// What it says is not compared with what those of other replicas say.
    pub unchecked_output: bool,
    /// Commands of its clients to whose answers that applies in any case.
    pub unchecked_commands: &'static [&'static str],
    /// It may connect to other servers, each replica's by itself.
    pub allow_outbound: bool,
    /// Several of its threads serve, one at a time; a turn may last so long. None: one does.
    pub serial_turn_max: Option<Duration>,
}

/// How a program saves itself that no signal tells to. `sh` runs both.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SaveCommands {
    /// Puts into the folder that `QUORUMWIRE_SAVE` names what the program is to begin from.
    pub snapshot: String,
    /// Puts what lies there into the folder in which the program begins, and it is run.
    pub restore: String,
}

/// In the log, in place of a signal: the program is saved by command.
pub const BY_COMMAND: u8 = 0;

impl ServedOptions {
    /// What the log says of how it saves itself. None: it cannot.
    #[must_use]
    pub fn how_to_save(&self) -> Option<u8> {
        let by_command = self.save_commands.as_ref().map(|_| BY_COMMAND);
        by_command.or(self.save_signal)
    }
}

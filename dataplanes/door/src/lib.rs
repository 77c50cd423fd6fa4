//! What a kind of data plane says of itself: name, options, rights, how one is opened. The server has a list
//! of kinds and knows nothing else of any of them. No kind is known here.
mod options;
mod remains;

pub use options::{MULTICAST, OptionKind, PlaneOption, Unset, Values};
pub use remains::{Note, ProgramAt, Remains, noted_nowhere};

use quorumwire_fastpath::PaxosStore;
use quorumwire_interfaces::{Counter, DataPlane, Endpoint, GroupId};
use rustix::thread::CapabilitySet;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::RawFd;
use std::sync::Arc;

/// A kind of data plane.
pub struct PlaneKind {
    /// As options and status call it.
    pub name: &'static str,
    /// Where the common case runs with it; goes on behind its name and a colon, and ends without a full stop.
    pub help: &'static str,
    /// Planes of several replicas run over one loopback device.
    pub runs_on_loopback: bool,
    /// Its own options, which begin with its name unless others may have the same.
    pub options: &'static [PlaneOption],
    /// What the options that were given say together.
    pub check: fn(&KindOptions<'_>) -> Result<(), NotAllowed>,
    /// Planes that are bound, off and without keys.
    pub open: fn(&KindOptions<'_>, PlaneSetup) -> Result<OpenPlanes, NotOpened>,
    /// What its process keeps when it gives up all other rights.
    pub capabilities: fn() -> CapabilitySet,
    /// Most descriptors that one has open.
    pub descriptors_max: usize,
    /// What planes of this kind count.
    pub counters: &'static [&'static [Counter]],
    /// What of it runs on for a while when its process has ended.
    pub remains: Option<Remains>,
    /// Has what its libraries complain of handed to whoever keeps a log.
    pub hand_complaints_to: fn(fn(&str)),
    /// What the other end of its network needs.
    pub other_end: Option<OtherEnd>,
    /// How boxes of Paxos roles run there; `None`: in the memory of their process, which has a socket.
    pub boxes: Option<BoxKind>,
}

impl fmt::Debug for PlaneKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for PlaneKind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for PlaneKind {}

/// Whether a server wants a plane of this kind.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Demand {
    /// It does not.
    No,
    /// If it can run here.
    IfPossible,
    /// It was asked for by name.
    Yes,
}

/// What a server's options say of a kind.
#[derive(Clone, Copy, Debug)]
pub struct KindOptions<'a> {
    /// Whether it is this kind.
    pub demand: Demand,
    /// Where the plane is to listen.
    pub listen: SocketAddr,
    /// The option that says so.
    pub listen_option: &'static str,
    /// The kind's own options.
    pub values: &'a Values,
}

/// What planes are opened with.
pub struct PlaneSetup {
    /// The logs that they serve, each one of them. The first listens where it was asked for, each other one
    /// at the port behind that of the one before.
    pub groups: Vec<GroupId>,
    /// Entries that a ring holds: a power of two.
    pub ring_slots: u32,
    /// Where others reach the first, if not where it listens; the others likewise at the ports behind that.
    pub advertised: Option<SocketAddr>,
    /// The socket to which clients of the host send datagrams, which the first may answer from there.
    pub datagrams: Option<UdpSocket>,
    /// Takes note of each program that may run on for a while when the process has ended.
    pub note: Arc<Note>,
}

impl PlaneSetup {
    /// The logs, each with its number among them.
    pub fn numbered(&self) -> impl Iterator<Item = (u16, GroupId)> + use<> {
        (0..).zip(self.groups.clone())
    }
}

/// The address of the plane with this number; number 0 has `first`. A port that is to be a free one is that
/// for all.
#[must_use]
pub fn address_at(first: SocketAddr, number: u16) -> SocketAddr {
    let port = match first.port() {
        0 => 0,
        port => port.saturating_add(number),
    };
    SocketAddr::new(first.ip(), port)
}

/// Planes before the server has them.
pub struct OpenPlanes {
    /// One for each group.
    pub planes: Vec<OpenPlane>,
    /// Where they run, in words, if it could be in several places.
    pub runs: Option<String>,
}

/// One of them.
pub struct OpenPlane {
    /// The plane.
    pub plane: Box<dyn DataPlane>,
    /// Where others reach it.
    pub endpoint: Endpoint,
    /// Readable when the plane has something; open as long as the plane is.
    pub wakes: RawFd,
}

/// How boxes of Paxos roles are opened that run where a kind of plane does.
#[derive(Clone, Copy)]
pub struct BoxKind {
    /// Where their common case runs; as [`PlaneKind::help`].
    pub help: &'static str,
    /// Which of the kind's options they have.
    pub options: &'static [BoxOption],
    /// One that is off and without keys. What it leaves to software comes to a socket that listens where it
    /// does.
    pub open: fn(&KindOptions<'_>, BoxSetup) -> Result<OpenBox, NotOpened>,
}

/// What a box is opened for.
#[derive(Clone, Copy, Debug)]
pub struct BoxSetup {
    /// Instances, a power of two.
    pub window: u32,
    /// A multicast address at which it takes proposals, too. Its user is a member of that group.
    pub hears: Option<Ipv4Addr>,
}

/// An option of a kind of plane, as boxes have it.
#[derive(Clone, Copy, Debug)]
pub struct BoxOption {
    /// Its name.
    pub name: &'static str,
    /// What it is for there; as [`PlaneOption::help`].
    pub help: &'static str,
    /// What holds when it is not given.
    pub unset: &'static str,
}

/// Such a box.
pub struct OpenBox {
    /// Where its step runs.
    pub store: Box<dyn PaxosStore>,
    /// Where that is, in words, if it could be in several places.
    pub runs: Option<String>,
}

/// A value that does not go with others.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NotAllowed {
    /// The option.
    pub option: &'static str,
    /// What would be allowed.
    pub allowed: &'static str,
}

/// Why a plane was not opened.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NotOpened {
    /// The option that stands in its way; with the value, where one was given.
    pub option: String,
    /// Why, and what would be accepted.
    pub text: String,
}

impl fmt::Display for NotOpened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "option {}: {}", self.option, self.text)
    }
}

impl std::error::Error for NotOpened {}

/// A network device at the other end of a plane's, which has to be made ready for what the plane sends.
#[derive(Clone, Copy)]
pub struct OtherEnd {
    /// What that does, in a line.
    pub about: &'static str,
    /// The same, at length.
    pub long_about: &'static str,
    /// Makes the device of this name ready.
    pub make_ready: fn(&str) -> io::Result<()>,
    /// Makes it as it was.
    pub undo: fn(&str) -> io::Result<()>,
}

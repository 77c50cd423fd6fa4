//! A plane beside the engine in ordinary memory, in clusters whose other members are such engines: real
//! runs of the protocol, with loss and repetition, and whatever else somebody might send; memcached clients,
//! too. Both get the same frames and orders, and who has them compares what they do. The same seed brings
//! the same frames to every plane that does what the engine does.
mod terms;

use crate::cluster::GROUP;
use crate::faults::Dice;
use quorumwire_fastpath::{
    Counters, Engine, Keys, Options, Outbox, Outcome, RegisterStore, check, step,
};
use quorumwire_interfaces::{Command, Grant, Index, PlaneEvent, PlaneKeys, Registers as Shown};
use quorumwire_wire::packet::{Header, Kind, PacketReason, Registers, Role};
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// How many frames come where all planes get the same.
pub const FRAMES_VARIABLE: &str = "QUORUMWIRE_FRAMES";
/// A file that has digests of the frames that came to one plane: to the next one the same must come.
pub const SAME_VARIABLE: &str = "QUORUMWIRE_SAME_FRAMES";
/// Where planes are asked, and where memcached clients ask.
pub const PORT: u16 = 7000;
pub const MEMCACHED: u16 = 11_211;
/// Longest frame, without a VLAN's tag.
pub const FRAME_BYTES_MAX: usize = 1514;
/// Where clients are: behind the places of the replicas.
pub const OUTSIDE: usize = 200;
/// Ports of the clients.
pub const CLIENTS: [u16; 2] = [9000, 9001];

/// A datagram that leaves.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Datagram {
    /// From this port.
    pub port: u16,
    pub to: SocketAddr,
    pub bytes: Vec<u8>,
}

/// What is sent.
#[derive(Default)]
pub struct Out(pub Vec<Datagram>);

impl Outbox for Out {
    fn send(&mut self, to: SocketAddr, datagram: &[u8]) {
        let (port, bytes) = (PORT, datagram.to_vec());
        self.0.push(Datagram { port, to, bytes });
    }

    fn send_memcached(&mut self, to: SocketAddr, datagram: &[u8]) {
        let (port, bytes) = (MEMCACHED, datagram.to_vec());
        self.0.push(Datagram { port, to, bytes });
    }
}

/// What a host was told, each thing in its order.
#[derive(Debug, Default, Eq, PartialEq)]
pub struct HostLog {
    /// Entries, and how far they are committed.
    pub log: Vec<String>,
    /// Who lacks what the ring holds no more. A core says once between two looks of its host that one does.
    pub behind: BTreeSet<u8>,
    /// What the plane leaves to its host.
    pub passed: Vec<String>,
}

impl HostLog {
    pub fn note(&mut self, event: &PlaneEvent<'_>) {
        match event {
            PlaneEvent::Entry(entry) => self.log.push(format!("{entry:?}")),
            PlaneEvent::Committed(_) => self.log.push(format!("{event:?}")),
            PlaneEvent::Behind(slot) => {
                self.behind.insert(*slot);
            }
            PlaneEvent::Request { .. } | PlaneEvent::Foreign { .. } => {
                self.passed.push(format!("{event:?}"));
            }
        }
    }
}

/// How a frame comes to a plane.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Comes {
    /// Where that can be: the plane says what it would do.
    Tried,
    /// It comes in, and what is to be done is done.
    Live,
}

/// A plane and the engine. What calls give back is what the engine has sent.
pub trait Twin {
    /// Where the plane is asked.
    fn own(&self) -> SocketAddr;
    /// Where a member is, by its slot, or who is outside.
    fn ip_of(&self, slot: usize) -> IpAddr;
    /// Where all members hear.
    fn multicast(&self) -> Option<Ipv4Addr>;
    /// A datagram's frame on its way to the plane.
    fn frame(&self, from: SocketAddr, to: SocketAddr, datagram: &[u8]) -> Vec<u8>;
    fn registers(&self) -> Registers;
    fn shown(&self) -> Shown;
    fn set_keys(&mut self, keys: &PlaneKeys);
    fn engage(&mut self, grant: &Grant);
    fn disengage(&mut self);
    /// Both hosts look what has happened.
    fn poll(&mut self);
    /// Every entry that both rings hold.
    fn compare_ring(&mut self);
    /// The same frame comes to both.
    fn receive(&mut self, frame: &[u8], comes: Comes) -> Vec<Datagram>;
    fn submit(&mut self, commands: &[Command<'_>]) -> Vec<Datagram>;
    fn heartbeat(&mut self, round: u64) -> Vec<Datagram>;
    fn persisted(&mut self, upto: Index) -> Vec<Datagram>;
    fn release(&mut self, upto: Index);
    /// What the plane may do for memcached clients: `set`s are taken, and `get`s answered where the answers
    /// show everything up to here.
    fn allow(&mut self, sets: bool, applied: Option<u64>);
    /// The answer to a key from now on, unless another one has its place.
    fn keep(&mut self, key: &[u8], answer: Option<&[u8]>);
}

/// What the engine made of a packet.
pub struct Judged {
    /// Of its registers before, in words.
    pub role: String,
    pub before: Registers,
    /// Of a packet that is at least a header long.
    pub header: Header,
    /// In words; "unknown" if it is none of ours.
    pub kind: String,
    pub foreign: bool,
    pub reason: PacketReason,
    /// It was not taken before any state was read.
    pub is_early: bool,
    pub outcome: Outcome,
}

impl Judged {
    /// A datagram comes to the engine. What it sends is added to `out`, what its host is told to `told`.
    pub fn of(
        native: &mut Engine,
        keys: &Keys,
        (from, datagram): (SocketAddr, &[u8]),
        out: &mut Out,
        told: &mut HostLog,
    ) -> Self {
        let before = *native.register_store().registers();
        let counted = *native.counters();
        native.receive(from, datagram, out, &mut |event| told.note(&event));
        let foreign = native.counters().foreign > counted.foreign;
        let reason = reason_since(native, &counted);
        let is_early = check(keys, datagram).is_err() || reason == PacketReason::Checksum;
        let header = datagram.first_chunk().map(Header::decode);
        let outcome = match header {
            Some(header) if !is_early => step(&mut before.clone(), &header),
            _ => Outcome::default(),
        };
        let header = header.unwrap_or_default();
        let kind = Kind::from_byte(header.kind).filter(|_| !foreign);
        Self {
            role: role_of(&before),
            before,
            header,
            kind: kind.map_or("unknown".to_owned(), |kind| format!("{kind:?}")),
            foreign,
            reason,
            is_early,
            outcome,
        }
    }

    /// Why it was not taken, or not as it was meant, in words.
    #[must_use]
    pub fn why(&self) -> String {
        if self.foreign {
            "Foreign".into()
        } else {
            format!("{:?}", self.reason)
        }
    }
}

/// Why the engine has not taken what came since, or not as it was meant.
#[must_use]
pub fn reason_since(native: &Engine, counted: &Counters) -> PacketReason {
    let now = native.counters();
    let is_new = |reason: &PacketReason| now.reason(*reason) > counted.reason(*reason);
    PacketReason::ALL
        .into_iter()
        .find(is_new)
        .unwrap_or(PacketReason::None)
}

/// A role in words.
#[must_use]
pub fn role_of(registers: &Registers) -> String {
    Role::from_byte(registers.role).map_or("Off".into(), |role| format!("{role:?}"))
}

/// Of the engine's packets that answer one: where it acknowledges and asks for more, a plane asks only.
pub fn leave_one(sent: &mut Vec<Datagram>) {
    let asks = |datagram: &Datagram| {
        let head = datagram.bytes.first_chunk().map(Header::decode);
        head.is_some_and(|head| head.kind == Kind::Retransmit as u8)
    };
    if sent.len() == 2 && asks(&sent[1]) {
        sent.remove(0);
    }
}

/// How one run differs from others.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub ring_slots: u32,
    pub window: u32,
    pub frames: u64,
    /// Whether the plane may serve memcached clients.
    pub memcached: bool,
}

impl Run {
    /// Of both planes.
    #[must_use]
    pub fn options(&self) -> Options {
        Options {
            group: GROUP,
            ring_slots: self.ring_slots,
            window: self.window,
        }
    }

    /// Terms until so many frames have come, which are noted in `came`. `number`: of the next term, which
    /// goes up.
    pub fn go<T: Twin>(&self, twin: &mut T, dice: &mut Dice, number: &mut u64, came: &mut Came) {
        let mut old = Vec::new();
        let mut so_far = 0;
        while so_far < self.frames {
            so_far += terms::term(self, *number, twin, dice, &mut old, came);
            *number += 1;
        }
    }
}

/// What has come to a plane, a digest of each frame. If `QUORUMWIRE_SAME_FRAMES` names a file, the first
/// plane writes it, and to the next one the same must come.
#[derive(Debug, Default)]
pub struct Came {
    digests: Vec<u8>,
    before: Option<Vec<u8>>,
}

impl Came {
    /// To begin with nothing; what came to the plane before is read, if any did.
    #[must_use]
    pub fn new() -> Self {
        let file = std::env::var_os(SAME_VARIABLE);
        Self {
            digests: Vec::new(),
            before: file.and_then(|file| std::fs::read(file).ok()),
        }
    }

    fn note(&mut self, from: SocketAddr, bytes: &[u8]) {
        let begin = self.digests.len();
        let mut hasher = DefaultHasher::new();
        (from, bytes).hash(&mut hasher);
        self.digests.extend(hasher.finish().to_le_bytes());
        if let Some(before) = &self.before {
            let number = begin / size_of::<u64>();
            assert_eq!(
                self.digests.get(begin..),
                before.get(begin..self.digests.len()),
                "frame {number} is another one than came to the plane before: from {from}, {bytes:02x?}"
            );
        }
    }

    /// All has come: as much as to the plane before, or it is written for the next one.
    ///
    /// # Panics
    ///
    /// If more came to that one, or the file cannot be written.
    pub fn end(self) {
        match (self.before, std::env::var_os(SAME_VARIABLE)) {
            (Some(before), _) => assert_eq!(self.digests.len(), before.len(), "bytes of digests"),
            (None, Some(file)) => std::fs::write(file, self.digests).expect("a file"),
            (None, None) => {}
        }
    }
}

/// The frames that come to all planes, so many: those of `QUORUMWIRE_FRAMES`, or 20,000.
///
/// # Panics
///
/// If the variable is set and no number.
#[must_use]
pub fn corpus() -> [Run; 2] {
    let frames: u64 = match std::env::var(FRAMES_VARIABLE) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{FRAMES_VARIABLE}: {text:?}, allowed: a number")),
        Err(_) => 20_000,
    };
    let run = |ring_slots, window, share| Run {
        ring_slots,
        window,
        frames: frames * share / 10,
        memcached: false,
    };
    [run(64, 64, 7), run(8, 6, 3)]
}

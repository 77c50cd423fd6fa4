//! Data planes: places where the common case runs. A plane moves entries of one *fast term* while it is
//! engaged, and nothing at any other time.
use crate::CounterSink;
use crate::{Endpoint, GroupId, Index, Offload, Reason, ReplicaId, Term};
use std::borrow::Cow;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

/// Most replicas in one fast term.
pub const PLANE_REPLICAS_MAX: usize = 7;

/// What a plane can do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Most bytes of one command's piece.
    pub payload_bytes_max: usize,
    /// Most replicas in a grant.
    pub replicas_max: usize,
    /// Entries its ring holds: what the host has not taken, and what can be sent again.
    pub ring_slots: u32,
    /// Whether it checks authentication tags. If not, it belongs on an isolated network.
    pub authenticates: bool,
}

/// One replica of a grant, as the others reach it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PlanePeer {
    /// Who.
    pub id: ReplicaId,
    /// Where its plane is. `None`: nobody knows, and nothing reaches it before [`DataPlane::set_peer`] says.
    pub endpoint: Option<Endpoint>,
}

/// The keys that sign and check one kind of packet. Two can be valid at once, so that one can be replaced
/// by the next while packets are on their way: first all replicas learn the next one as `other`, then they
/// sign with it, then they forget the one before.
#[derive(Clone, Copy, Default, Eq, PartialEq)]
pub struct PlaneKeyPair {
    /// Number of the key that signs. Its lowest bit travels in every packet.
    pub epoch: u64,
    /// That key.
    pub key: [u8; 16],
    /// The key of the epoch before or after, if packets signed with it are taken too.
    pub other: Option<[u8; 16]>,
}

impl fmt::Debug for PlaneKeyPair {
    /// Shows no key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "keys of epoch {}", self.epoch)
    }
}

/// All keys of a plane.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct PlaneKeys {
    /// What replicas say to each other.
    pub cluster: PlaneKeyPair,
    /// Requests of clients and answers to them.
    pub clients: PlaneKeyPair,
}

/// What a plane is engaged with: it continues the log behind `last_index`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Grant {
    /// Which log.
    pub group: GroupId,
    /// The fast term.
    pub term: Term,
    /// The last entry that software moved; durable here.
    pub last_index: Index,
    /// That entry's term.
    pub last_term: Term,
    /// What is known to be committed; at most `last_index`.
    pub commit_index: Index,
    /// Slot of this replica in `peers`.
    pub me: u8,
    /// Slot of the leader in `peers`.
    pub leader: u8,
    /// All voters, in the same order on all of them; at most [`PLANE_REPLICAS_MAX`].
    pub peers: Vec<PlanePeer>,
    /// How many of them must hold an entry to commit it, the leader included.
    pub quorum: u8,
    /// Acknowledge only what [`DataPlane::persisted`] covers (durability `sync`).
    pub held: bool,
}

/// What a plane and its host share, as of one moment.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Registers {
    /// The fast term; 0 if the plane was never engaged.
    pub term: Term,
    /// The last entry stored.
    pub last_index: Index,
    /// That entry's term.
    pub last_term: Term,
    /// Highest index known to be committed.
    pub commit_index: Index,
    /// Highest index ever acknowledged or counted for this replica itself.
    pub persisted_index: Index,
    /// Highest heartbeat round sent (leader) or heard (follower).
    pub round: u64,
    /// Leader: highest index each replica has acknowledged, by slot.
    pub match_index: [Index; PLANE_REPLICAS_MAX],
    /// Leader: highest heartbeat round each replica has answered, by slot.
    pub heard_round: [u64; PLANE_REPLICAS_MAX],
}

/// What an entry holds.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum EntryKind {
    /// A command for the state machine.
    Command,
    /// A piece of one: number and count of pieces (32 bits each, big-endian), then bytes.
    Fragment,
    /// The log's time: at most 16 bytes, as records have it.
    Tick,
    /// Several commands of the host's, each carried out by itself, in this order. Only hosts submit them.
    Bundle,
}

/// A command to be replicated.
#[derive(Clone, Copy, Debug)]
pub struct Command<'a> {
    /// What it is.
    pub kind: EntryKind,
    /// Client session; 0: none.
    pub session: u64,
    /// Its number in the session; with session 0 a number the host recognises it by.
    pub sequence: u64,
    /// Its bytes, at most [`Limits::payload_bytes_max`].
    pub payload: &'a [u8],
}

/// An entry the plane has stored.
#[derive(Clone, Copy, Debug)]
pub struct PlaneEntry<'a> {
    /// Its index in the log.
    pub index: Index,
    /// The fast term.
    pub term: Term,
    /// What it holds.
    pub command: Command<'a>,
    /// Leader: the client that asked through the plane and waits for an answer from the host; `None` for what
    /// was submitted, and for blind writes. A client is an IP address and a port, whatever the plane: so it
    /// stands in a packet that a follower passes on, and it may ask a plane of another kind next.
    pub requester: Option<SocketAddr>,
}

/// What a plane tells its host.
#[derive(Clone, Copy, Debug)]
pub enum PlaneEvent<'a> {
    /// An entry was stored. In the order of the log, each once.
    Entry(PlaneEntry<'a>),
    /// Everything up to here is committed. After the entries it covers.
    Committed(Index),
    /// Leader: a replica asks for entries that the ring holds no more, by its slot.
    Behind(u8),
    /// A client's request that the plane could not take: it is off, or a follower without a leader.
    Request {
        /// Who asks.
        from: SocketAddr,
        /// A command or a piece of one.
        kind: EntryKind,
        /// Client session; 0: none.
        session: u64,
        /// Its number in the session.
        sequence: u64,
        /// The command, or the piece.
        payload: &'a [u8],
    },
    /// A datagram that is none of the plane's packets, from a client that speaks another protocol.
    Foreign {
        /// Who sent it.
        from: SocketAddr,
        /// Its bytes.
        bytes: &'a [u8],
    },
}

/// An answer for a client that asked through the plane.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// To whom.
    pub to: SocketAddr,
    /// As in its request.
    pub session: u64,
    /// As in its request.
    pub sequence: u64,
    /// Where the command stands in the log; 0 if it does not.
    pub index: Index,
    /// Why it was not carried out; then the payload says it for people.
    pub refused: Option<Reason>,
    /// It was a piece of a command and is in the log; the answer to the whole command comes by itself.
    /// The payload is the piece's number (4 bytes, big-endian).
    pub fragment: bool,
    /// What the state machine said; cut off by none: at most [`Limits::payload_bytes_max`].
    pub payload: &'a [u8],
}

/// Why a plane did not do what it was told.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PlaneError {
    /// No more room: later. Nothing was taken beyond what the answer says.
    Full,
    /// It is not engaged, or not as a leader.
    NotEngaged,
    /// It is engaged already.
    Engaged,
    /// The grant is nothing it can work with; the text says what would be.
    Refused(&'static str),
    /// What it runs in failed: it must be disengaged. The text says what failed.
    Failed(Cow<'static, str>),
}

impl fmt::Display for PlaneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "there is no room",
            Self::NotEngaged => "it is not engaged",
            Self::Engaged => "it is engaged already",
            Self::Refused(text) => text,
            Self::Failed(text) => text,
        })
    }
}

impl std::error::Error for PlaneError {}

/// Where the common case runs.
///
/// Engaged, it alone moves the log: it stores, replicates, counts and commits entries of its grant's
/// term. [`disengage`](Self::disengage) is a fence: when it returns, the registers account for every
/// acknowledgement ever sent, and no more are sent; [`poll`](Self::poll) then still hands over what the
/// ring holds up to the registers' last index. Engaging starts with an empty ring.
pub trait DataPlane: Send {
    /// What it can do.
    fn limits(&self) -> Limits;

    /// Signs and checks packets with these keys from now on. Before the first ones nothing is taken and
    /// nothing can be engaged.
    fn set_keys(&mut self, keys: &PlaneKeys);

    /// Starts moving the log behind the grant's last index. Answers nothing before it returns `Ok`.
    /// Everything that an earlier term stored must have been taken by [`poll`](Self::poll).
    fn engage(&mut self, grant: &Grant) -> Result<(), PlaneError>;

    /// Stops, for good, what this term moves. Idempotent.
    fn disengage(&mut self) -> Registers;

    /// A replica of the running grant is reached elsewhere from now on. One that this plane cannot read
    /// changes nothing.
    fn set_peer(&mut self, slot: u8, endpoint: &Endpoint);

    /// The registers of this moment.
    fn registers(&self) -> Registers;

    /// Leader: takes commands in order, at indexes that follow each other, as many as there is room for
    /// or as it takes at once; how many, and the first one's index. [`PlaneError::Full`] if there is room
    /// for none.
    fn submit(&mut self, commands: &[Command<'_>]) -> Result<(Index, usize), PlaneError>;

    /// What it can do for clients of the host that speak another protocol; `None`: nothing.
    fn offload(&mut self) -> Option<&mut dyn Offload> {
        None
    }

    /// Leader: tells the followers that it lives. Rounds ascend; what comes back shows in
    /// [`Registers::heard_round`].
    fn heartbeat(&mut self, round: u64) -> Result<(), PlaneError>;

    /// Leader: whether somebody waits for the answers to the rounds begun from now on, so that these are to
    /// wake the host. A plane whose host is woken by every packet needs not be told.
    fn expects_round(&mut self, _expected: bool) {}

    /// Takes in at most `budget` packets and hands over what has happened; how many events. Never
    /// blocks.
    fn poll(&mut self, budget: usize, sink: &mut dyn FnMut(PlaneEvent<'_>)) -> usize;

    /// Everything up to here is durable: releases the acknowledgements held for it. Only with a grant
    /// that says `held`.
    fn persisted(&mut self, upto: Index) -> Result<(), PlaneError>;

    /// The host has taken everything up to here and needs it no more: the slots may be reused.
    fn release(&mut self, upto: Index) -> Result<(), PlaneError>;

    /// Answers a client. Lost ones are asked for again by the client.
    fn answer(&mut self, answer: &Answer<'_>);

    /// Sends a datagram that is none of the plane's packets, from the plane's own address. It may be lost.
    fn send_foreign(&mut self, to: SocketAddr, bytes: &[u8]);

    /// What it has done, taken and dropped since it was made, by name; what a name counts is packets
    /// unless it says otherwise.
    fn counters(&self, sink: CounterSink<'_>);

    /// Whether it can make anything of where another replica's plane is, which may be of another kind, or of
    /// a later version.
    fn can_reach(&self, _endpoint: &Endpoint) -> bool {
        true
    }

    /// What keeps it from being engaged now, for people; `None` while nothing does. It may pass by itself:
    /// [`poll`](Self::poll) finds that.
    fn fault(&self) -> Option<&str> {
        None
    }

    /// The longest time [`poll`](Self::poll) may be left alone while nothing wakes the host; `None`:
    /// any time.
    fn poll_again_within(&self) -> Option<Duration> {
        None
    }
}

// Generated from wire/format.toml by `make generate`; do not edit.

/// First two bytes of every packet.
pub const MAGIC: u16 = 0x5157;
/// Format version.
pub const VERSION: u8 = 1;
/// Bytes of a header on the wire.
pub const HEADER_BYTES: usize = 72;
/// Bytes before the header's tag.
pub const TAG_OFFSET: usize = 64;
/// Paxos: most acceptors of a deployment.
pub const ACCEPTORS_MAX: usize = 7;
/// Paxos: most instances that can be open at a time.
pub const INSTANCE_WINDOW_MAX: usize = 65536;
/// Paxos: bytes of one acceptor's life in a configuration.
pub const LIFE_BYTES: usize = 8;
/// FORWARD: bytes before the request's payload that say who asked: an IPv6 address (IPv4 mapped),
/// then a port of 16 bits. The payload's checksum does not cover them.
pub const ORIGIN_BYTES: usize = 18;
/// Most bytes behind the header: the whole packet fits an MTU of 1500 over IPv4 and IPv6.
pub const PAYLOAD_BYTES_MAX: usize = 1376;
/// A replica that misses as many entries is repaired by software, in batches and beside the fast
/// path, unless all have to hold each entry.
pub const REPAIR_ENTRIES_MAX: usize = 1024;
/// Most replicas in one fast term.
pub const REPLICAS_MAX: usize = 7;
/// Most entries resent for one RETRANSMIT.
pub const RESEND_ENTRIES_MAX: usize = 32;
/// Paxos: a round's number is a count times this, and whose round it is: so no two coordinators
/// have one round.
pub const ROUND_OWNERS: usize = 256;
/// The sender of a packet that comes from a client.
pub const SENDER_CLIENT: usize = 255;
/// Flag. Lowest bit of the number of the key that made the tag.
pub const FLAG_EPOCH: u8 = 0x1;
/// Flag. REQUEST, APPEND: answer as soon as it is committed, without what the state machine says.
pub const FLAG_BLIND: u8 = 0x2;
/// Flag. The payload moves the log's time.
pub const FLAG_TICK: u8 = 0x4;
/// Flag. The payload is a piece of a command, or of a value: number and count of pieces (32 bits
/// each), then bytes. A client's piece needs a session. ANSWER: this piece (its number, 32 bits) is
/// in the log, the command is not complete.
pub const FLAG_FRAGMENT: u8 = 0x8;
/// Flag. ANSWER: there is none of the state machine; `previous_term` says why, the payload says it
/// for people. P1B, P2B: neither promised nor voted. Paxos' HEARTBEAT: answers one of a coordinator
/// that has the sender's number; the round is the one in that.
pub const FLAG_REFUSED: u8 = 0x10;
/// Flag. APPEND: the payload is several commands, each carried out by itself, in this order
/// (README.md). No client may set it.
pub const FLAG_BUNDLE: u8 = 0x20;
/// Flag. P2A: the vote goes to the sender, too, not to learners alone.
pub const FLAG_TELL: u8 = 0x40;
/// All flags.
pub const FLAGS_KNOWN: u8 = 0x7f;
/// Action. Put the payload into the ring at `index`. Acceptor: into the slot of the instance
/// `index`.
pub const ACTION_STORE: u32 = 0x1;
/// Action. Send `header` with the payload to all other replicas of the grant. Coordinator: to all
/// acceptors. Acceptor: to all learners.
pub const ACTION_FANOUT: u32 = 0x2;
/// Action. Send `header` to the sender; in a follower, to the leader.
pub const ACTION_REPLY: u32 = 0x4;
/// Action. The commit index went from `commit_from` to the registers' value: answer the blind
/// writes between, tell the host.
pub const ACTION_COMMIT: u32 = 0x8;
/// Action. Hand the packet, unchanged, to software. Comes alone; the registers are untouched.
pub const ACTION_TO_SOFTWARE: u32 = 0x10;
/// Action. Send the request on to the leader.
pub const ACTION_FORWARD: u32 = 0x20;
/// Action. Send the entries from `index` on to the sender again, at most resend_entries_max and not
/// beyond the last.
pub const ACTION_RESEND: u32 = 0x40;
/// Action. Acceptor: what is to be sent goes to the host, which sends it when it is durable.
pub const ACTION_HOLD: u32 = 0x80;
/// Action. Acceptor: the payload behind `header` is the one in the slot of `index`.
pub const ACTION_VOTE: u32 = 0x100;

/// What a packet says.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[repr(u8)]
pub enum Kind {
    /// Client to any replica: replicate this command.
    Request = 1,
    /// Leader to followers: store this entry.
    Append = 2,
    /// Follower to leader: everything up to here is stored as firmly as the durability asks.
    AppendOk = 3,
    /// Follower to leader: send again from here on.
    Retransmit = 4,
    /// Leader to followers: it lives; its last index and commit index. Paxos: coordinator's host to
    /// the others' and to learners.
    Heartbeat = 5,
    /// Follower to leader: heard the round in `sequence`; also says what append_ok says.
    HeartbeatOk = 6,
    /// Replica to client: what became of the command.
    Answer = 7,
    /// Follower to leader: a client's request; the payload begins with who asked.
    Forward = 8,
    /// Paxos. Proposer to coordinator: a value to be decided.
    Submit = 9,
    /// Paxos. Coordinator to acceptors: promise this round, and say what was voted. Of all
    /// instances: the payload is the configuration.
    P1a = 10,
    /// Paxos. Acceptor to coordinator: promised; the payload is the value of its vote. Refused: the
    /// payload is the acceptor's configuration, if that is another one.
    P1b = 11,
    /// Paxos. Coordinator to acceptors: vote for this value.
    P2a = 12,
    /// Paxos. Acceptor to learners, and to whoever asked to be told: its vote.
    P2b = 13,
    /// Paxos. Coordinator's host to that of an acceptor that lost its memory: it is one again.
    Admit = 14,
    /// Paxos. Learner to the hosts of coordinators and acceptors: how far it has what was decided.
    Checkpoint = 15,
}

impl Kind {
    /// All of them, ascending.
    pub const ALL: [Self; 15] = [
        Self::Request,
        Self::Append,
        Self::AppendOk,
        Self::Retransmit,
        Self::Heartbeat,
        Self::HeartbeatOk,
        Self::Answer,
        Self::Forward,
        Self::Submit,
        Self::P1a,
        Self::P1b,
        Self::P2a,
        Self::P2b,
        Self::Admit,
        Self::Checkpoint,
    ];

    /// The one with this number; `None` if there is none.
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Request),
            2 => Some(Self::Append),
            3 => Some(Self::AppendOk),
            4 => Some(Self::Retransmit),
            5 => Some(Self::Heartbeat),
            6 => Some(Self::HeartbeatOk),
            7 => Some(Self::Answer),
            8 => Some(Self::Forward),
            9 => Some(Self::Submit),
            10 => Some(Self::P1a),
            11 => Some(Self::P1b),
            12 => Some(Self::P2a),
            13 => Some(Self::P2b),
            14 => Some(Self::Admit),
            15 => Some(Self::Checkpoint),
            _ => None,
        }
    }

    /// Its name in the schema.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Append => "append",
            Self::AppendOk => "append_ok",
            Self::Retransmit => "retransmit",
            Self::Heartbeat => "heartbeat",
            Self::HeartbeatOk => "heartbeat_ok",
            Self::Answer => "answer",
            Self::Forward => "forward",
            Self::Submit => "submit",
            Self::P1a => "p1a",
            Self::P1b => "p1b",
            Self::P2a => "p2a",
            Self::P2b => "p2b",
            Self::Admit => "admit",
            Self::Checkpoint => "checkpoint",
        }
    }
}

/// What a plane does in its group.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[repr(u8)]
pub enum Role {
    /// The plane moves nothing; only then the host may write the registers.
    Off = 0,
    /// Assigns indexes, counts acknowledgements.
    Leader = 1,
    /// Stores and acknowledges.
    Follower = 2,
}

impl Role {
    /// All of them, ascending.
    pub const ALL: [Self; 3] = [
        Self::Off,
        Self::Leader,
        Self::Follower,
    ];

    /// The one with this number; `None` if there is none.
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Off),
            1 => Some(Self::Leader),
            2 => Some(Self::Follower),
            _ => None,
        }
    }

    /// Its name in the schema.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Leader => "leader",
            Self::Follower => "follower",
        }
    }
}

/// What a box does in a Paxos deployment.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[repr(u8)]
pub enum PaxosRole {
    /// The box forwards only; only then the host may write the registers.
    Off = 0,
    /// Gives each value its instance.
    Coordinator = 1,
    /// Promises rounds and votes.
    Acceptor = 2,
}

impl PaxosRole {
    /// All of them, ascending.
    pub const ALL: [Self; 3] = [
        Self::Off,
        Self::Coordinator,
        Self::Acceptor,
    ];

    /// The one with this number; `None` if there is none.
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Off),
            1 => Some(Self::Coordinator),
            2 => Some(Self::Acceptor),
            _ => None,
        }
    }

    /// Its name in the schema.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Coordinator => "coordinator",
            Self::Acceptor => "acceptor",
        }
    }
}

/// Why a packet was not taken.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[repr(u8)]
pub enum PacketReason {
    /// Neither.
    None = 0,
    /// Short, cut, or another magic.
    NotOurs = 1,
    /// A format version unknown here.
    Version = 2,
    /// Lengths or fields that no sender of ours makes.
    Malformed = 3,
    /// The authentication tag is wrong.
    Tag = 4,
    /// The payload's checksum is wrong.
    Checksum = 5,
    /// Another group.
    Group = 6,
    /// No fast term runs here.
    Off = 7,
    /// A term before ours.
    TermOld = 8,
    /// A term after ours.
    TermNew = 9,
    /// The sender has no slot in the grant, or not the one such a packet comes from.
    Stranger = 10,
    /// A kind that this role does not take.
    Unexpected = 11,
    /// An index that software moved.
    BeforeStart = 12,
    /// The entry before is not the one the sender means.
    History = 13,
    /// An index that was never assigned.
    BeyondLast = 14,
    /// Asked for again, but the ring holds it no more, or too much is missing (repair_entries_max).
    BehindRing = 15,
    /// The host has not taken enough yet.
    RingFull = 16,
    /// Too many entries wait for a commit. Paxos: the instance is beyond the window; learners have
    /// to checkpoint.
    WindowFull = 17,
    /// Had already; acknowledged again.
    Repeated = 18,
    /// Entries before it are missing; asked for.
    Gap = 19,
    /// Paxos: another configuration than ours.
    Configuration = 20,
    /// Paxos: a higher round was promised.
    RoundOld = 21,
    /// Paxos: the round was promised to another coordinator of the same number.
    RoundTaken = 22,
    /// Paxos: another value was voted for in this round.
    TwoValues = 23,
    /// Paxos: the instance is forgotten; all learners have it.
    Trimmed = 24,
    /// Paxos: this acceptor lost its memory, and is no member for this instance.
    NoMember = 25,
}

impl PacketReason {
    /// All of them, ascending.
    pub const ALL: [Self; 26] = [
        Self::None,
        Self::NotOurs,
        Self::Version,
        Self::Malformed,
        Self::Tag,
        Self::Checksum,
        Self::Group,
        Self::Off,
        Self::TermOld,
        Self::TermNew,
        Self::Stranger,
        Self::Unexpected,
        Self::BeforeStart,
        Self::History,
        Self::BeyondLast,
        Self::BehindRing,
        Self::RingFull,
        Self::WindowFull,
        Self::Repeated,
        Self::Gap,
        Self::Configuration,
        Self::RoundOld,
        Self::RoundTaken,
        Self::TwoValues,
        Self::Trimmed,
        Self::NoMember,
    ];

    /// The one with this number; `None` if there is none.
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::None),
            1 => Some(Self::NotOurs),
            2 => Some(Self::Version),
            3 => Some(Self::Malformed),
            4 => Some(Self::Tag),
            5 => Some(Self::Checksum),
            6 => Some(Self::Group),
            7 => Some(Self::Off),
            8 => Some(Self::TermOld),
            9 => Some(Self::TermNew),
            10 => Some(Self::Stranger),
            11 => Some(Self::Unexpected),
            12 => Some(Self::BeforeStart),
            13 => Some(Self::History),
            14 => Some(Self::BeyondLast),
            15 => Some(Self::BehindRing),
            16 => Some(Self::RingFull),
            17 => Some(Self::WindowFull),
            18 => Some(Self::Repeated),
            19 => Some(Self::Gap),
            20 => Some(Self::Configuration),
            21 => Some(Self::RoundOld),
            22 => Some(Self::RoundTaken),
            23 => Some(Self::TwoValues),
            24 => Some(Self::Trimmed),
            25 => Some(Self::NoMember),
            _ => None,
        }
    }

    /// Its name in the schema.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::NotOurs => "not_ours",
            Self::Version => "version",
            Self::Malformed => "malformed",
            Self::Tag => "tag",
            Self::Checksum => "checksum",
            Self::Group => "group",
            Self::Off => "off",
            Self::TermOld => "term_old",
            Self::TermNew => "term_new",
            Self::Stranger => "stranger",
            Self::Unexpected => "unexpected",
            Self::BeforeStart => "before_start",
            Self::History => "history",
            Self::BeyondLast => "beyond_last",
            Self::BehindRing => "behind_ring",
            Self::RingFull => "ring_full",
            Self::WindowFull => "window_full",
            Self::Repeated => "repeated",
            Self::Gap => "gap",
            Self::Configuration => "configuration",
            Self::RoundOld => "round_old",
            Self::RoundTaken => "round_taken",
            Self::TwoValues => "two_values",
            Self::Trimmed => "trimmed",
            Self::NoMember => "no_member",
        }
    }
}

/// One header, in the byte order of the machine.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[repr(C)]
pub struct Header {
    /// Always 0x5157; anything else is not ours.
    pub magic: u16,
    /// Format version; a packet with an unknown one is dropped and counted, never guessed at.
    pub version: u8,
    /// What the packet says, see [kinds].
    pub kind: u8,
    /// Slot of the sending replica in the grant, 0 to 6; 255 from a client. P1A, P2A, ADMIT: whose
    /// round it is. P1B, P2B: the acceptor. CHECKPOINT: the learner. Paxos' HEARTBEAT: the
    /// coordinator.
    pub sender: u8,
    /// See [flags].
    pub flags: u8,
    /// Bytes behind the header, 0 to payload_bytes_max.
    pub payload_bytes: u16,
    /// Which replicated log.
    pub group: u32,
    /// CRC32C of the payload, set by whoever made it and carried untouched; 0 without payload.
    pub payload_crc32c: u32,
    /// The fast term; 0 in a REQUEST. Paxos: the round; 0 in a SUBMIT. P1B, P2B that is refused:
    /// the round promised to somebody else.
    pub term: u64,
    /// APPEND: of this entry. APPEND_OK, HEARTBEAT_OK: highest one promised. RETRANSMIT: first one
    /// missing. HEARTBEAT: the leader's last. ANSWER: of the command; 0 if unknown. Paxos: the
    /// instance; P1A, P1B: 0 is all of them. CHECKPOINT: everything up to this instance is kept.
    /// Paxos' HEARTBEAT: the last instance given to a value.
    pub index: u64,
    /// APPEND: term of the entry before. ANSWER that is refused: the number of the reason
    /// (README.md). P1B, P2B: the round of the acceptor's vote for this instance; of all: the
    /// acceptor is no member up to this instance; refused: the round that is. ADMIT: the acceptor
    /// is no member up to this instance. Zero otherwise.
    pub previous_term: u64,
    /// Highest index the sender knows to be committed. Paxos: the configuration; 0 in a SUBMIT. P1B
    /// that is not refused: the configuration, XOR the number that was drawn for the round asked
    /// for.
    pub commit_index: u64,
    /// Client session of the command; 0: none, then it may be applied twice if sent twice. Paxos:
    /// of the value; 0: a no-op. P1A: a number that its coordinator drew for this round. P1B of
    /// all, ADMIT: instances up to this one are forgotten.
    pub session: u64,
    /// Number of the command in its session. Between replicas, except in APPEND: the heartbeat
    /// round. Paxos: of the value in its session. P1B of all: the highest instance voted for. P1B,
    /// P2B that is refused: instances up to this one are forgotten.
    pub sequence: u64,
    /// SipHash-2-4 of the 64 bytes before it and of the payload's digest (README.md); 0 where
    /// nothing is authenticated.
    pub tag: u64,
}
const _: () = {
    assert!(size_of::<Header>() == 72);
    assert!(std::mem::offset_of!(Header, magic) == 0);
    assert!(std::mem::offset_of!(Header, version) == 2);
    assert!(std::mem::offset_of!(Header, kind) == 3);
    assert!(std::mem::offset_of!(Header, sender) == 4);
    assert!(std::mem::offset_of!(Header, flags) == 5);
    assert!(std::mem::offset_of!(Header, payload_bytes) == 6);
    assert!(std::mem::offset_of!(Header, group) == 8);
    assert!(std::mem::offset_of!(Header, payload_crc32c) == 12);
    assert!(std::mem::offset_of!(Header, term) == 16);
    assert!(std::mem::offset_of!(Header, index) == 24);
    assert!(std::mem::offset_of!(Header, previous_term) == 32);
    assert!(std::mem::offset_of!(Header, commit_index) == 40);
    assert!(std::mem::offset_of!(Header, session) == 48);
    assert!(std::mem::offset_of!(Header, sequence) == 56);
    assert!(std::mem::offset_of!(Header, tag) == 64);
};

/// What a plane and its host share about one group.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[repr(C)]
pub struct Registers {
    /// The fast term.
    pub term: u64,
    /// The last entry that software moved: the plane's first is the one after.
    pub start_index: u64,
    /// The last entry stored.
    pub last_index: u64,
    /// Its term.
    pub last_term: u64,
    /// Highest index known to be committed; at most last_index.
    pub commit_index: u64,
    /// Highest index that may be acknowledged.
    pub persisted_index: u64,
    /// The host has taken everything up to here: those slots may be reused.
    pub released_index: u64,
    /// Follower: highest heartbeat round heard. Leader: last one sent.
    pub round: u64,
    /// Leader: highest index each replica has acknowledged.
    pub match_index: [u64; 7],
    /// Leader: highest heartbeat round each replica has answered.
    pub heard_round: [u64; 7],
    /// Which replicated log.
    pub group: u32,
    /// Entries the ring holds; a power of two.
    pub ring_slots: u32,
    /// Most entries stored and not committed; at most ring_slots.
    pub window: u32,
    /// See [roles].
    pub role: u8,
    /// Own slot in the grant.
    pub me: u8,
    /// The leader's slot.
    pub leader: u8,
    /// Slots in the grant, 1 to 7.
    pub replicas: u8,
    /// Replicas that must hold an entry to commit it, the leader included.
    pub quorum: u8,
    /// 1: acknowledge only what the host says is persisted (durability `sync`).
    pub held: u8,
    /// Zero.
    pub reserved: [u16; 3],
}
const _: () = {
    assert!(size_of::<Registers>() == 200);
    assert!(std::mem::offset_of!(Registers, term) == 0);
    assert!(std::mem::offset_of!(Registers, start_index) == 8);
    assert!(std::mem::offset_of!(Registers, last_index) == 16);
    assert!(std::mem::offset_of!(Registers, last_term) == 24);
    assert!(std::mem::offset_of!(Registers, commit_index) == 32);
    assert!(std::mem::offset_of!(Registers, persisted_index) == 40);
    assert!(std::mem::offset_of!(Registers, released_index) == 48);
    assert!(std::mem::offset_of!(Registers, round) == 56);
    assert!(std::mem::offset_of!(Registers, match_index) == 64);
    assert!(std::mem::offset_of!(Registers, heard_round) == 120);
    assert!(std::mem::offset_of!(Registers, group) == 176);
    assert!(std::mem::offset_of!(Registers, ring_slots) == 180);
    assert!(std::mem::offset_of!(Registers, window) == 184);
    assert!(std::mem::offset_of!(Registers, role) == 188);
    assert!(std::mem::offset_of!(Registers, me) == 189);
    assert!(std::mem::offset_of!(Registers, leader) == 190);
    assert!(std::mem::offset_of!(Registers, replicas) == 191);
    assert!(std::mem::offset_of!(Registers, quorum) == 192);
    assert!(std::mem::offset_of!(Registers, held) == 193);
    assert!(std::mem::offset_of!(Registers, reserved) == 194);
};

/// What a box and its host share about one Paxos role.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[repr(C)]
pub struct PaxosRegisters {
    /// Which life of each acceptor counts, as one number that stands for it: packets of another one
    /// are not taken.
    pub configuration: u64,
    /// Coordinator: its round. Acceptor: the highest one promised for all instances.
    pub round: u64,
    /// Acceptor: the number that the coordinator of that round drew; 0: unknown.
    pub promised_to: u64,
    /// Acceptor: the highest round promised for a single instance.
    pub single_round: u64,
    /// Coordinator: of the next value.
    pub next_instance: u64,
    /// Instances up to this one are forgotten.
    pub trimmed: u64,
    /// Acceptor that has lost its memory: it is no member up to this instance, except where it has
    /// voted since.
    pub bound: u64,
    /// Acceptor: the highest instance voted for.
    pub highest: u64,
    /// Which deployment.
    pub group: u32,
    /// Instances that can be open behind `trimmed`; a power of two.
    pub window: u32,
    /// See [paxos_roles].
    pub role: u8,
    /// Coordinator: whose rounds its are. Acceptor: its number.
    pub me: u8,
    /// 1: say only what the host says is durable.
    pub held: u8,
    /// Zero.
    pub reserved: [u8; 5],
}
const _: () = {
    assert!(size_of::<PaxosRegisters>() == 80);
    assert!(std::mem::offset_of!(PaxosRegisters, configuration) == 0);
    assert!(std::mem::offset_of!(PaxosRegisters, round) == 8);
    assert!(std::mem::offset_of!(PaxosRegisters, promised_to) == 16);
    assert!(std::mem::offset_of!(PaxosRegisters, single_round) == 24);
    assert!(std::mem::offset_of!(PaxosRegisters, next_instance) == 32);
    assert!(std::mem::offset_of!(PaxosRegisters, trimmed) == 40);
    assert!(std::mem::offset_of!(PaxosRegisters, bound) == 48);
    assert!(std::mem::offset_of!(PaxosRegisters, highest) == 56);
    assert!(std::mem::offset_of!(PaxosRegisters, group) == 64);
    assert!(std::mem::offset_of!(PaxosRegisters, window) == 68);
    assert!(std::mem::offset_of!(PaxosRegisters, role) == 72);
    assert!(std::mem::offset_of!(PaxosRegisters, me) == 73);
    assert!(std::mem::offset_of!(PaxosRegisters, held) == 74);
    assert!(std::mem::offset_of!(PaxosRegisters, reserved) == 75);
};

/// What an acceptor knows of one instance.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[repr(C)]
pub struct PaxosSlot {
    /// Whose it is; 0, or another: nothing is known of the instance.
    pub instance: u64,
    /// The highest one promised for this instance, or voted in.
    pub round: u64,
    /// The number that the coordinator of that round drew; 0: unknown.
    pub promised_to: u64,
    /// The round of the vote; 0: none.
    pub vote_round: u64,
    /// Of the value voted for.
    pub session: u64,
    /// Of the value voted for.
    pub sequence: u64,
    /// Of the value voted for.
    pub payload_crc32c: u32,
    /// Of the value voted for.
    pub payload_bytes: u16,
    /// Of the value voted for.
    pub flags: u8,
    /// Zero.
    pub reserved: u8,
}
const _: () = {
    assert!(size_of::<PaxosSlot>() == 56);
    assert!(std::mem::offset_of!(PaxosSlot, instance) == 0);
    assert!(std::mem::offset_of!(PaxosSlot, round) == 8);
    assert!(std::mem::offset_of!(PaxosSlot, promised_to) == 16);
    assert!(std::mem::offset_of!(PaxosSlot, vote_round) == 24);
    assert!(std::mem::offset_of!(PaxosSlot, session) == 32);
    assert!(std::mem::offset_of!(PaxosSlot, sequence) == 40);
    assert!(std::mem::offset_of!(PaxosSlot, payload_crc32c) == 48);
    assert!(std::mem::offset_of!(PaxosSlot, payload_bytes) == 52);
    assert!(std::mem::offset_of!(PaxosSlot, flags) == 54);
    assert!(std::mem::offset_of!(PaxosSlot, reserved) == 55);
};

impl Header {
    /// Reads all fields; checks none.
    #[must_use]
    pub const fn decode(bytes: &[u8; HEADER_BYTES]) -> Self {
        Self {
            magic: u16::from_be_bytes([bytes[0], bytes[1]]),
            version: u8::from_be_bytes([bytes[2]]),
            kind: u8::from_be_bytes([bytes[3]]),
            sender: u8::from_be_bytes([bytes[4]]),
            flags: u8::from_be_bytes([bytes[5]]),
            payload_bytes: u16::from_be_bytes([bytes[6], bytes[7]]),
            group: u32::from_be_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]),
            payload_crc32c: u32::from_be_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]),
            term: u64::from_be_bytes([bytes[16], bytes[17], bytes[18], bytes[19], bytes[20], bytes[21], bytes[22], bytes[23]]),
            index: u64::from_be_bytes([bytes[24], bytes[25], bytes[26], bytes[27], bytes[28], bytes[29], bytes[30], bytes[31]]),
            previous_term: u64::from_be_bytes([bytes[32], bytes[33], bytes[34], bytes[35], bytes[36], bytes[37], bytes[38], bytes[39]]),
            commit_index: u64::from_be_bytes([bytes[40], bytes[41], bytes[42], bytes[43], bytes[44], bytes[45], bytes[46], bytes[47]]),
            session: u64::from_be_bytes([bytes[48], bytes[49], bytes[50], bytes[51], bytes[52], bytes[53], bytes[54], bytes[55]]),
            sequence: u64::from_be_bytes([bytes[56], bytes[57], bytes[58], bytes[59], bytes[60], bytes[61], bytes[62], bytes[63]]),
            tag: u64::from_be_bytes([bytes[64], bytes[65], bytes[66], bytes[67], bytes[68], bytes[69], bytes[70], bytes[71]]),
        }
    }

    /// Writes all fields, big-endian.
    #[must_use]
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..2].copy_from_slice(&self.magic.to_be_bytes());
        bytes[2..3].copy_from_slice(&self.version.to_be_bytes());
        bytes[3..4].copy_from_slice(&self.kind.to_be_bytes());
        bytes[4..5].copy_from_slice(&self.sender.to_be_bytes());
        bytes[5..6].copy_from_slice(&self.flags.to_be_bytes());
        bytes[6..8].copy_from_slice(&self.payload_bytes.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.group.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.payload_crc32c.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.term.to_be_bytes());
        bytes[24..32].copy_from_slice(&self.index.to_be_bytes());
        bytes[32..40].copy_from_slice(&self.previous_term.to_be_bytes());
        bytes[40..48].copy_from_slice(&self.commit_index.to_be_bytes());
        bytes[48..56].copy_from_slice(&self.session.to_be_bytes());
        bytes[56..64].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[64..72].copy_from_slice(&self.tag.to_be_bytes());
        bytes
    }
}

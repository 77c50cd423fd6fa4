//! What can go wrong, as data: a plan is a list of these, and a shorter list is a smaller plan.
use crate::queue::{MILLISECOND, Nanos};
use std::fmt;

/// The classes of faults; every run must have hit each of them.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[allow(missing_docs)]
pub enum Class {
    F1Loss,
    F2Repeat,
    F3Late,
    F4Partition,
    F4PlanesApart,
    F5Clog,
    F6Corrupt,
    F7Cut,
    F8Crash,
    F9PowerCutOfAll,
    F10Pause,
    F11Starved,
    F12TornWrite,
    F13SyncFails,
    F14DiskFull,
    F15Damage,
    F15Unreadable,
    F16Misdirected,
    F17Stall,
    F18Wipe,
    F18RolledBack,
    F19Clock,
    F19ClockStops,
    F19ClockSlews,
    F20Members,
    F21Returns,
    F22SnapshotAcrossChange,
    F23Version,
    F24PlaneAlone,
    F25PlaneBreaks,
    F25PlaneRefuses,
    F26OldTerm,
    F28Leaves,
    F29Returns,
    F30RingFull,
    F30Overload,
    F31Occupied,
}

/// All classes.
pub const CLASSES: [Class; 37] = [
    Class::F1Loss,
    Class::F2Repeat,
    Class::F3Late,
    Class::F4Partition,
    Class::F4PlanesApart,
    Class::F5Clog,
    Class::F6Corrupt,
    Class::F7Cut,
    Class::F8Crash,
    Class::F9PowerCutOfAll,
    Class::F10Pause,
    Class::F11Starved,
    Class::F12TornWrite,
    Class::F13SyncFails,
    Class::F14DiskFull,
    Class::F15Damage,
    Class::F15Unreadable,
    Class::F16Misdirected,
    Class::F17Stall,
    Class::F18Wipe,
    Class::F18RolledBack,
    Class::F19Clock,
    Class::F19ClockStops,
    Class::F19ClockSlews,
    Class::F20Members,
    Class::F21Returns,
    Class::F22SnapshotAcrossChange,
    Class::F23Version,
    Class::F24PlaneAlone,
    Class::F25PlaneBreaks,
    Class::F25PlaneRefuses,
    Class::F26OldTerm,
    Class::F28Leaves,
    Class::F29Returns,
    Class::F30RingFull,
    Class::F30Overload,
    Class::F31Occupied,
];

/// A number for each class.
#[derive(Clone, Copy, Debug)]
pub struct ByClass(pub [u64; CLASSES.len()]);

impl Default for ByClass {
    fn default() -> Self {
        Self([0; CLASSES.len()])
    }
}

impl Class {
    /// Its number and a few words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::F1Loss => "F1 loss",
            Self::F2Repeat => "F2 repeats, old ones too",
            Self::F3Late => "F3 late and out of order",
            Self::F4Partition => "F4 partitions",
            Self::F4PlanesApart => "F4 planes cut off, processes not",
            Self::F5Clog => "F5 clogs, swizzled too",
            Self::F6Corrupt => "F6 corrupt bytes",
            Self::F7Cut => "F7 cut or oversized frames",
            Self::F8Crash => "F8 crash between outputs",
            Self::F9PowerCutOfAll => "F9 power cut of all",
            Self::F10Pause => "F10 pause",
            Self::F11Starved => "F11 no memory, no file handles",
            Self::F12TornWrite => "F12 torn or lost writes",
            Self::F13SyncFails => "F13 a sync fails once",
            Self::F14DiskFull => "F14 disk full",
            Self::F15Damage => "F15 flipped, zeroed, cut files",
            Self::F15Unreadable => "F15 a snapshot cannot be read",
            Self::F16Misdirected => "F16 misdirected write",
            Self::F17Stall => "F17 disk stalls",
            Self::F18Wipe => "F18 disk wiped",
            Self::F18RolledBack => "F18 disk put back to an old copy",
            Self::F19Clock => "F19 clocks jump and drift",
            Self::F19ClockStops => "F19 a clock stands still",
            Self::F19ClockSlews => "F19 a clock changes its speed",
            Self::F20Members => "F20 members change",
            Self::F21Returns => "F21 a removed one returns",
            Self::F22SnapshotAcrossChange => "F22 snapshot across a change",
            Self::F23Version => "F23 frames of another version",
            Self::F24PlaneAlone => "F24 plane without its process",
            Self::F25PlaneBreaks => "F25 a plane breaks, or is reset",
            Self::F25PlaneRefuses => "F25 a plane will not engage",
            Self::F26OldTerm => "F26 datagrams of old terms",
            Self::F28Leaves => "F28 a plane left at any index",
            Self::F29Returns => "F29 leadership goes away and comes back",
            Self::F30RingFull => "F30 ring or window full",
            Self::F30Overload => "F30 overload",
            Self::F31Occupied => "F31 the application takes nothing for a while",
        }
    }
}

/// Something that goes wrong at some time, for some time.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// When.
    pub at: Nanos,
    /// For how long, where that means something.
    pub lasts: Nanos,
    /// What.
    pub what: Kind,
    /// Decides what is left open, such as which replica: so it does not depend on other faults.
    pub luck: u64,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[allow(missing_docs)]
pub enum Kind {
    Network(NetworkFault),
    Bytes(ByteFault),
    Partition(Shape),
    /// What one replica is sent arrives all at once when it is over.
    Clog,
    /// Some are clogged one after the other, and freed in another order.
    SwizzleClog,
    /// A plane will not engage.
    PlaneRefuses,
    /// All planes get the next keys, one after the other.
    RotateKeys,
    Strike(Strike, Target),
    PowerCutOfAll,
    Disk(DiskFault),
    /// The leader's newest snapshot cannot be read.
    Unreadable,
    /// One operation on a disk finds no memory, after so many; or the kernel kills the process for what
    /// it uses, in the middle of work.
    NoMemory {
        after: u8,
    },
    Clock(ClockFault),
    Members(Change),
    /// Leadership goes to another one, and comes back. Meanwhile what one follower has sent to the leader
    /// before is on its way: so many requests of one client, and then as many more to whoever leads then.
    Returns {
        requests: u8,
    },
    /// A snapshot is taken now.
    Snapshot,
    Overload {
        commands: u16,
    },
    /// When this happens for the so-many-th time, that follows.
    Trigger {
        on: Moment,
        skip: u8,
        then: Strike,
    },
}

/// What happens to messages and datagrams for as long as the fault lasts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[allow(missing_docs)]
pub enum NetworkFault {
    /// So many messages of a thousand are lost.
    Loss { permille: u16 },
    /// So many are delivered twice, the second time up to `late` later.
    Repeat { permille: u16, late: Nanos },
    /// So many take up to so much longer.
    Late { permille: u16, late: Nanos },
    /// So many datagrams of a thousand lose a bit.
    SpoilDatagrams { permille: u16 },
    /// Beside so many an old one comes again.
    ReplayDatagrams { permille: u16 },
    /// The planes of these two machines do not hear each other. Their processes do.
    PlanesApart { one: u8, other: u8 },
}

/// What happens to the bytes of the next message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ByteFault {
    /// It loses a bit on the way.
    CorruptFrame,
    /// The next one with records loses a bit of them before its frame is made.
    CorruptRecords,
    /// Its frame ends early, or says it is longer than any.
    CutFrame,
    /// It comes from another version.
    OtherVersion,
}

/// What happens to one machine's disk.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[allow(missing_docs)]
pub enum DiskFault {
    /// A sync fails, after so many have succeeded.
    SyncFails { after: u8 },
    /// It is full.
    Full,
    /// Bits flip, sectors vanish, a file is cut short, behind the back of a replica that is down.
    Damage,
    /// A write goes to the wrong position, after so many.
    Misdirected { after: u8 },
    /// It stands still.
    Stall,
    /// All that is on it is lost.
    Wipe,
    /// No file can be opened and no connection made, after so many more files.
    NoHandles { after: u8 },
    /// A copy is made of it, and put in its place some time later.
    RollBack,
}

/// What happens to one machine's clocks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[allow(missing_docs)]
pub enum ClockFault {
    /// Its clock stands still.
    Stops,
    /// A time daemon has it go at another speed from now on: so many thousandths of the largest that is
    /// allowed, faster or slower.
    Slews { permille: i16 },
    /// The time of day jumps by so many seconds.
    Jumps { seconds: i32 },
}

/// How the network falls apart.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[allow(missing_docs)]
pub enum Shape {
    /// Two halves that do not hear each other.
    Halves,
    /// One direction between two replicas.
    OneWay,
    /// One replica hears nobody, and is heard by all.
    Deaf,
    /// Two halves and one replica that hears both.
    Bridge,
    /// Each hears its neighbours in a ring only.
    Ring,
    LeaderAlone,
}

/// What is done to one replica.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[allow(missing_docs)]
pub enum Strike {
    /// The process is killed after so many more outputs; what it wrote is there.
    Kill { after: u8 },
    /// The power is cut after so many more outputs; what was not synced may be gone.
    PowerCut { after: u8 },
    /// Killed in the middle of the next write to its disk, after so many operations.
    KillInWrite { after: u8 },
    /// The same, by a power cut.
    PowerCutInWrite { after: u8 },
    /// A sync of its disk fails, after so many more.
    FailSync { after: u8 },
    /// It stands still.
    Pause,
    /// It stands still, but for its plane.
    PauseControl,
    /// What carries its commands out is busy, and takes no more for a while.
    Occupy,
    /// Its plane breaks.
    BreakPlane,
    /// Its plane forgets all it has, as one that is loaded anew: its process notices and stops.
    ResetPlane,
    /// An operator asks something of it.
    Administer(Change),
    /// Nobody hears it, and it hears nobody.
    Isolate,
    /// The same, and the others notice at once that it is gone; but for one, they are killed too, and soon
    /// back. So another one may be elected while this one still believes in its lease.
    Sever,
}

/// Whom a strike meets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[allow(missing_docs)]
pub enum Target {
    Leader,
    Anyone,
}

/// A moment in the protocol at which a fault hurts most. The replica struck is the one that gets there.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[allow(missing_docs)]
pub enum Moment {
    VoteGiven,
    Stands,
    Elected,
    Appended,
    /// The disk is done, and the replica has not heard of it yet.
    Persisted,
    Acknowledged,
    Committed,
    Answered,
    LogCut,
    MembersChanged,
    SnapshotTaken,
    SnapshotPiece,
    SnapshotInstall,
    SnapshotInstalled,
    TransferAsked,
    OfferMade,
    VoterEngaged,
    LeaderEngaged,
    /// The plane has acknowledged, and its process knows nothing of it yet.
    PlaneAcknowledged,
    /// The process has taken entries from its plane; they are not on disk yet.
    PlaneTaken,
    /// The plane is about to be stopped.
    Leaving,
    /// It has stopped, and nobody was told yet.
    Left,
}

/// All moments.
pub const MOMENTS: [Moment; 22] = [
    Moment::VoteGiven,
    Moment::Stands,
    Moment::Elected,
    Moment::Appended,
    Moment::Persisted,
    Moment::Acknowledged,
    Moment::Committed,
    Moment::Answered,
    Moment::LogCut,
    Moment::MembersChanged,
    Moment::SnapshotTaken,
    Moment::SnapshotPiece,
    Moment::SnapshotInstall,
    Moment::SnapshotInstalled,
    Moment::TransferAsked,
    Moment::OfferMade,
    Moment::VoterEngaged,
    Moment::LeaderEngaged,
    Moment::PlaneAcknowledged,
    Moment::PlaneTaken,
    Moment::Leaving,
    Moment::Left,
];

impl Moment {
    /// What is counted when something struck then.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::VoteGiven => "struck: vote given",
            Self::Stands => "struck: stands for election",
            Self::Elected => "struck: elected",
            Self::Appended => "struck: appended",
            Self::Persisted => "struck: persisted, not told",
            Self::Acknowledged => "struck: acknowledged",
            Self::Committed => "struck: committed",
            Self::Answered => "struck: client answered",
            Self::LogCut => "struck: log cut",
            Self::MembersChanged => "struck: members changed",
            Self::SnapshotTaken => "struck: snapshot taken",
            Self::SnapshotPiece => "struck: snapshot piece",
            Self::SnapshotInstall => "struck: snapshot to install",
            Self::SnapshotInstalled => "struck: snapshot installed",
            Self::TransferAsked => "struck: transfer asked",
            Self::OfferMade => "struck: offer made",
            Self::VoterEngaged => "struck: voter engaged",
            Self::LeaderEngaged => "struck: leader engaged",
            Self::PlaneAcknowledged => "struck: plane acknowledged",
            Self::PlaneTaken => "struck: entries taken from plane",
            Self::Leaving => "struck: plane to be stopped",
            Self::Left => "struck: plane stopped",
        }
    }
}

/// What an operator asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[allow(missing_docs)]
pub enum Change {
    AddVoter,
    AddLearner,
    Promote,
    Remove,
    RemoveLeader,
    Return,
    QuorumAll,
    QuorumMajority,
    Transfer,
    /// A member was found elsewhere than the list says.
    Move,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (at, lasts) = (self.at / MILLISECOND, self.lasts / MILLISECOND);
        write!(f, "{at:>7} ms, for {lasts:>5} ms: {:?}", self.what)
    }
}

//! What three replicas, their disks, their planes and the network between them are at one moment.
use crate::log::Log;
use std::collections::BTreeSet;

/// Replicas of the group. Two are a majority.
pub const REPLICAS: usize = 3;

/// The term of the software leader that the model begins with.
pub const FIRST_TERM: u8 = 1;

/// One more than the highest term that can be modelled.
pub const TERMS: usize = 6;

/// What a replica is in its term.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Role {
    /// It follows, or knows no leader.
    Follower,
    /// It stands for election.
    Candidate {
        /// For a fast term.
        engage: bool,
        /// Its requests have left.
        asked: bool,
        /// Whose votes it has, by bit.
        granted: u8,
        /// Who of them has engaged its plane, by bit.
        engaged: u8,
    },
    /// It leads: in software, or through its plane if that is engaged.
    Leader {
        /// What it knows to be committed.
        commit: u8,
    },
}

/// What a disk holds, and what is read from it after a crash.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Disk {
    /// The term.
    pub term: u8,
    /// For whom the vote of this term is.
    pub vote: Option<u8>,
    /// The log.
    pub log: Log,
}

/// An engaged plane. A stopped one is no plane at all: its ring is in the log.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Plane {
    /// The fast term.
    pub term: u8,
    /// It is the leader's.
    pub leads: bool,
    /// The log as the plane sees it: what stood there when it engaged, and behind it the ring.
    pub log: Log,
    /// The highest index it may acknowledge.
    pub promised: u8,
    /// Leader: what it knows to be committed.
    pub commit: u8,
    /// It engaged by an offer, while the fast term was running.
    pub joined: bool,
}

/// A vote that leaves when it is on disk.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct OwedVote {
    /// For whom.
    pub to: u8,
    /// The plane engages before the vote leaves.
    pub engage: bool,
}

/// One replica.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Replica {
    /// Its term.
    pub term: u8,
    /// For whom its vote of this term is.
    pub vote: Option<u8>,
    /// What it is.
    pub role: Role,
    /// Control's log: the truth.
    pub log: Log,
    /// Follower: the log is the leader's up to here.
    pub verified: u8,
    /// A vote that has not left yet.
    pub owed_vote: Option<OwedVote>,
    /// Its disk.
    pub disk: Disk,
    /// Its plane, while engaged.
    pub plane: Option<Plane>,
}

impl Replica {
    /// What control has given to the disk.
    #[must_use]
    pub fn written(&self) -> Disk {
        Disk {
            term: self.term,
            vote: self.vote,
            log: self.log,
        }
    }

    /// Its plane, if that is a leader's.
    #[must_use]
    pub fn leading_plane(&self) -> Option<Plane> {
        self.plane.filter(|plane| plane.leads)
    }
}

/// A message between the software of two replicas. Once sent it may arrive never, late and often.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Message {
    /// Asks everyone for a vote.
    VoteRequest {
        /// The candidate's term.
        term: u8,
        /// The candidate.
        from: u8,
        /// Its last index.
        last_index: u8,
        /// That entry's term.
        last_term: u8,
        /// For a fast term.
        engage: bool,
    },
    /// Gives a vote.
    Vote {
        /// The term.
        term: u8,
        /// The voter.
        from: u8,
        /// The candidate.
        to: u8,
        /// The voter's plane is engaged.
        engaged: bool,
    },
    /// The leader's log, to everyone. Probing for where two logs agree is left out.
    Append {
        /// The leader's term.
        term: u8,
        /// The leader.
        from: u8,
        /// Its log.
        log: Log,
    },
}

/// What a leader's plane has sent to everyone in a fast term, each of which may arrive never, late and
/// often: a heartbeat, an offer to engage, and one packet for each entry.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct FastTerm {
    /// The leader.
    pub leader: u8,
    /// The last entry that software moved.
    pub start: u8,
    /// Its term.
    pub start_term: u8,
    /// The last entry that the plane has assigned.
    pub last: u8,
}

/// Everything under way.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Network {
    /// Software's messages.
    pub messages: BTreeSet<Message>,
    /// The leaders' plane packets, by term.
    pub fast: [Option<FastTerm>; TERMS],
    /// The highest acknowledgement that each replica's plane has sent in each term.
    pub plane_acks: [[u8; REPLICAS]; TERMS],
    /// The highest `AppendReply` of each replica's software in each term.
    pub software_acks: [[u8; REPLICAS]; TERMS],
    /// The highest commit index that the leader of each term can have told.
    pub commits: [u8; TERMS],
}

/// What no replica knows: it is there to be checked.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct History {
    /// Which terms have had a leader, by bit.
    pub led: u8,
    /// Which terms were fast, by bit.
    pub fast: u8,
    /// A term has had two leaders.
    pub two_leaders: bool,
    /// What was ever declared to be committed.
    pub committed: Log,
    /// The term of the leader that declared it first, by index less one.
    pub committed_in: [u8; crate::log::LOG_CAPACITY],
    /// Something else was committed, or applied, where something was committed before.
    pub diverged: bool,
    /// A plane has acknowledged in a term older than what its replica had promised.
    pub late_ack: bool,
    /// How often a replica has crashed.
    pub crashes: u8,
}

/// The whole world.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct State {
    /// The replicas.
    pub replicas: [Replica; REPLICAS],
    /// What is under way.
    pub network: Network,
    /// What is checked.
    pub history: History,
}

impl State {
    /// A software leader, replica 0, with everything committed and everybody equal. An older log would
    /// stand before index 1.
    #[must_use]
    pub fn first() -> Self {
        let follower = Replica {
            term: FIRST_TERM,
            vote: Some(0),
            role: Role::Follower,
            log: Log::default(),
            verified: 0,
            owed_vote: None,
            disk: Disk {
                term: FIRST_TERM,
                vote: Some(0),
                log: Log::default(),
            },
            plane: None,
        };
        let mut replicas = [follower; REPLICAS];
        replicas[0].role = Role::Leader { commit: 0 };
        let history = History {
            led: 1 << FIRST_TERM,
            ..History::default()
        };
        Self {
            replicas,
            network: Network::default(),
            history,
        }
    }

    /// The other two.
    pub fn others(me: u8) -> impl Iterator<Item = u8> {
        (0..REPLICAS).filter_map(move |id| u8::try_from(id).ok().filter(|id| *id != me))
    }
}

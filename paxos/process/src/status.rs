//! How a switch does, as its loop says now and then, and what it counts beside its box. It is put into words
//! elsewhere, by whoever asks.
use quorumwire_datagrams::SocketCounters;
use quorumwire_fastpath::{PaxosCounters, Surroundings};
use quorumwire_interfaces::counters;
use quorumwire_paxos::CoordinatorStanding;
use quorumwire_wire::packet::PaxosRegisters;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

counters! {
    /// What the software beside a switch's box has done since the process started.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct SwitchCounters {
        /// Times that a coordinator asked for a round (phase 1)
        pub rounds_asked: "rounds_asked",
        /// Times that a coordinator took over: a majority had promised it the round
        pub take_overs: "take_overs",
        /// Times that a coordinator gave way to another one
        pub stood_by: "stood_by",
        /// Times that an acceptor was let in with a new life
        pub let_in: "let_in",
        /// Times that somebody knew of a later life of this acceptor: another one runs with its number, or
        /// its folder is an old copy
        pub later_lives: "later_lives",
        /// Times that a coordinator heard of a new life of an acceptor, and asked that one where the
        /// deployment's file has it
        pub announcements: "announcements",
        /// Times that instances were forgotten because all learners have them, or they were declared lost
        pub trims: "trims",
        /// Times that votes were made durable
        pub syncs: "syncs",
        /// Time spent making votes durable
        pub sync_us: "sync_microseconds",
        /// Times that an acceptor wrote its folder anew
        pub rewrites: "rewrites",
        /// Time that an acceptor spent writing its folder anew
        pub rewrite_us: "rewrite_microseconds",
    }
    with {
        /// Longest time that making votes durable took once.
        pub sync_longest_us: u64,
    }
}

/// How often a switch says how it does.
pub const STATUS_PAUSE: Duration = Duration::from_millis(100);

/// What a switch does at this moment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Standing {
    /// A coordinator.
    Coordinator(CoordinatorStanding),
    /// An acceptor that votes.
    Votes,
    /// An acceptor that waits to be let in.
    Newcomer,
}

/// What changes slowly, or takes long to find out.
#[derive(Clone, Debug, Default)]
pub struct SlowStatus {
    /// What its plane has counted by itself, by name.
    pub of_plane: BTreeMap<&'static str, u64>,
    /// How the plane's surroundings are.
    pub surroundings: Surroundings,
}

/// How a switch does.
#[derive(Clone, Debug, Default)]
pub struct SwitchStatus {
    /// When it was; none: it has not begun yet.
    pub at: Option<Instant>,
    /// A coordinator gives values their instances; an acceptor votes: it need not be let in.
    pub is_on: bool,
    /// What it does.
    pub standing: Option<Standing>,
    /// A coordinator: the round that it knows of. An acceptor: the one that it has promised, or voted in.
    pub round: u64,
    /// An acceptor's life.
    pub life: Option<u64>,
    /// Its box's registers.
    pub registers: PaxosRegisters,
    /// What its box has counted, as of the last look, one a second.
    pub counters: PaxosCounters,
    /// What the software beside it has.
    pub of_software: SwitchCounters,
    /// What its socket has.
    pub of_socket: SocketCounters,
    /// As of the last look.
    pub slow: Arc<SlowStatus>,
    /// Which learner has checkpointed least, and how far.
    pub last_checkpoint: Option<(u8, u64)>,
    /// A coordinator: for so long no learner has had more, though more is proposed.
    pub undecided: Duration,
    /// A coordinator: an acceptor that announces itself from there, and does not answer where the
    /// deployment's file has it.
    pub unreached: Option<(u8, SocketAddr)>,
}

/// Where a switch says how it does, every [`STATUS_PAUSE`].
#[derive(Debug, Default)]
pub struct StatusCell(Mutex<SwitchStatus>);

impl StatusCell {
    /// As it was said last.
    #[must_use]
    pub fn get(&self) -> SwitchStatus {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.clone()
    }

    /// Says it, unless somebody reads at this moment: nobody is waited for.
    pub(crate) fn set(&self, status: SwitchStatus) {
        if let Ok(mut held) = self.0.try_lock() {
            *held = status;
        }
    }
}

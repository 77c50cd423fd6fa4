//! What a follower has passed on to leaders, and whom each answer is for.
use crate::mutants::mutant;
use crate::passed_on::AnswerKind;
use crate::requester::RequestId;
use quorumwire_control::{Now, Peer, RoleChange};
use quorumwire_interfaces::{Reason, ReplicaId, Term, counters};
use std::collections::BTreeMap;
use std::time::Duration;

/// A request that is not answered by then is answered as *outcome unknown*.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// A request sent to the leader.
#[derive(Clone, Copy, Debug)]
pub struct Forward<O> {
    /// Whose it is, here.
    pub origin: O,
    /// It changes nothing.
    pub is_read: bool,
    /// To whom it was sent.
    pub to: Peer,
    /// In which term.
    pub term: Term,
    /// When.
    pub at: Now,
}

/// Who leads, and since when that has been known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Succession {
    pub(crate) term: Term,
    pub(crate) since: Now,
}

impl Succession {
    /// Leadership changed hands, or may have.
    pub(crate) fn note(&mut self, change: &RoleChange, now: Now) {
        if change.leader.is_some() && change.term > self.term {
            self.term = change.term;
            self.since = now;
        }
    }
}

/// Who leads after somebody else.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Successor {
    pub(crate) id: ReplicaId,
    pub(crate) term: Term,
    /// For how long that has been known.
    pub(crate) known_for: Duration,
}

impl<O> Forward<O> {
    /// Whether its answer is waited for no longer: whoever was to give it leads no more, and says nothing at
    /// all, or has had its time to find out.
    pub(crate) fn is_left_behind(&self, by: Successor, is_quiet: bool, patience: Duration) -> bool {
        let is_replaced = !self.is_read && self.term < by.term && self.to.id != by.id;
        is_replaced && (is_quiet || by.known_for > patience)
    }
}

counters! {
    /// What a group has passed on.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct ForwardCounters {
        /// Requests handed to the leader
        pub sent: "forwarded_to_leader",
    }
}

/// All requests sent to leaders and not answered yet.
#[derive(Debug)]
pub struct Forwards<O> {
    pub(crate) waiting: BTreeMap<u64, Forward<O>>,
    /// See [`RequestId::process`].
    pub(crate) process: u64,
    /// The number of the next one.
    pub(crate) next: u64,
    /// Counted since the start.
    pub counters: ForwardCounters,
    /// The supposed leader has said that it is none: nothing more is sent to it until that changes.
    pub(crate) not_leader: Option<Peer>,
    pub(crate) leaderless_since: Option<Now>,
    pub(crate) succession: Succession,
}

impl<O> Forwards<O> {
    /// None, as of now.
    pub(crate) fn new(now: Now) -> Self {
        Self {
            waiting: BTreeMap::new(),
            process: 0,
            next: 0,
            counters: ForwardCounters::default(),
            not_leader: None,
            leaderless_since: Some(now),
            succession: Succession::default(),
        }
    }

    /// Before the first one: a number that no other process of this replica has, and the first request's.
    /// Where replicas may run an earlier version, that is drawn by chance, too: all that they name in an
    /// answer is the request's.
    pub const fn begin(&mut self, process: u64, first: u64) {
        self.process = process;
        self.next = first;
    }

    /// How many wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// How many wait for an answer of this replica that were sent to it before a term.
    #[must_use]
    pub fn sent_before(&self, to: Peer, term: Term) -> usize {
        let is_one = |it: &&Forward<O>| it.to == to && it.term < term;
        self.waiting.values().filter(is_one).count()
    }

    /// The request that this is the answer to, from whom it was asked of.
    pub(crate) fn take(&mut self, from: Peer, id: RequestId) -> Option<Forward<O>> {
        let forward = self.waiting.get(&id.number)?;
        let names_it = id.process == self.process && id.term == forward.term;
        let is_earlier_version = id.process == 0 && id.term == Term(0);
        let is_answer = names_it || is_earlier_version || mutant("answer-of-another-process");
        (forward.to == from && is_answer).then_some(())?;
        self.waiting.remove(&id.number)
    }

    pub(crate) fn numbers(&self, which: impl Fn(&Forward<O>) -> bool) -> Vec<u64> {
        let chosen = self.waiting.iter().filter(|(_, forward)| which(forward));
        chosen.map(|(number, _)| *number).collect()
    }
}

/// What became of a request that was passed on.
#[derive(Debug)]
pub enum ForwardResult<O> {
    /// It is answered: with what came with this, unless that says why there is no answer.
    Answered(Forward<O>, AnswerKind),
    /// A read is to be asked for anew, of whoever leads then. It was sent under this number.
    Again {
        /// It.
        forward: Forward<O>,
        /// See there.
        number: u64,
        /// Not only when others that stall are looked at.
        at_once: bool,
    },
}

/// A request that waited for too long, and why it has no answer.
pub type LateRequest<O> = (O, Reason);

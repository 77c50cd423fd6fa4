//! One instance, decided by asking (CAANS, section 3.1: `recover`): a new execution of the protocol in a
//! round that is nobody else's. What was decided comes back; else a no-op is decided. A coordinator that
//! takes over does the same, in its own round, with each instance that may have a vote.
use crate::deployment::{Acceptors, Deployment, INSTANCE_MAX, with_payload};
use crate::mutants::mutant;
use crate::orders::{Orders, To, send};
use quorumwire_wire::packet::{FLAG_FRAGMENT, FLAG_REFUSED, FLAG_TELL, Header, Kind};

/// What an acceptor's answer meant.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Heard {
    /// It is none to this question, or came already.
    Nothing,
    /// Promised; others are waited for.
    Promised,
    /// A majority has promised: [`Recovery::proposal`] is there from now on.
    Majority,
    /// A majority has voted for the proposal, or one more acceptor has.
    Decided,
    /// Refused: this higher round was promised to somebody else. Only a recovery in a round above gets on.
    Refused {
        /// The round that was promised.
        promised: u64,
    },
    /// Instances up to this one are forgotten, this one among them: all learners had it.
    Trimmed {
        /// The last that is.
        upto: u64,
    },
}

/// In which round is asked.
#[derive(Clone, Copy, Debug)]
pub struct Asking {
    /// In which configuration.
    pub configuration: u64,
    /// Which nobody else uses (see [`round_above`](crate::round_above)).
    pub round: u64,
    /// A random number, not 0, drawn for this round.
    pub drawn: u64,
}

impl Asking {
    /// What a promise says in answer to this question, and to no other one, such as one for the same round by
    /// whoever had the asker's number before.
    #[must_use]
    pub(crate) fn answered(&self) -> u64 {
        self.configuration ^ self.drawn
    }
}

/// What is proposed.
#[derive(Clone, Debug, Default)]
struct Value {
    head: Header,
    payload: Vec<u8>,
}

/// One try to find out what is decided in an instance.
#[derive(Debug)]
pub struct Recovery {
    deployment: Deployment,
    asking: Asking,
    instance: u64,
    promised: Acceptors,
    voted: Acceptors,
    /// Who has said that it will not vote: it has promised a higher round, for this instance.
    refusing: Acceptors,
    /// In which round the value was voted for; 0: nobody has said so, it is the no-op.
    voted_in: u64,
    value: Value,
}

impl Recovery {
    /// Asks in this round. `no_op` is what is decided if nothing was, a value for nobody.
    ///
    /// # Panics
    /// Without instance or number.
    #[must_use]
    pub fn new(deployment: Deployment, asking: Asking, instance: u64, no_op: &[u8]) -> Self {
        assert!(
            instance > 0 && asking.drawn > 0,
            "there is no instance 0, and nobody draws 0"
        );
        Self {
            deployment,
            asking,
            instance,
            promised: Acceptors::default(),
            voted: Acceptors::default(),
            refusing: Acceptors::default(),
            voted_in: 0,
            value: Value {
                head: Header::default(),
                payload: no_op.to_vec(),
            },
        }
    }

    fn header(&self, kind: Kind) -> Header {
        Header {
            term: self.asking.round,
            index: self.instance,
            commit_index: self.asking.configuration,
            ..self
                .deployment
                .header(kind, crate::owner_of(self.asking.round))
        }
    }

    /// The P1A for all acceptors. It may be sent again.
    #[must_use]
    pub fn question(&self) -> Header {
        Header {
            session: self.asking.drawn,
            ..self.header(Kind::P1a)
        }
    }

    /// Asks all acceptors, or proposes to them what a majority's promises allow; again, if nothing was heard.
    pub(crate) fn send(&self, orders: &mut Orders) {
        match self.proposal() {
            Some((header, payload)) => send(orders, To::Acceptors, header, payload),
            None => send(orders, To::Acceptors, self.question(), &[]),
        }
    }

    /// Takes in an acceptor's P1B, its vote, or its refusal of the proposal.
    pub fn on_answer(&mut self, header: &Header, payload: &[u8]) -> Heard {
        let promises = header.kind == Kind::P1b as u8;
        let is_promise = promises && header.flags & FLAG_REFUSED == 0;
        let expected = if is_promise {
            self.asking.answered()
        } else {
            self.asking.configuration
        };
        let is_mine = header.group == self.deployment.group
            && header.commit_index == expected
            && header.index == self.instance
            && header.sender < self.deployment.acceptors
            && (promises || header.kind == Kind::P2b as u8);
        if !is_mine {
            return Heard::Nothing;
        }
        let round = self.asking.round;
        if header.flags & FLAG_REFUSED == 0 {
            return match header.term == round {
                true if promises => self.promised_by(header, payload),
                true => self.voted_by(header.sender),
                false => Heard::Nothing,
            };
        }
        // Who has voted in this round without having been asked for it takes a late question for somebody
        // else's.
        let is_late = self.is_majority() && header.term == round;
        if header.previous_term != round || is_late {
            return Heard::Nothing;
        }
        self.refusing.insert(header.sender);
        self.refused(header)
    }

    fn promised_by(&mut self, header: &Header, payload: &[u8]) -> Heard {
        if self.is_majority() || !self.promised.insert(header.sender) {
            return Heard::Nothing;
        }
        let is_higher = header.previous_term > self.voted_in;
        if is_higher && !mutant("proposes-regardless-of-votes") {
            self.voted_in = header.previous_term;
            self.value = Value {
                head: *header,
                payload: payload.to_vec(),
            };
        }
        if self.is_majority() {
            Heard::Majority
        } else {
            Heard::Promised
        }
    }

    fn voted_by(&mut self, acceptor: u8) -> Heard {
        if self.voted.insert(acceptor) && self.voted.are_majority(&self.deployment) {
            Heard::Decided
        } else {
            Heard::Nothing
        }
    }

    fn refused(&self, header: &Header) -> Heard {
        if header.sequence > INSTANCE_MAX {
            return Heard::Nothing;
        }
        if header.sequence >= self.instance {
            return Heard::Trimmed {
                upto: header.sequence,
            };
        }
        Heard::Refused {
            promised: header.term,
        }
    }

    /// Whether this acceptor might still vote for the proposal.
    pub(crate) fn may_vote(&self, acceptor: u8) -> bool {
        !self.voted.contains(acceptor) && !self.refusing.contains(acceptor)
    }

    /// Proposes to one acceptor, once a majority has promised. Nobody may be asked any more then: with other
    /// promises it could be another value, in the same round.
    pub(crate) fn propose_to(&self, acceptor: u8, orders: &mut Orders) {
        if let Some((header, payload)) = self.proposal() {
            send(orders, To::Acceptor(acceptor), header, payload);
        }
    }

    fn is_majority(&self) -> bool {
        self.promised.are_majority(&self.deployment)
            || mutant("one-promise-suffices") && self.promised != Acceptors::default()
    }

    /// The P2A for all acceptors with its payload, once a majority has promised. It may be sent again;
    /// learners hear what becomes of it.
    #[must_use]
    pub fn proposal(&self) -> Option<(Header, &[u8])> {
        let Value { head, payload } = &self.value;
        let header = Header {
            flags: head.flags & FLAG_FRAGMENT | FLAG_TELL,
            session: head.session,
            sequence: head.sequence,
            ..self.header(Kind::P2a)
        };
        let proposal = (with_payload(header, payload), &payload[..]);
        self.is_majority().then_some(proposal)
    }
}

#[cfg(test)]
#[path = "recovery_test.rs"]
mod tests;

//! `recover` (CAANS, section 3.1): a new execution of the protocol for one instance, in a round of its own,
//! with a no-op for its value. What was decided comes back; else the no-op is decided.
use quorumwire_wire::packet::{FLAG_FRAGMENT, FLAG_REFUSED, Header, Kind, MAGIC, VERSION};

/// What a recovery has to know of its deployment.
#[derive(Clone, Copy, Debug)]
pub struct RecoveryOptions {
    /// Which deployment.
    pub group: u32,
    /// Which configuration.
    pub configuration: u64,
    /// How many acceptors there are, numbered from 0.
    pub acceptors: u8,
}

/// What an acceptor's answer meant.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Heard {
    /// It is none to this question, or came already.
    Nothing,
    /// Promised; others are waited for.
    Promised,
    /// A majority has promised: [`Recovery::proposal`] is there from now on.
    Majority,
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

/// What is proposed.
#[derive(Clone, Debug, Default)]
struct Value {
    head: Header,
    payload: Vec<u8>,
}

/// One try to find out what is decided in an instance.
#[derive(Debug)]
pub struct Recovery {
    options: RecoveryOptions,
    instance: u64,
    round: u64,
    drawn: u64,
    /// Who has promised: a bit for each.
    promised: u64,
    /// In which round the value was voted for; 0: nobody has said so, it is the no-op.
    voted_in: u64,
    value: Value,
}

impl Recovery {
    /// Asks for this round, which nobody else uses (see [`round_above`](crate::round_above)). `drawn` is a
    /// random number, not 0, drawn for this round. `no_op` is what is decided if nothing was, a value for
    /// nobody.
    ///
    /// # Panics If there are no acceptors, or more than there are bits for; or without instance or number.
    #[must_use]
    pub fn new(
        options: RecoveryOptions,
        instance: u64,
        (round, drawn): (u64, u64),
        no_op: &[u8],
    ) -> Self {
        assert!((1..=64).contains(&options.acceptors), "1 to 64 acceptors");
        assert!(
            instance > 0 && drawn > 0,
            "there is no instance 0, and nobody draws 0"
        );
        let head = Header {
            payload_crc32c: checksum(no_op),
            ..Header::default()
        };
        Self {
            options,
            instance,
            round,
            drawn,
            promised: 0,
            voted_in: 0,
            value: Value {
                head,
                payload: no_op.to_vec(),
            },
        }
    }

    fn header(&self, kind: Kind) -> Header {
        Header {
            magic: MAGIC,
            version: VERSION,
            kind: kind as u8,
            sender: crate::owner_of(self.round),
            group: self.options.group,
            term: self.round,
            index: self.instance,
            commit_index: self.options.configuration,
            ..Header::default()
        }
    }

    /// The P1A for all acceptors. It may be sent again.
    #[must_use]
    pub fn question(&self) -> Header {
        Header {
            session: self.drawn,
            ..self.header(Kind::P1a)
        }
    }

    /// Takes in an acceptor's P1B, or its refusal of the proposal.
    pub fn on_answer(&mut self, header: &Header, payload: &[u8]) -> Heard {
        let is_mine = header.group == self.options.group
            && header.commit_index == self.options.configuration
            && header.index == self.instance
            && header.sender < self.options.acceptors;
        let is_refused = header.flags & FLAG_REFUSED != 0;
        let promises = header.kind == Kind::P1b as u8;
        if !is_mine || !promises && header.kind != Kind::P2b as u8 {
            return Heard::Nothing;
        }
        // Who has voted in this round without having been asked for it takes a late question for somebody
        // else's.
        let is_late = self.is_majority() && header.term == self.round;
        if is_refused && header.previous_term == self.round && !is_late {
            return self.refused(header);
        }
        if is_refused || !promises || header.term != self.round {
            return Heard::Nothing;
        }
        let bit = 1 << header.sender;
        if self.promised & bit != 0 || self.is_majority() {
            return Heard::Nothing;
        }
        self.promised |= bit;
        if header.previous_term > self.voted_in {
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

    fn refused(&self, header: &Header) -> Heard {
        if header.sequence >= self.instance {
            return Heard::Trimmed {
                upto: header.sequence,
            };
        }
        Heard::Refused {
            promised: header.term,
        }
    }

    fn is_majority(&self) -> bool {
        self.promised.count_ones() > u32::from(self.options.acceptors) / 2
    }

    /// The P2A for all acceptors with its payload, once a majority has promised. It may be sent again;
    /// learners hear what becomes of it.
    #[must_use]
    pub fn proposal(&self) -> Option<(Header, &[u8])> {
        let Value { head, payload } = &self.value;
        let header = Header {
            flags: head.flags & FLAG_FRAGMENT,
            payload_bytes: u16::try_from(payload.len()).unwrap_or(u16::MAX),
            payload_crc32c: head.payload_crc32c,
            session: head.session,
            sequence: head.sequence,
            ..self.header(Kind::P2a)
        };
        self.is_majority().then_some((header, payload))
    }
}

fn checksum(payload: &[u8]) -> u32 {
    if payload.is_empty() {
        return 0;
    }
    crc32c::crc32c(payload)
}

#[cfg(test)]
#[path = "recovery_test.rs"]
mod tests;

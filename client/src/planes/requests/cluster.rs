//! Which cluster a client asks, and the keys for that.
use super::Since;
use crate::planes::lineage::{self, Question};
use quorumwire_interfaces::{Lineage, PlaneKeyPair};
use quorumwire_wire::LINEAGE_PACKET_BYTES;
use std::time::Duration;

/// What a client knows of its cluster.
pub struct Cluster {
    file: PlaneKeyPair,
    /// `None`: it is not known whether there is one.
    lineage: Option<Lineage>,
    /// What was asked and not answered.
    question: Option<Question>,
    ask_again: Since,
}

/// What a replica's answer changes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum News {
    /// Nothing.
    Same,
    /// The cluster is known now.
    Learnt,
    /// It is another cluster than before.
    Another,
}

impl Cluster {
    pub const fn new(file: PlaneKeyPair) -> Self {
        Self {
            file,
            lineage: None,
            question: None,
            ask_again: Since::ZERO,
        }
    }

    pub const fn set_file(&mut self, file: PlaneKeyPair) {
        self.file = file;
    }

    /// Those that requests are signed with now. Before a replica has told its lineage: as in a cluster
    /// without one.
    pub fn keys(&self) -> PlaneKeyPair {
        lineage::keys_of(&self.file, self.lineage.unwrap_or_default())
    }

    /// Whether a replica has told it, or has answered a request although none did.
    pub const fn is_known(&self) -> bool {
        self.lineage.is_some()
    }

    /// A replica has answered a request: it knows the keys that it was signed with.
    pub fn answered(&mut self) {
        self.lineage.get_or_insert_default();
    }

    /// Whether these are words of somebody with the key, if not the answer to an open question.
    pub fn is_authentic(&self, datagram: &[u8]) -> bool {
        lineage::is_authentic(&self.file, datagram)
    }

    /// The datagram that asks for the lineage, unless one was sent a moment ago. A question is kept until it
    /// is answered.
    pub fn ask(
        &mut self,
        now: Since,
        wait: Duration,
        draw: impl FnOnce() -> Question,
    ) -> Option<[u8; LINEAGE_PACKET_BYTES]> {
        if now < self.ask_again {
            return None;
        }
        self.ask_again = now + wait;
        let question = *self.question.get_or_insert_with(draw);
        Some(lineage::ask(&self.file, question))
    }

    /// Takes in what should be an answer; `None`: it is none to the question that was asked.
    pub fn told(&mut self, datagram: &[u8]) -> Option<News> {
        let lineage = lineage::told(&self.file, datagram, self.question?)?;
        self.question = None;
        let before = self.lineage.replace(lineage);
        Some(match before {
            Some(before) if before == lineage => News::Same,
            Some(before) if before.is_known() => News::Another,
            _ => News::Learnt,
        })
    }
}

//! The keys that sign what data planes of replicas say to each other, where replicas know each other by TLS:
//! one for each fast term, drawn by whoever stands for election in it, told to those that it asks to engage,
//! and written nowhere. Where they do not speak TLS, those keys come from the secret file and nothing here is
//! used. Whoever drives the group draws them; here they are opaque.
//!
//! # Which key a plane has
//! The plane has a fast term's key only while it is engaged in that term, and it is engaged only with the key
//! that the leader of that very term has sent from its own certificate's connection. At all other times it
//! has a key that nobody else knows, so nothing that claims to come from a replica is taken. A fast term is
//! left before members are changed, so a key is known to members of its own term only, and opens nothing
//! after it.
use crate::mutants::mutant;
use quorumwire_control::Peer;
use quorumwire_interfaces::{PlaneKeyPair, ReplicaId, Term};
use quorumwire_wire::Membership;
use std::collections::BTreeMap;
use std::fmt;

/// Bytes of a key.
pub const TERM_KEY_BYTES: usize = 16;

/// A key. It has no `Debug`, so that no log can show it.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct TermKey(pub [u8; TERM_KEY_BYTES]);

/// Makes a key that nobody can guess.
pub type Draw<'a, E> = &'a mut dyn FnMut() -> Result<TermKey, E>;

/// Why a key that somebody sent was not kept.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum KeyRefusal {
    /// No data plane runs here, or its keys come from the secret file.
    Unexpected,
    /// It has not the length of a key.
    Malformed,
    /// Who sent it does not vote in this life.
    Stranger,
    /// Of a term that is over.
    OldTerm,
    /// Another replica leads that term.
    NotLeader,
}

/// What this replica knows of the others when a key comes.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// The term it is in.
    pub term: Term,
    /// Who leads that term, if it is known.
    pub leader: Option<ReplicaId>,
    /// Who votes.
    pub membership: &'a Membership,
}

/// A key that another replica has sent, until this one is engaged with it.
struct ReceivedKey {
    from: Peer,
    term: Term,
    key: TermKey,
}

/// The keys between replicas, as far as one of them knows them.
pub struct TermKeys {
    /// The plane's outside of fast terms.
    nobodys: TermKey,
    /// Of the last term that this replica stood for.
    drawn: Option<(Term, TermKey)>,
    /// The last one of each voter, so that none can displace another's.
    given: BTreeMap<ReplicaId, ReceivedKey>,
    /// Of the fast term that the plane is engaged in.
    running: Option<(Term, TermKey)>,
}

impl fmt::Debug for TermKeys {
    /// Shows no key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let running = self.running.map(|(term, _)| term);
        write!(f, "keys of fast terms, of which {running:?} runs")
    }
}

impl TermKeys {
    /// Of a replica that has just started, with a key that it says to nobody.
    #[must_use]
    pub const fn new(nobodys: TermKey) -> Self {
        Self {
            nobodys,
            drawn: None,
            given: BTreeMap::new(),
            running: None,
        }
    }

    /// What the plane signs and checks with now.
    #[must_use]
    pub fn pair(&self) -> PlaneKeyPair {
        let (term, key) = self.running.unwrap_or((Term(0), self.nobodys));
        PlaneKeyPair {
            epoch: term.0,
            key: key.0,
            other: None,
        }
    }

    /// The key of a term that this replica stands for or leads, always the same in one term; whether it was
    /// just drawn.
    ///
    /// # Errors
    ///
    /// Those of `draw`.
    pub fn own<E>(&mut self, term: Term, draw: Draw<'_, E>) -> Result<(TermKey, bool), E> {
        let is_its = |drawn: Term| drawn == term || mutant("one-key-for-all-terms");
        if let Some((_, key)) = self.drawn.filter(|(drawn, _)| is_its(*drawn)) {
            return Ok((key, false));
        }
        let key = draw()?;
        self.drawn = Some((term, key));
        Ok((key, true))
    }

    /// Keeps what another replica has sent, for the case that it leads that term.
    ///
    /// # Errors
    ///
    /// Why it is not kept.
    pub fn take(
        &mut self,
        (from, term): (Peer, Term),
        bytes: &[u8],
        known: &Known<'_>,
    ) -> Result<(), KeyRefusal> {
        let key = bytes.try_into().map_err(|_| KeyRefusal::Malformed)?;
        let votes = |peer: Peer| known.membership.is_voter(peer.id, peer.incarnation);
        if !votes(from) {
            return Err(KeyRefusal::Stranger);
        }
        if term < known.term {
            return Err(KeyRefusal::OldTerm);
        }
        let is_anothers = known.leader.is_some_and(|leader| leader != from.id);
        if term == known.term && is_anothers {
            return Err(KeyRefusal::NotLeader);
        }
        // One for each voter there is, whoever has voted before.
        self.given.retain(|_, given| votes(given.from));
        let key = TermKey(key);
        self.given.insert(from.id, ReceivedKey { from, term, key });
        Ok(())
    }

    /// The plane is about to be engaged for this leader. Whether there is that leader's key of that term;
    /// only then it may be.
    pub fn begin(&mut self, term: Term, leader: Peer) -> bool {
        let given = self.given.get(&leader.id);
        let is_of_term = |given: &ReceivedKey| given.term == term || mutant("key-of-any-term");
        let is_its = given.is_some_and(|given| given.from == leader && is_of_term(given));
        // It is used once: who asks again, also in the same term, sends its key again.
        let used = is_its.then(|| self.given.remove(&leader.id)).flatten();
        self.running = used.map(|used| (term, used.key));
        self.forget_below(term);
        self.running.is_some()
    }

    /// The same for a plane that is to lead; whether its key had to be drawn.
    ///
    /// # Errors
    ///
    /// Those of `draw`.
    pub fn begin_own<E>(&mut self, term: Term, draw: Draw<'_, E>) -> Result<bool, E> {
        let (key, is_new) = self.own(term, draw)?;
        self.running = Some((term, key));
        self.forget_below(term);
        Ok(is_new)
    }

    /// The plane is about to stop, and what was signed for it counts no more.
    pub fn end(&mut self) {
        if let Some((term, _)) = self.running.take() {
            self.forget_below(term);
            // Nobody leads a term's fast part twice.
            self.drawn
                .take_if(|(drawn, _)| *drawn <= term && !mutant("one-key-for-all-terms"));
        }
    }

    /// Nobody will lead these terms any more. What was sent for this one stays: a leader that has seen its
    /// follower fall behind offers the same term again, and its key may come before the follower's own fence.
    fn forget_below(&mut self, term: Term) {
        self.given.retain(|_, given| given.term >= term);
    }
}

#[cfg(test)]
#[path = "term_keys_test.rs"]
mod tests;

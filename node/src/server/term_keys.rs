//! The keys that sign what data planes of replicas say to each other, where replicas know each other by TLS:
//! one for each fast term, drawn by whoever stands for election in it, told to those that it asks to engage,
//! and written nowhere. Where they do not speak TLS, those keys come from the secret file and nothing here is
//! used.
//!
//! # Which key a plane has
//! The plane has a fast term's key only while it is engaged in that term, and it is engaged only with the key
//! that the leader of that very term has sent from its own certificate's connection. At all other times it
//! has a key that nobody else knows, so nothing that claims to come from a replica is taken. A fast term is
//! left before members are changed, so a key is known to members of its own term only, and opens nothing
//! after it.
use crate::keys::KEY_BYTES;
use quorumwire_control::Peer;
use quorumwire_interfaces::{PlaneKeyPair, ReplicaId, Term, counters, counters_by};
use quorumwire_wire::Membership;
use std::collections::BTreeMap;

/// A key. It has no `Debug`, so that no log can show it.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct TermKey(pub [u8; KEY_BYTES]);

impl TermKey {
    fn draw() -> anyhow::Result<Self> {
        let mut bytes = [0; KEY_BYTES];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes))
    }
}

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

counters_by! {
    /// Keys that were not kept, by reason.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct KeyRefusals: KeyRefusal {
        /// Keys of fast terms dropped because no data plane runs here
        Unexpected: "fast_term_keys_dropped_unexpected",
        /// Keys of fast terms dropped because they have not the length of a key
        Malformed: "fast_term_keys_dropped_malformed",
        /// Keys of fast terms dropped because their sender does not vote in this life
        Stranger: "fast_term_keys_dropped_stranger",
        /// Keys of fast terms dropped because their term is over
        OldTerm: "fast_term_keys_dropped_old_term",
        /// Keys of fast terms dropped because another replica leads that term
        NotLeader: "fast_term_keys_dropped_not_leader",
    }
}

counters! {
    /// What has become of keys since the start.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct TermKeyCounters {
        /// Keys that this replica drew for fast terms which it led or stood for
        pub drawn: "fast_term_keys_drawn",
        /// Keys of fast terms sent to replicas that were asked to engage
        pub sent: "fast_term_keys_sent",
        /// Keys of fast terms received from leaders and candidates
        pub kept: "fast_term_keys_kept",
        /// Times that the data plane was not engaged because its leader's key had not come
        pub missing: "fast_term_keys_missing",
    }
    with {
        pub dropped: KeyRefusals,
    }
}

/// What this replica knows of the others when a key comes.
#[derive(Clone, Copy)]
pub struct Known<'a> {
    pub term: Term,
    /// Who leads that term, if it is known.
    pub leader: Option<ReplicaId>,
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

impl TermKeys {
    pub fn new() -> anyhow::Result<Self> {
        Ok(Self {
            nobodys: TermKey::draw()?,
            drawn: None,
            given: BTreeMap::new(),
            running: None,
        })
    }

    /// What the plane signs and checks with now.
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
    pub fn own(&mut self, term: Term) -> anyhow::Result<(TermKey, bool)> {
        if let Some((_, key)) = self.drawn.filter(|(drawn, _)| *drawn == term) {
            return Ok((key, false));
        }
        let key = TermKey::draw()?;
        self.drawn = Some((term, key));
        Ok((key, true))
    }

    /// Keeps what another replica has sent, for the case that it leads that term.
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
        let is_its = given.is_some_and(|given| given.from == leader && given.term == term);
        // It is used once: who asks again, also in the same term, sends its key again.
        let used = is_its.then(|| self.given.remove(&leader.id)).flatten();
        self.running = used.map(|used| (term, used.key));
        self.forget_below(term);
        self.running.is_some()
    }

    /// The same for a plane that is to lead; whether its key had to be drawn.
    pub fn begin_own(&mut self, term: Term) -> anyhow::Result<bool> {
        let (key, is_new) = self.own(term)?;
        self.running = Some((term, key));
        self.forget_below(term);
        Ok(is_new)
    }

    /// The plane is about to stop, and what was signed for it counts no more.
    pub fn end(&mut self) {
        if let Some((term, _)) = self.running.take() {
            self.forget_below(term);
            // Nobody leads a term's fast part twice.
            self.drawn.take_if(|(drawn, _)| *drawn <= term);
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

#[cfg(test)]
#[path = "earlier_life_test.rs"]
mod earlier_life;

//! Keys of fast terms: who agrees on them, what a process does with them, and what is judged. All that
//! decides is the group's. A key travels as a message of its own, and unlike on the product's connections
//! it may be lost, come twice, or come after what asks to engage.
use crate::network::Saying;
use crate::plan::Settings;
use crate::plane::Plane;
use crate::random::{Random, mix};
use crate::world::World;
use quorumwire_control::{Engage, Message, Peer};
use quorumwire_group::{BegunKey, KeyRefusal, TERM_KEY_BYTES, TermKey};
use quorumwire_interfaces::{PlaneKeyPair, Term};
use quorumwire_wire::peer::PeerMessage;
use quorumwire_wire::peer::peer_message::Body;
use std::collections::BTreeMap;
use std::convert::Infallible;

/// Sets these choices apart from all others of a seed.
const KEYS: u64 = 0x0007_e4e5;
/// In so many of a thousand seeds replicas agree on keys; in the others those of the secret file serve.
const SEEDS_PERMILLE: u64 = 700;

/// What a run must have seen of them.
pub const OUTCOMES: [&str; 8] = [
    "key drawn",
    "key for a life that is over",
    "key kept",
    "key late",
    "key lost",
    "key not kept: old term",
    "key repeated",
    "plane not engaged: no key",
];

/// A key as it is drawn.
type Bytes = [u8; TERM_KEY_BYTES];

/// What is judged of keys.
#[derive(Debug, Default)]
pub struct KeyJudge {
    /// What each candidate has told others in each term, or is engaged with itself.
    told: BTreeMap<(Term, Peer), Bytes>,
    /// In which term each key was first told.
    term_of: BTreeMap<Bytes, Term>,
}

impl KeyJudge {
    /// A candidate tells a key of this term, or uses it itself.
    ///
    /// # Errors
    ///
    /// What is wrong with that.
    pub fn tells(&mut self, from: Peer, term: Term, key: Bytes) -> Result<(), String> {
        let first = *self.told.entry((term, from)).or_insert(key);
        if first != key {
            return Err(format!("I11: {from:?} has two keys in term {term}"));
        }
        let first = *self.term_of.entry(key).or_insert(term);
        if first != term {
            return Err(format!(
                "I11: {from:?} has the same key in terms {first} and {term}"
            ));
        }
        Ok(())
    }

    /// A plane takes part in a term of this leader, and signs with this.
    ///
    /// # Errors
    ///
    /// If that is not that term's key.
    pub fn takes_part(
        &self,
        me: Peer,
        (term, leader): (Term, Peer),
        pair: &PlaneKeyPair,
    ) -> Result<(), String> {
        let told = self.told.get(&(term, leader));
        if told != Some(&pair.key) || pair.epoch != term.0 || pair.other.is_some() {
            let epoch = pair.epoch;
            return Err(format!(
                "I11: the plane of {me:?} takes part in term {term} with a key of {epoch}"
            ));
        }
        Ok(())
    }
}

impl Settings {
    /// Replicas agree on the keys of fast terms.
    #[must_use]
    pub fn agrees_on_keys(&self) -> bool {
        Random::new(mix(self.seed ^ KEYS)).permille(SEEDS_PERMILLE)
    }

    /// The key with this number that a process draws.
    #[must_use]
    pub fn key_drawn(&self, (machine, run): (u16, u32), number: u64) -> TermKey {
        let process = u64::from(machine) << 32 | u64::from(run);
        let seed = mix(self.seed ^ KEYS ^ mix(process)) ^ number << 1;
        let mut key = [0; TERM_KEY_BYTES];
        for (half, bytes) in key.chunks_exact_mut(8).enumerate() {
            bytes.copy_from_slice(&mix(seed ^ half as u64).to_be_bytes());
        }
        TermKey(key)
    }
}

impl World {
    /// Consensus is about to say this: before it asks somebody to engage, the key for it is sent.
    pub fn tell_key(&mut self, machine: usize, to: Peer, message: &Message) {
        let other = self.machines.get(usize::from(to.id.0));
        let has_plane = other.is_some_and(|it| it.has_plane);
        let mut draw = self.draws(machine);
        let told = self.drive(machine, |group| {
            group.tell_key((to, has_plane), message, &mut draw)
        });
        if let Some(Ok(true)) = told {
            self.note_drawn();
        }
        self.carry_out_effects(machine);
    }

    /// What draws the next key of a process.
    fn draws(&self, machine: usize) -> impl FnMut() -> Result<TermKey, Infallible> + use<> {
        let it = &self.machines[machine];
        let key = (self.plan.settings).key_drawn((it.peer.id.0, it.run), self.keys_drawn + 1);
        move || Ok(key)
    }

    fn note_drawn(&mut self) {
        self.keys_drawn += 1;
        self.counts.see("key drawn");
    }

    /// A key is on its way to somebody.
    pub fn send_key(&mut self, machine: usize, to: Peer, message: PeerMessage) {
        let from = self.machines[machine].peer;
        if let Some(Body::FastTermKey(key)) = &message.body
            && let Ok(key) = Bytes::try_from(&key.key[..])
        {
            let told = self.key_judge.tells(from, Term(message.term), key);
            self.judge_key(told);
        }
        self.send(machine, to, Saying::Key(Box::new(message)));
    }

    /// Another replica has sent a key.
    pub fn take_key(&mut self, machine: usize, from: Peer, message: &PeerMessage) {
        let Some(Body::FastTermKey(key)) = &message.body else {
            return;
        };
        let term = Term(message.term);
        let taken = self.drive(machine, |group| group.take_key(from, term, &key.key));
        let seen = match taken {
            None => return,
            Some(Ok(())) => "key kept",
            Some(Err(KeyRefusal::OldTerm)) => "key not kept: old term",
            Some(Err(KeyRefusal::NotLeader)) => "key not kept: other leader",
            Some(Err(KeyRefusal::Stranger)) => "key not kept: stranger",
            Some(Err(KeyRefusal::Unexpected)) => "key not kept: unexpected",
            Some(Err(KeyRefusal::Malformed)) => "key not kept: malformed",
        };
        self.counts.see(seen);
    }

    /// Gives the plane the key of the fast term that it is to be engaged in. Whether it may be.
    pub fn begin_key(&mut self, machine: usize, engage: &Engage) -> bool {
        let mut draw = self.draws(machine);
        let me = self.machines[machine].peer;
        let Some(process) = &mut self.machines[machine].process else {
            return false;
        };
        let Ok(begun) = process.group.begin_key(engage, &mut draw);
        match begun {
            BegunKey::NotNeeded => true,
            BegunKey::Missing => {
                self.counts.see("plane not engaged: no key");
                false
            }
            BegunKey::Begun(pair, is_new) => {
                if let Some(plane) = &mut process.group.plane {
                    plane.data_plane_mut().agree(pair);
                }
                if is_new {
                    self.note_drawn();
                }
                if engage.me == engage.leader {
                    let told = self.key_judge.tells(me, engage.term, pair.key);
                    self.judge_key(told);
                }
                true
            }
        }
    }

    /// The plane is about to stop, or was not engaged.
    pub fn end_key(&mut self, machine: usize) {
        let Some(process) = &mut self.machines[machine].process else {
            return;
        };
        if let (Some(pair), Some(plane)) = (process.group.end_key(), &mut process.group.plane) {
            plane.data_plane_mut().agree(pair);
        }
    }

    /// A plane was engaged, or has heeded a datagram of another one.
    pub fn judge_part(&mut self, machine: usize) {
        let it = &self.machines[machine];
        let Some(plane) = it.plane().map(Plane::data_plane) else {
            return;
        };
        let Some(pair) = plane.agreed() else {
            return;
        };
        let term = plane.term();
        let Some(leader) = self.checks.fast_leader(term) else {
            return;
        };
        let judged = self.key_judge.takes_part(it.peer, (term, leader), pair);
        self.judge_key(judged);
    }

    fn judge_key(&mut self, judged: Result<(), String>) {
        if let Err(problem) = judged {
            self.checks.require(false, || problem);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorumwire_interfaces::{Incarnation, ReplicaId};

    const KEY: Bytes = [1; TERM_KEY_BYTES];
    const OTHER: Bytes = [2; TERM_KEY_BYTES];

    fn peer(id: u16) -> Peer {
        Peer {
            id: ReplicaId(id),
            incarnation: Incarnation(1),
        }
    }

    fn pair(term: u64, key: Bytes) -> PlaneKeyPair {
        PlaneKeyPair {
            epoch: term,
            key,
            other: None,
        }
    }

    #[test]
    fn a_candidate_has_one_key_in_a_term() {
        let mut judge = KeyJudge::default();
        assert_eq!(judge.tells(peer(1), Term(7), KEY), Ok(()));
        assert_eq!(judge.tells(peer(1), Term(7), KEY), Ok(()), "told to all");
        assert_eq!(judge.tells(peer(2), Term(7), OTHER), Ok(()), "another one");
        assert!(judge.tells(peer(1), Term(7), [3; 16]).is_err());
    }

    #[test]
    fn keys_of_two_terms_differ() {
        let mut judge = KeyJudge::default();
        assert_eq!(judge.tells(peer(1), Term(7), KEY), Ok(()));
        assert!(judge.tells(peer(1), Term(8), KEY).is_err());
        assert!(judge.tells(peer(2), Term(9), KEY).is_err());
    }

    #[test]
    fn who_takes_part_has_the_leaders_key_of_that_term() {
        let mut judge = KeyJudge::default();
        assert_eq!(judge.tells(peer(1), Term(7), KEY), Ok(()));
        assert_eq!(judge.tells(peer(2), Term(7), OTHER), Ok(()));
        let part = |term, key| judge.takes_part(peer(0), (Term(7), peer(1)), &pair(term, key));
        assert_eq!(part(7, KEY), Ok(()));
        assert!(part(7, OTHER).is_err(), "that of another candidate");
        assert!(part(0, [9; 16]).is_err(), "nobody's");
        assert!(part(6, KEY).is_err(), "by another number");
        let both = PlaneKeyPair {
            other: Some(OTHER),
            ..pair(7, KEY)
        };
        let taken = judge.takes_part(peer(0), (Term(7), peer(1)), &both);
        assert!(taken.is_err(), "and no other beside it");
    }

    #[test]
    fn every_key_drawn_is_another() {
        let settings = crate::plan::Plan::new(7).settings;
        let mut seen = std::collections::BTreeSet::new();
        for machine in 0..3 {
            for run in 0..3 {
                for number in 0..50 {
                    assert!(seen.insert(settings.key_drawn((machine, run), number).0));
                }
            }
        }
    }
}

//! How replicas agree on the keys of fast terms, as the group decides it: here keys are drawn, given to the
//! plane and counted.
use super::core::{Core, Hosted};
use super::plane::{Hosting, Plane};
use super::random::random_key;
use quorumwire_control::{Engage, Message, Peer};
use quorumwire_group::BegunKey;
use quorumwire_interfaces::Term;
use quorumwire_wire::peer;

impl<S: Hosted> Core<S> {
    /// Says what consensus wants said; before it asks somebody to engage, the key for it. Connections keep
    /// the order.
    pub fn say(&mut self, to: Peer, message: &Message) {
        let has_plane = self.hellos.of(to.id).is_some_and(|it| it.has_plane);
        match (self.group).tell_key((to, has_plane), message, &mut random_key) {
            Ok(is_new) => self.counters.term_keys.drawn += u64::from(is_new),
            Err(error) => no_key(&error),
        }
        let (message, attachment) = message.to_proto(self.group.id);
        self.group.send(to, message, attachment);
    }

    /// A replica has sent the key of a term that it stands for or leads, over a connection that is its own.
    pub fn take_term_key(&mut self, from: Peer, term: u64, key: &peer::FastTermKey) {
        let taken = self.group.take_key(from, Term(term), &key.key);
        let counters = &mut self.counters.term_keys;
        match taken {
            Ok(()) => counters.kept += 1,
            Err(refusal) => counters.dropped.count(refusal),
        }
    }

    /// Gives the plane the key of the fast term that it is to be engaged in. Whether it may be engaged.
    pub fn begin_term_key(&mut self, engage: &Engage) -> bool {
        let begun = match self.group.begin_key(engage, &mut random_key) {
            Ok(begun) => begun,
            Err(error) => {
                no_key(&error);
                BegunKey::Missing
            }
        };
        let counters = &mut self.counters.term_keys;
        match begun {
            BegunKey::NotNeeded => true,
            BegunKey::Begun(pair, is_new) => {
                counters.drawn += u64::from(is_new);
                if let Some((plane, hosting)) = hosted(self) {
                    hosting.agree(plane, pair);
                }
                true
            }
            BegunKey::Missing => {
                counters.missing += 1;
                tracing::warn!(
                    term = engage.term.0,
                    "the data plane was not engaged: there is no key of its leader for this fast term"
                );
                false
            }
        }
    }

    /// The plane is about to stop, or was not engaged: from now on it takes nothing.
    pub fn end_term_key(&mut self) {
        let pair = self.group.end_key();
        if let (Some(pair), Some((plane, hosting))) = (pair, hosted(self)) {
            hosting.agree(plane, pair);
        }
    }
}

fn hosted<S: Hosted>(core: &mut Core<S>) -> Option<(&mut Plane, &mut Hosting)> {
    core.group.plane.as_mut().zip(core.hosting.as_mut())
}

fn no_key(error: &anyhow::Error) {
    tracing::error!("no key could be made for a fast term: {error:#}");
}

#[cfg(test)]
#[path = "key_agreement_test.rs"]
mod tests;

#[cfg(test)]
#[path = "earlier_life_test.rs"]
mod earlier_life;

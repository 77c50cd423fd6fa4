//! How replicas agree on the keys of fast terms: each is sent before its receiver is asked to engage, and
//! given to the plane as it is engaged. Which key that is, `term_keys.rs` says.
use super::core::{Core, Hosted};
use super::term_keys::{KeyRefusal, Known};
use quorumwire_control::{Body, Engage, Message, Peer};
use quorumwire_interfaces::Term;
use quorumwire_wire::peer::{self, peer_message};

/// Whether who hears this is to engage its plane in the message's term.
fn asks_to_engage(body: &Body) -> bool {
    match body {
        Body::VoteRequest { engage, .. } => *engage,
        Body::EngageOffer { .. } => true,
        Body::Fresh { .. }
        | Body::Bootstrap { .. }
        | Body::VoteReply { .. }
        | Body::Append { .. }
        | Body::AppendReply { .. }
        | Body::SnapshotChunk { .. }
        | Body::SnapshotReply { .. }
        | Body::TransferNow
        | Body::Engaged { .. } => false,
    }
}

impl<S: Hosted> Core<S> {
    /// Says what consensus wants said; before it asks somebody to engage, the key for it. Connections keep
    /// the order, and who gets one without the other does not engage.
    pub fn say(&mut self, to: Peer, message: &Message) {
        if asks_to_engage(&message.body) {
            self.send_term_key(to, message.term);
        }
        let (message, attachment) = message.to_proto(self.group.id);
        self.group.send(to, message, attachment);
    }

    fn send_term_key(&mut self, to: Peer, term: Term) {
        let Some(keys) = &mut self.term_keys else {
            return;
        };
        // All voters are asked for their vote; those without a plane need no key.
        if !self.hellos.of(to.id).is_some_and(|it| it.has_plane) {
            return;
        }
        let (key, is_new) = match keys.own(term) {
            Ok(own) => own,
            Err(error) => return no_key(&error),
        };
        let key = peer::FastTermKey {
            key: key.0.to_vec().into(),
        };
        let message = peer::PeerMessage {
            group: self.group.id.0,
            term: term.0,
            body: Some(peer_message::Body::FastTermKey(key)),
        };
        self.counters.term_keys.drawn += u64::from(is_new);
        self.group.send_key(to, message);
    }

    /// A replica has sent the key of a term that it stands for or leads, over a connection that is its own.
    pub fn take_term_key(&mut self, from: Peer, term: u64, key: &peer::FastTermKey) {
        let taken = match &mut self.term_keys {
            Some(keys) if self.group.plane.is_some() => {
                let known = Known {
                    term: self.group.replica.term(),
                    leader: self.group.replica.leader(),
                    membership: self.group.replica.membership(),
                };
                keys.take((from, Term(term)), &key.key, &known)
            }
            Some(_) | None => Err(KeyRefusal::Unexpected),
        };
        let counters = &mut self.counters.term_keys;
        match taken {
            Ok(()) => counters.kept += 1,
            Err(refusal) => counters.dropped.count(refusal),
        }
    }

    /// Gives the plane the key of the fast term that it is to be engaged in. Whether it may be engaged.
    pub fn begin_term_key(&mut self, engage: &Engage) -> bool {
        let hosted = self.group.plane.as_mut().zip(self.hosting.as_mut());
        let (Some(keys), Some((plane, hosting))) = (&mut self.term_keys, hosted) else {
            return true;
        };
        let counters = &mut self.counters.term_keys;
        let leader = engage.voters.get(usize::from(engage.leader));
        let begun = match leader {
            Some(_) if engage.leader == engage.me => match keys.begin_own(engage.term) {
                Ok(is_new) => {
                    counters.drawn += u64::from(is_new);
                    true
                }
                Err(error) => {
                    no_key(&error);
                    false
                }
            },
            Some(leader) => keys.begin(engage.term, *leader),
            None => false,
        };
        if begun {
            hosting.agree(plane, keys.pair());
        } else {
            counters.missing += 1;
            tracing::warn!(
                term = engage.term.0,
                "the data plane was not engaged: there is no key of its leader for this fast term"
            );
        }
        begun
    }

    /// The plane is about to stop, or was not engaged: from now on it takes nothing. Before the fence, so
    /// that what waits there for packets on their way has waited for all that were checked with the key.
    pub fn end_term_key(&mut self) {
        let hosted = self.group.plane.as_mut().zip(self.hosting.as_mut());
        if let (Some(keys), Some((plane, hosting))) = (&mut self.term_keys, hosted) {
            keys.end();
            hosting.agree(plane, keys.pair());
        }
    }
}

fn no_key(error: &anyhow::Error) {
    tracing::error!("no key could be made for a fast term: {error:#}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorumwire_interfaces::Index;

    #[test]
    fn a_key_goes_to_whom_is_asked_to_engage_and_to_nobody_else() {
        let vote = |engage| Body::VoteRequest {
            last_index: Index(0),
            last_term: Term(0),
            pre_vote: false,
            transfer: false,
            engage,
        };
        let start_index = Index(0);
        assert!(asks_to_engage(&vote(true)));
        assert!(asks_to_engage(&Body::EngageOffer { start_index }));
        assert!(!asks_to_engage(&vote(false)));
        assert!(!asks_to_engage(&Body::TransferNow));
    }
}

//! How replicas agree on the keys of fast terms: each is sent before its receiver is asked to engage, and
//! given to the plane as it is engaged. Which key that is, `term_keys.rs` says.
use crate::group::Group;
use crate::requester::Requester;
use crate::term_keys::{Draw, KeyRefusal, Known};
use quorumwire_control::{Body, Engage, Message, Peer};
use quorumwire_interfaces::{Application, DataPlane, PlaneKeyPair, Term};
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

/// Whether the plane may be engaged in a fast term, as far as its key goes.
pub enum BegunKey {
    /// Replicas agree on no keys here.
    NotNeeded,
    /// With this, and only with this; whether its key was just drawn.
    Begun(PlaneKeyPair, bool),
    /// No: its leader's key has not come, or it is not of this term.
    Missing,
}

impl<S: Application, O: Requester, P: DataPlane + ?Sized> Group<S, O, P> {
    /// Has the key sent to whoever is asked to engage by this message, which is said next; to nobody else.
    /// Whoever gets one without the other does not engage. Whether a key was drawn for it. `has_plane`: all
    /// voters are asked for their vote, but those without a plane need no key.
    ///
    /// # Errors
    ///
    /// Those of `draw`; then no key is sent.
    pub fn tell_key<E>(
        &mut self,
        (to, has_plane): (Peer, bool),
        message: &Message,
        draw: Draw<'_, E>,
    ) -> Result<bool, E> {
        if !has_plane || !asks_to_engage(&message.body) {
            return Ok(false);
        }
        let Some(keys) = &mut self.term_keys else {
            return Ok(false);
        };
        let (key, is_new) = keys.own(message.term, draw)?;
        let key = peer::FastTermKey {
            key: key.0.to_vec().into(),
        };
        let message = peer::PeerMessage {
            group: self.id.0,
            term: message.term.0,
            body: Some(peer_message::Body::FastTermKey(key)),
        };
        self.send_key(to, message);
        Ok(is_new)
    }

    /// A replica has sent the key of a term that it stands for or leads, over a connection that is its own.
    ///
    /// # Errors
    ///
    /// Why it is not kept.
    pub fn take_key(&mut self, from: Peer, term: Term, key: &[u8]) -> Result<(), KeyRefusal> {
        match &mut self.term_keys {
            Some(keys) if self.plane.is_some() => {
                let known = Known {
                    term: self.replica.term(),
                    leader: self.replica.leader(),
                    membership: self.replica.membership(),
                };
                keys.take((from, term), key, &known)
            }
            Some(_) | None => Err(KeyRefusal::Unexpected),
        }
    }

    /// The plane is about to be engaged: which key it is to have before, and whether it may be at all.
    ///
    /// # Errors
    ///
    /// Those of `draw`; then it may not.
    pub fn begin_key<E>(&mut self, engage: &Engage, draw: Draw<'_, E>) -> Result<BegunKey, E> {
        let Some(keys) = &mut self.term_keys else {
            return Ok(BegunKey::NotNeeded);
        };
        let leader = engage.voters.get(usize::from(engage.leader));
        let is_new = match leader {
            Some(_) if engage.leader == engage.me => keys.begin_own(engage.term, draw)?,
            Some(leader) if keys.begin(engage.term, *leader) => false,
            Some(_) | None => return Ok(BegunKey::Missing),
        };
        Ok(BegunKey::Begun(keys.pair(), is_new))
    }

    /// The plane is about to stop, or was not engaged: what it is to have from now on, so that it takes
    /// nothing. It gets that before the fence, so that what waits there for packets on their way has waited
    /// for all that were checked with the key.
    pub fn end_key(&mut self) -> Option<PlaneKeyPair> {
        let keys = self.term_keys.as_mut()?;
        keys.end();
        Some(keys.pair())
    }
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

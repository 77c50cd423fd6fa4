//! Messages with secrets in them: only over TLS, and only between those whom the certificates name.
use super::{Link, Links};
use quorumwire_control::Peer;
use quorumwire_wire::peer;

impl Link {
    /// Whether the replica at the other end has shown that it is the one it says.
    fn is_certified(&self) -> bool {
        let said = self.peer.map(|peer| peer.id);
        said.is_some() && self.certified == said
    }
}

impl Links {
    /// As [`send`](Self::send), for what only that replica may read. Dropped, and counted, where it could be
    /// read on its way, or by somebody else.
    pub fn send_secret(&mut self, to: Peer, message: &peer::PeerMessage) -> bool {
        let slot = self.up.get(&to.id).copied();
        if slot.is_some_and(|slot| !self.may_hold_secrets(slot)) {
            return false;
        }
        self.send(to, message, &[])
    }

    /// Whether secrets may come and go by this connection; that they did not is counted.
    pub(super) fn may_hold_secrets(&mut self, slot: usize) -> bool {
        let may = self.slots[slot].as_ref().is_some_and(Link::is_certified);
        self.counters.dropped_not_certified += u64::from(!may);
        may
    }
}

//! What a group knows of the connections to its other replicas. Whoever has the connections shows it, each
//! time that they may have changed; what the group itself has had sent since then counts at once. So what it
//! asks here has the answer that the connections themselves would give.
use quorumwire_control::{Now, Peer};
use quorumwire_interfaces::ReplicaId;
use std::collections::BTreeMap;
use std::time::Duration;

/// Bytes on their way to one replica; further messages are dropped (and counted) until it drains.
pub const QUEUE_BYTES_MAX: usize = 32 << 20;

/// A replica that is connected.
#[derive(Clone, Copy, Debug, Default)]
pub struct PeerConnection {
    /// In which life.
    pub peer: Peer,
    /// On their way to it.
    pub queued_bytes: usize,
    /// When something has come from it last.
    pub heard: Now,
}

/// Messages that were not sent, and why.
#[derive(Clone, Copy, Debug, Default)]
pub struct DroppedMessages {
    /// That life of the replica is not connected.
    pub not_connected: u64,
    /// More waits for it than [`QUEUE_BYTES_MAX`].
    pub queue_full: u64,
}

/// All connections to other replicas, as a group knows them.
#[derive(Debug, Default)]
pub struct Peers {
    /// Who is connected.
    pub connected: BTreeMap<ReplicaId, PeerConnection>,
    /// Who has said nothing for longer hangs, or is cut off.
    pub quiet_after: Duration,
    /// What was not sent.
    pub dropped: DroppedMessages,
}

impl Peers {
    /// This life of a replica, if it is connected.
    fn life(&self, peer: Peer) -> Option<&PeerConnection> {
        self.connected
            .get(&peer.id)
            .filter(|connected| connected.peer == peer)
    }

    /// Whether this life of a replica is connected.
    #[must_use]
    pub fn is_up(&self, peer: Peer) -> bool {
        self.life(peer).is_some()
    }

    /// Bytes on their way to this life of a replica.
    #[must_use]
    pub fn queued_bytes(&self, to: Peer) -> usize {
        self.life(to).map_or(0, |connected| connected.queued_bytes)
    }

    /// A message of so many bytes is about to be sent to this life of a replica. False: it is dropped, and
    /// counted.
    pub fn queue(&mut self, to: Peer, bytes: usize) -> bool {
        let connected = self.connected.get_mut(&to.id);
        let Some(connected) = connected.filter(|connected| connected.peer == to) else {
            self.dropped.not_connected += 1;
            return false;
        };
        if connected.queued_bytes > QUEUE_BYTES_MAX {
            self.dropped.queue_full += 1;
            return false;
        }
        connected.queued_bytes += bytes;
        true
    }

    /// Whether nothing has come from this life of a replica for longer than it leaves between two words, if
    /// only to say that it is there.
    #[must_use]
    pub fn is_quiet(&self, peer: Peer, now: Now) -> bool {
        self.life(peer)
            .is_none_or(|connected| now.0.saturating_sub(connected.heard.0) > self.quiet_after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorumwire_interfaces::Incarnation;

    const PEER: Peer = Peer {
        id: ReplicaId(1),
        incarnation: Incarnation(5),
    };

    fn one() -> Peers {
        let connected = PeerConnection {
            peer: PEER,
            heard: Now(Duration::from_secs(9)),
            ..PeerConnection::default()
        };
        Peers {
            connected: BTreeMap::from([(PEER.id, connected)]),
            quiet_after: Duration::from_secs(1),
            ..Peers::default()
        }
    }

    #[test]
    fn what_was_sent_counts_until_there_is_no_room() {
        let mut peers = one();
        assert!(peers.queue(PEER, QUEUE_BYTES_MAX));
        assert!(peers.queue(PEER, 7), "one more message than has room");
        assert_eq!(peers.queued_bytes(PEER), QUEUE_BYTES_MAX + 7);
        assert!(!peers.queue(PEER, 1));
        assert_eq!(peers.queued_bytes(PEER), QUEUE_BYTES_MAX + 7);
    }

    #[test]
    fn another_life_of_a_replica_is_another_peer() {
        let mut peers = one();
        let later = Peer {
            incarnation: Incarnation(6),
            ..PEER
        };
        assert!(peers.is_up(PEER) && !peers.is_up(later));
        assert!(!peers.queue(later, 1));
        assert_eq!(
            (peers.queued_bytes(PEER), peers.queued_bytes(later)),
            (0, 0)
        );
        let now = |ms| Now(Duration::from_millis(ms));
        assert!(!peers.is_quiet(PEER, now(10_000)) && peers.is_quiet(PEER, now(10_001)));
        assert!(peers.is_quiet(later, now(0)), "nothing can come from it");
    }
}

//! How a group has messages sent to other replicas.
use crate::effects::Effect;
use crate::group::Group;
use crate::passed_on::PassedOn;
use crate::requester::Requester;
use bytes::Bytes;
use quorumwire_control::Peer;
use quorumwire_interfaces::{Application, DataPlane};
use quorumwire_wire::FRAME_HEADER_BYTES;
use quorumwire_wire::peer::PeerMessage;
use quorumwire_wire::prost::Message as _;

impl<S: Application, O: Requester, P: DataPlane + ?Sized> Group<S, O, P> {
    /// Has a message sent. False: it is dropped, and counted, because that life is not connected or its queue
    /// is full.
    pub fn send(&mut self, to: Peer, message: PeerMessage, attachment: Vec<Bytes>) -> bool {
        let has_room = self.peers.queue(to, frame_bytes(&message, &attachment));
        if has_room {
            self.effects.push(Effect::Send {
                to,
                message,
                attachment,
            });
        }
        has_room
    }

    /// Has a message about a request that was passed on sent. False: it is dropped.
    pub(crate) fn pass_on(&mut self, to: Peer, message: PassedOn) -> bool {
        let (body, attachment) = message.into_body();
        let message = PeerMessage {
            group: self.id.0,
            term: self.replica.term().0,
            body: Some(body),
        };
        self.send(to, message, vec![attachment])
    }

    /// Has a key sent, or dropped as [`send`](Self::send) does.
    pub fn send_key(&mut self, to: Peer, message: PeerMessage) {
        if self.peers.queue(to, frame_bytes(&message, &[])) {
            self.effects.push(Effect::SendKey { to, message });
        }
    }
}

/// How much longer a queue gets by a message.
fn frame_bytes(message: &PeerMessage, attachment: &[Bytes]) -> usize {
    let attached: usize = attachment.iter().map(Bytes::len).sum();
    FRAME_HEADER_BYTES + message.encoded_len() + attached
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::tests::{One, one_of};
    use crate::peers::{PeerConnection, QUEUE_BYTES_MAX};
    use bytes::BytesMut;
    use quorumwire_interfaces::{Incarnation, ReplicaId};
    use quorumwire_wire::encode_frame;
    use quorumwire_wire::peer::{Forward, peer_message::Body};

    const PEER: Peer = Peer {
        id: ReplicaId(1),
        incarnation: Incarnation(5),
    };

    fn message(request: u64) -> PeerMessage {
        let body = Body::Forward(Forward {
            request,
            read: true,
            process: 9,
        });
        PeerMessage {
            group: 0,
            term: 7,
            body: Some(body),
        }
    }

    fn group() -> One {
        let mut group = one_of(1, 0);
        let connected = PeerConnection {
            peer: PEER,
            ..PeerConnection::default()
        };
        group.peers.connected.insert(PEER.id, connected);
        group
    }

    #[test]
    fn what_is_to_be_sent_is_queued_by_as_many_bytes_as_it_will_be() {
        let mut group = group();
        let mut bytes = 0;
        for (request, attachment) in [(1, 0), (300, 5), (u64::MAX, 70_000)] {
            let attachment = vec![Bytes::from(vec![7; attachment])];
            let mut frame = BytesMut::new();
            encode_frame(&mut frame, &message(request), &attachment);
            bytes += frame.len() + attachment[0].len();
            assert!(group.send(PEER, message(request), attachment));
            assert_eq!(group.peers.queued_bytes(PEER), bytes);
        }
    }

    /// Whoever hears that it is dropped may try again: it must not be sent after all, and it takes no memory
    /// meanwhile.
    #[test]
    fn what_is_dropped_is_counted_and_never_becomes_an_effect() {
        let mut group = group();
        assert!(group.send(PEER, message(1), Vec::new()));
        assert!(group.peers.queue(PEER, QUEUE_BYTES_MAX));
        assert!(!group.send(PEER, message(2), Vec::new()));
        group.send_key(PEER, message(3));
        group.peers.connected.clear();
        assert!(!group.send(PEER, message(4), Vec::new()));
        let pushed = group.effects.iter().map(|effect| match effect {
            Effect::Send { message, .. } | Effect::SendKey { message, .. } => message.clone(),
        });
        assert!(pushed.eq([message(1)]));
        let dropped = &group.peers.dropped;
        assert_eq!((dropped.queue_full, dropped.not_connected), (2, 1));
    }
}

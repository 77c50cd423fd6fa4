//! The plane in ordinary memory, between queues in memory.
mod endpoints;
mod memcached;
#[cfg(feature = "mutants")]
mod mutants;
mod network;
mod nonsense;

use network::{GROUP, HostEvent, Network, address, grant, keys};
use quorumwire_fastpath::{ClientPackets, Engine, Options, PIECE_BYTES_MAX, Request};
use quorumwire_interfaces::{
    Answer, EntryKind, Grant, Index, PlaneError, PlaneKeyPair, PlaneKeys, Term,
};
use quorumwire_wire::packet::{
    FLAG_BUNDLE, FLAG_REFUSED, FLAG_TICK, Header, Kind, MAGIC, ORIGIN_BYTES, PAYLOAD_BYTES_MAX,
    PacketReason, VERSION,
};
use std::net::SocketAddr;

fn client() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 33], 4000))
}

fn request(sequence: u64, blind: bool, payload: &[u8]) -> Vec<u8> {
    let request = Request {
        group: GROUP,
        session: 1,
        sequence,
        blind,
        payload,
    };
    ClientPackets::new(&keys())
        .request(&request)
        .expect("not too long")
}

#[test]
fn an_entry_is_stored_everywhere_and_committed() {
    let mut network = Network::engaged(3, 8);
    assert_eq!(network.submit(b"first"), Index(11));
    network.settle();
    network.heartbeat(1);
    network.settle();
    for slot in 0..3 {
        let first = HostEvent::Entry(11, b"first".to_vec(), None);
        assert_eq!(
            network.seen[slot],
            [first, HostEvent::Committed(11)],
            "{slot}"
        );
        assert_eq!(network.engines[slot].registers().commit_index, Index(11));
    }
    assert_eq!(network.engines[0].registers().heard_round[..3], [1, 1, 1]);
}

#[test]
fn every_blind_write_is_answered_when_one_acknowledgement_commits_many() {
    let mut network = Network::engaged_and_held(3, 8);
    for sequence in 1..=3 {
        network.send(client(), 0, request(sequence, sequence != 2, b"x"));
    }
    network.settle();
    network.persisted(0, 13);
    assert!(network.elsewhere.is_empty() && network.queue.is_empty());
    network.persisted(2, 13);
    network.settle();
    let asking = ClientPackets::new(&keys());
    let answers: Vec<(u64, u64)> = network
        .elsewhere
        .iter()
        .map(|flying| {
            assert_eq!(flying.to, client());
            let answer = asking.answer(&flying.bytes).unwrap();
            (answer.sequence, answer.index)
        })
        .collect();
    assert_eq!(answers, [(1, 11), (3, 13)]);
    // Only who waits for the state machine's answer is the host's.
    assert!(network.seen[0].contains(&HostEvent::Entry(12, b"x".to_vec(), Some(client()))));
    assert!(network.seen[0].contains(&HostEvent::Entry(13, b"x".to_vec(), None)));
}

#[test]
fn a_gap_is_asked_for_once_and_then_filled() {
    let mut network = Network::engaged(2, 256);
    network.submit(b"lost");
    network.queue.clear();
    for _ in 0..20 {
        network.submit(b"more");
    }
    network.settle();
    assert_eq!(network.entries(1), (11..=31).collect::<Vec<_>>());
    let counters = network.engines[1].counters();
    assert_eq!(counters.reason(PacketReason::Gap), 20);
    assert_eq!(counters.gaps_not_asked, 19);
    assert_eq!(network.engines[0].counters().resent, 21);
}

#[test]
fn a_question_that_was_lost_is_asked_again() {
    let mut network = Network::engaged(3, 512);
    network.submit(b"lost");
    network.take_out(1);
    network.settle();
    network.submit(b"more");
    let append = network.take_out(1).pop().unwrap();
    network.settle();
    network.deliver(append);
    assert_eq!(network.queue.len(), 1, "a question");
    network.queue.clear();
    // A heartbeat brings it up again, and so do many packets behind the same gap.
    network.heartbeat(1);
    let heartbeat = network.take_out(1).pop().unwrap();
    network.settle();
    network.deliver(heartbeat);
    assert_eq!(network.queue.len(), 1, "the question again");
    network.queue.clear();
    let mut late = Vec::new();
    for _ in 0..257 {
        network.submit(b"more");
        late.extend(network.take_out(1));
        network.settle();
    }
    network.queue.extend(late);
    network.settle();
    assert_eq!(network.entries(1).len(), 259);
}

/// Else a group whose packets are repeated would do nothing but ask and send again.
#[test]
fn a_question_whose_first_entry_is_lost_leads_to_no_other() {
    let mut network = Network::engaged(2, 256);
    for _ in 0..100 {
        network.submit(b"lost");
    }
    network.queue.clear();
    network.heartbeat(1);
    let heartbeat = network.queue.pop_front().unwrap();
    network.deliver(heartbeat);
    let question = network.queue.pop_front().unwrap();
    network.deliver(question);
    network.queue.pop_front().unwrap(); // the first of the entries sent again
    let repeated = network.queue.clone();
    network.queue.extend(repeated);
    network.settle();
    assert_eq!(network.engines[0].counters().resent, 32);
    assert!(network.entries(1).is_empty());
    network.heartbeat(2);
    network.settle();
    assert_eq!(network.entries(1).len(), 100);
}

#[test]
fn much_that_is_missing_comes_by_one_heartbeat() {
    let mut network = Network::engaged(2, 256);
    for _ in 0..190 {
        network.submit(b"lost");
    }
    network.queue.clear();
    network.heartbeat(1);
    network.settle();
    assert_eq!(network.entries(1), (11..=200).collect::<Vec<_>>());
    assert_eq!(network.engines[0].counters().resent, 190);
}

#[test]
fn what_the_ring_holds_no_more_is_the_hosts() {
    let mut network = Network::engaged(3, 4);
    for _ in 0..6 {
        let index = network.submit(b"x");
        network.queue.retain(|flying| flying.to != address(2));
        network.settle();
        network.engines[0].release(index).unwrap();
        network.engines[1].release(index).unwrap();
    }
    network.heartbeat(1);
    network.settle();
    assert!(network.seen[0].contains(&HostEvent::Behind(2)));
    assert_eq!(network.engines[2].registers().last_index, Index(10));
}

#[test]
fn a_follower_sends_requests_on_and_the_leader_answers_who_asked() {
    let mut network = Network::engaged(3, 8);
    let largest = vec![1; PAYLOAD_BYTES_MAX - ORIGIN_BYTES];
    network.send(client(), 1, request(1, true, &largest));
    network.settle();
    assert_eq!(network.seen[0][0], HostEvent::Entry(11, largest, None));
    assert_eq!(network.elsewhere.len(), 1);
    let answer = &network.elsewhere[0];
    assert_eq!((answer.from, answer.to), (address(0), client()));
    // One byte more does not fit behind who asked: the host sends it on.
    let larger = vec![1; PAYLOAD_BYTES_MAX - ORIGIN_BYTES + 1];
    network.send(client(), 1, request(2, true, &larger));
    network.settle();
    assert!(network.seen[1].contains(&HostEvent::Request(client(), 2, larger)));
    assert_eq!(network.engines[0].registers().last_index, Index(11));
}

#[test]
fn an_engine_that_is_off_hands_requests_to_its_host() {
    let mut network = Network::engaged(2, 8);
    network.engines[0].disengage();
    network.send(client(), 0, request(1, false, b"direct"));
    network.send(client(), 1, request(2, false, b"by way of the follower"));
    network.send(client(), 0, b"set key 0 0 1\r\nx\r\n".to_vec());
    let elsewhere = Request {
        group: quorumwire_interfaces::GroupId(8),
        session: 1,
        sequence: 3,
        blind: false,
        payload: b"another group",
    };
    let datagram = ClientPackets::new(&keys()).request(&elsewhere).unwrap();
    network.send(client(), 0, datagram);
    network.settle();
    let expected = [
        HostEvent::Request(client(), 1, b"direct".to_vec()),
        HostEvent::Foreign(b"set key 0 0 1\r\nx\r\n".to_vec()),
        HostEvent::Request(client(), 2, b"by way of the follower".to_vec()),
    ];
    assert_eq!(network.seen[0], expected);
    assert_eq!(network.engines[0].counters().reason(PacketReason::Group), 1);
    assert!(network.elsewhere.is_empty());
}

#[test]
fn a_payload_that_was_changed_on_the_way_to_the_signer_is_refused() {
    let mut network = Network::engaged(1, 8);
    let mut datagram = request(1, true, b"right");
    // The tag is right for these bytes, the checksum is not: it was made before.
    let (head, payload) = datagram.split_first_chunk_mut::<72>().unwrap();
    payload[0] ^= 1;
    let key = quorumwire_fastpath::TagKey::new([2; 16]);
    let tag = quorumwire_fastpath::tag(&key, head, payload);
    head[64..].copy_from_slice(&tag.to_be_bytes());
    network.send(client(), 0, datagram);
    network.settle();
    assert_eq!(
        network.engines[0].counters().reason(PacketReason::Checksum),
        1
    );
    assert_eq!(network.engines[0].counters().stored, 0);
}

fn rotated(epoch: u64, key: u8, other: Option<u8>) -> PlaneKeys {
    PlaneKeys {
        cluster: PlaneKeyPair {
            epoch,
            key: [key; 16],
            other: other.map(|key| [key; 16]),
        },
        ..keys()
    }
}

#[test]
fn keys_change_one_replica_at_a_time_without_a_lost_entry() {
    let mut network = Network::engaged(3, 64);
    let steps = [
        rotated(0, 1, Some(9)),
        rotated(1, 9, Some(1)),
        rotated(1, 9, None),
    ];
    for keys in steps {
        for slot in [1, 0, 2] {
            network.engines[slot].set_keys(&keys);
            network.submit(b"x");
            network.settle();
            let last = network.engines[0].registers();
            assert_eq!(last.commit_index, last.last_index);
        }
    }
    assert_eq!(network.entries(2).len(), 9);
    for engine in &network.engines {
        assert_eq!(engine.counters().reason(PacketReason::Tag), 0);
    }
}

fn refused(grant: &Grant) -> &'static str {
    let mut network = Network::new(3, 8);
    match network.engines[0].engage(grant) {
        Err(PlaneError::Refused(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn grants_that_make_no_sense_are_refused() {
    let good = grant(3, 0);
    let cases = [
        (
            Grant {
                me: 3,
                ..good.clone()
            },
            "slots",
        ),
        (
            Grant {
                leader: 3,
                ..good.clone()
            },
            "slots",
        ),
        (
            Grant {
                quorum: 1,
                ..good.clone()
            },
            "majority",
        ),
        (
            Grant {
                quorum: 4,
                ..good.clone()
            },
            "majority",
        ),
        (
            Grant {
                peers: Vec::new(),
                ..good.clone()
            },
            "slots",
        ),
        (grant(8, 0), "more than 7"),
        (
            Grant {
                commit_index: Index(11),
                ..good.clone()
            },
            "commit_index",
        ),
        (
            Grant {
                last_term: Term(6),
                ..good.clone()
            },
            "last_term",
        ),
        (
            Grant {
                last_index: Index(u64::MAX),
                ..good.clone()
            },
            "last_index",
        ),
        (
            Grant {
                group: quorumwire_interfaces::GroupId(8),
                ..good.clone()
            },
            "another group",
        ),
    ];
    for (grant, expected) in cases {
        assert!(refused(&grant).contains(expected), "{grant:?}");
    }
    let options = Options {
        group: GROUP,
        ring_slots: 8,
        window: 8,
    };
    let mut without_keys = Engine::new(options).unwrap();
    assert_eq!(
        without_keys.engage(&good),
        Err(PlaneError::Refused("keys must be set first"))
    );
    for (ring_slots, window) in [(0, 1), (3, 1), (1 << 17, 1), (8, 0), (8, 9)] {
        let options = Options {
            group: GROUP,
            ring_slots,
            window,
        };
        assert!(Engine::new(options).is_err(), "{options:?}");
    }
}

#[test]
fn a_grant_does_not_take_the_place_of_one_in_force() {
    let mut network = Network::engaged(1, 8);
    let next = Grant {
        term: Term(6),
        ..grant(1, 0)
    };
    assert_eq!(network.engines[0].engage(&next), Err(PlaneError::Engaged));
    assert_eq!(network.engines[0].term(), Term(5));
}

#[test]
fn a_new_term_begins_only_when_the_last_one_was_taken() {
    let mut network = Network::engaged(1, 8);
    network.submit(b"x");
    assert_eq!(
        network.engines[0].engage(&grant(1, 0)),
        Err(PlaneError::Engaged)
    );
    assert_eq!(network.engines[0].disengage().last_index, Index(11));
    assert!(refuses_untaken(&mut network.engines[0]));
    network.settle();
    assert_eq!(network.seen[0].len(), 2);
    assert!(!refuses_untaken(&mut network.engines[0]));
}

fn refuses_untaken(engine: &mut Engine) -> bool {
    let next = Grant {
        term: Term(6),
        last_index: Index(11),
        last_term: Term(5),
        ..grant(1, 0)
    };
    engine.engage(&next).is_err()
}

#[test]
fn only_what_was_taken_is_released() {
    let mut network = Network::engaged(1, 2);
    network.submit(b"a");
    assert!(network.engines[0].release(Index(11)).is_err());
    network.settle();
    assert_eq!(network.engines[0].release(Index(11)), Ok(()));
    assert!(network.engines[0].release(Index(12)).is_err());
}

fn piece(session: u64, number: u32, bytes: &[u8]) -> Option<Vec<u8>> {
    let request = Request {
        group: GROUP,
        session,
        sequence: 1,
        blind: false,
        payload: bytes,
    };
    ClientPackets::new(&keys()).piece(&request, number, 2)
}

/// By way of a follower and straight to the leader: the host sees who asked for each piece, and its answer
/// for one that does not complete the command says which it was.
#[test]
fn pieces_of_a_command_go_into_the_log_and_are_acknowledged_one_by_one() {
    let mut network = Network::engaged(3, 8);
    let largest = vec![1; PIECE_BYTES_MAX];
    network.send(client(), 1, piece(1, 1, &largest).unwrap());
    network.send(client(), 0, piece(1, 0, b"first").unwrap());
    network.settle();
    let stored = |number: u8, bytes: &[u8]| [&[0, 0, 0, number, 0, 0, 0, 2], bytes].concat();
    let expected = [
        HostEvent::Entry(11, stored(0, b"first"), Some(client())),
        HostEvent::Entry(12, stored(1, &largest), Some(client())),
    ];
    assert_eq!(network.seen[0][..2], expected);
    assert_eq!(network.kinds[0], [EntryKind::Fragment; 2]);
    assert!(network.elsewhere.is_empty(), "the host answers");
    network.answer(
        0,
        &Answer {
            to: client(),
            session: 1,
            sequence: 1,
            index: Index(11),
            refused: None,
            fragment: true,
            payload: &0_u32.to_be_bytes(),
        },
    );
    network.settle();
    let asking = ClientPackets::new(&keys());
    let answer = asking.answer(&network.elsewhere[0].bytes).unwrap();
    assert_eq!((answer.piece, answer.index), (Some(0), 11));
}

/// Gives a datagram the tag that it has under this key.
fn sign(datagram: &mut [u8], key: [u8; 16]) {
    let (head, payload) = datagram.split_first_chunk_mut::<72>().unwrap();
    let tag = quorumwire_fastpath::tag(&quorumwire_fastpath::TagKey::new(key), head, payload);
    head[64..].copy_from_slice(&tag.to_be_bytes());
}

#[test]
fn pieces_without_a_session_are_taken_by_nobody() {
    assert_eq!(piece(0, 0, b"x"), None, "a client makes none");
    let mut datagram = piece(1, 0, b"x").unwrap();
    datagram[48..56].fill(0); // the session
    sign(&mut datagram, keys().clients.key);
    let mut network = Network::engaged(2, 8);
    for slot in 0..2 {
        network.send(client(), slot, datagram.clone());
    }
    network.settle();
    network.engines[0].disengage();
    network.send(client(), 0, datagram);
    network.settle();
    assert!(network.seen[0].is_empty() && network.seen[1].is_empty());
    let malformed = network.engines[0]
        .counters()
        .reason(PacketReason::Malformed);
    assert_eq!(malformed, 1);
}

/// A request with these flags, rightly signed: a client's, or one that a follower sends on.
fn flagged(kind: Kind, flags: u8) -> Vec<u8> {
    let is_forward = kind == Kind::Forward;
    let term = grant(2, 0).term.0;
    let origin = [0; ORIGIN_BYTES];
    let payload = [if is_forward { &origin[..] } else { &[] }, b"x"].concat();
    let header = Header {
        magic: MAGIC,
        version: VERSION,
        kind: kind as u8,
        sender: if is_forward { 1 } else { u8::MAX },
        flags,
        payload_bytes: u16::try_from(payload.len()).unwrap(),
        payload_crc32c: crc32c::crc32c(b"x"),
        group: GROUP.0,
        term: if is_forward { term } else { 0 },
        session: 1,
        sequence: 1,
        ..Header::default()
    };
    let mut datagram = [&header.encode()[..], &payload].concat();
    let keys = keys();
    let signer = if is_forward {
        keys.cluster
    } else {
        keys.clients
    };
    sign(&mut datagram, signer.key);
    datagram
}

#[test]
fn what_only_hosts_may_say_comes_to_no_host() {
    for kind in [Kind::Request, Kind::Forward] {
        for flags in [0, FLAG_TICK, FLAG_REFUSED, FLAG_BUNDLE] {
            for is_off in [false, true] {
                let mut network = Network::engaged(2, 8);
                if is_off {
                    network.engines[0].disengage();
                }
                network.send(client(), 0, flagged(kind, flags));
                network.settle();
                let is_told = !network.seen[0].is_empty();
                assert_eq!(is_told, flags == 0, "{kind:?} {flags} {is_off}");
            }
        }
    }
}

#[test]
fn an_engine_that_is_off_hands_pieces_to_its_host_as_such() {
    let mut network = Network::engaged(1, 8);
    network.engines[0].disengage();
    network.send(client(), 0, piece(1, 0, b"x").unwrap());
    network.send(client(), 0, request(2, false, b"whole"));
    network.settle();
    assert_eq!(network.seen[0].len(), 2);
    let kinds = [EntryKind::Fragment, EntryKind::Command];
    assert_eq!(network.kinds[0], kinds);
}

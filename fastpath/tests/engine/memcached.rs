//! Memcached's `set` by UDP: what is taken, and when it is answered.
use crate::client;
use crate::network::{HostEvent, MEMCACHED, Network};
use quorumwire_fastpath::memcached_set;
use quorumwire_wire::packet::{PAYLOAD_BYTES_MAX, PacketReason};

fn datagram(request: u16, body: &[u8]) -> Vec<u8> {
    let frame = [request, 0, 1, 0].map(u16::to_be_bytes).concat();
    [&frame, body].concat()
}

fn stored(request: u16) -> Vec<u8> {
    datagram(request, b"STORED\r\n")
}

/// What the store reads for `set k 7 0 5`.
fn command(value: &[u8]) -> Vec<u8> {
    let head = [0x11, 1, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0];
    [&head, &b"k"[..], value].concat()
}

#[test]
fn a_set_is_answered_once_it_is_committed_and_not_before() {
    let mut network = Network::engaged(3, 8);
    let hello = datagram(0x1234, b"set k 7 0 5\r\nhello\r\n");
    assert!(network.take_memcached(0, client(), &hello));
    assert!(network.elsewhere.is_empty(), "nobody else has it");
    let quiet = datagram(2, b"set k 7 0 3 noreply\r\nyes\r\n");
    assert!(network.take_memcached(0, client(), &quiet));
    network.settle();
    let answers: Vec<_> = network.elsewhere.iter().map(|it| &it.bytes).collect();
    assert_eq!(answers, [&stored(0x1234)]);
    let reaches_client = |it: &crate::network::InFlight| it.to == client() && it.from == MEMCACHED;
    assert!(network.elsewhere.iter().all(reaches_client));
    network.heartbeat(1);
    network.settle();
    for slot in 0..3 {
        assert_eq!(
            network.seen[slot],
            [
                HostEvent::Entry(11, command(b"hello"), None),
                HostEvent::Entry(12, command(b"yes"), None),
                HostEvent::Committed(12),
            ],
            "{slot}"
        );
    }
    assert_eq!(network.engines[0].counters().memcached_taken, 2);
    assert_eq!(network.engines[0].counters().blind_answers, 1);
}

#[test]
fn a_set_that_must_be_durable_is_answered_when_a_quorum_says_so() {
    let mut network = Network::engaged_and_held(3, 8);
    let hello = datagram(9, b"set k 7 0 5\r\nhello\r\n");
    assert!(network.take_memcached(0, client(), &hello));
    network.settle();
    network.persisted(0, 11);
    network.settle();
    assert!(network.elsewhere.is_empty());
    network.persisted(1, 11);
    network.settle();
    assert_eq!(network.elsewhere[0].bytes, stored(9));
}

#[test]
fn only_a_leader_with_room_takes_a_set() {
    let hello = datagram(9, b"set k 7 0 5\r\nhello\r\n");
    let mut network = Network::engaged(3, 2);
    assert!(!network.take_memcached(1, client(), &hello), "a follower");
    assert!(network.take_memcached(0, client(), &hello));
    assert!(network.take_memcached(0, client(), &hello));
    assert!(!network.take_memcached(0, client(), &hello), "full");
    assert_eq!(
        network.engines[0].counters().reason(PacketReason::RingFull),
        1
    );
    network.engines[0].disengage();
    assert!(!network.take_memcached(0, client(), &hello), "off");
    // An acknowledgement that comes now commits nothing.
    network.settle();
    assert!(network.elsewhere.is_empty());
    assert_eq!(network.engines[0].counters().memcached_taken, 2);
}

#[test]
fn what_is_not_a_plain_set_that_fits_is_left_to_software() {
    let most = PAYLOAD_BYTES_MAX - command(b"").len();
    for (bytes, fits) in [(0, true), (most, true), (most + 1, false)] {
        let body = format!("set k 7 0 {bytes}\r\n{}\r\n", "v".repeat(bytes));
        let taken = memcached_set(&datagram(1, body.as_bytes()), &mut Vec::new());
        assert_eq!(taken.is_some(), fits, "{bytes}");
    }
    let longest = format!("set {} 4294967295 0 1\r\nv\r\n", "k".repeat(250));
    assert!(memcached_set(&datagram(1, longest.as_bytes()), &mut Vec::new()).is_some());
    let too_long = format!("set {} 0 0 1\r\nv\r\n", "k".repeat(251));
    for body in [
        &b""[..],
        b"set ",
        b"set k",
        b"set k 0 0",
        b"set k 0 0 1\r\n",
        b"set k 0 0 1\r\nv",
        b"set k 0 0 1\r\nv\r",
        b"set k 0 0 1\r\nvv\r\n",
        b"set k 0 0 2\r\nv\r\n",
        b"set k 0 0 1\r\nv\r\nx",
        b"set k 0 0 1\nv\r\n",
        b"set k 0 0 1 1\r\nv\r\n",
        b"set k 0 0 1 noreply \r\nv\r\n",
        b"set k 0 0 1 noreplies\r\nv\r\n",
        b"set k 0 0 -1\r\nv\r\n",
        b"set k 4294967296 0 1\r\nv\r\n",
        b"set k -1 0 1\r\nv\r\n",
        b"set k 0 1 1\r\nv\r\n",
        b"set k 0 -1 1\r\nv\r\n",
        b"set k 0 00000000000 1\r\nv\r\n",
        b"set k 0 - 1\r\nv\r\n",
        b"set  k 0 0 1\r\nv\r\n",
        b" set k 0 0 1\r\nv\r\n",
        b"set k\x7f 0 0 1\r\nv\r\n",
        b"set k\x01 0 0 1\r\nv\r\n",
        b"add k 0 0 1\r\nv\r\n",
        b"get k\r\n",
        too_long.as_bytes(),
    ] {
        let taken = memcached_set(&datagram(1, body), &mut Vec::new());
        assert_eq!(taken, None, "{:?}", String::from_utf8_lossy(body));
    }
    let good = datagram(1, b"set k 0 0 1\r\nv\r\n");
    assert!(memcached_set(&good, &mut Vec::new()).is_some());
    for place in 2..8 {
        let mut bad = good.clone();
        bad[place] ^= 1;
        assert_eq!(memcached_set(&bad, &mut Vec::new()), None, "byte {place}");
    }
    for bytes in 0..good.len() {
        assert_eq!(memcached_set(&good[..bytes], &mut Vec::new()), None);
    }
}

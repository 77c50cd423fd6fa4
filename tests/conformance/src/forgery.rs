//! Packets that are not from whom they say, or not of this term or group; and keys that change.
use crate::Fabric;
use crate::cluster::{Cluster, GROUP, START, TERM, keys};
use crate::faults::Dice;
use crate::forge::{header, sign, signed};
use quorumwire_fastpath::{ClientPackets, Request};
use quorumwire_interfaces::{PlaneKeyPair, PlaneKeys, Registers};
use quorumwire_wire::packet::{HEADER_BYTES, Header, Kind};

/// Packets tried with changed bits.
const FLIPPED: usize = 4000;

fn all_registers<F: Fabric>(cluster: &mut Cluster<F>) -> Vec<Registers> {
    let slots = 0..cluster.hosts.len();
    slots.map(|slot| cluster.registers(slot)).collect()
}

/// Sends a datagram to a plane; it must move nothing and be answered by nothing.
fn expect_nothing<F: Fabric>(cluster: &mut Cluster<F>, slot: usize, bytes: &[u8]) {
    let before = all_registers(cluster);
    let entries = cluster.hosts[slot].entries.len();
    cluster.fabric.send_from_outside(slot, bytes);
    cluster.poll(slot);
    assert_eq!(all_registers(cluster), before, "moved by {bytes:02x?}");
    assert!(
        cluster.collect().is_empty(),
        "spoke because of {bytes:02x?}"
    );
    assert!(
        cluster.fabric.receive_outside().is_none(),
        "answered {bytes:02x?}"
    );
    assert_eq!(cluster.hosts[slot].entries.len(), entries);
    assert!(cluster.hosts[slot].requests.is_empty());
}

/// Real packets, one for each kind, that would be taken.
fn templates<F: Fabric>(cluster: &mut Cluster<F>) -> Vec<(usize, Vec<u8>)> {
    let last = cluster.registers(0).last_index.0;
    let cluster_key = keys().cluster.key;
    let round = |header| Header {
        sequence: 1,
        ..header
    };
    let next = cluster.registers(1).last_index.0 + 1;
    let append = header(Kind::Append, 0, next);
    let heartbeat = round(header(Kind::Heartbeat, 0, last));
    let promise = round(header(Kind::AppendOk, 1, last));
    let missing = round(header(Kind::Retransmit, 1, last));
    let request = Request {
        group: GROUP,
        session: 1,
        sequence: 1,
        blind: true,
        payload: b"forged",
    };
    vec![
        (1, signed(&append, b"forged", cluster_key)),
        (1, signed(&heartbeat, &[], cluster_key)),
        (0, signed(&promise, &[], cluster_key)),
        (0, signed(&missing, &[], cluster_key)),
        (
            0,
            ClientPackets::new(&keys())
                .request(&request)
                .expect("short"),
        ),
        (
            1,
            ClientPackets::new(&keys())
                .request(&request)
                .expect("short"),
        ),
    ]
}

fn warmed_up<F: Fabric>() -> Cluster<F> {
    let mut cluster = Cluster::<F>::engaged(3);
    cluster.submit(b"a").expect("room");
    cluster.settle();
    cluster.fabric.plane(0).heartbeat(1).expect("it leads");
    cluster.settle();
    cluster
}

/// Other keys, changed bits, cut and lengthened packets: none is taken, none is answered.
pub fn nothing_forged_is_taken_or_answered<F: Fabric>() {
    let mut dice = Dice::new();
    let mut cluster = warmed_up::<F>();
    // An entry that nobody has acknowledged.
    cluster.submit(b"b").expect("room");
    cluster.collect();
    cluster.poll(0);
    let templates = templates(&mut cluster);
    for (slot, bytes) in &templates {
        // The key of the other kind, one that nobody has, and none.
        for key in [keys().clients.key, keys().cluster.key, [0; 16], [0x33; 16]] {
            let mut other = bytes.clone();
            sign(&mut other, key);
            if other != *bytes {
                expect_nothing(&mut cluster, *slot, &other);
            }
        }
        for left in [2, 8, HEADER_BYTES - 1] {
            expect_nothing(&mut cluster, *slot, &bytes[..left]);
        }
        expect_nothing(&mut cluster, *slot, &[&bytes[..], &[0]].concat());
    }
    for number in 0..FLIPPED {
        let (slot, bytes) = &templates[number % templates.len()];
        let mut wrong = bytes.clone();
        for _ in 0..=dice.below(3) {
            // The first two bytes stay: without them it is another protocol's.
            let at = 2 + dice.below(wrong.len() - 2);
            wrong[at] ^= 1 << dice.below(8);
        }
        if wrong != *bytes {
            expect_nothing(&mut cluster, *slot, &wrong);
        }
    }
    // What was forged would have been taken with the right tag.
    for (slot, bytes) in &templates {
        let before = all_registers(&mut cluster);
        cluster.fabric.send_from_outside(*slot, bytes);
        cluster.poll(*slot);
        let moved = all_registers(&mut cluster) != before;
        assert!(moved || !cluster.collect().is_empty(), "{bytes:02x?}");
    }
}

/// Rightly signed, but the command is not the one its checksum was made of.
pub fn a_command_with_a_wrong_checksum_is_not_taken<F: Fabric>() {
    let mut cluster = warmed_up::<F>();
    let keys = keys();
    let origin = [&[0; 10][..], &[0xff, 0xff, 10, 0, 0, 1, 1, 1]].concat();
    for bytes in [1, 7, 8, 9, 64, 1000] {
        let payload = vec![7; bytes];
        let mut request = signed(&header(Kind::Request, 255, 0), &payload, keys.clients.key);
        let checksum = Header::decode(request.first_chunk().expect("a header")).payload_crc32c;
        request[HEADER_BYTES + bytes - 1] ^= 1;
        sign(&mut request, keys.clients.key);
        // At the leader, and at a follower that would send it on.
        for slot in [0, 1] {
            expect_nothing(&mut cluster, slot, &request);
        }
        // Sent on, the checksum still is the command's, without who asked.
        let forward = [&origin, &payload[..]].concat();
        let mut forward = signed(&header(Kind::Forward, 1, 0), &forward, keys.cluster.key);
        expect_nothing(&mut cluster, 0, &forward);
        let sound = Header {
            payload_crc32c: checksum,
            ..Header::decode(forward.first_chunk().expect("a header"))
        };
        forward[..HEADER_BYTES].copy_from_slice(&sound.encode());
        sign(&mut forward, keys.cluster.key);
        let before = cluster.registers(0).last_index.0;
        cluster.fabric.send_from_outside(0, &forward);
        cluster.settle();
        assert_eq!(cluster.registers(0).last_index.0, before + 1);
    }
}

/// Rightly signed, by a member or not, but not by whom such a packet comes from.
pub fn strangers_move_nothing<F: Fabric>() {
    let mut cluster = warmed_up::<F>();
    let last = cluster.registers(0).last_index.0;
    let key = keys().cluster.key;
    for kind in [
        Kind::AppendOk,
        Kind::HeartbeatOk,
        Kind::Retransmit,
        Kind::Forward,
    ] {
        for sender in [0, 3, 6, 7, 254, 255] {
            let payload: &[u8] = if kind == Kind::Forward { &[0; 20] } else { &[] };
            let packet = signed(&header(kind, sender, last), payload, key);
            expect_nothing(&mut cluster, 0, &packet);
        }
    }
    for kind in [Kind::Append, Kind::Heartbeat] {
        for sender in [1, 2, 3, 7, 255] {
            let packet = signed(&header(kind, sender, last + 1), &[], key);
            expect_nothing(&mut cluster, 1, &packet);
        }
        // Nor does a leader take another's word, its own least of all.
        for sender in [0, 1] {
            let packet = signed(&header(kind, sender, last + 1), &[], key);
            expect_nothing(&mut cluster, 0, &packet);
        }
    }
    let as_client = signed(&header(Kind::Request, 1, 0), b"x", keys().clients.key);
    expect_nothing(&mut cluster, 0, &as_client);
    // Promises of what was never assigned, and answers to rounds that were never sent.
    let beyond = header(Kind::AppendOk, 1, last + 1);
    expect_nothing(&mut cluster, 0, &signed(&beyond, &[], key));
    let unsent = Header {
        sequence: 2,
        ..header(Kind::HeartbeatOk, 1, last)
    };
    expect_nothing(&mut cluster, 0, &signed(&unsent, &[], key));
}

/// Everything else is right about them.
pub fn other_terms_and_groups_move_nothing<F: Fabric>() {
    let mut cluster = warmed_up::<F>();
    let last = cluster.registers(0).last_index.0;
    let key = keys().cluster.key;
    let to_follower = [
        header(Kind::Append, 0, last + 1),
        header(Kind::Heartbeat, 0, last),
    ];
    let to_leader = [
        header(Kind::AppendOk, 1, last),
        header(Kind::Retransmit, 1, last),
    ];
    let all = to_follower.map(|packet| (1, packet)).into_iter();
    for (slot, packet) in all.chain(to_leader.map(|packet| (0, packet))) {
        for term in [0, TERM.0 - 1, TERM.0 + 1, u64::MAX] {
            let other = Header { term, ..packet };
            expect_nothing(&mut cluster, slot, &signed(&other, b"", key));
        }
        let group = GROUP.0 + 1;
        let other = Header { group, ..packet };
        expect_nothing(&mut cluster, slot, &signed(&other, b"", key));
    }
    // Another history before the next entry.
    let other = Header {
        previous_term: TERM.0 - 1,
        ..header(Kind::Append, 0, last + 1)
    };
    expect_nothing(&mut cluster, 1, &signed(&other, b"", key));
    // What software has moved.
    expect_nothing(
        &mut cluster,
        1,
        &signed(&header(Kind::Append, 0, START), b"", key),
    );
}

fn pair(epoch: u64, key: u8, other: Option<u8>) -> PlaneKeyPair {
    PlaneKeyPair {
        epoch,
        key: [key; 16],
        other: other.map(|key| [key; 16]),
    }
}

/// Three steps, one replica after the other, while commands and requests go on: none is lost or refused,
/// and in the end the old keys open nothing.
pub fn keys_rotate_under_load<F: Fabric>() {
    let mut cluster = Cluster::<F>::engaged(3);
    let steps = [
        (pair(0, 0x11, Some(0x44)), pair(0, 0x22, Some(0x55))),
        (pair(1, 0x44, Some(0x11)), pair(1, 0x55, Some(0x22))),
        (pair(1, 0x44, None), pair(1, 0x55, None)),
    ];
    let mut submitted = 0;
    for (step, (between, clients)) in steps.into_iter().enumerate() {
        let next = PlaneKeys {
            cluster: between,
            clients,
        };
        for slot in [2, 0, 1] {
            cluster.fabric.plane(slot).set_keys(&next);
            // Clients change when all replicas know the next key.
            let client_keys = if step == 0 { keys() } else { next };
            let request = Request {
                group: GROUP,
                session: 1,
                sequence: submitted + 1,
                blind: true,
                payload: b"asked",
            };
            let asking = ClientPackets::new(&client_keys);
            let datagram = asking.request(&request).expect("short");
            cluster.fabric.send_from_outside(0, &datagram);
            cluster.submit(b"submitted").expect("room");
            cluster.settle();
            submitted += 2;
            assert_eq!(cluster.registers(0).commit_index.0, START + submitted);
            let answer = cluster.fabric.receive_outside().expect("an answer");
            assert!(asking.answer(&answer).is_ok(), "step {step}, slot {slot}");
        }
    }
    cluster.fabric.plane(0).heartbeat(1).expect("it leads");
    cluster.settle();
    let count = usize::try_from(submitted).expect("a small number");
    cluster.assert_all_committed(count);
    let last = cluster.registers(0).last_index.0;
    let old = signed(&header(Kind::AppendOk, 1, last), &[], keys().cluster.key);
    expect_nothing(&mut cluster, 0, &old);
}

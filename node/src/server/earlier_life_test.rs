//! What was recorded in an earlier cluster of the same name and secret does nothing in the next: whoever
//! recorded it knows no key. Without TLS, over real sockets.
use crate::keys::{ClusterKeys, SecretFile};
use quorumwire_client::planes::{Requests, Settings, lineage};
use quorumwire_interfaces::{
    Command, DataPlane, EntryKind, Grant, GroupId, Index, Lineage, PlaneEvent, PlanePeer,
    Registers, ReplicaId, Term,
};
use quorumwire_plane_socket::{Options, SocketPlane, endpoint_at};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};

const FRAMES: usize = 3;
const DEADLINE: Duration = Duration::from_secs(10);

fn secret() -> ClusterKeys {
    let text = format!(
        "use = 1\n[[secret]]\nepoch = 1\nhex = \"{}\"\n",
        "07".repeat(32)
    );
    let file = SecretFile::parse(&text, Path::new("secret.toml")).unwrap();
    file.keys("quorumwire").unwrap()
}

fn plane(lineage: Lineage) -> SocketPlane {
    let options = Options {
        group: GroupId(1),
        ring_slots: 128,
        window: 128,
    };
    let mut plane = SocketPlane::bind("127.0.0.1:0".parse().unwrap(), options).unwrap();
    plane.set_keys(&secret().for_planes(lineage));
    plane
}

/// Every life of the cluster begins alike: the same terms, the same indexes.
fn engage(plane: &mut SocketPlane, me: u8, others: SocketAddr) {
    let own = plane.local_address().unwrap();
    let peer = |slot: u8| PlanePeer {
        id: ReplicaId(u16::from(slot)),
        endpoint: Some(endpoint_at(if slot == me { own } else { others })),
    };
    let grant = Grant {
        group: GroupId(1),
        term: Term(2),
        last_index: Index(2),
        last_term: Term(2),
        commit_index: Index(2),
        me,
        leader: 0,
        peers: (0..3).map(peer).collect(),
        quorum: 2,
        held: false,
    };
    plane.engage(&grant).unwrap();
}

/// What a leader's plane says to a follower that somebody listens in place of.
fn recorded(lineage: Lineage) -> Vec<Vec<u8>> {
    let follower = UdpSocket::bind("127.0.0.1:0").unwrap();
    follower.set_read_timeout(Some(DEADLINE)).unwrap();
    let mut leader = plane(lineage);
    engage(&mut leader, 0, follower.local_addr().unwrap());
    let mut frames = Vec::new();
    while frames.len() < FRAMES {
        let command = Command {
            kind: EntryKind::Command,
            session: 0,
            sequence: 0,
            payload: b"of the earlier life",
        };
        leader.submit(&[command]).unwrap();
        let mut bytes = vec![0; 2048];
        let (count, _) = follower.recv_from(&mut bytes).unwrap();
        bytes.truncate(count);
        if !frames.contains(&bytes) {
            frames.push(bytes);
        }
    }
    frames
}

/// What these do to a follower's plane: its registers, and how many it has refused for their tag.
fn replayed(frames: &[Vec<u8>], lineage: Lineage) -> (Registers, u64) {
    let attacker = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut follower = plane(lineage);
    engage(&mut follower, 1, attacker.local_addr().unwrap());
    for frame in frames {
        let to = follower.local_address().unwrap();
        attacker.send_to(frame, to).unwrap();
    }
    let begun = Instant::now();
    loop {
        follower.poll(16, &mut |_| {});
        let registers = follower.registers();
        let mut refused = 0;
        let shown: &dyn DataPlane = &follower;
        shown.counters(&mut |counter, count| {
            refused += if counter.name.ends_with("tag") {
                count
            } else {
                0
            };
        });
        let stored = registers.last_index.0 - 2;
        if stored + refused >= FRAMES as u64 {
            return (registers, refused);
        }
        assert!(
            begun.elapsed() < DEADLINE,
            "{stored} stored, {refused} refused"
        );
    }
}

#[test]
fn entries_recorded_in_an_earlier_life_are_not_stored_in_the_next() {
    let (earlier, next) = (Lineage(0xa), Lineage(0xb));
    let frames = recorded(earlier);
    // In their own life they are what they are.
    let (registers, refused) = replayed(&frames, earlier);
    assert_eq!(
        (registers.last_index, refused),
        (Index(2 + FRAMES as u64), 0)
    );
    for lineage in [next, Lineage::default()] {
        let (registers, refused) = replayed(&frames, lineage);
        assert_eq!((registers.last_index, refused), (Index(2), FRAMES as u64));
        assert_eq!(registers.commit_index, Index(2));
    }
    // Nor are those of a cluster that had no number taken by one that has.
    let (registers, _) = replayed(&recorded(Lineage::default()), next);
    assert_eq!(registers.last_index, Index(2));
}

/// A client's request goes to a plane that is off, which hands it to its host: how many it has handed over,
/// and how many it has refused for their tag.
fn taken(request: &[u8], lineage: Lineage) -> (u64, u64) {
    let attacker = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut replica = plane(lineage);
    let to = replica.local_address().unwrap();
    attacker.send_to(request, to).unwrap();
    let begun = Instant::now();
    loop {
        let mut requests = 0;
        replica.poll(16, &mut |event| {
            requests += u64::from(matches!(event, PlaneEvent::Request { .. }));
        });
        let mut refused = 0;
        let shown: &dyn DataPlane = &replica;
        shown.counters(&mut |counter, count| {
            refused += if counter.name.ends_with("tag") {
                count
            } else {
                0
            };
        });
        if requests + refused > 0 {
            return (requests, refused);
        }
        assert!(begun.elapsed() < DEADLINE);
    }
}

#[test]
fn a_clients_request_recorded_in_an_earlier_life_is_not_taken_in_the_next() {
    let (earlier, next) = (Lineage(0xa), Lineage(0xb));
    let file = secret().of_clients_files();
    let recorded = |lineage| {
        let replica = SocketAddr::from(([127, 0, 0, 1], 1));
        let mut settings = Settings::new(vec![replica], file);
        settings.group = GroupId(1);
        let mut client = Requests::new(settings, 1);
        let now = Duration::ZERO;
        client
            .submit(now, b"of the earlier life", false)
            .expect("short");
        let (_, question) = client.out.pop().expect("it asks which cluster this is");
        let told = lineage::tell(&file, &question, lineage).expect("it has the key");
        client.receive(now, replica, &told);
        let (_, request) = client.out.pop().expect("it knows now");
        request
    };
    assert_eq!(taken(&recorded(earlier), earlier), (1, 0));
    assert_eq!(taken(&recorded(earlier), next), (0, 1));
    // Before the cluster had a number, clients signed with what their file says.
    assert_eq!(taken(&recorded(Lineage::default()), next), (0, 1));
    assert_eq!(taken(&recorded(next), Lineage::default()), (0, 1));
}

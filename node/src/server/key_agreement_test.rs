//! Which key a plane has: the one of its fast term and leader, or one that nobody else knows. The plane is a
//! few lines here, and shows what it was given.
use super::*;
use crate::keys::{ClusterKeys, SecretFile};
use crate::server::kv::Core;
use crate::server::plane::plane_options;
use crate::server::plane_turn::tests::core_of_one;
use quorumwire_client::planes::lineage;
use quorumwire_control::LeaveReason;
use quorumwire_group::{KeyRefusal, Known, TERM_KEY_BYTES, TermKeys};
use quorumwire_interfaces::{
    Answer, Command, CounterSink, DataPlane, Endpoint, Grant, GroupId, Incarnation, Index, Limits,
    Lineage, PlaneError, PlaneEvent, PlaneKeys, Registers, ReplicaId,
};
use quorumwire_wire::peer::FastTermKey;
use quorumwire_wire::{CommitQuorum, Member, MemberRole, Membership};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

const TERM: Term = Term(7);
const KEY: [u8; TERM_KEY_BYTES] = [0x5a; TERM_KEY_BYTES];

fn peer(id: u16) -> Peer {
    Peer {
        id: ReplicaId(id),
        incarnation: Incarnation(u64::from(id) + 1),
    }
}

fn membership(roles: &[(u16, MemberRole)]) -> Membership {
    let member = |(id, role): &(u16, MemberRole)| Member {
        id: ReplicaId(*id),
        incarnation: peer(*id).incarnation,
        peer_address: String::new(),
        role: *role,
    };
    Membership {
        members: roles.iter().map(member).collect(),
        quorum: CommitQuorum::Majority,
        lineage: Lineage::default(),
    }
}

fn three() -> Membership {
    membership(&[0, 1, 2].map(|id| (id, MemberRole::Voter)))
}

/// What the test sees of the plane.
#[derive(Default)]
struct Inside {
    given: Vec<PlaneKeys>,
    engaged: Vec<Term>,
    /// The keys it had when it was told to stop.
    stopped_with: Option<PlaneKeys>,
    refuses: bool,
    /// Datagrams of others that wait, and those that the host has sent.
    foreign: Vec<Vec<u8>>,
    sent: Vec<Vec<u8>>,
}

#[derive(Clone, Default)]
struct Shown(Arc<Mutex<Inside>>);

impl Shown {
    fn keys(&self) -> PlaneKeys {
        *self
            .0
            .lock()
            .unwrap()
            .given
            .last()
            .expect("keys were given")
    }

    fn engaged(&self) -> Vec<Term> {
        self.0.lock().unwrap().engaged.clone()
    }
}

impl DataPlane for Shown {
    fn limits(&self) -> Limits {
        Limits {
            payload_bytes_max: 1024,
            replicas_max: 7,
            ring_slots: 64,
            authenticates: true,
        }
    }

    fn set_keys(&mut self, keys: &PlaneKeys) {
        self.0.lock().unwrap().given.push(*keys);
    }

    fn engage(&mut self, grant: &Grant) -> Result<(), PlaneError> {
        let mut inside = self.0.lock().unwrap();
        if inside.refuses {
            return Err(PlaneError::Refused("it was told to"));
        }
        inside.engaged.push(grant.term);
        Ok(())
    }

    fn disengage(&mut self) -> Registers {
        let mut inside = self.0.lock().unwrap();
        inside.stopped_with = inside.given.last().copied();
        Registers::default()
    }

    fn set_peer(&mut self, _: u8, _: &Endpoint) {}

    fn registers(&self) -> Registers {
        Registers::default()
    }

    fn submit(&mut self, _: &[Command<'_>]) -> Result<(Index, usize), PlaneError> {
        Err(PlaneError::NotEngaged)
    }

    fn heartbeat(&mut self, _: u64) -> Result<(), PlaneError> {
        Ok(())
    }

    fn poll(&mut self, _: usize, sink: &mut dyn FnMut(PlaneEvent<'_>)) -> usize {
        let foreign = std::mem::take(&mut self.0.lock().unwrap().foreign);
        for bytes in &foreign {
            sink(PlaneEvent::Foreign {
                from: SocketAddr::from(([192, 0, 2, 1], 1)),
                bytes,
            });
        }
        foreign.len()
    }

    fn persisted(&mut self, _: Index) -> Result<(), PlaneError> {
        Ok(())
    }

    fn release(&mut self, _: Index) -> Result<(), PlaneError> {
        Ok(())
    }

    fn answer(&mut self, _: &Answer<'_>) {}

    fn send_foreign(&mut self, _: SocketAddr, bytes: &[u8]) {
        self.0.lock().unwrap().sent.push(bytes.to_vec());
    }

    fn counters(&self, _: CounterSink<'_>) {}
}

/// The keys of a cluster's secret file with these two secrets, of which this one is used.
fn from_file(in_use: u32) -> ClusterKeys {
    let secret = |epoch: u32| {
        let hex = format!("{epoch:02x}").repeat(32);
        format!("[[secret]]\nepoch = {epoch}\nhex = \"{hex}\"\n")
    };
    let text = format!("use = {in_use}\n{}{}", secret(1), secret(2));
    let file = SecretFile::parse(&text, Path::new("secret.toml")).unwrap();
    file.keys("test").unwrap()
}

/// Replica 0 with a plane; whether replicas agree on keys.
fn core(agrees: bool) -> (Core, Shown) {
    let mut core = core_of_one();
    let shown = Shown::default();
    let own = Box::new(shown.clone());
    let endpoint = Endpoint::new("shown").unwrap();
    let mut plane = Plane::new(
        own,
        plane_options(GroupId(0), endpoint.clone(), false, 0, |_| 0),
    );
    let mut hosting = Hosting::new("shown", endpoint);
    core.group.term_keys = agrees.then(|| TermKeys::new(random_key().unwrap()));
    if let Some(keys) = &core.group.term_keys {
        hosting.agree(&mut plane, keys.pair());
    }
    hosting.set_keys(&mut plane, &from_file(1));
    core.group.plane = Some(plane);
    core.hosting = Some(hosting);
    (core, shown)
}

/// To be engaged for one of three.
fn engage(term: Term, leader: u8) -> Engage {
    Engage {
        group: GroupId(0),
        term,
        last_index: Index(0),
        last_term: Term(0),
        commit_index: Index(0),
        me: 0,
        leader,
        voters: vec![peer(0), peer(1), peer(2)],
        quorum: 2,
    }
}

/// Replica 1 has sent its key of this term.
fn give(core: &mut Core, term: Term, key: [u8; TERM_KEY_BYTES]) {
    let members = three();
    let known = Known {
        term: Term(0),
        leader: None,
        membership: &members,
    };
    let keys = core.group.term_keys.as_mut().unwrap();
    assert_eq!(keys.take((peer(1), term), &key, &known), Ok(()));
}

fn stop(core: &mut Core) {
    core.disengage_plane(LeaveReason::Software);
}

#[test]
fn who_has_no_key_of_the_leader_is_not_engaged() {
    let (mut core, shown) = core(true);
    let outside = shown.keys();
    core.engage_plane(&engage(TERM, 1));
    assert_eq!(shown.engaged(), [], "none came");
    give(&mut core, Term(TERM.0 - 1), KEY);
    core.engage_plane(&engage(TERM, 1));
    assert_eq!(shown.engaged(), [], "that of the term before");
    give(&mut core, TERM, KEY);
    core.engage_plane(&engage(TERM, 2));
    assert_eq!(shown.engaged(), [], "that of another candidate");
    assert_eq!(core.counters.term_keys.missing, 3);
    assert!(shown.keys() == outside);

    give(&mut core, TERM, KEY);
    core.engage_plane(&engage(TERM, 1));
    assert_eq!(shown.engaged(), [TERM]);
    assert_eq!(shown.keys().cluster.key, KEY);
    assert_eq!(core.counters.term_keys.missing, 3);
}

/// Packets that are still on their way when the fence begins are not checked with it any more.
#[test]
fn a_key_is_gone_before_the_plane_is_stopped() {
    let (mut core, shown) = core(true);
    let outside = shown.keys();
    give(&mut core, TERM, KEY);
    core.engage_plane(&engage(TERM, 1));
    stop(&mut core);
    let stopped_with = shown.0.lock().unwrap().stopped_with;
    assert!(stopped_with == Some(outside));
    // Nor does a plane keep one that would not be engaged.
    shown.0.lock().unwrap().refuses = true;
    give(&mut core, Term(9), KEY);
    core.engage_plane(&engage(Term(9), 1));
    assert_eq!(shown.engaged(), [TERM]);
    assert!(shown.keys() == outside);
}

#[test]
fn each_fast_term_that_it_leads_has_a_key_of_its_own() {
    let (mut core, shown) = core(true);
    let mut seen = vec![shown.keys().cluster.key];
    for term in [7, 9, 10] {
        core.engage_plane(&engage(Term(term), 0));
        let pair = shown.keys().cluster;
        assert_eq!((pair.epoch, pair.other), (term, None));
        assert!(!seen.contains(&pair.key));
        seen.push(pair.key);
        stop(&mut core);
    }
    assert_eq!(shown.engaged(), [Term(7), Term(9), Term(10)]);
    assert_eq!(core.counters.term_keys.drawn, 3);
    let files = from_file(1).accepted;
    assert!(
        files
            .iter()
            .all(|it| !seen.contains(&it.between_replicas(Lineage::default())))
    );
}

#[test]
fn a_new_secret_changes_what_clients_sign_with_and_nothing_else() {
    let (mut core, shown) = core(true);
    let secrets = from_file(1);
    let file = secrets.for_planes(Lineage::default());
    assert!(shown.keys().clients == file.clients);
    assert!(shown.keys().cluster.key != file.cluster.key);
    assert!(shown.keys().cluster.other.is_none());
    for is_engaged in [false, true] {
        if is_engaged {
            give(&mut core, TERM, KEY);
            core.engage_plane(&engage(TERM, 1));
        }
        let between = shown.keys().cluster;
        for in_use in [2, 1] {
            let secrets = from_file(in_use);
            let (plane, hosting) = core.hosted().unwrap();
            hosting.set_keys(plane, &secrets);
            assert!(shown.keys().clients == secrets.for_planes(Lineage::default()).clients);
            assert!(shown.keys().cluster == between);
        }
    }
    stop(&mut core);
    assert!(shown.keys().clients == file.clients);
}

#[test]
fn without_tls_all_keys_are_the_files() {
    let (mut core, shown) = core(false);
    let file = from_file(1).for_planes(Lineage::default());
    core.engage_plane(&engage(TERM, 1));
    assert_eq!(shown.engaged(), [TERM], "no other key is needed");
    stop(&mut core);
    core.engage_plane(&engage(Term(9), 0));
    assert_eq!(shown.engaged(), [TERM, Term(9)]);
    let given = shown.0.lock().unwrap().given.clone();
    assert!(given == [file], "once, at the start");
    let key = FastTermKey {
        key: KEY.to_vec().into(),
    };
    core.take_term_key(peer(1), 11, &key);
    assert_eq!(dropped(&core), [1, 0, 0, 0, 0], "unexpected");
    assert_eq!(core.counters.term_keys.missing, 0);
}

#[test]
fn without_tls_each_lineage_has_keys_of_its_own() {
    let (mut own, shown) = core(false);
    let mut seen = vec![shown.keys().cluster];
    for lineage in [0xa, 0xb].map(Lineage) {
        let (plane, hosting) = own.hosted().unwrap();
        hosting.set_lineage(plane, lineage);
        assert!(shown.keys() == from_file(1).for_planes(lineage));
        let (key, other) = (shown.keys().cluster.key, shown.keys().cluster.other);
        let is_new = |key| !seen.iter().any(|it| it.key == key || it.other == Some(key));
        assert!(is_new(key) && is_new(other.unwrap()) && Some(key) != other);
        let (key, other) = (shown.keys().clients.key, shown.keys().clients.other);
        assert!(is_new(key) && is_new(other.unwrap()) && Some(key) != other);
        seen.extend([shown.keys().cluster, shown.keys().clients]);
    }
    // A rotation keeps to it.
    let (plane, hosting) = own.hosted().unwrap();
    hosting.set_keys(plane, &from_file(2));
    assert!(shown.keys() == from_file(2).for_planes(Lineage(0xb)));
    // With keys that replicas agree on it is not asked for.
    let (mut own, shown) = core(true);
    let agreed = shown.keys().cluster;
    let (plane, hosting) = own.hosted().unwrap();
    hosting.set_lineage(plane, Lineage(0xa));
    assert!(shown.keys().cluster == agreed);
}

/// Keys that were not kept: unexpected, malformed, strangers', of an old term, not the leader's.
fn dropped(core: &Core) -> [u64; 5] {
    [
        KeyRefusal::Unexpected,
        KeyRefusal::Malformed,
        KeyRefusal::Stranger,
        KeyRefusal::OldTerm,
        KeyRefusal::NotLeader,
    ]
    .map(|why| core.counters.term_keys.dropped.of(why))
}

/// Replica 0 knows no members here, so all are strangers to it.
#[test]
fn a_key_that_is_not_kept_is_counted_by_its_reason() {
    let (mut core, _) = core(true);
    for bytes in [&KEY[..], &KEY[1..]] {
        let key = FastTermKey {
            key: bytes.to_vec().into(),
        };
        core.take_term_key(peer(1), TERM.0, &key);
    }
    assert_eq!(dropped(&core), [0, 1, 1, 0, 0]);
    core.group.plane = None;
    let key = FastTermKey::default();
    core.take_term_key(peer(1), TERM.0, &key);
    assert_eq!(dropped(&core), [1, 1, 1, 0, 0]);
    assert_eq!(core.counters.term_keys.kept, 0);
}

/// What is sent when these datagrams have come, and what is counted: told, not listed, not authentic, full,
/// unknown.
fn asked(
    core: &mut Core,
    shown: &Shown,
    was_listed: bool,
    foreign: Vec<Vec<u8>>,
) -> (Vec<Vec<u8>>, [u64; 5]) {
    shown.0.lock().unwrap().foreign = foreign;
    let (plane, hosting) = core.hosted().unwrap();
    plane.poll();
    hosting.tell_lineage(plane, was_listed);
    let (questions, plane) = (hosting.questions(), plane.counters());
    let counted = [
        questions.told,
        questions.not_listed,
        questions.not_authentic,
        plane.foreign_dropped_full,
        plane.foreign_dropped_unknown,
    ];
    let sent = std::mem::take(&mut shown.0.lock().unwrap().sent);
    (sent, counted)
}

#[test]
fn clients_are_told_the_lineage_by_members_and_only_those_with_the_key() {
    let (mut core, shown) = core(true);
    let (plane, hosting) = core.hosted().unwrap();
    hosting.set_lineage(plane, Lineage(0xa));
    let file = from_file(1).of_clients_files();
    let question = [3; 16];
    let ask = lineage::ask(&file, question).to_vec();
    let (sent, counters) = asked(&mut core, &shown, false, vec![ask.clone()]);
    assert_eq!((sent, counters), (vec![], [0, 1, 0, 0, 0]), "no member yet");
    let mut wrong = ask.clone();
    wrong[20] ^= 1;
    let foreign = vec![ask.clone(), wrong, b"get x\r\n".to_vec(), vec![0; 65]];
    let (sent, counters) = asked(&mut core, &shown, true, foreign);
    assert_eq!(counters, [1, 1, 1, 0, 2]);
    let told: Vec<_> = sent
        .iter()
        .map(|it| lineage::told(&file, it, question))
        .collect();
    assert_eq!(told, [Some(Lineage(0xa))]);
    // Many at once are not all looked at, and others take nobody's room.
    let mut many = vec![b"x".to_vec(); 100];
    many.extend(vec![ask; 100]);
    let (sent, counters) = asked(&mut core, &shown, true, many);
    assert_eq!((sent.len(), counters), (64, [65, 1, 1, 36, 102]));
}

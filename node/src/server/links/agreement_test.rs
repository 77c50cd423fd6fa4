//! Who belongs together, over real sockets: replica 1 comes to replica 0.
use super::super::tests::{DEADLINE, Host};
use super::*;
use crate::server::hellos::Hellos;
use quorumwire_group::Peers;
use quorumwire_wire::peer::peer_message::Body;
use quorumwire_wire::prost::Message as _;
use quorumwire_wire::{FrameHeader, hello};
use std::io::Read as _;
use std::net::TcpStream;

const OURS: Lineage = Lineage(0xa);
const THEIRS: Lineage = Lineage(0xb);
/// The life in which replica 1 is a member.
const MEMBER: u64 = 5;

/// Replica 0 of a cluster that runs.
fn host() -> Host {
    let mut host = Host::start();
    host.links.set_cluster(OURS, true, &mut Vec::new());
    host
}

fn hello_of(incarnation: u64, lineage: Lineage, memory: Memory) -> peer::Hello {
    peer::Hello {
        lineage: lineage_to_proto(lineage),
        memory: memory.into(),
        ..hello("test", 1, incarnation)
    }
}

fn is_let_in(host: &mut Host, hello: &peer::Hello) -> bool {
    let refused_before = host.links.counters.closed_handshake_refused;
    let _stream = host.connect_as(hello);
    host.turn_while(|links, told| {
        let up = told.iter().any(|event| matches!(event, LinkEvent::Up(..)));
        !up && links.counters.closed_handshake_refused == refused_before
    });
    host.links.counters.closed_handshake_refused == refused_before
}

/// The goodbye that was said to whoever has connected.
fn goodbye(mut stream: TcpStream) -> peer::Goodbye {
    let mut bytes = bytes::BytesMut::new();
    let mut piece = [0; 4096];
    loop {
        while let Ok(Some(header)) = FrameHeader::decode(&bytes) {
            if bytes.len() < header.frame_bytes() {
                break;
            }
            let frame = bytes.split_to(header.frame_bytes()).freeze();
            let (meta, _) = header.open(frame).unwrap();
            let message = peer::PeerMessage::decode(meta).unwrap();
            if let Some(Body::Goodbye(goodbye)) = message.body {
                return goodbye;
            }
        }
        let count = stream.read(&mut piece).unwrap();
        assert!(count > 0, "closed without a goodbye");
        bytes.extend_from_slice(&piece[..count]);
    }
}

#[test]
fn another_cluster_of_the_same_name_is_refused_with_both_numbers() {
    let mut host = host();
    // Also in the life of a member, and though it remembers nothing: its folder is another cluster's.
    for (life, memory) in [
        (9, Memory::Members),
        (MEMBER, Memory::Members),
        (9, Memory::Nothing),
    ] {
        assert!(!is_let_in(&mut host, &hello_of(life, THEIRS, memory)));
    }
    let stream = host.connect_as(&hello_of(9, THEIRS, Memory::Members));
    host.turn_while(|links, _| links.counters.closed_handshake_refused < 4);
    let said = goodbye(stream);
    assert_eq!(said.reason, "other_lineage");
    let shown: Vec<String> = host.links.refusals().collect();
    assert_eq!(shown.len(), 1, "{shown:?}");
    for text in [
        &said.detail,
        &shown[0],
        host.links.foreign(ReplicaId(1)).unwrap(),
    ] {
        for word in [
            "replica 0 ",
            "replica 1 ",
            &OURS.to_string(),
            &THEIRS.to_string(),
            "empty",
        ] {
            assert!(text.contains(word), "{text}");
        }
    }
    // Whoever comes again with the right folder is welcome, and nothing is held against it.
    assert!(is_let_in(&mut host, &hello_of(9, OURS, Memory::Members)));
    assert_eq!(host.links.foreign(ReplicaId(1)), None);
}

#[test]
fn who_runs_a_version_from_before_lineages_is_refused_once_there_is_one() {
    let none = Lineage::default();
    let older = hello_of(MEMBER, none, Memory::Unspecified);
    // While the upgrade goes on no member knows a number, and all versions work together.
    let mut host = Host::start();
    host.links.set_cluster(none, true, &mut Vec::new());
    let stream = host.connect_as(&older);
    let keeps = |event: &LinkEvent| match event {
        LinkEvent::Up(_, promise) => promise.keeps_lineage,
        LinkEvent::Down(_) | LinkEvent::Message { .. } | LinkEvent::Proved { .. } => false,
    };
    host.turn_while(|_, told| {
        assert!(!told.iter().any(keeps));
        !told.iter().any(|event| matches!(event, LinkEvent::Up(..)))
    });
    // A connection that stands then is judged anew.
    let mut told = Vec::new();
    host.links.set_cluster(OURS, true, &mut told);
    assert!(matches!(told[..], [LinkEvent::Down(_)]));
    let said = goodbye(stream);
    assert_eq!(said.reason, "before_lineages");
    for word in [
        "replica 1 runs a version from before",
        &OURS.to_string(),
        "start replica 1",
    ] {
        assert!(said.detail.contains(word), "{}", said.detail);
    }
    assert!(!is_let_in(&mut host, &older));
    let shown: Vec<String> = host.links.refusals().collect();
    assert_eq!(shown, [format!("before_lineages: {}", said.detail)]);
    assert_eq!(host.links.foreign(ReplicaId(1)), Some(&*said.detail));
    // With the others' version it is welcome, whether its log names the number or not.
    for lineage in [none, OURS] {
        assert!(is_let_in(
            &mut host,
            &hello_of(MEMBER, lineage, Memory::Members)
        ));
        assert_eq!(host.links.refusals().count(), 0);
    }
}

#[test]
fn the_number_that_a_hello_names_is_handed_on() {
    for lineage in [OURS, Lineage::default()] {
        let mut host = Host::start();
        let _stream = host.connect_as(&hello_of(MEMBER, lineage, Memory::Members));
        let named = |event: &LinkEvent| match event {
            LinkEvent::Up(_, promise) => Some(promise.lineage),
            LinkEvent::Down(_) | LinkEvent::Message { .. } | LinkEvent::Proved { .. } => None,
        };
        host.turn_while(|_, told| {
            let named = told.iter().find_map(named);
            assert!(named.is_none_or(|named| named == lineage));
            named.is_none()
        });
    }
}

#[test]
fn who_remembers_a_cluster_without_a_number_must_be_a_member() {
    let none = Lineage::default();
    for (life, memory, welcome) in [
        (9, Memory::Members, false),
        // It may remember; its code is from before it could say.
        (9, Memory::Unspecified, false),
        (9, Memory::Nothing, true),
        (MEMBER, Memory::Members, true),
        (MEMBER, Memory::Unspecified, false),
    ] {
        let hello = hello_of(life, none, memory);
        assert_eq!(is_let_in(&mut host(), &hello), welcome, "{life} {memory:?}");
        // Where no number is known, nobody is refused for one.
        assert!(is_let_in(&mut Host::start(), &hello), "{life} {memory:?}");
    }
}

/// Code that does not say so reads less.
#[test]
fn what_its_code_keeps_is_known_by_what_it_said() {
    for (memory, keeps_wall_clock) in [
        (Memory::Unspecified, false),
        (Memory::Members, false),
        (Memory::Members, true),
    ] {
        let mut host = Host::start();
        let hello = peer::Hello {
            keeps_wall_clock,
            ..hello_of(9, OURS, memory)
        };
        let _stream = host.connect_as(&hello);
        let promise = std::cell::Cell::new(None);
        host.turn_while(|_, told| {
            let up = told.iter().find_map(|event| match event {
                LinkEvent::Up(_, promise) => Some(*promise),
                LinkEvent::Down(_) | LinkEvent::Message { .. } | LinkEvent::Proved { .. } => None,
            });
            promise.set(up);
            up.is_none()
        });
        let promise = promise.take().unwrap();
        assert_eq!(promise.keeps_lineage, memory != Memory::Unspecified);
        assert_eq!(promise.keeps_wall_clock, keeps_wall_clock);
    }
}

#[test]
fn when_the_own_cluster_is_known_connections_to_another_end() {
    let mut host = Host::start();
    let stream = host.connect_as(&hello_of(9, THEIRS, Memory::Members));
    host.turn_while(|_, told| !told.iter().any(|event| matches!(event, LinkEvent::Up(..))));
    let mut told = Vec::new();
    host.links.set_cluster(OURS, true, &mut told);
    assert!(matches!(told[..], [LinkEvent::Down(_)]));
    assert_eq!(goodbye(stream).reason, "other_lineage");
    assert!(host.links.foreign(ReplicaId(1)).is_some());
}

#[test]
fn who_remembers_a_cluster_without_a_number_is_judged_anew_once_there_is_one() {
    let none = Lineage::default();
    for (life, memory, stays) in [
        (9, Memory::Members, false),
        (9, Memory::Nothing, true),
        (MEMBER, Memory::Members, true),
    ] {
        let mut host = Host::start();
        let _stream = host.connect_as(&hello_of(life, none, memory));
        host.turn_while(|_, told| !told.iter().any(|event| matches!(event, LinkEvent::Up(..))));
        let mut told = Vec::new();
        host.links.set_cluster(OURS, true, &mut told);
        assert_eq!(told.is_empty(), stays, "{life} {memory:?}");
        assert_eq!(host.links.foreign(ReplicaId(1)).is_none(), stays);
    }
}

/// It knows its members before it keeps their lineage, and connects anew meanwhile.
#[test]
fn one_that_is_being_taken_in_is_not_said_to_be_of_another_cluster() {
    let mut host = host();
    let joins = hello_of(9, Lineage::default(), Memory::Members);
    assert!(!is_let_in(&mut host, &joins));
    assert!(host.links.foreign(ReplicaId(1)).is_some());
    assert_eq!(host.links.contradictions().next(), None, "yet");
    // If it stays so, it is said.
    host.links
        .housekeeping(Now(host.links.now.0 + PATIENCE), &mut Vec::new());
    let said: Vec<String> = host.links.contradictions().collect();
    assert!(
        said.len() == 1 && said[0].contains("of lineage none"),
        "{said:?}"
    );
    // Two numbers that differ are said at once.
    let mut host = self::host();
    assert!(!is_let_in(&mut host, &hello_of(9, THEIRS, Memory::Members)));
    assert_eq!(host.links.contradictions().count(), 1);
}

#[test]
fn what_a_connected_replica_sends_of_another_lineage_is_shown_with_both_numbers() {
    let mut host = host();
    let _stream = host.connect_as(&hello_of(MEMBER, Lineage::default(), Memory::Members));
    host.turn_while(|_, told| !told.iter().any(|event| matches!(event, LinkEvent::Up(..))));
    let (id, incarnation) = (ReplicaId(1), Incarnation(MEMBER));
    host.links
        .note_other_lineage(Peer { id, incarnation }, OURS, THEIRS);
    let shown: Vec<String> = host.links.refusals().collect();
    assert_eq!(shown.len(), 1, "{shown:?}");
    for word in ["other_lineage", &OURS.to_string(), &THEIRS.to_string()] {
        assert!(shown[0].contains(word), "{shown:?}");
    }
}

/// Without TLS anybody can claim any id.
#[test]
fn made_up_lineages_silence_no_replica_of_ours() {
    let mut host = host();
    for number in 0..300_u16 {
        let lineage = Lineage(1000 + u128::from(number));
        let stranger = peer::Hello {
            replica: u32::from(100 + number),
            ..hello_of(9, lineage, Memory::Members)
        };
        assert!(!is_let_in(&mut host, &stranger));
    }
    assert_eq!(host.links.refusals().count(), FOREIGN_FROM_ADDRESS_MAX);
    assert!(!is_let_in(&mut host, &hello_of(9, THEIRS, Memory::Members)));
    let of_ours = |text: &String| text.contains(&THEIRS.to_string());
    assert!(host.links.refusals().any(|text| of_ours(&text)));
    // It was said, too: it is no news any more.
    let about = (ReplicaId(1), Subject::Cluster);
    let said = &mut host.links.agreement.said;
    assert!(!said.is_news(&about, true, "another text", Now::default()));
}

#[test]
fn it_is_known_also_when_the_other_side_says_it() {
    // Our folder is from before lineages: only the other side can tell.
    let mut host = Host::start();
    host.links
        .set_cluster(Lineage::default(), true, &mut Vec::new());
    let mut stream = host.connect_as(&hello_of(MEMBER, THEIRS, Memory::Members));
    let words = "replica 0 is of lineage none, replica 1 of lineage b";
    let goodbye = Goodbye::OtherLineage.message(words.to_owned());
    let message = peer::PeerMessage {
        body: Some(Body::Goodbye(goodbye)),
        ..peer::PeerMessage::default()
    };
    let mut frame = bytes::BytesMut::new();
    quorumwire_wire::encode_frame(&mut frame, &message, &[]);
    std::io::Write::write_all(&mut stream, &frame).unwrap();
    host.turn_while(|links, _| links.foreign(ReplicaId(1)).is_none());
    assert_eq!(host.links.foreign(ReplicaId(1)), Some(words));
}

fn with(settings: &[(&str, &str)], hello: peer::Hello) -> peer::Hello {
    let setting = |(option, value): &(&str, &str)| peer::Setting {
        option: (*option).to_owned(),
        value: (*value).to_owned(),
    };
    peer::Hello {
        settings: settings.iter().map(setting).collect(),
        ..hello
    }
}

/// What is said of these two once they have been connected for a while: at once, and later.
fn said(ours: peer::Hello, theirs: &peer::Hello) -> [Vec<String>; 2] {
    let mut host = Host::start();
    host.links.hello = ours;
    let _stream = host.connect_as(theirs);
    host.turn_while(|_, told| !told.iter().any(|event| matches!(event, LinkEvent::Up(..))));
    let begun = Now(DEADLINE / 10);
    [begun, Now(begun.0 + PATIENCE)].map(|now| {
        host.links.housekeeping(now, &mut Vec::new());
        host.links.contradictions().collect()
    })
}

#[test]
fn options_with_two_values_are_said_and_refuse_nothing() {
    let ours = with(
        &[("durability", "sync"), ("lease-ms", "20"), ("mine", "1")],
        hello("test", 0, 1),
    );
    let theirs = with(
        &[
            ("lease-ms", "20"),
            ("durability", "mem\nory"),
            ("yours", "2"),
        ],
        hello("test", 1, 9),
    );
    let text =
        "option durability: replica 0 has sync, replica 1 has mem?ory; give all replicas the same";
    assert_eq!(said(ours, &theirs), [[text], [text]]);
}

#[test]
fn two_secrets_of_one_epoch_are_said_without_showing_them() {
    let [first, second] = ["epoch 1", "epoch 2"].map(|epoch| format!("secret-file, {epoch}"));
    let hello = |id, secrets: &[(&str, &str)]| with(secrets, hello("test", id, 9));
    let ours = hello(0, &[(&first, "aa"), (&second, "bb")]);
    // In the middle of a rotation, and after it.
    for secrets in [&[(&*first, "aa")][..], &[(&*second, "bb")]] {
        let [at_once, later] = said(ours.clone(), &hello(1, secrets));
        assert!(at_once.is_empty() && later.is_empty(), "{later:?}");
    }
    let text = "option secret-file, epoch 2: replica 0 has bb, replica 1 has cc; give all replicas the same";
    let theirs = hello(1, &[(&first, "aa"), (&second, "cc")]);
    assert_eq!(said(ours.clone(), &theirs), [[text], [text]]);
    let theirs = hello(1, &[("secret-file, epoch 3", "dd")]);
    let [at_once, _] = said(ours, &theirs);
    assert!(
        at_once.len() == 1
            && at_once[0].contains("the secret of epoch 1 and 2, replica 1 that of epoch 3;"),
        "{at_once:?}"
    );
}

#[test]
fn other_secrets_are_told_to_those_who_are_connected() {
    let secret = |value: &str| with(&[("secret-file, epoch 1", value)], hello("test", 1, 9));
    let mut host = Host::start();
    host.links.set_secrets(secret("aa").settings);
    let mut stream = host.connect_as(&secret("aa"));
    host.turn_while(|_, told| !told.iter().any(|event| matches!(event, LinkEvent::Up(..))));
    let contradictions = |host: &mut Host| {
        host.links.housekeeping(Now(DEADLINE / 10), &mut Vec::new());
        host.links.contradictions().count()
    };
    assert_eq!(contradictions(&mut host), 0);
    // Here the file was read again first, then there.
    host.links.set_secrets(secret("bb").settings);
    assert_eq!(contradictions(&mut host), 1);
    let news = peer::PeerMessage {
        body: Some(Body::Hello(secret("bb"))),
        ..peer::PeerMessage::default()
    };
    let mut frame = bytes::BytesMut::new();
    quorumwire_wire::encode_frame(&mut frame, &news, &[]);
    std::io::Write::write_all(&mut stream, &frame).unwrap();
    let messages_in = host.links.counters.messages_in;
    host.turn_while(|links, told| {
        assert!(told.is_empty(), "it is nothing that others see");
        links.counters.messages_in == messages_in
    });
    assert_eq!(contradictions(&mut host), 0);
    // Whoever becomes somebody else by it is not believed.
    let news = peer::PeerMessage {
        body: Some(Body::Hello(hello("test", 2, 9))),
        ..peer::PeerMessage::default()
    };
    let mut frame = bytes::BytesMut::new();
    quorumwire_wire::encode_frame(&mut frame, &news, &[]);
    std::io::Write::write_all(&mut stream, &frame).unwrap();
    host.turn_while(|_, told| !told.iter().any(|event| matches!(event, LinkEvent::Down(_))));
}

#[test]
fn two_lists_of_initial_members_are_said_while_both_could_begin() {
    let ours = with(&[(BEGINS_WITH, "0,1")], hello("test", 0, 1));
    let theirs = with(&[(BEGINS_WITH, "0,1,2")], hello("test", 1, 9));
    let text = "option members: replica 0 has 0,1, replica 1 has 0,1,2; no cluster begins before both are told alike";
    assert_eq!(said(ours.clone(), &theirs), [[text], [text]]);
    // A list is no news once it was used.
    let member = peer::Hello {
        memory: Memory::Members.into(),
        incarnation: MEMBER,
        ..theirs
    };
    let [at_once, later] = said(ours, &member);
    assert!(at_once.is_empty() && later.is_empty(), "{later:?}");
}

#[test]
fn who_is_to_begin_and_meets_a_cluster_says_so_after_a_while() {
    let fresh = with(&[(BEGINS_WITH, "0,1,2")], hello("test", 1, 9));
    let runs = |lineage, memory, settings: &[(&str, &str)]| peer::Hello {
        lineage: lineage_to_proto(lineage),
        memory: i32::from(memory),
        ..with(settings, hello("test", 0, 1))
    };
    let join: &[(&str, &str)] = &[(JOINS, "on")];
    for (ours, words) in [
        (
            runs(OURS, Memory::Members, &[(BEGINS_WITH, "0,1")]),
            "is in one already (lineage 0000",
        ),
        (
            runs(OURS, Memory::Nothing, join),
            "was in one before (lineage 0000",
        ),
        (
            runs(Lineage::default(), Memory::Nothing, join),
            "waits to be taken in by one",
        ),
    ] {
        let [at_once, later] = said(ours, &fresh);
        assert!(at_once.is_empty(), "{at_once:?}");
        assert_eq!(later.len(), 1, "{later:?}");
        assert!(later[0].contains(words), "{later:?}");
        assert!(later[0].starts_with("replica 1 was told to begin a cluster of 0,1,2, replica 0 "));
    }
    // One that is not awaited may join whatever begins.
    let other = with(&[(BEGINS_WITH, "1,2")], hello("test", 1, 9));
    let [_, later] = said(runs(Lineage::default(), Memory::Nothing, join), &other);
    assert!(later.is_empty(), "{later:?}");
}

#[test]
fn a_removed_member_that_connected_before_the_cluster_began_is_not_about_to_begin_one() {
    let fresh = with(&[(BEGINS_WITH, "0,1,2")], hello("test", 1, MEMBER));
    let mut host = Host::start();
    let _stream = host.connect_as(&fresh);
    host.turn_while(|_, told| !told.iter().any(|event| matches!(event, LinkEvent::Up(..))));
    host.links.set_cluster(OURS, true, &mut Vec::new());
    let listed = (ReplicaId(1), Incarnation(MEMBER));
    host.links.members.extend([listed]);
    let begun = Now(DEADLINE / 10);
    host.links.housekeeping(begun, &mut Vec::new());
    host.links.members.clear();
    for later in [PATIENCE, PATIENCE * 2] {
        host.links
            .housekeeping(Now(begun.0 + later), &mut Vec::new());
        assert_eq!(host.links.contradictions().next(), None);
    }
}

#[test]
fn tls_where_nobody_speaks_it_is_said() {
    let mut host = Host::start();
    let mut stream = TcpStream::connect(host.address).unwrap();
    let begins = [0x16, 0x03, 0x01, 2, 0, 1, 0, 1, 0xfc, 3, 3, 0, 0, 0, 0, 0];
    std::io::Write::write_all(&mut stream, &begins).unwrap();
    host.turn_while(|links, _| links.counters.closed_malformed == 0);
    let shown: Vec<String> = host.links.refusals().collect();
    assert!(
        shown.len() == 1 && shown[0].contains("it speaks TLS, this replica does not"),
        "{shown:?}"
    );
}

/// Replica 1, which says that these are the members as of this entry.
fn naming(members_index: u64, member_ids: &[u32]) -> peer::Hello {
    peer::Hello {
        members_index,
        member_ids: member_ids.to_vec(),
        ..hello_of(MEMBER, OURS, Memory::Members)
    }
}

#[test]
fn who_knows_newer_members_says_whether_this_replica_is_one() {
    let cases = [
        (naming(9, &[1, 2]), Some(ReplicaId(1))),
        (naming(9, &[0, 1]), None),
        // Older than what is known here, or of code from before it was said.
        (naming(5, &[1, 2]), None),
        (naming(0, &[]), None),
        (naming(9, &[]), None),
    ];
    for (hello, left_out_by) in cases {
        let mut host = host();
        let stream = host.connect_as(&hello);
        host.turn_while(|_, told| !told.iter().any(|it| matches!(it, LinkEvent::Up(..))));
        let mut hellos = Hellos::default();
        host.links.show(&mut Peers::default(), &mut hellos, 0);
        assert_eq!(hellos.left_out_by(Index(5)), left_out_by, "{hello:?}");
        drop(stream);
    }
}

#[test]
fn all_have_forgotten_only_if_nobody_remembers_anything() {
    for (hello, has_forgotten, nobody_remembers) in [
        (hello_of(MEMBER, OURS, Memory::Nothing), true, true),
        (hello_of(MEMBER, OURS, Memory::Members), false, false),
        // New: it was in no cluster.
        (
            hello_of(MEMBER, Lineage::default(), Memory::Nothing),
            false,
            true,
        ),
    ] {
        let mut host = host();
        let stream = host.connect_as(&hello);
        host.turn_while(|_, told| !told.iter().any(|it| matches!(it, LinkEvent::Up(..))));
        assert_eq!(host.links.has_forgotten(ReplicaId(1)), has_forgotten);
        assert_eq!(host.links.nobody_remembers(), nobody_remembers);
        assert!(!host.links.has_forgotten(ReplicaId(2)), "it is not there");
        drop(stream);
    }
}

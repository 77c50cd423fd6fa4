//! Handshakes: whoever cannot be spoken to is refused by name, with what was given and what would do.
use quorumwire_interfaces::Lineage;
use quorumwire_wire::limits::{
    ADDRESS_BYTES_MAX, CLUSTER_NAME_BYTES_MAX, SETTING_TEXT_BYTES_MAX, SETTINGS_MAX,
};
use quorumwire_wire::{
    Goodbye, PROTOCOL_VERSION_MAX, PROTOCOL_VERSION_MIN, RECORD_VERSION, SNAPSHOT_VERSION,
    check_hello, hello, lineage_to_proto, peer,
};

fn ours() -> peer::Hello {
    hello("trunk", 1, 11)
}

fn theirs() -> peer::Hello {
    hello("trunk", 2, 22)
}

fn refused(theirs: &peer::Hello) -> (Goodbye, String) {
    check_hello(&ours(), theirs).expect_err("it was not refused")
}

#[test]
fn equals_agree() {
    assert_eq!(check_hello(&ours(), &theirs()), Ok(PROTOCOL_VERSION_MAX));
    assert_eq!(check_hello(&theirs(), &ours()), Ok(PROTOCOL_VERSION_MAX));
}

#[test]
fn the_highest_version_known_to_both_is_used() {
    let mut ours = ours();
    let mut theirs = theirs();
    (ours.protocol_min, ours.protocol_max) = (2, 5);
    for (min, max, expected) in [(1, 9, 5), (4, 4, 4), (5, 7, 5), (1, 2, 2)] {
        (theirs.protocol_min, theirs.protocol_max) = (min, max);
        assert_eq!(check_hello(&ours, &theirs), Ok(expected));
    }
    for (min, max) in [(6, 7), (1, 1), (9, 3)] {
        (theirs.protocol_min, theirs.protocol_max) = (min, max);
        let (reason, detail) = check_hello(&ours, &theirs).expect_err("no common version");
        assert_eq!(reason, Goodbye::ProtocolVersion);
        assert_eq!(detail, format!("protocol {min} to {max}, ours is 2 to 5"));
    }
}

#[test]
fn another_cluster_is_refused() {
    let mut theirs = theirs();
    theirs.cluster = "branch".to_owned();
    let (reason, detail) = refused(&theirs);
    assert_eq!(reason.name(), "other_cluster");
    assert_eq!(detail, "cluster \"branch\", ours is \"trunk\"");
}

/// Of this lineage.
fn of(hello: peer::Hello, lineage: u128) -> peer::Hello {
    peer::Hello {
        lineage: lineage_to_proto(Lineage(lineage)),
        ..hello
    }
}

#[test]
fn another_lineage_is_refused_in_the_same_words_at_both_sides() {
    let (ours, theirs) = (of(ours(), 0xa), of(theirs(), 0xb));
    let (reason, detail) = check_hello(&ours, &theirs).expect_err("two clusters");
    assert_eq!(reason.name(), "other_lineage");
    let numbers = [
        "0000000000000000000000000000000a",
        "0000000000000000000000000000000b",
    ];
    for said in numbers
        .into_iter()
        .chain(["replica 1", "replica 2", "empty its data folder"])
    {
        assert!(detail.contains(said), "{detail}");
    }
    assert_eq!(check_hello(&theirs, &ours), Err((reason, detail)));
    // The same one, and one that is not known yet, are welcome.
    assert!(check_hello(&ours, &of(theirs.clone(), 0xa)).is_ok());
    assert!(check_hello(&ours, &of(theirs.clone(), 0)).is_ok());
    assert!(check_hello(&of(ours, 0), &theirs).is_ok());
}

#[test]
fn too_many_or_too_long_settings_are_refused() {
    let setting = peer::Setting {
        option: "a".repeat(SETTING_TEXT_BYTES_MAX),
        value: "b".repeat(SETTING_TEXT_BYTES_MAX),
    };
    let with = |settings| peer::Hello {
        settings,
        ..theirs()
    };
    let most = with(vec![setting.clone(); SETTINGS_MAX]);
    assert!(check_hello(&ours(), &most).is_ok());
    let too_many = with(vec![setting.clone(); SETTINGS_MAX + 1]);
    assert_eq!(refused(&too_many).0.name(), "malformed");
    for (option, value) in [(1, 0), (0, 1)] {
        let setting = peer::Setting {
            option: "a".repeat(SETTING_TEXT_BYTES_MAX + option),
            value: "b".repeat(SETTING_TEXT_BYTES_MAX + value),
        };
        assert_eq!(refused(&with(vec![setting])).0.name(), "malformed");
    }
}

#[test]
fn our_own_id_is_refused() {
    let (reason, detail) = refused(&hello("trunk", 1, 99));
    assert_eq!((reason.name(), detail.as_str()), ("own_id", "replica 1"));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let mut cases = vec![
        hello("trunk", 2, 0),
        theirs(),
        theirs(),
        theirs(),
        theirs(),
        theirs(),
        theirs(),
        theirs(),
    ];
    cases[1].replica = 65_536;
    cases[2].client_address = "a".repeat(ADDRESS_BYTES_MAX + 1);
    cases[3].http_address = "a".repeat(ADDRESS_BYTES_MAX + 1);
    cases[4].cluster = "a".repeat(CLUSTER_NAME_BYTES_MAX + 1);
    cases[5].redis_address = "a".repeat(ADDRESS_BYTES_MAX + 1);
    cases[6].native_address = "a".repeat(ADDRESS_BYTES_MAX + 1);
    cases[7].peer_address = "a".repeat(ADDRESS_BYTES_MAX + 1);
    for case in cases {
        assert_eq!(refused(&case).0.name(), "malformed", "{case:?}");
    }
    let mut longest = theirs();
    longest.client_address = "a".repeat(ADDRESS_BYTES_MAX);
    longest.http_address = "a".repeat(ADDRESS_BYTES_MAX);
    longest.redis_address = "a".repeat(ADDRESS_BYTES_MAX);
    longest.native_address = "a".repeat(ADDRESS_BYTES_MAX);
    longest.peer_address = "a".repeat(ADDRESS_BYTES_MAX);
    longest.replica = 65_535;
    assert!(check_hello(&ours(), &longest).is_ok());
}

#[test]
fn what_we_could_not_read_is_refused() {
    let mut theirs = theirs();
    theirs.record_version = u32::from(RECORD_VERSION) + 1;
    let (reason, detail) = refused(&theirs);
    assert_eq!(reason.name(), "record_version");
    assert_eq!(detail, "records of version 2, we read up to 1");
    theirs.record_version = 0;
    theirs.snapshot_version = SNAPSHOT_VERSION + 1;
    let (reason, detail) = refused(&theirs);
    assert_eq!(reason.name(), "snapshot_version");
    assert_eq!(detail, "snapshots of version 2, we read up to 1");
    theirs.snapshot_version = 0;
    assert_eq!(check_hello(&ours(), &theirs), Ok(PROTOCOL_VERSION_MIN));
}

#[test]
fn every_reason_has_a_name_of_its_own() {
    let all = [
        Goodbye::OtherCluster,
        Goodbye::OwnId,
        Goodbye::Malformed,
        Goodbye::ProtocolVersion,
        Goodbye::RecordVersion,
        Goodbye::SnapshotVersion,
        Goodbye::Superseded,
        Goodbye::Stopping,
    ];
    let mut names: Vec<_> = all.iter().map(|reason| reason.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all.len());
    let message = Goodbye::Stopping.message("good night".to_owned());
    assert_eq!(
        (message.reason.as_str(), message.detail.as_str()),
        ("stopping", "good night")
    );
}

//! The table and the JSON of `status`, from made-up reports.
use super::{TERMINAL_COLUMNS, as_json, as_table, lasting};
use crate::commands::view::{ClusterView, ReplicaView};
use quorumwire_node::report::{
    DataPlaneReport, FastTermReport, FollowerReport, IncomingReport, MemberReport,
    RefusedPlaneReport, Report,
};
use std::collections::BTreeMap;

fn view() -> ClusterView {
    let leader = Report {
        id: 0,
        role: "leader".into(),
        term: 4,
        last_index: 90,
        ready: true,
        followers: vec![FollowerReport {
            id: 1,
            match_index: 83,
            lag: 7,
            active: true,
            ..FollowerReport::default()
        }],
        ..Report::default()
    };
    let follower = Report {
        id: 1,
        role: "follower".into(),
        term: 4,
        faults: vec!["the disk is full".to_owned()],
        ..Report::default()
    };
    ClusterView {
        replicas: [
            (0, ReplicaView::Report(Box::new(leader))),
            (1, ReplicaView::Report(Box::new(follower))),
            (2, ReplicaView::Unreachable("nobody there".to_owned())),
        ]
        .into(),
        strangers: [("h:1".to_owned(), "h:1: silent".to_owned())].into(),
        barred: [].into(),
        closed: [].into(),
    }
}

#[test]
fn the_table_has_a_line_per_replica_and_what_is_wrong() {
    let table = as_table(&view());
    let lines: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(lines[1][..3], ["0", "leader", "4"]);
    assert_eq!(lines[2][..2], ["1", "follower"]);
    assert_eq!(lines[2][5], "7", "the lag its leader counts");
    assert_eq!(lines[3][..2], ["2", "unreachable"]);
    for text in [
        "replica 1: the disk is full",
        "replica 2: nobody there",
        "h:1: silent",
    ] {
        assert!(table.lines().any(|line| line == text), "{text} in {table}");
    }
}

fn report_mut(view: &mut ClusterView, id: u16) -> &mut Report {
    let Some(ReplicaView::Report(report)) = view.replicas.get_mut(&id) else {
        panic!("it was seen");
    };
    report
}

#[test]
fn a_dead_replica_has_one_line_and_stays_among_the_addresses() {
    let mut view = view();
    for id in [0, 1] {
        let report = report_mut(&mut view, id);
        report
            .faults
            .push(Report::missing_fault(2, "10.0.0.12:7400 (list): refused"));
        report.peer = format!("10.0.0.1{id}:7400");
        report.members = vec![MemberReport {
            peer: "10.0.0.12:7400".to_owned(),
            ..MemberReport::voter(2, None)
        }];
    }
    let table = as_table(&view);
    let whole = table.replace("\n  ", " "); // what goes on stands further in
    let said: Vec<&str> = whole
        .lines()
        .filter(|it| it.contains("replica 2"))
        .collect();
    let expected =
        "replica 2: nobody there; no connection from replica 0, 1: 10.0.0.12:7400 (list): refused";
    assert_eq!(said, [expected], "{table}");
    assert!(table.contains("replica 1: the disk is full"), "{table}");
    let row = table.lines().last().unwrap();
    let words: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(
        words,
        ["2", "10.0.0.12", "-", "-", "-", "-", "7400"],
        "{table}"
    );
}

#[test]
fn a_memory_limit_is_no_line_of_a_replica() {
    let mut view = view();
    let leader = report_mut(&mut view, 0);
    (leader.memory_limit_bytes, leader.memory_used_bytes) = (300_000, 208_000);
    let table = as_table(&view);
    assert!(
        table.contains("\nmemory: the items take 208000 of 300000 bytes"),
        "{table}"
    );
    assert!(!table.contains("replica 0:"), "{table}");
}

/// The same word as `top` and the options.
#[test]
fn a_plane_is_named_and_none_is_none() {
    let mut view = view();
    let plane = |view: &ClusterView| {
        let table = as_table(view);
        let words = table.lines().nth(1).unwrap().split_whitespace().skip(7);
        words.collect::<Vec<_>>().join(" ")
    };
    let leader = report_mut(&mut view, 0);
    (leader.durability, leader.plane) = ("sync".into(), "none".to_owned());
    assert_eq!(plane(&view), "none");
    let leader = report_mut(&mut view, 0);
    leader.data_plane = Some(DataPlaneReport {
        name: "socket".to_owned(),
        runs: None,
        chosen_by: "option".into(),
        refused: vec![],
    });
    assert_eq!(plane(&view), "socket");
    report_mut(&mut view, 0).fast_term = Some(FastTermReport {
        term: 4,
        for_ms: 7,
        start_index: 80,
    });
    assert_eq!(plane(&view), "socket +");
}

#[test]
fn the_json_names_leader_and_unreachable_replicas() {
    let json = as_json(&view());
    assert_eq!(json["leader"], 0);
    assert_eq!(json["replicas"][1]["report"]["role"], "follower");
    assert_eq!(json["replicas"][2]["reachable"], false);
    assert_eq!(json["unknown"]["h:1"], "h:1: silent");
}

/// What is said of single replicas.
fn notes_of(table: &str) -> Vec<&str> {
    let is_note = |line: &&str| line.starts_with("replica ");
    table.lines().filter(is_note).collect()
}

/// Replicas of a cluster that has run for long, at addresses that begin so.
fn view_of_hosts(hosts: [&str; 3]) -> ClusterView {
    let seen = (0_u16..).zip(hosts).map(|(id, host)| {
        let at = |port: u16| format!("{host}:{port}");
        let report = Report {
            id,
            role: if id == 0 { "leader" } else { "follower" }.into(),
            term: 12_345,
            commit_index: 3_000_000_000_000,
            applied_index: 3_000_000_000_000,
            last_index: 3_000_000_000_007,
            durability: "memory".into(),
            plane: "none".to_owned(),
            quorum: "majority".to_owned(),
            memcached: at(11_211),
            redis: at(6379),
            client: at(7402),
            http: at(7480),
            peer: at(7400),
            ready: true,
            ..Report::default()
        };
        (id, ReplicaView::Report(Box::new(report)))
    });
    let mut replicas: BTreeMap<u16, ReplicaView> = seen.collect();
    replicas.insert(3, ReplicaView::Unreachable("gone".to_owned()));
    ClusterView {
        replicas,
        strangers: [].into(),
        barred: [].into(),
        closed: [].into(),
    }
}

#[test]
fn the_table_fits_a_terminal() {
    let long = "replica-with-a-long-name.storage.example.com";
    let hosts = [
        ["10.0.0.10", "10.0.0.11", "10.0.0.12"],
        ["[fd00:1234:5678::1]", "[fd00:1234:5678::2]", "[::1]"],
        [long, "b", "c"],
    ];
    for hosts in hosts {
        let table = as_table(&view_of_hosts(hosts));
        for line in table.lines() {
            assert!(line.len() <= 80, "{} bytes: {line}", line.len());
        }
        assert!(table.contains("quorum: majority\n"), "{table}");
    }
    let table = as_table(&view_of_hosts(hosts[0]));
    let of_one = table.lines().find(|line| line.contains("10.0.0.11"));
    let words: Vec<&str> = of_one.unwrap().split_whitespace().collect();
    let expected = ["1", "10.0.0.11", "11211", "6379", "7402", "7480", "7400"];
    assert_eq!(words, expected, "{table}");
    // Where they do not fit, each address has a line.
    let table = as_table(&view_of_hosts([&long.repeat(2), "b", "c"]));
    assert!(
        table.contains(&format!("0   REDIS      {}:6379\n", long.repeat(2))),
        "{table}"
    );
}

#[test]
fn where_a_program_is_reached_stands_in_place_of_the_stores_ports() {
    let mut view = view_of_hosts(["10.0.0.1", "10.0.0.2", "10.0.0.3"]);
    for (id, program) in [(0, "10.0.0.1:6379"), (1, "0.0.0.0:6379,127.0.0.1:53/udp")] {
        let Some(ReplicaView::Report(report)) = view.replicas.get_mut(&id) else {
            panic!("it was seen");
        };
        report.program = program.split(',').map(str::to_owned).collect();
    }
    let table = as_table(&view);
    let line = |host: &str| {
        let mut lines = table.lines().skip_while(|line| !line.contains("PROGRAM"));
        let words = lines.find(|line| line.contains(host)).unwrap();
        words.split_whitespace().nth(2).unwrap().to_owned()
    };
    assert_eq!(line("HOST"), "PROGRAM", "{table}");
    assert_eq!(line("10.0.0.1 "), "6379", "{table}");
    assert_eq!(line("10.0.0.2 "), "6379,127.0.0.1:53/udp", "{table}");
    assert_eq!(line("10.0.0.3 "), "-", "{table}");
    assert!(!table.contains("REDIS"), "{table}");
}

#[test]
fn an_address_on_a_host_whose_name_only_begins_alike_is_shown_whole() {
    let mut view = view_of_hosts(["10.0.0.1", "10.0.0.2", "10.0.0.3"]);
    let Some(ReplicaView::Report(report)) = view.replicas.get_mut(&0) else {
        panic!("it was seen");
    };
    report.peer = "10.0.0.10:7400".to_owned();
    let table = as_table(&view);
    assert!(table.contains(" 10.0.0.10:7400"), "{table}");
}

/// A replica with a data plane: since when it runs a fast term, if it does, and why its last one ended.
fn with_plane(id: u16, for_ms: Option<u64>, ended: Option<&str>) -> (u16, ReplicaView) {
    let report = Report {
        id,
        plane_address: Some("h:7401".to_owned()),
        fast_term: for_ms.map(|for_ms| FastTermReport {
            term: 9,
            for_ms,
            start_index: 80,
        }),
        fast_term_ended: ended.map(str::to_owned),
        ..Report::default()
    };
    (id, ReplicaView::Report(Box::new(report)))
}

fn view_with_planes() -> ClusterView {
    ClusterView {
        replicas: [
            with_plane(0, Some(3_250), None),
            with_plane(1, Some(62_000), Some("leader_silent")),
            with_plane(2, None, Some("membership_change")),
            with_plane(3, None, None),
        ]
        .into(),
        strangers: [].into(),
        barred: [].into(),
        closed: [].into(),
    }
}

#[test]
fn the_table_says_who_is_in_a_fast_term_since_when_and_why_the_last_one_ended() {
    let table = as_table(&view_with_planes());
    let notes: Vec<&str> = notes_of(&table);
    let expected = [
        "replica 0: in fast term 9 for 3.2 s",
        "replica 1: in fast term 9 for 1 min 2 s; the last one ended: leader silent",
        "replica 2: in no fast term; the last one ended: membership change",
        "replica 3: in no fast term since its start",
    ];
    assert_eq!(notes, expected, "{table}");
}

#[test]
fn the_table_of_replicas_without_a_plane_has_no_word_of_fast_terms() {
    let table = as_table(&view());
    assert!(!table.contains("fast term"), "{table}");
}

#[test]
fn the_json_says_since_when_a_fast_term_runs_and_why_the_last_one_ended() {
    let json = as_json(&view_with_planes());
    let report = |at: usize| &json["replicas"][at]["report"];
    assert_eq!(report(1)["fast_term"]["term"], 9);
    assert_eq!(report(1)["fast_term"]["for_ms"], 62_000);
    assert_eq!(report(1)["fast_term_ended"], "leader_silent");
    assert!(report(0)["fast_term_ended"].is_null());
    assert!(report(2)["fast_term"].is_null());
    assert_eq!(report(2)["fast_term_ended"], "membership_change");
}

#[test]
fn a_duration_has_its_two_largest_units() {
    const SECOND: u64 = 1_000;
    const HOUR: u64 = 3_600 * SECOND;
    let cases = [
        (99, "0.0 s"),
        (59_999, "59.9 s"),
        (60 * SECOND, "1 min 0 s"),
        (HOUR - 1, "59 min 59 s"),
        (HOUR, "1 h 0 min"),
        (24 * HOUR - 1, "23 h 59 min"),
        (49 * HOUR, "2 d 1 h"),
    ];
    for (milliseconds, text) in cases {
        assert_eq!(lasting(milliseconds), text);
    }
}

#[test]
fn a_deposed_leader_does_not_count() {
    let mut view = view();
    let newer = Report {
        id: 3,
        role: "leader".into(),
        term: 5,
        ready: false,
        ..Report::default()
    };
    view.replicas
        .insert(3, ReplicaView::Report(Box::new(newer)));
    assert!(
        view.leader().is_none(),
        "the leader of term 5 does not serve yet"
    );
    assert!(view.why_no_leader().contains("replica 3 is leader"));
}

#[test]
fn the_table_says_what_auto_chose_and_why_not_the_faster_one() {
    let report = |id, name: &str, runs: Option<&str>, chosen_by: &str, refused| Report {
        id,
        data_plane: Some(DataPlaneReport {
            name: name.to_owned(),
            runs: runs.map(str::to_owned),
            chosen_by: chosen_by.into(),
            refused,
        }),
        ..Report::default()
    };
    let refused = RefusedPlaneReport {
        name: "xdp".to_owned(),
        why: "the process lacks CAP_BPF".to_owned(),
    };
    let reports = [
        report(0, "socket", None, "option", vec![]),
        report(1, "socket", None, "auto", vec![refused]),
        report(2, "xdp", Some("in the driver of eth0"), "auto", vec![]),
    ];
    let seen = reports.map(|report| (report.id, ReplicaView::Report(Box::new(report))));
    let view = ClusterView {
        replicas: seen.into(),
        strangers: [].into(),
        barred: [].into(),
        closed: [].into(),
    };
    let table = as_table(&view);
    let notes: Vec<&str> = notes_of(&table);
    let expected = [
        "replica 1: data plane: auto chose socket; not xdp: the process lacks CAP_BPF",
        "replica 2: data plane: auto chose xdp, in the driver of eth0",
    ];
    assert_eq!(notes, expected, "{table}");
    let json = as_json(&view);
    let plane = &json["replicas"][1]["report"]["data_plane"];
    assert_eq!(plane["name"], "socket");
    assert_eq!(plane["refused"][0]["name"], "xdp");
}

#[test]
fn a_snapshot_on_its_way_is_shown_as_far_as_it_is() {
    let note = |view: &ClusterView| {
        let table = as_table(view);
        let of_one = table.lines().find(|line| line.contains("snapshot"));
        of_one.map(str::to_owned)
    };
    let mut view = view();
    assert_eq!(note(&view), None);
    let Some(ReplicaView::Report(leader)) = view.replicas.get_mut(&0) else {
        panic!("it was seen");
    };
    leader.followers[0] = FollowerReport {
        in_snapshot: true,
        snapshot_sent_bytes: 3 << 20,
        snapshot_bytes: 7 << 20,
        ..leader.followers[0].clone()
    };
    let sent = "replica 1: is being sent a snapshot: 3 of 7 MiB";
    assert_eq!(note(&view).as_deref(), Some(sent));
    let Some(ReplicaView::Report(follower)) = view.replicas.get_mut(&1) else {
        panic!("it was seen");
    };
    follower.incoming_snapshot = Some(IncomingReport {
        what: "restoring a snapshot".to_owned(),
        done_bytes: 1 << 20,
        total_bytes: 7 << 20,
    });
    let own = "replica 1: restoring a snapshot: 1 of 7 MiB";
    assert_eq!(note(&view).as_deref(), Some(own));
}

/// Paths and addresses stay whole, so that they can be copied.
#[test]
fn long_notes_go_on_in_further_lines() {
    let address = format!("10.0.0.1:7400({})", "x".repeat(100));
    let fault = format!(
        "{} cannot reach {address} and {}",
        "it".repeat(10),
        "words ".repeat(40)
    );
    let mut view = view();
    if let Some(ReplicaView::Report(report)) = view.replicas.get_mut(&1) {
        report.faults = vec![fault.clone(), "short".to_owned()];
    }
    let table = as_table(&view);
    let begins = |line: &&str| line.starts_with("replica 1: ");
    let notes: Vec<&str> = table.lines().filter(begins).collect();
    assert_eq!((notes.len(), notes[1]), (2, "replica 1: short"));
    for line in table.lines().filter(|line| !line.contains(&address)) {
        assert!(line.chars().count() <= TERMINAL_COLUMNS, "{line}");
    }
    assert!(table.lines().any(|line| line.trim() == address));
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&table).contains(&format!("replica 1: {}", words(&fault))));
}

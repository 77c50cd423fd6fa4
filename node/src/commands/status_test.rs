//! The table and the JSON of `status`, from made-up reports.
use super::{as_json, as_table};
use crate::commands::view::{ClusterView, Seen};
use crate::report::{FollowerReport, Report};

fn view() -> ClusterView {
    let leader = Report {
        id: 0,
        role: "leader".to_owned(),
        term: 4,
        last_index: 90,
        ready: true,
        followers: vec![FollowerReport {
            id: 1,
            match_index: 83,
            lag: 7,
            in_snapshot: false,
            engaged: false,
            active: true,
        }],
        ..Report::default()
    };
    let follower = Report {
        id: 1,
        role: "follower".to_owned(),
        term: 4,
        faults: vec!["the disk is full".to_owned()],
        ..Report::default()
    };
    ClusterView {
        replicas: [
            (0, Seen::Report(Box::new(leader))),
            (1, Seen::Report(Box::new(follower))),
            (2, Seen::Unreachable("nobody there".to_owned())),
        ]
        .into(),
        strangers: [("h:1".to_owned(), "silent".to_owned())].into(),
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
    assert_eq!(lines[2][6], "7", "the lag its leader counts");
    assert_eq!(lines[3][..2], ["2", "unreachable"]);
    for text in [
        "replica 1: the disk is full",
        "replica 2: nobody there",
        "h:1: silent",
    ] {
        assert!(table.lines().any(|line| line == text), "{text} in {table}");
    }
}

#[test]
fn the_json_names_leader_and_unreachable_replicas() {
    let json = as_json(&view());
    assert_eq!(json["leader"], 0);
    assert_eq!(json["replicas"][1]["report"]["role"], "follower");
    assert_eq!(json["replicas"][2]["reachable"], false);
    assert_eq!(json["unknown"]["h:1"], "silent");
}

#[test]
fn a_deposed_leader_does_not_count() {
    let mut view = view();
    let newer = Report {
        id: 3,
        role: "leader".to_owned(),
        term: 5,
        ready: false,
        ..Report::default()
    };
    view.replicas.insert(3, Seen::Report(Box::new(newer)));
    assert!(
        view.leader().is_none(),
        "the leader of term 5 does not serve yet"
    );
    assert!(view.why_no_leader().contains("replica 3 is leader"));
}

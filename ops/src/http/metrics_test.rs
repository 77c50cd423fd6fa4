//! The metrics page: every figure is there once, typed, with help and unit.
use super::{DURATIONS, HELP, documentation, text};
use quorumwire_node::report::{Durations, FollowerReport, IncomingReport, MemberReport, Report};

fn report() -> Report {
    let member = |id: u16, voter: bool| MemberReport {
        id,
        incarnation: "00".to_owned(),
        voter,
        role: "voter".into(),
        peer: String::new(),
        memcached: None,
        redis: None,
        client: None,
        http: None,
    };
    let mut durations = Durations::default();
    durations.record(5);
    durations.record(1_500);
    durations.record(99_000_000);
    let counters = HELP.keys().cloned();
    Report {
        id: 3,
        cluster: "a \"quoted\" name\n".to_owned(),
        role: "leader".into(),
        term: 7,
        leader: Some(3),
        commit_index: 41,
        log_bytes: 4096,
        uptime_ms: 1_500,
        members: vec![member(3, true), member(4, true), member(5, false)],
        followers: vec![FollowerReport {
            id: 4,
            match_index: 40,
            lag: 2,
            engaged: false,
            in_snapshot: true,
            snapshot_sent_bytes: 3 << 20,
            snapshot_bytes: 7 << 20,
            active: true,
        }],
        incoming_snapshot: Some(IncomingReport {
            what: "receiving a snapshot".to_owned(),
            done_bytes: 5,
            total_bytes: 9,
        }),
        counters: counters.chain(["brand_new".to_owned()]).zip(1..).collect(),
        durations: [("fsync".to_owned(), durations)].into(),
        ..Report::default()
    }
}

#[test]
fn figures_are_shown() {
    let page = text(report()).unwrap();
    for line in [
        "quorumwire_term 7",
        "quorumwire_commit_index 41",
        "quorumwire_leader 3",
        "quorumwire_role{role=\"leader\"} 1",
        "quorumwire_role{role=\"follower\"} 0",
        "quorumwire_members 3",
        "quorumwire_voters 2",
        "quorumwire_log_memory_bytes 4096",
        "quorumwire_uptime_seconds 1.5",
        "quorumwire_follower_lag_entries{follower=\"4\"} 2",
        "quorumwire_follower_in_snapshot{follower=\"4\"} 1",
        "quorumwire_follower_snapshot_sent_bytes{follower=\"4\"} 3145728",
        "quorumwire_follower_snapshot_bytes{follower=\"4\"} 7340032",
        "quorumwire_snapshot_incoming_bytes 9",
        "quorumwire_snapshot_incoming_done_bytes 5",
        "quorumwire_fsync_seconds_bucket{le=\"0.000005\"} 1",
        "quorumwire_fsync_seconds_bucket{le=\"0.001\"} 1",
        "quorumwire_fsync_seconds_bucket{le=\"0.002\"} 2",
        "quorumwire_fsync_seconds_bucket{le=\"+Inf\"} 3",
        "quorumwire_fsync_seconds_count 3",
    ] {
        assert!(page.lines().any(|found| found == line), "{line} in\n{page}");
    }
    assert!(page.ends_with("# EOF\n"));
    assert!(page.contains(r#"cluster="a \"quoted\" name\n""#), "{page}");
}

#[test]
fn every_counter_is_shown_with_its_help() {
    let page = text(report()).unwrap();
    for (number, (name, help)) in (1..).zip(HELP.iter()) {
        let (name, number) = match name.strip_suffix("_microseconds") {
            Some(name) => (format!("{name}_seconds"), f64::from(number) / 1e6),
            None => (name.to_owned(), f64::from(number)),
        };
        let help = format!("# HELP quorumwire_{name} {help}");
        assert!(page.lines().any(|line| line == help), "{help} in\n{page}");
        let value = format!("quorumwire_{name}_total {number}");
        assert!(page.lines().any(|line| line == value), "{value} in\n{page}");
    }
    assert!(page.contains("quorumwire_brand_new_total"), "{page}");
}

#[test]
fn no_name_comes_twice() {
    let page = text(report()).unwrap();
    let mut types: Vec<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .collect();
    types.sort_unstable();
    let count = types.len();
    assert!(count > 30, "{page}");
    types.dedup_by_key(|line| line.split(' ').next().map(str::to_owned));
    assert_eq!(types.len(), count, "{page}");
}

#[test]
fn a_replica_without_leader_shows_minus_one() {
    let page = text(Report::default()).unwrap();
    assert!(page.lines().any(|line| line == "quorumwire_leader -1"));
    assert!(!page.contains("follower_lag"), "{page}");
}

#[test]
fn the_documentation_is_up_to_date() {
    let committed = include_str!("../../../docs/metrics.md");
    assert!(
        committed == documentation().unwrap(),
        "docs/metrics.md differs: write it anew with `quorumwire config docs metrics`"
    );
    for name in DURATIONS {
        assert!(committed.contains(&format!("`quorumwire_{name}_seconds` | histogram")));
    }
}

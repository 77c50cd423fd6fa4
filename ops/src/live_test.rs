//! Figures made of reports that are made up: what is counted between two of them, and what is said when there
//! are no two, no leader, or no answer.
use super::{LiveCluster, LiveDocument, LiveReplica, Observation, SCHEMA};
use quorumwire_node::report::{
    DURATION_BOUNDS_US, Durations, FollowerReport, IncomingReport, MemberReport, Report,
};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const IDS: [u16; 3] = [0, 1, 2];

fn member(id: u16) -> MemberReport {
    MemberReport::voter(id, Some(format!("10.0.0.{id}:7480")))
}

/// Replica 1 leads.
fn report(id: u16, uptime_ms: u64) -> Report {
    let follower = |id: u16| FollowerReport {
        id,
        match_index: 90,
        lag: 10,
        active: true,
        ..FollowerReport::default()
    };
    Report {
        id,
        cluster: "test".to_owned(),
        role: if id == 1 { "leader" } else { "follower" }.into(),
        term: 4,
        leader: Some(1),
        ready: true,
        last_index: 100,
        first_index: 1,
        durability: "sync".into(),
        http: format!("10.0.0.{id}:7480"),
        uptime_ms,
        members: IDS.map(member).to_vec(),
        followers: if id == 1 {
            vec![follower(0), follower(2)]
        } else {
            Vec::new()
        },
        ..Report::default()
    }
}

fn count(report: &mut Report, name: &str, count: u64) {
    report.counters.insert(name.to_owned(), count);
}

struct Watched {
    cluster: LiveCluster,
    at: Instant,
}

impl Watched {
    fn new() -> Self {
        Self {
            cluster: LiveCluster::default(),
            at: Instant::now(),
        }
    }

    /// So long after the last time this was seen.
    fn see(&mut self, after: Duration, seen: Vec<(u16, Result<Report, String>)>) -> LiveDocument {
        self.at += after;
        self.cluster.observe(Observation {
            at: self.at,
            time_ms: 17,
            made_by: Some(0),
            seen: seen.into_iter().collect(),
        })
    }
}

fn all(uptime_ms: u64) -> Vec<(u16, Result<Report, String>)> {
    IDS.map(|id| (id, Ok(report(id, uptime_ms)))).to_vec()
}

fn replica(document: &LiveDocument, id: u16) -> &LiveReplica {
    document.replicas.iter().find(|it| it.id == id).unwrap()
}

fn texts(document: &LiveDocument) -> Vec<(Option<u16>, &str)> {
    let warnings = document.warnings.iter();
    warnings.map(|it| (it.replica, it.text.as_str())).collect()
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn one_reading_has_no_rates_and_all_the_rest() {
    let document = Watched::new().see(SECOND, all(5_000));
    assert_eq!(document.schema, SCHEMA);
    assert_eq!((document.leader, document.term), (Some(1), 4));
    assert_eq!(document.totals.writes_per_s, None);
    assert_eq!(document.replicas.len(), 3);
    assert!(document.warnings.is_empty(), "{:?}", document.warnings);
    for id in IDS {
        let replica = replica(&document, id);
        assert!(replica.reachable);
        assert_eq!(replica.lag, Some(if id == 1 { 0 } else { 10 }));
        let figures = replica.figures.as_ref().unwrap();
        assert_eq!(figures.writes_per_s, None);
        assert_eq!(figures.write_latency, None);
        assert_eq!(figures.plane, "none");
    }
}

#[test]
fn a_snapshot_on_its_way_is_a_warning_that_says_how_far_it_is() {
    let mut seen = all(5_000);
    let leader = seen[1].1.as_mut().unwrap();
    for follower in &mut leader.followers {
        follower.in_snapshot = true;
        follower.snapshot_sent_bytes = 7 << 20;
        follower.snapshot_bytes = 7 << 20;
    }
    seen[2].1.as_mut().unwrap().incoming_snapshot = Some(IncomingReport {
        what: "restoring a snapshot".to_owned(),
        done_bytes: 1 << 20,
        total_bytes: 7 << 20,
    });
    let document = Watched::new().see(SECOND, seen);
    let expected = [
        (Some(0), "is being sent a snapshot: 7 of 7 MiB"),
        (Some(2), "restoring a snapshot: 1 of 7 MiB"),
    ];
    assert_eq!(texts(&document), expected);
}

#[test]
fn rates_are_by_the_replicas_own_clock_and_added_up() {
    let mut watched = Watched::new();
    watched.see(SECOND, all(5_000));
    let mut seen = all(7_000); // two seconds passed there, whatever the network did
    for (id, report) in &mut seen {
        let report = report.as_mut().unwrap();
        count(report, "command_set", 100 * (u64::from(*id) + 1));
        count(report, "command_delete", 2);
        count(report, "command_redis_writes", 20);
        count(report, "command_get_keys", 40);
        count(report, "entries_applied", 1_000);
        count(report, "log_batches", 10);
        count(report, "log_busy_microseconds", 500_000);
    }
    let document = watched.see(SECOND * 3, seen);
    let figures = replica(&document, 2).figures.as_ref().unwrap();
    assert_eq!(figures.writes_per_s, Some(161.0));
    assert_eq!(figures.reads_per_s, Some(20.0));
    let disk = figures.disk.as_ref().unwrap();
    assert_eq!(disk.syncs_per_s, Some(5.0));
    assert_eq!(disk.sync_mean_us, Some(50_000.0));
    assert_eq!(disk.busy, Some(0.25));
    let totals = &document.totals;
    assert_eq!(totals.writes_per_s, Some(61.0 + 111.0 + 161.0));
    assert_eq!(totals.reads_per_s, Some(60.0));
    assert_eq!(totals.entries_per_s, Some(500.0));
    let rates = totals.protocols.iter();
    let rates: BTreeMap<_, _> = rates
        .map(|it| (it.name.as_str(), it.writes_per_s.unwrap()))
        .collect();
    assert_eq!(
        rates,
        [("client", 0.0), ("memcached", 303.0), ("redis", 30.0)].into()
    );
}

#[test]
fn a_process_that_started_anew_has_no_rates() {
    // Its clock went back; it is shorter up than it was away; or it is another life.
    for (uptime_ms, other) in [(400, false), (5_500, false), (15_000, true)] {
        let mut watched = Watched::new();
        watched.see(SECOND, all(5_000));
        let mut seen = all(15_000);
        let mut anew = report(2, uptime_ms);
        if other {
            "01".clone_into(&mut anew.incarnation);
        }
        count(&mut anew, "command_set", 3);
        seen[2] = (2, Ok(anew));
        let document = watched.see(SECOND * 10, seen);
        let rate = |id| {
            replica(&document, id)
                .figures
                .as_ref()
                .unwrap()
                .writes_per_s
        };
        assert_eq!((rate(1), rate(2)), (Some(0.0), None), "{uptime_ms} {other}");
    }
}

#[test]
fn latency_is_that_of_the_leader_and_of_this_tick() {
    let mut watched = Watched::new();
    let mut seen = all(5_000);
    let mut commit = Durations::default();
    for _ in 0..1_000 {
        commit.record(9_000_000); // long ago
    }
    for (_, report) in &mut seen {
        let durations = &mut report.as_mut().unwrap().durations;
        durations.insert("commit".to_owned(), commit.clone());
    }
    watched.see(SECOND, seen);
    for _ in 0..98 {
        commit.record(150);
    }
    commit.record(1_500);
    commit.record(60_000_000); // longer than any bound
    let mut seen = all(6_000);
    for (_, report) in &mut seen {
        let durations = &mut report.as_mut().unwrap().durations;
        durations.insert("commit".to_owned(), commit.clone());
    }
    let document = watched.see(SECOND, seen.clone());
    let latency = document.totals.write_latency.clone().unwrap();
    assert_eq!(latency.count, 100);
    assert!((100.0..=200.0).contains(&latency.p50_us), "{latency:?}");
    assert!((1_000.0..=2_000.0).contains(&latency.p99_us), "{latency:?}");
    let of = |id| {
        replica(&document, id)
            .figures
            .clone()
            .unwrap()
            .write_latency
    };
    assert_eq!((of(0), of(1)), (None, Some(latency)));
    for (_, report) in &mut seen {
        report.as_mut().unwrap().uptime_ms += 1_000;
    }
    let idle = watched.see(SECOND, seen);
    assert_eq!(idle.totals.write_latency, None);
}

#[test]
fn a_quantile_beyond_all_bounds_is_the_last_bound() {
    let mut watched = Watched::new();
    watched.see(SECOND, all(5_000));
    let mut seen = all(6_000);
    let mut commit = Durations::default();
    commit.record(u64::MAX / 4);
    let leader = seen[1].1.as_mut().unwrap();
    leader.durations.insert("commit".to_owned(), commit);
    let latency = watched.see(SECOND, seen).totals.write_latency.unwrap();
    let last = Duration::from_micros(*DURATION_BOUNDS_US.last().unwrap());
    assert!(
        (latency.p99_us - last.as_secs_f64() * 1e6).abs() < 1.0,
        "{latency:?}"
    );
}

#[test]
fn who_does_not_answer_is_shown_as_it_was() {
    let mut watched = Watched::new();
    watched.see(SECOND, all(5_000));
    let mut seen = all(8_000);
    seen[0] = (0, Err("no answer".to_owned()));
    let leader = seen[1].1.as_mut().unwrap();
    leader.followers[0].active = false;
    leader.faults = vec!["disk full".to_owned()];
    let document = watched.see(SECOND * 3, seen);
    let gone = replica(&document, 0);
    assert!(!gone.reachable);
    assert_eq!(gone.silent_ms, Some(3_000));
    assert_eq!(gone.http.as_deref(), Some("10.0.0.0:7480"));
    let figures = gone.figures.as_ref().unwrap();
    assert_eq!(
        (figures.role.as_str(), figures.writes_per_s),
        ("follower", None)
    );
    assert_eq!(
        texts(&document),
        [
            (Some(0), "does not answer: no answer"),
            (Some(0), "the leader does not hear it"),
            (Some(1), "disk full"),
        ]
    );
}

#[test]
fn without_a_leader_it_says_so() {
    let mut watched = Watched::new();
    watched.see(SECOND, all(5_000));
    let mut seen = all(6_000);
    seen[1] = (1, Err("no answer".to_owned()));
    let document = watched.see(SECOND, seen);
    assert_eq!(document.leader, None);
    assert_eq!(texts(&document)[0], (None, "no leader serves"));
    assert_eq!(replica(&document, 0).lag, None);
    // Who leads and cannot serve is no leader, either.
    let mut seen = all(7_000);
    seen[1].1.as_mut().unwrap().ready = false;
    assert_eq!(watched.see(SECOND, seen).leader, None);
    // Nobody at all: what was known stays, as such.
    let nobody = IDS.map(|id| (id, Err("no answer".to_owned()))).to_vec();
    let document = watched.see(SECOND, nobody);
    assert_eq!(document.replicas.len(), 3);
    assert!(document.replicas.iter().all(|it| !it.reachable));
    assert_eq!(document.totals.writes_per_s, None);
}

#[test]
fn who_was_removed_is_forgotten() {
    let mut watched = Watched::new();
    watched.see(SECOND, all(5_000));
    let without = |id: u16| {
        let mut report = report(id, 6_000);
        report.members.truncate(2);
        (id, Ok(report))
    };
    // It was still asked, and answers that it is there.
    let seen = vec![without(0), without(1), (2, Ok(report(2, 6_000)))];
    assert_eq!(watched.see(SECOND, seen).replicas.len(), 3);
    let document = watched.see(SECOND, vec![without(0), without(1)]);
    assert_eq!(document.replicas.len(), 2);
    assert_eq!(watched.cluster.addresses().count(), 2);
}

//! Replicas that tell anything about themselves, to commands, to `quorumwire top` and to the dashboard: it is
//! shown on screens of any size or refused, and what a terminal is told is text.
use super::ask::{AskError, RequestKind, answer};
use super::status::{as_json, as_table};
use super::top::screen::Screen;
use super::view::{ClusterView, ReplicaView};
use quorumwire_fuzz_tests::{Outcomes, Seed, fuzz, grown};
use quorumwire_node::foreign_text::is_plain;
use quorumwire_node::report::{
    DataPlaneReport, Durations, FastTermReport, FollowerReport, MemberReport, RefusedPlaneReport,
    Report,
};
use quorumwire_ops::live::{LiveCluster, LiveDocument, Observation};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use ureq::http::Response;

const ITERATIONS: usize = 250;
const INPUT_BYTES_MAX: usize = 96;
const REPLICAS: u16 = 3;
/// Of these reports, a second after the others.
const MOMENTS: usize = 2;

/// One line each: whose report it is and when, what of it is otherwise, and how. Without a `/` the replica
/// refuses.
fn seeds() -> [Seed; 11] {
    [
        ("well", ""),
        (
            "all-counts-are-high",
            "0 /connections 18446744073709551615\n1 /connections 18446744073709551615\n",
        ),
        (
            "the-log-has-no-end",
            "0 /last_index 18446744073709551615\n0 /first_index 0\n",
        ),
        (
            "durations-are-many",
            "3 /durations/commit/bucket_counts/1 18446744073709551615\n\
             3 /durations/commit/bucket_counts/2 18446744073709551615\n",
        ),
        (
            "a-fault-moves-the-cursor",
            "1 /faults [\"\\u001b[2J\\u001b[H\\r\\nreplica 1: all is well\"]\n",
        ),
        ("a-role-is-a-page-long", "2 /role \"a\\nb\\nc\\u0007\"\n"),
        ("two-with-one-id", "1 /id 0\n2 /id 0\n"),
        (
            "nobody-knows-members",
            "0 /members []\n1 /members []\n2 /members []\n",
        ),
        ("two-leaders", "1 /role \"leader\"\n1 /term 8\n"),
        ("started-anew", "3 /uptime_ms 1\n3 /counters {}\n"),
        ("one-refuses", "0 421 \"not now\\u001b[31m\"\n"),
    ]
    .map(|(name, text)| (name, text.as_bytes().to_vec()))
}

fn report(id: u16, moment: usize) -> Report {
    let leads = id == 0;
    let count = 100 * (moment as u64 + 1);
    let member = |id: u16| MemberReport::voter(id, Some(format!("127.0.0.1:{id}")));
    let follower = |id| FollowerReport {
        id,
        match_index: 90,
        active: true,
        ..FollowerReport::default()
    };
    let counters = [
        "command_set",
        "entries_applied",
        "log_batches",
        "elections_won",
    ];
    let mut durations = Durations::default();
    durations.bucket_counts[3] = count;
    Report {
        id,
        cluster: "trunk".to_owned(),
        role: if leads { "leader" } else { "follower" }.into(),
        term: 7,
        leader: Some(0),
        last_index: 100,
        first_index: 1,
        durability: "sync".into(),
        plane: "none".to_owned(),
        data_plane: Some(DataPlaneReport {
            name: "socket".to_owned(),
            runs: None,
            chosen_by: "auto".into(),
            refused: vec![RefusedPlaneReport {
                name: "xdp".to_owned(),
                why: "no leave".to_owned(),
            }],
        }),
        fast_term: leads.then_some(FastTermReport {
            term: 7,
            for_ms: 70,
            start_index: 9,
        }),
        fast_term_ended: Some("vote".to_owned()),
        incarnation: "0a".to_owned(),
        memory_limit_bytes: 1 << 20,
        ready: true,
        members: (0..REPLICAS).map(member).collect(),
        followers: if leads {
            vec![follower(1), follower(2)]
        } else {
            Vec::new()
        },
        faults: vec!["the disk is slow".to_owned()],
        uptime_ms: 1000 * count,
        connections: 7,
        counters: counters.map(|it| (it.to_owned(), count)).into(),
        durations: ["commit", "turn"]
            .map(|it| (it.to_owned(), durations.clone()))
            .into(),
        ..Report::default()
    }
}

/// What a replica answers: its status, and its body.
type StatusAnswer = (u16, Value);

/// What all answer, at each moment.
fn answers(script: &str) -> [Vec<StatusAnswer>; MOMENTS] {
    let at = |moment| {
        let of = |id| (200, serde_json::to_value(report(id, moment)).expect("JSON"));
        (0..REPLICAS).map(of).collect::<Vec<_>>()
    };
    let mut answers = [at(0), at(1)];
    for line in script.lines() {
        let mut words = line.splitn(3, ' ');
        let (Some(whose), Some(what), Some(how)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let number = usize::from(whose.bytes().next().unwrap_or(b'0').wrapping_sub(b'0'));
        let replicas = usize::from(REPLICAS);
        let answered = &mut answers[number / replicas % MOMENTS][number % replicas];
        let how = serde_json::from_str(how).unwrap_or_else(|_| json!(how));
        if let Ok(status) = what.parse() {
            *answered = (status, json!({ "error": how, "leader": 1 }));
        } else if let Some(place) = answered.1.pointer_mut(what) {
            *place = how;
        }
    }
    answers
}

fn ask(
    id: u16,
    (status, body): &StatusAnswer,
    outcomes: &Outcomes,
) -> Option<Result<Report, AskError>> {
    let body = ureq::Body::builder().data(body.to_string());
    let response = Response::builder().status(*status).body(body).ok()?;
    let answered = answer::<Report>(&format!("127.0.0.1:{id}"), Ok(response), RequestKind::Read);
    outcomes.count(match &answered {
        Ok(_) => {
            assert_eq!(*status, 200);
            "told"
        }
        Err(AskError::Refused { status: said, .. }) => {
            assert!(said == status && *status != 200);
            "refused"
        }
        Err(AskError::Unanswered { .. }) => "no report",
        Err(AskError::Unreachable { .. } | AskError::Barred { .. }) => panic!("it has answered"),
    });
    Some(answered)
}

fn is_a_rate(rate: Option<f64>) {
    assert!(
        rate.is_none_or(|it| it.is_finite() && it >= 0.0),
        "{rate:?}"
    );
}

/// Figures are figures, everybody is named once, and it is read as it is written.
fn is_of_use(document: &LiveDocument) {
    let ids: Vec<u16> = document.replicas.iter().map(|it| it.id).collect();
    assert!(ids.is_sorted_by(|one, next| one < next), "{ids:?}");
    let leader = document
        .leader
        .map(|id| document.replicas.iter().find(|it| it.id == id));
    assert!(leader.is_none_or(|it| it.is_some_and(|it| it.reachable)));
    is_a_rate(document.totals.writes_per_s);
    is_a_rate(document.totals.reads_per_s);
    for figures in document
        .replicas
        .iter()
        .filter_map(|it| it.figures.as_ref())
    {
        is_a_rate(figures.writes_per_s);
        is_a_rate(figures.entries_per_s);
        for latency in [&figures.write_latency, &figures.turn]
            .into_iter()
            .flatten()
        {
            assert!(
                latency.count > 0 && latency.p50_us <= latency.p99_us,
                "{latency:?}"
            );
            is_a_rate(Some(latency.p50_us));
        }
        is_a_rate(figures.disk.as_ref().and_then(|it| it.sync_mean_us));
        is_a_rate(figures.disk.as_ref().and_then(|it| it.busy));
    }
    let written = serde_json::to_value(document).expect("JSON");
    let again: LiveDocument = serde_json::from_value(written.clone()).expect("what we wrote");
    assert_eq!(serde_json::to_value(again).expect("JSON"), written);
}

fn is_text(shown: &str) {
    let strange = shown.chars().find(|it| !is_plain(*it) && *it != '\n');
    assert_eq!(strange, None, "{shown:?}");
}

/// A line for each replica below the headings, then notes; none of them made by what a replica says.
fn is_shown(view: &ClusterView) {
    let table = as_table(view);
    is_text(&table);
    let rows = table.lines().skip(1).take(view.replicas.len());
    for ((id, _), row) in view.replicas.iter().zip(rows) {
        assert!(row.starts_with(&id.to_string()), "{table}");
    }
    let notes = table.lines().skip(1 + view.replicas.len());
    for note in notes.take_while(|line| !line.is_empty()) {
        // What goes on stands further in.
        let begins = ["replica ", "quorum: ", "memory: ", "  "];
        let is_ours = begins.iter().any(|begin| note.starts_with(begin));
        assert!(is_ours, "{table}");
    }
    let leader = as_json(view)["leader"].clone();
    assert_eq!(leader, json!(view.leader().map(|it| it.id)));
    let why = view.why_no_leader();
    is_text(&why);
    assert!(!why.contains('\n'), "{why:?}");
}

#[test]
fn whatever_replicas_tell_is_shown_as_text_or_refused() {
    let outcomes = Outcomes::default();
    let words: [&[u8]; 40] = [
        b"\n0 ",
        b"\n1 ",
        b"\n2 ",
        b"\n3 ",
        b"\n4 ",
        b"\n5 ",
        b"/id ",
        b"/role ",
        b"/term ",
        b"/leader ",
        b"/commit_index ",
        b"/last_index ",
        b"/first_index ",
        b"/uptime_ms ",
        b"/incarnation ",
        b"/faults ",
        b"/members ",
        b"/members/0/http ",
        b"/followers ",
        b"/followers/0/lag ",
        b"/fast_term/for_ms ",
        b"/fast_term_ended ",
        b"/data_plane/name ",
        b"/counters/log_batches ",
        b"/durations/turn/bucket_counts/20 ",
        b"/durations/commit ",
        b"/snapshot_age_ms ",
        b"421 ",
        b"500 ",
        b"0\n",
        b"1\n",
        b"18446744073709551615\n",
        b"-1\n",
        b"null\n",
        b"[]\n",
        b"{}\n",
        b"\"leader\"\n",
        b"\"\\u001b[2J\\n\"\n",
        b"[\"\\u0007\\u009b\"]\n",
        b"1e308\n",
    ];
    fuzz!(
        "what_replicas_tell",
        seeds(),
        ITERATIONS,
        INPUT_BYTES_MAX,
        |input: &[u8]| {
            let bytes = grown(input, &words);
            let (mut cluster, mut screen) = (LiveCluster::default(), Screen::default());
            let begun = Instant::now();
            for (moment, answers) in (0..).zip(answers(&String::from_utf8_lossy(&bytes))) {
                let mut view = ClusterView {
                    replicas: BTreeMap::new(),
                    strangers: BTreeMap::new(),
                    barred: BTreeMap::new(),
                    closed: std::collections::BTreeSet::new(),
                };
                for (id, answered) in (0..).zip(&answers) {
                    match ask(id, answered, &outcomes) {
                        Some(Ok(report)) => {
                            view.replicas
                                .insert(report.id, ReplicaView::Report(Box::new(report)));
                        }
                        Some(Err(error)) => {
                            let unreachable = ReplicaView::Unreachable(error.to_string());
                            view.replicas.entry(id).or_insert(unreachable);
                        }
                        None => return, // no status of HTTP
                    }
                }
                is_shown(&view);
                let seen = view.replicas.into_iter().map(|(id, seen)| match seen {
                    ReplicaView::Report(report) => (id, Ok(*report)),
                    ReplicaView::Unreachable(reason) => (id, Err(reason)),
                });
                let document = cluster.observe(Observation {
                    at: begun + Duration::from_secs(moment),
                    time_ms: moment,
                    made_by: None,
                    seen: seen.collect(),
                });
                is_of_use(&document);
                outcomes.count(if document.leader.is_some() {
                    "led"
                } else {
                    "not led"
                });
                screen.take(document);
            }
            let size = |at: usize, most: u16| u16::from(*input.get(at).unwrap_or(&90)) % most + 1;
            let mut terminal =
                Terminal::new(TestBackend::new(size(0, 150), size(1, 50))).expect("memory");
            terminal.draw(|frame| screen.draw(frame)).expect("memory");
            is_text(&terminal.backend().to_string());
        }
    );
    outcomes.must_be(&["told", "refused", "no report", "led", "not led"]);
}

//! Asking replicas made of a few lines: who is found, and that nothing is asked for twice which may
//! have been carried out.
use super::{
    ClusterView, Patience, ReplicaView, Target, ask_leader, ask_leader_at, gather_with_leader,
};
use crate::commands::ask::{self, AskError, TlsFlags};
use crate::commands::backup::naming_stale;
use quorumwire_interfaces::ReplicaId;
use quorumwire_node::key_folder::KeyFolder;
use quorumwire_node::report::{MemberReport, Report};
use quorumwire_node::tls::ClientTls;
use rustls::{ServerConnection, StreamOwned};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// What a made-up replica answers to a change: status and body; `None` to close without a word.
type Answers = Vec<Option<(u16, Value)>>;

/// A replica of a few lines.
struct Fake {
    address: String,
    report: Arc<Mutex<Report>>,
    changes: Arc<AtomicUsize>,
}

/// Serves a report, and `answers` to changes one after the other, the last one for ever.
fn fake(answers: Answers) -> Fake {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let report = Arc::new(Mutex::new(Report::default()));
    let changes = Arc::new(AtomicUsize::new(0));
    let (told, counted) = (Arc::clone(&report), Arc::clone(&changes));
    thread::spawn(move || {
        for stream in listener.incoming() {
            serve(stream.unwrap(), &answers, &told, &counted);
        }
    });
    Fake {
        address,
        report,
        changes,
    }
}

fn serve(stream: TcpStream, answers: &Answers, report: &Mutex<Report>, changes: &AtomicUsize) {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap_or(0) == 0 {
            return;
        }
    }
    let (status, body) = if head.starts_with("GET ") {
        (200, json!(*report.lock().unwrap()))
    } else {
        let length = head.to_lowercase();
        let length = length.split("content-length: ").nth(1).unwrap();
        let length = length.split("\r\n").next().unwrap().parse().unwrap();
        reader.read_exact(&mut vec![0; length]).unwrap();
        let count = changes.fetch_add(1, Ordering::SeqCst);
        match answers.get(count).or(answers.last()).unwrap() {
            Some((status, body)) => (*status, body.clone()),
            None => return,
        }
    };
    let body = body.to_string();
    let answer = format!(
        "HTTP/1.1 {status} x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let _ = reader.get_mut().write_all(answer.as_bytes());
}

/// A follower 0, the leader 1 and a member 2 nobody is connected to.
fn cluster(answers: Answers) -> (Fake, Fake) {
    let follower = fake(vec![None]);
    let leader = fake(answers);
    let members = vec![
        MemberReport::voter(0, Some(follower.address.clone())),
        MemberReport::voter(1, Some(leader.address.clone())),
        MemberReport::voter(2, None),
    ];
    *follower.report.lock().unwrap() = Report {
        role: "follower".into(),
        http: follower.address.clone(),
        members: members.clone(),
        ..Report::default()
    };
    *leader.report.lock().unwrap() = Report {
        id: 1,
        role: "leader".into(),
        ready: true,
        http: leader.address.clone(),
        members,
        ..Report::default()
    };
    (follower, leader)
}

fn target(fake: &Fake) -> Target {
    Target {
        tls: TlsFlags::default(),
        addr: vec![fake.address.clone()],
        dir: None,
    }
}

fn refusal(status: u16) -> (u16, Value) {
    let body = json!({ "error": "no", "leader": null, "leader_http": null });
    (status, body)
}

#[test]
fn any_replica_leads_to_all_others() {
    let (follower, _leader) = cluster(vec![None]);
    let view = ClusterView::gather(&target(&follower)).unwrap();
    assert_eq!(view.leader().unwrap().id, 1);
    assert_eq!(view.reports().count(), 2);
    assert!(matches!(view.replicas[&2], ReplicaView::Unreachable(_)));
    assert!(view.strangers.is_empty());
}

#[test]
fn a_change_goes_to_the_leader() {
    let (follower, leader) = cluster(vec![Some((200, json!({ "done": true })))]);
    let answer: Value = ask_leader(&target(&follower), "/v1/transfer", &json!({})).unwrap();
    assert_eq!(answer["done"], true);
    let changes = [&follower, &leader].map(|fake| fake.changes.load(Ordering::SeqCst));
    assert_eq!(changes, [0, 1]);
}

#[test]
fn what_certainly_has_not_happened_is_tried_again() {
    let done = Some((200, json!({ "done": true })));
    let (follower, leader) = cluster(vec![Some(refusal(421)), Some(refusal(409)), done]);
    let _: Value = ask_leader(&target(&follower), "/v1/transfer", &json!({})).unwrap();
    assert_eq!(leader.changes.load(Ordering::SeqCst), 3);
}

#[test]
fn what_may_have_happened_is_not_asked_for_twice() {
    let refusals = [503, 500, 400].map(|status| Some(refusal(status)));
    for first in [None].into_iter().chain(refusals) {
        let done = Some((200, json!({ "done": true })));
        let (follower, leader) = cluster(vec![first.clone(), done]);
        let outcome: anyhow::Result<Value> =
            ask_leader(&target(&follower), "/v1/transfer", &json!({}));
        assert!(outcome.is_err(), "{first:?}");
        assert_eq!(leader.changes.load(Ordering::SeqCst), 1, "{first:?}");
    }
}

#[test]
fn silence_and_absence_are_told_apart() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    // Connected by the kernel, and never answered.
    let silent = ask::report(&address, Duration::from_millis(200)).unwrap_err();
    assert!(matches!(silent, AskError::Unanswered { .. }), "{silent}");
    // It was asked to tell something only.
    assert!(!silent.to_string().contains("carried out"), "{silent}");
    drop(listener);
    let absent = ask::report(&address, Duration::from_millis(200)).unwrap_err();
    assert!(matches!(absent, AskError::Unreachable { .. }), "{absent}");
}

/// A port that speaks TLS and closes whatever else comes, as a server's with `client-tls` does.
fn tls_port(dir: &Path) -> String {
    let members = BTreeMap::from([(ReplicaId(0), Vec::new())]);
    let folder = KeyFolder::create(dir, "c", &members, 365).unwrap();
    let files = folder.peer_files(ReplicaId(0));
    let config = ClientTls::load(&files.own, Some(&files), None)
        .unwrap()
        .http;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let tls = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(tls, stream.unwrap());
            let _ = stream.read(&mut [0; 1]); // nobody gets further than a handshake
        }
    });
    address
}

#[test]
fn a_port_that_speaks_tls_is_told_from_one_that_hangs() {
    let dir = tempfile::tempdir().unwrap();
    let address = tls_port(dir.path());
    let nothing = json!({});
    let asked: [Result<Value, AskError>; 2] = [
        ask::get(&address, "/v1/status", Duration::from_secs(5)),
        ask::post(&address, "/v1/transfer", &nothing),
    ];
    for answer in asked {
        let error = answer.unwrap_err();
        let is_barred = matches!(error, AskError::Barred { .. });
        let said = error.to_string();
        assert!(is_barred && said.contains("--tls-ca FILE"), "{said}");
        assert!(!said.contains("carried out"), "nothing was: {said}");
    }
}

#[test]
fn what_cannot_pass_is_not_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    let address = tls_port(dir.path());
    let gone = TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = gone.local_addr().unwrap().to_string(); // and closed
    let target = Target {
        tls: TlsFlags::default(),
        addr: vec![address.clone(), gone],
        dir: None,
    };
    let begun = Instant::now();
    let outcome: anyhow::Result<Value> = ask_leader(&target, "/v1/transfer", &json!({}));
    let said = format!("{:#}", outcome.unwrap_err());
    assert!(begun.elapsed() < Duration::from_secs(10), "{said}");
    assert_eq!(said.matches(&address).count(), 1, "{said}");
    assert!(
        said.contains("--tls-ca FILE") && !said.contains('\n'),
        "{said}"
    );
}

#[test]
fn a_leader_that_cannot_be_asked_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let address = tls_port(dir.path());
    let (follower, _leader) = cluster(vec![None]);
    {
        let mut report = follower.report.lock().unwrap();
        report.leader = Some(1);
        report.members[1].http = Some(address);
    }
    let view = ClusterView::gather(&target(&follower)).unwrap();
    assert!(view.leader().is_none() && !view.may_find_leader());
    let said = view.why_no_leader();
    assert!(said.contains("--tls-ca FILE"), "{said}");
    // Whoever else leads, now or later, can be.
    follower.report.lock().unwrap().leader = None;
    let view = ClusterView::gather(&target(&follower)).unwrap();
    assert!(view.may_find_leader());
}

#[test]
fn one_of_several_addresses_is_enough() {
    let (follower, _leader) = cluster(vec![None]);
    let gone = TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = gone.local_addr().unwrap().to_string(); // and closed
    let target = Target {
        addr: vec![gone, follower.address.clone()],
        ..target(&follower)
    };
    let view = ClusterView::gather(&target).unwrap();
    assert_eq!(view.leader().unwrap().id, 1);
}

/// An election takes a while; who asks before a change would else be told that nobody leads.
#[test]
fn a_leader_that_is_being_elected_is_waited_for() {
    let (follower, leader) = cluster(vec![None]);
    leader.report.lock().unwrap().ready = false;
    let told = Arc::clone(&leader.report);
    let elected = thread::spawn(move || {
        thread::sleep(Duration::from_millis(300));
        told.lock().unwrap().ready = true;
    });
    let view = ClusterView::gather(&target(&follower)).unwrap();
    assert!(view.leader().is_none());
    let view = gather_with_leader(&target(&follower)).unwrap();
    assert!(view.leader().is_some());
    elected.join().unwrap();
}

#[test]
fn who_waits_to_be_taken_in_leads_to_the_cluster_that_it_met() {
    let (follower, _leader) = cluster(vec![None]);
    let joining = fake(vec![None]);
    *joining.report.lock().unwrap() = Report {
        id: 3,
        role: "joining".into(),
        http: joining.address.clone(),
        met_http: Some(follower.address.clone()),
        ..Report::default()
    };
    let view = ClusterView::gather(&target(&joining)).unwrap();
    assert_eq!(view.leader().map(|leader| leader.id), Some(1));
    assert!(matches!(view.replicas[&3], ReplicaView::Report(_)));
    // And where there is no leader: why.
    joining.report.lock().unwrap().met_http = Some("127.0.0.1:1".to_owned());
    let view = ClusterView::gather(&target(&joining)).unwrap();
    let why = view.why_no_leader();
    assert_eq!(why, "no leader serves: replica 3 is no member yet");
}

#[test]
fn what_a_removed_replica_remembers_of_members_is_not_shown() {
    let (follower, _leader) = cluster(vec![None]);
    let removed = fake(vec![None]);
    let members = vec![
        MemberReport::voter(0, Some(follower.address.clone())),
        MemberReport::voter(7, None),
    ];
    *removed.report.lock().unwrap() = Report {
        id: 3,
        role: "removed".into(),
        http: removed.address.clone(),
        members,
        ..Report::default()
    };
    let view = ClusterView::gather(&target(&removed)).unwrap();
    let ids: Vec<u16> = view.replicas.keys().copied().collect();
    assert_eq!(ids, [0, 1, 2, 3]);
}

#[test]
fn a_cluster_at_whose_addresses_nobody_listens_is_not_waited_for() {
    let gone = "127.0.0.1:1".to_owned(); // nobody's, also while other tests listen somewhere
    let target = Target {
        tls: TlsFlags::default(),
        addr: vec![gone.clone()],
        dir: None,
    };
    let begun = Instant::now();
    let outcome: anyhow::Result<Value> = ask_leader(&target, "/v1/transfer", &json!({}));
    let said = format!("{:#}", outcome.unwrap_err());
    assert!(begun.elapsed() < Duration::from_secs(10), "{said}");
    assert!(
        said.starts_with(&format!("{gone} cannot be reached")),
        "{said}"
    );
}

/// Serves connections by these bytes.
fn other_protocol(answer: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer);
        }
    });
    address
}

#[test]
fn whoever_does_not_speak_http_is_said_to() {
    for answer in [&b"ERROR\r\nERROR\r\n"[..], b""] {
        let address = other_protocol(answer);
        let error = ask::report(&address, Duration::from_secs(3)).unwrap_err();
        let said = error.to_string();
        assert!(said.contains("listen-http"), "{said}");
        assert!(
            !said.contains("io: ") && !said.contains("carried out"),
            "{said}"
        );
        // What only ends may come back.
        assert_eq!(error.is_final(), !answer.is_empty(), "{said}");
    }
}

#[test]
fn a_backup_that_finds_no_leader_names_the_other_way_if_a_replica_answers() {
    let (follower, leader) = cluster(vec![None]);
    let told = || {
        let error = naming_stale(anyhow::anyhow!("no leader"), &target(&follower));
        error.to_string()
    };
    assert_eq!(told(), "no leader");
    leader.report.lock().unwrap().role = "follower".into();
    assert!(
        told().starts_with("no leader; --stale copies"),
        "{}",
        told()
    );
}

#[test]
fn who_waits_for_a_leader_gives_up_when_it_was_told_to() {
    let (follower, leader) = cluster(vec![None]);
    leader.report.lock().unwrap().ready = false;
    let patience = Patience {
        lasts: Duration::from_millis(200),
        instead: "",
    };
    let begun = Instant::now();
    let ask = |_: &str| -> Result<(), AskError> { panic!("nobody leads") };
    let error = ask_leader_at(&target(&follower), patience, ask, |_| false).unwrap_err();
    assert!(begun.elapsed() >= patience.lasts);
    assert!(error.to_string().contains("no leader serves"), "{error}");
}

/// The memory of a survivor can be saved; whoever looks at the cluster is to learn that in time.
#[test]
fn where_too_few_remember_it_is_said_who_does_and_how_to_save_it() {
    let survivor = Report {
        id: 2,
        role: "candidate".into(),
        durability: "memory".into(),
        quorum: "majority".to_owned(),
        members: (0..3).map(|id| MemberReport::voter(id, None)).collect(),
        http: "10.0.0.2:7480".to_owned(),
        ..Report::default()
    };
    let returned = |id| Report {
        id,
        role: "joining".into(),
        durability: "memory".into(),
        ..Report::default()
    };
    let why = |reports: Vec<Report>| {
        let seen = reports.into_iter();
        let seen = seen.map(|it| (it.id, ReplicaView::Report(Box::new(it))));
        let view = ClusterView {
            replicas: seen.collect(),
            strangers: BTreeMap::new(),
            barred: BTreeMap::new(),
            closed: [].into(),
        };
        view.why_no_leader()
    };
    let said = why(vec![returned(0), returned(1), survivor.clone()]);
    for part in [
        "2 of 3 voters",
        "replica 2 still holds data",
        "replica 0, 1 has forgotten",
        "quorumwire backup --stale --to FILE --addr 10.0.0.2:7480",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // An election is under way, or a cluster has not begun.
    let other = Report {
        id: 1,
        ..survivor.clone()
    };
    for reports in [
        vec![returned(0), other, survivor],
        vec![returned(0), returned(1)],
    ] {
        let said = why(reports);
        assert!(!said.contains("--stale"), "{said}");
    }
}

//! The command line with real processes: a cluster of `quorumwire dev`, and the other commands on it.
//! Needs nothing but the binary and loopback.
use super::quorumwire;
use redis::Commands as _;
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Longest wait for anything; a machine with two busy cores is slow.
const DEADLINE: Duration = Duration::from_mins(1);
/// Leaders stay although many tests run at once.
const CALM: [&str; 3] = ["--", "--election-timeout-ms", "600"];
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Runs a command to its end, which must come by itself.
fn run(arguments: &[&str]) -> Output {
    quorumwire(arguments).output().unwrap()
}

fn stdout_of(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// What `quorumwire dev` complains of from its start to its end. `meanwhile` has its replicas' processes, and
/// is to end it.
fn complaints_of_dev(dir: &Path, meanwhile: impl FnOnce(&Dev)) -> String {
    let errors = dir.with_extension("errors");
    let file = std::fs::File::create(&errors).unwrap();
    let mut dev = Dev::start_saying(dir, &CALM, file.into());
    meanwhile(&dev);
    dev.wait();
    std::fs::read_to_string(errors).unwrap()
}

/// A running `quorumwire dev`. Killed when dropped, and its replicas with it.
struct Dev {
    process: Child,
    /// What it printed when a leader served.
    line: Value,
}

impl Dev {
    fn start(dir: &Path, durability: &str) -> Self {
        Self::start_with(dir, durability, "none")
    }

    fn start_with(dir: &Path, durability: &str, plane: &str) -> Self {
        let options = ["--durability", durability, "--plane", plane];
        Self::start_told(dir, &[&options[..], &CALM].concat())
    }

    fn start_told(dir: &Path, words: &[&str]) -> Self {
        Self::start_saying(dir, words, Stdio::inherit())
    }

    fn start_saying(dir: &Path, words: &[&str], errors: Stdio) -> Self {
        let dir = dir.to_str().unwrap();
        let mut process = quorumwire(&["dev", "--json", "--dir", dir])
            .args(words)
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .unwrap();
        let stdout = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in stdout.lines() {
                let _ = sender.send(line.unwrap());
            }
        });
        let line = lines.recv_timeout(DEADLINE);
        let mut dev = Self {
            process,
            line: Value::Null,
        };
        dev.line = serde_json::from_str(&line.expect("one line in time")).unwrap();
        dev
    }

    fn memcached(&self, id: usize) -> &str {
        self.line["replicas"][id]["memcached"].as_str().unwrap()
    }

    fn http(&self, id: usize) -> &str {
        self.line["replicas"][id]["http"].as_str().unwrap()
    }

    fn leader(&self) -> usize {
        usize::try_from(self.line["leader"].as_u64().unwrap()).unwrap()
    }

    fn pids(&self) -> Vec<i32> {
        let replicas = self.line["replicas"].as_array().unwrap().iter();
        let pids = replicas.map(|replica| replica["pid"].as_i64().unwrap());
        pids.map(|pid| i32::try_from(pid).unwrap()).collect()
    }

    fn signal(&self, signal: rustix::process::Signal) {
        signal_to(i32::try_from(self.process.id()).unwrap(), signal);
    }

    fn wait(&mut self) -> ExitStatus {
        let mut status = None;
        wait_for("dev to end", || {
            status = self.process.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    fn stop(mut self) {
        self.signal(rustix::process::Signal::TERM);
        assert!(self.wait().success());
        self.assert_no_replica_runs();
    }

    fn assert_no_replica_runs(&self) {
        for pid in self.pids() {
            wait_for("the replicas to end", || !runs(pid));
        }
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn signal_to(pid: i32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// Whether a process runs, not counting one that only waits to be reaped.
fn runs(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
    state.is_some_and(|state| !state.starts_with('Z'))
}

fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < DEADLINE, "waited too long for {what}");
        thread::sleep(POLL_INTERVAL);
    }
}

/// Sends `request` and `quit`; everything that is answered.
fn memcached(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream
        .write_all(format!("{request}quit\r\n").as_bytes())
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn set(address: &str, key: &str, value: &str) {
    let request = format!("set {key} 0 0 {}\r\n{value}\r\n", value.len());
    assert_eq!(memcached(address, &request), "STORED\r\n");
}

fn get(address: &str, key: &str) -> Option<String> {
    let answer = memcached(address, &format!("get {key}\r\n"));
    if answer == "END\r\n" {
        return None;
    }
    let mut lines = answer.lines();
    assert!(lines.next().unwrap().starts_with("VALUE "), "{answer}");
    Some(lines.next().unwrap().to_owned())
}

fn status(dir: &Path) -> (bool, Value) {
    let output = run(&["status", "--json", "--dir", dir.to_str().unwrap()]);
    let json = serde_json::from_slice(&output.stdout).unwrap();
    (output.status.success(), json)
}

#[test]
fn a_cluster_keeps_its_data_over_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let dev = Dev::start(dir.path(), "sync");
    assert_eq!(dev.line["replicas"].as_array().unwrap().len(), 3);
    for id in 0..3 {
        set(
            dev.memcached(id),
            &format!("by-{id}"),
            &format!("value-{id}"),
        );
    }
    for id in 0..3 {
        let value = get(dev.memcached(id), "by-1");
        assert_eq!(value.as_deref(), Some("value-1"), "asked replica {id}");
    }
    let (serves, json) = status(dir.path());
    assert!(serves);
    let leader = usize::try_from(json["leader"].as_u64().unwrap()).unwrap();
    let reports = json["replicas"].as_array().unwrap();
    assert_eq!(reports.len(), 3);
    assert_eq!(reports[leader]["report"]["role"], "leader");
    assert!(
        reports
            .iter()
            .all(|seen| seen["report"]["durability"] == "sync")
    );
    let addresses = [dev.memcached(0).to_owned(), dev.http(0).to_owned()];
    dev.stop();

    let (serves, json) = status(dir.path());
    assert!(!serves, "no replica runs: {json}");
    let dev = Dev::start(dir.path(), "sync");
    assert_eq!([dev.memcached(0), dev.http(0)], addresses);
    for id in 0..3 {
        let value = get(dev.memcached(2), &format!("by-{id}"));
        assert_eq!(value, Some(format!("value-{id}")));
    }
    dev.stop();
}

#[test]
fn a_killed_cluster_keeps_its_data_and_leaves_no_process() {
    let dir = tempfile::tempdir().unwrap();
    let mut dev = Dev::start(dir.path(), "sync");
    set(dev.memcached(0), "key", "value");
    dev.signal(rustix::process::Signal::KILL);
    assert!(!dev.wait().success());
    dev.assert_no_replica_runs();
    let dev = Dev::start(dir.path(), "sync");
    assert_eq!(get(dev.memcached(1), "key").as_deref(), Some("value"));
    dev.stop();
}

#[test]
fn memory_begins_anew() {
    let dir = tempfile::tempdir().unwrap();
    let dev = Dev::start(dir.path(), "memory");
    set(dev.memcached(0), "key", "value");
    dev.stop();
    let dev = Dev::start(dir.path(), "memory");
    assert_eq!(get(dev.memcached(0), "key"), None);
    dev.stop();
    let dir = dir.path().to_str().unwrap();
    let refused = run(&["dev", "--dir", dir, "--durability", "sync"]);
    assert_eq!(refused.status.code(), Some(2));
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(
        text.contains("durability") && text.contains("memory, as in"),
        "{text}"
    );
}

#[test]
fn a_replica_that_dies_is_reported_and_the_others_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let dev = Dev::start(dir.path(), "sync");
    let leader = dev.leader();
    set(dev.memcached(leader), "key", "value");
    signal_to(dev.pids()[leader], rustix::process::Signal::KILL);
    let survivor = (leader + 1) % 3;
    // Nothing is served for a moment, and nothing wrong ever.
    wait_for("the next leader", || {
        let answer = memcached(dev.memcached(survivor), "get key\r\n");
        assert!(
            answer == "VALUE key 0 5\r\nvalue\r\nEND\r\n" || answer.starts_with("SERVER_ERROR"),
            "{answer}"
        );
        answer.starts_with("VALUE")
    });
    wait_for("status to know the next leader", || status(dir.path()).0);
    let (_, json) = status(dir.path());
    assert_eq!(json["replicas"][leader]["reachable"], false);
    assert_ne!(json["leader"], leader);
    let table = stdout_of(&["status", "--dir", dir.path().to_str().unwrap()]);
    assert!(table.contains("unreachable"), "{table}");
    let again = leader.to_string();
    let folder = dir.path().to_str().unwrap();
    let restart = ["dev", "--restart", &again, "--dir", folder];
    let restarted = stdout_of(&restart);
    let begin = format!("replica {leader} was started again (PID ");
    let pid = restarted.strip_prefix(&begin);
    let pid = pid.unwrap_or_else(|| panic!("{restarted}"));
    let same = stdout_of(&restart);
    let already = format!(
        "replica {leader} runs already (PID {}: nothing was done\n",
        pid.trim()
    );
    assert_eq!(same, already);
    let (_, json) = status(dir.path());
    assert_eq!(json["replicas"][leader]["reachable"], true, "{json}");
    dev.signal(rustix::process::Signal::TERM); // its processes are others than at the start
    let mut dev = dev;
    assert!(dev.wait().success());
}

/// Whoever kills a replica is told how to bring it back, and whoever ends all what became of them.
#[test]
fn who_tries_it_out_is_told_what_happens() {
    let kill = rustix::process::Signal::KILL;
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("cluster");
    let errors = dir.with_extension("errors");
    let has_said = |text: &str| std::fs::read_to_string(&errors).unwrap().contains(text);
    let said = complaints_of_dev(&dir, |dev| {
        signal_to(dev.pids()[1], kill);
        wait_for("the way back", || has_said("to start it again: "));
        dev.signal(rustix::process::Signal::INT);
    });
    let command = format!("dev --restart 1 --dir {}\n", dir.display());
    assert!(said.contains(&command), "{said}");
    assert!(
        said.ends_with("stopping all replicas\nall replicas have stopped\n"),
        "{said}"
    );
    let said = complaints_of_dev(&dir, |dev| {
        for pid in dev.pids() {
            signal_to(pid, kill);
        }
    });
    let last = said.lines().last().unwrap_or_default();
    assert!(last.starts_with("error: no replica is left"), "{said}");
}

fn redis(dev: &Dev, id: usize) -> redis::Connection {
    let address = dev.line["replicas"][id]["server"].as_str().unwrap();
    let client = redis::Client::open(format!("redis://{address}/")).unwrap();
    let connection = client.get_connection_with_timeout(DEADLINE).unwrap();
    connection.set_read_timeout(Some(DEADLINE)).unwrap();
    connection
}

#[test]
fn a_program_is_served_and_outlives_its_leader() {
    let dir = tempfile::tempdir().unwrap();
    let program = ["--", "redis-server", "--port", "6379"];
    let mut dev = Dev::start_told(dir.path(), &[&CALM[..], &program].concat());
    let first = &dev.line["replicas"][0];
    assert!(first["memcached"].is_null() && first["redis"].is_null());
    let leader = dev.leader();
    let [one, other] = [(leader + 1) % 3, (leader + 2) % 3];
    let mut writer = redis(&dev, one);
    let mut reader = redis(&dev, other);
    let pushed: u32 = writer.rpush("list", &["a", "b"]).unwrap();
    assert_eq!(pushed, 2);
    let list: Vec<String> = reader.lrange("list", 0, -1).unwrap();
    assert_eq!(list, ["a", "b"]);

    signal_to(dev.pids()[leader], rustix::process::Signal::KILL);
    let pushed: u32 = writer.rpush("list", "c").unwrap();
    assert_eq!(pushed, 3, "its connection is as before");
    let list: Vec<String> = reader.lrange("list", 0, -1).unwrap();
    assert_eq!(list, ["a", "b", "c"]);

    let folder = dir.path().to_str().unwrap();
    let again = leader.to_string();
    stdout_of(&["dev", "--restart", &again, "--dir", folder]);
    wait_for("its program to be as far as the others'", || {
        let address = dev.line["replicas"][leader]["server"].as_str().unwrap();
        TcpStream::connect(address).is_ok()
    });
    let list: Vec<String> = redis(&dev, leader).lrange("list", 0, -1).unwrap();
    assert_eq!(list, ["a", "b", "c"]);
    dev.signal(rustix::process::Signal::TERM);
    assert!(dev.wait().success());
    for id in [one, other] {
        assert!(!runs(dev.pids()[id]));
    }

    // The folder knows what it serves, and serves nothing else.
    let dev = Dev::start_told(dir.path(), &CALM);
    let list: Vec<String> = redis(&dev, leader).lrange("list", 0, -1).unwrap();
    assert_eq!(list, ["a", "b", "c"]);
    dev.stop();
    let refused = run(&["dev", "--dir", folder, "--", "redis-server", "--port", "1"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("--port 6379"), "{said}");
}

#[test]
fn what_servers_would_refuse_is_refused_before_any_starts() {
    for (words, said) in [
        (&["--lease-ms", "1"][..], "lease-ms"),
        (&["--nonsense", "1"], "--nonsense"),
        (&["x"], "--serve PORT"),
        (
            &["--memory-limit-mib", "64", "--", "x", "-p", "7"],
            "--memory-limit-mib",
        ),
    ] {
        let output = run(&[&["dev", "--json", "--"], words].concat());
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(said), "{text}");
    }
    // Only the servers see this.
    let output = run(&["dev", "--", "--client-auth-file", "/nowhere"]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(text.contains("the end of its log:"), "{text}");
    assert!(
        !text.contains("quorumwire-dev-"),
        "its folder is gone: {text}"
    );
}

#[test]
fn administration_works_by_any_replica() {
    let dir = tempfile::tempdir().unwrap();
    let dev = Dev::start(dir.path(), "sync");
    let to = (dev.leader() + 1) % 3;
    let any = dev.http((dev.leader() + 2) % 3);
    let moved = stdout_of(&["transfer", "--to", &to.to_string(), "--addr", any]);
    assert_eq!(moved, format!("replica {to} leads\n"));
    stdout_of(&["quorum", "all", "--addr", any]);
    let list: Value =
        serde_json::from_str(&stdout_of(&["member", "list", "--json", "--addr", any])).unwrap();
    assert_eq!(list["quorum"], "all");
    assert_eq!(list["members"].as_array().unwrap().len(), 3);
    let shown = stdout_of(&["quorum", "--addr", any]);
    assert!(shown.starts_with("all: "), "{shown}");
    stdout_of(&["quorum", "majority", "--addr", any]);
    set(dev.memcached(0), "key", "value");
    let refused = run(&["memory", "--limit", "2", "--addr", any]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let evict = [
        "memory", "--limit", "2b", "--policy", "evict", "--addr", any,
    ];
    let refused = run(&evict);
    assert_eq!(
        refused.status.code(),
        Some(1),
        "nobody can be asked: {refused:?}"
    );
    assert_eq!(get(dev.memcached(0), "key").as_deref(), Some("value"));
    stdout_of(&[&evict[..], &["--yes"]].concat());
    assert_eq!(get(dev.memcached(0), "key"), None);
    stdout_of(&["memory", "--limit", "none", "--addr", any]);
    let taken = stdout_of(&["snapshot", "--dir", dir.path().to_str().unwrap()]);
    assert_eq!(taken.lines().count(), 3, "{taken}");
    let removed = dev.leader();
    stdout_of(&[
        "member",
        "remove",
        "--id",
        &removed.to_string(),
        "--addr",
        any,
    ]);
    let log = dir.path().join(format!("{removed}.log"));
    wait_for("the log to say that it was removed", || {
        let log = std::fs::read_to_string(&log).unwrap();
        log.contains("this replica was removed from the cluster")
    });
    let shown = run(&["status", "--addr", dev.http(removed)]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    let of_removed = format!("replica {removed}: it was removed from the cluster");
    assert!(shown.contains(&of_removed), "{shown}");
    let list = stdout_of(&["member", "list", "--addr", any]);
    assert_eq!(
        list.lines().count(),
        5,
        "headings, two members, quorum, lineage: {list}"
    );
    let unknown = run(&["member", "promote", "--id", "77", "--addr", any]);
    assert_eq!(unknown.status.code(), Some(1), "{unknown:?}");
    dev.stop();
}

#[test]
fn a_member_joins_and_votes() {
    let dir = tempfile::tempdir().unwrap();
    let dev = Dev::start(&dir.path().join("three"), "sync");
    set(dev.memcached(0), "key", "value");
    let record = std::fs::read(dir.path().join("three/dev.json")).unwrap();
    let record: Value = serde_json::from_slice(&record).unwrap();
    let places = record["replicas"].as_array().unwrap().iter();
    let members =
        places.map(|place| format!("{}={}", place["id"], place["peer"].as_str().unwrap()));
    let members = members.collect::<Vec<_>>().join(",");
    let data = dir.path().join("four");
    let data = data.to_str().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = listener.local_addr().unwrap().to_string();
    drop(listener);
    let keys = dir.path().join("three/keys");
    let of_keys = |file: &str| keys.join(file).to_str().unwrap().to_owned();
    stdout_of(&["keys", "add", "--dir", &of_keys(""), "--member", "3"]);
    let mut fourth = quorumwire(&["server", "--id", "3", "--dir", data, "--join"])
        .args(["--tls-ca", &of_keys("ca.pem")])
        .args(["--tls-cert", &of_keys("replica-3.pem")])
        .args(["--tls-key", &of_keys("replica-3-key.pem")])
        .args(["--cluster", record["cluster"].as_str().unwrap()])
        .args(["--members", &members, "--listen-peer", &peer])
        .args([
            "--listen-memcached=127.0.0.1:0",
            "--listen-redis=127.0.0.1:0",
            "--listen-client=127.0.0.1:0",
            "--listen-http=127.0.0.1:0",
        ])
        .args(["--die-with-parent", &std::process::id().to_string()])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let added = stdout_of(&[
        "member",
        "add",
        "--id",
        "3",
        "--peer",
        &peer,
        "--addr",
        dev.http(1),
    ]);
    assert_eq!(added, "replica 3 is a voter\n");
    let (_, json) = status(Path::new(data));
    let reports = json["replicas"].as_array().unwrap();
    assert_eq!(reports.len(), 4);
    let address = reports[3]["report"]["memcached"].as_str().unwrap();
    assert_eq!(get(address, "key").as_deref(), Some("value"));
    signal_to(
        i32::try_from(fourth.id()).unwrap(),
        rustix::process::Signal::TERM,
    );
    assert!(fourth.wait().unwrap().success());
    dev.stop();
}

#[test]
fn metrics_explain_every_figure() {
    for plane in ["none", "socket"] {
        let dir = tempfile::tempdir().unwrap();
        let dev = Dev::start_with(dir.path(), "sync", plane);
        set(dev.memcached(0), "key", "value");
        // On a busy machine leadership moves: whoever says that it leads does so.
        let begun = Instant::now();
        let page = loop {
            let mut pages = (0..3).map(|id| metrics(dev.http(id)));
            if let Some(page) = pages.find(|it| it.contains("quorumwire_role{role=\"leader\"} 1")) {
                break page;
            }
            assert!(begun.elapsed() < DEADLINE, "nobody says that it leads");
        };
        let shows_plane = page.contains("quorumwire_plane_socket_received_total");
        assert_eq!(shows_plane, plane == "socket", "{page}");
        let unexplained: Vec<&str> = page
            .lines()
            .filter(|line| line.contains("Counted since the process started"))
            .collect();
        assert_eq!(unexplained, Vec::<&str>::new(), "with plane {plane}");
        dev.stop();
    }
}

/// What a replica answers to `GET /metrics`, head included.
fn metrics(http: &str) -> String {
    let mut stream = TcpStream::connect(http).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    page
}

#[test]
fn the_load_is_measured() {
    let dir = tempfile::tempdir().unwrap();
    let dev = Dev::start(dir.path(), "memory");
    let pids: Vec<String> = dev.pids().iter().map(ToString::to_string).collect();
    let addresses = [dev.memcached(0), dev.memcached(1), dev.memcached(2)].join(",");
    let common = ["bench", "--json", "--addr", &addresses, "--server-pids"];
    let pids = pids.join(",");
    let run = |arguments: &[&str]| -> Value {
        let all = [&common[..], &[&pids], arguments].concat();
        serde_json::from_str(&stdout_of(&all)).unwrap()
    };
    let writes = run(&["--operations", "5000", "--threads", "2"]);
    let failed = |json: &Value| -> u64 {
        let counts = json["errors"].as_object().unwrap().values();
        counts.map(|count| count.as_u64().unwrap()).sum()
    };
    let succeeded = writes["operations"].as_u64().unwrap();
    assert!(succeeded > 0, "{writes}");
    assert_eq!(succeeded + failed(&writes), 5000, "{writes}");
    assert!(writes["latency_us"]["p99"].as_f64() >= writes["latency_us"]["p50"].as_f64());
    assert!(writes["latency_us"]["p50"].as_f64().unwrap() > 0.0);
    assert!(writes["server_cpu_us_per_operation"].as_f64().is_some());
    let reads = run(&[
        "--operations",
        "3000",
        "--write-percent",
        "0",
        "--keys",
        "100",
    ]);
    let succeeded = reads["operations"].as_u64().unwrap();
    assert!(succeeded > 0, "{reads}");
    assert_eq!(succeeded + failed(&reads), 3000, "{reads}");
    assert_eq!(reads["misses"], 0);
    let by_time = run(&["--seconds", "1", "--connections", "1", "--in-flight", "1"]);
    assert!(by_time["operations"].as_u64().unwrap() > 0);
    assert!(by_time["seconds"].as_f64().unwrap() < 10.0, "{by_time}");
    dev.stop();
}

#[test]
fn the_demonstration_loses_nothing() {
    let shown = stdout_of(&["demo"]);
    assert!(shown.contains(" 0 lost"), "{shown}");
    let in_kernel = "Their data planes run in the kernel, each";
    let can = rustix::process::geteuid().is_root() && cfg!(target_arch = "x86_64");
    assert_eq!(shown.contains(in_kernel), can, "{shown}");
    assert_eq!(
        shown.matches("values are there after").count(),
        2,
        "{shown}"
    );
    assert!(
        shown.contains("the data of all three Redis are equal"),
        "{shown}"
    );
    assert!(
        !shown.contains('\u{1b}'),
        "no colours where there is no terminal"
    );
}

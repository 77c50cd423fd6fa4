//! `docs/examples/rust/own_machine.rs`, as it stands there: three replicas of it on this machine, of which
//! the leader is killed, and all of which start again from their snapshots.
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const DEADLINE: Duration = Duration::from_mins(1);
const REPLICAS: usize = 3;
/// What each listens on: for replicas, clients and HTTP. Below those that the system gives to outgoing
/// connections.
const PORTS: std::ops::Range<u16> = 15_000..32_000;

/// The example.
fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let programs = test.parent().and_then(Path::parent).unwrap();
    let program = programs.join("examples/own_machine");
    let how = "compile it first: cargo build --workspace --examples, or run tools/run-tests --package ops";
    assert!(program.exists(), "{how}");
    program
}

/// The processes, which die with this.
struct Bank {
    folder: tempfile::TempDir,
    ports: Vec<u16>,
    replicas: [Option<Child>; REPLICAS],
}

impl Drop for Bank {
    fn drop(&mut self) {
        for id in 0..REPLICAS {
            self.kill(id);
            if thread::panicking() {
                let log = std::fs::read_to_string(self.log(id)).unwrap_or_default();
                eprintln!("replica {id}:\n{log}");
            }
        }
    }
}

impl Bank {
    /// Three replicas that listen nowhere yet, at ports that are free.
    fn new() -> Self {
        let first = PORTS.start + u16::try_from(std::process::id() % 16_000).unwrap();
        let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
        let ports = (first..PORTS.end).chain(PORTS).filter(is_free);
        Self {
            folder: tempfile::tempdir().unwrap(),
            ports: ports.take(3 * REPLICAS).collect(),
            replicas: [const { None }; REPLICAS],
        }
    }

    fn address(&self, id: usize, which: usize) -> String {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.ports[3 * id + which])).to_string()
    }

    fn log(&self, id: usize) -> PathBuf {
        self.folder.path().join(format!("{id}.log"))
    }

    fn start(&mut self, id: usize) {
        let members = (0..REPLICAS).map(|id| format!("{id}={}", self.address(id, 0)));
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.log(id))
            .unwrap();
        let replica = Command::new(program())
            .env("QUORUMWIRE_ID", id.to_string())
            .env("QUORUMWIRE_DIR", self.folder.path().join(id.to_string()))
            .env("QUORUMWIRE_MEMBERS", members.collect::<Vec<_>>().join(","))
            .env("QUORUMWIRE_LISTEN_PEER", self.address(id, 0))
            .env("QUORUMWIRE_LISTEN_CLIENT", self.address(id, 1))
            .env("QUORUMWIRE_LISTEN_HTTP", self.address(id, 2))
            .env("QUORUMWIRE_PLANE", "none")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        self.replicas[id] = Some(replica);
    }

    fn kill(&mut self, id: usize) {
        if let Some(mut replica) = self.replicas[id].take() {
            replica.kill().ok(); // it may have ended by itself
            replica.wait().unwrap();
        }
    }

    /// What the example prints for this client.
    fn ask(&self, words: &str) -> String {
        let addresses: Vec<_> = (0..REPLICAS).map(|id| self.address(id, 1)).collect();
        let mut client = Command::new(program());
        client.arg(addresses.join(",")).args(words.split(' '));
        let done = client.output().unwrap();
        let error = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{error}");
        String::from_utf8(done.stdout)
            .unwrap()
            .trim_end()
            .to_owned()
    }

    /// Of a replica's `/v1/status`; `None`: it does not answer.
    fn status(&self, id: usize) -> Option<serde_json::Value> {
        let url = format!("http://{}/v1/status", self.address(id, 2));
        let text = ureq::get(url)
            .call()
            .ok()?
            .body_mut()
            .read_to_string()
            .ok()?;
        serde_json::from_str(&text).ok()
    }

    fn wait_for<T>(&self, what: &str, mut found: impl FnMut(&Self) -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            if let Some(found) = found(self) {
                return found;
            }
            assert!(begun.elapsed() < DEADLINE, "{what}: not in time");
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn wait_for_leader(&self) -> usize {
        self.wait_for("a leader", |bank| {
            (0..REPLICAS).find(|id| {
                bank.status(*id)
                    .is_some_and(|status| status["role"] == "leader")
            })
        })
    }
}

#[test]
fn a_bank_of_ones_own_outlives_its_leader_and_its_processes() {
    let mut bank = Bank::new();
    (0..REPLICAS).for_each(|id| bank.start(id));
    assert_eq!(bank.ask("pay 10 to anna"), "10");
    assert_eq!(bank.ask("move 3 from anna to bob"), "3");
    assert_eq!(bank.ask("move 8 from anna to bob"), "refused");
    assert_eq!(bank.ask("steal 8"), "refused");

    let leader = bank.wait_for_leader();
    bank.kill(leader);
    assert_eq!(bank.ask("move 2 from anna to bob"), "5");
    let balances =
        |bank: &Bank| ["anna", "bob", "carl"].map(|who| bank.ask(&format!("show {who}")));
    assert_eq!(balances(&bank), ["5", "5", "0"]);

    // All start again from what they have stored: two from a snapshot, one from its log and from theirs.
    for id in (0..REPLICAS).filter(|id| *id != leader) {
        let url = format!("http://{}/v1/snapshot", bank.address(id, 2));
        let taken = ureq::post(url).content_type("application/json").send("{}");
        assert!(taken.is_ok(), "{taken:?}");
        bank.kill(id);
    }
    (0..REPLICAS).for_each(|id| bank.start(id));
    assert_eq!(balances(&bank), ["5", "5", "0"]);
    let restored = (0..REPLICAS).filter(|id| {
        let log = std::fs::read_to_string(bank.log(*id)).unwrap();
        log.contains("restoring the snapshot")
    });
    assert!(restored.count() >= 2);
    assert_eq!(bank.ask("move 5 from bob to carl"), "5");

    // The ports of protocols that it does not speak are nowhere.
    let status = bank.wait_for("a status", |bank| bank.status(0));
    assert_eq!(
        (&status["memcached"], &status["redis"]),
        (&"".into(), &"".into())
    );
    assert_eq!(status["client"], bank.address(0, 1));
    assert_eq!(status["cluster"], "quorumwire/bank");
}

//! The second part of `quorumwire demo`: the same for a Redis that was not written for it, spoken with by its
//! own tools.
use super::interrupt::Interrupt;
use super::local_cluster::{LocalCluster, Program, START_TIMEOUT};
use super::progress::Progress;
use anyhow::{Context as _, ensure};
use quorumwire_node::options::Durability;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const SERVER: &str = "redis-server";
const LOAD: &str = "redis-benchmark";
const CLIENT: &str = "redis-cli";
const PORT: u16 = 6379;
const CLIENTS: &str = "24";
const REQUESTS: &str = "20000";
/// The leader is killed so long after the load began.
const LOAD_BEFORE_KILL: Duration = Duration::from_millis(300);
/// How long the load may take in all.
const LOAD_MAX: Duration = Duration::from_mins(2);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// What is stored before the leader dies, in words of `redis-cli`, and what it says.
const STORED: [(&[&str], &str); 3] = [
    (&["rpush", "list", "a", "b", "c"], "3"),
    (&["hset", "hash", "field", "value"], "1"),
    (
        &[
            "eval",
            "return redis.call('incrby', KEYS[1], ARGV[1])",
            "1",
            "by-script",
            "42",
        ],
        "42",
    ),
];
/// What is asked of every replica afterwards.
const ASKED: [(&[&str], &str); 3] = [
    (&["lrange", "list", "0", "-1"], "a\nb\nc"),
    (&["hget", "hash", "field"], "value"),
    (
        &[
            "eval",
            "return redis.call('get', KEYS[1])",
            "1",
            "by-script",
        ],
        "42",
    ),
];

/// A process that does not outlive this.
struct Beside(Child);

impl Drop for Beside {
    fn drop(&mut self) {
        self.0.kill().ok(); // it has ended
        self.0.wait().ok();
    }
}

/// Shows it, in this folder; what is missing, if it cannot be shown here.
pub fn play(dir: &Path, interrupt: &Interrupt) -> anyhow::Result<Option<&'static str>> {
    for tool in [SERVER, LOAD, CLIENT] {
        let tried = Command::new(tool).arg("--version").output();
        if !tried.is_ok_and(|it| it.status.success()) {
            return Ok(Some(tool));
        }
    }
    let command = [SERVER, "--port", "6379", "--enable-debug-command", "yes"];
    let program = Program {
        command: command.map(str::to_owned).to_vec(),
        port: PORT,
    };
    let count = Some(3);
    let (cluster, _) =
        LocalCluster::open_serving(dir, count, Durability::Sync, &[], Some(&program))?;
    let mut demo = Demo {
        cluster,
        interrupt,
        since: Instant::now(),
    };
    demo.play()?;
    Ok(None)
}

struct Demo<'a> {
    cluster: LocalCluster,
    interrupt: &'a Interrupt,
    since: Instant,
}

impl Demo<'_> {
    fn play(&mut self) -> anyhow::Result<()> {
        outln!(
            "\nThree replicas of a program that was not written for it: quorumwire run -- {SERVER} --port {PORT}\n"
        )?;
        self.cluster.start_all()?;
        let leader = self.cluster.wait_for_leader(self.interrupt)?.id;
        self.cluster.wait_for_program(self.interrupt)?;
        self.say(&format!("clients reach each; replica {leader} leads"))?;
        let ids: Vec<u16> = self.cluster.replicas().iter().map(|it| it.id).collect();
        let others: Vec<u16> = ids.iter().copied().filter(|id| *id != leader).collect();
        for ((words, wanted), id) in STORED.iter().zip(ids.iter().cycle()) {
            self.expect(*id, words, wanted)?;
        }
        self.say("a list, a hash and a script's number are stored, each through another replica")?;
        self.load_and_kill(leader, others[0])?;
        for id in &others {
            self.ask_all(*id)?;
        }
        self.say("list, hash and the script's number are there on both others")?;
        self.cluster.start(leader)?;
        self.cluster.wait_for_program(self.interrupt)?;
        self.ask_all(leader)?;
        let digest = self.compare(&ids)?;
        self.say(&format!(
            "replica {leader} is back; the data of all three Redis are equal: {}",
            digest.get(..16).unwrap_or(&digest)
        ))?;
        self.cluster.stop(self.interrupt)
    }

    fn say(&self, text: &str) -> anyhow::Result<()> {
        Ok(outln!(
            "{:6.2} s  {text}",
            self.since.elapsed().as_secs_f64()
        )?)
    }

    /// A tool of Redis' that speaks with this replica.
    fn tool(&self, name: &str, id: u16) -> anyhow::Result<Command> {
        let services = self.cluster.replica(id)?.service.program();
        let (host, port) = services
            .and_then(|it| it.rsplit_once(':'))
            .context("an address")?;
        let mut command = Command::new(name);
        command.args(["-h", host, "-p", port]).stdin(Stdio::null());
        Ok(command)
    }

    fn client(&self, id: u16, words: &[&str]) -> anyhow::Result<String> {
        self.interrupt.check()?;
        let Output { stdout, stderr, .. } = self.tool(CLIENT, id)?.args(words).output()?;
        let said = [stdout, stderr].concat();
        Ok(String::from_utf8_lossy(&said).trim().to_owned())
    }

    fn expect(&self, id: u16, words: &[&str], wanted: &str) -> anyhow::Result<()> {
        let said = self.client(id, words)?;
        ensure!(
            said == wanted,
            "replica {id} said {said:?} to {words:?}, not {wanted:?}"
        );
        Ok(())
    }

    fn ask_all(&self, id: u16) -> anyhow::Result<()> {
        ASKED
            .iter()
            .try_for_each(|(words, wanted)| self.expect(id, words, wanted))
    }

    /// Kills the leader while clients of another replica send requests: none of these fails.
    fn load_and_kill(&mut self, leader: u16, other: u16) -> anyhow::Result<()> {
        let mut load = self.tool(LOAD, other)?;
        load.args(["-t", "set", "-r", "10000", "-q", "--csv"]);
        load.args(["-c", CLIENTS, "-n", REQUESTS]);
        let load = load.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let (mut load, begun) = (Beside(load), Instant::now());
        let mut is_killed = false;
        let mut progress = Progress::start();
        let status = loop {
            self.interrupt.check()?;
            if !is_killed && begun.elapsed() >= LOAD_BEFORE_KILL {
                self.cluster.kill(leader)?;
                self.say(&format!(
                    "kill -9: the leader, replica {leader}, is gone under {LOAD}"
                ))?;
                is_killed = true;
            }
            if let Some(status) = load.0.try_wait()? {
                break status;
            }
            ensure!(
                begun.elapsed() < LOAD_MAX,
                "{LOAD} has not ended within {} s; {}",
                LOAD_MAX.as_secs(),
                self.cluster.log_tail(other)
            );
            progress.say(&format!("waiting for {LOAD}"));
            thread::sleep(POLL_INTERVAL);
        };
        ensure!(is_killed, "{LOAD} ended before the leader was killed");
        ensure!(status.success(), "{LOAD} failed: {status}");
        self.say(&format!(
            "{REQUESTS} requests of {CLIENTS} clients at replica {other} were answered within {} ms",
            begun.elapsed().as_millis()
        ))
    }

    /// Waits until all programs hold the same; the hash of that.
    fn compare(&self, ids: &[u16]) -> anyhow::Result<String> {
        let mut progress = Progress::start();
        loop {
            let digests = ids.iter().map(|id| self.client(*id, &["debug", "digest"]));
            let mut digests = digests.collect::<Result<Vec<_>, _>>()?;
            digests.dedup();
            if let [digest] = &digests[..] {
                return Ok(digest.clone());
            }
            ensure!(
                progress.elapsed() < START_TIMEOUT,
                "the replicas' programs differ: {digests:?}"
            );
            progress.say("waiting for equal programs");
            thread::sleep(POLL_INTERVAL);
        }
    }
}

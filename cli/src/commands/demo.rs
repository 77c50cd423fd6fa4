//! `quorumwire demo`: a cluster loses its leader, then all its replicas, and no acknowledged write.
//! Every step is what an operator or a client could do; nothing is simulated.
use super::ask;
use super::demo_program;
use super::interrupt::{Input, Interrupt, Interrupted};
use super::local_cluster::{LocalCluster, START_TIMEOUT};
use super::memcached::Client;
use super::namespaces::Namespaces;
use super::progress::Progress;
use crate::output::Unwritten;
use anyhow::{Context as _, bail, ensure};
use quorumwire_node::options::Durability;
use quorumwire_node::planes::beyond_loopback;
use quorumwire_ops::http::DigestBody;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

const REPLICAS: u16 = 3;
/// Values stored before anything fails.
const VALUES: usize = 2000;
/// Of these, stored through a follower.
const VALUES_BY_FOLLOWER: usize = 500;
/// Requests sent before the first answer is read.
const BATCH: usize = 50;
/// How long a write may fail after the leader was killed.
const GAP_MAX: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Three replicas, each its own process, on this machine; takes less than half a minute and removes
/// what it made. As root each replica gets a network namespace and a data plane in the kernel, otherwise one
/// on a UDP socket. Then the same for a Redis that was not written for it, if one is installed. Exit code 1
/// if anything acknowledged was lost.
#[derive(Debug, clap::Args)]
pub struct Arguments {}

/// Shows it.
pub fn run(_: &Arguments) -> anyhow::Result<ExitCode> {
    let interrupt = Interrupt::listen(Input::Ends)?;
    let dir = tempfile::Builder::new()
        .prefix("quorumwire-demo-")
        .tempdir()?;
    let (cluster, planes) = open(dir.path())?;
    let mut demo = Demo {
        cluster,
        planes,
        interrupt,
        acknowledged: BTreeMap::new(),
        written: 0,
        since: Instant::now(),
    };
    match demo.play() {
        Err(error) if error.is::<Interrupted>() || demo.interrupt.has_come() => {
            demo.cluster.stop(&demo.interrupt)?;
            errln!("interrupted");
            Ok(ExitCode::FAILURE)
        }
        played => played.and_then(|()| play_program(&demo.interrupt)),
    }
}

/// The second part, which takes a Redis.
fn play_program(interrupt: &Interrupt) -> anyhow::Result<ExitCode> {
    let dir = tempfile::Builder::new()
        .prefix("quorumwire-demo-")
        .tempdir()?;
    match demo_program::play(dir.path(), interrupt) {
        Err(_) if interrupt.has_come() => {
            errln!("interrupted");
            Ok(ExitCode::FAILURE)
        }
        Err(error) => Err(error),
        Ok(Some(missing)) => {
            outln!(
                "\nThe second part, a Redis that survives its leader, is left out: {missing} is not here \
                 (Debian package redis-server)."
            )?;
            Ok(ExitCode::SUCCESS)
        }
        Ok(None) => Ok(ExitCode::SUCCESS),
    }
}

/// A cluster that does not run yet, and where its planes are, in words.
fn open(dir: &Path) -> anyhow::Result<(LocalCluster, String)> {
    let kind = beyond_loopback().context("all planes run over loopback")?;
    Ok(match Namespaces::with_planes(REPLICAS, kind) {
        Ok(network) => {
            let cluster = LocalCluster::open_within(dir, Durability::Sync, network, kind, &[])?;
            let text = "Their data planes run in the kernel, each in its own network namespace.";
            (cluster, text.to_owned())
        }
        Err(error) => {
            let options = ["--plane", "socket", "--listen-plane", "127.0.0.1:0"].map(str::to_owned);
            let (cluster, _) = LocalCluster::open(dir, Some(REPLICAS), Durability::Sync, &options)?;
            let text = format!(
                "Their data planes are UDP sockets on loopback.\n\
                 They cannot run in the kernel here: {error:#}."
            );
            (cluster, text)
        }
    })
}

struct Demo {
    cluster: LocalCluster,
    /// Where the common case runs, in words.
    planes: String,
    interrupt: Interrupt,
    acknowledged: BTreeMap<String, String>,
    written: usize,
    since: Instant,
}

impl Demo {
    fn play(&mut self) -> anyhow::Result<()> {
        outln!(
            "Three replicas, each a process of its own.\n{}\n\
             A write is acknowledged once a majority has it on disk.\n",
            self.planes
        )?;
        let leader = self.start()?;
        let leader = self.wait_for_plane(leader)?;
        let follower = self.other_than(leader)?;
        self.write_values(leader, follower)?;
        let gap = self.kill_leader(leader, follower)?;
        self.verify("after the leader's death")?;
        self.bring_back(leader)?;
        self.kill_all()?;
        self.verify("after the death of all")?;
        self.compare_replicas()?;
        self.cluster.stop(&self.interrupt)?;
        self.say("all replicas stopped in good order")?;
        outln!(
            "\n{} writes acknowledged, {} there at the end, 0 lost. Without a leader for {} ms.",
            self.acknowledged.len(),
            self.acknowledged.len(),
            gap.as_millis()
        )?;
        Ok(())
    }

    fn say(&self, text: &str) -> Result<(), Unwritten> {
        outln!("{:6.2} s  {text}", self.since.elapsed().as_secs_f64())
    }

    /// Starts those that do not run, and waits for a leader.
    fn start(&mut self) -> anyhow::Result<u16> {
        let begun = Instant::now();
        self.cluster.start_all()?;
        let leader = self.cluster.wait_for_leader(&self.interrupt)?;
        self.say(&format!(
            "replica {} was elected leader (term {}), {} ms after the start",
            leader.id,
            leader.term,
            begun.elapsed().as_millis()
        ))?;
        Ok(leader.id)
    }

    /// Waits until software has handed over to the planes; who leads then.
    fn wait_for_plane(&mut self, leader: u16) -> anyhow::Result<u16> {
        let end = Instant::now() + START_TIMEOUT;
        let mut progress = Progress::start();
        loop {
            let report = self.cluster.wait_for_leader(&self.interrupt)?;
            if let Some(fast) = report.fast_term {
                self.say(&format!(
                    "term {} is a fast one: replica {}'s data plane replicates from now on",
                    fast.term, report.id
                ))?;
                return Ok(report.id);
            }
            ensure!(
                Instant::now() < end,
                "no data plane runs; {}",
                self.cluster.log_tail(leader)
            );
            progress.say("waiting for the data planes");
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// How many entries its data plane has stored.
    fn stored_by_plane(&self, id: u16) -> u64 {
        let view = self.cluster.view();
        let mut reports = view.reports();
        let report = reports.find(|report| report.id == id);
        let count = report.and_then(|it| it.counters.get("plane_entries_stored").copied());
        count.unwrap_or(0)
    }

    fn other_than(&self, id: u16) -> anyhow::Result<u16> {
        let mut places = self.cluster.replicas().iter();
        let other = places.find(|place| place.id != id);
        Ok(other.context("there are three replicas")?.id)
    }

    fn client(&self, id: u16) -> anyhow::Result<Client> {
        let memcached = self.cluster.replica(id)?.service.memcached();
        Client::connect(memcached.context("replicas of the store have it")?)
    }

    fn next_items(&mut self, count: usize) -> Vec<(String, String)> {
        let numbers = self.written..self.written + count;
        self.written = numbers.end;
        numbers
            .map(|n| (format!("key-{n:06}"), format!("value-{n:06}")))
            .collect()
    }

    fn write_values(&mut self, leader: u16, follower: u16) -> anyhow::Result<()> {
        let parts = [
            (leader, VALUES - VALUES_BY_FOLLOWER, "the leader"),
            (follower, VALUES_BY_FOLLOWER, "a follower"),
        ];
        for (id, count, whom) in parts {
            let begun = Instant::now();
            let mut client = None;
            let end = self.written + count;
            while self.written < end {
                let items = self.next_items(BATCH.min(end - self.written));
                self.write(id, &mut client, items)?;
            }
            self.say(&format!(
                "{count} values written through {whom}, replica {id}, in {} ms",
                begun.elapsed().as_millis()
            ))?;
        }
        self.say(&format!(
            "the leader's data plane has moved {} entries so far",
            self.stored_by_plane(leader)
        ))?;
        Ok(())
    }

    /// Writes until all are acknowledged. Storing a value again does no harm, so whatever was refused,
    /// because leadership moved on a busy machine, or not answered, is simply sent again.
    fn write(
        &mut self,
        id: u16,
        client: &mut Option<Client>,
        mut items: Vec<(String, String)>,
    ) -> anyhow::Result<()> {
        let end = Instant::now() + GAP_MAX;
        loop {
            self.interrupt.check()?;
            let outcome = match client {
                Some(client) => {
                    let (stored, outcome) = client.set_all(&items);
                    self.acknowledged.extend(items.drain(..stored));
                    outcome
                }
                None => self.client(id).map(|made| *client = Some(made)),
            };
            if items.is_empty() {
                return Ok(());
            }
            if let Err(error) = outcome {
                *client = None;
                if Instant::now() > end {
                    return Err(error).with_context(|| format!("writing through replica {id}"));
                }
                thread::sleep(POLL_INTERVAL);
            }
        }
    }

    /// Kills the leader while a client writes one value after the other through a follower; how long
    /// until the next write was acknowledged.
    fn kill_leader(&mut self, leader: u16, follower: u16) -> anyhow::Result<Duration> {
        let mut client = Some(self.client(follower)?);
        let killed = Instant::now();
        self.cluster.kill(leader)?;
        self.say(&format!("kill -9: the leader, replica {leader}, is gone"))?;
        let mut refused = 0;
        loop {
            self.interrupt.check()?;
            ensure!(
                killed.elapsed() < GAP_MAX,
                "no write succeeded for {} s",
                GAP_MAX.as_secs()
            );
            // A new key each time: what was refused or unanswered may be stored or not, and counts
            // for nothing.
            let items = self.next_items(1);
            let connected = client.take().map_or_else(|| self.client(follower), Ok);
            let outcome = connected.map(|mut client| (client.set_all(&items).1, client));
            match outcome {
                Ok((Ok(()), _)) => {
                    self.acknowledged.extend(items);
                    break;
                }
                Ok((Err(_), _)) | Err(_) => refused += 1,
            }
            thread::sleep(POLL_INTERVAL);
        }
        let gap = killed.elapsed();
        self.say(&format!(
            "the next write succeeded {} ms later, through the same follower ({refused} failed \
             meanwhile)",
            gap.as_millis()
        ))?;
        Ok(gap)
    }

    /// Reads every acknowledged value back.
    fn verify(&mut self, when: &str) -> anyhow::Result<()> {
        let end = Instant::now() + GAP_MAX;
        let (leader, lost) = loop {
            let leader = self.cluster.wait_for_leader(&self.interrupt)?.id;
            match self.missing(leader) {
                Ok(lost) => break (leader, lost),
                // Leadership moved while reading; a value that is not there is no error here.
                Err(error) if Instant::now() < end && !error.is::<Interrupted>() => {
                    thread::sleep(POLL_INTERVAL);
                }
                Err(error) => return Err(error).context("reading the values back"),
            }
        };
        ensure!(
            lost.is_empty(),
            "{} acknowledged values are lost {when}, such as {}",
            lost.len(),
            lost[0]
        );
        self.say(&format!(
            "all {} acknowledged values are there {when} (asked replica {leader})",
            self.acknowledged.len()
        ))?;
        Ok(())
    }

    /// The acknowledged keys whose values are not there.
    fn missing(&self, leader: u16) -> anyhow::Result<Vec<String>> {
        let mut client = self.client(leader)?;
        let items: Vec<(&String, &String)> = self.acknowledged.iter().collect();
        let mut missing = Vec::new();
        for batch in items.chunks(BATCH) {
            self.interrupt.check()?;
            let keys: Vec<&str> = batch.iter().map(|(key, _)| key.as_str()).collect();
            let values = client.get_all(&keys)?;
            for ((key, value), found) in batch.iter().zip(values) {
                if found.as_ref() != Some(*value) {
                    missing.push((*key).clone());
                }
            }
        }
        Ok(missing)
    }

    /// Restarts a dead replica and waits until it has everything.
    fn bring_back(&mut self, id: u16) -> anyhow::Result<()> {
        let begun = Instant::now();
        self.cluster.start(id)?;
        self.wait_until_equal()?;
        self.say(&format!(
            "replica {id} is back and has caught up, {} ms after its start",
            begun.elapsed().as_millis()
        ))?;
        Ok(())
    }

    /// Waits until every replica has applied what its leader has.
    fn wait_until_equal(&mut self) -> anyhow::Result<u64> {
        let mut progress = Progress::start();
        loop {
            self.interrupt.check()?;
            let leader = self.cluster.wait_for_leader(&self.interrupt)?;
            let view = self.cluster.view();
            let applied: Vec<u64> = view.reports().map(|report| report.applied_index).collect();
            let all = applied.len() == self.cluster.replicas().len();
            if all && applied.iter().all(|index| *index >= leader.last_index) {
                return Ok(leader.last_index);
            }
            if progress.elapsed() > START_TIMEOUT {
                bail!(
                    "applied up to {applied:?}, the leader has {}",
                    leader.last_index
                );
            }
            progress.say("waiting for a replica to catch up");
            thread::sleep(POLL_INTERVAL);
        }
    }

    fn kill_all(&mut self) -> anyhow::Result<()> {
        let ids: Vec<u16> = self
            .cluster
            .replicas()
            .iter()
            .map(|place| place.id)
            .collect();
        for id in ids {
            self.cluster.kill(id)?;
        }
        self.say("kill -9: all three replicas are gone; they start again")?;
        self.start()?;
        Ok(())
    }

    /// Compares the replicas' states by their hashes.
    fn compare_replicas(&mut self) -> anyhow::Result<()> {
        let mut progress = Progress::start();
        loop {
            self.wait_until_equal()?;
            let places = self.cluster.replicas().iter();
            let digests = places.map(|place| {
                ask::get::<DigestBody>(&place.http, "/v1/digest", ask::REPORT_TIMEOUT)
            });
            let digests = digests.collect::<Result<Vec<DigestBody>, _>>()?;
            let [first, others @ ..] = &digests[..] else {
                bail!("there are three replicas");
            };
            let same_index = |other: &DigestBody| other.applied_index == first.applied_index;
            if others.iter().all(same_index) {
                let equal = others.iter().all(|other| other.digest == first.digest);
                ensure!(equal, "the replicas differ: {digests:?}");
                self.say(&format!(
                    "all three hold the same state at index {}: {}",
                    first.applied_index, first.digest
                ))?;
                return Ok(());
            }
            if progress.elapsed() > START_TIMEOUT {
                bail!("the replicas never stood at the same index: {digests:?}");
            }
            progress.say("waiting for all replicas to stand at the same index");
            thread::sleep(POLL_INTERVAL);
        }
    }
}

//! `quorumwire demo-host`: a host of `demo-network`, which starts it: a program that proposes and learns, and
//! keeps a small map of what was put, in the order in which it was decided. It is spoken with by lines of
//! JSON on its standard input and output, and ends with them.
mod map;

pub use map::{KEY_BYTES_MAX, VALUE_BYTES_MAX};

use super::server::die_with_parent;
use map::{Decided, Map};
use quorumwire_paxos_process::{DeploymentFile, Instance, Member, MemberError, MemberOptions};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{BufRead as _, stdin};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Values of the load that are under way at once, and how many there are in a second at most.
const LOAD_WINDOW: usize = 16;
const LOAD_PER_SECOND: u32 = 500;
/// So often the load looks whether it may go on.
const LOAD_PAUSE: Duration = Duration::from_millis(5);
/// How often the host says how it does.
const REPORT_PAUSE: Duration = Duration::from_millis(250);
/// How often it looks whether something was decided, and checkpoints what was.
const LEARN_PAUSE: Duration = Duration::from_millis(50);
/// Values between two checkpoints.
const CHECKPOINT_EVERY: u64 = 256;

/// Arguments of `quorumwire demo-host`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The deployment's file
    #[arg(long, value_name = "FILE")]
    deployment: PathBuf,
    /// Its number among the learners
    #[arg(long, value_name = "N")]
    learner: u8,
    /// Its folder
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Die as soon as this parent process is gone
    #[arg(long, value_name = "PID")]
    die_with_parent: i32,
}

/// What a host is told.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Have this decided, and say in which instance.
    Put {
        /// With which the answer comes.
        id: u64,
        key: String,
        value: String,
    },
    /// Say what it has learned.
    Get { id: u64, key: String },
    /// Propose values, or stop it.
    Load { on: bool },
}

/// What a host says.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    /// What became of an order.
    Answer {
        id: u64,
        outcome: Result<Answer, String>,
    },
    /// How it does.
    Report(Report),
}

/// A good answer.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Answer {
    /// In which the value was decided; or up to which the host has learned.
    pub instance: Instance,
    /// What a key has.
    pub value: Option<String>,
    /// How long it took until it was decided and learned.
    pub micros: Option<u64>,
}

/// How a host does.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Report {
    /// Up to here it has learned.
    pub instance: Instance,
    /// Values that it has learned, now and before.
    pub values: u64,
    /// In the last while.
    pub values_per_second: f64,
    /// Of those of its own load that it has heard of in that time, how long the middle one took.
    pub median_micros: Option<u64>,
    /// Keys that have a value.
    pub keys: usize,
}

/// What its threads share.
struct Host {
    member: Member,
    map: Mutex<Map>,
    /// Puts that are decided and not in the map yet.
    decided: Mutex<BTreeMap<Instance, (u64, Instant)>>,
    load: AtomicBool,
    under_way: AtomicUsize,
    took: Mutex<Vec<Duration>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Proposes and learns until its input ends.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    die_with_parent(arguments.die_with_parent)?;
    let map = Map::open(&arguments.dir)?;
    let member = Member::open(&MemberOptions::new(
        DeploymentFile::load(&arguments.deployment)?,
        arguments.learner,
        arguments.dir.join("learner"),
    ))?;
    let host = Arc::new(Host {
        member,
        map: Mutex::new(map),
        decided: Mutex::default(),
        load: AtomicBool::new(false),
        under_way: AtomicUsize::new(0),
        took: Mutex::default(),
    });
    let (learning, loading) = (Arc::clone(&host), Arc::clone(&host));
    thread::Builder::new()
        .name("learner".to_owned())
        .spawn(move || {
            if let Err(error) = learning.learn() {
                errln!("error: {error:#}");
                std::process::exit(1);
            }
        })?;
    thread::Builder::new()
        .name("load".to_owned())
        .spawn(move || loading.propose_load())?;
    for line in stdin().lock().lines() {
        host.obey(serde_json::from_str(&line?)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn say(said: &Said) -> anyhow::Result<()> {
    static ONE_LINE: Mutex<()> = Mutex::new(());
    let _one = locked(&ONE_LINE);
    Ok(outln!("{}", serde_json::to_string(said)?)?)
}

impl Host {
    fn obey(self: &Arc<Self>, order: Order) -> anyhow::Result<()> {
        match order {
            Order::Put { id, key, value } => {
                let (host, since) = (Arc::clone(self), Instant::now());
                let bytes = Decided::Put(key, value).to_bytes()?;
                let taken = self
                    .member
                    .submit_then(bytes, move |outcome| host.settled(id, since, outcome));
                taken.or_else(|error| refuse(id, &error))
            }
            Order::Get { id, key } => {
                let map = locked(&self.map);
                let answer = Answer {
                    instance: map.instance(),
                    value: map.get(&key).map(str::to_owned),
                    micros: None,
                };
                drop(map);
                say(&Said::Answer {
                    id,
                    outcome: Ok(answer),
                })
            }
            Order::Load { on } => {
                self.load.store(on, Ordering::Relaxed);
                Ok(())
            }
        }
    }

    /// On the member's thread: whoever put it is answered when it is in the map.
    fn settled(&self, id: u64, since: Instant, outcome: Result<Instance, MemberError>) {
        match outcome {
            Ok(instance) => {
                locked(&self.decided).insert(instance, (id, since));
            }
            Err(error) => {
                refuse(id, &error).ok(); // whoever does not read it has ended this process
            }
        }
    }

    fn learn(&self) -> anyhow::Result<()> {
        let (mut kept, mut reported) = (locked(&self.map).instance(), Report::default());
        let (mut next_report, mut last_report) = (Instant::now(), Instant::now());
        loop {
            if let Some((instance, value)) = self.member.next_within(LEARN_PAUSE)? {
                locked(&self.map).learn(instance, &value);
                if instance < kept + CHECKPOINT_EVERY {
                    self.answer_decided()?;
                    if Instant::now() < next_report {
                        continue;
                    }
                }
            }
            self.answer_decided()?;
            let map = locked(&self.map);
            let instance = map.instance();
            if instance > kept {
                map.keep()?;
            }
            let report = Report {
                instance,
                values: map.values(),
                keys: map.keys(),
                ..Report::default()
            };
            drop(map);
            if instance > kept {
                self.member.checkpoint(self.member.taken())?;
                kept = instance;
            }
            let now = Instant::now();
            if now >= next_report {
                reported = self.report(&report, &reported, now - last_report)?;
                (next_report, last_report) = (now + REPORT_PAUSE, now);
            }
        }
    }

    fn answer_decided(&self) -> anyhow::Result<()> {
        let learned = locked(&self.map).instance();
        while let Some(entry) = locked(&self.decided).first_entry() {
            if *entry.key() > learned {
                break;
            }
            let (instance, (id, since)) = entry.remove_entry();
            let answer = Answer {
                instance,
                value: None,
                micros: Some(micros(since.elapsed())),
            };
            say(&Said::Answer {
                id,
                outcome: Ok(answer),
            })?;
        }
        Ok(())
    }

    fn report(&self, now: &Report, before: &Report, since: Duration) -> anyhow::Result<Report> {
        let mut took = std::mem::take(&mut *locked(&self.took));
        took.sort_unstable();
        let count = u32::try_from(now.values.saturating_sub(before.values)).unwrap_or(u32::MAX);
        // Of the first report it is not known since when.
        let is_first = before.values == 0;
        let report = Report {
            values_per_second: if is_first {
                0.0
            } else {
                f64::from(count) / since.as_secs_f64()
            },
            median_micros: took.get(took.len() / 2).map(|it| micros(*it)),
            ..now.clone()
        };
        say(&Said::Report(report.clone()))?;
        Ok(report)
    }

    fn propose_load(self: &Arc<Self>) {
        let mut begun: Option<(Instant, u32)> = None;
        loop {
            thread::sleep(LOAD_PAUSE);
            if !self.load.load(Ordering::Relaxed) {
                begun = None;
                continue;
            }
            let (since, sent) = begun.get_or_insert_with(|| (Instant::now(), 0));
            let elapsed = since.elapsed();
            let may = elapsed.as_millis() * u128::from(LOAD_PER_SECOND) / 1000;
            while u128::from(*sent) < may && self.under_way.load(Ordering::Relaxed) < LOAD_WINDOW {
                if !self.propose_one() {
                    break;
                }
                *sent += 1;
            }
            // What could not be sent in time is not made up for later.
            if elapsed > Duration::from_secs(1) {
                begun = None;
            }
        }
    }

    fn propose_one(self: &Arc<Self>) -> bool {
        let Ok(bytes) = Decided::Load.to_bytes() else {
            return false;
        };
        let (host, since) = (Arc::clone(self), Instant::now());
        self.under_way.fetch_add(1, Ordering::Relaxed);
        let taken = self.member.submit_then(bytes, move |outcome| {
            host.under_way.fetch_sub(1, Ordering::Relaxed);
            if outcome.is_ok() {
                locked(&host.took).push(since.elapsed());
            }
        });
        if taken.is_err() {
            self.under_way.fetch_sub(1, Ordering::Relaxed);
        }
        taken.is_ok()
    }
}

fn refuse(id: u64, error: &MemberError) -> anyhow::Result<()> {
    say(&Said::Answer {
        id,
        outcome: Err(error.to_string()),
    })
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

//! A bounded load of ordinary clients on a cluster, and what they saw of it. It asks and writes down;
//! the judging is `linearizability`'s.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use crate::client::Outcome;
use crate::cluster::{MEMCACHED_PORT, REDIS_PORT, SETTLE_DEADLINE};
use crate::datagrams::Datagrams;
use crate::history::{Answer, Call, Operation, Recorder};
use crate::linearizability::{self, Checked};
use crate::plan::slowness;
use crate::redis_client::{CHANGED, Connection, UNKNOWN_WATCHED};

/// A run with fewer answered operations a second proves nothing.
pub const RATE_PER_SECOND_MIN: f64 = 200.0;

/// No client keeps more calls than this in memory.
const CALLS_PER_CLIENT_MAX: usize = 200_000;

/// How long a client waits for a datagram. What it asked for may still be done.
const DATAGRAM_TIMEOUT: Duration = Duration::from_millis(300);

/// How many different reasons of failure a client remembers.
const REASONS_MAX: usize = 20;

/// How many journal entries one request of the final check reads.
const JOURNAL_READ_KEYS: usize = 50;

/// How long a client whose request was refused leaves that replica alone.
const REFUSED_PAUSE: Duration = Duration::from_millis(5);

/// What load to put on.
#[derive(Clone, Debug)]
pub struct Load {
    /// Begins every key, so that loads on one cluster stay apart.
    pub prefix: &'static str,
    /// Client threads, each with one connection and one request at a time. Every third connection is one to
    /// the Redis port of the same replica.
    pub clients: u32,
    /// Keys; every fourth is a counter, every fourth is deleted at times, the rest is got, set and
    /// compared-and-set.
    pub keys: u32,
    /// Operations a second of all clients together at most.
    pub rate_per_second_max: u32,
    /// Share of the `get`s and plain `set`s that are asked over UDP, in percent.
    pub udp_percent: u32,
}

impl Load {
    /// A load two cores bear beside three replicas.
    #[must_use]
    pub fn modest(prefix: &'static str) -> Self {
        Self {
            prefix,
            clients: 16,
            keys: 16,
            rate_per_second_max: 1500,
            udp_percent: 0,
        }
    }

    fn key(&self, number: u32) -> String {
        format!("{}-{number}", self.prefix)
    }

    fn kind(number: u32) -> Kind {
        match number % 4 {
            0 => Kind::Counter,
            1 => Kind::Deleted,
            _ => Kind::Register,
        }
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Register,
    Deleted,
    Counter,
}

/// A key written once, by one acknowledged write, and never again.
#[derive(Clone, Debug)]
struct JournalEntry {
    key: String,
    value: u64,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    acknowledged: AtomicU64,
}

/// A load at work. Stopped when dropped.
#[derive(Debug)]
pub struct Running {
    load: Load,
    start: Instant,
    shared: Arc<Shared>,
    clients: Vec<JoinHandle<ClientRecord>>,
}

/// When a write was acknowledged and asked for, after the start.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Acknowledgement {
    answered: Duration,
    invoked: Duration,
}

/// What one client saw.
#[derive(Debug, Default)]
struct ClientRecord {
    calls: Vec<Call>,
    journal: Vec<JournalEntry>,
    acknowledged: Vec<Acknowledgement>,
    unknown: u64,
    refused: u64,
    /// Why, and how often.
    reasons: BTreeMap<String, u64>,
    /// What was done over Redis' protocol, and how often.
    redis: BTreeMap<&'static str, u64>,
}

/// What all clients saw.
#[derive(Debug)]
pub struct Report {
    load: Load,
    start: Instant,
    lasted: Duration,
    calls: Vec<Call>,
    journal: Vec<JournalEntry>,
    /// In the order of the answers.
    acknowledged: Vec<Acknowledgement>,
    /// Operations whose outcome nobody knows.
    pub unknown: u64,
    /// Operations that were refused.
    pub refused: u64,
    /// Why operations were refused or their outcome is unknown, and how often.
    pub reasons: BTreeMap<String, u64>,
    /// What was done over Redis' protocol, and how often.
    pub redis: BTreeMap<&'static str, u64>,
}

impl Running {
    /// Starts the load from the calling thread's network namespace on these addresses: of Redis, if they have
    /// its port, and else of memcached.
    #[must_use]
    pub fn start(load: Load, targets: &[SocketAddr], seed: u64) -> Self {
        let start = Instant::now();
        let shared = Arc::new(Shared::default());
        let clients = (0..load.clients)
            .map(|id| {
                let worker = Worker {
                    id,
                    load: load.clone(),
                    targets: targets.to_vec(),
                    target: id as usize,
                    connection: None,
                    connected: 0,
                    datagrams: Datagrams::new(DATAGRAM_TIMEOUT).expect("a UDP socket"),
                    rng: ChaCha8Rng::seed_from_u64(seed ^ u64::from(id) << 48),
                    fresh: 0,
                    recorder: Recorder::new(start, id),
                    seen: ClientRecord::default(),
                    start,
                    shared: Arc::clone(&shared),
                };
                thread::spawn(move || worker.run())
            })
            .collect();
        Self {
            load,
            start,
            shared,
            clients,
        }
    }

    /// How many writes have been acknowledged so far.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.shared.acknowledged.load(Ordering::Relaxed)
    }

    /// Waits until `more` further writes have been acknowledged, at most [`SETTLE_DEADLINE`], longer where
    /// planes are slower.
    pub fn wait_for_writes(&self, more: u64) -> Result<()> {
        let goal = self.acknowledged() + more;
        let deadline = SETTLE_DEADLINE * slowness();
        let end = Instant::now() + deadline;
        while self.acknowledged() < goal {
            ensure!(
                Instant::now() < end,
                "waited {deadline:?} in vain for {more} writes; {} to go",
                goal - self.acknowledged()
            );
            thread::sleep(crate::process::POLL_INTERVAL);
        }
        Ok(())
    }

    /// Stops the load and gathers what its clients saw.
    pub fn finish(mut self) -> Result<Report> {
        self.shared.stop.store(true, Ordering::Relaxed);
        let mut report = Report {
            load: self.load.clone(),
            start: self.start,
            lasted: self.start.elapsed(),
            calls: Vec::new(),
            journal: Vec::new(),
            acknowledged: Vec::new(),
            unknown: 0,
            refused: 0,
            reasons: BTreeMap::new(),
            redis: BTreeMap::new(),
        };
        for client in self.clients.drain(..) {
            let Ok(seen) = client.join() else {
                bail!("a client of the load panicked");
            };
            report.calls.extend(seen.calls);
            report.journal.extend(seen.journal);
            report.acknowledged.extend(seen.acknowledged);
            report.unknown += seen.unknown;
            report.refused += seen.refused;
            for (what, count) in seen.redis {
                *report.redis.entry(what).or_default() += count;
            }
            for (reason, count) in seen.reasons {
                *report.reasons.entry(reason).or_default() += count;
            }
        }
        report.acknowledged.sort_unstable();
        Ok(report)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for client in self.clients.drain(..) {
            let _ = client.join(); // a panicked client has said so already
        }
    }
}

impl Report {
    /// Judges the run: it was busy enough, every acknowledged write of the journal is still there, and
    /// the history, closed by a read of every key, is linearizable. `targets` must be serving again.
    pub fn judge(mut self, targets: &[SocketAddr]) -> Result<Checked> {
        let rate = self.rate_per_second();
        println!(
            "{} operations in {:.1?} ({rate:.0} a second), {} writes acknowledged, {} refused, {} unknown",
            self.calls.len(),
            self.lasted,
            self.acknowledged.len(),
            self.refused,
            self.unknown
        );
        for (reason, count) in &self.reasons {
            println!("  {count} times: {reason}");
        }
        println!("over Redis' protocol: {:?}", self.redis);
        let least = RATE_PER_SECOND_MIN / f64::from(slowness());
        ensure!(
            rate >= least,
            "void: {rate:.0} operations a second, {least} needed"
        );
        let mut reader = Reader::new(targets);
        self.require_journal(&mut reader)?;
        self.read_every_key(&mut reader)?;
        let checked = linearizability::check(&self.calls)?;
        println!("linearizable: {checked:?}");
        Ok(checked)
    }

    /// Answered operations a second.
    #[must_use]
    pub fn rate_per_second(&self) -> f64 {
        let answered = self.calls.iter().filter(|call| call.outcome.is_some());
        #[expect(clippy::cast_precision_loss, reason = "a count far below 2^52")]
        let answered = answered.count() as f64;
        answered / self.lasted.as_secs_f64()
    }

    /// For each moment, how long it took from there until a write asked for later was acknowledged;
    /// none for moments after the last such write.
    #[must_use]
    pub fn gaps_after(&self, moments: &[Instant]) -> Vec<Duration> {
        let gap = |moment: &Instant| {
            let moment = moment.saturating_duration_since(self.start);
            let first_after = self
                .acknowledged
                .partition_point(|ack| ack.answered <= moment);
            let after = &self.acknowledged[first_after..];
            let next = after.iter().find(|ack| ack.invoked >= moment)?;
            Some(next.answered.saturating_sub(moment))
        };
        moments.iter().filter_map(gap).collect()
    }

    fn require_journal(&self, reader: &mut Reader) -> Result<()> {
        let mut lost = Vec::new();
        for entries in self.journal.chunks(JOURNAL_READ_KEYS) {
            let keys: Vec<_> = entries.iter().map(|entry| entry.key.as_str()).collect();
            let values = reader.ask(|client| client.get_many(&keys))?;
            for entry in entries {
                let expected = entry.value.to_string();
                let found = values.get(&entry.key);
                if found.is_none_or(|value| value != expected.as_bytes()) {
                    lost.push(entry.key.clone());
                }
            }
        }
        ensure!(
            lost.is_empty(),
            "{} of {} acknowledged writes are lost: {lost:?}",
            lost.len(),
            self.journal.len()
        );
        println!(
            "all {} acknowledged journal writes are there",
            self.journal.len()
        );
        Ok(())
    }

    fn read_every_key(&mut self, reader: &mut Reader) -> Result<()> {
        let mut recorder = Recorder::new(self.start, self.load.clients);
        for number in 0..self.load.keys {
            let key = self.load.key(number);
            let open = recorder.invoke(number, Operation::Get);
            let value = reader.ask(|client| client.get(&key))?;
            let value = value.map(|bytes| parse(&bytes)).transpose()?;
            recorder.answered(open, Answer::Value(value));
        }
        self.calls.extend(recorder.into_calls());
        Ok(())
    }
}

fn parse(bytes: &[u8]) -> Result<u64> {
    let text = std::str::from_utf8(bytes)?;
    text.trim_end()
        .parse()
        .with_context(|| format!("{text:?} is no number"))
}

fn word(operation: Operation) -> &'static str {
    match operation {
        Operation::Get => "get",
        Operation::Set(_) => "set",
        Operation::Add(_) => "add",
        Operation::Cas { .. } => "transaction",
        Operation::Delete => "delete",
        Operation::Increment(_) => "increment",
    }
}

/// What the server's line says.
fn answer(line: &str) -> Answer {
    match line {
        "STORED" => Answer::Stored,
        "NOT_STORED" => Answer::NotStored,
        "EXISTS" => Answer::Exists,
        "NOT_FOUND" => Answer::NotFound,
        "DELETED" => Answer::Deleted,
        number => Answer::Number(parse(number.as_bytes()).expect("no other answer is known")),
    }
}

/// Reads after the load, asking replica after replica until one answers.
struct Reader {
    targets: Vec<SocketAddr>,
    target: usize,
    connection: Option<Connection>,
}

impl Reader {
    fn new(targets: &[SocketAddr]) -> Self {
        Self {
            targets: targets.to_vec(),
            target: 0,
            connection: None,
        }
    }

    fn ask<T>(&mut self, request: impl Fn(&mut Connection) -> Outcome<T>) -> Result<T> {
        let end = Instant::now() + SETTLE_DEADLINE;
        while Instant::now() < end {
            if self.connection.is_none() {
                let target = self.targets[self.target % self.targets.len()];
                self.connection = Connection::to(target).ok();
            }
            if let Some(connection) = &mut self.connection
                && let Some(answer) = request(connection).done()
            {
                return Ok(answer);
            }
            self.connection = None;
            self.target += 1;
            thread::sleep(crate::process::POLL_INTERVAL);
        }
        bail!("no replica answers a read within {SETTLE_DEADLINE:?}")
    }
}

/// One client of the load.
struct Worker {
    id: u32,
    load: Load,
    targets: Vec<SocketAddr>,
    target: usize,
    connection: Option<Connection>,
    /// How many connections it has had.
    connected: u32,
    datagrams: Datagrams,
    rng: ChaCha8Rng,
    /// How many values this client has made.
    fresh: u64,
    recorder: Recorder,
    seen: ClientRecord,
    start: Instant,
    shared: Arc<Shared>,
}

impl Worker {
    fn run(mut self) -> ClientRecord {
        let pause = Duration::from_secs(1) * self.load.clients / self.load.rate_per_second_max;
        let mut next = self.start + pause * self.id / self.load.clients;
        for _ in 0..CALLS_PER_CLIENT_MAX {
            if self.shared.stop.load(Ordering::Relaxed) {
                break;
            }
            thread::sleep(next.saturating_duration_since(Instant::now()));
            next = (next + pause).max(Instant::now()); // what was missed is not made up for
            self.one_operation();
        }
        self.seen.calls = self.recorder.into_calls();
        self.seen
    }

    fn one_operation(&mut self) {
        if self.connection.is_none() {
            self.connection = self.connect().ok();
        }
        let Some(mut connection) = self.connection.take() else {
            self.give_up_target();
            return;
        };
        let key = self.rng.random_range(0..self.load.keys);
        let roll = self.rng.random_range(0..100);
        let fresh = self.fresh_value();
        let kind = Load::kind(key);
        if self.rng.random_range(0..100) < self.load.udp_percent {
            match (kind, roll) {
                (_, 8..45) => {
                    self.connection = Some(connection);
                    return self.get_by_datagram(key);
                }
                (Kind::Register, 45..75) => {
                    self.connection = Some(connection);
                    return self.set_by_datagram(key, fresh);
                }
                (Kind::Register | Kind::Deleted | Kind::Counter, _) => {}
            }
        }
        let served = match (kind, roll) {
            (_, 0..8) => self.write_journal(&mut connection),
            (_, 8..45) => self.get(&mut connection, key),
            (Kind::Counter, _) => self.count(&mut connection, key),
            (Kind::Deleted | Kind::Register, 75..) => self.compare_and_set(&mut connection, key),
            (Kind::Deleted | Kind::Register, _) => {
                let operation = match (kind, roll) {
                    (Kind::Deleted, 45..55) => Operation::Delete,
                    (Kind::Deleted, 55..65) => Operation::Add(fresh),
                    (Kind::Deleted | Kind::Register | Kind::Counter, _) => Operation::Set(fresh),
                };
                self.change(&mut connection, key, operation).is_some()
            }
        };
        if served && connection.is_usable() {
            self.connection = Some(connection);
        } else {
            self.give_up_target();
        }
    }

    /// To a port that is not memcached's usual one there is no Redis port. One to Redis' usual port is one to
    /// Redis.
    fn connect(&mut self) -> io::Result<Connection> {
        let target = self.targets[self.target % self.targets.len()];
        self.connected += 1;
        if target.port() == REDIS_PORT {
            return Connection::to(target);
        }
        if (self.id + self.connected).is_multiple_of(3) && target.port() == MEMCACHED_PORT {
            let redis = SocketAddr::new(target.ip(), REDIS_PORT);
            Connection::to(redis)
        } else {
            Connection::to(target)
        }
    }

    fn note(&mut self, connection: &Connection, what: &'static str) {
        if connection.is_redis() {
            *self.seen.redis.entry(what).or_default() += 1;
        }
    }

    /// Of any replica: it needs no connection.
    fn get_by_datagram(&mut self, key: u32) {
        let to = self.targets[self.rng.random_range(0..self.targets.len())];
        let open = self.recorder.invoke(key, Operation::Get);
        match self.datagrams.get(to, &self.load.key(key)) {
            Outcome::Done(value) => {
                let value = value.map(|bytes| parse(&bytes).expect("only numbers are written"));
                self.recorder.answered(open, Answer::Value(value));
            }
            other @ (Outcome::Refused(_) | Outcome::Unknown(_)) => {
                self.recorder.withdrawn(open);
                self.failed(&other);
            }
        }
    }

    fn set_by_datagram(&mut self, key: u32, fresh: u64) {
        let to = self.targets[self.rng.random_range(0..self.targets.len())];
        let open = self.recorder.invoke(key, Operation::Set(fresh));
        let invoked = self.start.elapsed();
        let name = self.load.key(key);
        match self.datagrams.set(to, &name, fresh.to_string().as_bytes()) {
            Outcome::Done(_) => {
                self.recorder.answered(open, Answer::Stored);
                self.acknowledge(invoked);
            }
            Outcome::Unknown(reason) => {
                self.recorder.unknown(open);
                self.failed(&Outcome::<()>::Unknown(reason));
            }
            Outcome::Refused(reason) => {
                self.recorder.withdrawn(open);
                self.failed(&Outcome::<()>::Refused(reason));
            }
        }
    }

    fn give_up_target(&mut self) {
        self.target += 1;
        thread::sleep(REFUSED_PAUSE);
    }

    /// Different from every other value of this load.
    fn fresh_value(&mut self) -> u64 {
        self.fresh += 1;
        u64::from(self.id + 1) << 32 | self.fresh
    }

    fn write_journal(&mut self, connection: &mut Connection) -> bool {
        let value = self.fresh_value();
        let key = format!("{}-journal-{value}", self.load.prefix);
        let invoked = self.start.elapsed();
        match connection.set(&key, &value.to_string()) {
            Outcome::Done(line) => {
                assert_eq!(line, "STORED", "set {key}");
                self.acknowledge(invoked);
                self.seen.journal.push(JournalEntry { key, value });
                true
            }
            other @ (Outcome::Refused(_) | Outcome::Unknown(_)) => self.failed(&other),
        }
    }

    fn get(&mut self, connection: &mut Connection, key: u32) -> bool {
        let open = self.recorder.invoke(key, Operation::Get);
        match connection.get(&self.load.key(key)) {
            Outcome::Done(value) => {
                let value = value.map(|bytes| parse(&bytes).expect("only numbers are written"));
                self.recorder.answered(open, Answer::Value(value));
                self.note(connection, "get");
                true
            }
            other @ (Outcome::Refused(_) | Outcome::Unknown(_)) => {
                self.recorder.withdrawn(open); // a read changes nothing
                self.failed(&other)
            }
        }
    }

    /// Does and records one operation that may change the key; its answer, if there is one.
    fn change(
        &mut self,
        connection: &mut Connection,
        key: u32,
        operation: Operation,
    ) -> Option<Answer> {
        self.change_with_token(connection, key, operation, 0)
    }

    fn change_with_token(
        &mut self,
        connection: &mut Connection,
        key: u32,
        operation: Operation,
        token: u64,
    ) -> Option<Answer> {
        let name = self.load.key(key);
        let invoked = self.start.elapsed();
        let open = self.recorder.invoke(key, operation);
        let outcome = match operation {
            Operation::Set(value) => connection.set(&name, &value.to_string()),
            Operation::Add(value) => connection.add(&name, &value.to_string()),
            Operation::Cas { new, .. } => connection.cas(&name, &new.to_string(), token),
            Operation::Delete => connection.delete(&name),
            Operation::Increment(delta) => connection.increment(&name, delta),
            Operation::Get => unreachable!("a read changes nothing"),
        };
        match &outcome {
            Outcome::Done(line) if line == CHANGED => {
                self.recorder.withdrawn(open); // since it was watched, which was before it was read
                self.note(connection, "transaction refused");
                return Some(Answer::Differs);
            }
            Outcome::Done(line) => {
                let answer = answer(line);
                self.recorder.answered(open, answer);
                self.note(connection, word(operation));
                self.acknowledge(invoked);
                return Some(answer);
            }
            Outcome::Unknown(_) => self.recorder.unknown(open),
            Outcome::Refused(_) => self.recorder.withdrawn(open),
        }
        self.failed(&outcome);
        None
    }

    /// Adds one; a counter that is not there yet is begun at zero.
    fn count(&mut self, connection: &mut Connection, key: u32) -> bool {
        match self.change(connection, key, Operation::Increment(1)) {
            Some(Answer::NotFound) => self.change(connection, key, Operation::Add(0)).is_some(),
            other => other.is_some(),
        }
    }

    fn compare_and_set(&mut self, connection: &mut Connection, key: u32) -> bool {
        let open = self.recorder.invoke(key, Operation::Get);
        let item = match connection.gets(&self.load.key(key)) {
            Outcome::Done(item) => item,
            other @ (Outcome::Refused(_) | Outcome::Unknown(_)) => {
                self.recorder.withdrawn(open);
                return self.failed(&other);
            }
        };
        let found = item.map(|item| {
            let value = parse(&item.value).expect("only numbers are written");
            (value, item.token)
        });
        self.recorder
            .answered(open, Answer::Value(found.map(|(value, _)| value)));
        let Some((expected, token)) = found.filter(|(_, token)| *token != UNKNOWN_WATCHED) else {
            return true;
        };
        let new = self.fresh_value();
        let cas = Operation::Cas { expected, new };
        self.change_with_token(connection, key, cas, token)
            .is_some()
    }

    fn acknowledge(&mut self, invoked: Duration) {
        let answered = self.start.elapsed();
        self.seen
            .acknowledged
            .push(Acknowledgement { answered, invoked });
        self.shared.acknowledged.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a failure. Never served: the connection is given up, for its replica may know no leader.
    fn failed<T>(&mut self, outcome: &Outcome<T>) -> bool {
        let (count, reason) = match outcome {
            Outcome::Unknown(reason) => (&mut self.seen.unknown, reason),
            Outcome::Refused(reason) => (&mut self.seen.refused, reason),
            Outcome::Done(_) => unreachable!("not a failure"),
        };
        *count += 1;
        let reasons = &mut self.seen.reasons;
        if reasons.len() < REASONS_MAX || reasons.contains_key(reason) {
            *reasons.entry(reason.clone()).or_default() += 1;
        }
        false
    }
}

#[cfg(test)]
#[path = "workload_test.rs"]
mod tests;

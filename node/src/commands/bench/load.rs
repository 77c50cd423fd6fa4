//! One thread's share of the load: its connections, driven by readiness, until time or requests are
//! used up.
use super::LATENCY_NS_MAX;
use super::connection::{Connection, Request};
use super::protocol::Protocol;
use anyhow::Context as _;
use hdrhistogram::Histogram;
use mio::{Events, Interest, Poll, Token};
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long answers to requests in flight are waited for at the end.
const END_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause before a broken connection is made anew.
const RECONNECT_PAUSE: Duration = Duration::from_millis(100);
/// Longest sleep without looking at the clock.
const POLL_TIMEOUT: Duration = Duration::from_millis(50);
/// Different reasons told apart; a server may put anything into them.
const ERROR_REASONS_MAX: usize = 32;
const OTHER_REASONS: &str = "other reasons";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// What is done.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Phase {
    /// Every key is stored once.
    Fill,
    /// Random keys are written and read.
    Measure,
}

/// The share of one thread.
#[derive(Debug)]
pub struct Load {
    /// In which requests are made.
    pub protocol: Protocol,
    /// What to do.
    pub phase: Phase,
    /// For how long at most.
    pub duration: Duration,
    /// Requests in flight per connection.
    pub in_flight: usize,
    /// Number of keys.
    pub keys: u64,
    /// Bytes of a value.
    pub value_bytes: usize,
    /// How many of 100 requests write.
    pub write_percent: u8,
    /// What each connection does.
    pub connections: Vec<Share>,
    /// Requests of all threads that succeeded so far, for whoever watches.
    pub answered: Arc<AtomicU64>,
}

/// The share of one connection.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// Its number among all, the seed of its random keys.
    pub number: u64,
    /// Where it connects.
    pub address: SocketAddr,
    /// How many requests it sends; `None` for as many as there is time.
    pub operations: Option<u64>,
    /// The first key it stores when filling.
    pub first_key: u64,
}

/// What was measured.
#[derive(Debug)]
pub struct Measured {
    /// Of every request that succeeded, nanoseconds.
    pub latencies_ns: Histogram<u64>,
    /// Reads that found nothing; they count as success.
    pub misses: u64,
    /// Requests that failed, by reason.
    pub errors: BTreeMap<String, u64>,
    /// When it began.
    pub begun: Instant,
    /// From the first request to the last answer.
    pub elapsed: Duration,
}

impl Measured {
    /// Nothing yet.
    pub fn new() -> anyhow::Result<Self> {
        Ok(Self {
            latencies_ns: Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3)?,
            misses: 0,
            errors: BTreeMap::new(),
            begun: Instant::now(),
            elapsed: Duration::ZERO,
        })
    }

    /// Takes what another thread measured at the same time.
    pub fn add(&mut self, other: Self) -> anyhow::Result<()> {
        self.latencies_ns.add(&other.latencies_ns)?;
        self.misses += other.misses;
        for (reason, count) in other.errors {
            self.failed(&reason, count);
        }
        self.elapsed = self.elapsed.max(other.elapsed);
        Ok(())
    }

    /// Counts a request that succeeded.
    pub fn succeeded(&mut self, latency: Duration) {
        let ns = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.latencies_ns.saturating_record(ns.max(1));
    }

    /// Counts requests that failed.
    pub fn failed(&mut self, reason: &str, count: u64) {
        if count == 0 {
            return;
        }
        let known = self.errors.contains_key(reason) || self.errors.len() < ERROR_REASONS_MAX;
        let reason = if known { reason } else { OTHER_REASONS };
        if let Some(counted) = self.errors.get_mut(reason) {
            *counted += count;
        } else {
            self.errors.insert(reason.to_owned(), count);
        }
    }
}

/// A connection with what it still has to do.
struct Lane {
    share: Share,
    connection: Option<Connection>,
    broken_at: Option<Instant>,
    left: u64,
    next_key: u64,
    random: SmallRng,
}

impl Load {
    /// Runs to the end. Fails if a first connection cannot be made.
    pub fn run(self) -> anyhow::Result<Measured> {
        let mut poll = Poll::new()?;
        let mut lanes = Vec::new();
        for share in &self.connections {
            lanes.push(self.open(share, lanes.len(), &poll)?);
        }
        let mut measured = Measured::new()?;
        let end = measured.begun + self.duration;
        for lane in &mut lanes {
            self.go_on(lane, &mut measured, true, false);
        }
        let mut events = Events::with_capacity(1024);
        loop {
            let now = Instant::now();
            let sending = now < end && lanes.iter().any(|lane| lane.left > 0);
            let waiting = lanes.iter().any(Lane::waits);
            if !sending && (!waiting || now > end + END_TIMEOUT) {
                break;
            }
            match poll.poll(&mut events, Some(POLL_TIMEOUT)) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            }
            let answered_before = measured.latencies_ns.len();
            for event in &events {
                let lane = &mut lanes[event.token().0];
                let sending = Instant::now() < end;
                self.go_on(lane, &mut measured, sending, event.is_read_closed());
            }
            let answered = measured.latencies_ns.len() - answered_before;
            self.answered.fetch_add(answered, Ordering::Relaxed);
            if Instant::now() < end {
                self.mend(&mut lanes, &mut measured, &poll)?;
            }
        }
        for lane in &mut lanes {
            lane.drop_connection(&mut measured, "not answered in time");
        }
        Ok(measured)
    }

    fn open(&self, share: &Share, token: usize, poll: &Poll) -> anyhow::Result<Lane> {
        let address = share.address;
        let stream = std::net::TcpStream::connect_timeout(&address, CONNECT_TIMEOUT)
            .with_context(|| format!("connecting to {address}"))?;
        stream.set_nonblocking(true)?;
        let mut stream = mio::net::TcpStream::from_std(stream);
        register(poll, &mut stream, token)?;
        Ok(Lane {
            share: *share,
            connection: Some(Connection::new(stream, self.protocol, self.value_bytes)?),
            broken_at: None,
            left: share.operations.unwrap_or(u64::MAX),
            next_key: share.first_key,
            random: SmallRng::seed_from_u64(share.number),
        })
    }

    /// Takes the answers that are there and sends as many new requests.
    fn go_on(&self, lane: &mut Lane, measured: &mut Measured, sending: bool, ended: bool) {
        let Some(connection) = &mut lane.connection else {
            return;
        };
        let outcome = connection.receive(ended, measured).and_then(|()| {
            if sending {
                let now = Instant::now();
                while connection.waiting_count() < self.in_flight && lane.left > 0 {
                    let request = self.next_request(&mut lane.random, &mut lane.next_key);
                    connection.push(request, now);
                    lane.left = lane.left.saturating_sub(1);
                }
            }
            connection.send()
        });
        if let Some(last) = connection.last_answer() {
            measured.elapsed = measured.elapsed.max(last - measured.begun);
        }
        if let Err(error) = outcome {
            lane.drop_connection(measured, &format!("connection: {error}"));
            lane.broken_at = Some(Instant::now());
        }
    }

    fn next_request(&self, random: &mut SmallRng, next_key: &mut u64) -> Request {
        match self.phase {
            Phase::Fill => {
                let key = *next_key;
                *next_key += 1;
                Request::Set(key)
            }
            Phase::Measure => {
                let key = random.random_range(0..self.keys);
                if random.random_range(0..100) < self.write_percent {
                    Request::Set(key)
                } else {
                    Request::Get(key)
                }
            }
        }
    }

    /// Makes broken connections anew, each after a pause.
    fn mend(&self, lanes: &mut [Lane], measured: &mut Measured, poll: &Poll) -> anyhow::Result<()> {
        for (token, lane) in lanes.iter_mut().enumerate() {
            let due = lane
                .broken_at
                .is_some_and(|broken| broken.elapsed() > RECONNECT_PAUSE);
            if due && lane.left > 0 {
                match mio::net::TcpStream::connect(lane.share.address) {
                    Ok(mut stream) => {
                        register(poll, &mut stream, token)?;
                        lane.connection =
                            Some(Connection::new(stream, self.protocol, self.value_bytes)?);
                        lane.broken_at = None;
                        self.go_on(lane, measured, true, false);
                    }
                    Err(_) => lane.broken_at = Some(Instant::now()),
                }
            }
        }
        Ok(())
    }
}

impl Lane {
    fn waits(&self) -> bool {
        let connection = self.connection.as_ref();
        connection.is_some_and(|connection| connection.waiting_count() > 0)
    }

    fn drop_connection(&mut self, measured: &mut Measured, reason: &str) {
        if let Some(connection) = self.connection.take() {
            measured.failed(reason, connection.waiting_count() as u64);
        }
    }
}

fn register(poll: &Poll, stream: &mut mio::net::TcpStream, token: usize) -> anyhow::Result<()> {
    let interest = Interest::READABLE | Interest::WRITABLE;
    poll.registry().register(stream, Token(token), interest)?;
    Ok(())
}

#[cfg(test)]
#[path = "load_test.rs"]
mod tests;

//! One thread's share of the load: its connections, driven by readiness, until time or requests are
//! used up.
use super::clock::Clock;
use super::connection::{Connection, Due, Request};
use super::gaps::WriteGaps;
use super::measured::{Intervals, Measurements, NOT_SENT};
use super::pace::Pace;
use super::protocol::Protocol;
use super::timer::Timer;
use super::way::{ServerAddress, Way};
use anyhow::Context as _;
use mio::{Events, Interest, Poll, Token};
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long answers to requests in flight are waited for at the end, and what was due is still sent.
pub const END_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause before a broken connection is made anew.
const RECONNECT_PAUSE: Duration = Duration::from_millis(100);
/// The same for a load that survives, before it tries the next address.
const SURVIVE_PAUSE: Duration = Duration::from_millis(5);
/// How long a load that survives waits at one address without any answer, connecting included.
const TRY_TIMEOUT: Duration = Duration::from_millis(250);
/// Longest sleep without looking at the clock.
const POLL_TIMEOUT: Duration = Duration::from_millis(50);
/// How long a connection may take to come about.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const EVENTS_MAX: usize = 1024;
const TIMER: Token = Token(usize::MAX);

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
    /// Where to connect; there is one at least.
    pub addresses: Vec<ServerAddress>,
    /// How and as whom.
    pub way: Way,
    /// What each connection does.
    pub connections: Vec<Share>,
    /// When requests are due; `None` for each when the one before is answered.
    pub pace: Option<Pace>,
    /// Whether what fails is tried again at the next address.
    pub survive: bool,
    /// How long an interval is that is measured by itself.
    pub interval: Option<Duration>,
    /// Where successful writes are told.
    pub gaps: Option<Arc<WriteGaps>>,
    /// Requests of all threads that succeeded so far, for whoever watches.
    pub answered: Arc<AtomicU64>,
    pub clock: Clock,
}

/// The share of one connection.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// Its number among all: the seed of its random keys, its place in an open loop, and which address is its
    /// first.
    pub number: u64,
    /// How many requests it sends; `None` for as many as there is time.
    pub operations: Option<u64>,
    /// The first key it stores when filling.
    pub first_key: u64,
}

/// A connection with what it still has to do.
struct Lane {
    share: Share,
    /// Which address is its next; counted on when that one fails.
    turn: usize,
    connection: Option<Connection>,
    /// When it may be made anew, if it is broken.
    mend_at: Option<Instant>,
    /// The server has refused something: it is left when it has answered everything.
    is_leaving: bool,
    /// What failed and is tried again, before anything new: never more than may be in flight.
    again: VecDeque<Due>,
    /// How many requests were made.
    made: u64,
    /// When the next one of an open loop is due.
    next_at: Option<Instant>,
    left: u64,
    random: SmallRng,
}

/// A load whose connections are made.
pub struct ConnectedLoad {
    load: Load,
    poll: Poll,
    timer: Option<Timer>,
    lanes: Vec<Lane>,
}

impl Load {
    /// Connects. Fails if a connection cannot be made, unless the load survives that.
    pub fn open(self) -> anyhow::Result<ConnectedLoad> {
        let poll = Poll::new()?;
        let timer = self.pace.map(|_| Timer::new(poll.registry(), TIMER));
        let mut lanes = Vec::new();
        for share in &self.connections {
            let mut lane = Lane::new(share);
            if self.survive {
                lane.mend_at = Some(self.clock.now());
            } else {
                let to = self.server(&lane);
                let address = to.address;
                let stream = std::net::TcpStream::connect_timeout(&address, CONNECT_TIMEOUT)
                    .and_then(|stream| stream.set_nonblocking(true).map(|()| stream))
                    .with_context(|| format!("connecting to {address}"))?;
                let stream = mio::net::TcpStream::from_std(stream);
                lane.connection = Some(self.connection(stream, to, lanes.len(), &poll)?);
            }
            lanes.push(lane);
        }
        Ok(ConnectedLoad {
            timer: timer.transpose()?,
            load: self,
            poll,
            lanes,
        })
    }

    fn server(&self, lane: &Lane) -> &ServerAddress {
        &self.addresses[lane.turn % self.addresses.len()]
    }

    fn connection(
        &self,
        stream: mio::net::TcpStream,
        to: &ServerAddress,
        token: usize,
        poll: &Poll,
    ) -> io::Result<Connection> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        let registry = poll.registry();
        stream.set_nodelay(true)?;
        let mut stream = self.way.begin(stream, to)?;
        registry.register(stream.source(), Token(token), interest)?;
        let clock = self.clock.clone();
        let mut connection = Connection::new(stream, self.protocol, self.value_bytes, clock);
        if let Some(account) = &self.way.account {
            connection.introduce(account);
        }
        if self.survive {
            connection.keep_refused();
        }
        Ok(connection)
    }

    /// Until when requests are made: those of an open loop that were due in time go out late rather than
    /// never.
    fn sends_until(&self, begun: Instant) -> Instant {
        let late = self.pace.map_or(Duration::ZERO, |_| END_TIMEOUT);
        begun + self.duration + late
    }

    /// Takes the answers that are there and makes as many new requests.
    fn go_on(&self, lane: &mut Lane, measured: &mut Measurements, ended: bool) {
        let Some(connection) = &mut lane.connection else {
            return;
        };
        let outcome = connection.receive(ended, measured);
        let refused = connection.take_refused();
        lane.is_leaving |= !refused.is_empty();
        lane.again.extend(refused);
        match outcome {
            Ok(()) => self.send(lane, measured),
            Err(error) => self.give_up(lane, measured, &format!("connection: {error}")),
        }
    }

    /// Makes the requests that there is room and time for, and sends what waits to be sent.
    fn send(&self, lane: &mut Lane, measured: &mut Measurements) {
        let now = self.clock.now();
        let may_ask = !lane.is_leaving && now < self.sends_until(measured.begun);
        let Some(mut connection) = lane.connection.take() else {
            return;
        };
        while may_ask && connection.waiting_count() < self.in_flight {
            let due = lane.again.pop_front();
            let Some(due) = due.or_else(|| self.next_due(lane, measured.begun, now)) else {
                break;
            };
            connection.push(due, now);
        }
        let has_answered_all = connection.waiting_count() == 0;
        let outcome = connection.send();
        lane.connection = Some(connection);
        if let Err(error) = outcome {
            self.give_up(lane, measured, &format!("connection: {error}"));
        } else if lane.is_leaving && has_answered_all {
            self.give_up(lane, measured, "");
        }
    }

    /// A new request, if one is due.
    fn next_due(&self, lane: &mut Lane, begun: Instant, now: Instant) -> Option<Due> {
        let at = lane.next_at.unwrap_or(now);
        if lane.left == 0 || at > now {
            return None;
        }
        let request = self.next_request(lane);
        lane.made += 1;
        lane.left = lane.left.saturating_sub(1);
        lane.next_at = self.due_at(lane, begun);
        Some(Due { request, at })
    }

    /// When the next request of an open loop is due.
    fn due_at(&self, lane: &Lane, begun: Instant) -> Option<Instant> {
        let pace = self.pace?;
        Some(begun + pace.due(lane.share.number, lane.made))
    }

    fn next_request(&self, lane: &mut Lane) -> Request {
        match self.phase {
            Phase::Fill => Request::Set(lane.share.first_key + lane.made),
            Phase::Measure => {
                let key = lane.random.random_range(0..self.keys);
                if lane.random.random_range(0..100) < self.write_percent {
                    Request::Set(key)
                } else {
                    Request::Get(key)
                }
            }
        }
    }

    /// Leaves a connection. What was not answered has failed, and is tried again by a load that survives.
    fn give_up(&self, lane: &mut Lane, measured: &mut Measurements, reason: &str) {
        let now = self.clock.now();
        if let Some(connection) = lane.connection.take() {
            let waiting = connection.into_waiting();
            measured.failed(reason, waiting.len() as u64, now);
            if self.survive {
                lane.again.extend(waiting);
            }
        }
        self.move_on(lane, now);
    }

    fn move_on(&self, lane: &mut Lane, now: Instant) {
        lane.is_leaving = false;
        let pause = if self.survive {
            lane.turn = lane.turn.wrapping_add(1);
            SURVIVE_PAUSE
        } else {
            RECONNECT_PAUSE
        };
        lane.mend_at = Some(now + pause);
    }

    /// When a lane wants to be looked at though nothing comes.
    fn wakes_at(&self, lane: &Lane, begun: Instant, now: Instant) -> Option<Instant> {
        let has_more = lane.has_more() && now < self.sends_until(begun);
        let Some(connection) = &lane.connection else {
            return lane.mend_at.filter(|_| has_more);
        };
        let waits_since = connection.waits_since().filter(|_| self.survive);
        let lost_at = waits_since.map(|since| since + TRY_TIMEOUT);
        let has_room = connection.waiting_count() < self.in_flight && !lane.is_leaving;
        let due_at = lane.next_at;
        let due_at = due_at.filter(|_| has_more && has_room && lane.left > 0);
        lost_at.into_iter().chain(due_at).min()
    }
}

impl ConnectedLoad {
    /// Runs to the end.
    pub fn run(mut self, begun: Instant) -> anyhow::Result<Measurements> {
        let mut measured = Measurements::new(begun)?;
        let duration = self.load.duration;
        measured.intervals = self.load.interval.map(|it| Intervals::new(it, duration));
        measured.gaps.clone_from(&self.load.gaps);
        if let Some(pace) = self.load.pace {
            for lane in &mut self.lanes {
                let due = pace.count_before(lane.share.number, duration);
                lane.left = lane.left.min(due);
                lane.next_at = self.load.due_at(lane, begun);
            }
        }
        for lane in &mut self.lanes {
            self.load.send(lane, &mut measured);
        }
        self.drive(&mut measured)?;
        let now = self.load.clock.now();
        for lane in &mut self.lanes {
            self.load
                .give_up(lane, &mut measured, "not answered in time");
            if self.load.pace.is_some() {
                measured.failed(NOT_SENT, lane.left, now);
            }
        }
        if self.load.pace.is_some() {
            // Its end is fixed, also where the last request is due long before.
            measured.ran = duration;
            measured.elapsed = measured.elapsed.max(duration);
        }
        Ok(measured)
    }

    fn drive(&mut self, measured: &mut Measurements) -> anyhow::Result<()> {
        let end = measured.begun + self.load.duration;
        let sends_until = self.load.sends_until(measured.begun);
        let mut events = Events::with_capacity(EVENTS_MAX);
        loop {
            let now = self.load.clock.now();
            let sending = now < sends_until && self.lanes.iter().any(Lane::has_more);
            let waiting = self.lanes.iter().any(Lane::waits);
            if now < end {
                measured.ran = now - measured.begun;
            } else if measured.ran < self.load.duration {
                measured.ran = self.load.duration;
                measured.unsent_at_end = self.unsent();
            }
            if !sending && (!waiting || now > end + END_TIMEOUT) {
                return Ok(());
            }
            if sending {
                self.mend(measured, now);
            }
            match self.wait(&mut events, measured.begun) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            }
            let answered_before = measured.latencies_ns.len();
            for event in &events {
                if let Some(lane) = self.lanes.get_mut(event.token().0) {
                    self.load.go_on(lane, measured, event.is_read_closed());
                } else if let Some(timer) = &mut self.timer {
                    timer.went_off();
                }
            }
            self.look_at_the_clock(measured);
            let answered = measured.latencies_ns.len() - answered_before;
            self.load.answered.fetch_add(answered, Ordering::Relaxed);
        }
    }

    /// Requests of an open loop that are not made yet.
    fn unsent(&self) -> u64 {
        let lanes = self.lanes.iter().filter(|_| self.load.pace.is_some());
        lanes.map(|lane| lane.left).sum()
    }

    /// Until something comes or is due.
    fn wait(&mut self, events: &mut Events, begun: Instant) -> io::Result<()> {
        let load = &self.load;
        if load.pace.is_none() && !load.survive {
            return self.poll.poll(events, Some(POLL_TIMEOUT));
        }
        let now = load.clock.now();
        let wakes = self.lanes.iter();
        let wakes = wakes
            .filter_map(|lane| load.wakes_at(lane, begun, now))
            .min();
        let wakes = wakes.unwrap_or(now + POLL_TIMEOUT);
        let mut timeout = wakes.saturating_duration_since(now).min(POLL_TIMEOUT);
        let is_soon = !timeout.is_zero() && timeout < POLL_TIMEOUT;
        if let Some(timer) = self.timer.as_mut().filter(|_| is_soon) {
            timer.set(wakes, now)?;
            timeout = POLL_TIMEOUT;
        }
        self.poll.poll(events, Some(timeout))
    }

    /// Makes the requests that have fallen due, and leaves servers that say nothing.
    fn look_at_the_clock(&mut self, measured: &mut Measurements) {
        if self.load.pace.is_none() && !self.load.survive {
            return;
        }
        for lane in &mut self.lanes {
            let now = self.load.clock.now();
            let wakes = self.load.wakes_at(lane, measured.begun, now);
            if wakes.is_none_or(|at| at > now) {
                continue;
            }
            let since = lane.connection.as_ref().and_then(Connection::waits_since);
            if self.load.survive && since.is_some_and(|since| since + TRY_TIMEOUT <= now) {
                self.load.give_up(lane, measured, "no answer in time");
            } else {
                self.load.send(lane, measured);
            }
        }
    }

    /// Makes broken connections anew, each after a pause.
    fn mend(&mut self, measured: &mut Measurements, now: Instant) {
        let Self {
            load, lanes, poll, ..
        } = self;
        for (token, lane) in lanes.iter_mut().enumerate() {
            let is_due = lane.mend_at.is_some_and(|at| at <= now);
            if !is_due || !lane.has_more() {
                continue;
            }
            let to = load.server(lane);
            let stream = mio::net::TcpStream::connect(to.address);
            match stream.and_then(|stream| load.connection(stream, to, token, poll)) {
                Ok(connection) => {
                    lane.connection = Some(connection);
                    lane.mend_at = None;
                    if load.survive {
                        load.send(lane, measured); // first, so that a port that is closed is a try that fails
                    } else {
                        load.go_on(lane, measured, false);
                    }
                }
                Err(error) => {
                    // Without it a load that only ever comes to closed ports could not say why nothing
                    // succeeded.
                    let tries = lane.again.len().max(1) as u64;
                    let tries = if load.survive { tries } else { 0 };
                    measured.failed(&format!("connection: {error}"), tries, now);
                    load.move_on(lane, now);
                }
            }
        }
    }
}

impl Lane {
    fn new(share: &Share) -> Self {
        Self {
            share: *share,
            turn: usize::try_from(share.number).unwrap_or(0),
            connection: None,
            mend_at: None,
            is_leaving: false,
            again: VecDeque::new(),
            made: 0,
            next_at: None,
            left: share.operations.unwrap_or(u64::MAX),
            random: SmallRng::seed_from_u64(share.number),
        }
    }

    /// Whether there is anything left to send.
    fn has_more(&self) -> bool {
        self.left > 0 || !self.again.is_empty()
    }

    fn waits(&self) -> bool {
        let connection = self.connection.as_ref();
        connection.is_some_and(|connection| connection.waiting_count() > 0)
    }
}

#[cfg(test)]
#[path = "load_test.rs"]
mod tests;

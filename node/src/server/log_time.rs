//! The log's time as a leader tells it: which ticks it puts into the log, and when. What a tick does is
//! the state machine's business.
use super::clock;
use super::core::Core;
use bytes::BytesMut;
use quorumwire_control::Now;
use quorumwire_interfaces::{Index, LogTime, Term};
use quorumwire_wire::RecordKind;
use std::time::Duration;

/// A write takes the log's time with it if that is older than this; no tick follows another sooner.
const TICK_INTERVAL: Duration = Duration::from_millis(10);

/// The log's time as this leader tells it: the wall clock when its term began, or what the log had come
/// to if that is later; from then on the clock that nobody sets.
#[derive(Clone, Copy, Default)]
pub struct LeaderClock {
    /// What it tells the time of.
    pub term: Term,
    base_wall_ms: u64,
    base: Now,
    last_tick: Option<Now>,
    /// Index of the last tick proposed because something's time had come.
    pub barrier: Index,
    /// Index of the last tick proposed because something applied counts from it.
    awaited: Index,
}

impl LeaderClock {
    /// The moment at which the log's time comes to this, since the system was started.
    pub fn when(&self, time: LogTime) -> Duration {
        let left = time.0.saturating_sub(self.base_wall_ms);
        self.base.0.saturating_add(Duration::from_millis(left))
    }
}

impl Core {
    /// What a term that we lead begins with; called before anything is done as its leader.
    pub fn begin_term(&mut self) {
        let term = self.replica.term();
        if self.clock.term == term {
            return;
        }
        if self.clock.term.0 + 1 != term.0 {
            self.led_since = term;
        }
        self.term_start = self.last_index();
        self.forget_limit_on_its_way();
        self.clock = LeaderClock {
            term,
            base_wall_ms: clock::wall_ms().max(self.store.inner().log_time().0),
            base: self.now,
            last_tick: None,
            barrier: Index(0),
            awaited: Index(0),
        };
        // What an earlier term proposed may stand at the same indexes as what this one will.
        self.orphans.extend(self.proposals.drain(..));
    }

    /// Takes the log's time along before a write, so that a life span counts from now.
    pub fn tick_before_write(&mut self) {
        if self.is_tick_due() {
            self.propose_tick();
        }
    }

    fn is_tick_due(&self) -> bool {
        self.clock
            .last_tick
            .is_none_or(|last| self.now.0.saturating_sub(last.0) >= TICK_INTERVAL)
    }

    /// Whether a tick is to go into the log before a write, because the last one is too long ago.
    pub fn take_due_tick(&mut self) -> bool {
        let is_due = self.is_tick_due();
        if is_due {
            self.clock.last_tick = Some(self.now);
        }
        is_due
    }

    fn propose_tick(&mut self) -> Option<Index> {
        if self.leads_fast_term() {
            self.clock.last_tick = Some(self.now);
            return self.submit_tick();
        }
        let time_ms = self.leader_time_ms();
        let payload = |buffer: &mut BytesMut| buffer.extend_from_slice(&time_ms.to_be_bytes());
        let (index, _) = self.replica.propose(RecordKind::Tick, payload).ok()?;
        self.clock.last_tick = Some(self.now);
        self.wants_flush = true;
        Some(index)
    }

    pub fn leader_time_ms(&self) -> u64 {
        let elapsed = self.now.0.saturating_sub(self.clock.base.0).as_millis();
        self.clock
            .base_wall_ms
            .saturating_add(u64::try_from(elapsed).unwrap_or(u64::MAX))
    }

    /// If the time of something in the store has come, has the log say so: no read may show it.
    pub fn tick_if_deadline_passed(&mut self) {
        if !self.leads() {
            return;
        }
        self.begin_term();
        if self.clock.barrier > self.applied {
            return;
        }
        let Some(deadline) = self.store.next_deadline() else {
            return;
        };
        let since = self
            .clock
            .last_tick
            .map(|last| self.now.0.saturating_sub(last.0));
        if deadline.0 <= self.leader_time_ms() && since.is_none_or(|since| since >= TICK_INTERVAL) {
            // Without room for a tick a read waits for what is under way, which the tick follows.
            let last = self.last_index();
            self.clock.barrier = self.propose_tick().unwrap_or(last);
        }
    }

    /// A read shows how long something still lives: the log says what time it is, if the store has not just been
    /// told. A tick that went out before a write and is not applied yet has told it nothing.
    pub fn tick_for_reader(&mut self) {
        if !self.leads() {
            return;
        }
        self.begin_term();
        let told_ms = self.store.inner().log_time().0;
        let passed = Duration::from_millis(self.leader_time_ms().saturating_sub(told_ms));
        if self.clock.barrier <= self.applied && passed >= TICK_INTERVAL {
            let last = self.last_index();
            self.clock.barrier = self.propose_tick().unwrap_or(last);
        }
    }

    /// Commands that clients sent to the plane came without a tick before them: gives what they began its
    /// time. One tick at a time, so that a plane without room is not asked for more.
    pub fn tick_if_time_is_awaited(&mut self) {
        if !self.leads() || !self.store.awaits_time() {
            return;
        }
        self.begin_term();
        if self.clock.awaited > self.applied || !self.is_tick_due() {
            return;
        }
        let last = self.last_index();
        self.clock.awaited = self.propose_tick().unwrap_or(last);
    }
}

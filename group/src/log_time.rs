//! The log's time as a leader tells it: which ticks it puts into the log, and when. What a tick does is
//! the state machine's business.
use crate::clocks::{LeaderClock, Overdue, WallClock};
use crate::group::Group;
use crate::mutants::mutant;
use crate::requester::Requester;
use bytes::BytesMut;
use quorumwire_control::{LogClock, Now};
use quorumwire_interfaces::{Application, DataPlane, Index, LogTime};
use quorumwire_wire::{RecordKind, Tick};
use std::time::Duration;

/// A write takes the log's time with it if that is older than this; no tick follows another sooner.
const TICK_INTERVAL: Duration = Duration::from_millis(10);

/// A read whose answer only the log's time decides waits this long for it, then it is refused.
const STANDSTILL: Duration = Duration::from_secs(1);
/// The same where this replica's disk is full: the others may have room.
const STANDSTILL_FULL: Duration = Duration::from_millis(100);

impl<S: Application, O: Requester, P: DataPlane + ?Sized> Group<S, O, P> {
    /// What a term begins with if we lead it; called before anything is done as its leader.
    pub fn begin_term(&mut self) {
        let term = self.replica.term();
        if !self.leads() || self.has_begun_term() {
            return;
        }
        if self.clock.term.0 + 1 != term.0 {
            self.led_since = term;
        }
        self.term_start = self.last_index();
        self.carried_over = self.plane.as_ref().is_some_and(|plane| !plane.is_idle());
        self.clock = LeaderClock {
            term,
            time: LogClock::begin(self.now, self.wall.at(self.now), self.told_time().0),
            ..LeaderClock::default()
        };
        // What an earlier term proposed may stand at the same indexes as what this one will.
        self.proposals.begin_term();
    }

    /// The log's time so far. An application that keeps it does so in snapshots, too, of which the ones of
    /// earlier versions say it nowhere else.
    #[must_use]
    pub fn told_time(&self) -> LogTime {
        self.log_time.max(self.store.inner().log_time())
    }

    /// Whether it leads, and has begun its term: the clock tells the time of that one.
    pub(crate) fn has_begun_term(&self) -> bool {
        self.leads() && self.clock.term == self.replica.term()
    }

    /// The wall clock shows this now: the log's time follows it, slowly.
    pub fn look_at_wall_clock(&mut self, wall: Duration) {
        self.wall = WallClock::read(self.now, wall);
        self.follow_log_time();
    }

    /// The log may have come to what an earlier leader had told it: what this one tells goes on from there at
    /// once, and does not stand still until the wall clock is looked at again.
    pub(crate) fn follow_log_time(&mut self) {
        if self.has_begun_term() {
            let log_time_ms = self.told_time().0;
            let wall = self.wall.at(self.now);
            self.clock.time.look(self.now, wall, log_time_ms);
        }
    }

    /// Has the store answer reads as of now, if we lead; else as of the log's time.
    pub fn set_read_clock(&mut self) {
        let time_ms = if self.has_begun_term() {
            self.leader_time_ms()
        } else {
            0
        };
        self.store.inner_mut().set_clock(LogTime(time_ms));
    }

    /// Takes the log's time along before a write, so that a life span counts from now.
    pub fn tick_before_write(&mut self) {
        if self.is_tick_due() && !mutant("write-without-tick") {
            self.propose_tick();
        }
    }

    fn is_tick_due(&self) -> bool {
        self.clock
            .last_tick
            .is_none_or(|last| self.now.0.saturating_sub(last.0) >= TICK_INTERVAL)
    }

    /// Whether a tick is to go into the log before a write, because the last one is too long ago.
    pub(crate) fn take_due_tick(&mut self) -> bool {
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
        let tick = self.tick().encode();
        let payload = |buffer: &mut BytesMut| buffer.extend_from_slice(tick.as_ref());
        let (index, _) = self.replica.propose(RecordKind::Tick, payload).ok()?;
        self.clock.last_tick = Some(self.now);
        self.wants_flush = true;
        Some(index)
    }

    /// What a tick says that leaves now.
    #[must_use]
    pub fn tick(&self) -> Tick {
        let log_says_it = self.store.inner().ahead_ms().is_some();
        self.clock
            .time
            .tick(self.now, self.may_tell_wall_clock(log_says_it))
    }

    fn may_tell_wall_clock(&self, log_says_it: bool) -> bool {
        self.store.inner().reads_time_of_day() && self.replica.may_tell_wall_clock(log_says_it)
    }

    /// Whether the log must be told what the wall clock shows before anybody names a point of time to a
    /// plane: it is told for the first time, or no longer, or the clock was set back. What else has changed
    /// since the last tick can wait for the next command that depends on it. So an idle log is not told of
    /// it, while both clocks come closer for long.
    fn is_wall_clock_news(&self) -> bool {
        if self.applied < self.term_start {
            return false; // the log may say it already
        }
        let log_time_ms = self.told_time().0;
        let told = self.store.inner().ahead_ms();
        let tells = self.may_tell_wall_clock(told.is_some());
        told.map_or(tells, |ahead_ms| {
            !tells || self.clock.time.is_set_back(self.now, log_time_ms, ahead_ms)
        })
    }

    /// The log's time as this leader tells it now.
    #[must_use]
    pub fn leader_time_ms(&self) -> u64 {
        let told_ms = self.told_time().0;
        self.clock.time.time_ms(self.now).max(told_ms)
    }

    /// A write shows what time is left, or what time it is: the log says so just before it, however new its
    /// last tick is. Only where we lead.
    pub fn want_exact_time(&mut self) {
        let is_past = |last: Now| self.now.0.saturating_sub(last.0) >= Duration::from_millis(1);
        if self.clock.last_tick.is_some_and(is_past) {
            self.clock.last_tick = None;
        }
    }

    /// If the time of something in the store has come, has the log say so.
    pub fn tick_if_deadline_passed(&mut self) {
        if !self.leads() {
            return;
        }
        self.begin_term();
        if self.is_tick_due() && self.is_end_past() {
            self.tick_as_barrier();
        }
    }

    fn is_end_past(&self) -> bool {
        let next = self.store.next_deadline();
        next.is_some_and(|deadline| deadline.0 <= self.leader_time_ms())
    }

    /// One at a time: the next one when that is applied.
    fn tick_as_barrier(&mut self) {
        if self.clock.barrier <= self.applied {
            // Without room for a tick a read waits for what is under way, which the tick follows.
            let last = self.last_index();
            self.clock.barrier = self.propose_tick().unwrap_or(last);
            self.clock.barrier_since = self.now;
        }
    }

    /// What a read would show that is next may be over by the clock, while the log has not said so: the entry
    /// that the read waits for then. Nothing may be missed before the log says so, else it could come back
    /// under a leader whose clock is behind.
    pub fn overdue(&mut self, line: &[u8]) -> Option<Overdue> {
        self.set_read_clock();
        if !self.leads() || !self.store.inner().is_overdue(line) {
            return None;
        }
        self.begin_term();
        self.tick_as_barrier();
        if self.time_stands_still() {
            return Some(Overdue::Refused);
        }
        let waits = self.clock.barrier > self.applied;
        waits.then_some(Overdue::Until(self.clock.barrier))
    }

    /// Whether a tick is in the log that cannot be committed now: a disk is full, or too few replicas answer.
    #[must_use]
    pub(crate) fn time_stands_still(&self) -> bool {
        let barrier = self.clock.barrier;
        let since = self.now.0.saturating_sub(self.clock.barrier_since.0);
        let limit = if self.is_full {
            STANDSTILL_FULL
        } else {
            STANDSTILL
        };
        self.leads() && barrier > self.applied.max(self.replica.commit_index()) && since > limit
    }

    /// Commands that clients sent to the plane came without a tick before them: gives what they began its
    /// time. One tick at a time, so that a plane without room is not asked for more.
    pub fn tick_if_time_is_awaited(&mut self) {
        if !self.leads() {
            return;
        }
        self.begin_term();
        if self.clock.awaited > self.applied || !self.is_tick_due() {
            return;
        }
        if !self.store.awaits_time() && !self.is_wall_clock_news() {
            return;
        }
        let last = self.last_index();
        self.clock.awaited = self.propose_tick().unwrap_or(last);
    }
}

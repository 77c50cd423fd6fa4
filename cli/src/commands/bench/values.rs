//! A load of values on a deployment of the Paxos roles. This process is one of its learners, with the
//! proposer beside it: latency is from proposing a value to learning that it was decided, in its place among
//! all.
//!
//! Where the next value waits for an answer, it is proposed as soon as that answer is known, on the member's
//! own thread: no other has to wake for it.
use super::gaps::WriteGaps;
use super::load::END_TIMEOUT;
use super::measured::{Intervals, Measurements, NOT_SENT};
use super::pace::Pace;
use super::timer::Timer;
use mio::{Events, Poll, Token};
use quorumwire_paxos_process::{Member, MemberError};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What is to be done.
pub struct ValuesLoad {
    /// The learner, for as long as the process lives: what it calls must not be the last to have it.
    pub member: &'static Member,
    /// Values under way at most.
    pub under_way_max: usize,
    /// Bytes of each.
    pub value_bytes: usize,
    /// For how long at most.
    pub duration: Duration,
    /// How many values; `None` for as many as there is time.
    pub operations: Option<u64>,
    /// When they are due; `None` for each when one before is decided.
    pub pace: Option<Pace>,
    /// How long an interval is that is measured by itself.
    pub interval: Option<Duration>,
    /// Where it is told what was decided, for the longest time without.
    pub gaps: Option<Arc<WriteGaps>>,
    /// Values decided so far, for whoever watches.
    pub answered: Arc<AtomicU64>,
}

struct State {
    measured: Measurements,
    /// Values that are still to be proposed.
    left: u64,
    under_way: usize,
    /// The member takes no more.
    has_ended: bool,
    /// The run is over: what comes yet is not counted.
    is_over: bool,
}

impl State {
    /// No value is proposed any more.
    fn is_done(&self) -> bool {
        self.left == 0 || self.has_ended
    }
}

/// A run, as the member's thread knows it.
struct Run {
    load: ValuesLoad,
    ends: Instant,
    state: Mutex<State>,
    /// Fewer are under way.
    changed: Condvar,
}

impl ValuesLoad {
    /// Runs to the end.
    ///
    /// # Errors
    /// Time cannot be measured so, or the member has ended.
    pub fn run(self, begun: Instant) -> anyhow::Result<Measurements> {
        let (duration, pace) = (self.duration, self.pace);
        let mut measured = Measurements::new(begun)?;
        measured.intervals = self.interval.map(|it| Intervals::new(it, duration));
        measured.gaps.clone_from(&self.gaps);
        let due = pace.map(|it| it.count_before(0, duration));
        let left = self.operations.unwrap_or(u64::MAX);
        let lanes = self.under_way_max;
        let run = Arc::new(Run {
            load: self,
            ends: begun + duration,
            state: Mutex::new(State {
                measured,
                left: due.map_or(left, |due| due.min(left)),
                under_way: 0,
                has_ended: false,
                is_over: false,
            }),
            changed: Condvar::new(),
        });
        match pace {
            Some(pace) => run.propose_when_due(begun, pace)?,
            None => (0..lanes).try_for_each(|_| run.propose_next())?,
        }
        Ok(run.end(begun))
    }
}

impl Run {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A closed loop's next value, if there is one.
    fn propose_next(self: &Arc<Self>) -> Result<(), MemberError> {
        let now = Instant::now();
        let mut state = self.state();
        if state.is_over || state.is_done() || now >= self.ends {
            return Ok(());
        }
        state.left -= 1;
        drop(state);
        self.propose(now)
    }

    fn propose(self: &Arc<Self>, due: Instant) -> Result<(), MemberError> {
        self.state().under_way += 1;
        let run = Arc::clone(self);
        let value = vec![b'v'; self.load.value_bytes];
        let taken = self.load.member.submit_then(value, move |outcome| {
            run.settled(due, &outcome.map(|_| ()));
        });
        if taken.is_err() {
            self.state().under_way -= 1;
        }
        taken
    }

    fn settled(self: &Arc<Self>, due: Instant, outcome: &Result<(), MemberError>) {
        let now = Instant::now();
        let mut state = self.state();
        state.under_way -= 1;
        if !state.is_over {
            let measured = &mut state.measured;
            measured.elapsed = measured
                .elapsed
                .max(now.saturating_duration_since(measured.begun));
            match outcome {
                Ok(()) => {
                    measured.succeeded(due, now);
                    self.load.answered.fetch_add(1, Ordering::Relaxed);
                    if let Some(gaps) = &measured.gaps {
                        gaps.wrote(now);
                    }
                }
                Err(error) => measured.failed(&error.to_string(), 1, now),
            }
        }
        drop(state);
        let taken = match outcome {
            Err(MemberError::Closed) => Err(MemberError::Closed),
            Ok(()) | Err(_) if self.load.pace.is_none() => self.propose_next(),
            Ok(()) | Err(_) => Ok(()),
        };
        let mut state = self.state();
        state.has_ended |= taken.is_err();
        // Nobody is woken for each value of a closed loop.
        if self.load.pace.is_some() || state.under_way == 0 {
            self.changed.notify_all();
        }
    }

    /// An open loop: values that are due while too many are under way are proposed late rather than never.
    fn propose_when_due(self: &Arc<Self>, begun: Instant, pace: Pace) -> anyhow::Result<()> {
        const TIMER: Token = Token(0);
        let mut poll = Poll::new()?;
        let mut timer = Timer::new(poll.registry(), TIMER)?;
        let mut events = Events::with_capacity(1);
        let last = self.ends + END_TIMEOUT;
        for number in 0.. {
            let due = begun + pace.due(0, number);
            if self.state().is_done() {
                break;
            }
            while let wait = due.saturating_duration_since(Instant::now())
                && !wait.is_zero()
            {
                timer.set(due, Instant::now())?;
                match poll.poll(&mut events, Some(wait)) {
                    Err(error) if error.kind() != std::io::ErrorKind::Interrupted => {
                        return Err(error.into());
                    }
                    Ok(()) | Err(_) => timer.went_off(),
                }
            }
            let time = last.saturating_duration_since(Instant::now());
            let is_full = |it: &mut State| it.under_way >= self.load.under_way_max;
            let (mut state, waited) = self
                .changed
                .wait_timeout_while(self.state(), time, is_full)
                .unwrap_or_else(PoisonError::into_inner);
            if waited.timed_out() || state.is_done() {
                break;
            }
            state.left -= 1;
            drop(state);
            self.propose(due)?;
        }
        Ok(())
    }

    /// Waits for what is under way, but not for longer than it may take.
    fn end(&self, begun: Instant) -> Measurements {
        let is_paced = self.load.pace.is_some();
        let goes_on = |it: &mut State| {
            it.under_way > 0 || !is_paced && !it.is_done() && Instant::now() < self.ends
        };
        let last = self.ends + END_TIMEOUT;
        let time = last.saturating_duration_since(Instant::now());
        let (mut state, _) = self
            .changed
            .wait_timeout_while(self.state(), time, goes_on)
            .unwrap_or_else(PoisonError::into_inner);
        state.is_over = true;
        let now = Instant::now();
        let (under_way, left) = (state.under_way as u64, state.left);
        let empty = Measurements::new(begun).expect("as before");
        let mut measured = std::mem::replace(&mut state.measured, empty);
        drop(state);
        measured.failed("not decided in time", under_way, now);
        measured.ran = now.min(self.ends).saturating_duration_since(begun);
        if is_paced {
            measured.failed(NOT_SENT, left, now);
            measured.ran = self.load.duration;
            measured.elapsed = measured.elapsed.max(self.load.duration);
        }
        measured
    }
}

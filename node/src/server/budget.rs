//! How much of a turn of the event loop its large kinds of work may take, so that replicas, timers and other
//! clients are never kept waiting for long, whatever somebody asks for.
//!
//! Nothing that has begun is broken off, so that a turn may take longer than its time by one piece of work,
//! but not by more: nothing else begins then. Who had to wait for that comes before the others in the next
//! turn.
use quorumwire_control::Now;
use quorumwire_interfaces::counters_by;
use std::time::Duration;

/// A turn has this part of the election timeout, 10 ms if that is 400. A piece of work comes on top:
/// docs/operating.md says what the most expensive ones were measured to take.
const PARTS_OF_ELECTION_TIMEOUT: u32 = 40;
/// The same at most: what a client waits for others is not to depend on that option.
const TURN_MAX: Duration = Duration::from_millis(10);
/// The clock is looked at once so much work has been done since the last time, in bytes that were looked at
/// or moved: less than 50 µs. It costs nothing then.
pub const LOOK_AFTER_WORK: u64 = 64 << 10;

/// What the time goes to. Each may have half of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Purpose {
    /// Clients' requests are taken in, their reads answered.
    Clients,
    /// Clients' datagrams are taken in, their reads answered.
    Datagrams,
    /// Reads that followers passed on are answered.
    Followers,
    /// Committed commands are carried out.
    Applying,
    /// Keys are looked through that take longer than a turn.
    Searches,
}

/// Each, in its place in [`Budget::used`].
const PURPOSES: [Purpose; 5] = [
    Purpose::Clients,
    Purpose::Datagrams,
    Purpose::Followers,
    Purpose::Applying,
    Purpose::Searches,
];

counters_by! {
    /// Turns in which there was more to do than time, by what was left to the next one.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct CutCounters: Purpose {
        /// Turns of the event loop that left clients' requests to the next one because their time was
        /// over
        Clients: "turns_out_of_time_for_clients",
        /// Turns of the event loop that left clients' datagrams to the next one because their time was
        /// over
        Datagrams: "turns_out_of_time_for_datagrams",
        /// Turns of the event loop that left reads passed on by followers to the next one because their
        /// time was over
        Followers: "turns_out_of_time_for_followers",
        /// Turns of the event loop that left committed entries to the next one because their time was
        /// over
        Applying: "turns_out_of_time_for_applying",
        /// Turns of the event loop that left a search through all keys to the next one because its time
        /// was over
        Searches: "turns_out_of_time_for_searches",
    }
}

/// Time of one purpose in this turn.
#[derive(Clone, Copy, Debug, Default)]
struct Spending {
    time_ns: u64,
    /// Whether it was told to stop.
    is_cut: bool,
    /// For how many turns before this one it had to wait for the others.
    waited: u32,
}

/// What is left of a turn.
#[derive(Debug)]
pub struct Budget {
    turn_ns: u64,
    used: [Spending; PURPOSES.len()],
    /// The time of all purposes in this turn: it is asked for with every entry and request.
    all_ns: u64,
    /// When the clock was looked at, and the work done by then.
    looked_at: (Now, u64),
    cut: CutCounters,
}

impl Budget {
    pub fn new(election_timeout: Duration) -> Self {
        Self {
            turn_ns: nanoseconds((election_timeout / PARTS_OF_ELECTION_TIMEOUT).min(TURN_MAX)),
            used: [Spending::default(); PURPOSES.len()],
            all_ns: 0,
            looked_at: (Now::default(), 0),
            cut: CutCounters::default(),
        }
    }

    /// A turn begins: all have their time again.
    pub fn begin_turn(&mut self) {
        self.all_ns = 0;
        for (used, purpose) in self.used.iter_mut().zip(PURPOSES) {
            if used.is_cut {
                self.cut.count(purpose);
            }
            let had_none = used.is_cut && used.time_ns == 0;
            *used = Spending {
                waited: if had_none { used.waited + 1 } else { 0 },
                ..Spending::default()
            };
        }
    }

    /// Turns that left something to the next one because their time was over.
    pub const fn cut(&self) -> CutCounters {
        self.cut
    }

    /// Whether another piece of work may begin. Asked only by those who have one.
    pub fn may_go_on(&mut self, purpose: Purpose) -> bool {
        let own = self.used[purpose as usize];
        let comes_before = |other: &Spending| other.time_ns == 0 && other.waited > own.waited;
        let is_over = own.time_ns >= self.turn_ns / 2 || self.all_ns >= self.turn_ns;
        let may = !is_over && (own.time_ns > 0 || !self.used.iter().any(comes_before));
        self.used[purpose as usize].is_cut |= !may;
        may
    }

    /// Work of some kind begins here.
    pub fn begin(&mut self, now: Now, work_done: u64) {
        self.looked_at = (now, work_done);
    }

    /// Time has passed for this purpose.
    pub fn took(&mut self, purpose: Purpose, now: Now, work_done: u64) {
        let passed_ns = nanoseconds(now.0.saturating_sub(self.looked_at.0.0));
        for time_ns in [&mut self.used[purpose as usize].time_ns, &mut self.all_ns] {
            *time_ns = time_ns.saturating_add(passed_ns);
        }
        self.begin(now, work_done);
    }

    /// The same if so much has been done that it is worth a look at the clock.
    pub fn worked(&mut self, purpose: Purpose, work_done: u64, clock: impl FnOnce() -> Now) {
        if work_done.saturating_sub(self.looked_at.1) >= LOOK_AFTER_WORK {
            self.took(purpose, clock(), work_done);
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::Purpose::{Applying, Clients, Datagrams, Followers, Searches};
    use super::*;

    const TIMEOUT: Duration = Duration::from_millis(400);

    /// A loop with a clock of its own, which moves by what is done.
    struct Loop {
        budget: Budget,
        now: Now,
        work: u64,
    }

    impl Loop {
        fn new() -> Self {
            Self {
                budget: Budget::new(TIMEOUT),
                now: Now(Duration::from_secs(1)),
                work: 0,
            }
        }

        /// Does pieces that take so long each, as many as the turn allows and there are; how many.
        fn run(&mut self, purpose: Purpose, piece_us: u64, pieces: usize) -> usize {
            self.budget.begin(self.now, self.work);
            for done in 0..pieces {
                if !self.budget.may_go_on(purpose) {
                    return done;
                }
                self.now.0 += Duration::from_micros(piece_us);
                self.work += LOOK_AFTER_WORK;
                let now = self.now;
                self.budget.worked(purpose, self.work, || now);
            }
            pieces
        }
    }

    #[test]
    fn a_turn_with_little_to_do_does_it_all() {
        let mut it = Loop::new();
        it.budget.begin_turn();
        for purpose in [Followers, Clients, Applying] {
            assert_eq!(it.run(purpose, 10, 300), 300);
        }
        it.budget.begin_turn();
        for purpose in [Followers, Clients, Applying] {
            assert_eq!(it.budget.cut().of(purpose), 0);
        }
    }

    #[test]
    fn each_stops_when_its_time_is_over_and_goes_on_in_the_next_turn() {
        let mut it = Loop::new();
        for turn in 1..10 {
            it.budget.begin_turn();
            assert_eq!(it.run(Applying, 1000, 4096), 5);
            assert_eq!(it.run(Clients, 1000, 1024), 5);
            assert_eq!(it.run(Applying, 1000, 4096), 0, "not a second time");
            it.budget.begin_turn();
            assert_eq!(it.budget.cut().of(Applying), turn);
            assert_eq!(it.budget.cut().of(Clients), turn);
            assert_eq!(it.budget.cut().of(Followers), 0);
        }
    }

    /// All have the most expensive pieces of work to do, always.
    #[test]
    fn one_piece_at_most_comes_on_top_of_a_turn_and_all_take_turns() {
        let mut it = Loop::new();
        let mut done = [0; PURPOSES.len()];
        for _ in 0..100 {
            let begun = it.now;
            it.budget.begin_turn();
            for purpose in [Followers, Clients, Datagrams, Searches, Applying, Clients] {
                done[purpose as usize] += it.run(purpose, 17_000, 1000);
            }
            let took = it.now.0.saturating_sub(begun.0);
            assert!(took < TIMEOUT / 10, "{took:?}");
        }
        assert_eq!(done, [20; PURPOSES.len()]);
    }

    /// Two that fill their halves leave nothing for the third.
    #[test]
    fn who_had_no_time_comes_first_in_the_next_turn() {
        let mut it = Loop::new();
        it.budget.begin_turn();
        assert_eq!(it.run(Followers, 1000, 99), 5);
        assert_eq!(it.run(Clients, 1000, 99), 5);
        assert_eq!(it.run(Applying, 1000, 99), 0);
        it.budget.begin_turn();
        assert_eq!(it.run(Followers, 1000, 99), 0);
        assert_eq!(it.run(Clients, 1000, 99), 0);
        assert_eq!(it.run(Applying, 1000, 99), 5);
        assert_eq!(it.run(Clients, 1000, 99), 5, "what is left");
    }

    /// What had to wait may have nothing to do any more.
    #[test]
    fn nobody_waits_for_long_for_who_does_nothing() {
        let mut it = Loop::new();
        it.budget.begin_turn();
        assert_eq!(it.run(Clients, 17_000, 10), 1);
        assert_eq!(it.run(Applying, 17_000, 10), 0);
        it.budget.begin_turn();
        assert_eq!(it.run(Clients, 17_000, 10), 0, "applying comes first");
        it.budget.begin_turn();
        assert_eq!(it.run(Clients, 17_000, 10), 1);
    }

    #[test]
    fn a_turn_is_short_where_elections_come_soon() {
        let mut it = Loop::new();
        it.budget = Budget::new(Duration::from_millis(40));
        it.budget.begin_turn();
        assert_eq!(it.run(Applying, 100, 4096), 5);
    }

    #[test]
    fn little_work_is_no_reason_to_look_at_the_clock() {
        let mut budget = Budget::new(TIMEOUT);
        budget.begin(Now::default(), 7);
        budget.worked(Applying, 7 + LOOK_AFTER_WORK - 1, || unreachable!());
        budget.worked(Applying, 7 + LOOK_AFTER_WORK, || Now(TIMEOUT));
        assert!(!budget.may_go_on(Applying));
    }
}

//! One seed from its beginning to its verdict: trouble, peace, and whether everything is well then.
use crate::clients::MANY;
use crate::counts::{Counts, UNDECIDED};
use crate::machine::Replicated;
use crate::plan::{Durability, Plan};
use crate::queue::{MILLISECOND, Nanos, SECOND};
use crate::world::World;
use quorumwire_control::Role;
use quorumwire_interfaces::{Index, ReplicaId};
use quorumwire_linearizability::history::{Call, Operation};
use quorumwire_linearizability::{Failure, check};
use quorumwire_wire::limits::VOTERS_MAX;
use quorumwire_wire::{CommitQuorum, MemberRole};
use std::cell::RefCell;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// I14: after everything is healed, a majority commits within two election timeouts, which are up to twice
/// as long as set: each voter's is drawn anew. Whoever starts and waits for an older promise first does so
/// for no longer than twice the longest one (clocks drift), and has its timeouts after that.
const COMMIT_WITHIN: u64 = 2 * 2;
/// I14: everybody is equal within this time, or so many election timeouts if that is longer.
const EQUAL_WITHIN: (Nanos, u64) = (30 * SECOND, 12);
/// I14: a fast term begins within this time, and commits; or so many election timeouts as above.
const FAST_WITHIN: (Nanos, u64) = (10 * SECOND, 8);
/// I14: and goes on for so many election timeouts, and longer.
const STAYS_FAST: u64 = 3;
/// Clients go on for this long in peace.
const CLIENTS_IN_PEACE: Nanos = 2 * SECOND;
/// I16: most bytes of entries in memory.
const LOG_BYTES_MAX: usize = 16 << 20;
/// I16: most jobs that wait for the disk.
const JOBS_WAITING_MAX: usize = 20_000;
/// I16: most segments of a log.
const SEGMENTS_MAX: usize = 2_000;

/// What became of a seed.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// Which.
    pub seed: u64,
    /// What was found wrong first, and when; `None`: nothing.
    pub violation: Option<String>,
    /// What was reached.
    pub counts: Counts,
    /// Stands for everything that happened.
    pub hash: u64,
    /// Simulated time.
    pub simulated: Nanos,
    /// Processor time, nanoseconds.
    pub took: u64,
    /// From peace to the first commit.
    pub healed_in: Nanos,
    /// What happened, if asked for.
    pub trace: Vec<String>,
}

thread_local! {
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Has panics remembered instead of printed. Once per process.
pub fn catch_panics() {
    std::panic::set_hook(Box::new(|info| {
        PANIC.with_borrow_mut(|text| *text = Some(info.to_string()));
    }));
}

/// What the last panic said.
pub(crate) fn panic_text() -> String {
    let text = PANIC.with_borrow_mut(Option::take);
    format!("panic: {}", text.unwrap_or_default())
}

/// Runs a plan to its end.
#[must_use]
pub fn run(plan: Plan, loud: bool) -> Verdict {
    let begun = processor_time();
    let seed = plan.settings.seed;
    let mut world = World::new(plan, loud);
    let mut healed_in = 0;
    let lived = catch_unwind(AssertUnwindSafe(|| world.live(&mut healed_in)));
    let panicked = lived.err().map(|_| panic_text());
    let at = world.now / MILLISECOND;
    let found = world.checks.violation.take().or(panicked);
    Verdict {
        seed,
        violation: found.map(|found| format!("{found} (at {at} ms)")),
        counts: world.counts,
        hash: world.hash,
        simulated: world.now,
        took: processor_time().saturating_sub(begun),
        healed_in,
        trace: world.trace,
    }
}

/// What this thread has used, in nanoseconds.
fn processor_time() -> u64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let nanos = i128::from(used.tv_sec) * 1_000_000_000 + i128::from(used.tv_nsec);
    u64::try_from(nanos).unwrap_or(0)
}

/// A number for a store's whole state.
#[must_use]
pub fn digest(store: &Replicated) -> u64 {
    let mut sum = Sum::default();
    store.inner().is_compared.set(true);
    let frozen = store.freeze();
    store.inner().is_compared.set(false);
    if frozen.write(&mut sum).is_err() {
        return 0;
    }
    sum.bytes << 32 | u64::from(sum.checksum)
}

#[derive(Default)]
struct Sum {
    checksum: u32,
    bytes: u64,
}

impl Write for Sum {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.checksum = crc32c::crc32c_append(self.checksum, bytes);
        self.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl World {
    fn live(&mut self, healed_in: &mut Nanos) {
        while self.now < self.plan.trouble && self.checks.violation.is_none() {
            let end = (self.now + SECOND).min(self.plan.trouble);
            self.run_until(end);
            self.check_bounds();
        }
        if self.checks.violation.is_some() {
            return;
        }
        self.say(99, "all is healed");
        self.make_peace();
        self.must_commit(healed_in);
        self.must_become_equal();
        self.must_become_fast();
        self.must_be_linearizable();
        self.count_what_was_cut_short();
    }

    /// I16: what is kept in memory and on disk stays within bounds.
    fn check_bounds(&mut self) {
        for machine in &self.machines {
            let Some(process) = &machine.process else {
                continue;
            };
            let log_bytes = process.group.replica.log_bytes();
            let jobs = process.journal.jobs_waiting();
            let segments = process.journal.segment_count();
            let within =
                log_bytes < LOG_BYTES_MAX && jobs < JOBS_WAITING_MAX && segments < SEGMENTS_MAX;
            self.checks.require(within, || {
                format!(
                    "I16: {:?} holds {log_bytes} bytes of log in memory, {jobs} jobs, {segments} segments",
                    machine.peer
                )
            });
        }
    }

    fn must_commit(&mut self, healed_in: &mut Nanos) {
        let (begun, before) = (self.now, self.applied_first);
        let settings = &self.plan.settings;
        let usual = settings.election_timeout * COMMIT_WITHIN;
        let majority_suffices = self.forgetful.is_none() && !self.all_must_agree();
        let patience = if majority_suffices {
            usual
        } else {
            self.patience(EQUAL_WITHIN)
        };
        let longest = self.plan.settings.leases.iter().max().copied().unwrap_or(0);
        while self.applied_first <= before && self.checks.violation.is_none() {
            let waited = self.promises_waited_for.saturating_sub(begun);
            let late = self.now - begun > patience + waited.min(2 * longest);
            self.checks.require(!late, || {
                format!(
                    "I14: nothing committed within {} ms of peace",
                    patience / MILLISECOND
                )
            });
            // Somebody wants something, whatever the clients do.
            if let Some(leader) = self.leader() {
                self.flood(leader, 1);
            }
            self.run_until(self.now + 10 * MILLISECOND);
        }
        if majority_suffices {
            *healed_in = self.applied_first_at.saturating_sub(begun);
        }
    }

    /// A time, or so many election timeouts if that is longer.
    fn patience(&self, (time, timeouts): (Nanos, u64)) -> Nanos {
        time.max(self.plan.settings.election_timeout * timeouts)
    }

    fn all_must_agree(&self) -> bool {
        let processes = self.machines.iter().filter_map(|m| m.process.as_ref());
        let quorums = processes.map(|process| process.group.replica.membership().quorum);
        quorums
            .into_iter()
            .any(|quorum| quorum == CommitQuorum::All)
            || self
                .machines
                .iter()
                .any(|machine| machine.process.is_none())
                && self.plan.settings.durability == Durability::Memory
    }

    fn must_become_equal(&mut self) {
        let (begun, patience) = (self.now, self.patience(EQUAL_WITHIN));
        self.clients_stop_at = begun + CLIENTS_IN_PEACE;
        self.run_until(begun + CLIENTS_IN_PEACE + SECOND);
        while self.checks.violation.is_none() {
            let Some(different) = self.difference() else {
                break;
            };
            let late = self.now - begun > patience;
            self.checks.require(!late, || {
                format!(
                    "I14: not equal {} s after peace: {different}",
                    patience / SECOND
                )
            });
            self.run_until(self.now + 500 * MILLISECOND);
        }
        self.compare_states();
        self.end_programs();
    }

    /// I14: where all voters have planes, a fast term begins, and commits.
    fn must_become_fast(&mut self) {
        let (begun, mut before) = (self.now, None);
        let patience = self.patience(FAST_WITHIN);
        while self.checks.violation.is_none() {
            let Some(leader) = self.leader() else {
                return; // found wrong before
            };
            let Some(process) = &self.machines[leader].process else {
                return;
            };
            let has_plane = |id: ReplicaId| self.machines[usize::from(id.0)].has_plane;
            let members = process.group.replica.membership();
            let have_planes = members.voters().all(|voter| has_plane(voter.id));
            let leads_fast = process.group.leads_fast_term();
            if !have_planes {
                return;
            }
            match before {
                Some(before) if self.applied_first > before => {
                    return self.must_stay_fast(leader);
                }
                None if leads_fast => {
                    before = Some(self.applied_first);
                    self.flood(leader, 1);
                }
                Some(_) | None => {}
            }
            let late = self.now - begun > patience;
            self.checks.require(!late, || {
                format!(
                    "I14: no fast term has committed within {} s of peace",
                    patience / SECOND
                )
            });
            self.run_until(self.now + 20 * MILLISECOND);
        }
    }

    /// I14: nothing ends a fast term in peace.
    fn must_stay_fast(&mut self, leader: usize) {
        let fast_term = |world: &Self| {
            let replica = world.machines[leader].process.as_ref();
            replica.and_then(|process| process.group.replica.fast_term())
        };
        let before = fast_term(self).map(|fast| fast.term);
        self.run_until(self.now + self.plan.settings.election_timeout * STAYS_FAST);
        let after = fast_term(self).map(|fast| fast.term);
        self.checks
            .require(before.is_some() && before == after, || {
                format!("I14: a fast term ends in peace: {before:?}, and then {after:?}")
            });
        self.counts.see("fast term in peace");
    }

    /// What is not well yet: a member that has not applied what the leader has, or is no voter yet.
    fn difference(&self) -> Option<String> {
        let Some(leader) = self.leader() else {
            return Some("nobody leads".to_owned());
        };
        let process = self.machines[leader].process.as_ref()?;
        let replica = &process.group.replica;
        if process.group.applied < replica.last_index() {
            return Some(format!("{leader} has not applied {}", replica.last_index()));
        }
        if let Some(different) = self.values_difference() {
            return Some(different);
        }
        let is_full = replica.membership().voters().count() >= VOTERS_MAX;
        for member in &replica.membership().members {
            let machine = &self.machines[usize::from(member.id.0)];
            let Some(other) = &machine.process else {
                return Some(format!("{:?} does not run", machine.peer));
            };
            if machine.peer.incarnation != member.incarnation
                || (member.role == MemberRole::Joining && !is_full)
                || other.group.applied != process.group.applied
            {
                return Some(format!(
                    "{member:?} of {:?} has applied {}, leader {leader} {}",
                    machine.peer, other.group.applied, process.group.applied
                ));
            }
            if let Some(different) = self.served_difference(usize::from(member.id.0)) {
                return Some(different);
            }
            if machine.peer.id != self.machines[leader].peer.id
                && other.group.replica.role() == Role::Leader
            {
                return Some(format!("{:?} believes to lead, too", machine.peer));
            }
        }
        None
    }

    /// I9: equal indexes, equal states.
    fn compare_states(&mut self) {
        let mut states: Vec<(Index, u64)> = Vec::new();
        for machine in &self.machines {
            if let Some(process) = &machine.process {
                let found = (process.group.applied, digest(&process.group.store));
                let differs = states.iter().any(|s| s.0 == found.0 && s.1 != found.1);
                self.checks.require(!differs, || {
                    format!("I9: {:?} has another state at {}", machine.peer, found.0)
                });
                states.push(found);
            }
        }
    }

    /// I6 (and with it I5, I7 and I8 as clients see them).
    fn must_be_linearizable(&mut self) {
        if self.checks.violation.is_some() {
            return;
        }
        let reads_judged = self.checks.reads_judged;
        let calls: Vec<Call> = self
            .asked
            .iter()
            .filter(|asked| !asked.withdrawn)
            // Of these only the order is judged: nobody reads their keys.
            .filter(|asked| asked.client != MANY)
            .filter(|asked| reads_judged || asked.operation != Operation::Get)
            .map(|asked| Call {
                client: u32::from(asked.client),
                key: asked.key,
                operation: asked.operation,
                invoked_ns: asked.invoked,
                outcome: asked.outcome,
            })
            .collect();
        match check(&calls) {
            Ok(checked) => {
                self.counts.see("history linearizable");
                if checked.calls == 0 {
                    self.counts.see("history empty");
                }
            }
            Err(Failure::StatesExhausted { .. }) => self.counts.see(UNDECIDED),
            Err(failure @ Failure::NotLinearizable(_)) => {
                self.checks.require(false, || format!("I6: {failure}"));
            }
        }
    }
}

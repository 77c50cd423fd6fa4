//! Deployments of the Paxos roles, driven through faults by a seed: the real boxes in memory (`fastpath`) and
//! the real software beside them (`paxos`), over a simulated network and simulated disks.
mod checks;
mod nodes;
pub mod plan;
mod report;
mod world;

pub use report::{OUTCOMES, Report};

use crate::queue::{MILLISECOND, Nanos, SECOND};
use crate::run::panic_text;
use plan::Plan;
use quorumwire_paxos_hosts::AcceptorHost;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use world::World;

/// All is well again so long after peace, at the latest.
const WELL_WITHIN: Nanos = 60 * SECOND;
/// And after so many writes of a disk one behind the other: a small window has to be filled often.
const WRITES_MORE: u64 = 1000;

/// What came of a run.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// Its seed.
    pub seed: u64,
    /// What was found wrong.
    pub violation: Option<String>,
    /// What it has reached, and how often.
    pub seen: BTreeMap<&'static str, u64>,
    /// Equal for equal runs.
    pub hash: u64,
    /// Simulated time.
    pub simulated: Nanos,
    /// What happened, if asked for.
    pub trace: Vec<String>,
}

/// Runs a plan to its end.
#[must_use]
pub fn run(plan: Plan, loud: bool) -> Verdict {
    let seed = plan.settings.seed;
    let mut world = World::new(plan, loud);
    let lived = catch_unwind(AssertUnwindSafe(|| world.live()));
    let panicked = lived.err().map(|_| panic_text());
    let at = world.now / MILLISECOND;
    let found = world.checks.violation.take().or(panicked);
    Verdict {
        seed,
        violation: found.map(|found| format!("{found} (at {at} ms)")),
        seen: world.seen,
        hash: world.hash,
        simulated: world.now,
        trace: world.trace,
    }
}

impl World {
    fn live(&mut self) {
        self.run_until(self.plan.trouble);
        if self.checks.violation.is_some() {
            return;
        }
        self.say(|| "all is healed".to_owned());
        self.make_peace();
        if self.members(None) < self.acceptors().len() / 2 + 1 {
            // Nothing is decided any more, and nothing else than before.
            self.see("too many have forgotten");
            self.run_until(self.now + SECOND);
            return;
        }
        self.run_until_well("P10", Self::not_let_in);
        self.keep_again();
        self.run_until_well("P7", Self::missing);
        if self.checks.violation.is_some() {
            return;
        }
        let unknown = self.unknown;
        self.checks.all_delivered(unknown);
        self.see("all is well at the end");
    }

    /// Lives until nothing is missing any more, which must not take long.
    fn run_until_well(&mut self, rule: &str, missing: impl Fn(&Self) -> Option<String>) {
        let begun = self.now;
        while let Some(missing) = missing(self).filter(|_| self.checks.violation.is_none()) {
            let well_within = WELL_WITHIN + WRITES_MORE * self.plan.settings.write;
            let is_late = self.now - begun > well_within;
            self.checks.require(!is_late, || {
                format!(
                    "{rule}: not well {} s after peace: {missing}",
                    well_within / SECOND
                )
            });
            self.run_until(self.now + 20 * MILLISECOND);
        }
    }

    /// Which acceptor does not count yet, for some instance that nobody forgets.
    fn not_let_in(&self) -> Option<String> {
        let numbered = (0..).zip(self.acceptors());
        let mut hosts = numbered.filter_map(|(me, place)| Some((me, place.host.as_ref()?)));
        let lacks = |host: &AcceptorHost| {
            let registers = host.engine().registers();
            let mut open = registers.trimmed + 1..=registers.bound;
            open.find(|instance| !host.engine().is_member_for(*instance))
        };
        hosts.find_map(|(me, host): (u8, _)| {
            if host.software().is_newcomer() {
                return Some(format!("acceptor {me} is not let in"));
            }
            let instance = lacks(host)?;
            Some(format!("acceptor {me} does not count for {instance}"))
        })
    }

    /// What is not well yet.
    fn missing(&self) -> Option<String> {
        let coordinating = self
            .coordinators
            .iter()
            .filter_map(|place| place.host.as_ref());
        let coordinating = coordinating
            .filter(|host| host.software().coordinates())
            .count();
        if coordinating != 1 {
            return Some(format!("{coordinating} coordinate"));
        }
        if let Some(missing) = self.not_let_in() {
            return Some(missing);
        }
        if !self.all_submitted() {
            return Some("not all is submitted".to_owned());
        }
        let learners = || self.learners.iter().filter_map(|place| place.host.as_ref());
        let outstanding: usize = learners().map(|it| it.host.proposer().outstanding()).sum();
        if outstanding > 0 {
            return Some(format!("{outstanding} values are outstanding"));
        }
        let mut next: Vec<u64> = learners().map(|it| it.host.learner().next()).collect();
        next.dedup();
        if next.len() > 1 {
            return Some(format!("learners are at {next:?}"));
        }
        let last = next.first().map_or(0, |next| next - 1);
        let is_trimmed = |trimmed: u64| trimmed == last;
        let mut acceptors = self
            .acceptors()
            .iter()
            .filter_map(|place| place.host.as_ref());
        let lags = acceptors.find(|host| !is_trimmed(host.engine().registers().trimmed));
        lags.map(|host| {
            format!(
                "an acceptor has forgotten up to {} of {last}",
                host.engine().registers().trimmed
            )
        })
    }
}

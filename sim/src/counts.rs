//! What a run has reached: faults by class, operations, and whatever else must not be zero.
use crate::fault::{ByClass, Class};
use std::collections::{BTreeMap, BTreeSet};

/// Planes must be left after each number of entries below this.
const LEFT_AFTER: u64 = 64;

/// What is seen where the checker gave up on a history: nothing is known of it then.
pub const UNDECIDED: &str = "history not decided";

/// Counted over one run, or added up over many.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    faults: ByClass,
    /// After which numbers of entries a plane was left.
    left_after: BTreeSet<u64>,
    /// Outcomes by name.
    pub seen: BTreeMap<&'static str, u64>,
    /// Messages sent between replicas.
    pub messages: u64,
    /// Messages lost because too many were under way.
    pub messages_dropped: u64,
    /// Datagrams sent between planes.
    pub datagrams: u64,
    /// Of these, acknowledgements.
    pub plane_acknowledgements: u64,
    /// Events of all kinds.
    pub events: u64,
    /// Operations begun by clients.
    pub operations: u64,
    /// Operations answered: done.
    pub answered: u64,
    /// Entries committed.
    pub committed: u64,
    /// Items of the plan that were carried out.
    pub planned: u64,
    /// Steps of replicas.
    pub steps: u64,
}

impl Counts {
    /// A fault of this class has met something.
    pub const fn hit(&mut self, class: Class) {
        self.faults.0[class as usize] += 1;
    }

    /// How often a class was hit.
    #[must_use]
    pub const fn hits(&self, class: Class) -> u64 {
        self.faults.0[class as usize]
    }

    /// A plane was left that had moved so many entries.
    pub fn left_after(&mut self, entries: u64) {
        if entries < LEFT_AFTER {
            self.left_after.insert(entries);
        }
    }

    /// After which numbers of entries no plane was ever left.
    #[must_use]
    pub fn never_left_after(&self) -> Vec<u64> {
        let all = 0..LEFT_AFTER;
        all.filter(|entries| !self.left_after.contains(entries))
            .collect()
    }

    /// All faults.
    #[must_use]
    pub fn faults(&self) -> u64 {
        self.faults.0.iter().sum()
    }

    /// Something was reached.
    pub fn see(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    /// Something was reached so many times.
    pub fn see_many(&mut self, what: &'static str, times: u64) {
        if times > 0 {
            *self.seen.entry(what).or_default() += times;
        }
    }

    /// Adds another run's.
    pub fn add(&mut self, other: &Self) {
        for (mine, others) in self.faults.0.iter_mut().zip(other.faults.0) {
            *mine += others;
        }
        self.left_after.extend(&other.left_after);
        for (name, count) in &other.seen {
            *self.seen.entry(name).or_default() += count;
        }
        self.messages += other.messages;
        self.messages_dropped += other.messages_dropped;
        self.datagrams += other.datagrams;
        self.plane_acknowledgements += other.plane_acknowledgements;
        self.events += other.events;
        self.operations += other.operations;
        self.answered += other.answered;
        self.committed += other.committed;
        self.planned += other.planned;
        self.steps += other.steps;
    }
}

//! What a run has reached: faults by class, operations, and whatever else must not be zero.
use crate::fault::{CLASSES, Class};
use std::collections::BTreeMap;

/// Planes must be left after each number of entries below this.
const LEFT_AFTER: usize = 64;

/// Counted over one run, or added up over many.
#[derive(Clone, Debug)]
pub struct Counts {
    faults: [u64; CLASSES.len()],
    /// How often a plane was left that had moved so many entries.
    left_after: [u64; LEFT_AFTER],
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

impl Default for Counts {
    fn default() -> Self {
        Self {
            faults: [0; CLASSES.len()],
            left_after: [0; LEFT_AFTER],
            seen: BTreeMap::new(),
            messages: 0,
            messages_dropped: 0,
            datagrams: 0,
            plane_acknowledgements: 0,
            events: 0,
            operations: 0,
            answered: 0,
            committed: 0,
            planned: 0,
            steps: 0,
        }
    }
}

impl Counts {
    /// A fault of this class has met something.
    pub const fn hit(&mut self, class: Class) {
        self.faults[class as usize] += 1;
    }

    /// How often a class was hit.
    #[must_use]
    pub const fn hits(&self, class: Class) -> u64 {
        self.faults[class as usize]
    }

    /// A plane was left that had moved so many entries.
    pub fn left_after(&mut self, entries: u64) {
        let place = usize::try_from(entries).unwrap_or(LEFT_AFTER);
        if let Some(times) = self.left_after.get_mut(place) {
            *times += 1;
        }
    }

    /// After which numbers of entries no plane was ever left.
    #[must_use]
    pub fn never_left_after(&self) -> Vec<usize> {
        let places = 0..LEFT_AFTER;
        places.filter(|at| self.left_after[*at] == 0).collect()
    }

    /// All faults.
    #[must_use]
    pub fn faults(&self) -> u64 {
        self.faults.iter().sum()
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
        for (mine, others) in self.faults.iter_mut().zip(other.faults) {
            *mine += others;
        }
        for (mine, others) in self.left_after.iter_mut().zip(other.left_after) {
            *mine += others;
        }
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

//! When to look at which item because its time may have passed. Holds no items.
use std::collections::BTreeMap;

use super::item::{Item, NEVER};

/// Names one look at one item. An item has at most one alarm, at its end or earlier: giving an item a
/// later end, which is what most writes do, leaves its alarm alone.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Alarm {
    /// Log time of the look.
    at_ms: u64,
    /// Tells alarms of the same time apart.
    ticket: u64,
}

/// The alarm of an item without one.
pub(super) const NONE: Alarm = Alarm {
    at_ms: NEVER,
    ticket: 0,
};

/// All alarms, with the hash that leads to the item of each.
#[derive(Debug, Default)]
pub(super) struct Alarms {
    hashes: BTreeMap<Alarm, u64>,
    tickets: u64,
    /// How many were set since somebody asked: each is a look at an item, sooner or later.
    set: usize,
}

impl Alarms {
    /// Sees to it that `item`, which stands under `hash`, has an alarm not later than its end.
    pub(super) fn cover(&mut self, item: &mut Item, hash: u64) {
        if item.alarm.at_ms <= item.deadline_ms {
            return;
        }
        self.cancel(item.alarm);
        self.tickets += 1;
        item.alarm = Alarm {
            at_ms: item.deadline_ms,
            ticket: self.tickets,
        };
        self.hashes.insert(item.alarm, hash);
        self.set += 1;
    }

    /// How many were set since the last time.
    pub(super) fn take_set(&mut self) -> usize {
        std::mem::take(&mut self.set)
    }

    /// Takes back an alarm whose item is gone.
    pub(super) fn cancel(&mut self, alarm: Alarm) {
        if alarm != NONE {
            self.hashes.remove(&alarm);
        }
    }

    /// Takes out the first alarm at or before `now_ms`, with the hash of its item.
    pub(super) fn pop_due(&mut self, now_ms: u64) -> Option<(Alarm, u64)> {
        let first = self.hashes.first_entry()?;
        (first.key().at_ms <= now_ms).then(|| first.remove_entry())
    }

    /// The alarms up to this log time, in order.
    pub(super) fn until(&self, ms: u64) -> impl Iterator<Item = (Alarm, u64)> {
        let all = self.hashes.iter().map(|(alarm, hash)| (*alarm, *hash));
        all.take_while(move |(alarm, _)| alarm.at_ms <= ms)
    }

    /// Log time of the first alarm, or [`NEVER`].
    pub(super) fn next_ms(&self) -> u64 {
        self.hashes
            .first_key_value()
            .map_or(NEVER, |(alarm, _)| alarm.at_ms)
    }

    pub(super) fn are_none(&self) -> bool {
        self.hashes.is_empty()
    }

    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        self.hashes.len() as u64
    }
}

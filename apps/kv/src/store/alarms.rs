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

/// How many alarms that were thrown away are freed per command.
const DISCARDED_PER_COMMAND_MAX: usize = 256;

/// All alarms, with the hash that leads to the item of each.
#[derive(Debug, Default)]
pub(super) struct Alarms {
    hashes: BTreeMap<Alarm, u64>,
    tickets: u64,
    /// Alarms thrown away whole, which are freed a few at a time.
    discarded: Vec<BTreeMap<Alarm, u64>>,
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

    /// Takes back all alarms at once; the memory is freed by [`drop_discarded`](Self::drop_discarded).
    pub(super) fn discard_all(&mut self) {
        let hashes = std::mem::take(&mut self.hashes);
        if !hashes.is_empty() {
            self.discarded.push(hashes);
        }
    }

    /// Frees some of the alarms that were thrown away.
    pub(super) fn drop_discarded(&mut self) {
        let Some(hashes) = self.discarded.last_mut() else {
            return;
        };
        for _ in 0..DISCARDED_PER_COMMAND_MAX {
            if hashes.pop_first().is_none() {
                self.discarded.pop();
                return;
            }
        }
    }

    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        self.hashes.len() as u64
    }

    /// How many trees of alarms wait to be freed.
    #[cfg(test)]
    pub(super) fn discarded_count(&self) -> usize {
        self.discarded.len()
    }
}

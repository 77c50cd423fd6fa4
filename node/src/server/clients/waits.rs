//! For how long a connection has waited for the same thing. Writes have a limit of their own; reads and
//! requests that can go nowhere have this one, because a leader that leads and cannot commit may stay so for
//! good.
use super::{Clients, Connection, ConnectionId, SlotKind};
use quorumwire_control::Now;
use std::time::Duration;

/// How often connections are looked at.
const LOOKED_AT: Duration = Duration::from_secs(1);

/// What a connection waits for: its first request, and how much of it is answered. If there is none,
/// it is the next one, which cannot be taken on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct First {
    slot: u64,
    keys_done: u32,
}

/// Since when.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    first: First,
    since: Now,
}

impl Connection {
    /// None: nothing, or its client, which does not take what is there.
    fn first(&self) -> Option<First> {
        let is_nothing = self.slots.is_empty() && !self.stalled;
        if is_nothing || self.cut {
            return None;
        }
        let keys_done = match self.slots.first().map(|slot| slot.kind) {
            Some(SlotKind::Read { keys_done, .. }) => keys_done,
            Some(
                SlotKind::Write
                | SlotKind::Question
                | SlotKind::Text(_)
                | SlotKind::Stats(_)
                | SlotKind::Quit,
            )
            | None => 0,
        };
        let slot = self.slots.first_number();
        Some(First { slot, keys_done })
    }

    /// Since when it has waited for what it waits for, as far as it was looked at.
    fn waits_since(&mut self, now: Now) -> Option<Now> {
        let first = self.first();
        let known = self.wait.filter(|known| Some(known.first) == first);
        self.wait = known.or_else(|| first.map(|first| Wait { first, since: now }));
        self.must_refuse &= self.stalled;
        self.wait.map(|wait| wait.since)
    }
}

impl Clients {
    /// Time in which this process did not run is nobody's wait.
    pub fn forgive(&mut self, pause: Duration) {
        let waits = self.connections.iter_mut().flatten();
        for wait in waits.filter_map(|it| it.wait.as_mut()) {
            wait.since.0 += pause;
        }
    }

    /// Those that have waited for the same thing for longer than this, and those that are to be closed.
    pub fn take_late(&mut self, now: Now, limit: Duration) -> Vec<ConnectionId> {
        if now.0.saturating_sub(self.waits_looked_at.0) < LOOKED_AT {
            return Vec::new();
        }
        self.waits_looked_at = now;
        let mut late = Vec::new();
        for connection in self.connections.iter_mut().flatten() {
            let since = connection.waits_since(now);
            let is_late = since.is_some_and(|since| now.0.saturating_sub(since.0) > limit);
            if is_late || connection.has_lingered(now) {
                late.push(connection.id);
            }
        }
        late
    }
}

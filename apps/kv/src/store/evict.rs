//! What is done at the memory limit: what is refused, and what goes. The same on every replica, at the same
//! entry of the log.
use super::memory::{Footprint, MemoryLimit, MemoryPolicy, Rank, Sorted, rank};
use super::shards::Position;
use super::work_done::PER_ITEM_RANKED;
use super::{At, Store};
use crate::memcached::{MetaKind, reply};
use crate::redis::{OUT_OF_MEMORY, Script, TRANSACTION_OUT_OF_MEMORY, find};
use crate::{
    Command, EVICTED_BYTES_PER_COMMAND_MAX, EVICTED_PER_COMMAND_MAX, Key, MemoryChange,
    SORTED_PER_COMMAND,
};

impl Store {
    /// How much memory the items may take.
    #[must_use]
    pub const fn memory_limit(&self) -> MemoryLimit {
        self.memory.limit
    }

    /// What a command is told that needs memory, while the items take more than the limit. Those that only
    /// need some if there is no item, or if a number grows, look at that themselves.
    pub(super) fn refusal(command: &Command<'_>) -> Option<&'static [u8]> {
        match command {
            Command::Set(_)
            | Command::Add(_)
            | Command::Replace(_)
            | Command::Cas { .. }
            | Command::Append { .. }
            | Command::Prepend { .. } => Some(reply::OUT_OF_MEMORY),
            Command::Meta { meta, .. } => {
                (meta.kind() == MetaKind::Set).then_some(reply::OUT_OF_MEMORY)
            }
            Command::Redis(script) => refusal_of_script(script),
            Command::Increment { .. }
            | Command::Decrement { .. }
            | Command::Touch { .. }
            | Command::Delete { .. }
            | Command::GetAndTouch { .. }
            | Command::FlushAll { .. }
            | Command::Memory(_) => None,
        }
    }

    /// Not in a session, in which clients of data planes speak, too: what a plane had answered meanwhile
    /// could be refused afterwards.
    pub(super) fn change_memory(&mut self, change: &MemoryChange, at: At) -> &'static [u8] {
        if at.awaits_time {
            return reply::NOT_BY_THE_PLANE;
        }
        let limit = &mut self.memory.limit;
        if !(change.if_never_set && limit.is_set) {
            let evicted = limit.evicts();
            limit.is_set = true;
            limit.bytes = change.limit_bytes.unwrap_or(limit.bytes);
            limit.policy = change.policy.unwrap_or(limit.policy);
            match (evicted, limit.evicts()) {
                (false, true) => {
                    let first = Sorted::Before(Position::of(0));
                    self.memory.order.set_sorted(first);
                }
                (true, false) => self.memory.order.set_sorted(Sorted::None),
                (true, true) | (false, false) => {}
            }
            self.make_room();
            self.discard_ranks();
        }
        if change.for_redis {
            crate::redis::OK
        } else {
            reply::OK
        }
    }

    /// Has what is to be evicted go, as much of it as one command may.
    pub(super) fn make_room(&mut self) {
        if !self.memory.limit.evicts() {
            return;
        }
        if let Sorted::Before(end) = self.memory.order.sorted() {
            self.sort_some(end);
        }
        if !self.memory.order.is_complete() {
            return; // who was written longest ago is not known yet
        }
        let bytes_least = self
            .memory
            .used_bytes()
            .saturating_sub(EVICTED_BYTES_PER_COMMAND_MAX);
        for _ in 0..EVICTED_PER_COMMAND_MAX {
            if !self.memory.is_over_limit() || self.memory.used_bytes() <= bytes_least {
                return;
            }
            let Some(first) = self.memory.order.first_live(self.log_time_ms) else {
                return;
            };
            self.evict(first);
        }
    }

    fn sort_some(&mut self, from: Position) {
        let mut found = self.items_from(from, SORTED_PER_COMMAND);
        self.work_done.add(found.len() * PER_ITEM_RANKED);
        let end = match super::redis::take_page(&mut found, SORTED_PER_COMMAND) {
            Some(next) => Sorted::Before(next),
            None => Sorted::All,
        };
        let ranks = found.iter().filter_map(|(_, item)| {
            let key = Key::binary(item.key())?;
            Some(rank(self.items.hash(key), Footprint::of(item)))
        });
        let ranks: Vec<Rank> = ranks.collect();
        self.memory.order.sort_in(ranks, end);
    }

    /// Removes the items of this rank.
    fn evict(&mut self, rank: Rank) {
        let is_it = |item: &super::Item| {
            (item.recency(), item.deadline_ms) == (rank.recency, rank.deadline_ms)
        };
        while let Some(item) = self.items.remove_where(rank.hash, is_it) {
            self.work_done.add(PER_ITEM_RANKED);
            self.memory.removed(rank.hash, Footprint::of(&item));
            self.alarms.cancel(item.alarm);
            self.counts.memory.evicted += 1;
            if let Some(key) = Key::binary(item.key()) {
                self.changes.note(key);
            }
        }
        // Gone with its last item. If it ever were not, it must not be the first again and again.
        let is_left = self.memory.order.forget(rank);
        debug_assert!(!is_left, "{rank:?} has no item");
    }
}

/// A transaction is refused as a whole, as by Redis.
fn refusal_of_script(script: &Script<'_>) -> Option<&'static [u8]> {
    let needs_memory = script.each_command().any(|words| {
        find(&words).is_ok_and(|spec| spec.flags.split(' ').any(|flag| flag == "denyoom"))
    });
    if !needs_memory {
        None
    } else if script.is_transaction {
        Some(TRANSACTION_OUT_OF_MEMORY)
    } else {
        Some(OUT_OF_MEMORY)
    }
}

impl MemoryPolicy {
    /// Its name, as an option has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::Evict => "evict",
        }
    }

    /// The one that an option calls so.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Self::Refuse, Self::Evict]
            .into_iter()
            .find(|policy| policy.name() == name)
    }

    /// The name that Redis has for it.
    #[must_use]
    pub const fn redis_name(self) -> &'static str {
        match self {
            Self::Refuse => "noeviction",
            Self::Evict => "allkeys-lru",
        }
    }
}

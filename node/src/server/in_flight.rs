//! What the writes are likely to cost together that clients of this replica have on their way through the
//! log. It is bounded: who sends the next expensive one waits, so that cheap ones of others have little
//! before them in the log. All replicas do so for their own clients.
use super::connection_id::ConnectionId;
use quorumwire_interfaces::counters;
use std::collections::BTreeMap;

/// At most, unless there is but one; in bytes that are looked at or moved: some 17 ms for each replica.
const WORK_IN_FLIGHT_MAX: usize = 64 << 20;
/// What costs less is not counted: to take it on costs as much.
const LITTLE_WORK: usize = 4 << 10;

counters! {
    /// Counted since the start.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct WorkCounters {
        /// Expensive writes that waited because those of clients here on their way were as much work as
        /// they may be
        pub waits: "client_writes_waited_for_work",
    }
}

/// The writes that count, and who waits.
#[derive(Default)]
pub struct InFlight {
    work: usize,
    /// By connection and slot. An answer comes for each, also if its connection has gone.
    writes: BTreeMap<(ConnectionId, u64), usize>,
    /// Connections whose next write is expensive, by when they came.
    waiting: BTreeMap<u64, (ConnectionId, usize)>,
    tickets: BTreeMap<ConnectionId, u64>,
    last_ticket: u64,
    pub counters: WorkCounters,
}

impl InFlight {
    /// Whether a write that is likely to cost so much may go now. If not, it is offered again later, and is
    /// the next behind those that wait already.
    pub fn admits(&mut self, connection: ConnectionId, work: usize) -> bool {
        if work < LITTLE_WORK {
            self.leave(connection); // it may have become cheap while it waited
            return true;
        }
        let own = self.tickets.get(&connection).copied();
        let first = self.waiting.first_key_value();
        let is_next = first.is_none_or(|(ticket, _)| Some(*ticket) == own);
        if is_next && self.has_room(work) {
            self.leave(connection);
            return true;
        }
        if own.is_none() {
            self.last_ticket += 1;
            self.tickets.insert(connection, self.last_ticket);
            self.waiting.insert(self.last_ticket, (connection, work));
            self.counters.waits += 1;
        }
        false
    }

    fn has_room(&self, work: usize) -> bool {
        self.work == 0 || self.work + work <= WORK_IN_FLIGHT_MAX
    }

    /// A write is on its way.
    pub fn begin(&mut self, connection: ConnectionId, slot: u64, work: usize) {
        if work >= LITTLE_WORK {
            self.work += work;
            self.writes.insert((connection, slot), work);
        }
    }

    /// It is answered: who is to be looked at for that.
    pub fn end(&mut self, connection: ConnectionId, slot: u64) -> Option<ConnectionId> {
        self.work -= self.writes.remove(&(connection, slot))?;
        self.next()
    }

    /// Who waits and may go now.
    pub fn next(&self) -> Option<ConnectionId> {
        let (_, (next, work)) = self.waiting.first_key_value()?;
        self.has_room(*work).then_some(*next)
    }

    /// This connection does not wait here any more.
    pub fn leave(&mut self, connection: ConnectionId) {
        if let Some(ticket) = self.tickets.remove(&connection) {
            self.waiting.remove(&ticket);
        }
    }

    /// Those that do not wait any more, such as because they have gone, hold up nobody.
    pub fn keep(&mut self, mut waits: impl FnMut(ConnectionId) -> bool) {
        let gone: Vec<ConnectionId> = self
            .tickets
            .keys()
            .copied()
            .filter(|id| !waits(*id))
            .collect();
        for id in gone {
            self.leave(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: usize = WORK_IN_FLIGHT_MAX / 2;

    fn client(number: u32) -> ConnectionId {
        ConnectionId::new(number, number)
    }

    #[test]
    fn expensive_writes_wait_in_their_order_and_cheap_ones_never() {
        let mut it = InFlight::default();
        for number in 0..2 {
            assert!(it.admits(client(number), LARGE));
            it.begin(client(number), 7, LARGE);
        }
        for number in 2..5 {
            assert!(!it.admits(client(number), LARGE));
            assert!(it.admits(client(number + 10), LITTLE_WORK - 1));
        }
        assert!(
            !it.admits(client(9), LITTLE_WORK),
            "it would be before others"
        );
        it.leave(client(9));
        assert_eq!(it.end(client(5), 7), None, "none of those that count");
        assert_eq!(it.end(client(0), 7), Some(client(2)));
        assert!(!it.admits(client(4), LARGE), "it is not its turn");
        assert!(it.admits(client(2), LARGE));
        it.begin(client(2), 7, LARGE);
        assert!(!it.admits(client(3), LARGE), "there is no room");
        // One that has gone holds up nobody.
        it.keep(|id| id != client(3));
        assert_eq!(it.end(client(1), 7), Some(client(4)));
        assert!(it.admits(client(4), LARGE));
        it.begin(client(4), 7, LARGE);
        assert_eq!(it.end(client(4), 7), None);
        assert_eq!(it.end(client(2), 7), None);
        assert_eq!((it.work, it.counters.waits), (0, 4));
        assert!(it.tickets.is_empty() && it.waiting.is_empty());
    }

    #[test]
    fn what_became_cheap_while_it_waited_holds_up_nobody() {
        let mut it = InFlight::default();
        assert!(it.admits(client(1), LARGE * 2));
        it.begin(client(1), 1, LARGE * 2);
        assert!(!it.admits(client(2), LARGE));
        assert!(!it.admits(client(3), LARGE));
        assert!(it.admits(client(2), LITTLE_WORK - 1));
        assert_eq!(it.end(client(1), 1), Some(client(3)));
    }

    #[test]
    fn one_may_go_whatever_it_costs() {
        let mut it = InFlight::default();
        assert!(it.admits(client(1), usize::MAX / 2));
        it.begin(client(1), 1, usize::MAX / 2);
        assert!(!it.admits(client(2), LITTLE_WORK));
        assert_eq!(it.end(client(1), 1), Some(client(2)));
    }
}

//! What is replicated: the product's key-value store, which may be run by code that knows nothing of the time
//! of day.
use quorumwire_interfaces::{Application, Applied, Frozen, LogTime};
use quorumwire_kv::Store;
use std::io;

/// The store of one process.
#[derive(Default)]
pub struct State {
    /// The product's.
    pub store: Store,
    /// Its code reads, and tells, only the log's time in a tick.
    pub is_older: bool,
    /// What carries commands out is busy, as another program may be: it takes no more, and gives no snapshot.
    /// No part of the state.
    pub is_occupied: bool,
}

impl Application for State {
    fn apply(&mut self, entry: &Applied<'_>, reply: &mut Vec<u8>) {
        assert!(!self.is_occupied, "it takes no commands");
        self.store.apply(entry, reply);
    }

    fn advance(&mut self, log_time: LogTime) {
        self.store.advance(log_time);
    }

    fn set_ahead(&mut self, ahead_ms: Option<i64>) {
        if !self.is_older {
            self.store.set_ahead(ahead_ms);
        }
    }

    fn log_time(&self) -> LogTime {
        self.store.log_time()
    }

    fn ahead_ms(&self) -> Option<i64> {
        self.store.ahead_ms()
    }

    fn reads_time_of_day(&self) -> bool {
        !self.is_older
    }

    fn set_clock(&mut self, time: LogTime) {
        self.store.set_clock(time);
    }

    fn is_overdue(&self, request: &[u8]) -> bool {
        self.store.is_overdue(request)
    }

    fn awaits_time(&self) -> bool {
        self.store.awaits_time()
    }

    fn next_deadline(&self) -> Option<LogTime> {
        self.store.next_deadline()
    }

    fn query(&self, request: &[u8], reply: &mut Vec<u8>) {
        self.store.query(request, reply);
    }

    fn takes_commands(&self) -> bool {
        !self.is_occupied
    }

    fn may_freeze(&self) -> bool {
        !self.is_occupied
    }

    fn freeze(&self) -> Box<dyn Frozen> {
        assert!(!self.is_occupied, "it gives no snapshot");
        self.store.freeze()
    }

    fn restore(&mut self, reader: &mut dyn io::Read) -> io::Result<()> {
        self.store.restore(reader)
    }
}

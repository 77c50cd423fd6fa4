//! What the HTTP port counts. Reports of the event loop get it on their way out.
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts since the server started.
#[derive(Debug, Default)]
pub struct HttpCounters {
    accepted: AtomicU64,
    requests: AtomicU64,
    gave_way: AtomicU64,
    refused_by_tls: AtomicU64,
    timed_out: AtomicU64,
    broken: AtomicU64,
    starved: AtomicU64,
}

impl HttpCounters {
    pub fn count_accepted(&self) {
        count(&self.accepted);
    }

    pub fn count_request(&self) {
        count(&self.requests);
    }

    pub fn count_gave_way(&self) {
        count(&self.gave_way);
    }

    pub fn count_refused_by_tls(&self) {
        count(&self.refused_by_tls);
    }

    /// Closed for what took too long: a handshake, a head, or all of it.
    pub fn count_timed_out(&self) {
        count(&self.timed_out);
    }

    /// Closed for what came or for what became of it, no HTTP included.
    pub fn count_broken(&self) {
        count(&self.broken);
    }

    /// Times that there was no descriptor to accept somebody with.
    pub fn set_starved(&self, times: u64) {
        self.starved.store(times, Ordering::Relaxed);
    }

    /// Named for a report.
    pub fn report(&self, into: &mut BTreeMap<String, u64>) {
        let named = [
            ("http_connections_accepted", &self.accepted),
            ("http_requests", &self.requests),
            ("http_connections_gave_way", &self.gave_way),
            ("http_connections_refused_by_tls", &self.refused_by_tls),
            ("http_connections_timed_out", &self.timed_out),
            ("http_connections_broken", &self.broken),
            ("http_accepts_without_descriptor", &self.starved),
        ];
        into.extend(named.map(|(name, count)| (name.to_owned(), count.load(Ordering::Relaxed))));
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

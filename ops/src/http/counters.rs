//! What the HTTP port counts. Reports of the event loop get it on their way out.
use quorumwire_interfaces::counters;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

counters! {
    /// Counts since the server started.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct HttpCounts {
        /// HTTP connections accepted
        pub accepted: "http_connections_accepted",
        /// HTTP requests
        pub requests: "http_requests",
        /// HTTP connections closed before their request because they were slow and others waited
        pub gave_way: "http_connections_gave_way",
        /// HTTP connections closed because they did not speak TLS 1.3, or broke it
        pub refused_by_tls: "http_connections_refused_by_tls",
        /// HTTP connections closed because a handshake, a request or its answer took too long
        pub timed_out: "http_connections_timed_out",
        /// HTTP connections that broke, or on which no HTTP came
        pub broken: "http_connections_broken",
        /// Times somebody waited at listen-http and no file descriptor was left
        pub starved: "http_accepts_without_descriptor",
    }
}

/// These, as tasks share them.
#[derive(Debug, Default)]
pub struct HttpCounters(Mutex<HttpCounts>);

impl HttpCounters {
    /// Counts something.
    pub fn note(&self, counts: impl FnOnce(&mut HttpCounts)) {
        counts(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Named for a report.
    pub fn report(&self, into: &mut BTreeMap<String, u64>) {
        let counts = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.each(&mut |counter, count| {
            into.insert(counter.name.to_owned(), count);
        });
    }
}

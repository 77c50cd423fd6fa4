//! How many requests of memcached and Redis clients were refused, by reason; the native port counts its own.
use crate::server::unexpected_tls::say_tls;
use quorumwire_interfaces::{Counter, CounterSink};
use quorumwire_kv::{RefusalCounters, WhyRefused};

/// All together, whatever the reason.
const ALL: Counter = Counter {
    name: "client_requests_refused",
    help: "Requests of memcached and Redis clients refused because they are malformed, or because the client is not authenticated",
};

/// Counted since the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Refusals(RefusalCounters);

impl Refusals {
    pub fn count(&mut self, why: WhyRefused) {
        self.0.count(why);
        if why == WhyRefused::Tls {
            say_tls();
        }
    }

    /// Whatever the reason.
    pub fn sum(&self) -> u64 {
        self.0.sum()
    }

    /// All, and each reason.
    pub fn each(&self, sink: CounterSink<'_>) {
        sink(&ALL, self.sum());
        self.0.each(sink);
    }
}

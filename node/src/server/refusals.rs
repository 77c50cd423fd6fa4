//! How many requests of memcached and Redis clients were refused, by reason; the own port counts its own.
use crate::sparing::Sparing;
use quorumwire_kv::WhyRefused;
use std::collections::BTreeMap;

/// How an answer to a Redis client ends that says so.
const NOT_SERVED: &[u8] = b"is not served: see `quorumwire status` and the metrics\r\n";

static TLS_CAME: Sparing = Sparing::new();

/// Counted since the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Refusals([u64; WhyRefused::ALL.len()]);

impl Refusals {
    pub fn count(&mut self, why: WhyRefused) {
        for (count, one) in self.0.iter_mut().zip(WhyRefused::ALL) {
            *count += u64::from(one == why);
        }
        if why == WhyRefused::Tls {
            say_tls();
        }
    }

    /// Counts what is answered so, if that says that a command which Redis has is not served.
    pub fn count_if_not_served(&mut self, answer: &[u8]) {
        if answer.starts_with(b"-ERR ") && answer.ends_with(NOT_SERVED) {
            self.count(WhyRefused::NotServed);
        }
    }

    /// Whatever the reason.
    pub fn sum(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Named for a report: all, and each reason.
    pub fn report(&self, into: &mut BTreeMap<String, u64>) {
        into.insert("client_requests_refused".to_owned(), self.sum());
        for (count, why) in self.0.iter().zip(WhyRefused::ALL) {
            into.insert(format!("client_requests_refused_{}", why.name()), *count);
        }
    }
}

/// A client speaks TLS where there is none. The log says it now and then, whoever comes how often.
pub fn say_tls() {
    if TLS_CAME.says("") {
        tracing::warn!("a client speaks TLS at a port without TLS");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_counted_under_its_own_name() {
        for why in WhyRefused::ALL {
            let mut refusals = Refusals::default();
            refusals.count(why);
            let mut report = BTreeMap::new();
            refusals.report(&mut report);
            assert_eq!(report.len(), WhyRefused::ALL.len() + 1);
            assert_eq!(report["client_requests_refused"], 1);
            let name = format!("client_requests_refused_{}", why.name());
            assert_eq!(report[&name], 1, "{name}");
            assert_eq!(report.values().sum::<u64>(), 2, "no other");
        }
    }
}

//! The counters of reports: what each counts, which is declared where it is counted, and how much it has
//! counted.
use crate::http::HttpCounts;
use quorumwire_node::report::Report;
use quorumwire_node::server::declared_counters;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// By the counter's name in reports.
pub static HELP: LazyLock<BTreeMap<String, &str>> = LazyLock::new(|| {
    let own = HttpCounts::DECLARED.iter();
    let own = own.map(|counter| (counter.name.to_owned(), counter.help));
    declared_counters().into_iter().chain(own).collect()
});

/// What a replica has counted under this name, which is declared. An older one may not know it.
pub fn count(report: &Report, name: &str) -> u64 {
    debug_assert!(HELP.contains_key(name), "nothing counts {name}");
    report.counters.get(name).copied().unwrap_or_default()
}

//! What many seeds have shown.
use super::Verdict;
use crate::queue::{Nanos, SECOND};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What a run of many seeds must have reached.
pub const OUTCOMES: &[&str] = &[
    "acceptor announces a life",
    "acceptor goes on from its disk",
    "acceptor killed",
    "acceptor let in",
    "all is well at the end",
    "another configuration",
    "asked for a forgotten instance",
    "behind another one's checkpoint",
    "coordinates",
    "coordinator killed",
    "cut off",
    "deaf to another one",
    "learner killed",
    "no member for an instance",
    "no-op decided",
    "operator has another one take over",
    "packet garbled",
    "packet lost",
    "parted",
    "piece of a value",
    "proposer's window full",
    "recover asked for",
    "round asked for",
    "round refused",
    "round taken",
    "session opened",
    "stands by",
    "stood still",
    "too many have forgotten",
    "trimmed",
    "two of one number found",
    "value decided twice, delivered once",
    "value delivered",
    "value repeated",
    "window full",
];

/// Added up over many seeds.
#[derive(Debug, Default)]
pub struct Report {
    runs: u64,
    simulated: Nanos,
    seen: BTreeMap<&'static str, u64>,
    failed: Vec<(u64, String)>,
}

impl Report {
    /// One more.
    pub fn add(&mut self, verdict: &Verdict) {
        self.runs += 1;
        self.simulated += verdict.simulated;
        for (what, times) in &verdict.seen {
            *self.seen.entry(what).or_default() += times;
        }
        if let Some(violation) = &verdict.violation {
            self.failed.push((verdict.seed, violation.clone()));
        }
    }

    /// Seeds that found something, and what.
    #[must_use]
    pub fn failed(&self) -> &[(u64, String)] {
        &self.failed
    }

    /// Outcomes that no seed has reached.
    #[must_use]
    pub fn never_reached(&self) -> Vec<&'static str> {
        let reached = |what: &&&str| !self.seen.contains_key(**what);
        OUTCOMES.iter().filter(reached).copied().collect()
    }

    /// Whether nothing was found wrong.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.failed.is_empty()
    }

    /// For programs.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "seeds": self.runs,
            "violations": self.failed,
            "simulated_s": self.simulated / SECOND,
            "seen": self.seen,
            "never_reached": self.never_reached(),
        })
    }

    /// For people.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "{} seeds of Paxos roles, {} simulated s, {} found something wrong\n",
            self.runs,
            self.simulated / SECOND,
            self.failed.len()
        );
        for (what, times) in &self.seen {
            let _ = writeln!(text, "  {times:>9}  {what}");
        }
        for what in self.never_reached() {
            let _ = writeln!(text, "  never reached: {what}");
        }
        for (seed, violation) in &self.failed {
            let _ = writeln!(text, "  seed {seed}: {violation}");
        }
        text
    }
}

//! What many seeds have shown, for people and for programs.
use crate::counts::{Counts, UNDECIDED};
use crate::fault::{ByClass, CLASSES, MOMENTS};
use crate::long_values;
use crate::outcomes;
use crate::plan::Plan;
use crate::plane_turn::left_word;
use crate::queue::{Nanos, SECOND};
use crate::run::Verdict;
use crate::served;
use crate::spelling;
use crate::term_keys;
use crate::values;
use quorumwire_control::LeaveReason;
use std::fmt::Write as _;

/// What a run must have reached, besides every moment of the protocol and every reason to leave a plane.
const OUTCOMES: &[&str] = &[
    "another life of a member found",
    "asked for what no ring holds",
    "asked for again in its session",
    "asked for again, and answered",
    "certainly not done",
    "clock of a leader stands still",
    "connection broke",
    "datagram late",
    "datagram lost",
    "datagram repeated",
    "disk put back by halves",
    "disk put back whole",
    "entries committed by planes",
    "fast term begun",
    "fast term in peace",
    "fragments assembled",
    "bundle carried out",
    "elected",
    "history linearizable",
    "isolated",
    "keys replaced",
    "killed with an answer and nothing else",
    "lease in a fast term",
    "lease read",
    "lease read, clocks at the documented bound",
    "lineage told",
    "longer promise waited for",
    "let another one lead for want of room",
    "member moved",
    "membership changed",
    "memory regained",
    "new life",
    "plane client answered after apply",
    "plane client answered blind",
    "plane client without outcome",
    "plane left a request to software",
    "plane not engaged",
    "plane went on while its folder was read",
    "plane reset",
    "one voter left, or first",
    "only voter started",
    "own pause not noticed",
    "own pause noticed",
    "passed on, outcome unknown",
    "read by a round",
    "read by a round, clocks as they like",
    "read answered before the write behind it",
    "read between writes of one client",
    "read in front of a write with unknown outcome",
    "read of a follower answered",
    "read of a follower without its round",
    "read passed on",
    "read passed on anew",
    "read without its round",
    "refused by the leader it was passed on to",
    "repeated, answered from the session",
    "request done",
    "request forged",
    "request forwarded by a plane",
    "request refused",
    "session refused",
    "severed",
    "severed when a folder is read",
    "slow plane stopped",
    "snapshot installed",
    "snapshot not installed",
    "straggler joined",
    "a life judged to be long enough",
    "a life judged though a clock was set",
    "a point of time judged, the log not at the day's",
    "a life watched to its end",
    "a tick with the wall clock",
    "a tick without the wall clock",
    "time awaited",
    "waited for too long",
    "write passed on",
    "write passed on with its session",
    "write sent before others led",
];

/// Added up over seeds.
#[derive(Clone, Debug, Default)]
pub struct Report {
    seeds: u64,
    failed: Vec<(u64, String)>,
    /// Seeds whose history was not decided.
    undecided: Vec<u64>,
    counts: Counts,
    /// Seeds in which each class was hit.
    hit_in: ByClass,
    simulated: Nanos,
    took: u64,
    healed_max: (Nanos, u64),
    healed_sum: Nanos,
    healed: u64,
    /// Changes with every seed's hash.
    hash: u64,
}

impl Report {
    /// Adds a seed's verdict.
    pub fn add(&mut self, verdict: &Verdict) {
        self.seeds += 1;
        if let Some(violation) = &verdict.violation {
            self.failed.push((verdict.seed, violation.clone()));
        }
        if verdict.counts.seen.contains_key(UNDECIDED) {
            self.undecided.push(verdict.seed);
        }
        self.counts.add(&verdict.counts);
        for (place, class) in CLASSES.iter().enumerate() {
            self.hit_in.0[place] += u64::from(verdict.counts.hits(*class) > 0);
        }
        self.simulated += verdict.simulated;
        self.took += verdict.took;
        if verdict.healed_in > 0 {
            let timeouts =
                verdict.healed_in * 100 / Plan::new(verdict.seed).settings.election_timeout;
            self.healed_max = self.healed_max.max((timeouts, verdict.seed));
            self.healed_sum += timeouts;
            self.healed += 1;
        }
        self.hash ^= verdict.hash.rotate_left(1).wrapping_mul(verdict.seed | 1);
    }

    /// Whether nothing was found wrong, and every history was decided.
    #[must_use]
    pub const fn is_sound(&self) -> bool {
        self.failed.is_empty() && self.undecided.is_empty()
    }

    /// Names of classes of faults that less than one seed of a hundred has met: then the run says nothing.
    #[must_use]
    pub fn hardly_hit(&self) -> Vec<&'static str> {
        let missing = CLASSES
            .iter()
            .zip(self.hit_in.0)
            .filter(|(_, seeds)| *seeds == 0 || seeds * 100 < self.seeds);
        missing.map(|(class, _)| class.name()).collect()
    }

    /// Outcomes that no seed has reached: then the run says nothing of them.
    #[must_use]
    pub fn never_reached(&self) -> Vec<String> {
        let moments = MOMENTS.iter().map(|moment| moment.name());
        let left = LeaveReason::ALL.iter().map(|reason| left_word(*reason));
        let spelled = spelling::OUTCOMES.into_iter();
        let all = OUTCOMES.iter().copied().chain(spelled);
        let all = all.chain(outcomes::OUTCOMES).chain(long_values::OUTCOMES);
        let all = all.chain(term_keys::OUTCOMES).chain(served::OUTCOMES);
        let all = all.chain(values::OUTCOMES);
        let all = all.chain(moments).chain(left);
        let unseen = all.filter(|name| !self.counts.seen.contains_key(name));
        let after = self.counts.never_left_after().into_iter();
        let after = after.map(|entries| format!("plane left after {entries} entries"));
        unseen.map(str::to_owned).chain(after).collect()
    }

    /// The seeds that failed, and why.
    #[must_use]
    pub fn failed(&self) -> &[(u64, String)] {
        &self.failed
    }

    /// Simulated seconds per second of processor time.
    #[must_use]
    pub const fn speed(&self) -> u64 {
        if self.took == 0 {
            return 0;
        }
        // Tens of microseconds, so that years do not overflow.
        self.simulated / (self.took / 10_000 + 1) / 10_000
    }

    /// For programs.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let classes = CLASSES.iter().zip(self.hit_in.0);
        let faults: serde_json::Map<_, _> = classes
            .map(|(class, seeds)| {
                let hits = self.counts.hits(*class);
                let value = serde_json::json!({ "hits": hits, "seeds": seeds });
                (class.name().to_owned(), value)
            })
            .collect();
        serde_json::json!({
            "seeds": self.seeds,
            "violations": self.failed,
            "undecided": self.undecided,
            "simulated_hours": hours(self.simulated),
            "simulated_seconds_per_cpu_second": self.speed(),
            "faults_per_seed": self.counts.faults() / self.seeds.max(1),
            "planned_faults_per_seed": self.counts.planned / self.seeds.max(1),
            "operations": self.counts.operations,
            "operations_answered": self.counts.answered,
            "entries_committed": self.counts.committed,
            "events": self.counts.events,
            "faults": faults,
            "reached": self.counts.seen,
            "hardly_hit": self.hardly_hit(),
            "never_reached": self.never_reached(),
            "hash": format!("{:016x}", self.hash),
        })
    }

    /// For people.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let seeds = self.seeds.max(1);
        let _ = writeln!(text, "\n{:<32} {:>12} {:>8}", "faults", "hits", "% seeds");
        for (class, in_seeds) in CLASSES.iter().zip(self.hit_in.0) {
            let (hits, part) = (self.counts.hits(*class), in_seeds * 100 / seeds);
            let _ = writeln!(text, "{:<32} {hits:>12} {part:>8}", class.name());
        }
        let _ = writeln!(text, "\nreached");
        for (name, count) in &self.counts.seen {
            let _ = writeln!(text, "{name:<32} {count:>12}");
        }
        let counts = &self.counts;
        let _ = writeln!(
            text,
            "\n{} seeds, {} violations, {} histories not decided, {:.1} simulated hours, {} simulated s per CPU s\n\
             {} faults hit and {} planned per seed; {} operations ({} answered), {} entries committed\n\
             {} events, {} messages, {} replica steps; first commit after peace: mean {}, most {} \
             hundredths of an election timeout (seed {})\nhash {:016x}",
            self.seeds,
            self.failed.len(),
            self.undecided.len(),
            hours(self.simulated),
            self.speed(),
            counts.faults() / seeds,
            counts.planned / seeds,
            counts.operations,
            counts.answered,
            counts.committed,
            counts.events,
            counts.messages,
            counts.steps,
            self.healed_sum / self.healed.max(1),
            self.healed_max.0,
            self.healed_max.1,
            self.hash,
        );
        for (seed, violation) in &self.failed {
            let _ = writeln!(text, "seed {seed}: {violation}");
        }
        if !self.undecided.is_empty() {
            let _ = writeln!(
                text,
                "void: histories not decided, of seeds {:?}; allowed: none",
                self.undecided
            );
        }
        let missing = self.hardly_hit();
        let unreached = self.never_reached();
        if !unreached.is_empty() {
            let _ = writeln!(text, "void: never reached: {}", unreached.join(", "));
        }
        if !missing.is_empty() {
            let _ = writeln!(
                text,
                "void: hit in less than 1 % of the seeds: {}",
                missing.join(", ")
            );
        }
        text
    }
}

fn hours(simulated: Nanos) -> f64 {
    let seconds = u32::try_from(simulated / SECOND).unwrap_or(u32::MAX);
    f64::from(seconds) / 3_600.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_that_was_not_decided_is_no_good_one() {
        let mut report = Report::default();
        let mut verdict = Verdict {
            seed: 7,
            ..Verdict::default()
        };
        report.add(&verdict);
        assert!(report.is_sound());
        verdict.counts.see(UNDECIDED);
        report.add(&verdict);
        assert!(!report.is_sound());
        let text = report.to_text();
        assert!(text.contains("1 histories not decided"), "{text}");
        assert!(text.contains("void: histories not decided, of seeds [7]"));
    }
}

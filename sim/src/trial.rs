//! What is run by seeds: clusters of replicas ([`crate::plan::Plan`]), and deployments of the Paxos roles
//! ([`crate::roles::plan::Plan`]). The command line and `shrink` are the same for both.
use crate::{plan, report, roles, run};

/// A plan that a seed stands for.
pub trait Trial: Sized {
    /// What comes of a run.
    type Verdict: Judged;
    /// What many runs have shown.
    type Report: Summary<Self::Verdict>;
    /// The option that chooses these, with a space behind; nothing for what is chosen without one.
    const OPTION: &'static str;

    /// What this seed means.
    fn of(seed: u64) -> Self;
    /// The same with only these of its faults, by number.
    #[must_use]
    fn keeping(self, numbers: &[usize]) -> Self;
    /// Its sizes, for people.
    fn settings(&self) -> String;
    /// Its faults, for people.
    fn faults(&self) -> Vec<String>;
    /// Runs it to its end.
    fn run(self, loud: bool) -> Self::Verdict;
}

/// What came of a run.
pub trait Judged {
    /// What was found wrong.
    fn violation(&self) -> Option<&str>;
    /// What happened, if asked for.
    fn trace(&self) -> &[String];
}

/// Added up over many runs.
pub trait Summary<V>: Default + Send {
    /// One more.
    fn add(&mut self, verdict: &V);
    /// Seeds that found something, and what.
    fn failed(&self) -> &[(u64, String)];
    /// Whether nothing was found, and all was judged.
    fn is_sound(&self) -> bool;
    /// Whether everything was reached that many seeds must reach.
    fn has_reached_all(&self) -> bool;
    /// For people.
    fn to_text(&self) -> String;
    /// For programs.
    fn to_json(&self) -> serde_json::Value;
}

macro_rules! trial {
    ($Plan:ty, $Verdict:ty, $Report:ty, $run:path, $option:literal, $reached:expr) => {
        impl Trial for $Plan {
            type Verdict = $Verdict;
            type Report = $Report;
            const OPTION: &'static str = $option;

            fn of(seed: u64) -> Self {
                Self::new(seed)
            }

            fn keeping(self, numbers: &[usize]) -> Self {
                self.keep(numbers)
            }

            fn settings(&self) -> String {
                format!("{:#?}", self.settings)
            }

            fn faults(&self) -> Vec<String> {
                self.faults.iter().map(ToString::to_string).collect()
            }

            fn run(self, loud: bool) -> Self::Verdict {
                $run(self, loud)
            }
        }

        impl Judged for $Verdict {
            fn violation(&self) -> Option<&str> {
                self.violation.as_deref()
            }

            fn trace(&self) -> &[String] {
                &self.trace
            }
        }

        impl Summary<$Verdict> for $Report {
            fn add(&mut self, verdict: &$Verdict) {
                <$Report>::add(self, verdict);
            }

            fn failed(&self) -> &[(u64, String)] {
                <$Report>::failed(self)
            }

            fn is_sound(&self) -> bool {
                <$Report>::is_sound(self)
            }

            fn has_reached_all(&self) -> bool {
                $reached(self)
            }

            fn to_text(&self) -> String {
                <$Report>::to_text(self)
            }

            fn to_json(&self) -> serde_json::Value {
                <$Report>::to_json(self)
            }
        }
    };
}

trial!(
    plan::Plan,
    run::Verdict,
    report::Report,
    run::run,
    "",
    |it: &report::Report| it.hardly_hit().is_empty() && it.never_reached().is_empty()
);
trial!(
    roles::plan::Plan,
    roles::Verdict,
    roles::Report,
    roles::run,
    "--roles ",
    |it: &roles::Report| it.never_reached().is_empty()
);

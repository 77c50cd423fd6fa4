//! Planted bugs: each leaves out one safety check of the product, and must be noticed.
use crate::plan::Plan;
use crate::run::run;

/// Seeds tried against one.
pub const SEEDS_MAX: u64 = 5_000;

/// Every check of consensus that can be left out.
const CONTROL: &[&str] = &[
    "ack-before-persist",
    "ack-more-than-matched",
    "all-is-majority",
    "always-truncate",
    "append-of-old-term",
    "append-without-match",
    "async-persist-aba",
    "bootstrap-from-fresh-to-old-life",
    "change-before-own-commit",
    "commit-beyond-verified",
    "commit-by-half",
    "commit-old-term",
    "election-by-half",
    "leader-counts-unpersisted",
    "learners-count",
    "lease-from-answer",
    "lease-kept-in-transfer",
    "membership-not-rolled-back",
    "no-check-quorum",
    "no-pre-vote",
    "old-life-heard",
    "overlapping-changes",
    "promise-before-persist",
    "read-before-own-commit",
    "read-by-earlier-round",
    "removed-leader-counts-itself",
    "removed-voter-never-stands",
    "vote-despite-leader",
    "vote-for-any-log",
    "vote-right-after-restart",
    "vote-twice",
    "votes-of-strangers",
];

/// Every check of storage that can be left out.
const STORAGE: &[&str] = &[
    "acknowledged-before-sync",
    "base-not-written",
    "compacted-beyond-the-snapshot",
    "compacted-what-was-replaced",
    "failed-sync-tried-again",
    "later-batches-not-looked-for",
    "mark-not-looked-at",
    "replaced-entries-stay",
    "segment-name-not-synced",
    "snapshot-not-checked",
    "snapshot-not-synced",
    "torn-end-stays",
    "unsynced-not-written-again",
    "vote-not-written",
];

/// All of them.
pub fn all() -> impl Iterator<Item = &'static str> {
    CONTROL.iter().chain(STORAGE).copied()
}

/// What became of a planted bug.
#[derive(Clone, Debug)]
pub struct Hunted {
    /// Which.
    pub name: &'static str,
    /// The seed that noticed it, and how; `None`: none did.
    pub killed: Option<(u64, String)>,
    /// Seeds run.
    pub seeds: u64,
    /// Whether the place of the check was ever reached.
    pub reached: bool,
}

/// Runs seeds until one notices the bug, on this thread.
#[must_use]
pub fn hunt(name: &'static str, seeds_max: u64) -> Hunted {
    let mut hunted = Hunted {
        name,
        killed: None,
        seeds: 0,
        reached: false,
    };
    for seed in 1..=seeds_max {
        quorumwire_control::mutants::activate(Some(name));
        quorumwire_storage::mutants::activate(Some(name));
        let verdict = run(Plan::new(seed), false);
        hunted.seeds += 1;
        hunted.reached |=
            quorumwire_control::mutants::reached() || quorumwire_storage::mutants::reached();
        if let Some(violation) = verdict.violation {
            hunted.killed = Some((seed, violation));
            break;
        }
    }
    quorumwire_control::mutants::activate(None);
    quorumwire_storage::mutants::activate(None);
    hunted
}

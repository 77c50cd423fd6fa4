//! Planted bugs: each leaves out one safety check of the product, and must be noticed.
use crate::plan::Plan;
use crate::planted::{self, PLANTED};
use crate::run::run;
use quorumwire_fastpath::Mutant;

/// Seeds tried against one.
pub const SEEDS_MAX: u64 = 200;

/// Every check of consensus that can be left out.
const CONTROL: &[&str] = &[
    "ack-before-persist",
    "ack-more-than-matched",
    "all-is-majority",
    "always-truncate",
    "append-of-old-term",
    "append-unfenced",
    "append-without-match",
    "async-persist-aba",
    "bootstrap-from-fresh-to-old-life",
    "change-before-own-commit",
    "change-members-unfenced",
    "commit-beyond-verified",
    "commit-by-half",
    "commit-old-term",
    "disturber-ends-fast-term",
    "election-by-half",
    "engage-before-log-is-durable",
    "engage-before-start",
    "engage-before-vote-is-durable",
    "engage-other-members",
    "engage-unequal-log",
    "engage-unverified-log",
    "engage-while-installing",
    "fence-forgets-frames",
    "leader-counts-unpersisted",
    "leader-engages-first",
    "learners-count",
    "lease-from-answer",
    "lease-kept-in-transfer",
    "membership-not-rolled-back",
    "no-check-quorum",
    "no-pre-vote",
    "old-life-heard",
    "overlapping-changes",
    "plane-frames-unheard",
    "plane-persisted-early",
    "promise-before-persist",
    "read-before-own-commit",
    "read-by-earlier-round",
    "read-ignores-plane",
    "removed-leader-counts-itself",
    "removed-voter-never-stands",
    "software-beside-plane",
    "stand-before-fence",
    "stay-with-too-few",
    "stay-without-commits",
    "transfer-unfenced",
    "vote-before-fence",
    "vote-despite-leader",
    "vote-for-any-log",
    "vote-right-after-restart",
    "vote-twice",
    "voters-promise-not-asked",
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

/// Every check of the fast path's C that can be left out, by its name there.
const PLANE: &[&str] = &[
    "RequestRing",
    "RequestWindow",
    "AppendRing",
    "LeaderSender",
    "OldTerm",
    "NewTerm",
    "Group",
    "RoleOff",
    "History",
    "NextIndex",
    "Repeated",
    "BeforeStart",
    "Member",
    "NotMyself",
    "CountMembers",
    "Quorum",
    "OwnTerm",
    "BeyondLast",
    "MatchMonotone",
    "RoundSent",
    "HeardMonotone",
    "RoundMonotone",
    "CommitWithinLast",
    "CommitMonotone",
    "HeldFollower",
    "HeldReply",
    "HeldLeader",
    "ClientSender",
    "ClientFlags",
    "BehindRing",
    "ResendStart",
    "PersistedWithinLast",
    "PersistedMonotone",
    "ReleasedWithinLast",
    "LastIndexEver",
    "AscendingRounds",
    "Tag",
    "KeyOfKind",
    "ExactLength",
    "Version",
    "FlagsKnown",
];

/// All of them.
pub fn all() -> impl Iterator<Item = &'static str> {
    let product = CONTROL.iter().chain(STORAGE).chain(PLANE);
    product.chain(PLANTED).copied()
}

/// The test besides the simulator that every run of it notices this bug in, if there is one: bugs that
/// need an exact order of packets are found there sooner, or only there.
#[must_use]
pub fn other_test(name: &str) -> Option<&'static str> {
    if CONTROL.contains(&name) {
        Some("quorumwire-control --test raft mutants")
    } else if PLANE.contains(&name) {
        Some("quorumwire-fastpath --test step mutants")
    } else {
        None
    }
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
        quorumwire_fastpath::activate(of_plane(name));
        planted::activate(Some(name));
        let verdict = run(Plan::new(seed), false);
        hunted.seeds += 1;
        hunted.reached |= quorumwire_control::mutants::reached()
            || quorumwire_storage::mutants::reached()
            || planted::reached()
            || (of_plane(name).is_some() && quorumwire_fastpath::reached());
        if let Some(violation) = verdict.violation {
            hunted.killed = Some((seed, violation));
            break;
        }
    }
    quorumwire_control::mutants::activate(None);
    quorumwire_storage::mutants::activate(None);
    quorumwire_fastpath::activate(None);
    planted::activate(None);
    hunted
}

/// The check of the C with this name.
fn of_plane(name: &str) -> Option<Mutant> {
    let mut all = Mutant::ALL.into_iter();
    all.find(|mutant| format!("{mutant:?}") == name)
}

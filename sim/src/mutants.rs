//! Planted bugs: each leaves out one safety check of the product, and must be noticed.
use crate::plan::Plan;
use crate::planted::PLANTED;
use crate::roles;
use crate::run::run;
use quorumwire_fastpath::Mutant;
use std::collections::BTreeMap;

/// Seeds run against each, to count how many notice it.
pub const SEEDS_COUNTED: u64 = 50;
/// Seeds run at most until the first that notices one, if none of the counted does.
pub const SEEDS_MAX: u64 = 5000;
/// The same where another test has noticed it.
pub const SEEDS_MAX_NOTICED: u64 = 100;

/// Every check of a group that can be left out. No other test leaves them out.
const GROUP: &[&str] = &[
    "answer-of-another-entry",
    "answer-of-another-process",
    "key-of-any-term",
    "late-tick-is-given-up",
    "late-write-is-taken",
    "one-key-for-all-terms",
    "read-before-applied",
    "read-follows-leadership",
    "read-overtakes-writes",
    "reads-outlive-unknown-write",
    "session-forgets",
    "stopped-plane-not-emptied",
    "write-overtakes-reads",
    "write-without-tick",
];

/// Those that clusters meet too seldom: a test of the group's leaves them out.
const GROUP_SELDOM: &[&str] = &["snapshot-settles-nothing"];

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
    "begins-though-contradicted",
    "begins-with-whomever",
    "bootstrap-from-fresh-to-old-life",
    "change-before-own-commit",
    "change-members-unfenced",
    "commit-beyond-verified",
    "commit-by-half",
    "commit-old-term",
    "denial-of-earlier-round",
    "denial-unheard",
    "disturber-ends-fast-term",
    "divergence-not-noticed",
    "drift-not-allowed-for",
    "election-by-half",
    "engage-before-log-is-durable",
    "engage-before-start",
    "engage-before-vote-is-durable",
    "engage-other-members",
    "engage-unequal-log",
    "engage-unverified-log",
    "engage-while-installing",
    "fence-forgets-rounds",
    "first-entry-ends-promise",
    "found-voter-is-no-news",
    "leader-counts-unpersisted",
    "leader-engages-first",
    "learners-count",
    "lease-from-answer",
    "lease-kept-in-transfer",
    "lease-outlives-promise",
    "lease-though-not-wanted",
    "lineage-given-early",
    "lineage-kept-before-durable",
    "log-time-jumps",
    "lost-connection-breaks-promise",
    "membership-not-rolled-back",
    "move-of-another-life",
    "no-check-quorum",
    "no-pre-vote",
    "old-life-heard",
    "only-promise-protects-leader",
    "other-lineage-taken",
    "overlapping-changes",
    "own-pause-is-silence",
    "plane-appends-heard",
    "plane-persisted-early",
    "plane-rounds-unheard",
    "promise-before-persist",
    "promise-ends-with-its-term",
    "read-before-own-commit",
    "read-by-earlier-round",
    "read-ignores-plane",
    "refusal-answers-a-round",
    "removed-asks-again",
    "removed-leader-counts-itself",
    "removed-voter-never-stands",
    "second-lineage-drawn",
    "software-beside-plane",
    "stand-before-fence",
    "stand-within-own-promise",
    "stay-with-too-few",
    "stay-without-commits",
    "transfer-unfenced",
    "unlisted-asks-nobody",
    "vote-before-fence",
    "vote-despite-leader",
    "vote-for-any-log",
    "vote-right-after-restart",
    "vote-twice",
    "voters-drift-not-asked",
    "voters-promise-not-asked",
    "votes-of-strangers",
    "wall-clock-is-the-logs-time",
    "wall-clock-told-early",
];

/// Every check of storage that can be left out.
const STORAGE: &[&str] = &[
    "acknowledged-before-sync",
    "base-not-written",
    "compacted-beyond-the-snapshot",
    "compacted-what-was-replaced",
    "compacted-what-will-be-replaced",
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
    "vote-said-before-sync",
    "what-later-batches-cover-is-cut",
    "what-the-mark-covers-is-cut",
];

/// Every check of what is known of a served program's clients that can be left out.
const REPLAY: &[&str] = &[
    "batch-carried-out-again",
    "batch-in-front-of-another",
    "ended-gateway-begins-again",
    "gateway-before-stays",
    "heard-in-another-life",
    "outvoted-beyond-a-majority",
    "silent-clients-stay",
    "verdict-not-looked-at-again",
];

/// Every rule of values for learners that can be left out. No other test leaves them out.
const DELIVER: &[&str] = &[
    "checkpoint-goes-back",
    "checkpoint-of-what-is-not-decided",
    "credit-not-looked-at",
    "lost-though-not-decided",
    "new-learner-needs-what-is-trimmed",
    "one-checkpoint-suffices",
    "snapshot-without-checkpoints",
    "subscription-skips-one",
    "trimmed-not-said",
    "value-given-again",
];

/// Every rule of the software beside Paxos roles that can be left out. No other test leaves them out.
const PAXOS: &[&str] = &[
    "believes-announcements",
    "begins-in-front-of-votes",
    "draws-the-same",
    "lets-in-any-life",
    "member-for-everything",
    "newcomer-gets-no-proposal",
    "one-promise-suffices",
    "one-vote-decides",
    "own-sign-of-life-is-anothers",
    "proposes-regardless-of-votes",
    "takes-earlier-lives",
    "trims-what-some-have",
    "twin-is-not-told",
];

/// Every check of the engine around the C that can be left out.
const ENGINE: &[&str] = &[
    "checksum-not-looked-at",
    "engaged-before-all-was-taken",
    "engaged-for-another-group",
    "engaged-twice",
    "engaged-without-keys",
    "handed-over-from-another-group",
    "handed-over-though-no-clients",
    "released-before-taken",
];

/// Those of the engine that are not hunted here: without them planes talk so much that a seed takes minutes.
const TALKATIVE: &[&str] = &["gap-asked-for-each-packet"];

/// All of them, those first that must be noticed here.
pub fn all() -> impl Iterator<Item = &'static str> {
    let joined = PLANTED.iter().chain(GROUP).chain(DELIVER).chain(PAXOS);
    let written = (joined.chain(GROUP_SELDOM))
        .chain(CONTROL)
        .chain(STORAGE)
        .chain(REPLAY)
        .copied();
    let engine = ENGINE.iter().chain(TALKATIVE).copied();
    written.chain(Mutant::ALL.map(Mutant::name)).chain(engine)
}

/// What other tests, run against every bug they can see, have said: lines with
/// `killed NAME by TEST`, wherever in a line this begins.
#[derive(Debug, Default)]
pub struct OtherTests {
    noticed: BTreeMap<String, String>,
}

impl OtherTests {
    /// Adds what one test printed.
    pub fn read(&mut self, printed: &str) {
        for line in printed.lines() {
            let said = line.split_once("killed ").map(|(_, said)| said);
            if let Some((name, by)) = said.and_then(|said| said.split_once(" by ")) {
                self.noticed.insert(name.to_owned(), by.to_owned());
            }
        }
    }

    /// The test that notices this bug, if one has.
    #[must_use]
    pub fn noticing(&self, name: &str) -> Option<&str> {
        self.noticed.get(name).map(String::as_str)
    }

    /// Bugs that only the tests or only the simulator know of: one of the lists is not up to date.
    #[must_use]
    pub fn at_odds(&self) -> Vec<String> {
        let known: Vec<_> = all().collect();
        let unknown = self
            .noticed
            .keys()
            .filter(|name| !known.contains(&name.as_str()));
        let product = known
            .iter()
            .filter(|name| !PLANTED.contains(name) && !GROUP.contains(name))
            .filter(|name| !PAXOS.contains(name) && !DELIVER.contains(name));
        let untold = product.filter(|name| self.noticing(name).is_none());
        unknown
            .cloned()
            .chain(untold.map(ToString::to_string))
            .collect()
    }
}

/// How many seeds are run against one bug.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Always run, to count how many of them notice it.
    pub counted: u64,
    /// Where none of these does: run at most until the first that does.
    pub seeds_max: u64,
}

/// What became of a planted bug.
#[derive(Clone, Debug)]
pub struct HuntResult {
    /// Which.
    pub name: &'static str,
    /// The first seed that noticed it, and how; `None`: none did.
    pub killed: Option<(u64, String)>,
    /// How many seeds noticed it.
    pub kills: u64,
    /// Seeds run.
    pub seeds: u64,
    /// Whether the place of the check was ever reached.
    pub reached: bool,
}

/// Whether nothing is noticed in this seed when no bug is planted: only then may it count as noticing one.
#[must_use]
pub fn is_sound(seed: u64) -> bool {
    activate(None);
    violation_in(seed, false).is_none() && violation_in(seed, true).is_none()
}

/// What is found wrong in a seed, of a deployment of Paxos roles or of a cluster of replicas.
fn violation_in(seed: u64, of_paxos: bool) -> Option<String> {
    if of_paxos {
        roles::run(roles::plan::Plan::new(seed), false).violation
    } else {
        run(Plan::new(seed), false).violation
    }
}

/// Runs seeds against the bug, on this thread. The caller knows that the counted ones are sound.
#[must_use]
pub fn hunt(name: &'static str, effort: Effort) -> HuntResult {
    let mut hunted = HuntResult {
        name,
        killed: None,
        kills: 0,
        seeds: 0,
        reached: false,
    };
    if TALKATIVE.contains(&name) {
        return hunted;
    }
    let of_paxos = PAXOS.contains(&name) || name.starts_with("paxos_");
    for seed in 1..=effort.seeds_max.max(effort.counted) {
        if seed > effort.counted && hunted.killed.is_some() {
            break;
        }
        activate(Some(name));
        let violation = violation_in(seed, of_paxos);
        hunted.seeds += 1;
        hunted.reached |= quorumwire_mutants::reached()
            || (of_plane(name).is_some() && quorumwire_fastpath::reached());
        if let Some(violation) = violation
            && (seed <= effort.counted || is_sound(seed))
        {
            hunted.kills += 1;
            hunted.killed.get_or_insert((seed, violation));
        }
    }
    activate(None);
    hunted
}

fn activate(name: Option<&'static str>) {
    quorumwire_mutants::activate(name);
    quorumwire_fastpath::activate(name.and_then(of_plane));
}

/// The check of the C with this name.
fn of_plane(name: &str) -> Option<Mutant> {
    Mutant::ALL.into_iter().find(|mutant| mutant.name() == name)
}

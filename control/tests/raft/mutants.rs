//! For each safety check: leaving it out must be noticed, by a scenario or by another test named here.
//! Which of them whole clusters notice, too, is hunted in `sim/`.
use crate::{fence, log_clock, scenarios};
use quorumwire_mutants::{activate, reached};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Every check that can be left out, and what it keeps from happening.
const MUTANTS: &str = "\
ack-before-persist: an acknowledged entry lost by a crash
ack-more-than-matched: an entry counted that is not the leader's
all-is-majority: a commit that not all voters hold
always-truncate: an old message cutting off acknowledged entries
append-of-old-term: a deposed leader writing on
append-unfenced: software and plane writing one log
append-without-match: logs that differ behind equal entries
async-persist-aba: a late disk answer counted for other entries
bootstrap-from-fresh-to-old-life: a second group beside the first
change-before-own-commit: two memberships without a common voter
change-members-unfenced: members changed while a plane counts over the old ones
commit-beyond-verified: a commit of entries the leader does not have
commit-by-half: a commit that a later leader lacks
commit-old-term: figure 8 of the Raft paper
denial-of-earlier-round: a member that has all sent it again, for a message long on its way
denial-unheard: a member kept out for as long as the term lasts
disturber-ends-fast-term: a fast term ended by anyone who calls out a term
divergence-not-noticed: an acknowledgement of entries that another log has
drift-not-allowed-for: a stale read after a voter's faster clock has ended its promise
election-by-half: two leaders in one term
engage-before-log-is-durable: an acknowledgement of entries that a crash takes back
engage-before-start: a plane behind the beginning of its fast term
engage-before-vote-is-durable: entries of a term that a crash forgets
engage-other-members: planes that count by different members
engage-unequal-log: a plane that continues another log
engage-unverified-log: a plane that continues another log
engage-while-installing: a plane that continues a log which a snapshot replaces
fence-forgets-rounds: a vote despite a leader whose plane was just heard
first-entry-ends-promise: a lease broken by a voter that restarted before anything of it was durable
found-voter-is-no-news: a group without a leader long after a voter came back
leader-counts-unpersisted: an acknowledged entry lost with the leader
leader-engages-first: a fast term that cannot commit anything
learners-count: a commit held by learners only
lease-from-answer: a lease that outlives the voters' promises
lease-kept-in-transfer: a stale read beside the new leader
lease-outlives-promise: a stale read after a voter's promise has passed
lease-though-not-wanted: reads resting on clocks where nobody may rely on them
log-time-jumps: what had time left ended when a clock is set
lost-connection-breaks-promise: a lease broken by a connection that broke
begins-though-contradicted: a cluster of some while others wait for another one
begins-with-whomever: a replica in a cluster that it was not told of
lineage-given-early: a number that older code drops, and a second one
lineage-kept-before-durable: a folder of a cluster whose first entry a crash took back
membership-not-rolled-back: counting over a membership that never was
move-of-another-life: a member that others are sent to a stranger for
no-check-quorum: a leader alone that never notices
no-pre-vote: a returning replica that deposes the leader
old-life-heard: answers to a life that is gone
only-promise-protects-leader: a leader disturbed by one who lost its connection
other-lineage-taken: a log made of two clusters' entries
overlapping-changes: two memberships without a common voter
own-pause-is-silence: a leader disturbed because the machine stood still
plane-appends-heard: a leader that hangs kept in office by its plane
plane-persisted-early: an acknowledged entry lost by a crash
plane-rounds-unheard: a leader disturbed, a lease broken
promise-before-persist: two votes in one term after a crash
promise-ends-with-its-term: a stale read after a vote in a term that came before the request for it
read-before-own-commit: a new leader's stale read
read-by-earlier-round: a deposed leader's stale read
read-ignores-plane: a stale read of what the plane has answered
refusal-answers-a-round: a lease or a read by an answer to another term's round
removed-asks-again: a removed life in the place of a newer one
removed-leader-counts-itself: a commit without a quorum of the members
removed-voter-never-stands: a group of two stuck after one was removed
second-lineage-drawn: a group that commits nothing, because some of it remember another number
software-beside-plane: software and plane writing one log
stand-before-fence: a candidate that forgets what its plane acknowledged
stand-within-own-promise: a stale read beside an only voter that has restarted
stay-with-too-few: a fast term that cannot commit anything
stay-without-commits: a group stopped by one disk that software can do without
transfer-unfenced: a leader that hands over while its plane goes on
unlisted-asks-nobody: a new life that nobody ever takes in
vote-before-fence: a leader without what a plane acknowledged
vote-despite-leader: a leader disturbed, a lease broken
vote-for-any-log: a leader without committed entries
vote-right-after-restart: a lease broken by a restart
vote-twice: two leaders in one term
voters-drift-not-asked: a stale read after a voter's faster clock has ended its promise
voters-promise-not-asked: a stale read after the promise of a voter configured otherwise has passed
votes-of-strangers: a leader elected by those who have no vote
wall-clock-is-the-logs-time: a point of time that is past for the log before it has come
wall-clock-told-early: states that differ, for older code reads half of a tick
";

#[test]
fn every_mutant_is_killed() {
    let only = only();
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    for path in scenarios::scripts() {
        let (_, expected, trace) = scenarios::run(&path);
        assert_eq!(expected, trace, "without a mutant, {}", path.display());
    }
    let mut survivors = Vec::new();
    for (name, harm) in mutants().filter(|it| only.is_none_or(|only| only == it.0)) {
        match killer(name) {
            Some(killer) => println!("killed {name} by {killer}"),
            None => survivors.push(format!("{name} ({harm})")),
        }
    }
    activate(None);
    std::panic::set_hook(quiet);
    assert!(survivors.is_empty(), "survivors: {survivors:#?}");
}

/// Their names, and the harm.
fn mutants() -> impl Iterator<Item = (&'static str, &'static str)> {
    MUTANTS.lines().filter_map(|line| line.split_once(": "))
}

/// The only one to try, if the environment names one. Panics if there is none of that name: nothing would be
/// tried.
fn only() -> Option<&'static str> {
    let given = std::env::var_os("QUORUMWIRE_MUTANT")?;
    let names: Vec<_> = mutants().map(|(name, _)| name).collect();
    let found = names.iter().copied().find(|name| given == *name);
    assert!(
        found.is_some(),
        "QUORUMWIRE_MUTANT: given {:?}, allowed: {}",
        given.to_string_lossy(),
        names.join(", ")
    );
    found
}

fn killer(name: &'static str) -> Option<String> {
    let mut killers = Vec::new();
    activate(Some(name));
    for path in scenarios::scripts() {
        let outcome = catch_unwind(AssertUnwindSafe(|| scenarios::run(&path)));
        let same = outcome.is_ok_and(|(_, expected, trace)| expected == trace);
        if !same {
            killers.push(path.file_stem()?.to_string_lossy().into_owned());
        }
    }
    if !killers.is_empty() {
        return Some(told_short(&killers));
    }
    let others: [(&str, fn()); 2] = [
        (
            "log_clock",
            log_clock::the_logs_time_moves_slowly_and_says_what_day_it_is,
        ),
        ("fence", fence::a_promise_outlasts_its_term),
    ];
    for (name, test) in others {
        if catch_unwind(test).is_err() {
            return Some(format!("control's {name}"));
        }
    }
    println!("{name}: survives, reached: {}", reached());
    None
}

/// The first of the scenarios, and how many more.
fn told_short(scenarios: &[String]) -> String {
    match scenarios {
        [only] => format!("scenario {only}"),
        [first, more @ ..] => format!("scenario {first} and {} more", more.len()),
        [] => "no scenario".to_owned(),
    }
}

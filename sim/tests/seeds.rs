//! Quick runs of the simulator: equal seeds are equal, many seeds find nothing, every class is hit.
use quorumwire_sim::fault::{CLASSES, Class};
use quorumwire_sim::plan::Plan;
use quorumwire_sim::report::Report;
use quorumwire_sim::run::{Verdict, run};
use quorumwire_sim::shrink::shrink;

const TWICE: u64 = 20;
const SEEDS_DEFAULT: u64 = 100;

/// A number above zero, if the environment has one. Panics on anything else.
fn from_environment(name: &str) -> Option<u64> {
    let given = std::env::var_os(name)?;
    let number = given.to_str().and_then(|text| text.parse::<u64>().ok());
    let number = number.filter(|number| *number > 0);
    let given = given.to_string_lossy();
    assert!(
        number.is_some(),
        "{name}: given {given:?}, allowed: 1 to 2^64 - 1"
    );
    number
}

#[test]
fn two_runs_of_a_seed_are_equal() {
    let mut hashes = Vec::new();
    for seed in 1..=TWICE {
        let (first, second) = (run(Plan::new(seed), false), run(Plan::new(seed), true));
        assert_eq!(first.hash, second.hash, "QUORUMWIRE_SEED={seed}");
        assert_eq!(first.counts.events, second.counts.events, "seed {seed}");
        hashes.push(first.hash);
    }
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len() as u64, TWICE, "seeds that are the same");
}

#[test]
fn nothing_is_found_wrong() {
    let replayed = from_environment("QUORUMWIRE_SEED");
    let first = replayed.unwrap_or(1);
    let count = from_environment("QUORUMWIRE_SEEDS").unwrap_or(match replayed {
        Some(_) => 1,
        None => SEEDS_DEFAULT,
    });
    let mut report = Report::default();
    for seed in first..first + count {
        let verdict = run(Plan::new(seed), false);
        if let Some(violation) = &verdict.violation {
            panic!("QUORUMWIRE_SEED={seed}: {violation}");
        }
        report.add(&verdict);
    }
    println!("{}", report.to_text());
    assert!(report.is_sound(), "not all histories were decided");
    if replayed.is_none() {
        let (missing, unreached) = (report.hardly_hit(), report.never_reached());
        assert!(
            missing.is_empty() && unreached.is_empty(),
            "never hit or reached: {missing:?} {unreached:?}"
        );
    }
}

#[test]
fn a_plan_without_faults_hits_none_but_the_common() {
    let verdict = run(Plan::new(1).keep(&[]), false);
    assert_eq!(verdict.violation, None);
    for class in CLASSES {
        // Snapshots are sent to whoever needs one, and clients may fill a small ring, with or without faults.
        if !matches!(class, Class::F22SnapshotAcrossChange | Class::F30RingFull) {
            assert_eq!(verdict.counts.hits(class), 0, "{}", class.name());
        }
    }
    assert!(verdict.counts.answered > 100, "clients were served");
}

#[test]
fn faults_are_kept_by_number() {
    let plan = Plan::new(3);
    let kept = Plan::new(3).keep(&[0, 5]);
    assert_eq!(kept.faults.len(), 2);
    assert_eq!(kept.faults[1].at, plan.faults[5].at);
}

/// What is not a failure is not made smaller.
#[test]
fn only_failures_shrink() {
    let verdict = Verdict {
        violation: Some("I0: made up".to_owned()),
        ..Verdict::default()
    };
    let (kept, last) = shrink::<Plan>(2, verdict.clone(), 3);
    assert_eq!(kept.len(), Plan::new(2).faults.len());
    assert_eq!(last.violation, verdict.violation);
}

//! Hunts planted bugs on all threads and prints what became of each. It decides no verdict on a seed.
use crate::output::{answer, complain};
use crate::{Options, refuse};
use quorumwire_sim::mutants::{Effort, HuntResult, OtherTests, SEEDS_MAX, all, hunt, is_sound};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Characters shown of how a bug was noticed.
const SHOWN_CHARS: usize = 90;

/// How many bugs ended how.
#[derive(Default)]
struct Tally {
    here: AtomicU64,
    elsewhere: AtomicU64,
    survivors: AtomicU64,
}

/// Hunts the planted bug of this name, or `all`; fails if one survives that no other test notices, either.
pub fn hunt_all(name: &str, options: &Options) -> ExitCode {
    let mut others = OtherTests::default();
    for path in &options.noticed_by {
        match std::fs::read_to_string(path) {
            Ok(printed) => others.read(&printed),
            Err(error) => {
                complain(format_args!("{}: {error}", path.display()));
                return ExitCode::from(2);
            }
        }
    }
    let names: Vec<_> = all()
        .filter(|known| name == "all" || name == *known)
        .collect();
    if names.is_empty() {
        let known: Vec<_> = all().collect();
        return refuse("mutants", name, format!("all, {}", known.join(", ")));
    }
    let at_odds = others.at_odds();
    if !options.noticed_by.is_empty() && !at_odds.is_empty() {
        complain(format_args!(
            "not in both the simulator's list and the tests' lists: {at_odds:?}"
        ));
        return ExitCode::FAILURE;
    }
    if let Some(seed) = (1..=options.mutant_seeds).find(|seed| !is_sound(*seed)) {
        complain(format_args!(
            "seed {seed} fails without any planted bug: it cannot count"
        ));
        return ExitCode::FAILURE;
    }
    let (next, tally) = (AtomicUsize::new(0), Tally::default());
    std::thread::scope(|scope| {
        for _ in 0..options.jobs.max(1) {
            scope.spawn(|| {
                while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let noticed = others.noticing(name);
                    let seeds_max = noticed.map_or(SEEDS_MAX, |_| options.mutant_seeds_max);
                    let effort = Effort {
                        counted: options.mutant_seeds,
                        seeds_max,
                    };
                    show(&hunt(name, effort), noticed, &tally);
                }
            });
        }
    });
    let [here, elsewhere, survivors] = [&tally.here, &tally.elsewhere, &tally.survivors]
        .map(|count| count.load(Ordering::Relaxed));
    answer(format_args!(
        "{} planted bugs: {here} noticed here, {elsewhere} by another test only, {survivors} survive",
        names.len()
    ));
    if survivors == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// One line of the table.
fn show(hunted: &HuntResult, noticed: Option<&str>, tally: &Tally) {
    let HuntResult {
        name,
        killed,
        kills,
        seeds,
        reached,
    } = hunted;
    let count = match (killed, noticed) {
        (Some((seed, violation)), _) => {
            let one_line = violation.replace('\n', " ");
            let what: String = one_line.chars().take(SHOWN_CHARS).collect();
            answer(format_args!(
                "{name:<33} {kills:>3} of {seeds:>4} seeds, first {seed:>4}: {what}"
            ));
            &tally.here
        }
        (None, Some(test)) => {
            let place = if *reached { "reached" } else { "not reached" };
            answer(format_args!(
                "{name:<33}   0 of {seeds:>4} seeds, {place}; {test}"
            ));
            &tally.elsewhere
        }
        (None, None) => {
            answer(format_args!(
                "{name:<33} SURVIVES {seeds} seeds, reached: {reached}"
            ));
            &tally.survivors
        }
    };
    count.fetch_add(1, Ordering::Relaxed);
}

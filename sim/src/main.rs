//! The command line of the simulator.
#[cfg(feature = "mutants")]
mod hunting;
mod output;

use clap::Parser;
use output::{answer, complain};
use quorumwire_sim::plan::Plan;
use quorumwire_sim::roles;
use quorumwire_sim::run::catch_panics;
use quorumwire_sim::shrink::{TRIES_MAX, shrink};
use quorumwire_sim::trial::{Judged as _, Summary, Trial};
use std::fmt::Display;
use std::ops::Range;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// With the system's allocator, a seventh of a run's time is allocation.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Lines of a trace shown at a failure.
const TRACE_TAIL: usize = 120;
/// More failures than these end a run.
const FAILURES_MAX: usize = 10;

/// Runs seeded clusters through faults and judges them.
#[derive(Parser)]
struct Options {
    /// Run this seed.
    #[arg(long)]
    seed: Option<u64>,
    /// Run the seeds from the first up to, but not, the last; of each of these, if there are several.
    #[arg(long, value_name = "A..B", num_args = 1.., default_value = "1..101")]
    seeds: Vec<String>,
    /// Only these faults of the seed's plan, by number, separated by commas; `none` for none.
    #[arg(long, requires = "seed")]
    keep: Option<String>,
    /// Deployments of the Paxos roles instead of clusters of replicas.
    #[arg(long)]
    roles: bool,
    /// Print everything that happens (with --seed).
    #[arg(long)]
    trace: bool,
    /// Print the plan of the seed and run nothing.
    #[arg(long, requires = "seed")]
    plan: bool,
    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,
    /// Make a failing plan as small as possible.
    #[arg(long)]
    shrink: bool,
    /// Hunt planted bugs: all, or the one of this name.
    #[cfg(feature = "mutants")]
    #[arg(long, num_args = 0..=1, default_missing_value = "all")]
    mutants: Option<String>,
    /// Seeds run against each planted bug, to count how many notice it.
    #[cfg(feature = "mutants")]
    #[arg(long, default_value_t = quorumwire_sim::mutants::SEEDS_COUNTED)]
    mutant_seeds: u64,
    /// Seeds run at most until the first that notices it, if another test has.
    #[cfg(feature = "mutants")]
    #[arg(long, default_value_t = quorumwire_sim::mutants::SEEDS_MAX_NOTICED)]
    mutant_seeds_max: u64,
    /// What other tests printed that were run against planted bugs.
    #[cfg(feature = "mutants")]
    #[arg(long, num_args = 1..)]
    noticed_by: Vec<std::path::PathBuf>,
    /// Seeds run at the same time.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
}

fn main() -> ExitCode {
    let options = Options::parse();
    catch_panics();
    #[cfg(feature = "mutants")]
    if let Some(name) = &options.mutants {
        return hunting::hunt_all(name, &options);
    }
    if options.roles {
        by_seeds::<roles::plan::Plan>(&options)
    } else {
        by_seeds::<Plan>(&options)
    }
}

fn by_seeds<T: Trial>(options: &Options) -> ExitCode {
    match options.seed {
        Some(seed) => one::<T>(seed, options),
        None => many::<T>(options),
    }
}

/// Numbers of faults of a plan of so many; none if the text is `none`.
fn numbers(text: &str, count: usize) -> Option<Vec<usize>> {
    if text == "none" {
        return Some(Vec::new());
    }
    let numbers = text
        .split(',')
        .map(|part| part.trim().parse::<usize>().ok());
    numbers
        .map(|number| number.filter(|number| *number < count))
        .collect()
}

/// What stands for seeds: `A..B`, of which there is one at least.
fn range(text: &str) -> Option<Range<u64>> {
    let (first, end) = text.split_once("..")?;
    let range = first.parse::<u64>().ok()?..end.parse().ok()?;
    (!range.is_empty()).then_some(range)
}

fn refuse(option: &str, given: &str, allowed: impl Display) -> ExitCode {
    complain(format_args!(
        "option {option}: given {given:?}, allowed: {allowed}"
    ));
    ExitCode::from(2)
}

fn one<T: Trial>(seed: u64, options: &Options) -> ExitCode {
    let mut plan = T::of(seed);
    if options.plan {
        print_plan(&plan);
        return ExitCode::SUCCESS;
    }
    if let Some(keep) = &options.keep {
        let count = plan.faults().len();
        let Some(kept) = numbers(keep, count) else {
            let allowed = format!("none, or numbers below {count}, separated by commas");
            return refuse("keep", keep, allowed);
        };
        plan = plan.keeping(&kept);
    }
    let verdict = plan.run(options.trace);
    for line in verdict.trace() {
        answer(line);
    }
    let mut report = T::Report::default();
    report.add(&verdict);
    print(&report, options.json);
    if verdict.violation().is_some() && options.shrink {
        explain::<T>(seed, verdict);
        return ExitCode::FAILURE;
    }
    judged(report.is_sound())
}

fn judged(is_well: bool) -> ExitCode {
    if is_well {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn print_plan(plan: &impl Trial) {
    answer(plan.settings());
    for (number, fault) in plan.faults().iter().enumerate() {
        answer(format_args!("{number:>4} {fault}"));
    }
}

fn print<V>(report: &impl Summary<V>, json: bool) {
    if json {
        answer(report.to_json());
    } else {
        answer(report.to_text());
    }
}

/// The smallest plan that still fails, and how it goes.
fn explain<T: Trial>(seed: u64, verdict: T::Verdict) {
    let (kept, smaller) = shrink::<T>(seed, verdict, TRIES_MAX);
    let text: Vec<String> = kept.iter().map(usize::to_string).collect();
    let keep = if text.is_empty() {
        "none".to_owned()
    } else {
        text.join(",")
    };
    let plan = T::of(seed).keeping(&kept);
    answer(format_args!(
        "\nseed {seed} still fails with {} faults:",
        kept.len()
    ));
    for fault in plan.faults() {
        answer(format_args!("  {fault}"));
    }
    let loud = plan.run(true);
    let from = loud.trace().len().saturating_sub(TRACE_TAIL);
    for line in &loud.trace()[from..] {
        answer(line);
    }
    answer(smaller.violation().unwrap_or_default());
    answer(format_args!(
        "again: quorumwire-sim {}--seed {seed} --keep {keep} --trace",
        T::OPTION
    ));
}

/// Calls `run_one` with each seed, on as many threads as asked for, until it has returned false. The option
/// that is wrong, if the ranges of seeds are.
fn each_seed(options: &Options, run_one: &(dyn Fn(u64) -> bool + Sync)) -> Result<(), ExitCode> {
    let mut ranges = Vec::new();
    for text in &options.seeds {
        let Some(range) = range(text) else {
            return Err(refuse("seeds", text, "A..B, A less than B"));
        };
        ranges.push(range);
    }
    let next = Mutex::new(ranges.into_iter().flatten());
    let enough = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..options.jobs.max(1) {
            scope.spawn(|| {
                while !enough.load(Ordering::Relaxed) {
                    let seed = next.lock().ok().and_then(|mut seeds| seeds.next());
                    let Some(seed) = seed else {
                        return;
                    };
                    if !run_one(seed) {
                        enough.store(true, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    Ok(())
}

fn many<T: Trial>(options: &Options) -> ExitCode {
    let report = Mutex::new(T::Report::default());
    let run_one = |seed| {
        let verdict = T::of(seed).run(false);
        let Ok(mut report) = report.lock() else {
            return false;
        };
        report.add(&verdict);
        if let Some(violation) = verdict.violation() {
            complain(format_args!("seed {seed}: {violation}"));
        }
        report.failed().len() < FAILURES_MAX
    };
    if let Err(refused) = each_seed(options, &run_one) {
        return refused;
    }
    let Ok(report) = report.into_inner() else {
        return ExitCode::FAILURE;
    };
    print(&report, options.json);
    if let (true, Some((seed, _))) = (options.shrink, report.failed().first()) {
        explain::<T>(*seed, T::of(*seed).run(false));
    }
    judged(report.is_sound() && report.has_reached_all())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_range_of_seeds_and_no_fault_of_the_plan_is_refused() {
        assert_eq!(range("1..3"), Some(1..3));
        for wrong in ["", "1", "1..", "..3", "3..3", "4..3", "1...3", "-1..3"] {
            assert_eq!(range(wrong), None, "{wrong}");
        }
        assert_eq!(numbers("none", 9), Some(vec![]));
        assert_eq!(numbers("0, 8", 9), Some(vec![0, 8]));
        for wrong in ["", "all", "1,x", "1,", "9"] {
            assert_eq!(numbers(wrong, 9), None, "{wrong}");
        }
    }
}

//! The command line's part for deployments of the Paxos roles.
use crate::output::{answer, complain};
use crate::{FAILURES_MAX, Options, each_seed, numbers, refuse};
use quorumwire_sim::roles::plan::Plan;
use quorumwire_sim::roles::{Report, Verdict, run};
use std::process::ExitCode;
use std::sync::Mutex;

/// Runs one seed.
pub fn one(seed: u64, options: &Options) -> ExitCode {
    let mut plan = Plan::new(seed);
    if options.plan {
        print_plan(&plan);
        return ExitCode::SUCCESS;
    }
    if let Some(keep) = &options.keep {
        let count = plan.faults.len();
        let Some(kept) = numbers(keep, count) else {
            let allowed = format!("none, or numbers below {count}, separated by commas");
            return refuse("keep", keep, allowed);
        };
        plan = plan.keep(&kept);
    }
    let verdict = run(plan, options.trace);
    for line in &verdict.trace {
        answer(line);
    }
    let mut report = Report::default();
    report.add(&verdict);
    answer(report.to_text());
    if options.shrink && verdict.violation.is_some() {
        explain(seed);
    }
    judged(verdict.violation.is_none())
}

/// Runs many.
pub fn many(options: &Options) -> ExitCode {
    let report = Mutex::new(Report::default());
    let run_one = |seed| {
        let verdict = run(Plan::new(seed), false);
        let Ok(mut report) = report.lock() else {
            return false;
        };
        report.add(&verdict);
        if let Some(violation) = &verdict.violation {
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
    answer(report.to_text());
    if let (true, Some((seed, _))) = (options.shrink, report.failed().first()) {
        explain(*seed);
    }
    judged(report.failed().is_empty() && report.never_reached().is_empty())
}

fn judged(is_well: bool) -> ExitCode {
    if is_well {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn print_plan(plan: &Plan) {
    answer(format_args!("{:#?}", plan.settings));
    for (number, fault) in plan.faults.iter().enumerate() {
        answer(format_args!("{number:>4} {fault}"));
    }
}

/// The fewest faults with which a seed still fails, one left out after the other, and how to run it so.
fn explain(seed: u64) {
    let fails = |kept: &[usize]| -> Option<Verdict> {
        let verdict = run(Plan::new(seed).keep(kept), false);
        verdict.violation.is_some().then_some(verdict)
    };
    let mut kept: Vec<usize> = (0..Plan::new(seed).faults.len()).collect();
    for number in kept.clone() {
        let fewer: Vec<usize> = kept.iter().copied().filter(|it| *it != number).collect();
        if fails(&fewer).is_some() {
            kept = fewer;
        }
    }
    let text: Vec<String> = kept.iter().map(usize::to_string).collect();
    let text = if text.is_empty() {
        "none".to_owned()
    } else {
        text.join(",")
    };
    answer(format_args!(
        "again: quorumwire-sim --roles --seed {seed} --keep {text} --trace"
    ));
}

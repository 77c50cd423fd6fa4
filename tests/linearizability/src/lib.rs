//! Is a history linearizable? Exact, by the search of Wing and Gong with Lowe's memory of states seen,
//! one key at a time. It judges what clients saw, not what replicas hold.

pub mod history;
pub mod list;
mod preparation;
mod register;
mod search;
#[cfg(test)]
mod search_test;

pub use quorumwire_seed as seed;
use std::collections::BTreeMap;
use std::fmt;

use crate::history::Call;
use preparation::KeyHistory;
use search::Outcome;

/// How many states the search may visit for one key before it gives up. Histories of a healthy cluster
/// need about one per call.
pub const STATES_VISITED_MAX: u64 = 3_000_000;

/// How many calls before the offending one a [`Violation`] shows.
const WINDOW_CALLS: usize = 24;

/// How much work a check was.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checked {
    /// Calls judged.
    pub calls: usize,
    /// Keys judged.
    pub keys: usize,
    /// States the search visited for all keys.
    pub states_visited: u64,
}

/// Why a history was not found linearizable.
#[derive(Debug)]
pub enum Failure {
    /// It is not.
    NotLinearizable(Box<Violation>),
    /// Not decided: the search visited [`STATES_VISITED_MAX`] states of this key. The run is void.
    StatesExhausted {
        /// The key.
        key: u32,
        /// How many calls it has.
        calls: usize,
    },
}

/// Evidence against a history.
#[derive(Debug)]
pub struct Violation {
    /// The key.
    pub key: u32,
    /// The call whose answer no order of the calls explains; up to it an order exists.
    pub offending: Call,
    /// The calls around it: those at work at the same time, the writer of the value it saw, and some
    /// before.
    pub window: Vec<Call>,
}

/// Judges a history. The keys hold nothing at its start, and nothing but its calls writes them.
pub fn check(calls: &[Call]) -> Result<Checked, Failure> {
    check_with_limit(calls, STATES_VISITED_MAX)
}

fn check_with_limit(calls: &[Call], states_max: u64) -> Result<Checked, Failure> {
    let mut by_key: BTreeMap<u32, Vec<Call>> = BTreeMap::new();
    for call in calls {
        by_key.entry(call.key).or_default().push(*call);
    }
    let mut checked = Checked {
        calls: calls.len(),
        keys: by_key.len(),
        states_visited: 0,
    };
    for (key, mut calls) in by_key {
        calls.sort_by_key(|call| call.invoked_ns);
        let prepared = KeyHistory::new(&calls);
        match search::search(&prepared, states_max) {
            Outcome::Linearizable { states_visited } => checked.states_visited += states_visited,
            Outcome::NotLinearizable => {
                let offending = first_unexplained(&calls, states_max);
                return Err(Failure::NotLinearizable(Box::new(Violation {
                    key,
                    offending: calls[offending],
                    window: window(&calls, offending),
                })));
            }
            Outcome::Exhausted => {
                return Err(Failure::StatesExhausted {
                    key,
                    calls: calls.len(),
                });
            }
        }
    }
    Ok(checked)
}

/// Of one key's calls, which no order explains, the one up to whose answer an order just no longer
/// exists: found by halving, for what is not linearizable stays so, whatever comes later.
fn first_unexplained(calls: &[Call], states_max: u64) -> usize {
    let mut returns: Vec<(u64, usize)> = calls
        .iter()
        .enumerate()
        .filter_map(|(index, call)| Some((call.outcome?.0, index)))
        .collect();
    returns.sort_unstable();
    let explained = |(end_ns, _): &(u64, usize)| {
        let prepared = KeyHistory::new(&up_to(calls, *end_ns));
        !matches!(
            search::search(&prepared, states_max),
            Outcome::NotLinearizable
        )
    };
    let first = returns.partition_point(explained);
    returns[first.min(returns.len() - 1)].1
}

/// What was known at a moment: later calls are not there, later answers are not known.
fn up_to(calls: &[Call], end_ns: u64) -> Vec<Call> {
    let mut known: Vec<Call> = calls.to_vec();
    known.retain(|call| call.invoked_ns <= end_ns);
    for call in &mut known {
        call.outcome = call.outcome.filter(|(returned, _)| *returned <= end_ns);
    }
    known
}

/// The calls a reader needs to see why `calls[offending]` cannot be explained.
fn window(calls: &[Call], offending: usize) -> Vec<Call> {
    let guilty = calls[offending];
    let end = guilty.outcome.map_or(u64::MAX, |(returned, _)| returned);
    let seen = register::observed(&guilty);
    let mut before: Vec<_> = calls
        .iter()
        .filter(|call| call.invoked_ns <= end)
        .copied()
        .collect();
    let late = before.split_off(before.len().saturating_sub(WINDOW_CALLS));
    let mut window: Vec<_> = before
        .into_iter()
        .filter(|call| {
            let writer = seen.is_some() && register::written(call.operation) == seen;
            let returned = call.outcome.map_or(u64::MAX, |(returned, _)| returned);
            writer || call.outcome.is_some() && returned >= guilty.invoked_ns
        })
        .collect();
    window.extend(late);
    window
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotLinearizable(violation) => violation.fmt(f),
            Self::StatesExhausted { key, calls } => write!(
                f,
                "void: key {key} ({calls} calls) is not decided after {STATES_VISITED_MAX} states"
            ),
        }
    }
}

impl std::error::Error for Failure {}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "not linearizable: key {}: no order of the calls explains\n  {}",
            self.key,
            line(&self.offending)
        )?;
        writeln!(f, "  calls around it:")?;
        for call in &self.window {
            writeln!(f, "    {}", line(call))?;
        }
        Ok(())
    }
}

fn line(call: &Call) -> String {
    let invoked = milliseconds(call.invoked_ns);
    let asked = format!("client {:<3} {:?}", call.client, call.operation);
    match call.outcome {
        Some((returned, answer)) => format!(
            "[{invoked:>12} .. {:>12}] {asked} -> {answer:?}",
            milliseconds(returned)
        ),
        None => format!("[{invoked:>12} ..      unknown] {asked}"),
    }
}

fn milliseconds(nanoseconds: u64) -> String {
    format!("{}.{:06}", nanoseconds / 1_000_000, nanoseconds % 1_000_000)
}

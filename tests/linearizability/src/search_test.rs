//! Tests of the checker: histories known to be good and bad, a brute-force checker on thousands of tiny
//! ones, and large ones of a simulated store.

use std::collections::HashMap;

use rand::{Rng as _, RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::{Failure, STATES_VISITED_MAX, check, check_with_limit};
use crate::history::{Answer, Call, Operation};
use crate::seed::seed;

use Answer::{Deleted, Differs, Exists, NotFound, NotStored, Number, Stored, Value};
use Operation::{Add, Cas, Delete, Get, Increment, Set};

fn call(client: u32, times: (u64, u64), operation: Operation, answer: Answer) -> Call {
    Call {
        client,
        key: 0,
        operation,
        invoked_ns: times.0,
        outcome: Some((times.1, answer)),
    }
}

fn unknown(client: u32, invoked_ns: u64, operation: Operation) -> Call {
    Call {
        client,
        key: 0,
        operation,
        invoked_ns,
        outcome: None,
    }
}

/// The call found guilty, or `None` for a linearizable history.
fn guilty(calls: &[Call]) -> Option<Call> {
    match check(calls) {
        Ok(_) => None,
        Err(Failure::NotLinearizable(violation)) => Some(violation.offending),
        Err(Failure::StatesExhausted { .. }) => panic!("undecided"),
    }
}

#[test]
fn accepts_what_an_order_explains() {
    let cas = |expected, new| Cas { expected, new };
    let good: &[&[Call]] = &[
        &[],
        &[call(0, (1, 2), Get, Value(None))],
        &[
            call(0, (1, 2), Set(7), Stored),
            call(1, (3, 4), Get, Value(Some(7))),
        ],
        // Two reads during one write may see both sides, in this order.
        &[
            call(0, (1, 9), Set(7), Stored),
            call(1, (2, 3), Get, Value(None)),
            call(1, (4, 5), Get, Value(Some(7))),
        ],
        // A return at the very moment of the next call does not order them.
        &[
            call(0, (1, 5), Set(7), Stored),
            call(1, (5, 6), Get, Value(None)),
        ],
        // An unknown write may take effect late, or never.
        &[
            unknown(0, 1, Set(7)),
            call(1, (2, 3), Set(8), Stored),
            call(1, (4, 5), Get, Value(Some(8))),
            call(1, (6, 7), Get, Value(Some(7))),
        ],
        &[unknown(0, 1, Set(7)), call(1, (2, 3), Get, Value(None))],
        // What nobody saw can still be why something was there.
        &[unknown(0, 1, Set(7)), call(1, (2, 3), Delete, Deleted)],
        &[unknown(0, 1, Set(7)), call(1, (2, 3), Add(8), NotStored)],
        // A chain of unknown operations, decided from its end.
        &[
            unknown(0, 1, Set(1)),
            unknown(1, 2, cas(1, 2)),
            unknown(2, 3, cas(2, 3)),
            call(3, (4, 5), Get, Value(Some(3))),
        ],
        &[
            call(0, (1, 2), Set(5), Stored),
            call(0, (3, 4), Increment(2), Number(7)),
            unknown(1, 1, Increment(1)),
            call(0, (5, 6), Get, Value(Some(8))),
            call(0, (7, 8), Get, Value(Some(8))),
        ],
        &[
            call(0, (1, 2), cas(1, 2), NotFound),
            call(0, (3, 4), Add(1), Stored),
            call(0, (5, 6), cas(9, 2), Exists),
            call(0, (6, 7), cas(9, 2), Differs),
            call(0, (7, 8), cas(1, 2), Stored),
            call(0, (9, 10), Delete, Deleted),
            call(0, (10, 11), cas(2, 3), Differs),
            call(0, (11, 12), Delete, NotFound),
            call(0, (13, 14), Increment(1), NotFound),
        ],
    ];
    for calls in good {
        assert!(guilty(calls).is_none(), "{calls:?}");
    }
}

#[test]
fn refuses_what_no_order_explains() {
    let cas = |expected, new| Cas { expected, new };
    // Each history with the call that must be found guilty.
    let bad: &[(&str, &[Call], usize)] = &[
        (
            "stale read",
            &[
                call(0, (1, 2), Set(7), Stored),
                call(0, (3, 4), Set(8), Stored),
                call(1, (5, 6), Get, Value(Some(7))),
            ],
            2,
        ),
        (
            "lost write",
            &[
                call(0, (1, 2), Set(7), Stored),
                call(1, (3, 4), Get, Value(None)),
            ],
            1,
        ),
        (
            "lost update",
            &[
                call(0, (1, 2), Set(1), Stored),
                call(1, (3, 9), cas(1, 2), Stored),
                call(2, (3, 9), cas(1, 3), Stored),
            ],
            1,
        ),
        (
            "a transaction refused though nothing had changed",
            &[
                call(0, (1, 2), Set(1), Stored),
                call(1, (3, 4), cas(1, 2), Differs),
            ],
            1,
        ),
        (
            "an answer only a cas can give",
            &[call(0, (1, 2), Delete, Differs)],
            0,
        ),
        (
            "reads go back",
            &[
                call(0, (1, 9), Set(7), Stored),
                call(1, (2, 3), Get, Value(Some(7))),
                call(2, (4, 5), Get, Value(None)),
            ],
            2,
        ),
        (
            "value from nowhere",
            &[call(0, (1, 2), Get, Value(Some(3)))],
            0,
        ),
        (
            "an unknown write took effect twice",
            &[
                unknown(0, 1, Set(7)),
                call(1, (2, 3), Get, Value(Some(7))),
                call(1, (4, 5), Set(8), Stored),
                call(1, (6, 7), Get, Value(Some(7))),
            ],
            3,
        ),
        (
            "an unknown write seen before it was asked for",
            &[call(1, (2, 3), Get, Value(Some(7))), unknown(0, 5, Set(7))],
            0,
        ),
        (
            "one increment counted twice",
            &[
                call(0, (1, 2), Set(5), Stored),
                unknown(1, 3, Increment(1)),
                call(0, (4, 5), Get, Value(Some(7))),
            ],
            2,
        ),
        (
            "delete undone",
            &[
                call(0, (1, 2), Set(7), Stored),
                call(0, (3, 4), Delete, Deleted),
                call(1, (5, 6), Get, Value(Some(7))),
            ],
            2,
        ),
    ];
    for (what, calls, index) in bad {
        let found = guilty(calls).unwrap_or_else(|| panic!("{what}: accepted"));
        let expected = calls[*index];
        assert_eq!(
            (found.invoked_ns, found.operation),
            (expected.invoked_ns, expected.operation),
            "{what}"
        );
    }
}

#[test]
fn judges_keys_apart_and_says_what_is_wrong() {
    let mut calls = vec![call(0, (1, 2), Set(7), Stored)];
    let mut other = call(1, (3, 4), Get, Value(None));
    other.key = 5;
    calls.push(other);
    assert_eq!(check(&calls).expect("linearizable").keys, 2);
    calls.push(call(2, (5, 6), Get, Value(Some(9))));
    let failure = check(&calls).expect_err("a value from nowhere").to_string();
    for part in [
        "key 0",
        "client 2",
        "Get -> Value(Some(9))",
        "Set(7) -> Stored",
    ] {
        assert!(failure.contains(part), "{part} in:\n{failure}");
    }
}

#[test]
fn gives_up_loudly_at_its_limit() {
    let calls: Vec<_> = (0..30)
        .map(|i| call(i, (1, 100), Set(u64::from(i)), Stored))
        .chain([call(30, (101, 102), Get, Value(None))])
        .collect();
    let outcome = check_with_limit(&calls, 1000);
    assert!(matches!(
        outcome,
        Err(Failure::StatesExhausted { key: 0, calls: 31 })
    ));
}

/// The sequential store, written a second time and without cleverness.
fn naive(state: &mut Option<u64>, operation: Operation) -> Answer {
    match operation {
        Get => Value(*state),
        Add(_) if state.is_some() => NotStored,
        Set(value) | Add(value) => {
            *state = Some(value);
            Stored
        }
        Cas { expected, new } => match state {
            None => NotFound,
            Some(value) if *value != expected => Exists,
            Some(value) => {
                *value = new;
                Stored
            }
        },
        Delete if state.take().is_some() => Deleted,
        Increment(delta) if state.is_some() => {
            *state = state.map(|value| value.wrapping_add(delta));
            Number(state.expect("is some"))
        }
        Delete | Increment(_) => NotFound,
    }
}

/// Whether `Differs` is a way to say this answer.
fn says_less(call: &Call, answer: Answer) -> bool {
    matches!(call.operation, Cas { .. }) && [Exists, NotFound].contains(&answer)
}

/// Tries every order and every subset of the unknown calls.
fn brute_force(calls: &[Call], taken: &mut Vec<bool>, state: Option<u64>) -> bool {
    let open = |i: usize, taken: &[bool]| !taken[i];
    if (0..calls.len()).all(|i| taken[i] || calls[i].outcome.is_none()) {
        return true;
    }
    for i in 0..calls.len() {
        let barred = (0..calls.len()).any(|j| {
            let returned = calls[j].outcome.map_or(u64::MAX, |(at, _)| at);
            open(j, taken) && j != i && returned < calls[i].invoked_ns
        });
        if taken[i] || barred {
            continue;
        }
        let mut next = state;
        let answer = naive(&mut next, calls[i].operation);
        let fits = |given| given == answer || given == Differs && says_less(&calls[i], answer);
        if calls[i].outcome.is_some_and(|(_, given)| !fits(given)) {
            continue;
        }
        taken[i] = true;
        let explained = brute_force(calls, taken, next);
        taken[i] = false;
        if explained {
            return true;
        }
    }
    false
}

/// What kind of operations a random history has.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Mix {
    GetSet,
    Everything,
    Counter,
    /// Values written more than once.
    Repeating,
}

fn random_operation(rng: &mut ChaCha8Rng, mix: Mix, fresh: u64) -> Operation {
    let some = rng.random_range(1..=fresh);
    match mix {
        Mix::GetSet => [Get, Set(fresh)][rng.random_range(0..2)],
        Mix::Everything => [
            Get,
            Set(fresh),
            Add(fresh),
            Delete,
            Cas {
                expected: some,
                new: fresh,
            },
            Cas {
                expected: some,
                new: fresh,
            },
        ][rng.random_range(0..6)],
        Mix::Counter => {
            [Get, Set(some), Increment(1), Increment(2), Delete][rng.random_range(0..5)]
        }
        Mix::Repeating => [
            Get,
            Set(1 + some % 2),
            Delete,
            Add(1 + some % 2),
            Cas {
                expected: 1,
                new: 2,
            },
        ][rng.random_range(0..5)],
    }
}

/// A tiny history of a store that works, and, half of the time, one lie in it.
fn random_history(rng: &mut ChaCha8Rng, mix: Mix) -> Vec<Call> {
    let count = rng.random_range(2..=7);
    let mut drafts: Vec<(u64, u64, u64, Operation)> = (0..count)
        .map(|i| {
            let invoked = rng.random_range(0..20);
            let effect = rng.random_range(invoked..=invoked + 8);
            let returned = rng.random_range(effect..=effect + 4);
            (invoked, effect, returned, random_operation(rng, mix, i + 1))
        })
        .collect();
    drafts.sort_by_key(|draft| draft.1);
    let mut state = None;
    let mut calls: Vec<Call> = Vec::new();
    for (client, (invoked, _, returned, operation)) in drafts.into_iter().enumerate() {
        let client = u32::try_from(client).expect("tiny");
        let lost = rng.random_bool(0.3);
        let answer = if lost && rng.random_bool(0.5) {
            Stored // it never took effect
        } else {
            naive(&mut state, operation)
        };
        calls.push(if lost {
            unknown(client, invoked, operation)
        } else {
            let mut answered = call(client, (invoked, returned), operation, answer);
            if says_less(&answered, answer) && rng.random_bool(0.5) {
                answered.outcome = Some((returned, Differs));
            }
            answered
        });
    }
    if rng.random_bool(0.5) {
        let lie = rng.random_range(0..calls.len());
        if let Some((_, answer)) = &mut calls[lie].outcome {
            let value = rng.random_range(0..=count);
            *answer = match *answer {
                Value(_) => Value((value > 0).then_some(value)),
                Number(number) => Number(number.wrapping_add(value)),
                Stored => [NotStored, Exists, Differs, Stored][rng.random_range(0..4)],
                NotFound | NotStored | Exists | Differs => Stored,
                Deleted => NotFound,
            };
        }
    }
    calls.sort_by_key(|call| call.invoked_ns);
    calls
}

#[test]
fn agrees_with_brute_force_on_tiny_histories() {
    const HISTORIES_PER_MIX: u32 = 4000;
    const EACH_VERDICT_MIN: u32 = HISTORIES_PER_MIX / 20;
    let seed = seed();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    for mix in [Mix::GetSet, Mix::Everything, Mix::Counter, Mix::Repeating] {
        let mut verdicts: HashMap<bool, u32> = HashMap::new();
        for _ in 0..HISTORIES_PER_MIX {
            let calls = random_history(&mut rng, mix);
            let expected = brute_force(&calls, &mut vec![false; calls.len()], None);
            let found = guilty(&calls).is_none();
            assert_eq!(found, expected, "seed {seed}, {mix:?}: {calls:#?}");
            *verdicts.entry(found).or_default() += 1;
        }
        for verdict in [true, false] {
            let count = verdicts.get(&verdict).copied().unwrap_or(0);
            assert!(
                count >= EACH_VERDICT_MIN,
                "{mix:?}: {verdict} only {count} times"
            );
        }
    }
}

/// What a simulated store's clients saw: `clients` in closed loops over `keys` keys, times, order and
/// outcomes at random.
fn simulated(rng: &mut ChaCha8Rng, calls: usize, clients: u32, keys: u32) -> Vec<Call> {
    let mut clocks = vec![0_u64; clients as usize];
    let mut drafts = Vec::new();
    for fresh in 1..=calls as u64 {
        let client = rng.random_range(0..clients);
        let clock = &mut clocks[client as usize];
        let invoked = *clock + rng.random_range(1..50);
        let slow = if rng.random_bool(0.001) {
            100_000
        } else {
            1000
        };
        let effect = invoked + rng.random_range(1..slow);
        let returned = effect + rng.random_range(1..1000);
        *clock = returned;
        drafts.push((
            effect,
            invoked,
            returned,
            client,
            rng.random_range(0..keys),
            fresh,
        ));
    }
    drafts.sort_unstable();
    let mut states: HashMap<u32, Option<u64>> = HashMap::new();
    let mut history = Vec::new();
    for (_, invoked, returned, client, key, fresh) in drafts {
        let state = states.entry(key).or_default();
        let near = state.unwrap_or(fresh);
        let operation = match (key % 3, rng.random_range(0..10)) {
            (_, 0..4) => Get,
            (0, 4..7) | (1, 4..9) => Set(fresh),
            (0, _) => Cas {
                expected: near - u64::from(rng.random_bool(0.3)),
                new: fresh,
            },
            (1, _) => Delete,
            (_, 4) => Set(0),
            _ => Increment(1),
        };
        let lost = rng.random_bool(0.005);
        let answer = if lost && rng.random_bool(0.5) {
            Stored
        } else {
            naive(state, operation)
        };
        let outcome = (!lost).then_some((returned, answer));
        history.push(Call {
            client,
            key,
            operation,
            invoked_ns: invoked,
            outcome,
        });
    }
    history
}

#[test]
fn judges_large_histories_of_many_clients() {
    let seed = seed();
    for (calls, clients, keys) in [(100_000, 32, 12), (30_000, 24, 3), (20_000, 16, 1)] {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut history = simulated(&mut rng, calls, clients, keys);
        let start = std::time::Instant::now();
        let checked = check(&history).unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
        println!("{checked:?} in {:?}", start.elapsed());
        assert!(checked.states_visited < STATES_VISITED_MAX);

        // One old value, read long after it was overwritten, is found.
        let position = |from: usize, wanted: fn(&Call) -> bool| {
            (from..history.len())
                .find(|i| wanted(&history[*i]) && history[*i].key == 0)
                .expect("long enough")
        };
        let old = position(100, |c| matches!(c.outcome, Some((_, Value(Some(_))))));
        let lie = position(calls / 2, |c| {
            matches!(c.outcome, Some((_, Value(Some(_)))))
        });
        let stale = history[old].outcome.expect("answered").1;
        // Another call may be answered in the same moment (seed 13837202345381312375): either is told.
        let answered_at = |call: &Call| call.outcome.map(|(answered_ns, _)| answered_ns);
        let lied_at = answered_at(&history[lie]);
        if let Some((_, answer)) = &mut history[lie].outcome {
            *answer = stale;
        }
        match check(&history) {
            Err(Failure::NotLinearizable(violation)) => {
                let offending = answered_at(&violation.offending);
                assert_eq!(offending, lied_at, "seed {seed}");
            }
            Err(exhausted @ Failure::StatesExhausted { .. }) => panic!("seed {seed}: {exhausted}"),
            Ok(_) => panic!("seed {seed}: a stale read accepted"),
        }
    }
}

#[test]
fn the_seed_decides_the_history() {
    let make = |seed| simulated(&mut ChaCha8Rng::seed_from_u64(seed), 50, 3, 2);
    let show = |calls: Vec<Call>| format!("{calls:?}");
    assert_eq!(show(make(1)), show(make(1)));
    assert_ne!(show(make(1)), show(make(2)));
    assert!(ChaCha8Rng::seed_from_u64(1).next_u64() != ChaCha8Rng::seed_from_u64(2).next_u64());
}

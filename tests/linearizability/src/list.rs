//! Is a history of one list linearizable, of which clients append to the end and read the whole? Exact and
//! without a search: each value is appended once, so what the list holds at last says in which order.

use std::collections::{HashMap, HashSet};
use std::fmt;

use crate::history::Value;

/// What a client asked of the list, and was told.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Asked {
    /// To put this at the end; the list's length then. None: nobody knows whether it was done.
    Append(Value, Option<u64>),
    /// What it holds.
    Read(Vec<Value>),
}

/// One operation of one client, in nanoseconds since the history's start.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ListCall {
    /// When the request left.
    pub invoked_ns: u64,
    /// When the answer was there; none: it never was.
    pub answered_ns: Option<u64>,
    /// What it was.
    pub asked: Asked,
}

/// Why a history is not linearizable.
#[derive(Debug, Eq, PartialEq)]
pub enum ListViolation {
    /// The list holds this at last, and nobody appended it, or it is there twice.
    Invented(Value),
    /// It was said to be appended, and is not there at last.
    Lost(Value),
    /// It was said to be appended at another place than where it is at last.
    Misplaced(Value),
    /// Somebody has read what the list at last does not begin with.
    NotAPrefix(ListCall),
    /// The first was answered before the second was asked, and comes behind it.
    Reordered(ListCall, ListCall),
}

impl fmt::Display for ListViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not linearizable: {self:?}")
    }
}

impl std::error::Error for ListViolation {}

/// Judges the history of a list that begins empty and that nothing but these calls changes. `last` is what it
/// held when all calls had ended, also those without an answer.
pub fn check_list(calls: &[ListCall], last: &[Value]) -> Result<(), ListViolation> {
    let mut places = HashMap::new();
    for (place, value) in (0_u64..).zip(last) {
        if places.insert(*value, place).is_some() {
            return Err(ListViolation::Invented(*value));
        }
    }
    let appended: HashSet<Value> = calls.iter().filter_map(appends).collect();
    if let Some(value) = last.iter().find(|value| !appended.contains(value)) {
        return Err(ListViolation::Invented(*value));
    }
    let mut ranked = Vec::new();
    for call in calls {
        if let Some(rank) = rank(call, last, &places)? {
            ranked.push((rank, call));
        }
    }
    in_real_time(&ranked)
}

const fn appends(call: &ListCall) -> Option<Value> {
    match call.asked {
        Asked::Append(value, _) => Some(value),
        Asked::Read(_) => None,
    }
}

/// Where the call stands in the only order of all of them; reads of one rank are in any order. None: it has
/// not happened.
fn rank(
    call: &ListCall,
    last: &[Value],
    places: &HashMap<Value, u64>,
) -> Result<Option<u64>, ListViolation> {
    match &call.asked {
        Asked::Append(value, length) => match (places.get(value), length) {
            (Some(place), Some(length)) if *length != place + 1 => {
                Err(ListViolation::Misplaced(*value))
            }
            (Some(place), _) => Ok(Some(2 * place + 1)),
            (None, Some(_)) => Err(ListViolation::Lost(*value)),
            (None, None) => Ok(None),
        },
        Asked::Read(values) if last.starts_with(values) => Ok(Some(2 * values.len() as u64)),
        Asked::Read(_) => Err(ListViolation::NotAPrefix(call.clone())),
    }
}

/// No call comes behind one that was asked when it had been answered.
fn in_real_time(ranked: &[(u64, &ListCall)]) -> Result<(), ListViolation> {
    let mut by_invocation = ranked.to_vec();
    by_invocation.sort_by_key(|(_, call)| call.invoked_ns);
    let mut by_answer: Vec<_> = ranked
        .iter()
        .filter_map(|(rank, call)| Some((call.answered_ns?, *rank, *call)))
        .collect();
    by_answer.sort_by_key(|(answered_ns, ..)| *answered_ns);
    let mut answered = by_answer.into_iter().peekable();
    let mut highest: Option<(u64, &ListCall)> = None;
    for (rank, call) in by_invocation {
        while let Some((_, before, earlier)) = answered.next_if(|it| it.0 < call.invoked_ns) {
            if highest.is_none_or(|(highest, _)| highest < before) {
                highest = Some((before, earlier));
            }
        }
        if let Some((_, earlier)) = highest.filter(|(highest, _)| *highest > rank) {
            return Err(ListViolation::Reordered(earlier.clone(), call.clone()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::seed;
    use rand::{RngExt as _, SeedableRng as _};
    use rand_chacha::ChaCha8Rng;

    fn append(times: (u64, u64), value: Value, length: u64) -> ListCall {
        ListCall {
            invoked_ns: times.0,
            answered_ns: Some(times.1),
            asked: Asked::Append(value, Some(length)),
        }
    }

    fn unknown(invoked_ns: u64, value: Value) -> ListCall {
        ListCall {
            invoked_ns,
            answered_ns: None,
            asked: Asked::Append(value, None),
        }
    }

    fn read(times: (u64, u64), values: &[Value]) -> ListCall {
        ListCall {
            invoked_ns: times.0,
            answered_ns: Some(times.1),
            asked: Asked::Read(values.to_vec()),
        }
    }

    #[test]
    fn accepts_what_an_order_explains() {
        let calls = [
            append((1, 5), 7, 2),
            append((2, 4), 8, 1),
            read((3, 6), &[8]),
            read((3, 9), &[]),
            unknown(3, 9),
            unknown(3, 10),
            read((10, 12), &[8, 7]),
            read((10, 12), &[8, 7, 9]),
        ];
        assert_eq!(check_list(&calls, &[8, 7, 9]), Ok(()));
        assert_eq!(check_list(&[], &[]), Ok(()));
    }

    #[test]
    fn refuses_each_kind_of_lie() {
        use ListViolation::{Invented, Lost, Misplaced, NotAPrefix, Reordered};
        let one = append((1, 2), 7, 1);
        let late = append((3, 4), 8, 2);
        let both = [one.clone(), late.clone()];
        assert_eq!(check_list(&both, &[7, 8]), Ok(()));
        assert_eq!(check_list(&both, &[7, 8, 8]), Err(Invented(8)));
        assert_eq!(check_list(&both, &[7, 8, 9]), Err(Invented(9)));
        assert_eq!(check_list(&both, &[7]), Err(Lost(8)));
        assert_eq!(check_list(&both, &[8, 7]), Err(Misplaced(7)));
        let stale = read((5, 6), &[7]);
        let with_stale = [one.clone(), late.clone(), stale.clone()];
        assert_eq!(
            check_list(&with_stale, &[7, 8]),
            Err(Reordered(late.clone(), stale))
        );
        let odd = read((5, 6), &[8]);
        let with_odd = [one, late, odd.clone()];
        assert_eq!(check_list(&with_odd, &[7, 8]), Err(NotAPrefix(odd)));
        let (before, behind) = (read((1, 2), &[7]), unknown(3, 7));
        let from_nowhere = [before.clone(), behind.clone()];
        assert_eq!(
            check_list(&from_nowhere, &[7]),
            Err(Reordered(before, behind))
        );
    }

    /// Whether some order of these calls explains all, by trying each.
    fn is_explained(left: &[ListCall], held: &[Value], last: &[Value]) -> bool {
        let is_done = left.iter().all(|call| call.answered_ns.is_none());
        if is_done && held == last {
            return true;
        }
        (0..left.len()).any(|number| {
            let call = &left[number];
            let comes_too_early = left
                .iter()
                .any(|other| other.answered_ns.is_some_and(|end| end < call.invoked_ns));
            let mut held = held.to_vec();
            let fits = match &call.asked {
                Asked::Append(value, length) => {
                    held.push(*value);
                    length.is_none_or(|length| length == held.len() as u64)
                }
                Asked::Read(values) => *values == held,
            };
            let mut rest = left.to_vec();
            rest.remove(number);
            fits && !comes_too_early && is_explained(&rest, &held, last)
        })
    }

    /// A few calls that overlap by chance, answered by a list or, at times, by a liar.
    fn draw(random: &mut ChaCha8Rng) -> (Vec<ListCall>, Vec<Value>) {
        let (mut list, mut calls) = (Vec::new(), Vec::new());
        for value in 0..random.random_range(1..6_u64) {
            let done_at = value * 10 + 5;
            let invoked_ns = done_at - random.random_range(1..25).min(done_at);
            let answered_ns = Some(done_at + random.random_range(1..25));
            let is_unknown = random.random_ratio(1, 5);
            let asked = if random.random_bool(0.5) {
                let shown = random.random_range(0..=list.len());
                let is_stale = random.random_ratio(1, 6);
                Asked::Read(if is_stale {
                    list[..shown].to_vec()
                } else {
                    list.clone()
                })
            } else if is_unknown && random.random_bool(0.5) {
                Asked::Append(value, None)
            } else {
                list.push(value);
                let length = list.len() as u64 + u64::from(random.random_ratio(1, 12));
                Asked::Append(value, Some(length).filter(|_| !is_unknown))
            };
            let is_answered = !matches!(asked, Asked::Append(_, None));
            calls.push(ListCall {
                invoked_ns,
                answered_ns: answered_ns.filter(|_| is_answered),
                asked,
            });
        }
        if random.random_ratio(1, 12) {
            list.pop();
        }
        if random.random_ratio(1, 12) {
            list.reverse();
        }
        (calls, list)
    }

    #[test]
    fn agrees_with_one_that_tries_every_order() {
        let mut random = ChaCha8Rng::seed_from_u64(seed());
        let (mut good, mut bad) = (0, 0);
        for _ in 0..20_000 {
            let (calls, last) = draw(&mut random);
            let is_explained = is_explained(&calls, &[], &last);
            let judged = check_list(&calls, &last);
            assert_eq!(
                judged.is_ok(),
                is_explained,
                "{judged:?} of {calls:?}, {last:?}"
            );
            *(if is_explained { &mut good } else { &mut bad }) += 1;
        }
        assert!(
            good > 1000 && bad > 1000,
            "{good} good ones, {bad} bad ones"
        );
    }
}

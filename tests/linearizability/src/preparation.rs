//! Makes one key's calls easy to search, without changing the verdict: calls of unknown outcome are
//! what makes the search explode, and most of them can be decided, dropped or told to be alike.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::register;
use crate::history::{Answer, Call, Operation, Value};

/// Stands for every value that nobody ever saw or asked for: they cannot be told apart.
const NEVER_SEEN: Value = Value::MAX;

/// A call that certainly took effect between `invoked_ns` and `returned_ns`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Certain {
    pub(super) operation: Operation,
    pub(super) answer: Answer,
    pub(super) invoked_ns: u64,
    pub(super) returned_ns: u64,
    /// The value this call certainly found, if values name their writes.
    pub(super) found: Option<Value>,
}

/// Calls of unknown outcome that do the same; when some of them took effect, it may as well have been
/// those that were invoked first.
#[derive(Clone, Debug)]
pub(super) struct Alike {
    pub(super) operation: Operation,
    /// When each was invoked, ascending.
    pub(super) invoked_ns: Vec<u64>,
}

/// One key's calls, ready to search.
#[derive(Debug)]
pub(super) struct KeyHistory {
    /// By time of invocation.
    pub(super) certain: Vec<Certain>,
    pub(super) possible: Vec<Alike>,
    /// How many certain calls found each value; empty unless values name their writes. A value written
    /// once and overwritten never comes back, so it may not go while a call that found it is open.
    pub(super) observers: HashMap<Value, usize>,
}

impl KeyHistory {
    /// Prepares one key's calls, which are sorted by time of invocation.
    pub(super) fn new(calls: &[Call]) -> Self {
        let mut calls: Vec<Call> = calls.to_vec();
        let values_name_writes = values_name_writes(&calls);
        if values_name_writes {
            decide_what_was_seen(&mut calls);
        }
        let mentioned = mentioned(&calls);
        let unseen_writes_matter = !values_name_writes || calls.iter().any(presence_matters);
        let normal = |operation| match operation {
            _ if !values_name_writes => operation,
            Operation::Set(value) => Operation::Set(seen_or_alike(value, &mentioned)),
            Operation::Add(value) => Operation::Add(seen_or_alike(value, &mentioned)),
            Operation::Cas { expected, new } => Operation::Cas {
                expected,
                new: seen_or_alike(new, &mentioned),
            },
            Operation::Get | Operation::Delete | Operation::Increment(_) => operation,
        };
        let mut certain = Vec::new();
        let mut observers: HashMap<Value, usize> = HashMap::new();
        let mut possible: BTreeMap<usize, Alike> = BTreeMap::new();
        let mut kinds: HashMap<Operation, usize> = HashMap::new();
        for call in &calls {
            let operation = normal(call.operation);
            if let Some((returned_ns, answer)) = call.outcome {
                let found = register::observed(call).filter(|_| values_name_writes);
                if let Some(value) = found {
                    *observers.entry(value).or_default() += 1;
                }
                certain.push(Certain {
                    found,
                    operation,
                    answer,
                    invoked_ns: call.invoked_ns,
                    returned_ns,
                });
            } else if can_matter(call.operation, unseen_writes_matter) {
                let kinds_known = kinds.len();
                let kind = *kinds.entry(operation).or_insert(kinds_known);
                let alike = possible.entry(kind).or_insert_with(|| Alike {
                    operation,
                    invoked_ns: Vec::new(),
                });
                alike.invoked_ns.push(call.invoked_ns);
            }
        }
        Self {
            certain,
            possible: possible.into_values().collect(),
            observers,
        }
    }
}

/// Whether a value names the one write it came from: all are different and nothing computes new ones.
fn values_name_writes(calls: &[Call]) -> bool {
    let mut seen = HashSet::from([NEVER_SEEN]);
    calls.iter().all(|call| match call.operation {
        Operation::Increment(_) => false,
        Operation::Get | Operation::Delete => true,
        Operation::Set(_) | Operation::Add(_) | Operation::Cas { .. } => {
            register::written(call.operation).is_none_or(|value| seen.insert(value))
        }
    })
}

/// A write of unknown outcome whose value somebody saw did take effect, before the first who saw it was
/// answered. That makes it certain; and what a cas so decided expected was there, too, and so on.
fn decide_what_was_seen(calls: &mut [Call]) {
    let mut unknown: HashMap<Value, usize> = HashMap::new();
    for (index, call) in calls.iter().enumerate() {
        if let (None, Some(value)) = (call.outcome, register::written(call.operation)) {
            unknown.insert(value, index);
        }
    }
    let mut first_seen: HashMap<Value, u64> = HashMap::new();
    let mut to_visit: Vec<(Value, u64)> = calls
        .iter()
        .filter_map(|call| Some((register::observed(call)?, call.outcome?.0)))
        .collect();
    while let Some((value, seen_ns)) = to_visit.pop() {
        let first = first_seen.entry(value).or_insert(u64::MAX);
        if seen_ns >= *first {
            continue;
        }
        *first = seen_ns;
        let Some(&index) = unknown.get(&value) else {
            continue;
        };
        let call = &mut calls[index];
        // Seen before it was written: the one who saw it will be found guilty, not this call.
        let returned_ns = seen_ns.max(call.invoked_ns);
        call.outcome = Some((returned_ns, Answer::Stored));
        if let Some(expected) = register::observed(call) {
            to_visit.push((expected, returned_ns));
        }
    }
}

/// The values somebody saw or asked for.
fn mentioned(calls: &[Call]) -> HashSet<Value> {
    calls
        .iter()
        .filter_map(|call| match call.operation {
            Operation::Cas { expected, .. } => Some(expected),
            Operation::Get
            | Operation::Set(_)
            | Operation::Add(_)
            | Operation::Delete
            | Operation::Increment(_) => register::observed(call),
        })
        .collect()
}

fn seen_or_alike(value: Value, mentioned: &HashSet<Value>) -> Value {
    if mentioned.contains(&value) {
        value
    } else {
        NEVER_SEEN
    }
}

/// Whether an answer depends on something, no matter what, being there: only then can a write whose
/// value nobody saw explain anything.
fn presence_matters(call: &Call) -> bool {
    let Some((_, answer)) = call.outcome else {
        return false;
    };
    match answer {
        Answer::NotStored | Answer::Exists | Answer::Differs | Answer::Deleted => true,
        Answer::Value(_) | Answer::Stored | Answer::NotFound | Answer::Number(_) => false,
    }
}

fn can_matter(operation: Operation, unseen_writes_matter: bool) -> bool {
    match operation {
        Operation::Get => false,
        Operation::Delete | Operation::Increment(_) => true,
        Operation::Set(_) | Operation::Add(_) | Operation::Cas { .. } => unseen_writes_matter,
    }
}

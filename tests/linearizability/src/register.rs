//! What one key does: the sequential meaning of every operation and answer. No concurrency here.

use crate::history::{Answer, Call, Operation, Value};

/// What a key holds.
pub(super) type State = Option<Value>;

/// The state after `operation` took effect on `state`, if it can have answered `answer` there; with no
/// answer known, the state after an effect, if it has one.
pub(super) fn after(state: State, operation: Operation, answer: Option<Answer>) -> Option<State> {
    let Some(answer) = answer else {
        return effect(state, operation);
    };
    let (next, given) = match operation {
        Operation::Get => (state, Answer::Value(state)),
        Operation::Set(value) => (Some(value), Answer::Stored),
        Operation::Add(value) => match state {
            None => (Some(value), Answer::Stored),
            Some(_) => (state, Answer::NotStored),
        },
        Operation::Cas { expected, new } => match state {
            None => (state, Answer::NotFound),
            Some(value) if value == expected => (Some(new), Answer::Stored),
            Some(_) => (state, Answer::Exists),
        },
        Operation::Delete => match state {
            None => (state, Answer::NotFound),
            Some(_) => (None, Answer::Deleted),
        },
        Operation::Increment(delta) => match state {
            None => (state, Answer::NotFound),
            Some(value) => {
                let sum = value.wrapping_add(delta);
                (Some(sum), Answer::Number(sum))
            }
        },
    };
    let fits = if answer == Answer::Differs {
        matches!(
            (operation, given),
            (Operation::Cas { .. }, Answer::Exists | Answer::NotFound)
        )
    } else {
        given == answer
    };
    fits.then_some(next)
}

/// The state an operation of unknown outcome leaves, if it changes anything at all.
fn effect(state: State, operation: Operation) -> Option<State> {
    match (operation, state) {
        (Operation::Set(value), _) | (Operation::Add(value), None) => Some(Some(value)),
        (Operation::Cas { expected, new }, Some(value)) if value == expected => Some(Some(new)),
        (Operation::Delete, Some(_)) => Some(None),
        (Operation::Increment(delta), Some(value)) => Some(Some(value.wrapping_add(delta))),
        (
            Operation::Get
            | Operation::Add(_)
            | Operation::Cas { .. }
            | Operation::Delete
            | Operation::Increment(_),
            _,
        ) => None,
    }
}

/// Whether an answered operation only looked: it changes nothing where it fits.
pub(super) fn only_looked(operation: Operation, answer: Answer) -> bool {
    match answer {
        Answer::Value(_)
        | Answer::NotStored
        | Answer::Exists
        | Answer::Differs
        | Answer::NotFound => true,
        Answer::Stored | Answer::Deleted | Answer::Number(_) => {
            matches!(operation, Operation::Get)
        }
    }
}

/// The value an operation writes, if it names one.
pub(super) fn written(operation: Operation) -> Option<Value> {
    match operation {
        Operation::Set(value) | Operation::Add(value) => Some(value),
        Operation::Cas { new, .. } => Some(new),
        Operation::Get | Operation::Delete | Operation::Increment(_) => None,
    }
}

/// The value a call certainly found.
pub(super) fn observed(call: &Call) -> Option<Value> {
    let (_, answer) = call.outcome?;
    match (call.operation, answer) {
        (Operation::Get, Answer::Value(value)) => value,
        (Operation::Cas { expected, .. }, Answer::Stored) => Some(expected),
        (
            Operation::Get
            | Operation::Set(_)
            | Operation::Add(_)
            | Operation::Cas { .. }
            | Operation::Delete
            | Operation::Increment(_),
            _,
        ) => None,
    }
}

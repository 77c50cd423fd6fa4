//! A walk over small states, and everything small that can happen in each, without a seed: the C against a
//! model and invariants, and what becomes of it without each check. What is walked over the tests of each
//! step say.
use quorumwire_fastpath::Outcome;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::ControlFlow;

#[cfg(feature = "mutants")]
pub mod mutants;

/// Sees one case: what is known, and what happens. Breaks off to end the walk.
pub type Visit<'a, S, C> = &'a mut dyn FnMut(&S, &C) -> ControlFlow<()>;

/// A step in C, a model of it, and the cases in which both are run.
pub trait Walked {
    /// What is known before something happens.
    type State: Debug + PartialEq;
    /// What happens.
    type Call: Debug;

    /// All cases.
    fn each_case(visit: Visit<'_, Self::State, Self::Call>) -> ControlFlow<()>;

    /// Runs the C, on a copy. What has no outcome in C shows whether it was taken as an action.
    fn run(before: &Self::State, call: &Self::Call) -> (Self::State, Outcome);

    /// Runs the model.
    fn model(before: &Self::State, call: &Self::Call) -> (Self::State, Outcome);

    /// The first rule that does not hold, whatever the model says.
    fn broken_invariant(
        before: &Self::State,
        call: &Self::Call,
        after: &Self::State,
        outcome: &Outcome,
    ) -> Option<&'static str>;

    /// The role, and what happens.
    fn name(state: &Self::State, call: &Self::Call) -> (&'static str, &'static str);
}

/// Compares the C with the model and with the invariants; what differs, or the C's outcome.
pub fn compare<W: Walked>(before: &W::State, call: &W::Call) -> Result<Outcome, String> {
    let (after, outcome) = W::run(before, call);
    let (model_after, model_outcome) = W::model(before, call);
    if after != model_after {
        return Err(format!("state: C {after:?}, model {model_after:?}"));
    }
    if outcome != model_outcome {
        return Err(format!("outcome: C {outcome:?}, model {model_outcome:?}"));
    }
    match W::broken_invariant(before, call, &after, &outcome) {
        Some(rule) => Err(rule.to_owned()),
        None => Ok(outcome),
    }
}

/// A state with each of these calls.
pub fn visit_all<S, C>(state: &S, calls: &[C], visit: Visit<'_, S, C>) -> ControlFlow<()> {
    calls.iter().try_for_each(|call| visit(state, call))
}

/// Each state with each call; what is refused whatever the state (`rare`), only with one in so many.
pub fn visit_states<S, C>(
    states: &[S],
    calls: &[C],
    (rare, one_in): (&[C], usize),
    visit: Visit<'_, S, C>,
) -> ControlFlow<()> {
    for (place, state) in states.iter().enumerate() {
        visit_all(state, calls, visit)?;
        if place.is_multiple_of(one_in) {
            visit_all(state, rare, visit)?;
        }
    }
    ControlFlow::Continue(())
}

/// An outcome: role, what happened, reason, actions.
pub type Reached = (&'static str, &'static str, &'static str, u32);

/// In all cases the C is as the model says, and the expected outcomes come up. How often each outcome did;
/// the number of cases is printed, and must be more than `cases_min`.
pub fn walk<W: Walked>(expected: &[Reached], cases_min: u64) -> BTreeMap<Reached, u64> {
    let mut reached = BTreeMap::new();
    let mut cases = 0_u64;
    let ended = W::each_case(&mut |state, call| {
        match compare::<W>(state, call) {
            Ok(outcome) => {
                let (role, call) = W::name(state, call);
                let outcome = (role, call, outcome.reason().name(), outcome.actions);
                *reached.entry(outcome).or_default() += 1;
            }
            Err(difference) => panic!("{difference}\nfrom {state:?}\nby {call:?}"),
        }
        cases += 1;
        ControlFlow::Continue(())
    });
    assert_eq!(ended, ControlFlow::Continue(()));
    println!("{cases} cases, {} outcomes", reached.len());
    for (outcome, times) in &reached {
        println!("{outcome:?} {times}");
    }
    for expected in expected {
        assert!(
            reached.contains_key(expected),
            "never reached: {expected:?}"
        );
    }
    assert!(cases > cases_min, "only {cases} cases");
    reached
}

//! Each safety check left out once: the walk must see it.
use crate::walk::{Walked, compare};
use quorumwire_fastpath::{Mutant, Without, reached};
use std::fmt::Debug;
use std::ops::ControlFlow;

/// Of the check that is left out, what it refuses of registers that a host switches something on with must
/// all be taken. Whether it is a check of those: some are refused.
pub fn is_needed_to_switch_on<R: Debug>(
    mutant: Mutant,
    unsound: impl Iterator<Item = (Mutant, R)>,
    is_sound: fn(&R) -> bool,
) -> bool {
    let refused: Vec<_> = unsound.filter(|(check, _)| *check == mutant).collect();
    let _without = Without::check(mutant);
    for (_, registers) in &refused {
        assert!(
            is_sound(registers),
            "{mutant:?} makes no difference to {registers:?}"
        );
    }
    !refused.is_empty()
}

/// Without the check the C differs from the model somewhere in the walk, or breaks a rule. What is printed
/// says which rule, and in which case it differed first. So many cases behind that one are looked at for a
/// rule.
pub fn is_noticed<W: Walked>(mutant: Mutant, by: &str, looked_further_max: u64) {
    let _without = Without::check(mutant);
    let found = first_difference::<W>(mutant, looked_further_max);
    assert!(reached(), "{mutant:?} was never reached");
    let Some((call, rule)) = found else {
        panic!("{mutant:?} makes no difference");
    };
    let (name, call) = (mutant.name(), &call[..call.len().min(60)]);
    println!("killed {name} by {by} ({rule}), first at {call}");
}

/// The first small case in which the C without the check differs from the model, and the rule of the
/// invariants that it or a later case breaks, if one does. What differs must have been refused for the
/// check's own reason: so its name stands where it should.
fn first_difference<W: Walked>(
    mutant: Mutant,
    looked_further_max: u64,
) -> Option<(String, &'static str)> {
    let mut found = None;
    let mut looked_further = 0;
    let _ = W::each_case(&mut |state, call| {
        if found.is_some() {
            looked_further += 1;
        } else if compare::<W>(state, call).is_err() {
            found = Some((format!("{call:?}"), "only the model"));
            if let Some(reason) = mutant.reason() {
                let refused = W::model(state, call).1.reason();
                assert_eq!(refused, reason, "{mutant:?}: {call:?}");
            }
        }
        if let Some((_, rule)) = &mut found {
            let (after, outcome) = W::run(state, call);
            if let Some(broken) = W::broken_invariant(state, call, &after, &outcome) {
                *rule = broken;
                return ControlFlow::Break(());
            }
        }
        if looked_further > looked_further_max {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    found
}

//! Each safety check left out once: the tests must see it.
use crate::cases::{Call, State, broken_invariant, compare, run};
use crate::model;
use crate::sound::unsound;
use crate::states::each_case;
use quorumwire_fastpath::{Mutant, Without, paxos_sound, reached};
use std::ops::ControlFlow;

/// Whether the check is one of registers that a role is switched on with. Then all that it refuses must be
/// taken without it.
fn is_needed_to_switch_on(mutant: Mutant) -> bool {
    let refused: Vec<_> = unsound().filter(|(check, _)| *check == mutant).collect();
    let _without = Without::check(mutant);
    for (_, registers) in &refused {
        assert!(
            paxos_sound(registers),
            "{mutant:?} makes no difference to {registers:?}"
        );
    }
    !refused.is_empty()
}

/// The first small case in which the C without the check differs from the model, and the rule of the
/// invariants that some case breaks, if one does. What differs must have been refused for the check's own
/// reason: so its name stands where it should.
fn first_difference(mutant: Mutant) -> Option<(String, &'static str)> {
    let mut found = None;
    let _ = each_case(&mut |state, call| {
        if found.is_none() && compare(state, call).is_err() {
            found = Some((format!("{call:?}"), "only the model"));
            if let Some(reason) = mutant.reason() {
                let refused = model::run(state, call).1.reason();
                assert_eq!(refused, reason, "{mutant:?}: {call:?}");
            }
        }
        if let Some((_, rule)) = &mut found
            && let Some(broken) = breaks(state, call)
        {
            *rule = broken;
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    found
}

fn breaks(state: &State, call: &Call) -> Option<&'static str> {
    let (after, outcome) = run(state, call);
    broken_invariant(state, call, &after, &outcome)
}

#[test]
fn every_check_is_needed() {
    let all = Mutant::ALL.iter().copied();
    let here: Vec<Mutant> = all
        .filter(|mutant| mutant.name().starts_with("paxos_"))
        .collect();
    for mutant in here.iter().copied() {
        let name = mutant.name();
        if is_needed_to_switch_on(mutant) {
            println!("killed {name} by the test of registers that no host may set");
            continue;
        }
        let _without = Without::check(mutant);
        let found = first_difference(mutant);
        assert!(reached(), "{mutant:?} was never reached");
        let Some((call, rule)) = found else {
            panic!("{mutant:?} makes no difference");
        };
        let call = &call[..call.len().min(60)];
        println!("killed {name} by the exhaustive test of the roles ({rule}), first at {call}");
    }
    assert!(here.len() >= 38, "only {}", here.len());
}

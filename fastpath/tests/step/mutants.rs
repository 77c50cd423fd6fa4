//! Each safety check left out once: the tests must see it. Which rule a mutant breaks is in README.md.
use crate::cases::{Call, broken_invariant, compare, run};
use crate::model;
use crate::sound::unsound;
use crate::states::each_case;
use crate::verify::{keys, plain, signed, without_a_key};
use quorumwire_fastpath::{Keys, Mutant, Without, activate, check, reached, registers_sound};
use quorumwire_wire::packet::{FLAG_EPOCH, Header, Kind, Registers, VERSION};
use std::ops::ControlFlow;

/// A datagram that the check keeps out where these keys are set, if it is one before the step.
fn forged(mutant: Mutant) -> Option<(Keys, Vec<u8>)> {
    let keys = keys();
    let append = plain(Kind::Append);
    let datagram = match mutant {
        Mutant::KeyValid => return Some(without_a_key()),
        Mutant::Tag => Some(append.encode().to_vec()),
        Mutant::KeyOfKind => {
            let from_client = Header {
                sender: 255,
                ..append
            };
            Some(signed(&from_client, &keys.clients))
        }
        Mutant::ExactLength => Some([&signed(&append, &keys.cluster)[..], &[0]].concat()),
        Mutant::Version => {
            let newer = Header {
                version: VERSION + 1,
                ..append
            };
            Some(signed(&newer, &keys.cluster))
        }
        Mutant::FlagsKnown => {
            let unknown = Header {
                flags: 0x80 | FLAG_EPOCH,
                ..append
            };
            Some(signed(&unknown, &keys.cluster))
        }
        _ => None,
    };
    datagram.map(|datagram| (keys, datagram))
}

/// Whether the check is one of registers that a plane is switched on with. Then all that it refuses must be
/// taken without it.
fn is_needed_to_switch_on(mutant: Mutant) -> bool {
    let refused: Vec<_> = unsound().filter(|(check, _)| *check == mutant).collect();
    let _without = Without::check(mutant);
    for (_, registers) in &refused {
        assert!(
            registers_sound(registers),
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
    let mut looked_further = 0;
    let _ = each_case(&mut |registers, call| {
        if found.is_none() {
            found = differs(registers, call).map(|case| (case, "only the model"));
            if found.is_some()
                && let Some(reason) = mutant.reason()
            {
                let refused = model::run(registers, call).1.reason();
                assert_eq!(refused, reason, "{mutant:?}: {call:?}");
            }
        } else {
            looked_further += 1;
        }
        if let Some((_, rule)) = &mut found {
            let (after, outcome) = run(registers, call);
            if let Some(broken) = broken_invariant(registers, call, &after, &outcome) {
                *rule = broken;
                return ControlFlow::Break(());
            }
        }
        if looked_further > 200_000 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    found
}

fn differs(registers: &Registers, call: &Call) -> Option<String> {
    compare(registers, call).err().map(|_| format!("{call:?}"))
}

#[test]
fn every_check_is_needed() {
    // Those of the Paxos roles are left out in tests/paxos.
    let here = Mutant::ALL
        .iter()
        .filter(|mutant| !mutant.name().starts_with("paxos_"));
    for &mutant in here.clone() {
        let name = mutant.name();
        if let Some((keys, datagram)) = forged(mutant) {
            let refused = check(&keys, &datagram).map(|_| ());
            assert_eq!(
                refused,
                Err(mutant.reason().expect("it refuses packets")),
                "{mutant:?}"
            );
            let _without = Without::check(mutant);
            assert!(
                check(&keys, &datagram).is_ok(),
                "{mutant:?} makes no difference"
            );
            println!("killed {name} by the step's test of forged packets");
            continue;
        }
        if is_needed_to_switch_on(mutant) {
            println!("killed {name} by the step's test of registers that no host may set");
            continue;
        }
        let _without = Without::check(mutant);
        let found = first_difference(mutant);
        assert!(reached(), "{mutant:?} was never reached");
        let Some((call, rule)) = found else {
            panic!("{mutant:?} makes no difference");
        };
        let call = &call[..call.len().min(60)];
        println!("killed {name} by the step's exhaustive test ({rule}), first at {call}");
    }
    assert!(here.count() >= 70);
}

#[test]
fn without_a_mutant_the_second_copy_is_the_first() {
    activate(None);
    assert!(!reached());
    let datagram = signed(&plain(Kind::Append), &keys().cluster);
    assert!(check(&keys(), &datagram).is_ok());
}

//! Each safety check left out once: the tests must see it. Which rule a mutant breaks is in README.md.
use crate::cases::{Call, broken_invariant, compare, run};
use crate::states::each_case;
use crate::verify::{keys, plain, signed};
use quorumwire_fastpath::{Mutant, activate, check, reached};
use quorumwire_wire::packet::{FLAG_EPOCH, Header, Kind, Registers, VERSION};
use std::ops::ControlFlow;

/// Leaves a check out until dropped.
struct Without;

impl Without {
    fn check(mutant: Mutant) -> Self {
        activate(Some(mutant));
        Self
    }
}

impl Drop for Without {
    fn drop(&mut self) {
        activate(None);
    }
}

/// A datagram that the check keeps out, if it is one before the step.
fn forged(mutant: Mutant) -> Option<Vec<u8>> {
    let keys = keys();
    let append = plain(Kind::Append);
    match mutant {
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
    }
}

/// The first small case in which the C without the check differs from the model, and the rule of the
/// invariants that some case breaks, if one does.
fn first_difference() -> Option<(String, &'static str)> {
    let mut found = None;
    let mut looked_further = 0;
    let _ = each_case(&mut |registers, call| {
        if found.is_none() {
            found = differs(registers, call).map(|case| (case, "only the model"));
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
    for mutant in Mutant::ALL {
        if let Some(datagram) = forged(mutant) {
            assert!(check(&keys(), &datagram).is_err(), "{mutant:?}");
            let _without = Without::check(mutant);
            assert!(
                check(&keys(), &datagram).is_ok(),
                "{mutant:?} makes no difference"
            );
            println!("killed {mutant:?} by the step's test of forged packets");
            continue;
        }
        let _without = Without::check(mutant);
        let found = first_difference();
        assert!(reached(), "{mutant:?} was never reached");
        let Some((call, rule)) = found else {
            panic!("{mutant:?} makes no difference");
        };
        let call = &call[..call.len().min(60)];
        println!("killed {mutant:?} by the step's exhaustive test ({rule}), first at {call}");
    }
    assert!(Mutant::ALL.len() >= 15);
}

#[test]
fn without_a_mutant_the_second_copy_is_the_first() {
    activate(None);
    assert!(!reached());
    let datagram = signed(&plain(Kind::Append), &keys().cluster);
    assert!(check(&keys(), &datagram).is_ok());
}

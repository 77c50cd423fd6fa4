//! Each safety check left out once: the tests must see it. Which rule a mutant breaks is in README.md.
use crate::exhaustive::Replicas;
use crate::sound::unsound;
use crate::verify::{keys, plain, signed, without_a_key};
use crate::walk::mutants::{is_needed_to_switch_on, is_noticed};
use quorumwire_fastpath::{Keys, Mutant, Without, activate, check, reached, registers_sound};
use quorumwire_wire::packet::{FLAG_EPOCH, Header, Kind, VERSION};

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

/// Cases behind the first difference that are looked at for a rule that is broken.
const LOOKED_FURTHER_MAX: u64 = 200_000;

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
        if is_needed_to_switch_on(mutant, unsound(), registers_sound) {
            println!("killed {name} by the step's test of registers that no host may set");
            continue;
        }
        is_noticed::<Replicas>(mutant, "the step's exhaustive test", LOOKED_FURTHER_MAX);
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

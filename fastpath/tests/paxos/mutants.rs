//! Each safety check left out once: the tests must see it.
use crate::exhaustive::Roles;
use crate::sound::unsound;
use crate::walk::mutants::{is_needed_to_switch_on, is_noticed};
use quorumwire_fastpath::{Mutant, paxos_sound};

#[test]
fn every_check_is_needed() {
    let all = Mutant::ALL.iter().copied();
    let here: Vec<Mutant> = all
        .filter(|mutant| mutant.name().starts_with("paxos_"))
        .collect();
    for mutant in here.iter().copied() {
        if is_needed_to_switch_on(mutant, unsound(), paxos_sound) {
            let name = mutant.name();
            println!("killed {name} by the test of registers that no host may set");
            continue;
        }
        is_noticed::<Roles>(mutant, "the exhaustive test of the roles", u64::MAX);
    }
    assert!(here.len() >= 38, "only {}", here.len());
}

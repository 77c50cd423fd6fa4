//! The plane in the kernel beside the engine in ordinary memory (`differential.rs` of the suite). After every
//! frame and every order of the host, registers, ring and all that left are compared. Needs root.
use crate::twin::Beside;
use crate::veth::Way;
use crate::{Clones, Driver, How, Multicast};
use quorumwire_conformance_tests::differential::{CLIENTS, Came, PORT, Run, corpus};
use quorumwire_conformance_tests::faults::Dice;
use quorumwire_plane_xdp::Attachment;
use std::collections::BTreeMap;

/// Frames, over all runs.
const FRAMES: u64 = 100_000;
/// What must have been reached, or the comparison has shown too little.
const OUTCOMES: &str = include_str!("outcomes.txt");

/// Where, how, slots of the ring, the window, and the share of the frames, out of ten.
const RUNS: [(Way, Attachment, u32, u32, u64); 6] = [
    (Way::V4, Driver::ATTACHMENT, 64, 64, 3),
    (Way::V4, Driver::ATTACHMENT, 8, 6, 1),
    (Way::V4, Clones::ATTACHMENT, 64, 60, 1),
    (Way::V4, Multicast::ATTACHMENT, 16, 16, 1),
    (Way::V6, Driver::ATTACHMENT, 64, 48, 3),
    (Way::V6, Clones::ATTACHMENT, 2, 2, 1),
];

fn beside(way: Way, how: Attachment, run: &Run) -> Beside {
    let ports = [&[PORT], &CLIENTS[..]].concat();
    Beside::new(way, how, run.options(), &ports)
}

/// Runs until so many frames have come; how often each outcome was reached.
pub fn compare(frames: u64) -> BTreeMap<String, u64> {
    let mut dice = Dice::new();
    let mut reached = BTreeMap::new();
    let mut number = 1;
    for (way, how, ring_slots, window, share) in RUNS {
        let run = Run {
            ring_slots,
            window,
            frames: frames * share / 10,
            memcached: true,
        };
        let mut twin = beside(way, how, &run);
        run.go(&mut twin, &mut dice, &mut number, &mut Came::default());
        for ((role, kind, actions, why, said), count) in std::mem::take(&mut twin.reached) {
            let outcome = format!("{role} {kind} {actions} {why}: {said}");
            *reached.entry(outcome).or_insert(0) += count;
        }
    }
    println!("{} terms", number - 1);
    reached
}

#[test]
fn the_kernels_plane_does_what_the_native_one_does() {
    let reached = compare(FRAMES);
    for (outcome, count) in &reached {
        println!("{count:8} {outcome}");
    }
    for wanted in OUTCOMES.lines().filter(|line| !line.starts_with('#')) {
        assert!(reached.contains_key(wanted), "never reached: {wanted}");
    }
}

/// `make differential`, which brings the same frames to the core in gates.
#[test]
#[ignore = "many minutes"]
fn the_kernels_plane_does_what_gates_do() {
    let (mut dice, mut number, mut came) = (Dice::new(), 1, Came::new());
    for run in corpus() {
        let mut beside = beside(Way::V4, Driver::ATTACHMENT, &run);
        run.go(&mut beside, &mut dice, &mut number, &mut came);
    }
    came.end();
}

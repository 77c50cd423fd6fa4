//! Checks that a test build can leave out: the programs', by the numbers of `bpf/mutants.h`, and the host's,
//! by name. Without the feature `mutants` nothing can be left out.

#[cfg(feature = "mutants")]
pub use quorumwire_mutants::mutant;

/// Whether a check of the host is left out: never.
#[cfg(not(feature = "mutants"))]
pub const fn mutant(_name: &'static str) -> bool {
    false
}

/// Names, in the order of the numbers, from 1 on.
#[cfg(feature = "mutants")]
const NAMES: [&str; 34] = [
    "xdp-tag",
    "xdp-checksum",
    "xdp-address",
    "xdp-pieces",
    "xdp-options",
    "xdp-room",
    "xdp-learn-from",
    "xdp-learn-moved",
    "xdp-fit",
    "xdp-epoch",
    "xdp-udp-sum",
    "xdp-quiet",
    "xdp-answered-here",
    "xdp-off",
    "xdp-copies",
    "xdp-wake",
    "xdp-lock",
    "xdp-index-first",
    "xdp-index-last",
    "xdp-still-holds",
    "xdp-datagram-sum",
    "xdp-unsent",
    "xdp-leads",
    "xdp-reads-until",
    "xdp-applied",
    "xdp-sets-until",
    "xdp-amplification",
    "xdp-answer-whole",
    "xdp-vlan",
    "xdp-to-group",
    "xdp-secret",
    "xdp-sets-still",
    "xdp-broken",
    "xdp-held",
];

/// The check that programs loaded now leave out.
#[cfg(feature = "mutants")]
pub fn left_out() -> Option<u32> {
    let mut named = (1..).zip(NAMES);
    named.find_map(|(number, name)| quorumwire_mutants::mutant(name).then_some(number))
}

/// The check that programs loaded now leave out: none.
#[cfg(not(feature = "mutants"))]
pub const fn left_out() -> Option<u32> {
    None
}

//! The C step of the Paxos roles as safe Rust: values in, values out. Nothing is decided here.
use crate::ffi;
use crate::shared::Outcome;
use quorumwire_wire::packet::{Header, PaxosRegisters, PaxosSlot};

/// What a role does about one packet that has passed [`check`](crate::check). `slot` is that of the packet's
/// instance modulo the window, whatever it holds; a coordinator needs none.
#[must_use]
pub fn paxos_step(
    registers: &mut PaxosRegisters,
    slot: &mut PaxosSlot,
    header: &Header,
) -> Outcome {
    let mut outcome = Outcome::default();
    ffi::paxos_step(registers, slot, header, &mut outcome);
    outcome
}

/// Instances up to this one are forgotten; `false` if there can be no such instance.
#[must_use]
pub fn paxos_trim(registers: &mut PaxosRegisters, upto: u64) -> bool {
    ffi::paxos_trim(registers, upto) != 0
}

/// Whether a role may be switched on with these registers.
#[must_use]
pub fn paxos_sound(registers: &PaxosRegisters) -> bool {
    ffi::paxos_sound(registers) != 0
}

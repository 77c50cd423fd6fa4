//! Calls into the C of `include/`, each behind a safe function. The only file of this crate with unsafe
//! code; what the values mean stands in `step.rs`.
#![allow(unsafe_code)]
use crate::shared::{Gap, MEMCACHED_ANSWER_BYTES, MemcachedSet as Set, Outcome};
use crate::step::{Keys, SipKey, TagKey};
use crate::store::{MEMCACHED_COMMAND_HEAD_BYTES, MEMCACHED_KEY_BYTES_MAX};
use quorumwire_wire::packet::{
    HEADER_BYTES, Header, PAYLOAD_BYTES_MAX, PaxosRegisters, PaxosSlot, Registers,
};

/// Declares one copy of the compiled C.
macro_rules! copy {
    ($module:ident, $($function:ident = $symbol:literal ($($argument:ty),*) $(-> $result:ty)?;)*) => {
        mod $module {
            use super::{
                Gap, Header, Keys, Outcome, PaxosRegisters, PaxosSlot, Registers, Set, SipKey, TagKey,
            };
            unsafe extern "C" {
                $(
                    #[link_name = $symbol]
                    pub fn $function($(_: $argument),*) $(-> $result)?;
                )*
            }
        }
    };
}

copy! { real,
    step = "qw_real_step" (*mut Registers, *const Header, *mut Outcome);
    submit = "qw_real_submit" (*mut Registers, *const Header, *mut Outcome);
    persisted = "qw_real_persisted" (*mut Registers, u64, *mut Outcome);
    heartbeat = "qw_real_heartbeat" (*mut Registers, u64, *mut Outcome);
    gap_after = "qw_real_gap_after" (*mut Gap, *const Header, *const Outcome) -> i32;
    release = "qw_real_release" (*mut Registers, u64) -> i32;
    for_hosts_only = "qw_real_for_hosts_only" (*const Header) -> i32;
    registers_sound = "qw_real_registers_sound" (*const Registers) -> i32;
    check_form = "qw_real_check_form" (*const u8, u32, *mut Header) -> i32;
    check_tag = "qw_real_check_tag" (*const Keys, *const Header, *const u8, *const u8) -> i32;
    tag = "qw_real_tag" (*const TagKey, *const u8, *const u8, u32) -> u64;
    tag_key_make = "qw_real_tag_key_make" (*mut TagKey, *const SipKey) -> ();
    siphash = "qw_real_siphash" (*const SipKey, *const u8, u32) -> u64;
    encode = "qw_real_encode" (*const Header, *mut u8);
    memcached_read = "qw_real_memcached_read" (*const u8, u32, *mut Set) -> i32;
    memcached_command_head = "qw_real_memcached_command_head" (*const Set, *mut u8);
    memcached_stored = "qw_real_memcached_stored" (u16, *mut u8);
    recent_place = "qw_real_recent_place" (*const u8, u32) -> u32;
    paxos_step = "qw_real_paxos_step" (*mut PaxosRegisters, *mut PaxosSlot, *const Header, *mut Outcome);
    paxos_trim = "qw_real_paxos_trim" (*mut PaxosRegisters, u64) -> i32;
    paxos_sound = "qw_real_paxos_sound" (*const PaxosRegisters) -> i32;
}

#[cfg(feature = "mutants")]
copy! { mutated,
    step = "qw_mutated_step" (*mut Registers, *const Header, *mut Outcome);
    submit = "qw_mutated_submit" (*mut Registers, *const Header, *mut Outcome);
    persisted = "qw_mutated_persisted" (*mut Registers, u64, *mut Outcome);
    heartbeat = "qw_mutated_heartbeat" (*mut Registers, u64, *mut Outcome);
    gap_after = "qw_mutated_gap_after" (*mut Gap, *const Header, *const Outcome) -> i32;
    release = "qw_mutated_release" (*mut Registers, u64) -> i32;
    for_hosts_only = "qw_mutated_for_hosts_only" (*const Header) -> i32;
    registers_sound = "qw_mutated_registers_sound" (*const Registers) -> i32;
    check_form = "qw_mutated_check_form" (*const u8, u32, *mut Header) -> i32;
    check_tag = "qw_mutated_check_tag" (*const Keys, *const Header, *const u8, *const u8) -> i32;
    tag = "qw_mutated_tag" (*const TagKey, *const u8, *const u8, u32) -> u64;
    tag_key_make = "qw_mutated_tag_key_make" (*mut TagKey, *const SipKey) -> ();
    siphash = "qw_mutated_siphash" (*const SipKey, *const u8, u32) -> u64;
    encode = "qw_mutated_encode" (*const Header, *mut u8);
    memcached_read = "qw_mutated_memcached_read" (*const u8, u32, *mut Set) -> i32;
    memcached_command_head = "qw_mutated_memcached_command_head" (*const Set, *mut u8);
    memcached_stored = "qw_mutated_memcached_stored" (u16, *mut u8);
    recent_place = "qw_mutated_recent_place" (*const u8, u32) -> u32;
    paxos_step = "qw_mutated_paxos_step" (*mut PaxosRegisters, *mut PaxosSlot, *const Header, *mut Outcome);
    paxos_trim = "qw_mutated_paxos_trim" (*mut PaxosRegisters, u64) -> i32;
    paxos_sound = "qw_mutated_paxos_sound" (*const PaxosRegisters) -> i32;
}

#[cfg(feature = "mutants")]
unsafe extern "C" {
    fn qw_mutant_set(mutant: i32);
    fn qw_mutant_was_reached() -> i32;
}

/// Calls the copy that is to be tested: the real one, unless a mutant is active on this thread.
macro_rules! call {
    ($function:ident($($argument:expr),*)) => {{
        #[cfg(feature = "mutants")]
        if crate::mutants::any_active() {
            // SAFETY: as for the real copy below; both have the same signature.
            return unsafe { mutated::$function($($argument),*) };
        }
        // SAFETY: the pointers come from references and slices that live through the call and have the
        // sizes that the C relies on, as each caller shows; the C keeps none of them.
        unsafe { real::$function($($argument),*) }
    }};
}

pub fn step(registers: &mut Registers, header: &Header, outcome: &mut Outcome) {
    call!(step(registers, header, outcome));
}

pub fn submit(registers: &mut Registers, header: &Header, outcome: &mut Outcome) {
    call!(submit(registers, header, outcome));
}

pub fn persisted(registers: &mut Registers, upto: u64, outcome: &mut Outcome) {
    call!(persisted(registers, upto, outcome));
}

pub fn heartbeat(registers: &mut Registers, round: u64, outcome: &mut Outcome) {
    call!(heartbeat(registers, round, outcome));
}

pub fn gap_after(gap: &mut Gap, header: &Header, outcome: &Outcome) -> i32 {
    call!(gap_after(gap, header, outcome))
}

pub fn release(registers: &mut Registers, upto: u64) -> i32 {
    call!(release(registers, upto))
}

pub fn for_hosts_only(header: &Header) -> i32 {
    call!(for_hosts_only(header))
}

pub fn registers_sound(registers: &Registers) -> i32 {
    call!(registers_sound(registers))
}

/// `frame` may be shorter than a header: then the C reads none of it.
pub fn check_form(frame: &[u8], header: &mut Header) -> i32 {
    let bytes = u32::try_from(frame.len()).unwrap_or(u32::MAX);
    call!(check_form(frame.as_ptr(), bytes, header))
}

/// The C reads a whole header, then as many bytes of the payload as the decoded header says.
pub fn check_tag(keys: &Keys, header: &Header, frame: &[u8; HEADER_BYTES], payload: &[u8]) -> i32 {
    assert!(payload.len() == usize::from(header.payload_bytes));
    assert!(payload.len() <= PAYLOAD_BYTES_MAX);
    call!(check_tag(keys, header, frame.as_ptr(), payload.as_ptr()))
}

/// The C reads a whole header up to its tag, then the payload.
pub fn tag(key: &TagKey, header: &[u8; HEADER_BYTES], payload: &[u8]) -> u64 {
    assert!(payload.len() <= PAYLOAD_BYTES_MAX);
    let bytes = u32::try_from(payload.len()).expect("bounded above");
    call!(tag(key, header.as_ptr(), payload.as_ptr(), bytes))
}

pub fn tag_key_make(made: &mut TagKey, secret: &SipKey) {
    call!(tag_key_make(made, secret));
}

pub fn siphash(key: &SipKey, message: &[u8]) -> u64 {
    assert!(message.len() <= PAYLOAD_BYTES_MAX);
    let bytes = u32::try_from(message.len()).expect("bounded above");
    call!(siphash(key, message.as_ptr(), bytes))
}

pub fn encode(header: &Header, bytes: &mut [u8; HEADER_BYTES]) {
    call!(encode(header, bytes.as_mut_ptr()));
}

/// The C reads no more than the datagram has.
pub fn memcached_read(datagram: &[u8], set: &mut Set) -> i32 {
    let bytes = u32::try_from(datagram.len()).unwrap_or(u32::MAX);
    call!(memcached_read(datagram.as_ptr(), bytes, set))
}

pub fn memcached_command_head(set: &Set, bytes: &mut [u8; MEMCACHED_COMMAND_HEAD_BYTES]) {
    call!(memcached_command_head(set, bytes.as_mut_ptr()));
}

pub fn memcached_stored(request: u16, bytes: &mut [u8; MEMCACHED_ANSWER_BYTES]) {
    call!(memcached_stored(request, bytes.as_mut_ptr()));
}

/// `key` is at most 250 bytes long: there is room for it where the C puts it.
pub fn recent_place(key: &[u8]) -> u32 {
    let bytes = u32::try_from(key.len()).unwrap_or(u32::MAX);
    assert!(key.len() <= MEMCACHED_KEY_BYTES_MAX);
    call!(recent_place(key.as_ptr(), bytes))
}

pub fn paxos_step(
    registers: &mut PaxosRegisters,
    slot: &mut PaxosSlot,
    header: &Header,
    outcome: &mut Outcome,
) {
    call!(paxos_step(registers, slot, header, outcome));
}

pub fn paxos_trim(registers: &mut PaxosRegisters, upto: u64) -> i32 {
    call!(paxos_trim(registers, upto))
}

pub fn paxos_sound(registers: &PaxosRegisters) -> i32 {
    call!(paxos_sound(registers))
}

#[cfg(feature = "mutants")]
pub fn mutant_set(mutant: i32) {
    // SAFETY: writes two numbers of this thread.
    unsafe { qw_mutant_set(mutant) }
}

#[cfg(feature = "mutants")]
pub fn mutant_was_reached() -> bool {
    // SAFETY: reads a number of this thread.
    unsafe { qw_mutant_was_reached() != 0 }
}

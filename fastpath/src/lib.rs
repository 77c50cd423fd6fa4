//! The common case. `include/` holds the step in freestanding C, which every plane compiles; this crate
//! calls it and wraps the plane in ordinary memory around it. No I/O, clock or randomness.
mod client_packets;
#[allow(clippy::pedantic)]
#[rustfmt::skip]
#[path = "generated/checks.rs"]
mod checks;
mod counters;
mod endpoint;
mod engine;
mod ffi;
mod memcached;
mod mutants;
mod paxos;
mod paxos_counters;
mod paxos_engine;
mod paxos_store;
mod recent;
mod register_store;
mod ring;
/// What the C and its callers share in memory, as generated.
#[allow(clippy::pedantic)]
#[rustfmt::skip]
#[path = "generated/shared.rs"]
pub mod shared;
mod signing;
mod slot;
mod step;
/// What planes have to know of the key-value store, as generated.
#[allow(clippy::pedantic)]
#[rustfmt::skip]
#[path = "generated/store.rs"]
pub mod store;

pub use checks::Mutant;
pub use client_packets::{
    ClientPackets, PIECE_BYTES_MAX, PacketAnswer, REQUEST_BYTES_MAX, Request,
};
pub use counters::{Counters, ReasonCounters};
pub use endpoint::{address_of, address_of_peer, endpoint_at};
pub use engine::{Engine, Options, Outbox, Sink, shown, window_max};
pub use memcached::{MemcachedSet, memcached_set, memcached_stored};
#[cfg(feature = "mutants")]
pub use mutants::{Without, activate, reached};
pub use paxos::{paxos_sound, paxos_step, paxos_trim};
pub use paxos_counters::{PaxosCounters, PaxosReasonCounters};
pub use paxos_engine::{PaxosEngine, PaxosEvent, PaxosOptions, PaxosSink};
pub use paxos_store::{PaxosMemory, PaxosStepped, PaxosStore, Surroundings};
pub use recent::{RECENT_OFFERS_TO_REPLACE, recent_place};
pub use register_store::{Memory, RegisterStore};
pub use ring::{EntryHead, RING_SLOTS_MAX, ReplyAddress};
pub use shared::{Gap, Outcome, RECENT_PLACES, RECENT_TEXT_BYTES_MAX};
pub use step::{
    KeyPair, Keys, Question, SIPHASH_BYTES_MAX, SipKey, TagKey, check, encode, gap_after,
    heartbeat, persisted, registers_sound, release, siphash, step, submit, tag,
};

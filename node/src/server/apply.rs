//! What an entry of the log does to the state machine. The same in a running server and in a folder that
//! is read without one.
use super::core::Application;
use quorumwire_interfaces::{Index, LogTime};
use quorumwire_sessions::{Outcome, Place, Refusal};
use quorumwire_wire::{RecordKind, Tick};

/// A command of an entry, or an entry that is none. Only [`commands_of`] makes one, so nothing is applied that
/// was not split.
#[derive(Clone, Copy)]
pub struct Split<'a> {
    kind: RecordKind,
    payload: &'a [u8],
}

impl<'a> Split<'a> {
    pub const fn payload(self) -> &'a [u8] {
        self.payload
    }
}

/// What an entry is applied as, one after the other: the commands that it bundles, or itself.
pub fn commands_of(kind: RecordKind, payload: &[u8]) -> impl Iterator<Item = Split<'_>> {
    quorumwire_wire::commands_of(kind, payload).map(|(kind, payload)| Split { kind, payload })
}

/// Applies what stands at this index; what its client is told is appended to `reply`.
pub fn apply(
    store: &mut Application,
    (index, log_time): (Index, &mut LogTime),
    Split { kind, payload }: Split<'_>,
    reply: &mut Vec<u8>,
) -> Outcome {
    let place = Place {
        index,
        log_time: *log_time,
    };
    match kind {
        RecordKind::Command => {
            store.command(place, payload, reply);
            Outcome::Applied
        }
        RecordKind::SessionCommand => store.in_session(place, payload, reply),
        RecordKind::Fragment => store.fragment(place, payload, reply),
        RecordKind::Tick => {
            if let Some(tick) = Tick::decode(payload) {
                *log_time = (*log_time).max(LogTime(tick.log_time_ms));
                store.set_ahead(tick.ahead_ms(log_time.0));
                store.advance(*log_time);
            }
            Outcome::Applied
        }
        // One that could not be split: the leader that made it is at fault.
        RecordKind::Bundle => Outcome::Refused(Refusal::Malformed),
        RecordKind::NoOp
        | RecordKind::Membership
        | RecordKind::HardState
        | RecordKind::Durable
        | RecordKind::Base => Outcome::Applied,
    }
}

//! What an entry of the log does to the state machine. The same in a running server and in a folder that
//! is read without one.
use super::core::Application;
use quorumwire_interfaces::{Index, LogTime};
use quorumwire_sessions::{Outcome, Place, Refusal};
use quorumwire_wire::RecordKind;

/// Applies an entry, or a command of one; what its client is told is appended to `reply`.
pub fn apply(
    store: &mut Application,
    log_time: &mut LogTime,
    (index, kind, payload): (Index, RecordKind, &[u8]),
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
            if let Some(time) = payload.first_chunk::<8>() {
                *log_time = (*log_time).max(LogTime(u64::from_be_bytes(*time)));
                store.advance(*log_time);
            }
            Outcome::Applied
        }
        // One that is none: the leader that made it is at fault.
        RecordKind::Bundle => Outcome::Refused(Refusal::Malformed),
        RecordKind::NoOp
        | RecordKind::Membership
        | RecordKind::HardState
        | RecordKind::Durable
        | RecordKind::Base => Outcome::Applied,
    }
}

//! How a process serves clients that asked its plane, as the node does: what the plane could not take, and
//! what was applied.
#![allow(clippy::similar_names)] // a machine's `place` and its `plane`
use crate::machine::Origin;
use crate::world::World;
use quorumwire_group::AppliedCommand;
use quorumwire_interfaces::Index;
use quorumwire_sessions::Outcome;
use quorumwire_wire::RecordKind;

impl World {
    /// Judges and counts what became of a command with a session, or of a piece of one.
    pub fn note_session(
        &mut self,
        index: Index,
        applied: &AppliedCommand<'_, Origin>,
        first: bool,
    ) {
        let (payload, outcome) = (applied.command.payload(), applied.outcome);
        let number = |at: usize| {
            let bytes = payload.get(at..).and_then(|rest| rest.first_chunk::<8>());
            bytes.map_or(0, |bytes| u64::from_be_bytes(*bytes))
        };
        if outcome == Outcome::Applied {
            let at = (index, applied.position);
            self.checks.runs((number(0), number(8)), at);
        }
        if !first {
            return;
        }
        match outcome {
            Outcome::Applied if applied.command.kind() == RecordKind::Fragment => {
                self.counts.see("fragments assembled");
            }
            Outcome::Applied => self.counts.see("session command applied"),
            Outcome::Repeated => self.counts.see("session command repeated"),
            Outcome::Incomplete => self.counts.see("fragment kept"),
            Outcome::Refused(_) => self.counts.see("session refused"),
            Outcome::AnswerTooLong => {} // the store has none
        }
    }
}

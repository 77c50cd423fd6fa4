//! How a process serves clients that asked its plane, as the node does: what the plane could not take, and
//! what was applied.
#![allow(clippy::similar_names)] // a machine's `place` and its `plane`
use crate::clients::Fate;
use crate::machine::Origin;
use crate::plane::tell_lineage;
use crate::world::World;
use quorumwire_group::{Applied, Submitted};
use quorumwire_interfaces::{Answer, Index, Reason};
use quorumwire_sessions::{Outcome, SESSION_HEADER_BYTES};
use quorumwire_wire::RecordKind;

impl World {
    /// Takes on what came to a plane that could not take it itself.
    pub fn take_plane_requests(&mut self, place: usize) {
        let Some(process) = &mut self.machines[place].process else {
            return;
        };
        let Some(plane) = &mut process.group.plane else {
            return;
        };
        let told = tell_lineage(plane, process.group.replica.was_listed());
        let requests = std::mem::take(&mut plane.brought.requests);
        self.counts.see_many("lineage told", told);
        for request in requests {
            self.counts.see("plane left a request to software");
            let submitted = self.drive(place, |group| group.take_plane_request(&request));
            let refused = match submitted {
                None | Some(Submitted::Pending) => continue,
                Some(Submitted::NoRoom) => Reason::Busy,
                Some(Submitted::Refused(reason)) => reason,
            };
            self.refuse_plane_client(place, Origin::Plane(request.client), Index(0), refused);
        }
        self.launch(place);
    }

    /// It never reached a log.
    pub fn refuse_submission(&mut self, place: usize, origin: Origin) {
        match origin {
            Origin::Operation(operation) => self.refuse(place, operation),
            Origin::Follower(from) => {
                self.drive(place, |group| {
                    let reason = group.why_not_submitted();
                    group.refuse_follower(from, reason);
                });
            }
            Origin::Plane(..) => {
                self.refuse_plane_client(place, origin, Index(0), Reason::NotCommitted);
            }
        }
    }

    /// Tells a client that asked a plane what became of it.
    pub fn tell_plane_client(
        &mut self,
        place: usize,
        origin: Origin,
        (index, payload): (Index, &[u8]),
        fate: Fate,
    ) {
        let reply = std::mem::take(&mut self.reply);
        match fate {
            Fate::NotDone => {
                self.refuse_plane_client(place, origin, Index(0), Reason::NotCommitted);
            }
            Fate::Unknown => {
                self.refuse_plane_client(place, origin, Index(0), Reason::OutcomeUnknown);
            }
            Fate::Applied(Outcome::Incomplete) => {
                let payload = payload.get(SESSION_HEADER_BYTES..);
                if let Some(number) = payload.and_then(|rest| rest.first_chunk::<4>()) {
                    self.answer_plane(place, origin, index, (None, true), number);
                }
            }
            Fate::Applied(Outcome::Refused(refusal)) => {
                self.refuse_plane_client(place, origin, index, refusal.reason());
            }
            Fate::Applied(Outcome::AnswerTooLong) => {
                self.refuse_plane_client(place, origin, index, Reason::AnswerTooLong);
            }
            Fate::Applied(outcome @ (Outcome::Applied | Outcome::Repeated)) => {
                if outcome == Outcome::Repeated {
                    self.counts.see("repeated, answered from the session");
                }
                self.answer_plane(place, origin, index, (None, false), &reply);
            }
        }
        self.reply = reply;
        self.launch(place);
    }

    fn refuse_plane_client(&mut self, place: usize, origin: Origin, index: Index, why: Reason) {
        self.answer_plane(place, origin, index, (Some(why), false), &[]);
    }

    fn answer_plane(
        &mut self,
        place: usize,
        origin: Origin,
        index: Index,
        (refused, fragment): (Option<Reason>, bool),
        payload: &[u8],
    ) {
        let Origin::Plane(client) = origin else {
            return;
        };
        if let Some(plane) = self.machines[place].plane_mut() {
            let answer = Answer {
                to: client.from,
                session: client.session,
                sequence: client.sequence,
                index,
                refused,
                fragment,
                payload,
            };
            let fits = plane.answer(&answer).is_ok();
            self.checks
                .require(fits, || "I6: an answer fits no packet".to_owned());
        }
    }

    /// Judges and counts what became of a command with a session, or of a piece of one.
    pub fn note_session(&mut self, index: Index, applied: &Applied<'_, Origin>, first: bool) {
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

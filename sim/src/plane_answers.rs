//! How a process serves clients that asked its plane, as the node does: what the plane could not take, and
//! what was applied.
#![allow(clippy::similar_names)] // a machine's `place` and its `plane`
use crate::clients::Fate;
use crate::machine::{Origin, Process, Proposal};
use crate::turn::Applying;
use crate::world::World;
use quorumwire_control::{Refusal, Role, put_payload, record_kind};
use quorumwire_group::Request;
use quorumwire_interfaces::{Answer, Command, Index, Reason};
use quorumwire_sessions::{Outcome, Place, SESSION_HEADER_BYTES};
use quorumwire_wire::RecordKind;

impl World {
    /// Takes on what came to a plane that could not take it itself.
    pub fn take_plane_requests(&mut self, place: usize) {
        let Some(process) = &mut self.machines[place].process else {
            return;
        };
        let Some(plane) = &mut process.plane else {
            return;
        };
        let told = plane.tell_lineage(process.replica.was_listed());
        self.counts.see_many("lineage told", told);
        for request in std::mem::take(&mut plane.log.brought.requests) {
            self.counts.see("plane left a request to software");
            let origin = Origin::Plane(request.from, request.session, request.sequence);
            if let Some(reason) = self.refuses_plane_request(place, &request, origin) {
                self.refuse_plane_client(place, origin, Index(0), reason);
            }
        }
        self.launch(place);
    }

    /// Puts a request on its way, or says why not.
    fn refuses_plane_request(
        &mut self,
        place: usize,
        request: &Request,
        origin: Origin,
    ) -> Option<Reason> {
        let clock = self.machines[place].clock(self.now);
        self.begin_term(place);
        let process = self.machines[place].process.as_mut()?;
        if process.replica.role() != Role::Leader {
            return Some(Reason::NotLeader);
        }
        if process.journal.full {
            return Some(Reason::DiskFull);
        }
        if process.leads_fast_term() {
            let plane = process.plane.as_mut().map(|plane| &mut plane.log);
            let Some(plane) = plane.filter(|plane| plane.has_room(request.payload.len())) else {
                return Some(Reason::Busy);
            };
            plane.enqueue_request(request, origin, clock);
            return None;
        }
        self.tick_before_write(place, clock);
        let process = self.machines[place].process.as_mut()?;
        let command = Command {
            kind: request.kind,
            session: request.session,
            sequence: request.sequence,
            payload: &request.payload,
        };
        let put = |bytes: &mut bytes::BytesMut| put_payload(bytes, &command);
        match process.replica.propose(record_kind(&command), put) {
            Ok((index, term)) => {
                process.proposals.insert(Proposal {
                    index,
                    position: 0,
                    term,
                    origin,
                    at: clock,
                });
                None
            }
            Err(Refusal::NotLeader { .. }) => Some(Reason::NotLeader),
            Err(
                Refusal::Busy { .. }
                | Refusal::Transferring
                | Refusal::FastTerm
                | Refusal::ChangeInProgress
                | Refusal::Invalid(_)
                | Refusal::TimedOut,
            ) => Some(Reason::Busy),
        }
    }

    /// It never reached a log.
    pub fn refuse_submission(&mut self, place: usize, origin: Origin) {
        match origin {
            Origin::Operation(operation) => self.refuse(place, operation),
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
        command: &Applying<'_>,
        fate: Fate,
    ) {
        let reply = std::mem::take(&mut self.reply);
        let index = command.index;
        match fate {
            Fate::NotDone => {
                self.refuse_plane_client(place, origin, Index(0), Reason::NotCommitted);
            }
            Fate::Unknown => {
                self.refuse_plane_client(place, origin, Index(0), Reason::OutcomeUnknown);
            }
            Fate::Applied(Outcome::Incomplete) => {
                let payload = command.payload.get(SESSION_HEADER_BYTES..);
                if let Some(number) = payload.and_then(|rest| rest.first_chunk::<4>()) {
                    self.answer_plane(place, origin, index, (None, true), number);
                }
            }
            Fate::Applied(Outcome::Refused(refusal)) => {
                self.refuse_plane_client(place, origin, index, refusal.reason());
            }
            Fate::Applied(outcome) => {
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
        let Origin::Plane(to, session, sequence) = origin else {
            return;
        };
        if let Some(plane) = self.machines[place].plane_mut() {
            let answer = Answer {
                to,
                session,
                sequence,
                index,
                refused,
                fragment,
                payload,
            };
            let fits = plane.log.answer(&answer).is_ok();
            self.checks
                .require(fits, || "I6: an answer fits no packet".to_owned());
        }
    }

    /// Judges and counts what became of a command with a session, or of a piece of one.
    pub fn note_session(&mut self, command: &Applying<'_>, outcome: Outcome, first: bool) {
        let payload = command.payload;
        let number = |at: usize| {
            let bytes = payload.get(at..).and_then(|rest| rest.first_chunk::<8>());
            bytes.map_or(0, |bytes| u64::from_be_bytes(*bytes))
        };
        if outcome == Outcome::Applied {
            let at = (command.index, command.position);
            self.checks.runs((number(0), number(8)), at);
        }
        if !first {
            return;
        }
        match outcome {
            Outcome::Applied if command.kind == RecordKind::Fragment => {
                self.counts.see("fragments assembled");
            }
            Outcome::Applied => self.counts.see("session command applied"),
            Outcome::Repeated => self.counts.see("session command repeated"),
            Outcome::Incomplete => self.counts.see("fragment kept"),
            Outcome::Refused(_) => self.counts.see("session refused"),
        }
    }
}

impl Process {
    /// Where an entry stands.
    #[must_use]
    pub fn place_of(&self, index: Index) -> Place {
        Place {
            index,
            log_time: self.log_time,
        }
    }

    /// Applies a command with a session, or a piece of one.
    pub fn apply_in_session(&mut self, command: &Applying<'_>, reply: &mut Vec<u8>) -> Outcome {
        let place = self.place_of(command.index);
        if command.kind == RecordKind::Fragment {
            return self.store.fragment(place, command.payload, reply);
        }
        if crate::planted::mutant("session-forgets")
            && let Some(command) = command.payload.get(SESSION_HEADER_BYTES..)
        {
            self.store.command(place, command, reply);
            return Outcome::Applied;
        }
        self.store.in_session(place, command.payload, reply)
    }
}

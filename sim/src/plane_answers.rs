//! How a process serves clients that asked its plane, as the node does: what the plane could not take, and
//! what was applied.
#![allow(clippy::similar_names)] // a machine's `place` and its `plane`
use crate::clients::Fate;
use crate::machine::{Origin, Process, Proposal};
use crate::plane::{PlaneRequest, Submission};
use crate::turn::Applying;
use crate::world::World;
use quorumwire_control::{Refusal, Role, put_payload, record_kind};
use quorumwire_interfaces::{Answer, Command, Index};
use quorumwire_sessions::{Outcome, Place, Refusal as Refused, SESSION_HEADER_BYTES};
use quorumwire_wire::RecordKind;

// The node's words: clients decide by them whether to ask again.
const UNKNOWN: &str = "SERVER_ERROR outcome unknown: leadership moved\r\n";
const NOT_LEADER: &str = "SERVER_ERROR not leader: nothing was changed\r\n";
const NOT_COMMITTED: &str = "SERVER_ERROR not executed: another leader took over\r\n";
const BUSY: &str = "SERVER_ERROR busy: too many requests under way\r\n";
const DISK_FULL: &str = "SERVER_ERROR disk full: writes are refused until space returns\r\n";

impl World {
    /// Takes on what came to a plane that could not take it itself.
    pub fn take_plane_requests(&mut self, place: usize) {
        let Some(process) = &mut self.machines[place].process else {
            return;
        };
        let Some(plane) = &mut process.plane else {
            return;
        };
        for request in std::mem::take(&mut plane.requests) {
            self.counts.see("plane left a request to software");
            let origin = Origin::Plane(request.from, request.session, request.sequence);
            if let Some(refusal) = self.refuses_plane_request(place, &request, origin) {
                self.answer_plane(place, origin, Index(0), (true, false), refusal.as_bytes());
            }
        }
        self.launch(place);
    }

    /// Puts a request on its way, or says why not.
    fn refuses_plane_request(
        &mut self,
        place: usize,
        request: &PlaneRequest,
        origin: Origin,
    ) -> Option<&'static str> {
        let clock = self.machines[place].clock(self.now);
        self.begin_term(place);
        let process = self.machines[place].process.as_mut()?;
        if process.replica.role() != Role::Leader {
            return Some(NOT_LEADER);
        }
        if process.journal.full {
            return Some(DISK_FULL);
        }
        if process.leads_fast_term() {
            let plane = process.plane.as_mut().filter(|plane| plane.has_room());
            let Some(plane) = plane else {
                return Some(BUSY);
            };
            plane.waiting.push_back(Submission {
                kind: request.kind,
                payload: request.payload.clone(),
                session: request.session,
                sequence: request.sequence,
                origin,
            });
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
                process.proposals.push(Proposal {
                    index,
                    position: 0,
                    term,
                    origin,
                });
                None
            }
            Err(Refusal::NotLeader { .. }) => Some(NOT_LEADER),
            Err(
                Refusal::Busy { .. }
                | Refusal::Transferring
                | Refusal::FastTerm
                | Refusal::ChangeInProgress
                | Refusal::Invalid(_)
                | Refusal::TimedOut,
            ) => Some(BUSY),
        }
    }

    /// It never reached a log.
    pub fn refuse_submission(&mut self, place: usize, origin: Origin) {
        match origin {
            Origin::Operation(operation) => self.refuse(place, operation),
            Origin::Plane(..) => {
                let text = NOT_COMMITTED.as_bytes();
                self.answer_plane(place, origin, Index(0), (true, false), text);
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
                self.answer_plane(
                    place,
                    origin,
                    Index(0),
                    (true, false),
                    NOT_COMMITTED.as_bytes(),
                );
            }
            Fate::Unknown => {
                self.answer_plane(place, origin, Index(0), (true, false), UNKNOWN.as_bytes());
            }
            Fate::Applied(Outcome::Incomplete) => {
                let payload = command.payload.get(SESSION_HEADER_BYTES..);
                if let Some(number) = payload.and_then(|rest| rest.first_chunk::<4>()) {
                    self.answer_plane(place, origin, index, (false, true), number);
                }
            }
            Fate::Applied(Outcome::Refused(refusal)) => {
                let text = match refusal {
                    Refused::AnswerGone => format!("SERVER_ERROR {refusal}\r\n"),
                    Refused::Malformed
                    | Refused::TooOld
                    | Refused::UnknownSession
                    | Refused::TooManySessions => {
                        format!("SERVER_ERROR not executed: {refusal}\r\n")
                    }
                };
                self.answer_plane(place, origin, index, (true, false), text.as_bytes());
            }
            Fate::Applied(outcome) => {
                if outcome == Outcome::Repeated {
                    self.counts.see("repeated, answered from the session");
                }
                self.answer_plane(place, origin, index, (false, false), &reply);
            }
        }
        self.reply = reply;
        self.launch(place);
    }

    fn answer_plane(
        &mut self,
        place: usize,
        origin: Origin,
        index: Index,
        (refused, fragment): (bool, bool),
        payload: &[u8],
    ) {
        let Origin::Plane(to, session, sequence) = origin else {
            return;
        };
        if let Some(plane) = self.machines[place].plane_mut() {
            plane.answer(&Answer {
                to,
                session,
                sequence,
                index,
                refused,
                fragment,
                payload,
            });
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

//! A server's turn with its data plane: what has come out of it goes to consensus, what clients want goes
//! in, and consensus starts and stops it.
use super::clients::Said;
use super::core::{Core, Origin};
use super::plane::{Hosting, Plane, Submission};
use super::service::Service;
use super::{Server, alike, answers, clock};
use quorumwire_control::{Engage, Input, LeaveReason};
use quorumwire_group::Submitted;
use quorumwire_interfaces::{Answer, Index, Reason, Registers};

impl<S: Service> Server<S> {
    /// Hands over what clients have asked for in this turn.
    pub fn submit_to_plane(&mut self) {
        let waited = self.core.group.waits_since_fast_term();
        for submission in self.core.group.submit_to_plane() {
            self.refuse_submission(&submission);
        }
        if waited && !self.core.group.waits_since_fast_term() {
            self.clients.attend_all(); // writes have stalled behind these
        }
        self.core.tell_plane_error();
    }

    /// Frees what this turn was done with: at its end, because until the next one a full ring would take
    /// nothing.
    pub fn free_plane(&mut self) {
        let core = &mut self.core;
        if core.group.plane.is_none() {
            return;
        }
        core.group.release_plane();
        S::lend_to_plane(core);
        // At once: in the next turn clients of the plane could have taken the room, turn after turn.
        if core.group.leads_fast_term() {
            core.group.submit_waiting();
        }
        core.tell_plane_error();
    }

    /// It never reached a log.
    pub fn refuse_submission(&mut self, submission: &Submission) {
        let Some(origin) = submission.origin else {
            return;
        };
        let reason = self.core.group.why_not_submitted();
        self.refuse_origin(origin, reason);
    }

    /// Takes the secret file in again.
    pub fn reload_keys(&mut self) {
        let Some((plane, hosting)) = self.core.hosted() else {
            tracing::info!("SIGHUP: there is no secret file to read again");
            return;
        };
        match self.options.load_keys() {
            Ok(keys) => {
                hosting.set_keys(plane, &keys);
                self.links.set_secrets(alike::secrets(&keys));
                self.show_links();
                tracing::info!(in_use = keys.in_use, "the secret file was read again");
            }
            Err(error) => {
                tracing::error!(
                    "the secret file is not used: {error:#}; the keys stay as they were"
                );
            }
        }
    }
}

impl<S: Service> Core<S> {
    /// The plane, and what this server keeps of it.
    pub fn hosted(&mut self) -> Option<(&mut Plane, &mut Hosting)> {
        self.group.plane.as_mut().zip(self.hosting.as_mut())
    }

    /// Takes in what the plane has stored, and shows consensus its registers.
    pub fn poll_plane(&mut self) {
        let Some((plane, hosting)) = self.hosted() else {
            return;
        };
        plane.poll();
        hosting.tell_fault(plane);
        let requests = std::mem::take(&mut plane.brought.requests);
        self.group.take_from_plane();
        if self.group.replica.fast_term().is_some() {
            self.saw_plane();
        }
        self.group.show_registers();
        for request in &requests {
            let submitted = if self.draining {
                Submitted::Refused(Reason::Stopping)
            } else {
                self.group.take_plane_request(request)
            };
            match submitted {
                Submitted::Pending => {}
                Submitted::NoRoom => {
                    self.group.stalled = true;
                    self.refuse_plane_client(Origin::Plane(request.client), Reason::Busy);
                }
                Submitted::Refused(reason) => {
                    self.refuse_plane_client(Origin::Plane(request.client), reason);
                }
            }
        }
        // One that reads an old log for the first time may not have come to the lineage yet.
        let was_listed = self.group.replica.was_listed();
        if let Some((plane, hosting)) = self.hosted() {
            hosting.tell_lineage(plane, was_listed);
        }
    }

    /// What the plane has told came before this moment: a voter's promise to a leader counts from after
    /// the plane heard it, because the leader may count on it from then on.
    fn saw_plane(&mut self) {
        self.group.now = self.group.now.max(clock::now());
    }

    /// Consensus wants the plane to run.
    pub fn engage_plane(&mut self, engage: &Engage) {
        let term = engage.term;
        let may = self.begin_term_key(engage);
        let engaged = match self.hosted() {
            Some((plane, hosting)) => may && hosting.engage(plane, engage),
            None => false,
        };
        if !engaged {
            self.end_term_key();
        }
        if engaged {
            tracing::info!(
                group = self.group.id.0,
                term = term.0,
                behind = engage.last_index.0,
                leads = engage.me == engage.leader,
                "data plane engaged"
            );
        }
        self.group.step(Input::Engaged { term, engaged });
    }

    /// Consensus wants the plane to stop: everything it has is taken first.
    pub fn disengage_plane(&mut self, reason: LeaveReason) {
        self.end_term_key();
        let registers = match &mut self.group.plane {
            Some(plane) => plane.disengage(),
            None => Registers::default(),
        };
        tracing::info!(
            group = self.group.id.0,
            term = registers.term.0,
            last_index = registers.last_index.0,
            reason = reason.name(),
            "data plane disengaged"
        );
        self.saw_plane();
        self.group.plane_stopped(registers);
    }

    fn refuse_plane_client(&mut self, origin: Origin, reason: Reason) {
        self.answer_plane(origin, Said::Refused(reason), Index(0), b"");
    }

    /// Answers a client that asked through the plane.
    pub fn answer_plane(&mut self, origin: Origin, said: Said, index: Index, payload: &[u8]) {
        match said {
            Said::Answer | Said::Repeated => {
                self.say_to_plane_client(origin, (None, false), index, payload);
            }
            Said::Refused(reason) => {
                let text = answers::text(reason, payload);
                self.say_to_plane_client(origin, (Some(reason), false), index, &text);
            }
        }
    }

    /// Tells a client that asked through the plane that a piece of its command is in the log, and others
    /// are missing.
    pub fn acknowledge_piece(&mut self, origin: Origin, index: Index, number: [u8; 4]) {
        self.say_to_plane_client(origin, (None, true), index, &number);
    }

    fn say_to_plane_client(
        &mut self,
        origin: Origin,
        (refused, fragment): (Option<Reason>, bool),
        index: Index,
        payload: &[u8],
    ) {
        let Origin::Plane(client) = origin else {
            return;
        };
        if let Some(plane) = &mut self.group.plane {
            let answer = Answer {
                to: client.from,
                session: client.session,
                sequence: client.sequence,
                index,
                refused,
                fragment,
                payload,
            };
            if plane.answer(&answer).is_err() {
                let too_long = Reason::AnswerTooLong;
                // Whoever hears nothing asks again.
                let _ = plane.answer(&Answer {
                    refused: Some(too_long),
                    payload: &answers::text(too_long, b""),
                    ..answer
                });
            }
        }
    }

    /// Tells people, once, that the plane did not do what it was told.
    pub fn tell_plane_error(&mut self) {
        let Some(error) = self.group.take_plane_error() else {
            return;
        };
        let has_fault = self
            .hosted()
            .is_some_and(|(plane, hosting)| hosting.tell_fault(plane));
        if !has_fault {
            tracing::error!(?error, "the data plane failed");
        }
    }
}

#[cfg(test)]
#[path = "plane_turn_test.rs"]
pub mod tests;

//! A server's turn with its data plane: what has come out of it goes to consensus, what clients want goes
//! in, and consensus starts and stops it.
use super::clients::Said;
use super::core::{Core, Origin, Routed};
use super::plane::{Plane, Submission};
use super::{Server, alike, answers, clock};
use bytes::BytesMut;
use quorumwire_control::{Engage, Input, LeaveReason, put_payload, record_kind};
use quorumwire_group::{Brought, Request};
use quorumwire_interfaces::{Answer, Command, Index, PlaneError, Reason, Registers};
use std::net::SocketAddr;

impl Server {
    /// Hands over what clients have asked for in this turn.
    pub fn submit_to_plane(&mut self) {
        let core = &mut self.core;
        if core.plane.is_none() {
            return;
        }
        if core.leads_fast_term() {
            core.submit_waiting();
        } else if core.waits_since_fast_term() {
            self.submit_to_software();
        }
    }

    /// Frees what this turn was done with: at its end, because until the next one a full ring would take
    /// nothing.
    pub fn free_plane(&mut self) {
        let core = &mut self.core;
        let applied = core.applied;
        let Some(plane) = &mut core.plane else {
            return;
        };
        if let Err(error) = plane.log.release(applied) {
            core.plane_failed(&error);
        }
        core.lend_to_plane();
        // At once: in the next turn clients of the plane could have taken the room, turn after turn.
        if core.leads_fast_term() {
            core.submit_waiting();
        }
    }

    /// The fast term is over: what had not reached the plane goes the ordinary way.
    fn submit_to_software(&mut self) {
        loop {
            let next = self.core.plane.as_mut().and_then(|it| it.log.take_back());
            let Some(submission) = next else {
                self.clients.attend_all(); // writes have stalled behind these
                return;
            };
            if !self.core.leads() {
                self.refuse_submission(&submission);
                continue;
            }
            if let Err(submission) = self.core.propose_submission(submission) {
                if let Some(plane) = &mut self.core.plane {
                    plane.log.put_back(submission);
                }
                return; // there is no room now
            }
        }
    }

    /// It never reached a log.
    pub fn refuse_submission(&mut self, submission: &Submission) {
        let Some(origin) = submission.origin else {
            return;
        };
        if self.core.leads() {
            self.refuse_origin(origin, Reason::Busy);
        } else {
            self.answer_not_executed(origin);
        }
    }

    /// Takes the secret file in again.
    pub fn reload_keys(&mut self) {
        let Some(plane) = &mut self.core.plane else {
            tracing::info!("SIGHUP: there is no secret file to read again");
            return;
        };
        match self.options.load_keys() {
            Ok(keys) => {
                plane.set_keys(&keys);
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

impl Core {
    /// Takes in what the plane has stored, and shows consensus its registers.
    pub fn poll_plane(&mut self) {
        let Some(plane) = &mut self.plane else {
            return;
        };
        plane.log.poll();
        plane.tell_fault();
        self.take_from_plane();
        let requests = match &mut self.plane {
            Some(plane) => std::mem::take(&mut plane.log.brought.requests),
            None => return,
        };
        if self.replica.fast_term().is_some()
            && let Some(registers) = self.plane_registers()
        {
            self.saw_plane();
            self.step(Input::PlaneProgress { registers });
        }
        for request in &requests {
            self.take_plane_request(request);
        }
        // One that reads an old log for the first time may not have come to the lineage yet.
        let was_listed = self.replica.was_listed();
        if let Some(plane) = &mut self.plane {
            plane.tell_lineage(was_listed);
        }
    }

    /// What the plane has told came before this moment: a voter's promise to a leader counts from after
    /// the plane heard it, because the leader may count on it from then on.
    fn saw_plane(&mut self) {
        self.now = self.now.max(clock::now());
    }

    /// Consensus wants the plane to run.
    pub fn engage_plane(&mut self, engage: &Engage) {
        let term = engage.term;
        let may = self.begin_term_key(engage);
        let engaged = match &mut self.plane {
            Some(plane) => may && plane.engage(engage),
            None => false,
        };
        if !engaged {
            self.end_term_key();
        }
        if engaged {
            tracing::info!(
                term = term.0,
                behind = engage.last_index.0,
                leads = engage.me == engage.leader,
                "data plane engaged"
            );
        }
        self.step(Input::Engaged { term, engaged });
    }

    /// Consensus wants the plane to stop: everything it has is taken first.
    pub fn disengage_plane(&mut self, reason: LeaveReason) {
        self.end_term_key();
        let registers = match &mut self.plane {
            Some(plane) => plane.log.disengage(),
            None => Registers::default(),
        };
        tracing::info!(
            term = registers.term.0,
            last_index = registers.last_index.0,
            reason = reason.name(),
            "data plane disengaged"
        );
        self.saw_plane();
        self.take_from_plane();
        self.step(Input::Disengaged { registers });
        self.stalled = true;
    }

    /// Whether writes go to the plane.
    pub fn leads_fast_term(&self) -> bool {
        self.plane.is_some() && self.replica.fast_term().is_some_and(|fast| fast.leading)
    }

    /// Whether something of the plane is left to do although nothing will wake us for it.
    pub fn plane_has_more(&self) -> bool {
        let has_more = |plane: &Plane| plane.log.has_more || plane.log.has_unoffered();
        self.plane.as_ref().is_some_and(has_more)
    }

    /// Whether commands wait that did not reach the plane before it stopped.
    pub fn waits_since_fast_term(&self) -> bool {
        let waits = |plane: &Plane| !plane.log.is_idle();
        !self.leads_fast_term() && self.plane.as_ref().is_some_and(waits)
    }

    /// The plane's registers, if they are of this term. Also while the plane is being stopped: it may have
    /// answered what the log does not hold yet, and later reads must show that.
    pub fn plane_registers(&self) -> Option<Registers> {
        let registers = self.plane.as_ref()?.log.registers();
        (registers.term == self.replica.term()).then_some(registers)
    }

    /// The last index given out, by the plane too.
    pub fn last_index(&self) -> Index {
        let in_plane = self.plane_registers().map_or(Index(0), |it| it.last_index);
        self.replica.last_index().max(in_plane)
    }

    /// Gives consensus what the plane has stored.
    fn take_from_plane(&mut self) {
        let Some(plane) = &mut self.plane else {
            return;
        };
        let Brought {
            records,
            asked,
            requests: _,
            behind,
            questions: _,
        } = &mut plane.log.brought;
        let records = records.split().freeze();
        let (asked, behind) = (std::mem::take(asked), std::mem::take(behind));
        if !records.is_empty() {
            self.step(Input::PlaneEntries(records));
        }
        for asked in asked {
            let origin = Origin::Plane(asked.from, asked.session, asked.sequence);
            self.proposals.insert(asked.proposal(origin, self.now));
        }
        for id in behind {
            self.step(Input::PlaneBehind(id));
        }
    }

    /// A write of a fast term: it leaves at the end of the turn.
    pub fn enqueue(
        &mut self,
        origin: Origin,
        command_bytes: usize,
        encode: impl FnOnce(&mut BytesMut),
    ) -> Routed {
        self.enqueue_named(None, origin, command_bytes, encode)
    }

    /// The same for a command that may have a session and a sequence.
    pub fn enqueue_named(
        &mut self,
        name: Option<(u64, u64)>,
        origin: Origin,
        command_bytes: usize,
        encode: impl FnOnce(&mut BytesMut),
    ) -> Routed {
        self.begin_term();
        if self.journal.is_full() {
            return Routed::refused(Reason::DiskFull);
        }
        if !self
            .plane
            .as_ref()
            .is_some_and(|it| it.log.has_room(command_bytes))
        {
            return self.stall();
        }
        let tick_is_due = self.take_due_tick();
        let now = self.now;
        let command = self.encoded(command_bytes, encode);
        if let Some(plane) = &mut self.plane {
            if tick_is_due {
                plane.log.enqueue_tick(now);
            }
            match name {
                None => plane.log.enqueue(command, origin, now),
                Some(name) => plane.log.enqueue_named(name, command, origin, now),
            }
        }
        Routed::Pending
    }

    /// Whether the plane has taken a memcached client's datagram, which it answers itself.
    pub fn plane_takes_memcached(&mut self, from: SocketAddr, datagram: &[u8]) -> bool {
        if !self.leads_fast_term() || self.draining || self.journal.is_full() {
            return false;
        }
        self.begin_term();
        if !self.stores_every_set() {
            return false; // what is refused must not be answered before
        }
        // What this writes must not be taken for older than something whose time has come.
        self.tick_if_deadline_passed();
        let Some(plane) = &mut self.plane else {
            return false;
        };
        plane.log.take_memcached(from, datagram)
    }

    /// A client's request that came before the plane was engaged, in the fast term that has begun since.
    fn enqueue_request(&mut self, request: &Request, origin: Origin) -> Routed {
        self.begin_term();
        let now = self.now;
        match &mut self.plane {
            _ if self.journal.is_full() => Routed::refused(Reason::DiskFull),
            Some(plane) if plane.log.has_room(request.payload.len()) => {
                plane.log.enqueue_request(request, origin, now);
                Routed::Pending
            }
            Some(_) | None => Routed::refused(Reason::Busy),
        }
    }

    /// Hands waiting commands over to the plane.
    pub fn submit_waiting(&mut self) {
        let term = self.replica.term();
        let tick = self.tick();
        let Some(plane) = &mut self.plane else {
            return;
        };
        let result = plane.log.submit(tick, term, &mut self.proposals);
        let has_room = plane.log.is_idle();
        if let Err(error) = result {
            self.plane_failed(&error);
        }
        self.stalled |= has_room && self.stalled_for_plane;
        self.stalled_for_plane = !has_room;
    }

    /// Puts a tick into the log behind all that waits; its index, if there is room.
    pub fn submit_tick(&mut self) -> Option<Index> {
        let now = self.now;
        self.plane.as_mut()?.log.enqueue_tick(now);
        self.submit_waiting();
        let plane = self.plane.as_ref()?;
        let is_in = plane.log.is_idle();
        is_in.then(|| plane.log.registers().last_index)
    }

    /// A submission that goes into the log of a software term after all; back if there is no room.
    fn propose_submission(&mut self, submission: Submission) -> Result<(), Submission> {
        let tick = self.tick().encode();
        let command = submission.command(tick.as_ref());
        let kind = record_kind(&command);
        let now = self.now;
        match self
            .replica
            .propose(kind, |bytes| put_payload(bytes, &command))
        {
            Ok((index, term)) => {
                self.wants_flush = true;
                self.proposals
                    .extend(submission.proposal((index, 0), term, now));
                Ok(())
            }
            Err(_) => Err(submission),
        }
    }

    /// A client's request that came to a plane which does not lead a fast term.
    fn take_plane_request(&mut self, request: &Request) {
        let (session, sequence) = (request.session, request.sequence);
        let origin = Origin::Plane(request.from, session, sequence);
        let routed = if self.draining {
            Routed::refused(Reason::Stopping)
        } else if self.leads_fast_term() {
            self.enqueue_request(request, origin)
        } else if self.leads() {
            let command = Command {
                kind: request.kind,
                session,
                sequence,
                payload: &request.payload,
            };
            self.propose(record_kind(&command), origin, |bytes| {
                put_payload(bytes, &command);
            })
        } else {
            Routed::refused(Reason::NotLeader)
        };
        match routed {
            Routed::Pending => {}
            Routed::Stalled => self.refuse_plane_client(origin, Reason::Busy),
            Routed::Refused(reason, _) => self.refuse_plane_client(origin, reason),
        }
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
        let Origin::Plane(to, session, sequence) = origin else {
            return;
        };
        if let Some(plane) = &mut self.plane {
            let answer = Answer {
                to,
                session,
                sequence,
                index,
                refused,
                fragment,
                payload,
            };
            if plane.log.answer(&answer).is_err() {
                let too_long = Reason::AnswerTooLong;
                // Whoever hears nothing asks again.
                let _ = plane.log.answer(&Answer {
                    refused: Some(too_long),
                    payload: &answers::text(too_long, b""),
                    ..answer
                });
            }
        }
    }

    /// The plane did not do what it was told.
    pub fn plane_failed(&mut self, error: &PlaneError) {
        if self.replica.fast_term().is_none() {
            return; // it has stopped meanwhile, as it was told
        }
        if !self.plane.as_mut().is_some_and(Plane::tell_fault) {
            tracing::error!(?error, "the data plane failed");
        }
        self.step(Input::PlaneFailed);
    }
}

#[cfg(test)]
#[path = "plane_turn_test.rs"]
pub mod tests;

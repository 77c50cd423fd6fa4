//! What a group does with its data plane: what has come out of it goes to consensus, what clients want goes
//! in.
use crate::group::{Group, SubmitOutcome};
use crate::mutants::mutant;
use crate::plane::{Plane, PlaneOutput, Request, Submission};
use crate::requester::{PlaneClient, Requester};
use bytes::BytesMut;
use quorumwire_control::{Input, put_payload, record_kind};
use quorumwire_interfaces::{
    Answer, Application, Command, DataPlane, Index, PlaneError, Reason, Registers,
};

impl<S: Application, O: Requester, P: DataPlane + ?Sized> Group<S, O, P> {
    /// Gives consensus what the plane has stored.
    pub(crate) fn take_from_plane(&mut self) {
        let Some(plane) = &mut self.plane else {
            return;
        };
        let PlaneOutput {
            records,
            asked,
            requests: _,
            behind,
            questions: _,
        } = &mut plane.brought;
        let records = records.split().freeze();
        let (asked, behind) = (std::mem::take(asked), std::mem::take(behind));
        if !records.is_empty() {
            self.step(Input::PlaneEntries(records));
        }
        for asked in asked {
            self.proposals.insert(asked.proposal(self.now));
        }
        for id in behind {
            self.step(Input::PlaneBehind(id));
        }
    }

    /// A client's request that came to a plane which could not take it.
    pub(crate) fn take_plane_request(&mut self, request: &Request) -> SubmitOutcome {
        if !self.store.inner().takes_clients() {
            return SubmitOutcome::Refused(Reason::Malformed);
        }
        let origin = request.client.into();
        if self.leads_fast_term() {
            return self.enqueue_request(request, origin);
        }
        let command = Command {
            kind: request.kind,
            session: request.client.session,
            sequence: request.client.sequence,
            payload: &request.payload,
        };
        self.propose(record_kind(&command), origin, |bytes| {
            put_payload(bytes, &command);
        })
    }

    /// Answers a client that asked through the plane: what its command answered, which stands at `index`.
    /// False: that fits no packet, and whoever hears nothing asks again.
    pub(crate) fn answer_plane_client(
        &mut self,
        client: PlaneClient,
        index: Index,
        reply: &[u8],
    ) -> bool {
        self.say_to_plane_client(client, index, (None, false), reply)
    }

    /// Tells it why there is no answer, in words also.
    pub(crate) fn refuse_plane_client(
        &mut self,
        client: PlaneClient,
        index: Index,
        (reason, words): (Reason, &[u8]),
    ) {
        self.say_to_plane_client(client, index, (Some(reason), false), words);
    }

    /// Tells it that a piece of its command is in the log, and others are missing.
    pub(crate) fn acknowledge_piece(&mut self, client: PlaneClient, index: Index, number: [u8; 4]) {
        self.say_to_plane_client(client, index, (None, true), &number);
    }

    fn say_to_plane_client(
        &mut self,
        client: PlaneClient,
        index: Index,
        (refused, fragment): (Option<Reason>, bool),
        payload: &[u8],
    ) -> bool {
        let Some(plane) = &mut self.plane else {
            return true; // nor is there a client
        };
        let answer = Answer {
            to: client.from,
            session: client.session,
            sequence: client.sequence,
            index,
            refused,
            fragment,
            payload,
        };
        plane.answer(&answer).is_ok()
    }

    /// The plane has stopped; what it had is taken first.
    pub fn plane_stopped(&mut self, registers: Registers) {
        if !mutant("stopped-plane-not-emptied") {
            self.take_from_plane();
        }
        self.step(Input::Disengaged { registers });
        self.stalled = true;
    }
}

impl<S: Application, O: Requester, P: DataPlane + ?Sized> Group<S, O, P> {
    /// Shows consensus the plane's registers, if it is engaged.
    pub(crate) fn show_registers(&mut self) {
        if self.replica.fast_term().is_some()
            && let Some(registers) = self.plane_registers()
        {
            self.step(Input::PlaneProgress { registers });
        }
    }

    /// Whether writes go to the plane.
    #[must_use]
    pub fn leads_fast_term(&self) -> bool {
        self.plane.is_some() && self.replica.fast_term().is_some_and(|fast| fast.leading)
    }

    /// Whether something of the plane is left to do although nothing will wake us for it.
    #[must_use]
    pub fn plane_has_more(&self) -> bool {
        let has_more = |plane: &Plane<O, P>| plane.has_more || plane.has_unoffered();
        self.plane.as_ref().is_some_and(has_more)
    }

    /// Whether commands wait that did not reach the plane before it stopped. Nothing goes before them: a tick
    /// may be among them that what comes now relies on.
    #[must_use]
    pub fn waits_since_fast_term(&self) -> bool {
        let waits = |plane: &Plane<O, P>| !plane.is_idle();
        !self.leads_fast_term() && self.plane.as_ref().is_some_and(waits)
    }

    /// The plane's registers, if they are of this term. Also while the plane is being stopped: it may have
    /// answered what the log does not hold yet, and later reads must show that.
    #[must_use]
    pub fn plane_registers(&self) -> Option<Registers> {
        let registers = self.plane.as_ref()?.registers();
        (registers.term == self.replica.term()).then_some(registers)
    }

    /// The last index given out, by the plane too.
    #[must_use]
    pub fn last_index(&self) -> Index {
        let in_plane = self.plane_registers().map_or(Index(0), |it| it.last_index);
        self.replica.last_index().max(in_plane)
    }

    /// A write of a fast term, which may have a session and a sequence: it leaves at the end of the turn.
    pub(crate) fn enqueue(
        &mut self,
        name: Option<(u64, u64)>,
        origin: O,
        command_bytes: usize,
        encode: impl FnOnce(&mut BytesMut),
    ) -> SubmitOutcome {
        self.begin_term();
        if self.is_full {
            return SubmitOutcome::Refused(Reason::DiskFull);
        }
        let has_room = |plane: &Plane<O, P>| plane.has_room(command_bytes);
        if !self.plane.as_ref().is_some_and(has_room) {
            return SubmitOutcome::NoRoom;
        }
        let tick_is_due = self.take_due_tick();
        let now = self.now;
        let command = self.encoded(command_bytes, encode);
        if let Some(plane) = &mut self.plane {
            if tick_is_due {
                plane.enqueue_tick(now);
            }
            match name {
                None => plane.enqueue(command, origin, now),
                Some(name) => plane.enqueue_named(name, command, origin, now),
            }
        }
        SubmitOutcome::Pending
    }

    /// A client's request that came before the plane was engaged, in the fast term that has begun since.
    fn enqueue_request(&mut self, request: &Request, origin: O) -> SubmitOutcome {
        self.begin_term();
        let now = self.now;
        match &mut self.plane {
            _ if self.is_full => SubmitOutcome::Refused(Reason::DiskFull),
            Some(plane) if plane.has_room(request.payload.len()) => {
                plane.enqueue_request(request, origin, now);
                SubmitOutcome::Pending
            }
            Some(_) | None => SubmitOutcome::NoRoom,
        }
    }

    /// Hands over what clients have asked for in this turn. Once the fast term is over, what had not reached
    /// the plane goes the ordinary way. Given back: what nobody here may put into a log any more.
    #[must_use]
    pub fn submit_to_plane(&mut self) -> Vec<Submission<O>> {
        if self.leads_fast_term() {
            self.submit_waiting();
        } else if self.waits_since_fast_term() {
            return self.submit_to_software();
        }
        Vec::new()
    }

    /// Hands waiting commands over to the plane.
    pub fn submit_waiting(&mut self) {
        let term = self.replica.term();
        let tick = self.tick();
        let Some(plane) = &mut self.plane else {
            return;
        };
        let result = plane.submit(tick, term, &mut self.proposals);
        let has_room = plane.is_idle();
        if let Err(error) = result {
            self.plane_failed(error);
        }
        self.stalled |= has_room && self.stalled_for_plane;
        self.stalled_for_plane = !has_room;
    }

    /// Puts a tick into the log behind all that waits; its index, if there is room.
    pub(crate) fn submit_tick(&mut self) -> Option<Index> {
        let now = self.now;
        self.plane.as_mut()?.enqueue_tick(now);
        self.submit_waiting();
        let plane = self.plane.as_ref()?;
        plane.is_idle().then(|| plane.registers().last_index)
    }

    fn submit_to_software(&mut self) -> Vec<Submission<O>> {
        let mut refused = Vec::new();
        let next = |group: &mut Self| group.plane.as_mut().and_then(Plane::take_back);
        while let Some(submission) = next(self) {
            if !self.leads() {
                refused.push(submission);
            } else if let Err(submission) = self.propose_submission(submission) {
                if let Some(plane) = &mut self.plane {
                    plane.put_back(submission);
                }
                return refused; // there is no room now
            }
        }
        refused
    }

    /// A submission that goes into the log of a software term after all; back if there is no room. Ticks,
    /// too: what waited behind one counts from it.
    fn propose_submission(&mut self, submission: Submission<O>) -> Result<(), Submission<O>> {
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

    /// Frees what this turn was done with: at its end, because until the next one a full ring would take
    /// nothing.
    pub fn release_plane(&mut self) {
        let applied = self.applied;
        if let Some(Err(error)) = self.plane.as_mut().map(|plane| plane.release(applied)) {
            self.plane_failed(error);
        }
    }

    /// Tells the plane something.
    pub fn plane_does(&mut self, what: impl FnOnce(&mut Plane<O, P>) -> Result<(), PlaneError>) {
        if let Some(Err(error)) = self.plane.as_mut().map(what) {
            self.plane_failed(error);
        }
    }

    /// The plane did not do what it was told.
    fn plane_failed(&mut self, error: PlaneError) {
        if self.replica.fast_term().is_none() {
            return; // it has stopped meanwhile, as it was told
        }
        self.plane_error = Some(error);
        self.step(Input::PlaneFailed);
    }

    /// What the plane did not do since this was asked last.
    pub const fn take_plane_error(&mut self) -> Option<PlaneError> {
        self.plane_error.take()
    }
}

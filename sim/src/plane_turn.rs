//! When a process looks at its data plane, which its group drives, and what datagrams do to planes. A plane
//! goes on while its process stands still, and in some seeds after that was killed.
use crate::fault::{Class, Moment};
use crate::machine::Arrival;
use crate::plane::{CLIENTS_FROM, Plane, has_news};
use crate::queue::{MICROSECOND, MILLISECOND, Nanos};
use crate::world::{Event, World};
use quorumwire_control::{Engage, Input, LeaveReason};
use quorumwire_group as group;
use quorumwire_interfaces::{DataPlane as _, Index, Registers};
use quorumwire_wire::packet::{HEADER_BYTES, Header, Kind};

/// Datagrams that wait in the socket of a process that stands still; more are lost.
const SOCKET_MAX: usize = 256;

impl World {
    /// A datagram reaches a machine.
    pub fn datagram_arrives(&mut self, slot: u32) {
        let datagram = self.datagrams.arrive(slot);
        let machine = datagram.to;
        let now = self.now;
        if let Some(client) = machine.checked_sub(CLIENTS_FROM) {
            self.plane_client_hears(client, &datagram);
            return self.datagrams.done_with(slot, datagram);
        }
        let state = &mut self.machines[machine];
        if state.busy_until > now && !state.plane_goes_on && state.process.is_some() {
            if state.socket.len() < SOCKET_MAX {
                state.socket.push(datagram.clone());
            }
        } else {
            if state.busy_until > now
                && state.plane().is_some_and(|it| it.data_plane().is_engaged())
            {
                self.counts.hit(Class::F24PlaneAlone);
            }
            self.plane_hears(machine, datagram.from, &datagram.bytes, datagram.spoiled);
            self.tell_of_news(machine);
        }
        self.datagrams.done_with(slot, datagram);
    }

    fn plane_hears(&mut self, machine: usize, from: usize, bytes: &[u8], spoiled: bool) {
        let it = &mut self.machines[machine];
        let peer = it.peer;
        let Some(plane) = it.plane_mut().map(Plane::data_plane_mut) else {
            return;
        };
        if plane.failed {
            return;
        }
        let said = bytes.first_chunk::<HEADER_BYTES>().map(Header::decode);
        // A client knows of no term.
        let said = said.filter(|header| header.kind != Kind::Request as u8);
        let old_term = said
            .map(|header| header.term)
            .filter(|term| *term < plane.term().0 && plane.is_engaged());
        // Only what must move nothing is compared, and what may only with a key.
        let needs_key = from < CLIENTS_FROM && plane.is_engaged() && plane.agreed().is_some();
        let before = (spoiled || old_term.is_some() || needs_key).then(|| plane.registers());
        plane.receive(from, bytes);
        let moved = before.is_some_and(|before| before != plane.registers());
        if moved && needs_key {
            self.judge_part(machine);
        }
        if spoiled || old_term.is_some() {
            self.checks.require(!moved, || match old_term {
                Some(term) if !spoiled => {
                    format!("I11: the plane of {peer:?} heeds a datagram of term {term}")
                }
                Some(_) | None => format!("I15: the plane of {peer:?} took a spoiled datagram"),
            });
            if !spoiled {
                self.counts.hit(Class::F26OldTerm);
            }
        }
        self.note_commits(machine);
        self.launch(machine);
    }

    /// Has the process look at its plane soon, if there is something to see.
    pub fn tell_of_news(&mut self, machine: usize) {
        let eager = self.plan.settings.wakes_for_all;
        let delay = self.random.between(1, 60) * MICROSECOND;
        let it = &mut self.machines[machine];
        let run = it.run;
        let Some(process) = &mut it.process else {
            return;
        };
        if let Some(plane) = &mut process.group.plane
            && !plane.data_plane().news_planned
            && has_news(plane, eager)
        {
            plane.data_plane_mut().news_planned = true;
            self.queue
                .set(self.now + delay, Event::PlaneNews(machine, run));
        }
    }

    /// A process was told that its plane has something.
    pub fn plane_news(&mut self, machine: usize) {
        let now = self.now;
        let it = &mut self.machines[machine];
        if let Some(plane) = it.plane_mut() {
            plane.data_plane_mut().news_planned = false;
        }
        if it.busy_until <= now {
            self.turn(machine);
        }
    }

    /// What a plane has sent goes on its way, if it may be said.
    pub fn launch(&mut self, machine: usize) {
        let it = &mut self.machines[machine];
        let Some(plane) = it.plane_mut() else {
            return;
        };
        let outgoing = &mut plane.data_plane_mut().outgoing;
        if outgoing.ends.is_empty() {
            return;
        }
        let mut outgoing = std::mem::take(outgoing);
        let mut start = 0;
        let mut acknowledged = false;
        for (to, end) in &outgoing.ends {
            let bytes = &outgoing.bytes[start..*end];
            start = *end;
            acknowledged |= self.judge(machine, bytes);
            self.send_datagram((machine, *to), bytes);
        }
        outgoing.bytes.clear();
        outgoing.ends.clear();
        if let Some(plane) = self.machines[machine].plane_mut() {
            plane.data_plane_mut().outgoing = outgoing;
        }
        if acknowledged {
            self.reached(machine, Moment::PlaneAcknowledged);
            self.die_if_doomed(machine);
        }
    }

    /// Whether a datagram acknowledges something new, and may.
    fn judge(&mut self, machine: usize, bytes: &[u8]) -> bool {
        let Some(head) = bytes.first_chunk::<HEADER_BYTES>() else {
            return false;
        };
        let header = Header::decode(head);
        if header.kind == Kind::Forward as u8 {
            self.counts.see("request forwarded by a plane");
        }
        if header.kind == Kind::Answer as u8 && header.payload_bytes == 0 && header.flags == 0 {
            let (machines, checks) = (&self.machines, &mut self.checks);
            checks.plane_answers_blind(machines, &machines[machine], &header);
        }
        if !matches!(
            Kind::from_byte(header.kind),
            Some(Kind::AppendOk | Kind::HeartbeatOk)
        ) {
            return false;
        }
        self.counts.plane_acknowledgements += 1;
        let it = &self.machines[machine];
        self.checks.plane_promises(it, &header);
        let Some(plane) = self.machines[machine]
            .plane_mut()
            .map(Plane::data_plane_mut)
        else {
            return false;
        };
        let index = Index(header.index);
        let new = index > plane.acknowledged;
        plane.acknowledged = plane.acknowledged.max(index);
        new
    }

    /// A datagram goes on its way, between planes or between a plane and a client.
    pub fn send_datagram(&mut self, link: (usize, usize), bytes: &[u8]) {
        self.counts.datagrams += 1;
        let among_machines = link.0 < CLIENTS_FROM && link.1 < CLIENTS_FROM;
        if among_machines && link.1 >= self.machines.len() {
            return;
        }
        if among_machines && self.network.is_cut(link) {
            self.counts.hit(Class::F4Partition);
            return;
        }
        if among_machines && self.network.planes_are_apart(link) {
            self.counts.hit(Class::F4PlanesApart);
            return;
        }
        let clogged_until = if among_machines {
            self.network.clogged_until(link)
        } else {
            0
        };
        let earliest = clogged_until.max(self.now);
        let delay = self.plan.settings.delay;
        let fates = self.datagrams.send(
            link,
            bytes,
            (earliest, delay),
            &self.network.weather,
            &mut self.random,
            &mut self.counts,
        );
        for (at, slot) in fates.into_iter().flatten() {
            self.queue.set(at, Event::Datagram(slot));
        }
    }

    /// Takes in what the plane has stored, and shows consensus its registers.
    pub fn poll_plane(&mut self, machine: usize) {
        let waited = std::mem::take(&mut self.machines[machine].socket);
        for datagram in waited {
            self.plane_hears(machine, datagram.from, &datagram.bytes, datagram.spoiled);
        }
        group::poll_plane(&mut self.host(machine));
    }

    /// Judges what the plane did not do, and what it has committed.
    pub fn note_plane(&mut self, machine: usize) {
        let peer = self.machines[machine].peer;
        let Some(process) = &mut self.machines[machine].process else {
            return;
        };
        let problem = process.group.take_plane_error();
        self.checks.require(problem.is_none(), || {
            format!("I14: the plane of {peer:?} is told what it cannot do: {problem:?}")
        });
        self.note_commits(machine);
    }

    /// Counts and judges what the plane has committed, whether its process knows it yet or stands still.
    fn note_commits(&mut self, machine: usize) {
        let Some(process) = &mut self.machines[machine].process else {
            return;
        };
        if !process.group.leads_fast_term() {
            return;
        }
        let Some(plane) = process.group.plane.as_mut().map(Plane::data_plane_mut) else {
            return;
        };
        let registers = plane.registers();
        let before = plane.shown.commit_index.max(plane.start_index);
        let more = registers.commit_index.0.saturating_sub(before.0);
        plane.shown = registers;
        if more > 0 {
            self.counts.see_many("entries committed by planes", more);
            let entry = (registers.commit_index, registers.term);
            let (machines, checks) = (&self.machines, &mut self.checks);
            checks.plane_commits(machines, &machines[machine], entry);
        }
    }

    /// Consensus wants the plane to run.
    pub fn engage_plane(&mut self, machine: usize, engage: &Engage) {
        let has_key = self.begin_key(machine, engage);
        let it = &mut self.machines[machine];
        let refuses = it.plane_refuses_until > self.now;
        let Some(process) = &mut it.process else {
            return;
        };
        let term = engage.term;
        let engaged = process.group.plane.as_mut().is_some_and(|plane| {
            plane.data_plane_mut().refuses = refuses;
            has_key && plane.engage(engage).is_ok()
        });
        if engaged {
            self.judge_part(machine);
        } else {
            self.end_key(machine);
        }
        let leads = engage.me == engage.leader;
        self.step(machine, Input::Engaged { term, engaged });
        if refuses {
            self.counts.hit(Class::F25PlaneRefuses);
        }
        if !engaged {
            return self.counts.see("plane not engaged");
        }
        if leads {
            self.counts.see("fast term begun");
            self.reached(machine, Moment::LeaderEngaged);
        } else {
            self.reached(machine, Moment::VoterEngaged);
        }
    }

    /// Consensus wants the plane to stop. A slow one goes on for a while.
    pub fn stop_plane(&mut self, machine: usize, reason: LeaveReason) {
        self.counts.see(left_word(reason));
        if matches!(
            reason,
            LeaveReason::PlaneFailed | LeaveReason::MembershipChange | LeaveReason::Transfer
        ) {
            self.counts.hit(Class::F28Leaves);
        }
        self.reached(machine, Moment::Leaving);
        self.die_if_doomed(machine);
        self.end_key(machine);
        if self.plan.settings.slow_fence {
            let wait = self.random.between(10, 5_000) * MICROSECOND;
            self.plan_fence(machine, wait);
        } else {
            self.disengage_plane(machine);
        }
    }

    fn plan_fence(&mut self, machine: usize, wait: Nanos) {
        let run = self.machines[machine].run;
        self.queue.set(self.now + wait, Event::Fence(machine, run));
    }

    /// A slow plane stops at last.
    pub fn fence(&mut self, machine: usize) {
        let it = &self.machines[machine];
        if it.busy_until > self.now {
            // Peace may end a long pause early.
            let wait = it.busy_until - self.now;
            return self.plan_fence(machine, wait.min(50 * MILLISECOND));
        }
        self.counts.see("slow plane stopped");
        self.disengage_plane(machine);
        self.turn(machine);
    }

    /// The plane stops, and everything it has is taken first.
    fn disengage_plane(&mut self, machine: usize) {
        let it = &mut self.machines[machine];
        let peer = it.peer;
        let Some(process) = &mut it.process else {
            return;
        };
        let mut registers = Registers::default();
        if let Some(plane) = &mut process.group.plane {
            let said = plane.data_plane().acknowledged;
            registers = plane.disengage();
            let moved = registers
                .last_index
                .0
                .saturating_sub(plane.data_plane().start_index.0);
            self.counts.left_after(moved);
            let covers = registers.last_index >= said && registers.persisted_index >= said;
            self.checks.require(covers, || {
                format!("I11: the plane of {peer:?} acknowledged {said}, its registers do not")
            });
        }
        self.reached(machine, Moment::Left);
        self.die_if_doomed(machine);
        self.drive(machine, |group| group.plane_stopped(registers));
        self.reached(machine, Moment::PlaneTaken);
        // What had not reached the plane goes the ordinary way.
        if self.machines[machine].process.is_some() {
            self.queue.set(
                self.now + MILLISECOND,
                Event::PlaneNews(machine, self.machines[machine].run),
            );
        }
    }

    /// Counts a ring that was full.
    pub fn note_full_ring(&mut self, machine: usize) {
        let plane = self.machines[machine]
            .plane_mut()
            .map(Plane::data_plane_mut);
        if plane.is_some_and(|it| std::mem::take(&mut it.was_full)) {
            self.counts.hit(Class::F30RingFull);
        }
    }

    /// A plane breaks; its process finds out.
    pub fn break_plane(&mut self, machine: usize) {
        let Some(plane) = self.machines[machine]
            .plane_mut()
            .map(Plane::data_plane_mut)
        else {
            return;
        };
        if plane.is_engaged() {
            plane.failed = true;
            self.counts.hit(Class::F25PlaneBreaks);
            self.arrive_later(machine, Arrival::Look);
        }
    }

    /// All planes get the next keys, one after the other.
    pub fn rotate_keys(&mut self, lasts: Nanos) {
        let target = self.key_stage;
        if self.machines.iter().any(|m| m.key_stage != target) {
            return; // the last step is not done yet
        }
        self.hand_keys_to_clients(target);
        self.key_stage += 1;
        self.counts.see("keys replaced");
        for machine in 0..self.machines.len() {
            let at = self.now + self.random.below(lasts.max(1));
            self.queue.set(at, Event::Keys(machine));
        }
    }

    /// A machine reads its secret file again.
    pub fn reload_keys(&mut self, machine: usize) {
        let (seed, stage) = (self.plan.settings.seed, self.key_stage);
        let it = &mut self.machines[machine];
        it.key_stage = stage;
        if let Some(plane) = it.plane_mut() {
            plane.data_plane_mut().use_keys(seed, stage);
        }
    }
}

/// What is counted when a plane stops for this reason.
#[must_use]
pub const fn left_word(reason: LeaveReason) -> &'static str {
    match reason {
        LeaveReason::HigherTerm => "plane left: higher term",
        LeaveReason::LeaderSilent => "plane left: leader silent",
        LeaveReason::Software => "plane left: software",
        LeaveReason::MembershipChange => "plane left: members change",
        LeaveReason::Transfer => "plane left: transfer",
        LeaveReason::TooFewEngaged => "plane left: too few engaged",
        LeaveReason::CommitsStandStill => "plane left: commits stand still",
        LeaveReason::PlaneFailed => "plane left: plane failed",
    }
}

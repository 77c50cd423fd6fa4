//! What a process does with what has arrived: when its group has its turn, and what comes of that.
use crate::fault::Class;
use crate::forwarding::note_heard;
use crate::machine::{Arrival, Group, Process};
use crate::queue::{MILLISECOND, Nanos};
use crate::random::mix;
use crate::world::{Event, World};
use quorumwire_control::{Input, Role};
use quorumwire_group::{self as group, PeerConnection};
use quorumwire_wire::Membership;
use std::time::Duration;

/// How often a process does what it does every now and then, as in the server.
const HOUSEKEEPING_INTERVAL: Nanos = 20 * MILLISECOND;
/// One pause in so many is not noticed by the process that stood still.
const PAUSES_NOT_NOTICED_ONE_IN: u64 = 5;

impl World {
    /// Tells a process something. It looks at once, unless it stands still.
    pub fn arrive(&mut self, machine: usize, arrival: Arrival) {
        let now = self.now;
        let it = &mut self.machines[machine];
        if it.process.is_none() {
            return;
        }
        it.inbox.push_back(arrival);
        if it.busy_until <= now {
            self.turn(machine);
        }
    }

    /// Tells a process something, to be looked at when the turn that it may be in is over.
    pub fn arrive_later(&mut self, machine: usize, arrival: Arrival) {
        let it = &mut self.machines[machine];
        if it.process.is_some() {
            it.inbox.push_back(arrival);
            let run = it.run;
            self.queue.set(self.now, Event::PlaneNews(machine, run));
        }
    }

    /// A turn: first what disk and snapshot threads have done, then what others say, then the time,
    /// then clients; then all that the replica asks for.
    pub fn turn(&mut self, machine: usize) {
        let wall = self.machines[machine].wall(self.now);
        self.drive(machine, |group| group.look_at_wall_clock(wall));
        if let Some(pause) = self.machines[machine].notices_pause(self.now) {
            self.goes_on(machine, pause);
        }
        self.occupy(machine);
        let mut inbox = std::mem::take(&mut self.machines[machine].inbox);
        let many = inbox.len() > 1;
        if many {
            let is_first = |a: &Arrival| matches!(a, Arrival::Log | Arrival::Snapshot(_));
            let (first, rest): (Vec<_>, Vec<_>) = inbox.drain(..).partition(is_first);
            inbox.extend(first);
            inbox.extend(rest);
        }
        let mut last = Vec::new();
        let mut polled = false;
        for arrival in inbox.drain(..) {
            if !polled && !matches!(arrival, Arrival::Log | Arrival::Snapshot(_)) {
                self.poll_plane(machine);
                polled = true;
            }
            match arrival {
                Arrival::Log => self.log_has_news(machine),
                Arrival::Snapshot(event) => self.take_snapshot_event(machine, event),
                Arrival::Up(peer, promise) => {
                    let id = peer.id;
                    let has_plane = self.machines[usize::from(id.0)].has_plane;
                    self.drive(machine, |group| {
                        let connected = PeerConnection {
                            peer,
                            heard: group.now,
                            ..PeerConnection::default()
                        };
                        group.peers.connected.insert(id, connected);
                        group.step(Input::PeerUp(peer, promise));
                    });
                    self.step(machine, Input::PlanePeer { id, has_plane });
                }
                Arrival::Look => {}
                Arrival::Down(peer) => self.peer_is_gone(machine, peer),
                Arrival::Message(from, message) => {
                    self.drive(machine, |group| {
                        note_heard(group, from);
                        group.step(Input::Message { from, message });
                    });
                }
                Arrival::Key(from, message) => self.take_key(machine, from, &message),
                Arrival::PassedOn(from, message) => self.take_passed_on(machine, from, message),
                Arrival::Request(_)
                | Arrival::Flood(_)
                | Arrival::Pipe(..)
                | Arrival::Admin(..)
                | Arrival::TakeSnapshot => last.push(arrival),
            }
        }
        if !polled {
            self.poll_plane(machine);
        }
        let it = &mut self.machines[machine];
        if it.process.is_some() {
            // Its memory is used again; what came during the turn is for the next one.
            inbox.append(&mut it.inbox);
            it.inbox = inbox;
        }
        let clock = it.clock(self.now);
        let is_due = |process: &Process| process.group.replica.next_wake() <= clock;
        if it.process.as_ref().is_some_and(is_due) {
            self.step(machine, Input::Timeout);
        }
        self.look_at_lease(machine);
        for arrival in last {
            match arrival {
                Arrival::Request(operation) => self.serve(machine, operation),
                Arrival::Flood(commands) => self.serve_flood(machine, commands),
                Arrival::Pipe(burst, operations) => self.serve_pipe(machine, burst, operations),
                Arrival::Admin(change, luck) => self.administer(machine, change, luck),
                Arrival::TakeSnapshot => self.take_snapshot(machine),
                Arrival::Log
                | Arrival::Snapshot(_)
                | Arrival::Look
                | Arrival::Up(..)
                | Arrival::Down(_)
                | Arrival::Message(..)
                | Arrival::Key(..)
                | Arrival::PassedOn(..) => {}
            }
        }
        self.end_turn(machine);
        self.served_has_its_turn(machine);
        self.keep_house(machine);
        self.plan_ahead(machine);
    }

    /// A process goes on after it stood still, and mostly knows that it did.
    fn goes_on(&mut self, machine: usize, pause: Duration) {
        let luck = mix(self.plan.settings.seed ^ self.now ^ (machine as u64) << 56);
        if luck.is_multiple_of(PAUSES_NOT_NOTICED_ONE_IN) {
            return self.counts.see("own pause not noticed");
        }
        self.counts.see("own pause noticed");
        self.step(machine, Input::StoodStill(pause));
    }

    /// Whoever may read by its lease now has all that is committed, whether somebody reads or not.
    fn look_at_lease(&mut self, machine: usize) {
        let state = &self.machines[machine];
        let Some(replica) = state.process.as_ref().map(|it| &it.group.replica) else {
            return;
        };
        if let Some(index) = replica.lease_read(state.clock(self.now)) {
            if replica.fast_term().is_some() {
                self.counts.see("lease in a fast term");
            }
            self.checks.may_read(state.peer, index);
        }
    }

    /// Has the group of a process do something, now.
    pub fn drive<T>(&mut self, machine: usize, what: impl FnOnce(&mut Group) -> T) -> Option<T> {
        let clock = self.machines[machine].clock(self.now);
        let process = self.machines[machine].process.as_mut()?;
        process.group.now = clock;
        let first = process.group.outputs.len();
        let done = what(&mut process.group);
        self.observe(machine, first);
        Some(done)
    }

    /// Hands one input to the replica.
    pub fn step(&mut self, machine: usize, input: Input) {
        self.drive(machine, |group| group.step(input));
    }

    fn observe(&mut self, machine: usize, first: usize) {
        self.counts.steps += 1;
        self.checks
            .after_step(&self.machines, machine, first, self.now);
        match self.moves.after_step(&self.machines[machine], first) {
            Ok(true) => self.counts.see("member moved"),
            Ok(false) => {}
            Err(problem) => self.checks.require(false, || problem),
        }
        self.note_plane(machine);
        if let Some(process) = &mut self.machines[machine].process {
            let replica = &process.group.replica;
            process.seen.term = replica.term();
            process.seen.commit_index = replica.commit_index();
            process.seen.led = replica.role() == Role::Leader;
            let begun = process.group.clock.term;
            if std::mem::replace(&mut process.seen.begun, begun) != begun {
                let wall = self.machines[machine].wall(self.now).as_millis();
                let wall_ms = u64::try_from(wall).unwrap_or(0);
                let drift_ppm = self.plan.settings.drift_ppm_max;
                self.lives.term_begins(begun, self.now, wall_ms, drift_ppm);
            }
        }
    }

    /// The log says who the members are.
    pub fn membership_changed(&mut self, machine: usize, membership: &Membership) {
        let state = &mut self.machines[machine];
        let me = state.peer;
        let member = membership.member(me.id);
        if member.is_some_and(|m| m.incarnation == me.incarnation) {
            state.mark.get_or_insert(me.incarnation);
        }
        if let Some(process) = &mut state.process
            && let Some(plane) = &mut process.group.plane
        {
            let lineage = process.group.replica.lineage_in_log();
            plane.data_plane_mut().set_lineage(lineage);
        }
        self.counts.see("membership changed");
        if membership.voters().count() == 1 {
            self.voted_alone.extend(membership.voters().map(|it| it.id));
            self.counts.see("one voter left, or first");
        }
        self.first_entry_made();
    }

    fn end_turn(&mut self, machine: usize) {
        let awaited = |world: &Self| {
            let process = world.machines[machine].process.as_ref();
            process.map(|process| process.group.clock.awaited)
        };
        let before = awaited(self);
        let Ok(()) = group::end_turn(&mut self.host(machine));
        if awaited(self).is_some_and(|now| Some(now) != before) {
            self.counts.see("time awaited");
        }
        self.note_full_ring(machine);
        self.tell_of_news(machine);
    }

    /// What is to be done every now and then.
    /// Whether the application of this process takes commands in this turn.
    fn occupy(&mut self, machine: usize) {
        let it = &mut self.machines[machine];
        let is_occupied = self.now < it.occupied_until;
        if let Some(process) = &mut it.process {
            process.group.store.inner_mut().is_occupied = is_occupied;
            if is_occupied && process.group.has_backlog() {
                self.counts.hit(Class::F31Occupied);
            }
        }
    }

    fn keep_house(&mut self, machine: usize) {
        let now = self.now;
        self.look_at_a_life(machine);
        let Some(process) = &mut self.machines[machine].process else {
            return;
        };
        if now < process.kept_house_at + HOUSEKEEPING_INTERVAL {
            return;
        }
        process.kept_house_at = now;
        let mut host = self.host(machine);
        group::keep_house(&mut host);
        let late = host.refused;
        self.counts.see_many("waited for too long", late);
        self.give_up_pipes(machine);
        self.keep_served(machine);
        self.keep_values(machine);
        self.carry_out_all(machine); // the next turn comes at once
        let limit = self.plan.settings.snapshot_log_bytes;
        let Some(process) = &mut self.machines[machine].process else {
            return;
        };
        // As in the node: what has failed is tried again however little was applied since, because somebody
        // may wait for it.
        let is_retry_due = process.snapshot_retry_at.is_some_and(|at| at <= now);
        if is_retry_due || process.group.bytes_since_snapshot > limit {
            self.take_snapshot(machine);
        }
    }

    /// Sets when the process and its disk are to go on.
    pub fn plan_ahead(&mut self, machine: usize) {
        let now = self.now;
        let it = &mut self.machines[machine];
        let run = it.run;
        let Some(process) = &mut it.process else {
            return;
        };
        if process.journal.wants_disk() {
            process.journal.begin();
            let (from, to) = self.plan.settings.disk;
            let took = self.random.between(from, to);
            let done = (now + took).max(it.stalled_until + took);
            self.queue.set(done, Event::LogDone(machine, run));
        }
        if let Some(plane) = &mut process.group.plane
            && !plane.is_idle()
            && !plane.data_plane().news_planned
        {
            // It may go on when there is room, or when the plane has stopped.
            plane.data_plane_mut().news_planned = true;
            self.queue
                .set(now + 10 * MILLISECOND, Event::PlaneNews(machine, run));
        }
        if process.group.has_backlog()
            && let Some(served) = &mut process.served
            && let Some(at) = served.plans_to_look(now, HOUSEKEEPING_INTERVAL)
        {
            self.queue.set(at, Event::GoesOn(machine, run));
        }
        if it.clock_stopped_at.is_some() {
            return; // it has its turn when the clock goes again
        }
        let wake = process.group.replica.next_wake();
        let wake = it.true_time(wake).max(now + 1);
        if wake < it.wake_at {
            it.wake_at = wake;
            self.queue.set(wake, Event::Wake(machine, run));
        }
    }
}

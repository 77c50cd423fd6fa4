//! What a process does with what has arrived: when its group has its turn, and what comes of that.
use crate::clients::{Fate, MANY};
use crate::fault::Moment;
use crate::forwarding::note_heard;
use crate::machine::{Arrival, Group, Origin, Process, SnapshotJob};
use crate::network::Saying;
use crate::outcomes;
use crate::queue::MILLISECOND;
use crate::random::mix;
use crate::spelling::value_stored;
use crate::world::{Event, World};
use quorumwire_control::{Body, Entry, Input, Output, Role};
use quorumwire_group::{Applied, Connected, ReadState};
use quorumwire_interfaces::Index;
use quorumwire_kv::Command;
use quorumwire_wire::{Membership, RecordKind};
use std::time::Duration;

/// One pause in so many is not noticed by the process that stood still.
const PAUSES_NOT_NOTICED_ONE_IN: u64 = 5;

impl World {
    /// Tells a process something. It looks at once, unless it stands still.
    pub fn arrive(&mut self, place: usize, arrival: Arrival) {
        let now = self.now;
        let machine = &mut self.machines[place];
        if machine.process.is_none() {
            return;
        }
        machine.inbox.push_back(arrival);
        if machine.busy_until <= now {
            self.turn(place);
        }
    }

    /// Tells a process something, to be looked at when the turn that it may be in is over.
    pub fn arrive_later(&mut self, place: usize, arrival: Arrival) {
        let machine = &mut self.machines[place];
        if machine.process.is_some() {
            machine.inbox.push_back(arrival);
            let run = machine.run;
            self.queue.set(self.now, Event::PlaneNews(place, run));
        }
    }

    /// A turn: first what disk and snapshot threads have done, then what others say, then the time,
    /// then clients; then all that the replica asks for.
    pub fn turn(&mut self, place: usize) {
        let wall = self.machines[place].wall(self.now);
        self.drive(place, |group| group.look_at_wall_clock(wall));
        if let Some(pause) = self.machines[place].notices_pause(self.now) {
            self.goes_on(place, pause);
        }
        let mut inbox = std::mem::take(&mut self.machines[place].inbox);
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
                self.poll_plane(place);
                polled = true;
            }
            match arrival {
                Arrival::Log => self.log_has_news(place),
                Arrival::Snapshot(event) => self.take_snapshot_event(place, event),
                Arrival::Up(peer, promise) => {
                    let id = peer.id;
                    let has_plane = self.machines[usize::from(id.0)].has_plane;
                    self.drive(place, |group| {
                        let connected = Connected {
                            peer,
                            heard: group.now,
                            ..Connected::default()
                        };
                        group.peers.connected.insert(id, connected);
                        group.step(Input::PeerUp(peer, promise));
                    });
                    self.step(place, Input::PlanePeer { id, has_plane });
                }
                Arrival::Look => {}
                Arrival::Down(peer) => self.peer_is_gone(place, peer),
                Arrival::Message(from, message) => {
                    self.drive(place, |group| {
                        note_heard(group, from);
                        group.step(Input::Message { from, message });
                    });
                }
                Arrival::PassedOn(from, message) => self.take_passed_on(place, from, message),
                Arrival::Request(_)
                | Arrival::Flood(_)
                | Arrival::Pipe(..)
                | Arrival::Admin(..)
                | Arrival::TakeSnapshot => last.push(arrival),
            }
        }
        if !polled {
            self.poll_plane(place);
        }
        let machine = &mut self.machines[place];
        if machine.process.is_some() {
            // Its memory is used again; what came during the turn is for the next one.
            inbox.append(&mut machine.inbox);
            machine.inbox = inbox;
        }
        let clock = machine.clock(self.now);
        let is_due = |process: &Process| process.group.replica.next_wake() <= clock;
        if machine.process.as_ref().is_some_and(is_due) {
            self.step(place, Input::Timeout);
        }
        self.look_at_lease(place);
        for arrival in last {
            match arrival {
                Arrival::Request(operation) => self.serve(place, operation),
                Arrival::Flood(commands) => self.serve_flood(place, commands),
                Arrival::Pipe(burst, operations) => self.serve_pipe(place, burst, operations),
                Arrival::Admin(change, luck) => self.administer(place, change, luck),
                Arrival::TakeSnapshot => self.take_snapshot(place),
                Arrival::Log
                | Arrival::Snapshot(_)
                | Arrival::Look
                | Arrival::Up(..)
                | Arrival::Down(_)
                | Arrival::Message(..)
                | Arrival::PassedOn(..) => {}
            }
        }
        self.submit_to_plane(place);
        self.carry_out_all(place);
        self.keep_house(place);
        self.free_plane(place);
        self.plan_ahead(place);
    }

    /// A process goes on after it stood still, and mostly knows that it did.
    fn goes_on(&mut self, place: usize, pause: Duration) {
        let luck = mix(self.plan.settings.seed ^ self.now ^ (place as u64) << 56);
        if luck.is_multiple_of(PAUSES_NOT_NOTICED_ONE_IN) {
            return self.counts.see("own pause not noticed");
        }
        self.counts.see("own pause noticed");
        self.step(place, Input::StoodStill(pause));
    }

    /// Whoever may read by its lease now has all that is committed, whether somebody reads or not.
    fn look_at_lease(&mut self, place: usize) {
        let machine = &self.machines[place];
        let Some(replica) = machine.process.as_ref().map(|it| &it.group.replica) else {
            return;
        };
        if let Some(index) = replica.lease_read(machine.clock(self.now)) {
            if replica.fast_term().is_some() {
                self.counts.see("lease in a fast term");
            }
            self.checks.may_read(machine.peer, index);
        }
    }

    /// Has the group of a process do something, now.
    pub fn drive<T>(&mut self, place: usize, what: impl FnOnce(&mut Group) -> T) -> Option<T> {
        let clock = self.machines[place].clock(self.now);
        let process = self.machines[place].process.as_mut()?;
        process.group.now = clock;
        let first = process.group.outputs.len();
        let done = what(&mut process.group);
        self.observe(place, first);
        Some(done)
    }

    /// Hands one input to the replica.
    pub fn step(&mut self, place: usize, input: Input) {
        self.drive(place, |group| group.step(input));
    }

    fn flush(&mut self, place: usize) {
        self.drive(place, Group::flush);
    }

    fn observe(&mut self, place: usize, first: usize) {
        self.counts.steps += 1;
        self.checks
            .after_step(&self.machines, place, first, self.now);
        match self.moves.after_step(&self.machines[place], first) {
            Ok(true) => self.counts.see("member moved"),
            Ok(false) => {}
            Err(problem) => self.checks.require(false, || problem),
        }
        self.note_plane(place);
        if let Some(process) = &mut self.machines[place].process {
            let replica = &process.group.replica;
            process.seen.term = replica.term();
            process.seen.commit_index = replica.commit_index();
            process.seen.led = replica.role() == Role::Leader;
            let begun = process.group.clock.term;
            if std::mem::replace(&mut process.seen.begun, begun) != begun {
                let wall = self.machines[place].wall(self.now).as_millis();
                let wall_ms = u64::try_from(wall).unwrap_or(0);
                let drift_ppm = self.plan.settings.drift_ppm_max;
                self.lives.term_begins(begun, self.now, wall_ms, drift_ppm);
            }
        }
    }

    /// Has the replica say what it wants, and does it, until it wants nothing more.
    pub fn carry_out_all(&mut self, place: usize) {
        self.carry_out_effects(place);
        self.flush(place);
        loop {
            let Some(process) = &mut self.machines[place].process else {
                return;
            };
            if process.group.outputs.is_empty() {
                return;
            }
            let mut outputs = std::mem::replace(
                &mut process.group.outputs,
                std::mem::take(&mut self.carrying),
            );
            for output in outputs.drain(..) {
                self.carry_out(place, output);
                self.carry_out_effects(place);
                if self.machines[place].process.is_none() {
                    break; // it died between two outputs
                }
            }
            outputs.clear();
            self.carrying = outputs;
            self.flush(place);
        }
    }

    fn carry_out(&mut self, place: usize, output: Output) {
        if self.loud {
            let line = crate::show::output(&output);
            self.say(place, &line);
        }
        if let Some(outcome) = outcomes::of(&output) {
            self.counts.see(outcome);
        }
        let moment = moment(&output);
        let answers_with_nothing = self.answers_with_nothing(place, &output);
        self.carry_out_one(place, output);
        if answers_with_nothing {
            self.has_answered_with_nothing(place);
        }
        if let Some(moment) = moment {
            self.reached(place, moment);
        }
        self.die_if_doomed(place);
    }

    fn membership_changed(&mut self, place: usize, membership: &Membership) {
        let machine = &mut self.machines[place];
        let me = machine.peer;
        let member = membership.member(me.id);
        if member.is_some_and(|m| m.incarnation == me.incarnation) {
            machine.mark.get_or_insert(me.incarnation);
        }
        if let Some(process) = &mut machine.process
            && let Some(plane) = &mut process.group.plane
        {
            let lineage = process.group.replica.lineage_in_log();
            plane.place_mut().set_lineage(lineage);
        }
        self.counts.see("membership changed");
        if membership.voters().count() == 1 {
            self.voted_alone.extend(membership.voters().map(|it| it.id));
            self.counts.see("one voter left, or first");
        }
        self.first_entry_made();
    }

    fn carry_out_one(&mut self, place: usize, output: Output) {
        let now = self.now;
        let Some(process) = &mut self.machines[place].process else {
            return;
        };
        match output {
            Output::Persist {
                ticket,
                hard_state,
                entries,
            } => {
                if let Some(done) = process.journal.persist(ticket, hard_state, &entries) {
                    self.step(place, Input::Persisted(done));
                }
            }
            Output::Send { to, message } => {
                if let Body::Engaged { engaged: true, .. } = message.body {
                    self.counts.see("straggler joined");
                }
                self.send(place, to, Saying::Consensus(message));
            }
            Output::Committed(upto) => {
                process.group.committed = process.group.committed.max(upto);
                self.apply(place);
            }
            Output::Read(ticket, index) => {
                if let Some((index, reader)) = process.group.take_granted(ticket, index) {
                    self.pipe_is_granted(place, &reader, ticket, index);
                    self.read_granted(place, reader, index);
                }
            }
            Output::Refused(ticket, refusal) => {
                match process.group.take_ungranted(ticket, &refusal) {
                    Some(Some(operation)) => match self.burst_of(operation) {
                        Some(burst) => {
                            self.pipe_reads_anew(place, burst, ReadState::Asked(ticket));
                        }
                        None => self.refuse(place, operation),
                    },
                    Some(None) => self.counts.see("read of a follower without its round"),
                    None => {
                        process.removal.take_if(|asked| *asked == ticket);
                        self.counts.see("request refused");
                    }
                }
            }
            Output::Done(ticket) => {
                process.removal.take_if(|asked| *asked == ticket);
                self.counts.see("request done");
            }
            Output::RoleChanged(change) => {
                if change.role == Role::Leader {
                    self.counts.see("elected");
                }
                self.role_changed(place, &change);
            }
            Output::Truncated(_) => self.counts.see("log cut"),
            Output::OtherLineage { from, lineage } => {
                panic!("{from:?} is of lineage {lineage}, and there is one cluster")
            }
            Output::MembershipChanged(membership) => self.membership_changed(place, &membership),
            Output::ReadSnapshot {
                to,
                last_index,
                offset,
                bytes_max,
            } => {
                let job = SnapshotJob::Read(to, last_index, offset, bytes_max);
                self.snapshot_work(place, now, job);
            }
            Output::StoreSnapshotChunk {
                last_index,
                offset,
                bytes,
            } => {
                let job = SnapshotJob::Store(last_index, offset, bytes);
                self.snapshot_work(place, now, job);
            }
            Output::InstallSnapshot {
                last_index,
                last_term,
            } => {
                let job = SnapshotJob::Install(last_index, last_term);
                self.snapshot_work(place, now, job);
            }
            Output::TakeSnapshot => self.take_snapshot(place),
            Output::Engage(engage) => self.engage_plane(place, &engage),
            Output::Disengage(reason) => self.stop_plane(place, reason),
            Output::PlaneHeartbeat { round } => {
                self.drive(place, |group| {
                    group.plane_does(|it| it.heartbeat(round, true));
                });
                self.launch(place);
            }
            Output::PlanePersisted(upto) => {
                self.drive(place, |group| group.plane_does(|it| it.set_persisted(upto)));
                self.launch(place);
            }
        }
    }

    /// Applies everything committed, in order, and answers whoever waits for it.
    fn apply(&mut self, place: usize) {
        let machine = &mut self.machines[place];
        let peer = machine.peer;
        let Some(process) = &mut machine.process else {
            return;
        };
        let (first, last) = (process.group.applied.next(), process.group.committed);
        if last < first {
            return;
        }
        let mut batch = std::mem::take(&mut self.applying);
        batch.extend(process.group.replica.entries(first, last).cloned());
        for entry in batch.drain(..) {
            let Some(process) = &mut self.machines[place].process else {
                break;
            };
            let expected = process.group.applied.next();
            self.checks.require(entry.index == expected, || {
                format!("I12: {peer:?} applies {} after {expected}", entry.index)
            });
            let first = entry.index > self.applied_first;
            if entry.index > self.applied_first {
                self.applied_first = entry.index;
                self.applied_first_at = self.now;
                self.counts.committed += 1;
            }
            self.carry_out_commands(place, &entry, first);
            if entry.index.0.is_multiple_of(crate::checks::DIGEST_EVERY)
                && let Some(process) = &self.machines[place].process
            {
                let digest = crate::run::digest(&process.group.store);
                self.checks.digest(peer, entry.index, digest);
            }
        }
        self.applying = batch;
        let Some(process) = &self.machines[place].process else {
            return;
        };
        let applied = process.group.applied;
        self.step(place, Input::Applied(applied));
        self.serve_waiting(place);
    }

    /// Carries out an entry's commands, one after the other, and answers whoever waits for them. `first`: no
    /// replica has done it before.
    fn carry_out_commands(&mut self, place: usize, entry: &Entry, first: bool) {
        let mut replies = Vec::new();
        let Some(process) = &mut self.machines[place].process else {
            return;
        };
        let mut applying = process.group.begin_entry(entry);
        let (unknown, displaced) = (process.group.take_unknown(), process.group.take_displaced());
        for proposal in unknown {
            self.tell_origin(place, proposal.origin, entry.index, b"", Fate::Unknown);
        }
        for proposal in displaced {
            self.tell_origin(place, proposal.origin, entry.index, b"", Fate::NotDone);
        }
        loop {
            self.answer_reads_in_front(place, |group| {
                group.next_waits(&applying).map(|it| it.origin)
            });
            self.reply.clear();
            let Some(process) = &mut self.machines[place].process else {
                return;
            };
            let Some(applied) = process.group.apply_next(&mut applying, &mut self.reply) else {
                break;
            };
            replies.extend_from_slice(&self.reply);
            self.note_command(place, entry.index, &applied, first);
            if let Some(proposal) = applied.proposal {
                let payload = applied.command.payload();
                let fate = Fate::Applied(applied.outcome);
                self.tell_origin(place, proposal.origin, entry.index, payload, fate);
            }
        }
        let peer = self.machines[place].peer;
        self.checks.applies(peer, entry.index, &replies);
        if entry.kind == RecordKind::Bundle {
            let commands = applying.commands();
            self.checks.require(commands > 1, || {
                format!("I12: {peer:?} carries out {commands} commands of a bundle")
            });
            if first {
                self.counts.see("bundle carried out");
            }
        }
        if let Some(process) = &mut self.machines[place].process {
            for proposal in process.group.end_entry() {
                self.checks.require(false, || {
                    let (index, position) = proposal.place();
                    format!("I6: {peer:?} has nothing at position {position} of {index}")
                });
            }
        }
    }

    /// Judges and counts a command that was carried out.
    fn note_command(
        &mut self,
        place: usize,
        index: Index,
        applied: &Applied<'_, Origin>,
        first: bool,
    ) {
        let payload = applied.command.payload();
        match applied.command.kind() {
            RecordKind::Command => {
                if let Some(operation) = operation_of(payload) {
                    self.checks.carries_out(index, operation, first);
                    let asked = self.asked.get((operation as usize).wrapping_sub(1));
                    if let Some(asked) = asked.filter(|it| first && it.client == MANY) {
                        self.checks.keeps_order(index, asked.burst, operation);
                    }
                }
                if first {
                    self.note_life(place, payload);
                }
            }
            RecordKind::Tick => self.counts.see(match payload.len() {
                8 => "a tick without the wall clock",
                _ => "a tick with the wall clock",
            }),
            RecordKind::SessionCommand | RecordKind::Fragment => {
                self.note_session(index, applied, first);
            }
            RecordKind::Bundle
            | RecordKind::NoOp
            | RecordKind::Membership
            | RecordKind::HardState
            | RecordKind::Durable
            | RecordKind::Base => {}
        }
    }

    /// What is to be done every now and then.
    fn keep_house(&mut self, place: usize) {
        let now = self.now;
        self.drive(place, Group::tick_if_deadline_passed);
        let awaited = self.drive(place, |group| {
            let before = group.clock.awaited;
            group.tick_if_time_is_awaited();
            group.clock.awaited != before
        });
        if awaited == Some(true) {
            self.counts.see("time awaited");
        }
        self.look_at_a_life(place);
        self.give_up_late(place);
        let Some(process) = &mut self.machines[place].process else {
            return;
        };
        if process.group.has_backlog() {
            self.apply(place);
            self.carry_out_all(place);
        }
        let limit = self.plan.settings.snapshot_log_bytes;
        let Some(process) = &mut self.machines[place].process else {
            return;
        };
        // As in the node: what has failed is tried again however little was applied since, because somebody
        // may wait for it.
        let is_retry_due = process.snapshot_retry_at.is_some_and(|at| at <= now);
        if is_retry_due || process.group.bytes_since_snapshot > limit {
            self.take_snapshot(place);
        }
    }

    /// Sets when the process and its disk are to go on.
    pub fn plan_ahead(&mut self, place: usize) {
        let now = self.now;
        let machine = &mut self.machines[place];
        let run = machine.run;
        let Some(process) = &mut machine.process else {
            return;
        };
        if process.journal.wants_disk() {
            process.journal.begin();
            let (from, to) = self.plan.settings.disk;
            let took = self.random.between(from, to);
            let done = (now + took).max(machine.stalled_until + took);
            self.queue.set(done, Event::LogDone(place, run));
        }
        if let Some(plane) = &mut process.group.plane
            && !plane.is_idle()
            && !plane.place().news_planned
        {
            // It may go on when there is room, or when the plane has stopped.
            plane.place_mut().news_planned = true;
            self.queue
                .set(now + 10 * MILLISECOND, Event::PlaneNews(place, run));
        }
        if machine.clock_stopped_at.is_some() {
            return; // it has its turn when the clock goes again
        }
        let wake = process.group.replica.next_wake();
        let wake = machine.true_time(wake).max(now + 1);
        if wake < machine.wake_at {
            machine.wake_at = wake;
            self.queue.set(wake, Event::Wake(place, run));
        }
    }
}

/// The operation a command carries out, if a client waits for it or could have.
fn operation_of(command: &[u8]) -> Option<u32> {
    let value = value_stored(&Command::decode(command).ok()?)?;
    u32::try_from(value).ok()
}

fn moment(output: &Output) -> Option<Moment> {
    match output {
        Output::Send { message, .. } => match &message.body {
            Body::VoteReply {
                granted: true,
                pre_vote: false,
                ..
            } => Some(Moment::VoteGiven),
            Body::VoteRequest {
                pre_vote: false, ..
            } => Some(Moment::Stands),
            Body::Append { records, .. } if !records.is_empty() => Some(Moment::Appended),
            Body::AppendReply {
                rejected: false, ..
            } => Some(Moment::Acknowledged),
            Body::TransferNow => Some(Moment::TransferAsked),
            Body::EngageOffer { .. } => Some(Moment::OfferMade),
            _ => None,
        },
        Output::Committed(_) => Some(Moment::Committed),
        Output::RoleChanged(change) if change.role == Role::Leader => Some(Moment::Elected),
        Output::Truncated(_) => Some(Moment::LogCut),
        Output::MembershipChanged(_) => Some(Moment::MembersChanged),
        Output::StoreSnapshotChunk { .. } => Some(Moment::SnapshotPiece),
        Output::InstallSnapshot { .. } => Some(Moment::SnapshotInstall),
        Output::Persist { .. }
        | Output::OtherLineage { .. }
        | Output::Read(..)
        | Output::Done(_)
        | Output::Refused(..)
        | Output::RoleChanged(_)
        | Output::ReadSnapshot { .. }
        | Output::TakeSnapshot
        | Output::Engage(_)
        | Output::Disengage(_)
        | Output::PlaneHeartbeat { .. }
        | Output::PlanePersisted(_) => None,
    }
}

//! What a process does with what has arrived: the node's turn, step by step and in its order.
use crate::clients::Fate;
use crate::fault::Moment;
use crate::machine::{Arrival, LeaderClock, Origin, Process, SnapshotJob};
use crate::queue::MILLISECOND;
use crate::spelling::value_stored;
use crate::world::{Event, World};
use quorumwire_control::{Body, Entry, Input, LogClock, Output, Role};
use quorumwire_group::Settled;
use quorumwire_interfaces::{Index, LogTime, Term};
use quorumwire_kv::Command;
use quorumwire_sessions::Outcome;
use quorumwire_wire::{Membership, RecordKind, Tick, commands_of};

/// A command of an entry that is being applied.
pub struct Applying<'a> {
    /// The entry's.
    pub index: Index,
    /// Which of its commands.
    pub position: u16,
    /// The entry's.
    pub term: Term,
    /// What it is.
    pub kind: RecordKind,
    /// Its bytes.
    pub payload: &'a [u8],
}

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
        if let Some(pause) = self.machines[place].notices_pause(self.now) {
            self.counts.see("own pause noticed");
            self.step(place, Input::StoodStill(pause));
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
                    self.step(place, Input::PeerUp(peer, promise));
                    self.step(place, Input::PlanePeer { id, has_plane });
                }
                Arrival::Look => {}
                Arrival::Down(peer) => self.step(place, Input::PeerDown(peer)),
                Arrival::Message(from, message) => {
                    self.step(place, Input::Message { from, message });
                }
                Arrival::Request(_)
                | Arrival::Flood(_)
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
        let is_due = |process: &Process| process.replica.next_wake() <= clock;
        if machine.process.as_ref().is_some_and(is_due) {
            self.step(place, Input::Timeout);
        }
        for arrival in last {
            match arrival {
                Arrival::Request(operation) => self.serve(place, operation),
                Arrival::Flood(commands) => self.serve_flood(place, commands),
                Arrival::Admin(change, luck) => self.administer(place, change, luck),
                Arrival::TakeSnapshot => self.take_snapshot(place),
                Arrival::Log
                | Arrival::Snapshot(_)
                | Arrival::Look
                | Arrival::Up(..)
                | Arrival::Down(_)
                | Arrival::Message(..) => {}
            }
        }
        self.submit_to_plane(place);
        self.carry_out_all(place);
        self.keep_house(place);
        self.free_plane(place);
        self.plan_ahead(place);
    }

    /// Hands one input to the replica.
    pub fn step(&mut self, place: usize, input: Input) {
        let now = self.now;
        let machine = &mut self.machines[place];
        let clock = machine.clock(now);
        let Some(process) = &mut machine.process else {
            return;
        };
        let first = process.outputs.len();
        process.replica.step(clock, input, &mut process.outputs);
        self.observe(place, first);
    }

    fn flush(&mut self, place: usize) {
        let now = self.now;
        let machine = &mut self.machines[place];
        let clock = machine.clock(now);
        let Some(process) = &mut machine.process else {
            return;
        };
        let first = process.outputs.len();
        process.replica.flush(clock, &mut process.outputs);
        self.observe(place, first);
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
        if let Some(process) = &mut self.machines[place].process {
            let replica = &process.replica;
            process.seen.term = replica.term();
            process.seen.commit_index = replica.commit_index();
            process.seen.led = replica.role() == Role::Leader;
        }
    }

    /// Has the replica say what it wants, and does it, until it wants nothing more.
    pub fn carry_out_all(&mut self, place: usize) {
        self.flush(place);
        loop {
            let Some(process) = &mut self.machines[place].process else {
                return;
            };
            if process.outputs.is_empty() {
                return;
            }
            let mut outputs =
                std::mem::replace(&mut process.outputs, std::mem::take(&mut self.carrying));
            for output in outputs.drain(..) {
                self.carry_out(place, output);
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
            && let Some(plane) = &mut process.plane
        {
            plane.set_lineage(process.replica.lineage_in_log());
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
                self.send(place, to, message);
            }
            Output::Committed(upto) => {
                process.committed = process.committed.max(upto);
                self.apply(place);
            }
            Output::Read(ticket, index) => {
                if let Some((must_apply, operation)) = process.asked.remove(&ticket) {
                    self.read_granted(place, operation, index.max(must_apply));
                }
            }
            Output::Refused(ticket, _) => {
                if let Some((_, operation)) = process.asked.remove(&ticket) {
                    self.refuse(place, operation);
                } else {
                    process.removal.take_if(|asked| *asked == ticket);
                    self.counts.see("request refused");
                }
            }
            Output::Done(ticket) => {
                process.removal.take_if(|asked| *asked == ticket);
                self.counts.see("request done");
            }
            Output::RoleChanged(change) => {
                if change.role == Role::Leader {
                    self.counts.see("elected");
                    self.begin_term(place);
                }
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
                self.plane_does(place, |plane| plane.log.heartbeat(round, true));
            }
            Output::PlanePersisted(upto) => {
                self.plane_does(place, |plane| plane.log.set_persisted(upto));
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
        let (first, last) = (process.applied.next(), process.committed);
        if last < first {
            return;
        }
        let mut batch = std::mem::take(&mut self.applying);
        batch.extend(process.replica.entries(first, last).cloned());
        for entry in batch.drain(..) {
            let Some(process) = &mut self.machines[place].process else {
                break;
            };
            let expected = process.applied.next();
            self.checks.require(entry.index == expected, || {
                format!("I12: {peer:?} applies {} after {expected}", entry.index)
            });
            let first = entry.index > self.applied_first;
            process.applied = entry.index;
            process.bytes_since_snapshot += entry.record().len() as u64;
            if entry.index > self.applied_first {
                self.applied_first = entry.index;
                self.applied_first_at = self.now;
                self.counts.committed += 1;
            }
            self.carry_out_commands(place, &entry, first);
            if entry.index.0.is_multiple_of(crate::checks::DIGEST_EVERY)
                && let Some(process) = &self.machines[place].process
            {
                let digest = crate::run::digest(&process.store);
                self.checks.digest(peer, entry.index, digest);
            }
        }
        self.applying = batch;
        let Some(process) = &self.machines[place].process else {
            return;
        };
        let applied = process.applied;
        self.step(place, Input::Applied(applied));
        self.serve_waiting(place);
    }

    /// Carries out an entry's commands, one after the other, and answers whoever waits for them. `first`: no
    /// replica has done it before.
    fn carry_out_commands(&mut self, place: usize, entry: &Entry, first: bool) {
        let mut replies = Vec::new();
        let mut commands = 0;
        let mut settled = self.settle(place, entry);
        for (position, (kind, payload)) in (0..).zip(commands_of(entry.kind, entry.payload())) {
            let command = Applying {
                index: entry.index,
                position,
                term: entry.term,
                kind,
                payload,
            };
            let Some(process) = &mut self.machines[place].process else {
                return;
            };
            self.reply.clear();
            let mut outcome = Outcome::Applied;
            match kind {
                RecordKind::Command => {
                    let at = process.place_of(entry.index);
                    process.store.command(at, payload, &mut self.reply);
                    if let Some(operation) = operation_of(payload) {
                        self.checks.carries_out(entry.index, operation, first);
                    }
                    if first {
                        self.note_life(place, payload);
                    }
                }
                RecordKind::Tick => {
                    process.tick(payload);
                    self.counts.see(match payload.len() {
                        8 => "a tick without the wall clock",
                        _ => "a tick with the wall clock",
                    });
                }
                RecordKind::SessionCommand | RecordKind::Fragment => {
                    outcome = process.apply_in_session(&command, &mut self.reply);
                    self.note_session(&command, outcome, first);
                }
                RecordKind::Bundle
                | RecordKind::NoOp
                | RecordKind::Membership
                | RecordKind::HardState
                | RecordKind::Durable
                | RecordKind::Base => {}
            }
            replies.extend_from_slice(&self.reply);
            commands += 1;
            if let Some(proposal) = settled.take_own(position) {
                self.tell_origin(place, proposal.origin, &command, Fate::Applied(outcome));
            }
        }
        let peer = self.machines[place].peer;
        self.checks.applies(peer, entry.index, &replies);
        if entry.kind == RecordKind::Bundle {
            self.checks.require(commands > 1, || {
                format!("I12: {peer:?} carries out {commands} commands of a bundle")
            });
            if first {
                self.counts.see("bundle carried out");
            }
        }
        for proposal in settled.own {
            // The entry is no bundle after all.
            self.tell_origin(place, proposal.origin, &whole(entry), Fate::Unknown);
        }
    }

    /// What this entry settles: who waits in vain is told so, the others wait for its commands.
    fn settle(&mut self, place: usize, entry: &Entry) -> Settled<Origin> {
        let mut settled = Settled::default();
        if let Some(process) = &mut self.machines[place].process {
            settled.take(&mut process.proposals, (entry.index, entry.term));
        }
        for proposal in settled.unknown.drain(..) {
            self.tell_origin(place, proposal.origin, &whole(entry), Fate::Unknown);
        }
        for proposal in settled.displaced.drain(..) {
            self.tell_origin(place, proposal.origin, &whole(entry), Fate::NotDone);
        }
        settled
    }

    /// What a term that it leads begins with; later, what time its clocks show.
    pub fn begin_term(&mut self, place: usize) {
        let now = self.now;
        let machine = &mut self.machines[place];
        let (clock, wall) = (machine.clock(now), machine.wall(now));
        let Some(process) = &mut machine.process else {
            return;
        };
        let term = process.replica.term();
        if process.replica.role() != Role::Leader {
            return;
        }
        let told_ms = process.store.inner().log_time().0;
        if process.clock.term == term {
            process.clock.time.look(clock, wall, told_ms);
            return;
        }
        process.term_start = process.replica.last_index();
        process.proposals.begin_term();
        process.clock = LeaderClock {
            term,
            time: LogClock::begin(clock, wall, told_ms),
            last_tick: None,
            barrier: Index(0),
            awaited: Index(0),
        };
        let wall_ms = u64::try_from(wall.as_millis()).unwrap_or(0);
        let drift_ppm = self.plan.settings.drift_ppm_max;
        self.lives.term_begins(term, now, wall_ms, drift_ppm);
    }

    /// What is to be done every now and then.
    fn keep_house(&mut self, place: usize) {
        let now = self.now;
        // As in the node: what a leader tells is what its clocks show in this turn.
        self.begin_term(place);
        self.tick_if_deadline_passed(place);
        self.tick_if_time_is_awaited(place);
        self.look_at_a_life(place);
        let Some(process) = &mut self.machines[place].process else {
            return;
        };
        if process.committed > process.applied {
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
        if is_retry_due || process.bytes_since_snapshot > limit {
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
        if let Some(plane) = &mut process.plane
            && !plane.log.is_idle()
            && !plane.news_planned
        {
            // It may go on when there is room, or when the plane has stopped.
            plane.news_planned = true;
            self.queue
                .set(now + 10 * MILLISECOND, Event::PlaneNews(place, run));
        }
        if machine.clock_stopped_at.is_some() {
            return; // it has its turn when the clock goes again
        }
        let wake = process.replica.next_wake();
        let wake = machine.true_time(wake).max(now + 1);
        if wake < machine.wake_at {
            machine.wake_at = wake;
            self.queue.set(wake, Event::Wake(place, run));
        }
    }
}

impl Process {
    fn tick(&mut self, payload: &[u8]) {
        let read = if self.is_older {
            payload.len().min(8)
        } else {
            payload.len()
        };
        if let Some(tick) = Tick::decode(&payload[..read]) {
            self.log_time = self.log_time.max(LogTime(tick.log_time_ms));
            self.store.set_ahead(tick.ahead_ms(self.log_time.0));
            self.store.advance(self.log_time);
        }
    }
}

/// An entry as none of its commands.
const fn whole(entry: &Entry) -> Applying<'_> {
    Applying {
        index: entry.index,
        position: 0,
        term: entry.term,
        kind: entry.kind,
        payload: &[],
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

//! What a process does with what has arrived: the node's turn, step by step and in its order.
use crate::fault::{Change, Moment};
use crate::journal::Written;
use crate::machine::{Arrival, GROUP, LeaderClock, Process, SnapshotEvent, SnapshotJob};
use crate::queue::{MICROSECOND, MILLISECOND, Nanos, SECOND};
use crate::world::{Event, World};
use quorumwire_control::{Body, Input, MemberChange, Output, Role, SnapshotMeta, Ticket};
use quorumwire_interfaces::{Applied, Index, LogTime, StateMachine};
use quorumwire_kv::Command;
use quorumwire_wire::{CommitQuorum, MemberRole, RecordKind, SnapshotHead};

/// A snapshot that could not be taken is tried again after this.
const SNAPSHOT_RETRY: Nanos = SECOND;

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

    /// A turn: first what disk and snapshot threads have done, then what others say, then the time,
    /// then clients; then all that the replica asks for.
    pub fn turn(&mut self, place: usize) {
        let mut inbox = std::mem::take(&mut self.machines[place].inbox);
        let many = inbox.len() > 1;
        if many {
            let is_first = |a: &Arrival| matches!(a, Arrival::Log | Arrival::Snapshot(_));
            let (first, rest): (Vec<_>, Vec<_>) = inbox.drain(..).partition(is_first);
            inbox.extend(first);
            inbox.extend(rest);
        }
        let mut last = Vec::new();
        for arrival in inbox.drain(..) {
            match arrival {
                Arrival::Log => self.log_has_news(place),
                Arrival::Snapshot(event) => self.take_snapshot_event(place, event),
                Arrival::Up(peer) => self.step(place, Input::PeerUp(peer)),
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
        let machine = &mut self.machines[place];
        if machine.process.is_some() {
            machine.inbox = inbox; // its memory is used again
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
                | Arrival::Up(_)
                | Arrival::Down(_)
                | Arrival::Message(..) => {}
            }
        }
        self.carry_out_all(place);
        self.keep_house(place);
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
        self.checks.after_step(&self.machines, place, first);
        if let Some(process) = &mut self.machines[place].process {
            let replica = &process.replica;
            process.seen.term = replica.term();
            process.seen.commit_index = replica.commit_index();
            process.seen.led = replica.role() == Role::Leader;
        }
    }

    /// Has the replica say what it wants, and does it, until it wants nothing more.
    fn carry_out_all(&mut self, place: usize) {
        self.flush(place);
        loop {
            let Some(process) = &mut self.machines[place].process else {
                return;
            };
            if process.outputs.is_empty() {
                return;
            }
            let mut outputs = std::mem::replace(&mut process.outputs, std::mem::take(&mut self.carrying));
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
        self.carry_out_one(place, output);
        if let Some(moment) = moment {
            self.reached(place, moment);
        }
        self.die_if_doomed(place);
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
            Output::Send { to, message } => self.send(place, to, message),
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
                    self.counts.see("request refused");
                }
            }
            Output::Done(_) => self.counts.see("request done"),
            Output::RoleChanged(change) => {
                if change.role == Role::Leader {
                    self.counts.see("elected");
                    self.begin_term(place);
                }
            }
            Output::Truncated(_) => self.counts.see("log cut"),
            Output::MembershipChanged(membership) => {
                let machine = &mut self.machines[place];
                let me = machine.peer;
                let member = membership.member(me.id);
                machine.was_member |= member.is_some_and(|m| m.incarnation == me.incarnation);
                self.counts.see("membership changed");
            }
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
            self.reply.clear();
            let expected = process.applied.next();
            self.checks.require(entry.index == expected, || {
                format!("I12: {peer:?} applies {} after {expected}", entry.index)
            });
            match entry.kind {
                RecordKind::Command => {
                    let applied = Applied {
                        index: entry.index,
                        log_time: process.log_time,
                        command: entry.payload(),
                    };
                    process.store.apply(&applied, &mut self.reply);
                    self.checks.applies(peer, entry.index, &self.reply);
                    let first = entry.index > self.applied_first;
                    if let Some(operation) = operation_of(entry.payload()) {
                        self.checks.carries_out(entry.index, operation, first);
                    }
                }
                RecordKind::Tick => process.tick(entry.payload()),
                RecordKind::NoOp
                | RecordKind::Membership
                | RecordKind::HardState
                | RecordKind::Durable
                | RecordKind::Base => {}
            }
            process.applied = entry.index;
            process.bytes_since_snapshot += entry.record().len() as u64;
            if entry.index > self.applied_first {
                self.applied_first = entry.index;
                self.applied_first_at = self.now;
                self.counts.committed += 1;
            }
            if entry.index.0.is_multiple_of(crate::checks::DIGEST_EVERY) {
                let digest = crate::run::digest(&process.store);
                self.checks.digest(peer, entry.index, digest);
            }
            self.settle_proposals(place, entry.index, entry.term);
        }
        self.applying = batch;
        let Some(process) = &self.machines[place].process else {
            return;
        };
        let applied = process.applied;
        self.step(place, Input::Applied(applied));
        self.serve_waiting(place);
    }

    /// What a term that it leads begins with.
    pub fn begin_term(&mut self, place: usize) {
        let now = self.now;
        let machine = &mut self.machines[place];
        let (clock, wall_ms) = (machine.clock(now), machine.wall_ms(now));
        let Some(process) = &mut machine.process else {
            return;
        };
        let term = process.replica.term();
        if process.clock.term == term || process.replica.role() != Role::Leader {
            return;
        }
        process.term_start = process.replica.last_index();
        process.clock = LeaderClock {
            term,
            base_wall_ms: wall_ms.max(process.store.log_time().0),
            base: clock,
            last_tick: None,
            barrier: Index(0),
        };
    }

    /// The disk has done something, or cannot.
    fn log_has_news(&mut self, place: usize) {
        let Some(process) = &mut self.machines[place].process else {
            return;
        };
        let journal = &mut process.journal;
        if journal.persisted != journal.told {
            journal.told = journal.persisted;
            let ticket = Ticket(journal.persisted);
            self.step(place, Input::Persisted(ticket));
        }
    }

    /// The disk does what was begun.
    pub fn log_done(&mut self, place: usize) {
        if self.dies_in_write(place) {
            return;
        }
        let machine = &mut self.machines[place];
        let Some(process) = &mut machine.process else {
            return;
        };
        if !process.journal.writing {
            return; // it was done earlier than planned
        }
        let was_full = process.journal.full;
        match process.journal.write(&mut machine.durable) {
            Written::Done => {
                process.journal.full = false;
                self.reached(place, Moment::Persisted);
                self.arrive(place, Arrival::Log);
            }
            Written::Full => {
                process.journal.full = true;
                if !was_full {
                    self.counts.hit(crate::fault::Class::F14DiskFull);
                }
                let wait = self.random.between(20, 200) * MILLISECOND;
                let run = machine.run;
                self.queue.set(self.now + wait, Event::LogDone(place, run));
                self.hand_over_if_full(place);
            }
            Written::Failed(problem) => {
                let line = format!("the log failed: {problem}");
                self.say(place, &line);
                self.log_failed(place);
            }
        }
    }

    fn hand_over_if_full(&mut self, place: usize) {
        let Some(process) = &mut self.machines[place].process else {
            return;
        };
        if process.handed_over_full || process.replica.role() != Role::Leader {
            return;
        }
        process.handed_over_full = true;
        let ticket = process.ticket();
        self.step(place, Input::Transfer(ticket, None));
        self.carry_out_all(place);
        self.plan_ahead(place);
    }

    /// What is to be done every now and then.
    fn keep_house(&mut self, place: usize) {
        let now = self.now;
        self.tick_if_deadline_passed(place);
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
        if process.bytes_since_snapshot > limit && process.snapshot_retry_at <= now {
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
        let wake = process.replica.next_wake();
        let wake = machine.true_time(wake).max(now + 1);
        if wake < machine.wake_at {
            machine.wake_at = wake;
            self.queue.set(wake, Event::Wake(place, run));
        }
    }

    fn snapshot_work(&mut self, place: usize, now: Nanos, job: SnapshotJob) {
        let took = self.random.between(50, 2_000) * MICROSECOND;
        let machine = &mut self.machines[place];
        let run = machine.run;
        let stalled_until = machine.stalled_until;
        let Some(process) = &mut machine.process else {
            return;
        };
        let begins = match job {
            // It has a thread of its own.
            SnapshotJob::Take(..) => now.max(stalled_until),
            SnapshotJob::Read(..) | SnapshotJob::Store(..) | SnapshotJob::Install(..) => {
                process.pieces_until = process.pieces_until.max(now).max(stalled_until) + took;
                process.pieces_until - took
            }
        };
        let number = process.next_job;
        process.next_job += 1;
        process.jobs.insert(number, job);
        let event = Event::SnapshotDone(place, run, number);
        self.queue.set(begins + took, event);
    }

    /// Takes a snapshot of what is applied, unless one is being taken.
    fn take_snapshot(&mut self, place: usize) {
        let now = self.now;
        let Some(process) = &mut self.machines[place].process else {
            return;
        };
        if process.taking || process.applied == Index(0) {
            return;
        }
        let last_index = process.applied;
        let Some(last_term) = process.replica.term_at(last_index) else {
            return; // exactly what the newest snapshot has
        };
        let (membership_index, membership) = process.replica.membership_at(last_index);
        let head = SnapshotHead {
            group: GROUP,
            last_index,
            last_term,
            log_time: process.log_time,
            membership: membership.clone(),
            membership_index,
        };
        let meta = crate::machine::meta(&head);
        process.bytes_since_snapshot = 0;
        process.taking = true;
        let frozen = process.store.freeze();
        self.snapshot_work(place, now, SnapshotJob::Take(head, meta, frozen));
    }

    /// A snapshot thread does its work.
    pub fn snapshot_done(&mut self, place: usize, number: u32) {
        if self.dies_in_write(place) {
            return;
        }
        let machine = &mut self.machines[place];
        let Some(process) = &mut machine.process else {
            return;
        };
        let Some(job) = process.jobs.remove(&number) else {
            return;
        };
        let event = process.work(job);
        match &event {
            SnapshotEvent::Taken(Some(meta)) => machine.durable.covered(meta.last_index),
            SnapshotEvent::Installed(_, Some((meta, _))) => {
                machine.durable.begin_behind((meta.last_index, meta.last_term));
            }
            SnapshotEvent::Taken(None)
            | SnapshotEvent::Installed(_, None)
            | SnapshotEvent::Answer(_) => {}
        }
        let moment = match &event {
            SnapshotEvent::Taken(_) => Some(Moment::SnapshotTaken),
            SnapshotEvent::Installed(..) => Some(Moment::SnapshotInstalled),
            SnapshotEvent::Answer(_) => None,
        };
        if let Some(moment) = moment {
            self.reached(place, moment);
            self.die_if_doomed(place);
        }
        self.arrive(place, Arrival::Snapshot(event));
    }

    fn take_snapshot_event(&mut self, place: usize, event: SnapshotEvent) {
        let now = self.now;
        let Some(process) = &mut self.machines[place].process else {
            return;
        };
        match event {
            SnapshotEvent::Taken(Some(meta)) => {
                process.taking = false;
                process.snapshot_retry_at = 0;
                self.snapshot_taken(place, meta);
            }
            SnapshotEvent::Taken(None) => {
                process.taking = false;
                process.snapshot_retry_at = now + SNAPSHOT_RETRY;
                self.counts.see("snapshot failed");
            }
            SnapshotEvent::Answer(input) => self.step(place, input),
            SnapshotEvent::Installed(last_index, result) => {
                let meta = result.map(|(meta, store)| {
                    process.journal.begin_behind(last_index, meta.last_term);
                    process.store = store;
                    process.applied = last_index;
                    process.committed = process.committed.max(last_index);
                    process.log_time = process.log_time.max(meta.log_time);
                    process.bytes_since_snapshot = 0;
                    meta
                });
                self.snapshot_installed(place, last_index, meta);
            }
        }
    }

    fn snapshot_taken(&mut self, place: usize, meta: SnapshotMeta) {
        let last_index = meta.last_index;
        self.counts.see("snapshot taken");
        self.step(place, Input::SnapshotTaken(meta));
        let machine = &mut self.machines[place];
        if let Some(process) = &mut machine.process {
            process.journal.compact(last_index);
        }
    }

    fn snapshot_installed(&mut self, place: usize, last_index: Index, meta: Option<SnapshotMeta>) {
        let machine = &mut self.machines[place];
        let peer = machine.peer;
        if let (Some(meta), Some(process)) = (&meta, &machine.process) {
            self.counts.see("snapshot installed");
            let (known, _) = process.replica.membership_at(process.replica.commit_index());
            if meta.membership_index > known {
                self.counts.hit(crate::fault::Class::F22SnapshotAcrossChange);
            }
            let term = meta.last_term;
            self.checks.installs(peer, last_index, term);
            let digest = crate::run::digest(&process.store);
            if last_index.0.is_multiple_of(crate::checks::DIGEST_EVERY) {
                self.checks.digest(peer, last_index, digest);
            }
        }
        self.step(place, Input::SnapshotInstalled { last_index, meta });
        let machine = &mut self.machines[place];
        if let Some(process) = &mut machine.process {
            process.journal.compact(last_index);
        }
    }

    /// An operator asks the replica for something.
    fn administer(&mut self, place: usize, change: Change, luck: u64) {
        let Some(wish) = self.wish(place, change, luck) else {
            return;
        };
        let Some(process) = &mut self.machines[place].process else {
            return;
        };
        let ticket = process.ticket();
        let input = match wish {
            Wish::Change(change) => Input::ChangeMembers(ticket, change),
            Wish::Transfer(target) => Input::Transfer(ticket, target),
        };
        self.counts.hit(crate::fault::Class::F20Members);
        self.step(place, input);
    }

    fn wish(&mut self, place: usize, change: Change, luck: u64) -> Option<Wish> {
        let me = self.machines[place].peer.id;
        let process = self.machines[place].process.as_ref()?;
        let members = process.replica.membership();
        let mut random = crate::random::Random::new(luck);
        let ids: Vec<_> = self.machines.iter().map(|m| m.peer.id).collect();
        let (inside, outside): (Vec<_>, Vec<_>) =
            ids.into_iter().partition(|id| members.member(*id).is_some());
        let learners = members.members.iter().filter(|m| m.role != MemberRole::Voter);
        let learners: Vec<_> = learners.map(|member| member.id).collect();
        let add = |id: quorumwire_interfaces::ReplicaId, role| MemberChange::Add {
            id,
            role,
            peer_address: format!("m{}:7400", id.0),
        };
        let voter_count = members.voters().count();
        let change = match change {
            Change::AddVoter => add(random.pick(&outside)?, MemberRole::Joining),
            Change::AddLearner => add(random.pick(&outside)?, MemberRole::Learner),
            Change::Return => {
                let id = random.pick(&outside)?;
                let machine = self.machines.iter().find(|machine| machine.peer.id == id)?;
                if machine.was_member {
                    self.counts.hit(crate::fault::Class::F21Returns);
                }
                add(id, MemberRole::Joining)
            }
            Change::Promote => MemberChange::Promote(random.pick(&learners)?),
            // With a voter's memory lost, another one is not to be taken away.
            Change::Remove | Change::RemoveLeader
                if self.forgetful.is_some() || voter_count <= 2 =>
            {
                return None;
            }
            Change::Remove => MemberChange::Remove(random.pick(&inside)?),
            Change::RemoveLeader => MemberChange::Remove(me),
            Change::QuorumAll => MemberChange::Quorum(CommitQuorum::All),
            Change::QuorumMajority => MemberChange::Quorum(CommitQuorum::Majority),
            Change::Transfer => {
                let target = random.pick(&inside).filter(|_| random.permille(700));
                return Some(Wish::Transfer(target));
            }
        };
        Some(Wish::Change(change))
    }
}

enum Wish {
    Change(MemberChange),
    Transfer(Option<quorumwire_interfaces::ReplicaId>),
}

impl Process {
    /// A number for the next question to the replica.
    pub fn ticket(&mut self) -> Ticket {
        self.next_ticket += 1;
        Ticket(self.next_ticket)
    }

    fn tick(&mut self, payload: &[u8]) {
        if let Some(time) = payload.first_chunk::<8>() {
            self.log_time = self.log_time.max(LogTime(u64::from_be_bytes(*time)));
            self.store.advance(self.log_time);
        }
    }

    fn work(&mut self, job: SnapshotJob) -> SnapshotEvent {
        match job {
            SnapshotJob::Take(head, meta, frozen) => {
                let written = self.files.create(&head, |out| frozen.write(out));
                SnapshotEvent::Taken(written.ok().map(|()| meta))
            }
            SnapshotJob::Read(to, last_index, offset, bytes_max) => {
                let chunk = self.files.read_chunk(last_index, offset, bytes_max);
                SnapshotEvent::Answer(Input::SnapshotRead {
                    to,
                    last_index,
                    offset,
                    chunk: chunk.unwrap_or(None),
                })
            }
            SnapshotJob::Store(last_index, offset, bytes) => {
                let result = self.files.store_chunk(last_index, offset, bytes);
                let stored = result.is_ok();
                SnapshotEvent::Answer(Input::SnapshotChunkStored {
                    last_index,
                    next_offset: result.unwrap_or(0),
                    stored,
                })
            }
            SnapshotJob::Install(last_index, last_term) => {
                let installed = self.install(last_index, last_term);
                SnapshotEvent::Installed(last_index, installed)
            }
        }
    }

    fn install(
        &self,
        last_index: Index,
        last_term: quorumwire_interfaces::Term,
    ) -> Option<(SnapshotMeta, Box<quorumwire_kv::Store>)> {
        let head = self.files.install(last_index, last_term).ok()?;
        if head.membership_index > last_index {
            return None;
        }
        let file = self.files.open(last_index).ok()??;
        let mut store = Box::new(quorumwire_kv::Store::new());
        store.restore(&mut file.body().ok()?).ok()?;
        Some((crate::machine::meta(&head), store))
    }
}

/// The operation a command carries out, if a client waits for it or could have.
fn operation_of(command: &[u8]) -> Option<u32> {
    let operation = match Command::decode(command).ok()? {
        Command::Set(item) | Command::Add(item) | Command::Cas { item, .. } => item.flags,
        _ => 0,
    };
    (operation > 0).then_some(operation)
}

fn moment(output: &Output) -> Option<Moment> {
    match output {
        Output::Send { message, .. } => match &message.body {
            Body::VoteReply {
                granted: true,
                pre_vote: false,
            } => Some(Moment::VoteGiven),
            Body::VoteRequest {
                pre_vote: false, ..
            } => Some(Moment::Stands),
            Body::Append { records, .. } if !records.is_empty() => Some(Moment::Appended),
            Body::AppendReply {
                rejected: false, ..
            } => Some(Moment::Acknowledged),
            Body::TransferNow => Some(Moment::TransferAsked),
            _ => None,
        },
        Output::Committed(_) => Some(Moment::Committed),
        Output::RoleChanged(change) if change.role == Role::Leader => Some(Moment::Elected),
        Output::Truncated(_) => Some(Moment::LogCut),
        Output::MembershipChanged(_) => Some(Moment::MembersChanged),
        Output::StoreSnapshotChunk { .. } => Some(Moment::SnapshotPiece),
        Output::InstallSnapshot { .. } => Some(Moment::SnapshotInstall),
        Output::Persist { .. }
        | Output::Read(..)
        | Output::Done(_)
        | Output::Refused(..)
        | Output::RoleChanged(_)
        | Output::ReadSnapshot { .. }
        | Output::TakeSnapshot => None,
    }
}

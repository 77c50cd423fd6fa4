//! What disks and snapshot threads do for a process, and what it makes of that; and what operators ask
//! of it.
use crate::fault::{Change, Class, Moment};
use crate::journal::WriteOutcome;
use crate::machine::{Arrival, GROUP, Machine, Process, Replicated, SnapshotEvent, SnapshotJob};
use crate::queue::{MICROSECOND, MILLISECOND, Nanos, SECOND};
use crate::world::{Event, World};
use quorumwire_control::{Input, MemberChange, Role, SnapshotMeta, Ticket};
use quorumwire_group as group;
use quorumwire_interfaces::{Application as _, Index, ReplicaId, Term};
use quorumwire_wire::{CommitQuorum, MemberRole, SnapshotHead};

/// A snapshot that could not be taken is tried again after this.
const SNAPSHOT_RETRY: Nanos = SECOND;

impl World {
    /// The disk has done something, or cannot.
    pub fn log_has_news(&mut self, machine: usize) {
        let Some(process) = &mut self.machines[machine].process else {
            return;
        };
        let journal = &mut process.journal;
        if journal.persisted != journal.told {
            journal.told = journal.persisted;
            let ticket = Ticket(journal.persisted);
            self.step(machine, Input::Persisted(ticket));
        }
    }

    /// The disk does what was begun.
    pub fn log_done(&mut self, machine: usize) {
        if self.dies_in_write(machine) {
            return;
        }
        let it = &mut self.machines[machine];
        let Some(process) = &mut it.process else {
            return;
        };
        if !process.journal.writing {
            return; // it was done earlier than planned
        }
        let was_full = process.group.is_full;
        match process.journal.write(&mut it.durable) {
            WriteOutcome::Done => {
                process.group.is_full = false;
                self.reached(machine, Moment::Persisted);
                self.arrive(machine, Arrival::Log);
            }
            WriteOutcome::Full => {
                process.group.is_full = true;
                if !was_full {
                    self.counts.hit(Class::F14DiskFull);
                }
                let wait = self.random.between(20, 200) * MILLISECOND;
                let run = it.run;
                self.queue
                    .set(self.now + wait, Event::LogDone(machine, run));
                self.arrive(machine, Arrival::Look);
            }
            WriteOutcome::Failed(problem) => {
                let line = format!("the log failed: {problem}");
                self.say(machine, &line);
                self.log_failed(machine);
            }
        }
    }

    /// Hands work to the snapshot threads.
    pub fn snapshot_work(&mut self, machine: usize, job: SnapshotJob) {
        let now = self.now;
        let took = self.random.between(50, 2_000) * MICROSECOND;
        let it = &mut self.machines[machine];
        let run = it.run;
        let stalled_until = it.stalled_until;
        let Some(process) = &mut it.process else {
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
        let event = Event::SnapshotDone(machine, run, number);
        self.queue.set(begins + took, event);
    }

    /// Takes a snapshot of what is applied, unless one is being taken.
    pub fn take_snapshot(&mut self, machine: usize) {
        let Some(process) = &mut self.machines[machine].process else {
            return;
        };
        let Some(meta) = (!process.taking)
            .then(|| process.group.begin_snapshot())
            .flatten()
        else {
            return;
        };
        let head = SnapshotHead {
            group: GROUP,
            last_index: meta.last_index,
            last_term: meta.last_term,
            log_time: meta.log_time,
            membership: meta.membership.clone(),
            membership_index: meta.membership_index,
        };
        process.taking = true;
        let frozen = process.group.store.freeze();
        self.snapshot_work(machine, SnapshotJob::Take(head, meta, frozen));
    }

    /// A snapshot thread does its work.
    pub fn snapshot_done(&mut self, machine: usize, number: u32) {
        if self.dies_in_write(machine) {
            return;
        }
        let it = &mut self.machines[machine];
        let Some(process) = &mut it.process else {
            return;
        };
        let Some(job) = process.jobs.remove(&number) else {
            return;
        };
        if let SnapshotJob::Read(_, last_index, ..) = job
            && last_index <= process.unreadable_upto
        {
            self.counts.hit(Class::F15Unreadable);
        }
        let event = process.work(job);
        match &event {
            SnapshotEvent::Taken(Some(meta)) => {
                it.durable.covered((meta.last_index, meta.last_term));
            }
            SnapshotEvent::Installed(_, Some((meta, _))) => {
                it.durable.begin_behind((meta.last_index, meta.last_term));
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
            self.reached(machine, moment);
            self.die_if_doomed(machine);
        }
        self.arrive(machine, Arrival::Snapshot(event));
    }

    /// A snapshot thread has finished something.
    pub fn take_snapshot_event(&mut self, machine: usize, event: SnapshotEvent) {
        let now = self.now;
        let Some(process) = &mut self.machines[machine].process else {
            return;
        };
        match event {
            SnapshotEvent::Taken(Some(meta)) => {
                process.taking = false;
                process.snapshot_retry_at = None;
                self.snapshot_taken(machine, meta);
            }
            SnapshotEvent::Taken(None) => {
                process.taking = false;
                process.snapshot_retry_at = Some(now + SNAPSHOT_RETRY);
                self.counts.see("snapshot failed");
            }
            SnapshotEvent::Answer(input) => self.step(machine, input),
            SnapshotEvent::Installed(last_index, result) => {
                let Some((meta, mut store)) = result else {
                    return self.snapshot_installed(machine, last_index, None);
                };
                let is_older = process.group.store.inner().is_older;
                process.journal.begin_behind(last_index, meta.last_term);
                let is_read = !is_older || store.inner().ahead_ms().is_none();
                self.checks.require(is_read, || {
                    format!("I9: older code cannot read the snapshot at {last_index}")
                });
                store.inner_mut().is_older = is_older;
                group::install(&mut self.host(machine), &meta, &mut store);
                self.served_state_is_replaced(machine, store.inner_mut());
                self.snapshot_installed(machine, last_index, Some(meta));
            }
        }
    }

    fn snapshot_taken(&mut self, machine: usize, meta: SnapshotMeta) {
        let last_index = meta.last_index;
        self.counts.see("snapshot taken");
        self.step(machine, Input::SnapshotTaken(meta));
        let it = &mut self.machines[machine];
        if let Some(process) = &mut it.process {
            process.journal.compact(last_index);
        }
    }

    fn snapshot_installed(
        &mut self,
        machine: usize,
        last_index: Index,
        meta: Option<SnapshotMeta>,
    ) {
        let it = &mut self.machines[machine];
        let peer = it.peer;
        if meta.is_none() {
            self.counts.see("snapshot not installed");
        }
        if let (Some(meta), Some(process)) = (&meta, &it.process) {
            self.counts.see("snapshot installed");
            let (known, _) = process
                .group
                .replica
                .membership_at(process.group.replica.commit_index());
            if meta.membership_index > known {
                self.counts.hit(Class::F22SnapshotAcrossChange);
            }
            let term = meta.last_term;
            self.checks.installs(peer, last_index, term);
            let digest = crate::run::digest(&process.group.store);
            if last_index.0.is_multiple_of(crate::checks::DIGEST_EVERY) {
                self.checks.digest(peer, last_index, digest);
            }
        }
        let installed = meta.is_some();
        self.step(machine, Input::SnapshotInstalled { last_index, meta });
        let it = &mut self.machines[machine];
        if let Some(process) = &mut it.process
            && installed
        {
            process.journal.compact(last_index);
        }
    }

    /// An operator asks the replica for something.
    pub fn administer(&mut self, machine: usize, change: Change, luck: u64) {
        let Some(wish) = self.wish(machine, change, luck) else {
            return;
        };
        let Some(process) = &mut self.machines[machine].process else {
            return;
        };
        let ticket = process.group.next_ticket();
        if matches!(wish, Wish::Change(MemberChange::Remove(_))) {
            process.removal = Some(ticket);
        }
        let input = match wish {
            Wish::Change(change) => Input::ChangeMembers(ticket, change),
            Wish::Transfer(target) => Input::Transfer(ticket, target),
        };
        self.counts.hit(Class::F20Members);
        self.step(machine, input);
    }

    fn wish(&mut self, machine: usize, change: Change, luck: u64) -> Option<Wish> {
        let me = self.machines[machine].peer.id;
        let process = self.machines[machine].process.as_ref()?;
        let members = process.group.replica.membership();
        let mut random = crate::random::Random::new(luck);
        let ids: Vec<_> = self.machines.iter().map(|m| m.peer.id).collect();
        let (inside, outside): (Vec<_>, Vec<_>) = ids
            .into_iter()
            .partition(|id| members.member(*id).is_some());
        let learners = members
            .members
            .iter()
            .filter(|m| m.role != MemberRole::Voter);
        let learners: Vec<_> = learners.map(|member| member.id).collect();
        let add = |id: ReplicaId, role| MemberChange::Add {
            id,
            role,
            peer_address: format!("m{}:7400", id.0),
        };
        let voter_count = members.voters().count();
        let leads = process.group.replica.role() == Role::Leader;
        let change = match change {
            Change::AddVoter => add(random.pick(&outside)?, MemberRole::Joining),
            Change::AddLearner => add(random.pick(&outside)?, MemberRole::Learner),
            Change::Return => {
                let id = random.pick(&outside)?;
                let state = self.machines.iter().find(|state| state.peer.id == id)?;
                if state.mark.is_some() {
                    self.counts.hit(Class::F21Returns);
                }
                add(id, MemberRole::Joining)
            }
            Change::Promote => MemberChange::Promote(random.pick(&learners)?),
            // With a voter's memory lost, another one is not to be taken away. One that was put back may know
            // older members only: with one that was removed, and does not know it, it could be a majority.
            Change::Remove | Change::RemoveLeader
                if self.is_memory_missing()
                    || voter_count <= self.plan.settings.shape.voters_min() =>
            {
                return None;
            }
            // Older code is not let in again once the others have a lineage, and so would be out for good.
            Change::Remove | Change::RemoveLeader => {
                let id = if matches!(change, Change::Remove) {
                    random.pick(&inside)?
                } else {
                    me
                };
                let is_older = |it: &Machine| it.peer.id == id && it.is_older();
                if self.machines.iter().any(is_older) {
                    return None;
                }
                MemberChange::Remove(id)
            }
            Change::QuorumAll => MemberChange::Quorum(CommitQuorum::All),
            Change::QuorumMajority => MemberChange::Quorum(CommitQuorum::Majority),
            Change::Transfer => {
                let target = random.pick(&inside).filter(|_| random.permille(700));
                return Some(Wish::Transfer(target));
            }
            Change::Move => {
                let id = random.pick(&inside)?;
                let state = self.machines.iter().find(|state| state.peer.id == id)?;
                if leads && members.member(id)?.incarnation != state.peer.incarnation {
                    self.counts.see("another life of a member found");
                }
                self.moves.find(state, &mut random)
            }
        };
        Some(Wish::Change(change))
    }
}

enum Wish {
    Change(MemberChange),
    Transfer(Option<ReplicaId>),
}

impl Process {
    fn work(&mut self, job: SnapshotJob) -> SnapshotEvent {
        match job {
            SnapshotJob::Take(head, meta, frozen) => {
                let written = self.files.create(&head, |out| frozen.write(out));
                SnapshotEvent::Taken(written.ok().map(|()| meta))
            }
            SnapshotJob::Read(to, last_index, offset, bytes_max) => {
                let found = self.files.read_chunk(last_index, offset, bytes_max);
                let chunk = found.unwrap_or(None);
                SnapshotEvent::Answer(Input::SnapshotRead {
                    to,
                    last_index,
                    offset,
                    chunk: chunk.filter(|_| last_index > self.unreadable_upto),
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
        last_term: Term,
    ) -> Option<(SnapshotMeta, Box<Replicated>)> {
        let head = self.files.install(last_index, last_term).ok()?;
        if head.membership_index > last_index {
            return None;
        }
        let file = self.files.open(last_index).ok()??;
        let mut store = Box::new(Replicated::default());
        store.restore(&mut file.body().ok()?).ok()?;
        Some((SnapshotMeta::from(&head), store))
    }
}

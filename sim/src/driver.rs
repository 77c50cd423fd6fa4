//! A simulated process as what drives a group: how it does what the group wants done, what that is to be like
//! where the world decides, and what is judged on the way.
use crate::clients::{MANY, NOBODY, ServerReply};
use crate::fault::Moment;
use crate::machine::{Group, Origin, SnapshotJob};
use crate::network::Saying;
use crate::outcomes;
use crate::plane::{SimulatedPlane, tell_lineage};
use crate::spelling;
use crate::spelling::value_stored;
use crate::state::State;
use crate::world::World;
use bytes::Bytes;
use quorumwire_control::{
    Body, Engage, Entry, HardState, Input, LeaveReason, Message, Output, Peer, Refusal, Role,
    RoleChange, Ticket,
};
use quorumwire_group::{
    self as group, AnswerKind, AppliedCommand, Driver, FollowerRead, ForwardResult, Proposal,
    ReadState,
};
use quorumwire_interfaces::{Executed, Index, Lineage, Reason, ReplicaId, Term};
use quorumwire_kv::Command;
use quorumwire_linearizability::history::{Answer, Operation};
use quorumwire_replay::Input as Wanted;
use quorumwire_sessions::{Outcome, SESSION_HEADER_BYTES};
use quorumwire_wire::{Membership, RecordKind};
use std::convert::Infallible;
use std::time::Duration;

/// The process of a machine, at work.
pub struct Host<'a> {
    pub world: &'a mut World,
    /// Which machine's.
    pub machine: usize,
    /// What the entry that is being applied has answered.
    replies: Vec<u8>,
    /// Nobody has applied that before.
    is_first: bool,
    /// Whom it has told that there is no answer.
    pub refused: u64,
}

impl World {
    /// The process of a machine, to be put to work.
    pub const fn host(&mut self, machine: usize) -> Host<'_> {
        Host {
            world: self,
            machine,
            replies: Vec::new(),
            is_first: false,
            refused: 0,
        }
    }

    /// Has the replica say what it wants, and does it, until it wants nothing more.
    pub fn carry_out_all(&mut self, machine: usize) {
        let Ok(()) = group::carry_out_all(&mut self.host(machine));
    }
}

impl Driver for Host<'_> {
    type Application = State;
    type Requester = Origin;
    type Plane = SimulatedPlane;
    type Error = Infallible;

    fn group(&mut self) -> Option<&mut Group> {
        let machine = &mut self.world.machines[self.machine];
        let clock = machine.clock(self.world.now);
        let group = &mut machine.process.as_mut()?.group;
        group.now = clock;
        Some(group)
    }

    fn drive<T>(&mut self, what: impl FnOnce(&mut Group) -> T) -> Option<T> {
        self.world.drive(self.machine, what)
    }

    fn carry_out(&mut self, output: Output) -> Result<(), Infallible> {
        let (world, machine) = (&mut *self.world, self.machine);
        if world.loud {
            let line = crate::show::output(&output);
            world.say(machine, &line);
        }
        if let Some(outcome) = outcomes::of(&output) {
            world.counts.see(outcome);
        }
        let moment = moment(&output);
        let answers_with_nothing = world.answers_with_nothing(machine, &output);
        group::carry_out(self, output)?;
        if answers_with_nothing {
            self.world.has_answered_with_nothing(machine);
        }
        if let Some(moment) = moment {
            self.world.reached(machine, moment);
        }
        self.world.die_if_doomed(machine);
        Ok(())
    }

    fn carry_out_effects(&mut self) {
        self.world.carry_out_effects(self.machine);
    }

    fn persist(
        &mut self,
        ticket: Ticket,
        hard_state: Option<HardState>,
        entries: &[Entry],
    ) -> Result<Option<Ticket>, Infallible> {
        let process = self.world.machines[self.machine].process.as_mut();
        Ok(process.and_then(|it| it.journal.persist(ticket, hard_state, entries)))
    }

    fn say(&mut self, to: Peer, message: Message) {
        if let Body::Engaged { engaged: true, .. } = message.body {
            self.world.counts.see("straggler joined");
        }
        self.world.tell_key(self.machine, to, &message);
        self.world
            .send(self.machine, to, Saying::Consensus(message));
    }

    fn other_lineage(&mut self, from: Peer, lineage: Lineage) {
        panic!("{from:?} is of lineage {lineage}, and there is one cluster")
    }

    fn membership_changed(&mut self, membership: &Membership) -> Result<(), Infallible> {
        self.world.membership_changed(self.machine, membership);
        Ok(())
    }

    fn take_snapshot(&mut self) {
        self.world.keeper_hears(self.machine, Wanted::StateWanted);
        self.world.take_snapshot(self.machine);
    }

    fn read_snapshot(&mut self, to: ReplicaId, last_index: Index, offset: u64, bytes_max: usize) {
        let job = SnapshotJob::Read(to, last_index, offset, bytes_max);
        self.world.snapshot_work(self.machine, job);
    }

    fn store_snapshot_chunk(&mut self, last_index: Index, offset: u64, bytes: Bytes) {
        let job = SnapshotJob::Store(last_index, offset, bytes);
        self.world.snapshot_work(self.machine, job);
    }

    fn install_snapshot(&mut self, last_index: Index, last_term: Term) {
        let job = SnapshotJob::Install(last_index, last_term);
        self.world.snapshot_work(self.machine, job);
    }

    fn engage(&mut self, engage: &Engage) {
        self.world.engage_plane(self.machine, engage);
    }

    fn disengage(&mut self, reason: LeaveReason) {
        self.world.stop_plane(self.machine, reason);
    }

    fn plane_was_used(&mut self) {
        self.world.launch(self.machine);
    }

    fn plane_was_polled(&mut self) {
        let counts = &mut self.world.counts;
        let process = self.world.machines[self.machine].process.as_ref();
        let Some(plane) = process.and_then(|it| it.group.plane.as_ref()) else {
            return;
        };
        let (behind, requests) = (plane.brought.behind.len(), plane.brought.requests.len());
        counts.see_many("asked for what no ring holds", behind as u64);
        counts.see_many("plane left a request to software", requests as u64);
        if plane.data_plane().failed {
            self.drive(|group| group.step(Input::PlaneFailed));
        }
    }

    fn plane_was_emptied(&mut self, had_entries: bool) {
        if had_entries {
            self.world.reached(self.machine, Moment::PlaneTaken);
        }
        let told = self.group().and_then(|group| {
            let was_listed = group.replica.was_listed();
            Some(tell_lineage(group.plane.as_mut()?, was_listed))
        });
        let told = told.unwrap_or(0);
        self.world.counts.see_many("lineage told", told);
    }

    fn note_transfer_for_room(&mut self) {
        self.world
            .counts
            .see("let another one lead for want of room");
    }

    fn apply_entry(&mut self, entry: &Entry) -> usize {
        let world = &mut *self.world;
        let machine = &world.machines[self.machine];
        let peer = machine.peer;
        let Some(process) = &machine.process else {
            return 0;
        };
        let expected = process.group.applied.next();
        world.checks.require(entry.index == expected, || {
            format!("I12: {peer:?} applies {} after {expected}", entry.index)
        });
        self.is_first = entry.index > world.applied_first;
        if self.is_first {
            world.applied_first = entry.index;
            world.applied_first_at = world.now;
            world.counts.committed += 1;
        }
        self.replies.clear();
        let commands = group::apply_entry(self, entry);
        if self.group().is_none() {
            return commands; // it died at one of them
        }
        let world = &mut *self.world;
        world.checks.applies(peer, entry.index, &self.replies);
        if entry.kind == RecordKind::Bundle {
            world.checks.require(commands > 1, || {
                format!("I12: {peer:?} carries out {commands} commands of a bundle")
            });
            if self.is_first {
                world.counts.see("bundle carried out");
            }
        }
        if entry.index.0.is_multiple_of(crate::checks::DIGEST_EVERY)
            && let Some(process) = &world.machines[self.machine].process
        {
            let digest = crate::run::digest(&process.group.store);
            world.checks.digest(peer, entry.index, digest);
        }
        commands
    }

    fn answer_reads_before(&mut self, origin: Origin) {
        if let Origin::Operation(write) = origin {
            self.world.answer_reads_in_front(self.machine, write);
        }
    }

    fn note_applied(&mut self, index: Index, applied: &AppliedCommand<'_, Origin>, reply: &[u8]) {
        self.replies.extend_from_slice(reply);
        self.world.judge_values(self.machine);
        self.note_command(index, applied);
    }

    fn note_missing(&mut self, proposal: &Proposal<Origin>) {
        let peer = self.world.machines[self.machine].peer;
        self.world.checks.require(false, || {
            let (index, position) = proposal.log_position();
            format!("I6: {peer:?} has nothing at position {position} of {index}")
        });
    }

    fn note_answered(&mut self, proposal: &Proposal<Origin>, said: AnswerKind) {
        if said == AnswerKind::Repeated && matches!(proposal.origin, Origin::Plane(_)) {
            self.world.counts.see("repeated, answered from the session");
        }
        let made_no_sense = [Reason::AnswerTooLong, Reason::Malformed].map(AnswerKind::Refused);
        self.world
            .checks
            .require(!made_no_sense.contains(&said), || {
                format!("I6: {:?} is told {said:?}", proposal.origin)
            });
    }

    fn note_refused(&mut self, reason: Reason) {
        self.refused += 1;
        self.world
            .checks
            .require(reason != Reason::AnswerTooLong, || {
                "I6: an answer fits no packet".to_owned()
            });
    }

    fn note_displaced(&mut self, _: &Proposal<Origin>) {
        self.world.counts.see("certainly not done");
    }

    fn note_follower_without_round(&mut self) {
        self.world
            .counts
            .see("read of a follower without its round");
    }

    fn answer_here(&mut self, origin: Origin, said: AnswerKind, reply: &[u8]) {
        let operation = match origin {
            Origin::Operation(operation) => operation,
            Origin::Served(number) => {
                return self
                    .world
                    .served_is_answered(self.machine, number, said, reply);
            }
            Origin::Values(asker, number) => {
                return (self.world).values_are_answered((asker, number), said, reply);
            }
            Origin::Plane(_) | Origin::Follower(_) => panic!("{origin:?} is not here"),
        };
        if operation == NOBODY {
            return;
        }
        let asked = self.world.asked[operation as usize];
        let told = match said {
            AnswerKind::Refused(reason) => match reason.executed() {
                Executed::No => Some(ServerReply::NotDone(
                    self.world.leader_known_at(self.machine),
                )),
                Executed::Yes | Executed::Unknown => Some(ServerReply::Unknown),
            },
            AnswerKind::Answer | AnswerKind::Repeated if asked.operation == Operation::Get => {
                let key = format!("key{}", asked.key);
                let value = spelling::value_of(&asked, &key, operation, reply);
                value.map(|(value, unique)| ServerReply::Done(Answer::Value(value), unique))
            }
            AnswerKind::Answer | AnswerKind::Repeated => {
                let answer = spelling::answer_of(&asked, operation, reply);
                answer.map(|answer| ServerReply::Done(answer, 0))
            }
        };
        let what = asked.operation;
        self.world.checks.require(told.is_some(), || {
            format!("I6: {what:?} is answered {}", reply.escape_ascii())
        });
        if let Some(told) = told {
            self.world.answer(self.machine, operation, told);
        }
    }

    fn take_returned(&mut self, returned: ForwardResult<Origin>, reply: &[u8]) {
        match returned {
            ForwardResult::Answered(forward, said) => {
                if let AnswerKind::Refused(reason) = said {
                    self.world.counts.see(match reason.executed() {
                        Executed::No => "refused by the leader it was passed on to",
                        Executed::Yes | Executed::Unknown => "passed on, outcome unknown",
                    });
                }
                self.answer_here(forward.origin, said, reply);
            }
            ForwardResult::Again {
                forward,
                number,
                at_once,
            } => {
                let Origin::Operation(operation) = forward.origin else {
                    panic!("only clients' requests are passed on");
                };
                let again = (number, at_once);
                self.world.ask_leader_again(self.machine, operation, again);
            }
        }
    }

    fn patience(&self) -> Duration {
        Duration::from_nanos(self.world.plan.settings.election_timeout)
    }

    fn role_changed(&mut self, change: &RoleChange) {
        if change.role == Role::Leader {
            self.world.counts.see("elected");
        }
        self.world.attend_to_all_pipes(self.machine);
    }

    fn ticket_done(&mut self, ticket: Ticket, result: Result<(), Refusal>) {
        if let Some(process) = &mut self.world.machines[self.machine].process {
            process.removal.take_if(|asked| *asked == ticket);
        }
        self.world.counts.see(match result {
            Ok(()) => "request done",
            Err(_) => "request refused",
        });
    }

    fn read_granted(&mut self, operation: u32, ticket: Ticket, index: Index) {
        let world = &mut *self.world;
        world.pipe_is_granted(self.machine, operation, ticket, index);
        world.read_granted(self.machine, operation, index);
    }

    fn read_not_granted(&mut self, operation: u32, ticket: Ticket, _: bool) {
        let (world, machine) = (&mut *self.world, self.machine);
        world.counts.see("read without its round");
        match world.burst_of(operation) {
            Some(burst) => world.pipe_reads_anew(machine, burst, ReadState::Round(ticket)),
            None => world.refuse(machine, operation),
        }
    }

    fn read_is_ready(&mut self, operation: u32, index: Index) {
        let world = &mut *self.world;
        world.read_granted(self.machine, operation, index);
    }

    fn read_is_overdue(&mut self, operation: u32) {
        let (world, machine) = (&mut *self.world, self.machine);
        world.counts.see("read of what stands still");
        match world.burst_of(operation) {
            Some(burst) => world.pipe_waits_no_more(machine, burst),
            None => world.refuse(machine, operation),
        }
    }

    fn answer_follower_read(&mut self, _: Index, read: FollowerRead) {
        self.world.answer_follower_read(self.machine, &read);
    }
}

impl Host<'_> {
    /// Judges and counts a command that was carried out.
    fn note_command(&mut self, index: Index, applied: &AppliedCommand<'_, Origin>) {
        let (world, first) = (&mut *self.world, self.is_first);
        let payload = applied.command.payload();
        match applied.command.kind() {
            RecordKind::Command => {
                if first {
                    if let Some(operation) = operation_of(payload) {
                        world.note_carried_out(index, operation);
                    }
                    world.note_life(self.machine, payload);
                }
            }
            RecordKind::Tick => world.counts.see(match payload.len() {
                8 => "a tick without the wall clock",
                _ => "a tick with the wall clock",
            }),
            RecordKind::SessionCommand => {
                let command = payload.get(SESSION_HEADER_BYTES..).unwrap_or(b"");
                if first
                    && applied.outcome == Outcome::Applied
                    && let Some(operation) = operation_of(command)
                {
                    world.note_carried_out(index, operation);
                    world.note_life(self.machine, command);
                }
                world.note_session(index, applied, first);
            }
            RecordKind::Fragment => {
                world.note_session(index, applied, first);
                let is_last = applied.outcome == Outcome::Applied;
                if first && (is_last || applied.outcome == Outcome::Incomplete) {
                    world.note_own_fragment(self.machine, index, payload, is_last);
                }
            }
            RecordKind::Bundle
            | RecordKind::NoOp
            | RecordKind::Membership
            | RecordKind::HardState
            | RecordKind::Durable
            | RecordKind::Base => {}
        }
    }
}

impl World {
    /// Judges a client's command that is carried out for the first time.
    pub fn note_carried_out(&mut self, index: Index, operation: u32) {
        self.checks.carries_out(index, operation);
        let asked = self.asked.get((operation as usize).wrapping_sub(1));
        if let Some(asked) = asked.filter(|it| it.client == MANY) {
            self.checks.keeps_order(index, asked.burst, operation);
        }
    }

    /// Judges and counts what became of a command with a session, or of a piece of one.
    fn note_session(&mut self, index: Index, applied: &AppliedCommand<'_, Origin>, first: bool) {
        let (payload, outcome) = (applied.command.payload(), applied.outcome);
        let number = |at: usize| {
            let bytes = payload.get(at..).and_then(|rest| rest.first_chunk::<8>());
            bytes.map_or(0, |bytes| u64::from_be_bytes(*bytes))
        };
        if outcome == Outcome::Applied {
            let at = (index, applied.position);
            self.checks.runs((number(0), number(8)), at);
        }
        if !first {
            return;
        }
        match outcome {
            Outcome::Applied if applied.command.kind() == RecordKind::Fragment => {
                self.counts.see("fragments assembled");
            }
            Outcome::Applied => self.counts.see("session command applied"),
            Outcome::Repeated => self.counts.see("session command repeated"),
            Outcome::Incomplete => self.counts.see("fragment kept"),
            Outcome::Refused(_) => self.counts.see("session refused"),
            Outcome::AnswerTooLong => {} // the store has none
        }
    }
}

/// The operation a command carries out, if a client waits for it or could have.
pub fn operation_of(command: &[u8]) -> Option<u32> {
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
            Body::Fresh { .. }
            | Body::Bootstrap { .. }
            | Body::VoteRequest { .. }
            | Body::VoteReply { .. }
            | Body::Append { .. }
            | Body::AppendReply { .. }
            | Body::SnapshotChunk { .. }
            | Body::SnapshotReply { .. }
            | Body::Engaged { .. } => None,
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

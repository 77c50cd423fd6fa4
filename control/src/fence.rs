//! The fence: whatever would end or leave a fast term waits until this replica's data plane has stopped
//! and all that it stored is in the log. Only then votes, terms, log comparisons, entries from software
//! and membership changes are right: the plane acknowledges entries that the log does not hold yet.
use crate::engagement::{Engagement, Initiator, Phase};
use crate::mutants::mutant;
use crate::{
    Body, Input, LeaveReason, MemberChange, Message, Output, Peer, Refusal, Replica, Role, Ticket,
};
use quorumwire_interfaces::{Registers, ReplicaId};
use std::collections::VecDeque;

/// Most inputs that wait for a plane to stop.
const FENCE_INPUTS_MAX: usize = 4096;

/// Most bytes of messages that wait for a plane to stop.
const FENCE_BYTES_MAX: usize = 16 << 20;

/// What waits for the plane to stop, in the order in which it came.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    inputs: VecDeque<Input>,
    bytes: usize,
}

impl Replica {
    /// Looks at everything that happens before it is acted upon: it may have to wait.
    pub(crate) fn take_in(&mut self, input: Input, outputs: &mut Vec<Output>) {
        match self.plane.phase() {
            Some(Phase::Stopping) if LogInput::of(&input).is_some() => self.wait(input, outputs),
            Some(Phase::Stopping) | None => self.dispatch(input, outputs),
            Some(Phase::Starting | Phase::Running) => match self.reason_to_leave(&input) {
                Some(reason) => {
                    self.leave(reason, outputs);
                    self.wait(input, outputs);
                }
                None => self.dispatch(input, outputs),
            },
        }
    }

    /// Stops the plane. What is left to do follows when it has stopped.
    pub(crate) fn leave(&mut self, reason: LeaveReason, outputs: &mut Vec<Output>) {
        let Some(engagement) = &mut self.plane.engagement else {
            return;
        };
        if engagement.phase == Phase::Stopping {
            return;
        }
        engagement.phase = Phase::Stopping;
        let counters = &mut self.fast_counters;
        counters.left.count(reason);
        counters.last_left = Some(reason);
        outputs.push(Output::Disengage(reason));
    }

    fn wait(&mut self, input: Input, outputs: &mut Vec<Output>) {
        let waiting = &mut self.plane.waiting;
        let bytes = input_bytes(&input);
        if waiting.inputs.len() < FENCE_INPUTS_MAX && waiting.bytes + bytes <= FENCE_BYTES_MAX {
            waiting.bytes += bytes;
            waiting.inputs.push_back(input);
            self.fast_counters.fence_waited += 1;
            return;
        }
        match LogInput::of(&input) {
            Some(
                LogInput::Read(ticket)
                | LogInput::ChangeMembers(ticket, _)
                | LogInput::Transfer(ticket, _),
            ) => {
                let limit = "fence_inputs_max";
                outputs.push(Output::Refused(ticket, Refusal::Busy { limit }));
            }
            Some(LogInput::Message(..)) | None => self.fast_counters.fence_dropped += 1,
        }
    }

    /// Why the plane must stop before this can be acted upon, if it must.
    fn reason_to_leave(&self, input: &Input) -> Option<LeaveReason> {
        match LogInput::of(input)? {
            LogInput::Message(from, message) => self.reason_in_message(from, message),
            LogInput::ChangeMembers(_, change) => {
                let sound = self.leading.is_some() && self.plan_change(change).is_ok();
                (sound && !mutant("change-members-unfenced"))
                    .then_some(LeaveReason::MembershipChange)
            }
            LogInput::Transfer(_, target) => {
                let sound = self.transfer_target(target).is_ok();
                (sound && !mutant("transfer-unfenced")).then_some(LeaveReason::Transfer)
            }
            LogInput::Read(_) => None,
        }
    }

    fn reason_in_message(&self, from: Peer, message: &Message) -> Option<LeaveReason> {
        if self.is_old_life(from) || from.id == self.config.me.id {
            return None;
        }
        let newer = message.term > self.term;
        let newer_if = |holds: bool| (newer && holds).then_some(LeaveReason::HigherTerm);
        match &message.body {
            Body::VoteRequest {
                pre_vote: false,
                transfer,
                engage,
                ..
            } => {
                let heeded = self.heeds_candidate(from, *transfer, *engage)
                    || mutant("disturber-ends-fast-term");
                newer_if(heeded && !mutant("vote-before-fence"))
            }
            Body::VoteReply {
                granted, pre_vote, ..
            } => newer_if(!(*granted && *pre_vote) && self.members.is_voter(from)),
            Body::Append { .. } | Body::SnapshotChunk { .. } => {
                let leads = self.role != Role::Leader && self.leader.is_none_or(|l| l == from);
                let software = message.term == self.term && leads && !mutant("append-unfenced");
                newer_if(true).or(software.then_some(LeaveReason::Software))
            }
            Body::EngageOffer { .. } => newer_if(true),
            Body::AppendReply { .. } | Body::SnapshotReply { .. } | Body::Engaged { .. } => {
                newer_if(self.members.is_member(from))
            }
            Body::TransferNow => {
                let mine = self.is_told_to_take_over(from, message.term);
                mine.then_some(LeaveReason::Transfer)
            }
            Body::Fresh { .. } => {
                let due = self.would_replace(from).is_some();
                due.then_some(LeaveReason::MembershipChange)
            }
            Body::VoteRequest { pre_vote: true, .. } | Body::Bootstrap { .. } => None,
        }
    }

    pub(crate) fn on_disengaged(&mut self, registers: &Registers, outputs: &mut Vec<Output>) {
        let stopping = self.plane.phase() == Some(Phase::Stopping);
        let Some(engagement) = self.plane.engagement.take_if(|_| stopping) else {
            self.counters.ignored_unexpected += 1;
            return;
        };
        // A plane that never came to engage shows what an earlier term left.
        if registers.term == engagement.term {
            assert!(
                registers.last_index <= self.log.last_index(),
                "the plane has stopped and kept entries back"
            );
            let mut before = engagement.registers;
            if mutant("fence-forgets-rounds") {
                before.round = registers.round;
            }
            let grant = (engagement.leader, &engagement.voters[..]);
            self.learn_from_plane(grant, &before, registers, outputs);
        }
        self.go_on_in_software(&engagement, outputs);
        let waiting = std::mem::take(&mut self.plane.waiting);
        for input in waiting.inputs {
            self.take_in(input, outputs);
            self.settle(outputs);
        }
        // An election that was ready may go on, unless its leader was heard after all.
        self.count_votes(outputs);
    }

    /// The same term goes on without the plane.
    fn go_on_in_software(&mut self, left: &Engagement, outputs: &mut Vec<Output>) {
        if self.leading.is_some() {
            self.lead_in_software(left);
            return;
        }
        match (left.initiator, self.leader) {
            (Initiator::Own, _) => self.votes.give_up_engaging(),
            (Initiator::Candidate(_) | Initiator::Leader(_), Some(leader)) => {
                self.tell_engaged(leader, false, outputs);
            }
            // The vote is given, and perhaps nobody knows of it: it was to be told along with the plane.
            (Initiator::Candidate(_), None) => {
                self.answer_initiator(left.initiator, false, outputs);
            }
            (Initiator::Leader(_), None) => {}
        }
    }
}

/// What may lead to a vote, a term, a comparison of logs, an entry or a read: it waits while a plane stops.
enum LogInput<'a> {
    Message(Peer, &'a Message),
    Read(Ticket),
    ChangeMembers(Ticket, &'a MemberChange),
    Transfer(Ticket, Option<ReplicaId>),
}

impl<'a> LogInput<'a> {
    /// None: it does not touch the log, and never waits.
    fn of(input: &'a Input) -> Option<Self> {
        match input {
            Input::Message { from, message } => Some(Self::Message(*from, message)),
            Input::Read(ticket) => Some(Self::Read(*ticket)),
            Input::ChangeMembers(ticket, change) => Some(Self::ChangeMembers(*ticket, change)),
            Input::Transfer(ticket, target) => Some(Self::Transfer(*ticket, *target)),
            Input::Timeout
            | Input::StoodStill(_)
            | Input::PeerUp(..)
            | Input::PeerDown(_)
            | Input::Persisted(_)
            | Input::Applied(_)
            | Input::SnapshotTaken(_)
            | Input::SnapshotRead { .. }
            | Input::SnapshotChunkStored { .. }
            | Input::SnapshotInstalled { .. }
            | Input::PlanePeer { .. }
            | Input::Engaged { .. }
            | Input::PlaneEntries(_)
            | Input::PlaneProgress { .. }
            | Input::PlaneBehind(_)
            | Input::PlaneFailed
            | Input::Disengaged { .. } => None,
        }
    }
}

/// Bytes a waiting input keeps in memory.
fn input_bytes(input: &Input) -> usize {
    let Input::Message { message, .. } = input else {
        return 0;
    };
    match &message.body {
        Body::Append { records, .. } => records.iter().map(bytes::Bytes::len).sum(),
        Body::SnapshotChunk { bytes, .. } => bytes.len(),
        Body::Bootstrap { record } => record.len(),
        Body::Fresh { peer_address, .. } => peer_address.len(),
        Body::VoteRequest { .. }
        | Body::VoteReply { .. }
        | Body::AppendReply { .. }
        | Body::SnapshotReply { .. }
        | Body::TransferNow
        | Body::EngageOffer { .. }
        | Body::Engaged { .. } => 0,
    }
}

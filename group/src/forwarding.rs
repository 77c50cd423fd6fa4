//! Requests that a follower passes on to the leader: the follower's side, which remembers whom each answer is
//! for, and the leader's.
use crate::forwards::{Forward, ForwardResult, LateRequest, REQUEST_TIMEOUT, Successor};
use crate::group::{Gate, Group, SubmitOutcome};
use crate::mutants::mutant;
use crate::passed_on::{AnswerKind, ForwardKind, PassedOn, is_said_in_words};
use crate::requester::{Follower, RequestId, Requester};
use crate::waiting::{FollowerRead, Reader};
use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use quorumwire_control::{Now, Peer, RoleChange};
use quorumwire_interfaces::{Application, DataPlane, Reason, Term};
use quorumwire_wire::limits::{ATTACHMENT_BYTES_MAX, COMMAND_BYTES_MAX, SESSION_COMMAND_BYTES_MAX};
use std::time::Duration;

/// Requests wait this long for a leader to appear before they are refused.
const LEADER_WAIT: Duration = Duration::from_secs(1);
/// Requests a follower may have sent to the leader without an answer yet.
const FORWARDS_MAX: usize = 16 << 10;
/// An answer to a follower larger than this is not sent while more than [`LINK_BULK_MAX`] bytes wait.
/// Of a write that was answered so, a client hears that it was executed.
const BULK_ANSWER_BYTES: usize = 4 << 10;
/// See [`BULK_ANSWER_BYTES`]; half of what a connection between replicas may hold.
const LINK_BULK_MAX: usize = crate::peers::QUEUE_BYTES_MAX / 2;

/// What a follower's request becomes.
#[derive(Debug)]
pub enum FollowerRequest {
    /// It is refused, or waits.
    Done,
    /// A read that may be answered now; it has leave to be answered at this index.
    Read(quorumwire_interfaces::Index, FollowerRead),
    /// A command that may be put into the log.
    Write(FollowerCommand),
}

/// A command that a follower passed on.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum FollowerCommand {
    /// It.
    Plain(Bytes),
    /// With its session and its sequence.
    InSession((u64, u64), Bytes),
}

/// The follower's side.
impl<S: Application, O: Requester, P: DataPlane + ?Sized> Group<S, O, P> {
    /// Another replica that leads and can be asked.
    #[must_use]
    pub fn serving_leader(&self) -> Option<Peer> {
        let leader = self.replica.leader().and_then(|id| self.member(id))?;
        let can_be_asked = self.peers.is_up(leader) && self.forwards.not_leader != Some(leader);
        can_be_asked.then_some(leader)
    }

    /// Whether requests are carried out here, or by somebody who can be asked. If one has to wait all the
    /// same, there is no room for it.
    #[must_use]
    pub fn has_somewhere_to_go(&self) -> bool {
        let takes_requests = self.leads() && !self.replica.is_transferring();
        takes_requests || self.serving_leader().is_some()
    }

    /// The leader to send a request to; the error is what to do with it instead.
    pub fn leader_to_ask(&mut self) -> Result<Peer, SubmitOutcome> {
        match self.serving_leader() {
            Some(_) if self.forwards.len() >= FORWARDS_MAX => Err(SubmitOutcome::NoRoom),
            Some(leader) => Ok(leader),
            None => {
                let since = *self.forwards.leaderless_since.get_or_insert(self.now);
                if self.now.0.saturating_sub(since.0) > LEADER_WAIT {
                    return Err(SubmitOutcome::Refused(Reason::NoLeader));
                }
                Err(SubmitOutcome::NoRoom)
            }
        }
    }

    /// Sends a request to the leader, and remembers it; the number that it has. None: there is no room.
    pub fn forward(&mut self, to: Peer, origin: O, kind: ForwardKind, bytes: Bytes) -> Option<u64> {
        let number = self.forwards.next;
        let id = RequestId {
            term: self.replica.term(),
            process: self.forwards.process,
            number,
        };
        if !self.pass_on(to, PassedOn::Request(id, kind, bytes)) {
            return None;
        }
        self.forwards.next += 1;
        self.forwards.counters.sent += 1;
        self.forwards.leaderless_since = None;
        let forward = Forward {
            origin,
            is_read: kind == ForwardKind::Read,
            to,
            term: id.term,
            at: self.now,
        };
        self.forwards.waiting.insert(number, forward);
        Some(number)
    }

    /// An answer has come. None: nobody waits for it any more, or it is nobody's here.
    pub fn take_reply(
        &mut self,
        from: Peer,
        id: RequestId,
        said: AnswerKind,
    ) -> Option<ForwardResult<O>> {
        let forward = self.forwards.take(from, id)?;
        let leads_no_more = said == AnswerKind::Refused(Reason::NotLeader);
        // Says nothing of the terms since: it may lead again.
        if leads_no_more && forward.term == self.replica.term() {
            self.forwards.not_leader = Some(from);
        }
        let is_busy = said == AnswerKind::Refused(Reason::Busy);
        if forward.is_read && (leads_no_more || is_busy) {
            self.stalled |= is_busy; // not at once, which would be as much in vain
            return Some(ForwardResult::Again {
                forward,
                number: id.number,
                at_once: leads_no_more,
            });
        }
        Some(ForwardResult::Answered(forward, said))
    }

    /// Gives up requests that no answer can be expected for: reads begin anew, writes have an unknown
    /// outcome.
    fn give_up_forwards(&mut self, lost: Vec<u64>) -> Vec<ForwardResult<O>> {
        let mut returned = Vec::new();
        for number in lost {
            let Some(forward) = self.forwards.waiting.remove(&number) else {
                continue;
            };
            returned.push(if forward.is_read {
                ForwardResult::Again {
                    forward,
                    number,
                    at_once: true,
                }
            } else {
                ForwardResult::Answered(forward, AnswerKind::Refused(Reason::OutcomeUnknown))
            });
        }
        returned
    }

    /// A connection is gone: what was sent over it has no answer.
    #[must_use]
    pub(crate) fn give_up_sent_to(&mut self, peer: Peer) -> Vec<ForwardResult<O>> {
        let lost = self.forwards.numbers(|forward| forward.to == peer);
        self.give_up_forwards(lost)
    }

    /// Leadership changed hands, or may have. Reads are asked anew of whoever leads now. Writes wait as long
    /// as the old leader may still find out.
    #[must_use]
    pub fn role_changed(
        &mut self,
        change: &RoleChange,
        patience: Duration,
    ) -> Vec<ForwardResult<O>> {
        self.begin_term();
        self.forwards.not_leader = None;
        self.forwards.succession.note(change, self.now);
        if change.leader.is_some() {
            self.forwards.leaderless_since = None;
        } else {
            self.forwards.leaderless_since.get_or_insert(self.now);
        }
        let leads_no_more =
            |forward: &Forward<O>| forward.is_read && Some(forward.to.id) != change.leader;
        let lost = self.forwards.numbers(leads_no_more);
        let mut returned = self.give_up_forwards(lost);
        returned.extend(self.give_up_left_behind(patience));
        returned
    }

    /// Writes that were sent to a leader which another has replaced, and whose outcome it will not tell. It
    /// may still find out for a while: one that handed its office over is alive and soon does. One that
    /// hangs, or is cut off, does not, and its connection looks alive for much longer than it takes to elect
    /// another. They are not sent again: they may be in the log.
    #[must_use]
    pub(crate) fn give_up_left_behind(&mut self, patience: Duration) -> Vec<ForwardResult<O>> {
        let left_behind = self.left_behind(patience);
        self.give_up_forwards(left_behind)
    }

    /// The numbers of those that are left behind. Nearly always there is nothing to look at.
    fn left_behind(&self, patience: Duration) -> Vec<u64> {
        let term = self.replica.term();
        let sent_before = |forward: &Forward<O>| forward.term < term;
        let first = self.forwards.waiting.values().next();
        let (Some(first), Some(id)) = (first, self.replica.leader()) else {
            return Vec::new();
        };
        if !sent_before(first) {
            return Vec::new(); // nor is any behind it: terms only grow
        }
        let successor = Successor {
            id,
            term,
            known_for: self.now.0.saturating_sub(self.forwards.succession.since.0),
        };
        let waiting = self.forwards.waiting.iter();
        let sent_before = waiting.take_while(|(_, it)| sent_before(it));
        let left_behind = sent_before.filter(|(_, forward)| {
            let is_quiet = self.peers.is_quiet(forward.to, self.now);
            forward.is_left_behind(successor, is_quiet, patience)
        });
        left_behind.map(|(number, _)| *number).collect()
    }

    /// Takes out all that has waited for too long, and forgets the reads that followers have given up.
    #[must_use]
    pub(crate) fn take_late(&mut self) -> Vec<LateRequest<O>> {
        let now = self.now;
        let is_late = |at: Now| now.0.saturating_sub(at.0) > REQUEST_TIMEOUT;
        self.forget_late_reads();
        let proposals = self.proposals.take_late(is_late).into_iter();
        let mut late: Vec<LateRequest<O>> = proposals
            .map(|it| (it.origin, Reason::OutcomeUnknown))
            .collect();
        let plane = self.plane.as_mut();
        let submissions = plane.map_or(Vec::new(), |plane| plane.take_late(is_late));
        let reason = self.why_not_submitted();
        let origins = submissions.into_iter().filter_map(|it| it.origin);
        late.extend(origins.map(|origin| (origin, reason)));
        // The first is the oldest.
        let first = self.forwards.waiting.values().next();
        if first.is_some_and(|forward| is_late(forward.at)) {
            for number in self.forwards.numbers(|forward| is_late(forward.at)) {
                if let Some(forward) = self.forwards.waiting.remove(&number) {
                    let reason = if forward.is_read {
                        Reason::NoLeader
                    } else {
                        Reason::OutcomeUnknown
                    };
                    late.push((forward.origin, reason));
                }
            }
        }
        late
    }

    /// Why what waited for the plane never reached a log.
    #[must_use]
    pub(crate) fn why_not_submitted(&self) -> Reason {
        if self.leads() {
            Reason::Busy
        } else {
            Reason::NotCommitted
        }
    }
}

/// The leader's side.
impl<S: Application, O: Requester, P: DataPlane + ?Sized> Group<S, O, P> {
    /// Whether a write that a follower passed on in this term may come to stand in the log now. One that was
    /// sent to us before others led may not: what its client sent behind it may have been carried out by one
    /// of them.
    pub fn takes_writes_of(&mut self, term: Term) -> bool {
        if !self.leads() {
            return false;
        }
        self.begin_term();
        (self.led_since..=self.replica.term()).contains(&term) || mutant("late-write-is-taken")
    }

    /// A request that a follower has passed on.
    pub(crate) fn take_request(
        &mut self,
        from: Follower,
        kind: ForwardKind,
        bytes: Bytes,
    ) -> FollowerRequest {
        let refuse = |group: &mut Self, reason| {
            group.refuse_follower(from, reason);
            FollowerRequest::Done
        };
        let is_member = self.member(from.peer.id) == Some(from.peer);
        if bytes.len() > COMMAND_BYTES_MAX || !self.leads() || !is_member {
            return refuse(self, Reason::NotLeader);
        }
        if kind == ForwardKind::Read {
            return self.take_read(FollowerRead {
                from,
                line: bytes,
                at: self.now,
            });
        }
        if !self.takes_writes_of(from.id.term) {
            return refuse(self, Reason::NotLeader);
        }
        if self.is_full {
            return refuse(self, Reason::DiskFull);
        }
        let command = match kind {
            ForwardKind::Read | ForwardKind::Write => Some(FollowerCommand::Plain(bytes)),
            ForwardKind::Session => in_session(bytes),
        };
        command.map_or_else(|| refuse(self, Reason::NotLeader), FollowerRequest::Write)
    }

    /// A follower's command, into the log.
    pub(crate) fn write_of_follower(
        &mut self,
        from: Follower,
        command: &FollowerCommand,
    ) -> SubmitOutcome {
        match command {
            FollowerCommand::Plain(bytes) => {
                if S::shows_time(bytes) {
                    self.want_exact_time();
                }
                self.write(from.into(), bytes.len(), |buffer| {
                    buffer.extend_from_slice(bytes);
                })
            }
            FollowerCommand::InSession(name, bytes) => {
                self.write_in_session(from.into(), *name, bytes)
            }
        }
    }

    fn take_read(&mut self, read: FollowerRead) -> FollowerRequest {
        let from = read.from;
        let must_apply = self.read_barrier();
        if !self.reads.has_room_for(read.line.len()) {
            self.refuse_follower(from, Reason::Busy);
            return FollowerRequest::Done;
        }
        match self.gate(must_apply, true, &read.line) {
            Gate::Open => return FollowerRequest::Read(must_apply, read),
            Gate::Overdue => self.refuse_follower(from, Reason::Overdue),
            Gate::Wait(index) => self.wait_for(index, Reader::Follower(read)),
            Gate::NoLease => {
                self.ask_round(must_apply, Reader::Follower(read));
            }
            Gate::NotLeader => self.refuse_follower(from, Reason::NotLeader),
        }
        FollowerRequest::Done
    }

    /// Tells a follower what became of a write that it passed on, unless that is still to come.
    pub fn answer_unless_pending(&mut self, to: Follower, submitted: SubmitOutcome) {
        match submitted {
            SubmitOutcome::Pending => {}
            SubmitOutcome::NoRoom => self.refuse_follower(to, Reason::Busy),
            SubmitOutcome::Refused(reason) => self.refuse_follower(to, reason),
        }
    }

    /// Tells a follower why what it passed on has no answer.
    pub fn refuse_follower(&mut self, to: Follower, reason: Reason) {
        let words = if is_said_in_words(reason) {
            (self.refusal_words)(reason)
        } else {
            Bytes::new()
        };
        self.reply_to(to, AnswerKind::Refused(reason), words);
    }

    /// Answers a write that a follower passed on. A large answer gives way to the protocol's own messages.
    /// What it answers has been carried out all the same.
    pub(crate) fn answer_follower(&mut self, to: Follower, said: AnswerKind, answer: &[u8]) {
        match said {
            AnswerKind::Refused(reason) => self.refuse_follower(to, reason),
            // Not busy: it would be taken for one that changed nothing.
            AnswerKind::Answer | AnswerKind::Repeated
                if self.must_give_way(to.peer, answer.len()) =>
            {
                self.refuse_follower(to, Reason::NoWayBack);
            }
            AnswerKind::Answer | AnswerKind::Repeated => {
                self.reply_to(to, said, Bytes::copy_from_slice(answer));
            }
        }
    }

    /// Answers a read that a follower passed on. An answer that fits no message is none. If it has to give
    /// way, the follower asks again, and its question waits behind what is queued already.
    pub fn answer_follower_read(&mut self, to: Follower, answer: Bytes) {
        if answer.len() > ATTACHMENT_BYTES_MAX {
            return self.refuse_follower(to, Reason::AnswerTooLong);
        }
        if self.must_give_way(to.peer, answer.len()) {
            return self.refuse_follower(to, Reason::Busy);
        }
        self.reply_to(to, AnswerKind::Answer, answer);
    }

    fn must_give_way(&self, to: Peer, answer_bytes: usize) -> bool {
        answer_bytes > BULK_ANSWER_BYTES && self.peers.queued_bytes(to) > LINK_BULK_MAX
    }

    fn reply_to(&mut self, to: Follower, said: AnswerKind, answer: Bytes) {
        self.pass_on(to.peer, PassedOn::Reply(to.id, said, answer));
    }
}

/// How a command with its session and its sequence goes to the leader.
pub fn put_in_session(buffer: &mut BytesMut, (session, sequence): (u64, u64), command: &[u8]) {
    buffer.put_u64(session);
    buffer.put_u64(sequence);
    buffer.extend_from_slice(command);
}

/// What [`put_in_session`] wrote; `None`: it is something else.
fn in_session(mut whole: Bytes) -> Option<FollowerCommand> {
    let name = (whole.try_get_u64().ok()?, whole.try_get_u64().ok()?);
    let is_one = name.0 != 0 && name.1 != 0 && whole.len() <= SESSION_COMMAND_BYTES_MAX;
    is_one.then_some(FollowerCommand::InSession(name, whole))
}

#[cfg(test)]
#[path = "forwarding_test.rs"]
mod tests;

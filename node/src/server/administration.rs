//! Requests of people: change members, transfer leadership, take a snapshot, hash the state.
use super::Server;
use super::core::Core;
use super::origin::Origin;
use super::route_outcome::RouteOutcome;
use super::service::Service;
use crate::admin::{AdminError, AdminRequest};
use quorumwire_control::{Input, MemberChange, Refusal, Ticket};
use quorumwire_group::Driver as _;
use quorumwire_interfaces::{Index, Reason, ReplicaId};
use tokio::sync::oneshot;

/// Who waits for a ticket.
pub enum Waiting {
    /// A change or a transfer.
    Plain(oneshot::Sender<Result<(), AdminError>>),
    /// A backup that wants to know what it must contain.
    ReadIndex(oneshot::Sender<Result<u64, AdminError>>),
    /// The process itself, which is stopping.
    Drain,
    /// The process itself, which corrects the address of this member in the list.
    Correction(ReplicaId),
}

impl<S: Service> Server<S> {
    /// A leader puts a command of an operator into the log, who waits for its answer.
    pub fn write_for_operator(
        &mut self,
        answer: oneshot::Sender<Result<(), AdminError>>,
        write: impl FnOnce(&mut Core<S>, Origin) -> RouteOutcome,
    ) {
        if !self.core.group.leads() {
            let leader = self.core.group.replica.leader();
            let error = AdminError::Refused(Refusal::NotLeader { leader });
            answer.send(Err(error)).ok(); // gone: whoever asked has stopped waiting
            return;
        }
        let ticket = self.core.group.next_ticket();
        self.upkeep.waiting.insert(ticket, Waiting::Plain(answer));
        let origin = Origin::Admin(ticket);
        match write(&mut self.core, origin) {
            RouteOutcome::Pending => {}
            RouteOutcome::Stalled => self.refuse_here(origin, Reason::Busy),
            RouteOutcome::Refused(reason, _) => self.refuse_here(origin, reason),
        }
    }

    pub fn take_admin_request(&mut self, request: AdminRequest) {
        match request {
            AdminRequest::Report(reply) => {
                reply.send(self.report()).ok(); // gone: whoever asked has stopped waiting
            }
            // The other groups would keep the members that they have.
            AdminRequest::ChangeMembers(_, reply) if !self.others.is_empty() => {
                let text = "the members of a server with two groups cannot be changed";
                reply.send(Err(AdminError::Failed(text.to_owned()))).ok(); // gone: likewise
            }
            AdminRequest::ChangeMembers(change, reply) => {
                if let Some(foreign) = self.is_foreign(&change) {
                    reply.send(Err(foreign)).ok(); // gone: whoever asked has stopped waiting
                    return;
                }
                let ticket = self.core.group.next_ticket();
                self.upkeep.waiting.insert(ticket, Waiting::Plain(reply));
                self.change_members(ticket, change);
            }
            AdminRequest::Transfer(to, reply) => {
                let ticket = self.core.group.next_ticket();
                self.upkeep.waiting.insert(ticket, Waiting::Plain(reply));
                self.core.group.step(Input::Transfer(ticket, to));
            }
            AdminRequest::ChangeMemory(change, reply) => S::change_memory(self, change, reply),
            AdminRequest::DeclareLost(upto, reply) => S::declare_lost(self, upto, reply),
            AdminRequest::Snapshot(reply) => {
                if self.core.group.applied == Index(0) {
                    reply
                        .send(Err(AdminError::Failed("nothing is applied yet".into())))
                        .ok();
                    return;
                }
                if !self.core.group.store.may_freeze() {
                    if S::makes_state(self) {
                        self.upkeep.snapshots.notify(reply);
                    } else {
                        let never = S::has_no_state(&self.core);
                        let why = never.map_or_else(no_state, |it| AdminError::Failed(it.into()));
                        reply.send(Err(why)).ok(); // gone: whoever asked has stopped waiting
                    }
                    return;
                }
                self.upkeep.snapshots.notify(reply);
                self.take_snapshot();
                let newest = self.core.group.replica.status().snapshot_index;
                self.upkeep.snapshots.answer_if_idle(newest);
            }
            AdminRequest::Digest(reply) if !self.core.group.store.may_freeze() => {
                let never = S::has_no_digest();
                let why = never.map_or_else(no_state, |it| AdminError::Failed(it.into()));
                reply.send(Err(why)).ok(); // gone: likewise
            }
            AdminRequest::Digest(reply) => {
                self.upkeep.snapshots.digest(
                    self.core.group.applied,
                    self.core.group.store.freeze(),
                    reply,
                );
            }
            AdminRequest::ReadIndex(reply) => self.upkeep.snapshots.backups.want_read_index(reply),
            AdminRequest::Freeze(at_least, reply) => {
                self.want_state(at_least, reply);
            }
        }
    }

    /// Why a replica cannot be taken in although it was met: it is of another cluster.
    fn is_foreign(&self, change: &MemberChange) -> Option<AdminError> {
        let MemberChange::Add { id, .. } = change else {
            return None;
        };
        let words = self.links.foreign(*id)?;
        Some(AdminError::Refused(Refusal::Invalid(words.to_owned())))
    }

    pub fn answer_admin(&mut self, ticket: Ticket, result: Result<(), AdminError>) {
        match self.upkeep.waiting.remove(&ticket) {
            Some(Waiting::Plain(reply)) => {
                reply.send(result).ok(); // gone: whoever asked has stopped waiting
            }
            Some(Waiting::ReadIndex(reply)) => {
                // Granted reads are answered elsewhere.
                let why = result.err().unwrap_or(AdminError::Unavailable);
                reply.send(Err(why)).ok(); // gone: likewise
            }
            // Not handed over in time: the next turn tries again.
            Some(Waiting::Drain) => self.core.draining = result.is_ok(),
            Some(Waiting::Correction(id)) => self.address_book.note_correction(id, result.is_ok()),
            None => {} // nobody waits for it
        }
    }
}

/// What is replicated gives its state at moments of its own.
fn no_state() -> AdminError {
    AdminError::Failed("what is replicated gives no state at this moment; try again later".into())
}

//! What a backup needs of the event loop: the index that it must contain, and the state once it does.
//! Writing it is the work of others.
use super::Server;
use super::administration::Waiting;
use super::clock;
use crate::admin::{AdminError, FrozenState};
use quorumwire_control::Ticket;
use quorumwire_interfaces::Index;
use quorumwire_wire::{BackupHead, SnapshotHead};
use tokio::sync::oneshot;

/// Requests that may wait at a time; as many for each of the two.
const WAITING_MAX: usize = 16;

/// Requests on behalf of backups that wait.
#[derive(Default)]
pub struct Backups {
    read_indexes: Vec<oneshot::Sender<Result<u64, AdminError>>>,
    freezes: Vec<(Index, oneshot::Sender<Result<FrozenState, AdminError>>)>,
}

impl Backups {
    /// Asked for once this turn has seen what the plane has done: it may have acknowledged something a
    /// moment ago.
    pub fn want_read_index(&mut self, reply: oneshot::Sender<Result<u64, AdminError>>) {
        if self.read_indexes.len() < WAITING_MAX {
            self.read_indexes.push(reply);
        } // otherwise it is dropped, which whoever asked sees as Unavailable
    }

    /// Answered once everything up to `at_least` is applied.
    pub fn want_state(
        &mut self,
        at_least: Index,
        reply: oneshot::Sender<Result<FrozenState, AdminError>>,
    ) {
        self.freezes.retain(|(_, reply)| !reply.is_closed());
        if self.freezes.len() < WAITING_MAX {
            self.freezes.push((at_least, reply));
        } // likewise
    }
}

impl Server {
    /// Asks for the read indexes that backups want.
    pub fn ask_read_indexes(&mut self) {
        for reply in std::mem::take(&mut self.snapshots.backups.read_indexes) {
            let ticket = self.core.next_ticket();
            self.waiting.insert(ticket, Waiting::ReadIndex(reply));
            self.core.read(ticket);
        }
    }

    /// A read that is no client's was granted.
    pub fn answer_read_index(&mut self, ticket: Ticket, index: Index) {
        if let Some(Waiting::ReadIndex(reply)) = self.waiting.remove(&ticket) {
            reply.send(Ok(index.0)).ok(); // gone: whoever asked has stopped waiting
        } // otherwise its connection is gone
    }

    /// Gives the state to those who wait for no more than it has.
    pub fn give_states(&mut self) {
        let applied = self.core.applied;
        let freezes = &mut self.snapshots.backups.freezes;
        if !freezes.iter().any(|(at_least, _)| *at_least <= applied) {
            return;
        }
        for (at_least, reply) in std::mem::take(freezes) {
            if at_least > applied {
                self.snapshots.backups.freezes.push((at_least, reply));
            } else if !reply.is_closed() {
                reply.send(self.frozen_state()).ok(); // gone: likewise
            }
        }
    }

    fn frozen_state(&self) -> Result<FrozenState, AdminError> {
        let last_index = self.core.applied;
        let term = self.core.replica.term_at(last_index);
        let Some(last_term) = term.filter(|_| last_index > Index(0)) else {
            return Err(AdminError::Failed("nothing is applied yet".to_owned()));
        };
        let (membership_index, membership) = self.core.replica.membership_at(last_index);
        Ok(FrozenState {
            head: BackupHead {
                cluster: self.options.cluster.clone(),
                replica: self.options.id,
                taken_ms: clock::wall_ms(),
                state: SnapshotHead {
                    group: self.core.group,
                    last_index,
                    last_term,
                    log_time: self.log_time,
                    membership: membership.clone(),
                    membership_index,
                },
            },
            state: self.core.store.freeze(),
        })
    }
}

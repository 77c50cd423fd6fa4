//! What a backup needs of the event loop: the index that it must contain, and the state once it does.
//! Writing it is the work of others.
use super::Server;
use super::administration::Waiting;
use super::clock;
use super::service::Service;
use crate::admin::{AdminError, FrozenState};
use quorumwire_control::{Refusal, Ticket};
use quorumwire_interfaces::Index;
use quorumwire_wire::{BackupHead, SnapshotHead};
use tokio::sync::oneshot;

/// Requests that may wait at a time; as many for each of the two.
const WAITING_MAX: usize = 16;

/// So many entries may a replica that does not lead be behind. Each restored cluster begins 2^40 further on.
const BEHIND_MAX: u64 = 1 << 56;

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

    /// Whether anybody waits for a state.
    pub fn are_waiting(&self) -> bool {
        self.freezes.iter().any(|(_, reply)| !reply.is_closed())
    }

    /// Answered once everything up to `at_least` is applied. If too many wait, whoever wants what is furthest
    /// away is sent away: nobody can fill the room for good with what does not come.
    fn want_state(
        &mut self,
        at_least: Index,
        reply: oneshot::Sender<Result<FrozenState, AdminError>>,
    ) {
        self.freezes.retain(|(_, reply)| !reply.is_closed());
        self.freezes.push((at_least, reply));
        if self.freezes.len() > WAITING_MAX {
            let furthest = (0..self.freezes.len()).max_by_key(|at| self.freezes[*at].0);
            furthest.map(|at| self.freezes.swap_remove(at)); // likewise
        }
    }
}

/// Why a replica whose log ends there will not have the entry `at_least`. A leader's log has all that was
/// ever acknowledged; others' logs may come to it.
fn refuse_beyond(leads: bool, last_index: Index, at_least: Index) -> Option<AdminError> {
    let reach = if leads { 0 } else { BEHIND_MAX };
    (at_least.0 > last_index.0.saturating_add(reach)).then(|| {
        AdminError::Refused(Refusal::Invalid(format!(
            "at_least is {at_least}, and this replica's log ends at {last_index}: take the index that the leader \
             tells at /v1/read-index"
        )))
    })
}

impl<S: Service> Server<S> {
    /// Gives the state to a backup once it has everything up to `at_least`.
    pub fn want_state(
        &mut self,
        at_least: Index,
        reply: oneshot::Sender<Result<FrozenState, AdminError>>,
    ) {
        if let Some(why) = S::has_no_state(&self.core) {
            reply.send(Err(AdminError::Failed(why.into()))).ok(); // gone: likewise
            return;
        }
        let last_index = self
            .core
            .group
            .replica
            .status()
            .last_index
            .max(self.core.group.applied);
        match refuse_beyond(self.core.group.leads(), last_index, at_least) {
            Some(refused) => drop(reply.send(Err(refused))), // gone: whoever asked has stopped waiting
            None => self.upkeep.snapshots.backups.want_state(at_least, reply),
        }
    }

    /// Asks for the read indexes that backups want.
    pub fn ask_read_indexes(&mut self) {
        for reply in std::mem::take(&mut self.upkeep.snapshots.backups.read_indexes) {
            let ticket = self.core.group.next_ticket();
            self.upkeep
                .waiting
                .insert(ticket, Waiting::ReadIndex(reply));
            self.core.group.ask_read_index(ticket);
        }
    }

    /// A read that is no client's was granted.
    pub fn answer_read_index(&mut self, ticket: Ticket, index: Index) {
        if let Some(Waiting::ReadIndex(reply)) = self.upkeep.waiting.remove(&ticket) {
            reply.send(Ok(index.0)).ok(); // gone: whoever asked has stopped waiting
        } // otherwise its connection is gone
    }

    /// Gives the state to those who wait for no more than it has.
    pub fn give_states(&mut self) {
        let applied = self.core.group.applied;
        let freezes = &mut self.upkeep.snapshots.backups.freezes;
        let is_given = self.core.group.store.may_freeze();
        if !is_given || !freezes.iter().any(|(at_least, _)| *at_least <= applied) {
            return;
        }
        for (at_least, reply) in std::mem::take(freezes) {
            if at_least > applied {
                self.upkeep
                    .snapshots
                    .backups
                    .freezes
                    .push((at_least, reply));
            } else if !reply.is_closed() {
                reply.send(self.frozen_state()).ok(); // gone: likewise
            }
        }
    }

    fn frozen_state(&self) -> Result<FrozenState, AdminError> {
        let last_index = self.core.group.applied;
        let term = self.core.group.replica.term_at(last_index);
        let Some(last_term) = term.filter(|_| last_index > Index(0)) else {
            return Err(AdminError::Failed("nothing is applied yet".to_owned()));
        };
        let (membership_index, membership) = self.core.group.replica.membership_at(last_index);
        Ok(FrozenState {
            head: BackupHead {
                cluster: self.options.cluster.clone(),
                replica: self.options.id,
                taken_ms: clock::wall_ms(),
                state: SnapshotHead {
                    group: self.core.group.id,
                    last_index,
                    last_term,
                    log_time: self.core.group.log_time,
                    membership: membership.clone(),
                    membership_index,
                },
            },
            state: self.core.group.store.freeze(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_that_does_not_come_is_refused_in_words() {
        let refused = |leads, at_least| {
            let refused = refuse_beyond(leads, Index(7), Index(at_least));
            refused.map(|error| error.to_string())
        };
        assert_eq!(refused(true, 7), None);
        let words = refused(true, 8).expect("nothing acknowledged is beyond a leader's log");
        assert!(words.contains("at_least is 8") && words.contains("ends at 7"));
        assert_eq!(refused(false, 8), None, "the leader may have it");
        assert_eq!(refused(false, 7 + BEHIND_MAX), None);
        assert!(refused(false, 8 + BEHIND_MAX).is_some());
        assert!(refused(false, u64::MAX).is_some());
    }

    #[test]
    fn those_who_want_the_future_keep_nobody_from_the_present() {
        let mut backups = Backups::default();
        let mut far = Vec::new();
        for ahead in 0..WAITING_MAX as u64 {
            let (reply, answer) = oneshot::channel();
            backups.want_state(Index(1000 + ahead), reply);
            far.push(answer);
        }
        let (reply, mut near) = oneshot::channel();
        backups.want_state(Index(9), reply);
        assert_eq!(backups.freezes.len(), WAITING_MAX);
        let is_waiting = |answer: &mut oneshot::Receiver<_>| {
            answer.try_recv().err() == Some(oneshot::error::TryRecvError::Empty)
        };
        assert!(is_waiting(&mut near));
        let waiting: Vec<bool> = far.iter_mut().map(is_waiting).collect();
        let sent_away = waiting.iter().position(|waits| !waits);
        assert_eq!(
            sent_away,
            Some(WAITING_MAX - 1),
            "the furthest, and no other"
        );
        assert_eq!(waiting.iter().filter(|waits| !**waits).count(), 1);
    }
}

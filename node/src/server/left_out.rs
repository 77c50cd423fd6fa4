//! What this replica knows of its own place: it was removed, it is not taken in yet, or every replica has
//! forgotten. For people and clients: decides nothing.
use super::Server;
use super::core::{Core, Hosted};
use super::service::Service;
use crate::report::ReplicaRole;
use quorumwire_control::Role;
use quorumwire_interfaces::ReplicaId;

/// Nobody is left who remembers anything.
const DATA_IS_GONE: &str = "every member is connected, and all have forgotten what they held: the data is gone. To \
                            begin anew, stop all and empty their data folders (the file was-member, too); or restore \
                            a backup";

impl<S: Hosted> Core<S> {
    /// Whether it was taken out of the cluster, and leads it no more: its log says so, or those do who are
    /// connected.
    pub fn has_left(&self) -> bool {
        let role = self.group.replica.role();
        let is_out = role == Role::Joining && self.group.replica.is_left_out();
        if is_out && self.group.replica.was_listed() {
            return true;
        }
        // One that has forgotten may be on its way back, and read older members meanwhile.
        let was_member = self.history.was_member || self.group.replica.was_listed();
        let is_alone = role != Role::Leader && self.group.replica.leader().is_none();
        was_member && is_alone && (is_out || self.left_out_by().is_some())
    }

    /// Who is connected and knows members of later than this replica does, which is none of them.
    fn left_out_by(&self) -> Option<ReplicaId> {
        let (known, _) = self.group.replica.committed_members();
        self.hellos.left_out_by(known)
    }

    /// What it is, for people.
    pub fn role(&self) -> ReplicaRole {
        if self.has_left() {
            return ReplicaRole::Removed;
        }
        match self.group.replica.role() {
            Role::Joining => ReplicaRole::Joining,
            Role::Learner => ReplicaRole::Learner,
            Role::Follower => ReplicaRole::Follower,
            Role::PreCandidate | Role::Candidate => ReplicaRole::Candidate,
            Role::Leader => ReplicaRole::Leader,
        }
    }
}

impl<S: Service> Server<S> {
    /// Whoever reads the log learns once that this replica is no member any more, or that nobody remembers
    /// anything.
    pub fn tell_member_history(&mut self) {
        let has_left = self.core.has_left();
        if has_left && !self.is_removal_told {
            tracing::warn!("this replica was removed from the cluster: it can be stopped");
        }
        self.is_removal_told = has_left;
        let is_gone = self.is_data_gone();
        if is_gone && !self.core.history.is_data_gone {
            tracing::error!("every member is connected, and all have forgotten: the data is gone");
        }
        self.core.history.is_data_gone = is_gone;
    }

    /// Whether all whom the options name are connected, and nobody who is connected remembers anything.
    fn is_data_gone(&self) -> bool {
        let others = self.options.members.keys();
        let mut others = others.copied().filter(|id| *id != self.options.id);
        self.core.history.has_forgotten
            && self.core.group.replica.membership().members.is_empty()
            && others.all(|id| self.links.has_forgotten(id))
            && self.links.nobody_remembers()
    }

    /// What is wrong with its place, for people.
    pub fn faults_of_place(&self) -> Vec<String> {
        let id = self.options.id;
        if self.core.has_left() {
            return vec![format!(
                "it was removed from the cluster and can be stopped; to take it in again, data folder and all: \
                 quorumwire member add --id {id} --peer {}",
                self.addresses.peer
            )];
        }
        if self.core.history.is_data_gone {
            return vec![DATA_IS_GONE.to_owned()];
        }
        let mut faults = Vec::new();
        if matches!(
            self.core.group.replica.role(),
            Role::Joining | Role::Learner
        ) {
            faults.extend(self.start_fault.clone());
            faults.extend(self.missing_for_a_beginning());
        }
        faults.extend(self.met_http().map(|http| {
            format!(
                "it is no member yet; this takes it in: quorumwire member add --id {id} --peer {} --addr {http}",
                self.addresses.peer
            )
        }));
        faults
    }

    /// Of one that waits to be taken in: where a member serves HTTP that it is connected to.
    pub fn met_http(&self) -> Option<String> {
        let waits = self.options.join && self.core.group.replica.role() == Role::Joining;
        let member = self.core.left_out_by().filter(|_| waits)?;
        let info = self.links.info(member)?;
        (!self.core.has_left()).then(|| info.http.clone())
    }

    /// A new cluster begins once all its initial members are connected: who is not?
    fn missing_for_a_beginning(&self) -> Option<String> {
        let begins = !self.options.join && self.core.group.replica.membership().members.is_empty();
        let missing: Vec<String> = self
            .options
            .members
            .keys()
            .filter(|id| **id != self.options.id && self.links.info(**id).is_none())
            .map(ToString::to_string)
            .collect();
        (begins && !missing.is_empty())
            .then(|| format!("waits for replica {} to be connected", missing.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::super::plane_turn::tests::{core_of, core_of_one};
    use super::super::route_outcome::RouteOutcome;
    use super::*;
    use crate::server::kv::Core;
    use quorumwire_control::{HardState, PersistedState, SnapshotMeta};
    use quorumwire_interfaces::Reason;
    use quorumwire_interfaces::{Incarnation, Index, LogTime, Term};
    use quorumwire_wire::{CommitQuorum, Member, MemberRole, Membership};

    /// Replica 0 with a snapshot whose only member is replica 1.
    fn left_out() -> Core {
        let member = Member {
            id: ReplicaId(1),
            incarnation: Incarnation(5),
            peer_address: String::new(),
            role: MemberRole::Voter,
        };
        let snapshot = SnapshotMeta {
            last_index: Index(7),
            last_term: Term(2),
            membership: Membership {
                members: vec![member],
                quorum: CommitQuorum::Majority,
                ..Membership::default()
            },
            membership_index: Index(3),
            log_time: LogTime(0),
        };
        core_of(PersistedState {
            hard_state: HardState {
                term: Term(2),
                commit_index: Index(7),
                ..HardState::default()
            },
            snapshot: Some(snapshot),
            ..PersistedState::default()
        })
    }

    fn is_answered(core: &mut Core, reason: Reason) -> bool {
        matches!(core.route(), Err(RouteOutcome::Refused(said, _)) if said == reason)
    }

    #[test]
    fn only_who_was_a_member_has_been_removed() {
        let mut core = left_out();
        assert_eq!(core.role(), ReplicaRole::Joining);
        assert!(!is_answered(&mut core, Reason::Removed));
        // The folder says that it was one, though the membership that named it is behind the snapshot.
        core.history.was_member = true;
        assert_eq!(core.role(), ReplicaRole::Removed);
        assert!(is_answered(&mut core, Reason::Removed));
    }

    #[test]
    fn clients_learn_that_nobody_remembers_anything() {
        let mut core = core_of_one();
        assert!(!is_answered(&mut core, Reason::DataGone));
        assert_eq!(core.why_stalled(), Reason::NoLeader);
        core.history.is_data_gone = true;
        assert!(is_answered(&mut core, Reason::DataGone));
        assert_eq!(core.why_stalled(), Reason::DataGone);
    }
}

//! What operators ask of a leader: other members, another leader.
use crate::leader::Transfer;
use crate::members::{changed, peer_of};
use crate::{Body, MemberChange, Now, Output, Peer, Refusal, Replica, Ticket};
use quorumwire_interfaces::{Index, ReplicaId};
use quorumwire_wire::{Member, MemberRole, Membership};

impl Replica {
    pub(crate) fn on_change_members(
        &mut self,
        ticket: Ticket,
        change: &MemberChange,
        outputs: &mut Vec<Output>,
    ) {
        self.stop_quiescing();
        match self.change_members(change, outputs) {
            Ok(index) => {
                if let Some(leading) = &mut self.leading
                    && let Some((before, _)) = leading.change.replace((ticket, index))
                {
                    // It is not committed while all must agree and one is away. But a majority holds it, or
                    // this change could not have begun: no later leader can lack it.
                    outputs.push(Output::Done(before));
                }
            }
            Err(refusal) => outputs.push(Output::Refused(ticket, refusal)),
        }
    }

    fn change_members(
        &mut self,
        change: &MemberChange,
        outputs: &mut Vec<Output>,
    ) -> Result<Index, Refusal> {
        if self.leads_fast() {
            // Software is not asked, but a change that makes no sense is refused as such.
            self.plan_change(change)?;
        }
        self.may_append_membership()?;
        let next = self.plan_change(change)?;
        Ok(self.append_membership(next, outputs))
    }

    /// What the members would be, or why this change is not to be begun.
    pub(crate) fn plan_change(&self, change: &MemberChange) -> Result<Membership, Refusal> {
        if self.leading.as_ref().is_some_and(|l| l.transfer.is_some()) {
            return Err(Refusal::Transferring);
        }
        if !self.may_change_members() {
            return Err(Refusal::ChangeInProgress);
        }
        if let MemberChange::Promote(id) = change {
            self.check_caught_up(*id)?;
        }
        let next = changed(self.members.current(), change, |id| self.connected(id))?;
        if !self.is_followed_by_quorum_of(&next) {
            return Err(Refusal::Invalid(
                "too few of the voters that would remain have been heard lately and need no snapshot; \
                 the group would stand still"
                    .to_string(),
            ));
        }
        Ok(next)
    }

    /// A voter that is far behind would only hold up the others.
    fn check_caught_up(&self, id: ReplicaId) -> Result<(), Refusal> {
        let member = self.members.current().member(id);
        let behind = |member: &&Member| {
            member.role != MemberRole::Voter && !self.has_caught_up(peer_of(member))
        };
        if member.as_ref().is_some_and(behind) {
            return Err(Refusal::Invalid(format!(
                "replica {id} has not caught up yet; wait, or add it as joining"
            )));
        }
        Ok(())
    }

    pub(crate) fn on_transfer(
        &mut self,
        ticket: Ticket,
        target: Option<ReplicaId>,
        outputs: &mut Vec<Output>,
    ) {
        match self.transfer_target(target) {
            Ok(target) => {
                self.stop_quiescing();
                let deadline = Now(self.now.0 + self.config.election_timeout);
                if let Some(leading) = &mut self.leading {
                    leading.transfer = Some(Transfer {
                        ticket: Some(ticket),
                        target,
                        deadline,
                        told: false,
                    });
                }
            }
            Err(refusal) => outputs.push(Output::Refused(ticket, refusal)),
        }
    }

    pub(crate) fn transfer_target(&self, wished: Option<ReplicaId>) -> Result<Peer, Refusal> {
        let Some(leading) = &self.leading else {
            let leader = self.leader();
            return Err(Refusal::NotLeader { leader });
        };
        if leading.transfer.is_some() {
            return Err(Refusal::Transferring);
        }
        let Some(id) = wished else {
            return self.best_successor().ok_or_else(|| {
                Refusal::Invalid("no other voter has been heard lately".to_string())
            });
        };
        if id == self.config.me.id {
            return Err(Refusal::Invalid(format!("replica {id} leads already")));
        }
        let target = leading.progress.iter().find(|p| p.peer.id == id && p.voter);
        target
            .map(|p| p.peer)
            .ok_or_else(|| Refusal::Invalid(format!("replica {id} is not a voter")))
    }

    /// Tells the target of a transfer to stand for election as soon as it holds the whole log.
    pub(crate) fn go_on_with_transfer(&mut self, outputs: &mut Vec<Output>) {
        let last_index = self.log.last_index();
        let Some(leading) = &mut self.leading else {
            return;
        };
        let Some(transfer) = &mut leading.transfer else {
            return;
        };
        let target = transfer.target;
        let ready = leading
            .progress
            .iter()
            .any(|p| p.peer == target && p.voter && p.match_index == last_index);
        if ready && !transfer.told {
            transfer.told = true;
            leading.transfer_now_sent = true;
            self.send(target, Body::TransferNow, outputs);
        }
    }
}

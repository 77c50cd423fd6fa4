//! Replicas that move: a leader is told where one was found, and judged by what becomes of the list of
//! members.
use crate::machine::Machine;
use crate::random::Random;
use quorumwire_control::{MemberChange, Output, Peer};
use quorumwire_wire::{Member, Membership};
use std::collections::BTreeSet;

/// As many addresses a replica moves between.
const ADDRESSES: u64 = 3;

/// Where lives were found.
#[derive(Default)]
pub struct Moves {
    found: BTreeSet<(Peer, String)>,
}

impl Moves {
    /// A replica is found somewhere, in the life that it is in now: the list may name an earlier one.
    pub fn find(&mut self, machine: &Machine, random: &mut Random) -> MemberChange {
        let peer = machine.peer;
        let peer_address = format!("m{}:{}", peer.id.0, 7400 + random.below(ADDRESSES));
        self.found.insert((peer, peer_address.clone()));
        MemberChange::Move { peer, peer_address }
    }

    /// After a step: whether the list has another address for a life now, which was found there. The error
    /// says what else has changed.
    pub fn after_step(&self, machine: &Machine, first: usize) -> Result<bool, String> {
        let Some(process) = &machine.process else {
            return Ok(false);
        };
        let is_change = |output: &Output| matches!(output, Output::MembershipChanged(_));
        if !process.group.outputs[first..].iter().any(is_change) {
            return Ok(false);
        }
        let replica = &process.group.replica;
        let (set_at, now) = replica.membership_at(replica.last_index());
        let (_, before) = replica.membership_at(set_at.previous());
        self.judge(before, now)
    }

    fn judge(&self, before: &Membership, now: &Membership) -> Result<bool, String> {
        let moved = |it: &&Member| {
            let earlier = before
                .members
                .iter()
                .find(|one| peer_of(one) == peer_of(it));
            earlier.is_some_and(|one| one.peer_address != it.peer_address)
        };
        let mut all = now.members.iter().filter(moved);
        let Some(member) = all.next() else {
            return Ok(false);
        };
        let mut expected = before.clone();
        let earlier = expected.members.iter_mut().find(|it| it.id == member.id);
        if let Some(earlier) = earlier {
            earlier.peer_address.clone_from(&member.peer_address);
        }
        let found = (peer_of(member), member.peer_address.clone());
        if expected != *now || !self.found.contains(&found) {
            return Err(format!("I13: {before:?} became {now:?}"));
        }
        Ok(true)
    }
}

const fn peer_of(member: &Member) -> Peer {
    Peer {
        id: member.id,
        incarnation: member.incarnation,
    }
}

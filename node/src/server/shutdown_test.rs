//! A leader whose disk is full, and whose followers have room.
use super::*;
use crate::server::kv::{Core, Server};
use crate::server::plane_turn::tests::{carry_out, core_of};
use crate::server::start::tests::Alone;
use quorumwire_control::{Body, HardState, Message, Peer, PersistedState, SnapshotMeta};
use quorumwire_group::TRANSFER_FULL_INTERVAL;
use quorumwire_interfaces::{Incarnation, Index, LogTime, ReplicaId, Term};
use quorumwire_wire::{Member, MemberRole, Membership};
use std::time::Duration;

const REPLICAS: u16 = 3;

fn peer(id: u16) -> Peer {
    Peer {
        id: ReplicaId(id),
        incarnation: Incarnation(1),
    }
}

fn stored() -> PersistedState {
    let member = |id| Member {
        id: ReplicaId(id),
        incarnation: Incarnation(1),
        peer_address: String::new(),
        role: MemberRole::Voter,
    };
    let (last_index, last_term) = (Index(1), Term(1));
    PersistedState {
        hard_state: HardState {
            term: last_term,
            vote: None,
            commit_index: last_index,
        },
        snapshot: Some(SnapshotMeta {
            last_index,
            last_term,
            membership: Membership {
                members: (0..REPLICAS).map(member).collect(),
                ..Membership::default()
            },
            membership_index: last_index,
            log_time: LogTime(0),
        }),
        entries: Vec::new(),
        new_life: false,
    }
}

fn hear(core: &mut Core, from: u16, term: Term, body: Body) {
    let message = Message { term, body };
    let from = peer(from);
    core.group.step(Input::Message { from, message });
}

/// Leads three; the others have committed what its own disk has not taken.
fn leader_behind_the_others() -> Core {
    let mut core = core_of(stored());
    core.group.now.0 += Duration::from_secs(1);
    core.group.step(Input::Timeout);
    for pre_vote in [true, false] {
        carry_out(&mut core); // its vote is durable
        let term = Term(core.group.replica.term().0 + u64::from(pre_vote));
        let granted = Body::VoteReply {
            granted: true,
            pre_vote,
            engaged: false,
        };
        hear(&mut core, 1, term, granted);
    }
    assert!(core.group.leads());
    core.group
        .replica
        .flush(core.group.now, &mut core.group.outputs);
    core.group.outputs.clear(); // the disk does not answer
    let (term, index) = (core.group.replica.term(), core.group.last_index());
    for id in 1..REPLICAS {
        let holds = Body::AppendReply {
            round: 1,
            rejected: false,
            index,
            hint_index: Index(0),
            hint_term: Term(0),
        };
        hear(&mut core, id, term, holds);
    }
    core.group
        .replica
        .flush(core.group.now, &mut core.group.outputs);
    assert!(core.group.replica.commit_index() == index && core.group.leads());
    core
}

/// Whether leadership is to be transferred, so much later.
fn transfers(server: &mut Server, later: Duration) -> bool {
    server.core.group.now.0 += later;
    let before = server.core.group.next_ticket();
    server.core.group.transfer_if_full();
    server.core.group.next_ticket().0 - before.0 > 1
}

/// Without the pause it would give up leadership in every turn, and take no writes while no other replica can
/// lead.
#[test]
fn a_leader_without_room_transfers_leadership_and_tries_again_a_while_later() {
    const SHORT: Duration = Duration::from_millis(1);
    let mut alone = Alone::start(&[]);
    let server = &mut alone.server;
    *server.core = leader_behind_the_others();
    assert!(!transfers(server, SHORT), "there is room");
    server.core.group.is_full = true;
    assert!(transfers(server, SHORT));
    assert!(server.core.group.replica.is_transferring());
    assert!(!transfers(server, SHORT));
    let rest = TRANSFER_FULL_INTERVAL.saturating_sub(SHORT * 2);
    assert!(!transfers(server, rest));
    assert!(transfers(server, SHORT));
    assert!(!transfers(server, SHORT));
    // Once there was room, the next time begins anew.
    server.core.group.is_full = false;
    assert!(!transfers(server, SHORT));
    server.core.group.is_full = true;
    assert!(transfers(server, SHORT));
}

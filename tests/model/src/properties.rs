//! What must hold in every state, and what must happen in some state.
use crate::log::{Log, Mover};
use crate::model::Handover;
use crate::plane::majority_holds;
use crate::state::{Replica, Role, State};
use stateright::Property;

/// What must never be violated.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Safety {
    /// A term has one leader.
    OneLeader,
    /// Two logs that have an entry of the same index and term are equal up to there.
    LogMatching,
    /// No index and term is given out both by software and by a plane.
    OneAssigner,
    /// A leader has everything that leaders before it committed.
    LeaderCompleteness,
    /// What is committed or applied at an index stays so, everywhere.
    StateMachineSafety,
    /// Nothing is acknowledged in a term older than what the replica has promised.
    NoLateAck,
    /// While a plane is engaged, software's log holds nothing that the plane's has not.
    OneMover,
    /// An engaged follower's plane holds nothing that its leader does not.
    FollowsLeader,
}

impl Safety {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::OneLeader,
        Self::LogMatching,
        Self::OneAssigner,
        Self::LeaderCompleteness,
        Self::StateMachineSafety,
        Self::NoLateAck,
        Self::OneMover,
        Self::FollowsLeader,
    ];

    /// As the checker reports it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OneLeader => "one leader per term",
            Self::LogMatching => "log matching",
            Self::OneAssigner => "never both assign",
            Self::LeaderCompleteness => "leader completeness",
            Self::StateMachineSafety => "state machine safety",
            Self::NoLateAck => "no acknowledgement after a promise",
            Self::OneMover => "one mover of the log",
            Self::FollowsLeader => "an engaged plane follows its leader",
        }
    }

    fn condition(self) -> fn(&Handover, &State) -> bool {
        match self {
            Self::OneLeader => |_, state| !state.history.two_leaders,
            Self::LogMatching => |_, state| pairs(state, logs_match),
            Self::OneAssigner => |_, state| pairs(state, assigned_once),
            Self::LeaderCompleteness => |_, state| leaders_are_complete(state),
            Self::StateMachineSafety => |_, state| !state.history.diverged,
            Self::NoLateAck => |_, state| !state.history.late_ack,
            Self::OneMover => |_, state| one_mover(state),
            Self::FollowsLeader => |_, state| planes_follow(state),
        }
    }
}

/// What is checked: one property, or everything.
pub(crate) fn of(checked: Option<Safety>) -> Vec<Property<Handover>> {
    let always = |safety: Safety| Property::always(safety.name(), safety.condition());
    if let Some(safety) = checked {
        return vec![always(safety)];
    }
    let mut all: Vec<Property<Handover>> = Safety::ALL.map(always).into();
    all.extend([
        Property::sometimes("a fast term commits", |_, s: &State| plane_committed(s, 0)),
        Property::sometimes(
            "software commits in a fast term that was left",
            |_, s: &State| {
                let committed = &s.history.committed;
                committed
                    .entries()
                    .iter()
                    .zip(s.history.committed_in)
                    .any(|(entry, term)| {
                        entry.by == Mover::Software
                            && entry.term == term
                            && s.history.fast & 1 << term != 0
                    })
            },
        ),
        Property::sometimes(
            "a straggler that joined decides a commit",
            |_, s: &State| s.replicas.iter().any(|leader| joined_decided(s, leader)),
        ),
        Property::sometimes(
            "a fast leader is deposed and its entries survive",
            |_, s: &State| {
                s.replicas.iter().any(|replica| {
                    let deposed = s.replicas.iter().any(|other| {
                        other
                            .leading_plane()
                            .is_some_and(|plane| plane.term < replica.term)
                    });
                    matches!(replica.role, Role::Leader { .. })
                        && deposed
                        && plane_committed(s, replica.term)
                })
            },
        ),
    ]);
    all
}

/// Whether a plane has committed an entry, in a term before this one unless that is 0.
fn plane_committed(state: &State, before: u8) -> bool {
    let entries = state.history.committed.entries();
    entries
        .iter()
        .any(|e| e.by == Mover::Plane && (before == 0 || e.term < before))
}

/// Whether this leader's plane has committed something that it could not have without a straggler that
/// has joined.
fn joined_decided(state: &State, leader: &Replica) -> bool {
    let Some(plane) = leader.leading_plane() else {
        return false;
    };
    let acks = state.network.plane_acks[usize::from(plane.term)];
    let held = state
        .replicas
        .iter()
        .zip(acks)
        .map(|(replica, ack)| match replica.plane {
            Some(own) if own.leads && own.term == plane.term => own.promised,
            Some(own) if own.joined && own.term == plane.term => 0,
            Some(_) | None => ack,
        });
    majority_holds(held.collect()) < plane.commit
}

/// All the logs there are: software's, the planes', and those on disk.
fn pairs(state: &State, holds: fn(&Log, &Log) -> bool) -> bool {
    let mut logs = Vec::with_capacity(9);
    for replica in &state.replicas {
        logs.push(replica.log);
        logs.extend(replica.plane.map(|plane| plane.log));
        if replica.disk.log != replica.log {
            logs.push(replica.disk.log);
        }
    }
    let following = |place: usize| &logs[place + 1..];
    (0..logs.len()).all(|place| following(place).iter().all(|log| holds(&logs[place], log)))
}

fn logs_match(one: &Log, other: &Log) -> bool {
    let common = usize::from(one.common_with(other));
    let rest = one.entries().iter().zip(other.entries()).skip(common);
    // The first difference must be one of terms, and behind it no terms may be the same again.
    rest.into_iter().all(|(a, b)| a.term != b.term)
}

fn assigned_once(one: &Log, other: &Log) -> bool {
    let mut both = one.entries().iter().zip(other.entries());
    both.all(|(a, b)| a.term != b.term || a.by == b.by)
}

fn leaders_are_complete(state: &State) -> bool {
    state.replicas.iter().all(|replica| {
        let Role::Leader { .. } = replica.role else {
            return true;
        };
        let committed = state.history.committed;
        (1..=committed.last_index()).all(|index| {
            let earlier = state.history.committed_in[usize::from(index) - 1] < replica.term;
            !earlier || replica.log.at(index) == committed.at(index)
        })
    })
}

fn one_mover(state: &State) -> bool {
    let engaged = state
        .replicas
        .iter()
        .filter_map(|r| r.plane.map(|plane| (r.log, plane.log)));
    engaged
        .into_iter()
        .all(|(log, plane_log)| log.is_prefix_of(&plane_log))
}

fn planes_follow(state: &State) -> bool {
    state
        .replicas
        .iter()
        .filter_map(|r| r.plane)
        .filter(|p| !p.leads)
        .all(|plane| {
            let leader = state
                .replicas
                .iter()
                .find(|r| r.term == plane.term && matches!(r.role, Role::Leader { .. }));
            leader.is_none_or(|leader| {
                let log = leader.leading_plane().map_or(leader.log, |p| p.log);
                plane.log.is_prefix_of(&log)
            })
        })
}

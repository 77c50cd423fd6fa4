//! Many groups in one process: each replica of each group goes its own way over shared connections,
//! told apart by the group in every message and every record.
use crate::world::{HEARTBEAT, config};
use bytes::Bytes;
use quorumwire_control::{
    Config, Input, Message, Now, Output, Peer, PersistedState, Replica, Role,
};
use quorumwire_interfaces::{GroupId, Incarnation, Index, ReplicaId};
use quorumwire_wire::RecordKind;
use quorumwire_wire::peer::PeerMessage;
use std::collections::{BTreeMap, VecDeque};

const GROUPS: u32 = 16;
const REPLICAS: u16 = 3;
const STEPS_MAX: u32 = 2_000;

type Frame = (Peer, Peer, PeerMessage, Vec<Bytes>);

fn peer(id: u16) -> Peer {
    Peer {
        id: ReplicaId(id),
        incarnation: Incarnation(u64::from(id) + 1),
    }
}

/// Three processes with one replica of each group, joined by one queue of frames.
struct Processes {
    replicas: BTreeMap<(u16, GroupId), Replica>,
    frames: VecDeque<Frame>,
    committed: BTreeMap<(u16, GroupId), Vec<Vec<u8>>>,
    now: Now,
}

impl Processes {
    fn start() -> Self {
        let mut processes = Self {
            replicas: BTreeMap::new(),
            frames: VecDeque::new(),
            committed: BTreeMap::new(),
            now: Now::default(),
        };
        let everyone: Vec<u16> = (0..REPLICAS).collect();
        for group in (0..GROUPS).map(GroupId) {
            for id in 0..REPLICAS {
                let config = Config {
                    group,
                    seed: u64::from(group.0) * 31 + u64::from(id),
                    ..config(id, u64::from(id) + 1, &everyone)
                };
                let replica =
                    Replica::new(config, Now::default(), PersistedState::default()).unwrap();
                processes.replicas.insert((id, group), replica);
            }
        }
        for group in (0..GROUPS).map(GroupId) {
            for id in 0..REPLICAS {
                for other in (0..REPLICAS).filter(|other| *other != id) {
                    processes.step(
                        id,
                        group,
                        Input::PeerUp(peer(other), config(other, 1, &[]).promise()),
                    );
                }
            }
        }
        processes
    }

    fn step(&mut self, id: u16, group: GroupId, input: Input) {
        let now = self.now;
        let mut waiting = VecDeque::from([input]);
        while let Some(input) = waiting.pop_front() {
            let replica = self.replicas.get_mut(&(id, group)).unwrap();
            let mut outputs = Vec::new();
            replica.step(now, input, &mut outputs);
            replica.flush(now, &mut outputs);
            for output in outputs {
                match output {
                    Output::Persist { ticket, .. } => waiting.push_back(Input::Persisted(ticket)),
                    Output::Send { to, message } => {
                        let (message, attachment) = message.to_proto(group);
                        self.frames.push_back((peer(id), to, message, attachment));
                    }
                    Output::Committed(upto) => {
                        let log = self.committed.entry((id, group)).or_default();
                        let first = Index(log.len() as u64 + 1);
                        let replica = &self.replicas[&(id, group)];
                        log.extend(replica.entries(first, upto).map(|e| e.payload().to_vec()));
                        waiting.push_back(Input::Applied(upto));
                    }
                    Output::Read(..)
                    | Output::Done(_)
                    | Output::Refused(..)
                    | Output::RoleChanged(_)
                    | Output::Truncated(_)
                    | Output::OtherLineage { .. }
                    | Output::MembershipChanged(_)
                    | Output::ReadSnapshot { .. }
                    | Output::StoreSnapshotChunk { .. }
                    | Output::InstallSnapshot { .. }
                    | Output::TakeSnapshot
                    | Output::Engage(_)
                    | Output::Disengage(_)
                    | Output::PlaneHeartbeat { .. }
                    | Output::PlanePersisted(_) => {}
                }
            }
        }
    }

    /// Delivers what is under way, then lets time pass.
    fn turn(&mut self) {
        while let Some((from, to, message, attachment)) = self.frames.pop_front() {
            let group = GroupId(message.group);
            let attachment = Bytes::from(attachment.concat());
            let message = Message::from_proto(message, attachment).unwrap();
            self.step(to.id.0, group, Input::Message { from, message });
        }
        self.now.0 += HEARTBEAT / 2;
        for (id, group) in self.replicas.keys().copied().collect::<Vec<_>>() {
            self.step(id, group, Input::Timeout);
        }
    }

    fn leader(&self, group: GroupId) -> Option<u16> {
        (0..REPLICAS).find(|id| self.replicas[&(*id, group)].role() == Role::Leader)
    }

    fn turn_until(&mut self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        for _ in 0..STEPS_MAX {
            if holds(self) {
                return;
            }
            self.turn();
        }
        panic!("{what} did not happen within {STEPS_MAX} turns");
    }
}

#[test]
fn sixteen_groups_share_three_processes() {
    let mut processes = Processes::start();
    let groups: Vec<GroupId> = (0..GROUPS).map(GroupId).collect();
    processes.turn_until("a leader in every group", |processes| {
        groups
            .iter()
            .all(|group| processes.leader(*group).is_some())
    });
    for group in &groups {
        let leader = processes.leader(*group).unwrap();
        let replica = processes.replicas.get_mut(&(leader, *group)).unwrap();
        let text = format!("of group {group}");
        let proposed = replica.propose(RecordKind::Command, |b| {
            b.extend_from_slice(text.as_bytes());
        });
        proposed.expect("a leader takes a command");
    }
    processes.turn_until("every command at every replica of its group", |processes| {
        groups.iter().all(|group| {
            let text = format!("of group {group}").into_bytes();
            (0..REPLICAS).all(|id| {
                let log = processes.committed.get(&(id, *group));
                log.is_some_and(|log| log.contains(&text))
            })
        })
    });
    for ((_, group), log) in &processes.committed {
        let text = format!("of group {group}").into_bytes();
        let commands = log
            .iter()
            .filter(|payload| payload.starts_with(b"of group"));
        assert!(
            commands.clone().all(|payload| *payload == text),
            "group {group}"
        );
        assert_eq!(commands.count(), 1, "group {group}");
    }
}

/// A message that a faulty process files under the wrong group brings records that name another one.
#[test]
fn records_of_another_group_are_refused() {
    let mut processes = Processes::start();
    let (ours, other) = (GroupId(0), GroupId(1));
    processes.turn_until("leaders", |processes| {
        processes.leader(ours).is_some() && processes.leader(other).is_some()
    });
    processes.turn();
    let leader = processes.leader(other).unwrap();
    let replica = processes.replicas.get_mut(&(leader, other)).unwrap();
    replica
        .propose(RecordKind::Command, |buffer| {
            buffer.extend_from_slice(b"stray");
        })
        .unwrap();
    processes.frames.clear();
    let mut outputs = Vec::new();
    let now = processes.now;
    let replica = processes.replicas.get_mut(&(leader, other)).unwrap();
    replica.flush(now, &mut outputs);
    let mut delivered = 0;
    for output in outputs {
        if let Output::Send { to, message } = output {
            let before = processes.replicas[&(to.id.0, ours)].status();
            let from = peer(leader);
            processes.step(to.id.0, ours, Input::Message { from, message });
            let after = processes.replicas[&(to.id.0, ours)].status();
            assert_eq!(
                after.counters.ignored_malformed,
                before.counters.ignored_malformed + 1
            );
            assert_eq!(after.last_index, before.last_index);
            delivered += 1;
        }
    }
    assert!(delivered > 0, "the leader sent nothing");
}

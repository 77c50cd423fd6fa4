//! Whatever a peer sends, a replica neither panics nor commits anything it was not led to.
use crate::environment;
use crate::world::{ELECTION_TIMEOUT, GROUP, HEARTBEAT, config};
use bytes::{Bytes, BytesMut};
use quorumwire_control::{
    Body, Input, Message, Now, Output, Peer, PersistedState, Promise, Replica, Role,
};
use quorumwire_interfaces::{Incarnation, Index, Lineage, Registers, ReplicaId, Term};
use quorumwire_wire::peer::PeerMessage;
use quorumwire_wire::{
    CommitQuorum, Member, MemberRole, Membership, RecordKind, begin_record, finish_record,
};
use std::collections::BTreeMap;
use std::time::Duration;

const SEEDS: u64 = 300;
const MESSAGES: u64 = 400;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ (mixed >> 29)
    }

    /// Mostly small, sometimes as large as the wire form lets through.
    fn number(&mut self) -> u64 {
        match self.next() % 20 {
            0 => u64::MAX / 2,
            1 => self.next() / 2,
            _ => self.next() % 12,
        }
    }

    fn flag(&mut self) -> bool {
        self.next().is_multiple_of(2)
    }

    fn peer(&mut self) -> Peer {
        Peer {
            id: ReplicaId((self.next() % 4) as u16),
            incarnation: Incarnation(1 + self.next() % 2),
        }
    }

    fn membership(&mut self) -> Membership {
        let members = (0..3)
            .map(|id| Member {
                id: ReplicaId(id),
                incarnation: Incarnation(1),
                peer_address: String::new(),
                role: match self.next() % 4 {
                    0 => MemberRole::Learner,
                    1 => MemberRole::Joining,
                    _ => MemberRole::Voter,
                },
            })
            .collect();
        let quorum = if self.flag() {
            CommitQuorum::Majority
        } else {
            CommitQuorum::All
        };
        Membership {
            members,
            quorum,
            lineage: self.lineage(),
        }
    }

    fn lineage(&mut self) -> Lineage {
        Lineage([0, 1, 2][(self.next() % 3) as usize])
    }

    fn record(&mut self, index: u64, term: u64) -> Bytes {
        let kind = match self.next() % 8 {
            0 => RecordKind::Membership,
            1 => RecordKind::HardState,
            2 => RecordKind::NoOp,
            3 => RecordKind::Tick,
            _ => RecordKind::Command,
        };
        let mut block = BytesMut::new();
        let start = begin_record(&mut block, kind, GROUP, Term(term), Index(index));
        if kind == RecordKind::Membership && self.flag() {
            block.extend_from_slice(&self.membership().encode());
        }
        finish_record(&mut block, start);
        if self.next().is_multiple_of(30) {
            block[5] ^= 1;
        }
        block.freeze()
    }

    fn records(&mut self, previous: u64) -> Vec<Bytes> {
        let mut records = Vec::new();
        let mut term = self.number();
        for place in 0..self.next() % 4 {
            let index = previous.saturating_add(1 + place);
            records.push(self.record(index, term));
            term += self.next() % 2;
        }
        records
    }

    fn body(&mut self) -> Body {
        match self.next() % 14 {
            0 => Body::Fresh {
                to_incarnation: Incarnation(1 + self.next() % 2),
                peer_address: "elsewhere".repeat((self.next() % 40) as usize),
                join: self.flag(),
                initial_members: (0..(self.next() % 4) as u16).map(ReplicaId).collect(),
            },
            1 => Body::Bootstrap {
                record: self.record(1, 1),
            },
            2 => Body::VoteRequest {
                last_index: Index(self.number()),
                last_term: Term(self.number()),
                pre_vote: self.flag(),
                transfer: self.flag(),
                engage: self.flag(),
            },
            3 | 4 => Body::VoteReply {
                granted: self.flag(),
                pre_vote: self.flag(),
                engaged: self.flag(),
            },
            5 | 6 => {
                let previous = self.number();
                Body::Append {
                    previous_index: Index(previous),
                    previous_term: Term(self.number()),
                    commit_index: Index(self.number()),
                    round: self.number(),
                    records: self.records(previous),
                }
            }
            7 | 8 => Body::AppendReply {
                round: self.number(),
                rejected: self.flag(),
                index: Index(self.number()),
                hint_index: Index(self.number()),
                hint_term: Term(self.number()),
            },
            9 => Body::SnapshotChunk {
                last_index: Index(self.number()),
                last_term: Term(self.number()),
                offset: self.number(),
                total_bytes: self.number(),
                round: self.number(),
                bytes: Bytes::from(vec![0; (self.next() % 3) as usize]),
            },
            10 => Body::SnapshotReply {
                last_index: Index(self.number()),
                offset: self.number(),
                installed: self.flag(),
                rejected: self.flag(),
                round: self.number(),
            },
            11 => Body::EngageOffer {
                start_index: Index(self.number()),
            },
            12 => Body::Engaged {
                engaged: self.flag(),
                index: Index(self.number()),
            },
            _ => Body::TransferNow,
        }
    }
}

fn member_record(random: &mut Random) -> PersistedState {
    let mut stored = PersistedState::default();
    let members = Membership {
        members: random
            .membership()
            .members
            .into_iter()
            .map(|member| Member {
                role: MemberRole::Voter,
                ..member
            })
            .collect(),
        quorum: CommitQuorum::Majority,
        lineage: Lineage(1),
    };
    let mut block = BytesMut::new();
    let start = begin_record(&mut block, RecordKind::Membership, GROUP, Term(1), Index(1));
    block.extend_from_slice(&members.encode());
    finish_record(&mut block, start);
    let block = block.freeze();
    let record = quorumwire_wire::Record::decode(&block).expect("just made");
    let entry = quorumwire_control::Entry::of_record(&block, 0, &record);
    stored.entries.push(entry);
    stored.hard_state.term = Term(1);
    stored
}

/// One replica among peers that say anything at all; what roles it was in.
fn torment(seed: u64, roles: &mut BTreeMap<Role, u64>) -> u64 {
    let mut random = Random(seed);
    let stored = if seed.is_multiple_of(4) {
        PersistedState::default()
    } else {
        member_record(&mut random)
    };
    let initial: &[u16] = if random.flag() { &[0, 1, 2] } else { &[] };
    let mut config = config(0, 1, initial);
    config.plane = seed.is_multiple_of(3);
    let mut replica = Replica::new(config, Now::default(), stored).expect("sound");
    let mut now = Duration::ZERO;
    let mut outputs = Vec::new();
    for _ in 0..MESSAGES {
        let from = random.peer();
        let input = match random.next() % 18 {
            16 => Input::PlanePeer {
                id: from.id,
                has_plane: random.flag(),
            },
            17 => Input::PlaneBehind(from.id),
            0 => {
                now += ELECTION_TIMEOUT;
                Input::Timeout
            }
            1 => {
                let promise = Promise {
                    lasts: Duration::from_micros(random.number()),
                    clock_drift_ppm: u32::try_from(random.next() >> 32).expect("32 bits"),
                    keeps_lineage: random.flag(),
                    keeps_wall_clock: random.flag(),
                    lineage: random.lineage(),
                };
                Input::PeerUp(from, promise)
            }
            2 => Input::PeerDown(from),
            3 => {
                now += HEARTBEAT;
                Input::Timeout
            }
            _ => {
                let near = replica.term().0.saturating_add(random.next() % 3);
                let term = if random.next().is_multiple_of(50) {
                    random.number()
                } else {
                    near.saturating_sub(1)
                };
                let body = random.body();
                Input::Message {
                    from,
                    message: Message {
                        term: Term(term.min(u64::MAX / 2)),
                        body,
                    },
                }
            }
        };
        replica.step(Now(now), input, &mut outputs);
        let _ = replica.propose(RecordKind::Command, |block| block.extend_from_slice(b"x"));
        replica.flush(Now(now), &mut outputs);
        *roles.entry(replica.role()).or_default() += 1;
        answer(&mut replica, Now(now), &mut outputs);
        assert!(replica.commit_index() <= replica.last_index());
    }
    replica.status().fast_counters.engaged
}

/// The disk does what it is asked, at once.
fn answer(replica: &mut Replica, now: Now, outputs: &mut Vec<Output>) {
    for output in std::mem::take(outputs) {
        let done = match output {
            Output::Persist { ticket, .. } => Input::Persisted(ticket),
            Output::Committed(index) => Input::Applied(index),
            Output::StoreSnapshotChunk {
                last_index,
                offset,
                bytes,
            } => Input::SnapshotChunkStored {
                last_index,
                next_offset: offset + bytes.len() as u64,
                stored: true,
            },
            Output::InstallSnapshot { last_index, .. } => Input::SnapshotInstalled {
                last_index,
                meta: None,
            },
            Output::ReadSnapshot {
                to,
                last_index,
                offset,
                ..
            } => Input::SnapshotRead {
                to,
                last_index,
                offset,
                chunk: None,
            },
            Output::Send { message, .. } => {
                check_codec(&message);
                continue;
            }
            Output::Engage(engage) => Input::Engaged {
                term: engage.term,
                engaged: !engage.last_index.0.is_multiple_of(3),
            },
            // A plane that has moved nothing.
            Output::Disengage(_) => Input::Disengaged {
                registers: Registers::default(),
            },
            Output::Read(..)
            | Output::Done(_)
            | Output::Refused(..)
            | Output::RoleChanged(_)
            | Output::Truncated(_)
            | Output::OtherLineage { .. }
            | Output::MembershipChanged(_)
            | Output::TakeSnapshot
            | Output::PlaneHeartbeat { .. }
            | Output::PlanePersisted(_) => continue,
        };
        replica.step(now, done, outputs);
    }
}

/// What a replica sends survives the way over the wire.
fn check_codec(message: &Message) {
    let (proto, pieces): (PeerMessage, Vec<Bytes>) = message.to_proto(GROUP);
    assert_eq!(proto.group, GROUP.0);
    let attachment = Bytes::from(pieces.concat());
    match Message::from_proto(proto, attachment.clone()) {
        Ok(mut read) => {
            // Pieces arrive as one.
            let mut said = message.clone();
            for message in [&mut read, &mut said] {
                if let Body::Append { records, .. } = &mut message.body {
                    *records = vec![Bytes::from(records.concat())];
                }
            }
            assert_eq!(read, said);
        }
        Err(error) => assert!(message.term.0 > u64::MAX / 2, "{message:?}: {error}"),
    }
}

#[test]
fn nothing_a_peer_says_breaks_a_replica() {
    let only = environment::number(environment::SEED);
    let (first, last) = only.map_or((1, SEEDS), |seed| (seed, seed));
    println!("seeds {first} to {last}");
    let mut roles = BTreeMap::new();
    let mut engaged_count = 0;
    for seed in first..=last {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            engaged_count += torment(seed, &mut roles);
        }));
        assert!(outcome.is_ok(), "QUORUMWIRE_SEED={seed}");
    }
    println!("{roles:?}, engaged {engaged_count} times");
    assert!(only.is_some() || engaged_count > 0, "never engaged");
    for role in [
        Role::Joining,
        Role::Follower,
        Role::PreCandidate,
        Role::Candidate,
        Role::Leader,
    ] {
        assert!(
            only.is_some() || roles.contains_key(&role),
            "never {role:?}"
        );
    }
}

#[test]
fn a_node_message_is_not_a_replica_message() {
    use quorumwire_wire::peer::{self, peer_message};
    let cases = [
        None,
        Some(peer_message::Body::Forward(peer::Forward::default())),
        Some(peer_message::Body::Bootstrap(peer::Bootstrap {})),
        Some(peer_message::Body::Append(peer::Append {
            previous_index: u64::MAX,
            ..peer::Append::default()
        })),
    ];
    for body in cases {
        let message = PeerMessage {
            group: GROUP.0,
            term: 1,
            body: body.clone(),
        };
        assert!(
            Message::from_proto(message, Bytes::new()).is_err(),
            "{body:?}"
        );
    }
    let vote = peer_message::Body::TransferNow(peer::TransferNow {});
    let message = PeerMessage {
        group: GROUP.0,
        term: 1,
        body: Some(vote),
    };
    assert!(Message::from_proto(message, Bytes::from_static(b"x")).is_err());
}

//! A small honest data plane: what the step of the fast path does, packet by packet, over the world's
//! network. It knows nothing of elections; the replica beside it decides when it runs.
use crate::world::GROUP;
use bytes::{Bytes, BytesMut};
use quorumwire_control::Engage;
use quorumwire_interfaces::{Index, Registers, Term};
use quorumwire_wire::{RecordKind, begin_record, finish_record};
use std::collections::BTreeMap;

/// Entries a ring holds.
pub const RING_SLOTS: u64 = 16;

/// Most entries sent again for one request.
const RESEND_MAX: u64 = 8;

pub struct Plane {
    /// What it is engaged with.
    pub grant: Option<Engage>,
    pub registers: Registers,
    /// It acknowledges only what is persisted.
    pub held: bool,
    /// It will not engage.
    pub refuses: bool,
    /// It takes no packet any more.
    pub failed: bool,
    ring: BTreeMap<Index, Bytes>,
    start_index: Index,
    /// The host has taken everything up to here.
    taken_index: Index,
    /// Slots of those that asked for what the ring no longer holds.
    behind: Vec<usize>,
}

#[derive(Clone, Debug)]
pub struct Frame {
    pub term: Term,
    pub slot: usize,
    pub packet: Packet,
}

#[derive(Clone, Debug)]
pub enum Packet {
    Append {
        index: Index,
        previous_term: Term,
        commit_index: Index,
        payload: Bytes,
    },
    AppendOk {
        index: Index,
    },
    Retransmit {
        index: Index,
    },
    Heartbeat {
        round: u64,
        last_index: Index,
        commit_index: Index,
    },
    HeartbeatOk {
        round: u64,
        index: Index,
    },
}

/// Frames and the slots they go to.
pub type Sent = Vec<(usize, Frame)>;

impl Plane {
    pub fn new(held: bool) -> Self {
        Self {
            grant: None,
            registers: Registers::default(),
            held,
            refuses: false,
            failed: false,
            ring: BTreeMap::new(),
            start_index: Index(0),
            taken_index: Index(0),
            behind: Vec::new(),
        }
    }

    pub fn engage(&mut self, grant: Engage) -> bool {
        assert!(self.grant.is_none(), "engaged twice");
        if self.refuses {
            return false;
        }
        self.registers = Registers {
            term: grant.term,
            last_index: grant.last_index,
            last_term: grant.last_term,
            commit_index: grant.commit_index,
            persisted_index: grant.last_index,
            ..Registers::default()
        };
        self.ring.clear();
        self.behind.clear();
        self.start_index = grant.last_index;
        self.taken_index = grant.last_index;
        self.failed = false;
        self.grant = Some(grant);
        true
    }

    pub fn disengage(&mut self) {
        self.grant = None;
    }

    fn leads(&self) -> bool {
        self.grant.as_ref().is_some_and(|g| g.me == g.leader) && !self.failed
    }

    fn frame(&self, packet: Packet) -> Frame {
        Frame {
            term: self.registers.term,
            slot: self.grant.as_ref().map_or(0, |g| usize::from(g.me)),
            packet,
        }
    }

    fn to_all(&self, packet: &Packet) -> Sent {
        let grant = self.grant.as_ref().expect("engaged");
        let others = (0..grant.voters.len()).filter(|slot| *slot != usize::from(grant.me));
        others
            .map(|slot| (slot, self.frame(packet.clone())))
            .collect()
    }

    /// Highest index it may speak for.
    fn promised(&self) -> Index {
        if self.held {
            self.registers.persisted_index
        } else {
            self.registers.last_index
        }
    }

    fn store(&mut self, payload: Bytes) {
        let registers = &mut self.registers;
        registers.last_index = registers.last_index.next();
        registers.last_term = registers.term;
        self.ring.insert(registers.last_index, payload);
        while self.ring.len() as u64 > RING_SLOTS
            && let Some((index, _)) = self.ring.first_key_value()
            && *index <= self.taken_index
        {
            self.ring.pop_first();
        }
    }

    fn is_full(&self) -> bool {
        self.registers.last_index.0 - self.taken_index.0 >= RING_SLOTS
    }

    fn append(&self, index: Index) -> Option<Packet> {
        let before_start = index.previous() == self.start_index;
        let start_term = self.grant.as_ref().expect("engaged").last_term;
        Some(Packet::Append {
            index,
            previous_term: if before_start {
                start_term
            } else {
                self.registers.term
            },
            commit_index: self.registers.commit_index,
            payload: self.ring.get(&index)?.clone(),
        })
    }

    /// Leader: takes a command; `None` if there is no room, or it does not lead.
    pub fn submit(&mut self, payload: &[u8]) -> Option<(Index, Sent)> {
        if !self.leads() || self.is_full() {
            return None;
        }
        self.store(Bytes::copy_from_slice(payload));
        let index = self.registers.last_index;
        let packet = self.append(index).expect("just stored");
        self.count();
        Some((index, self.to_all(&packet)))
    }

    pub fn heartbeat(&mut self, round: u64) -> Sent {
        if !self.leads() {
            return Vec::new();
        }
        assert!(
            round > self.registers.round,
            "a plane is told each round once"
        );
        self.registers.round = round;
        self.to_all(&Packet::Heartbeat {
            round,
            last_index: self.registers.last_index,
            commit_index: self.registers.commit_index,
        })
    }

    pub fn persisted(&mut self, upto: Index) -> Sent {
        let Some(grant) = &self.grant else {
            return Vec::new();
        };
        let leader = usize::from(grant.leader);
        assert!(
            upto <= self.registers.last_index,
            "persisted beyond the last"
        );
        self.registers.persisted_index = self.registers.persisted_index.max(upto);
        if self.leads() {
            self.count();
            return Vec::new();
        }
        let index = self.promised();
        vec![(leader, self.frame(Packet::AppendOk { index }))]
    }

    /// Leader: commits what enough hold.
    fn count(&mut self) {
        let Some(grant) = &self.grant else { return };
        let mut held: Vec<Index> = (0..grant.voters.len())
            .map(|slot| {
                if slot == usize::from(grant.me) {
                    self.promised()
                } else {
                    self.registers.match_index[slot]
                }
            })
            .collect();
        held.sort_unstable_by(|a, b| b.cmp(a));
        let committed = held[usize::from(grant.quorum) - 1];
        self.registers.commit_index = self.registers.commit_index.max(committed);
    }

    /// A packet arrives; what it answers.
    pub fn take(&mut self, frame: Frame) -> Sent {
        let Some(grant) = &self.grant else {
            return Vec::new();
        };
        let from_leader = frame.slot == usize::from(grant.leader);
        if frame.term != self.registers.term || self.failed {
            return Vec::new();
        }
        match frame.packet {
            Packet::Append {
                index,
                previous_term,
                commit_index,
                payload,
            } if from_leader => {
                self.take_append(frame.slot, index, (previous_term, commit_index), payload)
            }
            Packet::Heartbeat {
                round,
                last_index,
                commit_index,
            } if from_leader => {
                self.learn_commit(commit_index);
                self.registers.round = self.registers.round.max(round);
                let index = self.promised();
                let mut sent = vec![(frame.slot, self.frame(Packet::HeartbeatOk { round, index }))];
                if last_index > self.registers.last_index {
                    let index = self.registers.last_index.next();
                    sent.push((frame.slot, self.frame(Packet::Retransmit { index })));
                }
                sent
            }
            Packet::AppendOk { index } if self.leads() => {
                self.acknowledged(frame.slot, index);
                Vec::new()
            }
            Packet::HeartbeatOk { round, index } if self.leads() => {
                let heard = &mut self.registers.heard_round[frame.slot];
                *heard = (*heard).max(round);
                self.acknowledged(frame.slot, index);
                Vec::new()
            }
            Packet::Retransmit { index } if self.leads() => self.resend(frame.slot, index),
            Packet::Append { .. }
            | Packet::Heartbeat { .. }
            | Packet::AppendOk { .. }
            | Packet::HeartbeatOk { .. }
            | Packet::Retransmit { .. } => Vec::new(),
        }
    }

    fn learn_commit(&mut self, commit_index: Index) {
        let known = commit_index.min(self.registers.last_index);
        self.registers.commit_index = self.registers.commit_index.max(known);
    }

    fn take_append(
        &mut self,
        slot: usize,
        index: Index,
        (previous_term, commit_index): (Term, Index),
        payload: Bytes,
    ) -> Sent {
        let next = self.registers.last_index.next();
        if index <= self.start_index || (index == next && self.is_full()) {
            return Vec::new();
        }
        if index > next {
            self.learn_commit(commit_index);
            return vec![(slot, self.frame(Packet::Retransmit { index: next }))];
        }
        if index == next {
            if previous_term != self.registers.last_term {
                return Vec::new();
            }
            self.store(payload);
        }
        self.learn_commit(commit_index);
        let index = self.promised();
        vec![(slot, self.frame(Packet::AppendOk { index }))]
    }

    fn acknowledged(&mut self, slot: usize, index: Index) {
        if index <= self.registers.last_index {
            let matched = &mut self.registers.match_index[slot];
            *matched = (*matched).max(index);
            self.count();
        }
    }

    fn resend(&mut self, slot: usize, first: Index) -> Sent {
        if first > self.registers.last_index {
            return Vec::new();
        }
        if !self.ring.contains_key(&first) {
            self.behind.push(slot);
            return Vec::new();
        }
        let last = self.registers.last_index.0.min(first.0 + RESEND_MAX - 1);
        (first.0..=last)
            .filter_map(|index| Some((slot, self.frame(self.append(Index(index))?))))
            .collect()
    }

    /// The entries the host has not taken yet, as records.
    pub fn take_entries(&mut self) -> Option<Bytes> {
        let mut block = BytesMut::new();
        let first = self.taken_index.next();
        for (index, payload) in self.ring.range(first..) {
            let term = self.registers.term;
            let start = begin_record(&mut block, RecordKind::Command, GROUP, term, *index);
            block.extend_from_slice(payload);
            finish_record(&mut block, start);
            self.taken_index = *index;
        }
        (!block.is_empty()).then(|| block.freeze())
    }

    /// Those the ring can no longer help.
    pub fn take_behind(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.behind)
    }

    /// Whether it holds this entry in memory, for a cluster whose memory is what counts.
    pub fn holds(&self, index: Index, term: Term) -> bool {
        !self.held && self.registers.term == term && self.ring.contains_key(&index)
    }
}

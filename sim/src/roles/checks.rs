//! What must never happen, whatever fails, and what is known of the whole deployment for that.
use super::plan::Node;
use quorumwire_paxos::{Decided, Fate, Learned};
use quorumwire_wire::packet::{FLAG_FRAGMENT, FLAG_REFUSED, Header, Kind};
use std::collections::BTreeMap;

/// What a vote was for.
type Value = (u64, u64, u32, bool);

/// A value that was delivered: whose, and which.
type Name = (u64, u64);

/// Everything that was seen, by nobody in the deployment.
#[derive(Default)]
pub(super) struct Checks {
    pub(super) violation: Option<String>,
    acceptors: u8,
    /// By instance and round: the value, and a bit for each acceptor that voted.
    votes: BTreeMap<(u64, u64), (Value, u8)>,
    /// What a majority has voted for in one round, by instance.
    chosen: BTreeMap<u64, Value>,
    /// What learners were given, by instance.
    decided: BTreeMap<u64, Decided>,
    /// What they delivered, by instance.
    delivered: BTreeMap<u64, (Name, Vec<u8>)>,
    /// Where a value was delivered.
    places: BTreeMap<Name, u64>,
    /// What proposers have submitted: by its first bytes, which are unlike all others.
    submitted: BTreeMap<u64, Vec<u8>>,
}

impl Checks {
    pub(super) fn new(acceptors: u8) -> Self {
        Self {
            acceptors,
            ..Self::default()
        }
    }

    pub(super) fn require(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds && self.violation.is_none() {
            self.violation = Some(what());
        }
    }

    pub(super) fn submitted(&mut self, number: u64, value: &[u8]) {
        self.submitted.insert(number, value.to_vec());
    }

    /// P1: in each instance a majority votes for one value only, in whatever rounds.
    pub(super) fn on_vote(&mut self, header: &Header) {
        let is_vote = header.kind == Kind::P2b as u8 && header.flags & FLAG_REFUSED == 0;
        if !is_vote {
            return;
        }
        let is_fragment = header.flags & FLAG_FRAGMENT != 0;
        let value = (
            header.session,
            header.sequence,
            header.payload_crc32c,
            is_fragment,
        );
        let place = (header.index, header.term);
        let (voted, from) = self.votes.entry(place).or_insert((value, 0));
        let (voted, is_same) = (*voted, *voted == value);
        *from |= 1 << header.sender;
        let voters = from.count_ones();
        self.require(is_same, || {
            format!(
                "P2: two values in round {:#x} of instance {}: {voted:?}, {value:?}",
                place.1, place.0
            )
        });
        if voters > u32::from(self.acceptors) / 2 {
            let chosen = *self.chosen.entry(header.index).or_insert(value);
            self.require(chosen == value, || {
                format!(
                    "P1: instance {} is decided twice: {chosen:?}, {value:?}",
                    header.index
                )
            });
        }
    }

    /// P3: all learners are given the same, which is what a majority has voted for; each value is delivered
    /// in one instance only.
    pub(super) fn on_learned(&mut self, who: Node, learned: &Learned) {
        let decided = &learned.decided;
        let instance = decided.instance;
        let chosen = self.chosen.get(&instance).copied();
        let checksum = quorumwire_wire::payload_checksum(&decided.payload);
        let value = (
            decided.session,
            decided.sequence,
            checksum,
            decided.is_fragment,
        );
        self.require(chosen == Some(value), || {
            format!("P3: {who:?} is given {value:?} in instance {instance}, chosen is {chosen:?}")
        });
        let first = self
            .decided
            .entry(instance)
            .or_insert_with(|| decided.clone());
        let is_same = first == decided;
        self.require(is_same, || {
            format!("P3: {who:?} is given something else in {instance}")
        });
        let Fate::Value(bytes) = &learned.fate else {
            let is_delivered = self.delivered.contains_key(&instance);
            self.require(!is_delivered, || {
                format!("P4: {who:?} delivers nothing in {instance}, another one does")
            });
            return;
        };
        let name = (decided.session, decided.sequence);
        let delivered = (name, bytes.clone());
        let found = self
            .delivered
            .entry(instance)
            .or_insert_with(|| delivered.clone());
        let is_same = *found == delivered;
        self.require(is_same, || {
            format!("P4: {who:?} delivers another value in {instance}")
        });
        let place = *self.places.entry(name).or_insert(instance);
        self.require(place == instance, || {
            format!("P4: {who:?} delivers {name:?} in {instance}, and in {place}")
        });
        let number = bytes.first_chunk().map(|it| u64::from_be_bytes(*it));
        let submitted = number.and_then(|number| self.submitted.get(&number));
        let is_submitted = submitted == Some(bytes);
        self.require(is_submitted, || {
            format!("P5: {who:?} delivers in {instance} what nobody has submitted")
        });
    }

    /// P6: what a proposer hears of its value is so.
    pub(super) fn on_settled(&mut self, value: &[u8], instance: Option<u64>) {
        let Some(instance) = instance else { return };
        let is_so = self.places.values().any(|place| *place <= instance)
            && self
                .delivered
                .range(..=instance)
                .any(|(_, (_, found))| found == value);
        self.require(is_so, || {
            format!("P6: told delivered in {instance}, and it is not")
        });
    }

    /// P7: at the end each value was delivered once.
    pub(super) fn all_delivered(&mut self, settled_unknown: usize) {
        let mut numbers: Vec<u64> = self
            .delivered
            .values()
            .filter_map(|(_, bytes)| bytes.first_chunk().map(|it| u64::from_be_bytes(*it)))
            .collect();
        let count = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        let (unique, submitted) = (numbers.len(), self.submitted.len());
        self.require(unique == count, || {
            format!("P7: {} delivered twice", count - unique)
        });
        self.require(unique + settled_unknown >= submitted, || {
            format!(
                "P7: {} values of {submitted} were never delivered",
                submitted - unique
            )
        });
    }
}

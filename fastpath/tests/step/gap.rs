//! A follower's questions for what is missing: each packet behind a gap is one of them, or none.
use quorumwire_fastpath::{Gap, Question, gap_after, step};
use quorumwire_wire::packet::{Header, Kind, MAGIC, RESEND_ENTRIES_MAX, Registers, Role, VERSION};

const TERM: u64 = 3;

/// A follower whose ring never fills.
struct Follower {
    registers: Registers,
    gap: Gap,
}

/// What an APPEND led to.
#[derive(Debug, Eq, PartialEq)]
enum Response {
    /// It was acknowledged.
    Stored,
    /// What is missing from here on was asked for.
    Asked(u64),
    Nothing,
}

impl Follower {
    fn new() -> Self {
        let registers = Registers {
            term: TERM,
            last_term: TERM,
            ring_slots: 1 << 10,
            window: 1 << 10,
            role: Role::Follower as u8,
            me: 1,
            replicas: 3,
            quorum: 2,
            ..Registers::default()
        };
        Self {
            registers,
            gap: Gap::behind(0),
        }
    }

    fn hears(&mut self, index: u64) -> Response {
        let header = Header {
            magic: MAGIC,
            version: VERSION,
            kind: Kind::Append as u8,
            term: TERM,
            index,
            previous_term: TERM,
            ..Header::default()
        };
        let outcome = step(&mut self.registers, &header);
        match gap_after(&mut self.gap, &header, &outcome) {
            Question::Not => Response::Nothing,
            Question::More => Response::Asked(outcome.index + 1),
            Question::AsSaid if outcome.header.kind == Kind::Retransmit as u8 => {
                Response::Asked(outcome.header.index)
            }
            Question::AsSaid => Response::Stored,
        }
    }

    /// The packet that it asks with, of so many behind the gap.
    fn asks_within(&mut self, from: u64, packets: u64) -> Option<u64> {
        (0..packets).find(|more| self.hears(from + more) != Response::Nothing)
    }
}

const MANY: u64 = RESEND_ENTRIES_MAX as u64;

#[test]
fn what_is_on_its_way_is_not_asked_for_again() {
    let mut follower = Follower::new();
    assert_eq!(follower.hears(100), Response::Asked(1));
    assert_eq!(follower.hears(101), Response::Nothing);
    // Of the entries that were asked for come some, then one of the leader's next, then the others.
    for index in 1..=10 {
        assert_eq!(follower.hears(index), Response::Stored);
    }
    assert_eq!(follower.hears(102), Response::Nothing);
    for index in 11..MANY {
        assert_eq!(follower.hears(index), Response::Stored);
    }
    assert_eq!(follower.hears(MANY), Response::Asked(MANY + 1));
}

#[test]
fn an_entry_lost_among_those_asked_for_is_asked_for_at_once() {
    let mut follower = Follower::new();
    assert_eq!(follower.hears(100), Response::Asked(1));
    assert_eq!(follower.hears(1), Response::Stored);
    assert_eq!(follower.hears(3), Response::Asked(2));
    assert_eq!(follower.hears(4), Response::Nothing);
}

#[test]
fn if_the_last_ones_asked_for_are_lost_they_are_asked_for_soon() {
    let mut follower = Follower::new();
    assert_eq!(follower.hears(100), Response::Asked(1));
    for index in 1..=10 {
        assert_eq!(follower.hears(index), Response::Stored);
    }
    assert_eq!(follower.asks_within(101, 1_000), Some(MANY));
}

#[test]
fn if_all_that_were_asked_for_are_lost_they_are_asked_for_later() {
    let mut follower = Follower::new();
    assert_eq!(follower.hears(100), Response::Asked(1));
    assert_eq!(follower.asks_within(101, 1_000), Some(8 * MANY));
}

/// Packets that came before the first answer do not count for how long the others are waited for.
#[test]
fn the_wait_begins_anew_with_each_entry_that_comes() {
    let mut follower = Follower::new();
    assert_eq!(follower.hears(100), Response::Asked(1));
    assert_eq!(follower.asks_within(101, 2 * MANY), None);
    assert_eq!(follower.hears(1), Response::Stored);
    assert_eq!(follower.hears(200), Response::Nothing);
}

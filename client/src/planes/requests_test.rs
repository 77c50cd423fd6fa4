//! A client without a socket, and replicas that are played by hand.
use super::requests::{Requests, Ticket};
use super::settings::{IDLE_MAX, Settings, WINDOW};
use super::{COMMAND_BYTES_MAX, Error, lineage};
use quorumwire_fastpath::{Engine, Options, Outbox};
use quorumwire_interfaces::{
    Answer, GroupId, Index, Lineage, PlaneEvent, PlaneKeyPair, PlaneKeys, Reason,
};
use quorumwire_wire::LineagePacket;
use std::net::SocketAddr;
use std::time::Duration;

const MILLISECOND: Duration = Duration::from_millis(1);
/// What a refusal says for people.
const WHY: &str = "not now";

fn replica(number: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 7000 + number))
}

fn keys(byte: u8) -> PlaneKeyPair {
    PlaneKeyPair {
        epoch: 1,
        key: [byte; 16],
        other: None,
    }
}

fn settings() -> Settings {
    Settings::new((0..3).map(replica).collect(), keys(9))
}

/// A request as a replica whose plane is off hands it to its host.
#[derive(Clone, Debug, Eq, PartialEq)]
struct HostRequest {
    to: SocketAddr,
    session: u64,
    sequence: u64,
    payload: Vec<u8>,
    blind: bool,
}

/// Where the header has its flags, and the flag of a blind write.
const FLAGS_AT: usize = 5;
const BLIND: u8 = 2;

struct SentDatagrams(Vec<Vec<u8>>);

impl Outbox for SentDatagrams {
    fn send(&mut self, _to: SocketAddr, datagram: &[u8]) {
        self.0.push(datagram.to_vec());
    }
}

/// A client, its time, and an engine that reads its requests and signs answers.
struct World {
    requests: Requests,
    now: Duration,
    engine: Engine,
    /// The clients' keys of the secret file.
    file: PlaneKeyPair,
    lineage: Lineage,
    /// Whether the replicas tell it.
    tells: bool,
}

const LINEAGE: Lineage = Lineage(0xa);

impl World {
    fn new(settings: Settings) -> Self {
        let options = Options {
            group: GroupId(0),
            ring_slots: 8,
            window: 8,
        };
        let mut world = Self {
            requests: Requests::new(settings, 7),
            now: Duration::ZERO,
            engine: Engine::new(options).unwrap(),
            file: keys(9),
            lineage: LINEAGE,
            tells: true,
        };
        world.set_keys(keys(9), LINEAGE);
        world
    }

    /// Those of the replicas.
    fn set_keys(&mut self, file: PlaneKeyPair, lineage: Lineage) {
        (self.file, self.lineage) = (file, lineage);
        self.engine.set_keys(&PlaneKeys {
            cluster: keys(1),
            clients: lineage::keys_of(&file, lineage),
        });
    }

    fn submit(&mut self, command: &[u8]) -> Ticket {
        self.requests.submit(self.now, command, false).unwrap()
    }

    fn submit_blind(&mut self, command: &[u8]) -> Ticket {
        self.requests.submit(self.now, command, true).unwrap()
    }

    /// Submits a blind write and has it answered; whether it was sent blind.
    fn goes_blind(&mut self) -> bool {
        let ticket = self.submit_blind(b"x");
        let asked = self.asked().remove(0);
        self.done(&asked, if asked.blind { b"" } else { b"STORED" });
        assert_eq!(self.requests.take(ticket), Some(Ok(Vec::new())));
        asked.blind
    }

    /// What the client has sent since the last look, and what it sends when it is told which cluster this is.
    fn asked(&mut self) -> Vec<HostRequest> {
        let mut asked = self.asked_of_planes();
        for (to, answer) in self.told() {
            self.deliver(to, &answer);
        }
        asked.extend(self.asked_of_planes());
        asked
    }

    /// The answers to questions for the lineage, which are not in `out` any more.
    fn told(&mut self) -> Vec<(SocketAddr, Vec<u8>)> {
        let (file, lineage, tells) = (self.file, self.lineage, self.tells);
        let mut answers = Vec::new();
        self.requests.out.retain(|(to, datagram)| {
            let answer = lineage::tell(&file, datagram, lineage);
            let is_question = answer.is_some();
            answers.extend(answer.filter(|_| tells).map(|it| (*to, it.to_vec())));
            !is_question
        });
        answers
    }

    /// What the engine takes of what was sent.
    fn asked_of_planes(&mut self) -> Vec<HostRequest> {
        let mut asked = Vec::new();
        let (questions, requests) = std::mem::take(&mut self.requests.out)
            .into_iter()
            .partition(|(_, datagram)| LineagePacket::decode(datagram).is_some());
        self.requests.out = questions;
        let requests: Vec<(SocketAddr, Vec<u8>)> = requests;
        for (to, datagram) in requests {
            let from = SocketAddr::from(([192, 0, 2, 99], 1));
            let mut nothing = SentDatagrams(Vec::new());
            self.engine
                .receive(from, &datagram, &mut nothing, &mut |event| {
                    if let PlaneEvent::Request {
                        session,
                        sequence,
                        payload,
                        ..
                    } = event
                    {
                        let payload = payload.to_vec();
                        asked.push(HostRequest {
                            to,
                            session,
                            sequence,
                            payload,
                            blind: datagram[FLAGS_AT] & BLIND != 0,
                        });
                    }
                });
        }
        asked
    }

    fn answer(
        &mut self,
        asked: &HostRequest,
        refused: Option<Reason>,
        fragment: bool,
        payload: &[u8],
    ) -> Vec<u8> {
        let answer = Answer {
            to: replica(0),
            session: asked.session,
            sequence: asked.sequence,
            index: Index(1),
            refused,
            fragment,
            payload,
        };
        let mut sent = SentDatagrams(Vec::new());
        self.engine.answer(&answer, &mut sent);
        sent.0.pop().unwrap()
    }

    fn deliver(&mut self, from: SocketAddr, datagram: &[u8]) {
        self.requests.receive(self.now, from, datagram);
    }

    fn done(&mut self, asked: &HostRequest, payload: &[u8]) {
        let answer = self.answer(asked, None, false, payload);
        self.deliver(asked.to, &answer);
    }

    fn refused(&mut self, asked: &HostRequest, reason: Reason) {
        let answer = self.answer(asked, Some(reason), false, WHY.as_bytes());
        self.deliver(asked.to, &answer);
    }

    /// Lets time pass up to the next thing to do.
    fn wake(&mut self) {
        self.now = self.requests.next_wake().expect("something is pending");
        self.requests.time_passed(self.now);
    }
}

#[test]
fn answers_find_their_commands_and_others_are_dropped() {
    let mut world = World::new(settings());
    let (first, second) = (world.submit(b"first"), world.submit(b"second"));
    let asked = world.asked();
    assert_eq!(asked.len(), 2);
    assert_eq!((asked[0].sequence, asked[1].sequence), (1, 2));
    assert!(asked[0].session == asked[1].session && asked[0].session != 0);
    world.done(&asked[1], b"two");
    world.done(&asked[1], b"again");
    let other = HostRequest {
        session: asked[0].session ^ 1,
        ..asked[0].clone()
    };
    world.done(&other, b"another session's");
    assert_eq!(world.requests.counters.dropped_not_awaited, 2);
    let mut forged = world.answer(&asked[0], None, false, b"forged");
    *forged.last_mut().unwrap() ^= 1;
    world.deliver(asked[0].to, &forged);
    world.deliver(asked[0].to, b"");
    assert_eq!(world.requests.counters.dropped_not_authentic, 2);
    assert_eq!(world.requests.take(first), None);
    assert_eq!(world.requests.take(second), Some(Ok(b"two".to_vec())));
    let again = world.requests.take(second);
    assert_eq!(again, Some(Err(Error::UnknownTicket)));
    world.done(&asked[0], b"one");
    assert_eq!(world.requests.take(first), Some(Ok(b"one".to_vec())));
}

#[test]
fn what_is_not_answered_is_asked_again_under_its_number_and_elsewhere_after_a_while() {
    let mut world = World::new(settings());
    let ticket = world.submit(b"x");
    let first = world.asked().remove(0);
    let mut places = vec![first.to];
    let mut waited = vec![];
    while world.requests.pending_count() > 0 {
        let before = world.now;
        world.wake();
        waited.push(world.now.saturating_sub(before));
        for again in world.asked() {
            assert_eq!((again.session, again.sequence), (first.session, 1));
            places.push(again.to);
        }
    }
    for number in 0..3 {
        assert!(places.contains(&replica(number)), "{places:?}");
    }
    assert_eq!(places[0], places[1], "not elsewhere at once");
    assert!(waited[0] >= settings().retry && waited[0] <= settings().retry * 3 / 2);
    assert!(
        waited[3] >= settings().retry * 8,
        "longer each time: {waited:?}"
    );
    assert_eq!(world.now, settings().deadline);
    let result = world.requests.take(ticket);
    assert_eq!(result, Some(Err(Error::OutcomeUnknown)));
    assert_eq!(world.requests.next_wake(), None);
    world.done(&first, b"too late");
    assert_eq!(world.requests.counters.dropped_not_awaited, 1);
}

#[test]
fn no_more_than_the_window_is_unanswered() {
    let mut world = World::new(settings());
    let tickets: Vec<Ticket> = (0..WINDOW).map(|_| world.submit(b"x")).collect();
    let full = |world: &mut World| {
        let result = world.requests.submit(world.now, b"x", false);
        result == Err(Error::WindowFull)
    };
    assert!(full(&mut world));
    let asked = world.asked();
    // The oldest counts: replicas remember only what is near the newest.
    for later in &asked[1..] {
        world.done(later, b"");
    }
    assert!(full(&mut world));
    world.done(&asked[0], b"");
    world.submit(b"x");
    assert_eq!(world.asked()[0].sequence, WINDOW + 1);
    for ticket in tickets {
        assert_eq!(world.requests.take(ticket), Some(Ok(Vec::new())));
    }
}

/// A refusal is of one packet. What was sent before it may be in the log, and be carried out yet.
#[test]
fn a_full_disk_refuses_no_command_that_was_sent_before() {
    let mut world = World::new(settings());
    let ticket = world.submit(b"x");
    let first = world.asked();
    world.wake();
    let again = world.asked();
    world.refused(&again[0], Reason::DiskFull);
    assert_eq!(world.requests.take(ticket), None, "it may be carried out");
    world.done(&first[0], b"done");
    assert_eq!(world.requests.take(ticket), Some(Ok(b"done".to_vec())));
}

#[test]
fn a_refusal_that_may_pass_is_tried_elsewhere_and_others_are_errors() {
    let mut world = World::new(settings());
    let ticket = world.submit(b"x");
    let other = world.submit(b"y");
    let asked = world.asked();
    world.refused(&asked[0], Reason::NotLeader);
    world.refused(&asked[1], Reason::NotLeader);
    assert_eq!(world.requests.counters.replica_changes, 1, "once for both");
    world.wake();
    assert!(world.now < settings().retry, "soon: {:?}", world.now);
    world.now += settings().retry / 2;
    world.requests.time_passed(world.now);
    let again = world.asked();
    assert_eq!(again.len(), 2);
    assert!(again.iter().all(|it| it.to != asked[0].to));
    world.refused(&again[0], Reason::Malformed);
    let error = Error::OutcomeUnknown; // the first try may be in the log
    let first = again[0].payload == b"x";
    let (refused, left) = if first {
        (ticket, other)
    } else {
        (other, ticket)
    };
    assert_eq!(world.requests.take(refused), Some(Err(error)));
    world.refused(&again[1], Reason::AnswerGone);
    let gone = world.requests.take(left);
    assert!(matches!(gone, Some(Err(Error::AnswerGone(_)))));
}

#[test]
fn a_refusal_settles_a_command_only_if_it_was_sent_once() {
    for (reason, is_gone) in [(Reason::Malformed, false), (Reason::UnknownSession, true)] {
        let mut world = World::new(settings());
        let (once, twice) = (world.submit(b"once"), world.submit(b"twice"));
        let asked = world.asked();
        world.refused(&asked[0], reason);
        let refused = world.requests.take(once);
        assert_eq!(refused, Some(Err(Error::Refused(WHY.to_owned()))));
        world.wake();
        let again = world.asked().remove(0);
        assert_eq!(again.sequence, asked[1].sequence);
        world.refused(&again, reason);
        let refused = world.requests.take(twice);
        assert_eq!(refused, Some(Err(Error::OutcomeUnknown)), "{reason:?}");
        assert_eq!(world.requests.counters.outcomes_unknown, 1);
        let next = world.submit(b"next");
        let after = world.asked().remove(0);
        assert_eq!(after.sequence == 1, is_gone, "{reason:?}");
        world.refused(&after, Reason::SequenceTooOld);
        let refused = world.requests.take(next);
        assert_eq!(refused, Some(Err(Error::OutcomeUnknown)));
    }
}

/// One piece that was sent twice may have completed the command.
#[test]
fn a_refused_piece_settles_its_command_only_if_no_piece_was_sent_again() {
    for again in [false, true] {
        let mut world = World::new(settings());
        let ticket = world.submit(&vec![b'x'; 10_000]);
        let pieces = world.asked();
        if again {
            world.wake();
            assert_eq!(world.asked().len(), pieces.len());
        }
        world.refused(&pieces[3], Reason::Malformed);
        let expected = if again {
            Error::OutcomeUnknown
        } else {
            Error::Refused(WHY.to_owned())
        };
        assert_eq!(world.requests.take(ticket), Some(Err(expected)));
    }
}

#[test]
fn a_session_without_room_is_tried_again_later_under_its_number() {
    let mut world = World::new(settings());
    let ticket = world.submit(b"x");
    let asked = world.asked().remove(0);
    world.refused(&asked, Reason::TooManySessions);
    assert_eq!(world.requests.take(ticket), None);
    assert_eq!(world.requests.counters.replica_changes, 0);
    world.wake();
    assert!(
        world.now >= settings().retry,
        "not at once: {:?}",
        world.now
    );
    let again = world.asked().remove(0);
    assert_eq!((again.to, again.sequence), (asked.to, 1));
    world.done(&again, b"done");
    assert_eq!(world.requests.take(ticket), Some(Ok(b"done".to_vec())));
}

#[test]
fn a_write_is_blind_only_while_the_session_is_known() {
    let mut world = World::new(settings());
    // Until the first is answered, all wait until they are carried out.
    let first = [world.submit_blind(b"a"), world.submit_blind(b"b")];
    let asked = world.asked();
    assert!(asked.iter().all(|it| !it.blind));
    world.done(&asked[1], b"STORED");
    assert_eq!(world.requests.take(first[1]), Some(Ok(Vec::new())));
    assert!(world.goes_blind());
    // Answers to blind writes do not show that it still is.
    for _ in 0..3 {
        world.now += IDLE_MAX / 3;
        assert!(world.goes_blind());
    }
    world.now += MILLISECOND;
    world.requests.time_passed(world.now);
    assert!(!world.goes_blind());
    assert!(world.goes_blind());
    // Nor do refusals, whatever they say.
    let refused = world.submit_blind(b"c");
    let asked = world.asked().remove(0);
    assert!(asked.blind);
    world.refused(&asked, Reason::Malformed);
    assert!(world.requests.take(refused).is_some());
    assert!(!world.goes_blind());
    assert!(world.goes_blind());
    assert_eq!(world.requests.counters.sent_blind, 7);
    // A new session is not known.
    world.now += IDLE_MAX + MILLISECOND;
    assert!(!world.goes_blind());
    assert_eq!(world.requests.counters.sessions, 2);
}

/// What is sent again is sent as things are then; its answer may be that of a blind try.
#[test]
fn a_write_that_was_blind_at_first_shows_nothing_of_its_session() {
    let mut world = World::new(settings());
    assert!(!world.goes_blind());
    world.now = IDLE_MAX;
    world.submit_blind(b"x");
    let first = world.asked().remove(0);
    assert!(first.blind);
    world.wake();
    let again = world.asked().remove(0);
    assert!(!again.blind && again.sequence == first.sequence);
    world.done(&first, b"");
    assert!(!world.goes_blind());
    assert!(world.goes_blind());
}

#[test]
fn a_session_that_is_gone_or_was_silent_is_followed_by_a_new_one() {
    let mut world = World::new(settings());
    world.submit(b"a");
    world.submit(b"b");
    let asked = world.asked();
    world.refused(&asked[0], Reason::UnknownSession);
    let now = world.now;
    let early = world.requests.submit(now, b"c", false);
    assert_eq!(early, Err(Error::WindowFull), "b may still be answered");
    world.done(&asked[1], b"");
    world.submit(b"c");
    let second = world.asked().remove(0);
    assert_eq!(second.sequence, 1);
    assert_ne!(second.session, asked[0].session);
    world.done(&second, b"");
    world.now += IDLE_MAX;
    world.submit(b"d");
    let third = world.asked().remove(0);
    assert_eq!((third.session, third.sequence), (second.session, 2));
    world.done(&third, b"");
    world.now += IDLE_MAX + MILLISECOND;
    world.submit(b"e");
    let fourth = world.asked().remove(0);
    assert_eq!(fourth.sequence, 1);
    assert_ne!(fourth.session, second.session);
    assert_eq!(world.requests.counters.sessions, 3);
}

#[test]
fn a_long_command_goes_in_pieces_until_its_answer_comes() {
    let mut world = World::new(settings());
    let command: Vec<u8> = (0..COMMAND_BYTES_MAX)
        .map(|at| at.to_le_bytes()[1])
        .collect();
    let ticket = world.submit(&command);
    let mut found = std::collections::BTreeMap::new();
    let mut lost = 0;
    let mut count = usize::MAX;
    while found.len() < count {
        let asked = world.asked();
        if asked.is_empty() {
            world.wake();
        }
        for (at, piece) in asked.iter().enumerate() {
            let (number, rest) = piece.payload.split_first_chunk::<4>().unwrap();
            let (total, bytes) = rest.split_first_chunk::<4>().unwrap();
            if at % 5 == 4 {
                lost += 1;
                continue;
            }
            count = u32::from_be_bytes(*total) as usize;
            found.insert(u32::from_be_bytes(*number), bytes.to_vec());
            let kept = world.answer(piece, None, true, number);
            world.deliver(piece.to, &kept);
            if found.len() == count {
                world.done(piece, b"STORED");
            }
        }
    }
    assert!(lost > 10 && count > 700, "{lost} {count}");
    let whole: Vec<u8> = found.into_values().flatten().collect();
    assert!(whole == command);
    assert_eq!(world.requests.take(ticket), Some(Ok(b"STORED".to_vec())));
    assert!(world.requests.counters.sent < 2 * count as u64);
    let longer = vec![0; COMMAND_BYTES_MAX + 1];
    let refused = world.requests.submit(world.now, &longer, false);
    assert_eq!(refused, Err(Error::TooLong(COMMAND_BYTES_MAX + 1)));
}

#[test]
fn keys_are_rotated_while_a_command_waits() {
    let mut world = World::new(settings());
    let ticket = world.submit(b"x");
    let asked = world.asked().remove(0);
    let next = PlaneKeyPair {
        epoch: 2,
        key: [10; 16],
        other: Some([9; 16]),
    };
    world.set_keys(next, LINEAGE);
    world.done(&asked, b"signed with a key that is not known yet");
    assert_eq!(world.requests.counters.dropped_not_authentic, 1);
    world.requests.set_keys(PlaneKeyPair {
        epoch: 1,
        key: [9; 16],
        other: Some([10; 16]),
    });
    world.wake();
    let again = world.asked().remove(0);
    assert_eq!(again.sequence, 1);
    world.done(&again, b"done");
    assert_eq!(world.requests.take(ticket), Some(Ok(b"done".to_vec())));
}

#[test]
fn nothing_is_asked_before_the_cluster_is_known() {
    let mut world = World::new(settings());
    let tickets = [world.submit(b"x"), world.submit(b"y")];
    assert!(world.asked_of_planes().is_empty());
    let answers = world.told();
    assert_eq!(answers.len(), 1, "one question for both");
    let (to, answer) = &answers[0];
    world.deliver(*to, answer);
    let asked = world.asked_of_planes();
    let payloads: Vec<&[u8]> = asked.iter().map(|it| &it.payload[..]).collect();
    assert_eq!(payloads, [b"x", b"y"]);
    for asked in &asked {
        world.refused(asked, Reason::Malformed);
    }
    // They were sent once, so it is known that they were not carried out.
    for ticket in tickets {
        assert_eq!(
            world.requests.take(ticket),
            Some(Err(Error::Refused(WHY.into())))
        );
    }
    assert_eq!(world.requests.counters.sent_again, 0);
    // Whoever recorded the answer can do nothing with it, nor with the question.
    let question = world.requests.counters.lineage_asked;
    world.deliver(*to, answer);
    assert_eq!(world.requests.counters.dropped_not_awaited, 1);
    assert_eq!(world.requests.counters.lineage_asked, question);
}

#[test]
fn replicas_from_before_lineages_are_asked_as_they_always_were() {
    let mut world = World::new(settings());
    world.tells = false;
    world.set_keys(keys(9), Lineage::default());
    let ticket = world.submit(b"x");
    assert!(world.asked().is_empty() && world.requests.has_unsent());
    world.wake();
    let asked = world.asked().remove(0);
    world.done(&asked, b"done");
    assert_eq!(world.requests.take(ticket), Some(Ok(b"done".to_vec())));
    // Only the first command has waited.
    let ticket = world.submit(b"y");
    let second = world.asked().remove(0);
    world.done(&second, b"done");
    assert_eq!(world.requests.take(ticket), Some(Ok(b"done".to_vec())));
    // They run the new version, and the cluster gets its lineage: the session goes on in it.
    world.tells = true;
    world.set_keys(keys(9), LINEAGE);
    let ticket = world.submit(b"z");
    assert!(world.asked_of_planes().is_empty(), "of another key");
    world.wake();
    world.asked();
    world.wake();
    let again = world.asked().remove(0);
    assert_eq!((again.session, again.sequence), (asked.session, 3));
    world.done(&again, b"done too");
    assert_eq!(world.requests.take(ticket), Some(Ok(b"done too".to_vec())));
    assert_eq!(world.requests.counters.lineage_changes, 0);
}

#[test]
fn what_waited_for_the_lineage_is_sent_for_the_first_time_when_it_is_told() {
    let mut world = World::new(settings());
    let ticket = world.submit(b"x");
    let (to, told) = world.told().remove(0);
    // Just before the question would be sent again.
    let next = world.requests.next_wake().unwrap();
    world.now = next.saturating_sub(MILLISECOND);
    world.deliver(to, &told);
    let asked = world.asked_of_planes().remove(0);
    world.now += MILLISECOND * 2;
    world.requests.time_passed(world.now);
    assert!(world.asked_of_planes().is_empty(), "not again at once");
    world.refused(&asked, Reason::Malformed);
    let refused = Some(Err(Error::Refused(WHY.into())));
    assert_eq!(world.requests.take(ticket), refused);
    assert_eq!(world.requests.counters.sent_again, 0);
    // The same answer once more is nobody's forgery.
    world.deliver(to, &told);
    assert_eq!(world.requests.counters.dropped_not_awaited, 1);
    assert_eq!(world.requests.counters.dropped_not_authentic, 0);
}

#[test]
fn a_cluster_that_turns_out_to_have_a_lineage_may_not_know_the_session() {
    let mut world = World::new(settings());
    world.set_keys(keys(9), Lineage::default());
    assert!(!world.goes_blind());
    assert!(world.goes_blind());
    // All folders were emptied, and the next cluster has a lineage.
    world.set_keys(keys(9), LINEAGE);
    let ticket = world.submit_blind(b"x");
    let asked = loop {
        world.wake();
        if let [asked, ..] = &world.asked()[..] {
            break asked.clone();
        }
    };
    assert!(!asked.blind);
    world.refused(&asked, Reason::UnknownSession);
    assert_eq!(
        world.requests.take(ticket),
        Some(Err(Error::OutcomeUnknown))
    );
}

#[test]
fn in_another_life_of_the_cluster_a_new_session_begins_and_nothing_is_sent_again() {
    let mut world = World::new(settings());
    let first = world.submit(b"x");
    let asked = world.asked().remove(0);
    world.done(&asked, b"done");
    assert_eq!(world.requests.take(first), Some(Ok(b"done".to_vec())));
    let ticket = world.submit(b"y");
    world.asked();
    world.set_keys(keys(9), Lineage(0xb));
    while world.requests.pending_count() > 0 {
        world.wake();
        assert!(world.asked().is_empty(), "signed for the earlier life");
        assert!(world.now < settings().deadline);
    }
    assert_eq!(
        world.requests.take(ticket),
        Some(Err(Error::OutcomeUnknown))
    );
    assert_eq!(world.requests.counters.lineage_changes, 1);
    let ticket = world.submit(b"z");
    let next = world.asked().remove(0);
    assert!(next.session != asked.session && next.sequence == 1);
    world.done(&next, b"done");
    assert_eq!(world.requests.take(ticket), Some(Ok(b"done".to_vec())));
}

//! What a client of data planes takes from whoever answers: signed answers in any order, repeated,
//! contradicting, of other commands, and bytes that nobody signed. What it says of each command is so.

use quorumwire_client::planes::{ClientKeys, Error, Requests, Settings, Ticket, WINDOW, lineage};
use quorumwire_fastpath::{Engine, Options, Outbox, PIECE_BYTES_MAX};
use quorumwire_fuzz_tests::{ITERATIONS, Outcomes, Seed, fuzz, grown};
use quorumwire_interfaces::{
    Answer, EntryKind, GroupId, Index, Lineage, PlaneEvent, PlaneKeyPair, PlaneKeys, Reason,
};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

/// Bytes of one event: what it is, of which of all datagrams asked so far, and two more words.
const EVENT_BYTES: usize = 4;
const INPUT_BYTES_MAX: usize = 160;

const SUBMIT: u8 = 0;
const WAKE: u8 = 1;
const TIME: u8 = 2;
const DONE: u8 = 3;
const REFUSED: u8 = 4;
const KEPT: u8 = 5;
const TAMPERED: u8 = 6;
const OTHER: u8 = 7;

/// Lengths of commands: of one packet, of a few pieces, and of more than may be on their way.
const COMMANDS: [usize; 4] = [1, 100, 3 * PIECE_BYTES_MAX, 40 * PIECE_BYTES_MAX + 1];

const REFUSALS: [Reason; 8] = [
    Reason::NotLeader,
    Reason::OutcomeUnknown,
    Reason::NotCommitted,
    Reason::TooManySessions,
    Reason::UnknownSession,
    Reason::SequenceTooOld,
    Reason::AnswerGone,
    Reason::Malformed,
];

fn seeds() -> [Seed; 8] {
    [
        ("answered", vec![SUBMIT, 0, 1, 0, DONE, 0, 0, 3]),
        (
            "answered-twice",
            vec![SUBMIT, 0, 1, 0, DONE, 0, 0, 3, DONE, 0, 0, 4],
        ),
        (
            "asked-again",
            vec![SUBMIT, 0, 1, 0, WAKE, 0, 0, 0, WAKE, 0, 0, 0, DONE, 2, 0, 3],
        ),
        ("refused-at-once", vec![SUBMIT, 0, 1, 0, REFUSED, 0, 7, 0]),
        (
            "refused-after-two-tries",
            vec![SUBMIT, 0, 1, 0, WAKE, 0, 0, 0, REFUSED, 0, 7, 0],
        ),
        (
            "blind-once-the-session-is-known",
            vec![
                SUBMIT, 0, 0, 0, DONE, 0, 0, 1, SUBMIT, 0, 0, 1, DONE, 1, 0, 0,
            ],
        ),
        (
            "session-gone",
            vec![
                SUBMIT, 0, 0, 0, REFUSED, 0, 4, 0, SUBMIT, 0, 0, 0, DONE, 1, 0, 0,
            ],
        ),
        (
            "in-pieces",
            vec![
                SUBMIT, 0, 2, 0, KEPT, 0, 0, 0, KEPT, 1, 0, 0, KEPT, 1, 0, 0, DONE, 2, 0, 1,
            ],
        ),
    ]
}

/// Of the cluster; replicas tell it at once.
const LINEAGE: Lineage = Lineage(7);

fn keys(byte: u8) -> PlaneKeyPair {
    PlaneKeyPair {
        epoch: 1,
        key: [byte; 16],
        other: None,
    }
}

fn replica(number: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 7000 + number))
}

/// A datagram that the client has sent.
#[derive(Clone, Debug)]
struct RequestDatagram {
    to: SocketAddr,
    session: u64,
    sequence: u64,
    /// Which piece of its command; 0 for all of it.
    piece: [u8; 4],
}

/// What became of one command.
#[derive(Debug)]
struct CommandState {
    ticket: Ticket,
    blind: bool,
    /// How often each datagram of it was sent.
    sent: BTreeMap<[u8; 4], u32>,
    answers: Vec<Vec<u8>>,
    was_refused: bool,
}

#[derive(Default)]
struct SentDatagrams(Vec<Vec<u8>>);

impl Outbox for SentDatagrams {
    fn send(&mut self, _to: SocketAddr, datagram: &[u8]) {
        self.0.push(datagram.to_vec());
    }
}

/// A client, and an engine that reads what it asks and signs answers.
struct World {
    requests: Requests,
    engine: Engine,
    now: Duration,
    asked: Vec<RequestDatagram>,
    commands: BTreeMap<(u64, u64), CommandState>,
}

impl World {
    fn new() -> Self {
        let options = Options {
            group: GroupId(0),
            ring_slots: 8,
            window: 8,
        };
        let mut engine = Engine::new(options).expect("good options");
        engine.set_keys(&PlaneKeys {
            cluster: keys(1),
            clients: lineage::keys_of(&keys(9), LINEAGE),
        });
        Self {
            requests: Requests::new(Settings::new((0..3).map(replica).collect(), keys(9)), 7),
            engine,
            now: Duration::ZERO,
            asked: Vec::new(),
            commands: BTreeMap::new(),
        }
    }

    fn happens(&mut self, [what, which, first, second]: [u8; EVENT_BYTES]) {
        let asked = self
            .asked
            .get(usize::from(which) % self.asked.len().max(1))
            .cloned();
        match (what % 8, asked) {
            (SUBMIT, _) => self.submit(
                COMMANDS[usize::from(first) % COMMANDS.len()],
                second % 2 == 1,
            ),
            (WAKE, _) => self.now = self.now.max(self.requests.next_wake().unwrap_or_default()),
            (TIME, _) => self.now += Duration::from_millis(u64::from(first) * u64::from(second)),
            (DONE, Some(asked)) => self.answer(&asked, None, &vec![first; usize::from(second)]),
            (REFUSED, Some(asked)) => {
                let reason = REFUSALS[usize::from(first) % REFUSALS.len()];
                self.answer(&asked, Some(reason), b"no words of ours \xff");
            }
            (KEPT, Some(asked)) => {
                let datagram = self.signed(&asked, None, true, &asked.piece);
                self.requests.receive(self.now, asked.to, &datagram);
            }
            (TAMPERED, Some(asked)) => {
                let mut datagram = self.signed(&asked, None, false, b"forged");
                let at = usize::from(first) % datagram.len();
                datagram[at] ^= second.max(1);
                self.is_dropped(&datagram);
            }
            (OTHER, Some(mut asked)) => {
                asked.session ^= u64::from(first);
                asked.sequence ^= u64::from(second);
                self.answer(&asked, None, b"of another");
            }
            (_, _) => self.is_dropped(&[what, which, first, second]),
        }
        self.requests.time_passed(self.now);
        self.look_at_what_is_asked();
        assert!(self.requests.pending_count() as u64 <= WINDOW);
    }

    fn is_dropped(&mut self, datagram: &[u8]) {
        let before = self.requests.counters;
        self.requests.receive(self.now, replica(0), datagram);
        let mut expected = before;
        expected.dropped_not_authentic += 1;
        assert_eq!(self.requests.counters, expected);
    }

    fn submit(&mut self, bytes: usize, blind: bool) {
        let sessions = self.requests.counters.sessions;
        let Ok(ticket) = self.requests.submit(self.now, &vec![b'c'; bytes], blind) else {
            return;
        };
        assert!(self.requests.counters.sessions <= sessions + 1);
        let submitted = CommandState {
            ticket,
            blind,
            sent: BTreeMap::new(),
            answers: Vec::new(),
            was_refused: false,
        };
        let before = self.asked.len();
        self.look_at_what_is_asked();
        let first = &self.asked[before];
        let name = (first.session, first.sequence);
        let known = self.commands.insert(name, submitted);
        assert!(known.is_none(), "two commands have the same number");
        for asked in &self.asked[before..] {
            assert_eq!((asked.session, asked.sequence), name);
            let sent = &mut self.commands.get_mut(&name).expect("just there").sent;
            *sent.entry(asked.piece).or_default() += 1;
        }
    }

    /// What the client has sent since the last look, and what it sends when it is told which cluster this is.
    fn look_at_what_is_asked(&mut self) {
        while !self.requests.out.is_empty() {
            self.look_once();
        }
    }

    fn look_once(&mut self) {
        for (to, datagram) in std::mem::take(&mut self.requests.out) {
            if let Some(told) = lineage::tell(&keys(9), &datagram, LINEAGE) {
                self.requests.receive(self.now, to, &told);
                continue;
            }
            let mut nothing = SentDatagrams::default();
            let (asked, commands) = (&mut self.asked, &mut self.commands);
            self.engine
                .receive(replica(99), &datagram, &mut nothing, &mut |event| {
                    let PlaneEvent::Request {
                        kind,
                        session,
                        sequence,
                        payload,
                        ..
                    } = event
                    else {
                        return;
                    };
                    let piece = match kind {
                        EntryKind::Fragment => *payload.first_chunk().expect("its number"),
                        EntryKind::Command | EntryKind::Tick | EntryKind::Bundle => [0; 4],
                    };
                    if let Some(command) = commands.get_mut(&(session, sequence)) {
                        *command.sent.entry(piece).or_default() += 1;
                    }
                    asked.push(RequestDatagram {
                        to,
                        session,
                        sequence,
                        piece,
                    });
                });
        }
    }

    fn signed(
        &mut self,
        asked: &RequestDatagram,
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
        let mut sent = SentDatagrams::default();
        self.engine.answer(&answer, &mut sent);
        sent.0.pop().expect("an answer")
    }

    fn answer(&mut self, asked: &RequestDatagram, refused: Option<Reason>, payload: &[u8]) {
        let datagram = self.signed(asked, refused, false, payload);
        if let Some(command) = self.commands.get_mut(&(asked.session, asked.sequence)) {
            command.was_refused |= refused.is_some();
            if refused.is_none() {
                command.answers.push(payload.to_vec());
            }
        }
        self.requests.receive(self.now, asked.to, &datagram);
    }

    /// Each command has one result by its deadline, and nothing is said that nobody answered.
    fn judge(&mut self, outcomes: &Outcomes) {
        self.now += Settings::new(Vec::new(), keys(9)).deadline;
        self.requests.time_passed(self.now);
        assert_eq!(
            (self.requests.pending_count(), self.requests.next_wake()),
            (0, None)
        );
        for command in self.commands.values() {
            let result = self
                .requests
                .take(command.ticket)
                .expect("its deadline is over");
            let again = self.requests.take(command.ticket);
            assert_eq!(again, Some(Err(Error::UnknownTicket)));
            outcomes.count(match result {
                Ok(answer) if command.blind => {
                    assert!(answer.is_empty() && !command.answers.is_empty());
                    "blind"
                }
                Ok(answer) => {
                    assert!(command.answers.contains(&answer));
                    "answered"
                }
                Err(Error::Refused(_)) => {
                    assert!(command.was_refused && command.sent.values().all(|it| *it == 1));
                    "refused"
                }
                Err(Error::AnswerGone(_)) => {
                    assert!(command.was_refused);
                    "answer gone"
                }
                Err(Error::OutcomeUnknown) => "unknown",
                Err(other) => panic!("{other}"),
            });
        }
    }
}

#[test]
fn what_planes_answer() {
    let outcomes = Outcomes::default();
    fuzz!(
        "what_planes_answer",
        seeds(),
        ITERATIONS / 2,
        INPUT_BYTES_MAX,
        |input: &[u8]| {
            let mut world = World::new();
            let (events, _) = input.as_chunks::<EVENT_BYTES>();
            for event in events {
                world.happens(*event);
            }
            world.judge(&outcomes);
        }
    );
    outcomes.must_be(&["answered", "blind", "refused", "answer gone", "unknown"]);
}

/// A key, and what begins a file with it.
const KEY: &str = "5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e";

fn key_seeds() -> [Seed; 7] {
    let one = |epoch: u32| format!("[[key]]\nepoch = {epoch}\nhex = \"{KEY}\"\n");
    [
        ("one", format!("use = 1\n{}", one(1))),
        ("two", format!("use = 1\n{}{}", one(1), one(2))),
        ("three", format!("use = 1\n{}{}{}", one(1), one(2), one(3))),
        ("epoch-without-key", format!("use = 2\n{}", one(1))),
        (
            "short",
            "use = 1\n[[key]]\nepoch = 1\nhex = \"5e5e\"\n".to_owned(),
        ),
        (
            "a-key-for-an-epoch",
            format!("use = 1\n[[key]]\nepoch = \"{KEY}\"\n"),
        ),
        ("a-key-for-a-name", format!("use = 1\n{KEY} = 1\n")),
    ]
    .map(|(name, text)| (name, text.into_bytes()))
}

/// The file with the clients' keys is taken or refused without showing one.
#[test]
fn client_keys() {
    let outcomes = Outcomes::default();
    let [whole, ..] = key_seeds();
    let words: [&[u8]; 9] = [
        &whole.1,
        b"use = 1\n",
        b"[[key]]\n",
        b"epoch = 1\n",
        b"epoch = 4294967295\n",
        b"hex = \"5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e\"\n",
        b"hex = \"5e5e\"\n",
        b"5e5e5e5e",
        b"\"",
    ];
    fuzz!(
        "client_keys",
        key_seeds(),
        ITERATIONS,
        256,
        |input: &[u8]| {
            let text = grown(input, &words);
            match ClientKeys::parse(&String::from_utf8_lossy(&text)) {
                Ok(keys) => {
                    let pair = keys.pair().expect("it was looked at");
                    outcomes.count(if pair.other.is_some() { "two" } else { "one" });
                }
                Err(error) => {
                    let text = error.to_string();
                    assert!(!text.contains("5e5e"), "{text}");
                    outcomes.count("refused");
                }
            }
        }
    );
    outcomes.must_be(&["one", "two", "refused"]);
}

//! Datagrams of memcached's UDP protocol in any order, of anybody, over time that the input lets pass: what
//! is held stays within its limits, what is put together is what was sent, and nothing is held for longer
//! than it may be.
use super::super::frame::{
    AMPLIFICATION_MAX, ANSWER_DATAGRAMS_MAX, DATAGRAM_BYTES, Frame, HEADER_BYTES, answer_bytes_max,
    datagrams,
};
use super::*;
use quorumwire_fuzz_tests::{Outcomes, Seed, fuzz};

const ITERATIONS: usize = 2_500;
const INPUT_BYTES_MAX: usize = 600;

/// Bytes of one event: what it is and whose, then what a datagram's frame says, then its body's length and
/// byte.
const EVENT_BYTES: usize = 8;
/// Lengths of bodies, the longest that UDP carries among them.
const BODIES: [usize; 8] = [0, 1, 2, 13, 100, 1392, 9000, 60_000];
/// What the first byte of an event says; all above is one datagram of a sender.
const TIME: u8 = 0;
const ANSWER: u8 = 1;
const NO_FRAME: u8 = 2;
const FIRST_SENDER: u8 = 3;

fn sender(byte: u8) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 7000 + u16::from(byte)))
}

/// A datagram as an event.
fn piece(from: u8, request: u8, (number, count): (u16, u16), body: u8, fill: u8) -> Vec<u8> {
    let (number, count) = (number.to_be_bytes(), count.to_be_bytes());
    let of = [number[0], number[1], count[0], count[1]];
    [&[FIRST_SENDER + from, request][..], &of, &[body, fill]].concat()
}

/// So many milliseconds, as an event.
fn time(ms: u16) -> Vec<u8> {
    let ms = ms.to_be_bytes();
    vec![TIME, ms[0], ms[1], 0, 0, 0, 0, 0]
}

fn seeds() -> Vec<Seed> {
    let three = |order: [u16; 3]| order.map(|it| piece(0, 1, (it, 3), 5, b'a')).concat();
    let first = piece(0, 1, (0, 2), 3, b'a');
    let last = piece(0, 1, (1, 2), 3, b'b');
    let contradicts = piece(0, 1, (0, 2), 3, b'c');
    let counts_otherwise = piece(0, 1, (1, 3), 3, b'b');
    let many = (0..70).map(|from| piece(from, 1, (0, 2), 1, b'a'));
    let large = (0..72).map(|it| piece(it % 6, it / 18, (u16::from(it), 90), 7, b'a'));
    let too_long = (0..19).map(|it| piece(0, 1, (it, 99), 7, b'a'));
    vec![
        ("in-order", three([0, 1, 2])),
        ("out-of-order", three([2, 0, 1])),
        ("repeated", [&first[..], &first, &last, &last].concat()),
        ("contradicted", [&first[..], &contradicts, &last].concat()),
        (
            "counted-otherwise",
            [&first[..], &counts_otherwise, &last].concat(),
        ),
        ("too-late", [&first[..], &time(1001), &last].concat()),
        ("just-in-time", [&first[..], &time(1000), &last].concat()),
        ("too-many-requests", many.flatten().collect()),
        ("too-many-bytes", large.flatten().collect()),
        ("too-long", too_long.flatten().collect()),
        (
            "too-many-datagrams",
            piece(0, 1, (0, REQUEST_DATAGRAMS_MAX + 1), 1, b'a'),
        ),
        (
            "an-answer",
            [&first[..], &[ANSWER, 0, 1, 20, 0, 200, 0, 0]].concat(),
        ),
        ("no-frame", vec![NO_FRAME, 0, 0, 0, 0, 1, 0, 1]),
    ]
}

/// What a sender sent last under a request's number, of how many, as which of them; and when.
type Sent = BTreeMap<(SocketAddr, u16, u16, u16), (Vec<u8>, Now)>;

/// What was sent, and what is held of it.
struct World<'o> {
    assembly: Assembly,
    sent: Sent,
    now: Now,
    outcomes: &'o Outcomes,
}

impl World<'_> {
    fn happens(&mut self, event: [u8; EVENT_BYTES]) {
        let [what, request, rest @ ..] = event;
        let word = |at: usize| u16::from_be_bytes([rest[at], rest[at + 1]]);
        match what {
            TIME => self.time_passes(u16::from_be_bytes([request, rest[0]])),
            ANSWER => self.answer(
                u16::from(request),
                usize::from(word(0)),
                usize::from(word(2)),
            ),
            NO_FRAME => self.datagram(sender(0), &event[1..]),
            from => {
                let header = [u16::from(request % 16), word(0), word(2), 0];
                let header = header.map(u16::to_be_bytes).concat();
                let body = vec![rest[5]; BODIES[usize::from(rest[4]) % BODIES.len()]];
                self.datagram(sender(from), &[header, body].concat());
            }
        }
        self.check();
    }

    fn time_passes(&mut self, ms: u16) {
        self.now.0 += Duration::from_millis(u64::from(ms));
        self.assembly.time_out(self.now);
        for it in self.assembly.incomplete.values() {
            assert!(it.since.0 + ASSEMBLY_TIMEOUT >= self.now.0, "held too long");
        }
    }

    fn datagram(&mut self, from: SocketAddr, datagram: &[u8]) {
        let Some(frame) = Frame::split(datagram) else {
            return self.outcomes.count("no frame");
        };
        let header = [frame.request, frame.number, frame.count, 0];
        let again = [&header.map(u16::to_be_bytes).concat()[..], frame.body].concat();
        assert_eq!(again, datagram);
        assert!(frame.number < frame.count && !frame.body.is_empty());
        let name = (from, frame.request, frame.count, frame.number);
        self.sent.insert(name, (frame.body.to_vec(), self.now));
        let whole = self.assembly.take(from, &frame, datagram.len(), self.now);
        if let Some(whole) = whole {
            self.is_what_was_sent((from, frame.request, frame.count), &whole);
        }
    }

    /// Of every datagram what came last, none of them too old.
    fn is_what_was_sent(&self, (from, request, count): (SocketAddr, u16, u16), whole: &Whole) {
        let mut body = Vec::new();
        for number in 0..count {
            let (piece, at) = &self.sent[&(from, request, count, number)];
            assert!(
                at.0 + ASSEMBLY_TIMEOUT >= self.now.0,
                "made of what is too old"
            );
            body.extend_from_slice(piece);
        }
        assert!(whole.body == body && body.len() <= REQUEST_BYTES_MAX);
        let frames_bytes = usize::from(count) * HEADER_BYTES;
        assert_eq!(whole.datagram_bytes, body.len() + frames_bytes);
    }

    /// The datagrams of an answer are frames that make it again, and never many more bytes than its request.
    fn answer(&self, request: u16, request_bytes: usize, spare: usize) {
        let most = answer_bytes_max(request_bytes);
        let answer: Vec<u8> = (0..most.saturating_sub(spare))
            .map(|it| it.to_le_bytes()[0])
            .collect();
        let (mut assembly, mut bytes, mut made) = (Assembly::default(), 0, Vec::new());
        for datagram in datagrams(request, &answer) {
            assert!(datagram.len() <= DATAGRAM_BYTES);
            bytes += datagram.len();
            let frame = Frame::split(&datagram).expect("a frame");
            assert_eq!(frame.request, request);
            let whole = assembly.take(sender(0), &frame, datagram.len(), self.now);
            made.extend(whole.map(|it| it.body));
        }
        assert!(bytes <= request_bytes * AMPLIFICATION_MAX);
        assert!(bytes <= ANSWER_DATAGRAMS_MAX * DATAGRAM_BYTES);
        assert_eq!(made.concat(), answer);
        self.outcomes.count("an answer");
    }

    fn check(&self) {
        let all = || self.assembly.incomplete.values();
        let of = |it: &Incomplete| it.bodies.values().map(|body| body.len()).sum::<usize>();
        assert_eq!(self.assembly.bytes, all().map(of).sum::<usize>());
        assert!(self.assembly.bytes <= INCOMPLETE_BYTES_MAX);
        assert!(all().count() <= INCOMPLETE_MAX);
        for it in all() {
            assert_eq!(it.bytes, of(it));
            assert!(it.bytes <= REQUEST_BYTES_MAX);
            assert!(!it.bodies.is_empty() && it.bodies.len() < usize::from(it.count));
            assert!(it.count <= REQUEST_DATAGRAMS_MAX);
        }
    }
}

#[test]
fn any_datagrams_are_put_together_or_dropped_within_limits() {
    let outcomes = Outcomes::default();
    fuzz!(
        "udp_requests",
        seeds(),
        ITERATIONS,
        INPUT_BYTES_MAX,
        |input: &[u8]| {
            let mut world = World {
                assembly: Assembly::default(),
                sent: Sent::default(),
                now: Now(Duration::from_secs(100)),
                outcomes: &outcomes,
            };
            let (events, _) = input.as_chunks::<EVENT_BYTES>();
            for event in events {
                world.happens(*event);
            }
            let counters = world.assembly.counters;
            for (count, outcome) in [
                (counters.whole, "whole"),
                (counters.too_long, "too long"),
                (counters.no_room, "no room"),
                (counters.contradicted, "contradicted"),
                (counters.expired, "expired"),
                (counters.repeated, "repeated"),
            ] {
                if count > 0 {
                    outcomes.count(outcome);
                }
            }
            // Whatever it was, time frees all of it.
            world.time_passes(u16::MAX);
            assert!(world.assembly.incomplete.is_empty() && world.assembly.bytes == 0);
        }
    );
    outcomes.must_be(&[
        "whole",
        "too long",
        "no room",
        "contradicted",
        "expired",
        "repeated",
        "no frame",
        "an answer",
    ]);
}

//! Rule by rule, and against a model that remembers everything.
use super::*;
use quorumwire_interfaces::{Frozen, LogTime};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};

/// Answers each command with how many have run, and with as many bytes more as the command's first byte
/// says. Remembers whether the last one awaited its time, and its number.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct Log(Vec<Vec<u8>>, bool, u64);

impl Application for Log {
    fn apply(&mut self, entry: &Applied<'_>, reply: &mut Vec<u8>) {
        self.0.push(entry.command.to_vec());
        self.1 = entry.awaits_time;
        self.2 = entry.number;
        let more = entry.command.first().copied().unwrap_or(0);
        reply.extend_from_slice(&u32::try_from(self.0.len()).unwrap().to_be_bytes());
        reply.resize(reply.len() + usize::from(more), b'.');
    }
    fn query(&self, _: &[u8], _: &mut Vec<u8>) {}
    fn freeze(&self) -> Box<dyn Frozen> {
        Box::new(FrozenLog(self.0.clone()))
    }
    fn restore(&mut self, reader: &mut dyn Read) -> io::Result<()> {
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes)?;
        self.0 = bytes.split(|byte| *byte == 0xff).map(Vec::from).collect();
        self.0.pop();
        Ok(())
    }
}

struct FrozenLog(Vec<Vec<u8>>);

impl Frozen for FrozenLog {
    fn write(&self, writer: &mut dyn Write) -> io::Result<()> {
        for command in &self.0 {
            writer.write_all(command)?;
            writer.write_all(&[0xff])?;
        }
        Ok(())
    }
}

struct Bench {
    sessions: Sessions<Log>,
    position: LogPosition,
}

impl Bench {
    fn new() -> Self {
        Self {
            sessions: Sessions::new(Log::default()),
            position: LogPosition {
                index: Index(0),
                log_time: LogTime(1000),
            },
        }
    }

    fn next(&mut self) -> LogPosition {
        self.position.index = self.position.index.next();
        self.position
    }

    fn command(&mut self, session: u64, sequence: u64, command: &[u8]) -> (Outcome, Vec<u8>) {
        let payload = [&session.to_be_bytes()[..], &sequence.to_be_bytes(), command].concat();
        let (position, mut reply) = (self.next(), Vec::new());
        let outcome = self.sessions.in_session(position, &payload, &mut reply);
        (outcome, reply)
    }

    fn fragment(
        &mut self,
        (session, sequence): (u64, u64),
        (number, count): (u32, u32),
        bytes: &[u8],
    ) -> (Outcome, Vec<u8>) {
        let payload = [
            &session.to_be_bytes()[..],
            &sequence.to_be_bytes(),
            &number.to_be_bytes(),
            &count.to_be_bytes(),
            bytes,
        ]
        .concat();
        let (position, mut reply) = (self.next(), Vec::new());
        let outcome = self.sessions.fragment(position, &payload, &mut reply);
        (outcome, reply)
    }

    fn tick(&mut self, ms: u64) {
        self.position.log_time.0 += ms;
        self.sessions.advance(self.position.log_time);
    }

    fn ran(&self) -> usize {
        self.sessions.inner().0.len()
    }

    fn snapshot(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.sessions.freeze().write(&mut bytes).unwrap();
        bytes
    }
}

fn refused(refusal: SessionRefusal) -> (Outcome, Vec<u8>) {
    (Outcome::Refused(refusal), Vec::new())
}

#[test]
fn whoever_is_refused_is_told_the_right_reason() {
    for (refusal, reason) in [
        (SessionRefusal::Malformed, Reason::Malformed),
        (SessionRefusal::AnswerGone, Reason::AnswerGone),
        (SessionRefusal::TooOld, Reason::SequenceTooOld),
        (SessionRefusal::UnknownSession, Reason::UnknownSession),
        (SessionRefusal::TooManySessions, Reason::TooManySessions),
    ] {
        assert_eq!(refusal.reason(), reason);
    }
}

#[test]
fn a_command_sent_twice_runs_once_and_is_answered_alike() {
    let mut bench = Bench::new();
    let first = bench.command(7, 1, b"\0a");
    assert_eq!(first, (Outcome::Applied, vec![0, 0, 0, 1]));
    assert_eq!(bench.command(7, 1, b"\0a"), (Outcome::Repeated, first.1));
    assert_eq!(bench.command(8, 1, b"\0a").0, Outcome::Applied);
    assert_eq!(bench.ran(), 2);
}

#[test]
fn without_a_session_a_command_runs_as_often_as_it_comes() {
    let mut bench = Bench::new();
    assert_eq!(bench.command(0, 1, b"\0a").0, Outcome::Applied);
    assert_eq!(bench.command(0, 1, b"\0a").0, Outcome::Applied);
    assert_eq!((bench.ran(), bench.sessions.session_count()), (2, 0));
}

#[test]
fn the_commands_of_a_window_run_in_any_order() {
    let mut bench = Bench::new();
    for sequence in (1..=WINDOW).rev() {
        assert_eq!(bench.command(7, sequence, b"\0a").0, Outcome::Applied);
    }
    for sequence in 1..=WINDOW {
        assert_eq!(bench.command(7, sequence, b"\0a").0, Outcome::Repeated);
    }
    assert_eq!(bench.command(7, WINDOW + 1, b"\0a").0, Outcome::Applied);
    assert_eq!(bench.command(7, 1, b"\0a"), refused(SessionRefusal::TooOld));
    assert_eq!(bench.command(7, 2, b"\0a").0, Outcome::Repeated);
    assert_eq!(bench.command(7, 0, b"\0a"), refused(SessionRefusal::TooOld));
    let far = bench.command(7, u64::MAX, b"\0a");
    assert_eq!(far.0, Outcome::Applied);
    assert_eq!(bench.command(7, 3, b"\0a"), refused(SessionRefusal::TooOld));
}

#[test]
fn a_long_answer_is_not_kept_and_the_command_still_runs_once() {
    let mut bench = Bench::new();
    let longest = u8::try_from(ANSWER_BYTES_MAX - 4).unwrap();
    for (sequence, more, again) in [
        (1, longest, Outcome::Repeated),
        (2, longest + 1, Outcome::Refused(SessionRefusal::AnswerGone)),
    ] {
        assert_eq!(bench.command(7, sequence, &[more]).0, Outcome::Applied);
        assert_eq!(bench.command(7, sequence, &[more]).0, again);
    }
    assert_eq!(bench.ran(), 2);
}

#[test]
fn an_unknown_session_does_not_begin_in_the_middle() {
    let mut bench = Bench::new();
    for sequence in [0, WINDOW + 1, u64::MAX] {
        let expected = refused(SessionRefusal::UnknownSession);
        assert_eq!(bench.command(7, sequence, b"\0a"), expected);
    }
    assert_eq!((bench.ran(), bench.sessions.session_count()), (0, 0));
}

#[test]
fn an_empty_command_opens_its_session_and_runs_nothing() {
    let mut bench = Bench::new();
    assert_eq!(bench.command(7, 1, b""), (Outcome::Applied, vec![]));
    assert_eq!(bench.command(7, 1, b""), (Outcome::Repeated, vec![]));
    assert_eq!((bench.ran(), bench.sessions.session_count()), (0, 1));
    assert_eq!(bench.command(7, WINDOW + 1, b"\0a").0, Outcome::Applied);
    assert_eq!(bench.ran(), 1);
}

/// However late a copy comes: a session that was opened, and whose other commands have higher numbers than
/// can begin one, does not come back.
#[test]
fn a_late_copy_does_not_run_again_in_a_session_that_was_forgotten() {
    let mut bench = Bench::new();
    assert_eq!(bench.command(7, 1, b"").0, Outcome::Applied);
    assert_eq!(bench.command(7, WINDOW + 1, b"\0a").0, Outcome::Applied);
    for session in 8..8 + SESSIONS_MAX as u64 {
        bench.tick(IDLE_MS_MIN);
        assert_eq!(bench.command(session, 1, b"").0, Outcome::Applied);
    }
    let gone = refused(SessionRefusal::UnknownSession);
    assert_eq!(bench.command(7, WINDOW + 1, b"\0a"), gone);
    assert_eq!(bench.ran(), 1);
}

/// The limit of that, as docs/security.md says it: what can begin a session begins it again, and what follows
/// it runs again, too.
#[test]
fn copies_of_a_forgotten_session_from_its_beginning_on_run_again() {
    let mut bench = Bench::new();
    let send_all = |bench: &mut Bench| {
        let recorded = [(1, &b""[..]), (WINDOW + 1, b"\0a"), (WINDOW + 2, b"\0b")];
        recorded.map(|(number, command)| bench.command(7, number, command).0)
    };
    assert_eq!(send_all(&mut bench), [Outcome::Applied; 3]);
    let refused = Outcome::Refused(SessionRefusal::TooOld);
    let again = [refused, Outcome::Repeated, Outcome::Repeated];
    assert_eq!(send_all(&mut bench), again);
    assert_eq!(bench.ran(), 2);
    for session in 8..8 + SESSIONS_MAX as u64 {
        bench.tick(IDLE_MS_MIN);
        assert_eq!(bench.command(session, 1, b"").0, Outcome::Applied);
    }
    assert_eq!(send_all(&mut bench), [Outcome::Applied; 3]);
    assert_eq!(bench.ran(), 4);
}

#[test]
fn only_an_idle_session_gives_way() {
    let mut bench = Bench::new();
    for session in 1..=SESSIONS_MAX as u64 {
        assert_eq!(bench.command(session, 1, b"\0a").0, Outcome::Applied);
    }
    bench.tick(0);
    let newcomer = SESSIONS_MAX as u64 + 1;
    bench.tick(IDLE_MS_MIN - 1);
    let full = refused(SessionRefusal::TooManySessions);
    assert_eq!(bench.command(newcomer, 1, b"\0a"), full);
    assert_eq!(bench.command(1, 2, b"\0a").0, Outcome::Applied); // no longer the oldest
    bench.tick(1);
    assert_eq!(bench.command(newcomer, 1, b"\0a").0, Outcome::Applied);
    assert_eq!(bench.sessions.session_count(), SESSIONS_MAX);
    assert_eq!(bench.command(1, 1, b"\0a").0, Outcome::Repeated);
    let gone = refused(SessionRefusal::UnknownSession);
    assert_eq!(bench.command(2, WINDOW + 1, b"\0a"), gone);
}

/// The log's time stands still while nothing is written, and then moves by all of that at once.
#[test]
fn a_session_is_idle_from_the_tick_after_its_last_command_on() {
    let mut bench = Bench::new();
    assert!(!bench.sessions.awaits_time());
    for session in 1..=SESSIONS_MAX as u64 {
        assert_eq!(bench.command(session, 1, b"\0a").0, Outcome::Applied);
        assert!(bench.sessions.awaits_time());
        if session == SESSIONS_MAX as u64 / 2 {
            bench.tick(1);
            assert!(!bench.sessions.awaits_time());
        }
    }
    let bytes = bench.snapshot();
    bench.sessions.restore(&mut &bytes[..]).unwrap();
    assert_eq!(bench.snapshot(), bytes);
    assert!(bench.sessions.awaits_time());
    // A quiet hour: half of them were silent for it, and the others may have spoken at its end.
    let newcomer = SESSIONS_MAX as u64 + 1;
    assert_eq!(
        bench.command(newcomer, 1, b"\0a"),
        refused(SessionRefusal::TooManySessions)
    );
    bench.tick(60 * IDLE_MS_MIN);
    for more in 0..SESSIONS_MAX as u64 / 2 {
        let outcome = bench.command(newcomer + more, 1, b"\0a").0;
        assert_eq!(outcome, Outcome::Applied);
    }
    bench.tick(IDLE_MS_MIN - 1);
    let last = newcomer + SESSIONS_MAX as u64;
    let full = refused(SessionRefusal::TooManySessions);
    assert_eq!(bench.command(last, 1, b"\0a"), full);
    assert!(
        bench.sessions.awaits_time(),
        "a tick may show an idle session"
    );
    bench.tick(1);
    assert!(!bench.sessions.awaits_time());
    assert_eq!(bench.command(last, 1, b"\0a").0, Outcome::Applied);
}

#[test]
fn only_commands_of_sessions_await_their_time() {
    let mut bench = Bench::new();
    let check = |answer: (Outcome, Vec<u8>), expected: bool, bench: &mut Bench| {
        assert_eq!(answer.0, Outcome::Applied);
        assert_eq!(bench.sessions.inner().1, expected);
    };
    let answer = bench.command(7, 1, b"\0a");
    check(answer, true, &mut bench);
    let answer = bench.command(0, 1, b"\0a");
    check(answer, false, &mut bench);
    let answer = bench.fragment((7, 2), (0, 1), b"\0a");
    check(answer, true, &mut bench);
    let answer = bench.fragment((0, 2), (0, 1), b"\0a");
    check(answer, false, &mut bench);
}

#[test]
fn fragments_in_any_order_make_one_command() {
    let mut bench = Bench::new();
    for (number, bytes) in [(2, b"c"), (0, b"\0"), (2, b"c")] {
        let answer = bench.fragment((7, 1), (number, 3), bytes);
        assert_eq!(answer, (Outcome::Incomplete, vec![]));
    }
    let last = bench.fragment((7, 1), (1, 3), b"b");
    assert_eq!(last, (Outcome::Applied, vec![0, 0, 0, 1]));
    assert_eq!(bench.sessions.inner().0, [b"\0bc".to_vec()]);
    assert_eq!(bench.sessions.fragments_bytes(), 0);
    // Repeated fragments are not gathered again; the last one is answered.
    assert_eq!(bench.fragment((7, 1), (0, 3), b"\0").0, Outcome::Incomplete);
    assert_eq!(
        bench.fragment((7, 1), (2, 3), b"c"),
        (Outcome::Repeated, last.1)
    );
    assert_eq!((bench.ran(), bench.sessions.fragments_bytes()), (1, 0));
}

#[test]
fn fragments_of_two_commands_do_not_mix() {
    let mut bench = Bench::new();
    for (name, bytes) in [((7, 1), b"\0"), ((7, 2), b"\0"), ((0, 1), b"\0")] {
        assert_eq!(bench.fragment(name, (0, 2), bytes).0, Outcome::Incomplete);
    }
    assert_eq!(bench.fragment((7, 2), (1, 2), b"x").0, Outcome::Applied);
    assert_eq!(bench.fragment((0, 1), (1, 2), b"y").0, Outcome::Applied);
    assert_eq!(bench.fragment((7, 1), (1, 2), b"z").0, Outcome::Applied);
    let commands = [b"\0x".to_vec(), b"\0y".to_vec(), b"\0z".to_vec()];
    assert_eq!(bench.sessions.inner().0, commands);
}

#[test]
fn impossible_fragments_are_refused_and_another_count_begins_anew() {
    let mut bench = Bench::new();
    for position in [
        (0, 0),
        (2, 2),
        (0, FRAGMENTS_PER_COMMAND_MAX + 1),
        (u32::MAX, u32::MAX),
    ] {
        assert_eq!(
            bench.fragment((7, 1), position, b"a"),
            refused(SessionRefusal::Malformed)
        );
    }
    let (position, mut reply) = (bench.next(), Vec::new());
    let short = bench
        .sessions
        .fragment(position, &[0; FRAGMENT_HEADER_BYTES - 1], &mut reply);
    assert_eq!(short, Outcome::Refused(SessionRefusal::Malformed));
    let short = bench
        .sessions
        .in_session(position, &[0; SESSION_HEADER_BYTES - 1], &mut reply);
    assert_eq!(short, Outcome::Refused(SessionRefusal::Malformed));

    assert_eq!(bench.fragment((7, 1), (0, 2), b"a").0, Outcome::Incomplete);
    assert_eq!(bench.fragment((7, 1), (1, 3), b"b").0, Outcome::Incomplete);
    assert_eq!(bench.fragment((7, 1), (2, 3), b"c").0, Outcome::Incomplete);
    assert_eq!(bench.fragment((7, 1), (0, 3), b"\0").0, Outcome::Applied);
    assert_eq!(bench.sessions.inner().0, [b"\0bc".to_vec()]);
}

#[test]
fn unfinished_commands_are_bounded_and_the_oldest_gives_way() {
    let mut bench = Bench::new();
    let large = vec![0; 1 << 20];
    for sequence in 1..=40 {
        assert_eq!(
            bench.fragment((0, sequence), (0, 2), &large).0,
            Outcome::Incomplete
        );
        assert!(bench.sessions.fragments_bytes() <= FRAGMENTS_BYTES_MAX);
    }
    // As many of the newest as there is room for are whole with their other half.
    let kept = FRAGMENTS_BYTES_MAX / (large.len() + 2 * fragments::OVERHEAD_BYTES);
    let oldest_kept = 41 - u64::try_from(kept).unwrap();
    for (sequence, outcome) in [
        (1, Outcome::Incomplete),
        (oldest_kept - 1, Outcome::Incomplete),
        (oldest_kept, Outcome::Applied),
        (40, Outcome::Applied),
    ] {
        let found = bench.fragment((0, sequence), (1, 2), b"").0;
        assert_eq!(found, outcome, "{sequence}");
    }
    for sequence in 0..600_000_u64 {
        bench.fragment((0, 1000 + sequence), (0, 2), b"");
    }
    assert!(bench.sessions.fragments_bytes() <= FRAGMENTS_BYTES_MAX);
    assert_eq!(
        bench.fragment((0, 39), (1, 2), b"").0,
        Outcome::Incomplete,
        "gone long ago"
    );
}

#[test]
fn a_snapshot_has_it_all_and_damage_is_noticed() {
    let mut bench = Bench::new();
    bench.command(7, 1, b"\0a");
    bench.command(7, 3, b"\xf0");
    bench.tick(5);
    bench.command(9, 2, b"\0b");
    bench.fragment((7, 2), (1, 2), b"z");
    bench.fragment((0, 5), (0, 3), b"");
    let bytes = bench.snapshot();
    let mut other = Bench::new();
    other.sessions.restore(&mut &bytes[..]).unwrap();
    other.position = bench.position;
    assert_eq!(other.snapshot(), bytes);
    for bench in [&mut bench, &mut other] {
        assert_eq!(bench.command(7, 1, b"\0a").0, Outcome::Repeated);
        assert_eq!(
            bench.command(7, 3, b"\xf0"),
            refused(SessionRefusal::AnswerGone)
        );
        assert_eq!(bench.fragment((7, 2), (0, 2), b"\0").0, Outcome::Applied);
    }
    let tables = bytes.len() - 8;
    for end in 0..tables {
        let result = Bench::new().sessions.restore(&mut &bytes[..end]);
        assert!(result.is_err(), "cut at {end}");
    }
    // The version, the count, a session used after one whose time is not known yet, commands.
    for (at, flip) in [(0, 4), (9, 0x80), (21, 1), (37, 0xff)] {
        let mut damaged = bytes.clone();
        damaged[at] ^= flip;
        let result = Bench::new().sessions.restore(&mut &damaged[..]);
        assert!(result.is_err(), "byte {at}");
    }
}

/// They could never be whole, or would have been.
#[test]
fn a_snapshot_has_no_impossible_fragments() {
    const COUNT: usize = 41;
    const NUMBER: usize = 49;
    let mut bench = Bench::new();
    bench.fragment((0, 5), (0, 2), b"x");
    let bytes = bench.snapshot();
    let is_taken = |at: usize, number: u32| {
        let mut changed = bytes.clone();
        changed[at..at + 4].copy_from_slice(&number.to_be_bytes());
        Bench::new().sessions.restore(&mut &changed[..]).is_ok()
    };
    let most = FRAGMENTS_PER_COMMAND_MAX;
    let of_counts = [0, 1, 2, most, most + 1].map(|count| is_taken(COUNT, count));
    assert_eq!(of_counts, [false, false, true, true, false]);
    let of_numbers = [0, 1, 2, 3].map(|number| is_taken(NUMBER, number));
    assert_eq!(of_numbers, [true, true, false, false]);
}

/// Applies the next command of each of these sessions (0: a command of none) at one entry, and says their
/// numbers.
fn at_one_entry(bench: &mut Bench, index: u64, names: &[(u64, u64)]) -> Vec<u64> {
    bench.position.index = Index(index);
    let numbers = names.iter().map(|(session, sequence)| {
        let payload = [&session.to_be_bytes()[..], &sequence.to_be_bytes(), b"\0"].concat();
        let mut reply = Vec::new();
        let position = bench.position;
        if *session == 0 {
            bench.sessions.command(position, b"\0", &mut reply);
        } else {
            let outcome = bench.sessions.in_session(position, &payload, &mut reply);
            assert_eq!(outcome, Outcome::Applied);
        }
        bench.sessions.inner().2
    });
    numbers.collect()
}

#[test]
fn each_command_has_a_number_of_its_own_however_many_stand_in_an_entry() {
    let mut bench = Bench::new();
    assert_eq!(at_one_entry(&mut bench, 5, &[(0, 0)]), [5]);
    let names = [(7, 1), (0, 0), (8, 1), (7, 2)];
    assert_eq!(at_one_entry(&mut bench, 6, &names), [6, 7, 8, 9]);
    assert_eq!(at_one_entry(&mut bench, 7, &[(0, 0), (9, 1)]), [10, 11]);
    // Who takes a snapshot here goes on as everybody else does.
    let bytes = bench.snapshot();
    let mut other = Bench::new();
    other.sessions.restore(&mut &bytes[..]).unwrap();
    for bench in [&mut bench, &mut other] {
        assert_eq!(at_one_entry(bench, 8, &[(0, 0), (7, 3)]), [12, 13]);
        assert_eq!(at_one_entry(bench, 20, &[(8, 2)]), [20]);
        for (session, sequence) in [(7, 1), (7, 2), (7, 3), (8, 1), (8, 2), (9, 1)] {
            let outcome = bench.command(session, sequence, b"\0").0;
            assert_eq!(outcome, Outcome::Repeated, "{session}, {sequence}");
        }
    }
    assert_eq!(other.snapshot(), bench.snapshot());
}

#[test]
fn a_session_used_by_a_command_to_come_is_damage() {
    let mut bench = Bench::new();
    at_one_entry(&mut bench, 5, &[(7, 1), (7, 2)]);
    let mut bytes = bench.snapshot();
    assert_eq!(bytes[1..9], 6_u64.to_be_bytes());
    bytes[8] = 5;
    assert!(Bench::new().sessions.restore(&mut &bytes[..]).is_err());
}

/// Written before entries held several commands.
#[test]
fn the_snapshot_before_this_version_is_read() {
    let mut bench = Bench::new();
    at_one_entry(&mut bench, 5, &[(7, 1)]);
    let now = bench.snapshot();
    let before = [&[2], &now[9..]].concat();
    let mut other = Bench::new();
    other.sessions.restore(&mut &before[..]).unwrap();
    // Whoever takes one before the next command can read it again.
    assert_eq!(other.snapshot(), now);
    other.sessions.restore(&mut &now[..]).unwrap();
    for bench in [&mut bench, &mut other] {
        assert_eq!(at_one_entry(bench, 6, &[(0, 0)]), [6]);
        assert_eq!(bench.command(7, 1, b"\0").0, Outcome::Repeated);
    }
    assert_eq!(other.snapshot(), bench.snapshot());
    assert!(Bench::new().sessions.restore(&mut &[1][..]).is_err());
    assert!(Bench::new().sessions.restore(&mut &[4][..]).is_err());
}

/// Many clients that send again and out of order, against a model that remembers every command.
#[test]
fn whatever_is_sent_again_runs_once() {
    let mut random = ChaCha8Rng::seed_from_u64(quorumwire_seed::seed());
    let mut bench = Bench::new();
    let mut ran: BTreeMap<(u64, u64), Vec<u8>> = BTreeMap::new();
    let mut highest: BTreeMap<u64, u64> = BTreeMap::new();
    let mut reached = BTreeSet::new();
    for step in 0..20_000_u32 {
        let session = random.random_range(1..5_u64);
        let top = highest.get(&session).copied().unwrap_or(0);
        let sequence = random.random_range(top.saturating_sub(80).max(1)..=top + 3);
        let command = [random.random_range(0..160), 0];
        let before = bench.ran();
        let (outcome, reply) = bench.command(session, sequence, &command);
        let known = ran.get(&(session, sequence));
        let is_old = sequence + WINDOW <= top;
        match (&outcome, known) {
            (Outcome::Applied, None) => assert!(!is_old && bench.ran() == before + 1),
            (Outcome::Repeated, Some(answer)) => assert_eq!(&reply, answer),
            (Outcome::Refused(SessionRefusal::AnswerGone), Some(answer)) => {
                assert!(answer.len() > ANSWER_BYTES_MAX);
            }
            (Outcome::Refused(SessionRefusal::TooOld), _) => assert!(is_old),
            _ => panic!("step {step}: {outcome:?}, known: {known:?}"),
        }
        if outcome == Outcome::Applied {
            ran.insert((session, sequence), reply);
            highest.insert(session, top.max(sequence));
        } else {
            assert_eq!(bench.ran(), before);
        }
        reached.insert(format!("{outcome:?}"));
        if random.random_range(0..500) == 0 {
            let bytes = bench.snapshot();
            bench.sessions = Sessions::new(Log::default());
            bench.sessions.restore(&mut &bytes[..]).unwrap();
        }
    }
    assert_eq!(
        reached.len(),
        4,
        "an outcome was never reached: {reached:?}"
    );
}

/// Takes nothing of clients.
#[derive(Default)]
struct Closed(Log);

impl Application for Closed {
    fn apply(&mut self, entry: &Applied<'_>, reply: &mut Vec<u8>) {
        self.0.apply(entry, reply);
    }
    fn query(&self, _: &[u8], _: &mut Vec<u8>) {}
    fn takes_clients(&self) -> bool {
        false
    }
    fn freeze(&self) -> Box<dyn Frozen> {
        self.0.freeze()
    }
    fn restore(&mut self, reader: &mut dyn Read) -> io::Result<()> {
        self.0.restore(reader)
    }
}

#[test]
fn what_takes_nothing_of_clients_runs_no_command_of_a_session() {
    let mut closed = Sessions::new(Closed::default());
    let position = LogPosition {
        index: Index(1),
        log_time: LogTime(1000),
    };
    let mut reply = Vec::new();
    let payload = [&1_u64.to_be_bytes()[..], &1_u64.to_be_bytes(), b"x"].concat();
    let refused = Outcome::Refused(SessionRefusal::Malformed);
    assert_eq!(closed.in_session(position, &payload, &mut reply), refused);
    let piece = [&payload[..16], &[0; 4], &[0, 0, 0, 1], b"x"].concat();
    assert_eq!(closed.fragment(position, &piece, &mut reply), refused);
    assert!(closed.inner().0.0.is_empty() && reply.is_empty());
    closed.command(position, b"x", &mut reply);
    assert_eq!(closed.inner().0.0.len(), 1, "its own");
}

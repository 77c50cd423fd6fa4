//! What the log does to a program's clients, with a program that writes down what it is given.
use super::*;
use crate::outputs::VOTES_MAX;
use quorumwire_interfaces::{Application as _, Applied, LogTime};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

pub struct Written {
    lines: Vec<String>,
    /// The command of the log behind each turn.
    commands: Vec<u64>,
    is_full: bool,
    checker: Checker,
}

impl Default for Written {
    fn default() -> Self {
        Self {
            lines: Vec::new(),
            commands: Vec::new(),
            is_full: false,
            checker: Checker::new(true, Unchecked::new(&[])),
        }
    }
}

/// What it has saved: its lines.
#[derive(Clone, Debug)]
pub struct Lines(pub String);

impl Saved for Lines {
    fn write(&self, writer: &mut dyn io::Write) -> io::Result<()> {
        writer.write_all(self.0.as_bytes())
    }
    fn read(folder: &Path, reader: &mut dyn io::Read) -> io::Result<Self> {
        assert_eq!(folder, Path::new("here"));
        let mut lines = String::new();
        reader.read_to_string(&mut lines)?;
        Ok(Self(lines))
    }
}

impl Program for Written {
    type Saved = Lines;

    fn has_room(&self) -> bool {
        !self.is_full
    }
    fn begin(&mut self, beginning: &Beginning<'_, Lines>) {
        let Beginning {
            log_time,
            wall_ms,
            key,
            turn,
            saved,
        } = beginning;
        let saved = saved.map_or_else(String::new, |it| format!(" from {}", it.0));
        let key = &key[..2];
        self.lines.push(format!(
            "begin at {} ({wall_ms}) {key:?} behind {turn}{saved}",
            log_time.0
        ));
    }
    fn save(&mut self, signal: u8) {
        self.lines.push(format!("save upon {signal}"));
    }
    fn turn(&mut self, turn: &Turn<'_>) {
        let Turn {
            number,
            command,
            log_time,
            wall_ms,
            events,
        } = turn;
        self.commands.push(*command);
        self.lines
            .push(format!("{number} at {} ({wall_ms}) {events:?}", log_time.0));
    }
    fn checker(&mut self) -> &mut Checker {
        &mut self.checker
    }
    fn deadline(&self) -> Option<LogTime> {
        None
    }
}

pub struct One {
    pub replay: Replay<Written>,
    number: u64,
}

pub const ONE: Gateway = Gateway {
    replica: 0,
    number: 7,
};
pub const TWO: Gateway = Gateway {
    replica: 1,
    number: 8,
};

fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

fn accept(client: u32) -> Event<'static> {
    Event::Accept {
        client,
        peer: address(1000),
        own: address(6379),
    }
}

fn data(client: u32, bytes: &[u8]) -> Event<'_> {
    Event::Data { client, bytes }
}

impl One {
    pub fn new() -> Self {
        let mut replay = Replay::default();
        replay.program = Some(Written::default());
        Self { replay, number: 0 }
    }

    pub fn begun() -> Self {
        let mut one = Self::new();
        assert_eq!(one.apply(&Command::Begin { key: [1; 32] }), Answer::Done);
        one.lines();
        one
    }

    pub fn apply(&mut self, command: &Command<'_>) -> Answer {
        self.apply_bytes(&command.encode())
    }

    fn apply_bytes(&mut self, command: &[u8]) -> Answer {
        self.number += 1;
        let mut reply = Vec::new();
        let entry = Applied {
            number: self.number,
            log_time: self.replay.log_time(),
            awaits_time: false,
            command,
        };
        self.replay.apply(&entry, &mut reply);
        Answer::decode(&reply).expect("an answer")
    }

    pub fn batch(&mut self, gateway: Gateway, number: u64, events: &[Event<'_>]) -> Answer {
        self.apply(&Command::Batch {
            gateway,
            number,
            events: events.to_vec(),
        })
    }

    /// How many turns the program was given since this was asked last, and what the last one was.
    fn lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.replay.program.as_mut().expect("it has one").lines)
    }
}

#[test]
fn a_program_begins_once_and_not_before_the_log_says_so() {
    let mut one = One::new();
    assert_eq!(one.batch(ONE, 1, &[accept(0)]), Answer::NotBegun);
    one.replay.advance(LogTime(5));
    assert!(one.lines().is_empty(), "it has not begun");
    one.replay.set_ahead(Some(1000));
    assert_eq!(one.apply(&Command::Begin { key: [1; 32] }), Answer::Done);
    assert_eq!(one.apply(&Command::Begin { key: [2; 32] }), Answer::Done);
    assert_eq!(one.lines(), ["begin at 5 (1005) [1, 1] behind 0"]);
    one.replay.advance(LogTime(6));
    assert_eq!(one.lines(), ["1 at 6 (1006) []"]);
    one.batch(ONE, 1, &[accept(0)]);
    let program = one.replay.program.as_ref().expect("it has one");
    assert_eq!(program.commands, [3, 4]);
}

#[test]
fn a_batch_is_carried_out_once_and_in_order() {
    batches_are_carried_out_once_and_in_order();
}

fn batches_are_carried_out_once_and_in_order() {
    let mut one = One::begun();
    assert_eq!(one.batch(ONE, 2, &[]), Answer::Ended, "who has not begun");
    assert_eq!(one.batch(ONE, 1, &[accept(3), data(3, b"x")]), Answer::Done);
    assert_eq!(one.lines().len(), 1);
    assert_eq!(one.batch(ONE, 1, &[accept(3), data(3, b"x")]), Answer::Done);
    assert_eq!(one.batch(ONE, 3, &[data(3, b"z")]), Answer::Expected(2));
    assert!(one.lines().is_empty(), "neither is carried out");
    assert_eq!(one.batch(ONE, 2, &[data(3, b"y")]), Answer::Done);
    assert_eq!(one.batch(ONE, 3, &[data(3, b"z")]), Answer::Done);
    assert_eq!(one.lines().len(), 2);
}

#[test]
fn a_connection_has_the_number_of_its_accept() {
    let mut one = One::begun();
    one.batch(ONE, 1, &[accept(3), accept(4)]);
    one.batch(TWO, 1, &[accept(3), data(3, b"two")]);
    let lines = one.lines();
    let (first, second) = ((1 << 16) | 1, 2 << 16);
    assert!(
        lines[0].contains(&format!("connection: {first}")),
        "{lines:?}"
    );
    let data = format!("Data {{ connection: {second}");
    assert!(lines[1].contains(&data), "{lines:?}");
    let client = ClientOf {
        gateway: TWO,
        client: 3,
    };
    assert_eq!(one.replay.client(second), Some(client));
}

#[test]
fn what_is_said_of_a_client_that_is_gone_means_nothing() {
    let mut one = One::begun();
    one.batch(
        ONE,
        1,
        &[accept(3), Event::Reset { client: 3 }, data(3, b"x")],
    );
    let lines = one.lines();
    assert!(!lines[0].contains("Data"), "{lines:?}");
    assert_eq!(one.replay.client(1 << 16), None);
}

#[test]
fn with_a_gateway_its_clients_end_and_others_stay() {
    let mut one = One::begun();
    one.batch(ONE, 1, &[accept(3)]);
    one.batch(TWO, 1, &[accept(3)]);
    one.lines();
    let stranger = Gateway { number: 9, ..ONE };
    assert_eq!(one.apply(&Command::GatewayEnds(stranger)), Answer::Done);
    assert!(one.lines().is_empty(), "another one has begun since");
    assert_eq!(one.apply(&Command::GatewayEnds(ONE)), Answer::Done);
    let reset = format!("[Reset {{ connection: {} }}]", 1 << 16);
    assert!(one.lines()[0].ends_with(&reset));
    assert_eq!(one.batch(ONE, 2, &[data(3, b"x")]), Answer::Ended);
    assert!(one.replay.client(2 << 16).is_some());
    // The replica has started anew.
    let again = Gateway { number: 10, ..TWO };
    assert_eq!(one.batch(again, 1, &[accept(3)]), Answer::Done);
    let lines = one.lines();
    assert!(
        lines[0].contains(&format!("[Reset {{ connection: {} }}, Accept", 2 << 16)),
        "{lines:?}"
    );
    assert_eq!(one.batch(TWO, 2, &[]), Answer::Ended);
    assert_eq!(one.replay.gateways().collect::<Vec<_>>(), [again]);
}

/// Its answer is lost, and its gateway is ended before it comes again: by the leader, or by its replica's
/// next one.
fn a_first_batch_that_comes_again_behind_its_gateways_end_is_not_carried_out() {
    let mut one = One::begun();
    assert_eq!(one.batch(ONE, 1, &[accept(3), data(3, b"x")]), Answer::Done);
    one.apply(&Command::GatewayEnds(ONE));
    one.lines();
    assert!(one.replay.has_ended(ONE) && !one.replay.has_ended(TWO));
    assert_eq!(
        one.batch(ONE, 1, &[accept(3), data(3, b"x")]),
        Answer::Ended
    );
    assert!(one.lines().is_empty(), "it is not carried out again");
    let next = |number| Gateway { number, ..ONE };
    for number in 10..12 {
        assert_eq!(one.batch(next(number), 1, &[]), Answer::Done);
    }
    assert_eq!(one.batch(next(10), 1, &[]), Answer::Ended);
    assert_eq!(one.replay.gateway(0), Some(next(11)), "the next one stays");
}

#[test]
fn nothing_of_an_ended_gateway_is_carried_out() {
    a_first_batch_that_comes_again_behind_its_gateways_end_is_not_carried_out();
    // Nor the first batch of one that never began before the next of its replica did.
    let mut one = One::begun();
    let [late, next] = [9, 10].map(|number| Gateway { number, ..ONE });
    assert_eq!(one.batch(next, 1, &[accept(3)]), Answer::Done);
    assert_eq!(one.batch(late, 1, &[accept(3)]), Answer::Ended);
    assert!(one.replay.has_ended(late) && !one.replay.has_ended(next));
    assert_eq!(one.replay.newest_of(ONE.replica), next.number);
}

#[test]
fn gateways_of_a_replica_come_one_behind_the_other() {
    let day = 1_700_000_000_000;
    let one = Gateway::next(1, 0, day, u64::MAX);
    for (wall_ms, chance) in [(day, 0), (day + 1, 0), (day - 5, 7), (u64::MAX, 7)] {
        let next = Gateway::next(1, one.number, wall_ms, chance);
        assert!(next.number > one.number, "{wall_ms} {chance}");
    }
    let others = [0, u64::MAX].map(|chance| Gateway::next(1, 0, day, chance));
    assert_ne!(others[0], others[1], "chance tells them apart");
}

/// A program that wakes by the clock fills the log also while nobody speaks with it.
#[test]
fn entries_that_only_say_what_time_it_is_count_towards_the_next_cut() {
    let mut one = One::begun();
    let before = one.replay.bytes_since_cut();
    for ms in 1..=100 {
        one.replay.advance(LogTime(ms));
    }
    let grown = one.replay.bytes_since_cut() - before;
    assert!(grown >= 100 * 32, "{grown}");
}

#[test]
fn at_a_cut_all_clients_go_and_the_program_begins_from_what_it_saved() {
    let mut one = One::begun();
    one.replay.set_ahead(Some(1000));
    one.batch(ONE, 1, &[accept(3)]);
    one.batch(TWO, 1, &[]);
    assert!(one.replay.bytes_since_cut() > 0);
    one.lines();
    let cut = |behind| Command::Cut { behind, signal: 15 };
    assert_eq!(one.apply(&cut(1)), Answer::Done);
    assert!(one.lines().is_empty(), "there was none at turn 1");
    assert_eq!(one.apply(&cut(0)), Answer::Done);
    let reset = format!("3 at 0 (1000) [Reset {{ connection: {} }}]", 1 << 16);
    assert_eq!(one.lines(), [reset, "save upon 15".into()]);
    assert_eq!((one.replay.cut(), one.replay.bytes_since_cut()), (3, 0));
    // What stands behind it in one entry.
    assert_eq!(one.batch(ONE, 2, &[]), Answer::NotBegun);
    assert_eq!(one.batch(TWO, 1, &[accept(1)]), Answer::NotBegun);
    assert_eq!(one.apply(&cut(3)), Answer::Done);
    assert!(one.lines().is_empty());
    assert!(one.replay.is_saving() && !one.replay.takes_commands() && !one.replay.may_freeze());
    one.replay.go_on();
    assert!(one.lines().is_empty(), "it has not saved yet");
    one.replay.has_saved(Lines("all".into()));
    assert!(one.replay.may_freeze() && !one.replay.takes_commands());
    let mut snapshot = Vec::new();
    one.replay.freeze().write(&mut snapshot).expect("written");
    one.replay.go_on();
    let begins = "begin at 0 (1000) [2, 1] behind 3 from all";
    assert_eq!(one.lines(), [begins]);
    assert!(one.replay.takes_commands() && !one.replay.may_freeze());

    let mut other = One::new();
    other.replay.keep_files_in(Path::new("here"));
    other.replay.restore(&mut &snapshot[..]).expect("read");
    assert!(!other.replay.takes_commands() && other.lines().is_empty());
    other.replay.go_on();
    assert_eq!(other.lines(), [begins]);
    let next = Gateway { number: 9, ..TWO };
    for it in [&mut one, &mut other] {
        assert!(it.replay.has_ended(ONE) && it.replay.has_ended(TWO));
        assert_eq!(it.batch(TWO, 2, &[]), Answer::Ended);
        assert_eq!(it.batch(TWO, 1, &[]), Answer::Ended, "it was carried out");
        assert_eq!(it.batch(next, 1, &[accept(1)]), Answer::Done);
    }
    assert_eq!(one.lines(), other.lines());
    for end in 0..snapshot.len() - "all".len() {
        assert!(One::new().replay.restore(&mut &snapshot[..end]).is_err());
    }
    snapshot[0] = 9;
    assert!(other.replay.restore(&mut &snapshot[..]).is_err());
}

const REPORTER: Reporter = Reporter {
    replica: 1,
    life: 5,
};

fn said(sum: u64) -> Window {
    Window {
        connection: 1 << 16,
        first_byte: 1536,
        bytes: 7,
        turn: 2,
        sum,
    }
}

fn outputs(reporter: Reporter, sum: u64) -> Command<'static> {
    Command::Outputs {
        reporter,
        members: 3,
        windows: vec![said(sum)],
    }
}

fn verdict() -> Verdict {
    Verdict {
        judgement: Judgement::Outvoted,
        reporter: REPORTER,
        window: said(4),
        others: said(3),
    }
}

#[test]
fn what_programs_say_is_no_turn_of_theirs_and_is_in_the_snapshot() {
    let mut one = One::begun();
    for reporter in [
        REPORTER,
        Reporter {
            replica: 0,
            life: 9,
        },
    ] {
        assert_eq!(one.apply(&outputs(reporter, reporter.life)), Answer::Done);
    }
    assert!(one.lines().is_empty());
    let disputed: Vec<_> = one.replay.outputs().disputed().collect();
    assert_eq!(disputed, [said(0).place()]);
    let cut = Command::Cut {
        behind: 0,
        signal: 15,
    };
    one.apply(&cut);
    one.replay.has_saved(Lines("all".into()));
    let mut snapshot = Vec::new();
    one.replay.freeze().write(&mut snapshot).expect("written");
    let mut other = One::new();
    other.replay.keep_files_in(Path::new("here"));
    other.replay.restore(&mut &snapshot[..]).expect("read");
    assert_eq!(
        other.replay.outputs().encode(),
        one.replay.outputs().encode()
    );
    assert_eq!(other.replay.outputs().last_turn(), 2);
}

/// Of three that all are heard.
fn said_by_its_leader(verdict: Verdict) -> Command<'static> {
    let of = |replica| Voter {
        reporter: Reporter {
            replica,
            ..REPORTER
        },
        is_heard: true,
    };
    Command::Verdict {
        verdict,
        voters: [0, 1, 2].map(of).to_vec(),
    }
}

#[test]
fn one_that_is_outvoted_takes_no_command_and_gives_no_state() {
    let mut one = One::begun();
    one.replay.reporter = Some(REPORTER);
    for (replica, sum) in [(0, 3), (1, 4), (2, 3)] {
        let reporter = Reporter {
            replica,
            ..REPORTER
        };
        one.apply(&outputs(reporter, sum));
    }
    assert!(!one.replay.is_outvoted());
    assert_eq!(one.apply(&said_by_its_leader(verdict())), Answer::Done);
    assert!(one.replay.is_outvoted() && !one.replay.takes_commands());
    // Its next life takes part.
    one.replay.reporter = Some(Reporter {
        life: 6,
        ..REPORTER
    });
    assert!(!one.replay.is_outvoted() && one.replay.takes_commands());
    let cut = Command::Cut {
        behind: 0,
        signal: 15,
    };
    one.apply(&cut);
    one.replay.has_saved(Lines("all".into()));
    assert!(one.replay.may_freeze());
    one.replay.reporter = Some(REPORTER);
    assert!(!one.replay.may_freeze());
}

#[test]
fn a_report_of_too_many_windows_and_a_verdict_of_two_are_no_commands() {
    let many = |count: usize| {
        let mut bytes = outputs(REPORTER, 4).encode();
        let window = bytes.split_off(bytes.len() - 34);
        let place = bytes.len() - 2;
        bytes.truncate(place);
        bytes.extend_from_slice(&u16::try_from(count).expect("small").to_le_bytes());
        bytes.extend(window.repeat(count));
        bytes
    };
    assert!(Command::decode(&many(WINDOWS_MAX)).is_ok());
    assert_eq!(Command::decode(&many(WINDOWS_MAX + 1)), Err(Malformed));
    let long = Window {
        bytes: 1537,
        ..said(4)
    };
    let of_two = Window {
        first_byte: 0,
        ..said(3)
    };
    for wrong in [
        Verdict {
            window: long,
            ..verdict()
        },
        Verdict {
            others: of_two,
            ..verdict()
        },
    ] {
        let bytes = said_by_its_leader(wrong).encode();
        assert_eq!(Command::decode(&bytes), Err(Malformed));
    }
    let Command::Verdict { verdict, voters } = said_by_its_leader(verdict()) else {
        panic!("it is one");
    };
    let of = |count| Command::Verdict {
        verdict,
        voters: vec![voters[0]; count],
    };
    assert!(Command::decode(&of(VOTES_MAX).encode()).is_ok());
    assert_eq!(Command::decode(&of(VOTES_MAX + 1).encode()), Err(Malformed));
}

#[test]
fn a_program_without_room_takes_no_command() {
    let mut one = One::begun();
    assert!(one.replay.takes_commands());
    one.replay.program.as_mut().expect("it has one").is_full = true;
    assert!(!one.replay.takes_commands());
    one.replay.program = None;
    assert!(!one.replay.takes_commands(), "there is none here yet");
}

#[test]
fn commands_are_read_as_they_were_written_and_no_others() {
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let bytes: Vec<u8> = (0..200).map(|_| random.random()).collect();
    let v6 = SocketAddr::from(([0, 1, 2, 3, 4, 5, 6, 7], 9));
    let datagram = Event::Datagram {
        peer: v6,
        own: address(53),
        bytes: &bytes,
    };
    let events = vec![
        accept(1),
        data(1, &bytes),
        Event::End { client: 1 },
        Event::Reset { client: 1 },
        datagram,
    ];
    let batch = Command::Batch {
        gateway: ONE,
        number: 3,
        events,
    };
    let (mut cut, mut spoiled) = (0, 0);
    for command in [
        Command::Begin { key: [3; 32] },
        batch,
        Command::GatewayEnds(TWO),
        Command::Cut {
            behind: 5,
            signal: 15,
        },
        outputs(REPORTER, 4),
        said_by_its_leader(verdict()),
    ] {
        let whole = command.encode();
        assert_eq!(Command::decode(&whole).as_ref(), Ok(&command));
        for end in 0..whole.len() {
            assert_eq!(Command::decode(&whole[..end]), Err(Malformed));
            cut += 1;
        }
        let long = [&whole[..], &[0]].concat();
        assert_eq!(Command::decode(&long), Err(Malformed));
        for _ in 0..2000 {
            let mut other = whole.clone();
            let place = random.random_range(0..other.len());
            other[place] ^= 1 << random.random_range(0..8);
            if let Ok(read) = Command::decode(&other) {
                assert_eq!(read.encode(), other, "there is one form of each");
                spoiled += 1;
            }
            One::begun().apply_bytes(&other);
        }
    }
    assert!(cut > 0 && spoiled > 0);
}

/// Each check is left out once, and its test notices.
#[cfg(feature = "mutants")]
#[test]
fn mutants() {
    use crate::keeper::tests as keeper;
    use crate::outputs::tests as outputs;
    type Test = (&'static str, &'static str, fn());
    let each: &[Test] = &[
        (
            "batch-carried-out-again",
            "a_batch_is_carried_out_once_and_in_order",
            batches_are_carried_out_once_and_in_order,
        ),
        (
            "batch-in-front-of-another",
            "a_batch_is_carried_out_once_and_in_order",
            batches_are_carried_out_once_and_in_order,
        ),
        (
            "ended-gateway-begins-again",
            "nothing_of_an_ended_gateway_is_carried_out",
            a_first_batch_that_comes_again_behind_its_gateways_end_is_not_carried_out,
        ),
        (
            "gateway-before-stays",
            "a_gateway_of_the_process_before_is_ended_by_its_replica",
            keeper::a_gateway_that_is_not_its_own_is_ended_by_its_replica,
        ),
        (
            "heard-in-another-life",
            "nobody_is_outvoted_while_another_voter_has_lost_its_memory",
            keeper::who_is_connected_in_another_life_is_not_counted_on,
        ),
        (
            "outvoted-beyond-a-majority",
            "who_cannot_be_spared_is_not_outvoted",
            outputs::nobody_is_outvoted_without_whom_the_others_cannot_go_on,
        ),
        (
            "silent-clients-stay",
            "clients_that_have_nothing_to_say_learn_that_they_are_gone",
            keeper::who_has_nothing_to_say_learns_that_its_gateway_is_gone,
        ),
        (
            "verdict-not-looked-at-again",
            "a_verdict_counts_if_it_is_still_so_when_it_is_carried_out",
            outputs::two_verdicts_do_not_outvote_two_of_three,
        ),
    ];
    for &(name, test, run) in each {
        run();
        quorumwire_mutants::activate(Some(name));
        let noticed = std::panic::catch_unwind(run).is_err();
        let reached = quorumwire_mutants::reached();
        quorumwire_mutants::activate(None);
        assert!(noticed && reached, "{name} is not noticed by {test}");
        println!("killed {name} by {test}");
    }
}

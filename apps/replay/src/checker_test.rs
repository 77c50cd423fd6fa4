//! Windows: where they end, what is left out of them, and how they are reported.
use super::*;
use quorumwire_interfaces::LogTime;
use std::net::SocketAddr;

const ONE: u64 = 1 << 16;
const TWO: u64 = (1 << 16) + 1;
const START: Duration = Duration::from_secs(100);

fn checker() -> Checker {
    Checker::new(true, Unchecked::new(&["INFO"]))
}

fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

const fn later(milliseconds: u64) -> Duration {
    START.saturating_add(Duration::from_millis(milliseconds))
}

fn accept(connection: u64) -> TurnEvent<'static> {
    let at = address(1);
    TurnEvent::Accept {
        connection,
        peer: at,
        own: at,
    }
}

fn give(checker: &mut Checker, number: u64, events: &[TurnEvent<'_>]) {
    give_at(checker, number, 0, events);
}

fn give_at(checker: &mut Checker, number: u64, log_time_ms: u64, events: &[TurnEvent<'_>]) {
    checker.given(&Turn {
        number,
        command: 0,
        log_time: LogTime(log_time_ms),
        wall_ms: 0,
        events,
    });
}

/// Connection, first byte, bytes and turn of each that has ended.
fn ended(checker: &Checker) -> Vec<(u64, u64, u16, u64)> {
    let ended = checker.ended.iter();
    let ended = ended.map(|it| (it.connection, it.first_byte, it.bytes, it.turn));
    ended.collect()
}

/// One of a program that was asked something in turn 1.
fn begun() -> Checker {
    let mut checker = checker();
    checker.begin(0);
    give(&mut checker, 1, &[accept(ONE), accept(TWO)]);
    checker
}

fn sum(bytes: &[u8]) -> u64 {
    let mut digest = Digest::new();
    digest.write(bytes);
    digest.sum64()
}

#[test]
fn a_window_ends_when_it_is_full_and_with_its_connection() {
    let text: Vec<u8> = (0..=255).cycle().take(4000).collect();
    for piece in [1, 7, 1536, 4000] {
        let mut checker = begun();
        for (turn, piece) in (1..).zip(text.chunks(piece)) {
            checker.said(turn, ONE, piece);
        }
        checker.closed(9999, ONE);
        checker.closed(9999, ONE);
        checker.said(9999, ONE, b"to nobody");
        let places: Vec<_> = checker
            .ended
            .iter()
            .map(|it| (it.first_byte, it.bytes))
            .collect();
        assert_eq!(places, [(0, 1536), (1536, 1536), (3072, 928)], "{piece}");
        let sums = [&text[..1536], &text[1536..3072], &text[3072..]].map(sum);
        assert!(checker.ended.iter().map(|it| it.sum).eq(sums), "{piece}");
        assert_eq!(checker.counters().windows, 3);
    }
    // Exactly full, the next one says that nothing follows; so does that of one to whom nothing was said.
    let mut checker = begun();
    checker.said(2, ONE, &text[..1536]);
    checker.closed(3, ONE);
    checker.closed(4, TWO);
    assert_eq!(
        ended(&checker),
        [(ONE, 0, 1536, 2), (ONE, 1536, 0, 3), (TWO, 0, 0, 4)]
    );
}

#[test]
fn where_a_connection_was_reset_follows_from_the_turn_and_not_from_when_it_was_given() {
    // It is given the reset before it has said all of the turn before; or long after.
    for is_early in [true, false] {
        let mut checker = begun();
        let reset = [TurnEvent::Reset { connection: ONE }];
        if is_early {
            give(&mut checker, 3, &reset);
        }
        checker.said(2, ONE, b"abc");
        if !is_early {
            checker.done(2);
            give(&mut checker, 3, &reset);
        }
        checker.said(3, TWO, b"x");
        checker.said(3, ONE, b"late");
        checker.closed(3, ONE);
        assert_eq!(ended(&checker), [(ONE, 0, 3, 3)], "{is_early}");
        assert_eq!(checker.ended[0].sum, sum(b"abc"));
    }
    // It says nothing more: that it has done the turn is enough, and nothing less.
    let mut checker = begun();
    checker.said(2, ONE, b"abc");
    give(&mut checker, 3, &[TurnEvent::Reset { connection: ONE }]);
    checker.done(2);
    assert!(checker.ended.is_empty());
    checker.done(3);
    assert_eq!(ended(&checker), [(ONE, 0, 3, 3)]);
}

#[test]
fn of_what_says_little_a_window_ends_with_the_logs_time() {
    let mut checker = begun();
    checker.said(1, ONE, b"abc");
    give_at(&mut checker, 2, 9_999, &[]);
    checker.said(2, ONE, b"def");
    give_at(&mut checker, 3, 10_000, &[]);
    give_at(&mut checker, 4, 10_001, &[]);
    checker.said(2, ONE, b"g");
    assert!(checker.ended.is_empty());
    checker.said(3, ONE, b"h");
    checker.said(4, ONE, b"i");
    assert_eq!(
        ended(&checker),
        [(ONE, 0, 7, 3)],
        "of the other nothing was said"
    );
    checker.closed(5, ONE);
    assert_eq!(ended(&checker)[1..], [(ONE, 7, 2, 5)]);
    // A program that begins anew begins a period, too.
    checker.begin(0);
    give_at(&mut checker, 6, 25_000, &[accept(ONE)]);
    checker.said(6, ONE, b"j");
    checker.done(6);
    assert_eq!(checker.ended.len(), 2);
}

#[test]
fn what_is_asked_for_and_differs_is_in_no_window() {
    let mut checker = begun();
    let data = |connection, bytes| TurnEvent::Data { connection, bytes };
    give(
        &mut checker,
        2,
        &[data(ONE, &b"INFO\r\n"[..]), data(TWO, b"GET\r\n")],
    );
    give(&mut checker, 3, &[data(ONE, b"GET\r\n")]);
    checker.said(1, ONE, b"before");
    checker.said(2, ONE, b"used_memory:1");
    checker.said(2, TWO, b"same");
    checker.said(3, ONE, b"behind");
    checker.closed(4, ONE);
    checker.closed(4, TWO);
    assert_eq!(ended(&checker), [(ONE, 0, 12, 4), (TWO, 0, 4, 4)]);
    assert_eq!(checker.ended[0].sum, sum(b"beforebehind"));
    assert_eq!(checker.counters().bytes_left_out, 13);
}

/// What a client sends in a pipeline comes in several pieces, of which a turn may have more than one.
#[test]
fn who_asks_for_something_else_in_the_same_turn_is_not_compared_before_the_next() {
    let mut checker = begun();
    let data = |bytes: &'static str| TurnEvent::Data {
        connection: ONE,
        bytes: bytes.as_bytes(),
    };
    give(&mut checker, 2, &[data("INFO\r\n"), data("GET\r\n")]);
    give(&mut checker, 3, &[data("GET\r\n")]);
    let asks_again = [data("INFO\r\n"), data("GET\r\n"), data("INFO\r\n")];
    give(&mut checker, 4, &asks_again);
    give(&mut checker, 5, &[]);
    checker.said(2, ONE, b"used_memory:1 value");
    checker.said(3, ONE, b"value");
    checker.said(4, ONE, b"used_memory:1 value used_memory:2");
    checker.said(5, ONE, b"the rest of it");
    checker.closed(6, ONE);
    assert_eq!(ended(&checker), [(ONE, 0, 5, 6)]);
    assert_eq!(checker.ended[0].sum, sum(b"value"));
}

#[test]
fn at_a_cut_all_that_was_open_is_compared_and_what_the_saving_says_is_not() {
    let mut checker = begun();
    checker.said(1, ONE, b"abc");
    let resets = [ONE, TWO].map(|connection| TurnEvent::Reset { connection });
    give(&mut checker, 2, &resets);
    checker.saves(2);
    checker.said(1, ONE, b"d");
    checker.said(2, ONE, b"late");
    checker.done(u64::MAX);
    assert_eq!(ended(&checker), [(ONE, 0, 4, 2), (TWO, 0, 0, 2)]);
    checker.begin(0);
    give(&mut checker, 3, &[accept(3 << 16)]);
    checker.said(3, 3 << 16, b"abc");
    checker.closed(3, 3 << 16);
    assert_eq!(checker.ended.len(), 3);
    // One that is killed, as a snapshot came, has compared nothing of what was open.
    give(&mut checker, 4, &[accept(4 << 16)]);
    checker.said(4, 4 << 16, b"abc");
    checker.begin(0);
    checker.done(u64::MAX);
    assert!(
        checker.open.len() == 1 && checker.ended.len() == 3,
        "that of datagrams"
    );
    // What was marked and not done is none of the next one's.
    give(
        &mut checker,
        5,
        &[TurnEvent::Reset {
            connection: 6 << 16,
        }],
    );
    checker.saves(5);
    checker.begin(0);
    give(&mut checker, 6, &[accept(6 << 16)]);
    checker.sent(6, (address(1), address(1)), b"x");
    checker.said(6, 6 << 16, &[0; WINDOW_BYTES]);
    checker.saves(6);
    checker.done(6);
    assert_eq!(ended(&checker)[3], (6 << 16, 0, 1536, 6));
    assert_eq!(checker.ended.len(), 5, "and that of datagrams");
}

#[test]
fn half_a_command_is_none_of_a_later_connection() {
    for begins in [true, false] {
        let mut checker = begun();
        let data = |bytes| TurnEvent::Data {
            connection: ONE,
            bytes,
        };
        give(&mut checker, 2, &[data(&b"IN"[..])]);
        if begins {
            checker.begin(0);
        } else {
            give(&mut checker, 3, &[TurnEvent::Reset { connection: ONE }]);
        }
        give(&mut checker, 4, &[accept(ONE), data(b"FO\r\n")]);
        checker.said(4, ONE, b"abc");
        assert_eq!(checker.counters().bytes_left_out, 0, "{begins}");
    }
}

#[test]
fn datagrams_are_compared_with_where_they_go() {
    let sums = [
        (2, 53, "abc"),
        (2, 53, "abd"),
        (3, 53, "abc"),
        (2, 54, "abc"),
        (2, 53, "abc"),
    ]
    .map(|(to, from, text)| {
        let mut checker = begun();
        checker.sent(1, (address(to), address(from)), text.as_bytes());
        checker.sent(1, (address(1), address(1)), b"");
        checker.saves(2);
        checker.done(2);
        // What it sends while it saves itself is in none.
        checker.sent(2, (address(1), address(1)), &[0; 5000]);
        let [window] = checker.ended.iter().collect::<Vec<_>>()[..] else {
            panic!("one");
        };
        assert_eq!((window.connection, window.first_byte), (DATAGRAMS_PLACE, 0));
        window.sum
    });
    assert!(sums[1..4].iter().all(|it| *it != sums[0]));
    assert_eq!(sums[4], sums[0]);
    // A program that begins anew begins another line, which is not compared with the one before.
    let mut checker = begun();
    checker.begin(7);
    checker.sent(8, (address(1), address(1)), b"x");
    checker.saves(8);
    checker.done(8);
    assert_eq!(checker.ended[0].connection, (7 << 16) | DATAGRAMS_PLACE);
    // Where one ends and the next begins is seen.
    let [one, two] = [&["ab", "c"], &["a", "bc"]].map(|texts| {
        let mut checker = begun();
        for text in texts {
            checker.sent(1, (address(2), address(53)), text.as_bytes());
        }
        checker.saves(1);
        checker.done(1);
        checker.ended[0].sum
    });
    assert_ne!(one, two);
}

#[test]
fn one_that_is_off_keeps_nothing() {
    let mut checker = Checker::new(false, Unchecked::new(&["INFO"]));
    give(&mut checker, 1, &[accept(ONE)]);
    give_at(
        &mut checker,
        2,
        50_000,
        &[TurnEvent::Reset { connection: ONE }],
    );
    checker.saves(3);
    checker.said(1, ONE, &[0; 5000]);
    checker.closed(1, ONE);
    checker.begin(0);
    checker.sent(1, (address(1), address(1)), &[0; 5000]);
    assert!(checker.marks.is_empty() && checker.open.is_empty() && checker.ended.is_empty());
    assert_eq!(checker.next_report(later(1000)), None);
}

/// With so many windows that have ended, one in each turn.
fn with(windows: usize) -> Checker {
    let mut checker = begun();
    for turn in 1..=windows as u64 {
        checker.said(turn, ONE, &[0; WINDOW_BYTES]);
    }
    checker
}

#[test]
fn reports_are_gathered_for_a_while_and_one_is_under_way() {
    let mut checker = with(2);
    assert_eq!(checker.next_report(START).map(|it| it.len()), Some(2));
    checker.said(3, ONE, &[0; WINDOW_BYTES]);
    assert_eq!(checker.next_report(later(1000)), None, "one is under way");
    checker.report_ended(true);
    assert_eq!(checker.next_report(later(199)), None);
    let report = checker.next_report(later(200)).expect("it is time");
    assert_eq!(report.iter().map(|it| it.turn).collect::<Vec<_>>(), [3]);
    // What went astray is reported again.
    checker.report_ended(false);
    assert_eq!(checker.next_report(later(399)), None);
    assert_eq!(checker.next_report(later(400)), Some(report));
    checker.report_ended(true);
    assert_eq!(checker.next_report(later(9000)), None, "there is none");
}

#[test]
fn many_are_reported_at_once_and_not_more_than_a_command_takes() {
    let mut checker = with(2 * WINDOWS_MAX + 1);
    for count in [WINDOWS_MAX, WINDOWS_MAX] {
        assert_eq!(checker.next_report(START).map(|it| it.len()), Some(count));
        checker.report_ended(true);
    }
    assert_eq!(checker.next_report(START), None, "few can wait");
    assert_eq!(checker.next_report(later(200)).map(|it| it.len()), Some(1));
}

#[test]
fn of_too_many_that_wait_the_oldest_go() {
    let mut checker = with(10);
    assert!(checker.next_report(START).is_some());
    for turn in 11..=(WAITING_MAX as u64 + 4) {
        checker.said(turn, ONE, &[0; WINDOW_BYTES]);
    }
    assert_eq!(
        (checker.ended.len(), checker.counters().not_reported),
        (WAITING_MAX, 4)
    );
    // Four of the ten under way went: six are done with them.
    checker.report_ended(true);
    assert_eq!(checker.ended.front().map(|it| it.turn), Some(11));
}

#[test]
fn what_others_have_long_compared_is_not_reported() {
    let mut checker = with(10);
    checker.skip_before(8);
    give(&mut checker, 7, &[TurnEvent::Reset { connection: TWO }]);
    checker.done(7);
    let report = checker.next_report(START).expect("three");
    assert_eq!(
        report.iter().map(|it| it.turn).collect::<Vec<_>>(),
        [8, 9, 10]
    );
}

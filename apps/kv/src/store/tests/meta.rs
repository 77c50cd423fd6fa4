//! Meta commands whose answers or effects memcached cannot be asked for.
use super::*;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

#[test]
fn time_left_is_counted_from_the_callers_clock() {
    let mut log = Log::new();
    log.set("a", 100, "1");
    log.set("b", 0, "1");
    let left = |log: &Log, line: &[u8], later_ms: u64| {
        let read = Read::from_line(line).unwrap();
        let mut reply = Vec::new();
        let now = LogTime(START_MS + later_ms);
        log.store.answer(&read, now, &mut reply);
        String::from_utf8(reply).unwrap()
    };
    for (later_ms, seconds) in [(0, 100), (1, 100), (999, 100), (1000, 99), (99_001, 1)] {
        let answer = left(&log, b"mg a t", later_ms);
        assert_eq!(answer, format!("HD t{seconds}\r\n"), "after {later_ms} ms");
    }
    // It is there until the log says that its time has come.
    assert_eq!(left(&log, b"mg a t", 200_000), "HD t0\r\n");
    assert_eq!(left(&log, b"mg b t", 200_000), "HD t-1\r\n");
    assert!(left(&log, b"me a", 40_000).starts_with("ME a exp=-60 "));
    // A clock behind the log's does not count.
    let read = Read::from_line(b"mg a t").unwrap();
    let mut reply = Vec::new();
    log.store.answer(&read, LogTime(0), &mut reply);
    assert_eq!(reply, b"HD t100\r\n");
    log.pass(100_000);
    assert_eq!(log.ask("mg a t\r\n"), "EN\r\n");
}

#[test]
fn a_read_that_would_win_says_so_and_changes_nothing() {
    let mut log = Log::new();
    log.set("a", 0, "1");
    log.ask("md a I\r\n");
    let before = bytes(&*log.store.freeze());
    let mut reply = Vec::new();
    log.store.query(b"mg a v", &mut reply);
    assert_eq!(reply, reply::MUST_WRITE);
    let Asked::Meta(meta) = Read::from_line(b"mg a v").unwrap().asked() else {
        panic!("it is one");
    };
    reply.clear();
    let now = log.store.log_time();
    log.store.answer_without_win(&meta, now, &mut reply);
    assert_eq!(reply, b"VA 1 Z X\r\n1\r\n");
    assert_eq!(bytes(&*log.store.freeze()), before);
    assert_eq!(log.ask("mg a v\r\n"), "VA 1 X W\r\n1\r\n");
    reply.clear();
    log.store.query(b"mg a v", &mut reply);
    assert_eq!(reply, b"VA 1 Z X\r\n1\r\n");
    assert_eq!(
        log.ask("me a\r\n"),
        "ME a exp=-1 cas=2 stale=yes won=yes size=130\r\n"
    );
}

#[test]
fn what_is_refused_does_nothing() {
    let mut log = Log::new();
    log.set("n", 0, "7");
    let before = bytes(&*log.store.freeze());
    for line in [
        "ma n O12345678901234567890123456789012",
        "mg new N0 O12345678901234567890123456789012",
        "ma n C99",
        "md n C99",
        "md n I C99",
        "ma new",
        "md new I",
    ] {
        match parse(format!("{line}\r\n").as_bytes()) {
            Parsed::Refused { .. } => {}
            _ => {
                log.ask(&format!("{line}\r\n"));
            }
        }
        let after = bytes(&*log.store.freeze());
        assert_eq!(after, before, "{line}");
    }
}

/// Whatever the log carries: an answer, on every replica the same, and no panic.
#[test]
fn damaged_commands_are_carried_out_or_refused_alike() {
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut replicas = [Log::new(), Log::new()];
    let (mut refused, mut carried_out) = (0, 0);
    let requests: [&[u8]; 7] = [
        b"mg a N10 T5 R3 v k O1 t c f s h l q\r\n",
        b"mg YQ== b N10 T5 R3 v k\r\n",
        b"ms a 5 T10 F3 C1 I c k MS\r\nhello\r\n",
        b"ms a 5 MA k b O2\r\nhello\r\n",
        b"ms n 2 c\r\n12\r\n",
        b"ma n N0 J5 D2 MD v t c k\r\n",
        b"md a I T5 C1 k q\r\n",
    ];
    for _ in 0..20_000 {
        let request = requests[random.random_range(0..requests.len())];
        let Parsed::Request {
            request: Request::Write { command, .. },
            ..
        } = parse(request)
        else {
            continue; // one of them is bad, as memcached sees it
        };
        let mut encoded = Vec::new();
        command.encode(&mut encoded);
        for _ in 0..random.random_range(0..3) {
            let place = random.random_range(1..encoded.len());
            match random.random_range(0..3) {
                0 => encoded[place] = random.random(),
                1 => encoded[place] = b' ',
                _ => encoded.truncate(place.max(2)),
            }
        }
        let answers = replicas.each_mut().map(|log| {
            let mut reply = Vec::new();
            log.apply(&encoded, &mut reply);
            reply
        });
        assert_eq!(answers[0], answers[1], "{}", encoded.escape_ascii());
        *if answers[0] == reply::BAD_COMMAND {
            &mut refused
        } else {
            &mut carried_out
        } += 1;
    }
    assert!(
        refused > 1000 && carried_out > 1000,
        "{refused} {carried_out}"
    );
    let states = replicas.map(|log| bytes(&*log.store.freeze()));
    assert_eq!(states[0], states[1]);
}

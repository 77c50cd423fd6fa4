//! Meta commands whose answers or effects memcached cannot be asked for.
use super::*;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

#[test]
fn time_left_is_counted_by_the_logs_clock_as_with_redis() {
    let mut log = Log::new();
    log.set("a", 100, "1");
    log.set("b", 0, "1");
    let mut passed = 0;
    for (later_ms, seconds) in [(0, 100), (1, 100), (999, 100), (1000, 99), (99_001, 1)] {
        log.pass(later_ms - passed);
        passed = later_ms;
        let left = log.ask("mg a t\r\n");
        assert_eq!(left, format!("HD t{seconds}\r\n"), "after {later_ms} ms");
    }
    assert!(log.ask("me a\r\n").starts_with("ME a exp=-1 "));
    assert_eq!(log.ask("mg b t\r\n"), "HD t-1\r\n");
    // It is never there without time left.
    log.pass(99_999 - passed);
    assert_eq!(log.ask("mg a t\r\n"), "HD t1\r\n");
    log.pass(1);
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
    let ReadKind::Meta(meta) = Read::from_line(b"mg a v").unwrap().kind() else {
        panic!("it is one");
    };
    reply.clear();
    log.store.answer_without_win(&meta, &mut reply);
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
            Parsed::Incomplete { .. } | Parsed::Request { .. } => {
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

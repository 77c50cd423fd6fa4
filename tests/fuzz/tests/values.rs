//! Values for learners: what a log entry, a query, an answer or a snapshot may hold if somebody else wrote
//! it, and what a replica gives to a learner that claims to be one.

use std::time::Duration;

use quorumwire_client::Settings;
use quorumwire_client::machine::feed::{Feed, Item, counts};
use quorumwire_client::machine::{Action, LinkId};
use quorumwire_deliver::{
    Answer, Command, KEPT_BYTES_MIN, Query, QueryAnswer, Recovered, Refusal, Status, Values,
};
use quorumwire_fuzz_tests::{INPUT_BYTES_MAX, ITERATIONS, Outcomes, Seed, fuzz, grown};
use quorumwire_interfaces::{Application as _, Applied, LogTime};
use quorumwire_wire::client::{
    FromServer, Goodbye, GoodbyeReason, Pong, Refused, RefusedReason, Trimmed, Upto, Value,
    Welcome, from_server,
};
use quorumwire_wire::write_client_frame;

fn configure() -> Vec<u8> {
    let command = Command::Configure {
        learners: vec![1, 7],
        kept_bytes_max: KEPT_BYTES_MIN,
    };
    command.encode()
}

fn commands() -> Vec<Vec<u8>> {
    let checkpoint = |learner, upto| Command::Checkpoint { learner, upto }.encode();
    vec![
        configure(),
        Command::Value(b"value").encode(),
        Command::Value(b"").encode(),
        checkpoint(1, 2),
        checkpoint(7, 3),
        checkpoint(9, u64::MAX),
        Command::DeclareLost { upto: 2 }.encode(),
        Query::Status.encode(),
        Query::Recover(3).encode(),
        vec![0xff; 8],
        vec![0, 7],
    ]
}

fn command_seeds() -> Vec<Seed> {
    let of = |number: usize| commands()[number].clone();
    vec![
        ("configure", of(0)),
        ("value", of(1)),
        ("checkpoint", of(3)),
        ("declare-lost", of(6)),
        ("status", of(7)),
        ("recover", of(8)),
    ]
}

fn apply(values: &mut Values, number: u64, command: &[u8]) -> Answer {
    let mut reply = Vec::new();
    let entry = Applied {
        number,
        log_time: LogTime(0),
        awaits_time: false,
        command,
    };
    values.apply(&entry, &mut reply);
    Answer::decode(&reply).expect("every command is answered")
}

fn frozen(values: &Values) -> Vec<u8> {
    let mut bytes = Vec::new();
    let frozen = values.freeze();
    frozen.write(&mut bytes).expect("memory takes it");
    bytes
}

/// Whatever is applied or asked is answered, and what came of it can be written and read.
#[test]
fn value_commands() {
    let outcomes = Outcomes::default();
    let words = commands();
    let words: Vec<&[u8]> = words.iter().map(AsRef::as_ref).collect();
    fuzz!(
        "value_commands",
        command_seeds(),
        ITERATIONS,
        INPUT_BYTES_MAX,
        |input: &[u8]| {
            let bytes = grown(input, &words);
            if let Ok(command) = Command::decode(&bytes) {
                assert_eq!(command.encode(), &bytes[..]);
            }
            let mut values = Values::default();
            apply(&mut values, 1, &configure());
            for number in 2..5 {
                apply(&mut values, number, &Command::Value(b"before").encode());
            }
            outcomes.count(match apply(&mut values, 5, &bytes) {
                Answer::Decided(5) => "decided",
                Answer::Decided(_) => panic!("another instance"),
                Answer::Trimmed(_) => "done",
                Answer::Refused(Refusal::Malformed) => "malformed",
                Answer::Refused(_) => "refused",
            });
            let mut reply = Vec::new();
            values.query(&bytes, &mut reply);
            let answer = QueryAnswer::decode(&reply).expect("every query is answered");
            outcomes.count(match answer {
                QueryAnswer::Recovered(_) => "recovered",
                QueryAnswer::Status(_) => "status",
                QueryAnswer::Malformed => "no query",
            });
            let written = frozen(&values);
            let mut again = Values::default();
            again.restore(&mut &written[..]).expect("it was written");
            assert_eq!(frozen(&again), written);
        }
    );
    outcomes.must_be(&[
        "decided",
        "done",
        "malformed",
        "refused",
        "recovered",
        "status",
        "no query",
    ]);
}

fn answers() -> Vec<Vec<u8>> {
    let refusals = [
        Refusal::Full {
            kept_bytes_max: 9,
            behind: Some((1, 2)),
        },
        Refusal::TooLarge { bytes_max: 7 },
        Refusal::NotDecided { last: 4 },
    ];
    let answers = refusals.map(Answer::Refused).into_iter();
    let answers = answers.chain([Answer::Decided(1), Answer::Trimmed(2)]);
    let mut all: Vec<Vec<u8>> = Vec::new();
    for answer in answers {
        let mut bytes = Vec::new();
        answer.encode(&mut bytes);
        all.push(bytes);
    }
    let status = Status {
        last: 9,
        learners: vec![(1, 2), (3, 4)],
        ..Status::default()
    };
    for answer in [
        QueryAnswer::Status(status),
        QueryAnswer::Recovered(Recovered::Decided(b"value")),
        QueryAnswer::Recovered(Recovered::Trimmed(7)),
    ] {
        let mut bytes = Vec::new();
        answer.encode(&mut bytes);
        all.push(bytes);
    }
    all
}

fn answer_seeds() -> Vec<Seed> {
    let names = [
        "full",
        "too-large",
        "not-decided",
        "decided",
        "done",
        "status",
        "recovered",
        "trimmed",
    ];
    names.into_iter().zip(answers()).collect()
}

#[test]
fn value_answers() {
    let outcomes = Outcomes::default();
    let words = answers();
    let words: Vec<&[u8]> = words.iter().map(AsRef::as_ref).collect();
    fuzz!(
        "value_answers",
        answer_seeds(),
        ITERATIONS,
        INPUT_BYTES_MAX,
        |input: &[u8]| {
            let bytes = grown(input, &words);
            let mut again = Vec::new();
            match Answer::decode(&bytes) {
                Ok(answer) => {
                    answer.encode(&mut again);
                    assert_eq!(again, &bytes[..]);
                    outcomes.count("an answer");
                }
                Err(_) => outcomes.count("none"),
            }
            again.clear();
            if let Ok(answer) = QueryAnswer::decode(&bytes) {
                answer.encode(&mut again);
                assert_eq!(again, &bytes[..]);
                outcomes.count("an answer to a query");
            }
        }
    );
    outcomes.must_be(&["an answer", "none", "an answer to a query"]);
}

fn snapshot() -> Vec<u8> {
    let mut values = Values::default();
    apply(&mut values, 1, &configure());
    for number in 2..6 {
        apply(&mut values, number, &Command::Value(b"value").encode());
    }
    for learner in [1, 7] {
        let command = Command::Checkpoint { learner, upto: 2 };
        apply(&mut values, 7, &command.encode());
    }
    frozen(&values)
}

fn snapshot_seeds() -> Vec<Seed> {
    let whole = snapshot();
    let mut newer = whole.clone();
    newer[0] = 9;
    vec![
        ("whole", whole.clone()),
        ("empty", frozen(&Values::default())),
        ("cut", whole[..whole.len() / 2].to_vec()),
        ("newer", newer),
    ]
}

/// What is read can be written and is the same.
#[test]
fn value_snapshots() {
    let outcomes = Outcomes::default();
    let whole = snapshot();
    fuzz!(
        "value_snapshots",
        snapshot_seeds(),
        ITERATIONS,
        INPUT_BYTES_MAX,
        |input: &[u8]| {
            let bytes = match input {
                // Some bytes of a good one are others.
                [at, with] => {
                    let mut bytes = whole.clone();
                    let at = usize::from(*at) % bytes.len();
                    bytes[at] = *with;
                    bytes
                }
                input => input.to_vec(),
            };
            let mut values = Values::default();
            let mut left = &bytes[..];
            match values.restore(&mut left) {
                Ok(()) => {
                    let read = bytes.len() - left.len();
                    assert_eq!(frozen(&values), &bytes[..read]);
                    outcomes.count("read");
                }
                Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                    outcomes.count("cut");
                }
                Err(_) => outcomes.count("refused"),
            }
        }
    );
    outcomes.must_be(&["read", "cut", "refused"]);
}

fn from_server(request: u64, body: from_server::Body, attachment: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let body = Some(body);
    write_client_frame(&mut bytes, &FromServer { request, body }, attachment);
    bytes
}

fn given() -> Vec<Vec<u8>> {
    use from_server::Body;
    let welcome = Welcome {
        protocol: 2,
        cluster: "c".to_owned(),
        ..Welcome::default()
    };
    let refused = Refused {
        reason: RefusedReason::NoLeader.into(),
        detail: "why".to_owned(),
    };
    let goodbye = Goodbye {
        reason: GoodbyeReason::NotLetIn.into(),
        detail: String::new(),
    };
    let value = |instance, value: &[u8]| from_server(1, Body::Value(Value { instance }), value);
    vec![
        from_server(0, Body::Welcome(welcome), b""),
        value(3, b"three"),
        value(4, b""),
        value(9, &[9; 100]),
        value(u64::MAX, b"last"),
        from_server(1, Body::Upto(Upto { instance: 5 }), b""),
        from_server(1, Body::Trimmed(Trimmed { upto: 8 }), b""),
        from_server(1, Body::Refused(refused), b""),
        from_server(0, Body::Goodbye(goodbye), b""),
        from_server(2, Body::Pong(Pong {}), b""),
    ]
}

fn given_seeds() -> Vec<Seed> {
    let words = given();
    let of = |numbers: &[usize]| -> Vec<u8> {
        let words = numbers.iter().map(|number| &words[*number][..]);
        words.collect::<Vec<_>>().concat()
    };
    vec![
        ("values", of(&[0, 1, 2, 3])),
        ("out-of-order", of(&[0, 2, 1])),
        ("trimmed", of(&[0, 1, 6])),
        ("refused", of(&[0, 7])),
        ("not-let-in", of(&[8])),
        ("the-last-instance", of(&[0, 4, 4])),
        ("before-the-welcome", of(&[1, 0])),
    ]
}

/// Whatever replicas give: values ascend, few wait, and it never turns without rest.
#[test]
fn what_replicas_give_learners() {
    const WINDOW: u64 = 300;
    let outcomes = Outcomes::default();
    let words = given();
    let words: Vec<&[u8]> = words.iter().map(AsRef::as_ref).collect();
    fuzz!(
        "what_replicas_give_learners",
        given_seeds(),
        ITERATIONS,
        INPUT_BYTES_MAX,
        |input: &[u8]| {
            let bytes = match input {
                [b'Q', b'W', ..] => input.to_vec(),
                [0x40..0x80, rest @ ..] => [words[0], &grown(rest, &words)].concat(),
                input => grown(input, &words).into_owned(),
            };
            let settings = Settings::new(["a:1", "b:1", "c:1"]);
            let mut feed = Feed::new(&settings, (7, 3), WINDOW, 1);
            let (mut now, mut last, mut waiting) = (Duration::ZERO, 2, 0);
            for _ in 0..20 {
                feed.time_passed(now);
                let mut link: Option<LinkId> = None;
                for action in feed.take_actions() {
                    if let Action::Connect(it, _) = action {
                        link = Some(it);
                    }
                }
                if let Some(link) = link {
                    feed.connected(now, link);
                    for piece in bytes.chunks(37) {
                        feed.received(now, link, piece);
                    }
                }
                let mut longest = 0;
                for item in feed.take_items() {
                    match item {
                        Item::Value(instance, value) => {
                            assert!(instance > last);
                            last = instance;
                            waiting += counts(&value);
                            longest = counts(&value).max(longest);
                            outcomes.count("a value");
                        }
                        Item::Over(_) => return outcomes.count("over"),
                    }
                }
                assert!(waiting < WINDOW + longest.max(1));
                assert!(feed.next_wake() > now, "it turns without rest");
                now = feed.next_wake();
                feed.taken(now, waiting);
                waiting = 0;
            }
            if feed.counters.malformed > 0 {
                outcomes.count("malformed");
            }
        }
    );
    outcomes.must_be(&["a value", "over", "malformed"]);
}

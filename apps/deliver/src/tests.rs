use crate::{
    Answer, Command, Instance, KEPT_BYTES_MIN, LEARNERS_MAX, Learner, Next, OVERHEAD_BYTES, Query,
    QueryAnswer, Recovered, Refusal, Status, VALUE_BYTES_MAX, Values,
};
use quorumwire_interfaces::{Application as _, Applied, LogTime};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;

const LONGEST_ANSWER_KEPT: usize = 128; // what sessions keep

fn apply(values: &mut Values, number: u64, command: &Command<'_>) -> Answer {
    apply_bytes(values, number, &command.encode())
}

fn apply_bytes(values: &mut Values, number: u64, command: &[u8]) -> Answer {
    let mut reply = Vec::new();
    let entry = Applied {
        number,
        log_time: LogTime(0),
        awaits_time: true,
        command,
    };
    values.apply(&entry, &mut reply);
    assert!(reply.len() <= LONGEST_ANSWER_KEPT);
    Answer::decode(&reply).unwrap()
}

fn ask(values: &Values, query: Query) -> Vec<u8> {
    let mut reply = Vec::new();
    values.query(&query.encode(), &mut reply);
    reply
}

fn configure(learners: &[Learner], kept_bytes_max: u64) -> Command<'static> {
    Command::Configure {
        learners: learners.to_vec(),
        kept_bytes_max,
    }
}

fn with_learners(learners: &[Learner]) -> Values {
    let mut values = Values::default();
    let answer = apply(&mut values, 1, &configure(learners, KEPT_BYTES_MIN));
    assert_eq!(answer, Answer::Trimmed(0));
    values
}

fn frozen(values: &Values) -> Vec<u8> {
    let mut bytes = Vec::new();
    values.freeze().write(&mut bytes).unwrap();
    bytes
}

fn restored(bytes: &[u8]) -> std::io::Result<Values> {
    let mut values = Values::default();
    values.restore(&mut &bytes[..])?;
    Ok(values)
}

#[test]
fn a_value_has_the_number_of_its_command_and_learners_are_given_all_in_order() {
    let mut values = with_learners(&[1, 2]);
    for (number, value) in [(5, &b"five"[..]), (6, b""), (9, b"nine")] {
        let answer = apply(&mut values, number, &Command::Value(value));
        assert_eq!(answer, Answer::Decided(number));
    }
    assert_eq!(values.next(1), Next::Value(5, b"five"));
    assert_eq!(values.next(6), Next::Value(6, b""));
    assert_eq!(values.next(7), Next::Value(9, b"nine"));
    assert_eq!(values.next(10), Next::None(9));
}

#[test]
fn what_all_learners_have_checkpointed_is_trimmed_and_nothing_else() {
    let mut values = with_learners(&[1, 2]);
    for number in 2..=5 {
        apply(&mut values, number, &Command::Value(b"x"));
    }
    let checkpoint = |learner, upto| Command::Checkpoint { learner, upto };
    assert_eq!(apply(&mut values, 6, &checkpoint(1, 5)), Answer::Trimmed(0));
    assert_eq!(values.next(2), Next::Value(2, b"x"));
    assert_eq!(apply(&mut values, 7, &checkpoint(2, 3)), Answer::Trimmed(3));
    assert_eq!(values.next(3), Next::Trimmed(3));
    assert_eq!(values.next(4), Next::Value(4, b"x"));
    // Back is no way to go.
    assert_eq!(apply(&mut values, 8, &checkpoint(2, 1)), Answer::Trimmed(3));
    let status = values.status();
    assert_eq!(status.learners, [(1, 5), (2, 3)]);
    assert_eq!(
        (status.kept, status.kept_bytes),
        (2, 2 * (1 + OVERHEAD_BYTES))
    );
}

#[test]
fn when_full_values_are_refused_and_the_refusal_names_who_is_behind() {
    let mut values = with_learners(&[3, 7]);
    let mebibyte = vec![1; VALUE_BYTES_MAX];
    let mut number = 1;
    let refusal = loop {
        number += 1;
        match apply(&mut values, number, &Command::Value(&mebibyte)) {
            Answer::Decided(_) => {}
            Answer::Refused(refusal) => break refusal,
            other @ Answer::Trimmed(_) => panic!("{other:?}"),
        }
    };
    let full = |behind| Refusal::Full {
        kept_bytes_max: KEPT_BYTES_MIN,
        behind: Some(behind),
    };
    assert_eq!(refusal, full((3, 0)));
    assert!(values.status().kept_bytes <= KEPT_BYTES_MIN && values.is_nearly_full());
    let learner = 3;
    apply(&mut values, 20, &Command::Checkpoint { learner, upto: 4 });
    let refused = Answer::Refused(full((7, 0)));
    assert_eq!(apply(&mut values, 21, &Command::Value(&mebibyte)), refused);
    // An operator may give up on it.
    let lost = Command::DeclareLost { upto: 3 };
    assert_eq!(apply(&mut values, 22, &lost), Answer::Trimmed(3));
    assert_eq!(values.furthest_behind(), Some((7, 3)));
    let taken = apply(&mut values, 23, &Command::Value(&mebibyte));
    assert_eq!(taken, Answer::Decided(23));
}

#[test]
fn the_words_of_a_refusal_name_who_is_behind() {
    let full = |behind| Refusal::Full {
        kept_bytes_max: 5,
        behind,
    };
    assert_eq!(
        full(Some((7, 12))).to_string(),
        "5 bytes of values are kept, the limit: learner 7 is furthest behind, its checkpoint is 12"
    );
    assert!(
        full(Some((7, 0)))
            .to_string()
            .ends_with("learner 7 has checkpointed none")
    );
    assert!(full(None).to_string().ends_with("there is no learner"));
}

#[test]
fn commands_that_make_no_sense_change_nothing_and_say_why() {
    let mut values = with_learners(&[1]);
    apply(&mut values, 2, &Command::Value(b"x"));
    let before = Status {
        last: 0,
        ..values.status()
    };
    let not_decided = |last| Answer::Refused(Refusal::NotDecided { last });
    let (learner, upto) = (1, 4);
    let refused = apply(&mut values, 3, &Command::Checkpoint { learner, upto });
    assert_eq!(refused, not_decided(3));
    let refused = apply(&mut values, 4, &Command::DeclareLost { upto: 5 });
    assert_eq!(refused, not_decided(4));
    let (learner, upto) = (9, 2);
    let refused = apply(&mut values, 5, &Command::Checkpoint { learner, upto });
    assert_eq!(refused, Answer::Refused(Refusal::UnknownLearner(9)));
    let too_large = vec![0; VALUE_BYTES_MAX + 1];
    let refused = apply(&mut values, 6, &Command::Value(&too_large));
    let bytes_max = u32::try_from(VALUE_BYTES_MAX).unwrap();
    assert_eq!(refused, Answer::Refused(Refusal::TooLarge { bytes_max }));
    let descending = configure(&[2, 1], KEPT_BYTES_MIN).encode();
    let twice = configure(&[2, 2], KEPT_BYTES_MIN).encode();
    let many: Vec<Learner> = (0..=u16::try_from(LEARNERS_MAX).unwrap()).collect();
    let many = configure(&many, KEPT_BYTES_MIN).encode();
    let too_little = configure(&[1], KEPT_BYTES_MIN - 1).encode();
    let long = [&Command::DeclareLost { upto: 1 }.encode()[..], b"!"].concat();
    for command in [
        &b""[..],
        b"\0",
        b"\x02\0",
        &descending,
        &twice,
        &many,
        &too_little,
        &long,
    ] {
        let refused = apply_bytes(&mut values, 7, command);
        assert_eq!(refused, Answer::Refused(Refusal::Malformed), "{command:?}");
    }
    let after = Status {
        last: 0,
        ..values.status()
    };
    assert_eq!(after, before);
}

#[test]
fn recover_says_apart_what_is_decided_empty_trimmed_and_not_decided() {
    let mut values = with_learners(&[1]);
    apply(&mut values, 3, &Command::Value(b"three"));
    apply(&mut values, 5, &Command::Value(b"five"));
    let recover = |values: &Values, instance| ask(values, Query::Recover(instance));
    let said = |recovered| {
        let mut bytes = Vec::new();
        QueryAnswer::Recovered(recovered).encode(&mut bytes);
        bytes
    };
    assert_eq!(recover(&values, 3), said(Recovered::Decided(b"three")));
    assert_eq!(recover(&values, 4), said(Recovered::NoOp));
    assert_eq!(recover(&values, 6), said(Recovered::NotDecided(5)));
    let (learner, upto) = (1, 3);
    apply(&mut values, 6, &Command::Checkpoint { learner, upto });
    assert_eq!(recover(&values, 3), said(Recovered::Trimmed(3)));
    assert_eq!(recover(&values, 1), said(Recovered::Trimmed(3)));
    assert_eq!(recover(&values, 5), said(Recovered::Decided(b"five")));
    assert_eq!(recover(&values, 6), said(Recovered::NoOp), "the checkpoint");
    let mut malformed = Vec::new();
    QueryAnswer::Malformed.encode(&mut malformed);
    assert_eq!(recover(&values, 0), malformed);
    let mut reply = Vec::new();
    values.query(b"what?", &mut reply);
    assert_eq!(reply, malformed);
}

#[test]
fn a_learner_that_is_new_begins_with_what_is_kept_and_one_that_goes_holds_nothing_back() {
    let mut values = with_learners(&[1, 2]);
    for number in 2..=4 {
        apply(&mut values, number, &Command::Value(b"x"));
    }
    for (learner, upto) in [(1, 2), (2, 3)] {
        apply(&mut values, 5, &Command::Checkpoint { learner, upto });
    }
    apply(&mut values, 6, &configure(&[1, 2, 8], KEPT_BYTES_MIN));
    assert_eq!(values.status().learners, [(1, 2), (2, 3), (8, 2)]);
    let answer = apply(&mut values, 7, &configure(&[2], KEPT_BYTES_MIN));
    assert_eq!(answer, Answer::Trimmed(3));
    assert_eq!(values.configuration(), Some((vec![2], KEPT_BYTES_MIN)));
}

#[test]
fn answers_are_read_as_they_were_written_and_others_are_refused() {
    let refusals = [
        Refusal::Full {
            kept_bytes_max: 9,
            behind: Some((1, 2)),
        },
        Refusal::Full {
            kept_bytes_max: 9,
            behind: None,
        },
        Refusal::TooLarge { bytes_max: 7 },
        Refusal::UnknownLearner(3),
        Refusal::NotDecided { last: 4 },
        Refusal::Malformed,
    ];
    let answers = refusals.map(Answer::Refused).into_iter();
    for answer in answers.chain([Answer::Decided(1), Answer::Trimmed(2)]) {
        let mut bytes = Vec::new();
        answer.encode(&mut bytes);
        assert_eq!(Answer::decode(&bytes), Ok(answer));
        assert!(Answer::decode(&bytes[..bytes.len() - 1]).is_err());
        bytes.push(0);
        assert!(Answer::decode(&bytes).is_err());
    }
    let status = Status {
        last: 9,
        trimmed: 1,
        kept: 2,
        kept_bytes: 3,
        kept_bytes_max: 4,
        learners: vec![(1, 2), (3, 4)],
    };
    let mut bytes = Vec::new();
    QueryAnswer::Status(status.clone()).encode(&mut bytes);
    assert_eq!(QueryAnswer::decode(&bytes), Ok(QueryAnswer::Status(status)));
    assert!(QueryAnswer::decode(&bytes[..bytes.len() - 1]).is_err());
    bytes.resize(41 + 10 * (LEARNERS_MAX + 1), 0);
    assert!(QueryAnswer::decode(&bytes).is_err());
    assert!(QueryAnswer::decode(b"").is_err() && Answer::decode(b"\xff").is_err());
}

#[test]
fn snapshots_that_contradict_themselves_are_refused() {
    let mut values = with_learners(&[1, 2]);
    for number in 2..=6 {
        apply(&mut values, number, &Command::Value(b"value"));
    }
    for learner in [1, 2] {
        apply(&mut values, 7, &Command::Checkpoint { learner, upto: 3 });
    }
    let good = frozen(&values);
    assert_eq!(frozen(&restored(&good).unwrap()), good);
    for cut in 0..good.len() {
        assert!(restored(&good[..cut]).is_err(), "cut at {cut}");
    }
    // version, configured, limit, trimmed, last, learners, their numbers and checkpoints, values
    let changes: [(usize, &[u8]); 12] = [
        (0, &[2]),
        (1, &[2]),
        (1, &[0]),
        (2, &[0; 8]),
        (2, &[255; 8]),
        (10, &8_u64.to_be_bytes()),
        (10, &2_u64.to_be_bytes()),
        (18, &5_u64.to_be_bytes()),
        (26, &65_u16.to_be_bytes()),
        (28, &9_u16.to_be_bytes()),
        (56, &3_u64.to_be_bytes()), // the first value's instance, which is trimmed
        (64, &[255; 4]),
    ];
    for (at, bytes) in changes {
        let mut bad = good.clone();
        bad[at..at + bytes.len()].copy_from_slice(bytes);
        let error = restored(&bad).expect_err(&format!("{bytes:?} at {at}"));
        assert!(error.to_string().starts_with("values: "), "{error} at {at}");
    }
}

#[test]
fn what_is_frozen_stays_as_it_was() {
    let mut values = with_learners(&[1]);
    for number in 2..600 {
        apply(&mut values, number, &Command::Value(&number.to_be_bytes()));
    }
    let (frozen_then, bytes_then) = (values.freeze(), frozen(&values));
    for number in 600..1200 {
        apply(&mut values, number, &Command::Value(b"later"));
    }
    let (learner, upto) = (1, 700);
    apply(&mut values, 1200, &Command::Checkpoint { learner, upto });
    let mut bytes = Vec::new();
    frozen_then.write(&mut bytes).unwrap();
    assert!(bytes == bytes_then);
}

/// As simple as can be.
#[derive(Default)]
struct Model {
    values: BTreeMap<Instance, Vec<u8>>,
    trimmed: Instance,
}

/// Random commands; what is given to learners is what a map of all values holds, across snapshots.
#[test]
fn learners_are_given_what_a_map_of_all_values_holds() {
    let (mut decided, mut trimmed, mut refused) = (0, 0, 0);
    for seed in 0..40 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut values = with_learners(&[1, 2, 3]);
        let (mut model, mut number) = (Model::default(), 1);
        for _ in 0..2000 {
            number += random.random_range(1..4);
            match random.random_range(0..100) {
                0..80 => {
                    let length = match random.random_range(0..4) {
                        0 => random.random_range(0..200_000),
                        _ => random.random_range(0..600),
                    };
                    let value = vec![random.random(); length];
                    match apply(&mut values, number, &Command::Value(&value)) {
                        Answer::Decided(instance) => {
                            assert_eq!(instance, number);
                            model.values.insert(number, value);
                            decided += 1;
                        }
                        Answer::Refused(Refusal::Full { .. }) => refused += 1,
                        other @ (Answer::Refused(_) | Answer::Trimmed(_)) => panic!("{other:?}"),
                    }
                }
                80..98 => {
                    let learner = random.random_range(1..4);
                    let upto = number.saturating_sub(random.random_range(0..300));
                    let command = Command::Checkpoint { learner, upto };
                    let Answer::Trimmed(upto) = apply(&mut values, number, &command) else {
                        panic!("a checkpoint was refused");
                    };
                    trimmed += u64::from(upto > model.trimmed);
                    model.trimmed = upto;
                }
                _ => values = restored(&frozen(&values)).unwrap(),
            }
            let from = random.random_range(1..number + 3);
            let found = model.values.range(from..).next();
            let expected = match found {
                _ if from <= model.trimmed => Next::Trimmed(model.trimmed),
                Some((instance, value)) => Next::Value(*instance, value),
                None => Next::None(values.last()),
            };
            assert!(
                values.next(from) == expected,
                "seed {seed}, {from} at {number}"
            );
        }
        let status = values.status();
        let kept = model.values.range(model.trimmed + 1..);
        let bytes: u64 = kept
            .clone()
            .map(|(_, it)| it.len() as u64 + OVERHEAD_BYTES)
            .sum();
        assert_eq!(
            (status.kept, status.kept_bytes),
            (kept.count() as u64, bytes)
        );
    }
    assert!(
        decided > 10_000 && trimmed > 1_000 && refused > 10,
        "{decided} {trimmed} {refused}"
    );
}

/// A command that trims everything does not take as long as freeing everything.
#[test]
fn what_is_trimmed_is_freed_little_by_little() {
    let mut values = with_learners(&[1]);
    apply(&mut values, 1, &configure(&[1], 1 << 30));
    for number in 2..100_000 {
        apply(&mut values, number, &Command::Value(b""));
    }
    let (learner, upto) = (1, 99_999);
    apply(&mut values, 100_000, &Command::Checkpoint { learner, upto });
    let mut turns = 0;
    while values.free_some() {
        turns += 1;
    }
    assert!(turns >= 4, "{turns}");
}

//! What is compared, what becomes of it, and its limits.
use super::*;

const TURN: u64 = 40;

const fn of(replica: u16) -> Reporter {
    Reporter { replica, life: 7 }
}

/// Of one connection; `place` is which.
fn window(place: u64, sum: u64) -> Window {
    Window {
        connection: 1 << 16,
        first_byte: place * WINDOW_BYTES as u64,
        bytes: 1536,
        turn: TURN + place,
        sum,
    }
}

fn is_late(_: Place) -> bool {
    true
}

fn is_early(_: Place) -> bool {
    false
}

/// All of these said this of the same window.
fn said(outputs: &mut Outputs, said: &[(u16, u64)]) {
    for (replica, sum) in said {
        outputs.report(of(*replica), 3, &[window(0, *sum)]);
    }
}

fn voters(count: u16) -> Vec<Voter> {
    voters_heard(count, |_| true)
}

fn voters_heard(count: u16, is_heard: impl Fn(u16) -> bool) -> Vec<Voter> {
    let voters = (0..count).map(|replica| Voter {
        reporter: of(replica),
        is_heard: is_heard(replica),
    });
    voters.collect()
}

fn left(outputs: &Outputs) -> (usize, usize) {
    assert_eq!(outputs.compared.len(), outputs.by_age.len());
    (outputs.compared.len(), outputs.disputed.len())
}

#[test]
fn what_all_say_is_compared_once_and_then_gone() {
    let mut outputs = Outputs::default();
    said(&mut outputs, &[(0, 1), (1, 1), (0, 1)]);
    assert_eq!(left(&outputs), (1, 0), "one has not said anything");
    assert_eq!(outputs.next_verdict((of(0), &voters(3)), is_late), None);
    said(&mut outputs, &[(2, 1)]);
    assert_eq!((left(&outputs), outputs.counts().equal), ((0, 0), 1));
    assert_eq!(outputs.last_turn(), TURN);
    // Said again, it waits for others that will not come, and harms nobody.
    said(&mut outputs, &[(1, 1)]);
    assert_eq!(outputs.next_verdict((of(0), &voters(3)), is_late), None);
}

#[test]
fn whoever_says_something_else_than_most_voters_is_outvoted() {
    for (order, wrong) in [
        ([(0, 1), (1, 1), (2, 9)], 2),
        ([(0, 9), (1, 1), (2, 1)], 0),
        ([(1, 1), (0, 9), (2, 1)], 0),
    ] {
        let mut outputs = Outputs::default();
        outputs.report(of(wrong), 3, &[window(1, 9)]); // nobody else has said anything there
        said(&mut outputs, &order);
        let verdict = outputs.next_verdict((of(0), &voters(3)), is_early);
        let expected = Verdict {
            judgement: Judgement::Outvoted,
            reporter: of(wrong),
            window: window(0, 9),
            others: window(0, 1),
        };
        assert_eq!(verdict, Some(expected));
        assert!(!outputs.is_outvoted(of(wrong)));
        outputs.judge(expected, &voters(3));
        outputs.judge(expected, &voters(3));
        assert!(outputs.is_outvoted(of(wrong)));
        assert_eq!(outputs.verdicts().collect::<Vec<_>>(), [&expected]);
        assert_eq!(outputs.counts().outvoted, 1);
        // What it says counts no more; what its next life says does.
        assert_eq!(left(&outputs), (1, 0));
        said(&mut outputs, &[(wrong, 9)]);
        assert_eq!(left(&outputs), (1, 0));
        let next = Reporter {
            life: 8,
            ..of(wrong)
        };
        assert!(!outputs.is_outvoted(next));
        outputs.report(next, 3, &[window(0, 1)]);
        assert_eq!((left(&outputs), outputs.counts().equal), ((0, 0), 1));
    }
}

#[test]
fn one_that_said_less_or_more_said_something_else() {
    let mut outputs = Outputs::default();
    let short = Window {
        bytes: 9,
        ..window(0, 1)
    };
    for (replica, said) in [(0, window(0, 1)), (1, short), (2, window(0, 1))] {
        outputs.report(of(replica), 3, &[said]);
    }
    let verdict = outputs.next_verdict((of(0), &voters(3)), is_early);
    assert_eq!(
        verdict.map(|it| (it.reporter, it.window)),
        Some((of(1), short))
    );
    // In which turn a window ended is not what was said.
    let mut outputs = Outputs::default();
    let later = Window {
        turn: TURN + 1,
        ..window(0, 1)
    };
    for (replica, said) in [(0, later), (1, window(0, 1)), (2, window(0, 1))] {
        outputs.report(of(replica), 3, &[said]);
    }
    assert_eq!(outputs.counts().equal, 1);
}

#[test]
fn only_voters_make_a_majority_and_everybody_can_be_outvoted() {
    let mut outputs = Outputs::default();
    // Of five voters two say one thing; so do two that vote for nobody, one of them an earlier life.
    for who in [of(0), of(1), of(7), Reporter { life: 6, ..of(2) }] {
        outputs.report(who, 7, &[window(0, 1)]);
    }
    outputs.report(of(8), 7, &[window(0, 9)]);
    assert_eq!(outputs.next_verdict((of(0), &voters(5)), is_early), None);
    // The next life of one takes the place of the earlier.
    outputs.report(of(2), 7, &[window(0, 1)]);
    let verdict = outputs
        .next_verdict((of(0), &voters(5)), is_early)
        .expect("three of five");
    assert_eq!(
        (verdict.reporter, verdict.judgement),
        (of(8), Judgement::Outvoted)
    );
    // Three of six are no majority.
    assert_eq!(outputs.next_verdict((of(0), &voters(6)), is_early), None);
}

#[test]
fn one_against_one_is_undecided_and_the_leaders_stays() {
    for leader in 0..2 {
        let mut outputs = Outputs::default();
        said(&mut outputs, &[(0, 1), (1, 9)]);
        // All of two voters have said something; of three, one may still come.
        let verdict = outputs.next_verdict((of(leader), &voters(2)), is_early);
        assert_eq!(
            outputs.next_verdict((of(leader), &voters(3)), is_early),
            None
        );
        assert_eq!(
            outputs.next_verdict((of(leader), &voters(3)), is_late),
            verdict
        );
        let verdict = verdict.expect("they differ");
        let reporter = of(1 - leader);
        assert_eq!(
            (verdict.judgement, verdict.reporter),
            (Judgement::Undecided, reporter)
        );
        assert_eq!(outputs.undecided(of(leader)).count(), 1);
        outputs.judge(verdict, &voters(2));
        outputs.judge(verdict, &voters(2));
        assert_eq!(outputs.undecided(of(leader)).count(), 0, "people know");
        assert!(outputs.are_disputed() && !outputs.is_outvoted(reporter));
        assert_eq!(outputs.counts().undecided, 1, "it is said once");
        assert_eq!(
            outputs.next_verdict((of(leader), &voters(2)), is_late),
            None
        );
        // A third one that comes late decides.
        said(&mut outputs, &[(2, 1)]);
        let verdict = outputs
            .next_verdict((of(leader), &voters(3)), is_late)
            .expect("two of three");
        assert_eq!(
            (verdict.judgement, verdict.reporter),
            (Judgement::Outvoted, of(1))
        );
        outputs.judge(verdict, &voters(3));
        assert!(outputs.is_outvoted(of(1)));
        // Undecided is no word about one that is outvoted.
        let again = Verdict {
            judgement: Judgement::Undecided,
            ..verdict
        };
        outputs.judge(again, &voters(3));
        assert_eq!(outputs.counts().undecided, 1);
    }
}

#[test]
fn what_can_be_decided_is_decided_before_what_cannot() {
    let mut outputs = Outputs::default();
    for (place, sums) in [(0, [1, 2, 3]), (1, [1, 9, 1])] {
        for (replica, sum) in (0..).zip(sums) {
            outputs.report(of(replica), 3, &[window(place, sum)]);
        }
    }
    let verdict = outputs
        .next_verdict((of(0), &voters(3)), is_late)
        .expect("they differ");
    assert_eq!(
        (verdict.judgement, verdict.reporter),
        (Judgement::Outvoted, of(1))
    );
    outputs.judge(verdict, &voters(3));
    let verdict = outputs
        .next_verdict((of(0), &voters(3)), is_late)
        .expect("they differ");
    assert_eq!(
        (verdict.judgement, verdict.reporter),
        (Judgement::Undecided, of(2))
    );
    // A leader that has said nothing there leaves it at what was said first.
    let verdict = outputs
        .next_verdict((of(5), &voters(3)), is_late)
        .expect("they differ");
    assert_eq!((verdict.reporter, verdict.others.sum), (of(2), 1));
}

#[test]
fn of_too_many_windows_the_oldest_go() {
    let mut outputs = Outputs::default();
    let count = COMPARED_MAX as u64 + 5;
    outputs.report(of(0), 3, &[window(3, 1)]);
    outputs.report(of(1), 3, &[window(3, 2)]);
    for place in 0..count {
        outputs.report(of(0), 3, &[window(place, 1)]);
    }
    assert_eq!(left(&outputs), (COMPARED_MAX, 0), "the disputed one, too");
    assert_eq!(outputs.counts().forgotten, 5);
    // The first was 3, then came 0, 1 and so on.
    assert!(!outputs.compared.contains_key(&window(4, 0).place()));
    assert!(outputs.compared.contains_key(&window(5, 0).place()));
    let many = (0..40).map(of);
    for who in many {
        outputs.report(who, 100, &[window(count, 1)]);
    }
    let votes = &outputs.compared[&window(count, 0).place()];
    assert_eq!(votes.each.len(), VOTES_MAX);
    let mut outputs = Outputs::default();
    for life in 0..40 {
        let place = count + 1 + life;
        let stranger = Reporter { replica: 1, life };
        outputs.report(stranger, 9, &[window(place, 9)]);
        for replica in [0, 2] {
            outputs.report(of(replica), 9, &[window(place, 1)]);
        }
        let verdict = outputs.next_verdict((of(0), &voters(3)), is_early);
        let verdict = verdict.expect("two of three");
        assert_eq!(verdict.reporter, stranger);
        outputs.judge(verdict, &voters(3));
    }
    assert_eq!(outputs.verdicts().count(), VERDICTS_MAX);
    assert!(outputs.is_outvoted(Reporter {
        replica: 1,
        life: 39
    }));
}

#[test]
fn a_snapshot_has_all_of_it() {
    let mut outputs = Outputs::default();
    said(&mut outputs, &[(0, 1), (1, 9)]);
    outputs.report(of(1), 3, &[window(2, 1), window(1, 1)]);
    let verdict = outputs
        .next_verdict((of(0), &voters(2)), is_late)
        .expect("they differ");
    outputs.judge(verdict, &voters(2));
    let bytes = outputs.encode();
    let mut again = Outputs::decode(&bytes).expect("it was written");
    assert_eq!(again.encode(), bytes);
    assert_eq!(again.last_turn(), TURN + 2);
    assert_eq!(
        (left(&again), again.verdicts().collect::<Vec<_>>()),
        ((3, 1), vec![&verdict])
    );
    for it in [&mut outputs, &mut again] {
        said(it, &[(2, 1)]);
        let verdict = it
            .next_verdict((of(0), &voters(3)), is_early)
            .expect("two of three");
        assert_eq!(verdict.reporter, of(1));
    }
    for end in 0..bytes.len() {
        assert!(Outputs::decode(&bytes[..end]).is_err(), "{end}");
    }
    assert!(Outputs::decode(&[&bytes[..], &[0]].concat()).is_err());
}

/// Two leaders, one after the other, have seen different windows first. What the second says was so when it
/// said it.
pub fn two_verdicts_do_not_outvote_two_of_three() {
    let mut outputs = Outputs::default();
    for (place, sums) in [(0, [9, 1, 1]), (1, [1, 9, 1])] {
        for (replica, sum) in (0..).zip(sums) {
            outputs.report(of(replica), 3, &[window(place, sum)]);
        }
    }
    let of_place = |place: u64, wrong| Verdict {
        judgement: Judgement::Outvoted,
        reporter: of(wrong),
        window: window(place, 9),
        others: window(place, 1),
    };
    outputs.judge(of_place(0, 0), &voters(3));
    outputs.judge(of_place(1, 1), &voters(3));
    assert!(outputs.is_outvoted(of(0)));
    assert!(!outputs.is_outvoted(of(1)), "one alone is left");
    assert_eq!(
        (outputs.counts().outvoted, outputs.verdicts().count()),
        (1, 1)
    );
    // What nobody has said, or nobody says any more, is no reason either.
    let unsaid = Verdict {
        others: window(1, 5),
        ..of_place(1, 1)
    };
    for judgement in [Judgement::Outvoted, Judgement::Undecided] {
        outputs.judge(
            Verdict {
                judgement,
                ..unsaid
            },
            &voters(3),
        );
        outputs.judge(
            Verdict {
                judgement,
                ..of_place(7, 1)
            },
            &voters(3),
        );
    }
    assert_eq!(outputs.verdicts().count(), 1);
}

#[test]
fn a_verdict_counts_if_it_is_still_so_when_it_is_carried_out() {
    two_verdicts_do_not_outvote_two_of_three();
}

/// Whoever is outvoted ends. Without it those who are heard are two of four.
pub fn nobody_is_outvoted_without_whom_the_others_cannot_go_on() {
    let mut outputs = Outputs::default();
    for (replica, sum) in [(0, 1), (1, 1), (2, 1), (3, 9)] {
        outputs.report(of(replica), 4, &[window(0, sum)]);
    }
    let some = voters_heard(4, |id| id != 2);
    let told = outputs
        .next_verdict((of(0), &some), is_early)
        .expect("they differ");
    assert_eq!(
        (told.judgement, told.reporter),
        (Judgement::Undecided, of(3))
    );
    let outvoted = Verdict {
        judgement: Judgement::Outvoted,
        ..told
    };
    outputs.judge(outvoted, &some);
    assert!(!outputs.is_outvoted(of(3)), "nor if a leader says so");
    outputs.judge(told, &some);
    assert_eq!(
        outputs.next_verdict((of(0), &some), is_late),
        None,
        "it is told"
    );
    // The third is back.
    let all = voters(4);
    assert_eq!(
        outputs.next_verdict((of(0), &all), is_early),
        Some(outvoted)
    );
    outputs.judge(outvoted, &all);
    assert!(outputs.is_outvoted(of(3)));
}

#[test]
fn who_cannot_be_spared_is_not_outvoted() {
    nobody_is_outvoted_without_whom_the_others_cannot_go_on();
}

#[test]
fn what_nobody_can_decide_hides_nothing_behind_it() {
    let mut outputs = Outputs::default();
    let some = voters_heard(3, |id| id != 1);
    // Of the first place all is said that may be; at the second somebody else differs.
    for (place, sums) in [(0, [1, 1, 9]), (1, [1, 9, 1])] {
        for (replica, sum) in (0..).zip(sums) {
            outputs.report(of(replica), 3, &[window(place, sum)]);
        }
    }
    let told = outputs
        .next_verdict((of(0), &some), is_early)
        .expect("they differ");
    assert_eq!(
        (told.judgement, told.reporter),
        (Judgement::Outvoted, of(1))
    );
    let nobody_but_us = voters_heard(3, |id| id == 0);
    let first = outputs.next_verdict((of(0), &nobody_but_us), is_early);
    outputs.judge(first.expect("they differ"), &nobody_but_us);
    let second = outputs.next_verdict((of(0), &nobody_but_us), is_early);
    let who = |it: Option<Verdict>| it.map(|it| (it.judgement, it.reporter));
    assert_eq!(who(first), Some((Judgement::Undecided, of(2))));
    assert_eq!(who(second), Some((Judgement::Undecided, of(1))));
}

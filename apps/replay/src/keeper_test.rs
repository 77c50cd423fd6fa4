//! What a keeper wants done, and when.
use super::*;
use crate::Verdict;
use crate::command::Event;
use crate::outputs::Reporter;
use crate::tests::{Lines, ONE, One, TWO, Written};

/// A keeper of a replica's, with what the log has made of it.
struct Kept {
    keeper: Keeper,
    one: One,
    now: Duration,
    leads: bool,
    connected: Vec<Reporter>,
    is_backup_wanted: bool,
}

const fn of(replica: u16) -> Reporter {
    Reporter { replica, life: 7 }
}

/// At this time of day, by this chance.
const NEXT: Input = Input::NextGateway {
    wall_ms: 1_700_000_000_000,
    chance: 7,
};

impl Kept {
    fn of(one: One) -> Self {
        let keeping = Keeping {
            save_signal: Some(15),
            cut_log_bytes: 1000,
        };
        Self {
            keeper: Keeper::new(ONE, keeping),
            one,
            now: Duration::from_secs(100),
            leads: false,
            connected: vec![of(1), of(2)],
            is_backup_wanted: false,
        }
    }

    fn step(&mut self, input: Input) -> Vec<Wish> {
        let voters = [0, 1, 2].map(of);
        let around = Around {
            now: self.now,
            leads: self.leads,
            is_led: true,
            lacks: 0,
            members: 3,
            voters: &voters,
            connected: &self.connected,
            is_backup_wanted: self.is_backup_wanted,
        };
        let mut wishes = Vec::new();
        let replay: &mut Replay<Written> = &mut self.one.replay;
        self.keeper.step(input, replay, &around, &mut wishes);
        wishes
    }

    fn keep(&mut self) -> Vec<Wish> {
        self.step(Input::Keep)
    }

    /// What is asked for is carried out.
    fn carry_out(&mut self, wishes: &[Wish]) -> Asked {
        let [Wish::Submit(asked, command)] = wishes else {
            panic!("{wishes:?}");
        };
        let command = Command::decode(command).expect("it is one");
        self.one.apply(&command);
        *asked
    }
}

fn done(asked: Asked) -> Input {
    Input::Became(asked.number(), Become::Answered(Some(Answer::Done)))
}

const DROPS: Wish = Wish::DropClients(WhyGateway::Gone);

pub fn who_has_nothing_to_say_learns_that_its_gateway_is_gone() {
    let mut kept = Kept::of(One::begun());
    assert_eq!(kept.keep(), [Wish::EndTrial]);
    kept.one.batch(ONE, 1, &[]);
    assert!(kept.keep().is_empty());
    kept.one.apply(&Command::GatewayEnds(ONE));
    assert_eq!(kept.keep(), [DROPS]);
    assert!(kept.step(NEXT).is_empty());
    assert!(kept.keep().is_empty(), "the next one is not gone");
}

#[test]
fn clients_that_have_nothing_to_say_learn_that_they_are_gone() {
    who_has_nothing_to_say_learns_that_its_gateway_is_gone();
    // And those that have.
    let mut kept = Kept::of(One::begun());
    let ended = Become::Answered(Some(Answer::Ended));
    assert_eq!(kept.step(Input::Became(1, ended)), [DROPS]);
}

pub fn a_gateway_that_is_not_its_own_is_ended_by_its_replica() {
    let mut kept = Kept::of(One::begun());
    kept.keep();
    kept.one.batch(TWO, 1, &[]);
    kept.step(NEXT);
    assert!(kept.keep().is_empty(), "none of its own is there");
    // Of its process before, or a first batch that was late.
    kept.one.batch(ONE, 1, &[]);
    let wishes = kept.keep();
    assert!(kept.keep().is_empty(), "it is on its way");
    assert_eq!(kept.carry_out(&wishes), Asked::GatewayEnds(ONE));
    kept.step(done(Asked::GatewayEnds(ONE)));
    assert!(kept.keep().is_empty());
    let own = kept.keeper.batches.gateway();
    kept.one.batch(own, 1, &[]);
    assert!(
        kept.keep().is_empty(),
        "its own stays, and so does another's"
    );
}

#[test]
fn a_gateway_of_the_process_before_is_ended_by_its_replica() {
    a_gateway_that_is_not_its_own_is_ended_by_its_replica();
}

/// A clock was set back: its gateways before had greater numbers.
#[test]
fn a_gateway_comes_behind_those_that_the_log_knows() {
    let mut kept = Kept::of(One::begun());
    kept.keep();
    let before = Gateway {
        number: u64::MAX >> 2,
        ..ONE
    };
    kept.one.batch(before, 1, &[]);
    assert_eq!(kept.keep(), [DROPS]);
    kept.step(NEXT);
    let own = kept.keeper.batches.gateway();
    assert!(own.number > before.number);
    assert_eq!(kept.one.batch(own, 1, &[]), Answer::Done);
    assert!(kept.keep().is_empty());
}

#[test]
fn the_leader_begins_a_program_that_was_tried() {
    let mut kept = Kept::of(One::new());
    assert!(kept.keep().is_empty());
    kept.leads = true;
    assert_eq!(kept.keep(), [Wish::TryProgram]);
    assert_eq!(kept.keep(), [Wish::TryProgram], "it is not over");
    kept.step(Input::HasPassed);
    assert_eq!(kept.keep(), [Wish::DrawKey]);
    let wishes = kept.step(Input::Key([1; 32]));
    assert!(kept.keep().is_empty(), "it is on its way");
    kept.step(Input::Became(Asked::Begin.number(), Become::NotDone));
    assert_eq!(kept.keep(), [Wish::DrawKey]);
    assert_eq!(kept.carry_out(&wishes), Asked::Begin);
    assert!(kept.step(Input::Key([2; 32])).is_empty(), "it has begun");
}

#[test]
fn a_trial_is_over_when_another_leader_has_begun_the_program() {
    let mut kept = Kept::of(One::new());
    kept.leads = true;
    assert_eq!(kept.keep(), [Wish::TryProgram]);
    kept.leads = false;
    kept.one.apply(&Command::Begin { key: [1; 32] });
    assert_eq!(kept.keep(), [Wish::EndTrial]);
    assert!(kept.keep().is_empty());
}

#[test]
fn clients_of_who_is_not_heard_for_long_go() {
    let mut kept = Kept::of(One::begun());
    kept.keep();
    kept.leads = true;
    for gateway in [ONE, TWO] {
        kept.one.batch(gateway, 1, &[]);
    }
    assert!(kept.keep().is_empty());
    kept.connected = vec![of(2)];
    kept.now += GATEWAY_SILENCE.saturating_sub(Duration::from_millis(1));
    assert!(kept.keep().is_empty());
    kept.now += Duration::from_millis(1);
    let wishes = kept.keep();
    assert!(kept.keep().is_empty(), "it is on its way");
    let asked = kept.carry_out(&wishes);
    assert_eq!(asked, Asked::GatewayEnds(TWO));
    kept.step(done(asked));
    assert!(kept.keep().is_empty(), "this replica hears itself");
}

#[test]
fn a_cut_is_asked_for_once_and_a_snapshot_taken_of_it() {
    let mut kept = Kept::of(One::begun());
    kept.keep();
    kept.one.batch(ONE, 1, &[]);
    // A follower asks only for somebody who waits.
    let long = [b'x'; 1000];
    let data = Event::Data {
        client: 1,
        bytes: &long,
    };
    kept.one.batch(ONE, 2, &[data]);
    assert!(kept.keep().is_empty());
    kept.step(Input::StateWanted);
    let wishes = kept.keep();
    assert!(kept.keep().is_empty(), "it is on its way");
    let asked = kept.carry_out(&wishes);
    assert_eq!(asked, Asked::Cut);
    kept.step(done(asked));
    assert!(kept.keep().is_empty(), "the turn says so");
    let drops = [Wish::DropClients(WhyGateway::Saves)];
    assert_eq!(kept.step(Input::Turn), drops);
    kept.step(NEXT);
    assert!(kept.step(Input::Turn).is_empty());
    kept.one.replay.has_saved(Lines("all".into()));
    assert_eq!(kept.keep(), [Wish::TakeSnapshot]);
    assert_eq!(kept.keep(), [Wish::TakeSnapshot], "it could not be taken");
    kept.step(Input::SnapshotBegun);
    assert_eq!(kept.keep(), [Wish::GoOn]);
    kept.one.replay.go_on();
    assert!(kept.keep().is_empty(), "nobody waits any more");
    // The leader asks when the log is long.
    kept.leads = true;
    let own = kept.keeper.batches.gateway();
    kept.one.batch(own, 1, &[data]);
    let wishes = kept.keep();
    assert_eq!(kept.carry_out(&wishes), Asked::Cut);
}

/// A keeper where the program of replica 1 has said something else than the others.
fn disputed() -> Kept {
    let mut kept = Kept::of(One::begun());
    kept.one.replay.reporter = Some(of(0));
    kept.keep();
    for (replica, sum) in [(0, 1), (1, 9), (2, 1)] {
        let window = crate::Window {
            connection: 1 << 16,
            first_byte: 0,
            bytes: 1,
            turn: 1,
            sum,
        };
        kept.one.apply(&Command::Outputs {
            reporter: of(replica),
            members: 3,
            windows: vec![window],
        });
    }
    kept
}

/// The third voter has lost its memory: it is connected, and is none until it is voted in again.
pub fn who_is_connected_in_another_life_is_not_counted_on() {
    let mut kept = disputed();
    kept.leads = true;
    kept.connected[1].life = 8;
    let wishes = kept.keep();
    kept.carry_out(&wishes);
    let outputs = kept.one.replay.outputs();
    assert_eq!(
        (outputs.counts().outvoted, outputs.counts().undecided),
        (0, 1)
    );
}

#[test]
fn nobody_is_outvoted_while_another_voter_has_lost_its_memory() {
    who_is_connected_in_another_life_is_not_counted_on();
}

#[test]
fn a_leader_judges_what_differs_and_again_if_that_did_not_reach_the_log() {
    let mut kept = disputed();
    assert!(kept.keep().is_empty(), "it is the leader's to say");
    kept.leads = true;
    let wishes = kept.keep();
    kept.now += Duration::from_secs(1);
    assert!(kept.keep().is_empty(), "it is on its way");
    kept.step(Input::Became(Asked::Verdict.number(), Become::Unknown));
    assert_eq!(kept.keep(), wishes);
    assert_eq!(kept.carry_out(&wishes), Asked::Verdict);
    let said: Vec<&Verdict> = kept.one.replay.outputs().verdicts().collect();
    assert_eq!(said.len(), 1);
    assert_eq!(said[0].reporter.replica, 1);
}

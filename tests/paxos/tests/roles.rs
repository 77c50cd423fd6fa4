//! Everything that the roles can do within small bounds is safe, what must be possible is, and without each
//! rule there is harm.
use quorumwire_paxos_model::{
    Action, Bounds, Deployment, Durability, Lives, Message, ONE_VALUE, Rule,
};
use quorumwire_search::{Harm, Varied, whole};

/// The searches together visit at least this many different states.
const STATES_MIN: usize = 700_000;

/// A removal finds its harm well before this many states.
const STATES_MAX: usize = 3_000_000;

const DECIDED: &str = "a value is decided";
const SURVIVES: &str = "a value survives a take-over";
const VOTES_AGAIN: &str = "an acceptor that forgot votes again";
const BOUND: &str = "an acceptor is let in behind its bound";

fn bounds(rounds_max: u8, losses_max: u8) -> Bounds {
    Bounds {
        rounds_max,
        losses_max,
        restarts_max: 0,
    }
}

/// One coordinator forgets its rounds.
fn restart(rounds_max: u8, losses_max: u8) -> Deployment {
    let bounds = Bounds {
        restarts_max: 1,
        ..bounds(rounds_max, losses_max)
    };
    Deployment::new(Durability::Memory, bounds)
}

/// Searches all of a space; how many states it has.
fn search(name: &str, model: Deployment, reached: &[&'static str]) -> usize {
    whole(name, model, &[ONE_VALUE], reached)
}

#[test]
fn every_reachable_state_is_safe() {
    let mut count = 0;
    count += search(
        "memory, one loss",
        memory(1, 1),
        &[DECIDED, SURVIVES, VOTES_AGAIN, BOUND],
    );
    count += search(
        "memory, two losses",
        memory(1, 2),
        &[DECIDED, SURVIVES, VOTES_AGAIN, BOUND],
    );
    let sync = Deployment::new(Durability::Sync, bounds(1, 1));
    count += search("sync", sync, &[DECIDED, SURVIVES]);
    let one_number = memory(2, 0).with_one_number();
    count += search("two of one number", one_number, &[DECIDED, SURVIVES]);
    count += search("restart", restart(1, 0), &[DECIDED, SURVIVES]);
    println!("{count} unique states in all");
    assert!(count >= STATES_MIN, "the model has become too small");
}

/// Two rounds of each coordinator, and two losses: too long for every day.
#[test]
#[ignore = "takes many minutes"]
fn two_rounds_and_two_losses_are_safe() {
    search(
        "memory, one loss",
        memory(2, 1),
        &[DECIDED, SURVIVES, VOTES_AGAIN, BOUND],
    );
    search(
        "memory, two losses",
        memory(2, 2),
        &[DECIDED, SURVIVES, VOTES_AGAIN, BOUND],
    );
}

#[test]
#[ignore = "takes minutes"]
fn a_restart_and_a_loss_are_safe() {
    search(
        "restart, one loss",
        restart(1, 1),
        &[DECIDED, SURVIVES, VOTES_AGAIN, BOUND],
    );
}

fn memory(rounds_max: u8, losses_max: u8) -> Deployment {
    Deployment::new(Durability::Memory, bounds(rounds_max, losses_max))
}

/// The model in which the harm is found without a rule.
fn removal(rule: Rule) -> Deployment {
    match rule {
        Rule::MajorityPromises
        | Rule::AsksAnew
        | Rule::OneRoundDecides
        | Rule::AdoptsHighestVote => memory(2, 0),
        Rule::DrawsAnew => memory(2, 0).with_one_number(),
        Rule::PromiseNamesQuestion => restart(1, 0),
        Rule::VoteIsDurable => Deployment::new(Durability::Sync, bounds(1, 1)),
        Rule::ConfigurationCounts | Rule::NoMemberUpToBound | Rule::MajorityOfOthers => {
            memory(2, 1)
        }
        Rule::LetsInOneLife => memory(1, 2),
        Rule::TakesLaterLivesOnly => memory(2, 2).after(&promised_and_forgotten()),
    }
}

/// Acceptor 0 forgets. Both coordinators ask for rounds to let it in; the first one does. It promises the
/// second one's round, and forgets again.
fn promised_and_forgotten() -> Vec<Action> {
    let ask = |from, round, drawn| Message::Ask {
        from,
        round,
        drawn,
        configuration: Lives([1, 0, 0]),
    };
    let (first, second) = (ask(0, (1, 1), 11), ask(1, (2, 2), 22));
    vec![
        Action::Ask(1),
        Action::Lose(0),
        Action::AskFor(0, 0),
        Action::AskFor(1, 0),
        Action::Receive(1, first),
        Action::Receive(2, first),
        Action::LetIn(0, 0b110),
        Action::Receive(0, second),
        Action::Lose(0),
    ]
}

#[test]
fn without_a_rule_there_is_harm() {
    let harm = Harm {
        property: ONE_VALUE,
        threads: 2,
        states_max: STATES_MAX,
    };
    for rule in Rule::ALL {
        harm.comes_without(&[rule], removal(rule).nameless());
    }
}

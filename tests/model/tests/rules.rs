//! Every rule is needed: without it the model finds a way to harm. Where one rule alone can be left out,
//! it is shown which other one then carries the weight.
use quorumwire_model::{
    Action, Bounds, Durability, Entry, Handover, Log, Message, Mover, Rule, Safety,
};
use quorumwire_search::{Harm, Varied, whole};

/// A removal finds its harm, or has searched everything, well before this many states.
const STATES_MAX: usize = 4_000_000;

/// What is expected of a removal.
struct Removal {
    /// What goes wrong.
    violates: Safety,
    /// What the search has to reach.
    bounds: Bounds,
    durability: Durability,
    /// What has happened before the search.
    lead_in: Vec<Action>,
}

impl Removal {
    fn violates(violates: Safety) -> Self {
        Self {
            violates,
            bounds: SMALL,
            durability: Durability::Memory,
            lead_in: Vec::new(),
        }
    }

    fn with_crashes(mut self) -> Self {
        self.durability = Durability::Sync;
        self.bounds.crashes_max = 1;
        self
    }

    fn upto_term(mut self, term_max: u8) -> Self {
        self.bounds.term_max = term_max;
        self
    }

    fn after(mut self, lead_in: Vec<Action>) -> Self {
        self.lead_in = lead_in;
        self
    }

    /// It is found without these rules.
    fn harms(&self, rules: &[Rule]) {
        let model = Handover::new(self.durability, self.bounds).checking(self.violates);
        let harm = Harm {
            property: self.violates.name(),
            threads: 1,
            states_max: STATES_MAX,
        };
        harm.comes_without(rules, model.after(&self.lead_in));
    }
}

const SMALL: Bounds = Bounds {
    term_max: 3,
    index_max: 2,
    crashes_max: 0,
};

/// What the model must find without this rule; `None`: the rule is the second line behind others.
fn removal(rule: Rule) -> Option<Removal> {
    use Safety::{LeaderCompleteness, LogMatching, OneLeader, StateMachineSafety};
    let removal = match rule {
        Rule::FenceBeforeVote
        | Rule::RingIsTaken
        | Rule::EqualLogEngages
        | Rule::Contiguous
        | Rule::StragglerVerified
        | Rule::LeaderFences => Removal::violates(StateMachineSafety),
        Rule::PlaneDropsOtherTerms | Rule::OfferOfOwnTerm => {
            Removal::violates(StateMachineSafety).upto_term(4)
        }
        Rule::CandidateFences | Rule::VoterComparesLogs | Rule::MembersCount => {
            Removal::violates(LeaderCompleteness)
        }
        Rule::VoteIsPersisted => Removal::violates(OneLeader).with_crashes(),
        Rule::AppendFences => Removal::violates(LogMatching),
        Rule::OwnTermCounts => Removal::violates(StateMachineSafety)
            .upto_term(4)
            .after(engaging()),
        Rule::HeldAcknowledgement => Removal::violates(LeaderCompleteness)
            .with_crashes()
            .after(engaging_durably()),
        Rule::StragglerDurable => Removal::violates(LeaderCompleteness)
            .with_crashes()
            .after(straggling()),
        Rule::LeaderStands => Removal::violates(LeaderCompleteness)
            .with_crashes()
            .upto_term(5)
            .after(forked_durably()),
        Rule::CommitsOwnTerm => Removal::violates(LeaderCompleteness)
            .upto_term(4)
            .after(forked()),
        Rule::WhollyCommitted | Rule::MajorityEngagesFirst | Rule::PreviousTermMatches => {
            return None;
        }
    };
    Some(removal)
}

fn request(to: u8, term: u8, from: u8, last: (u8, u8), engage: bool) -> Action {
    let (last_term, last_index) = last;
    let message = Message::VoteRequest {
        term,
        from,
        last_index,
        last_term,
        engage,
    };
    Action::Receive(to, message)
}

fn vote(to: u8, term: u8, from: u8, engaged: bool) -> Action {
    let message = Message::Vote {
        term,
        from,
        to,
        engaged,
    };
    Action::Receive(to, message)
}

/// Replicas 0 and 1 engage in term 2.
fn engaging() -> Vec<Action> {
    vec![
        Action::StandFast(0),
        request(1, 2, 0, (1, 0), true),
        vote(0, 2, 1, true),
    ]
}

/// The same with disks.
fn engaging_durably() -> Vec<Action> {
    vec![
        Action::StandFast(0),
        Action::Persist(0),
        request(1, 2, 0, (1, 0), true),
        Action::Persist(1),
        vote(0, 2, 1, true),
    ]
}

/// Then replica 0 has an entry of the fast term on disk, and software brings it to replica 2.
fn straggling() -> Vec<Action> {
    let append = Message::Append {
        term: 2,
        from: 0,
        log: one_entry(2, Mover::Plane),
    };
    let mut steps = engaging_durably();
    steps.extend([
        Action::Submit(0),
        Action::Persist(0),
        Action::Receive(2, append),
    ]);
    steps
}

fn one_entry(term: u8, by: Mover) -> Log {
    let mut log = Log::default();
    log.push(Entry { term, by });
    log
}

/// Replica 0 has an entry of term 1, replica 1 leads term 2 with another in its place, and neither has
/// reached replica 2 (the Raft paper's figure 8).
fn forked() -> Vec<Action> {
    vec![
        Action::Propose(0),
        Action::Stand(1),
        request(2, 2, 1, (1, 0), false),
        vote(1, 2, 2, false),
        request(0, 2, 1, (1, 0), false),
    ]
}

/// The same with disks; then replica 0 leads term 3, brings its old entry to replica 2, and crashes
/// before the entry of its own term is on disk.
fn forked_durably() -> Vec<Action> {
    let append = Message::Append {
        term: 3,
        from: 0,
        log: one_entry(1, Mover::Software),
    };
    vec![
        Action::Propose(0),
        Action::Persist(0),
        Action::Stand(1),
        Action::Persist(1),
        request(2, 2, 1, (1, 0), false),
        Action::Persist(2),
        vote(1, 2, 2, false),
        request(0, 2, 1, (1, 0), false),
        Action::Stand(0),
        Action::Persist(0),
        request(2, 3, 0, (1, 1), false),
        Action::Persist(2),
        vote(0, 3, 2, false),
        Action::Receive(2, append),
        Action::Persist(2),
        Action::Crash(0),
    ]
}

#[test]
fn without_a_rule_there_is_harm() {
    for rule in Rule::ALL {
        if let Some(removal) = removal(rule) {
            removal.harms(&[rule]);
        }
    }
}

#[test]
fn two_rules_of_which_one_is_enough() {
    let pair = [Rule::WhollyCommitted, Rule::MajorityEngagesFirst];
    Removal::violates(Safety::StateMachineSafety).harms(&pair);
    for rule in pair {
        finds_nothing(rule);
    }
}

#[test]
fn the_previous_term_is_a_second_line() {
    finds_nothing(Rule::PreviousTermMatches);
}

/// Searches everything within the bounds for any violation.
fn finds_nothing(rule: Rule) {
    let model = Handover::new(Durability::Memory, SMALL).without(rule);
    let name = format!("without {rule:?}, and nothing found");
    whole(&name, model, &Safety::ALL.map(Safety::name), &[]);
}

//! Searches of models that have rules: of a whole space, and for the way to harm without a rule. Knows no
//! model.
use stateright::{Checker, HasDiscoveries, Model};
use std::fmt::Debug;
use std::hash::Hash;
use std::time::Instant;

/// How a model that is searched differs from the one with every rule in force and all names.
#[derive(Clone, Debug)]
pub struct Variant<A, R> {
    /// Rules that are not obeyed.
    removed: Vec<R>,
    /// States that differ only in names are one. Steps of a path then rename.
    pub nameless: bool,
    /// What has happened before the search begins: each must be possible when it is its turn.
    lead_in: Vec<A>,
}

impl<A, R> Default for Variant<A, R> {
    fn default() -> Self {
        Self {
            removed: Vec::new(),
            nameless: false,
            lead_in: Vec::new(),
        }
    }
}

impl<A: Copy + Debug, R: PartialEq> Variant<A, R> {
    /// Whether this rule is in force.
    pub fn holds(&self, rule: &R) -> bool {
        !self.removed.contains(rule)
    }

    /// Where the search begins.
    ///
    /// # Panics
    ///
    /// If a step of the lead-in cannot happen.
    pub fn behind_lead_in<S: Debug>(&self, first: S, step: impl Fn(&S, A) -> Option<S>) -> S {
        let steps = self.lead_in.iter().enumerate();
        steps.fold(first, |state, (place, action)| {
            let next = step(&state, *action);
            next.unwrap_or_else(|| panic!("lead-in {place}: {action:?} in {state:#?}"))
        })
    }
}

/// A model of which there are variants.
pub trait Varied:
    Model<Action: Copy + Debug + PartialEq, State: Clone + Debug + Hash + PartialEq + Send + Sync>
    + Clone
    + Send
    + Sync
    + 'static
{
    /// What can be left out of it.
    type Rule: Copy + Debug + PartialEq;

    /// How it differs.
    fn variant(&mut self) -> &mut Variant<Self::Action, Self::Rule>;

    /// The same without this rule.
    #[must_use]
    fn without(mut self, rule: Self::Rule) -> Self {
        self.variant().removed.push(rule);
        self
    }

    /// The same, with states that differ only in names taken for one.
    #[must_use]
    fn nameless(mut self) -> Self {
        self.variant().nameless = true;
        self
    }

    /// The same, searched only behind these steps.
    #[must_use]
    fn after(mut self, lead_in: &[Self::Action]) -> Self {
        self.variant().lead_in = lead_in.to_vec();
        self
    }
}

/// Searches all of a space, in which what must never be is not, and all of `reached` is. How many states it
/// has; printed with the depth and the time.
pub fn whole<M: Varied>(
    name: &str,
    model: M,
    never: &[&'static str],
    reached: &[&'static str],
) -> usize {
    let begun_at = Instant::now();
    let checker = model.nameless().checker().threads(2).spawn_bfs().join();
    let (count, depth) = (checker.unique_state_count(), checker.max_depth());
    let seconds = begun_at.elapsed().as_secs_f32();
    println!("{name}: {count} unique states, depth {depth}, {seconds:.1} s");
    for never in never {
        checker.assert_no_discovery(never);
    }
    for reached in reached {
        checker.assert_any_discovery(reached);
    }
    count
}

/// A search for the way to harm: what it is, and how far the search goes. With one thread the way is always
/// the same.
#[derive(Clone, Copy, Debug)]
pub struct Harm {
    /// The property that is violated.
    pub property: &'static str,
    /// How many threads search.
    pub threads: usize,
    /// What is sought is found, or everything is searched, well before this many states.
    pub states_max: usize,
}

impl Harm {
    /// Without these rules there is a way, which is printed, lead-in first. Behind a lead-in there must be
    /// none as deep with all rules in force; else the search of the whole space says so.
    ///
    /// # Panics
    ///
    /// If there is no way, or one with the rules in force.
    pub fn comes_without<M: Varied>(&self, rules: &[M::Rule], mut model: M) {
        let without = rules
            .iter()
            .fold(model.clone(), |it, rule| it.without(*rule));
        let steps = self.way(without, usize::MAX);
        assert!(!steps.is_empty(), "without {rules:?} nothing was found");
        let given = model.variant().lead_in.clone();
        let (count, name) = (given.len() + steps.len(), self.property);
        println!(
            "without {rules:?}: {count} steps against \"{name}\" ({} given)",
            given.len()
        );
        for step in given.iter().chain(&steps) {
            println!("    {step:?}");
        }
        if !given.is_empty() {
            let with = self.way(model, steps.len() + 2);
            assert!(
                with.is_empty(),
                "the harm is there with {rules:?} in force, too"
            );
        }
    }

    /// The steps to the violation, not deeper than this; none if there is no way.
    fn way<M: Varied>(&self, model: M, depth_max: usize) -> Vec<M::Action> {
        let checker = model.checker().threads(self.threads);
        let checker = checker
            .target_state_count(self.states_max)
            .target_max_depth(depth_max)
            .finish_when(HasDiscoveries::AnyFailures)
            .spawn_bfs()
            .join();
        let path = checker.discovery(self.property);
        path.map(stateright::Path::into_actions).unwrap_or_default()
    }
}

//! The search: takes calls one by one in every order their times allow, depth first, and never enters
//! the same situation twice. Knows operations only through `register`.

use std::collections::{HashMap, HashSet};

use super::preparation::KeyHistory;
use super::register::{self, State};
use crate::history::Value;

/// What the search found.
#[derive(Debug)]
pub(super) enum Outcome {
    Linearizable { states_visited: u64 },
    NotLinearizable,
    Exhausted,
}

/// Searches for an order of all certain and any possible calls that explains every answer.
pub(super) fn search(prepared: &KeyHistory, states_max: u64) -> Outcome {
    Search::new(prepared).run(states_max)
}

#[derive(Clone, Copy, Debug)]
enum Move {
    Certain(usize),
    Possible(usize),
}

/// One call taken, and what else could have been taken instead.
struct Frame {
    taken: Move,
    state_before: State,
    highest_before: usize,
    /// Not tried yet, the best last.
    others: Vec<(Move, State)>,
}

struct Search<'a> {
    prepared: &'a KeyHistory,
    state: State,
    /// Which certain calls are taken, one bit each.
    taken: Vec<u64>,
    /// The certain calls not taken, linked in order of invocation; position 0 is the anchor.
    next: Vec<usize>,
    previous: Vec<usize>,
    /// One past the highest certain call ever on the current path.
    highest: usize,
    /// How many of each kind of possible calls are taken.
    used: Vec<usize>,
    /// How many open certain calls found each value.
    observers: HashMap<Value, usize>,
    path: Vec<Frame>,
    seen: HashSet<Box<[u64]>>,
}

impl<'a> Search<'a> {
    fn new(prepared: &'a KeyHistory) -> Self {
        let count = prepared.certain.len();
        Self {
            prepared,
            state: None,
            taken: vec![0; count.div_ceil(64)],
            next: (1..=count).chain([0]).collect(),
            previous: [count].into_iter().chain(0..count).collect(),
            highest: 0,
            used: vec![0; prepared.possible.len()],
            observers: prepared.observers.clone(),
            path: Vec::new(),
            seen: HashSet::new(),
        }
    }

    fn run(mut self, states_max: u64) -> Outcome {
        let mut states_visited = 0;
        let mut moves = self.moves();
        while self.next[0] != 0 {
            let Some((best, state)) = moves.pop() else {
                match self.step_back() {
                    Some(others) => moves = others,
                    None => return Outcome::NotLinearizable,
                }
                continue;
            };
            self.take(best, state, moves);
            states_visited += 1;
            if states_visited > states_max {
                return Outcome::Exhausted;
            }
            // A call that only looked had no alternative: what follows it is remembered by what led to it.
            moves = if !self.only_looked(best) && !self.seen.insert(self.situation()) {
                Vec::new()
            } else {
                self.moves()
            };
        }
        Outcome::Linearizable { states_visited }
    }

    /// What may be taken now, the best last. A call that only looked and fits is taken at once and
    /// alone: wherever else an order takes it, it could as well be taken here.
    fn moves(&mut self) -> Vec<(Move, State)> {
        let mut fitting: Vec<(u64, Move, State)> = Vec::new();
        let mut first_return_ns = u64::MAX;
        let mut position = self.next[0];
        while position != 0 {
            let call = &self.prepared.certain[position - 1];
            if call.invoked_ns > first_return_ns {
                break;
            }
            first_return_ns = first_return_ns.min(call.returned_ns);
            if let Some(state) = register::after(self.state, call.operation, Some(call.answer)) {
                let this = Move::Certain(position - 1);
                if register::only_looked(call.operation, call.answer) {
                    return vec![(this, state)];
                }
                if self.may_overwrite(usize::from(call.found.is_some())) {
                    fitting.push((call.returned_ns, this, state));
                }
            }
            position = self.next[position];
        }
        fitting.sort_by_key(|(returned_ns, ..)| std::cmp::Reverse(*returned_ns));
        let certain = fitting.into_iter().map(|(_, this, state)| (this, state));
        let mut moves = self.possible_moves(first_return_ns);
        moves.extend(certain);
        moves
    }

    /// Calls of unknown outcome that may have taken effect here: tried last, for a healthy history
    /// rarely needs them.
    fn possible_moves(&self, first_return_ns: u64) -> Vec<(Move, State)> {
        let mut moves = Vec::new();
        if !self.may_overwrite(0) {
            return moves;
        }
        for (kind, alike) in self.prepared.possible.iter().enumerate() {
            let invoked = alike.invoked_ns.get(self.used[kind]);
            if invoked.is_some_and(|invoked| *invoked <= first_return_ns)
                && let Some(state) = register::after(self.state, alike.operation, None)
                && state != self.state
            {
                moves.push((Move::Possible(kind), state));
            }
        }
        moves
    }

    /// Whether what is there may go: no call that found it is open, but for those (0 or 1) that go with
    /// it.
    fn may_overwrite(&self, observers_taken: usize) -> bool {
        let observers = self.state.and_then(|value| self.observers.get(&value));
        observers.is_none_or(|open| *open <= observers_taken)
    }

    fn only_looked(&self, taken: Move) -> bool {
        match taken {
            Move::Certain(index) => {
                let call = &self.prepared.certain[index];
                register::only_looked(call.operation, call.answer)
            }
            Move::Possible(_) => false,
        }
    }

    fn take(&mut self, taken: Move, state: State, others: Vec<(Move, State)>) {
        self.path.push(Frame {
            taken,
            state_before: self.state,
            highest_before: self.highest,
            others,
        });
        self.state = state;
        match taken {
            Move::Certain(index) => {
                self.taken[index / 64] |= 1 << (index % 64);
                self.highest = self.highest.max(index + 1);
                if let Some(open) = self.observers_of(index) {
                    *open -= 1;
                }
                let (before, after) = (self.previous[index + 1], self.next[index + 1]);
                self.next[before] = after;
                self.previous[after] = before;
            }
            Move::Possible(kind) => self.used[kind] += 1,
        }
    }

    /// Takes the last call back; the alternatives to it, or `None` when nothing is left to take back.
    fn step_back(&mut self) -> Option<Vec<(Move, State)>> {
        let frame = self.path.pop()?;
        self.state = frame.state_before;
        self.highest = frame.highest_before;
        match frame.taken {
            Move::Certain(index) => {
                self.taken[index / 64] &= !(1 << (index % 64));
                if let Some(open) = self.observers_of(index) {
                    *open += 1;
                }
                let (before, after) = (self.previous[index + 1], self.next[index + 1]);
                self.next[before] = index + 1;
                self.previous[after] = index + 1;
            }
            Move::Possible(kind) => self.used[kind] -= 1,
        }
        Some(frame.others)
    }

    /// The count of open calls that found the same as this one.
    fn observers_of(&mut self, index: usize) -> Option<&mut usize> {
        let value = self.prepared.certain[index].found?;
        self.observers.get_mut(&value)
    }

    /// All that decides what can follow: the state, and which calls are taken.
    fn situation(&self) -> Box<[u64]> {
        let count = self.prepared.certain.len();
        let first_open = match self.next[0] {
            0 => count,
            position => position - 1,
        };
        let words = first_open / 64..self.highest.div_ceil(64).max(first_open / 64);
        let used = self.used.iter().map(|used| *used as u64);
        [
            first_open as u64,
            u64::from(self.state.is_some()),
            self.state.unwrap_or_default(),
        ]
        .into_iter()
        .chain(used)
        .chain(self.taken[words].iter().copied())
        .collect()
    }
}

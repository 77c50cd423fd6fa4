//! The requests of one client that wait for their answers, in the order sent, and how far the reads among
//! them are. What a request is besides, only whoever drives the group knows.
use crate::group::Group;
use crate::order::{Around, ReadState, ReadStep};
use crate::requester::Requester;
use crate::waiting::Reader;
use quorumwire_interfaces::{Application, DataPlane, Index, Reason};
use std::collections::VecDeque;

/// A request that waits, as its order sees it.
pub trait Ordered {
    /// Where it stands, if it is a read.
    fn read_state(&self) -> Option<ReadState>;

    /// See [`Self::read_state`].
    fn read_state_mut(&mut self) -> Option<&mut ReadState>;

    /// Whether it is a write.
    fn is_write(&self) -> bool;

    /// Whether its answer is known, and waits for its turn.
    fn is_answered(&self) -> bool;
}

/// All of one client that wait. Each has a number, one more than the one before it.
#[derive(Debug)]
pub struct Row<R> {
    requests: VecDeque<R>,
    /// The number of the first.
    first: u64,
    writes: usize,
    reads: usize,
    /// The index that its first read is to be looked at again for.
    awaited: Index,
}

impl<R> Default for Row<R> {
    fn default() -> Self {
        Self {
            requests: VecDeque::new(),
            first: 0,
            writes: 0,
            reads: 0,
            awaited: Index(0),
        }
    }
}

impl<R: Ordered> Row<R> {
    /// Adds one; its number.
    pub fn push(&mut self, request: R) -> u64 {
        let number = self.next_number();
        self.writes += usize::from(request.is_write());
        self.reads += usize::from(request.read_state().is_some());
        self.requests.push_back(request);
        number
    }

    /// Takes the first one off.
    pub fn pop(&mut self) -> Option<R> {
        let request = self.requests.pop_front()?;
        self.first += 1;
        self.writes -= usize::from(request.is_write());
        self.reads -= usize::from(request.read_state().is_some());
        Some(request)
    }

    /// Makes the first one something else.
    pub fn change_first(&mut self, change: impl FnOnce(&mut R)) {
        let Some(request) = self.requests.front_mut() else {
            return;
        };
        self.writes -= usize::from(request.is_write());
        self.reads -= usize::from(request.read_state().is_some());
        change(request);
        self.writes += usize::from(request.is_write());
        self.reads += usize::from(request.read_state().is_some());
    }

    /// The first one.
    #[must_use]
    pub fn first(&self) -> Option<&R> {
        self.requests.front()
    }

    /// The first one. It stays what it is: a write, a read, or neither.
    pub fn first_mut(&mut self) -> Option<&mut R> {
        self.requests.front_mut()
    }

    /// The last one; likewise.
    pub fn last_mut(&mut self) -> Option<&mut R> {
        self.requests.back_mut()
    }

    /// The one with this number, likewise, and whether it is the first.
    pub fn with_number(&mut self, number: u64) -> Option<(&mut R, bool)> {
        let behind = usize::try_from(number.checked_sub(self.first)?).ok()?;
        Some((self.requests.get_mut(behind)?, behind == 0))
    }

    /// All, the first one first.
    pub fn iter(&self) -> impl Iterator<Item = &R> {
        self.requests.iter()
    }

    /// How many wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// For how many there is memory.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.requests.capacity()
    }

    /// The number of the first one.
    #[must_use]
    pub const fn first_number(&self) -> u64 {
        self.first
    }

    /// The number that the next one will have.
    #[must_use]
    pub fn next_number(&self) -> u64 {
        self.first + self.requests.len() as u64
    }

    /// How many writes wait.
    #[must_use]
    pub const fn writes(&self) -> usize {
        self.writes
    }

    /// How many reads wait.
    #[must_use]
    pub const fn reads(&self) -> usize {
        self.reads
    }

    /// The numbers of reads in front of this one that have no answer.
    #[must_use]
    pub fn open_reads_before(&self, number: u64) -> Vec<u64> {
        if self.reads == 0 {
            return Vec::new();
        }
        let is_open = |it: &R| it.read_state().is_some() && !it.is_answered();
        let numbered = (self.first..number).zip(&self.requests);
        numbered
            .filter(|(_, it)| is_open(it))
            .map(|(number, _)| number)
            .collect()
    }

    /// All reads in one state are in another one.
    pub fn replace_states(&mut self, old: ReadState, new: ReadState) {
        for state in self.requests.iter_mut().filter_map(R::read_state_mut) {
            if *state == old {
                *state = new;
            }
        }
    }

    /// The read at the front is in this state.
    pub fn set_first_state(&mut self, new: ReadState) {
        if let Some(state) = self.requests.front_mut().and_then(R::read_state_mut) {
            *state = new;
        }
    }

    /// What its first read waited for will not be: it says anew what it waits for.
    pub const fn wait_anew(&mut self) {
        self.awaited = Index(0);
    }

    /// The first read, and those right behind it that wait for the same, wait for this now.
    fn set_gated_states(&mut self, new: ReadState) {
        for request in &mut self.requests {
            match request.read_state_mut() {
                Some(state @ ReadState::Gated(_)) => *state = new,
                Some(_) | None => return,
            }
        }
    }

    fn has_undecided_write(&self) -> bool {
        let is_undecided = |it: &R| it.is_write() && !it.is_answered();
        self.writes > 0 && self.requests.iter().any(is_undecided)
    }
}

/// What whoever drives the group does with the read at the front of a row.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FirstRead {
    /// Answers it, out of the state machine as it is now.
    Answer,
    /// Refuses it, for this reason.
    Refuse(Reason),
    /// Sends it to the leader.
    Forward,
    /// Nothing, until something else happens.
    Wait,
}

impl<S: Application, O: Requester, P: DataPlane + ?Sized> Group<S, O, P> {
    /// How the read at the front of a row gets on. `reader` is who is told when there is more to be done,
    /// `line` what is asked. `keeps_order`: the client was promised the answers of carrying its requests out
    /// one after the other.
    pub fn advance_read<R: Ordered>(
        &mut self,
        row: &mut Row<R>,
        reader: O::Reader,
        keeps_order: bool,
        line: &[u8],
    ) -> FirstRead {
        let Some(state) = row.first().and_then(R::read_state) else {
            return FirstRead::Wait;
        };
        if state.waits_for_others() {
            return FirstRead::Wait;
        }
        let around = Around {
            write_behind: row.writes > 0,
            undecided_write: !self.leads() && keeps_order && row.has_undecided_write(),
        };
        let (stands, step) = self.read_step(state, around, line);
        if stands != state {
            row.set_first_state(stands);
        }
        match step {
            ReadStep::Answer => FirstRead::Answer,
            ReadStep::Refuse(reason) => FirstRead::Refuse(reason),
            ReadStep::Wait(index) => {
                if std::mem::replace(&mut row.awaited, index) != index {
                    self.wait_for(index, Reader::Here(reader));
                }
                FirstRead::Wait
            }
            ReadStep::AskRound => {
                let must_apply = self.read_barrier();
                let ticket = self.ask_round(must_apply, Reader::Here(reader));
                row.set_gated_states(ReadState::Round(ticket));
                FirstRead::Wait
            }
            ReadStep::Forward => FirstRead::Forward,
            ReadStep::Nothing => FirstRead::Wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorumwire_control::Ticket;

    struct One {
        state: Option<ReadState>,
        is_write: bool,
        is_answered: bool,
    }

    impl Ordered for One {
        fn read_state(&self) -> Option<ReadState> {
            self.state
        }

        fn read_state_mut(&mut self) -> Option<&mut ReadState> {
            self.state.as_mut()
        }

        fn is_write(&self) -> bool {
            self.is_write
        }

        fn is_answered(&self) -> bool {
            self.is_answered
        }
    }

    const fn write() -> One {
        One {
            state: None,
            is_write: true,
            is_answered: false,
        }
    }

    const fn read(state: ReadState) -> One {
        One {
            state: Some(state),
            is_write: false,
            is_answered: false,
        }
    }

    #[test]
    fn each_has_its_number_however_many_were_answered() {
        let mut row = Row::default();
        for number in 0..5 {
            assert_eq!(row.push(write()), number);
        }
        row.pop();
        row.pop();
        assert_eq!((row.first_number(), row.next_number()), (2, 5));
        assert!(row.with_number(1).is_none() && row.with_number(5).is_none());
        assert!(matches!(row.with_number(2), Some((_, true))));
        assert!(matches!(row.with_number(4), Some((_, false))));
    }

    #[test]
    fn writes_and_reads_are_counted_also_when_one_becomes_the_other() {
        let mut row = Row::default();
        row.push(read(ReadState::ANEW));
        row.push(write());
        assert_eq!((row.reads(), row.writes()), (1, 1));
        row.change_first(|it| *it = write());
        assert_eq!((row.reads(), row.writes()), (0, 2));
        row.pop();
        row.pop();
        assert_eq!((row.reads(), row.writes()), (0, 0));
    }

    #[test]
    fn open_reads_are_those_without_an_answer_in_front() {
        let mut row = Row::default();
        row.push(read(ReadState::ANEW));
        row.push(read(ReadState::ANEW));
        row.push(write());
        row.push(read(ReadState::ANEW));
        row.with_number(0).unwrap().0.is_answered = true;
        assert_eq!(row.open_reads_before(2), [1]);
        assert_eq!(row.open_reads_before(4), [1, 3]);
        row.pop();
        row.pop();
        assert_eq!(row.open_reads_before(3), [0; 0]);
    }

    /// A round answers what was asked before it began, and whoever stands behind another kind of request
    /// came later.
    #[test]
    fn a_round_is_for_the_first_reads_that_wait_for_the_same() {
        let asked = ReadState::Round(Ticket(7));
        let mut row = Row::default();
        row.push(read(ReadState::ANEW));
        row.push(read(ReadState::Gated(Index(3))));
        row.push(write());
        row.push(read(ReadState::ANEW));
        row.set_gated_states(asked);
        let states = |row: &Row<One>| row.iter().map(|it| it.state).collect::<Vec<_>>();
        let gated = Some(ReadState::ANEW);
        assert_eq!(states(&row), [Some(asked), Some(asked), None, gated]);
        row.replace_states(asked, ReadState::Granted(Index(9)));
        let granted = Some(ReadState::Granted(Index(9)));
        assert_eq!(states(&row), [granted, granted, None, gated]);
    }
}

//! Entries and logs, small enough to be copied and hashed by the million.
use std::fmt;

/// Most entries that a log of the model can hold.
pub const LOG_CAPACITY: usize = 4;

/// Who gave an entry its index. It stands for the entry's value: two entries of one term and index that
/// were made by different movers are different commands.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Mover {
    /// Nobody: a hole that a plane without checks has left.
    #[default]
    Nobody,
    /// The leader's software.
    Software,
    /// The leader's plane.
    Plane,
}

/// One entry.
#[derive(Clone, Copy, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Entry {
    /// The term it was made in.
    pub term: u8,
    /// Who made it.
    pub by: Mover,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = match self.by {
            Mover::Nobody => '?',
            Mover::Software => 's',
            Mover::Plane => 'p',
        };
        write!(f, "{}{by}", self.term)
    }
}

/// A log. What stands before its first entry is the same everywhere and committed.
#[derive(Clone, Copy, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Log {
    len: u8,
    entries: [Entry; LOG_CAPACITY],
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.entries())
    }
}

impl Log {
    /// The index of the last entry; 0 if there is none.
    #[must_use]
    pub fn last_index(&self) -> u8 {
        self.len
    }

    /// The term of the last entry, or of what stands before the first.
    #[must_use]
    pub fn last_term(&self) -> u8 {
        self.entries()
            .last()
            .map_or(crate::state::FIRST_TERM, |e| e.term)
    }

    /// All entries; the first has index 1.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries[..usize::from(self.len)]
    }

    /// The entry with this index, which begins at 1.
    #[must_use]
    pub fn at(&self, index: u8) -> Option<Entry> {
        let position = usize::from(index.checked_sub(1)?);
        self.entries().get(position).copied()
    }

    /// Appends an entry; there must be room.
    pub fn push(&mut self, entry: Entry) {
        self.entries[usize::from(self.len)] = entry;
        self.len += 1;
    }

    /// Cuts off everything behind this index.
    pub fn truncate(&mut self, last_index: u8) {
        while self.len > last_index {
            self.len -= 1;
            self.entries[usize::from(self.len)] = Entry::default();
        }
    }

    /// How many entries from the first on two logs have in common.
    #[must_use]
    pub fn common_with(&self, other: &Self) -> u8 {
        let pairs = self.entries().iter().zip(other.entries());
        let equal_count = pairs.take_while(|(mine, theirs)| mine == theirs).count();
        u8::try_from(equal_count).unwrap_or(u8::MAX)
    }

    /// Whether the other log begins with this one.
    #[must_use]
    pub fn is_prefix_of(&self, other: &Self) -> bool {
        self.common_with(other) == self.len
    }
}

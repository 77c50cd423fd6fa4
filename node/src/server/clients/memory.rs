//! What clients' connections hold in memory together, and who goes when it is too much: a client that takes
//! no answers, or sends no whole requests, may hold as much as a connection may hold, and there can be
//! thousands.
use super::{Clients, Connection, ConnectionId, Slot, VecDeque, clock};
use quorumwire_control::Now;
use std::mem::size_of;

/// Who holds less than this is not closed for it.
const MUCH_BYTES: usize = 64 << 10;

/// A longer answer is counted when it comes. Of shorter ones a connection can have no more at once than it
/// may have in its buffer.
const COUNTED_AT_ONCE_BYTES: usize = 2 << 10;

const _: () = assert!(COUNTED_AT_ONCE_BYTES * super::SLOTS_MAX <= super::OUTPUT_BYTES_MAX);

/// What connections hold together.
pub struct Held {
    /// Now, as of when each was last looked at.
    pub bytes: usize,
    /// At most.
    pub bytes_max: usize,
}

impl Default for Held {
    fn default() -> Self {
        Self {
            bytes: 0,
            bytes_max: usize::MAX,
        }
    }
}

/// What one connection holds, as it was counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeldByOne {
    bytes: usize,
    /// Since when it has been much.
    pub(super) much_since: Option<Now>,
}

/// What one connection holds, part by part, in bytes, for people who look.
pub struct Parts {
    /// Requests that came and are not taken on.
    pub requests: usize,
    /// Room for more of them.
    pub request_room: usize,
    /// How many answers wait for those of earlier requests.
    pub answer_count: usize,
    /// See `answer_count`.
    pub answers: usize,
    /// Answers that wait to be taken.
    pub output: usize,
    /// The buffer that those are in.
    pub output_buffer: usize,
    /// All of it, and more.
    pub all: usize,
}

impl Connection {
    /// What it holds, part by part.
    pub fn parts(&self) -> Parts {
        let answers = self.slots.iter().filter(|slot| slot.answer.is_some());
        Parts {
            requests: self.filled,
            request_room: self.input.capacity().saturating_sub(self.filled),
            answer_count: answers.count(),
            answers: self.answers_bytes,
            output: self.output_waiting(),
            output_buffer: self.output.capacity(),
            all: self.held_bytes(),
        }
    }

    /// Memory of its requests and answers.
    fn held_bytes(&self) -> usize {
        self.input.capacity()
            + self.output.capacity()
            + self.lines.capacity()
            + self.answers_bytes
            + self.slots.capacity() * size_of::<Slot>()
            + self.stream.held_bytes()
            + self.front.held_bytes()
    }

    /// Gives back what it does not need for now.
    pub(super) fn give_back(&mut self) {
        if self.lines.is_empty() && self.lines.capacity() > super::KEPT_BUFFER_BYTES {
            self.lines = VecDeque::new();
        }
    }
}

impl Clients {
    /// Counts anew what it holds.
    pub(super) fn count_held(&mut self, connection: &mut Connection) {
        let bytes = connection.held_bytes();
        let before = connection.held;
        connection.held.bytes = bytes;
        connection.held.much_since = match before.much_since {
            _ if bytes < MUCH_BYTES => None,
            None => Some(clock::now()),
            since => since,
        };
        self.held.bytes = (self.held.bytes + bytes).saturating_sub(before.bytes);
    }

    pub(super) fn forget_held(&mut self, connection: &Connection) {
        self.held.bytes = self.held.bytes.saturating_sub(connection.held.bytes);
    }

    /// The same at once for a connection that an answer of so many bytes came for: many may come before it is
    /// looked at.
    pub fn count_answer(&mut self, id: ConnectionId, answer_bytes: usize) {
        if answer_bytes < COUNTED_AT_ONCE_BYTES {
            return;
        }
        if let Some(mut connection) = self.take(id) {
            self.count_held(&mut connection);
            self.put_back(connection);
        }
    }

    /// Closes, if all hold too much together, whoever has held the most for the longest.
    pub fn shed(&mut self, now: Now) -> Option<ConnectionId> {
        if self.held.bytes <= self.held.bytes_max {
            return None;
        }
        let cost = |connection: &Connection| {
            let since = connection.held.much_since?;
            let held_ms = now.0.saturating_sub(since.0).as_millis() + 1;
            Some((held_ms * connection.held.bytes as u128, connection.id))
        };
        let (_, id) = self.iter().filter_map(cost).max_by_key(|(cost, _)| *cost)?;
        let connection = self.take(id)?;
        self.counters.closed_for_memory += 1;
        self.close(connection);
        Some(id)
    }
}

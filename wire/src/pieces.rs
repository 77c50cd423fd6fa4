//! Commands and values longer than a packet: how they are cut, and which pieces are on their way and which
//! are in the log.
use std::ops::Range;

/// Bytes before a piece's own: its number and the count of pieces, 32 bits each.
pub const PIECE_HEADER_BYTES: usize = 8;

/// What stands before a piece's own bytes.
#[must_use]
pub fn piece_header(number: u32, count: u32) -> [u8; PIECE_HEADER_BYTES] {
    let mut head = [0; PIECE_HEADER_BYTES];
    let (first, second) = head.split_at_mut(4);
    first.copy_from_slice(&number.to_be_bytes());
    second.copy_from_slice(&count.to_be_bytes());
    head
}

/// Pieces of one command that may be on their way: what a replica's socket holds for a client while the
/// replica is busy, several times over.
pub const PIECES_IN_FLIGHT_MAX: usize = 32;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Piece {
    ToSend,
    Sent,
    Kept,
}

/// The pieces of one command.
#[derive(Debug)]
pub struct Pieces {
    states: Vec<Piece>,
    command_bytes: usize,
    piece_bytes: usize,
    in_flight: usize,
    /// All before it need not be sent.
    first_to_send: usize,
    /// All were kept, and still no answer came.
    asked_for_answer: bool,
}

impl Pieces {
    /// Of a command that is longer than one piece, in pieces of so many bytes, the last one perhaps less.
    #[must_use]
    pub fn of(command: &[u8], piece_bytes: usize) -> Self {
        Self {
            states: vec![Piece::ToSend; command.len().div_ceil(piece_bytes.max(1))],
            command_bytes: command.len(),
            piece_bytes,
            in_flight: 0,
            first_to_send: 0,
            asked_for_answer: false,
        }
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u32 {
        u32::try_from(self.states.len()).unwrap_or(u32::MAX) // a command has a limit, so its pieces do
    }

    /// The next one to send, with its place in the command, if one may be sent now.
    pub fn next_to_send(&mut self) -> Option<(u32, Range<usize>)> {
        if self.in_flight >= PIECES_IN_FLIGHT_MAX {
            return None;
        }
        let behind = &self.states[self.first_to_send..];
        let found = behind.iter().position(|state| *state == Piece::ToSend);
        let number = self.first_to_send + found?;
        self.first_to_send = number + 1;
        self.states[number] = Piece::Sent;
        self.in_flight += 1;
        let start = number * self.piece_bytes;
        let end = self.command_bytes.min(start + self.piece_bytes);
        Some((u32::try_from(number).ok()?, start..end))
    }

    /// This one is in the log; whether that is news.
    pub fn keep(&mut self, number: u32) -> bool {
        let state = usize::try_from(number).ok();
        let Some(state) = state.and_then(|number| self.states.get_mut(number)) else {
            return false;
        };
        match std::mem::replace(state, Piece::Kept) {
            Piece::Kept => return false,
            Piece::Sent => self.in_flight -= 1,
            Piece::ToSend => {}
        }
        true
    }

    /// Nothing was heard for a while: what is on its way counts as lost. If all were kept, the answer was
    /// lost, and the last piece asks for it; if that brings none, the replicas have dropped the pieces for
    /// want of room, and all are sent again.
    pub fn lost(&mut self) {
        self.in_flight = 0;
        self.first_to_send = 0;
        let all_kept = self.states.iter().all(|state| *state == Piece::Kept);
        if all_kept && !self.asked_for_answer {
            self.asked_for_answer = true;
            if let Some(last) = self.states.last_mut() {
                *last = Piece::ToSend;
            }
            return;
        }
        let start_over = all_kept || self.asked_for_answer;
        self.asked_for_answer = false;
        for state in &mut self.states {
            if *state == Piece::Sent || start_over {
                *state = Piece::ToSend;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIECE_BYTES: usize = 10;

    fn sent(pieces: &mut Pieces) -> Vec<u32> {
        std::iter::from_fn(|| pieces.next_to_send().map(|(number, _)| number)).collect()
    }

    #[test]
    fn pieces_cover_a_command_and_few_are_on_their_way() {
        let command = vec![0; 40 * PIECE_BYTES + 1];
        let mut pieces = Pieces::of(&command, PIECE_BYTES);
        assert_eq!(pieces.count(), 41);
        let mut covered = 0;
        for expected in 0..41 {
            let (number, range) = pieces.next_to_send().unwrap();
            assert_eq!((number, range.start), (expected, covered));
            covered = range.end;
            assert!(pieces.keep(number) && !pieces.keep(number));
        }
        assert_eq!(covered, command.len());
        assert_eq!(pieces.next_to_send(), None);
        assert!(!pieces.keep(41));
        let mut pieces = Pieces::of(&command, PIECE_BYTES);
        assert_eq!(sent(&mut pieces).len(), PIECES_IN_FLIGHT_MAX);
        assert!(pieces.keep(3));
        assert_eq!(sent(&mut pieces), [32]);
    }

    #[test]
    fn what_was_lost_is_sent_again_and_no_more() {
        let mut pieces = Pieces::of(&[0; 5 * PIECE_BYTES], PIECE_BYTES);
        assert_eq!(sent(&mut pieces), [0, 1, 2, 3, 4]);
        for kept in [0, 2, 4] {
            pieces.keep(kept);
        }
        pieces.lost();
        assert_eq!(sent(&mut pieces), [1, 3]);
        pieces.keep(1);
        pieces.keep(3);
        pieces.lost();
        assert_eq!(sent(&mut pieces), [4], "asks for the answer");
        pieces.lost();
        assert_eq!(sent(&mut pieces), [0, 1, 2, 3, 4], "begins anew");
        pieces.lost();
        assert_eq!(sent(&mut pieces), [0, 1, 2, 3, 4]);
    }

    /// The piece that asks for the answer may itself be kept (its command had been dropped meanwhile).
    #[test]
    fn a_piece_that_asked_for_the_answer_and_was_kept_begins_anew() {
        let mut pieces = Pieces::of(&[0; 2 * PIECE_BYTES], PIECE_BYTES);
        for number in sent(&mut pieces) {
            pieces.keep(number);
        }
        pieces.lost();
        assert_eq!(sent(&mut pieces), [1]);
        assert!(pieces.keep(1));
        pieces.lost();
        assert_eq!(sent(&mut pieces), [0, 1]);
    }
}

//! What a connection keeps of each request until it is answered, and how the answers find their places.
use super::{Connection, LINES_BYTES_MAX};
use crate::server::origin::{Group, Reader};
use crate::server::read_line::ReadLine;
use quorumwire_group::{AnswerKind, FirstRead, Ordered, ReadState};
use quorumwire_interfaces::{Application, Reason};
use quorumwire_kv::QueryForm;

/// A request that waits for its answer.
#[derive(Debug)]
pub struct Slot {
    /// What it is.
    pub kind: SlotKind,
    /// The answer, if it came before those of earlier requests.
    pub answer: Option<Box<[u8]>>,
    /// What that is.
    pub said: AnswerKind,
    /// The client wants no answer.
    pub quiet: bool,
    /// What it is likely to cost others; see `clients/overdrawn.rs`.
    pub work: u32,
}

/// What a waiting request is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SlotKind {
    /// A write: in the log, or on its way to the leader.
    Write,
    /// A read; its line is the next in `lines`.
    Read {
        /// Length of the line.
        line_bytes: u32,
        /// What its service saw it to be.
        form: QueryForm,
        /// How many keys it asks for.
        keys: u32,
        /// How many of its keys are answered already.
        keys_done: u32,
        /// So many of its keys are asked of the leader at once: together with more of them the answer is too
        /// large for a message between replicas.
        keys_at_once: u32,
        /// Where it stands.
        state: ReadState,
    },
    /// About the server: what belongs to more than this connection knows the answer.
    Question,
    /// Known already, waits for its turn.
    Text(&'static [u8]),
    /// Statistics, made when their turn comes.
    Stats(Statistics),
    /// Close once everything before it is answered.
    Quit,
}

/// Which statistics a client asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Statistics {
    /// `stats`
    General,
    /// `stats settings`
    Settings,
    /// `stats slabs`: there are none.
    Slabs,
    /// `stats sizes`: they are not followed.
    Sizes,
    /// `stats reset`
    Reset,
}

impl Connection {
    /// Adds a request without a line.
    pub fn push(&mut self, kind: SlotKind, answer: Option<Box<[u8]>>) {
        let quiet = self.front.is_quiet();
        self.push_slot(Slot {
            kind,
            answer,
            said: AnswerKind::Answer,
            quiet,
            work: 0,
        });
    }

    /// Adds a write that is on its way and likely to cost so much; `quiet`: its client wants no answer.
    pub fn push_write(&mut self, quiet: bool, work: usize) {
        self.push_slot(Slot {
            kind: SlotKind::Write,
            answer: None,
            said: AnswerKind::Answer,
            quiet,
            work: u32::try_from(work).unwrap_or(u32::MAX),
        });
    }

    /// Adds a write that was refused; `instead` of the usual words, if that is not empty.
    pub fn push_refused_write(&mut self, quiet: bool, reason: Reason, instead: &str) {
        self.push_slot(Slot {
            kind: SlotKind::Write,
            answer: Some(instead.as_bytes().into()),
            said: AnswerKind::Refused(reason),
            quiet,
            work: 0,
        });
    }

    fn push_slot(&mut self, slot: Slot) {
        self.work_waiting += slot.work as usize;
        self.answers_bytes += slot.answer.as_ref().map_or(0, |answer| answer.len());
        self.front.took_on();
        self.slots.push(slot);
    }

    /// Writes the answer to the first request, in the words of the client's protocol.
    pub fn put_answer(&mut self, said: AnswerKind, answer: &[u8]) {
        self.front.put_answer(&mut self.output, said, answer);
    }

    /// Whether the lines of the reads that wait leave room for another.
    pub fn has_room_for_line(&self) -> bool {
        self.lines.len() < LINES_BYTES_MAX
    }

    /// Adds a read and keeps its line.
    pub fn push_read_line(&mut self, read: ReadLine<'_>, keys: u32, state: ReadState) {
        let ReadLine { line, form } = read;
        self.lines.extend(line);
        self.keys_waiting += keys as usize;
        let line_bytes = u32::try_from(line.len()).expect("no line is longer than a command");
        let kind = SlotKind::Read {
            line_bytes,
            form,
            keys,
            keys_done: 0,
            keys_at_once: u32::MAX,
            state,
        };
        self.push(kind, None);
    }

    /// The line of the first read that waits, and where its answer goes.
    pub fn first_line_and_output(&mut self, line_bytes: u32) -> (&[u8], &mut Vec<u8>) {
        let line = &self.lines.make_contiguous()[..line_bytes as usize];
        (line, &mut self.output)
    }

    /// The line of the read with this number.
    pub fn line(&self, number: u64) -> Vec<u8> {
        let mut begin = 0;
        for (slot, at) in self.slots.iter().zip(self.slots.first_number()..) {
            if let SlotKind::Read { line_bytes, .. } = slot.kind {
                let end = begin + line_bytes as usize;
                if at == number {
                    return self.lines.range(begin..end).copied().collect();
                }
                begin = end;
            }
        }
        Vec::new()
    }

    /// How the first read gets on, whose line has so many bytes.
    pub fn advance_first<A: Application>(
        &mut self,
        group: &mut Group<A>,
        line_bytes: u32,
    ) -> FirstRead {
        let state = self.slots.first().and_then(Slot::read_state);
        if state.is_none_or(ReadState::waits_for_others) {
            return FirstRead::Wait; // its line is not looked for
        }
        let keeps_order = self.front.keeps_order();
        let line = &self.lines.make_contiguous()[..line_bytes as usize];
        group.advance_read(&mut self.slots, Reader::Client(self.id), keeps_order, line)
    }

    /// Keeps the answer of the slot with this number until its turn comes.
    pub fn keep_answer(&mut self, number: u64, said: AnswerKind, answer: &[u8]) {
        let Some((slot, _)) = self.slot_mut(number) else {
            return;
        };
        slot.said = said;
        let before = slot.answer.replace(answer.into());
        self.answers_bytes += answer.len();
        self.answers_bytes -= before.map_or(0, |before| before.len());
    }

    /// What the first slot holds; the slot itself stays, without its answer.
    pub fn take_first_slot(&mut self) -> Option<Slot> {
        let slot = self.slots.first_mut()?;
        let taken = Slot {
            kind: slot.kind,
            answer: slot.answer.take(),
            said: slot.said,
            quiet: slot.quiet,
            work: slot.work,
        };
        self.answers_bytes -= taken.answer.as_ref().map_or(0, |answer| answer.len());
        Some(taken)
    }

    /// Takes the first slot off.
    pub fn pop_slot(&mut self) {
        let Some(slot) = self.slots.pop() else {
            return;
        };
        self.work_waiting -= slot.work as usize;
        self.answers_bytes -= slot.answer.map_or(0, |answer| answer.len());
        self.front.done_with_first();
        if let SlotKind::Read {
            line_bytes, keys, ..
        } = slot.kind
        {
            self.drop_first_line(line_bytes, keys);
        }
    }

    fn drop_first_line(&mut self, line_bytes: u32, keys: u32) {
        self.lines.drain(..line_bytes as usize);
        self.keys_waiting -= keys as usize;
    }

    /// The first request, a read, goes on as a write.
    pub fn make_first_a_write(&mut self) {
        let first = self.slots.first().map(|slot| slot.kind);
        if let Some(SlotKind::Read {
            line_bytes, keys, ..
        }) = first
        {
            self.slots.change_first(|slot| slot.kind = SlotKind::Write);
            self.drop_first_line(line_bytes, keys);
        }
    }

    /// The slot with this number, and whether it is the first.
    pub fn slot_mut(&mut self, number: u64) -> Option<(&mut Slot, bool)> {
        self.slots.with_number(number)
    }
}

impl Ordered for Slot {
    fn read_state(&self) -> Option<ReadState> {
        match self.kind {
            SlotKind::Read { state, .. } => Some(state),
            SlotKind::Write
            | SlotKind::Question
            | SlotKind::Text(_)
            | SlotKind::Stats(_)
            | SlotKind::Quit => None,
        }
    }

    fn read_state_mut(&mut self) -> Option<&mut ReadState> {
        match &mut self.kind {
            SlotKind::Read { state, .. } => Some(state),
            SlotKind::Write
            | SlotKind::Question
            | SlotKind::Text(_)
            | SlotKind::Stats(_)
            | SlotKind::Quit => None,
        }
    }

    fn is_write(&self) -> bool {
        self.kind == SlotKind::Write
    }

    fn is_answered(&self) -> bool {
        self.answer.is_some()
    }
}

//! How a command answers, or why it does not. Decides nothing.
use std::borrow::Cow;

use super::{Resp, reply};
use crate::{ERROR_BYTES_MAX, REPLY_BYTES_MAX, WORK_MAX};

/// What a client is told instead of an answer: the error's kind, a blank and its text.
pub(crate) type Fault = Cow<'static, str>;

/// A command has answered, or has changed nothing.
pub(crate) type Outcome = Result<(), Fault>;

/// Where a command's answer goes.
pub(crate) struct Answer<'o> {
    pub(crate) out: &'o mut Vec<u8>,
    pub(crate) resp: Resp,
    /// How long `out` may get.
    pub(crate) end_max: usize,
    /// How much work may still be done; see [`WORK_MAX`].
    pub(crate) work_left: usize,
    /// What decides where any answer will do; in a log entry the same on every replica.
    pub(crate) chance: u64,
}

/// How much of a client's word a fault repeats, in bytes.
const WORD_BYTES_MAX: usize = 64;

/// The start of a client's word as a fault repeats it, with question marks for what is no text. An error has
/// blanks for the ends of lines.
pub(crate) fn repeated(word: &[u8]) -> String {
    let start = &word[..word.len().min(WORD_BYTES_MAX)];
    let mut text = String::new();
    for chunk in start.utf8_chunks() {
        let shown = |it: char| {
            if it.is_control() && !matches!(it, '\r' | '\n') {
                '?'
            } else {
                it
            }
        };
        text.extend(chunk.valid().chars().map(shown));
        text.extend(chunk.invalid().iter().map(|_| '?'));
    }
    text
}

/// An error that is as long as one may be, if it was longer.
pub(crate) fn within_limit(mut error: Vec<u8>) -> Vec<u8> {
    const END: &[u8] = b"\r\n";
    if error.len() > ERROR_BYTES_MAX {
        error.truncate(ERROR_BYTES_MAX - END.len());
        error.extend_from_slice(END);
    }
    error
}

impl Answer<'_> {
    /// Says why there is no answer, in [`ERROR_BYTES_MAX`] bytes at most.
    pub(crate) fn refuse(&mut self, fault: &Fault) {
        let mut error = Vec::new();
        reply::error(&mut error, fault.as_bytes());
        self.out.extend_from_slice(&within_limit(error));
    }

    /// Whether an answer of so many bytes more is short enough to be assembled in memory.
    pub(crate) fn has_room(&self, bytes: usize) -> Outcome {
        if self.out.len() + bytes <= self.end_max {
            Ok(())
        } else {
            Err(too_long())
        }
    }

    /// Before so much work is done, or behind what is not known before and done to one value at most. Once
    /// there is too much, nothing more is done for this request or transaction.
    pub(crate) fn spend(&mut self, work: usize) -> Outcome {
        let left = self.work_left.checked_sub(work);
        self.work_left = left.unwrap_or(0);
        left.map(|_| ()).ok_or_else(too_much_work)
    }

    pub(crate) fn ok(&mut self) {
        reply::ok(self.out);
    }

    pub(crate) fn null(&mut self) {
        reply::null(self.out, self.resp);
    }

    pub(crate) fn integer(&mut self, number: i64) {
        reply::integer(self.out, number);
    }

    pub(crate) fn count(&mut self, number: usize) {
        reply::count(self.out, number);
    }

    /// A string if there is room for it.
    pub(crate) fn bulk(&mut self, bytes: &[u8]) -> Outcome {
        self.has_room(bytes.len() + reply::FRAME_BYTES_MAX)?;
        reply::bulk(self.out, bytes);
        Ok(())
    }

    /// A string, or that it is not there.
    pub(crate) fn bulk_or_null(&mut self, bytes: Option<&[u8]>) -> Outcome {
        if let Some(bytes) = bytes {
            return self.bulk(bytes);
        }
        self.null();
        Ok(())
    }
}

/// What is said instead of doing more than [`WORK_MAX`].
pub(crate) fn too_much_work() -> Fault {
    format!("ERR more work than {WORK_MAX} bytes for one request or transaction").into()
}

/// What is said instead of an answer that is longer than [`REPLY_BYTES_MAX`].
pub(crate) fn too_long() -> Fault {
    format!("ERR answer is longer than {REPLY_BYTES_MAX} bytes").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::Add as _;

    #[test]
    fn a_clients_word_is_repeated_in_part_and_as_what_can_be_printed() {
        for (word, shown) in [
            (&b"NX y"[..], "NX y"),
            (b"a\r\n\0\xff\x80\x1b~", "a\r\n????~"),
            ("\u{e9}\u{e9}".as_bytes(), "\u{e9}\u{e9}"),
            (
                "x".repeat(63).add("\u{e9}").as_bytes(),
                &"x".repeat(63).add("?"),
            ),
            (&[b'x'; 200], &"x".repeat(WORD_BYTES_MAX)),
            (&[0xff; 200], &"?".repeat(WORD_BYTES_MAX)),
        ] {
            assert_eq!(repeated(word), shown);
        }
    }

    #[test]
    fn no_fault_is_answered_by_more_than_an_error_may_have() {
        for bytes in [0, 1, ERROR_BYTES_MAX - 3, ERROR_BYTES_MAX - 2, 1000] {
            let mut out = b"+OK\r\n".to_vec();
            let mut answer = Answer {
                out: &mut out,
                resp: Resp::V2,
                end_max: REPLY_BYTES_MAX,
                work_left: WORK_MAX,
                chance: 0,
            };
            answer.refuse(&"x".repeat(bytes).into());
            let error = &out["+OK\r\n".len()..];
            assert_eq!(error.len(), (bytes + 3).min(ERROR_BYTES_MAX));
            assert!(error.starts_with(b"-") && error.ends_with(b"\r\n"));
        }
    }
}

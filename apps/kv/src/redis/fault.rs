//! How a command answers, or why it does not. Decides nothing.
use std::borrow::Cow;

use super::{Resp, reply};
use crate::{REPLY_BYTES_MAX, WORK_MAX};

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

impl Answer<'_> {
    /// Whether an answer of so many bytes more is short enough to be assembled in memory.
    pub(crate) fn has_room(&self, bytes: usize) -> Outcome {
        if self.out.len() + bytes <= self.end_max {
            Ok(())
        } else {
            Err(too_long())
        }
    }

    /// Before so much work is done, or behind what is not known before and done to one value at most. Once there is
    /// too much, nothing more is done for this request or transaction.
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

//! What clients asked and were told, with times: the evidence the linearizability checker judges. It
//! records only; it does not judge.

use std::time::Instant;

/// A value as the checker sees it: clients write numbers, so that a value names the write it came from.
pub type Value = u64;

/// What a client asked of one key.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Operation {
    /// Read.
    Get,
    /// Write, whatever was there.
    Set(Value),
    /// Write if nothing is there.
    Add(Value),
    /// Write `new` if `expected` is there.
    Cas {
        /// The value whose `gets` gave the token.
        expected: Value,
        /// The value to write.
        new: Value,
    },
    /// Remove.
    Delete,
    /// Add to the number that is there, wrapping.
    Increment(u64),
}

/// What the server said.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Answer {
    /// To a get: what is there.
    Value(Option<Value>),
    /// To a set, add or cas: written.
    Stored,
    /// To an add: something is there already.
    NotStored,
    /// To a cas: something else is there.
    Exists,
    /// To a cas that does not say which of the two: something else is there, or nothing. So answers Redis to
    /// a transaction whose watched key has changed.
    Differs,
    /// To a cas, delete or increment: nothing is there.
    NotFound,
    /// To a delete: removed.
    Deleted,
    /// To an increment: the new number.
    Number(u64),
}

/// One operation of one client.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Who asked.
    pub client: u32,
    /// Which key.
    pub key: u32,
    /// What.
    pub operation: Operation,
    /// When the request left, nanoseconds since the history's start.
    pub invoked_ns: u64,
    /// When the answer was there (nanoseconds since the history's start) and what it was; `None` when
    /// nobody knows whether the operation took effect: it may have, or may still, or never.
    pub outcome: Option<(u64, Answer)>,
}

/// Records one client's calls. Clients of one history share the start; their calls are joined later.
#[derive(Debug)]
pub struct Recorder {
    start: Instant,
    client: u32,
    calls: Vec<Call>,
}

/// A call whose answer is not here yet.
#[derive(Clone, Copy, Debug)]
#[must_use = "a call that is not answered, unknown or withdrawn is missing from the history"]
pub struct Open {
    key: u32,
    operation: Operation,
    invoked_ns: u64,
}

impl Recorder {
    /// A recorder for `client`, with times counted from `start`.
    #[must_use]
    pub fn new(start: Instant, client: u32) -> Self {
        Self {
            start,
            client,
            calls: Vec::new(),
        }
    }

    /// To be called right before the request leaves.
    pub fn invoke(&self, key: u32, operation: Operation) -> Open {
        Open {
            key,
            operation,
            invoked_ns: self.now_ns(),
        }
    }

    /// To be called right after the answer has come.
    pub fn answered(&mut self, open: Open, answer: Answer) {
        let now = self.now_ns();
        self.push(open, Some((now, answer)));
    }

    /// Nobody knows whether the operation took effect.
    pub fn unknown(&mut self, open: Open) {
        self.push(open, None);
    }

    /// The operation certainly did not and will not take effect; it never happened.
    pub fn withdrawn(&self, open: Open) {
        let Open { .. } = open;
    }

    /// The calls recorded.
    #[must_use]
    pub fn into_calls(self) -> Vec<Call> {
        self.calls
    }

    fn push(&mut self, open: Open, outcome: Option<(u64, Answer)>) {
        self.calls.push(Call {
            client: self.client,
            key: open.key,
            operation: open.operation,
            invoked_ns: open.invoked_ns,
            outcome,
        });
    }

    fn now_ns(&self) -> u64 {
        // 2^64 ns are 584 years.
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

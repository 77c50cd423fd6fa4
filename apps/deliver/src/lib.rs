//! Values in the order of the log, kept until every learner has checkpointed them.
//!
//! Somebody submits a value, which is bytes that only its learners understand. It gets an *instance*: the
//! number of its command, which grows from value to value; instances between two values hold none. Learners
//! are given the values in their order, and say up to which instance they have *checkpointed* what followed
//! from them. What all learners have checkpointed is *trimmed*: nobody needs it any more. An operator may
//! declare values lost, for a learner that will never come back.
//!
//! Who the learners are, and how many bytes are kept, is part of the state: a command says so. When no more
//! may be kept, values are refused, and the refusal names the learner that is furthest behind.
mod bytes;
mod command;
mod counters;
mod kept;
mod limits;
mod mutants;
mod query;
mod snapshot;
mod state;
mod subscription;
#[cfg(test)]
mod tests;

pub use bytes::Malformed;
pub use command::{Answer, Command, Refusal};
pub use counters::ValueCounters;
pub use limits::{
    KEPT_BYTES_MAX, KEPT_BYTES_MIN, KEPT_BYTES_UNCONFIGURED, LEADERLESS_MAX, LEARNERS_MAX,
    OVERHEAD_BYTES, VALUE_BYTES_MAX,
};
pub use query::{Query, QueryAnswer, Recovered, Status};
pub use state::{Next, Values};
pub use subscription::{Given, Subscription};

/// A learner's number.
pub type Learner = u16;

/// A value's place in the log; 1 is the first that there can be.
pub type Instance = u64;

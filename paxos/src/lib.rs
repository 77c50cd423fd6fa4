//! The rare cases of the Paxos roles (CAANS, section 3), for hosts beside coordinators and acceptors that
//! run in devices or processes. No I/O, clock or randomness. So far: what a learner does, and `recover`.
mod learner;
mod recovery;
mod round;

pub use learner::{Decided, Ignored, Learner, LearnerOptions, ROUNDS_MAX};
pub use recovery::{Heard, Recovery, RecoveryOptions};
pub use round::{owner_of, round_above};

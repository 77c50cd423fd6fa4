//! The Paxos roles (CAANS, section 3) but for their common case, which is the step in `fastpath/`: what hosts
//! do beside boxes that coordinate and vote, and what proposers and learners do. No I/O, clock or randomness:
//! time, packets and a seed come in, [`Orders`] come out.
//!
//! | role | here | in the box |
//! |---|---|---|
//! | proposer | [`Proposer`] | - |
//! | coordinator | [`Coordinator`]: phase 1, take-over, letting acceptors in | an instance for each value |
//! | acceptor | [`Acceptor`]: configurations, trim | promises and votes |
//! | learner | [`Learner`]: votes counted, `recover`, checkpoints | - |
mod acceptor;
mod checkpoints;
mod coordinator;
mod deployment;
mod learner;
mod lives;
mod mutants;
mod orders;
mod proposer;
mod recovery;
mod round;
mod values;
mod votes;

pub use acceptor::{Acceptor, Noted};
pub use checkpoints::Checkpoints;
pub use coordinator::{
    ADOPTED_AT_ONCE, Coordinator, CoordinatorOptions, CoordinatorStanding, Turn,
};
pub use deployment::{Deployment, Impossible};
pub use learner::{Learned, Learner, LearnerOptions, NotAsked, RECOVERING_MAX, Since};
pub use lives::Lives;
pub use orders::{Order, Orders, To};
pub use proposer::{NotTaken, OUTSTANDING_MAX, Proposer, Settled, VALUE_BYTES_MAX};
pub use recovery::{Asking, Heard, Recovery};
pub use round::{owner_of, round_above};
pub use values::{Fate, Values};
pub use votes::{Decided, Ignored, ROUNDS_MAX, Votes};

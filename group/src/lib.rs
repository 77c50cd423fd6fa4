//! One replicated log, without I/O: who waits for what stands in it, and the data plane that carries it
//! while one does. The server and the simulator drive the same code.
//!
//! Generic over `O`, where an answer goes: to a connection, to another replica, to a client of the plane.
//! Only who drives a group knows what that is.
mod plane;
mod proposals;

pub use plane::{
    AnswerTooLong, Asked, Brought, ForeignDropped, Plane, PlaneOptions, QUESTIONS_MAX, Question,
    Request, Submission,
};
pub use proposals::{Proposal, Proposals, Settled};

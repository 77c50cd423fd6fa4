//! A model of the Paxos roles, for exhaustive search: coordinators take over from each other, acceptors crash
//! or forget and are let in again. The acceptors are the step in C; what software does beside them is
//! written here, each rule of it such that it can be left out.
mod acceptor;
mod coordinator;
mod model;
mod rule;
mod smaller;
mod state;

pub use model::{Action, Bounds, Deployment, Durability, ONE_VALUE};
pub use rule::Rule;
pub use state::{Lives, Message, State};

//! What stands behind `evpaxos.h`: libpaxos' processes on a Paxos deployment. The functions that programs
//! call are in C (`client/c/evpaxos/`), since they speak to libevent; `ffi.rs` is what they call.
//!
//! | process | what it is here |
//! |---|---|
//! | replica, acceptor | `host`: coordinator, acceptor, learner with a proposer, and the values so far (`history`) |
//! | learner | `follower`: it is given the values by an acceptor's process |
//! | proposer | `relay`: it passes on to an acceptor's process what it is sent |
//!
//! A value's number for the program counts values from 1, without gaps, as in libpaxos. The deployment's
//! instances have gaps: a long value takes several, a no-op one. All processes count the same values in the
//! same order, so they agree about the numbers.
mod ffi;
mod follower;
mod founding;
mod frames;
mod history;
mod host;
mod log;
mod node;
mod peers;
mod queue;
mod relay;
mod server;

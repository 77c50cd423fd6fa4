//! Whole clusters in one process: the real consensus, storage and store over a simulated network,
//! disks and clocks, driven through faults by a seed. Knows nothing of real time, sockets or files.
//!
//! # How it is built
//! A seed becomes a [`plan::Plan`]: the sizes of a cluster and a list of faults, which is plain data.
//! [`run::run`] makes a [`world::World`] of it, lets it live through its faults, heals everything, and
//! gives a [`run::Verdict`]. Every random choice comes from the seed, so two runs of one plan are
//! equal to the last event, which [`run::Verdict::hash`] shows. A plan that fails is made smaller by
//! leaving out faults ([`shrink::shrink`]).
//!
//! Each machine drives a [`Group`](quorumwire_group::Group), as the server does: consensus, the state
//! machine, the plane, the log's time and who waits are that. When its turn comes is in `turn.rs`, what the
//! world does for it in `driver.rs`.
mod background;
pub mod checks;
pub mod clients;
mod clock;
pub mod counts;
pub mod datagrams;
mod disk;
mod driver;
pub mod fault;
mod forwarding;
pub mod journal;
mod latecomer;
mod learners;
pub mod lives;
pub mod log_time;
pub mod long_values;
pub mod machine;
pub mod model_program;
pub mod moves;
#[cfg(feature = "mutants")]
pub mod mutants;
pub mod network;
mod outcomes;
pub mod pipes;
pub mod plan;
pub mod plane;
pub mod plane_clients;
mod plane_turn;
mod planted;
pub mod queue;
pub mod random;
pub mod report;
mod returns;
pub mod roles;
pub mod run;
pub mod served;
mod sever;
mod show;
pub mod shrink;
pub mod spelling;
mod starve;
mod state;
mod strike;
mod term_keys;
pub mod trial;
mod turn;
mod values;
pub mod world;

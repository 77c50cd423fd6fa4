//! What runs a host of a Paxos role on a machine: the deployment's file and keys, a socket, a disk and the
//! clock. A switch is a process that coordinates or votes; a member learns and proposes, as a part of another
//! program.
mod deployment_file;
mod member;
mod member_error;
mod progress;
mod report;
mod reporter;
mod station;
mod status;
mod switch;
mod waiting;

pub use deployment_file::{DeploymentError, DeploymentFile, DeploymentParts, Timing};
pub use member::{Instance, Member, MemberOptions, Recovered, SUBMITTED_MAX, WINDOW_BYTES};
pub use member_error::MemberError;
pub use quorumwire_paxos::VALUE_BYTES_MAX;
pub use quorumwire_paxos_hosts::Addresses;
pub use quorumwire_storage::{LearnerCheckpoint, MemoryDisk};
pub use report::{
    SwitchIdentity, SwitchPlaneReport, SwitchReport, WindowReport, declared_counters,
    declared_of_planes,
};
pub use status::{STATUS_PAUSE, SlowStatus, Standing, StatusCell, SwitchCounters, SwitchStatus};
pub use switch::{
    BoxPlane, Durability, Lives, Role, SwitchError, SwitchOptions, SwitchSignals, make_folder, run,
};

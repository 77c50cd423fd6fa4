//! Tests of the replica as a whole: scripted scenarios and seeded random clusters, in a world of
//! simulated disks, clocks and network.
mod checks;
mod environment;
mod fence;
mod groups;
mod hostile;
mod hosts;
mod log_clock;
#[cfg(feature = "mutants")]
mod mutants;
mod plane;
mod put_back;
mod random;
mod scenarios;
mod script;
mod show;
mod snapshots;
mod trouble;
mod words;
mod world;

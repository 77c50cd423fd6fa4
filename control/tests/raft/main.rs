//! Tests of the replica as a whole: scripted scenarios in a world of simulated disks, clocks and network, and
//! what no script can say. Random clusters are in `sim/`.
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
mod scenarios;
mod script;
mod show;
mod silence;
mod snapshots;
mod turn;
mod words;
mod world;

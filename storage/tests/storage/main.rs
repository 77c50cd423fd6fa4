//! Tests of the folder as a whole: what survives power cuts, faults and full disks, and what is
//! recognised as damage. Each module is one question.
mod damage;
mod full_disk;
mod identity;
#[cfg(feature = "mutants")]
mod mutants;
mod power_cuts;
mod real_folder;
mod snapshots;
mod syncs;
mod votes;
mod world;
mod writer;

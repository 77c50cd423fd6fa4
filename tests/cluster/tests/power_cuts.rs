//! The whole cluster dies at once by `kill -9`, in sync mode. With data planes, all but once while a fast
//! term runs.

use quorumwire_cluster_tests::cluster::{Durability, Plan, run_started};
use quorumwire_cluster_tests::seed::seed;
use quorumwire_cluster_tests::workload::{Load, Running};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

const POWER_CUTS: usize = 5;

/// The power cut before which nobody waits for a fast term.
const ON_THE_WAY: usize = 2;

#[test]
fn killing_all_at_once_loses_nothing_in_sync_mode() {
    let seed = seed();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut plan = Plan::new(3, Durability::Sync);
    plan.options = vec![("segment-mib", "4"), ("log-tail-mib", "0")];
    run_started(plan, |cluster| {
        let load = Running::start(Load::modest("cuts"), &cluster.targets(), seed);
        for cut in 0..POWER_CUTS {
            load.wait_for_writes(rng.random_range(100..600))?;
            if rng.random_bool(0.5) {
                let replica = rng.random_range(0..3);
                let http = cluster.http(replica).to_string();
                cluster.command(&["snapshot", "--addr", &http])?;
            }
            if cut != ON_THE_WAY {
                cluster.wait_for_fast_leader()?;
            }
            cluster.kill_all()?;
            cluster.start_all()?;
            cluster.wait_for_leader()?;
        }
        cluster.wait_for_settled_leader()?;
        load.wait_for_writes(100)?;
        load.finish()?.judge(&cluster.targets())?;
        cluster.wait_for_equal(&[0, 1, 2])?;
        Ok(())
    });
}

//! `quorumwire bench --survive` goes on while replicas die, and measures for how long no write succeeded.

use std::fs::{self, File};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use quorumwire_cluster_tests::cluster::{Durability, Plan, run_started};
use serde_json::Value;

const SECONDS: u32 = 20;
const INTERVAL_MS: u32 = 100;

/// How long it may take to end above its time.
const END_DEADLINE: Duration = Duration::from_secs(30);

fn number(value: &Value, name: &str) -> Result<f64> {
    let found = value[name].as_f64();
    found.with_context(|| format!("no number {name} in {value}"))
}

/// Successful requests of all intervals that began later than this.
fn operations_after(measured: &Value, moment: Duration) -> Result<f64> {
    let intervals = measured["intervals"].as_array();
    let mut operations = 0.0;
    for interval in intervals.context("there are intervals")? {
        let begin_ms = number(interval, "at_ms")? - f64::from(INTERVAL_MS);
        if begin_ms > moment.as_secs_f64() * 1e3 {
            operations += number(interval, "operations")?;
        }
    }
    Ok(operations)
}

#[test]
fn a_load_outlives_its_leader_and_a_restart_of_all() {
    run_started(Plan::new(3, Durability::Sync), |cluster| {
        let addresses: Vec<_> = (0..3).map(|id| cluster.memcached(id).to_string()).collect();
        let line = format!(
            "bench --survive --json --seconds {SECONDS} --connections 3 --in-flight 1 --keys 1 \
             --interval-ms {INTERVAL_MS} --addr {}",
            addresses.join(",")
        );
        let arguments: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
        let [printed, said] = ["printed", "said"].map(|name| cluster.scratch_file(name));
        let standard = [
            Stdio::null(),
            File::create(&printed)?.into(),
            File::create(&said)?.into(),
        ];
        let leader = cluster.wait_for_settled_leader()?;
        let begun = Instant::now();
        let mut load = cluster.start_beside(cluster.binary(), &arguments, standard)?;
        cluster.wait_for("the load to write", || {
            Ok(cluster.get("bench-0000000000")?.is_some())
        })?;

        cluster.kill(leader)?;
        cluster.wait_for_leader_other_than(leader)?;
        let has_new_leader = begun.elapsed();
        cluster.start(leader)?;
        cluster.wait_for_ready(&[0, 1, 2])?;

        cluster.kill_all()?;
        for id in 0..3 {
            cluster.start(id)?;
        }
        cluster.wait_for_leader()?;
        let has_leader_again = begun.elapsed();
        ensure!(load.is_running()?, "void: the load ended before");

        let status = load.wait(END_DEADLINE + Duration::from_secs(SECONDS.into()))?;
        let said = fs::read_to_string(&said)?;
        ensure!(status.success(), "{status}: {said}");
        let measured: Value = serde_json::from_str(&fs::read_to_string(&printed)?)?;
        let gap = &measured["longest_gap"];
        let (ms, run_ms) = (number(gap, "ms")?, f64::from(SECONDS) * 1e3);
        ensure!(0.0 < ms && ms < run_ms, "{gap}");
        ensure!(gap["recovered"] == true, "{gap}");
        let gaps = measured["longest_gaps"].as_array();
        let gaps = gaps.context("there are gaps")?;
        // Both the leader's end and that of all are among them.
        ensure!(gaps.len() > 1 && gaps[0] == *gap, "{gaps:?}");
        let between = number(gap, "to_unix_ms")? - number(gap, "from_unix_ms")?;
        ensure!((between - ms).abs() < 1.0, "{gap}");
        let errors = measured["errors"].as_object();
        ensure!(errors.is_some_and(|it| !it.is_empty()), "void: no error");
        for moment in [has_new_leader, has_leader_again] {
            let operations = operations_after(&measured, moment)?;
            ensure!(operations > 0.0, "nothing after {moment:?}: {measured}");
        }
        println!("longest time between writes: {ms} ms; errors: {errors:?}");
        Ok(())
    });
}

//! Servers that are started as root become another user at once, keep the capabilities that their plane takes
//! and no others, and do everything that they do as root.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown};

use anyhow::{Context as _, Result, ensure};
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, run};
use quorumwire_cluster_tests::seed::seed;
use quorumwire_cluster_tests::workload::{Load, Running};

const ALL: [u16; 3] = [0, 1, 2];
/// Debian's user for those who own nothing; here they own a folder each.
const USER: &str = "nobody";
const UID: u32 = 65_534;
/// `CAP_NET_ADMIN`, `CAP_PERFMON`, `CAP_BPF`.
const TAKEN_BY_XDP: u64 = 1 << 12 | 1 << 38 | 1 << 39;

/// A line of `/proc/PID/status`.
fn field<'t>(status: &'t str, name: &str) -> Result<&'t str> {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let value = line.and_then(|line| line.strip_prefix(':'));
    Ok(value.with_context(|| format!("no {name}"))?.trim())
}

/// Every thread of a replica is the user's and may do no more than this.
fn check_threads(cluster: &Cluster<'_>, id: u16, capabilities: u64) -> Result<()> {
    let threads = format!("/proc/{}/task", cluster.pid(id)?);
    let mut count = 0;
    for thread in fs::read_dir(threads)? {
        let status = fs::read_to_string(thread?.path().join("status"))?;
        for name in ["Uid", "Gid"] {
            let mut ids = field(&status, name)?.split_whitespace();
            ensure!(ids.all(|one| one == UID.to_string()), "{name} of {status}");
        }
        ensure!(field(&status, "Groups")? == UID.to_string(), "{status}");
        for (name, wanted) in [
            ("CapEff", capabilities),
            ("CapPrm", capabilities),
            ("CapBnd", capabilities),
            ("CapInh", 0),
            ("CapAmb", 0),
        ] {
            let has = u64::from_str_radix(field(&status, name)?, 16)?;
            ensure!(has == wanted, "{name}: {has:x}, not {wanted:x}");
        }
        ensure!(field(&status, "NoNewPrivs")? == "1", "{status}");
        count += 1;
    }
    ensure!(count > 1, "{count} threads");
    Ok(())
}

/// How often all replicas have said something.
fn times_said(cluster: &Cluster<'_>, text: &str) -> usize {
    ALL.map(|id| cluster.log(id).matches(text).count())
        .iter()
        .sum()
}

fn goes_on(cluster: &Cluster<'_>, load: &Running) -> Result<u16> {
    load.wait_for_writes(100)?;
    if cluster.has_planes() {
        cluster.wait_for_fast_term(&ALL)
    } else {
        cluster.wait_for_leader()
    }
}

/// A secret is replaced by root while it belongs to the servers' user.
fn rotate_secret(cluster: &Cluster<'_>) -> Result<()> {
    let file = cluster.secret_file();
    let name = file.display().to_string();
    cluster.command(&["keys", "add", "--file", &name])?;
    ensure!(fs::metadata(&file)?.uid() == UID, "it is another one's now");
    for id in ALL {
        let pid = cluster.pid(id)?.to_string();
        ensure!(cluster.run_program("kill", &["-HUP", &pid])?.success);
    }
    cluster.wait_for("the secret to be read again", || {
        Ok(times_said(cluster, "the secret file was read again") == ALL.len())
    })
}

fn everything_works_as_another_user(plane: &str, capabilities: u64) {
    let seed = seed();
    let mut plan = Plan {
        plane: plane.into(),
        ..Plan::new(3, Durability::Sync)
    };
    plan.options = vec![("user", USER)];
    run(plan, |cluster| {
        for path in [cluster.keys(), cluster.secret_file()] {
            chown(path, Some(UID), Some(UID))?;
        }
        cluster.start_all()?;
        cluster.wait_for_leader()?;
        let load = Running::start(Load::modest("user"), &cluster.targets(), seed);
        let leader = goes_on(cluster, &load)?;
        cluster.wait_for_ready(&ALL)?;
        for id in ALL {
            check_threads(cluster, id, capabilities)?;
            ensure!(fs::metadata(cluster.dir(id))?.uid() == UID);
        }
        let http = cluster.http(leader).to_string();
        cluster.command(&["snapshot", "--addr", &http])?;
        cluster.wait_for("a snapshot", || {
            Ok(cluster.status(leader)?.snapshot_index > 0)
        })?;
        if cluster.has_planes() {
            rotate_secret(cluster)?;
            // The plane's programs are loaded anew, long after the start.
            cluster.network().remove_cable(leader)?;
            cluster.wait_for_leader_other_than(leader)?;
            cluster.lay_cable(leader)?;
            goes_on(cluster, &load)?;
        }
        let leader = cluster.wait_for_leader()?;
        cluster.kill(leader)?;
        cluster.wait_for_leader_other_than(leader)?;
        cluster.start(leader)?; // on the folder that it left
        goes_on(cluster, &load)?;
        cluster.wait_for_ready(&ALL)?; // a majority goes on while one has not given its rights up yet
        for id in ALL {
            check_threads(cluster, id, capabilities)?;
        }
        load.finish()?.judge(&cluster.targets())?;
        cluster.wait_for_equal(&ALL)?;
        ensure!(times_said(cluster, "runs as root") == 0);
        Ok(())
    });
}

#[test]
fn without_a_plane_a_server_needs_no_capability() {
    everything_works_as_another_user("none", 0);
}

#[test]
fn with_a_plane_in_the_kernel_it_keeps_three() {
    everything_works_as_another_user("xdp", TAKEN_BY_XDP);
}

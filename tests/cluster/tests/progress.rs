//! What takes long says how far it is: commands that work on folders, a server's start, a snapshot on its
//! way. Whoever has the work is made slow, so that it takes long on any machine.

use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, run_started};
use quorumwire_cluster_tests::slowness::{FIFTIETH, TENTH, THIRTIETH, while_slow};
use quorumwire_cluster_tests::status::page;

/// So much is read and written anew.
const VALUES: u32 = 250;
const VALUE_BYTES: usize = 1_000_000;

/// How long a slow command may take until it says something: at first it is silent for 2 s.
const SAID_WITHIN: Duration = Duration::from_secs(30);

fn text(path: &Path) -> Result<&str> {
    path.to_str().context("a path of a test is UTF-8")
}

fn fill(cluster: &Cluster<'_>, to: u16) -> Result<()> {
    let mut client = cluster.client(to)?;
    for number in 0..VALUES {
        let value = vec![u8::try_from(number % 256)?; VALUE_BYTES];
        let stored = client.set(&format!("large-{number}"), &value).done();
        ensure!(stored.as_deref() == Some("STORED"), "{number}: {stored:?}");
    }
    Ok(())
}

/// Runs a command that is slow until it says one of these; where it says it, it says how much of how much.
fn run_slowly(cluster: &Cluster<'_>, arguments: &[&str], words: &[&str]) -> Result<()> {
    let [said, printed] = ["said", "printed"].map(|name| cluster.scratch_file(name));
    let arguments: Vec<_> = arguments.iter().map(ToString::to_string).collect();
    let standard = [
        Stdio::null(),
        File::create(&printed)?.into(),
        File::create(&said)?.into(),
    ];
    let mut process = cluster.start_beside(cluster.binary(), &arguments, standard)?;
    let what = format!("{arguments:?} to say how far it is");
    while_slow(process.pid(), FIFTIETH, || {
        cluster.wait_for_within(&what, SAID_WITHIN, || {
            ensure!(
                process.is_running()?,
                "it ended: {}",
                fs::read_to_string(&said)?
            );
            let lines = fs::read_to_string(&said)?;
            Ok(lines.lines().any(|line| {
                let figures = words.iter().find_map(|words| line.strip_prefix(words));
                figures.is_some_and(|it| it.ends_with(" MiB") || it.ends_with(" entries"))
            }))
        })
    })?;
    let status = process.wait(SAID_WITHIN)?;
    let (said, printed) = (fs::read_to_string(&said)?, fs::read_to_string(&printed)?);
    println!("{}: {said}", arguments[0]);
    ensure!(status.success(), "{said}");
    ensure!(
        !printed.contains(" MiB"),
        "progress is no output: {printed}"
    );
    Ok(())
}

/// A command that waits for a server says so.
fn snapshot_of_one_that_stands_still(cluster: &mut Cluster<'_>) -> Result<()> {
    let said = cluster.scratch_file("said");
    let arguments = ["snapshot", "--addr", &cluster.http(0).to_string()];
    let arguments: Vec<_> = arguments.iter().map(ToString::to_string).collect();
    let standard = [Stdio::null(), Stdio::null(), File::create(&said)?.into()];
    cluster.pause(0)?;
    let mut process = cluster.start_beside(cluster.binary(), &arguments, standard)?;
    cluster.wait_for_within("the command to say what it waits for", SAID_WITHIN, || {
        ensure!(process.is_running()?, "it ended");
        Ok(fs::read_to_string(&said)?.contains("a snapshot is being written"))
    })?;
    cluster.resume(0)?;
    let status = process.wait(SAID_WITHIN)?;
    ensure!(status.success(), "{}", fs::read_to_string(&said)?);
    Ok(())
}

#[test]
fn a_start_and_commands_that_take_long_say_how_far_they_are() {
    let mut plan = Plan::new(1, Durability::Sync);
    plan.plane = "none".into();
    plan.options = vec![("snapshot-log-mib", "4096")]; // all that is large stays in the log
    run_started(plan, |cluster| {
        let memcached = cluster.memcached(0).to_string();
        let load = ["bench", "--seconds", "4", "--json", "--addr", &memcached];
        let done = cluster.try_command(&load)?;
        ensure!(done.success && done.stderr.contains(" s left"), "{done:?}");
        let measured: serde_json::Value = serde_json::from_str(&done.stdout)?;
        ensure!(measured["operations"].as_u64() > Some(0), "{measured}");

        snapshot_of_one_that_stands_still(cluster)?;

        fill(cluster, 0)?;
        let (file, http) = (cluster.scratch_file("backup"), cluster.http(0).to_string());
        cluster.command(&["backup", "--to", text(&file)?, "--addr", &http])?;
        cluster.kill_all()?;

        cluster.start(0)?;
        while_slow(cluster.pid(0)?, THIRTIETH, || {
            cluster.wait_for_within("the start to say how far it is", SAID_WITHIN, || {
                let log = cluster.log(0);
                let mut lines = log.lines().filter(|line| line.contains("\"still "));
                Ok(lines.any(|line| line.contains(" MiB") || line.contains(" entries")))
            })
        })?;
        cluster.wait_for_leader()?;
        cluster.kill_all()?;

        let dir = cluster.dir(0);
        let recover = [
            "recover",
            "--force-new-cluster",
            "--yes",
            "--dir",
            text(&dir)?,
        ];
        let words = [
            "reading the log: ",
            "carrying out the log: ",
            "writing the data: ",
        ];
        run_slowly(cluster, &recover, &words)?;

        let verify = ["backup", "--verify", text(&file)?];
        run_slowly(cluster, &verify, &["reading the backup: "])?;
        let (new, members) = (
            cluster.scratch_file("new"),
            format!("0={}", cluster.peer(0)),
        );
        let mut restore = vec!["restore", "--from", text(&file)?, "--dir", text(&new)?];
        restore.extend(["--id", "0", "--members", &members, "--cluster", "new"]);
        let words = ["reading the backup: ", "writing the data: "];
        run_slowly(cluster, &restore, &words)
    });
}

#[test]
fn a_snapshot_on_its_way_to_a_follower_is_shown() {
    let mut plan = Plan::new(3, Durability::Sync);
    plan.options = vec![
        ("segment-mib", "4"),
        ("log-tail-mib", "0"),
        ("snapshot-log-mib", "16"),
    ];
    run_started(plan, |cluster| {
        let leader = cluster.wait_for_settled_leader()?;
        let follower = (leader + 1) % 3;
        cluster.kill(follower)?;
        let leader = cluster.wait_for_leader()?;
        fill(cluster, leader)?;
        let http = cluster.http(leader).to_string();
        cluster.command(&["snapshot", "--addr", &http])?;

        cluster.start(follower)?;
        while_slow(cluster.pid(follower)?, TENTH, || {
            cluster.wait_for("the leader to have sent a part of a snapshot", || {
                let followers = cluster.status(leader)?.followers;
                let sent = followers.into_iter().find(|it| it.id == follower);
                Ok(sent.is_some_and(|it| {
                    it.in_snapshot && (1..it.snapshot_bytes).contains(&it.snapshot_sent_bytes)
                }))
            })?;
            // The leader may be between two snapshots, one of which was begun before there was more.
            let gauge = format!("quorumwire_follower_snapshot_bytes{{follower=\"{follower}\"}} ");
            cluster.wait_for(&gauge, || {
                let metrics = page(cluster.http(leader), "/metrics")?.1;
                let value = metrics.lines().find_map(|line| line.strip_prefix(&gauge));
                Ok(value.with_context(|| metrics.clone())? != "0")
            })?;
            for command in [&["status"][..], &["member", "list"]] {
                let asked = [command, &["--addr", &http]].concat();
                let own = format!("replica {follower}: ");
                cluster.wait_for(&format!("{command:?} to show it"), || {
                    let said = cluster.command(&asked)?;
                    let mut notes = said.lines().filter_map(|line| line.strip_prefix(&own));
                    Ok(notes.any(|it| it.contains("snapshot: ") && it.ends_with(" MiB")))
                })?;
            }
            Ok(())
        })?;
        cluster.wait_for_equal(&[0, 1, 2])?;
        Ok(())
    });
}

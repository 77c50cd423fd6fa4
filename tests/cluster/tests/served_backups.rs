//! Backups of a served program, and new clusters out of them: the real Redis.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, run_started};
use quorumwire_cluster_tests::served::{REDIS, three};

fn text(path: &Path) -> Result<&str> {
    path.to_str().context("a path of a test is UTF-8")
}

fn redis(cluster: &Cluster<'_>, id: u16, words: &[&str]) -> Result<String> {
    let host = cluster.redis(id).ip().to_string();
    let arguments = [&["-h", &host, "-p", "6379"], words].concat();
    let done = cluster.run_program("redis-cli", &arguments)?;
    Ok(done.stdout + &done.stderr)
}

fn wait_for_programs(cluster: &Cluster<'_>) -> Result<()> {
    cluster.wait_for("three programs", || {
        let mut answers = (0..3).map(|id| redis(cluster, id, &["PING"]));
        Ok(answers.all(|said| said.is_ok_and(|it| it == "PONG\n")))
    })
}

/// What all three programs hold, once it is the same.
fn digest(cluster: &Cluster<'_>) -> Result<String> {
    let mut digests = Vec::new();
    cluster.wait_for("equal programs", || {
        let ask = |id| redis(cluster, id, &["DEBUG", "DIGEST"]);
        digests = (0..3).map(ask).collect::<Result<_>>()?;
        Ok(digests[0].len() == 41 && digests.iter().all(|it| *it == digests[0]))
    })?;
    Ok(digests.swap_remove(0))
}

#[test]
fn a_backup_of_a_program_becomes_another_cluster_of_it() {
    let plan = three(&REDIS);
    run_started(plan, |cluster| {
        wait_for_programs(cluster)?;
        for number in 0..20 {
            let number = number.to_string();
            redis(cluster, 0, &["RPUSH", "list", &number])?;
            redis(cluster, 1, &["SADD", "set", &number])?;
            redis(cluster, 2, &["SET", &number, &"x".repeat(10_000)])?;
        }
        redis(cluster, 0, &["SPOP", "set", "5"])?;
        let before = digest(cluster)?;
        let file = cluster.scratch_file("backup");
        let http = cluster.http(0).to_string();
        let said = cluster.command(&["backup", "--to", text(&file)?, "--addr", &http])?;
        ensure!(
            said.contains("cluster \"harness/run\" up to index"),
            "{said}"
        );
        cluster.command(&["backup", "--verify", text(&file)?])?;
        // It serves on, and what is done then is not in the file.
        wait_for_programs(cluster)?;
        ensure!(digest(cluster)? == before);
        ensure!(redis(cluster, 1, &["SET", "later", "value"])? == "OK\n");
        cluster.kill_all()?;

        let survivor = cluster.dir(1);
        let recover = [
            "recover",
            "--force-new-cluster",
            "--yes",
            "--dir",
            text(&survivor)?,
        ];
        let refused = cluster.try_command(&recover)?;
        ensure!(
            !refused.success && refused.stderr.contains("by its program only"),
            "{}",
            refused.stderr
        );
        restore(cluster, &file)?;
        cluster.start_all()?;
        wait_for_programs(cluster)?;
        ensure!(digest(cluster)? == before, "it became another");
        ensure!(redis(cluster, 0, &["EXISTS", "later"])? == "0\n");
        ensure!(redis(cluster, 2, &["SPOP", "set", "5"])?.lines().count() == 5);
        digest(cluster)?;
        // It may be backed up, too, and survives one of its replicas.
        let again = cluster.scratch_file("again");
        cluster.command(&["backup", "--to", text(&again)?, "--addr", &http])?;
        wait_for_programs(cluster)?;
        let leader = cluster.wait_for_leader()?;
        cluster.kill(leader)?;
        ensure!(redis(cluster, (leader + 1) % 3, &["LLEN", "list"])? == "20\n");
        Ok(())
    });
}

/// Makes the folders of a new cluster.
fn restore(cluster: &mut Cluster<'_>, file: &Path) -> Result<()> {
    let members = (0..3).map(|id| format!("{id}={}", cluster.peer(id)));
    let members = members.collect::<Vec<_>>().join(",");
    for id in 0..3_u16 {
        cluster.wipe(id)?;
        let (dir, id) = (cluster.dir(id), id.to_string());
        let arguments = [
            "restore",
            "--from",
            text(file)?,
            "--dir",
            text(&dir)?,
            "--id",
            &id,
        ];
        let arguments = [&arguments[..], &["--members", &members, "--cluster"]].concat();
        let refused = cluster.try_command(&[&arguments[..], &["harness-2"]].concat())?;
        ensure!(
            !refused.success && refused.stderr.contains("ends with `/run`"),
            "{}",
            refused.stderr
        );
        cluster.command(&[&arguments[..], &["harness-2/run"]].concat())?;
    }
    cluster.set_name("harness-2");
    Ok(())
}

/// A program that cannot save itself has no state that could be copied.
#[test]
fn a_program_that_cannot_save_itself_has_no_backup_and_says_so_at_once() {
    let plan = Plan {
        serves: REDIS.to_vec(),
        options: vec![("save-signal", "none")],
        ..Plan::new(3, Durability::Sync)
    };
    run_started(plan, |cluster| {
        wait_for_programs(cluster)?;
        let file = cluster.scratch_file("backup");
        let http = cluster.http(0).to_string();
        let take = [
            "backup",
            "--to",
            text(&file)?,
            "--addr",
            &http,
            "--timeout-s",
            "20",
        ];
        let refused = cluster.try_command(&take)?;
        ensure!(
            !refused.success && refused.stderr.contains("save-signal"),
            "{}",
            refused.stderr
        );
        ensure!(redis(cluster, 0, &["PING"])? == "PONG\n");
        Ok(())
    });
}

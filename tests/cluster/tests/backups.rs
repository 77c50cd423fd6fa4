//! What is left of a cluster becomes another one: backups that are restored, and survivors without a
//! majority.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use anyhow::{Context as _, Result, ensure};
use quorumwire_cluster_tests::cluster::{Cluster, Durability, Plan, run, run_started};
use quorumwire_cluster_tests::status::{Role, page};

/// Keys that are read back in one request.
const READ_KEYS: usize = 50;

fn text(path: &Path) -> Result<&str> {
    path.to_str().context("a path of a test is UTF-8")
}

fn members(cluster: &Cluster<'_>, ids: &[u16]) -> String {
    let members = ids.iter().map(|id| format!("{id}={}", cluster.peer(*id)));
    members.collect::<Vec<_>>().join(",")
}

fn wait_for_voters(cluster: &Cluster<'_>, expected: &[u16]) -> Result<()> {
    cluster.wait_for(&format!("the voters to be {expected:?}"), || {
        let leader = cluster.leader();
        let status = leader.and_then(|id| cluster.status(id).ok());
        Ok(status.is_some_and(|status| status.voters() == expected))
    })
}

/// Writes `key-0`, `key-1` and so on, with their numbers as values, until it is dropped.
struct Writing {
    acknowledged: AtomicU64,
    stop: AtomicBool,
}

impl Writing {
    const fn new() -> Self {
        Self {
            acknowledged: AtomicU64::new(0),
            stop: AtomicBool::new(false),
        }
    }

    fn go_on(&self, cluster: &Cluster<'_>, id: u16) -> Result<()> {
        let mut client = cluster.client(id)?;
        for number in 0.. {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            let line = client.set(&format!("key-{number}"), number.to_string().as_bytes());
            ensure!(line.done().as_deref() == Some("STORED"), "key-{number}");
            self.acknowledged.store(number + 1, Ordering::SeqCst);
        }
        Ok(())
    }

    fn wait_for(&self, cluster: &Cluster<'_>, count: u64) -> Result<()> {
        cluster.wait_for(&format!("{count} writes"), || Ok(self.count() >= count))
    }

    fn count(&self) -> u64 {
        self.acknowledged.load(Ordering::SeqCst)
    }
}

/// Stops the writing however its test ends.
struct StopWhenDropped<'a>(&'a Writing);

impl Drop for StopWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }
}

/// Which of the keys that were ever asked for are there; each must have its value.
fn read_back(cluster: &Cluster<'_>, id: u16, asked: u64) -> Result<u64> {
    let mut client = cluster.client(id)?;
    let names: Vec<String> = (0..asked).map(|number| format!("key-{number}")).collect();
    let mut found = BTreeSet::new();
    for part in names.chunks(READ_KEYS) {
        let part: Vec<&str> = part.iter().map(String::as_str).collect();
        for item in client.gets_many(&part).expect("a cluster at rest answers") {
            let number = item.key.trim_start_matches("key-").to_owned();
            ensure!(item.value == number.as_bytes(), "{}", item.key);
            found.insert(number.parse::<u64>()?);
        }
    }
    let count = found.len() as u64;
    ensure!(
        (0..count).all(|number| found.contains(&number)),
        "a later write is there and an earlier one is not"
    );
    Ok(count)
}

#[test]
fn a_backup_under_load_has_all_that_was_acknowledged_before_it() {
    run_started(Plan::new(3, Durability::Sync), |cluster| {
        let file = cluster.scratch_file("backup");
        let http = cluster.http(0).to_string();
        let writing = Writing::new();
        let leader = cluster.wait_for_leader()?;
        let before = thread::scope(|scope| -> Result<u64> {
            let stop = StopWhenDropped(&writing);
            let writer = scope.spawn(|| writing.go_on(cluster, leader));
            writing.wait_for(cluster, 500)?;
            let before = writing.count();
            let said = cluster.command(&["backup", "--to", text(&file)?, "--addr", &http])?;
            ensure!(said.contains("cluster \"harness\" up to index"), "{said}");
            writing.wait_for(cluster, writing.count() + 100)?;
            drop(stop);
            writer.join().expect("the writer does not panic")?;
            Ok(before)
        })?;
        cluster.command(&["backup", "--verify", text(&file)?])?;
        let again = cluster.try_command(&["backup", "--to", text(&file)?, "--addr", &http])?;
        ensure!(
            !again.success && again.stderr.contains("--force"),
            "{}",
            again.stderr
        );
        cluster.command(&["backup", "--to", text(&file)?, "--addr", &http, "--force"])?;
        let last = writing.count();

        // A third one, of a cluster at rest, is the same state to the byte, sessions included.
        let old = cluster.wait_for_equal(&[0, 1, 2])?;
        let token = cluster.client(leader)?.gets("key-0").expect("gets");
        cluster.kill_all()?;
        println!("{before} acknowledged before, {last} in all");
        restore(cluster, &file, "harness-2")?;
        cluster.start_all()?;
        wait_for_voters(cluster, &[0, 1, 2])?;
        ensure!(read_back(cluster, 0, last + 100)? == last);
        let new = cluster.wait_for_equal(&[0, 1, 2])?;
        ensure!(new.digest == old.digest, "{old:?} became {new:?}");
        ensure!(new.applied_index > old.applied_index + (1 << 32), "{new:?}");

        // It is a cluster like any other, and no number of the old one comes again.
        let leader = cluster.wait_for_leader()?;
        cluster.put("key-0", "0")?;
        let written = cluster.client(leader)?.gets("key-0").expect("gets");
        let tokens = token.zip(written).context("it is there")?;
        ensure!(tokens.1.token > tokens.0.token + (1 << 32), "{tokens:?}");
        cluster.kill(leader)?;
        cluster.put("after", "1")?;
        Ok(())
    });
}

#[test]
fn what_was_written_after_a_backup_began_is_there_in_order_or_not_at_all() {
    run_started(Plan::fast(3, Durability::Memory), |cluster| {
        let file = cluster.scratch_file("backup");
        let http = cluster.http(0).to_string();
        let writing = Writing::new();
        let leader = cluster.wait_for_leader()?;
        let (before, after) = thread::scope(|scope| -> Result<(u64, u64)> {
            let stop = StopWhenDropped(&writing);
            let writer = scope.spawn(|| writing.go_on(cluster, leader));
            writing.wait_for(cluster, 500)?;
            let before = writing.count();
            cluster.command(&["backup", "--to", text(&file)?, "--addr", &http])?;
            let after = writing.count();
            writing.wait_for(cluster, after + 100)?;
            drop(stop);
            writer.join().expect("the writer does not panic")?;
            Ok((before, after))
        })?;
        cluster.kill_all()?;
        restore(cluster, &file, "harness-2")?;
        // What was in memory is on disk now, and is served from there.
        cluster.plan().durability = Durability::Sync;
        cluster.start_all()?;
        wait_for_voters(cluster, &[0, 1, 2])?;
        let found = read_back(cluster, 1, after + 200)?;
        println!(
            "{before} acknowledged before, {found} found, {after} acknowledged when it was done"
        );
        ensure!(found >= before && found <= after + 1);
        Ok(())
    });
}

/// Makes the folders of all replicas anew, under another name.
fn restore(cluster: &mut Cluster<'_>, file: &Path, name: &str) -> Result<()> {
    let members = members(cluster, &[0, 1, 2]);
    for id in [0, 1, 2] {
        let dir = cluster.dir(id);
        let (id_text, dir) = (id.to_string(), text(&dir)?.to_owned());
        let mut arguments = vec!["restore", "--from", text(file)?, "--dir", &dir];
        arguments.extend(["--id", &id_text, "--members", &members, "--cluster", name]);
        let refused = cluster.try_command(&arguments)?;
        ensure!(
            !refused.success && refused.stderr.contains("empty or not there"),
            "over old data: {}",
            refused.stderr
        );
        cluster.wipe(id)?;
        cluster.command(&arguments)?;
    }
    cluster.set_name(name);
    Ok(())
}

#[test]
fn a_survivor_alone_becomes_a_cluster_that_the_old_replicas_are_no_part_of() {
    let mut plan = Plan::new(3, Durability::Sync);
    plan.spares = 2;
    run_started(plan, |cluster| {
        for number in 0..100 {
            cluster.put(&format!("key-{number}"), &number.to_string())?;
        }
        let equal = cluster.wait_for_equal(&[0, 1, 2])?;
        // What it has applied may be on the disks of the two others only.
        cluster.wait_for("the survivor to have all on its disk", || {
            Ok(cluster.status(1)?.persisted_index >= equal.applied_index)
        })?;
        let dir = cluster.dir(1);
        let recover = ["recover", "--force-new-cluster", "--dir", text(&dir)?];
        let running = cluster.try_command(&recover)?;
        ensure!(
            !running.success && running.stderr.contains("must be stopped"),
            "{}",
            running.stderr
        );
        cluster.kill_all()?;
        cluster.wipe(2)?;

        let unconfirmed = cluster.try_command(&recover)?;
        let said = format!("{}{}", unconfirmed.stdout, unconfirmed.stderr);
        ensure!(
            !unconfirmed.success && said.contains("nothing was changed"),
            "{said}"
        );
        for word in ["last index", "commit index", "is lost"] {
            ensure!(said.contains(word), "{word} is not in {said}");
        }
        let mut confirmed = recover.to_vec();
        confirmed.extend(["--yes", "--cluster", "harness-new"]);
        cluster.command(&confirmed)?;
        ensure!(kept_folders(&dir)? == 1, "the old data are kept");

        let old_name = cluster.set_name("harness-new");
        cluster.start(1)?;
        ensure!(cluster.wait_for_leader()? == 1);
        wait_for_voters(cluster, &[1])?;
        ensure!(read_back(cluster, 1, 200)? == 100);
        let mut voters = vec![1];
        for id in [3, 4] {
            cluster.start_joining(id)?;
            cluster.change_member(&["add"], id)?;
            voters.push(id);
            wait_for_voters(cluster, &voters)?;
        }

        // An old replica under the new name is refused by its own folder, under the old one by everybody.
        let foreign = cluster.start_in_vain(0)?;
        let said = format!("{}{}", foreign.stdout, foreign.stderr);
        ensure!(
            !foreign.success && said.contains("belongs to cluster harness, expected harness-new"),
            "{said}"
        );
        cluster.set_name(&old_name);
        cluster.start(0)?;
        cluster.wait_for("the old replica to be refused", || {
            let faults = page(cluster.http(0), "/v1/status").unwrap_or_default().1;
            Ok(faults.contains("harness-new"))
        })?;
        ensure!(cluster.status(0)?.role != Role::Leader);
        cluster.kill(1)?;
        cluster.wait_for("one of the new ones to lead", || {
            let leader = [3, 4].map(|id| cluster.status(id).ok());
            Ok(leader
                .into_iter()
                .flatten()
                .any(|it| it.role == Role::Leader))
        })?;
        ensure!(read_back(cluster, 3, 200)? == 100);
        Ok(())
    });
}

fn kept_folders(dir: &Path) -> Result<usize> {
    let mut kept = 0;
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name();
        kept += usize::from(name.to_string_lossy().contains(".before-"));
    }
    Ok(kept)
}

#[test]
fn in_memory_mode_there_is_nothing_to_recover() {
    run(Plan::new(1, Durability::Memory), |cluster| {
        cluster.start(0)?;
        cluster.wait_for_leader()?;
        cluster.put("key-0", "0")?;
        cluster.kill(0)?;
        let dir = cluster.dir(0);
        let arguments = [
            "recover",
            "--force-new-cluster",
            "--yes",
            "--dir",
            text(&dir)?,
        ];
        let refused = cluster.try_command(&arguments)?;
        ensure!(
            !refused.success && refused.stderr.contains("memory mode, which keeps nothing"),
            "{}",
            refused.stderr
        );
        Ok(())
    });
}

#[test]
fn the_memory_of_a_survivor_is_saved_without_a_leader() {
    run_started(Plan::new(3, Durability::Memory), |cluster| {
        for number in 0..50 {
            cluster.put(&format!("key-{number}"), &number.to_string())?;
        }
        cluster.wait_for_equal(&[0, 1, 2])?;
        let survivor = (cluster.wait_for_leader()? + 1) % 3;
        for id in (0..3).filter(|id| *id != survivor) {
            cluster.kill(id)?;
        }
        let (file, http) = (cluster.scratch_file("backup"), cluster.http(survivor));
        let http = http.to_string();
        cluster.wait_for("nobody to lead", || {
            Ok(cluster.status(survivor)?.leader.is_none())
        })?;
        let arguments = ["backup", "--stale", "--to", text(&file)?, "--addr", &http];
        cluster.command(&arguments)?;
        cluster.kill(survivor)?;
        restore(cluster, &file, "harness-2")?;
        cluster.plan().durability = Durability::Sync;
        cluster.start_all()?;
        wait_for_voters(cluster, &[0, 1, 2])?;
        ensure!(read_back(cluster, 2, 100)? == 50);
        Ok(())
    });
}

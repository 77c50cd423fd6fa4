//! A replica of a running `quorumwire dev` is started again: another process leaves a file in the cluster's
//! folder, and the one that the replicas belong to finds it there.
use super::super::ask;
use super::super::local_cluster::{
    ClusterRecord, LocalCluster, ReplicaAddresses, START_TIMEOUT, lock,
};
use super::super::progress::Progress;
use anyhow::{Context as _, bail};
use quorumwire_node::options::Refused;
use quorumwire_storage::LOCK_NAME;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

const POLL_INTERVAL: Duration = Duration::from_millis(50);
const REPORT_TIMEOUT: Duration = Duration::from_millis(500);

fn request(dir: &Path, id: u16) -> PathBuf {
    dir.join(format!("restart-{id}"))
}

/// Asks whom the cluster in this folder belongs to, and waits until the replica answers; what came of it, in
/// words.
pub fn ask(dir: &Path, id: u16) -> anyhow::Result<String> {
    let replica = addresses_of(dir, id)?;
    if lock(dir).is_ok() {
        bail!(
            "no `quorumwire dev` runs in {0}: `quorumwire dev --dir {0}` starts all of its replicas",
            dir.display()
        );
    }
    if let Ok(report) = ask::report(&replica.http, REPORT_TIMEOUT)
        && report.id == id
    {
        return Ok(format!(
            "replica {id} runs already{}: nothing was done",
            pid_in_words(dir, id)
        ));
    }
    let request = request(dir, id);
    fs::write(&request, "").with_context(|| format!("writing {}", request.display()))?;
    let mut progress = Progress::start();
    while request.exists() || ask::report(&replica.http, REPORT_TIMEOUT).is_err() {
        if progress.elapsed() > START_TIMEOUT {
            fs::remove_file(&request).ok(); // it may be gone
            bail!(
                "replica {id} does not answer after {} s: see {}",
                START_TIMEOUT.as_secs(),
                dir.join(format!("{id}.log")).display()
            );
        }
        progress.say(&format!("waiting for replica {id}"));
        thread::sleep(POLL_INTERVAL);
    }
    Ok(format!(
        "replica {id} was started again{}",
        pid_in_words(dir, id)
    ))
}

/// The process that has the replica's data folder, as it says itself.
fn pid_in_words(dir: &Path, id: u16) -> String {
    let lock = dir.join(id.to_string()).join("group-0").join(LOCK_NAME);
    let holder = fs::read_to_string(lock).unwrap_or_default(); // for people only
    let pid = holder.trim().parse::<u32>();
    pid.map_or_else(|_| String::new(), |pid| format!(" (PID {pid})"))
}

fn addresses_of(dir: &Path, id: u16) -> anyhow::Result<ReplicaAddresses> {
    let allowed = "the folder of a `quorumwire dev` that runs";
    let recorded = ClusterRecord::read(dir)?
        .ok_or_else(|| Refused::flag("dir", dir.display().to_string(), allowed))?;
    let ids: Vec<String> = recorded
        .replicas
        .iter()
        .map(|it| it.id.to_string())
        .collect();
    let mut replicas = recorded.replicas.into_iter();
    let replica = replicas.find(|replica| replica.id == id);
    replica.ok_or_else(|| Refused::flag("restart", id.to_string(), ids.join(", ")).into())
}

/// Which replicas are to be started again. Who asked sees that it was heard.
pub fn asked_for(cluster: &LocalCluster, dir: &Path) -> anyhow::Result<Vec<u16>> {
    let mut asked = Vec::new();
    for replica in cluster.replicas() {
        match fs::remove_file(request(dir, replica.id)) {
            Ok(()) if cluster.pid(replica.id).is_none() => asked.push(replica.id),
            Ok(()) => {} // it runs
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error).context("looking for restarts that are asked for"),
        }
    }
    Ok(asked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorumwire_node::options::Durability;

    #[test]
    fn a_restart_is_asked_for_once() {
        let dir = tempfile::tempdir().unwrap();
        let (cluster, _) = LocalCluster::open(dir.path(), None, Durability::Sync, &[]).unwrap();
        assert!(asked_for(&cluster, dir.path()).unwrap().is_empty());
        fs::write(request(dir.path(), 1), "").unwrap();
        assert_eq!(asked_for(&cluster, dir.path()).unwrap(), [1]);
        assert!(asked_for(&cluster, dir.path()).unwrap().is_empty());
    }

    #[test]
    fn the_process_is_the_one_that_has_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(pid_in_words(dir.path(), 1), "", "nobody has it");
        let folder = dir.path().join("1/group-0");
        let _held = quorumwire_storage::FolderDisk::open(&folder).unwrap();
        let me = format!(" (PID {})", std::process::id());
        assert_eq!(pid_in_words(dir.path(), 1), me);
    }

    #[test]
    fn who_cannot_be_started_again_is_said_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let said = |id| format!("{:#}", ask(dir.path(), id).unwrap_err());
        assert!(
            said(0).contains("folder of a `quorumwire dev`"),
            "{}",
            said(0)
        );
        let opened = LocalCluster::open(dir.path(), None, Durability::Sync, &[]).unwrap();
        assert!(said(7).contains("0, 1, 2"), "{}", said(7));
        drop(opened);
        assert!(said(0).contains("no `quorumwire dev` runs"), "{}", said(0));
    }
}

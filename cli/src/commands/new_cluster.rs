//! The data folder that a new cluster begins with when it does not begin empty: one state, and the one
//! replica that holds it. See docs/decisions/0011-a-new-cluster-from-old-data.md.
use anyhow::{Context as _, bail};
use quorumwire_interfaces::{Frozen, Incarnation, Index, LogTime, ReplicaId, Term};
use quorumwire_node::options::{Hosts, Refused};
use quorumwire_node::server::{self, GROUP, random_lineage, random_number};
use quorumwire_node::stage::{MeteredStream, Progress, Stage};
use quorumwire_storage::{FolderDisk, LogJob, OpenFolder, Settings, open};
use quorumwire_wire::limits::CLUSTER_NAME_BYTES_MAX;
use quorumwire_wire::{CommitQuorum, Member, MemberRole, Membership, SnapshotHead, peer};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// What the log's indexes are moved on by, from the last index or the last command's number on, whichever is
/// larger. The old cluster may have gone on behind what is known of it, and clients may remember numbers of
/// its commands (`cas`), of which there are many to an entry: none of them comes again, because a command's
/// number is at least its entry's index.
const INDEX_GAP: u64 = 1 << 40;
/// The folder's first segment; the server has its own size for what follows.
const SEGMENT_BYTES: u64 = 1 << 20;

/// What a new cluster begins with.
pub struct Beginning {
    /// Its name, never that of the old one.
    pub cluster: String,
    /// The replica that holds the state.
    pub holder: ReplicaId,
    /// Where all members are reached, the holder included.
    pub members: Vec<(ReplicaId, String)>,
    /// How many must agree.
    pub quorum: CommitQuorum,
    /// Where the old log ended, as far as it is known.
    pub ended: (Index, Term),
    /// Its time then.
    pub log_time: LogTime,
}

/// The state that it begins with.
pub struct Contents {
    /// It.
    pub frozen: Box<dyn Frozen>,
    /// Of the last command that was carried out.
    pub last_number: u64,
}

/// The replica's data within `dir`.
pub fn group_folder(dir: &Path) -> PathBuf {
    dir.join(format!("group-{GROUP}"))
}

/// Where it is made before it gets its name; whatever is there is not used.
pub fn unfinished_folder(dir: &Path) -> PathBuf {
    dir.join(format!("group-{GROUP}.tmp"))
}

/// Refuses a name that no cluster can have, or that the old one has.
pub fn check_name(name: &str, old: &str) -> Result<(), Refused> {
    if name.is_empty() || name.len() > CLUSTER_NAME_BYTES_MAX || name == old {
        let allowed = format!(
            "1 to {CLUSTER_NAME_BYTES_MAX} bytes, and not {old:?}: replicas of the old cluster must not take \
             part in the new one"
        );
        return Err(Refused::flag("cluster", name, allowed));
    }
    let (is, would_be) = (Hosts::of(old), Hosts::of(name));
    let what = is.in_words();
    let allowed = match is {
        _ if is == would_be => return Ok(()),
        Hosts::Store => format!(
            "a name that does not end with `{}`: what there is is {what}",
            would_be.end_of_name()
        ),
        Hosts::Program | Hosts::Values => format!(
            "a name that ends with `{}`: what there is is {what}",
            is.end_of_name()
        ),
    };
    Err(Refused::flag("cluster", name, allowed))
}

/// Writes the holder's folder durably, and gives the index that the new log begins behind. Every life in
/// it is new. The others are named in lives that nobody lives: whoever comes empty takes that place as a
/// learner, is brought up to date, and votes then.
pub fn write(
    folder: &Path,
    begins: &Beginning,
    contents: &Contents,
    stage: &Stage,
) -> anyhow::Result<Index> {
    let disk = Arc::new(FolderDisk::open(folder)?);
    let lineage = random_lineage()?;
    let own_life = Incarnation(random_number()?.max(1));
    let settings = Settings {
        cluster: begins.cluster.clone(),
        replica: begins.holder,
        group: GROUP,
        new_incarnation: own_life,
        segment_bytes: SEGMENT_BYTES,
        promise: Duration::ZERO, // nothing was promised in this life
        lineage,
    };
    let OpenFolder::Ready(ready) = open(disk, settings)? else {
        bail!("{} is not empty", folder.display());
    };
    let mut members = Vec::new();
    for (id, peer_address) in &begins.members {
        let is_holder = *id == begins.holder;
        members.push(Member {
            id: *id,
            incarnation: if is_holder {
                own_life
            } else {
                Incarnation(random_number()?.max(1))
            },
            peer_address: peer_address.clone(),
            role: if is_holder {
                MemberRole::Voter
            } else {
                MemberRole::Joining
            },
        });
    }
    members.sort_by_key(|member| member.id);
    let (index, term) = begins.ended;
    let last = index.0.max(contents.last_number);
    let last_index = last.checked_add(INDEX_GAP).map(Index);
    let last_index = last_index.context("the log's indexes are used up")?;
    let last_term = Term(term.0 + 1);
    let head = SnapshotHead {
        group: GROUP,
        last_index,
        last_term,
        log_time: begins.log_time,
        membership: Membership {
            members,
            quorum: begins.quorum,
            lineage,
        },
        membership_index: last_index,
    };
    ready.snapshots.create(&head, |out| {
        let written = |bytes| stage.set(Progress::of_bytes("writing the data", bytes, 0));
        contents
            .frozen
            .write(&mut MeteredStream::new(out, written))?;
        stage.begins("syncing the data");
        Ok(())
    })?;
    let hard_state = peer::HardState {
        term: last_term.0,
        commit_index: last_index.0,
        ..peer::HardState::default()
    };
    let job = LogJob {
        ticket: 1,
        hard_state: Some(hard_state),
        begin_behind: Some((last_index, last_term)),
        ..LogJob::default()
    };
    let mut log = ready.log.into_wal().context("a folder has a log")?;
    log.write(&[job])?;
    Ok(last_index)
}

/// Makes what was made, renamed or removed in this folder durable.
pub fn sync_folder(folder: &Path) -> anyhow::Result<()> {
    server::sync_folder(folder).with_context(|| format!("syncing {}", folder.display()))
}

#[cfg(test)]
#[path = "new_cluster_test.rs"]
mod tests;

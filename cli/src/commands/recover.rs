//! `quorumwire recover`: one survivor's data becomes a cluster of one. For when a majority is gone for good
//! and no backup is newer. Works on a stopped replica's folder.
use super::confirm;
use super::new_cluster::{self, Beginning, Contents, group_folder, sync_folder, unfinished_folder};
use super::progress::during;
use anyhow::{Context as _, bail, ensure};
use quorumwire_deliver::Values;
use quorumwire_group::{apply, commands_of};
use quorumwire_interfaces::{Application, Index, LogTime, Term};
use quorumwire_kv::Store;
use quorumwire_node::options::{Hosts, Refused, is_of_program, reachable_argument};
use quorumwire_node::server::random_number;
use quorumwire_node::stage::{MeteredStream, Progress, Stage};
use quorumwire_sessions::Sessions;
use quorumwire_storage::{
    Disk as _, FolderDisk, FolderOwner, OpenFolder, Owned, Part, Ready, Settings, open_watched,
    owner_of,
};
use quorumwire_wire::{Membership, Record, RecordKind};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// What the server's folder holds may not be cut into smaller files than this.
const SEGMENT_BYTES: u64 = 64 << 20;
/// How far it is is noted after so many entries.
const NOTED_ENTRIES: usize = 256;

/// Only for a cluster that has lost its majority for good: what was acknowledged and is not in this folder
/// is lost. The new cluster has this replica as its only member and a new name; further replicas join it
/// with empty folders (`quorumwire member add`). The old data are kept beside the new.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example, with the server of the survivor stopped; then its server under the new name, and others:
  quorumwire recover --force-new-cluster --dir data/1
  quorumwire server --cluster prod-1f2e3d4c --id 1 --dir data/1 --members 1=10.0.0.11:7400 ...
  quorumwire server --cluster prod-1f2e3d4c --id 3 --dir data/3 --join --members 1=10.0.0.11:7400 ...
  quorumwire member add --id 3 --peer 10.0.0.13:7400 --addr 10.0.0.11:7480")]
pub struct Arguments {
    /// Say that a new cluster is wanted: there is no other way to go on without a majority
    #[arg(long, required = true)]
    force_new_cluster: bool,
    /// The folder of the survivor: the --dir of its server, which must not run
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Name of the new cluster [default: the old one's with a random end]
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// Where other replicas will connect to it [default: where they did]
    #[arg(long, value_name = "HOST:PORT", value_parser = reachable_argument)]
    peer: Option<String>,
    /// Do it without asking
    #[arg(long)]
    yes: bool,
}

/// Recovers, once it is confirmed.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let dir = arguments.dir.as_path();
    let folder = group_folder(dir);
    if !folder.is_dir() {
        let allowed = "the --dir of a server that has run";
        return Err(Refused::flag("dir", dir.display().to_string(), allowed).into());
    }
    let disk = FolderDisk::open(&folder).context("the server of this folder must be stopped")?;
    let disk = Arc::new(disk); // locked to the end
    let owner = owner(&disk)?;
    ensure!(
        !is_of_program(&owner.cluster),
        "nothing was changed: this folder is of a served program's cluster, {:?}, whose log can be carried out by \
         its program only. Restore a backup",
        owner.cluster
    );
    match Hosts::of(&owner.cluster) {
        Hosts::Values => go_on::<Values>(arguments, &disk, &owner),
        Hosts::Store | Hosts::Program => go_on::<Store>(arguments, &disk, &owner),
    }
}

/// The same, knowing what is replicated.
fn go_on<A: Application + Default>(
    arguments: &Arguments,
    disk: &Arc<FolderDisk>,
    owner: &FolderOwner,
) -> anyhow::Result<ExitCode> {
    let dir = arguments.dir.as_path();
    let survivor = during(|stage| Survivor::<A>::read(disk, owner, stage))?;
    let own = survivor.members.member(owner.replica);
    let listed = own.map(|own| own.peer_address.clone());
    let peer = arguments.peer.clone().or(listed).ok_or_else(|| {
        Refused::flag(
            "peer",
            "",
            "HOST:PORT; what it holds does not list it as a member",
        )
    })?;
    let cluster = match &arguments.cluster {
        Some(name) => name.clone(),
        None => new_name(&owner.cluster)?,
    };
    new_cluster::check_name(&cluster, &owner.cluster)?;
    out!("{}", survivor.described(owner))?;
    outln!("{}", consequences(&survivor, &cluster))?;
    if !arguments.yes {
        confirm::by_word("To do it, type the old cluster's name: ", &owner.cluster)?;
    }

    let begins = Beginning {
        cluster: cluster.clone(),
        holder: owner.replica,
        members: vec![(owner.replica, peer)],
        quorum: survivor.members.quorum,
        ended: (survivor.last_index, survivor.term),
        log_time: survivor.log_time,
    };
    let kept = during(|stage| replace(dir, owner, &begins, &survivor.store, stage))?;
    std::mem::forget(survivor); // the process ends and its memory with it: no item is freed by itself
    let told = cluster.strip_suffix(Hosts::of(&cluster).end_of_name());
    let told = told.unwrap_or(&cluster);
    outln!(
        "replica {} is the cluster {cluster:?} now: start its server with --cluster {told}. What was there is \
         kept in {}; remove it once nothing of it is missed",
        owner.replica,
        kept.display()
    )?;
    Ok(ExitCode::SUCCESS)
}

fn owner(disk: &FolderDisk) -> anyhow::Result<FolderOwner> {
    let owner = match owner_of(disk)? {
        Owned::By(owner) => owner,
        Owned::ByNobody => bail!("nothing to recover: no replica has kept anything in this folder"),
        Owned::Damaged(what) => bail!(
            "nothing was changed: the folder is damaged ({what}). Take another survivor's, or a backup"
        ),
    };
    let has_log = disk.list()?.iter().any(|name| name.starts_with("log-"));
    ensure!(
        has_log,
        "nothing to recover: replica {} of cluster {:?} ran in memory mode, which keeps nothing on disk. Its \
         data were in its process only; take a backup, if there is one",
        owner.replica,
        owner.cluster
    );
    Ok(owner)
}

/// What the folder holds.
struct Survivor<A> {
    store: Sessions<A>,
    term: Term,
    last_term: Term,
    last_index: Index,
    commit_index: Index,
    snapshot_index: Index,
    members: Membership,
    log_time: LogTime,
}

impl<A: Application + Default> Survivor<A> {
    /// Reads it as a start of the server would, and carries out its log to the end.
    fn read(disk: &Arc<FolderDisk>, owner: &FolderOwner, stage: &Stage) -> anyhow::Result<Self> {
        let settings = Settings {
            cluster: owner.cluster.clone(),
            replica: owner.replica,
            group: owner.group,
            new_incarnation: owner.incarnation, // not used: the folder is not new
            segment_bytes: SEGMENT_BYTES,
            promise: Duration::ZERO,
            lineage: owner.lineage,
        };
        let mut watch = |part, read, of| {
            stage.set(Progress::of_bytes(
                match part {
                    Part::Log => "reading the log",
                    Part::Snapshot => "checking the snapshot",
                },
                read,
                of,
            ));
        };
        let opened = open_watched(Arc::clone(disk) as Arc<_>, settings, &mut watch)?;
        let ready = match opened {
            OpenFolder::Ready(ready) => ready,
            OpenFolder::Damaged(damaged) => bail!(
                "nothing was changed: the folder is damaged ({}). Take another survivor's, or a backup",
                damaged.what()
            ),
        };
        let survivor = Self::carried_out(&ready, stage)?;
        ensure!(
            survivor.last_index > Index(0) && !survivor.members.members.is_empty(),
            "nothing to recover: replica {} has been a member of nothing yet",
            owner.replica
        );
        Ok(survivor)
    }

    fn carried_out(ready: &Ready, stage: &Stage) -> anyhow::Result<Self> {
        let stored = &ready.stored;
        let mut survivor = Self {
            store: Sessions::default(),
            term: Term(stored.hard_state.term),
            last_term: Term(0),
            last_index: Index(0),
            commit_index: Index(stored.hard_state.commit_index),
            snapshot_index: Index(0),
            members: Membership::default(),
            log_time: LogTime(0),
        };
        if let Some(head) = &stored.snapshot {
            survivor.restore(ready, head.last_index, stage)?;
            survivor.term = survivor.term.max(head.last_term);
            survivor.last_term = head.last_term;
            survivor.last_index = head.last_index;
            survivor.commit_index = survivor.commit_index.max(head.last_index);
            survivor.snapshot_index = head.last_index;
            survivor.members = head.membership.clone();
            survivor.log_time = head.log_time;
        }
        let mut reply = Vec::new();
        let entry_count = stored.entries.len() as u64;
        for (number, entry) in stored.entries.iter().enumerate() {
            if number % NOTED_ENTRIES == 0 {
                let done = number as u64;
                stage.set(Progress::of_entries(
                    "carrying out the log",
                    done,
                    entry_count,
                ));
            }
            if entry.index <= survivor.last_index {
                continue; // the snapshot has it
            }
            ensure!(
                entry.index == survivor.last_index.next(),
                "entry {} follows entry {}",
                entry.index,
                survivor.last_index
            );
            let record = Record::decode(entry.record())?;
            if record.kind == RecordKind::Membership {
                survivor.members = Membership::decode(record.payload)?;
            }
            for command in commands_of(record.kind, record.payload) {
                reply.clear();
                let at = (record.index, &mut survivor.log_time);
                apply(&mut survivor.store, at, command, &mut reply);
            }
            survivor.term = survivor.term.max(record.term);
            survivor.last_term = record.term;
            survivor.last_index = record.index;
        }
        Ok(survivor)
    }

    /// Takes in the state that the snapshot holds.
    fn restore(&mut self, ready: &Ready, index: Index, stage: &Stage) -> anyhow::Result<()> {
        let mut watch =
            |read, of| stage.set(Progress::of_bytes("checking the snapshot again", read, of));
        let file = ready.snapshots.open_watched(index, &mut watch)?;
        let file = file.context("the newest snapshot is gone")?;
        let total = file.total_bytes();
        let restored = |read| stage.set(Progress::of_bytes("restoring the snapshot", read, total));
        self.store
            .restore(&mut MeteredStream::new(file.body()?, restored))?;
        Ok(())
    }

    fn described(&self, owner: &FolderOwner) -> String {
        let members: Vec<String> = self
            .members
            .members
            .iter()
            .map(|member| member.id.to_string())
            .collect();
        format!(
            "replica {} of cluster {:?} (lineage {}) holds\n\
             \x20 term             {}\n\
             \x20 last index       {} (of term {})\n\
             \x20 commit index     {} (what it knows of; more may be committed)\n\
             \x20 snapshot index   {}\n\
             \x20 members          {}\n",
            owner.replica,
            owner.cluster,
            self.members.lineage.or(owner.lineage),
            self.term,
            self.last_index,
            self.last_term,
            self.commit_index,
            self.snapshot_index,
            members.join(", "),
        )
    }
}

fn consequences<A>(survivor: &Survivor<A>, cluster: &str) -> String {
    let unknown = survivor
        .last_index
        .0
        .saturating_sub(survivor.commit_index.0);
    let entries = entries(unknown);
    format!(
        "If you go on:\n\
         - What the old cluster acknowledged behind index {} is lost.\n\
         - {entries} valid, whether ever acknowledged or not: a \
         write whose client was told `outcome unknown`, or nothing, may be there.\n\
         - The new cluster is called {cluster:?} and has this replica as its only member. Replicas of the old \
         cluster are refused by it. Where a majority of them still runs, it goes on as the old cluster, with other \
         data: make sure that none does.\n\
         - With several survivors, take the one whose last index is of the highest term, and of those the one with the \
         highest last index; only that one.",
        survivor.last_index,
    )
}

fn entries(count: u64) -> String {
    match count {
        1 => "1 entry behind its commit index becomes".to_owned(),
        _ => format!("{count} entries behind its commit index become"),
    }
}

fn new_name(old: &str) -> anyhow::Result<String> {
    let end = format!("-{:08x}", random_number()? >> 32);
    let end_of_kind = Hosts::of(old).end_of_name();
    let old = old.strip_suffix(end_of_kind).unwrap_or(old);
    // Names have at most 64 bytes; the random end is what matters.
    let mut kept = old.len().min(64 - end.len() - end_of_kind.len());
    while !old.is_char_boundary(kept) {
        kept -= 1;
    }
    Ok(format!("{}{end}{end_of_kind}", &old[..kept]))
}

/// Puts the new cluster's folder in the place of the old one in one step; where the old one is kept. If it
/// is cut short there is the old folder or the new one, and another run begins from that.
fn replace<A: Application>(
    dir: &Path,
    owner: &FolderOwner,
    begins: &Beginning,
    store: &Sessions<A>,
    stage: &Stage,
) -> anyhow::Result<PathBuf> {
    let folder = group_folder(dir);
    let unfinished = unfinished_folder(dir);
    remove_if_there(&unfinished)?;
    let contents = Contents {
        frozen: store.freeze(),
        last_number: store.last_number(),
    };
    new_cluster::write(&unfinished, begins, &contents, stage)?;
    let kept = dir.join(format!(
        "group-{}.before-{}",
        owner.group, owner.incarnation
    ));
    keep(&folder, &kept)?;
    sync_folder(dir)?;
    renameat_with(CWD, &unfinished, CWD, &folder, RenameFlags::EXCHANGE).with_context(|| {
        format!(
            "exchanging {} and {}: nothing was changed",
            unfinished.display(),
            folder.display()
        )
    })?;
    sync_folder(dir)?;
    remove_if_there(&unfinished)?; // the old one, which is kept under its other name
    Ok(kept)
}

/// Another name for every file, so that nothing is copied and nothing can be lost on the way.
fn keep(folder: &Path, kept: &Path) -> anyhow::Result<()> {
    remove_if_there(kept)?; // of a run that was cut short: the folder is still what it was
    fs::create_dir(kept).with_context(|| format!("making {}", kept.display()))?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            let name = kept.join(entry.file_name());
            fs::hard_link(entry.path(), &name)
                .with_context(|| format!("keeping {}", name.display()))?;
        }
    }
    sync_folder(kept)
}

fn remove_if_there(folder: &Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(folder) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).with_context(|| format!("removing {}", folder.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::entries;

    #[test]
    fn one_entry_is_one() {
        assert!(entries(1).starts_with("1 entry behind"));
        assert!(entries(0).starts_with("0 entries behind"));
    }
}

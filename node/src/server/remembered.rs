//! What a replica remembers of its groups when it starts: their data folders, opened and read.
use super::clock;
use super::earlier_plane::EarlierPlaneOff;
use super::folder::Folder;
use super::given_up::{begun_anew, given_up};
use super::groups::group_at;
use super::journal::Journal;
use super::member_history::MemberHistory;
use super::member_mark::{has_forgotten, holder_of_restored, is_marked, mark_as_member};
use super::random::random_number;
use super::snapshots::Snapshots;
use crate::options::{Durability, ServerOptions};
use crate::privileges;
use crate::stage::{MeteredStream, Progress};
use anyhow::{Context as _, ensure};
use mio::Waker;
use quorumwire_control::{Now, PersistedState};
use quorumwire_interfaces::{Application, GroupId, Incarnation, Lineage, ReplicaId};
use quorumwire_sessions::Sessions;
use quorumwire_storage::{
    self as storage, FolderDisk, LogWriter, OpenFolder, Part, Ready, Settings, open_memory,
};
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A start that waits looks this often whether it is to stop.
const STOP_LOOKED_AT: Duration = Duration::from_millis(50);

/// What was found in the data folder of a group.
pub struct Memory<A> {
    pub folder: Folder,
    pub incarnation: Incarnation,
    pub journal: Journal,
    pub stored: PersistedState,
    pub store: Box<Sessions<A>>,
    pub snapshots: Snapshots<A>,
    /// What the process before this one has promised.
    pub earlier: EarlierPromise,
    pub past: Past,
}

fn group_folder(options: &ServerOptions, group: GroupId) -> PathBuf {
    options.dir.join(format!("group-{group}"))
}

/// Makes the data folder of a group if it is missing, and keeps other processes out of it.
pub fn lock_folder(options: &ServerOptions, group: GroupId) -> anyhow::Result<Arc<FolderDisk>> {
    privileges::make_folder(&options.dir)?;
    let folder = group_folder(options, group);
    let disk = FolderDisk::open(&folder);
    let disk = disk.with_context(|| format!("option dir: data folder {}", folder.display()))?;
    Ok(Arc::new(disk))
}

/// Opens the data folders of all groups, the first one first. All are of one life of this replica: who has
/// lost one has lost all that it has promised there.
pub fn open_all<A: Application + Default + 'static>(
    options: &ServerOptions,
    disks: Vec<Arc<FolderDisk>>,
    waker: &Arc<Waker>,
    is_at: &mut dyn FnMut(Progress),
) -> anyhow::Result<Vec<Memory<A>>> {
    let mut memories: Vec<Memory<A>> = Vec::new();
    for (place, disk) in disks.into_iter().enumerate() {
        let drawn = Incarnation(random_number()?.max(1));
        // Beside one that is not new, a new folder is of a life of its own, for good: it contradicts the
        // first.
        let new = memories.first().filter(|first| first.stored.new_life);
        let life = new.map_or(drawn, |first| first.incarnation);
        let memory: Memory<A> = open(options, (group_at(place), life), disk, waker, is_at)?;
        if let Some(first) = memories.first() {
            let is_same = (memory.incarnation, memory.stored.new_life)
                == (first.incarnation, first.stored.new_life);
            ensure!(
                is_same,
                "option dir: folder group-{place} is of another life of this replica than group-0. Empty the data \
                 folder, so that the others bring this replica up to date"
            );
        }
        memories.push(memory);
    }
    Ok(memories)
}

fn open<A: Application + Default + 'static>(
    options: &ServerOptions,
    (group, new_incarnation): (GroupId, Incarnation),
    disk: Arc<FolderDisk>,
    waker: &Arc<Waker>,
    is_at: &mut dyn FnMut(Progress),
) -> anyhow::Result<Memory<A>> {
    let folder = group_folder(options, group);
    let in_folder = || format!("option dir: data folder {}", folder.display());
    let settings = Settings {
        cluster: options.cluster.clone(),
        replica: options.id,
        group,
        new_incarnation,
        segment_bytes: options.segment_bytes,
        promise: options.lease,
        lineage: Lineage::default(),
    };
    let mut fault = None;
    let mut opened = |disk: Arc<FolderDisk>| match options.durability {
        Durability::Memory => open_memory(disk, &settings).map(OpenFolder::Ready),
        Durability::Sync => {
            let mut watch = |part, read, of| is_at(how_far_read(part, read, of));
            storage::open_watched(disk, settings.clone(), &mut watch)
        }
    };
    let ended = given_up(&options.dir)?.filter(|_| options.durability == Durability::Sync);
    let ended = ended.map(|it| storage::give_up(disk.clone(), settings.clone(), it));
    let ended = ended.transpose().with_context(in_folder)?.flatten();
    let found = if let Some(ended) = ended {
        tracing::error!(
            why = ended.what(),
            "the life before was given up: its data are put aside, and the other replicas bring this one up to date"
        );
        OpenFolder::Damaged(ended)
    } else {
        let opened = opened(Arc::clone(&disk)).with_context(in_folder)?;
        if let OpenFolder::Damaged(damaged) = &opened {
            tracing::error!(
                what = damaged.what(),
                "the data folder is damaged: it is put aside, and the other replicas bring this one up to date"
            );
        }
        opened
    };
    let ready = match found {
        OpenFolder::Ready(ready) => ready,
        OpenFolder::Damaged(damaged) => {
            fault = Some(format!("started over: {}", damaged.what()));
            mark_as_member(&options.dir, None)?;
            let again = Incarnation(random_number()?.max(1));
            damaged.start_over(again).with_context(in_folder)?
        }
    };
    begun_anew(&options.dir)?;
    for note in &ready.notes {
        tracing::warn!(note, "data folder");
    }
    let past = Past::of(options, &ready, fault)?;
    if options.join && !ready.fresh {
        tracing::info!(
            lineage = %ready.lineage,
            "option join has no effect: this data folder already belongs to a member"
        );
    }
    let store = restore(&ready, &options.dir, is_at)?;
    let log = match options.durability {
        Durability::Memory => None,
        Durability::Sync => {
            let wake = Arc::clone(waker);
            // A failed wake can only mean that the event loop is gone.
            Some(LogWriter::start(
                ready.log,
                Box::new(move || drop(wake.wake())),
            )?)
        }
    };
    Ok(Memory {
        folder: Folder::new(disk, settings, ready.lineage),
        incarnation: ready.incarnation,
        journal: Journal::new(log),
        stored: PersistedState::read(
            &ready.stored.hard_state,
            ready.stored.snapshot.as_ref(),
            ready.stored.entries,
            ready.fresh,
        ),
        store,
        snapshots: Snapshots::start(ready.snapshots, (group, &options.dir), Arc::clone(waker))?,
        earlier: EarlierPromise {
            lasts: ready.promised,
        },
        past,
    })
}

fn how_far_read(part: Part, read: u64, of: u64) -> Progress {
    let what = match part {
        Part::Log => "reading the log",
        Part::Snapshot => "checking the snapshot",
    };
    Progress::of_bytes(what, read, of)
}

/// What the folder says of what this replica was before.
pub struct Past {
    /// It was a member before, or is of a cluster that begins with another replica's data, and holds nothing.
    pub amnesiac: bool,
    /// It was a member, in this life or in one that it has forgotten.
    was_member: bool,
    /// What is wrong with the folder, for people.
    pub fault: Option<String>,
}

impl Past {
    fn of(options: &ServerOptions, ready: &Ready, damage: Option<String>) -> anyhow::Result<Self> {
        let holds_nothing = ready.stored.snapshot.is_none() && ready.stored.entries.is_empty();
        // The lineage outlives a life, wherever the mark of it is.
        let has_forgotten = has_forgotten(&options.dir, ready.incarnation)?
            || ready.fresh && ready.lineage.is_known();
        let amnesiac = holds_nothing && has_forgotten;
        // Once the data have come the mark is of no member that waits for them, but of one like others.
        let holder = holder_of_restored(&options.dir)?.filter(|_| !ready.lineage.is_known());
        let waits_for = holder.filter(|_| amnesiac);
        let forgot = match waits_for {
            Some(holder) => Some(waits_for_restored(options.id, holder)),
            None if amnesiac => {
                tracing::warn!(
                    "this replica was a member and remembers nothing of it: it counts for nothing until the \
                     others have brought it up to date. If all of them have lost their memory, their data is \
                     gone; remove their folders to begin anew"
                );
                Some(
                    "it was a member and remembers nothing: it counts for nothing until the others have brought \
                     it up to date; if all have forgotten, the data is gone"
                        .to_owned(),
                )
            }
            None => None,
        };
        let was_here = amnesiac || !ready.fresh && is_marked(&options.dir)?;
        Ok(Self {
            amnesiac,
            was_member: was_here && holder.is_none(),
            fault: damage.or(forgot),
        })
    }

    pub const fn member_history(&self) -> MemberHistory {
        MemberHistory {
            was_member: self.was_member,
            has_forgotten: self.amnesiac && self.was_member,
            is_data_gone: false,
        }
    }
}

/// Tells people that a folder which `quorumwire restore` has prepared has no data yet, and gives the fault.
fn waits_for_restored(me: ReplicaId, holder: ReplicaId) -> String {
    if me == holder {
        tracing::warn!(
            "quorumwire restore was cut short in this folder: stop this replica, empty the folder, and run it again"
        );
        return "quorumwire restore was cut short in its folder: stop it, empty the folder, and run that again"
            .to_owned();
    }
    tracing::info!(
        holder = holder.0,
        "this folder was prepared by quorumwire restore: waiting for the replica that holds the data"
    );
    format!("it waits for replica {holder}, which holds what was restored, to bring it the data")
}

/// What the folder says of the promises of the process before this one.
pub struct EarlierPromise {
    lasts: Duration,
}

impl EarlierPromise {
    /// If `lease-ms` was longer before this start, a leader may count on the votes of the process before for
    /// longer than this one will promise: waits until that has passed. Gives the moment from which the
    /// present promise counts. Until then nothing was said by this process, and since `off` nothing by
    /// another.
    pub fn wait_out(
        &self,
        folder: &Folder,
        off: &EarlierPlaneOff,
        life: Incarnation,
        stop: &AtomicBool,
    ) -> anyhow::Result<Now> {
        if self.lasts > folder.promise() {
            wait_out_promise(off.now(), self.lasts, stop)?;
            let noted = folder.shorten_promise(life);
            noted.context("option dir: noting the shorter promise")?;
        }
        Ok(off.now())
    }
}

fn wait_out_promise(now: Now, promised: Duration, stop: &AtomicBool) -> anyhow::Result<()> {
    tracing::info!(
        ms = u64::try_from(promised.as_millis()).unwrap_or(u64::MAX),
        "lease-ms was longer before: waiting until the old promise has passed"
    );
    let until = now.0.saturating_add(promised);
    while let Some(left) = until.checked_sub(clock::now().0).filter(|t| !t.is_zero()) {
        anyhow::ensure!(
            !stop.load(Ordering::Relaxed),
            "stopped before a longer promise had passed"
        );
        std::thread::sleep(left.min(STOP_LOOKED_AT));
    }
    Ok(())
}

fn restore<A: Application + Default>(
    ready: &Ready,
    place: &Path,
    is_at: &mut dyn FnMut(Progress),
) -> anyhow::Result<Box<Sessions<A>>> {
    let mut store = Box::<Sessions<A>>::default();
    store.keep_files_in(place);
    if let Some(head) = &ready.stored.snapshot {
        let index = head.last_index;
        tracing::info!(last_index = index.0, "restoring the snapshot");
        let mut check = |read, of| is_at(how_far_read(Part::Snapshot, read, of));
        let file = ready.snapshots.open_watched(index, &mut check)?;
        let file = file.context("the newest snapshot is gone")?;
        let total = file.total_bytes();
        let restored = |read| is_at(Progress::of_bytes("restoring the snapshot", read, total));
        store
            .restore(&mut MeteredStream::new(file.body()?, restored))
            .context("restoring the newest snapshot")?;
    }
    Ok(store)
}

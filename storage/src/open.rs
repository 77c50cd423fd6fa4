//! Opening a folder: whose it is, what is in it, and whether that can be trusted.
use crate::disk::{ASIDE_SUFFIX, Disk, DiskFile, is_disk_full, read_full_at, write_all_at};
use crate::identity::{Found, IDENTITY_NAME, read_identity, write_identity};
use crate::mark::{MARK_NAME, Mark};
use crate::mutants::mutant;
use crate::replay::{Replay, ReplayError, replay};
use crate::segment::{SEGMENT_HEADER_BYTES, parse_segment_name, segment_name};
use crate::snapshots::{SnapshotError, snapshot_name, snapshot_places};
use crate::wal::{Active, Wal, WalParts};
use crate::watch::{Part, Watch};
use crate::{
    DamagedFolder, FolderContents, Log, MemoryDisk, OpenError, OpenFolder, Owner, Ready, Settings,
    Snapshots,
};
use bytes::BytesMut;
use quorumwire_interfaces::{Incarnation, Index, Lineage, Term};
use quorumwire_wire::{RECORD_HEADER_BYTES, SnapshotHead};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// What damaged files are called after a new life has begun.
const DAMAGED_PREFIX: &str = "damaged-";
/// Likewise those of a life that was given up.
const GIVEN_UP_PREFIX: &str = "given-up-";

/// Bytes handled at a time.
const COPY_BYTES: usize = 1 << 20;

/// Opens the folder for durable use.
pub fn open(disk: Arc<dyn Disk>, settings: Settings) -> Result<OpenFolder, OpenError> {
    open_watched(disk, settings, &mut |_, _, _| {})
}

/// The same; `watch` hears of what is read how many bytes were read, and of how many.
pub fn open_watched(
    disk: Arc<dyn Disk>,
    settings: Settings,
    watch: &mut dyn FnMut(Part, u64, u64),
) -> Result<OpenFolder, OpenError> {
    let names = remove_unfinished_files(&*disk)?;
    match read_identity(&*disk, &settings)? {
        Found::Ours {
            owner,
            promised,
            lineage,
        } => {
            if promised < settings.promise {
                // Before anything is promised for longer than the folder says.
                write_identity(&*disk, &settings, owner, lineage)
                    .map_err(OpenError::io("writing identity"))?;
            }
            let promised = promised.max(settings.promise);
            let kept = Kept {
                owner,
                promised,
                lineage,
            };
            recover(disk, settings, &kept, &names, watch)
        }
        Found::Damaged(what) => Ok(damaged(disk, settings, what.to_owned(), None)),
        Found::Nothing if is_unused(&*disk, &names)? => {
            let owner = settings.owner(settings.new_incarnation);
            let ready = begin(disk, &settings, (owner, settings.lineage), Vec::new(), true)?;
            Ok(OpenFolder::Ready(ready))
        }
        Found::Nothing => {
            let what = format!("{IDENTITY_NAME}: it is missing");
            Ok(damaged(disk, settings, what, None))
        }
    }
}

/// A folder that is whole and not to be trusted: the life that it remembers is given up, for the reason that
/// `what` says. None: it remembers another one, or that is not known.
pub fn give_up(
    disk: Arc<dyn Disk>,
    settings: Settings,
    (life, what): (Incarnation, String),
) -> Result<Option<DamagedFolder>, OpenError> {
    let found = read_identity(&*disk, &settings)?;
    let Found::Ours { owner, lineage, .. } = found else {
        return Ok(None);
    };
    Ok((owner.incarnation == life).then_some(DamagedFolder {
        disk,
        settings,
        what,
        incarnation: Some(life),
        lineage,
        prefix: GIVEN_UP_PREFIX,
    }))
}

/// Opens the folder for memory mode: a new life at every start, no log, snapshots in memory. The
/// folder keeps the identity, so that it cannot be mixed up, and nothing else. One with a log or a snapshot
/// is refused: this life would forget them, and a majority that did so at once would have lost everything.
pub fn open_memory(disk: Arc<dyn Disk>, settings: &Settings) -> Result<Ready, OpenError> {
    let names = remove_unfinished_files(&*disk)?;
    // A folder of someone else is refused; whatever life of ours it holds, this one is another.
    let lineage = match read_identity(&*disk, settings)? {
        Found::Ours { lineage, .. } => lineage,
        Found::Nothing | Found::Damaged(_) => Lineage::default(),
    };
    if let Some(name) = names.iter().find(|name| is_content(name)) {
        return Err(OpenError::HoldsData(name.clone()));
    }
    let owner = settings.owner(settings.new_incarnation);
    write_identity(&*disk, settings, owner, lineage).map_err(OpenError::io("writing identity"))?;
    Ok(Ready {
        incarnation: owner.incarnation,
        lineage,
        fresh: true,
        stored: FolderContents::default(),
        promised: settings.promise,
        log: Log::memory(),
        snapshots: Snapshots::new(Arc::new(HeldFolder::new(disk)), settings.group),
        notes: Vec::new(),
    })
}

/// Writes the identity anew: promises are no longer than [`Settings::promise`] now, and this is the cluster
/// that the folder belongs to, if that is known. Only once a longer promise that [`Ready::promised`] told of
/// has passed: a process that is started again relies on it.
pub fn restate_identity(
    disk: &dyn Disk,
    settings: &Settings,
    (incarnation, lineage): (Incarnation, Lineage),
) -> Result<(), OpenError> {
    let owner = settings.owner(incarnation);
    write_identity(disk, settings, owner, lineage).map_err(OpenError::io("writing identity"))
}

impl DamagedFolder {
    /// Puts everything that is there aside, in place of what an earlier call put aside, and begins a
    /// new life without memory of any. `incarnation` is one that was never used. If this is cut short,
    /// the folder is found damaged again.
    pub fn start_over(self, incarnation: Incarnation) -> Result<Ready, OpenError> {
        assert_ne!(Some(incarnation), self.incarnation, "a life is lived once");
        let owner = self.settings.owner(incarnation);
        let disk = &*self.disk;
        // First of all, so that what is left of the old life can never pass for the new one's.
        write_identity(disk, &self.settings, owner, self.lineage)
            .map_err(OpenError::io("writing identity"))?;
        let put_aside = || {
            let names = disk.list()?;
            for name in names.iter().filter(|n| n.starts_with(self.prefix)) {
                disk.remove(name)?;
            }
            for name in names.iter().filter(|name| is_content(name)) {
                disk.rename(name, &format!("{}{name}", self.prefix))?;
            }
            disk.sync_folder()
        };
        put_aside().map_err(OpenError::io("putting damaged files aside"))?;
        let notes = vec![format!("{}: put aside, a new life begins", self.what)];
        let whose = (owner, self.lineage);
        begin(self.disk, &self.settings, whose, notes, false)
    }
}

/// Begins a log in a folder without one. The identity, if it is to be written, comes last: without it
/// the folder counts as unused.
fn begin(
    disk: Arc<dyn Disk>,
    settings: &Settings,
    (owner, lineage): (Owner, Lineage),
    notes: Vec<String>,
    identify: bool,
) -> Result<Ready, OpenError> {
    let wal = Wal::create(&disk, owner, settings.segment_bytes)
        .map_err(OpenError::io("creating the log"))?;
    if identify {
        write_identity(&*disk, settings, owner, lineage)
            .map_err(OpenError::io("writing identity"))?;
    }
    Ok(Ready {
        incarnation: owner.incarnation,
        lineage,
        fresh: true,
        stored: FolderContents::default(),
        promised: settings.promise,
        log: Log::of(wal),
        snapshots: Snapshots::new(disk, settings.group),
        notes,
    })
}

/// What the identity says of a folder that is ours.
struct Kept {
    owner: Owner,
    promised: Duration,
    lineage: Lineage,
}

fn recover(
    disk: Arc<dyn Disk>,
    settings: Settings,
    kept: &Kept,
    names: &[String],
    watch: &mut dyn FnMut(Part, u64, u64),
) -> Result<OpenFolder, OpenError> {
    let owner = kept.owner;
    let mark = Mark::read(&*disk, owner.incarnation).map_err(OpenError::io("reading the mark"))?;
    let mut log_read = |read, of| watch(Part::Log, read, of);
    let replayed = match replay(&*disk, names, owner, mark, &mut log_read) {
        Ok(replayed) => replayed,
        Err(ReplayError::Damaged(what)) => {
            return Ok(damaged(disk, settings, what, Some(kept)));
        }
        Err(ReplayError::Newer {
            what,
            version,
            readable,
        }) => {
            return Err(OpenError::Newer {
                what,
                found: version,
                readable,
            });
        }
        Err(ReplayError::Io(source)) => return Err(OpenError::io("reading the log")(source)),
    };
    let snapshots = Snapshots::new(Arc::clone(&disk), owner.group);
    let mut notes = Vec::new();
    let base = replayed.runs.base();
    let mut checked = |read, of| watch(Part::Snapshot, read, of);
    let newest = newest_snapshot(&*disk, &snapshots, names, base, &mut notes, &mut checked)?;
    let snapshot = match newest {
        Ok(snapshot) => snapshot,
        Err(what) => return Ok(damaged(disk, settings, what, Some(kept))),
    };
    let ready = settle(disk, &settings, owner, replayed, snapshot, notes)
        .map_err(OpenError::io("preparing the log"))?;
    Ok(OpenFolder::Ready(Ready {
        promised: kept.promised,
        lineage: kept.lineage,
        snapshots,
        ..ready
    }))
}

/// The newest snapshot that is whole, if the log goes on from it; the inner error says why there is
/// none. One that is damaged is put aside if the log does not need it.
fn newest_snapshot(
    disk: &dyn Disk,
    snapshots: &Snapshots,
    names: &[String],
    base: (Index, Term),
    notes: &mut Vec<String>,
    watch: &mut Watch<'_>,
) -> Result<Result<Option<SnapshotHead>, String>, OpenError> {
    let mut damaged_places = Vec::new();
    let mut newest = None;
    for place in snapshot_places(names) {
        match snapshots.open_place(place, watch) {
            Ok(file) => {
                newest = Some(file.head().clone());
                break;
            }
            Err(SnapshotError::Io { source, .. }) => {
                return Err(OpenError::io("reading a snapshot")(source));
            }
            Err(SnapshotError::Newer(what)) => return Err(OpenError::NewerSnapshot(what)),
            Err(
                error @ (SnapshotError::Damaged(_)
                | SnapshotError::Other { .. }
                | SnapshotError::OtherLineage { .. }
                | SnapshotError::Gap { .. }),
            ) => damaged_places.push((place, error.to_string())),
        }
    }
    let reached = newest.as_ref().map_or((Index(0), Term(0)), |head| {
        (head.last_index, head.last_term)
    });
    if reached.0 < base.0 || (reached.0 == base.0 && reached.1 != base.1) {
        let what = match damaged_places.into_iter().next() {
            Some((_, what)) => what,
            None => format!(
                "the log begins behind {} and the newest snapshot ends with {}",
                base.0, reached.0
            ),
        };
        return Ok(Err(what));
    }
    for (place, what) in damaged_places {
        let name = snapshot_name(place);
        disk.rename(&name, &format!("{DAMAGED_PREFIX}{name}"))
            .map_err(OpenError::io("putting a snapshot aside"))?;
        notes.push(format!("{what}: put aside, the log goes on without it"));
    }
    Ok(Ok(newest))
}

/// Makes the disk show what was read and no more, durably, and opens the log for writing.
fn settle(
    disk: Arc<dyn Disk>,
    settings: &Settings,
    owner: Owner,
    replayed: Replay,
    snapshot: Option<SnapshotHead>,
    mut notes: Vec<String>,
) -> io::Result<Ready> {
    for &sequence in replayed.unfinished.iter().chain(&replayed.stale) {
        disk.remove(&segment_name(sequence))?;
    }
    let tail = replayed.tail;
    let file = replayed.file;
    if replayed.torn || replayed.unfinished.is_some() {
        notes.push(format!(
            "a write cut short was left out behind byte {} of {}",
            tail.position.offset,
            segment_name(tail.position.sequence)
        ));
    }
    if file.file_bytes()? > tail.position.offset && !mutant("torn-end-stays") {
        file.truncate(tail.position.offset)?;
    }
    if !mutant("unsynced-not-written-again") {
        write_again(&*file, replayed.synced_offset, tail.position.offset)?;
    }
    match file.allocate(settings.segment_bytes) {
        Err(error) if !is_disk_full(&error) => return Err(error),
        Ok(()) | Err(_) => {}
    }
    file.sync_data()?;
    // The mark must never name what a power cut could still take: the file's name belongs to it.
    disk.sync_folder()?;
    let mark = Mark::open(&*disk, owner.incarnation, tail)?;
    mark.sync()?;
    disk.sync_folder()?;

    let runs = replayed.runs;
    let mut entries = replayed.entries;
    let mut base_to_write = None;
    if let Some(head) = &snapshot {
        let reached = (head.last_index, head.last_term);
        let agrees = runs.term_at(reached.0) == Some(reached.1);
        if !agrees {
            entries.clear();
            base_to_write = Some(reached);
        }
    }
    let wal = Wal::from_parts(WalParts {
        disk: Arc::clone(&disk),
        owner,
        segment_bytes: settings.segment_bytes,
        active: Active {
            sequence: tail.position.sequence,
            file,
            offset: tail.position.offset,
            chain: tail.chain,
            empty: replayed.empty,
        },
        sealed: replayed.sealed,
        mark,
        hard_state: replayed.hard_state,
        runs,
        base_to_write,
    });
    Ok(Ready {
        incarnation: owner.incarnation,
        lineage: Lineage::default(),
        fresh: false,
        promised: settings.promise,
        stored: FolderContents {
            hard_state: replayed.hard_state,
            snapshot,
            entries,
        },
        log: Log::of(wal),
        snapshots: Snapshots::new(disk, settings.group),
        notes,
    })
}

/// Writes what may not have reached the disk once more as it is. After a failed sync a kernel may hold
/// such bytes as clean, and no later sync would write them.
fn write_again(file: &dyn DiskFile, from: u64, to: u64) -> io::Result<()> {
    let mut offset = from;
    while offset < to {
        let left = usize::try_from(to - offset).unwrap_or(COPY_BYTES);
        let mut bytes = BytesMut::zeroed(left.min(COPY_BYTES));
        let read = read_full_at(file, offset, &mut bytes)?;
        if read < bytes.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        write_all_at(file, offset, &[bytes.freeze()])?;
        offset += read as u64;
    }
    Ok(())
}

/// Removes what was being written aside; the names of the other files.
fn remove_unfinished_files(disk: &dyn Disk) -> Result<Vec<String>, OpenError> {
    let names = disk.list().map_err(OpenError::io("listing the folder"))?;
    let (aside, names): (Vec<_>, Vec<_>) = names
        .into_iter()
        .partition(|name| name.ends_with(ASIDE_SUFFIX));
    for name in aside {
        disk.remove(&name)
            .map_err(OpenError::io("removing an unfinished file"))?;
    }
    Ok(names)
}

/// Whether a folder without an identity has never been used: at most the beginning of a first segment
/// is there.
fn is_unused(disk: &dyn Disk, names: &[String]) -> Result<bool, OpenError> {
    let content: Vec<_> = names.iter().filter(|name| is_content(name)).collect();
    if content
        .iter()
        .any(|name| **name != segment_name(1) && **name != MARK_NAME)
    {
        return Ok(false);
    }
    if !content.contains(&&segment_name(1)) {
        return Ok(true);
    }
    let first = disk
        .open(&segment_name(1))
        .map_err(OpenError::io("opening the log"))?;
    // Behind the header come a Base and a HardState record, both without payload; then, only once the
    // identity is there, a batch.
    let start_bytes = (SEGMENT_HEADER_BYTES + 2 * RECORD_HEADER_BYTES) as u64;
    let mut next = [0; RECORD_HEADER_BYTES];
    read_full_at(&*first, start_bytes, &mut next).map_err(OpenError::io("reading the log"))?;
    Ok(next.iter().all(|byte| *byte == 0))
}

/// Whether a file holds something of a replica's life.
fn is_content(name: &str) -> bool {
    parse_segment_name(name).is_some()
        || name == MARK_NAME
        || !snapshot_places(&[name.to_owned()]).is_empty()
}

fn damaged(
    disk: Arc<dyn Disk>,
    settings: Settings,
    what: String,
    kept: Option<&Kept>,
) -> OpenFolder {
    OpenFolder::Damaged(DamagedFolder {
        disk,
        settings,
        what,
        incarnation: kept.map(|kept| kept.owner.incarnation),
        lineage: kept.map_or(Lineage::default(), |kept| kept.lineage),
        prefix: DAMAGED_PREFIX,
    })
}

/// A folder in memory that keeps a folder on disk locked.
struct HeldFolder {
    files: MemoryDisk,
    _held: Arc<dyn Disk>,
}

impl HeldFolder {
    fn new(held: Arc<dyn Disk>) -> Self {
        Self {
            files: MemoryDisk::new(),
            _held: held,
        }
    }
}

impl Disk for HeldFolder {
    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.files.open(name)
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.files.create(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.files.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.files.remove(name)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.files.list()
    }

    fn sync_folder(&self) -> io::Result<()> {
        self.files.sync_folder()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.files.free_bytes()
    }
}

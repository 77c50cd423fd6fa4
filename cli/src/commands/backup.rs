//! `quorumwire backup`: a cluster's data in a file, taken while it serves; and whether such a file is whole.
use super::ask::{self, AskError};
use super::interrupt::{Cause, Input, Interrupt};
use super::new_cluster::Contents;
use super::progress::during;
use super::view::{ClusterView, Patience, Target, ask_leader_at, try_again};
use crate::utc;
use anyhow::{Context as _, bail, ensure};
use quorumwire_node::options::{Hosts, Refused};
use quorumwire_node::report::ReplicaRole;
use quorumwire_node::server::{Replicated, ReplicatedProgram, ReplicatedValues};
use quorumwire_node::stage::{MeteredStream, Progress, Stage};
use quorumwire_ops::http::ReadIndexBody;
use quorumwire_wire::{BackupError, BackupHead, BackupReader};
use std::fs::{self, File};
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tempfile::NamedTempFile;

/// Bytes copied or read at a time.
const BUFFER_BYTES: usize = 1 << 20;

/// The copy has everything that was acknowledged before the command began: all items with their lifetimes,
/// and which commands of client sessions have run. It is written by a follower if one serves.
#[derive(Debug, clap::Args)]
#[command(override_usage = "quorumwire backup <--to <FILE>|--verify <FILE>> [OPTIONS]")]
#[command(after_help = "\
Examples:
  quorumwire backup --to /backup/monday.qwb --addr 10.0.0.10:7480
  quorumwire backup --verify /backup/monday.qwb")]
pub struct Arguments {
    /// File to write; it is there only once it is whole and on disk
    #[arg(
        long,
        value_name = "FILE",
        required_unless_present = "verify",
        conflicts_with = "verify"
    )]
    to: Option<PathBuf>,
    /// Replace the file if it is there
    #[arg(long, conflicts_with = "verify")]
    force: bool,
    /// Take what a replica has carried out, the one of those reached that has most, although nobody may
    /// lead: what was acknowledged lately may be missing
    #[arg(long, conflicts_with = "verify")]
    stale: bool,
    /// How many seconds to wait for a leader; with --stale none is waited for
    #[arg(long, value_name = "S", default_value_t = 30, conflicts_with_all = ["verify", "stale"],
          value_parser = clap::value_parser!(u64).range(1..=604_800))]
    leader_timeout_s: u64,
    /// How many seconds it may take in all
    #[arg(long, value_name = "S", default_value_t = 3600,
          value_parser = clap::value_parser!(u64).range(1..=604_800))]
    timeout_s: u64,
    /// Check a file: all of its checksums, and that this version can restore it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["addr", "dir"])]
    verify: Option<PathBuf>,
    #[command(flatten)]
    target: Target,
}

/// Takes one, or checks one.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let aside = Aside::default();
    let left = aside.clone();
    Interrupt::listen_and(Input::Ignored, move |cause| left.remove_and_end(cause))?;
    if let Some(path) = &arguments.verify {
        let (head, store) = during(|stage| read(path, stage))?;
        std::mem::forget(store); // the process ends and its memory with it: no item is freed by itself
        outln!("{}: whole: {}", path.display(), described(&head))?;
        return Ok(ExitCode::SUCCESS);
    }
    let to = arguments.to.as_ref().context("clap asks for it")?;
    check_target(to, arguments.force)?;
    let head = take(arguments, to, &aside)?;
    outln!("{}: {}", to.display(), described(&head))?;
    Ok(ExitCode::SUCCESS)
}

/// Only a file is replaced, in a folder that is there: a device or a link would be gone, and a folder would
/// be in the way at the end.
fn check_target(to: &Path, force: bool) -> Result<(), Refused> {
    let refused = |allowed: &str| Refused::flag("to", to.display().to_string(), allowed);
    if !folder_of(to).is_dir() {
        return Err(refused("a file in a folder that exists"));
    }
    let allowed = match to.symlink_metadata() {
        Ok(there) if there.is_file() && force => return Ok(()),
        Ok(there) if there.is_file() => "a file that is not there yet; --force replaces it",
        Ok(_) => {
            "a file that is not there yet, or with --force one that is no folder, link or device"
        }
        Err(_) => return Ok(()), // there is none, or the error comes when it is made
    };
    Err(refused(allowed))
}

fn folder_of(to: &Path) -> &Path {
    let parent = to.parent().filter(|it| !it.as_os_str().is_empty());
    parent.unwrap_or_else(|| Path::new("."))
}

/// What a backup holds, for people.
pub fn described(head: &BackupHead) -> String {
    let state = &head.state;
    let at = |ms: u64| utc::in_words(Duration::from_millis(ms));
    format!(
        "cluster {:?} up to index {} of term {}, log time {}, written by replica {} at {}; lineage {}",
        head.cluster,
        state.last_index,
        state.last_term,
        at(state.log_time.0),
        head.replica,
        at(head.taken_ms),
        state.membership.lineage,
    )
}

/// What a backup holds.
pub enum Held {
    /// All of its items.
    Store(Box<Replicated>),
    /// What it has saved, in a file without a name.
    Program(Box<ReplicatedProgram>),
    /// What is kept for learners.
    Values(Box<ReplicatedValues>),
}

impl Held {
    fn nothing(cluster: &str) -> Self {
        match Hosts::of(cluster) {
            Hosts::Store => Self::Store(Box::default()),
            Hosts::Values => Self::Values(Box::default()),
            Hosts::Program => {
                let mut program = ReplicatedProgram::default();
                program.keep_files_in(&std::env::temp_dir());
                Self::Program(program.into())
            }
        }
    }

    fn restore(&mut self, reader: &mut dyn Read) -> std::io::Result<()> {
        match self {
            Self::Store(store) => store.restore(reader),
            Self::Program(program) => program.restore(reader),
            Self::Values(values) => values.restore(reader),
        }
    }

    /// What a new cluster begins with.
    pub fn contents(&self) -> Contents {
        let (frozen, last_number) = match self {
            Self::Store(store) => (store.freeze(), store.last_number()),
            Self::Program(program) => (program.freeze(), program.last_number()),
            Self::Values(values) => (values.freeze(), values.last_number()),
        };
        Contents {
            frozen,
            last_number,
        }
    }
}

/// Reads a backup from its first to its last byte. Anything wrong with it is an error that names the file.
pub fn read(path: &Path, stage: &Stage) -> anyhow::Result<(BackupHead, Held)> {
    let file = File::open(path).with_context(|| format!("opening {}", path.display()))?;
    let total = file.metadata().map_or(0, |it| it.len());
    let counted = MeteredStream::new(file, |bytes| {
        stage.set(Progress::of_bytes("reading the backup", bytes, total));
    });
    let read = || -> Result<_, BackupError> {
        let mut reader = BackupReader::new(BufReader::with_capacity(BUFFER_BYTES, counted))?;
        let mut held = Held::nothing(&reader.head().cluster);
        held.restore(&mut reader)?;
        Ok((reader, held))
    };
    let (mut reader, held) = read().with_context(|| path.display().to_string())?;
    // Only a read of nothing says that the end was there and was right.
    let behind = reader.read(&mut [0]).map_err(BackupError::from);
    let behind = behind.with_context(|| path.display().to_string())?;
    ensure!(
        behind == 0,
        "{}: the backup is damaged: bytes behind the state",
        path.display()
    );
    Ok((reader.head().clone(), held))
}

/// The file that is being written, as long as it has no name of its own. It must not stay.
#[derive(Clone, Debug, Default)]
struct Aside(Arc<Mutex<Option<PathBuf>>>);

impl Aside {
    /// Makes it in the folder of the file that it is to become.
    fn make(&self, to: &Path, folder: &Path) -> anyhow::Result<NamedTempFile> {
        let name = to.file_name().context("option to: it names no file")?;
        let mut path = self.lock(); // whoever ends the command waits until it can be removed
        let made = tempfile::Builder::new()
            .prefix(&format!(".{}.", name.to_string_lossy()))
            .suffix(".tmp")
            .tempfile_in(folder)
            .with_context(|| format!("option to: writing into {}", folder.display()))?;
        *path = Some(made.path().to_owned());
        Ok(made)
    }

    fn remove_and_end(&self, cause: Cause) {
        let path = self.lock(); // to the end, so that none is made meanwhile
        if let Some(path) = &*path {
            fs::remove_file(path).ok(); // it may have got its name
        }
        cause.end_process()
    }

    fn lock(&self) -> MutexGuard<'_, Option<PathBuf>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes it aside, checks it, and gives it its name.
fn take(arguments: &Arguments, to: &Path, made: &Aside) -> anyhow::Result<BackupHead> {
    let end = Instant::now() + Duration::from_secs(arguments.timeout_s);
    let patience = Patience {
        lasts: Duration::from_secs(arguments.leader_timeout_s.min(arguments.timeout_s)),
        instead: "; --stale copies what a replica has without one",
    };
    // A leader without a majority would answer only when it has one again.
    let longest = ask::CHANGE_TIMEOUT.min(patience.lasts);
    let get_index = |http: &str| ask::get::<ReadIndexBody>(http, "/v1/read-index", longest);
    // Nothing is changed, so whatever went wrong may be tried again.
    let again = |error: &AskError| try_again(error) || matches!(error, AskError::Unanswered { .. });
    let index = if arguments.stale {
        0
    } else {
        ask_leader_at(&arguments.target, patience, get_index, again)
            .map_err(|error| naming_stale(error, &arguments.target))?
            .index
    };

    let folder = folder_of(to);
    let mut aside = made.make(to, folder)?;
    let head = during(|stage| {
        fetch(arguments, index, end, aside.as_file_mut(), stage)?;
        stage.begins("syncing the backup");
        aside.as_file().sync_all().context("syncing the backup")?;
        let arrived = read(aside.path(), stage).context("the backup did not arrive whole")?;
        stage.begins("the backup is whole");
        anyhow::Ok(arrived.0)
    })?;
    ensure!(
        head.state.last_index.0 >= index,
        "it ends with index {}, and {index} was acknowledged",
        head.state.last_index
    );
    let put = if arguments.force {
        aside.persist(to)
    } else {
        aside.persist_noclobber(to)
    };
    put.with_context(|| format!("option to: naming {}", to.display()))?;
    let folder = File::open(folder).and_then(|folder| folder.sync_all());
    folder.context("syncing the folder of the backup")?;
    Ok(head)
}

/// Whoever has no leader any more may still have a replica.
pub(super) fn naming_stale(error: anyhow::Error, target: &Target) -> anyhow::Error {
    let replicas_answer = ClusterView::gather(target)
        .is_ok_and(|view| view.leader().is_none() && view.reports().next().is_some());
    if !replicas_answer {
        return error;
    }
    anyhow::anyhow!(
        "{error:#}; --stale copies what a replica has carried out: what was acknowledged lately may be missing"
    )
}

/// Copies it from a follower that serves, or else from the leader.
fn fetch(
    arguments: &Arguments,
    index: u64,
    end: Instant,
    file: &mut File,
    stage: &Stage,
) -> anyhow::Result<()> {
    stage.begins("waiting for a replica to write");
    let view = ClusterView::gather(&arguments.target)?;
    let followers = view
        .reports()
        .filter(|it| it.role == ReplicaRole::Follower && it.ready);
    let follower = followers.max_by_key(|it| it.applied_index);
    let most = view.reports().max_by_key(|it| it.applied_index);
    let without_leader = most.filter(|_| arguments.stale);
    let sources = follower.into_iter().chain(view.leader());
    let sources: Vec<_> = without_leader.into_iter().chain(sources).collect();
    let path = format!("/v1/backup?at_least={index}");
    let mut why = view.why_no_leader();
    for source in sources {
        let left = end.saturating_duration_since(Instant::now());
        match ask::stream(&source.http, &path, left) {
            Ok(answer) => {
                let from = format!("copying from replica {}", source.id);
                return copy(answer, file, stage).context(from);
            }
            Err(error) => why = error.to_string(),
        }
    }
    bail!("no replica gives a backup: {why}")
}

fn copy(answer: impl Read, file: &mut File, stage: &Stage) -> anyhow::Result<()> {
    let mut answer = MeteredStream::new(answer, |bytes| {
        stage.set(Progress::of_bytes("receiving the backup", bytes, 0));
    });
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let read = answer.read(&mut buffer)?;
        if read == 0 {
            return Ok(());
        }
        file.write_all(&buffer[..read])
            .context("writing the file")?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_ordinary_file_is_replaced_and_only_by_force() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("file"), "old").unwrap();
        std::os::unix::fs::symlink(path("file"), path("link")).unwrap();
        for (to, without, by_force) in [
            (path("new"), true, true),
            (path("file"), false, true),
            (path("link"), false, false),
            (dir.path().to_owned(), false, false),
            (PathBuf::from("/dev/null"), false, false),
            (path("nowhere/new"), false, false),
            (path("file/new"), false, false),
        ] {
            let taken = [false, true].map(|force| check_target(&to, force).is_ok());
            assert_eq!(taken, [without, by_force], "{}", to.display());
        }
        let words = check_target(Path::new("/dev/full"), true).unwrap_err();
        let words = words.to_string();
        assert!(
            words.starts_with("to (from flag): \"/dev/full\" is refused; allowed: "),
            "{words}"
        );
    }
}

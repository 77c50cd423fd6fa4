//! Whether a plane of an earlier process of this replica still runs. One in the kernel answers a leader's
//! rounds without its process, for as long as the kernel takes to close what that held: the file
//! `plane-programs` beside the replica's folder says where its programs were attached. Any other plane is
//! gone with its process, of which the last thread let go of the folder's lock.
use super::clock;
use super::whole_files::write_whole;
use crate::planes::{KINDS, Note, ProgramAt, Remains};
use anyhow::Context as _;
use quorumwire_control::Now;
use std::fs::{self, File};
use std::io::{self, BufRead as _, ErrorKind, Read as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// The file's name.
const NOTE: &str = "plane-programs";
/// A line for each interface of a machine has fewer bytes.
const NOTE_BYTES_MAX: u64 = 64 << 10;
/// How long a start waits for an earlier process's program to go.
const GONE_WITHIN: Duration = Duration::from_secs(10);
/// When it says that it waits.
const SAID_AFTER: Duration = Duration::from_secs(2);
/// Between two looks.
const LOOK_PAUSE: Duration = Duration::from_millis(10);
/// What is in another network namespace cannot be looked for. The kernel closes what a process held within
/// milliseconds.
const UNSEEN_WAIT: Duration = Duration::from_secs(1);

/// A program, as the file names it: a line for each.
#[derive(Clone, Debug, Eq, PartialEq)]
struct NotedProgram {
    surroundings: Surroundings,
    /// Its number.
    program: u32,
    /// For people.
    interface: String,
}

/// Where numbers of programs and names of interfaces mean something.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Surroundings {
    /// Since the machine was started last.
    boot: String,
    namespace: String,
}

impl Surroundings {
    /// Of this thread, whose namespace is the process's.
    fn here() -> io::Result<Self> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
        let namespace = fs::read_link("/proc/thread-self/ns/net")?;
        Ok(Self {
            boot: boot.trim().to_owned(),
            namespace: namespace.to_string_lossy().into_owned(),
        })
    }
}

impl NotedProgram {
    fn line(&self) -> String {
        let Surroundings { boot, namespace } = &self.surroundings;
        format!("{boot} {namespace} {} {}\n", self.program, self.interface)
    }

    fn of_line(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [boot, namespace, program, interface] = words[..] else {
            return None;
        };
        Some(Self {
            surroundings: Surroundings {
                boot: boot.to_owned(),
                namespace: namespace.to_owned(),
            },
            program: program.parse().ok()?,
            interface: interface.to_owned(),
        })
    }
}

/// Of the kinds of planes of which something may remain.
fn remains() -> impl Iterator<Item = &'static Remains> {
    KINDS.iter().filter_map(|kind| kind.remains.as_ref())
}

/// Those of these programs that an interface of this namespace has now.
fn still_attached(programs: &[u32]) -> io::Result<Vec<ProgramAt>> {
    let mut all = Vec::new();
    for of in remains() {
        all.extend((of.still_attached)(programs)?);
    }
    Ok(all)
}

fn how_to_detach(at: &ProgramAt) -> String {
    let how: Vec<String> = remains().map(|of| (of.how_to_detach)(at)).collect();
    how.join("; ")
}

fn numbers(noted: &[NotedProgram]) -> Vec<u32> {
    noted.iter().map(|one| one.program).collect()
}

fn read(dir: &Path) -> anyhow::Result<Vec<NotedProgram>> {
    let path = dir.join(NOTE);
    let shown = path.display();
    let mut bytes = Vec::new();
    let read = File::open(&path).and_then(|file| file.take(NOTE_BYTES_MAX).read_to_end(&mut bytes));
    match read {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.with_context(|| format!("reading {shown}"))?,
    };
    let noted = bytes.lines().map(|line| {
        let noted = line.ok().and_then(|line| NotedProgram::of_line(&line));
        noted.with_context(|| {
            format!(
                "{shown} has a line that makes no sense. It names programs of this replica's earlier plane, in the \
                 kernel: once no interface has one of them (ip link), or the machine was started anew, remove the file"
            )
        })
    });
    noted.collect()
}

/// Has it noted beside the folder where programs of this process's plane are. Those that are at no interface
/// any more are left out.
pub fn note_in(dir: &Path) -> Arc<Note> {
    let (dir, all) = (dir.to_owned(), Mutex::new(Vec::<NotedProgram>::new()));
    Arc::new(move |at| {
        let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
        let there = still_attached(&numbers(&all))?;
        all.retain(|one| there.iter().any(|it| it.program == one.program));
        all.push(NotedProgram {
            surroundings: Surroundings::here()?,
            program: at.program,
            interface: at.interface.clone(),
        });
        let lines: Vec<String> = all.iter().map(NotedProgram::line).collect();
        write_whole(&dir, NOTE, &lines.concat())
    })
}

/// Says that no plane of an earlier process of this replica runs any more. A plane answers a leader's rounds
/// without its process, so what was promised by the earlier ones counts from now on at the earliest. Whoever
/// needs that moment has to show this.
pub struct EarlierPlaneOff(());

impl EarlierPlaneOff {
    /// A moment since when they are off.
    #[expect(clippy::unused_self, reason = "what is known by having it")]
    pub fn now(&self) -> Now {
        clock::now()
    }

    /// Waits until that is so, whatever plane this process is to have. It has the folder's lock.
    pub fn wait_for(dir: &Path, stop: &AtomicBool) -> anyhow::Result<Self> {
        let noted = read(dir)?;
        if noted.is_empty() {
            return Ok(Self(()));
        }
        let here = Surroundings::here().context("which network namespace this is")?;
        let mut wait = Wait::new(noted, here, clock::now());
        loop {
            let there = still_attached(&numbers(&wait.noted));
            let there = there.context("which programs interfaces have")?;
            match wait.look(&there, clock::now()) {
                Verdict::Off => break,
                Verdict::Waits => {}
                Verdict::IsLate(what) => {
                    tracing::info!(what, "waiting for this replica's earlier plane to be gone");
                }
                Verdict::Stays(at) => anyhow::bail!(
                    "option dir: program {} of this replica's earlier plane is still at interface {} after {} s, and \
                     answers in its name: {}",
                    at.program,
                    at.interface,
                    GONE_WITHIN.as_secs(),
                    how_to_detach(&at)
                ),
            }
            anyhow::ensure!(
                !stop.load(Ordering::Relaxed),
                "stopped before the earlier plane was gone"
            );
            thread::sleep(LOOK_PAUSE);
        }
        remains().for_each(|of| (of.wait_for_last)()); // one that was taken off an interface may be at its last packet
        let removed = fs::remove_file(dir.join(NOTE));
        removed.with_context(|| format!("option dir: removing the file {NOTE}"))?;
        Ok(Self(()))
    }
}

/// A start that waits for programs to go.
struct Wait {
    noted: Vec<NotedProgram>,
    here: Surroundings,
    begun: Now,
    is_told: bool,
}

#[derive(Debug, Eq, PartialEq)]
enum Verdict {
    /// None of them runs.
    Off,
    Waits,
    /// So it has for a while: what people may want to know.
    IsLate(String),
    /// It does not go.
    Stays(ProgramAt),
}

impl Wait {
    const fn new(noted: Vec<NotedProgram>, here: Surroundings, begun: Now) -> Self {
        Self {
            noted,
            here,
            begun,
            is_told: false,
        }
    }

    /// `there`: those of the noted programs that an interface of this namespace has now.
    fn look(&mut self, there: &[ProgramAt], now: Now) -> Verdict {
        let waited = now.0.saturating_sub(self.begun.0);
        let seen = self.noted.iter().find_map(|one| {
            let found = there.iter().find(|at| at.program == one.program);
            found.filter(|_| one.surroundings.boot == self.here.boot)
        });
        let is_unseen = |one: &NotedProgram| {
            let Surroundings { boot, namespace } = &one.surroundings;
            *boot == self.here.boot && *namespace != self.here.namespace
        };
        let Some(at) = seen else {
            let waits = waited < UNSEEN_WAIT && self.noted.iter().any(is_unseen);
            return if waits { Verdict::Waits } else { Verdict::Off };
        };
        if waited >= GONE_WITHIN {
            return Verdict::Stays(at.clone());
        }
        if waited >= SAID_AFTER && !std::mem::replace(&mut self.is_told, true) {
            let (program, interface) = (at.program, &at.interface);
            return Verdict::IsLate(format!("program {program} at interface {interface}"));
        }
        Verdict::Waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surroundings(boot: &str, namespace: &str) -> Surroundings {
        Surroundings {
            boot: boot.to_owned(),
            namespace: namespace.to_owned(),
        }
    }

    fn noted(boot: &str, namespace: &str) -> NotedProgram {
        NotedProgram {
            surroundings: surroundings(boot, namespace),
            program: 47,
            interface: "eth0".to_owned(),
        }
    }

    fn at(program: u32) -> ProgramAt {
        ProgramAt {
            interface: "eth0".to_owned(),
            index: 2,
            program,
        }
    }

    fn after(time: Duration) -> Now {
        Now(Duration::from_secs(100) + time)
    }

    fn wait(noted: NotedProgram) -> Wait {
        let here = surroundings("boot", "net:[1]");
        Wait::new(vec![noted], here, after(Duration::ZERO))
    }

    const SHORT: Duration = Duration::from_millis(1);

    #[test]
    fn an_earlier_program_is_waited_for_while_an_interface_has_it() {
        let mut wait = wait(noted("boot", "net:[1]"));
        assert_eq!(wait.look(&[at(47)], after(SHORT)), Verdict::Waits);
        // It may have another name by now, and other programs concern nobody.
        let renamed = ProgramAt {
            interface: "eth1".to_owned(),
            ..at(47)
        };
        assert_eq!(wait.look(&[at(46), renamed], after(SHORT)), Verdict::Waits);
        assert_eq!(wait.look(&[at(46)], after(SHORT)), Verdict::Off);
    }

    #[test]
    fn one_that_stays_is_told_of_once_and_in_the_end_refused() {
        let mut wait = wait(noted("boot", "net:[1]"));
        let mut look = |time| wait.look(&[at(47)], after(time));
        assert_eq!(look(SAID_AFTER.saturating_sub(SHORT)), Verdict::Waits);
        let said = "program 47 at interface eth0".to_owned();
        assert_eq!(look(SAID_AFTER), Verdict::IsLate(said));
        assert_eq!(look(GONE_WITHIN.saturating_sub(SHORT)), Verdict::Waits);
        assert_eq!(look(GONE_WITHIN), Verdict::Stays(at(47)));
    }

    #[test]
    fn none_outlives_the_machine() {
        let mut wait = wait(noted("earlier boot", "net:[1]"));
        assert_eq!(wait.look(&[at(47)], after(SHORT)), Verdict::Off);
    }

    #[test]
    fn time_must_do_for_one_in_another_namespace() {
        let mut wait = wait(noted("boot", "net:[2]"));
        assert_eq!(
            wait.look(&[], after(UNSEEN_WAIT.saturating_sub(SHORT))),
            Verdict::Waits
        );
        // Its interface was moved here: numbers of programs are the machine's.
        assert_eq!(wait.look(&[at(47)], after(UNSEEN_WAIT)), Verdict::Waits);
        assert_eq!(wait.look(&[], after(UNSEEN_WAIT)), Verdict::Off);
    }

    #[test]
    fn what_is_noted_before_an_attachment_is_found_by_the_next_start() {
        let dir = tempfile::tempdir().expect("a folder");
        let note = note_in(dir.path());
        for program in [u32::MAX - 1, u32::MAX] {
            note(&at(program)).expect("written");
            let found = read(dir.path()).expect("readable");
            assert_eq!(
                numbers(&found),
                [program],
                "the one before is at no interface"
            );
            assert_eq!(found[0].interface, "eth0");
            assert_eq!(found[0].surroundings, Surroundings::here().expect("Linux"));
        }
        let stop = AtomicBool::new(false);
        EarlierPlaneOff::wait_for(dir.path(), &stop).expect("it is gone");
        assert!(!dir.path().join(NOTE).exists(), "and forgotten");
        EarlierPlaneOff::wait_for(dir.path(), &stop).expect("there was none");
    }

    #[test]
    fn a_note_that_makes_no_sense_is_refused() {
        let dir = tempfile::tempdir().expect("a folder");
        let lines: [&[u8]; 4] = [
            b"",
            b"boot net:[1] many eth0",
            b"boot net:[1] 47",
            b"boot net:[1] 47 \xff",
        ];
        for line in lines {
            fs::write(dir.path().join(NOTE), [line, b"\n"].concat()).expect("writable");
            let refused = EarlierPlaneOff::wait_for(dir.path(), &AtomicBool::new(false));
            let text = refused.err().expect("refused").to_string();
            assert!(text.contains("plane-programs has a line"), "{text}");
        }
    }
}

//! The served program of this replica: a process, and the rings between it and the log.
use super::commands::{Commands, unpack};
use super::ended::by_whom;
use super::fills::Fills;
use super::saved::{SavedFolder, empty, has_saved};
use crate::options::{BY_COMMAND, ServedOptions};
use anyhow::Context as _;
use quorumwire_interfaces::LogTime;
use quorumwire_interpose::{Program, Rings, Sizes, Start, Started};
use quorumwire_replay::{self as replay, Beginning, Checker, Turn, TurnEvent, Unchecked};
use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

/// By how much the program's time goes on at each look at a clock, in nanoseconds.
pub const STEP_NS: u64 = 1000;
const MILLISECOND_NS: u64 = 1_000_000;
/// Folder of what commands save and bring, in the replica's.
const SAVES_FOLDER: &str = "program-save";
/// A program that has not come back from a turn in this time serves nobody, as far as clients can tell.
pub const TURN_LATE: Duration = Duration::from_secs(10);
/// How long one of which several threads serve may take to begin.
const SERIAL_BEGIN_MAX: Duration = Duration::from_mins(10);

/// What is started, once the log says so.
pub struct Serving {
    program: Program,
    /// The replica's folder.
    place: PathBuf,
    serial_turn_max: Option<Duration>,
    allow_outbound: bool,
    save_time_max: Duration,
    commands: Option<Commands>,
    running: Option<Running>,
    /// What is done meanwhile.
    meanwhile: Option<Meanwhile>,
    /// The last turn that it was given.
    last: Given,
    /// What it says, to be compared.
    pub checker: Checker,
    fills: Arc<Fills>,
    /// Why there is none although there should be.
    failed: Option<anyhow::Error>,
}

/// A turn's number and times.
#[derive(Clone, Copy, Default)]
struct Given {
    number: u64,
    /// The command of the log that it follows from.
    command: u64,
    log_time_ns: u64,
    wall_ns: u64,
}

/// A turn from which the program has not come back.
#[derive(Clone, Copy, Debug)]
pub struct Late {
    /// Its number.
    pub turn: u64,
    /// The log's entry that it follows from.
    pub entry: u64,
    /// It has taken a turn since it was started.
    pub has_begun: bool,
}

/// What keeps the program from taking turns of the log.
enum Meanwhile {
    /// It saves itself: it is given turns, one at each time at which it wants one, until it ends.
    Saves { since: Instant },
    /// It is to be saved by command, once it waits for the next turn.
    Rests { since: Instant },
    /// What it has saved is packed.
    Packs(Receiver<anyhow::Result<SavedFolder>>),
    /// What it begins with is unpacked.
    Unpacks(Receiver<anyhow::Result<()>>, Start),
}

/// Has something done elsewhere.
pub fn elsewhere<T: Send + 'static>(
    name: &str,
    what: impl FnOnce() -> T + Send + 'static,
) -> anyhow::Result<Receiver<T>> {
    let (done, result) = mpsc::sync_channel(1);
    let work = move || done.send(what()).unwrap_or_default(); // gone: nobody waits for it
    thread::Builder::new().name(name.into()).spawn(work)?;
    Ok(result)
}

/// What runs.
pub struct Running {
    pub rings: Rings,
    started: Started,
    file: String,
    /// Those that it was given and had not done when that was looked at last: each with the command of the
    /// log that it follows from.
    given: VecDeque<(u64, u64)>,
    /// How long a turn may last at most, of one of which several threads serve.
    serial_turn_max: Option<Duration>,
    /// The last turn that was done, and when that was seen first or nothing was to be done.
    done: (u64, Instant),
    /// It has not come back from the next one for long.
    is_late: bool,
}

impl Serving {
    /// Nothing runs before the log says so. `folder`, which lies in `place`, is emptied then.
    pub fn of(options: &ServedOptions, place: &Path, folder: &str) -> anyhow::Result<Self> {
        let (file, arguments) = options.command.split_first().context("a command to run")?;
        let place = std::path::absolute(place)?;
        let mut program = Program::of(file, &place.join(folder));
        program.arguments = arguments.to_vec();
        program.is_serial = options.serial_turn_max.is_some();
        let commands = options.save_commands.as_ref();
        let commands =
            commands.map(|it| Commands::new(it, &place.join(SAVES_FOLDER), options.save_time_max));
        Ok(Self {
            program,
            place,
            serial_turn_max: options.serial_turn_max,
            allow_outbound: options.allow_outbound,
            save_time_max: options.save_time_max,
            commands,
            running: None,
            meanwhile: None,
            last: Given::default(),
            checker: Checker::new(
                !options.unchecked_output,
                Unchecked::new(options.unchecked_commands),
            ),
            fills: Arc::default(),
            failed: None,
        })
    }

    pub const fn running(&mut self) -> Option<&mut Running> {
        self.running.as_mut()
    }

    /// What runs, and what looks at what that says.
    pub fn running_and_checker(&mut self) -> Option<(&mut Running, &mut Checker)> {
        Some((self.running.as_mut()?, &mut self.checker))
    }

    fn start(&self, start: &Start) -> anyhow::Result<Running> {
        let rings =
            Rings::new(Sizes::default(), start).context("memory for the program's rings")?;
        let file = self.program.file.to_string_lossy().into_owned();
        let started = self
            .program
            .start(&rings)
            .with_context(|| format!("starting {file}"))?;
        tracing::info!(
            program = file,
            pid = started.child.id(),
            "the served program has started"
        );
        Ok(Running {
            rings,
            started,
            file,
            given: VecDeque::new(),
            serial_turn_max: self.serial_turn_max,
            done: (0, Instant::now()),
            is_late: false,
        })
    }

    /// Whether it goes on; the error says why not.
    pub fn check(&mut self) -> anyhow::Result<()> {
        if let Some(failed) = self.failed.take() {
            return Err(failed);
        }
        match &mut self.running {
            Some(running) if self.meanwhile.is_none() => running.check().map_err(|error| {
                let status = running.started.child.try_wait().ok().flatten();
                by_whom(error, status, running.rings.turn_done())
            }),
            Some(_) | None => Ok(()),
        }
    }

    /// The turn from which it has not come back for long.
    pub fn late(&self) -> Option<Late> {
        let running = self.running.as_ref().filter(|it| it.is_late)?;
        let done = running.done.0;
        let (turn, entry) = running.given.iter().find(|it| it.0 > done).copied()?;
        let has_begun = running.rings.has_begun();
        Some(Late {
            turn,
            entry,
            has_begun,
        })
    }

    /// Goes on with what is done meanwhile; what the program has saved, once it has.
    pub fn go_on(&mut self) -> Option<SavedFolder> {
        let gone_on = match self.meanwhile.take()? {
            Meanwhile::Saves { since } => self.go_on_saving(since).map(|()| None),
            Meanwhile::Rests { since } => self.go_on_resting(since).map(|()| None),
            Meanwhile::Packs(result) => self.go_on_packing(result),
            Meanwhile::Unpacks(result, start) => self.go_on_unpacking(result, start).map(|()| None),
        };
        gone_on.unwrap_or_else(|error| {
            self.failed = Some(error);
            None
        })
    }

    fn go_on_saving(&mut self, since: Instant) -> anyhow::Result<()> {
        let Some(running) = &mut self.running else {
            anyhow::bail!("there is no program that could save itself");
        };
        let file = &running.file;
        if let Some(why) = running.rings.refusal() {
            anyhow::bail!("{file} cannot be served: {why}");
        }
        if let Some(status) = running.started.child.try_wait()? {
            if !running.rings.may_sleep() {
                // What it has said is taken first: it is compared up to its end.
                self.meanwhile = Some(Meanwhile::Saves { since });
                return Ok(());
            }
            has_saved(file, status, &self.program.folder)?;
            self.running = None;
            self.checker.done(u64::MAX);
            let (folder, place) = (self.program.folder.clone(), self.place.clone());
            let packed = elsewhere("pack-program", move || SavedFolder::pack(&folder, &place))?;
            self.meanwhile = Some(Meanwhile::Packs(packed));
            return Ok(());
        }
        anyhow::ensure!(
            since.elapsed() < self.save_time_max,
            "{file} was told to save itself and to end, and has not in {} s: see options save-signal and \
             save-timeout-s",
            self.save_time_max.as_secs()
        );
        let waits = running.rings.turn_done() == self.last.number;
        if let Some(deadline_ns) = running.rings.deadline_ns().filter(|_| waits) {
            let later = deadline_ns.saturating_sub(self.last.log_time_ns);
            self.last.number += 1;
            self.last.log_time_ns += later;
            self.last.wall_ns += later;
            running.give(self.last, &[])?;
        }
        self.meanwhile = Some(Meanwhile::Saves { since });
        Ok(())
    }

    /// Waits until it has done all that stands before the cut, and has it saved then.
    fn go_on_resting(&mut self, since: Instant) -> anyhow::Result<()> {
        let (Some(running), Some(commands)) = (&mut self.running, &self.commands) else {
            anyhow::bail!(
                "the log says that the program is saved by command, and option snapshot-command is not given here: \
                 replicas need the same options"
            );
        };
        running.check()?;
        let rests = running.rings.turn_done() == self.last.number && running.rings.may_sleep();
        if !rests {
            anyhow::ensure!(
                since.elapsed() < self.save_time_max,
                "{} was to be saved, and has not come to rest in {} s: see option save-timeout-s",
                running.file,
                self.save_time_max.as_secs()
            );
            self.meanwhile = Some(Meanwhile::Rests { since });
            return Ok(());
        }
        let (folder, place) = (self.program.folder.clone(), self.place.clone());
        let (commands, pid) = (commands.clone(), running.started.child.id());
        let packed = elsewhere("save-program", move || commands.pack(&folder, pid, &place))?;
        self.meanwhile = Some(Meanwhile::Packs(packed));
        Ok(())
    }

    fn go_on_packing(
        &mut self,
        result: Receiver<anyhow::Result<SavedFolder>>,
    ) -> anyhow::Result<Option<SavedFolder>> {
        match result.try_recv() {
            Ok(packed) => {
                // One that was saved by command runs still, and is killed.
                if self.running.take().is_some() {
                    self.checker.done(u64::MAX);
                }
                packed.map(Some)
            }
            Err(TryRecvError::Empty) => {
                self.meanwhile = Some(Meanwhile::Packs(result));
                Ok(None)
            }
            Err(TryRecvError::Disconnected) => {
                anyhow::bail!("packing what the program saved failed")
            }
        }
    }

    fn go_on_unpacking(
        &mut self,
        result: Receiver<anyhow::Result<()>>,
        start: Start,
    ) -> anyhow::Result<()> {
        match result.try_recv() {
            Ok(unpacked) => {
                unpacked?;
                self.running = Some(self.start(&start)?);
            }
            Err(TryRecvError::Empty) => self.meanwhile = Some(Meanwhile::Unpacks(result, start)),
            Err(TryRecvError::Disconnected) => {
                anyhow::bail!("unpacking what the program saved failed");
            }
        }
        Ok(())
    }

    /// It does not.
    pub fn fail(&mut self, why: anyhow::Error) {
        self.failed = Some(why);
    }

    /// Whether it has said something that was not taken. If not, it rings.
    pub fn has_said(&self) -> bool {
        self.running
            .as_ref()
            .is_some_and(|it| !it.rings.may_sleep())
    }
}

impl Running {
    fn check(&mut self) -> anyhow::Result<()> {
        let file = &self.file;
        if let Some(why) = self.rings.refusal() {
            anyhow::bail!("{file} cannot be served: {why}");
        }
        let turn = self.rings.turn_done();
        // The last one stays: a program may also end when it has done all.
        while self.given.len() > 1 && self.given.front().is_some_and(|it| it.0 <= turn) {
            self.given.pop_front();
        }
        if let Some(status) = self.started.child.try_wait()? {
            let (turn, command) = self.given.front().copied().unwrap_or_default();
            anyhow::bail!(
                "{file} has ended ({status}) in or after turn {turn}, of the log's entry {command}. If it ends at that \
                 entry again when it is started again, it does so wherever that is carried out, and only a backup from \
                 before it helps (`quorumwire restore --from FILE ...`, on all replicas): see docs/run.md, \
                 \"Backup and restore\""
            );
        }
        if turn != self.done.0 || self.given.back().is_none_or(|it| it.0 == turn) {
            self.done = (turn, Instant::now());
        }
        self.is_late = self.done.1.elapsed() >= TURN_LATE;
        self.check_serial(turn)
    }

    /// Whether its threads come back to wait: one that does not would keep all others from their turns.
    fn check_serial(&self, done: u64) -> anyhow::Result<()> {
        let Some(turn_max) = self.serial_turn_max else {
            return Ok(());
        };
        let most = if self.rings.has_begun() {
            turn_max
        } else {
            turn_max.max(SERIAL_BEGIN_MAX)
        };
        if self.done.1.elapsed() < most {
            return Ok(());
        }
        let thread = self.rings.holder();
        let path = format!("/proc/{}/task/{thread}/comm", self.started.child.id());
        let name = fs::read_to_string(path).unwrap_or_default();
        anyhow::bail!(
            "{}: a turn behind turn {done} has not ended in {} s: thread {thread} ({}) has not come back to wait. \
             It waits for something that --serial does not serve, or computes for longer than --serial-turn-s; \
             this replica would diverge",
            self.file,
            most.as_secs(),
            name.trim_end()
        )
    }

    fn give(&mut self, turn: Given, events: &[TurnEvent<'_>]) -> anyhow::Result<()> {
        let Given {
            number,
            command,
            log_time_ns,
            wall_ns,
        } = turn;
        let is_given = self.rings.give(number, log_time_ns, wall_ns, events);
        self.given.push_back((number, command));
        anyhow::ensure!(is_given, "turn {number} does not fit the program's ring");
        Ok(())
    }

    /// Gives it a turn in which it gets this signal.
    fn signal(&mut self, turn: Given, signal: u8) -> anyhow::Result<()> {
        let Given {
            number,
            log_time_ns,
            wall_ns,
            ..
        } = turn;
        let is_given = self.rings.give_signal(number, log_time_ns, wall_ns, signal);
        anyhow::ensure!(is_given, "turn {number} does not fit the program's ring");
        Ok(())
    }
}

impl replay::Program for Serving {
    type Saved = SavedFolder;

    fn has_room(&self) -> bool {
        self.failed.is_none()
            && self.meanwhile.is_none()
            && self.running.as_ref().is_none_or(|it| it.rings.has_room())
    }

    fn begin(&mut self, beginning: &Beginning<'_, SavedFolder>) {
        let Beginning {
            log_time,
            wall_ms,
            key,
            turn,
            saved,
        } = *beginning;
        self.last = Given {
            number: turn,
            command: 0,
            log_time_ns: log_time.0.saturating_mul(MILLISECOND_NS),
            wall_ns: wall_ms.saturating_mul(MILLISECOND_NS),
        };
        let start = Start {
            log_time_ns: self.last.log_time_ns,
            wall_ns: self.last.wall_ns,
            step_ns: STEP_NS,
            key,
            allow_outbound: self.allow_outbound,
        };
        self.running = None; // it is killed
        self.checker.begin(turn);
        let folder = self.program.folder.clone();
        let (fills, number) = (Arc::clone(&self.fills), self.fills.begin());
        let begun = if let Some(saved) = saved.cloned() {
            let commands = self.commands.clone();
            let unpacked =
                move || fills.fill(number, || unpack(&saved, &folder, commands.as_ref()));
            elsewhere("unpack-program", unpacked).map(|result| {
                self.meanwhile = Some(Meanwhile::Unpacks(result, start));
            })
        } else {
            // At once: turns may stand behind it in the same entry of the log.
            fills
                .fill(number, || empty(&folder))
                .and_then(|()| self.start(&start))
                .map(|running| {
                    self.running = Some(running);
                })
        };
        if let Err(error) = begun {
            self.failed = Some(error);
        }
    }

    fn save(&mut self, signal: u8) {
        let Some(running) = &mut self.running else {
            return; // it failed: the server ends
        };
        self.checker.saves(self.last.number);
        tracing::info!(
            program = running.file,
            "the served program saves itself, to begin anew from that"
        );
        if signal == BY_COMMAND {
            let since = Instant::now();
            self.meanwhile = Some(Meanwhile::Rests { since });
            return;
        }
        self.last.number += 1;
        match running.signal(self.last, signal) {
            Ok(()) => {
                let since = Instant::now();
                self.meanwhile = Some(Meanwhile::Saves { since });
            }
            Err(error) => self.failed = Some(error),
        }
    }

    fn turn(&mut self, turn: &Turn<'_>) {
        let Some(running) = &mut self.running else {
            return; // it failed: the server ends
        };
        self.last = Given {
            number: turn.number,
            command: turn.command,
            log_time_ns: turn.log_time.0.saturating_mul(MILLISECOND_NS),
            wall_ns: turn.wall_ms.saturating_mul(MILLISECOND_NS),
        };
        self.checker.given(turn);
        if let Err(error) = running.give(self.last, turn.events) {
            self.failed = Some(error);
        }
    }

    fn checker(&mut self) -> &mut Checker {
        &mut self.checker
    }

    fn deadline(&self) -> Option<LogTime> {
        let deadline_ns = self.running.as_ref()?.rings.deadline_ns()?;
        Some(LogTime(deadline_ns.div_ceil(MILLISECOND_NS)))
    }
}

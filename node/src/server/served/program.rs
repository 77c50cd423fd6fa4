//! The served program of this replica: a process, and the rings between it and the log.
use crate::options::ServedOptions;
use anyhow::Context as _;
use quorumwire_interfaces::LogTime;
use quorumwire_interpose::{Event, Program, Rings, Sizes, Start, Started};
use quorumwire_replay::{self as replay, Turn, TurnEvent};
use std::fs;
use std::path::Path;

/// By how much the program's time goes on at each look at a clock, in nanoseconds.
const STEP_NS: u64 = 1000;
const MILLISECOND_NS: u64 = 1_000_000;

/// What is started, once the log says so.
pub struct Serving {
    program: Program,
    running: Option<Running>,
    /// Why there is none although there should be.
    failed: Option<anyhow::Error>,
}

/// What runs.
pub struct Running {
    pub rings: Rings,
    started: Started,
    file: String,
}

impl Serving {
    /// Nothing runs before the log says so. `folder` is emptied then.
    pub fn of(options: &ServedOptions, folder: &Path) -> anyhow::Result<Self> {
        let (file, arguments) = options.command.split_first().context("a command to run")?;
        let folder = std::path::absolute(folder)?;
        let mut program = Program::of(file, &folder);
        program.arguments = arguments.to_vec();
        Ok(Self {
            program,
            running: None,
            failed: None,
        })
    }

    pub const fn running(&mut self) -> Option<&mut Running> {
        self.running.as_mut()
    }

    fn start(&self, start: &Start) -> anyhow::Result<Running> {
        let folder = &self.program.folder;
        if folder.exists() {
            fs::remove_dir_all(folder).with_context(|| format!("emptying {}", folder.display()))?;
        }
        fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
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
        })
    }

    /// Whether it goes on; the error says why not.
    pub fn check(&mut self) -> anyhow::Result<()> {
        if let Some(failed) = self.failed.take() {
            return Err(failed);
        }
        match &mut self.running {
            Some(running) => running.check(),
            None => Ok(()),
        }
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
        if let Some(status) = self.started.child.try_wait()? {
            anyhow::bail!("{file} has ended ({status}) in or after turn {turn}");
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Its files mean nothing without the log, from which it begins again: there is nothing to end in
        // order.
        self.started.child.kill().ok(); // gone already
        self.started.child.wait().ok();
    }
}

impl replay::Program for Serving {
    fn has_room(&self) -> bool {
        self.failed.is_none() && self.running.as_ref().is_none_or(|it| it.rings.has_room())
    }

    fn begin(&mut self, log_time: LogTime, wall_ms: u64, key: &[u8; 32]) {
        let start = Start {
            log_time_ns: log_time.0.saturating_mul(MILLISECOND_NS),
            wall_ns: wall_ms.saturating_mul(MILLISECOND_NS),
            step_ns: STEP_NS,
            key: *key,
        };
        match self.start(&start) {
            Ok(running) => self.running = Some(running),
            Err(error) => self.failed = Some(error),
        }
    }

    fn turn(&mut self, turn: &Turn<'_>) {
        let Some(running) = &mut self.running else {
            return; // it failed: the server ends
        };
        let events: Vec<Event<'_>> = turn.events.iter().map(given).collect();
        let (log_time_ns, wall_ns) = (
            turn.log_time.0.saturating_mul(MILLISECOND_NS),
            turn.wall_ms.saturating_mul(MILLISECOND_NS),
        );
        if !running
            .rings
            .give(turn.number, log_time_ns, wall_ns, &events)
        {
            let why = anyhow::anyhow!("turn {} does not fit the program's ring", turn.number);
            self.failed = Some(why);
        }
    }

    fn deadline(&self) -> Option<LogTime> {
        let deadline_ns = self.running.as_ref()?.rings.deadline_ns()?;
        Some(LogTime(deadline_ns.div_ceil(MILLISECOND_NS)))
    }
}

const fn given<'a>(event: &TurnEvent<'a>) -> Event<'a> {
    match *event {
        TurnEvent::Accept {
            connection,
            peer,
            own,
        } => Event::Accept {
            connection,
            peer,
            own,
        },
        TurnEvent::Data { connection, bytes } => Event::Data { connection, bytes },
        TurnEvent::End { connection } => Event::End { connection },
        TurnEvent::Reset { connection } => Event::Reset { connection },
        TurnEvent::Datagram { peer, own, bytes } => Event::Datagram { peer, own, bytes },
    }
}

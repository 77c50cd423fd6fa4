//! Where log messages go: standard error, as text or as JSON lines. A thread writes them, from a queue that
//! is bounded: a reader that is slow or has gone, or a disk that is full, costs lines, which are counted, and
//! never stops a replica. Not for what a command answers.
mod queue;

use crate::options::{LogFormat, ServerOptions};
use crate::planes::KINDS;
use anyhow::Context as _;
use queue::{LineQueue, Weight};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{self, IsTerminal as _, Write};
use std::os::fd::AsFd as _;
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tracing::{Level, Metadata};
use tracing_subscriber::fmt;
use tracing_subscriber::fmt::MakeWriter;

/// At its end a process waits so long at most for its last words to be taken.
const LAST_WORDS_WAIT_MAX: Duration = Duration::from_secs(1);

static LINES: LineQueue = LineQueue::new();
/// Whether there is a log, so that the process' last words go there, too.
static IS_LOGGING: AtomicBool = AtomicBool::new(false);
/// Whether there is a thread that writes.
static IS_WRITING: AtomicBool = AtomicBool::new(false);

/// Starts logging for the rest of the process; called once. Lines wait until [`start_writing`].
pub fn start(options: &ServerOptions) {
    start_as(options.log_level, options.log_format);
}

/// As [`start`], with these options alone.
pub fn start_as(level: Level, format: LogFormat) {
    IS_LOGGING.store(true, Ordering::Relaxed);
    let builder = fmt()
        .with_max_level(level)
        .with_writer(ToQueue)
        .log_internal_errors(false) // it would be said on standard error, and panic where that cannot be
        .with_target(false)
        .with_ansi(io::stderr().is_terminal());
    // A program that a replica is a part of may have its own.
    let _ = match format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    std::panic::set_hook(Box::new(log_panic));
    for kind in KINDS {
        (kind.hand_complaints_to)(|complaint| tracing::info!("{complaint}"));
    }
}

/// Starts the thread that writes. Not before privileges are given up: it would keep them.
pub fn start_writing() -> anyhow::Result<()> {
    if IS_WRITING.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    let thread = thread::Builder::new().name("log".to_owned());
    let run = || write_lines(&LINES, &mut StandardError);
    let started = thread.spawn(run).context("starting the log's thread");
    started.map(drop)
}

/// Waits until what was logged is written, for a second at most.
pub fn end() {
    // Without a thread that writes the lines are lost, and there is nobody left to tell.
    if IS_LOGGING.load(Ordering::Relaxed) && start_writing().is_ok() {
        LINES.wait_until_idle(LAST_WORDS_WAIT_MAX);
    }
}

/// Why the process ends, behind what it has logged. False: it does not log.
pub fn takes_last_words(text: &str) -> bool {
    let is_logging = IS_LOGGING.load(Ordering::Relaxed);
    if is_logging {
        LINES.push(text.as_bytes(), Weight::Weighty);
    }
    is_logging
}

/// Lines dropped so far.
pub fn lines_dropped() -> u64 {
    LINES.dropped()
}

/// In a process that logs, a panic is logged: the usual hook waits for whoever reads standard error.
fn log_panic(info: &PanicHookInfo<'_>) {
    let current = thread::current();
    let thread = current.name();
    let at = info.location().map(ToString::to_string);
    let why = info.payload_as_str();
    let backtrace = Backtrace::capture(); // if the environment asks for it
    let is_captured = backtrace.status() == BacktraceStatus::Captured;
    let backtrace = is_captured.then(|| backtrace.to_string());
    tracing::error!(thread, at, why, backtrace, "a thread panicked");
    end(); // the process may end with this thread
}

/// Writes lines for ever, and says in one of its own how many were dropped.
fn write_lines(lines: &LineQueue, out: &mut impl Write) {
    let mut is_torn = false;
    loop {
        if let Some(count) = write_next(lines, out, &mut is_torn) {
            tracing::warn!(
                count,
                "log lines were dropped: their reader was too slow or gone, or the disk was full"
            );
        }
    }
}

/// Writes one line, behind the end of one that could be written in part only. How many dropped lines are to
/// be told of now: none while lines cannot be written, or telling would never end.
fn write_next(lines: &LineQueue, out: &mut impl Write, is_torn: &mut bool) -> Option<u64> {
    let line = lines.take();
    let mended = if *is_torn {
        out.write_all(b"\n")
    } else {
        Ok(())
    };
    let outcome = mended.and_then(|()| {
        *is_torn = false;
        let mut rest = line.as_slice();
        while !rest.is_empty() {
            rest = &rest[out.write(rest)?..];
            *is_torn = !rest.is_empty();
        }
        Ok(())
    });
    lines.wrote(&line, outcome.is_ok());
    outcome.ok().and_then(|()| lines.untold())
}

/// Standard error without the lock that other threads take, and without an end of patience: only the log's
/// own thread waits here.
struct StandardError;

impl Write for StandardError {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let stderr = io::stderr();
        loop {
            match rustix::io::write(stderr.as_fd(), bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => return Ok(count),
                Err(Errno::INTR) => {}
                // Whoever shares it has made it so.
                Err(Errno::AGAIN) => drop(poll(&mut [PollFd::new(&stderr, PollFlags::OUT)], None)),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Takes events as lines.
struct ToQueue;

/// Takes one event.
struct ToLine(Weight);

impl<'a> MakeWriter<'a> for ToQueue {
    type Writer = ToLine;

    fn make_writer(&'a self) -> ToLine {
        ToLine(Weight::Plain)
    }

    fn make_writer_for(&'a self, of: &Metadata<'_>) -> ToLine {
        // Levels are the greater, the less they matter.
        if *of.level() <= Level::WARN {
            ToLine(Weight::Weighty)
        } else {
            ToLine(Weight::Plain)
        }
    }
}

impl Write for ToLine {
    /// An event comes as one piece.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        LINES.push(line, self.0);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes so many bytes, and no more.
    #[derive(Default)]
    struct Paper {
        text: Vec<u8>,
        room: usize,
    }

    impl Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = bytes.len().min(self.room);
            if taken == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.text.extend_from_slice(&bytes[..taken]);
            self.room -= taken;
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_that_was_cut_off_does_not_run_into_the_next() {
        let lines = LineQueue::new();
        let mut paper = Paper::default();
        let mut is_torn = false;
        let mut write = |line: &[u8], room| {
            paper.room = room;
            lines.push(line, Weight::Plain);
            write_next(&lines, &mut paper, &mut is_torn)
        };
        assert_eq!(write(b"one\n", 100), None);
        assert_eq!(write(b"two\n", 2), None, "it cannot be told now");
        assert_eq!(write(b"three\n", 0), None);
        assert_eq!(write(b"four\n", 100), Some(2));
        assert_eq!(write(b"five\n", 100), None);
        assert_eq!(write(b"six\n", 0), None);
        assert_eq!(write(b"seven\n", 100), Some(1));
        assert_eq!(paper.text, b"one\ntw\nfour\nfive\nseven\n");
        assert_eq!(lines.dropped(), 3);
    }

    #[test]
    fn warnings_and_errors_are_weighty() {
        let weight = |level| {
            let kind = tracing::metadata::Kind::EVENT;
            let callsite =
                tracing::callsite!(name: "test", kind: tracing::metadata::Kind::EVENT, fields:);
            let fields =
                tracing::field::FieldSet::new(&[], tracing::callsite::Identifier(callsite));
            let of = Metadata::new("test", "test", level, None, None, None, fields, kind);
            ToQueue.make_writer_for(&of).0
        };
        assert_eq!(weight(Level::ERROR), Weight::Weighty);
        assert_eq!(weight(Level::WARN), Weight::Weighty);
        assert_eq!(weight(Level::INFO), Weight::Plain);
        assert_eq!(weight(Level::TRACE), Weight::Plain);
    }
}

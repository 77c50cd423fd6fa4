//! What ends a command before it is done: a signal, or a terminal or a reader that has gone. Two threads wait
//! for these, so that a command hears of them whatever it does.
use crate::output;
use anyhow::Context as _;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FileType, fstat};
use signal_hook::consts::{SIGHUP, SIGINT, SIGPIPE, SIGTERM};
use signal_hook::iterator::Signals;
use std::fmt::{self, Debug};
use std::fs;
use std::io::{stderr, stdin, stdout};
use std::os::fd::{AsFd, OwnedFd};
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Whoever says it so often will not wait for an end in good order.
const SIGNALS_OF_IMPATIENCE: u64 = 2;
/// Whoever says it so often wants it whatever is left behind.
const SIGNALS_MAX: u64 = 3;
/// What shells add to the number of a signal.
const SIGNAL_EXIT_CODE: i32 = 128;

/// Something has come that ends the command.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

/// What it was.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Cause {
    /// SIGTERM, SIGINT or SIGHUP.
    Signal(i32),
    /// The terminal has gone.
    TerminalGone,
    /// Nobody reads standard output any more.
    Unread,
    /// Whoever could write to standard input has gone.
    InputClosed,
}

impl Cause {
    /// In words; nothing where whoever sent it knows.
    const fn in_words(self) -> Option<&'static str> {
        match self {
            Self::Signal(_) => None,
            Self::TerminalGone => Some("the terminal has gone"),
            Self::Unread => Some("standard output was closed"),
            Self::InputClosed => Some("standard input was closed"),
        }
    }

    /// Ends the process, for a command that has nothing to put in order.
    pub fn end_process(self) -> ! {
        if let Some(words) = self.in_words() {
            errln!("error: stopped early: {words}");
        }
        let signal = match self {
            Self::Signal(signal) => {
                // Does not come back, if the system lets a process end itself.
                signal_hook::low_level::emulate_default_handler(signal).ok();
                signal
            }
            Self::TerminalGone | Self::InputClosed => SIGHUP,
            Self::Unread => SIGPIPE,
        };
        process::exit(SIGNAL_EXIT_CODE + signal)
    }
}

/// What the end of standard input means.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Input {
    /// The end of the command, which would not end by itself. Not if it was over before the command began.
    Ends,
    /// Nothing: the command reads none and ends by itself. It may be in a loop whose list comes on standard
    /// input.
    Ignored,
}

/// Set once by whatever comes first. The second SIGTERM or SIGINT ends a wait for an end in good order, the
/// third the process.
#[derive(Clone, Debug)]
pub struct Interrupt(Arc<State>);

type AtFirst = Box<dyn FnOnce(Cause) + Send>;

#[derive(Default)]
struct State {
    has_come: AtomicBool,
    signals: AtomicU64,
    at_first: Mutex<Option<AtFirst>>,
}

impl Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?}", self.has_come, self.signals)
    }
}

impl State {
    fn comes(&self, cause: Cause) {
        output::wait_for_nobody();
        self.has_come.store(true, Ordering::SeqCst);
        let at_first = self.at_first.lock();
        let at_first = at_first.unwrap_or_else(PoisonError::into_inner).take();
        if let Some(at_first) = at_first {
            at_first(cause);
        }
    }
}

impl Interrupt {
    /// Begins to listen.
    pub fn listen(input: Input) -> anyhow::Result<Self> {
        Self::listen_with(input, None)
    }

    /// Begins to listen, and does this, in a thread of its own, as soon as something comes.
    pub fn listen_and(
        input: Input,
        at_first: impl FnOnce(Cause) + Send + 'static,
    ) -> anyhow::Result<Self> {
        Self::listen_with(input, Some(Box::new(at_first)))
    }

    fn listen_with(input: Input, at_first: Option<AtFirst>) -> anyhow::Result<Self> {
        let state = Arc::new(State {
            at_first: Mutex::new(at_first),
            ..State::default()
        });
        // Such as by `nohup`: then a terminal may go.
        let outlives_terminal = ignores(SIGHUP);
        let hangup = (!outlives_terminal).then_some(SIGHUP);
        let signals = Signals::new([SIGTERM, SIGINT].into_iter().chain(hangup))?;
        let watched = watched(input, outlives_terminal)?;
        let told = Arc::clone(&state);
        spawn("signals", move || heed_signals(signals, &told))?;
        let told = Arc::clone(&state);
        spawn("hang-ups", move || {
            heed_hangups(watched, |cause| told.comes(cause));
        })?;
        Ok(Self(state))
    }

    /// Whether something has come.
    #[must_use]
    pub fn has_come(&self) -> bool {
        self.0.has_come.load(Ordering::SeqCst)
    }

    /// Whether somebody does not want to wait for an end in good order.
    #[must_use]
    pub fn is_impatient(&self) -> bool {
        self.0.signals.load(Ordering::SeqCst) >= SIGNALS_OF_IMPATIENCE
    }

    /// An error if something has come.
    pub fn check(&self) -> Result<(), Interrupted> {
        if self.has_come() {
            Err(Interrupted)
        } else {
            Ok(())
        }
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> anyhow::Result<()> {
    let thread = thread::Builder::new().name(name.to_owned());
    let started = thread.spawn(work).context("starting a thread");
    started.map(drop)
}

fn heed_signals(mut signals: Signals, state: &State) {
    for signal in signals.forever() {
        // One that a terminal sends as it goes is nobody's impatience.
        let count = u64::from(signal != SIGHUP);
        if state.signals.fetch_add(count, Ordering::SeqCst) + count >= SIGNALS_MAX {
            process::exit(1);
        }
        state.comes(Cause::Signal(signal));
    }
}

/// What may go of the standard ones, and what that means.
fn watched(input: Input, outlives_terminal: bool) -> anyhow::Result<Vec<(OwnedFd, Cause)>> {
    let input = (input == Input::Ends).then_some(Cause::InputClosed);
    let standard = [
        (stdin().as_fd().try_clone_to_owned()?, input),
        (stdout().as_fd().try_clone_to_owned()?, Some(Cause::Unread)),
        (stderr().as_fd().try_clone_to_owned()?, None), // whoever reads complaints may go
    ];
    let mut watched = Vec::new();
    for (stream, of_reader) in standard {
        let kind = FileType::from_raw_mode(fstat(&stream)?.st_mode);
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "foreign: those that can go are few"
        )]
        let cause = match kind {
            FileType::CharacterDevice if !outlives_terminal => Some(Cause::TerminalGone),
            FileType::Fifo | FileType::Socket => of_reader,
            _ => None,
        };
        let was_over = cause == Some(Cause::InputClosed) && has_gone(&stream);
        watched.extend(cause.filter(|_| !was_over).map(|cause| (stream, cause)));
    }
    Ok(watched)
}

/// Tells each that goes once; ends when all have gone.
fn heed_hangups(mut watched: Vec<(OwnedFd, Cause)>, mut tell: impl FnMut(Cause)) {
    while !watched.is_empty() {
        let mut asked: Vec<_> = watched
            .iter()
            .map(|(stream, _)| hangup_of(stream))
            .collect();
        // Fails when a signal comes, and then nothing has gone.
        poll(&mut asked, None).ok();
        let gone: Vec<bool> = asked.iter().map(|it| !it.revents().is_empty()).collect();
        let mut gone = gone.into_iter();
        let mut causes = Vec::new();
        watched.retain(|(_, cause)| {
            let goes = gone.next() == Some(true);
            causes.extend(goes.then_some(*cause));
            !goes
        });
        for cause in causes {
            tell(cause);
        }
    }
}

/// Nothing is asked for: hang-ups and errors are told all the same.
fn hangup_of(stream: &OwnedFd) -> PollFd<'_> {
    PollFd::new(stream, PollFlags::empty())
}

/// Whether the other side of a stream has gone.
pub fn has_gone(stream: &impl AsFd) -> bool {
    let at_once = rustix::time::Timespec::default();
    let mut asked = [PollFd::new(stream, PollFlags::empty())];
    poll(&mut asked, Some(&at_once)).is_ok_and(|gone| gone > 0)
}

/// Whether whoever started this process lets it ignore a signal.
fn ignores(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    let ignored = lines.find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::pipe;

    #[test]
    fn every_pipe_that_breaks_is_told_once() {
        let (reads, output) = pipe().unwrap();
        let (input, fills) = pipe().unwrap();
        assert!(!has_gone(&output) && !has_gone(&input));
        let watched = vec![
            (OwnedFd::from(output), Cause::Unread),
            (OwnedFd::from(input), Cause::InputClosed),
        ];
        drop((reads, fills));
        assert!(watched.iter().all(|(stream, _)| has_gone(stream)));
        let mut told = Vec::new();
        heed_hangups(watched, |cause| told.push(cause));
        assert_eq!(told, [Cause::Unread, Cause::InputClosed]);
    }

    #[test]
    fn signals_that_are_ignored_are_known() {
        assert!(ignores(SIGPIPE), "as every Rust program does");
        assert!(!ignores(SIGTERM));
    }
}

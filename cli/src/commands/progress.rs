//! Says what a command waits for, once it has waited long enough for people to wonder. On a terminal a
//! line that changes, elsewhere a line per new text.
use crate::output;
use indicatif::{ProgressBar, ProgressDrawTarget};
use quorumwire_node::stage::{Pace, SILENT_FOR, Stage};
use std::io::{IsTerminal as _, stderr};
use std::os::fd::AsFd as _;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How often a terminal shows how far something is.
const SHOW_INTERVAL: Duration = Duration::from_millis(250);
/// How often it is said elsewhere, where every time is a line.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// What a command waits for.
#[derive(Debug)]
pub struct Progress {
    since: Instant,
    bar: Option<ProgressBar>,
    last: String,
    lines: Pace,
}

impl Progress {
    /// Begins to wait, silently for [`SILENT_FOR`].
    #[must_use]
    pub fn start() -> Self {
        Self {
            since: Instant::now(),
            bar: stderr().is_terminal().then(ProgressBar::new_spinner),
            last: String::new(),
            lines: Pace::every(LINE_INTERVAL),
        }
    }

    /// How long it has been waiting.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }

    /// Says what is waited for now.
    pub fn say(&mut self, text: &str) {
        if self.elapsed() < SILENT_FOR {
            return;
        }
        if let Some(bar) = &self.bar {
            if !output::is_writable(stderr().as_fd()) {
                return; // a terminal that stands still would be waited for
            }
            bar.set_message(format!("{text} ({} s)", self.elapsed().as_secs()));
            bar.tick();
        } else if self.last != text {
            errln!("{text}");
        }
        text.clone_into(&mut self.last);
    }

    /// Says how far it is, a figure that moves on all the time: not every one becomes a line.
    pub fn show(&mut self, how_far: &str) {
        let is_due = self.bar.is_some() || self.lines.is_due(self.elapsed());
        if is_due && !how_far.is_empty() {
            self.say(how_far);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            if !output::is_writable(stderr().as_fd()) {
                bar.set_draw_target(ProgressDrawTarget::hidden());
            }
            bar.finish_and_clear();
        }
    }
}

/// Does work that says how far it is, which is shown meanwhile.
pub fn during<T>(work: impl FnOnce(&Stage) -> T) -> T {
    let stage = Stage::default();
    while_doing(|| stage.far().in_words(), || work(&stage))
}

/// Does work and shows meanwhile what `how_far` says.
pub fn while_doing<T>(how_far: impl Fn() -> String + Send, work: impl FnOnce() -> T) -> T {
    let (working, is_done) = channel::<()>();
    thread::scope(move |scope| {
        let working = working; // dropped when the work is done, or has panicked
        scope.spawn(move || {
            let mut progress = Progress::start();
            while is_done.recv_timeout(SHOW_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                progress.show(&how_far());
            }
        });
        let result = work();
        drop(working);
        result
    })
}

/// What is waited for, as one thread knows it and another shows it.
#[derive(Debug)]
pub struct Words(Mutex<String>);

impl Words {
    /// At first these.
    pub fn new(words: &str) -> Self {
        Self(Mutex::new(words.to_owned()))
    }

    /// From now on these.
    pub fn are(&self, words: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = words;
    }

    /// As they are now.
    pub fn now(&self) -> String {
        let words = self.0.lock();
        words.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::sync_channel;

    #[test]
    fn what_the_work_gives_is_given_back_and_how_far_it_is_was_looked_at() {
        let (looked, has_looked) = sync_channel(1);
        let how_far = move || {
            looked.try_send(()).ok(); // the work waits for the first look only
            "half".to_owned()
        };
        let given = while_doing(how_far, || {
            has_looked.recv().unwrap();
            7
        });
        assert_eq!(given, 7);
    }

    #[test]
    fn work_that_panics_leaves_nobody_waiting() {
        let caught = std::panic::catch_unwind(|| during(|_| panic!("as planned")));
        assert!(caught.is_err());
    }
}

//! Says what a command waits for, once it has waited long enough for people to wonder. On a terminal a
//! line that changes, elsewhere a line per new text.
use indicatif::ProgressBar;
use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

/// A command that ends sooner says nothing.
pub const SILENT_FOR: Duration = Duration::from_secs(2);

/// What a command waits for.
#[derive(Debug)]
pub struct Progress {
    since: Instant,
    silent_for: Duration,
    bar: Option<ProgressBar>,
    last: String,
}

impl Progress {
    /// Begins to wait, silently for [`SILENT_FOR`].
    #[must_use]
    pub fn start() -> Self {
        Self {
            since: Instant::now(),
            silent_for: SILENT_FOR,
            bar: std::io::stderr()
                .is_terminal()
                .then(ProgressBar::new_spinner),
            last: String::new(),
        }
    }

    /// How long it has been waiting.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }

    /// Says what is waited for now.
    pub fn say(&mut self, text: &str) {
        if self.elapsed() < self.silent_for {
            return;
        }
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{text} ({} s)", self.elapsed().as_secs()));
            bar.tick();
        } else if self.last != text {
            eprintln!("{text}");
        }
        text.clone_into(&mut self.last);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

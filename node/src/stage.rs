//! How far something long is: told by whoever does it, read by whoever shows it to people. And how often that
//! is to be said. Shows nothing itself.
use std::io::{self, Read, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What is over sooner is not talked about.
pub const SILENT_FOR: Duration = Duration::from_secs(2);

/// What the figures of [`Progress`] count.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Unit {
    /// Nothing: it is not known how far it is.
    #[default]
    Unknown,
    /// Shown in MiB.
    Bytes,
    /// Entries of the log.
    Entries,
}

/// How far something is.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Progress {
    /// What is being done; empty: nothing yet.
    pub what: &'static str,
    /// So much of it is done.
    pub done: u64,
    /// Of so much; 0 if that is not known.
    pub total: u64,
    unit: Unit,
}

impl Progress {
    /// This much of so many bytes.
    #[must_use]
    pub const fn of_bytes(what: &'static str, done: u64, total: u64) -> Self {
        Self {
            what,
            done,
            total,
            unit: Unit::Bytes,
        }
    }

    /// This much of so many entries.
    #[must_use]
    pub const fn of_entries(what: &'static str, done: u64, total: u64) -> Self {
        Self {
            unit: Unit::Entries,
            ..Self::of_bytes(what, done, total)
        }
    }

    /// In one line, for people.
    #[must_use]
    pub fn in_words(&self) -> String {
        let (scale, unit) = match self.unit {
            Unit::Unknown => return self.what.to_owned(),
            Unit::Bytes => (20, "MiB"),
            Unit::Entries => (0, "entries"),
        };
        let (what, done, total) = (self.what, self.done >> scale, self.total >> scale);
        if self.total == 0 {
            format!("{what}: {done} {unit}")
        } else {
            format!("{what}: {done} of {total} {unit}")
        }
    }
}

/// How far the work of one thread is, for others to look at.
#[derive(Debug, Default)]
pub struct Stage(Mutex<Progress>);

impl Stage {
    /// Something is done from now on of which it is not known how far it is.
    pub fn begins(&self, what: &'static str) {
        self.set(Progress {
            what,
            ..Progress::default()
        });
    }

    /// It is as far as this.
    pub fn set(&self, far: Progress) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = far;
    }

    /// How far it is now.
    pub fn far(&self) -> Progress {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Something that bytes go through, and who is told how many have.
pub struct MeteredStream<T, F> {
    inner: T,
    bytes: u64,
    tell: F,
}

impl<T, F: FnMut(u64)> MeteredStream<T, F> {
    /// Nothing has gone through yet.
    pub const fn new(inner: T, tell: F) -> Self {
        Self {
            inner,
            bytes: 0,
            tell,
        }
    }

    fn count(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        (self.tell)(self.bytes);
    }
}

impl<T: Read, F: FnMut(u64)> Read for MeteredStream<T, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.count(read);
        Ok(read)
    }
}

impl<T: Write, F: FnMut(u64)> Write for MeteredStream<T, F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.count(written);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Says when to say something: first when it has taken [`SILENT_FOR`], then once in a while.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    due: Duration,
    interval: Duration,
}

impl Pace {
    /// First after [`SILENT_FOR`], then so often.
    #[must_use]
    pub const fn every(interval: Duration) -> Self {
        Self {
            due: SILENT_FOR,
            interval,
        }
    }

    /// Whether it is to be said now, so long after the beginning. If so, next after the interval.
    pub fn is_due(&mut self, elapsed: Duration) -> bool {
        if elapsed < self.due {
            return false;
        }
        self.due = elapsed + self.interval;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_two_seconds_are_silent_and_the_rest_is_paced() {
        let mut pace = Pace::every(Duration::from_secs(5));
        let due: Vec<u64> = (0..200)
            .filter(|tenths| pace.is_due(Duration::from_millis(tenths * 100)))
            .collect();
        assert_eq!(due, [20, 70, 120, 170], "tenths of a second");
        let mut slept = Pace::every(Duration::from_secs(2));
        assert!(slept.is_due(Duration::from_mins(1)));
        assert!(!slept.is_due(Duration::from_secs(61)), "not made up for");
    }

    #[test]
    fn it_is_said_in_words_how_far_something_is() {
        let stage = Stage::default();
        assert_eq!(stage.far().in_words(), "");
        stage.set(Progress::of_bytes("reading the log", 12 << 20, 340 << 20));
        assert_eq!(stage.far().in_words(), "reading the log: 12 of 340 MiB");
        stage.set(Progress::of_bytes("writing the data", 5 << 20, 0));
        assert_eq!(stage.far().in_words(), "writing the data: 5 MiB");
        stage.begins("syncing the data");
        assert_eq!(stage.far().in_words(), "syncing the data");
        let far = Progress::of_entries("carrying out the log", 5, 7);
        stage.set(far);
        assert_eq!(stage.far(), far);
        assert_eq!(far.in_words(), "carrying out the log: 5 of 7 entries");
    }
}

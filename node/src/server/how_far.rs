//! What a server does for long is said while it lasts: how far it is with reading its folder, with carrying
//! out its log after a start, with a snapshot that comes in.
use super::Server;
use super::service::Service;
use crate::service_manager::ServiceManager;
use crate::stage::{Pace, Progress};
use quorumwire_control::{IncomingSnapshot, Now};
use quorumwire_interfaces::Index;
use std::time::Duration;

/// How often it is said.
const INTERVAL: Duration = Duration::from_secs(2);

/// Since when something lasts, and what was last said of it.
#[derive(Debug)]
pub struct HowFar {
    since: Option<Now>,
    pace: Pace,
    words: String,
    /// Where carrying out the log began, until this process has been ready for the first time.
    pub begun_behind: Option<Index>,
}

impl Default for HowFar {
    fn default() -> Self {
        Self {
            since: None,
            pace: Pace::every(INTERVAL),
            words: String::new(),
            begun_behind: None,
        }
    }
}

impl HowFar {
    /// It is so far now, or nothing lasts. What there is to be said of it, once it has taken long enough: the
    /// same until it is said anew.
    pub fn is_at(&mut self, now: Now, far: Option<Progress>) -> Option<&str> {
        let Some(far) = far else {
            *self = Self {
                begun_behind: self.begun_behind,
                ..Self::default()
            };
            return None;
        };
        let since = *self.since.get_or_insert(now);
        if self.pace.is_due(now.0.saturating_sub(since.0)) {
            self.words = far.in_words();
            tracing::info!(how_far = self.words, "still {}", far.what);
        }
        (!self.words.is_empty()).then_some(&self.words)
    }

    /// The same before there is a server.
    pub fn starts(&mut self, now: Now, far: Progress, manager: &mut ServiceManager) {
        if let Some(words) = self.is_at(now, Some(far)) {
            manager.tell(false, &format!("starting, {words}"));
        }
    }
}

impl<S: Service> Server<S> {
    /// The snapshot that comes in, and how far it is.
    pub fn incoming(&self) -> Option<Progress> {
        match self.core.group.replica.incoming()? {
            IncomingSnapshot::Receiving(it) => Some(Progress::of_bytes(
                "receiving a snapshot",
                it.stored_bytes,
                it.total_bytes,
            )),
            IncomingSnapshot::Installing => Some(self.upkeep.snapshots.installing.far()),
        }
    }

    /// How far this is with what keeps it from being of use.
    pub(super) fn what_lasts(&mut self) -> Option<Progress> {
        if self.is_ready() {
            self.how_far.begun_behind = None; // from now on being a little behind is nothing special
        }
        let carrying_out = || {
            let begun_behind = self.how_far.begun_behind?;
            let done = self.core.group.applied.0.checked_sub(begun_behind.0)?;
            let total = self.core.group.committed.0.checked_sub(begun_behind.0)?;
            (done < total).then(|| Progress::of_entries("carrying out the log", done, total))
        };
        self.incoming().or_else(carrying_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixDatagram;

    fn at(seconds: u64) -> Now {
        Now(Duration::from_secs(seconds))
    }

    fn heard(socket: &UnixDatagram) -> String {
        let mut bytes = [0; 256];
        let length = socket.recv(&mut bytes).unwrap_or(0);
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    #[test]
    fn a_start_that_lasts_is_told_to_the_manager_every_two_seconds() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_nonblocking(true).unwrap();
        let mut manager = ServiceManager::at(Some(path.as_os_str()));
        let mut how_far = HowFar::default();
        let mut told = Vec::new();
        for second in 0..7 {
            let far = Progress::of_bytes("reading the log", second << 20, 7 << 20);
            how_far.starts(at(100 + second), far, &mut manager);
            told.push(heard(&socket));
        }
        let expected = [
            "",
            "",
            "STATUS=starting, reading the log: 2 of 7 MiB\n",
            "",
            "STATUS=starting, reading the log: 4 of 7 MiB\n",
            "",
            "STATUS=starting, reading the log: 6 of 7 MiB\n",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn what_is_over_soon_is_not_talked_about() {
        let mut how_far = HowFar::default();
        let far = Some(Progress::of_entries("carrying out the log", 1, 2));
        for round in 0..10 {
            let begun = 100 + 10 * round;
            assert_eq!(how_far.is_at(at(begun), far), None);
            assert_eq!(how_far.is_at(at(begun + 1), far), None);
            assert_eq!(how_far.is_at(at(begun + 2), None), None);
        }
        assert_eq!(how_far.is_at(at(300), far), None);
        let said = "carrying out the log: 1 of 2 entries";
        assert_eq!(how_far.is_at(at(302), far), Some(said));
    }
}

//! Checksums of what this replica's program says, so that it can be compared with what those of others say.
//! Nobody waits for it: what clients are told goes its way beside this.
//!
//! A window of a connection's output ends when it is full, when the connection ends, and with each
//! [`PERIOD_MS`] of the log's time. All of these stand in the log or follow from it, so windows are the same
//! on all replicas if their programs say the same. A program is given turns long before it takes them: what
//! a turn does to windows is marked, and done when the first thing is said in that turn or behind it.
use crate::command::EVENTS_MAX;
use crate::outputs::{Compared, WINDOW_BYTES, WINDOWS_MAX, Window};
use crate::state::{Turn, TurnEvent};
use crate::unchecked::Unchecked;
use crc64fast::Digest;
use quorumwire_interfaces::counters;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

/// All datagrams stand in one line, each behind where it goes, as if they were said to a connection that was
/// accepted at this place of the turn in which the program begins. No client's has such a number.
const DATAGRAMS_PLACE: u64 = 0xffff;
const _: () = assert!(EVENTS_MAX < 0xffff, "places are below");
/// Windows end with each of these, also of a connection that says little.
const PERIOD_MS: u64 = 10_000;
/// Windows are reported this often, or when there are many.
const REPORTED_EVERY: Duration = Duration::from_millis(200);
/// Windows that wait to be reported. Of more the oldest go.
const WAITING_MAX: usize = 1 << 16;

counters! {
    /// Counted since the start.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct CheckerCounters {
        /// Windows of the served program's output of which a checksum was made here
        pub windows: "served_output_windows",
        /// Those of them that were not reported because too many waited
        pub not_reported: "served_output_windows_not_reported",
        /// Bytes of the served program's output not compared because replicas differ in them by right
        pub bytes_left_out: "served_output_bytes_left_out",
        /// Windows in which the served programs of all replicas have said the same
        pub equal: "served_output_windows_equal",
        /// Windows that were not compared because a replica had not reported them when too many waited
        pub forgotten: "served_output_windows_not_compared",
        /// Replicas quarantined because their program said something else than those of most
        pub outvoted: "served_output_replicas_outvoted",
        /// Replicas whose program said something else than the leader's, where nobody knows which is right
        pub undecided: "served_output_replicas_undecided",
    }
}

impl CheckerCounters {
    /// With what the log has counted.
    #[must_use]
    pub const fn with(self, compared: Compared) -> Self {
        Self {
            equal: compared.equal,
            forgotten: compared.forgotten,
            outvoted: compared.outvoted,
            undecided: compared.undecided,
            ..self
        }
    }
}

/// What a turn does to windows.
#[derive(Clone, Copy, Debug)]
enum Mark {
    Accept(u64),
    Reset(u64),
    /// What this connection is told is compared no more, or again.
    LeavesOut(u64, bool),
    /// All that has something in it ends.
    Period,
    /// All connections have ended, and the program saves itself.
    Saves,
}

struct Open {
    first_byte: u64,
    bytes: usize,
    digest: Digest,
    is_left_out: bool,
}

impl Open {
    fn new() -> Self {
        Self {
            first_byte: 0,
            bytes: 0,
            digest: Digest::new(),
            is_left_out: false,
        }
    }

    /// Ends the window; the next one begins.
    fn end(&mut self, connection: u64, turn: u64) -> Window {
        let bytes = std::mem::take(&mut self.bytes);
        let digest = std::mem::take(&mut self.digest);
        let window = Window {
            connection,
            first_byte: self.first_byte,
            bytes: u16::try_from(bytes).expect("at most WINDOW_BYTES"),
            turn,
            sum: digest.sum64(),
        };
        self.first_byte += bytes as u64;
        window
    }
}

/// The checksums of one replica.
pub struct Checker {
    is_on: bool,
    unchecked: Unchecked,
    marks: VecDeque<(u64, Mark)>,
    open: BTreeMap<u64, Open>,
    /// As what datagrams are compared: a program that begins anew begins another line of them.
    datagrams: u64,
    /// Which period the last turn was in.
    period: Option<u64>,
    ended: VecDeque<Window>,
    /// What ended before this turn is not reported.
    first_turn: u64,
    /// So many of these are on their way.
    on_their_way: usize,
    not_before: Duration,
    counters: CheckerCounters,
}

impl Checker {
    /// `is_on`: they are made at all.
    #[must_use]
    pub fn new(is_on: bool, unchecked: Unchecked) -> Self {
        Self {
            is_on,
            unchecked,
            marks: VecDeque::new(),
            open: BTreeMap::new(),
            datagrams: DATAGRAMS_PLACE,
            period: None,
            ended: VecDeque::new(),
            first_turn: 0,
            on_their_way: 0,
            not_before: Duration::ZERO,
            counters: CheckerCounters::default(),
        }
    }

    /// What has been counted.
    #[must_use]
    pub const fn counters(&self) -> CheckerCounters {
        self.counters
    }

    // What the program is given.

    /// The program begins behind this turn: no connection is open.
    pub fn begin(&mut self, turn: u64) {
        self.datagrams = (turn << 16) | DATAGRAMS_PLACE;
        self.unchecked.begin();
        self.marks.clear();
        self.open.clear();
        self.period = None;
        if self.is_on {
            self.open.insert(self.datagrams, Open::new());
        }
    }

    /// It is given this turn.
    pub fn given(&mut self, turn: &Turn<'_>) {
        if !self.is_on {
            return;
        }
        let period = turn.log_time.0 / PERIOD_MS;
        let before = self.period.replace(period);
        if before.is_some_and(|it| it != period) {
            self.marks.push_back((turn.number, Mark::Period));
        }
        // Who has asked in this turn, and who of them for something else since: answers are told apart by
        // turns only, so nothing that they are told in this one is compared.
        let (mut asked, mut until_next) = (BTreeSet::new(), BTreeSet::new());
        for event in turn.events {
            let mark = match *event {
                TurnEvent::Accept { connection, .. } => Some(Mark::Accept(connection)),
                TurnEvent::Data { connection, bytes } => {
                    let changes = self.unchecked.sent(connection, bytes);
                    if changes == Some(true) {
                        asked.insert(connection);
                        until_next.remove(&connection);
                    }
                    if changes == Some(false) && asked.contains(&connection) {
                        until_next.insert(connection);
                        continue;
                    }
                    changes.map(|is_left_out| Mark::LeavesOut(connection, is_left_out))
                }
                TurnEvent::Reset { connection } => {
                    self.unchecked.gone(connection);
                    Some(Mark::Reset(connection))
                }
                TurnEvent::End { .. } | TurnEvent::Datagram { .. } => None,
            };
            self.marks.extend(mark.map(|mark| (turn.number, mark)));
        }
        let is_over = |connection| (turn.number + 1, Mark::LeavesOut(connection, false));
        self.marks.extend(until_next.into_iter().map(is_over));
    }

    /// Behind this turn it is told to save itself.
    pub fn saves(&mut self, turn: u64) {
        if self.is_on {
            self.marks.push_back((turn, Mark::Saves));
        }
    }

    // What it says.

    /// It has said this to a client.
    pub fn said(&mut self, turn: u64, connection: u64, mut bytes: &[u8]) {
        self.pass(turn);
        let Some(open) = self.open.get_mut(&connection) else {
            return;
        };
        if open.is_left_out {
            self.counters.bytes_left_out += bytes.len() as u64;
            return;
        }
        let mut ended = Vec::new();
        while !bytes.is_empty() {
            let (taken, left) = bytes.split_at(bytes.len().min(WINDOW_BYTES - open.bytes));
            open.digest.write(taken);
            open.bytes += taken.len();
            bytes = left;
            if open.bytes == WINDOW_BYTES {
                ended.push(open.end(connection, turn));
            }
        }
        for window in ended {
            self.ended(window);
        }
    }

    /// It has sent a datagram from one of these addresses to the other.
    pub fn sent(&mut self, turn: u64, (to, from): (SocketAddr, SocketAddr), bytes: &[u8]) {
        if self.is_on {
            let head = format!("{from} {to} {}\n", bytes.len());
            self.said(turn, self.datagrams, head.as_bytes());
            self.said(turn, self.datagrams, bytes);
        }
    }

    /// It has closed the connection.
    pub fn closed(&mut self, turn: u64, connection: u64) {
        self.pass(turn);
        self.close(connection, turn);
    }

    /// It has done this turn, and all that it said was taken.
    pub fn done(&mut self, turn: u64) {
        self.pass(turn);
    }

    /// Carries out what is marked up to this turn.
    fn pass(&mut self, turn: u64) {
        while let Some((marked, mark)) = self.marks.pop_front_if(|(marked, _)| *marked <= turn) {
            match mark {
                Mark::Accept(connection) => {
                    self.open.insert(connection, Open::new());
                }
                Mark::Reset(connection) => self.close(connection, marked),
                Mark::LeavesOut(connection, is_left_out) => {
                    if let Some(open) = self.open.get_mut(&connection) {
                        open.is_left_out = is_left_out;
                    }
                }
                Mark::Period => self.end_all(marked),
                Mark::Saves => {
                    self.end_all(marked); // of datagrams
                    self.open.clear();
                }
            }
        }
    }

    /// Its last window says also that nothing follows.
    fn close(&mut self, connection: u64, turn: u64) {
        if let Some(mut open) = self.open.remove(&connection) {
            self.ended(open.end(connection, turn));
        }
    }

    fn end_all(&mut self, turn: u64) {
        let has_some = self.open.iter_mut().filter(|(_, open)| open.bytes > 0);
        let ended = has_some.map(|(connection, open)| open.end(*connection, turn));
        for window in ended.collect::<Vec<_>>() {
            self.ended(window);
        }
    }

    fn ended(&mut self, window: Window) {
        self.counters.windows += 1;
        if window.turn < self.first_turn {
            return;
        }
        if self.ended.len() >= WAITING_MAX {
            self.counters.not_reported += 1;
            self.ended.pop_front();
            self.on_their_way = self.on_their_way.saturating_sub(1);
        }
        self.ended.push_back(window);
    }

    // What is reported of it.

    /// Windows to be reported now, on their way from now on. One report is at a time.
    pub fn next_report(&mut self, now: Duration) -> Option<Vec<Window>> {
        let is_time = now >= self.not_before || self.ended.len() >= WINDOWS_MAX;
        if self.ended.is_empty() || self.on_their_way > 0 || !is_time {
            return None;
        }
        self.not_before = now + REPORTED_EVERY;
        self.on_their_way = self.ended.len().min(WINDOWS_MAX);
        Some(self.ended.range(..self.on_their_way).copied().collect())
    }

    /// What was on its way is in the log; or nobody knows, and it is reported again.
    pub fn report_ended(&mut self, is_done: bool) {
        let count = std::mem::take(&mut self.on_their_way);
        if is_done {
            self.ended.drain(..count);
        }
    }

    /// What ended before this turn need not be reported: others have long been compared there.
    pub fn skip_before(&mut self, turn: u64) {
        if self.on_their_way == 0 {
            self.first_turn = turn;
            self.ended.retain(|window| window.turn >= turn);
        }
    }
}

#[cfg(test)]
#[path = "checker_test.rs"]
mod tests;

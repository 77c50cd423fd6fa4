//! What a leader knows of one other member: how far its log is, what is on the way to it, when it
//! was last heard. Sends nothing.
use crate::{Now, Peer, SnapshotProgress};
use quorumwire_interfaces::{Index, Term};
use std::collections::VecDeque;
use std::time::Duration;

/// With each failure up to this number a snapshot is read again after twice as long.
const FAILURES_COUNTED: u32 = 4;

/// A leader's view of one member.
#[derive(Debug)]
pub(crate) struct Progress {
    pub(crate) peer: Peer,
    /// Counts for elections, commitment and leases.
    pub(crate) voter: bool,
    /// Removed by an entry that is not committed yet: still sent to, so that it learns of it.
    pub(crate) departing: bool,
    /// Last index it holds durably, equal to the leader's.
    pub(crate) match_index: Index,
    /// Highest round in which it said that it holds that, or more.
    pub(crate) matched_round: u64,
    /// First index not sent yet, or to be tried next.
    pub(crate) next_index: Index,
    pub(crate) state: Sending,
    /// How long the snapshot is that it was sent last, 0 if that is not known yet; none once it holds all
    /// that may be forgotten.
    pub(crate) catches_up_by: Option<u64>,
    in_flight: VecDeque<InFlight>,
    in_flight_bytes: usize,
    /// Highest round it has answered in this term.
    pub(crate) acked_round: u64,
    /// Until when it surely gives nobody else its vote, since it answered that round.
    pub(crate) promised_until: Option<Now>,
    /// When it last answered anything in this term.
    pub(crate) heard_at: Now,
    /// Its part in a fast term.
    pub(crate) part: Part,
    /// When its plane was last heard, or joined.
    pub(crate) plane_heard_at: Now,
}

/// Which of the two moves a member's log: software and plane never do at once.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Part {
    /// Software, also beside a fast term.
    Software,
    /// It was asked to engage; software keeps still until it answers, but no longer than this.
    Engaging {
        /// Until when.
        until: Now,
    },
    /// Its plane.
    Engaged,
}

/// How a member is being served.
#[derive(Debug)]
pub(crate) enum Sending {
    /// It is not known where its log agrees with the leader's: one message at a time.
    Probe {
        /// One is on its way; the next goes out with a heartbeat or upon an answer.
        paused: bool,
    },
    /// Its log agrees: messages follow each other without waiting, up to the window.
    Replicate,
    /// It needs what the log no longer holds.
    Snapshot(SnapshotTransfer),
}

/// A snapshot on its way to one member, a chunk at a time.
#[derive(Debug)]
pub(crate) struct SnapshotTransfer {
    pub(crate) last_index: Index,
    pub(crate) last_term: Term,
    /// How long it is; 0 until the first chunk was read.
    pub(crate) total_bytes: u64,
    /// Everything before this offset has been stored by the receiver.
    pub(crate) offset: u64,
    /// The chunk is being read.
    pub(crate) reading: bool,
    /// Times that a piece could not be read, one behind the other.
    pub(crate) failures: u32,
    /// When the transfer last moved.
    pub(crate) moved_at: Now,
}

impl SnapshotTransfer {
    /// Of which the first chunk is being read.
    pub(crate) const fn new(last: (Index, Term), now: Now) -> Self {
        Self {
            last_index: last.0,
            last_term: last.1,
            total_bytes: 0,
            offset: 0,
            reading: true,
            failures: 0,
            moved_at: now,
        }
    }

    /// A piece could not be read: all of it is read again, after a while.
    pub(crate) fn fail(&mut self, now: Now) {
        *self = Self {
            reading: false,
            failures: self.failures.saturating_add(1),
            ..Self::new((self.last_index, self.last_term), now)
        };
    }

    /// When it goes on by itself, if nothing moves it. To read it again looks at all of it.
    pub(crate) fn goes_on_at(&self, timeout: Duration) -> Duration {
        let pause = timeout.saturating_mul(1 << self.failures.min(FAILURES_COUNTED));
        self.moved_at.0 + pause
    }

    /// Whether it could not be read, and will be read again.
    pub(crate) const fn has_failed(&self) -> bool {
        self.total_bytes == 0 && !self.reading
    }

    /// Whether the receiver lacks a piece of it, as far as is known.
    pub(crate) const fn is_to_be_read(&self) -> bool {
        self.offset < self.total_bytes || self.total_bytes == 0
    }

    pub(crate) fn progress(&self) -> SnapshotProgress {
        SnapshotProgress {
            stored_bytes: self.offset,
            total_bytes: self.total_bytes,
        }
    }
}

#[derive(Debug)]
struct InFlight {
    last_index: Index,
    bytes: usize,
}

impl Progress {
    pub(crate) fn new(peer: Peer, voter: bool, next_index: Index, now: Now) -> Self {
        Self {
            peer,
            voter,
            departing: false,
            match_index: Index(0),
            matched_round: 0,
            next_index,
            state: Sending::Probe { paused: false },
            catches_up_by: None,
            in_flight: VecDeque::new(),
            in_flight_bytes: 0,
            acked_round: 0,
            promised_until: None,
            heard_at: now,
            part: Part::Software,
            plane_heard_at: now,
        }
    }

    /// Goes back to one message at a time, the next one beginning at `next_index`.
    pub(crate) fn probe_from(&mut self, next_index: Index) {
        self.next_index = next_index.max(self.match_index.next());
        self.state = Sending::Probe { paused: false };
        self.in_flight.clear();
        self.in_flight_bytes = 0;
    }

    /// It holds no more of the log than this after all: what it acknowledged in this term it has lost.
    /// That what it had counts for nothing new is the safe side.
    pub(crate) fn lost_all_behind(&mut self, index: Index) {
        self.match_index = self.match_index.min(index);
        self.probe_from(index.next());
    }

    /// Its plane is out of the fast term, or was never in it: software finds out where its log ends.
    pub(crate) fn take_over_by_software(&mut self) {
        self.part = Part::Software;
        match self.state {
            Sending::Probe { .. } | Sending::Replicate => self.probe_from(self.match_index.next()),
            Sending::Snapshot(_) => {}
        }
    }

    /// Whether another message with entries may be sent now.
    pub(crate) fn window_open(&self, messages_max: usize, bytes_max: usize) -> bool {
        match &self.state {
            Sending::Probe { paused } => !paused,
            Sending::Replicate => {
                self.in_flight.is_empty()
                    || (self.in_flight.len() < messages_max && self.in_flight_bytes < bytes_max)
            }
            Sending::Snapshot(_) => false,
        }
    }

    /// Entries up to `last_index` are on their way.
    pub(crate) fn sent(&mut self, last_index: Index, bytes: usize) {
        self.next_index = last_index.next();
        self.in_flight.push_back(InFlight { last_index, bytes });
        self.in_flight_bytes += bytes;
        if let Sending::Probe { paused } = &mut self.state {
            *paused = true;
        }
    }

    /// It holds everything up to `index`.
    pub(crate) fn matched(&mut self, index: Index) {
        self.match_index = self.match_index.max(index);
        self.next_index = self.next_index.max(self.match_index.next());
        while let Some(front) = self.in_flight.front() {
            if front.last_index > self.match_index {
                break;
            }
            self.in_flight_bytes -= front.bytes;
            self.in_flight.pop_front();
        }
    }
}

/// Numbers the moments at which a leader asked around, and remembers when that was.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    /// Number of the newest round; 0 before the first.
    current: u64,
    /// Begin of the newest rounds, the current one last.
    begun_at: VecDeque<Now>,
}

/// Most rounds whose begin is remembered. An answer to an older one still proves contact, but
/// renews no lease.
const ROUNDS_MAX: usize = 1024;

impl Rounds {
    pub(crate) fn current(&self) -> u64 {
        self.current
    }

    pub(crate) fn begin(&mut self, now: Now) {
        if self.begun_at.len() == ROUNDS_MAX {
            self.begun_at.pop_front();
        }
        self.current += 1;
        self.begun_at.push_back(now);
    }

    /// When the newest round began.
    pub(crate) fn current_begun_at(&self) -> Option<Now> {
        self.begun_at.back().copied()
    }

    /// When this round began, if that is still known.
    pub(crate) fn begun_at(&self, round: u64) -> Option<Now> {
        let age = usize::try_from(self.current.checked_sub(round)?).ok()?;
        let place = self.begun_at.len().checked_sub(1 + age)?;
        self.begun_at.get(place).copied()
    }
}

//! A `KEYS`, in as many slices as whoever carries it out likes. It looks at the keys of one moment: it holds
//! on to the tables as they were then, as a snapshot does, and lets each go once it has looked through it.
use std::collections::BTreeSet;
use std::sync::Arc;

use super::Store;
use super::item::Item;
use super::redis::work::{PER_KEY_SEEN, PER_PATTERN_STEP};
use super::shards::Shard;
use crate::redis::{Fault, Glob, Resp, reply, too_long};
use crate::{Query, REPLY_BYTES_MAX};

/// What it is asked, how far it has come, and what it has found.
#[derive(Debug)]
pub struct Search {
    resp: Resp,
    pattern: Box<[u8]>,
    /// Answers may have so many bytes.
    room: usize,
    log_time_ms: u64,
    /// Tables that are still to be looked through.
    pieces: std::vec::IntoIter<Arc<Shard>>,
    /// What is still to be looked at of one.
    items: std::vec::IntoIter<Arc<Item>>,
    /// In the order in which they are said; only as many as there is room for.
    found: BTreeSet<Box<[u8]>>,
    found_bytes: usize,
}

/// How far a [`Search`] has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SearchProgress {
    /// What was done now, in the measure of [`WORK_MAX`](crate::WORK_MAX).
    pub work: usize,
    /// It has looked at all keys, or knows that its answer is too long.
    pub is_over: bool,
}

impl Search {
    /// The search that a read is; `None`: it is another, or one to be refused. It finds nothing before it has
    /// [begun](Self::begin).
    #[must_use]
    pub fn asked(query: &Query<'_>) -> Option<Self> {
        let Query::Redis(read) = query else {
            return None;
        };
        read.spec().filter(|spec| spec.name == "keys")?;
        let pattern = read.words().get(1)?;
        Glob::new(pattern)?;
        Some(Self::new(read.resp(), pattern, REPLY_BYTES_MAX))
    }

    pub(super) fn new(resp: Resp, pattern: &[u8], room: usize) -> Self {
        Self {
            resp,
            pattern: pattern.into(),
            room,
            log_time_ms: 0,
            pieces: Vec::new().into_iter(),
            items: Vec::new().into_iter(),
            found: BTreeSet::new(),
            found_bytes: 0,
        }
    }

    /// It looks at the keys of this moment.
    pub fn begin(&mut self, store: &Store) {
        self.log_time_ms = store.log_time_ms;
        self.pieces = store.items.freeze().into_iter();
    }

    /// It lets go of what it holds on to, and has found nothing: it may begin anew.
    pub fn leave(&mut self) {
        *self = Self::new(self.resp, &self.pattern, self.room);
    }

    /// Looks at keys until so much work is done, or one key more, or all is over.
    pub fn go_on(&mut self, work_max: usize) -> SearchProgress {
        let mut progress = self.look(work_max);
        progress.is_over |= self.is_too_long();
        progress
    }

    /// The same, also once the answer is known to be too long: as much work on every replica.
    pub(super) fn look(&mut self, work_max: usize) -> SearchProgress {
        let mut work = 0;
        while work <= work_max {
            let Some(item) = self.items.next() else {
                let Some(piece) = self.pieces.next() else {
                    return SearchProgress {
                        work,
                        is_over: true,
                    };
                };
                let items: Vec<Arc<Item>> = piece.iter().map(Arc::clone).collect();
                self.items = items.into_iter();
                continue;
            };
            // What waits for its removal is there on some replicas only.
            if item.deadline_ms > self.log_time_ms {
                work += self.look_at(&item);
            }
        }
        SearchProgress {
            work,
            is_over: false,
        }
    }

    fn look_at(&mut self, item: &Item) -> usize {
        let mut steps = 0;
        let fits = Glob::new(&self.pattern)
            .is_some_and(|pattern| pattern.matches_counting(item.key(), &mut steps));
        if fits {
            self.found_bytes += item.key().len() + reply::FRAME_BYTES_MAX;
            if !self.is_too_long() {
                self.found.insert(item.key().into());
            }
        }
        PER_KEY_SEEN + steps * PER_PATTERN_STEP
    }

    fn is_too_long(&self) -> bool {
        self.found_bytes > self.room
    }

    /// What its client is told: what it has found, or why that is not said.
    #[must_use]
    pub fn answer(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if let Err(fault) = self.put(&mut out) {
            reply::error(&mut out, fault.as_bytes());
        }
        out
    }

    /// What it has found, or why that is not said.
    pub(super) fn put(&self, out: &mut Vec<u8>) -> Result<(), Fault> {
        if self.is_too_long() {
            return Err(format!("{}: use SCAN", too_long()).into());
        }
        reply::array_header(out, self.found.len());
        for key in &self.found {
            reply::bulk(out, key);
        }
        Ok(())
    }
}

//! Searches through all keys (`KEYS`) that are too long for one turn: one after the other, each in slices
//! between which everybody else has their turn. A search shows the keys of the moment at which it begins.
//! That is after whoever asked had leave to be answered, so its answer holds even if another replica leads by
//! the time it is said.
use super::Core;
use super::Server;
use crate::server::budget::Purpose;
use crate::server::clients::AnswerKind;
use crate::server::clock;
use crate::server::connection_id::ConnectionId;
use crate::server::origin::Origin;
use crate::server::read_line::AnswerTime;
use bytes::Bytes;
use quorumwire_control::Now;
use quorumwire_interfaces::Application as _;
use quorumwire_kv::{Query, Search, Store};
use std::collections::VecDeque;
use std::time::Duration;

/// A search that is likely to be more work waits for its turn; so much is done at once.
const AT_ONCE_WORK: usize = 8 << 20;
/// What a slice is in work: some 300 µs.
const SLICE_WORK: usize = 1 << 20;
/// Searches that may wait for their turn.
const WAITING_MAX: usize = 256;
/// From when it was asked for, a search may take so long: less than a request may wait for its answer.
const SEARCH_TIME_MAX: Duration = Duration::from_secs(4);

/// A search that somebody waits for.
struct WaitingSearch {
    search: Search,
    origin: Origin,
    at: Now,
}

/// Those that are not over.
#[derive(Default)]
pub struct Searches {
    /// The only one that holds on to keys.
    running: Option<WaitingSearch>,
    waiting: VecDeque<WaitingSearch>,
}

impl Searches {
    /// Whether a turn has something to do here.
    pub fn are_under_way(&self) -> bool {
        self.running.is_some() || !self.waiting.is_empty()
    }

    /// Nobody waits any more for what this connection asked.
    pub fn forget(&mut self, connection: ConnectionId) {
        let is_its =
            |it: &WaitingSearch| matches!(it.origin, Origin::Client(id, _) if id == connection);
        self.waiting.retain(|it| !is_its(it));
        if self.running.as_ref().is_some_and(is_its) {
            self.running = None;
        }
    }
}

impl Core {
    /// Answers a read that has leave to be answered, at once or, if it is a long search, later.
    pub fn answer_query(
        &mut self,
        origin: Origin,
        query: &Query<'_>,
        out: &mut Vec<u8>,
    ) -> AnswerTime {
        let store = self.group.store.inner();
        let Some(mut search) = Search::asked(query) else {
            store.answer(query, out);
            return AnswerTime::Now;
        };
        if store.expected_work_of_query(query) <= AT_ONCE_WORK {
            search.begin(store);
            let progress = search.go_on(AT_ONCE_WORK);
            store.add_work(progress.work);
            if progress.is_over {
                put(store, &search, out);
                return AnswerTime::Now;
            }
            search.leave();
        }
        if self.service.searches.waiting.len() >= WAITING_MAX {
            let text = format!("-ERR busy: {WAITING_MAX} KEYS wait already, use SCAN\r\n");
            out.extend_from_slice(text.as_bytes());
            return AnswerTime::Now;
        }
        self.service.searches.waiting.push_back(WaitingSearch {
            search,
            origin,
            at: self.group.now,
        });
        AnswerTime::Later
    }
}

/// Writes what a search has found.
fn put(store: &Store, search: &Search, out: &mut Vec<u8>) {
    let before = out.len();
    out.extend_from_slice(&search.answer());
    store.add_work(out.len() - before);
}

impl Server {
    /// Goes on with searches for as long as this turn has time for them.
    pub fn search_some(&mut self) {
        self.budget.begin(clock::now(), self.core.work_done());
        while self.core.service.searches.are_under_way() && self.budget.may_go_on(Purpose::Searches)
        {
            let answered = self.core.search_a_slice();
            if let Some((origin, text)) = answered {
                self.answer_search(origin, &text);
            }
            self.core.group.now = clock::now();
            let (now, work_done) = (self.core.group.now, self.core.work_done());
            self.budget.took(Purpose::Searches, now, work_done);
        }
    }

    fn answer_search(&mut self, origin: Origin, text: &[u8]) {
        match origin {
            Origin::Follower(from) => {
                let answer = Bytes::copy_from_slice(text);
                self.core.group.answer_follower_read(from, answer);
            }
            Origin::Client(id, slot) => self.complete(id, slot, AnswerKind::Answer, text),
            // They ask for no keys.
            Origin::Plane(..) | Origin::Service(_) | Origin::Admin(_) => {}
        }
    }
}

impl Core {
    /// Has the search whose turn it is look at some keys; its answer and where that goes, if it is over.
    fn search_a_slice(&mut self) -> Option<(Origin, Vec<u8>)> {
        let store = self.group.store.inner();
        let searches = &mut self.service.searches;
        if searches.running.is_none() {
            searches.running = searches.waiting.pop_front();
            if let Some(next) = &mut searches.running {
                next.search.begin(store);
            }
        }
        let running = searches.running.as_mut()?;
        let progress = running.search.go_on(SLICE_WORK);
        store.add_work(progress.work);
        let is_late = self.group.now.0.saturating_sub(running.at.0) > SEARCH_TIME_MAX;
        if !progress.is_over && !is_late {
            return None;
        }
        let done = searches.running.take()?;
        let mut text = Vec::new();
        if progress.is_over {
            put(store, &done.search, &mut text);
        } else {
            let seconds = SEARCH_TIME_MAX.as_secs();
            text = format!("-ERR KEYS took longer than {seconds} s: use SCAN\r\n").into_bytes();
        }
        Some((done.origin, text))
    }
}

#[cfg(test)]
#[path = "searches_test.rs"]
mod tests;

//! What the plane may do for memcached clients by itself: which answers it has, until when the lease holds,
//! and whether a write may go into the log without this server's doing.
use super::Core;
use crate::server::clock;
use quorumwire_interfaces::{Leave, Term};
use quorumwire_kv::memcached::{Read, ReadKind, reply};
use quorumwire_kv::{Changed, ItemView, Key};
use std::net::SocketAddr;
use std::time::Duration;

/// What this server keeps in its plane.
#[derive(Default)]
pub struct KernelReadLease {
    /// Whether the plane may answer reads at all.
    pub reads: bool,
    /// The fast term in which the plane's answers follow the store's changes.
    term: Option<Term>,
    /// Where an answer is put together.
    answer: Vec<u8>,
}

impl Core {
    /// Shows the plane what has been applied, and says what it may do until the next turn ends.
    pub fn lend_to_plane(&mut self) {
        if !self.group.leads_fast_term() {
            if self.service.read_lease.term.take().is_some() {
                self.group.store.inner_mut().follow_changes(false);
            }
            return;
        }
        self.group.begin_term();
        self.group.look_at_wall_clock(clock::wall());
        let term = self.group.replica.term();
        let writes_until = self.writes_until();
        let reads_until = self.reads_until();
        let (Some(plane), lent) = (&mut self.group.plane, &mut self.service.read_lease) else {
            return;
        };
        let Some(offload) = plane.data_plane_mut().offload() else {
            return;
        };
        let bytes_max = offload.answer_bytes_max();
        if bytes_max > 0 && lent.reads && lent.term != Some(term) {
            offload.forget_answers();
            self.group.store.inner_mut().follow_changes(true);
            lent.term = Some(term);
        }
        let answer = &mut lent.answer;
        self.group
            .store
            .inner_mut()
            .take_changes(&mut |changed| match changed {
                Changed::Everything => offload.forget_answers(),
                Changed::Item(key, _) if !key.is_text() => {} // no plain `get` names it
                Changed::Item(key, item) => {
                    let is_known = put_answer(answer, key, item, bytes_max);
                    offload.keep_answer(key.bytes(), is_known.then_some(answer));
                }
            });
        // After the answers, which show everything up to here.
        offload.allow(&Leave {
            writes_until,
            reads_until,
            applied: self.group.applied,
        });
    }

    /// A read that was answered here may be answered by the plane the next time.
    pub fn keep_in_plane(&mut self, read: &Read<'_>) {
        let ReadKind::Items { keys, .. } = read.kind() else {
            return;
        };
        let mut keys = keys.iter();
        let (Some(key), None) = (keys.next(), keys.next()) else {
            return;
        };
        if self.service.read_lease.term != Some(self.group.replica.term()) {
            return;
        }
        let (Some(plane), lent) = (&mut self.group.plane, &mut self.service.read_lease) else {
            return;
        };
        let Some(offload) = plane.data_plane_mut().offload() else {
            return;
        };
        let item = self.group.store.inner().lasting(key);
        if put_answer(&mut lent.answer, key, item, offload.answer_bytes_max()) {
            offload.keep_answer(key.bytes(), Some(&lent.answer));
        }
    }

    /// A write must not be taken for older than something whose time has come: then the log says so first.
    fn writes_until(&self) -> Duration {
        if self.draining || self.group.is_full || !self.stores_every_set() {
            return Duration::ZERO;
        }
        let next = self.group.store.next_deadline();
        next.map_or(Duration::MAX, |deadline| {
            self.group.clock.earliest(deadline)
        })
    }

    fn reads_until(&self) -> Duration {
        // What earlier leaders answered lies before our term's first entry. No time changes what the plane
        // has.
        let is_current = self.group.applied >= self.group.term_start;
        let until = self
            .group
            .replica
            .lease_until()
            .filter(|_| is_current && self.service.read_lease.reads);
        until.map_or(Duration::ZERO, |until| until.0)
    }

    /// Whether the plane has taken a memcached client's datagram, which it answers itself.
    pub fn plane_takes_memcached(&mut self, from: SocketAddr, datagram: &[u8]) -> bool {
        if !self.group.leads_fast_term() || self.draining || self.group.is_full {
            return false;
        }
        self.group.begin_term();
        if !self.stores_every_set() {
            return false; // what is refused must not be answered before
        }
        // What this writes must not be taken for older than something whose time has come.
        self.group.tick_if_deadline_passed();
        let Some(plane) = &mut self.group.plane else {
            return false;
        };
        plane.take_datagram(from, datagram)
    }
}

/// Puts together what a `get` of this key answers; whether the plane can keep that.
fn put_answer(
    answer: &mut Vec<u8>,
    key: Key<'_>,
    item: Option<ItemView<'_>>,
    bytes_max: usize,
) -> bool {
    answer.clear();
    let Some(item) = item.filter(|item| item.value.len() < bytes_max) else {
        return false;
    };
    reply::push_item(answer, key, &item, false);
    answer.extend_from_slice(reply::END);
    answer.len() <= bytes_max
}

#[cfg(test)]
#[path = "offload_test.rs"]
mod tests;

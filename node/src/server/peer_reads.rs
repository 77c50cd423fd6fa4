//! Reads that followers have passed on: answered here, now or when there is time; and reads that nobody wants any more.
use super::budget::{Budget, Purpose};
use super::clients::ConnectionId;
use super::clock;
use super::core::{Core, Origin, PeerRead, REQUEST_TIMEOUT, Reader};
use super::meta_reads::MetaRead;
use super::redis;
use super::searches::Answered;
use bytes::Bytes;
use quorumwire_control::Peer;
use quorumwire_group::Gate;
use quorumwire_interfaces::{Index, Reason};
use quorumwire_kv::memcached::{Asked, Read, reply};
use quorumwire_wire::peer;

impl Core {
    /// Answers a forwarded read that has leave to be answered at `index`, now or later.
    pub fn answer_peer_read_at(&mut self, budget: &mut Budget, index: Index, reader: Reader) {
        let Reader::Peer(PeerRead {
            from,
            request,
            line,
            ..
        }) = &reader
        else {
            return;
        };
        let (from, request, line) = (*from, *request, line.clone());
        match self.group.gate_granted(index, true, &line) {
            Gate::Wait(index) => self.waiting_for_apply.push((index, reader)),
            Gate::Overdue => self.refuse_overdue(from, request),
            Gate::Open | Gate::NoLease | Gate::NotLeader => {
                self.answer_peer_read_if_time(budget, index, reader);
            }
        }
    }

    /// Answers a forwarded read in this turn or a later one; in either the state machine shows what it must.
    pub fn answer_peer_read_if_time(&mut self, budget: &mut Budget, index: Index, reader: Reader) {
        // Who waits for time already comes before who asks now.
        if !self.has_late_reads && budget.may_go_on(Purpose::Followers) {
            budget.begin(clock::now(), self.work_done()); // consensus has had the time before
            self.answer_peer_read(reader);
            budget.took(Purpose::Followers, clock::now(), self.work_done());
        } else {
            self.answer_later(index, reader);
        }
    }

    /// A read that could be answered waits for time.
    pub fn answer_later(&mut self, index: Index, reader: Reader) {
        self.waiting_for_apply.push((index, reader));
        self.has_late_reads = true;
    }

    /// Tells a follower that only the log's time decides what its read would show.
    pub fn refuse_overdue(&mut self, from: Peer, request: u64) {
        self.refuse_forward(from, request, Reason::Overdue);
    }

    /// Answers a forwarded read out of the store as it is now.
    fn answer_peer_read(&mut self, reader: Reader) {
        let Reader::Peer(read) = reader else {
            return;
        };
        let PeerRead {
            from,
            request,
            term,
            line,
            at: _,
        } = read;
        let mut answer = Vec::new();
        match Read::from_line(&line) {
            _ if redis::is_read(&line) => {
                let origin = Origin::Peer(from, request);
                if self.answer_query(origin, &line, &mut answer) == Answered::Later {
                    return;
                }
            }
            Some(read) if matches!(read.asked(), Asked::Items { .. }) => {
                self.group.store.query(&line, &mut answer);
                self.count_read(&read);
            }
            Some(read) => {
                let origin = Origin::Peer(from, request);
                // The follower sends no write after a read that it waits for, as long as it does not lead.
                let may_write = self.takes_writes_of(term);
                match self.answer_meta_read(origin, &read, may_write, &mut answer) {
                    MetaRead::Answered => {}
                    MetaRead::Written(routed) => {
                        return self.reply_unless_pending(from, request, &routed);
                    }
                }
            }
            None => answer.extend_from_slice(reply::ERROR),
        }
        self.answer_read_of(from, request, answer.into());
    }

    /// Sends the answer of a read that a follower passed on.
    pub fn answer_read_of(&mut self, from: Peer, request: u64, answer: Bytes) {
        // The follower asks again, and its question waits behind what is queued already.
        if self.must_give_way(from, answer.len()) {
            return self.refuse_forward(from, request, Reason::Busy);
        }
        self.reply_forward(from, request, (peer::ForwardOutcome::Done, None), answer);
    }

    /// Followers have given these reads up.
    pub fn forget_late_reads(&mut self) {
        let now = self.group.now;
        let is_wanted = |reader: &Reader| match reader {
            Reader::Peer(read) => now.0.saturating_sub(read.at.0) <= REQUEST_TIMEOUT,
            Reader::Client(_) | Reader::Datagram(_) => true,
        };
        self.keep_readers(is_wanted);
    }

    /// Nobody waits for the reads of this connection any more.
    pub fn forget_reads_of(&mut self, connection: ConnectionId) {
        self.searches.forget(connection);
        self.keep_readers(|reader| match reader {
            Reader::Client(id) => *id != connection,
            Reader::Peer(_) | Reader::Datagram(_) => true,
        });
    }

    /// Forgets the reads that nobody wants any more.
    pub fn keep_readers(&mut self, is_wanted: impl Fn(&Reader) -> bool) {
        self.asked.retain(|_, (_, reader)| is_wanted(reader));
        self.waiting_for_apply
            .retain(|(_, reader)| is_wanted(reader));
    }
}

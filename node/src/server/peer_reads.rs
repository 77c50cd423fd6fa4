//! Reads that followers have passed on: answered here, now or when there is time; and reads that nobody wants
//! any more.
use super::budget::{Budget, Purpose};
use super::clients::ConnectionId;
use super::clock;
use super::core::{Core, Origin, Reader};
use super::meta_reads::MetaRead;
use super::redis;
use super::searches::Answered;
use quorumwire_group::{self as group, FollowerRead};
use quorumwire_interfaces::Index;
use quorumwire_kv::memcached::{Asked, Read, reply};

impl Core {
    /// Answers a read of a follower that has leave to be answered at `index`, now or later.
    pub fn answer_follower_at(&mut self, budget: &mut Budget, index: Index, read: FollowerRead) {
        if let Some(read) = self.group.follower_read_at(index, read) {
            self.answer_follower_if_time(budget, index, read);
        }
    }

    /// Answers it in this turn or a later one; in either the state machine shows what it must.
    pub fn answer_follower_if_time(
        &mut self,
        budget: &mut Budget,
        index: Index,
        read: FollowerRead,
    ) {
        // Who waits for time already comes before who asks now.
        if !self.group.reads.has_late && budget.may_go_on(Purpose::Followers) {
            budget.begin(clock::now(), self.work_done()); // consensus has had the time before
            self.answer_follower(read);
            budget.took(Purpose::Followers, clock::now(), self.work_done());
        } else {
            (self.group).wait_for_time(index, group::Reader::Follower(read));
        }
    }

    /// Answers it out of the store as it is now.
    fn answer_follower(&mut self, read: FollowerRead) {
        let FollowerRead { from, line, at: _ } = read;
        let origin = Origin::Follower(from);
        let mut answer = Vec::new();
        match Read::from_line(&line) {
            _ if redis::is_read(&line) => {
                if self.answer_query(origin, &line, &mut answer) == Answered::Later {
                    return;
                }
            }
            Some(read) if matches!(read.asked(), Asked::Items { .. }) => {
                self.group.store.query(&line, &mut answer);
                self.count_read(&read);
            }
            Some(read) => {
                // The follower sends no write after a read that it waits for, as long as it does not lead.
                let may_write = self.group.takes_writes_of(from.id.term);
                match self.answer_meta_read(origin, &read, may_write, &mut answer) {
                    MetaRead::Answered => {}
                    MetaRead::Written(routed) => {
                        return self.group.answer_unless_pending(from, routed.into());
                    }
                }
            }
            None => answer.extend_from_slice(reply::ERROR),
        }
        self.group.answer_follower_read(from, answer.into());
    }

    /// Nobody waits for the reads of this connection any more.
    pub fn forget_reads_of(&mut self, connection: ConnectionId) {
        self.searches.forget(connection);
        self.group.reads.keep(|reader| {
            !matches!(reader, group::Reader::Here(Reader::Client(id)) if *id == connection)
        });
    }
}

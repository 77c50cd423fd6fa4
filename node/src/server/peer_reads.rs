//! Reads that followers have passed on: answered here, now or when there is time; and reads that nobody wants
//! any more.
use super::budget::{Budget, Purpose};
use super::clock;
use super::connection_id::ConnectionId;
use super::core::Core;
use super::origin::Reader;
use super::service::Service;
use quorumwire_group::{self as group, FollowerRead};
use quorumwire_interfaces::Index;

impl<S: Service> Core<S> {
    /// Answers a read of a follower in this turn or a later one; in either the state machine shows what it
    /// must.
    pub fn answer_follower_if_time(
        &mut self,
        budget: &mut Budget,
        index: Index,
        read: FollowerRead,
    ) {
        // Who waits for time already comes before who asks now.
        if !self.group.reads.has_late && budget.may_go_on(Purpose::Followers) {
            budget.begin(clock::now(), self.work_done()); // consensus has had the time before
            S::answer_follower(self, read);
            budget.took(Purpose::Followers, clock::now(), self.work_done());
        } else {
            (self.group).wait_for_time(index, group::Reader::Follower(read));
        }
    }

    /// Nobody waits for the reads of this connection any more.
    pub fn forget_reads_of(&mut self, connection: ConnectionId) {
        S::forget(self, connection);
        self.group.reads.keep(|reader| {
            !matches!(reader, group::Reader::Here(Reader::Client(id)) if *id == connection)
        });
    }
}

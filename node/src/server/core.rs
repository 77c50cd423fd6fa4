//! One replicated group in one process: consensus, state machine, and whatever waits for them. Knows
//! client connections only by name, other replicas by what it is shown of the connections to them.
use super::budget::LOOK_AFTER_WORK;
use super::clock;
use super::group_counters::GroupCounters;
use super::hellos::Hellos;
use super::journal::Journal;
use super::last_commit::LastCommit;
use super::member_history::MemberHistory;
use super::origin::{Group, Origin};
use super::plane::Hosting;
use super::route_outcome::RouteOutcome;
use super::subscribers::Subscribers;
use bytes::{Bytes, BytesMut};
use quorumwire_control::{Now, Peer, Replica};
use quorumwire_group::{AnswerTo, ForwardKind, Requester as _, SubmitOutcome, put_in_session};
use quorumwire_interfaces::{Application, GroupId, Reason};
use quorumwire_sessions::SESSION_HEADER_BYTES;
use quorumwire_wire::limits::{COMMAND_BYTES_MAX, SESSION_COMMAND_BYTES_MAX};
use std::cell::Cell;

const _: () = assert!(SESSION_COMMAND_BYTES_MAX + SESSION_HEADER_BYTES == COMMAND_BYTES_MAX);

/// What is kept for an application beside the group that replicates it.
pub trait Hosted: Default + Sized + 'static {
    /// What is replicated.
    type Application: Application + Default + 'static;
}

/// Everything about the group that serving a request needs.
pub struct Core<S: Hosted> {
    pub group: Group<S::Application>,
    /// What this server keeps for the application beside the group.
    pub service: S,
    pub journal: Journal,
    /// What other replicas said when they connected.
    pub hellos: Hellos,
    /// What this server keeps of the group's plane, if it has one.
    pub hosting: Option<Hosting>,
    /// Where clients of the native protocol connect here.
    pub native_address: String,
    pub refuse_on_follower: bool,
    /// What it was before this start.
    pub history: MemberHistory,
    pub draining: bool,
    /// Its clients that are given values.
    pub subscribers: Subscribers,
    /// Whether writes get on.
    pub last_commit: LastCommit,
    pub counters: GroupCounters,
    /// What was done beside what the application counts.
    work: Cell<u64>,
}

impl<S: Hosted> Core<S> {
    pub fn new(service: S, replica: Replica, journal: Journal, id: GroupId, now: Now) -> Self {
        Self {
            group: Group::new(id, replica, Box::default(), now, clock::wall()),
            service,
            journal,
            hellos: Hellos::default(),
            hosting: None,
            native_address: String::new(),
            refuse_on_follower: false,
            history: MemberHistory::default(),
            draining: false,
            subscribers: Subscribers::default(),
            last_commit: LastCommit::begin(now),
            counters: GroupCounters::default(),
            work: Cell::new(0),
        }
    }

    /// What was done for clients so far, in bytes that were looked at or moved: what the application counts,
    /// and what is counted here.
    pub fn work_done(&self) -> u64 {
        self.counted_by_application().wrapping_add(self.work.get())
    }

    /// What the application counts of that.
    pub fn counted_by_application(&self) -> u64 {
        self.group.store.inner().work_done()
    }

    /// Counts work of this server's own.
    pub fn add_work(&self, work: usize) {
        self.work.set(self.work.get().wrapping_add(work as u64));
    }

    /// It has run a command, or answered a query, since it had counted so much. If it counts nothing, the
    /// clock is worth a look: nobody knows what that took.
    pub fn count_unless_counted(&self, before: u64) {
        if self.counted_by_application() == before {
            self.work.set(self.work.get().wrapping_add(LOOK_AFTER_WORK));
        }
    }

    /// Whether something is under way that others answer: replicas, or the disk.
    pub fn awaits_others(&self) -> bool {
        !self.group.proposals.is_empty()
            || !self.group.forwards.is_empty()
            || self.group.reads.await_round()
            || self.journal.is_behind()
    }

    /// A write: into the log if we lead, to the leader otherwise. `command_bytes` is what `encode` adds.
    pub fn write(
        &mut self,
        origin: Origin,
        command_bytes: usize,
        encode: impl FnOnce(&mut BytesMut),
    ) -> RouteOutcome {
        debug_assert!(command_bytes <= COMMAND_BYTES_MAX);
        if self.draining {
            return RouteOutcome::refused(Reason::Stopping);
        }
        if self.writes_here() {
            let submitted = self.group.write(origin, command_bytes, encode);
            return self.routed(submitted);
        }
        self.pass_on(origin, ForwardKind::Write, command_bytes, encode)
    }

    /// The same for a command with its session and its sequence.
    pub fn write_in_session(
        &mut self,
        origin: Origin,
        name: (u64, u64),
        command: &[u8],
    ) -> RouteOutcome {
        if self.draining {
            return RouteOutcome::refused(Reason::Stopping);
        }
        if self.writes_here() {
            let submitted = self.group.write_in_session(origin, name, command);
            return self.routed(submitted);
        }
        let bytes = SESSION_HEADER_BYTES + command.len();
        self.pass_on(origin, ForwardKind::Session, bytes, |buffer| {
            put_in_session(buffer, name, command);
        })
    }

    fn writes_here(&self) -> bool {
        self.group.leads() || self.group.waits_since_fast_term()
    }

    /// Sends a command to the leader.
    fn pass_on(
        &mut self,
        origin: Origin,
        kind: ForwardKind,
        bytes: usize,
        encode: impl FnOnce(&mut BytesMut),
    ) -> RouteOutcome {
        let leader = match self.route() {
            Ok(leader) => leader,
            Err(routed) => return routed,
        };
        if origin.answer_to() != AnswerTo::Here {
            return RouteOutcome::refused(Reason::NotLeader); // it is not passed on once more
        }
        let command = self.group.encoded(bytes, encode);
        match self.group.forward(leader, origin, kind, command) {
            Some(_) => RouteOutcome::Pending,
            None => self.stall(),
        }
    }

    /// What became of a write that is carried out here.
    pub fn routed(&mut self, submitted: SubmitOutcome) -> RouteOutcome {
        match submitted {
            SubmitOutcome::Pending => RouteOutcome::Pending,
            SubmitOutcome::NoRoom => self.stall(),
            SubmitOutcome::Refused(reason) => RouteOutcome::refused(reason),
        }
    }

    /// Sends a read to the leader. The error is what became of it otherwise.
    pub fn forward_read(&mut self, origin: Origin, line: &[u8]) -> Result<u64, RouteOutcome> {
        if self.group.leads() {
            return Err(self.stall()); // elected meanwhile: offered again, answered here
        }
        let leader = self.route()?;
        let line = Bytes::copy_from_slice(line);
        (self.group)
            .forward(leader, origin, ForwardKind::Read, line)
            .ok_or_else(|| self.stall())
    }

    /// The leader to send to; the error is what to do with the request instead.
    pub fn route(&mut self) -> Result<Peer, RouteOutcome> {
        match self.group.serving_leader() {
            Some(leader) if self.refuse_on_follower => {
                let connected = self.hellos.of(leader.id);
                let address = connected.map(|connected| &connected.memcached_address[..]);
                let instead = format!(
                    "replica {} leads, at {}",
                    leader.id,
                    address.unwrap_or("an unknown address")
                );
                Err(RouteOutcome::Refused(Reason::NotLeader, instead))
            }
            // Nobody will tell it of a leader.
            None if self.has_left() => Err(RouteOutcome::refused(Reason::Removed)),
            // Nor is there anybody who could lead.
            None if self.history.is_data_gone => Err(RouteOutcome::refused(Reason::DataGone)),
            Some(_) | None => {
                let leader = self.group.leader_to_ask();
                leader.map_err(|submitted| self.routed(submitted))
            }
        }
    }

    /// What is answered instead of waiting, to whom nothing can be kept for: why it would have to wait.
    pub fn why_stalled(&self) -> Reason {
        if self.group.has_somewhere_to_go() {
            Reason::Busy
        } else if self.history.is_data_gone {
            Reason::DataGone
        } else {
            Reason::NoLeader
        }
    }

    /// The same for a read that was on its way to this replica.
    pub fn why_not_read(&self, by: Peer) -> Reason {
        match self.group.replica.leader() {
            Some(leader) if leader != by.id => Reason::NotLeader,
            Some(_) | None => self.why_stalled(),
        }
    }

    pub fn stall(&mut self) -> RouteOutcome {
        self.group.stalled = true;
        RouteOutcome::Stalled
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::server::kv::KeyValue;
    use crate::server::plane_turn::tests::config;
    use crate::server::service::{Native, Service};
    use quorumwire_control::PersistedState;
    use quorumwire_interfaces::{Applied, Frozen};
    use std::io;
    use std::time::Duration;

    /// Counts nothing.
    #[derive(Default)]
    struct Silent;

    impl Application for Silent {
        fn apply(&mut self, _: &Applied<'_>, _: &mut Vec<u8>) {}
        fn query(&self, _: &[u8], _: &mut Vec<u8>) {}
        fn freeze(&self) -> Box<dyn Frozen> {
            unreachable!("nobody takes a snapshot here")
        }
        fn restore(&mut self, _: &mut dyn io::Read) -> io::Result<()> {
            Ok(())
        }
    }

    /// Of a replica that has just begun.
    pub fn core_of<S: Service>() -> Core<S> {
        let now = Now(Duration::from_secs(1));
        let replica = Replica::new(config(), now, PersistedState::default()).unwrap();
        Core::new(S::default(), replica, Journal::new(None), GroupId(0), now)
    }

    /// Otherwise a turn would carry out thousands of its commands, however long each takes.
    #[test]
    fn what_an_application_does_that_counts_nothing_is_worth_a_look_at_the_clock() {
        let silent = core_of::<Native<Silent>>();
        let before = silent.work_done();
        silent.add_work(1); // this server's own, on the way
        silent.count_unless_counted(silent.counted_by_application());
        assert!(silent.work_done() >= before + LOOK_AFTER_WORK);
        let counting = core_of::<KeyValue>();
        let before = counting.work_done();
        let counted = counting.counted_by_application();
        counting.group.store.inner().add_work(1);
        counting.count_unless_counted(counted);
        assert_eq!(counting.work_done(), before + 1);
    }
}

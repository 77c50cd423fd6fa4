//! What the replica tells about itself, made when somebody asks.
use super::Server;
use super::counters::{Counted, WantCounters};
use super::service::Service;
use crate::foreign_text::plain;
use crate::logging;
use crate::options::Durability;
use crate::report::{self, FastTermReport, FollowerReport, IncomingReport, MemberReport};
use crate::report::{MemberStanding, Report, ReportedDurability};
use quorumwire_control::Status;
use quorumwire_interfaces::Counter;
use quorumwire_wire::{CommitQuorum, Member, MemberRole};
use std::collections::BTreeMap;
use std::time::Duration;

impl<S: Service> Server<S> {
    /// Tells whoever started this process what has changed.
    pub fn tell_service_manager(&mut self) {
        let role = self.core.role();
        let status = match self.core.group.replica.leader() {
            _ if self.core.has_left() => format!("{role} from the cluster"),
            Some(_) => role.to_string(),
            None => format!("{role}, no leader"),
        };
        let far = self.what_lasts();
        let status = match self.how_far.is_at(self.core.group.now, far) {
            Some(words) => format!("{status}, {words}"),
            None => status,
        };
        self.service_manager.tell(self.is_ready(), &status);
    }

    pub fn report(&self) -> Report {
        let hosting = self.core.hosting.as_ref();
        let status = self.core.group.replica.status();
        let me = self.options.id;
        let uptime = self.core.group.now.0.saturating_sub(self.started.0);
        let mut report = Report {
            id: me.0,
            cluster: self.options.cluster.clone(),
            lineage: match self.core.group.replica.lineage() {
                lineage if lineage.is_known() => lineage.to_string(),
                _ => String::new(),
            },
            group: self.core.group.id.0,
            role: self.core.role(),
            term: status.term.0,
            leader: status.leader.map(|leader| leader.0),
            commit_index: status.commit_index.0,
            last_index: status.last_index.0,
            persisted_index: status.persisted_index.0,
            applied_index: self.core.group.applied.0,
            snapshot_index: status.snapshot_index.0,
            snapshot_age_ms: self.upkeep.snapshots.newest_at.map(|at| {
                let age = self.core.group.now.0.saturating_sub(at.0);
                milliseconds(age)
            }),
            first_index: status.first_index.0,
            log_segments: self.core.journal.segments(),
            log_bytes: status.log_bytes as u64,
            durability: match self.options.durability {
                Durability::Sync => ReportedDurability::Sync,
                Durability::Memory => ReportedDurability::Memory,
            },
            plane: match (&status.fast_term, hosting) {
                (Some(_), Some(plane)) => plane.name,
                (Some(_) | None, _) => "none",
            }
            .to_owned(),
            plane_address: hosting.map(|plane| plane.endpoint.to_string()),
            data_plane: hosting.and_then(|plane| plane.choice.clone()),
            fast_term: status.fast_term.map(|fast| FastTermReport {
                term: fast.term.0,
                for_ms: milliseconds(self.core.group.now.0.saturating_sub(fast.since.0)),
                start_index: fast.start_index.0,
            }),
            fast_term_ended: status
                .fast_counters
                .last_left
                .map(|it| it.name().to_owned()),
            quorum: match status.membership.quorum {
                CommitQuorum::Majority => "majority",
                CommitQuorum::All => "all",
            }
            .to_owned(),
            incarnation: self.incarnation.to_string(),
            memcached: self.addresses.memcached.clone(),
            redis: self.addresses.redis.clone(),
            client: self.addresses.native.clone(),
            http: self.addresses.http.clone(),
            peer: self.addresses.peer.clone(),
            ready: self.is_ready(),
            writes_refused: self.core.why_no_writes(),
            lease: status.lease,
            members: status
                .membership
                .members
                .iter()
                .map(|m| self.member_report(m))
                .collect(),
            followers: follower_reports(&status),
            met_http: self.met_http(),
            incoming_snapshot: self.incoming().map(|far| IncomingReport {
                what: far.what.to_owned(),
                done_bytes: far.done,
                total_bytes: far.total,
            }),
            faults: self.faults(),
            uptime_ms: milliseconds(uptime),
            log_time_ms: self.core.group.log_time.0,
            log_time_ahead_ms: self.core.log_time_ahead_ms(),
            connections: self.clients.count() as u64,
            client_buffer_bytes: self.clients.held.bytes as u64,
            counters: self.counters_by_name(&status),
            durations: BTreeMap::from([
                (report::COMMIT.to_owned(), self.core.counters.commit.clone()),
                (report::TURN.to_owned(), self.counters.turn.clone()),
            ]),
            ..Report::default()
        };
        S::report(&self.core, &mut report);
        report
    }

    fn member_report(&self, member: &Member) -> MemberReport {
        let own = member.id == self.options.id;
        let info = self.links.info(member.id);
        let address = |mine: &str, theirs: Option<&String>| {
            if own {
                Some(mine.to_owned())
            } else {
                theirs.map(|text| plain(text))
            }
        };
        MemberReport {
            id: member.id.0,
            incarnation: member.incarnation.to_string(),
            voter: member.role == MemberRole::Voter,
            role: match member.role {
                MemberRole::Voter => MemberStanding::Voter,
                MemberRole::Learner => MemberStanding::Learner,
                MemberRole::Joining => MemberStanding::Joining,
            },
            peer: plain(&member.peer_address),
            memcached: address(&self.addresses.memcached, info.map(|info| &info.client)),
            redis: address(&self.addresses.redis, info.map(|info| &info.redis)),
            client: address(
                &self.addresses.native,
                info.and_then(|info| info.native.first()),
            ),
            http: address(&self.addresses.http, info.map(|info| &info.http)),
        }
    }

    fn faults(&self) -> Vec<String> {
        let mut faults: Vec<String> = self.links.refusals().collect();
        let missing = self.links.missing();
        faults.extend(missing.map(|(id, tried)| Report::missing_fault(id.0, &tried)));
        faults.extend(self.address_faults());
        faults.extend(self.faults_of_place());
        faults.extend(self.core.divergence());
        faults.extend(S::faults(&self.core));
        faults.extend(self.core.why_no_writes());
        faults.extend(self.core.clock_fault());
        let plane_fault = self
            .core
            .group
            .plane
            .as_ref()
            .and_then(|plane| plane.data_plane().fault());
        faults.extend(plane_fault.map(|fault| format!("the data plane cannot run: {fault}")));
        faults.extend(self.upkeep.snapshots.fault());
        faults.extend(self.expiry_complaints());
        faults
    }

    /// All that is counted here and in what this drives.
    fn counted(&self, status: &Status) -> Counted {
        let (core, admission) = (&self.core, &self.admission);
        let mut links = self.links.counters;
        let dropped = &core.group.peers.dropped; // before they were a link's
        links.dropped_not_connected += dropped.not_connected;
        links.dropped_queue_full += dropped.queue_full;
        let mut raft = status.counters;
        raft.ignored_malformed += core.counters.malformed_messages;
        let plane = core.group.plane.as_ref().zip(core.hosting.as_ref());
        Counted {
            admission: admission.counters,
            work: admission.in_flight.counters,
            clients: self.clients.counters,
            native: self.clients.native_counters,
            group: core.counters.clone(),
            forwards: core.group.forwards.counters,
            reads: core.group.reads.counters,
            raft,
            fast: status.fast_counters,
            log: core.journal.counters(),
            links,
            agrees_on_keys: core.group.term_keys.is_some(),
            plane: plane.map(|(plane, hosting)| (plane.counters(), hosting.questions())),
            turns: self.budget.cut(),
            event_loop: self.counters.clone(),
            wants: WantCounters {
                client_descriptors: self.clients.starvation.count,
                peer_descriptors: self.links.starvation.count,
                log_lines: logging::lines_dropped(),
            },
        }
    }

    /// The same by name, with what the plane's place counts.
    fn counters_by_name(&self, status: &Status) -> BTreeMap<String, u64> {
        let mut named = BTreeMap::new();
        let mut name = |counter: &'static Counter, count| {
            named.insert(counter.name.to_owned(), count);
        };
        self.counted(status).each(&mut name);
        let store = self.core.group.store.inner();
        self.core.service.count(store, &mut name);
        if let Some(plane) = &self.core.group.plane {
            plane.data_plane().counters(&mut |counter, count| {
                named.insert(format!("plane_{}", counter.name), count);
            });
        }
        named
    }
}

fn follower_reports(status: &Status) -> Vec<FollowerReport> {
    status
        .followers
        .iter()
        .map(|follower| FollowerReport {
            id: follower.id.0,
            match_index: follower.match_index.0,
            lag: status.last_index.0.saturating_sub(follower.match_index.0),
            in_snapshot: follower.snapshot.is_some(),
            snapshot_sent_bytes: follower.snapshot.map_or(0, |it| it.stored_bytes),
            snapshot_bytes: follower.snapshot.map_or(0, |it| it.total_bytes),
            engaged: follower.engaged,
            active: follower.active,
        })
        .collect()
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

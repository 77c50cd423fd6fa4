//! What the replica tells about itself, made when somebody asks.
use super::Server;
use super::budget::Purpose;
use super::datagrams::{AssemblyCounters, DatagramCounters};
use super::term_keys::{KeyRefusal, TermKeyCounters};
use crate::foreign_text::plain;
use crate::logging;
use crate::options::Durability;
use crate::report::{FastTermReport, FollowerReport, IncomingReport, MemberReport, Report};
use crate::tls::TlsRefusal;
use quorumwire_control::{FastCounters, LeaveReason, Status};
use quorumwire_wire::{CommitQuorum, Member, MemberRole};
use std::collections::BTreeMap;
use std::time::Duration;

impl Server {
    /// Tells whoever started this process what has changed.
    pub fn tell_service_manager(&mut self) {
        let role = self.core.role_name();
        let status = match self.core.group.replica.leader() {
            _ if self.core.has_left() => format!("{role} from the cluster"),
            Some(_) => role.to_owned(),
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
        let store = self.core.group.store.inner().stats();
        let limit = self.core.group.store.inner().memory_limit();
        let me = self.options.id;
        let uptime = self.core.group.now.0.saturating_sub(self.started.0);
        Report {
            id: me.0,
            cluster: self.options.cluster.clone(),
            lineage: match self.core.group.replica.lineage() {
                lineage if lineage.is_known() => lineage.to_string(),
                _ => String::new(),
            },
            group: self.core.group.id.0,
            role: self.core.role_name().to_owned(),
            term: status.term.0,
            leader: status.leader.map(|leader| leader.0),
            commit_index: status.commit_index.0,
            last_index: status.last_index.0,
            persisted_index: status.persisted_index.0,
            applied_index: self.core.group.applied.0,
            snapshot_index: status.snapshot_index.0,
            snapshot_age_ms: self.snapshots.newest_at.map(|at| {
                let age = self.core.group.now.0.saturating_sub(at.0);
                milliseconds(age)
            }),
            first_index: status.first_index.0,
            log_segments: self.core.journal.segments(),
            log_bytes: status.log_bytes as u64,
            durability: match self.options.durability {
                Durability::Sync => "sync",
                Durability::Memory => "memory",
            }
            .to_owned(),
            plane: match (&status.fast_term, hosting) {
                (Some(_), Some(plane)) => plane.name,
                (Some(_) | None, _) => "software",
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
            client: self.addresses.own.clone(),
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
            items: store.curr_items,
            items_bytes: store.bytes,
            memory_limit_bytes: limit.bytes,
            memory_used_bytes: store.limited_bytes,
            memory_policy: limit.policy.name().to_owned(),
            connections: self.clients.count() as u64,
            client_buffer_bytes: self.clients.held.bytes as u64,
            counters: self.counter_map(&status),
            durations: BTreeMap::from([
                ("commit".to_owned(), self.core.counters.commit.clone()),
                ("turn".to_owned(), self.counters.turn.clone()),
            ]),
        }
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
                MemberRole::Voter => "voter",
                MemberRole::Learner => "learner",
                MemberRole::Joining => "joining",
            }
            .to_owned(),
            peer: plain(&member.peer_address),
            memcached: address(&self.addresses.memcached, info.map(|info| &info.client)),
            redis: address(&self.addresses.redis, info.map(|info| &info.redis)),
            client: address(&self.addresses.own, info.map(|info| &info.own)),
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
        faults.extend(self.core.why_no_writes());
        faults.extend(self.core.clock_fault());
        let plane_fault = self
            .core
            .group
            .plane
            .as_ref()
            .and_then(|plane| plane.place().fault());
        faults.extend(plane_fault.map(|fault| format!("the data plane cannot run: {fault}")));
        faults.extend(self.snapshots.fault());
        faults.extend(self.expiry_complaints());
        faults
    }

    // One line for each counter, and nothing else.
    #[allow(clippy::too_many_lines)]
    fn counter_map(&self, status: &Status) -> BTreeMap<String, u64> {
        let (own, asked) = (&self.core.counters, &self.front.counters);
        let group = &self.core.group;
        let store = self.core.group.store.inner().stats();
        let (links, dropped) = (&self.links.counters, &self.core.group.peers.dropped);
        let clients = &self.clients.counters;
        let raft = &status.counters;
        let mut counters: BTreeMap<String, u64> = [
            ("client_connections_accepted", clients.accepted),
            (
                "client_connections_refused_too_many",
                clients.refused_too_many,
            ),
            (
                "client_connections_closed_by_client",
                clients.closed_by_client,
            ),
            ("client_connections_closed_broken", clients.closed_broken),
            ("client_connections_killed", clients.killed),
            (
                "client_connections_closed_for_memory",
                clients.closed_for_memory,
            ),
            ("client_connections_closed_unknown", clients.closed_unknown),
            (
                "client_connections_closed_truncated",
                clients.closed_truncated,
            ),
            (
                "client_accepts_without_descriptor",
                self.clients.starvation.count,
            ),
            (
                "peer_accepts_without_descriptor",
                self.links.starvation.count,
            ),
            ("log_lines_dropped", logging::lines_dropped()),
            ("command_get_keys", own.get_keys),
            ("command_get_hits", own.get_hits),
            ("command_set", asked.set_commands),
            ("command_delete", asked.delete_commands),
            ("command_number", asked.number_commands),
            ("command_touch", asked.touch_commands),
            ("command_flush", asked.flush_commands),
            (
                "client_authentications_failed",
                asked.authentications_failed,
            ),
            ("command_redis_reads", asked.redis_reads),
            ("command_redis_writes", asked.redis_writes),
            ("command_redis_transactions", asked.redis_transactions),
            ("client_bytes_in", clients.bytes_in),
            ("client_bytes_out", clients.bytes_out),
            ("forwarded_to_leader", group.forwards.sent),
            ("forwarded_from_followers", own.forwarded_here),
            ("read_indexes_asked", group.reads.rounds_asked),
            ("outcomes_unknown", own.outcomes_unknown),
            ("entries_applied", own.entries_applied),
            ("session_commands_repeated", own.commands_repeated),
            ("session_commands_refused", own.session_refusals),
            ("long_commands_dropped", own.commands_dropped),
            ("items_evicted", store.evicted),
            ("writes_refused_for_memory", store.refused_for_memory),
            ("snapshots_taken", own.snapshots_taken),
            ("snapshots_failed", own.snapshots_failed),
            ("snapshots_sent", raft.snapshots_sent),
            ("snapshots_outrun", raft.snapshots_outrun),
            ("snapshots_installed", raft.snapshots_installed),
            ("elections_started", raft.elections_started),
            ("elections_won", raft.elections_won),
            ("elections_asked_about", raft.elections_asked_about),
            ("elections_upon_silence", raft.elections_upon_silence),
            ("process_pauses", self.counters.pauses),
            ("process_pauses_milliseconds", self.counters.pauses_ms),
            (
                "turns_out_of_time_for_clients",
                self.budget.cut(Purpose::Clients),
            ),
            (
                "turns_out_of_time_for_datagrams",
                self.budget.cut(Purpose::Datagrams),
            ),
            (
                "turns_out_of_time_for_followers",
                self.budget.cut(Purpose::Followers),
            ),
            (
                "turns_out_of_time_for_applying",
                self.budget.cut(Purpose::Applying),
            ),
            (
                "turns_out_of_time_for_searches",
                self.budget.cut(Purpose::Searches),
            ),
            ("client_writes_waited_for_work", self.front.in_flight.waits),
            ("client_shares_used_up", asked.shares_used_up),
            ("busy_polls", self.counters.busy_polls),
            ("busy_polls_in_vain", self.counters.busy_polls_in_vain),
            (
                "stepped_down_without_quorum",
                raft.stepped_down_without_quorum,
            ),
            ("append_rejected", raft.append_rejected),
            ("acknowledgements_denied", raft.acknowledgements_denied),
            (
                "vote_refused_recent_leader",
                raft.vote_refused_recent_leader,
            ),
            ("message_dropped_stranger", raft.ignored_stranger),
            (
                "message_dropped_old_incarnation",
                raft.ignored_old_incarnation,
            ),
            ("message_dropped_old_term", raft.ignored_old_term),
            (
                "message_dropped_malformed",
                raft.ignored_malformed + own.malformed_messages,
            ),
            ("message_dropped_other_lineage", raft.ignored_other_lineage),
            ("message_dropped_diverged", raft.ignored_diverged),
            ("message_dropped_unexpected", raft.ignored_unexpected),
            ("message_dropped_unknown_group", self.counters.unknown_group),
            (
                "message_dropped_not_connected",
                links.dropped_not_connected + dropped.not_connected,
            ),
            (
                "message_dropped_queue_full",
                links.dropped_queue_full + dropped.queue_full,
            ),
            ("message_dropped_not_certified", links.dropped_not_certified),
            ("peer_messages_in", links.messages_in),
            ("peer_messages_out", links.messages_out),
            ("peer_bytes_in", links.bytes_in),
            ("peer_bytes_out", links.bytes_out),
            (
                "peer_connections_closed_handshake_refused",
                links.closed_handshake_refused,
            ),
            (
                "peer_connections_closed_handshake_timeout",
                links.closed_handshake_timeout,
            ),
            ("peer_connections_closed_malformed", links.closed_malformed),
            ("peer_connections_closed_silent", links.closed_silent),
            ("peer_connections_closed_too_many", links.closed_too_many),
            ("peer_connections_closed_no_time", links.closed_no_time),
            ("peer_handshakes_postponed", links.handshakes_postponed),
            ("client_connections_refused_by_tls", clients.refused_by_tls),
            ("client_handshakes_timed_out", clients.handshakes_timed_out),
            ("client_handshakes_displaced", clients.handshakes_displaced),
            ("client_handshakes_postponed", clients.handshakes_postponed),
        ]
        .into_iter()
        .map(|(name, count)| (name.to_owned(), count))
        .collect();
        let refused = TlsRefusal::ALL.into_iter().zip(links.refused_by_tls);
        counters.extend(
            refused.map(|(why, count)| (format!("peer_tls_refused_{}", why.name()), count)),
        );
        if self.core.term_keys.is_some() {
            add_term_key_counters(&own.term_keys, &mut counters);
        }
        asked.refused.report(&mut counters);
        self.core.journal.add_counters(&mut counters);
        let planes = self.core.group.plane.iter().zip(&self.core.hosting);
        counters.extend(planes.flat_map(|(plane, hosting)| hosting.counters(plane)));
        if let Some(datagrams) = &self.datagrams {
            add_datagram_counters(&datagrams.counters, &mut counters);
            add_assembly_counters(datagrams.assembled(), &mut counters);
        }
        self.clients.own_counters.report(&mut counters);
        counters.insert("client_port_closed_truncated".into(), clients.own_truncated);
        add_fast_counters(&status.fast_counters, &mut counters);
        counters
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

/// The memcached port's UDP side.
fn add_datagram_counters(of: &DatagramCounters, counters: &mut BTreeMap<String, u64>) {
    let numbers = [
        ("datagram_requests", of.requests),
        ("datagram_answers", of.answers),
        ("datagram_answers_too_large", of.answers_too_large),
        ("datagram_answers_not_sent", of.not_sent),
        ("datagram_dropped_malformed", of.dropped_malformed),
        ("datagram_dropped_too_many", of.dropped_too_many),
        ("datagram_requests_expired", of.expired),
        ("datagram_bytes_in", of.bytes_in),
        ("datagram_bytes_out", of.bytes_out),
    ];
    counters.extend(numbers.map(|(name, count)| (name.to_owned(), count)));
}

/// Requests over UDP that came in several datagrams.
fn add_assembly_counters(of: AssemblyCounters, counters: &mut BTreeMap<String, u64>) {
    let numbers = [
        ("datagram_requests_assembled", of.whole),
        ("datagram_requests_contradicted", of.contradicted),
        ("datagram_requests_incomplete", of.expired),
        ("datagram_dropped_repeated", of.repeated),
        ("datagram_dropped_request_too_long", of.too_long),
        ("datagram_dropped_no_room", of.no_room),
    ];
    counters.extend(numbers.map(|(name, count)| (name.to_owned(), count)));
}

/// What replicas have agreed on between them.
fn add_term_key_counters(keys: &TermKeyCounters, counters: &mut BTreeMap<String, u64>) {
    let numbers = [
        ("fast_term_keys_drawn", keys.drawn),
        ("fast_term_keys_sent", keys.sent),
        ("fast_term_keys_kept", keys.kept),
        ("fast_term_keys_missing", keys.missing),
    ];
    counters.extend(numbers.map(|(name, count)| (name.to_owned(), count)));
    let dropped = KeyRefusal::ALL.into_iter().zip(keys.dropped);
    let name = |why: KeyRefusal| format!("fast_term_keys_dropped_{}", why.name());
    counters.extend(dropped.map(|(why, count)| (name(why), count)));
}

/// What the handover between software terms and fast terms has done.
fn add_fast_counters(fast: &FastCounters, counters: &mut BTreeMap<String, u64>) {
    let left = LeaveReason::ALL.into_iter().zip(fast.left);
    counters
        .extend(left.map(|(reason, count)| (format!("fast_term_left_{}", reason.name()), count)));
    let others = [
        ("fast_term_attempts", fast.engage_attempts),
        ("fast_term_attempts_failed", fast.engage_failures),
        ("plane_engaged", fast.engaged),
        ("plane_engage_refused", fast.engage_refused),
        ("plane_offers", fast.offers),
        ("plane_members_lost", fast.members_lost),
        ("plane_fence_waited", fast.fence_waited),
        ("message_dropped_plane_fence_full", fast.fence_dropped),
    ];
    counters.extend(others.map(|(name, count)| (name.to_owned(), count)));
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

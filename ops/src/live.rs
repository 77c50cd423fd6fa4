//! What a cluster does at this moment: figures made of what its replicas say one second and the next. The one
//! source of the dashboard, of `GET /v1/live` and of `quorumwire top`. Asks nobody and reads no clock.
mod rates;

use crate::counters::count;
use quorumwire_node::report::{
    COMMIT, FollowerReport, IncomingReport, MemberStanding, ReplicaRole, Report,
    ReportedDurability, TURN,
};
use rates::Span;
pub use rates::{Latency, ProtocolRates};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// The document's name; a new one whenever a field goes or changes its meaning.
pub const SCHEMA: &str = "quorumwire-live-1";
/// How often a document is made.
pub const TICK: Duration = Duration::from_secs(1);
/// How long a replica may take to describe itself before the document is made without it.
pub const REPORT_TIMEOUT: Duration = Duration::from_millis(800);

/// One tick's document. Field names are part of the public interface.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct LiveDocument {
    /// [`SCHEMA`].
    pub schema: String,
    /// When it was made: milliseconds since 1970-01-01.
    pub time_ms: u64,
    /// The replica that made it; none for one made by `quorumwire top`.
    pub made_by: Option<u16>,
    /// Name of the cluster.
    pub cluster: String,
    /// The replica that leads in the highest term anybody knows of, if it serves.
    pub leader: Option<u16>,
    /// The highest term anybody knows of.
    pub term: u64,
    /// sync or memory.
    pub durability: ReportedDurability,
    /// majority or all.
    pub quorum: String,
    /// All replicas together.
    pub totals: Totals,
    /// Each of them, by id.
    pub replicas: Vec<LiveReplica>,
    /// What somebody should look at; empty when all is well.
    pub warnings: Vec<Warning>,
}

impl LiveDocument {
    /// Says of addresses why nobody is known who would be there.
    pub fn add_strangers(&mut self, strangers: BTreeMap<String, String>) {
        let warnings = strangers.into_values().map(|text| Warning {
            replica: None,
            text,
        });
        self.warnings.extend(warnings);
    }
}

/// What all replicas do together.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Totals {
    /// Writes of clients; none until there are two readings.
    pub writes_per_s: Option<f64>,
    /// Reads of clients.
    pub reads_per_s: Option<f64>,
    /// The same by protocol.
    pub protocols: Vec<ProtocolRates>,
    /// Entries that the leader has carried out, whoever sent them; the log's own are among them.
    pub entries_per_s: Option<f64>,
    /// Writes as the leader sees them, from receipt to answer; none if there were none.
    pub write_latency: Option<Latency>,
    /// Clients connected.
    pub connections: u64,
    /// Items in the leader's store.
    pub items: u64,
    /// Bytes of their keys and values.
    pub items_bytes: u64,
}

/// What somebody should look at.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Warning {
    /// At which replica; none: it is about all of them.
    pub replica: Option<u16>,
    /// In words.
    pub text: String,
}

/// One replica.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct LiveReplica {
    /// Its name in the cluster.
    pub id: u16,
    /// Whether it has answered this time.
    pub reachable: bool,
    /// Why not.
    pub error: Option<String>,
    /// How long ago it answered last; none: never yet.
    pub silent_ms: Option<u64>,
    /// voter, learner or joining; none: it is no member.
    pub member: Option<MemberStanding>,
    /// Where it serves HTTP, if known.
    pub http: Option<String>,
    /// What its leader knows of it; none for the leader itself, and while nobody leads.
    pub follower: Option<FollowerReport>,
    /// Entries it is behind the leader; none while nobody leads.
    pub lag: Option<u64>,
    /// What it says of itself, or said last; then without rates.
    pub figures: Option<Figures>,
}

/// What a replica says of itself.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Figures {
    /// joining, learner, follower, candidate or leader.
    pub role: ReplicaRole,
    /// Whether a client's request would be served now, and this replica votes or is a learner for good.
    pub ready: bool,
    /// Raft term.
    pub term: u64,
    /// Whom it takes for the leader.
    pub leader: Option<u16>,
    /// Last index known to be committed.
    pub commit_index: u64,
    /// Last index carried out.
    pub applied_index: u64,
    /// The data plane that it has: none, or its kind.
    pub plane: String,
    /// Since when that carries the common case, in milliseconds; none: it does not.
    pub plane_for_ms: Option<u64>,
    /// Why it did so last time and does no longer.
    pub plane_ended: Option<String>,
    /// Milliseconds since its process started.
    pub uptime_ms: u64,
    /// Writes of its own clients.
    pub writes_per_s: Option<f64>,
    /// Reads that it answered.
    pub reads_per_s: Option<f64>,
    /// The same by protocol.
    pub protocols: Vec<ProtocolRates>,
    /// Entries carried out.
    pub entries_per_s: Option<f64>,
    /// From a write's receipt to its answer, if it leads.
    pub write_latency: Option<Latency>,
    /// How long the event loop did not listen, turn by turn.
    pub turn: Option<Latency>,
    /// Clients connected.
    pub connections: u64,
    /// Items in the store.
    pub items: u64,
    /// Bytes of their keys and values.
    pub items_bytes: u64,
    /// The log.
    pub log: LogFigures,
    /// The disk under the log; none in `memory` mode.
    pub disk: Option<DiskFigures>,
    /// Last index of the newest snapshot; 0 for none.
    pub snapshot_index: u64,
    /// How long ago that was taken; none: there is none, or it is older than the process.
    pub snapshot_age_ms: Option<u64>,
    /// Since its process started.
    pub elections_started: u64,
    /// Of these.
    pub elections_won: u64,
}

/// A replica's log.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct LogFigures {
    /// First index still in it.
    pub first_index: u64,
    /// Last index in it.
    pub last_index: u64,
    /// Bytes of entries in memory.
    pub memory_bytes: u64,
    /// Files on disk.
    pub segments: u64,
}

/// How the disk keeps up.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct DiskFigures {
    /// Batches written and synced.
    pub syncs_per_s: Option<f64>,
    /// How long one took (write and `fdatasync`), on average; none if there was none.
    pub sync_mean_us: Option<f64>,
    /// Bytes written.
    pub bytes_per_s: Option<f64>,
    /// Part of the time that the disk was waited for, 0 to 1.
    pub busy: Option<f64>,
}

/// What is known of a replica from earlier.
#[derive(Debug)]
struct Known {
    report: Report,
    at: Instant,
}

/// Replicas as they were seen last, to tell what has changed.
#[derive(Debug, Default)]
pub struct LiveCluster {
    known: BTreeMap<u16, Known>,
}

/// What was asked, and when.
#[derive(Debug)]
pub struct Observation {
    /// When the answers were there.
    pub at: Instant,
    /// The same by the calendar, milliseconds since 1970-01-01.
    pub time_ms: u64,
    /// Who asked.
    pub made_by: Option<u16>,
    /// What each replica said, or why it said nothing.
    pub seen: BTreeMap<u16, Result<Report, String>>,
}

impl LiveCluster {
    /// Takes in what replicas say now.
    pub fn observe(&mut self, observation: Observation) -> LiveDocument {
        let Observation {
            at, time_ms, seen, ..
        } = observation;
        let fresh = || seen.values().filter_map(|it| it.as_ref().ok());
        let leader = fresh()
            .filter(|it| it.role == ReplicaRole::Leader)
            .max_by_key(|it| it.term);
        let best = leader.or_else(|| fresh().max_by_key(|it| (it.term, it.commit_index)));
        self.forget_strangers(best);
        let replicas: Vec<LiveReplica> = self
            .ids(best, &seen)
            .into_iter()
            .map(|id| self.replica(id, seen.get(&id), (leader, best), at))
            .collect();
        let mut document = LiveDocument {
            schema: SCHEMA.to_owned(),
            time_ms,
            made_by: observation.made_by,
            leader: leader.filter(|it| it.ready).map(|it| it.id),
            term: fresh().map(|it| it.term).max().unwrap_or_default(),
            cluster: best.map(|it| it.cluster.clone()).unwrap_or_default(),
            durability: best.map(|it| it.durability.clone()).unwrap_or_default(),
            quorum: best.map(|it| it.quorum.clone()).unwrap_or_default(),
            totals: totals(&replicas, best.map(|it| it.id)),
            warnings: Vec::new(),
            replicas,
        };
        document.warnings = warnings(&document, &seen);
        for (id, report) in seen {
            if let Ok(report) = report {
                self.known.insert(id, Known { report, at });
            }
        }
        document
    }

    /// Where replicas were reached before, for those that are not connected to anybody now.
    pub fn addresses(&self) -> impl Iterator<Item = (u16, &str)> {
        let known = self.known.iter();
        known.map(|(id, known)| (*id, known.report.http.as_str()))
    }

    /// Members, and whoever was asked.
    fn ids(
        &self,
        best: Option<&Report>,
        seen: &BTreeMap<u16, Result<Report, String>>,
    ) -> BTreeSet<u16> {
        let members = best.iter().flat_map(|it| &it.members).map(|it| it.id);
        let known = self.known.keys().copied();
        members.chain(known).chain(seen.keys().copied()).collect()
    }

    /// Who was removed is not asked and shown for ever: what is known is of members only.
    fn forget_strangers(&mut self, best: Option<&Report>) {
        // Nobody answers, or only who does not know its cluster yet: what was known last stays.
        let Some(best) = best.filter(|it| !it.members.is_empty()) else {
            return;
        };
        let is_member = |id: u16| best.members.iter().any(|it| it.id == id);
        self.known.retain(|id, _| is_member(*id));
    }

    fn replica(
        &self,
        id: u16,
        seen: Option<&Result<Report, String>>,
        (leader, best): (Option<&Report>, Option<&Report>),
        at: Instant,
    ) -> LiveReplica {
        let known = self.known.get(&id);
        let member = best.and_then(|it| it.members.iter().find(|it| it.id == id));
        let follower = leader.and_then(|it| it.followers.iter().find(|it| it.id == id));
        let mut replica = LiveReplica {
            id,
            member: member.map(|it| it.role.clone()),
            http: member.and_then(|it| it.http.clone()),
            follower: follower.cloned(),
            lag: follower.map(|it| it.lag),
            ..LiveReplica::default()
        };
        match seen {
            Some(Ok(report)) => {
                let before = known.and_then(|it| Span::between((&it.report, it.at), (report, at)));
                replica.reachable = true;
                replica.silent_ms = Some(0);
                replica.http = Some(report.http.clone());
                replica.figures = Some(figures(report, before.as_ref()));
                let behind = |it: &Report| it.last_index.saturating_sub(report.last_index);
                replica.lag = replica.lag.or(leader.map(behind));
            }
            other => {
                let error = other.and_then(|it| it.as_ref().err());
                replica.error = error
                    .cloned()
                    .or_else(|| Some("none of the replicas asked is connected to it".to_owned()));
                replica.silent_ms = known.map(|it| milliseconds(at.duration_since(it.at)));
                replica.figures = known.map(|it| figures(&it.report, None));
                replica.http = replica.http.or(known.map(|it| it.report.http.clone()));
            }
        }
        replica
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn figures(report: &Report, span: Option<&Span<'_>>) -> Figures {
    // What clients say to a program is the program's: nobody here counts its reads and writes.
    let protocols = if report.serves_program() {
        Vec::new()
    } else {
        rates::protocols(span)
    };
    let leads = report.role == ReplicaRole::Leader;
    Figures {
        role: report.role.clone(),
        ready: report.ready,
        term: report.term,
        leader: report.leader,
        commit_index: report.commit_index,
        applied_index: report.applied_index,
        plane: report.plane_name().to_owned(),
        plane_for_ms: report.fast_term.as_ref().map(|it| it.for_ms),
        plane_ended: report.fast_term_ended.clone(),
        uptime_ms: report.uptime_ms,
        writes_per_s: rates::sum(protocols.iter().map(|it| it.writes_per_s)),
        reads_per_s: rates::sum(protocols.iter().map(|it| it.reads_per_s)),
        protocols,
        entries_per_s: span.and_then(|it| it.rate("entries_applied")),
        write_latency: span.filter(|_| leads).and_then(|it| it.latency(COMMIT)),
        turn: span.and_then(|it| it.latency(TURN)),
        connections: report.connections,
        items: report.items,
        items_bytes: report.items_bytes,
        log: LogFigures {
            first_index: report.first_index,
            last_index: report.last_index,
            memory_bytes: report.log_bytes,
            segments: report.log_segments,
        },
        disk: (report.durability == ReportedDurability::Sync).then(|| rates::disk(span)),
        snapshot_index: report.snapshot_index,
        snapshot_age_ms: report.snapshot_age_ms,
        elections_started: count(report, "elections_started"),
        elections_won: count(report, "elections_won"),
    }
}

/// What the store holds and how long writes take is told by the leader, all else is added up.
fn totals(replicas: &[LiveReplica], best: Option<u16>) -> Totals {
    let reached = || replicas.iter().filter(|it| it.reachable);
    let figures = || reached().filter_map(|it| it.figures.as_ref());
    let best = reached().find(|it| Some(it.id) == best);
    let best = best.and_then(|it| it.figures.as_ref());
    Totals {
        writes_per_s: rates::sum(figures().map(|it| it.writes_per_s)),
        reads_per_s: rates::sum(figures().map(|it| it.reads_per_s)),
        protocols: rates::sum_protocols(figures().map(|it| &it.protocols[..])),
        entries_per_s: best.and_then(|it| it.entries_per_s),
        write_latency: best.and_then(|it| it.write_latency.clone()),
        // What another says may be any number.
        connections: figures().fold(0, |sum, it| sum.saturating_add(it.connections)),
        items: best.map_or(0, |it| it.items),
        items_bytes: best.map_or(0, |it| it.items_bytes),
    }
}

fn warnings(document: &LiveDocument, seen: &BTreeMap<u16, Result<Report, String>>) -> Vec<Warning> {
    let of = |replica: Option<u16>, text: String| Warning { replica, text };
    let mut warnings = Vec::new();
    if document.leader.is_none() {
        warnings.push(of(None, "no leader serves".to_owned()));
    }
    for replica in &document.replicas {
        let id = Some(replica.id);
        if let Some(error) = &replica.error {
            warnings.push(of(id, format!("does not answer: {error}")));
        }
        if replica.follower.as_ref().is_some_and(|it| !it.active) {
            warnings.push(of(id, "the leader does not hear it".to_owned()));
        }
        let own = seen.get(&replica.id).and_then(|it| it.as_ref().ok());
        // Itself it goes on saying how far it is when all was sent.
        let incoming = own.and_then(|it| it.incoming_snapshot.as_ref());
        let sent = || replica.follower.as_ref()?.snapshot_in_words();
        let snapshot = incoming.map(IncomingReport::in_words).or_else(sent);
        warnings.extend(snapshot.map(|text| of(id, text)));
        let faults = own.iter().flat_map(|it| &it.faults);
        warnings.extend(faults.map(|fault| of(id, fault.clone())));
    }
    warnings
}

#[cfg(test)]
#[path = "live_test.rs"]
mod tests;

//! What a replica tells about itself: the body of `GET /v1/status`, the source of `/metrics` and of
//! `quorumwire status`. Plain data; field names are part of the public interface.
use crate::stage::Progress;
pub use output_difference::OutputDifference;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
pub use words::{MemberStanding, PlaneChooser, ReplicaRole, ReportedDurability, ReportedPolicy};

mod output_difference;
mod words;

/// Of [`Report::durations`]: from a write's arrival at the leader to its answer.
pub const COMMIT: &str = "commit";
/// Likewise: one turn of the event loop.
pub const TURN: &str = "turn";
/// Likewise, of a served program: from what a client sent to the batch that takes it to the log.
pub const WAIT: &str = "served_wait";

/// One replica's view of itself and, on the leader, of its followers.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Report {
    /// Its name in the cluster.
    pub id: u16,
    /// Name of the cluster.
    pub cluster: String,
    /// Which of all clusters of that name, 32 hexadecimal digits; empty: none is known yet.
    #[serde(default)]
    pub lineage: String,
    /// The replicated log this report is about.
    pub group: u32,
    /// joining, learner, follower, candidate or leader (a pre-candidate counts as candidate), or removed: it
    /// is no member any more.
    pub role: ReplicaRole,
    /// Raft term.
    pub term: u64,
    /// Who leads, if known.
    pub leader: Option<u16>,
    /// Last index known to be committed.
    pub commit_index: u64,
    /// Last index of the log.
    pub last_index: u64,
    /// Last index on this replica's disk (in `memory` mode: in its memory).
    pub persisted_index: u64,
    /// Last index the state machine has applied.
    pub applied_index: u64,
    /// Last index of the newest snapshot; 0 for none.
    pub snapshot_index: u64,
    /// How long ago this process took or was sent it; none: there is none, or it is older.
    #[serde(default)]
    pub snapshot_age_ms: Option<u64>,
    /// First index still in the log.
    pub first_index: u64,
    /// Files of the log on disk; 0 in `memory` mode.
    #[serde(default)]
    pub log_segments: u64,
    /// Bytes of entries in memory.
    pub log_bytes: u64,
    /// sync or memory.
    pub durability: ReportedDurability,
    /// What carries the common case: `none` while no data plane is engaged, and the server does it.
    pub plane: String,
    /// Where this replica's data plane listens (UDP), if it has one.
    pub plane_address: Option<String>,
    /// The data plane that it has, if it has one.
    pub data_plane: Option<DataPlaneReport>,
    /// The fast term that its plane runs in, if it does.
    pub fast_term: Option<FastTermReport>,
    /// Why the last fast term here ended; none if none did.
    pub fast_term_ended: Option<String>,
    /// majority or all.
    pub quorum: String,
    /// This life of the replica, 16 hexadecimal digits.
    pub incarnation: String,
    /// Where memcached clients connect.
    pub memcached: String,
    /// Where Redis clients connect; empty: it serves none.
    #[serde(default)]
    pub redis: String,
    /// Where clients of the native protocol connect; empty: it serves none.
    #[serde(default)]
    pub client: String,
    /// Where clients of a served program reach it here; `/udp` behind those that send datagrams.
    #[serde(default)]
    pub program: Vec<String>,
    /// Where this report comes from.
    pub http: String,
    /// Where other replicas connect.
    pub peer: String,
    /// Whether a client's request would be served now, and this replica votes or is a learner for good.
    pub ready: bool,
    /// Why no write is carried out now, as far as this replica knows; none: they are.
    #[serde(default)]
    pub writes_refused: Option<String>,
    /// Whether the leader may answer reads from its lease.
    pub lease: bool,
    /// The members in force.
    pub members: Vec<MemberReport>,
    /// How far each other member is; empty unless this replica leads.
    pub followers: Vec<FollowerReport>,
    /// The snapshot that comes in, if one does.
    #[serde(default)]
    pub incoming_snapshot: Option<IncomingReport>,
    /// It waits to be taken in: where a member that it is connected to serves HTTP.
    #[serde(default)]
    pub met_http: Option<String>,
    /// Where replicas' programs have said different things: the last of these, the oldest first.
    #[serde(default)]
    pub output_differences: Vec<OutputDifference>,
    /// What is wrong now, in words: a full disk, a refused peer. Empty when all is well.
    pub faults: Vec<String>,
    /// Milliseconds since the process started.
    pub uptime_ms: u64,
    /// The log's time, milliseconds since 1970-01-01.
    pub log_time_ms: u64,
    /// By how much that is ahead of this replica's clock, in milliseconds. Of a leader it is less than 0
    /// where the log's time is behind.
    #[serde(default)]
    pub log_time_ahead_ms: i64,
    /// Items in the store and the bytes of their keys and values.
    pub items: u64,
    /// See `items`.
    pub items_bytes: u64,
    /// Bytes that the items may take; 0: as many as there are.
    #[serde(default)]
    pub memory_limit_bytes: u64,
    /// Bytes that the items take: keys, values and 128 bytes for each item whose time has not passed.
    #[serde(default)]
    pub memory_used_bytes: u64,
    /// What happens at the limit: refuse or evict.
    #[serde(default)]
    pub memory_policy: ReportedPolicy,
    /// What is kept for learners, where values are served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<ValuesReport>,
    /// Clients connected.
    pub connections: u64,
    /// What their requests and answers hold in memory.
    #[serde(default)]
    pub client_buffer_bytes: u64,
    /// Counters since the process started, by metric name (without prefix and `_total`).
    pub counters: BTreeMap<String, u64>,
    /// Durations since the process started, by metric name (without prefix): [`COMMIT`] and [`TURN`].
    pub durations: BTreeMap<String, Durations>,
}

impl Report {
    /// That a member has not been connected for a while: a fault.
    #[must_use]
    pub fn missing_fault(id: u16, tried: &str) -> String {
        format!("{}{tried}", missing(id))
    }

    /// Of such a fault: which addresses of this member were tried in vain.
    #[must_use]
    pub fn tried_in(fault: &str, id: u16) -> Option<&str> {
        fault.strip_prefix(&missing(id))
    }

    /// Of a leader: the voters that it does not hear.
    #[must_use]
    pub fn silent_voters(&self) -> Vec<u16> {
        let is_heard = |id: u16| {
            let mut followers = self.followers.iter();
            id == self.id || followers.any(|follower| follower.id == id && follower.active)
        };
        let voters = self.members.iter().filter(|member| member.voter);
        let silent = voters.filter(|member| !is_heard(member.id));
        silent.map(|member| member.id).collect()
    }

    /// The data plane that it has: none, or its kind.
    #[must_use]
    pub fn plane_name(&self) -> &str {
        self.data_plane.as_ref().map_or("none", |it| &it.name)
    }

    /// Whether a program is served that was not written for it: nothing of the key-value store applies.
    #[must_use]
    pub fn serves_program(&self) -> bool {
        self.counters.contains_key("served_connections_accepted")
    }

    /// The memory limit, in one line for people.
    #[must_use]
    pub fn memory_in_words(&self) -> String {
        let used = self.memory_used_bytes;
        let then = if self.memory_policy == ReportedPolicy::Evict {
            "what was written or touched longest ago is deleted"
        } else {
            "writes are refused"
        };
        let policy = &self.memory_policy;
        match self.memory_limit_bytes {
            0 => format!(
                "the items take {used} bytes; there is no limit; policy {policy}: at a limit {then}"
            ),
            limit => format!(
                "the items take {used} of {limit} bytes; policy {policy}: at the limit {then}"
            ),
        }
    }
}

fn missing(id: u16) -> String {
    format!("no connection to replica {id}: ")
}

/// Values for learners; how many are kept, and their bytes, stand in `items` and `memory_used_bytes`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct ValuesReport {
    /// The last instance that is decided.
    pub last: u64,
    /// Nothing up to this instance is kept.
    pub trimmed: u64,
    /// All of them, by number.
    pub learners: Vec<LearnerReport>,
}

/// One who is given values.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub struct LearnerReport {
    /// Its number.
    pub id: u16,
    /// It needs nothing up to this instance any more.
    pub checkpoint: u64,
}

/// Which data plane a replica has, and why.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct DataPlaneReport {
    /// Its kind.
    pub name: String,
    /// Where it runs, and why there, in words; for a plane that can be in one place only, nothing.
    #[serde(default)]
    pub runs: Option<String>,
    /// option, or auto.
    pub chosen_by: PlaneChooser,
    /// Those that would have been faster and cannot run there.
    pub refused: Vec<RefusedPlaneReport>,
}

/// A data plane that cannot run where a replica is.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct RefusedPlaneReport {
    /// As in [`DataPlaneReport`].
    pub name: String,
    /// Why, and what would be accepted.
    pub why: String,
}

impl DataPlaneReport {
    /// One line for people.
    pub fn in_words(&self) -> String {
        let refused = self.refused.iter();
        let refused = refused.map(|one| format!("; not {}: {}", one.name, one.why));
        let runs = self.runs.as_ref();
        let runs = runs.map_or_else(String::new, |runs| format!(", {runs}"));
        format!(
            "{} chose {}{runs}{}",
            self.chosen_by,
            self.name,
            refused.collect::<String>()
        )
    }
}

/// A fast term, as one replica sees it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct FastTermReport {
    /// The term.
    pub term: u64,
    /// Milliseconds since this replica's plane was engaged.
    pub for_ms: u64,
    /// The last entry that software moved.
    pub start_index: u64,
}

/// One member of the group.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct MemberReport {
    /// Its name.
    pub id: u16,
    /// The life of it that is a member.
    pub incarnation: String,
    /// Whether it votes now.
    pub voter: bool,
    /// voter, learner or joining (will vote once it has caught up).
    pub role: MemberStanding,
    /// Where other replicas connect to it.
    pub peer: String,
    /// Where memcached clients connect to it, if it is connected.
    pub memcached: Option<String>,
    /// Where Redis clients connect to it, if it is connected.
    pub redis: Option<String>,
    /// Where clients of the native protocol connect to it, if it is connected.
    pub client: Option<String>,
    /// Where it reports its status, if it is connected.
    pub http: Option<String>,
}

impl MemberReport {
    /// One that votes, of which no more is known than this.
    #[must_use]
    pub fn voter(id: u16, http: Option<String>) -> Self {
        Self {
            id,
            incarnation: "00".to_owned(),
            voter: true,
            role: MemberStanding::Voter,
            peer: String::new(),
            memcached: None,
            redis: None,
            client: None,
            http,
        }
    }
}

/// How far a member is, as its leader sees it.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct FollowerReport {
    /// Its name.
    pub id: u16,
    /// Last index it has stored durably.
    pub match_index: u64,
    /// Entries it is behind the leader's last.
    pub lag: u64,
    /// It is receiving a snapshot.
    pub in_snapshot: bool,
    /// Bytes of that snapshot that it has stored.
    #[serde(default)]
    pub snapshot_sent_bytes: u64,
    /// How long that snapshot is; 0: not known yet, or there is none.
    #[serde(default)]
    pub snapshot_bytes: u64,
    /// Its data plane takes part in the fast term.
    #[serde(default)]
    pub engaged: bool,
    /// Heard from within the election timeout.
    pub active: bool,
}

impl FollowerReport {
    /// The snapshot that it is being sent, in one line for people.
    #[must_use]
    pub fn snapshot_in_words(&self) -> Option<String> {
        let (done, total) = (self.snapshot_sent_bytes, self.snapshot_bytes);
        let far = Progress::of_bytes("is being sent a snapshot", done, total);
        self.in_snapshot.then(|| far.in_words())
    }
}

/// A snapshot that comes in, as the one who receives it sees it.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct IncomingReport {
    /// What is being done with it: first it is received, then checked and taken in.
    pub what: String,
    /// Bytes of it that this is done with.
    pub done_bytes: u64,
    /// How long it is; 0: not known yet.
    pub total_bytes: u64,
}

impl IncomingReport {
    /// In one line, for people.
    #[must_use]
    pub fn in_words(&self) -> String {
        let far = Progress::of_bytes("", self.done_bytes, self.total_bytes);
        format!("{}{}", self.what, far.in_words())
    }
}

/// Upper bounds of the buckets of [`Durations`], in microseconds; the last bucket has no bound.
pub const DURATION_BOUNDS_US: [u64; 20] = [
    5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000,
    500_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000,
];

/// How often something took how long.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Durations {
    /// One count per bucket of [`DURATION_BOUNDS_US`] and one beyond; not cumulative.
    pub bucket_counts: [u64; DURATION_BOUNDS_US.len() + 1],
    /// Sum of all, in microseconds.
    pub sum_us: u64,
}

impl Durations {
    /// Counts one duration.
    pub fn record(&mut self, duration_us: u64) {
        let bucket = DURATION_BOUNDS_US.partition_point(|bound| *bound < duration_us);
        self.bucket_counts[bucket] += 1;
        self.sum_us += duration_us;
    }
}

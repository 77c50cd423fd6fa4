//! The first frame of a connection between replicas: who is there, and do we speak the same versions.
use crate::limits::{
    ADDRESS_BYTES_MAX, CLUSTER_NAME_BYTES_MAX, SETTING_TEXT_BYTES_MAX, SETTINGS_MAX,
};
use crate::{RECORD_VERSION, lineage_from_proto, peer};

/// Lowest version of the messages this code can read.
pub const PROTOCOL_VERSION_MIN: u32 = 1;
/// Highest version of the messages this code can read, and the one it prefers.
pub const PROTOCOL_VERSION_MAX: u32 = 1;
/// Version of the snapshot files this code writes and reads.
pub const SNAPSHOT_VERSION: u32 = 1;

/// Why a connection is closed on purpose. Told to the other side by name.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Goodbye {
    /// It belongs to another cluster.
    OtherCluster,
    /// It belongs to another cluster of the same name.
    OtherLineage,
    /// Its code is from before lineages, and the cluster has one.
    BeforeLineages,
    /// It claims our own id.
    OwnId,
    /// Its id is beyond 65,535, its incarnation 0, or a text too long.
    Malformed,
    /// No version of the messages is known to both.
    ProtocolVersion,
    /// It writes log records of a version we cannot read.
    RecordVersion,
    /// It writes snapshots of a version we cannot read.
    SnapshotVersion,
    /// A member with its id, in another life, is connected.
    IdInUse,
    /// The same replica has connected again; this connection is the older one.
    Superseded,
    /// The process is stopping.
    Stopping,
}

impl Goodbye {
    /// The name that goes over the wire and into logs and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OtherCluster => "other_cluster",
            Self::OtherLineage => "other_lineage",
            Self::BeforeLineages => "before_lineages",
            Self::OwnId => "own_id",
            Self::Malformed => "malformed",
            Self::ProtocolVersion => "protocol_version",
            Self::RecordVersion => "record_version",
            Self::SnapshotVersion => "snapshot_version",
            Self::IdInUse => "id_in_use",
            Self::Superseded => "superseded",
            Self::Stopping => "stopping",
        }
    }

    /// The frame that says so.
    #[must_use]
    pub fn message(self, detail: String) -> peer::Goodbye {
        peer::Goodbye {
            reason: self.name().to_owned(),
            detail,
        }
    }
}

/// A hello with the versions of this code filled in.
#[must_use]
pub fn hello(cluster: &str, replica: u16, incarnation: u64) -> peer::Hello {
    peer::Hello {
        cluster: cluster.to_owned(),
        replica: u32::from(replica),
        incarnation,
        protocol_min: PROTOCOL_VERSION_MIN,
        protocol_max: PROTOCOL_VERSION_MAX,
        record_version: u32::from(RECORD_VERSION),
        snapshot_version: SNAPSHOT_VERSION,
        client_address: String::new(),
        http_address: String::new(),
        redis_address: String::new(),
        native_address: String::new(),
        peer_address: String::new(),
        plane_address: String::new(),
        promise_us: 0,
        clock_drift_ppm: 0,
        lineage: None,
        memory: peer::Memory::Nothing.into(),
        settings: Vec::new(),
        keeps_wall_clock: false,
        members_index: 0,
        member_ids: Vec::new(),
        further_groups: Vec::new(),
    }
}

/// Decides whether `theirs` can be spoken to: the version to use, or the reason to refuse with what
/// was given and what would be accepted.
pub fn check_hello(ours: &peer::Hello, theirs: &peer::Hello) -> Result<u32, (Goodbye, String)> {
    let long = [
        &theirs.client_address,
        &theirs.http_address,
        &theirs.redis_address,
        &theirs.native_address,
        &theirs.peer_address,
        &theirs.plane_address,
    ]
    .iter()
    .any(|address| address.len() > ADDRESS_BYTES_MAX)
        || theirs
            .settings
            .iter()
            .any(|setting| setting.option.len().max(setting.value.len()) > SETTING_TEXT_BYTES_MAX);
    if theirs.settings.len() > SETTINGS_MAX {
        let given = theirs.settings.len();
        let detail = format!("{given} settings; at most {SETTINGS_MAX}");
        return Err((Goodbye::Malformed, detail));
    }
    if long || theirs.cluster.len() > CLUSTER_NAME_BYTES_MAX {
        return Err((Goodbye::Malformed, "a text is too long".to_owned()));
    }
    if theirs.cluster != ours.cluster {
        let detail = format!("cluster {:?}, ours is {:?}", theirs.cluster, ours.cluster);
        return Err((Goodbye::OtherCluster, detail));
    }
    if theirs.replica > u32::from(u16::MAX) || theirs.incarnation == 0 {
        let detail = format!(
            "replica {} incarnation {:016x}",
            theirs.replica, theirs.incarnation
        );
        return Err((Goodbye::Malformed, detail));
    }
    let lineages = [ours, theirs].map(|it| lineage_from_proto(it.lineage.as_ref()));
    if lineages[0].contradicts(lineages[1]) {
        return Err((Goodbye::OtherLineage, two_lineages(ours, theirs)));
    }
    if theirs.replica == ours.replica {
        return Err((Goodbye::OwnId, format!("replica {}", theirs.replica)));
    }
    let version = theirs.protocol_max.min(ours.protocol_max);
    if version < theirs.protocol_min.max(ours.protocol_min) {
        let detail = format!(
            "protocol {} to {}, ours is {} to {}",
            theirs.protocol_min, theirs.protocol_max, ours.protocol_min, ours.protocol_max
        );
        return Err((Goodbye::ProtocolVersion, detail));
    }
    if theirs.record_version > ours.record_version {
        let detail = format!(
            "records of version {}, we read up to {}",
            theirs.record_version, ours.record_version
        );
        return Err((Goodbye::RecordVersion, detail));
    }
    if theirs.snapshot_version > ours.snapshot_version {
        let detail = format!(
            "snapshots of version {}, we read up to {}",
            theirs.snapshot_version, ours.snapshot_version
        );
        return Err((Goodbye::SnapshotVersion, detail));
    }
    Ok(version)
}

/// In words that are the same at both sides: two replicas are not of one cluster.
#[must_use]
pub fn two_lineages(one: &peer::Hello, other: &peer::Hello) -> String {
    let (lower, higher) = if one.replica <= other.replica {
        (one, other)
    } else {
        (other, one)
    };
    let lineage = |of: &peer::Hello| lineage_from_proto(of.lineage.as_ref());
    format!(
        "replica {} is of lineage {}, replica {} of lineage {}: two clusters of one name. Stop the one that does not \
         belong here, and empty its data folder (or give back the right one) before it starts again",
        lower.replica,
        lineage(lower),
        higher.replica,
        lineage(higher),
    )
}

/// In words: a replica's code would drop the lineage that the cluster has.
#[must_use]
pub fn before_lineages(ours: &peer::Hello, theirs: &peer::Hello) -> String {
    format!(
        "replica {} runs a version from before lineages, and its cluster is of lineage {}, as replica {} knows. All members \
         ran a version with lineages when the cluster got it: start replica {} with that version again",
        theirs.replica,
        lineage_from_proto(ours.lineage.as_ref()),
        ours.replica,
        theirs.replica,
    )
}

//! Every byte that leaves a process or survives it: frames and messages between replicas, log
//! records, hard state, snapshots, backups. No I/O and no protocol: what a message means is `control`'s.
mod backup;
mod blocks;
mod bundle;
mod client_frame;
mod entry;
mod frame;
mod handshake;
pub mod limits;
mod lineage;
mod lineage_packet;
mod membership;
mod paxos_record;
mod payload;
mod pieces;
mod record;
mod secret;
mod snapshot;
mod tick;

/// The messages of `peer.proto`, as generated.
#[allow(missing_docs, clippy::pedantic, clippy::large_enum_variant)] // a hello, which is said once
#[rustfmt::skip]
#[path = "generated/peer.rs"]
pub mod peer;

/// The messages of `client.proto`, as generated.
#[allow(missing_docs, clippy::pedantic)]
#[rustfmt::skip]
#[path = "generated/client.rs"]
pub mod client;

/// The packets of `format.toml`, as generated.
#[allow(clippy::pedantic)]
#[rustfmt::skip]
#[path = "generated/packet.rs"]
pub mod packet;

pub use backup::{BACKUP_VERSION, BackupError, BackupHead, BackupReader, BackupWriter};
pub use bundle::{BUNDLED_HEADER_BYTES, Bundle, commands_of, put_bundled};
pub use client_frame::{
    CLIENT_PROTOCOL_SUBSCRIPTIONS, CLIENT_PROTOCOL_VERSION_MAX, CLIENT_PROTOCOL_VERSION_MIN,
    ClientFrame, ClientFrameError, take_client_frame, write_client_frame,
};
pub use entry::{Entry, block_offset};
pub use frame::{FRAME_HEADER_BYTES, FrameError, FrameHeader, encode_frame};
pub use handshake::{
    Goodbye, PROTOCOL_VERSION_MAX, PROTOCOL_VERSION_MIN, SNAPSHOT_VERSION, before_lineages,
    check_hello, hello, two_lineages,
};
pub use lineage::{lineage_from_proto, lineage_to_proto};
pub use lineage_packet::{
    LINEAGE_PACKET_BODY_BYTES, LINEAGE_PACKET_BYTES, LINEAGE_PACKET_TAG_BYTES, LineageMessage,
    LineagePacket,
};
pub use membership::{CommitQuorum, Member, MemberRole, Membership};
pub use paxos_record::{
    PAXOS_RECORD_HEADER_BYTES, PAXOS_RECORD_VERSION, PaxosRecord, PaxosRecordError,
};
pub use payload::payload_checksum;
pub use pieces::{PIECE_HEADER_BYTES, PIECES_IN_FLIGHT_MAX, Pieces, piece_header};
pub use prost;
pub use record::{
    RECORD_HEADER_BYTES, RECORD_VERSION, Record, RecordError, RecordKind, begin_record,
    finish_record,
};
pub use snapshot::{SnapshotError, SnapshotHead, SnapshotReader, SnapshotWriter};
pub use tick::{LOG_TIME_AGREES_MS, TICK_BYTES_MAX, Tick, TickBytes};

/// The bytes are not what they claim to be; the text says which field is wrong.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("malformed {what}: {problem}")]
pub struct Malformed {
    /// What was being read, such as "membership".
    pub what: &'static str,
    /// Which field, the value and what is allowed.
    pub problem: String,
}

impl Malformed {
    pub(crate) fn new(what: &'static str, problem: impl Into<String>) -> Self {
        Self {
            what,
            problem: problem.into(),
        }
    }
}

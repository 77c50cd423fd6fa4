//! The limits of the protocol, each with its unit in its name. What exceeds one is refused, not cut.

/// Largest command, or answer to a forwarded request: a memcached value of 1 MiB with its key and
/// the words around it.
pub const COMMAND_BYTES_MAX: usize = (1 << 20) + 4096;

/// Largest log record without its header.
pub const RECORD_PAYLOAD_BYTES_MAX: usize = COMMAND_BYTES_MAX;

/// Largest protobuf part of a frame.
pub const META_BYTES_MAX: usize = 16 << 10;

/// Largest attachment of a frame. A message carries several records up to
/// [`APPEND_BYTES_TARGET`], and at least one however large.
pub const ATTACHMENT_BYTES_MAX: usize = 2 << 20;

/// A message with records takes no further record once it holds this much.
pub const APPEND_BYTES_TARGET: usize = 256 << 10;

/// Most records in one message.
pub const APPEND_RECORDS_MAX: usize = 8192;

/// Bytes of one block of a snapshot file, each with a checksum of its own.
pub const SNAPSHOT_BLOCK_BYTES: usize = 256 << 10;

/// Largest head of a snapshot file.
pub const SNAPSHOT_HEAD_BYTES_MAX: usize = 16 << 10;

/// Most voters in a group.
pub const VOTERS_MAX: usize = 7;

/// Most members of a group, learners included.
pub const MEMBERS_MAX: usize = 16;

/// Longest name of a cluster.
pub const CLUSTER_NAME_BYTES_MAX: usize = 64;

/// Longest text of a network address.
pub const ADDRESS_BYTES_MAX: usize = 256;
const _: () = assert!(ADDRESS_BYTES_MAX == quorumwire_interfaces::ENDPOINT_BYTES_MAX);

/// Most settings in a hello.
pub const SETTINGS_MAX: usize = 32;

/// Longest name of a setting in a hello, and longest value.
pub const SETTING_TEXT_BYTES_MAX: usize = 128;

/// Largest command of a session: with the session's name in front it is one of the log.
pub const SESSION_COMMAND_BYTES_MAX: usize = COMMAND_BYTES_MAX - 16;

/// Largest protobuf part of a frame between a client and a replica.
pub const CLIENT_META_BYTES_MAX: usize = 4 << 10;

/// What a value of a subscription counts beside its bytes.
pub const VALUE_OVERHEAD_BYTES: u64 = 64;

/// Longest name or password of a client.
pub const ACCOUNT_BYTES_MAX: usize = 1 << 10;

// Generated from fastpath/shared.toml by `make generate`; do not edit.
use quorumwire_wire::packet::Header;

/// The last index there ever may be, so that one more is still a number.
pub const INDEX_MAX: u64 = 0xfffffffffffffffe;
/// The datagram that says that a `set` is stored.
pub const MEMCACHED_ANSWER_BYTES: usize = 16;
/// Places in a table of answers: a power of two.
pub const RECENT_PLACES: usize = 2048;
/// Longest answer in a table, without memcached's frame: one datagram of at most 1,400 bytes.
pub const RECENT_TEXT_BYTES_MAX: usize = 1392;
/// A key in words of 4 bytes.
pub const RECENT_KEY_WORDS: usize = 63;
/// Who waits for the answer to an entry. Nobody.
pub const REQUESTER_NONE: u8 = 0;
/// Who waits for the answer to an entry. A client that sent a REQUEST.
pub const REQUESTER_PACKET: u8 = 1;
/// Who waits for the answer to an entry. A memcached client, to whom STORED is said.
pub const REQUESTER_MEMCACHED: u8 = 2;

/// What a step says shall be done.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[repr(C)]
pub struct Outcome {
    /// What to send. Its tag and the flag `epoch` are the plane's.
    pub header: Header,
    /// STORE: of the entry. RESEND: the first.
    pub index: u64,
    /// COMMIT: the commit index before.
    pub commit_from: u64,
    /// Bits of the actions, to be carried out in ascending order.
    pub actions: u32,
    /// The number of the reason why the packet was not taken, or not as the sender meant it.
    pub reason: u32,
}
const _: () = {
    assert!(size_of::<Outcome>() == 96);
    assert!(std::mem::offset_of!(Outcome, header) == 0);
    assert!(std::mem::offset_of!(Outcome, index) == 72);
    assert!(std::mem::offset_of!(Outcome, commit_from) == 80);
    assert!(std::mem::offset_of!(Outcome, actions) == 88);
    assert!(std::mem::offset_of!(Outcome, reason) == 92);
};
/// Bytes of `outcome`.
pub const OUTCOME_BYTES: usize = 96;
/// Where `header` stands in `outcome`.
pub const OUTCOME_HEADER_AT: usize = 0;
/// Where `index` stands in `outcome`.
pub const OUTCOME_INDEX_AT: usize = 72;
/// Where `commit_from` stands in `outcome`.
pub const OUTCOME_COMMIT_FROM_AT: usize = 80;
/// Where `actions` stands in `outcome`.
pub const OUTCOME_ACTIONS_AT: usize = 88;
/// Where `reason` stands in `outcome`.
pub const OUTCOME_REASON_AT: usize = 92;

/// What a follower knows beside its registers. Zero when it is engaged, but for `leader_last`,
/// which begins as the last index.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[repr(C)]
pub struct Gap {
    /// Highest index the leader has named.
    pub leader_last: u64,
    /// What it was last asked for; 0: nothing.
    pub asked_index: u64,
    /// Packets behind that gap since, and since something was stored.
    pub quiet: u64,
}
const _: () = {
    assert!(size_of::<Gap>() == 24);
    assert!(std::mem::offset_of!(Gap, leader_last) == 0);
    assert!(std::mem::offset_of!(Gap, asked_index) == 8);
    assert!(std::mem::offset_of!(Gap, quiet) == 16);
};
/// Bytes of `gap`.
pub const GAP_BYTES: usize = 24;
/// Where `leader_last` stands in `gap`.
pub const GAP_LEADER_LAST_AT: usize = 0;
/// Where `asked_index` stands in `gap`.
pub const GAP_ASKED_INDEX_AT: usize = 8;
/// Where `quiet` stands in `gap`.
pub const GAP_QUIET_AT: usize = 16;

/// A `set` of a memcached client, and where its parts stand in the datagram.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[repr(C)]
pub struct MemcachedSet {
    /// What the client keeps with the value.
    pub client_flags: u32,
    /// The client's number for its request.
    pub request: u16,
    /// Where the key begins.
    pub key_at: u16,
    /// How long it is.
    pub key_bytes: u16,
    /// Where the value begins.
    pub value_at: u16,
    /// How long it is.
    pub value_bytes: u16,
    /// 1: the client wants no answer.
    pub noreply: u16,
}
const _: () = {
    assert!(size_of::<MemcachedSet>() == 16);
    assert!(std::mem::offset_of!(MemcachedSet, client_flags) == 0);
    assert!(std::mem::offset_of!(MemcachedSet, request) == 4);
    assert!(std::mem::offset_of!(MemcachedSet, key_at) == 6);
    assert!(std::mem::offset_of!(MemcachedSet, key_bytes) == 8);
    assert!(std::mem::offset_of!(MemcachedSet, value_at) == 10);
    assert!(std::mem::offset_of!(MemcachedSet, value_bytes) == 12);
    assert!(std::mem::offset_of!(MemcachedSet, noreply) == 14);
};
/// Bytes of `memcached_set`.
pub const MEMCACHED_SET_BYTES: usize = 16;
/// Where `client_flags` stands in `memcached_set`.
pub const MEMCACHED_SET_CLIENT_FLAGS_AT: usize = 0;
/// Where `request` stands in `memcached_set`.
pub const MEMCACHED_SET_REQUEST_AT: usize = 4;
/// Where `key_at` stands in `memcached_set`.
pub const MEMCACHED_SET_KEY_AT_AT: usize = 6;
/// Where `key_bytes` stands in `memcached_set`.
pub const MEMCACHED_SET_KEY_BYTES_AT: usize = 8;
/// Where `value_at` stands in `memcached_set`.
pub const MEMCACHED_SET_VALUE_AT_AT: usize = 10;
/// Where `value_bytes` stands in `memcached_set`.
pub const MEMCACHED_SET_VALUE_BYTES_AT: usize = 12;
/// Where `noreply` stands in `memcached_set`.
pub const MEMCACHED_SET_NOREPLY_AT: usize = 14;

/// Bytes of `recent_answer`.
pub const RECENT_ANSWER_BYTES: usize = 1648;
/// Where `key_bytes` stands in `recent_answer`.
pub const RECENT_ANSWER_KEY_BYTES_AT: usize = 0;
/// Where `text_bytes` stands in `recent_answer`.
pub const RECENT_ANSWER_TEXT_BYTES_AT: usize = 2;
/// Where `key` stands in `recent_answer`.
pub const RECENT_ANSWER_KEY_AT: usize = 4;
/// Where `text` stands in `recent_answer`.
pub const RECENT_ANSWER_TEXT_AT: usize = 256;

/// Bytes of `recent`.
pub const RECENT_BYTES: usize = 3304;
/// Where `version` stands in `recent`.
pub const RECENT_VERSION_AT: usize = 0;
/// Where `of` stands in `recent`.
pub const RECENT_OF_AT: usize = 8;

/// One end of a datagram's way, in network byte order. IPv4 addresses are mapped ones.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[repr(C)]
pub struct Endpoint {
    /// The IP address.
    pub address: [u8; 16],
    /// The UDP port.
    pub port: [u8; 2],
    /// The Ethernet address; zero: not known.
    pub mac: [u8; 6],
}
const _: () = {
    assert!(size_of::<Endpoint>() == 24);
    assert!(std::mem::offset_of!(Endpoint, address) == 0);
    assert!(std::mem::offset_of!(Endpoint, port) == 16);
    assert!(std::mem::offset_of!(Endpoint, mac) == 18);
};
/// Bytes of `endpoint`.
pub const ENDPOINT_BYTES: usize = 24;
/// Where `address` stands in `endpoint`.
pub const ENDPOINT_ADDRESS_AT: usize = 0;
/// Where `port` stands in `endpoint`.
pub const ENDPOINT_PORT_AT: usize = 16;
/// Where `mac` stands in `endpoint`.
pub const ENDPOINT_MAC_AT: usize = 18;

/// One entry of a ring that a plane writes and its host reads. `index` is written last, so whoever
/// finds it finds all of the entry. Up to `payload`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[repr(C)]
pub struct SlotHead {
    /// Of the entry.
    pub index: u64,
    /// The term of the entry before.
    pub previous_term: u64,
    /// The client session of the command.
    pub session: u64,
    /// Number of the command in its session.
    pub sequence: u64,
    /// The payload's checksum.
    pub payload_crc32c: u32,
    /// Bytes of the payload.
    pub payload_bytes: u16,
    /// As in the header.
    pub flags: u8,
    /// Who waits for the answer (`requester`).
    pub requester: u8,
    /// Where that is.
    pub client: Endpoint,
    /// The memcached client's number for its request.
    pub request: u16,
    /// 1: the plane answers it; 0: the host does, or nobody waits.
    pub answered_here: u8,
    /// Zero.
    pub reserved: [u8; 5],
}
const _: () = {
    assert!(size_of::<SlotHead>() == 72);
    assert!(std::mem::offset_of!(SlotHead, index) == 0);
    assert!(std::mem::offset_of!(SlotHead, previous_term) == 8);
    assert!(std::mem::offset_of!(SlotHead, session) == 16);
    assert!(std::mem::offset_of!(SlotHead, sequence) == 24);
    assert!(std::mem::offset_of!(SlotHead, payload_crc32c) == 32);
    assert!(std::mem::offset_of!(SlotHead, payload_bytes) == 36);
    assert!(std::mem::offset_of!(SlotHead, flags) == 38);
    assert!(std::mem::offset_of!(SlotHead, requester) == 39);
    assert!(std::mem::offset_of!(SlotHead, client) == 40);
    assert!(std::mem::offset_of!(SlotHead, request) == 64);
    assert!(std::mem::offset_of!(SlotHead, answered_here) == 66);
    assert!(std::mem::offset_of!(SlotHead, reserved) == 67);
};
/// Bytes of `slot`.
pub const SLOT_BYTES: usize = 1448;
/// Where `index` stands in `slot`.
pub const SLOT_INDEX_AT: usize = 0;
/// Where `previous_term` stands in `slot`.
pub const SLOT_PREVIOUS_TERM_AT: usize = 8;
/// Where `session` stands in `slot`.
pub const SLOT_SESSION_AT: usize = 16;
/// Where `sequence` stands in `slot`.
pub const SLOT_SEQUENCE_AT: usize = 24;
/// Where `payload_crc32c` stands in `slot`.
pub const SLOT_PAYLOAD_CRC32C_AT: usize = 32;
/// Where `payload_bytes` stands in `slot`.
pub const SLOT_PAYLOAD_BYTES_AT: usize = 36;
/// Where `flags` stands in `slot`.
pub const SLOT_FLAGS_AT: usize = 38;
/// Where `requester` stands in `slot`.
pub const SLOT_REQUESTER_AT: usize = 39;
/// Where `client` stands in `slot`.
pub const SLOT_CLIENT_AT: usize = 40;
/// Where `request` stands in `slot`.
pub const SLOT_REQUEST_AT: usize = 64;
/// Where `answered_here` stands in `slot`.
pub const SLOT_ANSWERED_HERE_AT: usize = 66;
/// Where `reserved` stands in `slot`.
pub const SLOT_RESERVED_AT: usize = 67;
/// Where `payload` stands in `slot`.
pub const SLOT_PAYLOAD_AT: usize = 72;

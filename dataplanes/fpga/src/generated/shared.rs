// Generated from dataplanes/fpga/shared.toml by `make generate`; do not edit.

/// What `identity` begins with.
pub const IDENTITY: u32 = 20823;
/// Of this map.
pub const MAP_VERSION: u32 = 1;
/// Logs that one core may serve.
pub const GROUPS: usize = 8;
/// Places for replicas of one group.
pub const PLACES_OF_GROUP: usize = 8;
/// The replicas' two keys, then the clients' two. Which of a pair is the lowest bit of its epoch.
pub const KEYS_OF_GROUP: usize = 4;
/// What is counted: the reasons by their numbers, then `count`.
pub const COUNTS: usize = 40;
/// Bytes from one slot of a ring to the next. A slot is what the planes in the kernel have
/// (`qw_slot`).
pub const SLOT_STRIDE: usize = 2048;
/// Instances of a Paxos role that a core knows of: its largest window.
pub const INSTANCES_MAX: usize = 256;
/// Ranges of entries that are left to the host and that it has not looked at.
pub const LEFT_MAX: usize = 64;

/// What the host does to a group: a step like a packet's, between those of packets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub enum Order {
    /// Leader: a command of its own, in `header` as a REQUEST's.
    Submit = 1,
    /// Everything up to `number` is durable.
    Persisted = 2,
    /// Leader: says that it lives, in the round `number`.
    Heartbeat = 3,
    /// The host has taken everything up to `number`. With 0 it changes nothing: so registers are
    /// read.
    Release = 4,
    /// The group gets `registers`. Refused unless it is off.
    Engage = 5,
    /// The group takes part no more. Done once all that it sends has left, and all that it stores
    /// was taken by the shell, which must have it in memory before the host reads that this is
    /// done.
    Off = 6,
}

/// What the host of a Paxos role does to it, as an order; each is done once all that was decided
/// before it has left and is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub enum BoxOrder {
    /// The role gets the registers in `registers`. Refused unless it is off, and where its window
    /// is more than `instances_max`.
    SwitchOn = 1,
    /// The role is off.
    Off = 2,
    /// `number` becomes the configuration.
    Configure = 3,
    /// Everything up to `number` is forgotten.
    Trim = 4,
    /// The step is taken for the packet in `header`; `number` is its instance.
    Step = 5,
    /// Nothing: it is about the instance `number`.
    Look = 6,
    /// The slot in `registers` becomes that of the instance `number`. Refused unless the role is
    /// off.
    PutBack = 7,
}
/// Cause of an interrupt. An entry has begun to be written: an early notice.
pub const CAUSE_ENTRY: u32 = 1;
/// Cause of an interrupt. As many entries as `notice_entries` says have been written since the last
/// notice, or one, `notice_clocks` ago.
pub const CAUSE_ENTRIES: u32 = 2;
/// Cause of an interrupt. A packet moved a commit index.
pub const CAUSE_COMMITTED: u32 = 4;
/// Cause of an interrupt. Leader: a heartbeat was answered, or a replica asked for missing entries.
pub const CAUSE_HEARD: u32 = 8;
/// Cause of an interrupt. Something is left to the host: see `left_what`.
pub const CAUSE_LEFT: u32 = 16;
/// Cause of an interrupt. A replica asks for what the ring holds no more: see `behind`.
pub const CAUSE_BEHIND: u32 = 32;
/// Cause of an interrupt. A frame for the host has left the core.
pub const CAUSE_FRAME: u32 = 64;
/// Cause of an interrupt. An order is done.
pub const CAUSE_ORDER: u32 = 128;
/// Cause of an interrupt. The log was not written: see `state`. Comes again until the next reset.
pub const CAUSE_LOG_FAILED: u32 = 256;
/// State of a core. An order is not done yet.
pub const STATE_UNDER_WAY: u32 = 1;
/// State of a core. The last order was refused: a group was to be engaged, a role switched on or an
/// instance put back while it is not off, or with too large a window, there is no such order, or
/// another one was under way.
pub const STATE_REFUSED: u32 = 2;
/// State of a core. A frame, a packet or an entry is inside. Between two modules it may read 0 for
/// a clock or two.
pub const STATE_BUSY: u32 = 4;
/// State of a core. A write of the log has failed, and none is begun before the next reset. Take no
/// entry any more.
pub const STATE_LOG_FAILED: u32 = 8;
/// What is counted behind the reasons. Frames from the network for which there was no room.
pub const COUNT_FRAMES_LOST: u32 = 0;
/// What is counted behind the reasons. Frames that came broken, cut or too long.
pub const COUNT_FRAMES_BROKEN: u32 = 1;
/// What is counted behind the reasons. Frames for the host that it did not take in time.
pub const COUNT_FRAMES_NOT_TAKEN: u32 = 2;
/// What is counted behind the reasons. Frames sent.
pub const COUNT_FRAMES_SENT: u32 = 3;
/// What is counted behind the reasons. Packets not sent to somebody whose Ethernet address is not
/// known.
pub const COUNT_NO_NEIGHBOUR: u32 = 4;
/// What is counted behind the reasons. Ranges of entries left to the host that it did not look at
/// in time.
pub const COUNT_LEFT_LOST: u32 = 5;
/// What is counted behind the reasons. Entries written.
pub const COUNT_ENTRIES: u32 = 6;
/// What is counted behind the reasons. Packets dropped that came to the address of all replicas,
/// and must not.
pub const COUNT_NOT_FOR_GROUP: u32 = 7;
/// What is counted behind the reasons. Of the host's own frames those that a wrapper did not send:
/// they came broken, or longer than it takes.
pub const COUNT_FRAMES_OWN_LOST: u32 = 8;
/// What is counted behind the reasons. Frames for the host that are longer than a wrapper takes.
pub const COUNT_FRAMES_TOO_LONG: u32 = 9;

/// Bytes of `core`.
pub const CORE_BYTES: usize = 1408;
/// Where `identity` stands in `core`.
pub const CORE_IDENTITY_AT: usize = 0;
/// Where `clocks` stands in `core`.
pub const CORE_CLOCKS_AT: usize = 8;
/// Where `state` stands in `core`.
pub const CORE_STATE_AT: usize = 16;
/// Where `off` stands in `core`.
pub const CORE_OFF_AT: usize = 24;
/// Where `causes` stands in `core`.
pub const CORE_CAUSES_AT: usize = 32;
/// Where `enabled` stands in `core`.
pub const CORE_ENABLED_AT: usize = 40;
/// Where `notice_entries` stands in `core`.
pub const CORE_NOTICE_ENTRIES_AT: usize = 48;
/// Where `notice_clocks` stands in `core`.
pub const CORE_NOTICE_CLOCKS_AT: usize = 56;
/// Where `order` stands in `core`.
pub const CORE_ORDER_AT: usize = 64;
/// Where `number` stands in `core`.
pub const CORE_NUMBER_AT: usize = 72;
/// Where `registers` stands in `core`.
pub const CORE_REGISTERS_AT: usize = 80;
/// Where `header` stands in `core`.
pub const CORE_HEADER_AT: usize = 280;
/// Where `made_header` stands in `core`.
pub const CORE_MADE_HEADER_AT: usize = 352;
/// Where `made_index` stands in `core`.
pub const CORE_MADE_INDEX_AT: usize = 424;
/// Where `made_commit_from` stands in `core`.
pub const CORE_MADE_COMMIT_FROM_AT: usize = 432;
/// Where `made_actions` stands in `core`.
pub const CORE_MADE_ACTIONS_AT: usize = 440;
/// Where `made_registers` stands in `core`.
pub const CORE_MADE_REGISTERS_AT: usize = 448;
/// Where `vlan` stands in `core`.
pub const CORE_VLAN_AT: usize = 648;
/// Where `multicast` stands in `core`.
pub const CORE_MULTICAST_AT: usize = 656;
/// Where `addresses` stands in `core`.
pub const CORE_ADDRESSES_AT: usize = 664;
/// Where `ends` stands in `core`.
pub const CORE_ENDS_AT: usize = 792;
/// Where `keys_valid` stands in `core`.
pub const CORE_KEYS_VALID_AT: usize = 856;
/// Where `epochs` stands in `core`.
pub const CORE_EPOCHS_AT: usize = 864;
/// Where `destinations` stands in `core`.
pub const CORE_DESTINATIONS_AT: usize = 872;
/// Where `key_at` stands in `core`.
pub const CORE_KEY_AT_AT: usize = 880;
/// Where `key` stands in `core`.
pub const CORE_KEY_AT: usize = 888;
/// Where `peer_address` stands in `core`.
pub const CORE_PEER_ADDRESS_AT: usize = 896;
/// Where `peer_end` stands in `core`.
pub const CORE_PEER_END_AT: usize = 912;
/// Where `peer` stands in `core`.
pub const CORE_PEER_AT: usize = 920;
/// Where `rings` stands in `core`.
pub const CORE_RINGS_AT: usize = 928;
/// Where `ring_masks` stands in `core`.
pub const CORE_RING_MASKS_AT: usize = 992;
/// Where `left_what` stands in `core`.
pub const CORE_LEFT_WHAT_AT: usize = 1056;
/// Where `left_from` stands in `core`.
pub const CORE_LEFT_FROM_AT: usize = 1064;
/// Where `left_upto` stands in `core`.
pub const CORE_LEFT_UPTO_AT: usize = 1072;
/// Where `behind` stands in `core`.
pub const CORE_BEHIND_AT: usize = 1080;
/// Where `count` stands in `core`.
pub const CORE_COUNT_AT: usize = 1088;

// Generated from dataplanes/xdp/shared.toml by `make generate`; do not edit.
use quorumwire_fastpath::Keys;
use quorumwire_fastpath::Outcome;
use quorumwire_interfaces::Counter;
use quorumwire_wire::packet::Header;
use quorumwire_wire::packet::PaxosRegisters;
use quorumwire_wire::packet::PaxosSlot;
use quorumwire_wire::packet::Registers;

/// Logs that one interface may serve.
pub const GROUPS_MAX: usize = 8;
/// Places in the map of peers for replicas of one group, or for whom a box sends to: as many as one
/// frame has copies.
pub const PEERS_STRIDE: u32 = 32;
/// Most commands that the host submits at once. The verifier follows each of them.
pub const SUBMIT_MAX: usize = 8;
/// Processors whose packets a fence waits for: a power of two.
pub const CPUS_MAX: usize = 256;
/// Any receive queue.
pub const QUEUE_ANY: u32 = 4294967295;
/// Most copies of one frame.
pub const COPIES_MAX: usize = 32;
/// Most frames of a trial of the copies.
pub const TRIAL_FRAMES_MAX: usize = 8;
/// Room for what a trial of the copies shows.
pub const TRIAL_COPIES_MAX: usize = 128;
/// Entries that the host may leave unseen while nobody waits for it, or a quarter of its ring.
pub const UNSEEN_MAX: usize = 1024;
/// Places for one group's counters: more than there are, so that they are found by shifting.
pub const COUNTS_STRIDE: u32 = 64;
/// Behind the counters of all groups stand those of the interface.
pub const NO_GROUP: u32 = 8;
/// Room for what a group's host is told.
pub const EVENTS_BYTES: u32 = 65536;
/// How one frame becomes several. A device map; see order.h.
pub const COPIES_BY_BROADCAST: u32 = 0;
/// How one frame becomes several. The program clone.bpf.c.
pub const COPIES_BY_CLONE: u32 = 1;

/// What the host wants done under the lock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum Order {
    /// The registers become the group's.
    Engage = 1,
    /// The plane is switched off.
    Off = 2,
    /// A round of this number begins.
    Heartbeat = 3,
    /// Everything up to the number is durable.
    Persisted = 4,
    /// Everything up to the number is taken.
    Release = 5,
    /// The number becomes the time by which `leave` is judged.
    Clock = 6,
}

/// What the host of a Paxos role wants done under the lock. Then registers and slot are those of
/// this moment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum BoxOrder {
    /// The registers become the box's.
    SwitchOn = 1,
    /// The box is switched off.
    Off = 2,
    /// The number becomes the configuration.
    Configure = 3,
    /// Everything up to the number is forgotten.
    Trim = 4,
    /// The step is taken for the packet; the number is its instance.
    Step = 5,
    /// Nothing: it is about the instance of this number.
    Look = 6,
    /// The slot and the value become those of its instance, the number.
    PutBack = 7,
}
/// What the host is told. Something happened since the host last looked.
pub const EVENT_KIND_WAKE: u32 = 1;
/// What the host is told. Replica `slot` asks for what the ring holds no more.
pub const EVENT_KIND_BEHIND: u32 = 2;
/// What the host is told. Send `from` and what follows to `slot` again: the kernel could not.
pub const EVENT_KIND_RESEND: u32 = 3;
/// What the host is told. Answer the blind writes from `from` to `upto`: they are too many here.
pub const EVENT_KIND_ANSWER: u32 = 4;
/// What the host is told. Answer those of a range that are not answered here.
pub const EVENT_KIND_ANSWER_REST: u32 = 5;

const _: () = assert!(size_of::<Keys>() == 5616);

/// What the programs are loaded for.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct Config {
    /// Of each group; a power of two.
    pub ring_slots: u32,
    /// Slots for groups: 1 to groups_max.
    pub groups: u32,
    /// The VLAN; 0: untagged.
    pub vlan: u32,
    /// The IPv4 address at which all replicas hear; 0: none.
    pub multicast: [u8; 4],
    /// Of this process; see struct qw_copy_proof.
    pub secret: [u32; 2],
    /// 1: groups have the kernel's lock, not our own; see maps.h.
    pub kernels_lock: u32,
    /// 0: the groups are replicas'. Else each is a box of a Paxos role with so many instances, a
    /// power of two.
    pub window: u32,
}
const _: () = {
    assert!(size_of::<Config>() == 32);
    assert!(std::mem::offset_of!(Config, ring_slots) == 0);
    assert!(std::mem::offset_of!(Config, groups) == 4);
    assert!(std::mem::offset_of!(Config, vlan) == 8);
    assert!(std::mem::offset_of!(Config, multicast) == 12);
    assert!(std::mem::offset_of!(Config, secret) == 16);
    assert!(std::mem::offset_of!(Config, kernels_lock) == 24);
    assert!(std::mem::offset_of!(Config, window) == 28);
};
/// Bytes of `config`.
pub const CONFIG_BYTES: usize = 32;
/// Where `ring_slots` stands in `config`.
pub const CONFIG_RING_SLOTS_AT: usize = 0;
/// Where `groups` stands in `config`.
pub const CONFIG_GROUPS_AT: usize = 4;
/// Where `vlan` stands in `config`.
pub const CONFIG_VLAN_AT: usize = 8;
/// Where `multicast` stands in `config`.
pub const CONFIG_MULTICAST_AT: usize = 12;
/// Where `secret` stands in `config`.
pub const CONFIG_SECRET_AT: usize = 16;
/// Where `kernels_lock` stands in `config`.
pub const CONFIG_KERNELS_LOCK_AT: usize = 24;
/// Where `window` stands in `config`.
pub const CONFIG_WINDOW_AT: usize = 28;

/// Bytes of `own`.
pub const OWN_BYTES: usize = 32;
/// Where `at` stands in `own`.
pub const OWN_AT_AT: usize = 0;
/// Where `queue` stands in `own`.
pub const OWN_QUEUE_AT: usize = 24;
/// Where `reserved` stands in `own`.
pub const OWN_RESERVED_AT: usize = 28;

/// What the host says of a trial, and how far it is.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[repr(C)]
pub struct TrialHead {
    /// Frames ordered.
    pub frames: u32,
    /// Copies noted.
    pub copies: u32,
    /// Copies ordered of each frame.
    pub sizes: [u8; 8],
}
const _: () = {
    assert!(size_of::<TrialHead>() == 16);
    assert!(std::mem::offset_of!(TrialHead, frames) == 0);
    assert!(std::mem::offset_of!(TrialHead, copies) == 4);
    assert!(std::mem::offset_of!(TrialHead, sizes) == 8);
};
/// Bytes of `trial_head`.
pub const TRIAL_HEAD_BYTES: usize = 16;
/// Where `frames` stands in `trial_head`.
pub const TRIAL_HEAD_FRAMES_AT: usize = 0;
/// Where `copies` stands in `trial_head`.
pub const TRIAL_HEAD_COPIES_AT: usize = 4;
/// Where `sizes` stands in `trial_head`.
pub const TRIAL_HEAD_SIZES_AT: usize = 8;

/// A trial of the copies: so many of each frame are ordered; each copy notes its frame and its
/// number.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[repr(C)]
pub struct Trial {
    /// What was ordered.
    pub head: TrialHead,
    /// 256 * frame + number.
    pub seen: [u16; 128],
}
const _: () = {
    assert!(size_of::<Trial>() == 272);
    assert!(std::mem::offset_of!(Trial, head) == 0);
    assert!(std::mem::offset_of!(Trial, seen) == 16);
};
/// Bytes of `trial`.
pub const TRIAL_BYTES: usize = 272;
/// Where `head` stands in `trial`.
pub const TRIAL_HEAD_AT: usize = 0;
/// Where `seen` stands in `trial`.
pub const TRIAL_SEEN_AT: usize = 16;

/// Bytes of `group`.
pub const GROUP_BYTES: usize = 320;
/// Where `version` stands in `group`.
pub const GROUP_VERSION_AT: usize = 0;
/// Where `registers` stands in `group`.
pub const GROUP_REGISTERS_AT: usize = 8;
/// Where `gap` stands in `group`.
pub const GROUP_GAP_AT: usize = 208;
/// Where `waited_index` stands in `group`.
pub const GROUP_WAITED_INDEX_AT: usize = 232;
/// Where `broken` stands in `group`.
pub const GROUP_BROKEN_AT: usize = 240;
/// Where `woken` stands in `group`.
pub const GROUP_WOKEN_AT: usize = 248;
/// Where `seen_index` stands in `group`.
pub const GROUP_SEEN_INDEX_AT: usize = 256;
/// Where `idles` stands in `group`.
pub const GROUP_IDLES_AT: usize = 264;
/// Where `awaited_round` stands in `group`.
pub const GROUP_AWAITED_ROUND_AT: usize = 272;
/// Where `reserved` stands in `group`.
pub const GROUP_RESERVED_AT: usize = 280;

/// A group's host writes its own, runs qw_order or qw_submit_orders, and reads `done`, `out` and,
/// for the clock, `number`. Up to `in`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[repr(C)]
pub struct ControlHead {
    /// What is to be done (`order`).
    pub order: u32,
    /// Commands submitted.
    pub count: u32,
    /// Commands that were stored; RELEASE: whether that was so.
    pub done: u32,
    /// Zero.
    pub reserved: u32,
    /// What the order is about.
    pub number: u64,
    /// ENGAGE: they become the group's.
    pub registers: Registers,
}
const _: () = {
    assert!(size_of::<ControlHead>() == 224);
    assert!(std::mem::offset_of!(ControlHead, order) == 0);
    assert!(std::mem::offset_of!(ControlHead, count) == 4);
    assert!(std::mem::offset_of!(ControlHead, done) == 8);
    assert!(std::mem::offset_of!(ControlHead, reserved) == 12);
    assert!(std::mem::offset_of!(ControlHead, number) == 16);
    assert!(std::mem::offset_of!(ControlHead, registers) == 24);
};
/// Bytes of `control`.
pub const CONTROL_BYTES: usize = 1568;
/// Where `order` stands in `control`.
pub const CONTROL_ORDER_AT: usize = 0;
/// Where `count` stands in `control`.
pub const CONTROL_COUNT_AT: usize = 4;
/// Where `done` stands in `control`.
pub const CONTROL_DONE_AT: usize = 8;
/// Where `reserved` stands in `control`.
pub const CONTROL_RESERVED_AT: usize = 12;
/// Where `number` stands in `control`.
pub const CONTROL_NUMBER_AT: usize = 16;
/// Where `registers` stands in `control`.
pub const CONTROL_REGISTERS_AT: usize = 24;
/// Where `in` stands in `control`.
pub const CONTROL_IN_AT: usize = 224;
/// Where `out` stands in `control`.
pub const CONTROL_OUT_AT: usize = 800;

/// Bytes of `box`.
pub const BOX_BYTES: usize = 128;
/// Where `version` stands in `box`.
pub const BOX_VERSION_AT: usize = 0;
/// Where `registers` stands in `box`.
pub const BOX_REGISTERS_AT: usize = 8;
/// Where `destinations` stands in `box`.
pub const BOX_DESTINATIONS_AT: usize = 88;
/// Where `reserved` stands in `box`.
pub const BOX_RESERVED_AT: usize = 96;

/// Bytes of `instance`.
pub const INSTANCE_BYTES: usize = 1432;
/// Where `slot` stands in `instance`.
pub const INSTANCE_SLOT_AT: usize = 0;
/// Where `value` stands in `instance`.
pub const INSTANCE_VALUE_AT: usize = 56;

/// A box's host writes it, runs qw_box_order, and reads what it has become. Up to `value`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[repr(C)]
pub struct BoxControlHead {
    /// What is to be done (`box_order`).
    pub order: u32,
    /// TRIM: whether that was so.
    pub done: u32,
    /// What the order is about; if that is an instance, `slot` and `value` are what is known of it
    /// then.
    pub number: u64,
    /// SWITCH_ON: they become the box's. What they are then.
    pub registers: PaxosRegisters,
    /// STEP: of the packet.
    pub header: Header,
    /// STEP: what it says.
    pub outcome: Outcome,
    /// PUT_BACK: it becomes the instance's.
    pub slot: PaxosSlot,
}
const _: () = {
    assert!(size_of::<BoxControlHead>() == 320);
    assert!(std::mem::offset_of!(BoxControlHead, order) == 0);
    assert!(std::mem::offset_of!(BoxControlHead, done) == 4);
    assert!(std::mem::offset_of!(BoxControlHead, number) == 8);
    assert!(std::mem::offset_of!(BoxControlHead, registers) == 16);
    assert!(std::mem::offset_of!(BoxControlHead, header) == 96);
    assert!(std::mem::offset_of!(BoxControlHead, outcome) == 168);
    assert!(std::mem::offset_of!(BoxControlHead, slot) == 264);
};
/// Bytes of `box_control`.
pub const BOX_CONTROL_BYTES: usize = 1696;
/// Where `order` stands in `box_control`.
pub const BOX_CONTROL_ORDER_AT: usize = 0;
/// Where `done` stands in `box_control`.
pub const BOX_CONTROL_DONE_AT: usize = 4;
/// Where `number` stands in `box_control`.
pub const BOX_CONTROL_NUMBER_AT: usize = 8;
/// Where `registers` stands in `box_control`.
pub const BOX_CONTROL_REGISTERS_AT: usize = 16;
/// Where `header` stands in `box_control`.
pub const BOX_CONTROL_HEADER_AT: usize = 96;
/// Where `outcome` stands in `box_control`.
pub const BOX_CONTROL_OUTCOME_AT: usize = 168;
/// Where `slot` stands in `box_control`.
pub const BOX_CONTROL_SLOT_AT: usize = 264;
/// Where `value` stands in `box_control`.
pub const BOX_CONTROL_VALUE_AT: usize = 320;

/// A group's keys. There are two places for each group: the host writes the one that is not in use,
/// then says that it is.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct KeysAt {
    /// All keys of the plane.
    pub keys: Keys,
    /// Lowest bit of the epoch to sign with, between replicas.
    pub sign_cluster: u64,
    /// The same for answers to clients.
    pub sign_clients: u64,
}
const _: () = {
    assert!(size_of::<KeysAt>() == 5632);
    assert!(std::mem::offset_of!(KeysAt, keys) == 0);
    assert!(std::mem::offset_of!(KeysAt, sign_cluster) == 5616);
    assert!(std::mem::offset_of!(KeysAt, sign_clients) == 5624);
};
/// Bytes of `keys_at`.
pub const KEYS_AT_BYTES: usize = 5632;
/// Where `keys` stands in `keys_at`.
pub const KEYS_AT_KEYS_AT: usize = 0;
/// Where `sign_cluster` stands in `keys_at`.
pub const KEYS_AT_SIGN_CLUSTER_AT: usize = 5616;
/// Where `sign_clients` stands in `keys_at`.
pub const KEYS_AT_SIGN_CLIENTS_AT: usize = 5624;

/// Bytes of `in_step`.
pub const IN_STEP_BYTES: usize = 64;
/// Where `count` stands in `in_step`.
pub const IN_STEP_COUNT_AT: usize = 0;
/// Where `copies_ordered` stands in `in_step`.
pub const IN_STEP_COPIES_ORDERED_AT: usize = 8;
/// Where `copies_done` stands in `in_step`.
pub const IN_STEP_COPIES_DONE_AT: usize = 16;
/// Where `reserved` stands in `in_step`.
pub const IN_STEP_RESERVED_AT: usize = 24;

/// Bytes of `leave`.
pub const LEAVE_BYTES: usize = 32;
/// Where `sets_until` stands in `leave`.
pub const LEAVE_SETS_UNTIL_AT: usize = 0;
/// Where `reads_until` stands in `leave`.
pub const LEAVE_READS_UNTIL_AT: usize = 8;
/// Where `applied_index` stands in `leave`.
pub const LEAVE_APPLIED_INDEX_AT: usize = 16;
/// Where `port` stands in `leave`.
pub const LEAVE_PORT_AT: usize = 24;
/// Where `reserved` stands in `leave`.
pub const LEAVE_RESERVED_AT: usize = 26;

/// Bytes of `leaves`.
pub const LEAVES_BYTES: usize = 256;
/// Where `of` stands in `leaves`.
pub const LEAVES_OF_AT: usize = 0;

/// One thing that the host is told.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[repr(C)]
pub struct Event {
    /// What (`event_kind`).
    pub kind: u32,
    /// In which group.
    pub group_slot: u16,
    /// Which replica.
    pub slot: u16,
    /// The first index.
    pub from: u64,
    /// The last index.
    pub upto: u64,
}
const _: () = {
    assert!(size_of::<Event>() == 24);
    assert!(std::mem::offset_of!(Event, kind) == 0);
    assert!(std::mem::offset_of!(Event, group_slot) == 4);
    assert!(std::mem::offset_of!(Event, slot) == 6);
    assert!(std::mem::offset_of!(Event, from) == 8);
    assert!(std::mem::offset_of!(Event, upto) == 16);
};
/// Bytes of `event`.
pub const EVENT_BYTES: usize = 24;
/// Where `kind` stands in `event`.
pub const EVENT_KIND_AT: usize = 0;
/// Where `group_slot` stands in `event`.
pub const EVENT_GROUP_SLOT_AT: usize = 4;
/// Where `slot` stands in `event`.
pub const EVENT_SLOT_AT: usize = 6;
/// Where `from` stands in `event`.
pub const EVENT_FROM_AT: usize = 8;
/// Where `upto` stands in `event`.
pub const EVENT_UPTO_AT: usize = 16;

/// What is counted, behind the reasons: names, in the order of their numbers.
pub const COUNTS: [&str; 23] = [
    COUNT_RECEIVED,
    COUNT_FOREIGN,
    COUNT_ENTRIES_STORED,
    COUNT_SENT,
    COUNT_BLIND_ANSWERS,
    COUNT_ENTRIES_RESENT,
    COUNT_GAPS_NOT_ASKED,
    COUNT_INSTANCES_ASSIGNED,
    COUNT_PASSED_UP,
    COUNT_LOST_NO_NEIGHBOUR,
    COUNT_LOST_NO_SPACE,
    COUNT_COPIES_NOT_NEEDED,
    COUNT_EVENTS_LOST,
    COUNT_MEMCACHED_TAKEN,
    COUNT_MEMCACHED_ANSWERED,
    COUNT_MEMCACHED_LEFT,
    COUNT_LOST_ANSWER_CHANGED,
    COUNT_LOST_UNSENT,
    COUNT_COPIES_CLONED,
    COUNT_COPY_ORDERS_FORGED,
    COUNT_DROPPED_NOT_FOR_GROUP,
    COUNT_DROPPED_BUSY,
    COUNT_CAME_BY_OTHER_QUEUE,
];
/// Those that the interface counts, too, or alone.
pub const COUNTS_OF_INTERFACE: [&str; 2] = [
    COUNT_LOST_UNSENT,
    COUNT_COPY_ORDERS_FORGED,
];
/// Those that the engine does not count, too, for people.
pub const COUNTERS_OF_PROGRAMS: &[Counter] = &[
    Counter {
        name: COUNT_PASSED_UP,
        help: "Requests that the data plane's program left to the server",
    },
    Counter {
        name: COUNT_LOST_NO_NEIGHBOUR,
        help: "Packets that the kernel did not send because it knew no Ethernet address; the server sends entries among them",
    },
    Counter {
        name: COUNT_LOST_NO_SPACE,
        help: "Packets that the kernel did not send because their frame could not be made longer",
    },
    Counter {
        name: COUNT_COPIES_NOT_NEEDED,
        help: "Copies of a frame that the kernel made beyond those that were sent",
    },
    Counter {
        name: COUNT_EVENTS_LOST,
        help: "Times that the data plane's program could not tell the server something: its queue was full",
    },
    Counter {
        name: COUNT_MEMCACHED_ANSWERED,
        help: "Memcached `get`s by UDP that the kernel answered itself",
    },
    Counter {
        name: COUNT_MEMCACHED_LEFT,
        help: "Datagrams of memcached clients that the kernel left to the server",
    },
    Counter {
        name: COUNT_LOST_ANSWER_CHANGED,
        help: "Answers to a memcached `get` not sent because they changed while they were written",
    },
    Counter {
        name: COUNT_LOST_UNSENT,
        help: "Packets that the kernel did not send because they could not be written, signed or handed over",
    },
    Counter {
        name: COUNT_COPIES_CLONED,
        help: "Copies of packets that left behind the driver, where it cannot make them",
    },
    Counter {
        name: COUNT_COPY_ORDERS_FORGED,
        help: "Frames at the interface that looked like an order of the data plane's program and were not",
    },
    Counter {
        name: COUNT_DROPPED_NOT_FOR_GROUP,
        help: "Packets dropped that came to the address of all replicas, and must not",
    },
    Counter {
        name: COUNT_DROPPED_BUSY,
        help: "Packets dropped because another processor held the log for too long",
    },
    Counter {
        name: COUNT_CAME_BY_OTHER_QUEUE,
        help: "Packets for the data plane that did not come by the receive queue of xdp-queue: the network card does not steer them",
    },
];
/// Packets for a plane.
pub const COUNT_RECEIVED: &str = "received";
/// Not ours: passed to the host.
pub const COUNT_FOREIGN: &str = "foreign";
/// Entries put into the ring.
pub const COUNT_ENTRIES_STORED: &str = "entries_stored";
/// Packets that left, each copy counted.
pub const COUNT_SENT: &str = "sent";
/// Answers to blind writes.
pub const COUNT_BLIND_ANSWERS: &str = "blind_answers";
/// Entries sent again.
pub const COUNT_ENTRIES_RESENT: &str = "entries_resent";
/// Gaps that were not asked for, since they just had been.
pub const COUNT_GAPS_NOT_ASKED: &str = "gaps_not_asked";
/// Values that a coordinator's box gave an instance.
pub const COUNT_INSTANCES_ASSIGNED: &str = "instances_assigned";
/// Requests that the data plane's program left to the server.
pub const COUNT_PASSED_UP: &str = "passed_up";
/// Packets that the kernel did not send because it knew no Ethernet address; the server sends
/// entries among them.
pub const COUNT_LOST_NO_NEIGHBOUR: &str = "lost_no_neighbour";
/// Packets that the kernel did not send because their frame could not be made longer.
pub const COUNT_LOST_NO_SPACE: &str = "lost_no_space";
/// Copies of a frame that the kernel made beyond those that were sent.
pub const COUNT_COPIES_NOT_NEEDED: &str = "copies_not_needed";
/// Times that the data plane's program could not tell the server something: its queue was full.
pub const COUNT_EVENTS_LOST: &str = "events_lost";
/// Memcached clients' `set`s that were put into the log.
pub const COUNT_MEMCACHED_TAKEN: &str = "memcached_taken";
/// Memcached `get`s by UDP that the kernel answered itself.
pub const COUNT_MEMCACHED_ANSWERED: &str = "memcached_answered";
/// Datagrams of memcached clients that the kernel left to the server.
pub const COUNT_MEMCACHED_LEFT: &str = "memcached_left";
/// Answers to a memcached `get` not sent because they changed while they were written.
pub const COUNT_LOST_ANSWER_CHANGED: &str = "lost_answer_changed";
/// Packets that the kernel did not send because they could not be written, signed or handed over.
pub const COUNT_LOST_UNSENT: &str = "lost_unsent";
/// Copies of packets that left behind the driver, where it cannot make them.
pub const COUNT_COPIES_CLONED: &str = "copies_cloned";
/// Frames at the interface that looked like an order of the data plane's program and were not.
pub const COUNT_COPY_ORDERS_FORGED: &str = "copy_orders_forged";
/// Packets dropped that came to the address of all replicas, and must not.
pub const COUNT_DROPPED_NOT_FOR_GROUP: &str = "dropped_not_for_group";
/// Packets dropped because another processor held the log for too long.
pub const COUNT_DROPPED_BUSY: &str = "dropped_busy";
/// Packets for the data plane that did not come by the receive queue of xdp-queue: the network card
/// does not steer them.
pub const COUNT_CAME_BY_OTHER_QUEUE: &str = "came_by_other_queue";

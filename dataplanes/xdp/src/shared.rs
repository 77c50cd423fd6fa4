//! What the programs in the kernel and their host share, as in `bpf/shared.h`. No logic.
use quorumwire_fastpath::{Keys, Outcome, RECENT_TEXT_BYTES_MAX};
use quorumwire_wire::packet::{Header, PAYLOAD_BYTES_MAX, Registers};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Groups that one interface may serve.
pub const GROUPS_MAX: usize = 8;
/// Places for replicas of one group in the map of peers.
pub const PEERS_STRIDE: u32 = 8;
/// Most commands that are submitted at once.
pub const SUBMIT_MAX: usize = 8;
/// Processors whose packets a fence waits for.
pub const CPUS_MAX: usize = 256;

/// `struct qw_endpoint`: one end of a datagram's way, in network byte order.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[repr(C)]
pub struct Endpoint {
    pub address: [u8; 16],
    pub port: [u8; 2],
    pub mac: [u8; 6],
}
const _: () = assert!(size_of::<Endpoint>() == 24);

impl Endpoint {
    /// The end at an address, with an Ethernet address or zeros.
    pub fn new(address: SocketAddr, mac: [u8; 6]) -> Self {
        let ip = match address.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        Self {
            address: ip.octets(),
            port: address.port().to_be_bytes(),
            mac,
        }
    }

    /// The address without the Ethernet address.
    pub fn socket_address(&self) -> SocketAddr {
        let ip = Ipv6Addr::from(self.address).to_canonical();
        SocketAddr::new(ip, u16::from_be_bytes(self.port))
    }
}

/// `struct qw_config`: what the programs are loaded for.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Config {
    pub ring_slots: u32,
    pub groups: u32,
    pub vlan: u32,
    pub multicast: [u8; 4],
    pub secret: [u32; 2],
    pub kernels_lock: u32,
}
const _: () = assert!(size_of::<Config>() == 28);

/// Any receive queue.
pub const QUEUE_ANY: u32 = u32::MAX;

/// `struct qw_own`: where its parts stand. Its endpoint comes first.
pub const OWN_BYTES: usize = 32;
pub const OWN_PORT: usize = 16;
pub const OWN_QUEUE: usize = 24;
const _: () = assert!(OWN_PORT == std::mem::offset_of!(Endpoint, port));
const _: () = assert!(OWN_QUEUE == size_of::<Endpoint>());

/// `enum qw_copies_by`.
pub const COPIES_BY_BROADCAST: u32 = 0;
pub const COPIES_BY_CLONE: u32 = 1;

/// Most frames of a trial of the copies, and room for what it shows.
pub const TRIAL_FRAMES_MAX: usize = 8;
pub const TRIAL_COPIES_MAX: usize = 128;

/// `struct qw_trial` up to what the copies noted.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct TrialHead {
    pub frames: u32,
    pub copies: u32,
    pub sizes: [u8; TRIAL_FRAMES_MAX],
}

/// `struct qw_trial`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Trial {
    pub head: TrialHead,
    /// 256 * frame + number.
    pub seen: [u16; TRIAL_COPIES_MAX],
}
const _: () = assert!(size_of::<Trial>() == 272);

/// `enum qw_asker`.
pub const ASKER_NONE: u8 = 0;
pub const ASKER_PACKET: u8 = 1;
pub const ASKER_MEMCACHED: u8 = 2;

/// `struct qw_slot` without its payload.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct SlotHead {
    pub index: u64,
    pub previous_term: u64,
    pub session: u64,
    pub sequence: u64,
    pub payload_crc32c: u32,
    pub payload_bytes: u16,
    pub flags: u8,
    pub asked_by: u8,
    pub client: Endpoint,
    pub request: u16,
    pub answered_here: u8,
    pub reserved: [u8; 5],
}
const _: () = assert!(size_of::<SlotHead>() == 72);
/// `struct qw_slot`.
pub const SLOT_BYTES: usize = size_of::<SlotHead>() + PAYLOAD_BYTES_MAX;
const _: () = assert!(SLOT_BYTES == 1448);

/// `struct qw_group`: where its parts stand.
pub const GROUP_BYTES: usize = 320;
pub const GROUP_VERSION: usize = 0;
pub const GROUP_REGISTERS: usize = 8;
/// What follows the program's part, before what is left free.
const GROUP_HOSTS: usize = 248;
pub const GROUP_BROKEN: usize = GROUP_HOSTS - 8;
pub const GROUP_WOKEN: usize = GROUP_HOSTS;
pub const GROUP_SEEN_INDEX: usize = GROUP_HOSTS + 8;
pub const GROUP_IDLES: usize = GROUP_HOSTS + 16;
pub const GROUP_AWAITED_ROUND: usize = GROUP_HOSTS + 24;

/// `enum qw_order`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum Order {
    Engage = 1,
    Off = 2,
    Heartbeat = 3,
    Persisted = 4,
    Release = 5,
    Clock = 6,
}

/// `struct qw_control` up to the commands.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct ControlHead {
    pub order: u32,
    pub count: u32,
    pub done: u32,
    pub reserved: u32,
    pub number: u64,
    pub registers: Registers,
}
pub const CONTROL_IN: usize = size_of::<ControlHead>();
pub const CONTROL_OUT: usize = CONTROL_IN + SUBMIT_MAX * size_of::<Header>();
pub const CONTROL_BYTES: usize = CONTROL_OUT + SUBMIT_MAX * size_of::<Outcome>();
const _: () = assert!(CONTROL_BYTES.is_multiple_of(8), "one follows the other");

/// `struct qw_keys_at`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct KeysAt {
    pub keys: Keys,
    pub sign_cluster: u64,
    pub sign_clients: u64,
}

/// `struct qw_in_step`: where its parts stand.
pub const IN_STEP_BYTES: usize = 64;
pub const IN_STEP_COPIES_ORDERED: usize = 8;
pub const IN_STEP_COPIES_DONE: usize = 16;

/// `struct qw_leave`: where its parts stand.
pub const LEAVE_BYTES: usize = 32;
pub const LEAVE_SETS_UNTIL: usize = 0;
pub const LEAVE_READS_UNTIL: usize = 8;
pub const LEAVE_APPLIED_INDEX: usize = 16;
pub const LEAVE_PORT: usize = 24;

/// `struct qw_recent`: where its parts stand. The version comes first, then two answers.
pub const RECENT_BYTES: usize = 8 + 2 * RECENT_ANSWER_BYTES;
pub const RECENT_ANSWER_BYTES: usize = 1648;
/// Within an answer.
pub const RECENT_KEY: usize = 4;
pub const RECENT_KEY_BYTES: usize = 252;
pub const RECENT_TEXT: usize = RECENT_KEY + RECENT_KEY_BYTES;
const _: () = assert!(RECENT_TEXT + RECENT_TEXT_BYTES_MAX == RECENT_ANSWER_BYTES);

/// Room for what a group's host is told.
pub const EVENTS_BYTES: u32 = 64 * 1024;

/// `enum qw_event_kind`; 1 only wakes.
pub const EVENT_BEHIND: u32 = 2;
pub const EVENT_RESEND: u32 = 3;
pub const EVENT_ANSWER: u32 = 4;
pub const EVENT_ANSWER_REST: u32 = 5;

/// `struct qw_event`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Event {
    pub kind: u32,
    pub group_slot: u16,
    pub slot: u16,
    pub from: u64,
    pub upto: u64,
}
const _: () = assert!(size_of::<Event>() == 24);

/// What the host was not told, because there was no room.
pub const EVENTS_LOST: &str = "events_lost";

/// `enum qw_count_of`, which follows the reasons: names, in its order. Those that the engine counts, too, have
/// its names.
pub const COUNTS: [&str; 22] = [
    "received",
    "foreign",
    "entries_stored",
    "sent",
    "blind_answers",
    "entries_resent",
    "gaps_not_asked",
    "passed_up",
    "lost_no_neighbour",
    "lost_no_space",
    "copies_not_needed",
    EVENTS_LOST,
    "memcached_taken",
    "memcached_answered",
    "memcached_left",
    "lost_answer_changed",
    "lost_unsent",
    "copies_cloned",
    "copy_orders_forged",
    "dropped_not_for_group",
    "dropped_busy",
    "came_by_other_queue",
];
/// Places for one group's counters.
pub const COUNTS_STRIDE: u32 = 64;
/// Behind all groups' counters stand those of the interface.
pub const NO_GROUP: u32 = 8;
const _: () = assert!(NO_GROUP as usize == GROUPS_MAX);
/// Those of [`COUNTS`] that the interface counts, too, or alone: of frames of which nobody can say whose they are.
pub const COUNTS_OF_INTERFACE: [&str; 2] = ["lost_unsent", "copy_orders_forged"];

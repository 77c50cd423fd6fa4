//! The program that a plane has loaded, found by the interface it is attached to: runs it on frames, and
//! looks at what it shares with its host.
mod ffi;

use ffi::{FRAME_BYTES_MAX, MapMemory, registers_of, run, run_live};
use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions};
use libbpf_rs::{MapCore, MapFlags, MapHandle, Program, Xdp, XdpFlags};
use quorumwire_wire::packet::{PAYLOAD_BYTES_MAX, PacketReason, Registers};
use rustix::net::netdevice::name_to_index;
use std::fs::File;
use std::net::{Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};

/// What the program says of a frame.
pub const XDP_DROP: u32 = 1;
pub const XDP_PASS: u32 = 2;
pub const XDP_TX: u32 = 3;
pub const XDP_REDIRECT: u32 = 4;

/// `struct qw_group`: what is looked at of it, and where the registers begin, then what a follower has asked
/// for.
const GROUP_BYTES: usize = 272;
const GROUP_REGISTERS: usize = 8;
/// What stands behind registers and questions: whom the host has to answer, whether all is well, and whether
/// the host was woken.
const GROUP_REST_BYTES: usize = 40;
/// `broken`, within that.
const GROUP_BROKEN: usize = GROUP_BYTES - GROUP_REST_BYTES + 8;
/// `struct qw_slot`: its size, and where the payload begins.
const SLOT_BYTES: usize = SLOT_PAYLOAD + PAYLOAD_BYTES_MAX;
const SLOT_PAYLOAD: usize = 72;

/// `struct qw_in_step`, of each processor: its size. Copies ordered stand at 8, copies done at 16.
const IN_STEP_BYTES: usize = 64;
const CPUS_MAX: usize = 256;
/// Counters of the program stand behind those of reasons: `QW_COUNT_SENT` is the fourth.
const COUNT_SENT: usize = PacketReason::ALL.len() + 3;

/// A slot of the ring.
#[derive(Debug, Eq, PartialEq)]
pub struct Slot {
    pub index: u64,
    pub previous_term: u64,
    pub session: u64,
    pub sequence: u64,
    pub payload_crc32c: u32,
    pub flags: u8,
    /// Who asked; a memcached client with the number of its request.
    pub requester: Option<(SocketAddr, Option<u16>)>,
    /// The program answers.
    pub answered_here: bool,
    pub payload: Vec<u8>,
}

/// A loaded program with its maps.
pub struct Loaded {
    program: OwnedFd,
    interface: u32,
    groups: MapMemory,
    ring: MapMemory,
    in_step: MapMemory,
    counters: MapHandle,
    peers: MapHandle,
    locks: MapHandle,
    /// The map of `groups`.
    groups_map: MapHandle,
    /// What it made of the frame that it was run on last.
    made: Box<[u8; FRAME_BYTES_MAX]>,
}

impl Loaded {
    /// The one attached to the interface of this name, whose ring has so many slots. To be called in its
    /// namespace.
    pub fn at(interface: &str, ring_slots: u32) -> Self {
        let any_socket = UdpSocket::bind(("::", 0)).expect("a socket");
        let interface = name_to_index(&any_socket, interface).expect("the plane's interface");
        let any = File::open("/dev/null").expect("a descriptor");
        let attached = i32::try_from(interface)
            .map(|index| Xdp::new(any.as_fd()).query_id(index, XdpFlags::NONE))
            .expect("a small number")
            .expect("an interface");
        let with_maps = ProgInfoQueryOptions::default().include_map_ids(true);
        let mut programs = ProgInfoIter::with_query_opts(with_maps);
        let info = programs.find(|program| program.id == attached);
        let info = info.expect("a program is attached");
        assert_eq!(info.name, "qw_receive");
        let maps = info.map_ids.iter().map(|id| MapHandle::from_map_id(*id));
        let mut maps: Vec<MapHandle> = maps.map(|map| map.expect("root")).collect();
        let mut map = |name: &str| {
            let place = maps.iter().position(|map| map.name() == name);
            maps.swap_remove(place.expect("a map of this name"))
        };
        let groups = map("groups");
        let groups_map = MapHandle::try_from(&groups).expect("another descriptor");
        let mapped = |map: MapHandle, bytes| MapMemory::new(map.as_fd(), bytes).expect("mapable");
        Self {
            program: Program::fd_from_id(attached).expect("root"),
            interface,
            groups: mapped(groups, GROUP_BYTES),
            ring: mapped(map("ring"), ring_slots as usize * SLOT_BYTES),
            in_step: mapped(map("in_step"), CPUS_MAX * IN_STEP_BYTES),
            counters: map("counters"),
            peers: map("peers"),
            locks: map("locks"),
            groups_map,
            made: Box::new([0; FRAME_BYTES_MAX]),
        }
    }

    /// Runs it on a frame: its verdict, and the frame as it left it. Nothing leaves.
    pub fn run(&mut self, frame: &[u8]) -> (u32, &[u8]) {
        let ran = run(self.program.as_fd(), frame, &mut self.made);
        let (verdict, bytes) = ran.expect("a frame");
        (verdict, &self.made[..bytes])
    }

    /// Lets a frame come in so often, at once. To be called in its namespace.
    pub fn receive(&self, frame: &[u8], times: u32) {
        run_live(self.program.as_fd(), frame, self.interface, times).expect("a frame");
    }

    /// Takes the first group's lock, as a program on another processor would, or gives it back.
    pub fn hold(&self, held: bool) {
        let held = u32::from(held).to_ne_bytes();
        let value = [[0; 4].as_slice(), &held, &[0; 56]].concat();
        let done = self.locks.update(&[0; 4], &value, MapFlags::ANY);
        done.expect("root");
    }

    /// Says of the first group, which must be at rest, that an entry did not get into its ring.
    pub fn break_group(&self) {
        let found = self.groups_map.lookup(&[0; 4], MapFlags::ANY);
        let mut group = found.expect("root").expect("a slot of an array");
        group[GROUP_BROKEN] = 1;
        let done = self.groups_map.update(&[0; 4], &group, MapFlags::ANY);
        done.expect("root");
    }

    /// Copies that were ordered and are not made yet.
    pub fn copies_under_way(&self) -> i64 {
        let number = |bytes: &[u8]| i64::from_ne_bytes(*bytes.first_chunk().expect("a number"));
        let by_processor = self.in_step.bytes().chunks(IN_STEP_BYTES);
        by_processor
            .map(|one| number(&one[8..]) - number(&one[16..]))
            .sum()
    }

    /// The Ethernet address that it has for a replica.
    pub fn peer_mac(&self, slot: u32) -> [u8; 6] {
        let found = self.peers.lookup(&slot.to_ne_bytes(), MapFlags::ANY);
        let bytes = found.expect("root").expect("a slot of an array");
        *bytes[18..].first_chunk().expect("an endpoint")
    }

    /// Packets that have left, each copy counted. One question, for who must know at once.
    pub fn sent(&self) -> u64 {
        let place = u32::try_from(COUNT_SENT).expect("a small number");
        let found = self
            .counters
            .lookup_percpu(&place.to_ne_bytes(), MapFlags::ANY);
        let counts = found.expect("root").expect("a counter");
        let count = |bytes: &Vec<u8>| u64::from_ne_bytes(*bytes.first_chunk().expect("a number"));
        counts.iter().map(count).sum()
    }

    /// A copy of everything that counts: registers, what was asked for, and the ring.
    pub fn state(&self) -> Vec<u8> {
        [self.parts()[0], self.parts()[1]].concat()
    }

    /// Whether that is as it was.
    pub fn is_in(&self, state: &[u8]) -> bool {
        let [group, ring] = self.parts();
        state[..group.len()] == *group && state[group.len()..] == *ring
    }

    fn parts(&self) -> [&[u8]; 2] {
        let counts = GROUP_REGISTERS..GROUP_BYTES - GROUP_REST_BYTES;
        [&self.groups.bytes()[counts], self.ring.bytes()]
    }

    pub fn registers(&self) -> Registers {
        registers_of(&self.groups.bytes()[GROUP_REGISTERS..])
    }

    /// The slot in which an index belongs, as it is.
    pub fn slot(&self, index: u64) -> Slot {
        let slots = self.ring.bytes().len() / SLOT_BYTES;
        let place = usize::try_from(index % slots as u64).expect("a small number");
        let bytes = &self.ring.bytes()[place * SLOT_BYTES..][..SLOT_BYTES];
        let number =
            |at: usize| u64::from_ne_bytes(*bytes[at..].first_chunk().expect("within the slot"));
        let payload_bytes = u16::from_ne_bytes([bytes[36], bytes[37]]);
        Slot {
            index: number(0),
            previous_term: number(8),
            session: number(16),
            sequence: number(24),
            payload_crc32c: u32::from_ne_bytes(*bytes[32..].first_chunk().expect("four bytes")),
            flags: bytes[38],
            requester: match bytes[39] {
                0 => None,
                1 => Some((endpoint(&bytes[40..]), None)),
                _ => Some((
                    endpoint(&bytes[40..]),
                    Some(u16::from_ne_bytes([bytes[64], bytes[65]])),
                )),
            },
            answered_here: bytes[66] != 0,
            payload: bytes[SLOT_PAYLOAD..][..usize::from(payload_bytes)].to_vec(),
        }
    }
}

/// `struct qw_endpoint` without its Ethernet address.
fn endpoint(bytes: &[u8]) -> SocketAddr {
    let address: [u8; 16] = *bytes.first_chunk().expect("an address");
    let port = u16::from_be_bytes([bytes[16], bytes[17]]);
    (Ipv6Addr::from(address).to_canonical(), port).into()
}

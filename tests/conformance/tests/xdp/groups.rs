//! Several groups at one interface: each sees its own packets and nobody else's, whatever becomes of the
//! others.
use crate::hammered::stay_on;
use crate::veth::{
    Namespaces, PORT, counted, is_wanted, plane_ip, port, sends, socket_at, test_ip,
};
use quorumwire_conformance_tests::cluster::keys;
use quorumwire_conformance_tests::forge::{header, signed};
use quorumwire_conformance_tests::next_datagram;
use quorumwire_fastpath::{Options, endpoint_at};
use quorumwire_interfaces::{
    Command, DataPlane, EntryKind, Grant, GroupId, Index, PlaneEvent, PlaneKeys, PlanePeer,
    ReplicaId, Term,
};
use quorumwire_plane_xdp::{Attachment, Blames, Refused, XdpInterface, XdpPlane, let_pass};
use quorumwire_wire::packet::{Header, Kind};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::panic::AssertUnwindSafe;
use std::process::Command as Process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longest time that anything may take.
const PATIENCE: Duration = Duration::from_mins(1);
/// The last entry before a group's first fast term.
const START: u64 = 10;
const RING_SLOTS: u32 = 64;
/// More looks in vain than a host does before it sleeps until it is woken.
const LOOKS_IN_VAIN: usize = 20;

fn options(number: u16) -> Options {
    Options {
        group: GroupId(u32::from(number) + 100),
        ring_slots: RING_SLOTS,
        window: RING_SLOTS,
    }
}

fn keys_of(number: u16) -> PlaneKeys {
    let mut keys = keys();
    keys.cluster.key[..2].copy_from_slice(&number.to_ne_bytes());
    keys
}

/// One group: its plane in the kernel, and its other replica, which the test plays.
pub struct Group {
    number: u16,
    plane: XdpPlane,
    other: UdpSocket,
    at: SocketAddr,
    term: u64,
    last: u64,
    last_term: u64,
    /// Entries that the plane has handed over.
    taken: u64,
    /// Datagrams that were sent to it.
    sent: u64,
}

impl Group {
    /// With a port by its number. This thread is in the plane's namespace afterwards.
    pub fn new(
        namespaces: &Namespaces,
        interface: &XdpInterface,
        number: u16,
    ) -> Result<Self, Refused> {
        Self::at(namespaces, interface, number, plane_ip(0).into())
    }

    fn at(
        namespaces: &Namespaces,
        interface: &XdpInterface,
        number: u16,
        ip: IpAddr,
    ) -> Result<Self, Refused> {
        namespaces.enter_test();
        let other = socket_at(test_ip(0, 0), PORT + number);
        namespaces.enter_plane(0);
        let at = SocketAddr::new(ip, PORT + number);
        Ok(Self {
            number,
            plane: interface.plane(at, options(number))?,
            other,
            at,
            term: 1,
            last: START,
            last_term: 1,
            taken: START,
            sent: 0,
        })
    }

    /// A new term, in which it follows the other one, or leads alone.
    fn engage(&mut self, follows: bool) {
        self.plane.set_keys(&keys_of(self.number));
        self.term += 1;
        let addresses = [self.at, self.other.local_addr().expect("it is bound")];
        let replicas = if follows { 2 } else { 1 };
        let peers = (0..replicas).zip(addresses);
        let grant = Grant {
            group: options(self.number).group,
            term: Term(self.term),
            last_index: Index(self.last),
            last_term: Term(self.last_term),
            commit_index: Index(self.last),
            me: 0,
            leader: u8::from(follows),
            peers: peers
                .map(|(id, address)| PlanePeer {
                    id: ReplicaId(id.into()),
                    endpoint: Some(endpoint_at(address)),
                })
                .collect(),
            quorum: replicas,
            held: false,
        };
        self.plane.engage(&grant).expect("a sound grant");
    }

    fn payload(&self, index: u64) -> Vec<u8> {
        format!("entry {index} of group {}", self.number).into_bytes()
    }

    fn append(&self, index: u64) -> Vec<u8> {
        let previous_term = if index == self.last + 1 {
            self.last_term
        } else {
            self.term
        };
        let append = Header {
            group: options(self.number).group.0,
            term: self.term,
            previous_term,
            ..header(Kind::Append, 1, index)
        };
        let key = keys_of(self.number).cluster.key;
        signed(&append, &self.payload(index), key)
    }

    fn send(&mut self, bytes: &[u8]) {
        self.sent += u64::from(sends(&self.other, bytes, self.at));
    }

    /// The other one sends the next entry, until it is acknowledged.
    fn follows_by_one(&mut self) {
        let bytes = self.append(self.last + 1);
        let begun = Instant::now();
        let mut answer = None;
        while answer != Some((Kind::AppendOk as u8, self.term, self.last + 1)) {
            assert!(begun.elapsed() < PATIENCE, "{answer:?} at {}", self.number);
            self.send(&bytes);
            answer = self.answer();
        }
        (self.last, self.last_term) = (self.last + 1, self.term);
    }

    /// What comes next, if it comes soon.
    fn answer(&self) -> Option<(u8, u64, u64)> {
        const SOON: Duration = Duration::from_millis(100);
        let begun = Instant::now();
        while begun.elapsed() < SOON {
            if let Some(bytes) = next_datagram(&self.other) {
                let header = Header::decode(bytes.first_chunk().expect("a header"));
                return Some((header.kind, header.term, header.index));
            }
            std::thread::yield_now();
        }
        None
    }

    /// The host submits the next entry.
    fn leads_by_one(&mut self) {
        let payload = self.payload(self.last + 1);
        let command = Command {
            kind: EntryKind::Command,
            session: 0,
            sequence: 0,
            payload: &payload,
        };
        let taken = self.plane.submit(&[command]);
        assert_eq!(taken, Ok((Index(self.last + 1), 1)));
        (self.last, self.last_term) = (self.last + 1, self.term);
    }

    /// Everything it hands over must be its own.
    fn take(&mut self) {
        let mut entries = Vec::new();
        self.plane.poll(256, &mut |event| match event {
            PlaneEvent::Entry(entry) => {
                entries.push((entry.index.0, entry.command.payload.to_vec()));
            }
            PlaneEvent::Committed(_) => {}
            other @ (PlaneEvent::Behind(_)
            | PlaneEvent::Request { .. }
            | PlaneEvent::Foreign { .. }) => panic!("{other:?}"),
        });
        for (index, payload) in entries {
            assert_eq!(
                (index, payload),
                (self.taken + 1, self.payload(self.taken + 1))
            );
            self.taken = index;
        }
        let released = self.plane.release(Index(self.taken));
        released.expect("what was handed over");
    }

    /// Engaged in one way and the other, until all of it is over; what the fence says is what was
    /// acknowledged.
    pub fn work_until(&mut self, mut is_over: impl FnMut(&Self) -> bool) {
        while !is_over(self) {
            self.engage(self.term.is_multiple_of(2));
            for _ in 0..16 {
                if self.term % 2 == 1 {
                    self.follows_by_one();
                } else {
                    self.leads_by_one();
                }
                self.take();
            }
            let registers = self.plane.disengage();
            assert_eq!(registers.last_index.0, self.last);
            assert_eq!(registers.term.0, self.term);
            assert_eq!(self.taken, self.last);
        }
        assert_eq!(counted(&self.plane, "received"), self.sent);
        assert_eq!(counted(&self.plane, "events_lost"), 0);
    }

    /// What a plane that is off, or fails, still hands over.
    fn take_rest(&mut self) {
        self.hand_over();
        assert_eq!(self.taken, self.last);
    }

    fn hand_over(&mut self) {
        let taken = &mut self.taken;
        self.plane.poll(256, &mut |event| {
            if let PlaneEvent::Entry(entry) = event {
                assert_eq!(entry.index.0, *taken + 1);
                *taken = entry.index.0;
            }
        });
    }
}

/// A group that is at work as long as this lives, beside whatever else its interface serves.
pub struct Busy {
    over: Arc<AtomicBool>,
    works: Option<JoinHandle<u64>>,
}

impl Busy {
    /// From now on, in the first plane's namespace.
    pub fn beside(namespaces: &Arc<Namespaces>, interface: &XdpInterface, number: u16) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let (namespaces, interface) = (Arc::clone(namespaces), interface.clone());
        let is_over = Arc::clone(&over);
        let works = std::thread::spawn(move || {
            let mut group = Group::new(&namespaces, &interface, number).expect("there is a place");
            group.work_until(|group| group.last > START && is_over.load(Ordering::Acquire));
            group.last - START
        });
        Self {
            over,
            works: Some(works),
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        let worked = self.works.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            let worked = worked.expect("it was begun");
            assert!(worked.expect("nothing disturbs it") > 0);
        }
    }
}

/// A plane's namespace with two queues, and the programs for so many groups.
fn interface(groups: u32) -> (Namespaces, XdpInterface) {
    let namespaces = Namespaces::new(1);
    namespaces.connect_by_two_queues(0);
    namespaces.enter_test();
    let_pass(&port(0)).expect("root, and a kernel for it");
    namespaces.enter_plane(0);
    let opened = open(groups).expect("root, and a kernel for it");
    (namespaces, opened)
}

pub fn open(groups: u32) -> Result<XdpInterface, Refused> {
    let how = Attachment::default();
    XdpInterface::open(plane_ip(0).into(), None, groups, RING_SLOTS, how)
}

/// Each in a thread of its own, engaged and disengaged while the others are at work.
#[test]
fn two_and_eight_groups_step_side_by_side() {
    let (namespaces, interface) = interface(8);
    for groups in [2, 8] {
        std::thread::scope(|scope| {
            for number in 0..groups {
                let (namespaces, interface) = (&namespaces, &interface);
                scope.spawn(move || {
                    let mut group =
                        Group::new(namespaces, interface, number).expect("there is a place");
                    group.work_until(|group| group.last >= START + 320);
                });
            }
        });
    }
}

/// Its host is told of its own packets only, and by its own descriptor.
#[test]
fn a_groups_packets_wake_its_own_host() {
    let (namespaces, interface) = interface(2);
    let mut groups = [1, 0].map(|number| {
        let mut group = Group::new(&namespaces, &interface, number).expect("there is a place");
        group.engage(true);
        group
    });
    namespaces.await_carriers();
    for woken in [0, 1] {
        for group in &mut groups {
            (0..LOOKS_IN_VAIN).for_each(|_| group.take());
            assert!(!is_wanted(&group.plane, Duration::ZERO));
        }
        groups[woken].follows_by_one();
        assert!(is_wanted(&groups[woken].plane, PATIENCE));
        assert!(!is_wanted(&groups[1 - woken].plane, Duration::ZERO));
        groups[woken].take();
        let taken = groups.each_ref().map(|group| group.taken);
        assert_eq!(taken, groups.each_ref().map(|group| group.last));
    }
}

/// The one that stays is at work all the time.
#[test]
fn a_slot_is_taken_again_as_if_nobody_had_been_there() {
    let (namespaces, interface) = interface(2);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (namespaces, interface) = (&namespaces, &interface);
        let neighbour = scope.spawn(|| {
            let mut group = Group::new(namespaces, interface, 0).expect("there is a place");
            group.work_until(|_| over.load(Ordering::Acquire));
            group.last
        });
        let ended = std::panic::catch_unwind(AssertUnwindSafe(|| {
            for _ in 0..4 {
                let mut group = Group::new(namespaces, interface, 1).expect("there is a place");
                assert_eq!(group.plane.registers().last_index.0, 0);
                for name in ["received", "entries_stored", "off", "tag"] {
                    assert_eq!(counted(&group.plane, name), 0, "{name}");
                }
                // Signed with the keys of the one before, and none are set.
                let bytes = group.append(START + 1);
                let begun = Instant::now();
                while counted(&group.plane, "tag") == 0 {
                    group.send(&bytes);
                    assert!(begun.elapsed() < PATIENCE, "it is taken for sound");
                    std::thread::yield_now();
                }
                group.engage(true);
                // Into the other one of the two places for keys, too.
                group.plane.set_keys(&keys_of(1));
                (0..20).for_each(|_| group.follows_by_one());
                group.take();
                // Engaged, and gone.
                drop(group);
            }
        }));
        over.store(true, Ordering::Release);
        let worked = neighbour
            .join()
            .expect("nothing of it concerns the neighbour");
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        assert!(worked > START + 64, "{worked}");
    });
}

#[test]
fn one_group_too_many_is_refused() {
    let (namespaces, interface) = interface(8);
    let _eight: Vec<Group> = (0..8)
        .map(|number| Group::new(&namespaces, &interface, number).expect("there is a place"))
        .collect();
    let refused = Group::new(&namespaces, &interface, 8).err();
    let refused = refused.expect("there are eight");
    assert_eq!(refused.blames, Blames::Interface);
    for part in ["interface eth0", "8 groups", "no place"] {
        assert!(refused.text.contains(part), "{refused}");
    }
    for (groups, ring_slots, says) in [
        (9, 64, "allowed: 1 to 8"),
        (0, 64, "allowed: 1 to 8"),
        (2, 63, "a power of two"),
    ] {
        let ip = plane_ip(0).into();
        let refused = XdpInterface::open(ip, None, groups, ring_slots, Attachment::default());
        let refused = refused.err().expect("out of its range");
        assert!(refused.text.contains(says), "{refused}");
    }
}

/// The program finds a group by its port.
#[test]
fn a_port_is_one_groups() {
    let (namespaces, interface) = interface(4);
    namespaces.ip_in_plane(0, "addr add 10.77.0.2/24 dev eth0\n");
    let first = Group::new(&namespaces, &interface, 0).expect("there is a place");
    let elsewhere: IpAddr = [10, 77, 0, 2].into();
    let plane_at = |port| interface.plane((elsewhere, port).into(), options(1));
    let mut second = plane_at(PORT + 1).expect("a port of its own");
    let refused = plane_at(PORT).err().expect("it is the first one's");
    assert_eq!(refused.blames, Blames::Address);
    assert!(refused.text.contains("UDP port 7000"), "{refused}");
    let memcached = UdpSocket::bind((elsewhere, PORT)).expect("an address of the plane");
    let refused = second.serve_memcached(memcached);
    assert!(refused.is_err(), "it is the first one's");
    let memcached = UdpSocket::bind((elsewhere, PORT + 2)).expect("an address of the plane");
    second.serve_memcached(memcached).expect("nobody's port");
    let refused = Group::new(&namespaces, &interface, 2).err();
    assert!(
        refused.is_some(),
        "memcached clients of the second ask there"
    );
    drop((first, second));
    plane_at(PORT).expect("nobody's by now");
    let other = Options {
        ring_slots: 32,
        ..options(3)
    };
    let refused = interface.plane((elsewhere, PORT + 3).into(), other).err();
    assert!(refused.expect("not as opened").text.contains("allowed: 64"));
}

/// Its address goes; the other one's stays.
#[test]
fn a_plane_that_fails_fails_alone() {
    let (namespaces, interface) = interface(2);
    let address = "10.77.0.2/24 dev eth0";
    namespaces.ip_in_plane(0, &format!("addr add {address}\n"));
    let mut sound = Group::new(&namespaces, &interface, 0).expect("there is a place");
    let ip = [10, 77, 0, 2].into();
    let mut fails = Group::at(&namespaces, &interface, 1, ip).expect("there is a place");
    sound.engage(true);
    fails.engage(true);
    fails.follows_by_one();
    namespaces.ip_in_plane(0, &format!("addr del {address}\n"));
    let until = |group: &mut Group, is_sound: bool| {
        let begun = Instant::now();
        while group.plane.fault().is_none() != is_sound {
            assert!(begun.elapsed() < PATIENCE, "{:?}", group.plane.fault());
            group.hand_over();
            std::thread::yield_now();
        }
    };
    until(&mut fails, false);
    sound.follows_by_one();
    sound.take();
    assert_eq!(sound.plane.fault(), None);
    assert_eq!(fails.plane.disengage().last_index.0, fails.last);
    fails.take_rest();
    namespaces.ip_in_plane(0, &format!("addr add {address}\n"));
    until(&mut fails, true);
    fails.engage(true);
    fails.follows_by_one();
    sound.follows_by_one();
}

/// The interface has another Ethernet address: the programs are loaded anew once, and each plane goes there
/// when it has handed over what it had.
#[test]
fn planes_move_one_after_the_other() {
    let (namespaces, interface) = interface(2);
    let mut groups = [0, 1].map(|number| {
        let mut group = Group::new(&namespaces, &interface, number).expect("there is a place");
        group.engage(true);
        group.follows_by_one();
        group
    });
    let new = "02:00:00:00:07:07";
    namespaces.ip_in_plane(0, &format!("link set eth0 address {new}\n"));
    namespaces.ip_in_test(&format!(
        "neigh replace {} lladdr {new} dev {} nud permanent\n",
        plane_ip(0),
        port(0)
    ));
    namespaces.enter_plane(0);
    for group in &mut groups {
        // The host of the second one sees nothing of all this until it is its turn.
        assert_eq!(group.plane.disengage().last_index.0, START + 1);
        group.take_rest();
        group.engage(true);
        group.follows_by_one();
    }
    groups[0].follows_by_one();
    groups.iter_mut().for_each(Group::take);
}

/// In the plane's namespace and in the test's: how many receive and send queues there are.
fn set_queues(namespaces: &Namespaces, interface: &str, way: &str, count: u32, in_plane: bool) {
    if in_plane {
        namespaces.enter_plane(0);
    } else {
        namespaces.enter_test();
    }
    let count = count.to_string();
    let arguments = ["-L", interface, way, &count];
    let done = Process::new("ethtool").args(arguments).output();
    let done = done.expect("ethtool");
    assert!(done.status.success(), "{done:?}");
    namespaces.enter_plane(0);
}

/// What comes by several queues at once is stepped one behind the other, and what comes by another one than
/// was asked for is counted.
#[test]
fn packets_by_two_queues_at_once_are_one_log() {
    const ENTRIES: u64 = 30_000;
    let namespaces = Namespaces::new(1);
    namespaces.connect_by_two_queues(0);
    set_queues(&namespaces, &port(0), "tx", 1, false);
    set_queues(&namespaces, "eth0", "rx", 1, true);
    namespaces.enter_test();
    let_pass(&port(0)).expect("root, and a kernel for it");
    namespaces.enter_plane(0);
    let opened = open(1).expect("root, and a kernel for it");
    let mut group = Group::new(&namespaces, &opened, 0).expect("there is a place");
    group.plane.steer(0).expect("there is but one queue");
    group.engage(true);
    (0..20).for_each(|_| group.follows_by_one());
    group.take();
    assert_eq!(counted(&group.plane, "came_by_other_queue"), 0);

    // Somebody changes the interface: now packets come by either queue, by the port they are from. Until it
    // was down, veth has no program at the new queue.
    set_queues(&namespaces, "eth0", "rx", 2, true);
    group.plane.disengage();
    namespaces.ip_in_plane(0, "link set eth0 down\nlink set eth0 up\n");
    group.take_rest();
    group.engage(true);
    group.follows_by_one();
    group.take();
    set_queues(&namespaces, &port(0), "tx", 2, false);
    namespaces.enter_test();
    let senders: Vec<UdpSocket> = (0..16)
        .map(|n| socket_at(test_ip(0, 0), 20_000 + n))
        .collect();
    namespaces.enter_plane(0);
    let (start, next) = (group.last, AtomicU64::new(group.last + 1));
    let packets: Vec<Vec<u8>> = (1..=ENTRIES).map(|n| group.append(start + n)).collect();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for (number, senders) in senders.chunks(8).enumerate() {
            let (next, packets, over, to) = (&next, &packets, &over, group.at);
            let namespaces = &namespaces;
            scope.spawn(move || {
                namespaces.enter_test();
                stay_on(number);
                // Each sends the entry that is missing, and those behind it, so that most come twice at once.
                let mut sender = senders.iter().cycle();
                while !over.load(Ordering::Acquire) {
                    let missing = usize::try_from(next.load(Ordering::Acquire) - start - 1);
                    let missing = missing.expect("a small number");
                    let around = packets.iter().skip(missing).take(8);
                    for packet in around {
                        let one = sender.next().expect("it is a circle");
                        sends(one, packet, to);
                    }
                }
            });
        }
        let ended = std::panic::catch_unwind(AssertUnwindSafe(|| {
            let begun = Instant::now();
            while group.taken < start + ENTRIES {
                assert!(
                    begun.elapsed() < PATIENCE,
                    "{} of {ENTRIES}",
                    group.taken - start
                );
                group.take();
                next.store(group.taken + 1, Ordering::Release);
            }
        }));
        over.store(true, Ordering::Release);
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    let stored = counted(&group.plane, "entries_stored");
    assert_eq!(stored, ENTRIES + 21, "each once");
    let registers = group.plane.disengage();
    assert_eq!(registers.last_index.0, start + ENTRIES);
    let (received, by_other) = (
        counted(&group.plane, "received"),
        counted(&group.plane, "came_by_other_queue"),
    );
    assert!(
        by_other > 0 && by_other < received,
        "{by_other} of {received}"
    );
}

#[test]
fn steering_is_refused_where_the_card_cannot() {
    let (namespaces, interface) = interface(1);
    let mut group = Group::new(&namespaces, &interface, 0).expect("there is a place");
    for (queue, says) in [
        (
            1,
            &[
                "interface eth0",
                "UDP port 7000",
                "2 receive queues",
                "Operation not supported",
                "ethtool -K eth0 ntuple on",
                "allowed: 0 to 1",
            ][..],
        ),
        (
            2,
            &["interface eth0", "2 receive queues", "allowed: 0 to 1"],
        ),
    ] {
        let refused = group.plane.steer(queue).expect_err("veth cannot");
        assert_eq!(refused.blames, Blames::Queue);
        for part in says {
            assert!(refused.text.contains(part), "{part:?} in {refused}");
        }
    }
    // It comes by any queue, as before.
    group.engage(true);
    group.follows_by_one();
    assert_eq!(counted(&group.plane, "came_by_other_queue"), 0);

    let namespaces = Namespaces::new(1);
    set_queues(&namespaces, &port(0), "tx", 1, false);
    set_queues(&namespaces, "eth0", "rx", 1, true);
    let interface = open(1).expect("root, and a kernel for it");
    let mut group = Group::new(&namespaces, &interface, 0).expect("there is a place");
    let refused = group.plane.steer(1).expect_err("there is one queue");
    assert!(
        refused.text.contains("one receive queue; allowed: 0,"),
        "{refused}"
    );
    group.plane.steer(0).expect("there is nothing to do");
}

/// A veth pair whose other end sends by more queues than this one has is refused by its driver.
#[test]
fn too_few_receive_queues_for_the_other_end_are_said() {
    let namespaces = Namespaces::new(1);
    namespaces.connect_by_two_queues(0);
    set_queues(&namespaces, "eth0", "rx", 1, true);
    let refused = open(1).err().expect("veth refuses it");
    let says = "fewer receive queues than the other end";
    assert!(refused.text.contains(says), "{refused}");
}

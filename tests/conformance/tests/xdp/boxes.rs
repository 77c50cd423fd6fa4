//! A Paxos role's box in the kernel beside one in ordinary memory: both get the same packets and orders, and
//! must know, send and leave to their hosts the same. Needs root.
use crate::loaded::Loaded;
use crate::twin::frame_of;
use crate::veth::{Namespaces, PORT, Way, plane_ip, port, send_once, socket, test_ip};
use crate::{Clones, Driver, Generic, How};
use quorumwire_conformance_tests::cluster::GROUP;
use quorumwire_conformance_tests::faults::Dice;
use quorumwire_conformance_tests::forge::{checked, sign};
use quorumwire_fastpath::{Outbox, PaxosEngine, PaxosEvent, PaxosOptions, PaxosStore};
use quorumwire_interfaces::{PlaneKeyPair, PlaneKeys};
use quorumwire_plane_xdp::{Attachment, KernelBox, let_pass};
use quorumwire_wire::PaxosRecord;
use quorumwire_wire::packet::{
    FLAG_BLIND, FLAG_FRAGMENT, FLAG_TELL, HEADER_BYTES, Header, Kind, MAGIC, PAYLOAD_BYTES_MAX,
    PacketReason, PaxosRegisters, PaxosRole, SENDER_CLIENT, VERSION,
};
use rustix::net::sockopt::set_ip_multicast_if;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const WINDOW: u32 = 8;
const CONFIGURATION: u64 = 5;
const CLUSTER_KEY: [u8; 16] = [0x11; 16];
const CLIENTS_KEY: [u8; 16] = [0x22; 16];
/// What becomes of a packet, within this.
const DONE_WITHIN: Duration = Duration::from_secs(5);
/// Hosts around a box; the last one is nobody's destination.
const HOSTS: usize = 5;

/// What a box has sent: to which host, and what.
#[derive(Default)]
struct Sent(Vec<(SocketAddr, Vec<u8>)>);

impl Outbox for Sent {
    fn send(&mut self, to: SocketAddr, datagram: &[u8]) {
        self.0.push((to, datagram.to_vec()));
    }
}

/// Sends from where the box in the kernel listens.
struct Leaves<'a>(&'a UdpSocket);

impl Outbox for Leaves<'_> {
    fn send(&mut self, to: SocketAddr, datagram: &[u8]) {
        send_once(self.0, datagram, to);
    }
}

/// What a host was told.
#[derive(Debug, Default, PartialEq)]
struct Told {
    left: Vec<(SocketAddr, Header, Vec<u8>, PacketReason)>,
    kept: Vec<(PaxosRecord, u64)>,
}

impl Told {
    fn note(&mut self, event: PaxosEvent<'_>) {
        match event {
            PaxosEvent::ToSoftware {
                from,
                header,
                payload,
                reason,
            } => self.left.push((from, header, payload.to_vec(), reason)),
            PaxosEvent::Keep { record, number } => self.kept.push((record, number)),
        }
    }
}

struct Twin {
    native: PaxosEngine,
    kernel: PaxosEngine,
    /// Where what the program leaves to software comes to.
    host: UdpSocket,
    own: SocketAddr,
    hosts: Vec<(SocketAddr, UdpSocket)>,
    reached: BTreeMap<String, u64>,
    namespaces: Namespaces,
}

fn options() -> PaxosOptions {
    PaxosOptions {
        group: GROUP.0,
        window: WINDOW,
    }
}

fn keys() -> PlaneKeys {
    let pair = |key| PlaneKeyPair {
        epoch: 0,
        key,
        other: None,
    };
    PlaneKeys {
        cluster: pair(CLUSTER_KEY),
        clients: pair(CLIENTS_KEY),
    }
}

impl Twin {
    fn new(way: Way, how: Attachment) -> Self {
        let namespaces = Namespaces::joined(1, way);
        let_pass(&port(0)).expect("root, and a kernel for it");
        let hosts = (0..HOSTS).map(|number| {
            let ip = way.test_ip(0, number);
            (SocketAddr::new(ip, PORT), socket(ip))
        });
        let hosts = hosts.collect();
        namespaces.enter_plane(0);
        namespaces.await_carriers();
        let own = SocketAddr::new(way.plane_ip(0), PORT);
        let host = socket(own.ip());
        let store = KernelBox::attach(own, None, WINDOW, how, &|_| Ok(()));
        let store = store.expect("root, and a kernel for it");
        let kernel = PaxosEngine::within(options(), Box::new(store));
        let mut twin = Self {
            native: PaxosEngine::new(options()).expect("sound options"),
            kernel: kernel.expect("sound options"),
            host,
            own,
            hosts,
            reached: BTreeMap::new(),
            namespaces,
        };
        twin.both(|engine| engine.set_keys(&keys()));
        twin
    }

    fn both(&mut self, act: impl Fn(&mut PaxosEngine)) {
        act(&mut self.native);
        act(&mut self.kernel);
        assert_eq!(self.kernel.fault(), None);
        assert_eq!(self.native.registers(), self.kernel.registers());
    }

    fn switch_on(&mut self, registers: &PaxosRegisters, destinations: usize) {
        let to: Vec<SocketAddr> = self.hosts[..destinations].iter().map(|it| it.0).collect();
        self.both(|engine| {
            engine.switch_off();
            engine.set_destinations(to.clone());
            engine.switch_on(registers).expect("sound registers");
        });
    }

    /// What has come to the hosts, until there is so much, and so many packets have been taken in.
    fn gather(&mut self, count: usize, told: &mut Told) -> Vec<(SocketAddr, Vec<u8>)> {
        let begun = Instant::now();
        let mut got = Vec::new();
        let mut bytes = [0; 2048];
        loop {
            while let Ok((length, from)) = self.host.recv_from(&mut bytes) {
                let from = SocketAddr::new(from.ip().to_canonical(), from.port());
                let mut leaves = Leaves(&self.host);
                self.kernel
                    .receive(from, &bytes[..length], &mut leaves, &mut |event| {
                        told.note(event);
                    });
            }
            for (at, socket) in &self.hosts {
                while let Ok((length, from)) = socket.recv_from(&mut bytes) {
                    assert_eq!(from, self.own, "who sends");
                    got.push((*at, bytes[..length].to_vec()));
                }
            }
            let is_taken = self.kernel.counters().received == self.native.counters().received;
            if is_taken && got.len() >= count {
                return got;
            }
            assert!(
                begun.elapsed() < DONE_WITHIN,
                "{count} expected, {} came: {:?}",
                got.len(),
                self.kernel.counters()
            );
        }
    }

    /// The same packet comes to both from a host.
    fn receive(&mut self, from: usize, datagram: &[u8]) {
        let (before, registers) = (self.native.counters(), self.native.registers());
        let (mut sent, mut expected) = (Sent::default(), Told::default());
        let source = self.hosts[from].0;
        self.native
            .receive(source, datagram, &mut sent, &mut |event| {
                expected.note(event);
            });
        send_once(&self.hosts[from].1, datagram, self.own);
        let mut told = Told::default();
        let mut got = self.gather(sent.0.len(), &mut told);
        let header = datagram.first_chunk().map(Header::decode);
        let why = format!("{header:?}\nfrom {registers:?}");
        got.sort();
        sent.0.sort();
        let seen = |all: &[(SocketAddr, Vec<u8>)]| -> Vec<(SocketAddr, Header)> {
            let headers = all
                .iter()
                .map(|(to, bytes)| (*to, Header::decode(bytes.first_chunk().expect("a header"))));
            headers.collect()
        };
        assert_eq!(seen(&got), seen(&sent.0), "headers sent, {why}");
        assert_eq!(got, sent.0, "bytes sent, {why}");
        assert_eq!(told, expected, "told, {why}");
        assert_eq!(self.kernel.registers(), self.native.registers(), "{why}");
        self.count(&before, header, sent.0.len(), &told, &registers);
        if let Some((_, number)) = told.kept.last() {
            let mut sent = Sent::default();
            self.native.durable(*number, &mut sent);
            let mut leaves = Leaves(&self.host);
            self.kernel.durable(*number, &mut leaves);
            let mut got = self.gather(sent.0.len(), &mut Told::default());
            got.sort();
            sent.0.sort();
            assert_eq!(got, sent.0, "said once it is durable, {why}");
        }
    }

    fn count(
        &mut self,
        before: &quorumwire_fastpath::PaxosCounters,
        header: Option<Header>,
        sent: usize,
        told: &Told,
        registers: &PaxosRegisters,
    ) {
        let now = self.native.counters();
        let mut reasons = PacketReason::ALL.into_iter();
        let refused = reasons.find(|it| now.reason(*it) > before.reason(*it));
        let is_new = now.received > before.received;
        let reason = refused.or_else(|| is_new.then_some(PacketReason::None));
        let kind = header.and_then(|header| Kind::from_byte(header.kind));
        let outcome = match (sent, told.left.len(), told.kept.len()) {
            (0, 0, 0) => "nothing",
            (0, 1, 0) => "left",
            (0, 0, 1) => "kept",
            (_, 0, 0) if header.is_some_and(|it| it.flags & FLAG_TELL != 0) => "told",
            (1, 0, 0) => "answered",
            _ => "to all",
        };
        let roles = [PaxosRole::Off, PaxosRole::Coordinator, PaxosRole::Acceptor];
        let role = roles[usize::from(registers.role)];
        let what = format!(
            "{role:?} {} {} {outcome}",
            kind.map_or("-".to_owned(), |kind| format!("{kind:?}")),
            reason.map_or("-".to_owned(), |reason| format!("{reason:?}")),
        );
        *self.reached.entry(what).or_default() += 1;
    }

    /// All that both know, and why what was not taken was not.
    fn compare(&mut self) {
        let records = |engine: &PaxosEngine| engine.records().collect::<Vec<_>>();
        assert_eq!(records(&self.kernel), records(&self.native));
        let (native, kernel) = (self.native.counters(), self.kernel.counters());
        for reason in PacketReason::ALL {
            assert_eq!(kernel.reason(reason), native.reason(reason), "{reason:?}");
        }
        assert_eq!(
            (kernel.sent, kernel.stored, kernel.assigned, kernel.received),
            (native.sent, native.stored, native.assigned, native.received)
        );
    }
}

struct Sender<'a> {
    dice: &'a mut Dice,
    coordinates: bool,
}

impl Sender<'_> {
    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.dice.below(all.len())]
    }

    fn seldom(&mut self) -> bool {
        self.dice.below(24) == 0
    }

    fn round(&mut self) -> u64 {
        (1 + self.dice.below(4) as u64) * 256 + 1 + self.dice.below(2) as u64
    }

    fn payload(&mut self) -> Vec<u8> {
        let longest = PAYLOAD_BYTES_MAX;
        let bytes = self.one_of(&[0, 1, 7, 8, 9, 15, 100, 701, longest - 1, longest]);
        (0..bytes)
            .map(|_| u8::try_from(self.dice.below(256)).expect("a byte"))
            .collect()
    }

    fn header(&mut self, registers: &PaxosRegisters) -> Header {
        let common = if self.coordinates {
            [Kind::Submit; 4]
        } else {
            [Kind::P2a, Kind::P2a, Kind::P2a, Kind::P1a]
        };
        let kind = if self.seldom() {
            self.one_of(&[Kind::P1a, Kind::P2a, Kind::P1b, Kind::P2b, Kind::Submit])
        } else {
            self.one_of(&common)
        };
        let term = self.round();
        let near =
            registers.trimmed.saturating_sub(1) + self.dice.below(WINDOW as usize + 3) as u64;
        let is_all = kind == Kind::P1a && self.dice.below(4) == 0;
        let mut header = Header {
            magic: MAGIC,
            version: VERSION,
            kind: kind as u8,
            sender: term.to_be_bytes()[7],
            group: GROUP.0,
            term,
            index: if is_all { 0 } else { near },
            commit_index: CONFIGURATION,
            session: self.dice.below(3) as u64,
            sequence: self.dice.below(2) as u64,
            ..Header::default()
        };
        if kind == Kind::Submit {
            header.sender = u8::try_from(SENDER_CLIENT).expect("a byte");
            header.session = 1 + self.dice.below(9) as u64;
        }
        if self.dice.below(4) == 0 {
            header.flags |= FLAG_FRAGMENT;
        }
        if kind == Kind::P2a && self.dice.below(6) == 0 {
            header.flags |= FLAG_TELL;
        }
        match self.dice.below(60) {
            0 => header.sender = 9,
            1 => header.flags |= FLAG_BLIND,
            2 => header.commit_index += 1,
            3 => header.group += 1,
            4 => header.term = 1,
            5 => header.session = 0,
            6 => header.version += 1,
            7 => header.magic += 1,
            _ => {}
        }
        header
    }

    fn datagram(&mut self, registers: &PaxosRegisters) -> Vec<u8> {
        let mut header = self.header(registers);
        let kind = Kind::from_byte(header.kind);
        let payload = if kind == Some(Kind::P1a) {
            Vec::new()
        } else {
            self.payload()
        };
        header.payload_bytes = u16::try_from(payload.len()).expect("short");
        header.payload_crc32c = checked(&payload);
        if self.seldom() {
            header.payload_crc32c ^= 1;
        }
        let mut bytes = header.encode().to_vec();
        bytes.extend_from_slice(&payload);
        let key = if kind == Some(Kind::Submit) {
            CLIENTS_KEY
        } else {
            CLUSTER_KEY
        };
        sign(&mut bytes, key);
        match self.dice.below(40) {
            0 => {
                let place = self.dice.below(bytes.len());
                bytes[place] ^= 1 << self.dice.below(8);
            }
            1 => bytes.truncate(self.dice.below(bytes.len())),
            2 => bytes.push(0),
            _ => {}
        }
        bytes
    }
}

fn acceptor(dice: &mut Dice, held: bool) -> PaxosRegisters {
    PaxosRegisters {
        configuration: CONFIGURATION,
        group: GROUP.0,
        window: WINDOW,
        role: PaxosRole::Acceptor as u8,
        me: 2,
        held: u8::from(held),
        trimmed: dice.below(3) as u64,
        bound: dice.below(6) as u64,
        ..PaxosRegisters::default()
    }
}

fn coordinator(dice: &mut Dice) -> PaxosRegisters {
    let trimmed = dice.below(3) as u64;
    PaxosRegisters {
        configuration: CONFIGURATION,
        round: 3 * 256 + 1,
        group: GROUP.0,
        window: WINDOW,
        role: PaxosRole::Coordinator as u8,
        me: 1,
        trimmed,
        next_instance: trimmed + 1,
        ..PaxosRegisters::default()
    }
}

/// What must have been reached, or the comparison has shown too little.
const ACCEPTOR_OUTCOMES: &[&str] = &[
    "Acceptor P2a None to all",
    "Acceptor P2a None answered",
    "Acceptor P2a None told",
    "Acceptor P2a Repeated to all",
    "Acceptor P2a RoundOld answered",
    "Acceptor P2a Trimmed answered",
    "Acceptor P2a TwoValues left",
    "Acceptor P2a Configuration left",
    "Acceptor P2a WindowFull nothing",
    "Acceptor P2a Tag nothing",
    "Acceptor P2a Group nothing",
    "Acceptor P2a Malformed nothing",
    "Acceptor P1a None answered",
    "Acceptor P1a RoundOld answered",
    "Acceptor P1a RoundTaken answered",
    "Acceptor P1a NoMember nothing",
    "Acceptor P2b Unexpected left",
    "Off P2a Off left",
];
const HELD_OUTCOMES: &[&str] = &[
    "Acceptor P2a None kept",
    "Acceptor P2a Repeated kept",
    "Acceptor P2a RoundOld answered",
    "Acceptor P1a None kept",
];
const COORDINATOR_OUTCOMES: &[&str] = &[
    "Coordinator Submit None to all",
    "Coordinator Submit WindowFull nothing",
    "Coordinator Submit Checksum nothing",
    "Coordinator Submit Tag nothing",
    "Coordinator Submit Malformed left",
    "Coordinator P1b Unexpected left",
    "Off Submit Off left",
];

fn compare(way: Way, how: Attachment, packets: usize) {
    let mut dice = Dice::new();
    let mut twin = Twin::new(way, how);
    let roles = [(false, false), (false, true), (true, false)];
    for (coordinates, held) in roles {
        let mut old = VecDeque::new();
        twin.reached.clear();
        for number in 0..packets {
            if number % 150 == 0 {
                let registers = if coordinates {
                    coordinator(&mut dice)
                } else {
                    acceptor(&mut dice, held)
                };
                let destinations = 1 + dice.below(HOSTS - 1);
                twin.switch_on(&registers, destinations);
            } else if number % 150 == 145 {
                twin.both(PaxosEngine::switch_off);
            }
            let registers = twin.native.registers();
            match dice.below(40) {
                0 => {
                    let upto = registers.trimmed + dice.below(4) as u64;
                    twin.both(|engine| assert!(engine.trim(upto)));
                }
                1 => twin.both(|engine| engine.configure(CONFIGURATION + 1)),
                2 | 3 => twin.both(|engine| engine.configure(CONFIGURATION)),
                _ => {}
            }
            let mut sender = Sender {
                dice: &mut dice,
                coordinates,
            };
            let again = sender.dice.below(8) == 0 && !old.is_empty();
            let datagram: Vec<u8> = if again {
                let place = sender.dice.below(old.len());
                Vec::clone(&old[place])
            } else {
                sender.datagram(&registers)
            };
            old.push_back(datagram.clone());
            if old.len() > 8 {
                old.pop_front();
            }
            twin.receive(dice.below(HOSTS), &datagram);
            if number % 50 == 0 {
                twin.compare();
            }
        }
        twin.compare();
        let wanted = match (coordinates, held) {
            (false, false) => ACCEPTOR_OUTCOMES,
            (false, true) => HELD_OUTCOMES,
            (true, _) => COORDINATOR_OUTCOMES,
        };
        for what in wanted {
            assert!(
                twin.reached.contains_key(*what),
                "never reached: {what}; but {:#?}",
                twin.reached
            );
        }
    }
    twin.namespaces.enter_test();
}

#[test]
fn a_box_in_the_driver_does_what_one_in_memory_does() {
    compare(Way::V4, Driver::ATTACHMENT, 6000);
}

#[test]
fn so_does_one_over_ipv6() {
    compare(Way::V6, Driver::ATTACHMENT, 3000);
}

#[test]
fn so_does_one_whose_copies_are_clones() {
    compare(Way::V4, Clones::ATTACHMENT, 3000);
}

#[test]
fn so_does_one_in_generic_mode() {
    compare(Way::V4, Generic::ATTACHMENT, 3000);
}

/// How much of it shows that a check of the program is needed.
#[cfg(feature = "mutants")]
pub fn compared() {
    compare(Way::V4, Driver::ATTACHMENT, 2000);
}

/// A value without a byte, proposed in the second coordinator's first round.
fn proposal(instance: u64) -> Vec<u8> {
    let header = Header {
        magic: MAGIC,
        version: VERSION,
        kind: Kind::P2a as u8,
        sender: 1,
        group: GROUP.0,
        term: 257,
        index: instance,
        commit_index: CONFIGURATION,
        session: 1,
        payload_crc32c: checked(&[]),
        ..Header::default()
    };
    let mut bytes = header.encode().to_vec();
    sign(&mut bytes, CLUSTER_KEY);
    assert_eq!(bytes.len(), HEADER_BYTES);
    bytes
}

/// Its interface goes, and one without its program comes. It says so, forgets nothing, and does by its socket
/// what one of memory does.
#[test]
fn a_box_that_has_lost_its_program_goes_on_by_its_socket() {
    let mut twin = Twin::new(Way::V4, Driver::ATTACHMENT);
    let registers = acceptor(&mut Dice::new(), false);
    twin.switch_on(&registers, 3);
    assert!(twin.kernel.surroundings().is_engaged);
    twin.receive(0, &proposal(registers.trimmed + 1));
    twin.namespaces.ip_in_plane(0, "link del eth0\n");
    twin.namespaces.connect(0, "");
    let begun = Instant::now();
    let news = loop {
        if let Some(news) = twin.kernel.look_around() {
            break news;
        }
        assert!(begun.elapsed() < DONE_WITHIN, "it has seen nothing");
        thread::yield_now();
    };
    let surroundings = twin.kernel.surroundings();
    assert!(news.contains("eth0"), "{news}");
    assert!(
        !surroundings.is_engaged && surroundings.trouble.is_some(),
        "{surroundings:?}"
    );
    for instance in 1..=3 {
        twin.receive(0, &proposal(registers.trimmed + instance));
    }
    twin.compare();
    assert_eq!(twin.native.counters().stored, 3);
}

/// Nothing that a box of memory would not send leaves one whose host has switched it off.
#[test]
fn a_box_that_is_off_sends_nothing() {
    let mut dice = Dice::new();
    let mut twin = Twin::new(Way::V4, Driver::ATTACHMENT);
    let registers = acceptor(&mut dice, false);
    twin.switch_on(&registers, 3);
    let bytes = proposal(registers.trimmed + 1);
    twin.receive(0, &bytes);
    twin.both(PaxosEngine::switch_off);
    for _ in 0..100 {
        twin.receive(0, &bytes);
    }
    twin.compare();
    assert_eq!(twin.native.counters().sent, 3, "the first vote only");
}

/// Destinations that a frame cannot reach from here are refused, with what would do.
#[test]
fn destinations_that_cannot_be_are_refused() {
    for (to, part) in [
        (vec!["[fd77::1]:7000"], "[fd77::1]:7000 cannot be reached"),
        (vec!["10.77.0.1:7001"], "10.77.0.1:7001 cannot be reached"),
        (vec!["10.77.0.11:7000"; 33], "33 hosts"),
    ] {
        let mut twin = Twin::new(Way::V4, Driver::ATTACHMENT);
        let to = to.iter().map(|it| it.parse().expect("an address"));
        twin.kernel.set_destinations(to.collect());
        let fault = format!("{:?}", twin.kernel.fault());
        assert!(fault.contains(part), "{fault}");
    }
}

/// Proposals are heard at the address of all acceptors, and nothing else is; a coordinator's leave once.
#[test]
pub fn proposals_go_by_a_multicast_address() {
    let all = Ipv4Addr::new(239, 77, 0, 1);
    let how = Attachment {
        multicast: Some(all),
        ..Driver::ATTACHMENT
    };
    let mut twin = Twin::new(Way::V4, how);
    let together = socket(all);
    let joined = together.join_multicast_v4(&all, &plane_ip(0));
    joined.expect("the plane's device");
    set_ip_multicast_if(&twin.hosts[0].1, &test_ip(0, 0)).expect("a device of the test");
    let registers = acceptor(&mut Dice::new(), false);
    let instance = registers.trimmed.max(registers.bound) + 1;
    twin.switch_on(&registers, 1);
    let packet = |kind: Kind, index| {
        let of_client = u8::try_from(SENDER_CLIENT).expect("a byte");
        let sender = if kind == Kind::Submit { of_client } else { 0 };
        let header = Header {
            magic: MAGIC,
            version: VERSION,
            kind: kind as u8,
            sender,
            group: GROUP.0,
            term: 2 * 256,
            index,
            commit_index: CONFIGURATION,
            session: 1,
            payload_crc32c: checked(b""),
            ..Header::default()
        };
        let mut datagram = header.encode().to_vec();
        let key = if kind == Kind::Submit {
            CLIENTS_KEY
        } else {
            CLUSTER_KEY
        };
        sign(&mut datagram, key);
        datagram
    };
    // A value first, so that the vote behind it shows that it was dropped: else it would be the host's.
    let stray = packet(Kind::Submit, 0);
    send_once(&twin.hosts[0].1, &stray, (all, PORT));
    send_once(&twin.hosts[0].1, &packet(Kind::P2a, instance), (all, PORT));
    let begun = Instant::now();
    let mut bytes = [0; 2048];
    let vote = loop {
        if let Ok((length, from)) = twin.hosts[0].1.recv_from(&mut bytes) {
            assert_eq!(from, twin.own);
            break bytes[..length]
                .first_chunk()
                .map(Header::decode)
                .expect("a packet");
        }
        assert!(begun.elapsed() < DONE_WITHIN, "nothing came");
        thread::yield_now();
    };
    assert_eq!((vote.kind, vote.index), (Kind::P2b as u8, instance));
    assert!(together.recv_from(&mut bytes).is_err(), "the host's");
    // A coordinator.
    twin.namespaces.enter_test();
    let hears = socket(all);
    let joined = hears.join_multicast_v4(&all, &test_ip(0, 0));
    joined.expect("a device of the test");
    twin.namespaces.enter_plane(0);
    twin.kernel.switch_off();
    twin.kernel.set_destinations(vec![(all, PORT).into()]);
    let registers = coordinator(&mut Dice::new());
    twin.kernel.switch_on(&registers).expect("sound registers");
    send_once(&twin.hosts[0].1, &stray, twin.own);
    let proposal = loop {
        if let Ok((length, _)) = hears.recv_from(&mut bytes) {
            break bytes[..length]
                .first_chunk()
                .map(Header::decode)
                .expect("a packet");
        }
        assert!(begun.elapsed() < DONE_WITHIN, "nothing came");
        thread::yield_now();
    };
    assert_eq!(
        (proposal.kind, proposal.index),
        (Kind::P2a as u8, registers.next_instance)
    );
}

/// Rounds in which two processors have an acceptor vote for one instance, at once: so many votes are looked
/// at meanwhile, before there have been so many rounds.
const VOTES_SEEN: usize = 200;
const ROUNDS_AT_ONCE: u64 = 1 << 20;

/// A vote and its value are one: whoever asks is never told of a value that is not the vote's.
#[test]
pub fn no_vote_is_ever_torn() {
    let namespaces = Namespaces::joined(1, Way::V4);
    let_pass(&port(0)).expect("root, and a kernel for it");
    let from = SocketAddr::new(Way::V4.test_ip(0, 0), PORT);
    let _sink = socket(from.ip());
    namespaces.enter_plane(0);
    let own = SocketAddr::new(Way::V4.plane_ip(0), PORT);
    let made = KernelBox::attach(own, None, WINDOW, Driver::ATTACHMENT, &|_| Ok(()));
    let mut made = made.expect("root, and a kernel for it");
    made.set_keys(&keys()).expect("it takes keys");
    made.set_destinations(&[from]).expect("it is reached");
    let registers = PaxosRegisters {
        trimmed: 0,
        bound: 0,
        ..acceptor(&mut Dice::new(), false)
    };
    made.switch_on(&registers).expect("sound registers");
    let question = Header {
        version: VERSION,
        kind: Kind::P1a as u8,
        sender: 1,
        group: GROUP.0,
        term: 257,
        index: 1,
        commit_index: CONFIGURATION,
        session: 1,
        ..Header::default()
    };
    let enough = AtomicBool::new(false);
    let mut seen = BTreeSet::new();
    thread::scope(|scope| {
        for owner in [1, 2_u8] {
            let (namespaces, enough) = (&namespaces, &enough);
            scope.spawn(move || {
                namespaces.enter_plane(0);
                let loaded = Loaded::at("eth0", 64);
                for round in 2..ROUNDS_AT_ONCE {
                    if enough.load(Ordering::Relaxed) {
                        return;
                    }
                    let bytes = 200 * usize::from(owner) + usize::from(round.to_be_bytes()[7]);
                    let payload = vec![round.to_be_bytes()[7] ^ owner; bytes];
                    let header = Header {
                        magic: MAGIC,
                        kind: Kind::P2a as u8,
                        sender: owner,
                        term: round * 256 + u64::from(owner),
                        payload_bytes: u16::try_from(bytes).expect("short"),
                        payload_crc32c: checked(&payload),
                        ..question
                    };
                    let mut datagram = header.encode().to_vec();
                    datagram.extend_from_slice(&payload);
                    sign(&mut datagram, CLUSTER_KEY);
                    loaded.receive(&frame_of(from, own, &datagram), 1);
                }
            });
        }
        let begun = Instant::now();
        while seen.len() < VOTES_SEEN && begun.elapsed() < DONE_WITHIN * 12 {
            let stepped = made.step(&question, &[]).expect("the kernel does");
            if stepped.slot.vote_round > 0 {
                seen.insert(stepped.slot.vote_round);
                assert_eq!(checked(stepped.value), stepped.slot.payload_crc32c);
            }
        }
        enough.store(true, Ordering::Relaxed);
    });
    assert_eq!(seen.len(), VOTES_SEEN, "votes that were seen");
    namespaces.enter_test();
}

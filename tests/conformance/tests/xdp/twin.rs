//! A plane in the kernel beside the engine in ordinary memory: both get the same, and must do the same.
mod memcached;

use crate::ethernet::{EVERY_PROTOCOL, Ethernet};
use crate::loaded::{Loaded, Slot, XDP_DROP, XDP_PASS, XDP_REDIRECT, XDP_TX};
use crate::veth::{Namespaces, Way, plane_mac, port, test_mac};
use memcached::Memcached;
use quorumwire_conformance_tests::differential::{
    Comes, Datagram, HostLog, Judged, MEMCACHED, OUTSIDE, Out, PORT, Twin, leave_one, role_of,
};
use quorumwire_conformance_tests::frames::{
    Checksum, ETHERNET_BYTES, Envelope, Home, found, framed, unframed,
};
use quorumwire_fastpath::{Engine, Keys, Options, Outcome, RegisterStore, ReplyAddress, check};
use quorumwire_interfaces::{
    Command, DataPlane, Grant, Index, PLANE_REPLICAS_MAX, PlaneError, PlaneKeys, Registers as Shown,
};
use quorumwire_plane_xdp::{Attachment, XdpCopies, XdpPlane, let_pass};
use quorumwire_wire::packet::{
    ACTION_COMMIT, ACTION_FANOUT, ACTION_RESEND, ACTION_STORE, ACTION_TO_SOFTWARE, FLAG_BLIND,
    HEADER_BYTES, Header, Kind, PacketReason, RESEND_ENTRIES_MAX, Registers, Role,
};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// The header of a packet of the plane's own port.
fn header(of: &Datagram) -> Header {
    header_of(&of.bytes)
}

/// What of it is the same whenever it is said.
fn said(of: &Datagram) -> Datagram {
    let mut said = of.clone();
    if said.port == PORT {
        let header = Header {
            commit_index: 0,
            tag: 0,
            ..header(of)
        };
        said.bytes[..HEADER_BYTES].copy_from_slice(&header.encode());
    }
    said
}

/// Longest that a frame may take from one end of a pair to the other.
const ON_THE_WAY_MAX: Duration = Duration::from_secs(5);

/// A datagram's frame on its way to both.
pub fn frame_of(from: SocketAddr, to: SocketAddr, datagram: &[u8]) -> Vec<u8> {
    let envelope = Envelope {
        from,
        to,
        from_mac: test_mac(0),
        to_mac: plane_mac(0),
    };
    framed(&envelope, datagram)
}

/// What was done about a frame: role, kind, actions, reason, and what the program said, where it did.
pub type Reached = (String, String, u32, String, &'static str);

/// Both planes.
pub struct Beside {
    pub native: Engine,
    plane: XdpPlane,
    loaded: Loaded,
    tap: Ethernet,
    own: SocketAddr,
    way: Way,
    how: Attachment,
    options: Options,
    keys: Keys,
    replicas: usize,
    native_told: HostLog,
    plane_told: HostLog,
    /// What the kernel's host is to send when it is polled.
    owed: Vec<Datagram>,
    /// Entries whose blind writes the program answers.
    answered_here: BTreeSet<u64>,
    memcached: Memcached,
    pub reached: BTreeMap<Reached, u64>,
    /// Take what the test's end gets, so that it finds nothing wrong.
    _sinks: Vec<UdpSocket>,
    _namespaces: Namespaces,
}

impl Beside {
    /// Both off. The test's sockets have these ports. This thread is where the plane is from now on.
    pub fn new(way: Way, how: Attachment, options: Options, ports: &[u16]) -> Self {
        let namespaces = Namespaces::joined(1, way);
        // First, so that the plane finds a driver that can do all.
        let_pass(&port(0)).expect("root, and a kernel for it");
        let anywhere = |port| match way {
            Way::V4 => format!("0.0.0.0:{port}"),
            Way::V6 => format!("[::]:{port}"),
        };
        let sinks = ports.iter().map(|port| UdpSocket::bind(anywhere(*port)));
        let sinks = sinks.map(|sink| sink.expect("a free port")).collect();
        let tap = Ethernet::open(&port(0), EVERY_PROTOCOL).expect("root");
        namespaces.enter_plane(0);
        let own = SocketAddr::new(way.plane_ip(0), PORT);
        let plane = XdpPlane::attach(own, None, options, how);
        let mut plane = plane.expect("root, and a kernel for it");
        let memcached = Memcached::new(&mut plane, own.ip());
        Self {
            native: Engine::new(options).expect("sound options"),
            plane,
            loaded: Loaded::at("eth0", options.ring_slots),
            tap,
            own,
            way,
            how,
            options,
            keys: Keys::default(),
            replicas: 1,
            native_told: HostLog::default(),
            plane_told: HostLog::default(),
            owed: Vec::new(),
            answered_here: BTreeSet::new(),
            memcached,
            reached: BTreeMap::new(),
            _sinks: sinks,
            _namespaces: namespaces,
        }
    }

    fn home(&self) -> Home<'static> {
        Home {
            ip: self.own.ip(),
            all: self.how.multicast,
            ports: &[PORT, MEMCACHED],
        }
    }

    /// Blind writes of a range that somebody waits for.
    fn asked_for(&self, from: u64, upto: u64) -> Vec<u64> {
        let is_asked_for = |index: &u64| {
            let found = self.native.register_store().get(*index);
            found.is_some_and(|(stored, _)| {
                stored.flags & FLAG_BLIND != 0 && stored.requester.is_some()
            })
        };
        (from..=upto).filter(is_asked_for).collect()
    }

    /// What of all that the native one has sent leaves at once, and what the host sends later.
    fn plan(
        &mut self,
        outcome: &Outcome,
        is_blind_request: bool,
        sender: u8,
        mut sent: Vec<Datagram>,
    ) -> Plan {
        let after = self.registers();
        let mut planned = Plan {
            verdict: XDP_DROP,
            ..Plan::default()
        };
        if outcome.has(ACTION_TO_SOFTWARE) {
            return planned;
        }
        if outcome.has(ACTION_STORE) && is_blind_request {
            self.answered_here.insert(outcome.index);
        }
        if outcome.has(ACTION_FANOUT) && self.replicas > 1 {
            if let Some(all) = self.how.multicast.filter(|_| self.replicas > 2) {
                sent.truncate(1);
                sent[0].to = (all, PORT).into();
            } else {
                // The copies begin behind the leader, the engine with the first slot.
                sent.rotate_left(usize::from(after.me));
                planned.copies = Some(Copies::Fanout);
            }
            planned.leave = sent;
        } else if outcome.has(ACTION_COMMIT) && after.role == Role::Leader as u8 {
            let from = outcome.commit_from.max(after.start_index) + 1;
            let indexes = self.asked_for(from, after.commit_index);
            assert_eq!(indexes.len(), sent.len(), "{sent:?}");
            let many = after.commit_index - from >= RESEND_ENTRIES_MAX as u64;
            let is_answered = |index: &u64| !many && self.answered_here.contains(index);
            let (here, owed): (Vec<_>, Vec<_>) = indexes
                .into_iter()
                .zip(sent)
                .partition(|(index, _)| is_answered(index));
            let indexes: Vec<u64> = here.iter().map(|(index, _)| *index).collect();
            planned.copies = (indexes.len() > 1).then_some(Copies::Answers(indexes));
            planned.leave = here.into_iter().map(|(_, sent)| sent).collect();
            planned.owed = owed.into_iter().map(|(_, sent)| sent).collect();
        } else if outcome.has(ACTION_RESEND) {
            planned.copies = (!sent.is_empty()).then_some(Copies::Resend(sender));
            planned.leave = sent;
        } else {
            leave_one(&mut sent);
            assert!(sent.len() <= 1, "{sent:?}");
            planned.leave = sent;
        }
        planned.verdict = match (planned.leave.len(), &planned.copies) {
            (0, _) => XDP_DROP,
            (_, None) => XDP_TX,
            // Made behind the receive path.
            (_, Some(_)) if self.how.copies == XdpCopies::Clone => XDP_PASS,
            (_, Some(_)) => XDP_REDIRECT,
        };
        planned
    }

    /// Runs the program on a frame: what it says must be as planned.
    fn try_frame(&mut self, frame: &[u8], planned: &Plan, why: &str) {
        let all = self.how.multicast.map(IpAddr::from);
        let (said, made) = self.loaded.run(frame);
        assert_eq!(said, planned.verdict, "the verdict, {why}");
        let made = made.to_vec();
        match (said, &planned.copies) {
            (XDP_REDIRECT | XDP_PASS, Some(copies)) => self.compare_order(&made, copies, planned),
            (XDP_PASS, None) => assert_eq!(made, frame, "what goes up is unchanged"),
            (XDP_TX, _) => {
                let left = read_frame(&made, Checksum::Made, all).expect("a datagram");
                assert_eq!(left, planned.leave[0], "what would leave");
            }
            _ => {}
        }
    }

    /// What the program orders of the one that makes copies.
    fn compare_order(&self, made: &[u8], copies: &Copies, planned: &Plan) {
        let order = CopyOrder::read(made, self.way);
        let byte = u8::try_from(self.replicas).expect("a few");
        assert_eq!(
            (order.me, order.replicas),
            (self.registers().me, byte),
            "by and for whom"
        );
        assert_eq!(order.is_ipv6, u8::from(self.way == Way::V6));
        if self.how.copies == XdpCopies::Clone {
            let magic = made[ETHERNET_BYTES..].first_chunk();
            assert_eq!(magic, Some(b"\xff\x51wC"), "the mark of an order");
        }
        if *copies == Copies::Fanout {
            assert_eq!((order.kind, order.peer), (1, 0));
            assert_eq!(order.packet, planned.leave[0].bytes, "what each gets");
            return;
        }
        let now = self.registers();
        assert_eq!(
            (order.term, order.commit_index, order.group),
            (now.term, now.commit_index, now.group)
        );
        match copies {
            Copies::Answers(indexes) => {
                assert_eq!((order.kind, order.peer), (2, 0));
                assert_eq!(order.from, indexes[0]);
                let bit = |index: &u64| 1 << (index - order.from);
                let bits = indexes.iter().map(bit).fold(0, |bits, bit| bits | bit);
                assert_eq!(order.answered, bits, "which are answered");
            }
            Copies::Resend(peer) => {
                assert_eq!((order.kind, order.peer), (3, *peer));
                let ends = [planned.leave.first(), planned.leave.last()];
                let ends = ends.map(|end| end.map(|sent| header(sent).index));
                assert_eq!([Some(order.from), Some(order.upto)], ends);
            }
            Copies::Fanout => {}
        }
    }

    /// Waits for these, in this order; they must be sound frames.
    fn expect_frames(&mut self, wanted: &[Datagram], checksum: Checksum, why: &str) {
        let mut came = self.frames_that_left(wanted.len(), checksum, why);
        let mut wanted = wanted.to_vec();
        if checksum == Checksum::LeftToDevice {
            sort(&mut came);
            sort(&mut wanted);
        }
        assert!(
            came == wanted,
            "left:\n{}\nwanted:\n{}\n{why}",
            list(&came),
            list(&wanted)
        );
    }

    /// Everything that has left, at least so much.
    fn frames_that_left(&mut self, count: usize, checksum: Checksum, why: &str) -> Vec<Datagram> {
        let begun = Instant::now();
        let mut came = Vec::new();
        let all = self.how.multicast.map(IpAddr::from);
        loop {
            while let Some(frame) = self.tap.next() {
                // The system's own questions go by, too.
                let sent = read_frame(&frame, checksum, all);
                came.extend(
                    sent.filter(|sent| checksum == Checksum::Made || self.is_reached(sent.to)),
                );
            }
            if came.len() >= count {
                return came;
            }
            assert!(
                begun.elapsed() < ON_THE_WAY_MAX,
                "{} of {count} left: {why}\n{}\nthe plane's registers: {:?}\n{}",
                came.len(),
                list(&came),
                self.loaded.registers(),
                self.counters()
            );
            std::thread::yield_now();
        }
    }

    fn counters(&self) -> String {
        let mut all = Vec::new();
        self.plane
            .counters(&mut |one, count| all.push(format!("{} {count}", one.name)));
        all.join(", ")
    }

    /// Whether it is somebody of ours. A forged origin may name others: to some the system knows a way.
    fn is_reached(&self, to: SocketAddr) -> bool {
        let mut known = (0..PLANE_REPLICAS_MAX).chain([OUTSIDE]);
        known.any(|one| self.way.test_ip(0, one) == to.ip())
    }

    /// An order of the host; what the native one sends.
    fn order(
        &mut self,
        what: &str,
        native: impl FnOnce(&mut Engine, &mut Out) -> Result<String, PlaneError>,
        plane: impl FnOnce(&mut XdpPlane) -> Result<String, PlaneError>,
    ) -> Vec<Datagram> {
        let mut out = Out::default();
        let before = self.registers();
        let one = native(&mut self.native, &mut out);
        let other = plane(&mut self.plane);
        assert_eq!(one, other, "{what} from {before:?}");
        let reached = out.0.iter().filter(|sent| self.is_reached(sent.to));
        let reached: Vec<Datagram> = reached.cloned().collect();
        self.expect_frames(&reached, Checksum::LeftToDevice, what);
        self.compare(what);
        let done = if one.is_ok() { "done" } else { "refused" };
        self.note(&role_of(&before), what, 0, done, 0);
        out.0
    }

    fn note(&mut self, role: &str, kind: &str, actions: u32, why: &str, verdict: u32) {
        let said = match verdict {
            XDP_DROP => "drop",
            XDP_PASS => "pass",
            XDP_TX => "answer",
            XDP_REDIRECT => "copies",
            _ => "order",
        };
        let key = (
            role.to_owned(),
            kind.to_owned(),
            actions,
            why.to_owned(),
            said,
        );
        *self.reached.entry(key).or_default() += 1;
    }

    fn compare(&self, what: &str) {
        assert_eq!(
            self.registers(),
            self.loaded.registers(),
            "registers, {what}"
        );
    }

    fn compare_slot(&self, index: u64) {
        let Some((stored, payload)) = self.native.register_store().get(index) else {
            panic!("the native ring has no {index}");
        };
        let native = Slot {
            index,
            previous_term: stored.previous_term,
            session: stored.session,
            sequence: stored.sequence,
            payload_crc32c: stored.payload_crc32c,
            flags: stored.flags,
            requester: stored.requester.map(|requester| match requester {
                ReplyAddress::Packet(client) => (client, None),
                ReplyAddress::Memcached(client, request) => (client, Some(request)),
            }),
            answered_here: self.answered_here.contains(&index),
            payload: payload.to_vec(),
        };
        assert_eq!(native, self.loaded.slot(index));
    }
}

impl Twin for Beside {
    fn own(&self) -> SocketAddr {
        self.own
    }

    fn ip_of(&self, slot: usize) -> IpAddr {
        self.way.test_ip(0, slot)
    }

    fn multicast(&self) -> Option<Ipv4Addr> {
        self.how.multicast
    }

    fn frame(&self, from: SocketAddr, to: SocketAddr, datagram: &[u8]) -> Vec<u8> {
        frame_of(from, to, datagram)
    }

    fn set_keys(&mut self, keys: &PlaneKeys) {
        self.poll();
        self.keys = Keys::from(keys);
        self.native.set_keys(keys);
        self.plane.set_keys(keys);
    }

    fn engage(&mut self, grant: &Grant) {
        self.replicas = grant.peers.len();
        self.native.engage(grant).expect("a sound grant");
        self.plane.engage(grant).expect("a sound grant");
        self.answered_here.clear();
        self.memcached.forget();
        self.compare("engaged");
    }

    fn disengage(&mut self) {
        let (one, other) = (self.native.disengage(), self.plane.disengage());
        assert_eq!(one, other, "after the fence");
        self.memcached.forget();
        self.compare("disengaged");
        self.poll();
        self.compare_ring();
    }

    fn registers(&self) -> Registers {
        *self.native.register_store().registers()
    }

    fn receive(&mut self, frame: &[u8], comes: Comes) -> Vec<Datagram> {
        let Some(found) = found(frame, &self.home()) else {
            let (verdict, made) = self.loaded.run(frame);
            assert_eq!((verdict, made), (XDP_PASS, frame), "nothing for a plane");
            self.note("any", "none", 0, "not for a plane", XDP_PASS);
            self.compare("by a frame without a packet for it");
            return Vec::new();
        };
        if found.port == MEMCACHED {
            return self.receive_memcached(frame, &found, comes);
        }
        let (from, datagram) = (found.from, found.datagram);
        let head = datagram.first_chunk().map(Header::decode);
        let is_append = head.is_some_and(|header| header.kind == Kind::Append as u8);
        if found.to_all && !is_append && check(&self.keys, datagram).is_ok() {
            let (verdict, _) = self.loaded.run(frame);
            assert_eq!(verdict, XDP_DROP, "to all, and no entry: {head:?}");
            let role = role_of(&self.registers());
            self.note(&role, "any", 0, "to all", XDP_DROP);
            self.compare("by a packet that is not for all");
            return Vec::new();
        }
        let (mut out, mut told) = (Out::default(), HostLog::default());
        let came = (from, datagram);
        let judged = Judged::of(&mut self.native, &self.keys, came, &mut out, &mut told);
        let (header, outcome) = (judged.header, judged.outcome);
        let is_blind_request = header.kind == Kind::Request as u8 && header.flags & FLAG_BLIND != 0;
        let mut planned = self.plan(&outcome, is_blind_request, header.sender, out.0.clone());
        let is_nobodys = judged.foreign || judged.reason == PacketReason::NotOurs;
        if is_nobodys || is_passed(&outcome, &header) {
            planned.verdict = XDP_PASS;
        } else if judged.is_early {
            planned.verdict = XDP_DROP;
        }
        let (role, kind) = (&judged.role, &judged.kind);
        self.note(role, kind, outcome.actions, &judged.why(), planned.verdict);
        let why = format!("by {header:?}\nfrom {:?}", judged.before);
        match comes {
            Comes::Tried => self.try_frame(frame, &planned, &why),
            Comes::Live => {
                self.loaded.receive(frame, 1);
                self.expect_frames(&planned.leave, Checksum::Made, &why);
            }
        }
        // What was passed did not go up, or went to where no socket is.
        if comes == Comes::Tried || found.to_all {
            told.passed.clear();
        }
        self.native_told.passed.append(&mut told.passed);
        self.native_told.behind.append(&mut told.behind);
        self.owed.extend(planned.owed);
        self.compare(&why);
        if outcome.has(ACTION_STORE) {
            self.compare_slot(outcome.index);
        }
        out.0
    }

    fn poll(&mut self) {
        let (native_told, plane_told) = (&mut self.native_told, &mut self.plane_told);
        self.native.take(&mut |event| native_told.note(&event));
        while self.plane.poll(64, &mut |event| plane_told.note(&event)) > 0 {}
        assert_eq!(
            self.native_told, self.plane_told,
            "what the hosts were told"
        );
        (self.native_told, self.plane_told) = (HostLog::default(), HostLog::default());
        // What the host sends later says how far it is by then.
        let mut owed = std::mem::take(&mut self.owed);
        owed.retain(|sent| self.is_reached(sent.to));
        let why = format!("by the host, who owes:\n{}", list(&owed));
        let mut came = self.frames_that_left(owed.len(), Checksum::LeftToDevice, &why);
        sort(&mut came);
        sort(&mut owed);
        let said = |sent: &[Datagram]| -> Vec<Datagram> { sent.iter().map(said).collect() };
        assert_eq!(said(&came), said(&owed), "by the host");
        for sent in came.iter().filter(|sent| sent.port == PORT) {
            let (header, _) = check(&self.keys, &sent.bytes).expect("signed");
            assert!(
                header.index <= header.commit_index,
                "answered before: {header:?}"
            );
        }
    }

    fn submit(&mut self, commands: &[Command<'_>]) -> Vec<Datagram> {
        let first = self.registers().last_index;
        let sent = self.order(
            "submit",
            |native, out| native.submit(commands, out).map(|done| format!("{done:?}")),
            |plane| plane.submit(commands).map(|done| format!("{done:?}")),
        );
        for index in first..self.registers().last_index {
            self.compare_slot(index + 1);
        }
        sent
    }

    fn heartbeat(&mut self, round: u64) -> Vec<Datagram> {
        self.order(
            "heartbeat",
            |native, out| native.heartbeat(round, out).map(|()| String::new()),
            |plane| plane.heartbeat(round).map(|()| String::new()),
        )
    }

    fn persisted(&mut self, upto: Index) -> Vec<Datagram> {
        self.order(
            "persisted",
            |native, out| native.persisted(upto, out).map(|()| String::new()),
            |plane| plane.persisted(upto).map(|()| String::new()),
        )
    }

    fn release(&mut self, upto: Index) {
        self.order(
            "release",
            |native, _| native.release(upto).map(|()| String::new()),
            |plane| plane.release(upto).map(|()| String::new()),
        );
    }

    fn shown(&self) -> Shown {
        self.native.registers()
    }

    fn compare_ring(&mut self) {
        let registers = self.registers();
        let slots = u64::from(self.options.ring_slots);
        let oldest = registers
            .last_index
            .saturating_sub(slots)
            .max(registers.start_index);
        for index in oldest..registers.last_index {
            self.compare_slot(index + 1);
        }
    }

    fn allow(&mut self, sets: bool, applied: Option<u64>) {
        self.allow_memcached(sets, applied);
    }

    fn keep(&mut self, key: &[u8], answer: Option<&[u8]>) {
        self.keep_answer(key, answer);
    }
}

/// What is to become of a frame.
#[derive(Default)]
struct Plan {
    verdict: u32,
    copies: Option<Copies>,
    leave: Vec<Datagram>,
    owed: Vec<Datagram>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Copies {
    Fanout,
    /// To these entries.
    Answers(Vec<u64>),
    /// To this replica.
    Resend(u8),
}

/// What the program tells the one that makes copies: `struct qw_copy_order` and `struct qw_copy_range`.
struct CopyOrder {
    kind: u8,
    is_ipv6: u8,
    peer: u8,
    me: u8,
    replicas: u8,
    packet: Vec<u8>,
    from: u64,
    upto: u64,
    term: u64,
    commit_index: u64,
    group: u32,
    answered: u32,
}

impl CopyOrder {
    fn read(frame: &[u8], way: Way) -> Self {
        let before = match way {
            Way::V4 => ETHERNET_BYTES + 28,
            Way::V6 => ETHERNET_BYTES + 48,
        };
        let packet = &frame[before..];
        let number =
            |at: usize| u64::from_ne_bytes(*packet[at..].first_chunk().expect("within the packet"));
        Self {
            kind: frame[4],
            is_ipv6: frame[6],
            peer: frame[7],
            me: frame[8],
            replicas: frame[9],
            from: number(0),
            upto: number(8),
            term: number(16),
            commit_index: number(24),
            group: u32::from_ne_bytes(*packet[32..].first_chunk().expect("four bytes")),
            answered: u32::from_ne_bytes(*packet[36..].first_chunk().expect("four bytes")),
            packet: packet.to_vec(),
        }
    }
}

/// Whether the step leaves a packet to software, and software has a use for it.
fn is_passed(outcome: &Outcome, header: &Header) -> bool {
    let kind = Kind::from_byte(header.kind);
    let is_of_use = matches!(
        (outcome.reason(), kind),
        (PacketReason::Off, Some(Kind::Request | Kind::Forward))
            | (PacketReason::Malformed, Some(Kind::Request))
    );
    outcome.has(ACTION_TO_SOFTWARE) && is_of_use
}

fn header_of(datagram: &[u8]) -> Header {
    Header::decode(datagram.first_chunk::<HEADER_BYTES>().expect("a header"))
}

/// What is in a frame that left, which must be sound and from the plane to the test, or to `all`; `None` if
/// it is no datagram.
fn read_frame(frame: &[u8], checksum: Checksum, all: Option<IpAddr>) -> Option<Datagram> {
    let (envelope, bytes) = unframed(frame, checksum)?.expect("a sound frame");
    let (to, port) = (envelope.to, envelope.from.port());
    let to_mac = match to.ip() {
        // RFC 1112, section 6.4
        IpAddr::V4(ip) if all == Some(to.ip()) => {
            let [_, second, third, fourth] = ip.octets();
            [1, 0, 0x5e, second & 0x7f, third, fourth]
        }
        IpAddr::V4(_) | IpAddr::V6(_) => test_mac(0),
    };
    assert_eq!((envelope.from_mac, envelope.to_mac), (plane_mac(0), to_mac));
    let bytes = bytes.to_vec();
    Some(Datagram { port, to, bytes })
}

/// What the host sends has an order for each of its sockets.
fn sort(sent: &mut [Datagram]) {
    sent.sort_by_key(|sent| sent.port);
}

fn list(sent: &[Datagram]) -> String {
    let lines = sent.iter().map(|Datagram { port, to, bytes }| {
        let header = bytes.first_chunk().filter(|_| *port == PORT);
        format!("{port} to {to}: {:?}", header.map(Header::decode))
    });
    lines.collect::<Vec<_>>().join("\n")
}

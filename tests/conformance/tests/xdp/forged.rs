//! Ten million frames that nobody may have sent: none moves anything, none is answered. Needs root.
use crate::loaded::{Loaded, XDP_DROP, XDP_PASS};
use crate::twin::frame_of;
use crate::veth::{Namespaces, OUTSIDE, PORT, Way, counted, grant, peers_at, port};
use crate::{Driver, How};
use quorumwire_conformance_tests::cluster::{GROUP, START, TERM, keys};
use quorumwire_conformance_tests::faults::Dice;
use quorumwire_conformance_tests::forge::{header, sign, signed};
use quorumwire_conformance_tests::frames::{ETHERNET_BYTES, Home, found};
use quorumwire_fastpath::Options;
use quorumwire_interfaces::{Command, DataPlane, EntryKind, Index, PlaneEvent};
use quorumwire_plane_xdp::{XdpPlane, let_pass};
use quorumwire_wire::packet::{HEADER_BYTES, Header, Kind, ORIGIN_BYTES, TAG_OFFSET};
use std::net::SocketAddr;

/// Frames, over all roles and both families.
const FRAMES: usize = 10_000_000;
/// Small, since all of it is compared after each frame.
const RING_SLOTS: u32 = 8;

/// What is done to a real packet.
#[derive(Clone, Copy, Debug)]
enum Forgery {
    /// Another tag.
    Tag,
    /// Bits of the packet changed.
    Bits,
    /// Bits anywhere behind the Ethernet addresses changed.
    FrameBits,
    /// Signed with a key that is not the one for its kind and epoch.
    Key,
    /// Cut anywhere.
    Cut,
    /// Lengths that do not fit.
    Lengths,
    /// Headers that only software reads: options, pieces, tags, another protocol, another's address.
    Headers,
    /// A client's, rightly signed, but the checksum is another command's.
    Checksum,
    /// Rightly signed, but of another term, or another group, or by somebody else.
    Elsewhere,
    /// Longer than any packet.
    Jumbo,
    /// Shorter than any packet.
    Short,
    /// Anything.
    Noise,
}

const ALL: [Forgery; 12] = [
    Forgery::Tag,
    Forgery::Bits,
    Forgery::FrameBits,
    Forgery::Key,
    Forgery::Cut,
    Forgery::Lengths,
    Forgery::Headers,
    Forgery::Checksum,
    Forgery::Elsewhere,
    Forgery::Jumbo,
    Forgery::Short,
    Forgery::Noise,
];

/// Why they are to be refused; each must be found.
const REASONS: [&str; 9] = [
    "foreign",
    "version",
    "malformed",
    "tag",
    "checksum",
    "group",
    "stranger",
    "term_old",
    "term_new",
];

/// A plane that would take the templates.
struct Target {
    plane: XdpPlane,
    loaded: Loaded,
    way: Way,
    own: SocketAddr,
    /// Whole packets, rightly signed, with who sends them.
    templates: Vec<(SocketAddr, Vec<u8>)>,
    _namespaces: Namespaces,
}

impl Target {
    fn new(way: Way, leads: bool) -> Self {
        let namespaces = Namespaces::joined(1, way);
        // First, so that the plane finds a driver that can do all.
        let_pass(&port(0)).expect("root, and a kernel for it");
        namespaces.enter_plane(0);
        let own = SocketAddr::new(way.plane_ip(0), PORT);
        let options = Options {
            group: GROUP,
            ring_slots: RING_SLOTS,
            window: RING_SLOTS,
        };
        let plane = XdpPlane::attach(own, None, options, Driver::ATTACHMENT);
        let mut plane = plane.expect("root, and a kernel for it");
        let loaded = Loaded::at("eth0", RING_SLOTS);
        plane.set_keys(&keys());
        let begins = grant(
            u8::from(!leads),
            peers_at(&[0, 1, 2].map(|slot| way.test_ip(0, slot))),
            2,
        );
        plane.engage(&begins).expect("a sound grant");
        let mut target = Self {
            plane,
            loaded,
            way,
            own,
            templates: Vec::new(),
            _namespaces: namespaces,
        };
        target.warm_up(leads);
        target.templates = target.templates_of(leads);
        target
    }

    /// Some entries and a heartbeat, so that there is something to be answered, sent again and counted.
    fn warm_up(&mut self, leads: bool) {
        if leads {
            let command = Command {
                kind: EntryKind::Command,
                session: 0,
                sequence: 0,
                payload: b"real",
            };
            let taken = self.plane.submit(&[command; 3]).expect("room");
            assert_eq!(taken, (Index(START + 1), 3));
            self.plane.heartbeat(1).expect("it leads");
        } else {
            for index in START + 1..=START + 3 {
                let previous_term = if index == START + 1 { 3 } else { TERM.0 };
                let append = Header {
                    previous_term,
                    ..header(Kind::Append, 0, index)
                };
                let frame = self.frame(
                    self.replica(0),
                    &signed(&append, b"real", keys().cluster.key),
                );
                self.loaded.run(&frame);
            }
        }
        assert_eq!(self.loaded.registers().last_index, START + 3);
        self.plane.poll(64, &mut |_: PlaneEvent<'_>| {});
    }

    fn replica(&self, slot: usize) -> SocketAddr {
        (self.way.test_ip(0, slot), PORT).into()
    }

    fn templates_of(&self, leads: bool) -> Vec<(SocketAddr, Vec<u8>)> {
        let (between, clients) = (keys().cluster.key, keys().clients.key);
        let last = START + 3;
        let in_round = |header| Header {
            sequence: 1,
            ..header
        };
        let client: SocketAddr = (self.way.test_ip(0, OUTSIDE), 9000).into();
        let request = Header {
            term: 0,
            previous_term: 0,
            session: 5,
            ..header(Kind::Request, 255, 0)
        };
        let request = |payload: &[u8]| (client, signed(&request, payload, clients));
        if !leads {
            let append = |index, payload: &[u8]| {
                let append = header(Kind::Append, 0, index);
                (self.replica(0), signed(&append, payload, between))
            };
            let heartbeat = in_round(header(Kind::Heartbeat, 0, last));
            return vec![
                append(last + 1, b"the next one"),
                append(last, b"again"),
                append(last + 3, b"too early"),
                (self.replica(0), signed(&heartbeat, &[], between)),
                request(b"to be sent on"),
            ];
        }
        let says = |kind, index, sequence| {
            let said = Header {
                sequence,
                ..header(kind, 1, index)
            };
            (self.replica(1), signed(&said, &[], between))
        };
        let command = b"sent on";
        let payload = [&[0; ORIGIN_BYTES][..], command].concat();
        let mut forward = signed(&header(Kind::Forward, 2, 0), &payload, between);
        let checksum = Header::decode(
            signed(&header(Kind::Append, 0, 1), command, between)
                .first_chunk()
                .expect("a header"),
        )
        .payload_crc32c;
        forward[12..16].copy_from_slice(&checksum.to_be_bytes());
        sign(&mut forward, between);
        vec![
            request(b"a command"),
            request(&[7; 200]),
            (self.replica(2), forward),
            says(Kind::AppendOk, last, 0),
            says(Kind::HeartbeatOk, last, 1),
            says(Kind::Retransmit, last, 0),
        ]
    }

    fn frame(&self, from: SocketAddr, datagram: &[u8]) -> Vec<u8> {
        frame_of(from, self.own, datagram)
    }

    /// A frame forged from a template.
    fn forge(&self, forgery: Forgery, dice: &mut Dice) -> Vec<u8> {
        loop {
            if let Some(frame) = self.try_to_forge(forgery, dice) {
                return frame;
            }
        }
    }

    /// `None` if that cannot be, or it came out as the same packet in another envelope.
    fn try_to_forge(&self, forgery: Forgery, dice: &mut Dice) -> Option<Vec<u8>> {
        let (from, real) = &self.templates[dice.below(self.templates.len())];
        let mut packet = real.clone();
        match forgery {
            Forgery::Tag => {
                for byte in &mut packet[TAG_OFFSET..HEADER_BYTES] {
                    *byte = random_byte(dice);
                }
            }
            Forgery::Bits => flip(&mut packet, 0, dice),
            Forgery::Key => sign(&mut packet, wrong_key(real, dice)),
            Forgery::Checksum => {
                let kind = Kind::from_byte(real[3]);
                if !matches!(kind, Some(Kind::Request | Kind::Forward)) {
                    return None;
                }
                let at = 12 + dice.below(4);
                packet[at] ^= 1 + random_byte(dice) % 255;
                sign(&mut packet, right_key(real));
            }
            Forgery::Elsewhere => {
                let mut header = Header::decode(packet.first_chunk().expect("a header"));
                let is_request = header.kind == Kind::Request as u8;
                match dice.below(4) {
                    0 if !is_request => header.term -= 1 + dice.below(4) as u64,
                    1 if !is_request => header.term += 1 + dice.below(1000) as u64,
                    2 => header.group += 1 + u32::from(random_byte(dice)),
                    _ => header.sender = 3 + random_byte(dice) % 252,
                }
                packet[..HEADER_BYTES].copy_from_slice(&header.encode());
                sign(&mut packet, right_key(real));
            }
            Forgery::Jumbo => packet.resize(packet.len() + 1 + dice.below(2000), 7),
            Forgery::Short => packet.truncate(dice.below(HEADER_BYTES)),
            Forgery::Noise => {
                let bytes = dice.below(300);
                packet = (0..bytes).map(|_| random_byte(dice)).collect();
            }
            Forgery::FrameBits | Forgery::Cut | Forgery::Lengths | Forgery::Headers => {}
        }
        let mut frame = self.frame(*from, &packet);
        let ip = ETHERNET_BYTES;
        let udp = frame.len() - packet.len() - 8;
        match forgery {
            Forgery::FrameBits => flip(&mut frame, 12, dice),
            Forgery::Cut => {
                frame.truncate(ETHERNET_BYTES + dice.below(frame.len() - ETHERNET_BYTES));
            }
            Forgery::Lengths => {
                let length_in_ip = if self.way == Way::V4 { 2 } else { 4 };
                let length_in_packet = udp + 8 + 6;
                let at = [ip + length_in_ip, udp + 4, length_in_packet][dice.below(3)];
                frame[at + 1] ^= 1 + random_byte(dice) % 255;
                frame[at] ^= random_byte(dice) & random_byte(dice);
            }
            Forgery::Headers => self.change_headers(&mut frame, dice),
            Forgery::Tag
            | Forgery::Bits
            | Forgery::Key
            | Forgery::Checksum
            | Forgery::Elsewhere
            | Forgery::Jumbo
            | Forgery::Short
            | Forgery::Noise => {}
        }
        let home = Home {
            ip: self.own.ip(),
            all: None,
            ports: &[PORT],
        };
        let same = found(&frame, &home).is_some_and(|found| found.datagram == real);
        (!same).then_some(frame)
    }

    fn change_headers(&self, frame: &mut Vec<u8>, dice: &mut Dice) {
        let ip = ETHERNET_BYTES;
        let (protocol, to) = match self.way {
            Way::V4 => (ip + 9, ip + 16),
            Way::V6 => (ip + 6, ip + 24),
        };
        match dice.below(6) {
            // A tag of a VLAN, or of a priority only.
            0 => {
                let tag = [0x81, 0, random_byte(dice), random_byte(dice)];
                frame.splice(12..12, tag);
            }
            1 => frame[12] ^= 1 + random_byte(dice) % 255,
            2 => frame[protocol] ^= 1 + random_byte(dice) % 255,
            3 => frame[to + 3] ^= 1 + random_byte(dice) % 255,
            4 if self.way == Way::V4 => {
                // Options, four bytes of nothing.
                frame[ip] = 0x46;
                frame.splice(ip + 20..ip + 20, [1; 4]);
                frame[ip + 3] = frame[ip + 3].wrapping_add(4);
            }
            5 if self.way == Way::V4 => {
                // More pieces follow, or came before.
                let pieces = [[0x20, 0], [0, 1], [0x20, 3]][dice.below(3)];
                frame[ip + 6..ip + 8].copy_from_slice(&pieces);
            }
            _ => frame[ip] ^= 0x10 << dice.below(4),
        }
    }
}

fn random_byte(dice: &mut Dice) -> u8 {
    dice.below(256).to_le_bytes()[0]
}

fn flip(bytes: &mut [u8], from: usize, dice: &mut Dice) {
    for _ in 0..=dice.below(3) {
        let at = from + dice.below(bytes.len() - from);
        bytes[at] ^= 1 << dice.below(8);
    }
}

fn right_key(packet: &[u8]) -> [u8; 16] {
    if packet[3] == Kind::Request as u8 {
        keys().clients.key
    } else {
        keys().cluster.key
    }
}

fn wrong_key(packet: &[u8], dice: &mut Dice) -> [u8; 16] {
    match dice.below(3) {
        0 if right_key(packet) == keys().cluster.key => keys().clients.key,
        0 => keys().cluster.key,
        1 => [0; 16],
        // Few, since it takes long to make one ready.
        _ => [random_byte(dice) | 0xfc; 16],
    }
}

#[test]
fn nothing_forged_is_taken_or_answered_by_a_leader() {
    nothing_is_taken_or_answered(Way::V4, true, FRAMES / 10 * 4);
}

#[test]
fn nothing_forged_is_taken_or_answered_by_a_follower() {
    nothing_is_taken_or_answered(Way::V4, false, FRAMES / 10 * 4);
}

#[test]
fn nothing_forged_is_taken_or_answered_by_a_leader_over_ipv6() {
    nothing_is_taken_or_answered(Way::V6, true, FRAMES / 10);
}

#[test]
fn nothing_forged_is_taken_or_answered_by_a_follower_over_ipv6() {
    nothing_is_taken_or_answered(Way::V6, false, FRAMES / 10);
}

/// Of so many frames.
pub fn nothing_is_taken_or_answered(way: Way, leads: bool, frames: usize) {
    let mut dice = Dice::new();
    let mut tried = [0_usize; ALL.len()];
    let mut target = Target::new(way, leads);
    let before = target.loaded.state();
    let mut passed = 0_usize;
    for number in 0..frames {
        let place = number % ALL.len();
        let frame = target.forge(ALL[place], &mut dice);
        let (verdict, made) = target.loaded.run(&frame);
        let silent = verdict == XDP_DROP || (verdict == XDP_PASS && made == frame);
        assert!(
            silent,
            "{:?}: verdict {verdict} on {frame:02x?}",
            ALL[place]
        );
        passed += usize::from(verdict == XDP_PASS);
        assert!(
            target.loaded.is_in(&before),
            "{:?} moved: {frame:02x?}",
            ALL[place]
        );
        tried[place] += 1;
    }
    println!("{passed} passed up, of {frames}");
    for reason in REASONS {
        let count = counted(&target.plane, reason);
        println!("{count:9} {reason}");
        assert!(count > 0, "never refused: {reason}");
    }
    for (forgery, count) in ALL.iter().zip(tried) {
        println!("{count:9} {forgery:?}");
        assert!(count > 0, "never tried: {forgery:?}");
    }
    // What was forged would have been taken.
    for (from, packet) in &target.templates {
        let before = target.loaded.state();
        let frame = target.frame(*from, packet);
        let (verdict, _) = target.loaded.run(&frame);
        let taken = verdict != XDP_PASS && !target.loaded.is_in(&before) || verdict > XDP_PASS;
        assert!(taken, "verdict {verdict} on the real {packet:02x?}");
    }
}

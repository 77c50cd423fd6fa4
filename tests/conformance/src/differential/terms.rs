//! What happens in a term: a cluster of which one member is the twin, clients, and whoever sends anything.
use super::{
    CLIENTS, Came, Comes, Datagram, FRAME_BYTES_MAX, MEMCACHED, OUTSIDE, Out, PORT, Run, Twin,
};
use crate::cluster::GROUP;
use crate::faults::Dice;
use crate::forge::{checked, sign};
use crate::frames::check_left_to_device;
use quorumwire_fastpath::{ClientPackets, Engine, Request, endpoint_at};
use quorumwire_interfaces::{
    Command, EntryKind, Grant, Index, PLANE_REPLICAS_MAX, PlaneEvent, PlaneKeyPair, PlaneKeys,
    PlanePeer, ReplicaId, Term,
};
use quorumwire_wire::packet::{
    FLAG_EPOCH, HEADER_BYTES, Header, Kind, PAYLOAD_BYTES_MAX, Registers,
};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Things that happen in one term, at most.
const TURNS_MAX: usize = 1500;

/// A cluster of which one member is the twin.
struct Sim<'a, T> {
    twin: &'a mut T,
    dice: &'a mut Dice,
    memcached: bool,
    me: usize,
    leader: usize,
    held: bool,
    /// The others, by slot; the twin's place is not used.
    others: Vec<Engine>,
    /// What has left and not come: to whom, from whom, what.
    on_the_way: VecDeque<(usize, SocketAddr, Vec<u8>)>,
    /// What the twin got in former terms.
    old: &'a mut Vec<(SocketAddr, Vec<u8>)>,
    came: &'a mut Came,
    round: u64,
    sequence: u64,
    frames: u64,
}

fn keys(epoch: u64, next_is_known: bool) -> PlaneKeys {
    let key = |kind: u8, epoch: u64| [kind ^ epoch.to_le_bytes()[0]; 16];
    let pair = |kind| PlaneKeyPair {
        epoch,
        key: key(kind, epoch),
        other: if next_is_known {
            Some(key(kind, epoch + 1))
        } else {
            epoch.checked_sub(1).map(|before| key(kind, before))
        },
    };
    PlaneKeys {
        cluster: pair(0x11),
        clients: pair(0x77),
    }
}

/// The key that a packet's kind and epoch name.
fn key_of(header: &Header, keys: &PlaneKeys) -> [u8; 16] {
    let kind = Kind::from_byte(header.kind);
    let pair = match kind {
        Some(Kind::Request | Kind::Answer) => &keys.clients,
        _ => &keys.cluster,
    };
    let epoch = u64::from(header.flags & FLAG_EPOCH);
    match pair.other {
        Some(other) if pair.epoch % 2 != epoch => other,
        _ => pair.key,
    }
}

impl<T: Twin> Sim<'_, T> {
    fn address(&self, slot: usize) -> SocketAddr {
        (self.twin.ip_of(slot), PORT).into()
    }

    fn client(&mut self) -> SocketAddr {
        let port = CLIENTS[self.dice.below(CLIENTS.len())];
        (self.twin.ip_of(OUTSIDE), port).into()
    }

    /// Puts on the way what a member has sent; what goes to clients ends here, and so does what goes to
    /// members of former terms, whose packets come again.
    fn send(&mut self, from: usize, sent: Vec<Datagram>) {
        let from = self.address(from);
        for Datagram { to, bytes, .. } in sent {
            let slot = (0..self.others.len()).find(|slot| self.address(*slot) == to);
            if let Some(slot) = slot {
                self.on_the_way.push_back((slot, from, bytes));
            }
        }
    }

    fn comes(&mut self) -> Comes {
        if self.dice.below(2) == 0 {
            Comes::Live
        } else {
            Comes::Tried
        }
    }

    fn feed(&mut self, from: SocketAddr, bytes: &[u8]) {
        let comes = self.comes();
        let to = match self.twin.multicast() {
            Some(all) if self.dice.below(2) == 0 => (all, PORT).into(),
            _ => self.twin.own(),
        };
        self.came.note(from, bytes);
        let frame = self.twin.frame(from, to, bytes);
        let sent = self.twin.receive(&frame, comes);
        self.frames += 1;
        if self.dice.below(64) == 0 {
            self.old.push((from, bytes.to_vec()));
        }
        self.send(self.me, sent);
    }

    fn arrive(&mut self, slot: usize, from: SocketAddr, bytes: &[u8]) {
        if slot == self.me {
            return self.feed(from, bytes);
        }
        let mut out = Out::default();
        self.others[slot].receive(from, bytes, &mut out, &mut |_| {});
        self.send(slot, out.0);
    }

    /// Something on the way arrives, mostly in order; now and then it is lost, repeated or late.
    fn deliver(&mut self) {
        let waiting = self.on_the_way.len();
        if waiting == 0 {
            return;
        }
        let place = match self.dice.below(12) {
            0 => self.dice.below(waiting),
            _ => 0,
        };
        let (slot, from, bytes) = self.on_the_way.remove(place).expect("it is there");
        match self.dice.below(16) {
            0 => {}
            1 => {
                self.arrive(slot, from, &bytes);
                self.on_the_way.push_back((slot, from, bytes));
            }
            _ => self.arrive(slot, from, &bytes),
        }
    }

    fn payload(&mut self) -> Vec<u8> {
        let bytes = match self.dice.below(8) {
            0 => self.dice.below(PAYLOAD_BYTES_MAX + 1),
            1 => PAYLOAD_BYTES_MAX - self.dice.below(40),
            _ => self.dice.below(40),
        };
        let byte = self.dice.below(256);
        (0..bytes)
            .map(|place| (place * 31 + byte).to_le_bytes()[0])
            .collect()
    }

    /// A client asks somebody.
    fn ask(&mut self, keys: &PlaneKeys, slot: usize) {
        self.sequence += 1;
        let payload = self.payload();
        let request = Request {
            group: GROUP,
            session: self.dice.below(3) as u64,
            sequence: self.sequence,
            blind: self.dice.below(4) != 0,
            payload: &payload,
        };
        let asking = ClientPackets::new(keys);
        let datagram = match self.dice.below(8) {
            0 => asking.piece(&request, 1, 2),
            _ => asking.request(&request),
        };
        if let Some(datagram) = datagram {
            let client = self.client();
            self.arrive(slot, client, &datagram);
        }
    }

    /// A memcached client's datagram to the twin.
    fn memcached(&mut self) -> Vec<u8> {
        let request = u16::try_from(self.dice.below(1 << 16)).expect("just so many");
        let frame = [request, 0, 1, 0].map(u16::to_be_bytes).concat();
        let key = self.key();
        let body = match self.dice.below(8) {
            0..=2 => [b"get ", &key[..], b"\r\n"].concat(),
            3 => self.payload(),
            kind => {
                let value = self.payload();
                let lifetime = u8::from(self.dice.below(8) == 0);
                let rest = if kind == 4 { " noreply" } else { "" };
                let line = format!(" {request} {lifetime} {}{rest}\r\n", value.len());
                [b"set ", &key[..], line.as_bytes(), &value, b"\r\n"].concat()
            }
        };
        let mut bytes = [frame, body].concat();
        if self.dice.below(10) == 0 {
            let at = self.dice.below(bytes.len());
            bytes[at] ^= 1 << self.dice.below(8);
        }
        bytes
    }

    fn key(&mut self) -> Vec<u8> {
        match self.dice.below(8) {
            0 => vec![b'k'; 200 + self.dice.below(52)],
            kind => format!("key-{}", kind + 8 * self.dice.below(2)).into_bytes(),
        }
    }

    /// A memcached client asks the twin; maybe with a checksum that a device was to make, with none, or with
    /// a wrong one.
    fn ask_as_memcached(&mut self) {
        let datagram = self.memcached();
        let (from, to) = (
            self.client(),
            SocketAddr::new(self.twin.own().ip(), MEMCACHED),
        );
        let mut frame = self.twin.frame(from, to, &datagram);
        let udp_bytes = datagram.len() + 8;
        let check = frame.len() - datagram.len() - 2;
        let comes = match self.dice.below(12) {
            0..=5 => self.comes(),
            6 => {
                frame[check..check + 2].fill(0);
                Comes::Tried
            }
            7 => {
                let left = check_left_to_device(from.ip(), to.ip(), udp_bytes);
                frame[check..check + 2].copy_from_slice(&left);
                Comes::Tried
            }
            8 => {
                frame[check + self.dice.below(2)] ^= 1 << self.dice.below(8);
                Comes::Tried
            }
            9 => {
                let at = check + 2 + self.dice.below(datagram.len());
                frame[at] ^= 1 << self.dice.below(8);
                Comes::Tried
            }
            _ => Comes::Tried,
        };
        let sent = self.twin.receive(&frame, comes);
        self.frames += 1;
        self.send(self.me, sent);
    }

    /// What the twin's host allows its program to do for memcached clients, and what it tells it.
    fn serve_memcached(&mut self) {
        if !self.memcached {
            return;
        }
        let commit = self.twin.shown().commit_index.0;
        match self.dice.below(3) {
            0 => {
                let applied = match self.dice.below(4) {
                    0 => None,
                    1 => Some(commit.saturating_sub(1)),
                    2 => Some(commit),
                    _ => Some(u64::MAX),
                };
                let sets = self.dice.below(4) != 0;
                self.twin.allow(sets, applied);
            }
            1 => {
                let (key, bytes) = (self.key(), self.dice.below(1500));
                let text = vec![b'a'; 1 + bytes * self.dice.below(2)];
                let key = &key[..key.len().min(250)];
                self.twin.keep(key, Some(&text));
            }
            _ => {
                let key = self.key();
                self.twin.keep(&key[..key.len().min(250)], None);
            }
        }
    }

    /// The twin's host does something.
    fn host(&mut self) {
        let shown = self.twin.shown();
        let sent = match self.dice.below(6) {
            0 | 1 => {
                self.twin.poll();
                Vec::new()
            }
            2 => {
                let payload = self.payload();
                let kinds = [
                    EntryKind::Command,
                    EntryKind::Fragment,
                    EntryKind::Tick,
                    EntryKind::Bundle,
                ];
                let kind = kinds[self.dice.below(kinds.len())];
                let session = self.sequence;
                let command = Command {
                    kind,
                    session,
                    sequence: 5,
                    payload: &payload,
                };
                let count = 1 + self.dice.below(4);
                self.twin.submit(&vec![command; count])
            }
            3 => {
                self.round += self.dice.below(2) as u64;
                self.twin.heartbeat(self.round)
            }
            4 if self.held => {
                let behind = self.dice.below(3) as u64;
                self.twin
                    .persisted(Index(shown.last_index.0.saturating_sub(behind)))
            }
            4 if self.dice.below(20) == 0 => {
                let upto = shown.last_index.0.saturating_add(self.dice.below(2) as u64);
                self.twin.persisted(Index(upto))
            }
            _ => {
                // Taken before, so that the host answers what is to be answered.
                self.twin.poll();
                let behind = self.dice.below(3) as u64;
                self.twin
                    .release(Index(shown.commit_index.0.saturating_sub(behind)));
                Vec::new()
            }
        };
        self.send(self.me, sent);
    }

    /// Another member's host does something.
    fn other_host(&mut self, slot: usize) {
        let mut out = Out::default();
        let native = &mut self.others[slot];
        let last = native.indexes().0;
        // Whether it may do so is its own to say.
        match self.dice.below(5) {
            0 => {
                self.round += 1;
                let _ = native.heartbeat(self.round, &mut out);
            }
            1 => {
                let payload = [7; 20];
                let kind = EntryKind::Command;
                let command = Command {
                    kind,
                    session: 0,
                    sequence: 0,
                    payload: &payload,
                };
                let _ = native.submit(&vec![command; 1 + self.dice.below(6)], &mut out);
            }
            2 => {
                let _ = native.persisted(last, &mut out);
            }
            _ => {
                native.take(&mut |_: PlaneEvent<'_>| {});
                let _ = native.release(last);
            }
        }
        self.send(slot, out.0);
    }

    /// Something that no member sends now: a packet changed and maybe signed again, one of a former term,
    /// anything at all.
    fn nonsense(&mut self, keys: &PlaneKeys) {
        let waiting = self.on_the_way.iter();
        let mut known: Vec<_> = waiting
            .map(|(_, from, bytes)| (*from, bytes.clone()))
            .collect();
        known.extend(self.old.iter().rev().take(50).cloned());
        let Some((from, mut bytes)) = self.pick(&known) else {
            return;
        };
        match self.dice.below(8) {
            0 => {}
            _ if bytes.is_empty() => {}
            1 => {
                let at = self.dice.below(bytes.len());
                bytes[at] ^= 1 << self.dice.below(8);
            }
            2 => bytes.truncate(self.dice.below(bytes.len())),
            3 => bytes = self.payload(),
            _ => self.resign(&mut bytes, keys),
        }
        let from = match self.dice.below(8) {
            0 => self.client(),
            _ => from,
        };
        self.feed(from, &bytes);
    }

    fn pick<One: Clone>(&mut self, all: &[One]) -> Option<One> {
        (!all.is_empty()).then(|| all[self.dice.below(all.len())].clone())
    }

    fn near(&mut self, number: u64) -> u64 {
        match self.dice.below(8) {
            0 => u64::MAX - self.dice.below(3) as u64,
            1 => self.dice.below(3) as u64,
            2 => number.wrapping_sub(1 + self.dice.below(70) as u64),
            3 => number.wrapping_add(2),
            4 => number.wrapping_sub(1),
            5 => number,
            _ => number.wrapping_add(1),
        }
    }

    /// Changes a field or two, and signs it as its kind demands.
    fn resign(&mut self, bytes: &mut Vec<u8>, keys: &PlaneKeys) {
        let registers = self.twin.registers();
        let Some(head) = bytes.first_chunk::<HEADER_BYTES>() else {
            return;
        };
        let mut header = Header::decode(head);
        if header.term != 0 && self.dice.below(8) != 0 {
            header.term = registers.term;
        }
        if header.kind == Kind::Append as u8 && self.dice.below(2) == 0 {
            // Often the next entry, so that its history and its checksum are looked at.
            header.index = registers.last_index.wrapping_add(1);
            header.previous_term = self.near(registers.last_term);
        }
        for _ in 0..=self.dice.below(2) {
            self.change(&mut header, &registers, bytes);
        }
        let payload = bytes.split_off(HEADER_BYTES);
        if self.dice.below(8) != 0 {
            let command = match Kind::from_byte(header.kind) {
                Some(Kind::Forward) => payload.get(18..).unwrap_or_default(),
                _ => &payload,
            };
            header.payload_crc32c = checked(command);
        }
        header.tag = 0;
        *bytes = [&header.encode()[..], &payload].concat();
        if payload.len() <= PAYLOAD_BYTES_MAX {
            sign(bytes, key_of(&header, keys));
        }
    }

    fn change(&mut self, header: &mut Header, registers: &Registers, bytes: &mut Vec<u8>) {
        match self.dice.below(14) {
            0 => header.term = self.near(registers.term),
            1..=3 => header.index = self.near(registers.last_index),
            4 => header.previous_term = self.near(registers.last_term),
            5 => header.commit_index = self.near(registers.last_index),
            6 => header.sequence = self.near(registers.round),
            7 => header.sender = [0, 1, 2, 6, 7, 255][self.dice.below(6)],
            8 => header.sender = registers.leader,
            9 => header.kind = self.dice.below(10).to_le_bytes()[0],
            10 => header.flags ^= 1 << self.dice.below(6),
            11 => header.group ^= 1,
            12 => {
                let payload = self.payload();
                header.payload_bytes = u16::try_from(payload.len()).expect("short");
                bytes.truncate(HEADER_BYTES);
                bytes.extend_from_slice(&payload);
            }
            _ => header.version ^= u8::from(self.dice.below(4) == 0),
        }
    }

    /// A frame that is changed around its packet, or has no packet for it.
    fn odd_frame(&mut self, keys: &PlaneKeys) {
        let from = self.client();
        let to = self.twin.own().ip();
        let (to, datagram) = match self.dice.below(3) {
            0 => (SocketAddr::new(to, MEMCACHED), self.memcached()),
            _ => (SocketAddr::new(to, PORT), self.odd_request(keys)),
        };
        let mut frame = self.twin.frame(from, to, &datagram);
        let headers = frame.len() - datagram.len();
        match self.dice.below(4) {
            // Ethernet's own padding, or more, up to the longest frame.
            0 => {
                let bytes = frame.len() + 1 + self.dice.below(600);
                frame.resize(frame.len().max(bytes.min(FRAME_BYTES_MAX)), 0xee);
            }
            1 => frame.truncate(14 + self.dice.below(frame.len() - 14)),
            _ => {
                // What says whom to answer stays: the tag does not cover it.
                let at = 12 + self.dice.below(headers - 12);
                frame[at] ^= 1 << self.dice.below(8);
            }
        }
        let sent = self.twin.receive(&frame, Comes::Tried);
        self.frames += 1;
        self.send(self.me, sent);
    }

    fn odd_request(&mut self, keys: &PlaneKeys) -> Vec<u8> {
        self.sequence += 1;
        let request = Request {
            group: GROUP,
            session: 1,
            sequence: self.sequence,
            blind: false,
            payload: b"in an odd frame",
        };
        ClientPackets::new(keys).request(&request).expect("short")
    }

    fn turn(&mut self, keys: &PlaneKeys) {
        let members = self.others.len();
        match self.dice.below(48) {
            0..=16 => self.deliver(),
            17..=23 => {
                let slot = self.dice.below(members);
                self.ask(keys, slot);
            }
            24..=26 => self.ask(keys, self.me),
            27..=29 => self.host(),
            30..=35 => {
                let slot = match self.dice.below(2) {
                    0 => self.leader,
                    _ => self.dice.below(members),
                };
                if slot != self.me {
                    self.other_host(slot);
                }
            }
            36 => self.odd_frame(keys),
            37..=41 => self.ask_as_memcached(),
            42 | 43 => self.serve_memcached(),
            _ => self.nonsense(keys),
        }
    }
}

/// One term: a cluster as the dice say. How many frames came to the twin.
pub(super) fn term<T: Twin>(
    run: &Run,
    number: u64,
    twin: &mut T,
    dice: &mut Dice,
    old: &mut Vec<(SocketAddr, Vec<u8>)>,
    came: &mut Came,
) -> u64 {
    let options = run.options();
    let replicas = 1 + dice.below(PLANE_REPLICAS_MAX);
    let me = dice.below(replicas);
    let leader = match dice.below(2) {
        0 => me,
        _ => dice.below(replicas),
    };
    let byte = |number: usize| u8::try_from(number).expect("a small number");
    let start = match dice.below(12) {
        0 => u64::MAX - 1 - dice.below(100) as u64,
        1 => 0,
        _ => 1000 * number + dice.below(500) as u64,
    };
    let mut keys_now = keys(2 * number, false);
    let held = dice.below(3) == 0;
    let peers = (0..replicas).map(|slot| PlanePeer {
        id: ReplicaId(u16::from(byte(slot))),
        endpoint: Some(endpoint_at((twin.ip_of(slot), PORT).into())),
    });
    let grant = Grant {
        group: GROUP,
        term: Term(number + 2),
        last_index: Index(start),
        last_term: Term(number + 1),
        commit_index: Index(start - start.min(dice.below(3) as u64)),
        me: byte(me),
        leader: byte(leader),
        peers: peers.collect(),
        quorum: byte(if dice.below(3) == 0 {
            replicas
        } else {
            replicas / 2 + 1
        }),
        held,
    };
    twin.set_keys(&keys_now);
    twin.engage(&grant);
    let mut others = Vec::new();
    for slot in 0..replicas {
        let mut native = Engine::new(options).expect("sound options");
        native.set_keys(&keys_now);
        let grant = Grant {
            me: byte(slot),
            ..grant.clone()
        };
        native.engage(&grant).expect("a sound grant");
        others.push(native);
    }
    let mut sim = Sim {
        twin,
        dice,
        memcached: run.memcached,
        me,
        leader,
        held,
        others,
        on_the_way: VecDeque::new(),
        old,
        came,
        round: 0,
        sequence: 0,
        frames: 0,
    };
    let turns = 100 + sim.dice.below(TURNS_MAX - 100);
    for turn in 0..turns {
        // The key of the next epoch is known, then used, then the old one goes.
        if turn == turns / 3 || turn == turns / 2 || turn == turns * 2 / 3 {
            keys_now = match turn {
                _ if turn == turns / 3 => keys(2 * number, true),
                _ if turn == turns / 2 => keys(2 * number + 1, false),
                _ => keys_now,
            };
            sim.twin.set_keys(&keys_now);
            for native in &mut sim.others {
                native.set_keys(&keys_now);
            }
        }
        sim.turn(&keys_now);
        if turn % 128 == 0 {
            sim.twin.compare_ring();
        }
    }
    sim.twin.disengage();
    // Off, it takes nothing, whatever it is.
    for _ in 0..turns / 20 {
        sim.turn(&keys_now);
    }
    sim.twin.poll();
    let excess = sim.old.len().saturating_sub(1000);
    sim.old.drain(..excess);
    sim.frames
}

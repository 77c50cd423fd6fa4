//! Connections between replicas: who dials whom, handshake, frames in and out. Knows no protocol
//! beyond the handshake; messages are handed up and taken down as they are.
use super::clock;
use super::dial::Dial;
use super::handshakes::TimeBudget;
use super::hellos::Hellos;
use super::outbox::Outbox;
use super::stream::Stream;
use crate::descriptors::{LOOKUP_DESCRIPTORS_MAX, Starvation};
use crate::foreign_text::printable;
use crate::tls::{PeerTls, TlsRefusal, TlsRefusals};
use bytes::{Buf, Bytes, BytesMut};
use mio::Registry;
use mio::event::Event;
use mio::net::TcpListener;
use quorumwire_control::{Now, Peer, Promise};
use quorumwire_group::{Peers, QUEUE_BYTES_MAX};
use quorumwire_interfaces::{Incarnation, ReplicaId, counters};
use quorumwire_wire::limits::MEMBERS_MAX;
use quorumwire_wire::peer::peer_message::Body;
use quorumwire_wire::prost::Message;
use quorumwire_wire::{FrameHeader, Goodbye, check_hello, encode_frame, peer};
use std::collections::BTreeMap;
use std::io::{self, Read, Write as _};
use std::net::IpAddr;
use std::time::Duration;

mod agreement;
mod dialing;
mod info;
mod logged;
mod proofs;
mod secrets;
mod strangers;

pub use agreement::{BEGINS_WITH, JOINS, SECRET_OF_EPOCH};
pub use info::PeerInfo;

/// Connections at once, those still in the handshake included; more are closed at once.
pub const LINKS_MAX: usize = 64;
/// Descriptors that all of this may need: one for each connection, the listener and one that is closed at
/// once, and those of lookups of the replicas' names.
pub const DESCRIPTORS_MAX: usize =
    LINKS_MAX + 2 + (MEMBERS_MAX + proofs::PROOFS_MAX) * LOOKUP_DESCRIPTORS_MAX;
/// Those of them that may be strangers from an address at which no replica is, and as many that come from
/// such an address: neither find room of the others, or of those that we dial.
const STRANGERS_MAX: usize = LINKS_MAX / 4;
/// Of each second, for accepting connections; what comes beyond it waits in the listener's queue.
const ACCEPT_TIME: Duration = Duration::from_millis(50);
/// Of each second, for handshakes of strangers from an address at which no replica is; who comes beyond it is
/// closed, or waits if it is here already.
const STRANGERS_TIME: Duration = Duration::from_millis(50);
/// Of each second, for handshakes of those from a replica's address.
const NEIGHBOURS_TIME: Duration = Duration::from_millis(150);
/// A connection that has not said hello by then is closed; TLS has its handshake within that time, too.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(2);
/// A dial that has not connected by then is given up.
const DIAL_TIMEOUT: Duration = Duration::from_millis(500);
/// A replica that has left out so many of its words hangs, or is cut off.
const QUIET_KEEPALIVES: u32 = 2;
/// A refused connection is shown to people for this long, and the log says it again after as long.
const REFUSAL_SHOWN: Duration = Duration::from_secs(30);
/// Bytes taken from one connection in one turn, so that none starves the others.
const READ_BYTES_PER_TURN: usize = 4 << 20;

/// What became of a connection.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are messages, which would only be allocated"
)]
pub enum LinkEvent {
    /// It stands: messages can be sent to this life of a replica, which promised this.
    Up(Peer, Promise),
    /// It is gone.
    Down(Peer),
    /// A message came in.
    Message {
        /// From whom.
        from: Peer,
        /// The message.
        message: peer::PeerMessage,
        /// What was attached.
        attachment: Bytes,
    },
    /// Answer to [`Links::prove`].
    Proved {
        /// Which replica was looked for.
        id: ReplicaId,
        /// Where.
        address: String,
        /// The life of it that is there, or what was found instead.
        outcome: Result<Peer, String>,
    },
}

counters! {
    /// Counted since the start.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct LinkCounters {
        /// Bytes received from other replicas
        pub bytes_in: "peer_bytes_in",
        /// Bytes sent to other replicas
        pub bytes_out: "peer_bytes_out",
        /// Messages received from other replicas
        pub messages_in: "peer_messages_in",
        /// Messages sent to other replicas
        pub messages_out: "peer_messages_out",
        /// Peer messages dropped because their receiver is not connected
        pub dropped_not_connected: "message_dropped_not_connected",
        /// Peer messages dropped because too many waited
        pub dropped_queue_full: "message_dropped_queue_full",
        /// Keys of fast terms not taken or not sent because the connection is not under TLS, where
        /// certificates name both sides
        pub dropped_not_certified: "message_dropped_not_certified",
        /// Peer connections closed because the handshake was refused
        pub closed_handshake_refused: "peer_connections_closed_handshake_refused",
        /// Peer connections closed because the handshake took too long
        pub closed_handshake_timeout: "peer_connections_closed_handshake_timeout",
        /// Peer connections closed because of bytes that make no sense
        pub closed_malformed: "peer_connections_closed_malformed",
        /// Peer connections closed because nothing was heard
        pub closed_silent: "peer_connections_closed_silent",
        /// Peer connections closed because there are too many
        pub closed_too_many: "peer_connections_closed_too_many",
        /// Peer connections closed at once because the time for handshakes of strangers was used up
        pub closed_no_time: "peer_connections_closed_no_time",
        /// Times a stranger's TLS handshake on the peer port had to wait for its share of the server's
        /// time
        pub handshakes_postponed: "peer_handshakes_postponed",
    }
    with {
        pub refused_by_tls: TlsRefusals,
    }
}

struct Link {
    stream: Stream,
    dialed: Option<ReplicaId>,
    /// It was dialed to see who is there, and says nothing.
    proves: bool,
    /// Where it came from.
    from: IpAddr,
    /// That is a replica's address, too.
    is_neighbour: bool,
    connected: bool,
    /// The other side is somebody who may know who we are: we have said hello.
    greeted: bool,
    /// Whom its certificate names.
    certified: Option<ReplicaId>,
    peer: Option<Peer>,
    /// The other side has gone on behind its hello: it takes us for who we are.
    let_in: bool,
    /// What it said of itself first.
    hello: Option<Box<peer::Hello>>,
    /// It has been a member, in this life: it takes part, though its hello may be from before the cluster
    /// began.
    was_member: bool,
    info: PeerInfo,
    input: BytesMut,
    output: Outbox,
    opened: Now,
    last_heard: Now,
    last_sent: Now,
    readable: bool,
    /// The other side has closed: read to the end, also past a short read.
    ending: bool,
    dirty: bool,
}

/// All connections to other replicas.
pub struct Links {
    hello: peer::Hello,
    listener: TcpListener,
    registry: Registry,
    /// How connections are secured; none: not at all.
    tls: Option<PeerTls>,
    first_token: usize,
    slots: Vec<Option<Link>>,
    /// Which slot is looked at first, so that none is always last.
    first_slot: usize,
    /// Time for strangers; see the constants of these names.
    accepts: TimeBudget,
    strangers: TimeBudget,
    neighbours: TimeBudget,
    /// More connections may wait to be accepted.
    accepts_more: bool,
    /// Those that could not be accepted for want of a descriptor.
    pub starvation: Starvation,
    up: BTreeMap<ReplicaId, usize>,
    dials: BTreeMap<ReplicaId, Dial>,
    proofs: BTreeMap<ReplicaId, proofs::Proof>,
    /// What came of those that are done.
    proved: Vec<LinkEvent>,
    /// The lives that are members.
    pub members: BTreeMap<ReplicaId, Incarnation>,
    /// Dial every address, also those of replicas that would dial us.
    pub dial_all: bool,
    keepalive: Duration,
    silence_max: Duration,
    scratch: Box<[u8]>,
    /// Who is not connected, and why, for people.
    refused: BTreeMap<(strangers::Who, String), strangers::StrangerRefusal>,
    /// Who does not belong here, and what others were told differently.
    agreement: agreement::Agreement,
    now: Now,
    pub counters: LinkCounters,
}

impl Links {
    pub fn new(
        hello: peer::Hello,
        listener: TcpListener,
        registry: Registry,
        first_token: usize,
        keepalive: Duration,
        silence_max: Duration,
    ) -> Self {
        Self {
            hello,
            listener,
            registry,
            tls: None,
            first_token,
            slots: (0..LINKS_MAX).map(|_| None).collect(),
            first_slot: 0,
            accepts: TimeBudget::new(ACCEPT_TIME),
            strangers: TimeBudget::new(STRANGERS_TIME),
            neighbours: TimeBudget::new(NEIGHBOURS_TIME),
            accepts_more: false,
            starvation: Starvation::default(),
            up: BTreeMap::new(),
            dials: BTreeMap::new(),
            proofs: BTreeMap::new(),
            proved: Vec::new(),
            members: BTreeMap::new(),
            dial_all: false,
            keepalive,
            silence_max,
            scratch: vec![0; 256 << 10].into_boxed_slice(),
            refused: BTreeMap::new(),
            agreement: agreement::Agreement::default(),
            now: Now::default(),
            counters: LinkCounters::default(),
        }
    }

    /// New connections are secured by this; those that stand go on. The replicas among them whose
    /// certificate would not be accepted any more.
    pub fn set_tls(&mut self, tls: PeerTls) -> Vec<ReplicaId> {
        let is_outdated = |link: &&Link| {
            let shown = link.stream.certificates();
            shown.is_some_and(|chain| tls.verify(chain).is_err())
        };
        let links = self.slots.iter().flatten().filter(is_outdated);
        let outdated = links.filter_map(|link| link.certified).collect();
        self.tls = Some(tls);
        outdated
    }

    /// What the connected replica `id` said about itself.
    pub fn info(&self, id: ReplicaId) -> Option<&PeerInfo> {
        let link = self.slots[*self.up.get(&id)?].as_ref()?;
        Some(&link.info)
    }

    /// Replicas refused, or that refused us, and why: for people.
    pub fn refusals(&self) -> impl Iterator<Item = String> {
        self.refused
            .keys()
            .map(|(who, why)| format!("{who}: {why}"))
            .chain(self.contradictions())
    }

    /// Whether this life of a replica is connected.
    pub fn is_up(&self, peer: Peer) -> bool {
        self.up
            .get(&peer.id)
            .and_then(|slot| self.slots[*slot].as_ref())
            .is_some_and(|link| link.peer == Some(peer))
    }

    /// Shows the group at this place how the connections stand, and what was said when they began.
    pub fn show(&self, peers: &mut Peers, hellos: &mut Hellos, place: usize) {
        peers.quiet_after = self.keepalive * QUIET_KEEPALIVES;
        peers.connected.retain(|id, _| self.up.contains_key(id));
        hellos.newest_members = self.newest_members();
        hellos.said.retain(|id, _| self.up.contains_key(id));
        for (id, slot) in &self.up {
            let Some(link) = &self.slots[*slot] else {
                continue;
            };
            let Some(peer) = link.peer else {
                continue;
            };
            let shown = peers.connected.entry(*id).or_default();
            shown.peer = peer;
            shown.queued_bytes = link.output.len();
            shown.heard = link.last_heard;
            let hello = hellos.said.entry(*id).or_default();
            hello.memcached_address.clone_from(&link.info.client);
            hello.native_address.clear();
            if let Some(native) = link.info.native.get(place) {
                hello.native_address.push_str(native);
            }
            hello.has_plane = link.info.plane(place).is_some();
        }
    }

    /// Queues a message. Dropped, and counted, if that life is not connected or its queue is full:
    /// the protocol above lives with loss.
    pub fn send(&mut self, to: Peer, message: &peer::PeerMessage, attachment: &[Bytes]) -> bool {
        let link = self
            .up
            .get(&to.id)
            .and_then(|slot| self.slots[*slot].as_mut());
        let Some(link) = link.filter(|link| link.peer == Some(to)) else {
            self.counters.dropped_not_connected += 1;
            return false;
        };
        if link.output.len() > QUEUE_BYTES_MAX {
            self.counters.dropped_queue_full += 1;
            return false;
        }
        self.counters.messages_out += 1;
        link.queue(message, attachment);
        true
    }

    /// Handles readiness of one of our tokens.
    pub fn ready(&mut self, event: &Event, now: Now) {
        let slot = event.token().0 - self.first_token;
        let Some(link) = self.slots.get_mut(slot).and_then(Option::as_mut) else {
            return; // closed earlier in this turn
        };
        link.readable = true;
        link.ending |= event.is_read_closed() || event.is_error();
        if event.is_writable() {
            link.dirty = true;
            if !link.connected {
                self.finish_dial(slot, now);
            }
        }
    }

    /// Whether something is left to do although no event will say so: to read, or to write what was queued
    /// since the last [`write`](Self::write).
    pub fn has_more(&self) -> bool {
        let may_read = |link: &Link| {
            let budget = self.budget_of(link);
            link.readable && budget.is_none_or(TimeBudget::will_be_left)
        };
        let mut links = self.slots.iter().flatten();
        (self.accepts_more && self.accepts.will_be_left())
            || links.any(|link| link.connected && (link.dirty || may_read(link)))
    }

    /// Reads what has arrived and hands it to `sink`.
    pub fn read(&mut self, now: Now, sink: &mut Vec<LinkEvent>) {
        self.first_slot = (self.first_slot + 1) % LINKS_MAX;
        for place in 0..LINKS_MAX {
            let slot = (self.first_slot + place) % LINKS_MAX;
            let Some(link) = self.slots[slot].as_ref() else {
                continue;
            };
            if !link.readable || !link.connected {
                continue;
            }
            let budget = self.budget_of(link);
            if budget.is_some_and(|budget| !budget.is_left()) {
                self.counters.handshakes_postponed += 1;
                continue;
            }
            let began = budget.map(|_| (link.is_neighbour, clock::worked()));
            if let Err(reason) = self.read_link(slot, now, sink) {
                self.close(slot, &reason, sink);
            }
            if let Some((is_neighbour, began)) = began {
                let took = clock::worked().saturating_sub(began);
                self.budget_for(is_neighbour).use_up(took);
            }
        }
    }

    /// Dials, keeps alive, and closes what is silent.
    pub fn housekeeping(&mut self, now: Now, sink: &mut Vec<LinkEvent>) {
        for slot in 0..self.slots.len() {
            let Some(link) = self.slots[slot].as_mut() else {
                continue;
            };
            let silent = now.0.saturating_sub(link.last_heard.0);
            let age = now.0.saturating_sub(link.opened.0);
            if !link.connected && age > DIAL_TIMEOUT {
                self.close(slot, "dial timed out", sink);
            } else if link.peer.is_none() && age > HANDSHAKE_TIMEOUT {
                self.counters.closed_handshake_timeout += 1;
                self.close(slot, "no hello in time", sink);
            } else if link.peer.is_some() && silent > self.silence_max {
                self.counters.closed_silent += 1;
                self.close(slot, "silent for too long", sink);
            } else if link.peer.is_some() && now.0.saturating_sub(link.last_sent.0) > self.keepalive
            {
                link.queue(&peer::PeerMessage::default(), &[]);
            }
        }
        self.now = now;
        self.refused
            .retain(|_, refusal| now.0.saturating_sub(refusal.at.0) < REFUSAL_SHOWN);
        self.compare_all(now);
        self.dial_due(now);
        self.tell_missing(now);
        self.go_on_proving(now, sink);
    }

    /// Writes what is queued.
    pub fn write(&mut self, now: Now, sink: &mut Vec<LinkEvent>) {
        for slot in 0..self.slots.len() {
            let Some(link) = self.slots[slot].as_mut() else {
                continue;
            };
            if !link.dirty || !link.connected {
                continue;
            }
            link.dirty = false;
            let before = link.output.len();
            let result = link.output.write_to(&mut link.stream);
            let result = result.and_then(|()| link.stream.flush());
            let written = before - link.output.len();
            if written > 0 {
                link.last_sent = now;
                self.counters.bytes_out += written as u64;
            }
            if let Err(error) = result {
                self.close(slot, &error.to_string(), sink);
            }
        }
    }

    /// Tells everybody that this process stops.
    pub fn goodbye(&mut self, now: Now) {
        for link in self
            .slots
            .iter_mut()
            .flatten()
            .filter(|link| link.peer.is_some())
        {
            link.say_goodbye(Goodbye::Stopping, String::new());
        }
        self.write(now, &mut Vec::new());
    }

    /// Says hello, once it is known that the other side may hear it.
    fn greet(&mut self, slot: usize) -> Result<(), String> {
        let Some(link) = self.slots[slot].as_mut() else {
            return Ok(());
        };
        if link.greeted || !link.connected || !link.stream.is_established() {
            return Ok(());
        }
        if let Some(tls) = &self.tls {
            match tls.replica_of(link.stream.certificates()) {
                Ok(id) if link.dialed.is_none_or(|dialed| dialed == id) => {
                    link.certified = Some(id);
                }
                Ok(_) => return Err(self.refuse_tls(slot, TlsRefusal::WrongName)),
                Err(refusal) => return Err(self.refuse_tls(slot, refusal)),
            }
        }
        link.greeted = true;
        if !link.proves {
            link.say_hello(&self.hello);
        }
        Ok(())
    }

    fn refuse_tls(&mut self, slot: usize, refusal: TlsRefusal) -> String {
        self.counters.refused_by_tls.count(refusal);
        self.note_refusal(slot, refusal.to_string());
        refusal.to_string()
    }

    fn read_link(
        &mut self,
        slot: usize,
        now: Now,
        sink: &mut Vec<LinkEvent>,
    ) -> Result<(), String> {
        let mut taken = 0;
        while taken < READ_BYTES_PER_TURN {
            let Some(link) = self.slots[slot].as_mut() else {
                return Ok(());
            };
            let result = link.stream.read(&mut self.scratch);
            self.greet(slot)?; // before anything that was read with the handshake's end is looked at
            let Some(link) = self.slots[slot].as_mut() else {
                return Ok(());
            };
            match result {
                Ok(0) => return Err("closed by the other side".to_owned()),
                Ok(count) => {
                    taken += count;
                    self.counters.bytes_in += count as u64;
                    link.last_heard = now;
                    link.input.extend_from_slice(&self.scratch[..count]);
                    let is_full = count == self.scratch.len();
                    link.readable = is_full || link.ending || link.stream.may_have_more();
                    self.take_frames(slot, sink)?;
                    if !self.slots[slot].as_ref().is_some_and(|link| link.readable) {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    link.readable = false;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let inner = error.get_ref().and_then(|it| it.downcast_ref());
                    if let Some(refusal) = inner.map(TlsRefusal::of) {
                        self.refuse_tls(slot, refusal);
                    }
                    return Err(error.to_string());
                }
            }
        }
        Ok(())
    }

    fn take_frames(&mut self, slot: usize, sink: &mut Vec<LinkEvent>) -> Result<(), String> {
        loop {
            let Some(link) = self.slots[slot].as_mut() else {
                return Ok(());
            };
            let malformed = |error: &dyn std::fmt::Display| error.to_string();
            let header = match FrameHeader::decode(&link.input) {
                Ok(Some(header)) => header,
                Ok(None) => return Ok(()),
                Err(error) => {
                    self.counters.closed_malformed += 1;
                    self.note_if_tls(slot);
                    return Err(malformed(&error));
                }
            };
            if link.input.len() < header.frame_bytes() {
                link.input.reserve(header.frame_bytes() - link.input.len());
                return Ok(());
            }
            // A copy: a short entry that the log keeps would else keep the buffer, and with it the long
            // answers that came before it.
            let frame = Bytes::copy_from_slice(&link.input[..header.frame_bytes()]);
            link.input.advance(header.frame_bytes());
            let (meta, attachment) = header.open(frame).map_err(|error| {
                self.counters.closed_malformed += 1;
                malformed(&error)
            })?;
            let message = peer::PeerMessage::decode(meta).map_err(|error| {
                self.counters.closed_malformed += 1;
                malformed(&error)
            })?;
            self.take_message(slot, message, attachment, sink)?;
        }
    }

    fn take_message(
        &mut self,
        slot: usize,
        message: peer::PeerMessage,
        attachment: Bytes,
        sink: &mut Vec<LinkEvent>,
    ) -> Result<(), String> {
        self.counters.messages_in += 1;
        let from = self.slots[slot].as_ref().and_then(|link| link.peer);
        match (message.body, from) {
            (Some(Body::Goodbye(goodbye)), _) => Err(self.take_goodbye(slot, &goodbye)),
            (Some(Body::Hello(hello)), None) => self.take_hello(slot, hello, sink),
            (Some(Body::Hello(hello)), Some(_)) => self.take_settings(slot, hello),
            (None, Some(_)) => {
                self.note_let_in(slot);
                Ok(())
            }
            (Some(Body::FastTermKey(_)), Some(_)) if !self.may_hold_secrets(slot) => Ok(()),
            (Some(body), Some(from)) => {
                self.note_let_in(slot);
                let message = peer::PeerMessage {
                    body: Some(body),
                    ..message
                };
                sink.push(LinkEvent::Message {
                    from,
                    message,
                    attachment,
                });
                Ok(())
            }
            (Some(_) | None, None) => {
                self.counters.closed_malformed += 1;
                Err("it did not begin with a hello".to_owned())
            }
        }
    }

    fn take_hello(
        &mut self,
        slot: usize,
        hello: peer::Hello,
        sink: &mut Vec<LinkEvent>,
    ) -> Result<(), String> {
        if self.slots[slot].as_ref().is_some_and(|link| link.proves) {
            return Err(self.take_proof(slot, &hello));
        }
        // Before anything is made of what it says: under TLS nobody can speak for another replica.
        let certified = self.slots[slot].as_ref().and_then(|link| link.certified);
        if let Some(named) = certified.filter(|named| u32::from(named.0) != hello.replica) {
            self.refuse_tls(slot, TlsRefusal::WrongName);
            let said = hello.replica;
            return Err(format!("replica {named} said that it is {said}"));
        }
        if let Err((reason, detail)) = check_hello(&self.hello, &hello) {
            if reason == Goodbye::OtherLineage
                && let Ok(id) = u16::try_from(hello.replica)
            {
                let said = (reason, detail.clone());
                self.note_foreign(slot, ReplicaId(id), said, Duration::ZERO);
            }
            return Err(self.refuse(slot, reason, detail));
        }
        let peer = Peer {
            id: ReplicaId(u16::try_from(hello.replica).expect("checked by check_hello")),
            incarnation: Incarnation(hello.incarnation),
        };
        let dialed = self.slots[slot].as_ref().and_then(|link| link.dialed);
        if let Some(wanted) = dialed.filter(|wanted| *wanted != peer.id) {
            let detail = format!("dialed replica {wanted}, reached replica {}", peer.id);
            return Err(self.refuse(slot, Goodbye::Malformed, detail));
        }
        if let Err((reason, detail)) = self.check_memory(&hello) {
            let named = agreement::lineage_of(&hello).is_known();
            let patience = self.patience_with(reason, Some(named));
            self.note_foreign(slot, peer.id, (reason, detail.clone()), patience);
            return Err(self.refuse(slot, reason, detail));
        }
        if let Some(older) = self.up.get(&peer.id).copied() {
            if self.is_impostor(older, peer) {
                let detail = format!("replica {} is connected and a member", peer.id);
                return Err(self.refuse(slot, Goodbye::IdInUse, detail));
            }
            if self.keeps_older(older, slot, peer) {
                return Err(self.refuse(slot, Goodbye::Superseded, String::new()));
            }
            self.close(older, "superseded by a newer connection", sink);
        }
        let promise = Promise {
            lasts: Duration::from_micros(hello.promise_us),
            clock_drift_ppm: hello.clock_drift_ppm,
            keeps_lineage: hello.memory() != peer::Memory::Unspecified,
            keeps_wall_clock: hello.keeps_wall_clock,
            lineage: agreement::lineage_of(&hello),
        };
        let link = self.slots[slot].as_mut().expect("open: it just read");
        link.peer = Some(peer);
        link.hello = Some(Box::new(hello.clone()));
        link.info = PeerInfo::from(hello);
        link.queue(&peer::PeerMessage::default(), &[]); // it is let in
        self.up.insert(peer.id, slot);
        self.note_welcome(peer.id);
        sink.push(LinkEvent::Up(peer, promise));
        Ok(())
    }

    /// Whether another life claims the id of a member that is connected. If the member is gone in truth,
    /// its silence ends its connection soon, and the new life is let in.
    fn is_impostor(&self, older: usize, peer: Peer) -> bool {
        let connected = self.slots[older].as_ref().and_then(|link| link.peer);
        let member = self.members.get(&peer.id);
        connected
            .is_some_and(|connected| connected != peer && member == Some(&connected.incarnation))
    }

    /// Two connections between the same two lives: both sides keep the one the higher id dialed.
    fn keeps_older(&self, older: usize, newer: usize, peer: Peer) -> bool {
        let (Some(old), Some(new)) = (&self.slots[older], &self.slots[newer]) else {
            return false;
        };
        let dialed_by_higher =
            |link: &Link| link.dialed.is_some() == (self.hello.replica > u32::from(peer.id.0));
        old.peer == Some(peer) && dialed_by_higher(old) && !dialed_by_higher(new)
    }

    fn refuse(&mut self, slot: usize, reason: Goodbye, detail: String) -> String {
        let text = format!("{} {detail}", reason.name());
        if let Some(link) = self.slots[slot].as_mut() {
            link.say_goodbye(reason, detail);
            link.output.write_to(&mut link.stream).ok();
            if reason != Goodbye::Superseded {
                self.counters.closed_handshake_refused += 1;
            }
            let is_contradiction =
                matches!(reason, Goodbye::OtherLineage | Goodbye::BeforeLineages);
            if reason != Goodbye::Superseded && !is_contradiction {
                self.note_refusal(slot, format!("refused: {text}"));
            }
        }
        text
    }

    fn close(&mut self, slot: usize, reason: &str, sink: &mut Vec<LinkEvent>) {
        let Some(mut link) = self.slots[slot].take() else {
            return;
        };
        link.stream.say_end();
        self.registry.deregister(&mut link.stream).ok();
        if link.proves {
            self.proof_link_ended(slot, reason);
        } else {
            self.dial_ended(slot, (!link.let_in).then_some(reason));
        }
        if let Some(peer) = link.peer {
            if self.up.get(&peer.id) == Some(&slot) {
                self.up.remove(&peer.id);
            }
            sink.push(LinkEvent::Down(peer));
        }
        if let Some(peer) = link.peer.filter(|_| link.let_in) {
            tracing::info!(replica = peer.id.0, reason, "peer disconnected");
            self.note_lost(peer.id);
        } else {
            tracing::debug!(reason, dialed = ?link.dialed, "peer connection closed");
        }
    }
}

impl Link {
    fn queue(&mut self, message: &peer::PeerMessage, attachment: &[Bytes]) {
        self.output
            .gather(|buffer| encode_frame(buffer, message, attachment));
        for piece in attachment {
            self.output.push(piece);
        }
        self.dirty = true;
    }

    fn say(&mut self, body: Body) {
        let message = peer::PeerMessage {
            group: 0,
            term: 0,
            body: Some(body),
        };
        self.queue(&message, &[]);
    }

    fn say_hello(&mut self, hello: &peer::Hello) {
        self.say(Body::Hello(hello.clone()));
    }

    fn say_goodbye(&mut self, reason: Goodbye, detail: String) {
        self.say(Body::Goodbye(reason.message(detail)));
    }
}

#[cfg(test)]
#[path = "links_test.rs"]
mod tests;

#[cfg(test)]
#[path = "links_tls_test.rs"]
mod tls_tests;

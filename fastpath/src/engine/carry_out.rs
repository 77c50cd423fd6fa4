//! What an engine does with a datagram: checks it, asks the step, and carries out its actions in order.
use super::{Engine, Outbox, Sink, kind_of};
use crate::memcached::memcached_stored;
use crate::mutants::mutant;
use crate::register_store::{Memory, RegisterStore};
use crate::ring::{EntryHead, ReplyAddress};
use crate::shared::Outcome;
use crate::signing::{encode_origin, is_ours, split_origin};
use crate::step::{self, Question, is_for_hosts_only};
use quorumwire_interfaces::PlaneEvent;
use quorumwire_wire::packet::{
    ACTION_COMMIT, ACTION_FANOUT, ACTION_FORWARD, ACTION_REPLY, ACTION_RESEND, ACTION_STORE,
    ACTION_TO_SOFTWARE, FLAG_BLIND, Header, Kind, PacketReason, RESEND_ENTRIES_MAX, SENDER_CLIENT,
};
use std::net::SocketAddr;
use std::ops::RangeInclusive;

/// One datagram that passed all checks.
struct Packet<'a> {
    from: SocketAddr,
    header: Header,
    payload: &'a [u8],
}

impl Packet<'_> {
    fn kind(&self) -> Option<Kind> {
        Kind::from_byte(self.header.kind)
    }
}

impl Engine<Memory> {
    /// Takes in one datagram. What is not signed rightly is never answered.
    pub fn receive(
        &mut self,
        from: SocketAddr,
        datagram: &[u8],
        outbox: &mut dyn Outbox,
        sink: Sink<'_>,
    ) {
        self.counters.received += 1;
        self.counters.foreign += u64::from(!is_ours(datagram));
        let Some(packet) = self.open(from, datagram, sink) else {
            return;
        };
        let header = packet.header;
        let outcome = step::step(&mut self.register_store.registers, &header);
        self.counters.note(outcome.reason());
        if outcome.has(ACTION_TO_SOFTWARE) {
            self.give_to_host(&packet, outcome.reason(), sink);
        } else {
            self.carry_out(&packet, &outcome, outbox);
        }
    }

    /// The actions in the order of their bits.
    fn carry_out(&mut self, packet: &Packet<'_>, outcome: &Outcome, outbox: &mut dyn Outbox) {
        let asking = match step::gap_after(&mut self.gap, &packet.header, outcome) {
            Question::Not if mutant("gap-asked-for-each-packet") => Question::AsSaid,
            asking @ (Question::AsSaid | Question::Not | Question::More) => asking,
        };
        let mut command = packet.payload;
        if outcome.has(ACTION_STORE) {
            let requester = match packet.kind() {
                Some(Kind::Forward) => split_origin(packet.payload).map(|(origin, inner)| {
                    command = inner;
                    ReplyAddress::Packet(origin)
                }),
                Some(Kind::Request) => Some(ReplyAddress::Packet(packet.from)),
                Some(
                    Kind::Append
                    | Kind::AppendOk
                    | Kind::Retransmit
                    | Kind::Heartbeat
                    | Kind::HeartbeatOk
                    | Kind::Answer
                    | Kind::Submit
                    | Kind::P1a
                    | Kind::P1b
                    | Kind::P2a
                    | Kind::P2b
                    | Kind::Admit
                    | Kind::Checkpoint,
                )
                | None => None,
            };
            self.store(&packet.header, outcome, command, requester);
        }
        if asking == Question::Not {
            self.counters.gaps_not_asked += 1;
        } else {
            self.say(outcome, command, outbox);
        }
        if outcome.has(ACTION_FORWARD) {
            let origin = encode_origin(packet.from);
            let leader = self.state().leader;
            self.send_to(leader, outcome.header, [&origin, packet.payload], outbox);
        }
        if outcome.has(ACTION_RESEND) {
            self.resend(packet.header.sender, outcome.index..=u64::MAX, outbox);
        }
        if asking == Question::More {
            self.ask_for(outcome.index + 1, outbox);
        }
    }
}

impl<P: RegisterStore> Engine<P> {
    /// Takes in one datagram that has passed by the place where the step runs, and was counted there: what
    /// a client wants of the host is handed over, nothing moves.
    pub fn receive_passed(&mut self, from: SocketAddr, datagram: &[u8], sink: Sink<'_>) {
        if let Some(packet) = self.open(from, datagram, sink) {
            self.give_to_host(&packet, PacketReason::Off, sink);
        }
    }

    /// Checks a datagram. What is another protocol's is handed over, what is wrong is counted.
    fn open<'a>(
        &mut self,
        from: SocketAddr,
        datagram: &'a [u8],
        sink: Sink<'_>,
    ) -> Option<Packet<'a>> {
        if !is_ours(datagram) {
            sink(PlaneEvent::Foreign {
                from,
                bytes: datagram,
            });
            return None;
        }
        match self.signing.open(datagram) {
            Ok((header, payload)) => Some(Packet {
                from,
                header,
                payload,
            }),
            Err(reason) => {
                self.counters.note(reason);
                None
            }
        }
    }

    /// What is sent at once and has the outcome's header, then the answers that a commit brings.
    pub(super) fn say(&mut self, outcome: &Outcome, payload: &[u8], outbox: &mut dyn Outbox) {
        if outcome.has(ACTION_FANOUT) && self.seal(outcome.header, [payload, &[]]) {
            for slot in 0..self.peers.len() {
                if slot != usize::from(self.state().me) {
                    outbox.send(self.peers[slot], &self.datagram);
                    self.counters.sent += 1;
                }
            }
        }
        if outcome.has(ACTION_REPLY) {
            self.send_to(self.state().leader, outcome.header, [&[], &[]], outbox);
        }
        if outcome.has(ACTION_COMMIT) {
            self.answer_blind(outcome.commit_from, outbox);
        }
    }

    /// Follower: asks for an entry and what comes behind it.
    fn ask_for(&mut self, index: u64, outbox: &mut dyn Outbox) {
        let header = Header {
            index,
            sequence: self.state().round,
            ..self.said(Kind::Retransmit)
        };
        self.send_to(self.state().leader, header, [&[], &[]], outbox);
    }

    /// Leader: sends entries of its term again, from the ring: of these as many as one question brings.
    pub fn resend(&mut self, slot: u8, asked: RangeInclusive<u64>, outbox: &mut dyn Outbox) {
        let from = *asked.start();
        if !self.leads() || from <= self.state().start_index {
            return;
        }
        let most = from.saturating_add(RESEND_ENTRIES_MAX as u64 - 1);
        let upto = most.min(*asked.end()).min(self.state().last_index);
        for index in from..=upto {
            let Some((stored, payload)) = self.register_store.get(index) else {
                return;
            };
            let header = self.append_of(&stored);
            let sealed = self
                .signing
                .seal(header, [payload, &[]], &mut self.datagram);
            // Released, its slot may have been filled anew while it was read.
            if sealed && self.register_store.get(index).is_some() {
                self.counters.resent += 1;
                self.deliver(slot, outbox);
            }
        }
    }

    /// An entry as its APPEND.
    fn append_of(&self, stored: &EntryHead) -> Header {
        Header {
            flags: stored.flags,
            payload_bytes: stored.payload_bytes,
            payload_crc32c: stored.payload_crc32c,
            index: stored.index,
            previous_term: stored.previous_term,
            session: stored.session,
            sequence: stored.sequence,
            ..self.said(Kind::Append)
        }
    }

    /// Leader: answers the blind writes that became committed, those after `from`.
    fn answer_blind(&mut self, from: u64, outbox: &mut dyn Outbox) {
        if !self.leads() {
            return;
        }
        // What software moved is not in the ring, and nobody waits for it here.
        let from = from.max(self.state().start_index);
        for index in from + 1..=self.state().commit_index {
            self.answer_blind_one(index, outbox);
        }
    }

    /// Leader: answers the entry of an index, which is committed, if it is a blind write that somebody asked
    /// for.
    pub fn answer_blind_one(&mut self, index: u64, outbox: &mut dyn Outbox) {
        let Some((stored, _)) = self.register_store.get(index) else {
            return;
        };
        let (Some(requester), true) = (stored.requester, stored.flags & FLAG_BLIND != 0) else {
            return;
        };
        self.counters.blind_answers += 1;
        let client = match requester {
            ReplyAddress::Packet(client) => client,
            ReplyAddress::Memcached(client, request) => {
                return outbox.send_memcached(client, &memcached_stored(request));
            }
        };
        let header = Header {
            index,
            session: stored.session,
            sequence: stored.sequence,
            ..self.said(Kind::Answer)
        };
        self.send(client, header, [&[], &[]], outbox);
    }

    /// Tells the host of a packet that the step left to software, if it is one that software can use.
    fn give_to_host(&mut self, packet: &Packet<'_>, reason: PacketReason, sink: Sink<'_>) {
        match packet.kind() {
            Some(Kind::Request) => {
                let is_for_it = matches!(reason, PacketReason::Off | PacketReason::Malformed);
                let is_a_clients =
                    || is_a_clients(&packet.header) || mutant("handed-over-though-no-clients");
                if is_for_it && is_a_clients() {
                    self.give_request_to_host(packet, packet.from, packet.payload, sink);
                }
            }
            Some(Kind::Forward) => {
                let is_for_it = reason == PacketReason::Off && !is_for_hosts_only(&packet.header);
                if is_for_it && let Some((origin, payload)) = split_origin(packet.payload) {
                    self.give_request_to_host(packet, origin, payload, sink);
                }
            }
            Some(Kind::Retransmit) => {
                if reason == PacketReason::BehindRing {
                    sink(PlaneEvent::Behind(packet.header.sender));
                }
            }
            // The host has no use for the others; each is counted already, by its reason.
            Some(
                Kind::Append
                | Kind::AppendOk
                | Kind::Heartbeat
                | Kind::HeartbeatOk
                | Kind::Answer
                | Kind::Submit
                | Kind::P1a
                | Kind::P1b
                | Kind::P2a
                | Kind::P2b
                | Kind::Admit
                | Kind::Checkpoint,
            )
            | None => {}
        }
    }

    fn give_request_to_host(
        &mut self,
        packet: &Packet<'_>,
        from: SocketAddr,
        payload: &[u8],
        sink: Sink<'_>,
    ) {
        if packet.header.group != self.options.group.0 && !mutant("handed-over-from-another-group")
        {
            return self.counters.note(PacketReason::Group);
        }
        sink(PlaneEvent::Request {
            from,
            kind: kind_of(packet.header.flags),
            session: packet.header.session,
            sequence: packet.header.sequence,
            payload,
        });
    }

    /// Sends to a replica of the grant.
    fn send_to(&mut self, slot: u8, header: Header, parts: [&[u8]; 2], outbox: &mut dyn Outbox) {
        if self.seal(header, parts) {
            self.deliver(slot, outbox);
        }
    }

    fn deliver(&mut self, slot: u8, outbox: &mut dyn Outbox) {
        if let Some(address) = self.peers.get(usize::from(slot)) {
            outbox.send(*address, &self.datagram);
            self.counters.sent += 1;
        }
    }

    /// Sends to anybody.
    pub(super) fn send(
        &mut self,
        to: SocketAddr,
        header: Header,
        parts: [&[u8]; 2],
        outbox: &mut dyn Outbox,
    ) {
        if self.seal(header, parts) {
            outbox.send(to, &self.datagram);
            self.counters.sent += 1;
        }
    }

    fn seal(&mut self, header: Header, parts: [&[u8]; 2]) -> bool {
        let sealed = self.signing.seal(header, parts, &mut self.datagram);
        self.counters.without_key += u64::from(!sealed);
        sealed
    }
}

/// Whether a request is one that a client may make; too large to be sent on it may be.
fn is_a_clients(header: &Header) -> bool {
    usize::from(header.sender) == SENDER_CLIENT && !is_for_hosts_only(header)
}

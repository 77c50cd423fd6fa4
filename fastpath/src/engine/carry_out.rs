//! What an engine does with a datagram: checks it, asks the step, and carries out its actions in order.
use super::{Asked, Engine, Outbox, Sink, kind_of};
use crate::memcached::memcached_stored;
use crate::mutants::mutant;
use crate::ring::{Asker, Stored};
use crate::signing::{encode_origin, is_ours, split_origin};
use crate::step::{self, Outcome};
use quorumwire_interfaces::PlaneEvent;
use quorumwire_wire::packet::{
    ACTION_COMMIT, ACTION_FANOUT, ACTION_FORWARD, ACTION_REPLY, ACTION_RESEND, ACTION_STORE,
    ACTION_TO_SOFTWARE, FLAG_BLIND, FLAG_FRAGMENT, FLAG_REFUSED, FLAG_TICK, Header, Kind,
    RESEND_ENTRIES_MAX, Reason, SENDER_CLIENT,
};
use std::net::SocketAddr;

/// Packets behind one gap that are not answered after one was: a leader with much on its way would send
/// everything again for each of them. Several times as many as one question brings: where the first of
/// these is lost or late, the others are behind the gap, too, and each question must lead to less than
/// one more, however often packets are repeated. The next heartbeat is answered in any case.
const GAPS_QUIET_MAX: usize = 8 * RESEND_ENTRIES_MAX;

/// One datagram that passed all checks.
struct Received<'a> {
    from: SocketAddr,
    header: Header,
    payload: &'a [u8],
}

impl Received<'_> {
    fn kind(&self) -> Option<Kind> {
        Kind::from_byte(self.header.kind)
    }
}

impl Engine {
    /// Takes in one datagram. What is not signed rightly is never answered.
    pub fn receive(
        &mut self,
        from: SocketAddr,
        datagram: &[u8],
        outbox: &mut dyn Outbox,
        sink: Sink<'_>,
    ) {
        self.counters.received += 1;
        if !is_ours(datagram) {
            self.counters.foreign += 1;
            sink(PlaneEvent::Foreign {
                from,
                bytes: datagram,
            });
            return;
        }
        let (header, payload) = match self.signing.open(datagram) {
            Ok(opened) => opened,
            Err(reason) => return self.counters.note(reason),
        };
        let packet = Received {
            from,
            header,
            payload,
        };
        let outcome = step::step(&mut self.registers, &header);
        self.counters.note(outcome.reason());
        if outcome.has(ACTION_TO_SOFTWARE) {
            self.hand_over(&packet, outcome.reason(), sink);
        } else {
            self.carry_out(&packet, &outcome, outbox);
        }
    }

    /// The actions in the order of their bits.
    fn carry_out(&mut self, packet: &Received<'_>, outcome: &Outcome, outbox: &mut dyn Outbox) {
        let from_leader = matches!(packet.kind(), Some(Kind::Append | Kind::Heartbeat));
        if from_leader && outcome.actions != 0 {
            self.leader_last = self.leader_last.max(packet.header.index);
        }
        let mut command = packet.payload;
        if outcome.has(ACTION_STORE) {
            let asked_by = match packet.kind() {
                Some(Kind::Forward) => split_origin(packet.payload).map(|(origin, inner)| {
                    command = inner;
                    Asker::Packet(origin)
                }),
                Some(Kind::Request) => Some(Asker::Packet(packet.from)),
                _ => None,
            };
            self.store(&packet.header, outcome, command, asked_by);
        }
        if !self.is_asked_already(packet, outcome) {
            self.say(outcome, command, outbox);
        } else if outcome.has(ACTION_COMMIT) {
            self.answer_blind(outcome.commit_from, outbox);
        }
        if outcome.has(ACTION_FORWARD) {
            let origin = encode_origin(packet.from);
            let leader = self.registers.leader;
            self.send_to(leader, outcome.header, [&origin, packet.payload], outbox);
        }
        if outcome.has(ACTION_RESEND) {
            self.resend(packet.header.sender, outcome.index, outbox);
        }
        if outcome.has(ACTION_STORE) && from_leader {
            self.ask_for_more(outcome.index, outbox);
        }
    }

    /// What is sent at once and has the outcome's header, then the answers that a commit brings.
    pub(super) fn say(&mut self, outcome: &Outcome, payload: &[u8], outbox: &mut dyn Outbox) {
        if outcome.has(ACTION_FANOUT) && self.seal(outcome.header, [payload, &[]]) {
            for slot in 0..self.peers.len() {
                if slot != usize::from(self.registers.me) {
                    outbox.send(self.peers[slot], &self.datagram);
                    self.counters.sent += 1;
                }
            }
        }
        if outcome.has(ACTION_REPLY) {
            self.send_to(self.registers.leader, outcome.header, [&[], &[]], outbox);
        }
        if outcome.has(ACTION_COMMIT) {
            self.answer_blind(outcome.commit_from, outbox);
        }
    }

    /// Whether the leader has just been asked for what is missing here. Heartbeats come seldom: they are
    /// always answered.
    fn is_asked_already(&mut self, packet: &Received<'_>, outcome: &Outcome) -> bool {
        if outcome.reason() != Reason::Gap {
            return false;
        }
        let index = outcome.header.index;
        let behind_same_gap = packet.kind() == Some(Kind::Append) && self.asked.index == index;
        let quiet = self.asked.quiet < GAPS_QUIET_MAX && !mutant("gap-asked-for-each-packet");
        if behind_same_gap && quiet {
            self.asked.quiet += 1;
            self.counters.gaps_not_asked += 1;
            return true;
        }
        self.asked = Asked { index, quiet: 0 };
        false
    }

    /// The last entry of those that one question brings has come, and there are more: asks for these.
    fn ask_for_more(&mut self, stored: u64, outbox: &mut dyn Outbox) {
        let asked_upto = self
            .asked
            .index
            .saturating_add(RESEND_ENTRIES_MAX as u64 - 1);
        if self.asked.index == 0 || stored != asked_upto || self.leader_last <= stored {
            return;
        }
        let index = stored + 1;
        self.asked = Asked { index, quiet: 0 };
        let header = Header {
            index,
            sequence: self.registers.round,
            ..self.said(Kind::Retransmit)
        };
        self.send_to(self.registers.leader, header, [&[], &[]], outbox);
    }

    /// Sends entries again, from the ring.
    fn resend(&mut self, slot: u8, from: u64, outbox: &mut dyn Outbox) {
        let most = from.saturating_add(RESEND_ENTRIES_MAX as u64 - 1);
        for index in from..=most.min(self.registers.last_index) {
            let Some((&stored, payload)) = self.ring.get(index) else {
                return;
            };
            let header = self.append_of(&stored);
            if self
                .signing
                .seal(header, [payload, &[]], &mut self.datagram)
            {
                self.counters.resent += 1;
                self.deliver(slot, outbox);
            }
        }
    }

    /// An entry as its APPEND.
    fn append_of(&self, stored: &Stored) -> Header {
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
        let from = from.max(self.registers.start_index);
        for index in from + 1..=self.registers.commit_index {
            let Some((&stored, _)) = self.ring.get(index) else {
                continue;
            };
            let (Some(asker), true) = (stored.asked_by, stored.flags & FLAG_BLIND != 0) else {
                continue;
            };
            self.counters.blind_answers += 1;
            let client = match asker {
                Asker::Packet(client) => client,
                Asker::Memcached(client, request) => {
                    outbox.send_memcached(client, &memcached_stored(request));
                    continue;
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
    }

    /// Tells the host of a packet that the step left to software, if it is one that software can use.
    fn hand_over(&mut self, packet: &Received<'_>, reason: Reason, sink: Sink<'_>) {
        match (packet.kind(), reason) {
            (Some(Kind::Request), Reason::Off | Reason::Malformed)
                if is_a_clients(&packet.header) || mutant("handed-over-though-no-clients") =>
            {
                self.hand_over_request(packet, packet.from, packet.payload, sink);
            }
            (Some(Kind::Forward), Reason::Off) => {
                if let Some((origin, payload)) = split_origin(packet.payload) {
                    self.hand_over_request(packet, origin, payload, sink);
                }
            }
            (Some(Kind::Retransmit), Reason::BehindRing) => {
                sink(PlaneEvent::Behind(packet.header.sender));
            }
            // The host has no use for the others; each is counted already, by its reason.
            _ => {}
        }
    }

    fn hand_over_request(
        &mut self,
        packet: &Received<'_>,
        from: SocketAddr,
        payload: &[u8],
        sink: Sink<'_>,
    ) {
        if packet.header.group != self.registers.group && !mutant("handed-over-from-another-group")
        {
            return self.counters.note(Reason::Group);
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

/// Whether a request is one that a client may make, as the step sees it; too large to be sent on it may
/// be.
fn is_a_clients(header: &Header) -> bool {
    let is_piece = header.flags & FLAG_FRAGMENT != 0;
    usize::from(header.sender) == SENDER_CLIENT
        && header.flags & (FLAG_TICK | FLAG_REFUSED) == 0
        && !(is_piece && header.session == 0)
}

//! What comes from other replicas: protocol messages for the replica, and requests that followers
//! forward.
use super::clients::{Connection, Said};
use super::core::{Forward, Origin, REQUEST_TIMEOUT};
use super::links::LinkEvent;
use super::plane::Plane;
use super::{Server, reads};
use bytes::Bytes;
use quorumwire_control::{Input, Message, Peer};
use quorumwire_interfaces::{Index, Reason, Term};
use quorumwire_kv::memcached::reply;
use quorumwire_wire::MemberRole;
use quorumwire_wire::peer::peer_message::Body;
use quorumwire_wire::peer::{ForwardOutcome, ForwardReply, PeerMessage};

impl Server {
    pub fn take_link_events(&mut self) {
        let mut events = std::mem::take(&mut self.link_events);
        for event in events.drain(..) {
            match event {
                LinkEvent::Up(peer, promise) => {
                    self.core.group.step(Input::PeerUp(peer, promise));
                    self.learn_plane_of(peer);
                    self.core.group.stalled = true;
                }
                LinkEvent::Down(peer) => {
                    self.core.group.step(Input::PeerDown(peer));
                    self.fail_forwards(|forward| forward.to == peer);
                }
                LinkEvent::Message {
                    from,
                    message,
                    attachment,
                } => {
                    self.take_message(from, message, attachment);
                }
                LinkEvent::Proved {
                    id,
                    address,
                    outcome,
                } => self.take_proof(id, &address, outcome),
            }
        }
        self.link_events = events;
        self.carry_out_effects();
    }

    /// A replica that has just connected said where its plane is, if it has one.
    fn learn_plane_of(&mut self, peer: Peer) {
        let id = peer.id;
        let info = self.links.info(id);
        let endpoint = info.and_then(|info| info.plane.clone());
        let has_plane = endpoint.is_some();
        if let Some(plane) = &mut self.core.group.plane {
            plane.set_endpoint(id, endpoint);
            self.core.group.step(Input::PlanePeer { id, has_plane });
        }
    }

    fn take_message(&mut self, from: Peer, message: PeerMessage, attachment: Bytes) {
        if message.group != self.core.group.id.0 {
            self.counters.unknown_group += 1;
            return;
        }
        let term = Term(message.term);
        match message.body {
            Some(Body::Forward(forward)) => {
                self.core.counters.forwarded_here += 1;
                let budget = &mut self.budget;
                self.core
                    .take_forward(budget, (from, term), forward, attachment);
            }
            Some(Body::ForwardSession(forward)) => {
                self.core.counters.forwarded_here += 1;
                self.core
                    .take_forward_session(from, term, forward.request, &attachment);
            }
            Some(Body::FastTermKey(key)) => self.core.take_term_key(from, message.term, &key),
            Some(Body::ForwardReply(reply)) => self.take_forward_reply(from, &reply, &attachment),
            Some(_) | None => match Message::from_proto(message, attachment) {
                Ok(message) => self.core.group.step(Input::Message { from, message }),
                Err(error) => {
                    self.core.counters.malformed_messages += 1;
                    tracing::debug!(replica = from.id.0, %error, "message ignored");
                }
            },
        }
    }

    fn take_forward_reply(&mut self, from: Peer, reply: &ForwardReply, answer: &[u8]) {
        let expected = |forward: &Forward| forward.to == from;
        if !self.core.forwards.get(&reply.request).is_some_and(expected) {
            return; // given up earlier
        }
        let Some(forward) = self.core.forwards.remove(&reply.request) else {
            return;
        };
        match reply.outcome() {
            ForwardOutcome::Done if forward.is_read && answer == reply::REPLY_TOO_LARGE => {
                self.read_in_parts(forward.origin, answer);
            }
            ForwardOutcome::Done => self.complete_as(forward.origin, Said::Answer, answer),
            ForwardOutcome::Repeated => {
                self.complete_as(forward.origin, Said::Repeated, answer);
            }
            ForwardOutcome::Refused => {
                let reason = Reason::from_code(reply.reason.into());
                self.core.counters.outcomes_unknown +=
                    u64::from(reason == Reason::OutcomeUnknown && !forward.is_read);
                self.refuse_here(forward.origin, reason);
            }
            ForwardOutcome::NotLeader if forward.is_read => {
                self.hear_not_leader(from, &forward);
                self.send_read_again(reply.request, &forward);
                self.attend_to(&forward);
            }
            ForwardOutcome::NotLeader => {
                self.hear_not_leader(from, &forward);
                self.refuse_here(forward.origin, Reason::NotLeader);
            }
            ForwardOutcome::Busy if forward.is_read => {
                self.send_read_again(reply.request, &forward);
                self.core.group.stalled = true; // not at once, which would be as much in vain
            }
            ForwardOutcome::Busy => {
                self.refuse_here(forward.origin, Reason::Busy);
            }
            ForwardOutcome::DiskFull => {
                self.refuse_here(forward.origin, Reason::DiskFull);
            }
            ForwardOutcome::Unknown | ForwardOutcome::Unspecified => {
                self.core.counters.outcomes_unknown += 1;
                self.refuse_here(forward.origin, Reason::OutcomeUnknown);
            }
        }
    }

    /// Says nothing of the terms since: it may lead again.
    fn hear_not_leader(&mut self, from: Peer, forward: &Forward) {
        if forward.term == self.core.group.replica.term() {
            self.core.not_leader = Some(from);
        }
    }

    /// Gives up forwarded requests that no answer can be expected for: reads begin anew, writes have
    /// an unknown outcome.
    pub fn fail_forwards(&mut self, is_lost: impl Fn(&Forward) -> bool) {
        let lost: Vec<u64> = self
            .core
            .forwards
            .iter()
            .filter(|(_, forward)| is_lost(forward))
            .map(|(request, _)| *request)
            .collect();
        self.give_up_forwards(lost);
    }

    /// See [`Server::fail_forwards`].
    pub fn give_up_forwards(&mut self, lost: Vec<u64>) {
        for request in lost {
            let Some(forward) = self.core.forwards.remove(&request) else {
                continue;
            };
            if forward.is_read {
                self.send_read_again(request, &forward);
                self.attend_to(&forward);
            } else {
                self.core.counters.outcomes_unknown += 1;
                self.refuse_here(forward.origin, Reason::OutcomeUnknown);
            }
        }
    }

    fn send_read_again(&mut self, request: u64, forward: &Forward) {
        let Origin::Client(id, _) = forward.origin else {
            // A client that speaks UDP asks again by itself.
            let why = self.core.why_not_read(forward.to);
            return self.refuse_here(forward.origin, why);
        };
        if let Some(connection) = self.clients.get(id) {
            reads::forward_again(connection, request);
        }
    }

    /// Has the connection looked at in the next turn.
    fn attend_to(&mut self, forward: &Forward) {
        if let Origin::Client(id, _) = forward.origin {
            self.front.attend_later.push(id);
        }
    }

    /// The leader's answer to a read would not fit one message.
    fn read_in_parts(&mut self, origin: Origin, answer: &[u8]) {
        let Origin::Client(id, slot_number) = origin else {
            return self.complete_as(origin, Said::Answer, answer);
        };
        let is_own = |connection: &mut Connection| connection.own.is_some();
        if self.clients.get(id).is_some_and(is_own) {
            return self.complete_as(origin, Said::Answer, answer); // it asks for less by itself
        }
        if let Some(connection) = self.clients.get(id) {
            reads::forward_in_parts(connection, slot_number);
        }
        self.clients.attend(id);
    }

    /// Answers requests that have waited for too long.
    pub fn time_out_requests(&mut self) {
        let now = self.core.group.now;
        self.core.forget_late_reads();
        self.give_up_left_behind();
        for id in self.clients.take_late(now, REQUEST_TIMEOUT) {
            if let Some(connection) = self.clients.get(id)
                && reads::refuse_waiting(connection)
            {
                self.core.forget_reads_of(id);
            }
            self.clients.attend(id);
        }
        let is_late = |at: quorumwire_control::Now| now.0.saturating_sub(at.0) > REQUEST_TIMEOUT;
        for late in self.core.group.proposals.take_late(is_late) {
            self.fail_proposal(&late);
        }
        while self
            .core
            .group
            .plane
            .as_ref()
            .is_some_and(|it| it.waits_since().is_some_and(is_late))
        {
            if let Some(late) = self.core.group.plane.as_mut().and_then(Plane::take_back) {
                self.refuse_submission(&late);
            }
        }
        if self
            .core
            .forwards
            .values()
            .next()
            .is_some_and(|forward| is_late(forward.at))
        {
            let late: Vec<u64> = self
                .core
                .forwards
                .iter()
                .filter(|(_, forward)| is_late(forward.at))
                .map(|(request, _)| *request)
                .collect();
            for request in late {
                if let Some(forward) = self.core.forwards.remove(&request) {
                    self.core.counters.outcomes_unknown += u64::from(!forward.is_read);
                    let reason = if forward.is_read {
                        Reason::NoLeader
                    } else {
                        Reason::OutcomeUnknown
                    };
                    self.refuse_here(forward.origin, reason);
                }
            }
        }
    }

    /// Whether a client's request would be served and the next replica may be restarted: somebody leads, what was
    /// committed when this process started is applied, and this life of the replica is a member that votes, or never
    /// shall. A new life is none of the first for a while, and counts for nothing then.
    pub fn is_ready(&self) -> bool {
        let own = self.core.group.replica.membership().member(self.options.id);
        let is_full = own
            .is_some_and(|it| it.incarnation == self.incarnation && it.role != MemberRole::Joining);
        // A leader that is about to be removed serves until that is committed.
        (is_full || self.core.group.leads())
            && self.core.group.replica.leader().is_some()
            && self.core.group.applied >= self.ready_once_applied
            && self.core.group.applied > Index(0)
            && self.draining_since.is_none()
    }
}

//! What comes from other replicas, and what goes to them: messages of consensus, requests that followers pass
//! on, and what becomes of these.
use super::by_front;
use super::groups::{group_at, placed};
use super::links::LinkEvent;
use super::origin::{Forward, Origin};
use super::service::Service;
use super::{Server, reads};
use bytes::Bytes;
use quorumwire_control::{Input, Peer};
use quorumwire_group::{
    self as group, Driver as _, Effect, Follower, GroupMessage, PassedOn, REQUEST_TIMEOUT,
    ReadState,
};
use quorumwire_interfaces::{Index, Reason};
use quorumwire_wire::MemberRole;
use quorumwire_wire::peer::PeerMessage;
use quorumwire_wire::peer::peer_message::Body;

impl<S: Service> Server<S> {
    /// Sends what the group wants sent.
    pub fn send_effects(&mut self) {
        let core = &mut self.core;
        for effect in core.group.effects.drain(..) {
            match effect {
                Effect::Send {
                    to,
                    message,
                    attachment,
                } => {
                    self.links.send(to, &message, &attachment);
                }
                Effect::SendKey { to, message } => {
                    core.counters.term_keys.sent += u64::from(self.links.send_secret(to, &message));
                }
            }
        }
    }

    /// Shows all groups the connections to other replicas, which may have changed.
    pub fn show_links(&mut self) {
        let Self {
            links,
            core,
            others,
            at_hand,
            ..
        } = self;
        for (place, core) in placed(*at_hand, core, others) {
            links.show(&mut core.group.peers, &mut core.hellos, place);
        }
    }

    pub fn take_link_events(&mut self) {
        let mut events = std::mem::take(&mut self.link_events);
        for event in events.drain(..) {
            match event {
                LinkEvent::Up(peer, promise) => self.each_group(|server| {
                    server.core.group.step(Input::PeerUp(peer, promise));
                    server.learn_plane_of(peer);
                    server.core.group.stalled = true;
                }),
                LinkEvent::Down(peer) => self.each_group(|server| {
                    group::peer_is_gone(server, peer);
                }),
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
        self.each_group(Self::send_effects);
    }

    /// A replica that has just connected said where its plane is, if it has one.
    fn learn_plane_of(&mut self, peer: Peer) {
        let id = peer.id;
        let info = self.links.info(id);
        let endpoint = info.and_then(|info| info.plane(self.at_hand).cloned());
        if let Some(plane) = &mut self.core.group.plane {
            let has_plane = plane.set_endpoint(id, endpoint);
            self.core.group.step(Input::PlanePeer { id, has_plane });
        }
    }

    fn take_message(&mut self, from: Peer, message: PeerMessage, attachment: Bytes) {
        let mut places = 0..=self.others.len();
        let Some(place) = places.find(|place| group_at(*place).0 == message.group) else {
            self.counters.unknown_group += 1;
            return;
        };
        self.take_up(place);
        self.take_message_here(from, message, attachment);
        self.take_up(0);
    }

    /// Takes a message of the group at hand.
    fn take_message_here(&mut self, from: Peer, message: PeerMessage, attachment: Bytes) {
        if let Some(Body::FastTermKey(key)) = &message.body {
            return self.core.take_term_key(from, message.term, key);
        }
        match GroupMessage::from_proto(message, attachment) {
            Ok(GroupMessage::Consensus(message)) => {
                self.core.group.step(Input::Message { from, message });
            }
            Ok(GroupMessage::PassedOn(PassedOn::Request(id, kind, bytes))) => {
                self.core.counters.forwarded_here += 1;
                let from = Follower { peer: from, id };
                group::take_request(self, from, kind, bytes);
            }
            Ok(GroupMessage::PassedOn(PassedOn::Reply(id, said, answer))) => {
                if let Some(returned) = self.core.group.take_reply(from, id, said) {
                    self.take_returned(returned, &answer);
                }
            }
            Err(error) => {
                self.core.counters.malformed_messages += 1;
                tracing::debug!(replica = from.id.0, %error, "message ignored");
            }
        }
    }

    /// A write has no answer for this reason: counts those of which nobody can tell what became of them.
    pub fn count_unknown(&mut self, reason: Reason) {
        self.core.counters.outcomes_unknown += u64::from(reason == Reason::OutcomeUnknown);
    }

    pub fn send_read_again(&mut self, request: u64, forward: &Forward) {
        let Origin::Client(id, _) = forward.origin else {
            // A client that speaks UDP asks again by itself.
            let why = self.core.why_not_read(forward.to);
            return self.refuse_here(forward.origin, why);
        };
        if let Some(connection) = self.clients.get(id) {
            let slots = &mut connection.slots;
            slots.replace_states(ReadState::Forwarded(request), ReadState::ANEW);
        }
    }

    /// Has the connection looked at in the next turn.
    pub fn attend_to(&mut self, forward: &Forward) {
        if let Origin::Client(id, _) = forward.origin {
            self.admission.attend_later.push(id);
        }
    }

    /// The leader's answer to a read would fit no message: a front that can asks for parts of it.
    pub fn take_too_long(&mut self, origin: Origin) {
        if let Origin::Client(id, slot_number) = origin
            && let Some(connection) = self.clients.get(id)
            && by_front::reads_in_parts::<S>(connection)
        {
            reads::forward_in_parts(connection, slot_number);
            return self.clients.attend(id);
        }
        self.refuse_here(origin, Reason::AnswerTooLong);
    }

    /// Refuses requests that have waited on a connection for too long.
    pub fn time_out_waits(&mut self) {
        let now = self.core.group.now;
        for id in self.clients.take_late(now, REQUEST_TIMEOUT) {
            if let Some(connection) = self.clients.get(id)
                && reads::refuse_waiting(connection)
            {
                self.forget_reads_of(id);
            }
            self.clients.attend(id);
        }
    }

    /// Whether a client's request would be served and the next replica may be restarted: somebody leads, what
    /// was committed when this process started is applied, and this life of the replica is a member that
    /// votes, or never shall. A new life is none of the first for a while, and counts for nothing then.
    /// A served program serves.
    pub fn is_ready(&self) -> bool {
        let own = self.core.group.replica.membership().member(self.options.id);
        let is_full = own
            .is_some_and(|it| it.incarnation == self.incarnation && it.role != MemberRole::Joining);
        // A leader that is about to be removed serves until that is committed.
        (is_full || self.core.group.leads())
            && self.core.group.replica.leader().is_some()
            && self.core.group.applied >= self.upkeep.ready_once_applied
            && self.core.group.applied > Index(0)
            && self.draining_since.is_none()
            && S::serves(&self.core)
    }
}

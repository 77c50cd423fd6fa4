//! Connections that come in: how many strangers may be here, how much time their handshakes may take, and
//! which of them give way. Whoever comes from a replica's address has room and time of its own, so a flood
//! from elsewhere keeps no replica out; whom we dial is bounded by how often we dial.
use super::{LINKS_MAX, Outbox, TimeBudget, clock};
use super::{Link, LinkEvent, Links, PeerInfo, REFUSAL_SHOWN, STRANGERS_MAX, Stream};
use bytes::BytesMut;
use mio::net::TcpStream;
use mio::{Interest, Token};
use quorumwire_control::Now;
use quorumwire_interfaces::ReplicaId;
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// Reasons kept for one who is refused: foreign texts may all differ.
const REASONS_MAX: usize = 4;
/// Reasons kept for those who came from anywhere. What is said of the replicas that we dial does not depend
/// on them.
const STRANGERS_REFUSED_MAX: usize = LINKS_MAX;

/// Who is refused, or refused us.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Who {
    /// It was dialed.
    Replica(ReplicaId),
    /// Somebody who came from there.
    At(IpAddr),
    /// Those there is no room for.
    Strangers,
}

impl Who {
    /// Whether there are only so many of them.
    const fn is_known(self) -> bool {
        match self {
            Self::Replica(_) | Self::Strangers => true,
            Self::At(_) => false,
        }
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replica(id) => write!(f, "replica {id}"),
            Self::At(address) => write!(f, "{address}"),
            Self::Strangers => f.write_str("strangers"),
        }
    }
}

impl Link {
    /// It came in, and has not said yet who it is.
    fn is_stranger(&self) -> bool {
        self.dialed.is_none() && self.peer.is_none()
    }
}

impl Links {
    /// Whoever waits to be accepted may be looked at again.
    pub fn begin_turn(&mut self, now: Now) {
        self.now = now;
        for budget in [&mut self.accepts, &mut self.strangers, &mut self.neighbours] {
            budget.begin_turn(now);
        }
        if self.accepts_more {
            self.accept(now);
        }
    }

    /// Takes new connections, as far as there is time for it.
    pub fn accept(&mut self, now: Now) {
        self.accepts_more = true;
        while self.accepts.is_left() {
            let began = clock::worked();
            let (stream, address) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(error) => {
                    self.starvation.note(&error, &self.listener, "peer");
                    self.accepts_more = false;
                    return; // and comes again with the next housekeeping
                }
            };
            self.take_in(stream, address, now);
            self.accepts.use_up(clock::worked().saturating_sub(began));
        }
    }

    fn take_in(&mut self, stream: TcpStream, address: SocketAddr, now: Now) {
        let from = address.ip().to_canonical();
        let is_neighbour = self.is_neighbour(from);
        // A few may wait for time; a flood may not.
        let has_time = self.tls.is_none() || self.budget_for(is_neighbour).will_be_left();
        if !has_time && self.strangers_here(is_neighbour) >= STRANGERS_MAX / 2 {
            self.counters.closed_no_time += 1;
            return;
        }
        self.make_room_for_stranger(is_neighbour);
        if self.open(stream, None, from, now).is_none() {
            self.counters.closed_too_many += 1;
            self.note_refused(Who::Strangers, "too many peer connections".into());
        }
    }

    fn strangers_here(&self, is_neighbour: bool) -> usize {
        let links = self.slots.iter().flatten();
        let is_one = |link: &&Link| link.is_stranger() && link.is_neighbour == is_neighbour;
        links.filter(is_one).count()
    }

    /// Whether a replica is, or was, at this address.
    fn is_neighbour(&self, from: IpAddr) -> bool {
        self.dials.values().any(|dial| dial.is_at(from))
    }

    /// Whose time is used by reading this; none: it may be read in any case.
    pub(super) fn budget_of(&self, link: &Link) -> Option<&TimeBudget> {
        if link.dialed.is_some() || link.stream.is_established() {
            None
        } else if link.is_neighbour {
            Some(&self.neighbours)
        } else {
            Some(&self.strangers)
        }
    }

    pub(super) const fn budget_for(&mut self, is_neighbour: bool) -> &mut TimeBudget {
        if is_neighbour {
            &mut self.neighbours
        } else {
            &mut self.strangers
        }
    }

    pub(super) fn open(
        &mut self,
        stream: TcpStream,
        dialed: Option<ReplicaId>,
        from: IpAddr,
        now: Now,
    ) -> Option<usize> {
        let slot = self.slots.iter().position(Option::is_none)?;
        let mut stream = match (&self.tls, dialed) {
            (None, _) => Stream::Plain(stream),
            (Some(tls), None) => Stream::tls(stream, tls.accept().ok()?),
            (Some(tls), Some(id)) => Stream::tls(stream, tls.dial(id).ok()?),
        };
        let token = Token(self.first_token + slot);
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.registry.register(&mut stream, token, interest).ok()?;
        let link = Link {
            stream,
            dialed,
            proves: false,
            from,
            is_neighbour: dialed.is_some() || self.is_neighbour(from),
            connected: dialed.is_none(),
            greeted: false,
            certified: None,
            peer: None,
            let_in: false,
            hello: None,
            was_member: false,
            info: PeerInfo::default(),
            input: BytesMut::new(),
            output: Outbox::default(),
            opened: now,
            last_heard: now,
            last_sent: now,
            readable: false,
            ending: false,
            dirty: true,
        };
        if link.connected {
            link.stream.socket().set_nodelay(true).ok()?;
        }
        self.slots[slot] = Some(link);
        self.greet(slot).ok(); // under TLS it is not time yet
        Some(slot)
    }

    /// Of as many as there may be one gives way: the one that has been here longest of those from the address
    /// that has sent most. Whoever means it is a stranger for a moment only, so who says nothing keeps nobody
    /// out, nor does who comes again and again keep out others.
    fn make_room_for_stranger(&mut self, is_neighbour: bool) {
        let mut by_address: BTreeMap<IpAddr, (usize, (Now, usize))> = BTreeMap::new();
        let mut count = 0;
        for (slot, link) in self.slots.iter().enumerate() {
            let Some(link) = link.as_ref() else {
                continue;
            };
            if link.is_stranger() && link.is_neighbour == is_neighbour {
                let oldest = (link.opened, slot);
                let of = by_address.entry(link.from).or_insert((0, oldest));
                *of = (of.0 + 1, of.1.min(oldest));
                count += 1;
            }
        }
        let most = by_address.into_values().max_by_key(|(count, _)| *count);
        if count >= STRANGERS_MAX
            && let Some((_, (_, slot))) = most
        {
            self.counters.closed_too_many += 1;
            let mut told: Vec<LinkEvent> = Vec::new(); // a stranger's end is no event
            self.close(slot, "too many strangers", &mut told);
        }
    }

    /// Keeps, for people, why a peer is not connected.
    pub(super) fn note_refusal(&mut self, slot: usize, text: String) {
        let Some(link) = self.slots[slot].as_ref().filter(|link| !link.proves) else {
            return; // who asks is told
        };
        let who = link.dialed.map_or(Who::At(link.from), Who::Replica);
        self.note_refused(who, text);
    }

    /// The log says it once for as long as it is shown, and again if it goes on: strangers come as often as
    /// they like, several from one address for different reasons. Whether it says it now.
    pub(super) fn note_refused(&mut self, who: Who, text: String) -> bool {
        let now = self.now;
        let of_whom = self.refused.keys().filter(|(other, _)| *other == who);
        let unknown = self.refused.keys().filter(|(other, _)| !other.is_known());
        let is_room = of_whom.count() < REASONS_MAX
            && (who.is_known() || unknown.count() < STRANGERS_REFUSED_MAX);
        let key = (who, text);
        let known = self.refused.get_mut(&key);
        let is_due =
            |refusal: &StrangerRefusal| now.0.saturating_sub(refusal.said_at.0) >= REFUSAL_SHOWN;
        let is_said = known.as_ref().map_or(is_room, |refusal| is_due(refusal));
        if is_said {
            let (who, text) = &key;
            tracing::warn!(peer = %who, text, "no connection");
        }
        match known {
            Some(refusal) => {
                refusal.at = now;
                if is_said {
                    refusal.said_at = now;
                }
            }
            None if is_room => {
                let refusal = StrangerRefusal {
                    at: now,
                    said_at: now,
                };
                self.refused.insert(key, refusal);
            }
            None => {}
        }
        is_said
    }

    /// It is refused no more.
    pub(super) fn forget_refusals_of(&mut self, id: ReplicaId) {
        let whose = Who::Replica(id);
        self.refused.retain(|(who, _), _| *who != whose);
    }
}

/// One who is refused, and why.
#[derive(Clone, Copy, Debug)]
pub(super) struct StrangerRefusal {
    /// When that happened last.
    pub at: Now,
    /// When the log said it last.
    said_at: Now,
}

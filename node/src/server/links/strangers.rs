//! Connections that come in: how many strangers may be here, how much time their handshakes may take, and which of
//! them give way. Whoever comes from a replica's address has room and time of its own, so a flood from elsewhere
//! keeps no replica out; whom we dial is bounded by how often we dial.
use super::{LINKS_MAX, Outbox, TimeBudget, clock};
use super::{Link, LinkEvent, Links, PeerInfo, STRANGERS_MAX, Stream};
use bytes::BytesMut;
use mio::net::TcpStream;
use mio::{Interest, Token};
use quorumwire_control::Now;
use quorumwire_interfaces::ReplicaId;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

impl Link {
    /// It came in, and has not said yet who it is.
    fn is_stranger(&self) -> bool {
        self.dialed.is_none() && self.peer.is_none()
    }
}

impl Links {
    /// Whoever waits to be accepted may be looked at again.
    pub fn begin_turn(&mut self, now: Now) {
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
            self.note_refused("strangers".into(), "too many peer connections".into());
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
            from,
            is_neighbour: dialed.is_some() || self.is_neighbour(from),
            connected: dialed.is_none(),
            greeted: false,
            certified: None,
            peer: None,
            info: PeerInfo {
                client: String::new(),
                redis: String::new(),
                own: String::new(),
                http: String::new(),
                plane: None,
            },
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
        let Some(link) = self.slots[slot].as_ref() else {
            return;
        };
        let who = match link.dialed {
            Some(id) => format!("replica {id}"),
            None => link.from.to_string(),
        };
        self.note_refused(who, text);
    }

    /// The log says it once for as long as it is shown: strangers come as often as they like.
    fn note_refused(&mut self, who: String, text: String) {
        let is_known = self.refused.get(&who).is_some_and(|(_, old)| *old == text);
        let is_room = self.refused.contains_key(&who) || self.refused.len() < LINKS_MAX;
        if is_room && !is_known {
            tracing::warn!(peer = who, text, "no connection");
        }
        if is_room {
            self.refused.insert(who, (self.now, text));
        }
    }
}

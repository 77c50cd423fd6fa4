//! Whom to dial and when, what came of it, and which members nobody has found.
use super::super::dial::{DIAL_PAUSE, Dial, Resolution, Source};
use super::Links;
use super::agreement::FOREIGN_DIAL_PAUSE;
use mio::net::TcpStream;
use quorumwire_control::Now;
use quorumwire_interfaces::ReplicaId;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

/// Of each pair the higher id dials. The lower one does, too, once the pair has had no connection for so
/// long, and then this often: the other may look for it where it is not any more.
pub const LOWER_DIALS_AFTER: Duration = Duration::from_secs(1);
/// A member without a connection for so long is shown to people, and the log says it once.
pub const MISSED_AFTER: Duration = Duration::from_secs(5);

impl Links {
    /// Sets where replicas are dialed: each at the first of its addresses, and at the next where nobody
    /// answers. Those not named any more are dialed no more.
    pub fn set_addresses(
        &mut self,
        addresses: &BTreeMap<ReplicaId, Vec<(Source, String)>>,
        now: Now,
    ) {
        self.dials.retain(|id, _| addresses.contains_key(id));
        for (id, addresses) in addresses {
            if u32::from(id.0) == self.hello.replica {
                continue;
            }
            let is_let_in = self.is_let_in(*id);
            match self.dials.entry(*id) {
                Entry::Occupied(known) => known.into_mut().set_addresses(addresses),
                Entry::Vacant(new) => {
                    let dial = new.insert(Dial::new(addresses, now));
                    if is_let_in {
                        dial.connected();
                    }
                }
            }
        }
    }

    fn is_let_in(&self, id: ReplicaId) -> bool {
        let link = self.up.get(&id).and_then(|slot| self.slots[*slot].as_ref());
        link.is_some_and(|link| link.let_in)
    }

    pub(super) fn dial_due(&mut self, now: Now) {
        let due = self.dials.iter().filter(|(id, dial)| {
            let is_turn =
                self.is_ours_to_dial(**id, dial) || dial.alone_for(now) >= LOWER_DIALS_AFTER;
            dial.link.is_none() && dial.next <= now && !self.up.contains_key(id) && is_turn
        });
        let due: Vec<ReplicaId> = due.map(|(id, _)| *id).collect();
        for id in due {
            self.dial(id, now);
        }
    }

    /// Each pair's higher id dials. Once the other does, too: who was just started is not found before the
    /// next dial otherwise.
    fn is_ours_to_dial(&self, id: ReplicaId, dial: &Dial) -> bool {
        self.dial_all || u32::from(id.0) < self.hello.replica || !dial.tried
    }

    fn dial(&mut self, id: ReplicaId, now: Now) {
        let Some(dial) = self.dials.get(&id) else {
            return;
        };
        let pause = if self.agreement.is_foreign(id) {
            FOREIGN_DIAL_PAUSE
        } else if self.is_ours_to_dial(id, dial) {
            DIAL_PAUSE
        } else {
            LOWER_DIALS_AFTER
        };
        let Some(dial) = self.dials.get_mut(&id) else {
            return;
        };
        dial.next = Now(now.0 + DIAL_PAUSE);
        let address = match dial.resolve() {
            Resolution::Address(address) => address,
            Resolution::NotYet | Resolution::Unknown => return,
        };
        dial.next = Now(now.0 + pause);
        match TcpStream::connect(address) {
            Ok(stream) => {
                let slot = self.open(stream, Some(id), address.ip(), now);
                if let Some(dial) = self.dials.get_mut(&id) {
                    dial.link = slot;
                }
            }
            Err(error) => {
                dial.failed(&error.to_string());
            }
        }
    }

    /// A dialed socket became writable: it is connected, or it failed.
    pub(super) fn finish_dial(&mut self, slot: usize, now: Now) {
        let Some(link) = self.slots[slot].as_mut() else {
            return;
        };
        match link.stream.socket().take_error() {
            Ok(None) => {}
            Ok(Some(error)) | Err(error) => {
                return self.close(slot, &error.to_string(), &mut Vec::new());
            }
        }
        if link.stream.socket().peer_addr().is_ok() {
            link.connected = true;
            link.last_heard = now;
            link.stream.socket().set_nodelay(true).ok();
            self.greet(slot).ok(); // under TLS it is not time yet
        }
    }

    /// What was dialed has ended; in vain for this reason, if there is one.
    pub(super) fn dial_ended(&mut self, slot: usize, in_vain: Option<&str>) {
        for dial in self
            .dials
            .values_mut()
            .filter(|dial| dial.link == Some(slot))
        {
            dial.link = None;
            if let Some(reason) = in_vain {
                dial.failed(reason);
            }
        }
    }

    /// The other side goes on behind its hello: it has let us in.
    pub(super) fn note_let_in(&mut self, slot: usize) {
        let Some(link) = self.slots[slot].as_mut() else {
            return;
        };
        let Some(peer) = link.peer.filter(|_| !link.let_in) else {
            return;
        };
        link.let_in = true;
        if let Some(dial) = self.dials.get_mut(&peer.id) {
            dial.connected();
        }
        self.forget_refusals_of(peer.id);
        tracing::info!(replica = peer.id.0, incarnation = %peer.incarnation, "peer connected");
    }

    /// Its connection is gone, unless another one has taken its place.
    pub(super) fn note_lost(&mut self, id: ReplicaId) {
        let is_gone = !self.up.contains_key(&id);
        if let Some(dial) = self.dials.get_mut(&id).filter(|_| is_gone) {
            dial.lost(self.now);
        }
    }

    fn is_missed(&self, id: ReplicaId, dial: &Dial) -> bool {
        // Before there is a list it is one of those that a cluster is to begin with.
        let is_member = self.members.is_empty() || self.members.contains_key(&id);
        is_member && dial.alone_for(self.now) >= MISSED_AFTER
    }

    /// Members that have had no connection for a while, and where they were looked for.
    pub fn missing(&self) -> impl Iterator<Item = (ReplicaId, String)> {
        let missing = self
            .dials
            .iter()
            .filter(|(id, dial)| self.is_missed(**id, dial));
        missing.map(|(id, dial)| (*id, dial.tried_in_words()))
    }

    /// The log says it once for each time that a member is missing.
    pub(super) fn tell_missing(&mut self, now: Now) {
        self.now = now;
        let is_news =
            |(id, dial): &(&ReplicaId, &Dial)| !dial.alone_told && self.is_missed(**id, dial);
        let missing: Vec<ReplicaId> = self
            .dials
            .iter()
            .filter(is_news)
            .map(|(id, _)| *id)
            .collect();
        for id in missing {
            if let Some(dial) = self.dials.get_mut(&id) {
                dial.alone_told = true;
                let tried = dial.tried_in_words();
                tracing::warn!(replica = id.0, tried, "a member is not connected");
            }
        }
    }
}

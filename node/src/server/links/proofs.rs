//! Whether a replica is at an address: somebody there shows and says that it is this replica, and is told
//! nothing.
use super::super::dial::{DIAL_PAUSE, Dial, Resolution, Source};
use super::{LinkEvent, Links};
use mio::net::TcpStream;
use quorumwire_control::{Now, Peer};
use quorumwire_interfaces::{Incarnation, ReplicaId};
use quorumwire_wire::{check_hello, peer};
use std::time::Duration;

/// Questions at once.
pub const PROOFS_MAX: usize = 4;
/// How long looking for a replica at one address, by all that its name means, may take.
const PROOF_TIMEOUT: Duration = Duration::from_secs(5);

/// A question that is not answered yet.
pub(super) struct Proof {
    address: String,
    dial: Dial,
    until: Now,
}

impl Links {
    /// Asks whether this replica is at this address, of which somebody speaks; answered by
    /// [`LinkEvent::Proved`]. False: it is being looked for already, or too many are.
    pub fn prove(&mut self, id: ReplicaId, (source, address): (Source, &str), now: Now) -> bool {
        if self.proofs.contains_key(&id) || self.proofs.len() >= PROOFS_MAX {
            return false;
        }
        let proof = Proof {
            address: address.to_owned(),
            dial: Dial::new(&[(source, address.to_owned())], now),
            until: Now(now.0 + PROOF_TIMEOUT),
        };
        self.proofs.insert(id, proof);
        true
    }

    pub(super) fn go_on_proving(&mut self, now: Now, sink: &mut Vec<LinkEvent>) {
        let ids: Vec<ReplicaId> = self.proofs.keys().copied().collect();
        for id in ids {
            let Some(proof) = self.proofs.get_mut(&id) else {
                continue;
            };
            if now >= proof.until {
                let slot = proof.dial.link;
                self.disprove(id);
                if let Some(slot) = slot {
                    self.close(slot, "the question was given up", sink);
                }
            } else if proof.dial.link.is_none() && proof.dial.next <= now {
                proof.dial.next = Now(now.0 + DIAL_PAUSE);
                match proof.dial.resolve() {
                    Resolution::NotYet => {}
                    Resolution::Unknown => self.disprove(id),
                    Resolution::Address(address) => match TcpStream::connect(address) {
                        Ok(stream) => {
                            let slot = self.open(stream, Some(id), address.ip(), now);
                            self.note_proving(id, slot);
                        }
                        Err(error) => self.proof_failed(id, &error.to_string()),
                    },
                }
            }
        }
        sink.append(&mut self.proved);
    }

    fn note_proving(&mut self, id: ReplicaId, slot: Option<usize>) {
        if let Some(link) = slot.and_then(|slot| self.slots[slot].as_mut()) {
            link.proves = true;
        }
        if let Some(proof) = self.proofs.get_mut(&id) {
            proof.dial.link = slot;
        }
    }

    /// Somebody is there, and says who. Why the connection is closed now.
    pub(super) fn take_proof(&mut self, slot: usize, hello: &peer::Hello) -> String {
        let link = self.slots[slot].as_ref();
        let Some(id) = link.and_then(|link| link.dialed) else {
            return "no address was tried".to_owned();
        };
        match self.shown_by(id, hello) {
            Err(found) => found,
            Ok(peer) => {
                if let Some(proof) = self.proofs.remove(&id) {
                    self.proved.push(LinkEvent::Proved {
                        id,
                        address: proof.address,
                        outcome: Ok(peer),
                    });
                }
                "it is there".to_owned()
            }
        }
    }

    /// The life of this replica that says hello, or who else does.
    fn shown_by(&self, id: ReplicaId, hello: &peer::Hello) -> Result<Peer, String> {
        if hello.replica != u32::from(id.0) {
            return Err(format!("replica {} is there", hello.replica));
        }
        let mut ours = self.hello.clone();
        if hello.replica == ours.replica {
            ours.replica = !ours.replica; // this replica looks for itself, and is no other one
        }
        check_hello(&ours, hello)
            .and_then(|_| self.check_memory(hello))
            .map_err(|(reason, detail)| format!("{} {detail}", reason.name()))?;
        Ok(Peer {
            id,
            incarnation: Incarnation(hello.incarnation),
        })
    }

    /// A connection that was to show who is there has ended.
    pub(super) fn proof_link_ended(&mut self, slot: usize, why: &str) {
        let mut proofs = self.proofs.iter();
        let of_slot = proofs.find(|(_, proof)| proof.dial.link == Some(slot));
        if let Some(id) = of_slot.map(|(id, _)| *id) {
            self.proof_failed(id, why);
        }
    }

    fn proof_failed(&mut self, id: ReplicaId, why: &str) {
        let Some(proof) = self.proofs.get_mut(&id) else {
            return;
        };
        proof.dial.link = None;
        if proof.dial.failed(why) {
            self.disprove(id);
        }
    }

    /// It is not there.
    fn disprove(&mut self, id: ReplicaId) {
        if let Some(proof) = self.proofs.remove(&id) {
            self.proved.push(LinkEvent::Proved {
                id,
                outcome: Err(proof.dial.tried_in_words()),
                address: proof.address,
            });
        }
    }
}

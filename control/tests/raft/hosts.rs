//! What a simulated node does with its data plane: takes out what it stored, passes on its packets,
//! stops it. The plane itself is in `plane.rs`.
use crate::plane::Sent;
use crate::world::{Content, Envelope, World};
use quorumwire_control::Input;
use quorumwire_interfaces::Index;
use std::collections::VecDeque;

impl World {
    /// Stops a plane and hands over all it has.
    pub fn stop_plane(&mut self, id: u16, inputs: &mut VecDeque<Input>) {
        let node = self.nodes.get_mut(&id).expect("known replica");
        let plane = node.plane.as_mut().expect("a replica with a plane");
        plane.disengage();
        inputs.extend(plane.take_entries().map(Input::PlaneEntries));
        let registers = plane.registers;
        inputs.push_back(Input::Disengaged { registers });
    }

    /// A plane that was told to stop has stopped.
    pub fn finish_fence(&mut self, id: u16) {
        let node = self.nodes.get_mut(&id).expect("known replica");
        if std::mem::take(&mut node.fence_due) {
            let mut inputs = VecDeque::new();
            self.stop_plane(id, &mut inputs);
            let looked = std::mem::replace(&mut self.node(id).looks, false);
            for input in inputs {
                self.input(id, input);
            }
            self.node(id).looks = looked;
        }
    }

    /// What the host does first in every turn: takes what its plane has.
    pub fn look(&mut self, id: u16, inputs: &mut VecDeque<Input>) {
        let node = self.nodes.get_mut(&id).expect("known replica");
        if node.replica.is_none() || node.fence_due {
            return;
        }
        let Some(plane) = &mut node.plane else { return };
        let Some(voters) = plane.grant.as_ref().map(|grant| grant.voters.clone()) else {
            return;
        };
        inputs.extend(plane.take_entries().map(Input::PlaneEntries));
        let registers = plane.registers;
        inputs.push_back(Input::PlaneProgress { registers });
        let behind = plane.take_behind();
        inputs.extend(
            behind
                .iter()
                .map(|slot| Input::PlaneBehind(voters[*slot].id)),
        );
    }

    /// Puts a plane's packets on the network.
    pub fn transmit(&mut self, id: u16, sent: Sent) {
        let node = &self.nodes[&id];
        let (from, grant) = (node.peer, node.plane.as_ref().and_then(|p| p.grant.clone()));
        let Some(grant) = grant else { return };
        for (slot, frame) in sent {
            let to = grant.voters[slot];
            let link = (id, to.id.0);
            if !self.cut.contains(&link) && !self.plane_cut.contains(&link) {
                self.network.push(Envelope {
                    from,
                    to,
                    content: Content::Frame(frame),
                    held: false,
                });
            }
        }
    }

    /// Gives a command to a leader's plane.
    pub fn submit(&mut self, id: u16, payload: &[u8]) -> Option<Index> {
        let plane = self.node(id).plane.as_mut()?;
        let (index, sent) = plane.submit(payload)?;
        self.transmit(id, sent);
        if self.nodes[&id].looks_now() {
            self.turn(id);
        }
        Some(index)
    }

    /// A turn in which the host only looks at its plane.
    pub fn turn(&mut self, id: u16) {
        let mut inputs = VecDeque::new();
        self.look(id, &mut inputs);
        let looked = std::mem::replace(&mut self.node(id).looks, false);
        for input in inputs {
            self.input(id, input);
        }
        self.node(id).looks = looked;
    }
}

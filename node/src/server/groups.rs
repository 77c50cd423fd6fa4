//! The replicated logs of this server. One of them is at hand: `core` and `upkeep` hold it. What serves one
//! group serves the one at hand, and a turn takes them up one after the other. Connections of clients belong
//! to one of them, by the port to which they came; connections between replicas, people and options to all.
use super::connection_id::ConnectionId;
use super::core::{Core, Hosted};
use super::folder::Folder;
use super::fronts::Protocol;
use super::service::Service;
use super::snapshots::Snapshots;
use super::{Server, TOKEN_FIRST_LINK, TOKEN_FIRST_LISTENER, administration::Waiting};
use quorumwire_control::{Now, Ticket};
use quorumwire_interfaces::{GroupId, Index};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::mem::swap;

/// Where native clients of a second group connect: an option for tests, in no help text. Replicas compare it.
pub const SECOND_GROUP: &str = "second-group-listen-client";

/// Groups of a server.
pub const GROUPS_MAX: usize = 2;
// Each of those behind the first has a port for clients.
const _: () = assert!(TOKEN_FIRST_LISTENER + Protocol::ALL.len() + GROUPS_MAX <= TOKEN_FIRST_LINK);

/// What this server keeps of a group beside what its requests need.
pub struct Upkeep<A> {
    /// Its data folder.
    pub folder: Folder,
    pub snapshots: Snapshots<A>,
    /// People, and others, who wait for an answer of consensus.
    pub waiting: BTreeMap<Ticket, Waiting>,
    /// The last snapshot failed; when to try again.
    pub snapshot_retry_at: Option<Now>,
    pub ready_once_applied: Index,
}

/// A group that is not at hand.
pub type Other<S> = (Box<Core<S>>, Box<Upkeep<<S as Hosted>::Application>>);

/// The name of the group at this place of the list.
pub fn group_at(place: usize) -> GroupId {
    GroupId(u32::try_from(place).expect("there are few groups"))
}

impl<S: Service> Server<S> {
    /// Has the group at this place of the list at hand.
    pub fn take_up(&mut self, place: usize) {
        if place == self.at_hand {
            return;
        }
        // Each of the others is where it belongs, the first in the place of the one at hand.
        for moved in [self.at_hand, place] {
            if let Some((core, upkeep)) = moved.checked_sub(1).map(|it| &mut self.others[it]) {
                swap(&mut self.core, core);
                swap(&mut self.upkeep, upkeep);
            }
        }
        self.at_hand = place;
    }

    /// Takes up one group after the other, in each turn another one first, so that none has all of what a
    /// turn has time for. The first of the list is at hand again then.
    pub fn each_group(&mut self, mut act: impl FnMut(&mut Self)) {
        let Ok(()) = self.try_each_group(|server| {
            act(server);
            Ok::<(), Infallible>(())
        });
    }

    /// The same, until one fails.
    pub fn try_each_group<E>(
        &mut self,
        mut act: impl FnMut(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        let count = self.others.len() + 1;
        for number in 0..count {
            self.take_up((self.first_in_turn + number) % count);
            act(self)?;
        }
        self.take_up(0);
        Ok(())
    }

    /// All groups, the one at hand first.
    pub fn cores(&self) -> impl Iterator<Item = &Core<S>> {
        let others = self.others.iter().map(|(core, _)| &**core);
        [&*self.core].into_iter().chain(others)
    }

    /// The same, to be changed.
    pub fn cores_mut(&mut self) -> impl Iterator<Item = &mut Core<S>> {
        let others = self.others.iter_mut().map(|(core, _)| &mut **core);
        [&mut *self.core].into_iter().chain(others)
    }

    /// Nobody waits for the reads of this connection any more.
    pub fn forget_reads_of(&mut self, connection: ConnectionId) {
        self.cores_mut()
            .for_each(|core| core.forget_reads_of(connection));
    }
}

/// All groups of a server, each with its place in the list; the first, in `core`, is the one at hand.
pub fn placed<'a, S: Service>(
    at_hand: usize,
    core: &'a mut Core<S>,
    others: &'a mut [Other<S>],
) -> impl Iterator<Item = (usize, &'a mut Core<S>)> {
    // The first of the list is where the one at hand belongs.
    let places = (1..).map(move |place| if place == at_hand { 0 } else { place });
    let others = others.iter_mut().map(|(core, _)| &mut **core);
    [(at_hand, core)].into_iter().chain(places.zip(others))
}

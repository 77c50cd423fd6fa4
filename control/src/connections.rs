//! Who is connected, and in which life. What is said over the connections is decided elsewhere.
use crate::mutants::mutant;
use crate::{Output, Peer, Promise, Replica};
use quorumwire_interfaces::{Incarnation, ReplicaId};

/// Most replicas, members or not, whose connections are remembered.
const CONNECTIONS_MAX: usize = 256;

/// What is known of a replica one is or was connected to.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) incarnation: Incarnation,
    pub(crate) up: bool,
    /// The life of it that our last `Fresh` was addressed to.
    pub(crate) fresh_sent_to: Option<Incarnation>,
    /// Its last `Fresh` that fits a bootstrap.
    pub(crate) fresh_from: Option<ReadyToBegin>,
    /// It said in the handshake of this connection that it has a data plane.
    pub(crate) has_plane: bool,
    /// What it promised in the handshake of this connection.
    promise: Promise,
}

/// What a replica said that is ready to begin a cluster.
#[derive(Debug)]
pub(crate) struct ReadyToBegin {
    pub(crate) peer_address: String,
    /// With whom; empty if its code does not tell.
    pub(crate) members: Vec<ReplicaId>,
}

impl Replica {
    pub(crate) fn peer_up(&mut self, peer: Peer, promise: Promise, outputs: &mut Vec<Output>) {
        if peer.id == self.config.me.id {
            self.counters.ignored_unexpected += 1;
            return;
        }
        if self.connections.len() >= CONNECTIONS_MAX && !self.connections.contains_key(&peer.id) {
            self.connections.retain(|_, connection| connection.up);
            if self.connections.len() >= CONNECTIONS_MAX {
                self.counters.ignored_stranger += 1;
                return;
            }
        }
        let connection = self.connections.entry(peer.id).or_insert(Connection {
            incarnation: peer.incarnation,
            up: true,
            fresh_sent_to: None,
            fresh_from: None,
            has_plane: false,
            promise,
        });
        connection.promise = promise;
        connection.up = true;
        connection.has_plane = false;
        if connection.incarnation != peer.incarnation {
            let gone = Peer {
                id: peer.id,
                incarnation: connection.incarnation,
            };
            connection.incarnation = peer.incarnation;
            connection.fresh_from = None;
            self.lose_sight_of(gone);
        }
        if let Some(leading) = &mut self.leading {
            leading.peer_up(peer);
        }
        self.find_voter(peer);
        if !self.members.is_known() {
            self.say_fresh(peer, outputs);
        }
    }

    pub(crate) fn peer_down(&mut self, peer: Peer) {
        if let Some(connection) = self.connections.get_mut(&peer.id)
            && connection.incarnation == peer.incarnation
        {
            connection.up = false;
            connection.fresh_from = None;
            self.lose_sight_of(peer);
        }
    }

    /// Whether the connection to that life of a replica broke and does not stand again. One that never
    /// stood did not break.
    pub(crate) fn is_cut_off(&self, peer: Peer) -> bool {
        let connection = self.connections.get(&peer.id);
        connection.is_some_and(|c| !c.up || c.incarnation != peer.incarnation)
    }

    pub(crate) fn plane_peer(&mut self, id: ReplicaId, has_plane: bool) {
        match self.connections.get_mut(&id) {
            Some(connection) if connection.up => connection.has_plane = has_plane,
            Some(_) | None => self.counters.ignored_unexpected += 1,
        }
    }

    /// What a replica promised when it connected in this life; nothing if that is not known.
    pub(crate) fn promise_of(&self, peer: Peer) -> Promise {
        self.known_promise(peer).unwrap_or_default()
    }

    /// The same; `None` if that life of it has not connected since this process began.
    pub(crate) fn known_promise(&self, peer: Peer) -> Option<Promise> {
        let connection = self.connections.get(&peer.id);
        let connection = connection.filter(|c| c.incarnation == peer.incarnation);
        connection.map(|c| c.promise)
    }

    /// The life in which a replica is connected now.
    pub(crate) fn connected(&self, id: ReplicaId) -> Option<Incarnation> {
        self.connections
            .get(&id)
            .filter(|connection| connection.up)
            .map(|connection| connection.incarnation)
    }

    /// Whether a replica is connected in this life and has a data plane.
    pub(crate) fn has_plane(&self, peer: Peer) -> bool {
        let connection = self.connections.get(&peer.id);
        connection.is_some_and(|c| c.up && c.incarnation == peer.incarnation && c.has_plane)
    }

    /// A replica has since connected in another life.
    pub(crate) fn is_old_life(&self, peer: Peer) -> bool {
        self.connections
            .get(&peer.id)
            .is_some_and(|connection| connection.incarnation != peer.incarnation)
            && !mutant("old-life-heard")
    }
}

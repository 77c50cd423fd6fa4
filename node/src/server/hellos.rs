//! What other replicas said of themselves when they connected. The connections show it with how they stand.
use quorumwire_interfaces::{Index, ReplicaId};
use std::collections::BTreeMap;

/// What a replica that is connected has said of itself.
#[derive(Debug, Default)]
pub struct Hello {
    /// Where memcached clients connect to it.
    pub memcached_address: String,
    /// Where clients of the native protocol connect to it.
    pub native_address: String,
    pub has_plane: bool,
}

/// The newest list of members that somebody knows who is connected.
#[derive(Clone, Copy, Debug)]
pub struct NewestMembers {
    /// Of the entry that it is of.
    pub index: Index,
    pub known_by: ReplicaId,
    /// This replica is one of them.
    pub include_us: bool,
}

/// Of all that are connected.
#[derive(Debug, Default)]
pub struct Hellos {
    pub said: BTreeMap<ReplicaId, Hello>,
    pub newest_members: Option<NewestMembers>,
}

impl Hellos {
    /// Of whichever life of this replica is connected.
    pub fn of(&self, id: ReplicaId) -> Option<&Hello> {
        self.said.get(&id)
    }

    /// Of those that are connected and know members of behind `known`: who knows the newest, if this replica
    /// is none of them. They were told when they connected: later members are not seen.
    pub fn left_out_by(&self, known: Index) -> Option<ReplicaId> {
        let newest = self.newest_members.filter(|it| it.index > known)?;
        (!newest.include_us).then_some(newest.known_by)
    }
}

//! What stands in the data folder about the replica itself while it runs: which cluster it belongs to.
use super::Server;
use quorumwire_control::Replica;
use quorumwire_interfaces::{Incarnation, Lineage};
use quorumwire_storage::{FolderDisk, OpenError, Settings, restate_identity};
use quorumwire_wire::peer::Memory;
use std::sync::Arc;
use std::time::Duration;

/// The folder's identity.
pub struct Folder {
    disk: Arc<FolderDisk>,
    settings: Settings,
    /// As it stands on disk.
    lineage: Lineage,
    /// It could not be written, and people were told.
    is_refused: bool,
}

impl Folder {
    pub const fn new(disk: Arc<FolderDisk>, settings: Settings, lineage: Lineage) -> Self {
        Self {
            disk,
            settings,
            lineage,
            is_refused: false,
        }
    }

    /// The cluster it belongs to, as it stands on disk.
    pub const fn lineage(&self) -> Lineage {
        self.lineage
    }

    /// How long the promises of this process last.
    pub const fn promise(&self) -> Duration {
        self.settings.promise
    }

    /// Notes that nothing that was promised for longer is in force any more.
    pub fn shorten_promise(&self, incarnation: Incarnation) -> Result<(), OpenError> {
        restate_identity(&*self.disk, &self.settings, (incarnation, self.lineage))
    }

    /// Writes it down. What could not be written is tried again; the log says it, too.
    fn note(&mut self, incarnation: Incarnation, lineage: Lineage) {
        if !lineage.is_known() || lineage == self.lineage {
            return;
        }
        match restate_identity(&*self.disk, &self.settings, (incarnation, lineage)) {
            Ok(()) => {
                tracing::info!(%lineage, "this data folder belongs to this cluster");
                self.lineage = lineage;
                self.is_refused = false;
            }
            Err(error) if !self.is_refused => {
                tracing::error!(%error, "the cluster's lineage is not in the file identity yet");
                self.is_refused = true;
            }
            Err(_) => {}
        }
    }
}

/// What a replica remembers, as others are told.
pub fn memory_of(replica: &Replica) -> Memory {
    if replica.membership().members.is_empty() {
        Memory::Nothing
    } else {
        Memory::Members
    }
}

impl Server {
    /// Which cluster it is may be known by now: others are told, and it is kept for good.
    pub fn note_cluster(&mut self) {
        // Known once the entry that names it is durable: the folder never says of a cluster what its log does not.
        let lineage = self.core.replica.lineage();
        let remembers = memory_of(&self.core.replica) == Memory::Members;
        if self.core.links.cluster() != (lineage, remembers) {
            let events = &mut self.link_events;
            self.core.links.set_cluster(lineage, remembers, events);
            self.take_link_events();
        }
        self.folder.note(self.incarnation, lineage);
    }
}

//! What stands in the data folder about the replica itself while it runs: which cluster it belongs to.
use super::Server;
use super::core::Core;
use super::service::Service;
use quorumwire_control::Replica;
use quorumwire_interfaces::{Incarnation, Lineage};
use quorumwire_storage::{FolderDisk, OpenError, Settings, restate_identity};
use quorumwire_wire::peer::Memory;
use std::sync::Arc;
use std::time::Duration;

/// A replica that was the only voter in the copy elects itself when it starts, and takes writes.
const DIVERGENCE: &str = "it has committed entries in whose place the cluster's leader has others: its disk, or the \
     leader's, was put back to an older copy of itself. It takes no part any more. Keep a copy of its folder if its \
     own writes matter, then stop it, empty the folder, and start it again. If several replicas say so, look at the \
     leader's disk first";

/// The folder's identity.
pub struct Folder {
    disk: Arc<FolderDisk>,
    settings: Settings,
    /// As it stands on disk.
    lineage: Lineage,
    /// It could not be written, and people were told.
    is_refused: bool,
    /// People were told that what is in it is not what the cluster has.
    is_divergence_told: bool,
}

impl Folder {
    pub const fn new(disk: Arc<FolderDisk>, settings: Settings, lineage: Lineage) -> Self {
        Self {
            disk,
            settings,
            lineage,
            is_refused: false,
            is_divergence_told: false,
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

impl<S: Service> Core<S> {
    /// What was committed here and is not what the cluster's leader has.
    pub fn divergence(&self) -> Option<String> {
        (self.group.replica.status().counters.ignored_diverged > 0).then(|| DIVERGENCE.to_owned())
    }
}

impl<S: Service> Server<S> {
    /// Whoever reads the log learns it once.
    pub fn tell_divergence(&mut self) {
        if !self.upkeep.folder.is_divergence_told
            && let Some(text) = self.core.divergence()
        {
            tracing::error!(text, "this replica contradicts its cluster");
            self.upkeep.folder.is_divergence_told = true;
        }
    }

    /// Which cluster it is may be known by now: others are told, and it is kept for good.
    pub fn note_cluster(&mut self) {
        // Known once the entry that names it is durable: the folder never says of a cluster what its log does
        // not.
        let lineage = self.core.group.replica.lineage();
        let remembers = memory_of(&self.core.group.replica) == Memory::Members;
        if self.links.cluster() != (lineage, remembers) {
            let events = &mut self.link_events;
            self.links.set_cluster(lineage, remembers, events);
            self.show_links();
            self.take_link_events();
        }
        (self.links).set_committed(self.core.group.replica.committed_members());
    }

    /// What is known of the cluster of the group at hand is kept for good.
    pub fn note_lineage(&mut self) {
        let lineage = self.core.group.replica.lineage();
        self.upkeep.folder.note(self.incarnation, lineage);
    }
}

//! The data plane as the server has it: which one it is, with which keys it signs, and what keeps it from
//! running.
use super::origin::Origin;
use crate::keys::ClusterKeys;
use crate::report::DataPlaneReport;
use quorumwire_client::planes::lineage;
use quorumwire_control::Engage;
use quorumwire_group::PlaneOptions;
use quorumwire_interfaces::{
    DataPlane, Endpoint, GroupId, Lineage, PlaneKeyPair, PlaneKeys, counters,
};

/// Bytes of commands that may wait until the plane has room; then clients wait.
const WAITING_BYTES_MAX: usize = 8 << 20;

/// A data plane with what is on the way to it and from it.
pub type Plane = quorumwire_group::Plane<Origin, dyn DataPlane>;

/// What this server keeps of a plane beside what the group does.
pub struct Hosting {
    /// As options and status call it.
    pub name: &'static str,
    /// Why it is this one.
    pub choice: Option<DataPlaneReport>,
    /// What keeps it from running, as people were last told.
    fault_told: Option<String>,
    /// Where others reach it.
    pub endpoint: Endpoint,
    /// Those of the secret file.
    from_file: Option<ClusterKeys>,
    /// The cluster that they are for.
    lineage: Lineage,
    /// What replicas sign with in place of what the secret file says.
    agreed: Option<PlaneKeyPair>,
    questions: Questions,
}

counters! {
    /// What became of clients' questions for the lineage.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct Questions {
        /// Times that a client of the data plane was told the cluster's lineage
        pub told: "plane_lineage_told",
        /// Questions for the lineage dropped because no list of members that is known here names this
        /// replica
        pub not_listed: "plane_foreign_dropped_not_listed",
        /// Questions for the lineage dropped because they are not signed with the clients' key
        pub not_authentic: "plane_foreign_dropped_not_authentic",
    }
}

/// What a plane is told when it is made.
pub fn plane_options(
    group: GroupId,
    endpoint: Endpoint,
    held: bool,
    first_sequence: u64,
    work_of: fn(&[u8]) -> usize,
) -> PlaneOptions {
    PlaneOptions {
        group,
        endpoint: Some(endpoint),
        held,
        first_sequence,
        waiting_bytes_max: WAITING_BYTES_MAX,
        work_of,
    }
}

impl Hosting {
    pub fn new(name: &'static str, endpoint: Endpoint) -> Self {
        Self {
            name,
            choice: None,
            fault_told: None,
            endpoint,
            from_file: None,
            lineage: Lineage::default(),
            agreed: None,
            questions: Questions::default(),
        }
    }

    /// Tells clients that have asked for it the cluster's lineage; `was_listed`: the members name this
    /// replica.
    pub fn tell_lineage(&mut self, plane: &mut Plane, was_listed: bool) {
        for question in std::mem::take(&mut plane.brought.questions) {
            let keys = self.from_file.as_ref().map(ClusterKeys::of_clients_files);
            let answer = keys.and_then(|keys| lineage::tell(&keys, &question.bytes, self.lineage));
            match answer {
                None => self.questions.not_authentic += 1,
                Some(_) if !was_listed => self.questions.not_listed += 1,
                Some(answer) => {
                    self.questions.told += 1;
                    plane.send_foreign(question.from, &answer);
                }
            }
        }
    }

    /// Takes the keys of the secret file; of those only what is clients', where replicas agree on theirs.
    pub fn set_keys(&mut self, plane: &mut Plane, keys: &ClusterKeys) {
        self.from_file = Some(keys.clone());
        self.give_keys(plane);
    }

    /// Replicas sign with this from now on, whatever the secret file says.
    pub fn agree(&mut self, plane: &mut Plane, between_replicas: PlaneKeyPair) {
        self.agreed = Some(between_replicas);
        self.give_keys(plane);
    }

    /// The log says which cluster it is. Not while engaged: members are changed in software only.
    pub fn set_lineage(&mut self, plane: &mut Plane, lineage: Lineage) {
        if self.lineage != lineage {
            self.lineage = lineage;
            self.give_keys(plane);
        }
    }

    fn give_keys(&self, plane: &mut Plane) {
        let Some(from_file) = &self.from_file else {
            return;
        };
        let from_file = from_file.for_planes(self.lineage);
        let cluster = self.agreed.unwrap_or(from_file.cluster);
        plane.data_plane_mut().set_keys(&PlaneKeys {
            cluster,
            clients: from_file.clients,
        });
    }

    /// Whether the plane runs now as it was asked to.
    pub fn engage(&mut self, plane: &mut Plane, engage: &Engage) -> bool {
        let Err(error) = plane.engage(engage) else {
            return true;
        };
        // A fault is told once, not with every try.
        if !self.tell_fault(plane) {
            let term = engage.term.0;
            tracing::warn!(?error, term, "the data plane was not engaged");
        }
        false
    }

    /// Tells people, once, when something begins to keep the plane from running and when that has passed.
    /// Whether something does now.
    pub fn tell_fault(&mut self, plane: &Plane) -> bool {
        let fault = plane.data_plane().fault();
        if fault != self.fault_told.as_deref() {
            if let Some(fault) = fault {
                tracing::error!(fault, "the data plane cannot run");
            } else {
                tracing::info!("the data plane can run again");
            }
            self.fault_told = fault.map(str::to_owned);
        }
        self.fault_told.is_some()
    }

    /// What became of clients' questions for the lineage.
    pub const fn questions(&self) -> Questions {
        self.questions
    }
}

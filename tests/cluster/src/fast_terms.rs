//! Waits of clusters whose replicas may have data planes: until software has handed over to these.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::cluster::Cluster;
use crate::status::{Role, Status};

/// Tries that fail, as on a busy machine, are up to 10 s apart.
const FAST_TERM_WITHIN: Duration = Duration::from_mins(1);

impl Cluster<'_> {
    /// As [`Cluster::wait_for_leader`], and, with data planes, until all founders run its fast term: then
    /// no further term comes by itself.
    pub fn wait_for_settled_leader(&self) -> Result<u16> {
        if !self.has_planes() {
            return self.wait_for_leader();
        }
        let founders: Vec<_> = self.founders().collect();
        self.wait_for_fast_term(&founders)
    }

    /// Waits until these replicas run the same fast term, and one of them leads it; that one.
    pub fn wait_for_fast_term(&self, ids: &[u16]) -> Result<u16> {
        let mut leader = None;
        let what = format!("replicas {ids:?} to run a fast term");
        self.wait_for_within(&what, FAST_TERM_WITHIN, || {
            let statuses: Vec<_> = self.statuses();
            let of = |id: &u16| statuses.iter().find(|status| status.id == *id);
            let terms: BTreeSet<_> = ids
                .iter()
                .map(|id| of(id).and_then(|status| status.fast_term.as_ref()))
                .map(|fast| fast.map(|fast| fast.term))
                .collect();
            let is_leader = |status: &&Status| status.role == Role::Leader;
            leader = ids
                .iter()
                .filter_map(of)
                .find(is_leader)
                .map(|status| status.id);
            Ok(terms.len() == 1 && !terms.contains(&None) && leader.is_some())
        })?;
        leader.context("the condition names one")
    }

    /// As [`Cluster::wait_for_leader`], and, with data planes, until that leader's runs a fast term, with
    /// whichever majority is there.
    pub fn wait_for_fast_leader(&self) -> Result<u16> {
        if !self.has_planes() {
            return self.wait_for_leader();
        }
        let mut leader = None;
        self.wait_for_within("a leader that runs a fast term", FAST_TERM_WITHIN, || {
            leader = self.leader().filter(|id| self.is_fast(*id));
            Ok(leader.is_some())
        })?;
        leader.context("waited for one")
    }

    /// Whether a replica's data plane runs a fast term now, as far as it answers.
    fn is_fast(&self, id: u16) -> bool {
        self.status(id)
            .is_ok_and(|status| status.fast_term.is_some())
    }
}

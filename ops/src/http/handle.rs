//! The replica that is asked, and what is counted while it is. Every request has a copy.
use super::counters::HttpCounters;
use quorumwire_node::admin::{AdminError, AdminHandle, AdminRequest};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// See there.
#[derive(Clone)]
pub struct Handle {
    replica: AdminHandle,
    /// What the port counts, for reports.
    pub counters: Arc<HttpCounters>,
}

impl Handle {
    pub fn new(replica: AdminHandle) -> Self {
        Self {
            replica,
            counters: Arc::default(),
        }
    }

    /// See [`AdminHandle::may_back_up`].
    pub fn may_back_up(&self) -> Option<OwnedSemaphorePermit> {
        self.replica.may_back_up()
    }

    /// See [`AdminHandle::ask`].
    pub async fn ask<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<T>) -> AdminRequest,
    ) -> Result<T, AdminError> {
        self.replica.ask(request).await
    }
}

//! What the HTTP thread may ask of the event loop, and how the answer comes back. The loop answers
//! between two turns; nothing here runs on the way of a client's request.
use crate::report::Report;
use quorumwire_control::{MemberChange, Refusal};
use quorumwire_interfaces::ReplicaId;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};
use tokio::sync::oneshot;

/// Most requests waiting for the loop; more are refused at once.
pub const ADMIN_QUEUE_MAX: usize = 64;

/// A request and where its answer goes.
#[derive(Debug)]
pub enum AdminRequest {
    /// Describe yourself.
    Report(oneshot::Sender<Report>),
    /// Change the members (leader only).
    ChangeMembers(MemberChange, oneshot::Sender<Result<(), AdminError>>),
    /// Hand leadership over (leader only); `None` chooses the most up-to-date voter.
    Transfer(Option<ReplicaId>, oneshot::Sender<Result<(), AdminError>>),
    /// Take a snapshot now; answers its last index once it is in place.
    Snapshot(oneshot::Sender<Result<u64, AdminError>>),
    /// Hash the state; answers the applied index it belongs to and the hash.
    Digest(oneshot::Sender<Result<(u64, String), AdminError>>),
}

/// Why a request was not carried out.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum AdminError {
    /// The protocol refused; see there.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Something outside failed, such as the disk.
    #[error("{0}")]
    Failed(String),
    /// Too many requests are waiting ([`ADMIN_QUEUE_MAX`]), or the loop is gone.
    #[error("the replica does not answer")]
    Unavailable,
}

/// The HTTP thread's end of the queue.
#[derive(Clone)]
pub struct AdminHandle {
    queue: SyncSender<AdminRequest>,
    waker: Arc<mio::Waker>,
}

impl AdminHandle {
    /// A handle that fills `queue` and wakes its reader.
    pub fn new(queue: SyncSender<AdminRequest>, waker: Arc<mio::Waker>) -> Self {
        Self { queue, waker }
    }

    /// Asks and waits for the answer; the caller sets the deadline.
    pub async fn ask<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<T>) -> AdminRequest,
    ) -> Result<T, AdminError> {
        let (sender, receiver) = oneshot::channel();
        match self.queue.try_send(request(sender)) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                return Err(AdminError::Unavailable);
            }
        }
        self.waker.wake().map_err(|_| AdminError::Unavailable)?;
        receiver.await.map_err(|_| AdminError::Unavailable)
    }
}

//! What whoever serves people may ask of the event loop, and how the answer comes back. The loop answers
//! between two turns; nothing here runs on the way of a client's request.
use crate::report::Report;
use crate::tls::{ClientTls, People};
use quorumwire_control::{MemberChange, Refusal};
use quorumwire_interfaces::{Frozen, Index, ReplicaId};
use quorumwire_kv::MemoryChange;
use quorumwire_wire::BackupHead;
use rustls::{ClientConfig, ServerConfig};
use std::any::Any;
use std::fmt;
use std::net::TcpListener;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Most requests waiting for the loop; more are refused at once.
pub const ADMIN_QUEUE_MAX: usize = 64;
/// Backups written at once: each holds on to a whole state, whatever becomes of it meanwhile.
const BACKUPS_MAX: usize = 1;

/// Whoever serves people and their tools at `listen-http`, beside the event loop. The server opens the port
/// and answers what is asked through the handle; what is spoken there it does not know.
pub trait AdminService {
    /// Descriptors that it may need, those of its connections included.
    fn descriptors_max(&self) -> usize;

    /// Serves until the answer is dropped; fails if it cannot begin.
    fn serve(&self, port: AdminPort) -> anyhow::Result<Box<dyn Any>>;
}

/// What an [`AdminService`] serves with.
pub struct AdminPort {
    /// Where people connect.
    pub listener: TcpListener,
    /// Whom it asks.
    pub handle: AdminHandle,
    /// How connections are secured, if they are.
    pub tls: Option<AdminTls>,
}

/// How connections of people are secured; may change while the server runs.
#[derive(Clone, Debug)]
pub struct AdminTls(Arc<RwLock<AdminConfigs>>);

/// For connections that come in, and for those to other replicas.
#[derive(Clone, Debug)]
pub struct AdminConfigs {
    /// Of those that come in.
    pub accepts: Arc<ServerConfig>,
    /// Who may do what there.
    pub people: People,
    /// Of those to other replicas, if these can be asked.
    pub asks: Option<Arc<ClientConfig>>,
}

impl From<&ClientTls> for AdminConfigs {
    fn from(tls: &ClientTls) -> Self {
        Self {
            accepts: Arc::clone(&tls.http),
            people: tls.people.clone(),
            asks: tls.asks.clone(),
        }
    }
}

impl AdminTls {
    /// Secured by this.
    #[must_use]
    pub fn new(tls: &ClientTls) -> Self {
        Self(Arc::new(RwLock::new(tls.into())))
    }

    /// New connections are secured by this.
    pub(crate) fn set(&self, tls: &ClientTls) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = tls.into();
    }

    /// What new connections are secured by now.
    #[must_use]
    pub fn get(&self) -> AdminConfigs {
        let held = self.0.read().unwrap_or_else(PoisonError::into_inner);
        held.clone()
    }
}

/// A request and where its answer goes.
#[derive(Debug)]
pub enum AdminRequest {
    /// Describe yourself.
    Report(oneshot::Sender<Report>),
    /// Change the members (leader only).
    ChangeMembers(MemberChange, oneshot::Sender<Result<(), AdminError>>),
    /// Transfer leadership (leader only); `None` chooses the most up-to-date voter.
    Transfer(Option<ReplicaId>, oneshot::Sender<Result<(), AdminError>>),
    /// Change how much memory the items may take (leader only).
    ChangeMemory(MemoryChange, oneshot::Sender<Result<(), AdminError>>),
    /// Nobody is given values up to this instance any more (leader only).
    DeclareLost(u64, oneshot::Sender<Result<(), AdminError>>),
    /// Take a snapshot now; answers its last index once it is in place.
    Snapshot(oneshot::Sender<Result<u64, AdminError>>),
    /// Hash the state; answers the applied index it belongs to and the hash.
    Digest(oneshot::Sender<Result<(u64, String), AdminError>>),
    /// The index that everything acknowledged before now is at or before (leader only).
    ReadIndex(oneshot::Sender<Result<u64, AdminError>>),
    /// The state, once it has everything up to this index; for a backup.
    Freeze(Index, oneshot::Sender<Result<FrozenState, AdminError>>),
}

/// The state of one moment, to be written by another thread.
pub struct FrozenState {
    /// What it stands for, and whose it is.
    pub head: BackupHead,
    /// The state itself.
    pub state: Box<dyn Frozen>,
}

impl fmt::Debug for FrozenState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrozenState")
            .field("head", &self.head)
            .finish_non_exhaustive()
    }
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

/// Whoever asks holds this end of the queue.
#[derive(Clone)]
pub struct AdminHandle {
    queue: SyncSender<AdminRequest>,
    waker: Arc<mio::Waker>,
    backups: Arc<Semaphore>,
}

impl AdminHandle {
    /// A handle that fills `queue` and wakes its reader.
    #[must_use]
    pub fn new(queue: SyncSender<AdminRequest>, waker: Arc<mio::Waker>) -> Self {
        Self {
            queue,
            waker,
            backups: Arc::new(Semaphore::new(BACKUPS_MAX)),
        }
    }

    /// Leave to write a backup, given back when it is dropped; `None` if as many as may be are written.
    #[must_use]
    pub fn may_back_up(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.backups).try_acquire_owned().ok()
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

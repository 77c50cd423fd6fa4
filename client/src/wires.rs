//! Connections for machines that open none themselves: each has a task of its own, which says what comes and
//! when it ends.
use crate::addresses::{connect_to_any, look_up};
use crate::machine::{Action, LinkId};
use crate::settings::Settings;
use crate::tls::Tls;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;

/// Bytes read at once.
const READ_BYTES: usize = 64 << 10;
/// Reads of one connection that may wait for the machine; it is read no further until some are done with.
const READS_WAITING_MAX: usize = 4;
/// Bytes written at once, so that it shows how far a long command is.
const WRITE_BYTES: usize = 64 << 10;

/// What a connection says. The queue of them is bounded by the permits of reads.
pub enum LinkEvent {
    Connected(LinkId),
    Received(LinkId, Vec<u8>, OwnedSemaphorePermit),
    Wrote(LinkId),
    Lost(LinkId, String),
}

/// Where it says that.
pub type LinkEvents = UnboundedSender<LinkEvent>;

/// The longest sleep of who turns a machine; it has no meaning but that timers have an end.
pub const SLEEP_MAX: Duration = Duration::from_hours(1);

/// A machine's connections.
pub struct Wires {
    patience: Duration,
    tls: Option<Tls>,
    events: LinkEvents,
    open: BTreeMap<LinkId, Wire>,
}

/// A connection's task. Dropped, it ends.
struct Wire {
    send: UnboundedSender<Vec<u8>>,
    task: AbortHandle,
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Wires {
    /// As the settings say, and what connections say.
    pub fn new(settings: &Settings) -> (Self, UnboundedReceiver<LinkEvent>) {
        let (events, incoming) = unbounded_channel();
        let wires = Self {
            patience: settings.patience,
            tls: settings.tls.clone(),
            events,
            open: BTreeMap::new(),
        };
        (wires, incoming)
    }

    /// Does what a machine wants. A connection that has ended says so itself.
    pub fn carry_out(&mut self, action: Action) {
        match action {
            Action::Connect(link, address) => {
                let wire = self.begin(link, address);
                self.open.insert(link, wire);
            }
            Action::Send(link, bytes) => {
                if let Some(wire) = self.open.get(&link) {
                    wire.send.send(bytes).ok();
                }
            }
            Action::Close(link) => drop(self.open.remove(&link)),
        }
    }

    /// A connection has ended.
    pub fn lost(&mut self, link: LinkId) {
        self.open.remove(&link);
    }

    fn begin(&self, link: LinkId, address: String) -> Wire {
        let (send, outgoing) = unbounded_channel();
        let (tls, events, patience) = (self.tls.clone(), self.events.clone(), self.patience);
        let task = tokio::spawn(async move {
            let limit = Instant::now() + patience;
            let why = match timeout_at(limit, connect(&address, tls, limit)).await {
                Err(_) => format!("{address}: no connection within {patience:?}"),
                Ok(Err(error)) => format!("{address}: {error}"),
                Ok(Ok(stream)) => {
                    events.send(LinkEvent::Connected(link)).ok();
                    let ended = carry(link, stream, outgoing, &events).await;
                    format!("{address}: {ended}")
                }
            };
            events.send(LinkEvent::Lost(link, why)).ok();
        });
        Wire {
            send,
            task: task.abort_handle(),
        }
    }
}

/// Bytes both ways.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

async fn connect(address: &str, tls: Option<Tls>, limit: Instant) -> io::Result<Box<dyn Stream>> {
    let text = address.to_owned();
    let found = tokio::task::spawn_blocking(move || look_up(&text)).await;
    let found = found.map_err(io::Error::other)??;
    let stream = connect_to_any(&found, limit).await?;
    stream.set_nodelay(true)?;
    let Some(tls) = tls else {
        return Ok(Box::new(stream));
    };
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let name = tls.name_of(host).map_err(io::Error::other)?;
    let connector = TlsConnector::from(tls.config());
    Ok(Box::new(connector.connect(name, stream).await?))
}

/// Carries bytes until one side ends; why.
async fn carry(
    link: LinkId,
    stream: Box<dyn Stream>,
    mut outgoing: UnboundedReceiver<Vec<u8>>,
    events: &LinkEvents,
) -> String {
    let (mut from, mut to) = tokio::io::split(stream);
    let reads = Arc::new(Semaphore::new(READS_WAITING_MAX));
    let reading = async {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let Ok(permit) = Arc::clone(&reads).acquire_owned().await else {
                return "closed".to_owned();
            };
            match from.read(&mut buffer).await {
                Ok(0) => return "the replica closed the connection".to_owned(),
                Ok(count) => {
                    let bytes = buffer[..count].to_vec();
                    events.send(LinkEvent::Received(link, bytes, permit)).ok();
                }
                Err(error) => return error.to_string(),
            }
        }
    };
    let writing = async {
        while let Some(bytes) = outgoing.recv().await {
            for piece in bytes.chunks(WRITE_BYTES) {
                if let Err(error) = to.write_all(piece).await {
                    return error.to_string();
                }
                if bytes.len() > WRITE_BYTES {
                    events.send(LinkEvent::Wrote(link)).ok();
                }
            }
            if let Err(error) = to.flush().await {
                return error.to_string();
            }
        }
        "closed".to_owned()
    };
    first_of(reading, writing).await
}

/// What comes first of two.
async fn first_of<T>(one: impl Future<Output = T>, other: impl Future<Output = T>) -> T {
    let (mut one, mut other) = (std::pin::pin!(one), std::pin::pin!(other));
    std::future::poll_fn(|context| {
        let done = one.as_mut().poll(context);
        if done.is_ready() {
            return done;
        }
        other.as_mut().poll(context)
    })
    .await
}

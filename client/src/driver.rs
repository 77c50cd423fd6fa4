//! Gives the machine a clock and sockets: one task that turns it, one for each connection. What to do when is
//! decided in `machine/`.
use crate::addresses::{connect_to_any, look_up};
use crate::machine::{Action, Done, LinkId, Machine, Ticket};
use crate::settings::Settings;
use crate::tls::Tls;
use crate::{Counters, Error};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;

/// Bytes read at once.
const READ_BYTES: usize = 64 << 10;
/// Reads of one connection that may wait for the machine; it is read no further until some are done with.
const READS_WAITING_MAX: usize = 4;
/// Bytes written at once, so that it shows how far a long command is.
const WRITE_BYTES: usize = 64 << 10;
/// The longest sleep; it has no meaning but that timers have an end.
const SLEEP_MAX: Duration = Duration::from_hours(1);

/// What somebody wants.
pub enum RequestBody {
    Command(Vec<u8>),
    Query(Vec<u8>),
    /// To be let in by some replica.
    Greeting,
}

/// A request on its way to the machine, with who waits for it. The permit is what bounds their number; it is
/// given back when the request is done with, whether or not anybody still waits.
pub struct Request {
    pub body: RequestBody,
    pub reply: oneshot::Sender<Done>,
    pub permit: Option<OwnedSemaphorePermit>,
}

/// What wakes the machine. The queue of them is bounded by the permits of requests and of reads.
pub enum Event {
    Request(Request),
    Connected(LinkId),
    Received(LinkId, Vec<u8>, OwnedSemaphorePermit),
    Wrote(LinkId),
    Lost(LinkId, String),
}

/// How the machine is told.
pub type Events = UnboundedSender<Event>;

/// One who waits.
struct Waiter {
    reply: oneshot::Sender<Done>,
    _permit: Option<OwnedSemaphorePermit>,
}

/// A connection's task.
struct Wire {
    send: UnboundedSender<Vec<u8>>,
    task: AbortHandle,
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Turns a machine until nobody can ask for anything any more.
pub struct Driver {
    machine: Machine,
    begun: Instant,
    patience: Duration,
    tls: Option<Tls>,
    /// For connections; the one that requests come through is somebody else's, and its end is ours.
    events: Events,
    waiting: BTreeMap<Ticket, Waiter>,
    wires: BTreeMap<LinkId, Wire>,
    shown: Arc<Mutex<Counters>>,
}

impl Driver {
    /// A driver, what connections tell it through, and where its counters are shown.
    pub fn new(settings: &Settings) -> Result<(Self, UnboundedReceiver<Event>), Error> {
        let no_chance = |error: getrandom::Error| Error::Invalid(error.to_string());
        let chance = match settings.seed {
            Some(seed) => seed,
            None => getrandom::u64().map_err(no_chance)?,
        };
        let mut names = [0; 32];
        getrandom::fill(&mut names).map_err(no_chance)?;
        let (events, incoming) = unbounded_channel();
        let driver = Self {
            machine: Machine::new(settings, chance, names),
            begun: Instant::now(),
            patience: settings.patience,
            tls: settings.tls.clone(),
            events,
            waiting: BTreeMap::new(),
            wires: BTreeMap::new(),
            shown: Arc::default(),
        };
        Ok((driver, incoming))
    }

    /// Where its counters are shown.
    pub fn shown(&self) -> Arc<Mutex<Counters>> {
        Arc::clone(&self.shown)
    }

    /// Runs until `requests` has no sender any more; who still waits then is told that nothing is known.
    pub async fn run(
        mut self,
        mut requests: UnboundedReceiver<Event>,
        mut incoming: UnboundedReceiver<Event>,
    ) {
        self.machine.time_passed(Duration::ZERO);
        loop {
            self.act();
            let wake = self.machine.next_wake();
            let wake = wake.min(self.begun.elapsed() + SLEEP_MAX);
            let next = std::future::poll_fn(|context| {
                if let std::task::Poll::Ready(event) = requests.poll_recv(context) {
                    return std::task::Poll::Ready(event); // none: nobody asks any more
                }
                incoming.poll_recv(context)
            });
            match timeout_at(self.begun + wake, next).await {
                Ok(None) => return,
                Ok(Some(event)) => self.take(event),
                Err(_) => self.machine.time_passed(self.begun.elapsed()),
            }
            // What came together is looked at together.
            while let Ok(event) = requests.try_recv() {
                self.take(event);
            }
            while let Ok(event) = incoming.try_recv() {
                self.take(event);
            }
        }
    }

    fn take(&mut self, event: Event) {
        let now = self.begun.elapsed();
        match event {
            Event::Request(request) => {
                let taken = match request.body {
                    RequestBody::Command(command) => self.machine.submit(now, command),
                    RequestBody::Query(query) => self.machine.query(now, query),
                    RequestBody::Greeting => self.machine.greet(now),
                };
                match taken {
                    Ok(ticket) => {
                        let waiter = Waiter {
                            reply: request.reply,
                            _permit: request.permit,
                        };
                        self.waiting.insert(ticket, waiter);
                    }
                    // Who has stopped waiting needs no answer: likewise below.
                    Err(error) => drop(request.reply.send(Err(error))),
                }
            }
            Event::Connected(link) => self.machine.connected(now, link),
            Event::Received(link, bytes, _permit) => self.machine.received(now, link, &bytes),
            Event::Wrote(link) => self.machine.wrote(now, link),
            Event::Lost(link, why) => {
                self.wires.remove(&link);
                self.machine.lost(now, link, why);
            }
        }
    }

    /// Does what the machine wants, and tells who waits.
    fn act(&mut self) {
        for action in self.machine.take_actions() {
            match action {
                Action::Connect(link, address) => {
                    let wire = self.open(link, address);
                    self.wires.insert(link, wire);
                }
                Action::Send(link, bytes) => {
                    if let Some(wire) = self.wires.get(&link) {
                        wire.send.send(bytes).ok(); // ended: it says so itself
                    }
                }
                Action::Close(link) => drop(self.wires.remove(&link)),
            }
        }
        for (ticket, done) in self.machine.take_done() {
            if let Some(waiter) = self.waiting.remove(&ticket) {
                waiter.reply.send(done).ok();
            }
        }
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = self.machine.counters;
    }

    fn open(&self, link: LinkId, address: String) -> Wire {
        let (send, outgoing) = unbounded_channel();
        let (tls, events, patience) = (self.tls.clone(), self.events.clone(), self.patience);
        let task = tokio::spawn(async move {
            let limit = Instant::now() + patience;
            let why = match timeout_at(limit, connect(&address, tls, limit)).await {
                Err(_) => format!("{address}: no connection within {patience:?}"),
                Ok(Err(error)) => format!("{address}: {error}"),
                Ok(Ok(stream)) => {
                    events.send(Event::Connected(link)).ok();
                    let ended = carry(link, stream, outgoing, &events).await;
                    format!("{address}: {ended}")
                }
            };
            events.send(Event::Lost(link, why)).ok();
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
    events: &Events,
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
                    events.send(Event::Received(link, bytes, permit)).ok();
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
                    events.send(Event::Wrote(link)).ok();
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

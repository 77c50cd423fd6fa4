//! A port that speaks HTTP, on a thread of its own: its connections, how many there may be, and how long each
//! may take. What is asked and answered there is a router's affair.
use super::arrivals::{Arrival, Arrivals, GivesWay};
use super::backup::HandedOver;
use super::counters::HttpCounters;
use anyhow::Context as _;
use axum::Router;
use axum::extract::Extension;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use quorumwire_node::admin::{AdminConfigs, AdminTls};
use quorumwire_node::descriptors::Starvation;
use quorumwire_node::sparing::Sparing;
use quorumwire_node::tls::Standing;
use socket2::SockRef;
use std::any::Any;
use std::future::Future;
use std::net::TcpListener;
use std::pin::pin;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, timeout};
use tokio_rustls::TlsAcceptor;

/// Connections of [`serve_page`].
const PAGE_CONNECTIONS_MAX: usize = 64;
/// Largest head of a request.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// How long a client may take to send a request's head.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// Between two handshakes of TLS at least: a flood of them is not to take a processor from the event loop.
const HANDSHAKE_PAUSE: Duration = Duration::from_millis(5);
/// How long a connection may live: one request, and the time to take the answer. One that takes a backup
/// lives on as long as it takes something of it in every such time.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(75);
/// A connection on which nothing of what was sent is acknowledged for so long is closed: its client is gone.
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(30);
/// How long requests that are under way, and lookups of names, may go on when the server stops.
pub const STOP_TIMEOUT: Duration = Duration::from_secs(1);
static ACCEPT_FAILED: Sparing = Sparing::new();
static TIMELESS: Sparing = Sparing::new();
/// The end of the year 9999, and with it of HTTP's dates, since 1970.
pub const DATES_END: Duration = Duration::from_hours(70_389_528);
/// Pause after a failed accept, such as for want of a descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Threads that look names up for questions to other replicas; addresses need none.
pub const LOOKUP_THREADS_MAX: usize = 4;

/// The running HTTP server. Dropping it stops it and waits for its thread.
#[derive(Debug)]
pub struct HttpThread {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl HttpThread {
    /// Serves until it is dropped; fails if no thread can be started. Says when it stops.
    pub fn start(
        listener: TcpListener,
        port: Port,
        limits: Limits,
        stops: impl FnOnce() + Send + 'static,
    ) -> anyhow::Result<Self> {
        listener.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(LOOKUP_THREADS_MAX)
            .build()
            .context("starting the HTTP runtime")?;
        let listener = {
            let _inside = runtime.enter();
            tokio::net::TcpListener::from_std(listener).context("registering the HTTP listener")?
        };
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("http".to_owned())
            .spawn(move || run(runtime, serve(listener, port, limits, stopped, stops)))
            .context("starting the HTTP thread")?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for HttpThread {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the HTTP thread panicked");
        }
    }
}

/// Ends soon after `serving` does, also while a name is being looked up by something that hangs.
pub fn run(runtime: Runtime, serving: impl Future<Output = ()>) {
    runtime.block_on(serving);
    runtime.shutdown_timeout(STOP_TIMEOUT);
}

/// Serves a page that is neither a replica's nor a switch's, in the clear, until the answer is dropped.
///
/// # Errors
/// The system has no thread, or no event queue, for it.
pub fn serve_page(listener: TcpListener, router: Router) -> anyhow::Result<Box<dyn Any>> {
    let port = Port {
        router,
        tls: None,
        counters: Arc::default(),
    };
    let limits = Limits {
        connections: PAGE_CONNECTIONS_MAX,
        arrivals: PAGE_CONNECTIONS_MAX / 2,
    };
    Ok(Box::new(HttpThread::start(listener, port, limits, || {})?))
}

/// What every connection is served with.
#[derive(Clone)]
pub struct Port {
    /// What answers.
    pub router: Router,
    /// How connections are secured, if they are.
    pub tls: Option<AdminTls>,
    /// What is counted.
    pub counters: Arc<HttpCounters>,
}

/// How many connections there may be.
#[derive(Clone, Copy)]
pub struct Limits {
    /// Served at once, those in [`arrivals`](super::arrivals) included; more wait in the listener's queue.
    pub connections: usize,
    /// Of these, so many without a request's whole head.
    pub arrivals: usize,
}

async fn serve(
    listener: tokio::net::TcpListener,
    port: Port,
    limits: Limits,
    mut stopped: oneshot::Receiver<()>,
    stops: impl FnOnce(),
) {
    let slots = Arc::new(Semaphore::new(limits.connections));
    let arrivals = Arc::new(Arrivals::new(limits.arrivals));
    let mut connections = JoinSet::new();
    let mut starvation = Starvation::default();
    let mut pauses = tokio::time::interval(HANDSHAKE_PAUSE);
    pauses.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let next = async {
            if port.tls.is_some() {
                pauses.tick().await;
            }
            let accepted = accept(&listener, &slots, &mut starvation).await;
            port.counters.note(|it| it.starved = starvation.count);
            let (stream, slot) = accepted?;
            Some((stream, slot, arrivals.take_in().await))
        };
        let accepted = tokio::select! {
            _ = &mut stopped => break,
            accepted = next => accepted,
        };
        while connections.try_join_next().is_some() {}
        if let Some((stream, slot, (arrival, gives_way))) = accepted {
            port.counters.note(|it| it.accepted += 1);
            let served = serve_one(stream, port.clone(), arrival);
            let counters = Arc::clone(&port.counters);
            connections.spawn(unless_it_gives_way(served, gives_way, slot, counters));
        }
    }
    drop(listener);
    stops();
    let all = async { while connections.join_next().await.is_some() {} };
    if timeout(STOP_TIMEOUT, all).await.is_err() {
        tracing::warn!("stopped with HTTP requests unanswered");
    }
}

/// The next connection once there is a slot for it; `None` if accepting failed.
async fn accept(
    listener: &tokio::net::TcpListener,
    slots: &Arc<Semaphore>,
    starvation: &mut Starvation,
) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    let slot = Arc::clone(slots).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => Some((stream, slot)),
        Err(error) => {
            if !starvation.note(&error, listener, "http") && ACCEPT_FAILED.says(&error.to_string())
            {
                tracing::warn!(%error, "accepting an HTTP connection failed");
            }
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

/// Whoever gives way is told so by closing.
async fn unless_it_gives_way(
    served: impl Future<Output = ()>,
    gives_way: GivesWay,
    slot: OwnedSemaphorePermit,
    counters: Arc<HttpCounters>,
) {
    tokio::select! {
        biased; // once it is told so, nothing is carried out for it any more
        () = gives_way.wait() => counters.note(|it| it.gave_way += 1),
        () = served => {}
    }
    drop(slot);
}

async fn serve_one(stream: TcpStream, port: Port, arrival: Arrival) {
    // What fails here is noticed later, by its time limit.
    SockRef::from(&stream)
        .set_tcp_user_timeout(Some(UNACKNOWLEDGED_MAX))
        .ok();
    let Some(tls) = &port.tls else {
        return serve_connection(stream, port, arrival, Standing::Operator).await;
    };
    let AdminConfigs {
        accepts, people, ..
    } = tls.get();
    let accepted = TlsAcceptor::from(accepts).accept(stream);
    // Who does not speak TLS, or not in time, is told so by closing.
    let stream = match timeout(HEAD_TIMEOUT, accepted).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(_)) => return port.counters.note(|it| it.refused_by_tls += 1),
        Err(_) => return port.counters.note(|it| it.timed_out += 1),
    };
    let shown = stream.get_ref().1.peer_certificates();
    let standing = people.standing(shown);
    serve_connection(stream, port, arrival, standing).await;
}

/// Serves one connection, whose client has this standing, until it ends.
pub async fn serve_connection(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    port: Port,
    arrival: Arrival,
    standing: Standing,
) {
    let Port {
        router, counters, ..
    } = port;
    if !can_be_told(SystemTime::now()) {
        if TIMELESS.says("") {
            tracing::error!("the time of day is before 1970 or after 9999: HTTP answers nobody");
        }
        return counters.note(|it| it.broken += 1);
    }
    let handed_over = HandedOver::default();
    let router = router
        .layer(Extension(handed_over.clone()))
        .layer(Extension(standing));
    let router = TowerToHyperService::new(router);
    let requests = Arc::clone(&counters);
    let service = service_fn(move |request| {
        arrival.end();
        requests.note(|it| it.requests += 1);
        router.call(request)
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(HEAD_BYTES_MAX)
        .auto_date_header(false) // those who ask have clocks of their own
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    // A connection that broke or took too long has told its client by closing.
    loop {
        match timeout(CONNECTION_TIMEOUT, connection.as_mut()).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) if error.is_timeout() => return counters.note(|it| it.timed_out += 1),
            Ok(Err(_)) => return counters.note(|it| it.broken += 1),
            Err(_) if handed_over.take() => {}
            Err(_) => return counters.note(|it| it.timed_out += 1),
        }
    }
}

/// Whether HTTP has a date for it. For another one hyper panics, whether an answer is to have one or not.
pub fn can_be_told(time: SystemTime) -> bool {
    let since_epoch = time.duration_since(UNIX_EPOCH);
    since_epoch.is_ok_and(|since| since < DATES_END)
}

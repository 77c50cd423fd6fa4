//! `GET /v1/live`: a document a second about the whole cluster, as server-sent events. While somebody
//! listens, and only then, one task asks this replica and the others; all listeners are told the same. Who
//! does not take what is said is dropped.
use super::backup::HandedOver;
use super::handle::Handle;
use super::others::{self, Lookups, Transport};
use super::plain_error;
use crate::live::{LiveCluster, LiveDocument, Observation, REPORT_TIMEOUT, TICK};
use axum::body::{Body, HttpBody};
use axum::extract::Extension;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::body::Frame;
use quorumwire_node::admin::AdminTls;
use quorumwire_node::report::Report;
use quorumwire_wire::limits::MEMBERS_MAX;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};

/// Listeners served at once; one more is told to come again later.
pub const LISTENERS_MAX: usize = 32;
/// Documents that may wait for a slow listener; with one more it is dropped.
const DOCUMENTS_WAITING_MAX: usize = 4;

/// Whoever listens, and what they are told.
pub struct Live {
    handle: Handle,
    tls: Option<AdminTls>,
    lookups: Lookups,
    listeners: Mutex<Listeners>,
}

#[derive(Default)]
struct Listeners {
    each: Vec<Sender<Bytes>>,
    /// What was said last: a new listener need not wait for the next.
    latest: Option<Bytes>,
    is_gathering: bool,
    has_stopped: bool,
}

impl Live {
    /// Nobody listens yet.
    pub fn new(handle: Handle, tls: Option<AdminTls>) -> Arc<Self> {
        Arc::new(Self {
            handle,
            tls,
            lookups: Lookups::default(),
            listeners: Mutex::default(),
        })
    }

    fn listeners(&self) -> MutexGuard<'_, Listeners> {
        self.listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends what is said to everybody, and takes nobody in any more.
    pub fn stop(&self) {
        let mut listeners = self.listeners();
        listeners.has_stopped = true;
        listeners.each.clear();
    }

    /// One more listener; none if there are as many as may be.
    fn join(self: &Arc<Self>) -> Option<Receiver<Bytes>> {
        let mut listeners = self.listeners();
        listeners.each.retain(|it| !it.is_closed());
        if listeners.each.len() >= LISTENERS_MAX || listeners.has_stopped {
            return None;
        }
        let (sender, documents) = mpsc::channel(DOCUMENTS_WAITING_MAX);
        if let Some(latest) = &listeners.latest {
            sender.try_send(latest.clone()).ok(); // a new queue has room
        }
        listeners.each.push(sender);
        if !std::mem::replace(&mut listeners.is_gathering, true) {
            tokio::spawn(gather(Gathers::begin(self)));
        }
        Some(documents)
    }

    /// Tells everybody; whether anybody is left to be told more.
    fn tell(&self, document: &Bytes) -> bool {
        let mut listeners = self.listeners();
        listeners
            .each
            .retain(|it| match it.try_send(document.clone()) {
                Ok(()) => true,
                Err(TrySendError::Full(_) | TrySendError::Closed(_)) => false,
            });
        listeners.is_gathering = !listeners.each.is_empty();
        let latest = listeners.is_gathering.then(|| document.clone());
        listeners.latest = latest;
        listeners.is_gathering
    }

    fn transport(&self) -> Transport {
        match self.tls.as_ref().map(|tls| tls.get().asks) {
            None => Transport::Plain,
            Some(Some(config)) => Transport::Tls(config),
            Some(None) => Transport::None,
        }
    }

    /// Asks this replica and all that it knows of.
    async fn observe(&self, cluster: &mut LiveCluster) -> Option<LiveDocument> {
        let own = timeout(REPORT_TIMEOUT, super::report(&self.handle)).await;
        let own = own.ok()?.ok()?;
        let mut others: BTreeMap<u16, String> = cluster
            .addresses()
            .map(|(id, http)| (id, http.to_owned()))
            .collect();
        let members = own.members.iter();
        others.extend(members.filter_map(|it| Some((it.id, it.http.clone()?))));
        others.remove(&own.id);
        let me = own.id;
        let mut seen = ask_all(others, &self.transport(), &self.lookups).await;
        seen.insert(me, Ok(own));
        let time = SystemTime::now().duration_since(UNIX_EPOCH);
        let time_ms = time.map_or(0, |it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX));
        Some(cluster.observe(Observation {
            at: Instant::now(),
            time_ms,
            made_by: Some(me),
            seen,
        }))
    }
}

async fn ask_all(
    addresses: BTreeMap<u16, String>,
    transport: &Transport,
    lookups: &Lookups,
) -> BTreeMap<u16, Result<Report, String>> {
    let mut asked = JoinSet::new();
    for (id, address) in addresses.into_iter().take(MEMBERS_MAX) {
        let (transport, lookups) = (transport.clone(), lookups.clone());
        asked.spawn(async move {
            let report = others::report(&address, &transport, &lookups, REPORT_TIMEOUT).await;
            // Somebody else may have got the address since.
            let report = report.and_then(|it| {
                let other = format!("{address} is replica {} now", it.id);
                (it.id == id).then_some(it).ok_or(other)
            });
            (id, report)
        });
    }
    let mut seen = BTreeMap::new();
    while let Some(answer) = asked.join_next().await {
        seen.extend(answer.ok()); // a task that was not carried out has nothing to say
    }
    seen
}

/// Whoever gathers. If it ends before nobody listens any more, as by a panic, all listeners are dropped: they
/// come again, and the first of them has another begin.
struct Gathers {
    live: Arc<Live>,
    is_done: bool,
}

impl Gathers {
    fn begin(live: &Arc<Live>) -> Self {
        Self {
            live: Arc::clone(live),
            is_done: false,
        }
    }
}

impl Drop for Gathers {
    fn drop(&mut self) {
        if self.is_done {
            return; // another may gather by now
        }
        let mut listeners = self.live.listeners();
        listeners.is_gathering = false;
        listeners.each.clear();
        listeners.latest = None;
    }
}

/// Runs as long as somebody listens.
async fn gather(mut gathers: Gathers) {
    let live = Arc::clone(&gathers.live);
    let mut cluster = LiveCluster::default();
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let event = match live.observe(&mut cluster).await {
            Some(document) => as_event(&document),
            // The connection stands, but there is nothing to say: a comment keeps the two apart.
            None => Bytes::from_static(b": the replica does not answer\n\n"),
        };
        if !live.tell(&event) {
            gathers.is_done = true;
            return;
        }
    }
}

fn as_event(document: &LiveDocument) -> Bytes {
    let document = serde_json::to_string(document).expect("names are texts");
    format!("event: live\ndata: {document}\n\n").into()
}

/// Begins to listen.
pub async fn listen(
    Extension(live): Extension<Arc<Live>>,
    Extension(handed_over): Extension<HandedOver>,
) -> Response {
    let Some(documents) = live.join() else {
        let error = format!("{LISTENERS_MAX} listeners are served already; try again later");
        return plain_error(StatusCode::SERVICE_UNAVAILABLE, &error);
    };
    let body = Body::new(Documents {
        documents,
        handed_over,
    });
    let head = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (head, body).into_response()
}

/// What one listener is told.
struct Documents {
    documents: Receiver<Bytes>,
    handed_over: HandedOver,
}

impl HttpBody for Documents {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let document = self.documents.poll_recv(context);
        if matches!(document, Poll::Ready(Some(_))) {
            self.handed_over.note();
        }
        document.map(|document| document.map(|it| Ok(Frame::data(it))))
    }
}

#[cfg(test)]
#[path = "live_test.rs"]
mod tests;

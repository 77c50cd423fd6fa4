//! Connections that have not sent a request's head yet, their handshakes of TLS included: there is little
//! room for them, so that silent ones leave room for those that speak. The oldest gives way, as at the ports
//! for clients.
use std::collections::BTreeMap;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep_until};

/// As many as there may be of a server; more wait in the listener's queue.
pub const ARRIVALS_MAX: usize = 128;
/// With as many as there may be, one that takes longer than this gives way to who waits.
pub const PATIENCE: Duration = Duration::from_secs(1);

/// All of them.
pub struct Arrivals {
    at_most: usize,
    open: Mutex<Open>,
    ended: Notify,
}

#[derive(Default)]
struct Open {
    /// By their number: since when, and how it is told to give way.
    each: BTreeMap<u64, (Instant, oneshot::Sender<()>)>,
    next_number: u64,
}

/// One of them, until it ends or is dropped.
pub struct Arrival {
    number: u64,
    arrivals: Arc<Arrivals>,
}

/// Tells a connection when to close.
pub struct GivesWay(oneshot::Receiver<()>);

impl GivesWay {
    /// Comes when it is to close: never, once its head has come.
    pub async fn wait(self) {
        if self.0.await.is_err() {
            pending::<()>().await;
        }
    }
}

impl Arrivals {
    /// There may be so many.
    pub fn new(at_most: usize) -> Self {
        Self {
            at_most,
            open: Mutex::default(),
            ended: Notify::new(),
        }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes one more in once there is room for it, if only because the oldest gives way. Only one may wait
    /// here.
    pub async fn take_in(self: &Arc<Self>) -> (Arrival, GivesWay) {
        while let Some(until) = self.full_until(Instant::now()) {
            tokio::select! {
                () = self.ended.notified() => {}
                () = sleep_until(until) => {}
            }
        }
        self.add(Instant::now())
    }

    /// When the oldest will have had its time; none if there is room, which there is once it has given way.
    fn full_until(&self, now: Instant) -> Option<Instant> {
        let mut open = self.open();
        if open.each.len() < self.at_most {
            return None;
        }
        let oldest = open.each.first_entry()?;
        let until = oldest.get().0 + PATIENCE;
        if until > now {
            return Some(until);
        }
        let (_, gives_way) = oldest.remove();
        gives_way.send(()).ok(); // else it has closed by itself
        None
    }

    fn add(self: &Arc<Self>, now: Instant) -> (Arrival, GivesWay) {
        let (sender, receiver) = oneshot::channel();
        let mut open = self.open();
        let number = open.next_number;
        open.next_number += 1;
        open.each.insert(number, (now, sender));
        drop(open);
        let arrival = Arrival {
            number,
            arrivals: Arc::clone(self),
        };
        (arrival, GivesWay(receiver))
    }
}

impl Arrival {
    /// Its head has come: it need not give way any more.
    pub fn end(&self) {
        if self.arrivals.open().each.remove(&self.number).is_some() {
            self.arrivals.ended.notify_one();
        }
    }
}

impl Drop for Arrival {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
#[path = "arrivals_test.rs"]
mod tests;

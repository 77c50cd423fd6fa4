//! Gives the machine a clock and sockets: one task that turns it, one for each connection. What to do when is
//! decided in `machine/`.
use crate::machine::{Done, Machine, Ticket};
use crate::settings::Settings;
use crate::wires::{LinkEvent, SLEEP_MAX, Wires};
use crate::{Counters, Error};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::{Instant, timeout_at};

/// What somebody wants.
pub enum RequestBody {
    Command(Vec<u8>),
    Query(Vec<u8>),
    /// To be let in by some replica.
    Greeting,
    /// That nobody waits any more, and nothing more is done.
    Close,
}

/// A request on its way to the machine, with who waits for it. The permit is what bounds their number; it is
/// given back when the request is done with, whether or not anybody still waits.
pub struct Request {
    pub body: RequestBody,
    pub reply: oneshot::Sender<Done>,
    pub permit: Option<OwnedSemaphorePermit>,
}

/// How the machine is asked. The queue is bounded by the permits of requests.
pub type Requests = UnboundedSender<Request>;

/// What wakes the machine.
enum Event {
    Request(Request),
    Link(LinkEvent),
}

/// One who waits.
struct Waiter {
    reply: oneshot::Sender<Done>,
    _permit: Option<OwnedSemaphorePermit>,
}

/// Turns a machine until nobody can ask for anything any more.
pub struct Driver {
    machine: Machine,
    begun: Instant,
    waiting: BTreeMap<Ticket, Waiter>,
    wires: Wires,
    shown: Arc<Mutex<Counters>>,
    is_closed: bool,
}

impl Driver {
    /// A driver, what connections tell it through, and where its counters are shown.
    pub fn new(settings: &Settings) -> Result<(Self, UnboundedReceiver<LinkEvent>), Error> {
        let no_chance = |error: getrandom::Error| Error::Invalid(error.to_string());
        let chance = match settings.seed {
            Some(seed) => seed,
            None => getrandom::u64().map_err(no_chance)?,
        };
        let mut names = [0; 32];
        getrandom::fill(&mut names).map_err(no_chance)?;
        let (wires, incoming) = Wires::new(settings);
        let driver = Self {
            machine: Machine::new(settings, chance, names),
            begun: Instant::now(),
            waiting: BTreeMap::new(),
            wires,
            shown: Arc::default(),
            is_closed: false,
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
        mut requests: UnboundedReceiver<Request>,
        mut incoming: UnboundedReceiver<LinkEvent>,
    ) {
        self.machine.time_passed(Duration::ZERO);
        loop {
            self.act();
            let wake = self.machine.next_wake();
            let wake = wake.min(self.begun.elapsed() + SLEEP_MAX);
            let next = std::future::poll_fn(|context| {
                if let Poll::Ready(request) = requests.poll_recv(context) {
                    return Poll::Ready(request.map(Event::Request)); // none: nobody asks any more
                }
                incoming.poll_recv(context).map(|it| it.map(Event::Link))
            });
            match timeout_at(self.begun + wake, next).await {
                Ok(None) => return,
                Ok(Some(event)) => self.take(event),
                Err(_) => self.machine.time_passed(self.begun.elapsed()),
            }
            // What came together is looked at together.
            while let Ok(request) = requests.try_recv() {
                self.take(Event::Request(request));
            }
            while let Ok(event) = incoming.try_recv() {
                self.take(Event::Link(event));
            }
        }
    }

    fn take(&mut self, event: Event) {
        let now = self.begun.elapsed();
        match event {
            Event::Request(request) => self.take_request(now, request),
            Event::Link(LinkEvent::Connected(link)) => self.machine.connected(now, link),
            Event::Link(LinkEvent::Received(link, bytes, _permit)) => {
                self.machine.received(now, link, &bytes);
            }
            Event::Link(LinkEvent::Wrote(link)) => self.machine.wrote(now, link),
            Event::Link(LinkEvent::Lost(link, why)) => {
                self.wires.lost(link);
                self.machine.lost(now, link, why);
            }
        }
    }

    fn take_request(&mut self, now: Duration, request: Request) {
        let taken = match request.body {
            RequestBody::Close => {
                self.is_closed = true;
                self.waiting.clear(); // they are told that nothing is known
                return;
            }
            RequestBody::Command(_) | RequestBody::Query(_) | RequestBody::Greeting
                if self.is_closed =>
            {
                Err(Error::NotCarriedOut("the client is closed".to_owned()))
            }
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

    /// Does what the machine wants, and tells who waits.
    fn act(&mut self) {
        for action in self.machine.take_actions() {
            self.wires.carry_out(action);
        }
        for (ticket, done) in self.machine.take_done() {
            if let Some(waiter) = self.waiting.remove(&ticket) {
                waiter.reply.send(done).ok();
            }
        }
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = self.machine.counters;
    }
}

//! Gives a subscription a clock and sockets: one task that turns it, one for its connection.
use crate::Error;
use crate::machine::feed::{Feed, FeedCounters, Item};
use crate::settings::Settings;
use crate::wires::{LinkEvent, SLEEP_MAX, Wires};
use quorumwire_deliver::{Instance, Learner};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, timeout_at};

/// What is shown of a subscription.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// What was done.
    pub counters: FeedCounters,
    /// Why it is at no replica, if it is not.
    pub trouble: Option<String>,
}

/// What somebody holds who is given values.
pub struct Ends {
    /// What has come; bounded by what may wait.
    pub items: UnboundedReceiver<Item>,
    /// Bytes that were taken. Dropped, the subscription ends.
    pub taken: UnboundedSender<u64>,
    pub shown: Arc<Mutex<Shown>>,
}

/// Turns a subscription until nobody takes values any more.
pub struct FeedDriver {
    feed: Feed,
    begun: Instant,
    wires: Wires,
    incoming: UnboundedReceiver<LinkEvent>,
    items: UnboundedSender<Item>,
    taken: UnboundedReceiver<u64>,
    shown: Arc<Mutex<Shown>>,
}

enum Event {
    Taken(u64),
    Link(LinkEvent),
}

impl FeedDriver {
    /// One, and what it gives to.
    pub fn new(
        settings: &Settings,
        begin: (Learner, Instance),
        window: u64,
    ) -> Result<(Self, Ends), Error> {
        let chance = match settings.seed {
            Some(seed) => seed,
            None => getrandom::u64().map_err(|error| Error::Invalid(error.to_string()))?,
        };
        let (wires, incoming) = Wires::new(settings);
        let (items_in, items) = unbounded_channel();
        let (taken_in, taken) = unbounded_channel();
        let shown = Arc::default();
        let driver = Self {
            feed: Feed::new(settings, begin, window, chance),
            begun: Instant::now(),
            wires,
            incoming,
            items: items_in,
            taken,
            shown: Arc::clone(&shown),
        };
        let ends = Ends {
            items,
            taken: taken_in,
            shown,
        };
        Ok((driver, ends))
    }

    /// Runs until nobody takes values any more, or none can come.
    pub async fn run(mut self) {
        self.feed.time_passed(Duration::ZERO);
        loop {
            if !self.act() {
                return;
            }
            let wake = self.feed.next_wake();
            let wake = wake.min(self.begun.elapsed() + SLEEP_MAX);
            let (taken, incoming) = (&mut self.taken, &mut self.incoming);
            let next = std::future::poll_fn(|context| {
                if let std::task::Poll::Ready(bytes) = taken.poll_recv(context) {
                    return std::task::Poll::Ready(bytes.map(Event::Taken));
                }
                incoming.poll_recv(context).map(|it| it.map(Event::Link))
            });
            match timeout_at(self.begun + wake, next).await {
                Ok(None) => return,
                Ok(Some(event)) => self.take(event),
                Err(_) => self.feed.time_passed(self.begun.elapsed()),
            }
            // What came together is looked at together.
            while let Ok(bytes) = self.taken.try_recv() {
                self.take(Event::Taken(bytes));
            }
            while let Ok(event) = self.incoming.try_recv() {
                self.take(Event::Link(event));
            }
        }
    }

    fn take(&mut self, event: Event) {
        let now = self.begun.elapsed();
        match event {
            Event::Taken(bytes) => self.feed.taken(now, bytes),
            Event::Link(LinkEvent::Connected(link)) => self.feed.connected(now, link),
            Event::Link(LinkEvent::Received(link, bytes, _permit)) => {
                self.feed.received(now, link, &bytes);
            }
            Event::Link(LinkEvent::Wrote(_)) => {}
            Event::Link(LinkEvent::Lost(link, why)) => {
                self.wires.lost(link);
                self.feed.lost(now, link, why);
            }
        }
    }

    /// Does what is wanted, and hands over what has come. False: it is over.
    fn act(&mut self) -> bool {
        for action in self.feed.take_actions() {
            self.wires.carry_out(action);
        }
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.counters = self.feed.counters;
        if shown.trouble.as_deref() != self.feed.trouble() {
            shown.trouble = self.feed.trouble().map(str::to_owned);
        }
        drop(shown);
        for item in self.feed.take_items() {
            let is_last = matches!(item, Item::Over(_));
            if self.items.send(item).is_err() || is_last {
                return false;
            }
        }
        true
    }
}

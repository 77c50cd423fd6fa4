//! A learner's subscription: at which replica it is, how far it is, how much may still come. No socket and no
//! clock, as the machine of requests. A replica that dies, or is cut off from the others, is left for the
//! next one, which is asked for what comes behind the last value that came. So no value comes twice, none is
//! left out, and none comes before an earlier one, whichever replicas they come from.
use super::link::{Link, RequestKind, State};
use super::{Action, LinkId, Since, backoff};
use crate::Error;
use crate::settings::{Account, Settings};
use quorumwire_deliver::{Instance, Learner};
use quorumwire_wire::CLIENT_PROTOCOL_SUBSCRIPTIONS;
use quorumwire_wire::client::{
    Credit, FromServer, GoodbyeReason, Ping, Subscribe, Welcome, from_client, from_server::Body,
};
use quorumwire_wire::limits::VALUE_OVERHEAD_BYTES;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::time::Duration;

/// Longest text of a replica that is kept for people.
const TEXT_CHARACTERS_MAX: usize = 256;

/// What comes of a subscription, in order.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Item {
    /// The next value.
    Value(Instance, Vec<u8>),
    /// Nothing comes any more.
    Over(Error),
}

/// What a subscription has done.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct FeedCounters {
    /// Connections begun.
    pub connects: u64,
    /// Subscriptions that a replica has begun to serve.
    pub subscribed: u64,
    /// Connections lost after that.
    pub links_lost: u64,
    /// Values that came.
    pub values: u64,
    /// Connections given up because what came was not the protocol.
    pub malformed: u64,
}

/// Everything that is known of a subscription.
pub struct Feed {
    addresses: Vec<String>,
    account: Option<Account>,
    patience: Duration,
    retry: (Duration, Duration),
    chance: ChaCha8Rng,
    learner: Learner,
    /// Bytes of values that may wait here.
    window: u64,
    link: Option<Link>,
    /// The number of its request on that connection.
    request: Option<u64>,
    next_link: u64,
    turn: usize,
    connect_not_before: Since,
    failures: u32,
    failure: String,
    /// The name of the cluster: instances of another one mean something else.
    cluster: Option<String>,
    /// The least instance that the next value can have.
    next: Instance,
    /// Bytes that wait here.
    waiting: u64,
    /// Bytes that may be asked for again. Less than 0: more of them wait than may.
    owed: i64,
    is_over: bool,
    actions: Vec<Action>,
    items: Vec<Item>,
    /// What was done.
    pub counters: FeedCounters,
}

/// What a value counts while it waits.
#[must_use]
pub const fn counts(value: &[u8]) -> u64 {
    value.len() as u64 + VALUE_OVERHEAD_BYTES
}

impl Feed {
    /// Of settings that were checked. `window`: bytes of values that may wait here to be taken, 1 at least.
    #[must_use]
    pub fn new(
        settings: &Settings,
        (learner, from): (Learner, Instance),
        window: u64,
        chance: u64,
    ) -> Self {
        let mut chance = ChaCha8Rng::seed_from_u64(chance);
        Self {
            turn: chance.random_range(0..settings.addresses.len()),
            addresses: settings.addresses.clone(),
            account: settings.account.clone(),
            patience: settings.patience,
            retry: (settings.retry_min, settings.retry_max),
            chance,
            learner,
            window: window.clamp(1, u64::MAX >> 2),
            link: None,
            request: None,
            next_link: 0,
            connect_not_before: Since::ZERO,
            failures: 0,
            failure: "no replica has been reached".to_owned(),
            cluster: None,
            next: from.max(1),
            waiting: 0,
            owed: 0,
            is_over: false,
            actions: Vec::new(),
            items: Vec::new(),
            counters: FeedCounters::default(),
        }
    }

    /// What is to be done now.
    pub fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    /// What has come.
    pub fn take_items(&mut self) -> Vec<Item> {
        std::mem::take(&mut self.items)
    }

    /// Why it is at no replica, if it is not.
    #[must_use]
    pub fn trouble(&self) -> Option<&str> {
        self.request.is_none().then_some(&self.failure)
    }

    /// So many bytes are taken, as [`counts`] says: as many more may come.
    pub fn taken(&mut self, now: Since, bytes: u64) {
        self.waiting = self.waiting.saturating_sub(bytes);
        self.owed += i64::try_from(bytes).unwrap_or(i64::MAX >> 1);
        self.pump(now);
    }

    /// A connection has come about.
    pub fn connected(&mut self, now: Since, id: LinkId) {
        let account = self.account.clone();
        if let Some(link) = self.link_of(id) {
            link.connected(now, account.as_ref());
        }
        self.pump(now);
    }

    /// A connection broke, or did not come about.
    pub fn lost(&mut self, now: Since, id: LinkId, why: String) {
        self.give_up(now, id, why, false);
        self.pump(now);
    }

    /// Takes in what came on a connection.
    pub fn received(&mut self, now: Since, id: LinkId, bytes: &[u8]) {
        let Some(link) = self.link_of(id) else {
            return; // given up earlier
        };
        let (messages, end) = link.take_in(now, bytes);
        for (message, attachment) in messages {
            if let Err(why) = self.take_message(now, message, attachment) {
                self.give_up(now, id, why, true);
                break;
            }
        }
        if let Err(why) = end {
            self.counters.malformed += 1;
            self.give_up(now, id, why, true);
        }
        self.pump(now);
    }

    /// When [`time_passed`](Self::time_passed) has something to do.
    #[must_use]
    pub fn next_wake(&self) -> Since {
        match &self.link {
            _ if self.is_over => Since::MAX,
            Some(link) => link.next_wake(self.patience, self.patience),
            None => self.connect_not_before,
        }
    }

    /// Gives up a replica that is silent, and tries again what is due.
    pub fn time_passed(&mut self, now: Since) {
        let link = self.link.as_ref();
        let silent = link.filter(|link| link.is_silent(now, self.patience));
        if let Some(id) = silent.map(|link| link.id) {
            let why = format!("no answer within {:?}", self.patience);
            self.give_up(now, id, why, true);
        }
        self.pump(now);
    }

    fn link_of(&mut self, id: LinkId) -> Option<&mut Link> {
        self.link.as_mut().filter(|link| link.id == id)
    }

    /// The error: why the replica is left.
    fn take_message(
        &mut self,
        now: Since,
        message: FromServer,
        attachment: Vec<u8>,
    ) -> Result<(), String> {
        let Some(link) = &mut self.link else {
            return Ok(());
        };
        if self.is_over {
            return Ok(());
        }
        let is_ours = self.request == Some(message.request);
        match (link.state, message.body) {
            (_, Some(Body::Goodbye(goodbye))) => {
                let text = shortened(&goodbye.detail);
                if goodbye.reason() == GoodbyeReason::NotLetIn {
                    self.end(Error::NotLetIn(text.clone()));
                }
                Err(format!("the replica closed the connection: {text}"))
            }
            (State::Greeting, Some(Body::Welcome(welcome))) => self.welcome(now, &welcome),
            (State::Up, Some(Body::Value(value))) if is_ours => {
                self.value(value.instance, attachment)
            }
            (State::Up, Some(Body::Upto(upto))) if is_ours => {
                link.was_of_use = true;
                self.next = self.next.max(upto.instance.saturating_add(1));
                Ok(())
            }
            (State::Up, Some(Body::Trimmed(trimmed))) if is_ours && trimmed.upto >= self.next => {
                self.end(Error::Trimmed { upto: trimmed.upto });
                Ok(())
            }
            (State::Up, Some(Body::Refused(refused))) if is_ours => Err(shortened(&refused.detail)),
            (State::Up, Some(Body::Pong(_))) => {
                link.answered(message.request);
                Ok(())
            }
            (State::Up, Some(Body::Leader(_)) | None) => Ok(()),
            (State::Up, Some(_)) | (State::Greeting, Some(_) | None) | (State::Connecting, _) => {
                Err(self.malformed())
            }
        }
    }

    fn malformed(&mut self) -> String {
        self.counters.malformed += 1;
        "its answer makes no sense here".to_owned()
    }

    fn welcome(&mut self, now: Since, welcome: &Welcome) -> Result<(), String> {
        if welcome.protocol < CLIENT_PROTOCOL_SUBSCRIPTIONS {
            return Err("the replica is of a version without subscriptions".to_owned());
        }
        let known = self.cluster.get_or_insert_with(|| welcome.cluster.clone());
        if *known != welcome.cluster {
            let other = shortened(&welcome.cluster);
            return Err(format!("the replica is of another cluster, {other:?}"));
        }
        let Some(link) = &mut self.link else {
            return Ok(());
        };
        link.state = State::Up;
        link.moved_at = now;
        link.replica = Some(welcome.replica);
        let subscribe = Subscribe {
            learner: self.learner.into(),
            from: self.next,
            credit_bytes: self.window.saturating_sub(self.waiting),
        };
        let signed = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        self.owed = (signed(self.window) - signed(self.waiting)).min(0);
        let request = link.say(from_client::Body::Subscribe(subscribe));
        self.request = Some(request);
        self.counters.subscribed += 1;
        Ok(())
    }

    fn value(&mut self, instance: Instance, value: Vec<u8>) -> Result<(), String> {
        // Out of order, or more than it was asked for.
        let behind = instance.checked_add(1);
        let is_next = instance >= self.next && self.waiting < self.window;
        let Some(behind) = behind.filter(|_| is_next) else {
            return Err(self.malformed());
        };
        if let Some(link) = &mut self.link {
            link.was_of_use = true;
        }
        self.next = behind;
        self.waiting += counts(&value);
        self.counters.values += 1;
        self.items.push(Item::Value(instance, value));
        Ok(())
    }

    fn end(&mut self, error: Error) {
        self.is_over = true;
        self.items.push(Item::Over(error));
    }

    fn give_up(&mut self, now: Since, id: LinkId, why: String, close: bool) {
        let Some(link) = self.link.take_if(|link| link.id == id) else {
            return; // given up earlier
        };
        if close {
            self.actions.push(Action::Close(id));
        }
        self.counters.links_lost += u64::from(self.request.take().is_some());
        self.failure = why;
        self.failures = if link.was_of_use {
            0
        } else {
            self.failures + 1
        };
        // Each address is tried at once, then all of them after a while.
        let rounds = self.failures / u32::try_from(self.addresses.len()).unwrap_or(1);
        self.connect_not_before = now;
        if rounds > 0 {
            self.connect_not_before += backoff(&mut self.chance, self.retry, rounds);
        }
    }

    /// Does what can be done now.
    fn pump(&mut self, now: Since) {
        if self.is_over {
            if let Some(link) = self.link.take() {
                self.actions.push(Action::Close(link.id));
            }
            return;
        }
        if self.link.is_none() && now >= self.connect_not_before {
            self.turn = (self.turn + 1) % self.addresses.len();
            let id = LinkId(self.next_link);
            self.next_link += 1;
            self.counters.connects += 1;
            let address = self.addresses[self.turn].clone();
            self.actions.push(Action::Connect(id, address));
            self.link = Some(Link::new(now, id));
        }
        let Some(link) = &mut self.link else {
            return;
        };
        let owed = u64::try_from(self.owed).unwrap_or(0);
        if self.request.is_some() && owed > 0 && owed >= self.window / 4 {
            self.owed = 0;
            link.say(from_client::Body::Credit(Credit { bytes: owed }));
        }
        if link.state == State::Up && link.wants_ping(now, self.patience) {
            let ping = from_client::Body::Ping(Ping {});
            link.ask(now, RequestKind::Ping, ping, b"");
        }
        if !link.out.is_empty() {
            let bytes = std::mem::take(&mut link.out);
            self.actions.push(Action::Send(link.id, bytes));
        }
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(TEXT_CHARACTERS_MAX).collect()
}

#[cfg(test)]
#[path = "feed_test.rs"]
mod tests;

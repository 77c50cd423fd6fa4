//! What a client has asked and what came of it: which replica to ask, sessions, when to ask again, what is
//! known when there is no answer. No socket and no clock: time, bytes and chance are handed in; what to
//! connect to, to send and to close comes out.
//!
//! That a command runs once rests on this: its session was opened by an empty command that is never sent
//! twice, and it has a number with which no session begins. So a session that the replicas have forgotten
//! does not come back by a late copy of anything, and a copy is either recognised or refused, however late it
//! comes.
mod answers;
pub mod feed;
mod link;
mod session;

#[cfg(test)]
mod tests;

use crate::settings::{Account, Settings};
use crate::{Counters, Error};
use link::{Link, RequestKind, State};
use quorumwire_wire::client::{self, from_client::Body};
use quorumwire_wire::limits::SESSION_COMMAND_BYTES_MAX;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use session::{Name, Session};
use std::collections::BTreeMap;
use std::time::Duration;

/// A wait doubles at most so often.
const DOUBLINGS_MAX: u32 = 7;
/// After this time without a word, a connection is asked whether it lives.
const PING_AFTER: Duration = Duration::from_secs(5);
/// A leader that could not be reached where it is said to be is not looked for again before this has passed.
const HINT_PAUSE: Duration = Duration::from_secs(5);
/// The least time between two moves to another leader.
const FOLLOW_PAUSE: Duration = Duration::from_millis(100);
/// So many refusals in a row, and another replica is asked.
const REFUSED_IN_A_ROW_MAX: u32 = 8;

/// The wait before a try after so many, a little different each time.
fn backoff(chance: &mut ChaCha8Rng, (min, max): (Duration, Duration), tries: u32) -> Duration {
    let wait = min * (1 << tries.min(DOUBLINGS_MAX));
    let micros = u64::try_from(wait.min(max).as_micros()).unwrap_or(u64::MAX / 2);
    Duration::from_micros(micros + chance.random_range(0..=micros / 2))
}

/// Time since some moment that the client knows.
pub type Since = Duration;

/// Names a request.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Ticket(u64);

/// Names a connection; never used again.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct LinkId(u64);

/// What is to be done, in order.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Action {
    /// Connect, and say whether that worked.
    Connect(LinkId, String),
    /// Send these bytes.
    Send(LinkId, Vec<u8>),
    /// Close; nothing of it is wanted any more.
    Close(LinkId),
}

/// What came of a request.
pub type Done = Result<Vec<u8>, Error>;

/// What a request is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Command,
    Query,
    /// Nothing but to be welcome somewhere.
    Greeting,
}

/// A request without an answer.
struct Pending {
    kind: Kind,
    bytes: Vec<u8>,
    give_up_at: Since,
    not_before: Since,
    /// What a command is known by, once it has been sent.
    name: Option<Name>,
    /// It waits for its answer on the connection in use.
    is_out: bool,
    /// A sending of it may have been carried out, or may yet be.
    is_doubtful: bool,
    sendings: u32,
    /// Who was asked last.
    asked: Option<u32>,
    /// Why there is no answer yet.
    why: String,
}

/// Everything a client knows.
pub struct Machine {
    addresses: Vec<String>,
    account: Option<Account>,
    deadline: Duration,
    patience: Duration,
    retry_min: Duration,
    retry_max: Duration,
    chance: ChaCha8Rng,
    names: ChaCha8Rng,
    /// The connection that requests go to.
    link: Option<Link>,
    /// One to the leader, which will take its place.
    challenger: Option<Link>,
    next_link: u64,
    /// The address to try next, of those that are known.
    turn: usize,
    /// Where the leader is said to be.
    hint: Option<(u32, String)>,
    follow_not_before: Since,
    connect_not_before: Since,
    /// Connections in a row that came to nothing.
    failures: u32,
    /// Why.
    failure: String,
    session: Session,
    pending: BTreeMap<Ticket, Pending>,
    next_ticket: u64,
    actions: Vec<Action>,
    done: Vec<(Ticket, Done)>,
    /// When it was last looked for what can be done: what could not be done then waits for something else.
    pumped_at: Since,
    /// What was done and not done.
    pub counters: Counters,
}

impl Machine {
    /// Of settings that were checked ([`Settings::check`]). Waits are left to `chance`, sessions are named by
    /// `names`, which no other client may have. Times are since any moment that stays the same.
    #[must_use]
    pub fn new(settings: &Settings, chance: u64, names: [u8; 32]) -> Self {
        let mut chance = ChaCha8Rng::seed_from_u64(chance);
        Self {
            turn: chance.random_range(0..settings.addresses.len()),
            addresses: settings.addresses.clone(),
            account: settings.account.clone(),
            deadline: settings.deadline,
            patience: settings.patience,
            retry_min: settings.retry_min,
            retry_max: settings.retry_max,
            chance,
            names: ChaCha8Rng::from_seed(names),
            link: None,
            challenger: None,
            next_link: 0,
            hint: None,
            follow_not_before: Since::ZERO,
            connect_not_before: Since::ZERO,
            failures: 0,
            failure: "no replica has been reached".to_owned(),
            session: Session::default(),
            pending: BTreeMap::new(),
            next_ticket: 0,
            actions: Vec::new(),
            done: Vec::new(),
            pumped_at: Since::ZERO,
            counters: Counters::default(),
        }
    }

    /// Takes a command on.
    pub fn submit(&mut self, now: Since, command: Vec<u8>) -> Result<Ticket, Error> {
        if command.is_empty() {
            return Err(Error::Invalid("a command is not empty".to_owned()));
        }
        self.take_on(now, Kind::Command, command)
    }

    /// Takes a query on.
    pub fn query(&mut self, now: Since, query: Vec<u8>) -> Result<Ticket, Error> {
        self.take_on(now, Kind::Query, query)
    }

    /// Is done once a replica has let the client in.
    pub fn greet(&mut self, now: Since) -> Result<Ticket, Error> {
        self.take_on(now, Kind::Greeting, Vec::new())
    }

    fn take_on(&mut self, now: Since, kind: Kind, bytes: Vec<u8>) -> Result<Ticket, Error> {
        if bytes.len() > SESSION_COMMAND_BYTES_MAX {
            return Err(Error::TooLong {
                bytes: bytes.len(),
                max: SESSION_COMMAND_BYTES_MAX,
            });
        }
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        let pending = Pending {
            kind,
            bytes,
            give_up_at: now + self.deadline,
            not_before: now,
            name: None,
            is_out: false,
            is_doubtful: false,
            sendings: 0,
            asked: None,
            why: String::new(),
        };
        self.pending.insert(ticket, pending);
        self.pump(now);
        Ok(ticket)
    }

    /// Requests without an answer.
    #[must_use]
    pub fn pending_count(&self) -> usize {
        self.pending.len()
    }

    /// What is to be done now.
    pub fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    /// What requests came to, each once.
    pub fn take_done(&mut self) -> Vec<(Ticket, Done)> {
        std::mem::take(&mut self.done)
    }

    /// A connection has come about.
    pub fn connected(&mut self, now: Since, id: LinkId) {
        let account = self.account.clone();
        if let Some(link) = self.link_mut(id) {
            link.connected(now, account.as_ref());
        }
        self.pump(now);
    }

    /// Some of what was to be sent has left.
    pub fn wrote(&mut self, now: Since, id: LinkId) {
        if let Some(link) = self.link_mut(id) {
            link.moved_at = now;
        }
    }

    /// A connection broke, or did not come about.
    pub fn lost(&mut self, now: Since, id: LinkId, why: String) {
        self.drop_link(now, id, why, false);
        self.pump(now);
    }

    fn link_mut(&mut self, id: LinkId) -> Option<&mut Link> {
        let links = [&mut self.link, &mut self.challenger];
        links.into_iter().flatten().find(|link| link.id == id)
    }

    /// Gives a connection up. `close`: it stands still.
    fn drop_link(&mut self, now: Since, id: LinkId, why: String, close: bool) {
        let Some(link) = self.link_mut(id) else {
            return; // given up earlier
        };
        let was_up = link.state == State::Up;
        let was_of_use = link.was_of_use;
        let replica = link.replica;
        if close {
            self.actions.push(Action::Close(id));
        }
        self.counters.links_lost += u64::from(was_up);
        self.counters.connects_failed += u64::from(!was_up);
        self.failure = why;
        if self.challenger.as_ref().is_some_and(|it| it.id == id) {
            self.challenger = None;
            self.follow_not_before = now + HINT_PAUSE;
            return;
        }
        self.take_back_all(now);
        self.link = self.challenger.take();
        self.hint = self.hint.take().filter(|it| Some(it.0) != replica);
        self.failures = if was_of_use { 0 } else { self.failures + 1 };
        // Each address is tried at once, then all of them after a while.
        let rounds = self.failures / u32::try_from(self.addresses.len()).unwrap_or(1);
        let wait = if self.failures == 0 {
            Duration::ZERO
        } else {
            self.wait(rounds)
        };
        self.connect_not_before = now + wait;
    }

    /// What was sent on the connection in use will not be answered there.
    fn take_back_all(&mut self, now: Since) {
        let Some(link) = &mut self.link else {
            return;
        };
        for ask in link.take_asked() {
            match ask {
                RequestKind::Ping => {}
                // It is not sent again: whether it was taken is not known.
                RequestKind::Opening => self.session.discard(),
                RequestKind::Pending(ticket) => {
                    if let Some(pending) = self.pending.get_mut(&ticket) {
                        pending.is_out = false;
                        pending.is_doubtful |= pending.kind == Kind::Command;
                        pending.not_before = now;
                        "the connection was lost".clone_into(&mut pending.why);
                    }
                }
            }
        }
    }

    /// The wait before a try after so many, a little different each time.
    fn wait(&mut self, tries: u32) -> Duration {
        let retry = (self.retry_min, self.retry_max);
        backoff(&mut self.chance, retry, tries)
    }

    /// When [`time_passed`](Self::time_passed) has something to do.
    #[must_use]
    pub fn next_wake(&self) -> Since {
        let links = [&self.link, &self.challenger].into_iter().flatten();
        let of_links = links.map(|link| link.next_wake(self.patience, PING_AFTER));
        let give_up = self.pending.values().map(|pending| pending.give_up_at);
        let waiting = self.pending.values().filter(|pending| !pending.is_out);
        let tries = waiting.map(|pending| pending.not_before);
        let connect = self.link.is_none().then_some(self.connect_not_before);
        let tries = tries.chain(connect).chain(self.session.next_try());
        let tries = tries.filter(|at| *at > self.pumped_at);
        let wakes = of_links.chain(give_up).chain(tries);
        wakes.min().unwrap_or(Since::MAX)
    }

    /// Gives up what is too old, and tries again what is due.
    pub fn time_passed(&mut self, now: Since) {
        let late = |(ticket, it): (&Ticket, &Pending)| (it.give_up_at <= now).then_some(*ticket);
        let late: Vec<Ticket> = self.pending.iter().filter_map(late).collect();
        for ticket in late {
            self.give_up(ticket);
        }
        let links = [&self.link, &self.challenger].into_iter().flatten();
        let silent = links.filter(|link| link.is_silent(now, self.patience));
        let silent: Vec<LinkId> = silent.map(|link| link.id).collect();
        for id in silent {
            let why = format!("no answer within {:?}", self.patience);
            self.drop_link(now, id, why, true);
        }
        self.pump(now);
    }

    /// The request's time is over.
    fn give_up(&mut self, ticket: Ticket) {
        let Some(pending) = self.pending.get(&ticket) else {
            return;
        };
        let why = if pending.why.is_empty() {
            self.failure.clone()
        } else {
            pending.why.clone()
        };
        let error = match pending.kind {
            Kind::Command if pending.is_out || pending.is_doubtful => Error::OutcomeUnknown,
            Kind::Command => Error::NotCarriedOut(why),
            Kind::Query | Kind::Greeting => Error::NoAnswer(why),
        };
        self.finish(ticket, Err(error));
    }

    fn finish(&mut self, ticket: Ticket, done: Done) {
        let Some(pending) = self.pending.remove(&ticket) else {
            return;
        };
        if let Some(name) = pending.name {
            self.session.settled(name);
        }
        self.counters.outcomes_unknown += u64::from(done == Err(Error::OutcomeUnknown));
        self.done.push((ticket, done));
    }

    /// Does what can be done now.
    fn pump(&mut self, now: Since) {
        self.pumped_at = now;
        self.connect(now);
        self.follow(now);
        if self.link.as_ref().is_some_and(|it| it.state == State::Up) {
            self.open_session(now);
            self.send_due(now);
        }
        for link in [&mut self.link, &mut self.challenger] {
            let Some(link) = link else { continue };
            if link.state == State::Up && link.wants_ping(now, PING_AFTER) {
                link.ask(now, RequestKind::Ping, Body::Ping(client::Ping {}), b"");
            }
            if !link.out.is_empty() {
                let bytes = std::mem::take(&mut link.out);
                self.actions.push(Action::Send(link.id, bytes));
            }
        }
    }

    /// Where nobody is asked, somebody is found: the leader, or else whose turn it is.
    fn connect(&mut self, now: Since) {
        if self.link.is_some() || now < self.connect_not_before {
            return;
        }
        let hint = self.hint.take().filter(|_| self.failures == 0);
        let address = hint.map_or_else(|| self.next_address(), |(_, address)| address);
        self.link = Some(self.begin(now, address));
    }

    fn next_address(&mut self) -> String {
        self.turn = (self.turn + 1) % self.addresses.len();
        self.addresses[self.turn].clone()
    }

    fn begin(&mut self, now: Since, address: String) -> Link {
        let id = LinkId(self.next_link);
        self.next_link += 1;
        self.counters.connects += 1;
        self.actions.push(Action::Connect(id, address));
        Link::new(now, id)
    }

    /// Connects to the leader, if it is known to be another than the one in use.
    fn follow(&mut self, now: Since) {
        let Some((leader, address)) = self.hint.clone() else {
            return;
        };
        let replica = self.link.as_ref().and_then(|link| link.replica);
        let is_elsewhere = replica.is_some_and(|replica| replica != leader);
        if is_elsewhere && self.challenger.is_none() && now >= self.follow_not_before {
            self.challenger = Some(self.begin(now, address));
        }
    }

    fn open_session(&mut self, now: Since) {
        let is_wanted = |it: &Pending| it.kind == Kind::Command && it.name.is_none();
        if !self.pending.values().any(is_wanted) || !self.session.wants_opening(now) {
            return;
        }
        let name = self.session.open(&mut self.names);
        self.counters.sessions += 1;
        if let Some(link) = &mut self.link {
            link.ask(now, RequestKind::Opening, name.submit(), b"");
        }
    }

    fn send_due(&mut self, now: Since) {
        let Some(link) = &mut self.link else {
            return;
        };
        let mut greeted = Vec::new();
        for (ticket, pending) in &mut self.pending {
            if pending.is_out || pending.not_before > now {
                continue;
            }
            let body = match pending.kind {
                Kind::Greeting => {
                    greeted.push(*ticket);
                    continue;
                }
                Kind::Query => Body::Query(client::Query {}),
                Kind::Command => {
                    if pending.name.is_none() {
                        pending.name = self.session.next_name(now);
                    }
                    let Some(name) = pending.name else { continue };
                    name.submit()
                }
            };
            self.counters.sent += 1;
            if pending.sendings > 0 {
                self.counters.sent_again += 1;
                self.counters.sent_elsewhere += u64::from(pending.asked != link.replica);
            }
            pending.is_out = true;
            pending.sendings += 1;
            pending.asked = link.replica;
            link.ask(now, RequestKind::Pending(*ticket), body, &pending.bytes);
        }
        for ticket in greeted {
            self.finish(ticket, Ok(Vec::new()));
        }
    }
}

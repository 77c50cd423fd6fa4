//! Where another replica is dialed: each address that it may have, in turn. Names are looked up without
//! holding up the event loop. Opens no connection.
use crate::foreign_text::plain;
use quorumwire_client::addresses::look_up;
use quorumwire_control::Now;
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;
use std::time::Duration;

/// Pause between two dials of the same replica, unless it is at the next address of the same name.
pub const DIAL_PAUSE: Duration = Duration::from_millis(100);
/// How a name is looked up, on a thread of its own.
pub type LookUp = Arc<dyn Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync>;

/// Who says that a replica is at an address.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Source {
    /// The list of members, in the log.
    List,
    /// This server's options.
    Options,
    /// The replica itself.
    Member,
    /// Somebody who wants to know whether it is there.
    Question,
}

impl Source {
    const fn name(self) -> &'static str {
        match self {
            Self::List => "the list of members",
            Self::Options => "option members",
            Self::Member => "as it says",
            Self::Question => "as given",
        }
    }
}

/// An address in words, with what came of dialing it.
struct Candidate {
    source: Source,
    text: String,
    /// What its name meant last.
    found: Vec<IpAddr>,
    failures: Vec<String>,
    /// Those are of an earlier turn.
    is_new_turn: bool,
}

impl Candidate {
    fn note(&mut self, failure: String) {
        if std::mem::take(&mut self.is_new_turn) {
            self.failures.clear();
        }
        self.failures.push(failure);
    }
}

/// Where a replica is to be dialed, and when next.
pub struct Dial {
    /// The next one is dialed where the one before does not answer.
    candidates: Vec<Candidate>,
    /// Whose turn it is.
    turn: usize,
    /// What is left of its addresses, once they are known.
    left: VecDeque<SocketAddr>,
    /// The one that was dialed last.
    dialed: Option<SocketAddr>,
    resolving: Option<Receiver<io::Result<Vec<SocketAddr>>>>,
    look_up: LookUp,
    pub next: Now,
    pub link: Option<usize>,
    /// All addresses of the first candidate were dialed before, if only in vain.
    pub tried: bool,
    /// Since when there is no connection, whoever dialed it; none: there is one.
    pub alone_since: Option<Now>,
    /// That was said in the log.
    pub alone_told: bool,
}

/// What looking an address up has come to.
#[derive(Debug, Eq, PartialEq)]
pub enum Resolution {
    /// Here it is.
    Address(SocketAddr),
    /// Still being looked up.
    NotYet,
    /// The name server knows none, this time.
    Unknown,
}

impl Dial {
    /// To be dialed at once, at the first of these.
    pub fn new(addresses: &[(Source, String)], now: Now) -> Self {
        Self::looked_up_by(Arc::new(look_up), addresses, now)
    }

    fn looked_up_by(look_up: LookUp, addresses: &[(Source, String)], now: Now) -> Self {
        let mut dial = Self {
            candidates: Vec::new(),
            turn: 0,
            left: VecDeque::new(),
            dialed: None,
            resolving: None,
            look_up,
            next: Now::default(),
            link: None,
            tried: false,
            alone_since: Some(now),
            alone_told: false,
        };
        dial.set_addresses(addresses);
        dial
    }

    /// From now on it is dialed at these, the first of them first.
    pub fn set_addresses(&mut self, addresses: &[(Source, String)]) {
        let is_same = |(source, text): &(Source, String), known: &Candidate| {
            *source == known.source && *text == known.text
        };
        let mut pairs = addresses.iter().zip(&self.candidates);
        if addresses.len() == self.candidates.len() && pairs.all(|(new, old)| is_same(new, old)) {
            return;
        }
        let candidate = |(source, text): &(Source, String)| Candidate {
            source: *source,
            text: text.clone(),
            found: match text.parse::<SocketAddr>() {
                Ok(known) => vec![known.ip().to_canonical()],
                Err(_) => Vec::new(),
            },
            failures: Vec::new(),
            is_new_turn: false,
        };
        self.candidates = addresses.iter().map(candidate).collect();
        self.begin_anew();
        self.next = Now::default();
    }

    fn begin_anew(&mut self) {
        self.turn = 0;
        self.left.clear();
        self.resolving = None;
    }

    /// Whether the replica is, or was when it was last dialed, at this address.
    pub fn is_at(&self, address: IpAddr) -> bool {
        let mut found = self.candidates.iter().flat_map(|it| &it.found);
        found.any(|found| *found == address)
    }

    /// The address to dial. Names are looked up by a thread of their own, one at a time for each
    /// replica, because a name server may take seconds.
    pub fn resolve(&mut self) -> Resolution {
        if let Some(address) = self.left.pop_front() {
            self.dialed = Some(address);
            return Resolution::Address(address);
        }
        let Some(candidate) = self.candidates.get_mut(self.turn) else {
            return Resolution::Unknown;
        };
        let outcome = match (&self.resolving, candidate.text.parse()) {
            (_, Ok(known)) => Ok(vec![known]),
            (Some(answer), Err(_)) => match answer.try_recv() {
                Err(TryRecvError::Empty) => return Resolution::NotYet,
                Err(TryRecvError::Disconnected) => Err(io::Error::other("the lookup broke off")),
                Ok(outcome) => outcome,
            },
            (None, Err(_)) => {
                self.resolving = begin_lookup(&self.look_up, candidate.text.clone());
                return Resolution::NotYet;
            }
        };
        self.resolving = None;
        candidate.is_new_turn = true;
        match outcome {
            Ok(addresses) if !addresses.is_empty() => {
                let ips = addresses.iter().map(|it| it.ip().to_canonical());
                candidate.found = ips.collect();
                self.left = addresses.into();
                self.resolve()
            }
            Ok(_) => self.has_no_address("the name has no address"),
            Err(error) => self.has_no_address(&error.to_string()),
        }
    }

    fn has_no_address(&mut self, why: &str) -> Resolution {
        self.candidates[self.turn].note(why.to_owned());
        self.go_on_to_next();
        Resolution::Unknown
    }

    /// Nobody answered as this replica at the address that was dialed last. Another address of the same name
    /// is tried at once. Whether all candidates have had their turn.
    pub fn failed(&mut self, why: &str) -> bool {
        let (Some(address), Some(candidate)) =
            (self.dialed.take(), self.candidates.get_mut(self.turn))
        else {
            return false;
        };
        let shown = address.to_string();
        let failure = if shown == candidate.text {
            why.to_owned()
        } else {
            format!("{shown}: {why}")
        };
        candidate.note(failure);
        if !self.left.is_empty() {
            self.next = Now::default();
            return false;
        }
        self.go_on_to_next();
        self.turn == 0
    }

    fn go_on_to_next(&mut self) {
        self.turn = (self.turn + 1) % self.candidates.len();
        self.tried = true;
    }

    /// There is a connection, and the other side has let us in.
    pub fn connected(&mut self) {
        self.alone_since = None;
        self.alone_told = false;
        self.begin_anew();
    }

    /// There is none any more.
    pub fn lost(&mut self, now: Now) {
        if self.alone_since.is_none() {
            self.alone_since = Some(now);
            for candidate in &mut self.candidates {
                candidate.failures.clear();
            }
        }
    }

    /// For how long there has been no connection.
    pub fn alone_for(&self, now: Now) -> Duration {
        let since = self.alone_since.unwrap_or(now);
        now.0.saturating_sub(since.0)
    }

    /// What was tried, and what came of it.
    pub fn tried_in_words(&self) -> String {
        let words = self.candidates.iter().map(|candidate| {
            let Candidate {
                source,
                text,
                failures,
                ..
            } = candidate;
            let outcome = match &failures[..] {
                [] => "not dialed yet".to_owned(),
                failures => failures.join(", "),
            };
            format!("{} ({}): {outcome}", plain(text), source.name())
        });
        words.collect::<Vec<_>>().join("; ")
    }
}

fn begin_lookup(look_up: &LookUp, name: String) -> Option<Receiver<io::Result<Vec<SocketAddr>>>> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let look_up = Arc::clone(look_up);
    let work = move || {
        sender.send(look_up(&name)).ok(); // nobody waits for it any more
    };
    let thread = thread::Builder::new().name("resolve".into()).spawn(work);
    thread.ok().map(|_| receiver)
}

#[cfg(test)]
#[path = "dial_test.rs"]
mod tests;

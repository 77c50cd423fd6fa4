//! A proposer: numbers values in a session, sends them to whoever coordinates, and again until a learner has
//! heard what became of them (CAANS, section 3.1).
//!
//! It opens its session with a value of its own, which it sends once, to one coordinator, and numbers others
//! from behind the sessions' window on. So a value that comes very late, when learners have forgotten the
//! session, is delivered to nobody. Values themselves are sent again, and to all coordinators: they may get
//! several instances, and are delivered once.
use crate::deployment::Deployment;
use crate::learner::Learned;
use crate::orders::{Orders, To, send};
use crate::values::{Fate, VALUE};
use quorumwire_sessions::{FRAGMENTS_PER_COMMAND_MAX, SessionRefusal, WINDOW};
use quorumwire_wire::packet::{FLAG_FRAGMENT, Header, Kind, PAYLOAD_BYTES_MAX, SENDER_CLIENT};
use quorumwire_wire::{PIECE_HEADER_BYTES, Pieces, piece_header};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::time::Duration;

/// Most bytes of one piece of a value.
const PIECE_BYTES_MAX: usize = PAYLOAD_BYTES_MAX - PIECE_HEADER_BYTES;

/// Longest value, in bytes.
pub const VALUE_BYTES_MAX: usize = PIECE_BYTES_MAX * FRAGMENTS_PER_COMMAND_MAX as usize - 1;

/// Values that a proposer has outstanding at most.
pub const OUTSTANDING_MAX: u64 = WINDOW;

/// The wait between two tries doubles at most so often. What is decided later than a try waits is proposed
/// again in vain, and takes one more instance of the window each time.
const DOUBLINGS_MAX: u32 = 7;
/// A session is opened within so many doublings of the first wait; the next one has one more.
const OPENING_DOUBLINGS: u32 = 3;

/// The number of the value that opens a session.
const OPENING: u64 = 1;

/// Time since some moment that the host knows.
type Since = Duration;

/// Why a value is not taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NotTaken {
    /// It is longer than [`VALUE_BYTES_MAX`].
    TooLong {
        /// Its bytes.
        bytes: usize,
    },
    /// [`OUTSTANDING_MAX`] values are outstanding.
    WindowFull,
}

/// What became of a value of this proposer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Settled {
    /// Which value, as [`submit`](Proposer::submit) named it.
    pub ticket: u64,
    /// In which instance it was delivered. `None`: nobody knows its session any more. Whether it was
    /// delivered before that is not known.
    pub instance: Option<u64>,
}

#[derive(Debug)]
struct Outstanding {
    ticket: u64,
    payload: Vec<u8>,
    pieces: Option<Pieces>,
    /// When it was sent last.
    sent: Since,
    next_try: Since,
    tries: u32,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Session {
    /// It is to be opened.
    New,
    /// It is being opened; if that does not come about by then, another one is.
    Opening {
        until: Since,
    },
    Open,
}

/// One proposer.
#[derive(Debug)]
pub struct Proposer {
    deployment: Deployment,
    retry: Duration,
    chance: ChaCha8Rng,
    session: u64,
    state: Session,
    /// Sessions in a row that were not opened in time.
    opened_in_vain: u32,
    next_sequence: u64,
    next_ticket: u64,
    outstanding: BTreeMap<u64, Outstanding>,
}

impl Proposer {
    /// One that has proposed nothing. What is not heard of is sent again after `retry`, then after longer.
    /// `seed` is for what is left to chance; no two proposers have the same.
    #[must_use]
    pub fn new(deployment: Deployment, retry: Duration, seed: u64) -> Self {
        let mut chance = ChaCha8Rng::seed_from_u64(seed);
        Self {
            session: chance.next_u64().max(1),
            chance,
            deployment,
            retry,
            state: Session::New,
            opened_in_vain: 0,
            next_sequence: WINDOW + 1,
            next_ticket: 1,
            outstanding: BTreeMap::new(),
        }
    }

    /// How many values are outstanding.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.outstanding.len()
    }

    /// Takes a value on, and gives it a name. `coordinator`: who coordinates, if that is known.
    ///
    /// # Errors
    /// Why it is not taken.
    pub fn submit(
        &mut self,
        now: Since,
        value: &[u8],
        coordinator: Option<u8>,
        orders: &mut Orders,
    ) -> Result<u64, NotTaken> {
        if value.len() > VALUE_BYTES_MAX {
            return Err(NotTaken::TooLong { bytes: value.len() });
        }
        let oldest = self
            .outstanding
            .first_key_value()
            .map(|(oldest, _)| *oldest);
        if self.next_sequence - oldest.unwrap_or(self.next_sequence) >= OUTSTANDING_MAX {
            return Err(NotTaken::WindowFull);
        }
        let payload = [&[VALUE], value].concat();
        let is_long = payload.len() > PAYLOAD_BYTES_MAX;
        let (ticket, sequence) = (self.next_ticket, self.next_sequence);
        self.next_ticket += 1;
        self.next_sequence += 1;
        let outstanding = Outstanding {
            ticket,
            pieces: is_long.then(|| Pieces::of(&payload, PIECE_BYTES_MAX)),
            payload,
            sent: now,
            next_try: now,
            tries: 0,
        };
        self.outstanding.insert(sequence, outstanding);
        self.send_what_is_due(now, coordinator, orders);
        Ok(ticket)
    }

    /// Takes in what a learner beside it has learned; what became of values, as far as that is known now.
    pub fn on_learned(
        &mut self,
        now: Since,
        learned: &Learned,
        coordinator: Option<u8>,
        orders: &mut Orders,
    ) -> Vec<Settled> {
        let decided = &learned.decided;
        if decided.session != self.session {
            return Vec::new();
        }
        if decided.sequence == OPENING {
            if learned.fate == Fate::NoOp {
                self.state = Session::Open;
                self.opened_in_vain = 0;
                self.send_what_is_due(now, coordinator, orders);
            }
            return Vec::new();
        }
        let instance = match &learned.fate {
            Fate::Value(_) | Fate::Repeated => Some(decided.instance),
            Fate::Piece => {
                self.keep_piece(now, decided.sequence, &decided.payload, coordinator, orders);
                return Vec::new();
            }
            Fate::Refused(SessionRefusal::UnknownSession) => return self.begin_session(),
            Fate::Refused(_) => None,
            Fate::NoOp => return Vec::new(),
        };
        let settled = self.outstanding.remove(&decided.sequence);
        self.hurry_the_oldest(now, decided.sequence);
        let settled = settled.map(|it| Settled {
            ticket: it.ticket,
            instance,
        });
        settled.into_iter().collect()
    }

    /// Values come through, and one that was sent before is not among them: it was lost. Where the window is
    /// full each time that its turn comes, it would be so for ever.
    fn hurry_the_oldest(&mut self, now: Since, settled: u64) {
        if let Some(mut oldest) = self.outstanding.first_entry()
            && *oldest.key() < settled
            && now >= oldest.get().sent + self.retry
        {
            let next_try = oldest.get().next_try;
            oldest.get_mut().next_try = next_try.min(now);
        }
    }

    /// Another session is to be opened.
    fn draw_session(&mut self) {
        self.session = self.chance.next_u64().max(1);
        self.state = Session::New;
    }

    /// Learners do not know the session any more: what was sent in it is not sent again.
    fn begin_session(&mut self) -> Vec<Settled> {
        self.draw_session();
        let sent = self.outstanding.extract_if(.., |_, it| it.tries > 0);
        let unknown = |(_, it): (u64, Outstanding)| Settled {
            ticket: it.ticket,
            instance: None,
        };
        sent.map(unknown).collect()
    }

    fn keep_piece(
        &mut self,
        now: Since,
        sequence: u64,
        payload: &[u8],
        coordinator: Option<u8>,
        orders: &mut Orders,
    ) {
        let Some(outstanding) = self.outstanding.get_mut(&sequence) else {
            return;
        };
        let number = payload.first_chunk().map(|it| u32::from_be_bytes(*it));
        let (Some(pieces), Some(number)) = (&mut outstanding.pieces, number) else {
            return;
        };
        if pieces.keep(number) {
            outstanding.tries = 1;
            outstanding.sent = now;
            outstanding.next_try = now + self.retry;
            self.send_value(sequence, coordinator, orders);
        }
    }

    /// Somebody else coordinates from now on. What was sent to who did before may be lost, so all of it is
    /// sent again; a session that was being opened there is left for another one.
    pub fn coordinated_anew(&mut self, now: Since, coordinator: Option<u8>, orders: &mut Orders) {
        if matches!(self.state, Session::Opening { .. }) {
            self.draw_session();
        }
        self.opened_in_vain = 0;
        for outstanding in self.outstanding.values_mut().filter(|it| it.tries > 0) {
            outstanding.tries = 1;
            outstanding.next_try = now;
        }
        self.send_what_is_due(now, coordinator, orders);
    }

    /// Time has passed: sends again what was not heard of. Whom it goes to is known less well then.
    pub fn tick(&mut self, now: Since, coordinator: Option<u8>, orders: &mut Orders) {
        if matches!(self.state, Session::Opening { until } if now >= until) {
            self.opened_in_vain += 1;
            self.draw_session();
        }
        self.send_what_is_due(now, coordinator, orders);
    }

    fn send_what_is_due(&mut self, now: Since, coordinator: Option<u8>, orders: &mut Orders) {
        if self.outstanding.is_empty() {
            return;
        }
        if let (Session::New, Some(coordinator)) = (self.state, coordinator) {
            let doublings = (OPENING_DOUBLINGS + self.opened_in_vain).min(DOUBLINGS_MAX);
            let until = now + self.retry * (1 << doublings);
            self.state = Session::Opening { until };
            let header = self.header(OPENING, 0);
            let to = To::Coordinator(self.opens_at(coordinator));
            send(orders, to, header, &[]);
        }
        if self.state != Session::Open {
            return;
        }
        let due: Vec<u64> = self
            .outstanding
            .iter()
            .filter(|(_, it)| now >= it.next_try)
            .map(|(sequence, _)| *sequence)
            .collect();
        for sequence in due {
            let Some(outstanding) = self.outstanding.get_mut(&sequence) else {
                continue;
            };
            let is_again = outstanding.tries > 0;
            outstanding.next_try = now + self.retry * (1 << outstanding.tries.min(DOUBLINGS_MAX));
            outstanding.tries += 1;
            outstanding.sent = now;
            if let (true, Some(pieces)) = (is_again, &mut outstanding.pieces) {
                pieces.lost();
            }
            let coordinator = coordinator.filter(|_| !is_again);
            self.send_value(sequence, coordinator, orders);
        }
    }

    /// Who is to open the session: who is heard, and, if that was in vain, every other time another one. Who
    /// was heard last may have been killed since, while the others hear one that was cut off before that and
    /// does not know of it. That one finds out when it proposes something.
    fn opens_at(&self, heard: u8) -> u8 {
        let all = u32::from(self.deployment.coordinators);
        let turn = match self.opened_in_vain {
            odd if odd % 2 == 1 && all > 1 => odd / 2 % (all - 1) + 1,
            _ => 0,
        };
        u8::try_from((u32::from(heard) + turn) % all).unwrap_or(heard)
    }

    fn header(&self, sequence: u64, flags: u8) -> Header {
        let sender = u8::try_from(SENDER_CLIENT).unwrap_or(u8::MAX);
        Header {
            flags,
            session: self.session,
            sequence,
            ..self.deployment.header(Kind::Submit, sender)
        }
    }

    /// A value, or the pieces of it that may be on their way now.
    fn send_value(&mut self, sequence: u64, coordinator: Option<u8>, orders: &mut Orders) {
        let header = self.header(sequence, 0);
        let Some(outstanding) = self.outstanding.get_mut(&sequence) else {
            return;
        };
        let Some(pieces) = &mut outstanding.pieces else {
            return send(orders, to(coordinator), header, &outstanding.payload);
        };
        let header = Header {
            flags: FLAG_FRAGMENT,
            ..header
        };
        while let Some((number, range)) = pieces.next_to_send() {
            let head = piece_header(number, pieces.count());
            let piece = [&head, &outstanding.payload[range]].concat();
            send(orders, to(coordinator), header, &piece);
        }
    }
}

/// Only who coordinates gives an instance; where that is not known, all are asked.
fn to(coordinator: Option<u8>) -> To {
    coordinator.map_or(To::Coordinators, To::Coordinator)
}

#[cfg(test)]
#[path = "proposer_test.rs"]
mod tests;

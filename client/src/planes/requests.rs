//! What a client has asked and what came of it: sessions, numbers, when to ask whom again. No socket and no
//! clock: time, datagrams and chance are handed in, datagrams to send come out.
use super::refusal::Verdict;
use super::settings::{IDLE_MAX, Settings, WINDOW};
use super::{COMMAND_BYTES_MAX, Error};
use quorumwire_fastpath::{
    ClientPackets, PIECE_BYTES_MAX, PacketAnswer, REQUEST_BYTES_MAX, Request,
};
use quorumwire_interfaces::{PlaneKeyPair, PlaneKeys, Reason};
use quorumwire_wire::{LineagePacket, Pieces};
use rand::{Rng as _, RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

mod cluster;

use cluster::{Cluster, News};

/// Results kept for tickets that nobody has waited for; the oldest gives way.
const DONE_MAX: usize = 4096;
/// Times that one replica is asked in vain before the next one is.
const TRIES_PER_REPLICA: u32 = 2;
/// The wait between two tries doubles at most so often.
const DOUBLINGS_MAX: u32 = 3;
/// After a refusal that may pass, the next try comes after this part of the usual wait.
const REFUSED_WAIT_DIVISOR: u32 = 4;

/// Time since some moment that the client knows.
type Since = Duration;

/// Names a command that was submitted.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Ticket(u64);

/// What a client has done and not done, since its start.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counters {
    /// Requests sent, pieces of commands among them.
    pub sent: u64,
    /// Of these, those sent again.
    pub sent_again: u64,
    /// Of these, those sent blind.
    pub sent_blind: u64,
    /// Datagrams that could not be sent.
    pub send_failed: u64,
    /// Commands answered.
    pub answered: u64,
    /// Pieces of commands that came into the log.
    pub pieces_kept: u64,
    /// Refusals, those that another try followed included.
    pub refused: u64,
    /// Commands given up at their deadline, and those refused although an earlier try may have been carried
    /// out.
    pub outcomes_unknown: u64,
    /// Datagrams dropped: not signed with the clients' key, or no answers.
    pub dropped_not_authentic: u64,
    /// Datagrams dropped: answers that nothing waits for, such as repeated ones.
    pub dropped_not_awaited: u64,
    /// Times that another replica was asked from then on.
    pub replica_changes: u64,
    /// Sessions begun.
    pub sessions: u64,
    /// Times that a replica was asked which cluster it is of.
    pub lineage_asked: u64,
    /// Times that it was another one than before: folders were emptied, or a backup was restored.
    pub lineage_changes: u64,
}

/// A command without an answer.
struct Pending {
    ticket: Ticket,
    command: Vec<u8>,
    blind: bool,
    /// It was sent blind, so that an answer may say nothing of its session.
    sent_blind: bool,
    /// It was sent, or a piece of it was.
    sent: bool,
    /// It was sent more than once, or a piece of it was: what becomes of one try says nothing of the others.
    sent_again: bool,
    /// Those of a long command.
    pieces: Option<Pieces>,
    begun: Since,
    next_try: Since,
    /// Tries since something was heard.
    tries: u32,
    /// The replica asked last, and how often in vain.
    asked: usize,
    asked_in_vain: u32,
}

fn asking(clients: PlaneKeyPair) -> ClientPackets {
    ClientPackets::new(&PlaneKeys {
        clients,
        ..PlaneKeys::default()
    })
}

/// Everything a client knows.
pub struct Requests {
    settings: Settings,
    cluster: Cluster,
    asking: ClientPackets,
    chance: ChaCha8Rng,
    session: u64,
    next_sequence: u64,
    /// The replicas do not know the session any more.
    session_gone: bool,
    last_submit: Since,
    /// When a command was begun whose answer shows that the replicas know the session; the last one.
    known_at: Option<Since>,
    pending: BTreeMap<u64, Pending>,
    done: BTreeMap<Ticket, Result<Vec<u8>, Error>>,
    next_ticket: u64,
    /// The replica to ask first.
    preferred: usize,
    /// Datagrams to send, in order.
    pub out: Vec<(SocketAddr, Vec<u8>)>,
    /// What was done and not done.
    pub counters: Counters,
}

impl Requests {
    /// Of settings that were checked ([`Settings::check`]), with a seed for what is left to chance. Times
    /// are since any moment that stays the same.
    #[must_use]
    pub fn new(settings: Settings, seed: u64) -> Self {
        let mut requests = Self {
            cluster: Cluster::new(settings.keys),
            asking: asking(settings.keys),
            chance: ChaCha8Rng::seed_from_u64(seed),
            session: 0,
            next_sequence: 1,
            session_gone: false,
            last_submit: Since::ZERO,
            known_at: None,
            pending: BTreeMap::new(),
            done: BTreeMap::new(),
            next_ticket: 1,
            preferred: 0,
            out: Vec::new(),
            counters: Counters::default(),
            settings,
        };
        requests.preferred = requests
            .chance
            .random_range(0..requests.settings.replicas.len());
        requests.begin_session();
        requests
    }

    /// Signs and checks with keys made from these from now on.
    pub fn set_keys(&mut self, keys: PlaneKeyPair) {
        self.cluster.set_file(keys);
        self.asking = asking(self.cluster.keys());
    }

    /// Two clients must never have the same session: it is drawn from 2^64 - 1 numbers.
    fn begin_session(&mut self) {
        self.session = self.chance.next_u64().max(1);
        self.next_sequence = 1;
        self.session_gone = false;
        self.known_at = None;
        self.counters.sessions += 1;
    }

    /// Takes a command on and sends it, a `blind` one to be answered as soon as it is committed.
    /// [`Error::WindowFull`]: not now; [`Error::TooLong`]: never.
    pub fn submit(&mut self, now: Since, command: &[u8], blind: bool) -> Result<Ticket, Error> {
        if command.len() > COMMAND_BYTES_MAX {
            return Err(Error::TooLong(command.len()));
        }
        let is_idle = now.saturating_sub(self.last_submit) > IDLE_MAX;
        if self.pending.is_empty() && (self.session_gone || is_idle) {
            self.begin_session();
        }
        // Replicas remember a session's last commands only: an unanswered one must stay among them.
        let oldest = self.pending.keys().next().copied();
        let span = self.next_sequence - oldest.unwrap_or(self.next_sequence);
        if self.session_gone || span >= WINDOW {
            return Err(Error::WindowFull);
        }
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        self.last_submit = now;
        let pieces =
            (command.len() > REQUEST_BYTES_MAX).then(|| Pieces::of(command, PIECE_BYTES_MAX));
        let pending = Pending {
            ticket,
            command: command.to_vec(),
            blind,
            sent_blind: false,
            sent: false,
            sent_again: false,
            pieces,
            begun: now,
            next_try: now,
            tries: 0,
            asked: self.preferred,
            asked_in_vain: 0,
        };
        self.pending.insert(sequence, pending);
        self.try_one(now, sequence);
        Ok(ticket)
    }

    /// The ticket's result, once; `None`: not yet.
    pub fn take(&mut self, ticket: Ticket) -> Option<Result<Vec<u8>, Error>> {
        if let Some(result) = self.done.remove(&ticket) {
            return Some(result);
        }
        let is_pending = self.pending.values().any(|it| it.ticket == ticket);
        (!is_pending).then_some(Err(Error::UnknownTicket))
    }

    /// Whether a command waits until it is known which cluster this is.
    #[must_use]
    pub fn has_unsent(&self) -> bool {
        self.pending.values().any(|it| !it.sent)
    }

    /// Commands without an answer.
    #[must_use]
    pub fn pending_count(&self) -> usize {
        self.pending.len()
    }

    /// When [`time_passed`](Self::time_passed) has something to do.
    #[must_use]
    pub fn next_wake(&self) -> Option<Since> {
        let deadline = self.settings.deadline;
        let wakes = self.pending.values();
        wakes.map(|it| it.next_try.min(it.begun + deadline)).min()
    }

    /// Gives up what is too old, and asks again for what was not answered.
    pub fn time_passed(&mut self, now: Since) {
        let deadline = self.settings.deadline;
        let due: Vec<u64> = self
            .pending
            .iter()
            .filter(|(_, it)| it.next_try <= now || it.begun + deadline <= now)
            .map(|(sequence, _)| *sequence)
            .collect();
        for sequence in due {
            let is_late = |it: &Pending| it.begun + deadline <= now;
            if self.pending.get(&sequence).is_some_and(is_late) {
                self.counters.outcomes_unknown += 1;
                self.finish(sequence, Err(Error::OutcomeUnknown));
            } else {
                self.try_again(now, sequence);
            }
        }
    }

    /// Takes in a datagram.
    pub fn receive(&mut self, now: Since, from: SocketAddr, datagram: &[u8]) {
        if LineagePacket::decode(datagram).is_some() {
            return self.told(now, datagram);
        }
        let Ok(answer) = self.asking.answer(datagram) else {
            self.counters.dropped_not_authentic += 1;
            return;
        };
        let awaited = answer.session == self.session;
        let Some(pending) = self.pending.get_mut(&answer.sequence).filter(|_| awaited) else {
            self.counters.dropped_not_awaited += 1;
            return;
        };
        self.cluster.answered();
        if let Some(number) = answer.piece {
            let is_new = pending.pieces.as_mut().is_some_and(|it| it.keep(number));
            if !is_new {
                self.counters.dropped_not_awaited += 1;
                return;
            }
            self.counters.pieces_kept += 1;
            self.prefer(from);
            return self.send_more_pieces(now, answer.sequence);
        }
        if let Some(reason) = answer.refused {
            return self.refused(now, from, &answer, reason);
        }
        // A blind answer says that the command is committed, not that its session is known.
        if !pending.sent_blind {
            self.known_at = self.known_at.max(Some(pending.begun));
        }
        let payload = if pending.blind {
            Vec::new()
        } else {
            answer.payload.to_vec()
        };
        self.counters.answered += 1;
        self.prefer(from);
        self.finish(answer.sequence, Ok(payload));
    }

    /// A replica says which cluster it is of.
    fn told(&mut self, now: Since, datagram: &[u8]) {
        let Some(news) = self.cluster.told(datagram) else {
            // The same question may have been answered twice.
            if self.cluster.is_authentic(datagram) {
                self.counters.dropped_not_awaited += 1;
            } else {
                self.counters.dropped_not_authentic += 1;
            }
            return;
        };
        if news != News::Same {
            self.asking = asking(self.cluster.keys());
        }
        match news {
            News::Same => {}
            News::Learnt => self.send_what_waited(now),
            News::Another => self.leave_cluster(),
        }
    }

    /// What was sent before the cluster was known was signed with another key.
    fn send_what_waited(&mut self, now: Since) {
        // It may be another life of a cluster that had no lineage.
        self.known_at = None;
        let mut waiting = Vec::new();
        for (sequence, pending) in &mut self.pending {
            pending.asked_in_vain = 0;
            if pending.sent {
                pending.next_try = now;
            } else {
                waiting.push(*sequence);
            }
        }
        for sequence in waiting {
            self.begin_tries(now, sequence);
            self.send(now, sequence);
        }
    }

    /// What leaves of this command now counts as its first try.
    fn begin_tries(&mut self, now: Since, sequence: u64) {
        let wait = self.by_chance_longer(self.settings.retry);
        if let Some(pending) = self.pending.get_mut(&sequence) {
            pending.tries = 1;
            pending.asked_in_vain = 0;
            pending.next_try = now + wait;
        }
    }

    /// Nobody can tell any more what became of commands of an earlier life of the cluster, and the next one
    /// does not know their session.
    fn leave_cluster(&mut self) {
        self.counters.lineage_changes += 1;
        let sequences: Vec<u64> = self.pending.keys().copied().collect();
        for sequence in sequences {
            self.counters.outcomes_unknown += 1;
            self.finish(sequence, Err(Error::OutcomeUnknown));
        }
        self.begin_session();
    }

    fn ask_lineage(&mut self, now: Since) {
        let chance = &mut self.chance;
        let retry = self.settings.retry;
        let Some(datagram) = self.cluster.ask(now, retry, || chance.random()) else {
            return;
        };
        let to = self.settings.replicas[self.preferred];
        self.out.push((to, datagram.to_vec()));
        self.counters.lineage_asked += 1;
    }

    fn refused(&mut self, now: Since, from: SocketAddr, answer: &PacketAnswer<'_>, reason: Reason) {
        self.counters.refused += 1;
        let text = String::from_utf8_lossy(answer.payload).trim().to_owned();
        let sequence = answer.sequence;
        self.known_at = None;
        match Verdict::of(reason) {
            Verdict::TryAgain => self.try_elsewhere(now, from, sequence),
            Verdict::TryLater => {} // as if nothing had been heard
            Verdict::NotExecuted => self.finish_not_executed(sequence, text),
            Verdict::AnswerGone => self.finish(sequence, Err(Error::AnswerGone(text))),
            Verdict::Unknown => self.finish(sequence, Err(Error::OutcomeUnknown)),
            Verdict::SessionGone => {
                self.session_gone = true;
                self.finish_not_executed(sequence, text);
            }
        }
    }

    /// The try that was refused was not carried out; another one may have been, or may yet be.
    fn finish_not_executed(&mut self, sequence: u64, text: String) {
        let pending = self.pending.get(&sequence);
        if pending.is_some_and(|it| it.sent_again) {
            self.counters.outcomes_unknown += 1;
            return self.finish(sequence, Err(Error::OutcomeUnknown));
        }
        self.finish(sequence, Err(Error::Refused(text)));
    }

    fn finish(&mut self, sequence: u64, result: Result<Vec<u8>, Error>) {
        if let Some(pending) = self.pending.remove(&sequence) {
            self.done.insert(pending.ticket, result);
            if self.done.len() > DONE_MAX {
                self.done.pop_first();
            }
        }
    }

    /// Who answers leads, or did a moment ago.
    fn prefer(&mut self, from: SocketAddr) {
        let known = self.settings.replicas.iter().position(|it| *it == from);
        if let Some(replica) = known.filter(|it| *it != self.preferred) {
            self.preferred = replica;
            self.counters.replica_changes += 1;
        }
    }

    fn turn_away_from(&mut self, replica: usize) {
        let count = self.settings.replicas.len();
        if self.preferred == replica && count > 1 {
            self.preferred = (replica + 1) % count;
            self.counters.replica_changes += 1;
        }
    }

    /// A replica could not take the request now. It may have refused many at once: it is turned away from
    /// once.
    fn try_elsewhere(&mut self, now: Since, from: SocketAddr, sequence: u64) {
        let known = self.settings.replicas.iter().position(|it| *it == from);
        if let Some(replica) = known {
            self.turn_away_from(replica);
        }
        let wait = self.settings.retry / REFUSED_WAIT_DIVISOR;
        let wait = self.by_chance_longer(wait);
        if let Some(pending) = self.pending.get_mut(&sequence) {
            pending.next_try = pending.next_try.min(now + wait);
        }
    }

    fn by_chance_longer(&mut self, wait: Duration) -> Duration {
        let micros = u64::try_from(wait.as_micros()).unwrap_or(u64::MAX / 2);
        Duration::from_micros(micros + self.chance.random_range(0..=micros / 2))
    }

    fn try_again(&mut self, now: Since, sequence: u64) {
        let Some(pending) = self.pending.get_mut(&sequence) else {
            return;
        };
        if let Some(pieces) = &mut pending.pieces {
            pieces.lost();
        }
        pending.asked_in_vain += 1;
        let was_sent = pending.sent;
        if pending.asked_in_vain >= TRIES_PER_REPLICA {
            let asked = pending.asked;
            self.turn_away_from(asked);
        }
        let before = self.counters.sent;
        self.try_one(now, sequence);
        if !was_sent {
            return;
        }
        let sent_again = self.counters.sent - before;
        self.counters.sent_again += sent_again;
        if let Some(pending) = self.pending.get_mut(&sequence) {
            pending.sent_again |= sent_again > 0;
        }
    }

    /// Sends a command, or the pieces of it that are not on their way. As long as it is not known which
    /// cluster this is, a first try only asks for that. A replica from before lineages does not answer, so
    /// the next one sends all the same.
    fn try_one(&mut self, now: Since, sequence: u64) {
        let retry = self.settings.retry;
        let preferred = self.preferred;
        let Some(pending) = self.pending.get_mut(&sequence) else {
            return;
        };
        if pending.asked != preferred {
            pending.asked = preferred;
            pending.asked_in_vain = 0;
        }
        let wait = retry * (1 << pending.tries.min(DOUBLINGS_MAX));
        let is_first = pending.tries == 0;
        pending.tries += 1;
        let wait = self.by_chance_longer(wait);
        if let Some(pending) = self.pending.get_mut(&sequence) {
            pending.next_try = now + wait;
        }
        let is_known = self.cluster.is_known();
        if !is_known || !is_first {
            self.ask_lineage(now);
        }
        if is_known || !is_first {
            self.send(now, sequence);
        }
    }

    fn send_more_pieces(&mut self, now: Since, sequence: u64) {
        self.begin_tries(now, sequence);
        self.send(now, sequence);
    }

    /// Whether a command that is sent now finds its session. Replicas look at it when they carry the command
    /// out, after the answer to a blind one has left: what they would refuse must not be sent blind. They
    /// may forget a session that is silent for twice [`IDLE_MAX`]; the other half is left for packets on
    /// their way and for clocks that differ.
    fn session_is_known(&self, now: Since) -> bool {
        self.known_at
            .is_some_and(|known_at| now.saturating_sub(known_at) <= IDLE_MAX)
    }

    fn send(&mut self, now: Since, sequence: u64) {
        let is_known = self.session_is_known(now);
        let Some(pending) = self.pending.get_mut(&sequence) else {
            return;
        };
        let to = self.settings.replicas[self.preferred];
        let blind = pending.blind && pending.pieces.is_none() && is_known;
        pending.sent_blind |= blind;
        pending.sent = true;
        let request = Request {
            group: self.settings.group,
            session: self.session,
            sequence,
            blind,
            payload: &pending.command,
        };
        let before = self.out.len();
        if let Some(pieces) = &mut pending.pieces {
            while let Some((number, range)) = pieces.next_to_send() {
                let payload = &pending.command[range];
                let piece = Request { payload, ..request };
                let datagram = self.asking.piece(&piece, number, pieces.count());
                self.out.extend(datagram.map(|datagram| (to, datagram)));
            }
        } else {
            let datagram = self.asking.request(&request);
            self.out.extend(datagram.map(|datagram| (to, datagram)));
        }
        let sent = (self.out.len() - before) as u64;
        self.counters.sent += sent;
        self.counters.sent_blind += if blind { sent } else { 0 };
    }
}

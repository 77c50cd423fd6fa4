//! The data plane as its group sees it: what waits to be submitted, what it has stored (as log records), and
//! where the planes of the other replicas are. Consensus decides when it is engaged.
use crate::mutants::mutant;
use crate::proposals::{Proposal, Proposals};
use crate::requester::PlaneClient;
use bytes::{Bytes, BytesMut};
use quorumwire_control::{Engage, NextEntry, Now, WaitingCommand, append_record, next_entries};
use quorumwire_interfaces::{
    Answer, Command, DataPlane, Endpoint, EntryKind, Grant, GroupId, Index, PlaneError, PlaneEvent,
    PlanePeer, Registers, ReplicaId, Term, counters,
};
use quorumwire_wire::{LineagePacket, PIECE_HEADER_BYTES, Tick, piece_header};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

/// Packets taken in at once.
const POLL_BUDGET: usize = 256;
/// Rounds of that in one turn.
const POLLS_PER_TURN: usize = 8;
/// Entries handed over at once.
const SUBMITTED_AT_ONCE: usize = 32;
/// Records are built in blocks of this size.
const BLOCK_BYTES: usize = 64 << 10;

/// A command on its way into the plane.
#[derive(Debug)]
pub struct Submission<O> {
    /// A command, a piece of one, or a tick.
    pub kind: EntryKind,
    /// Of the client that asked for it; 0: none.
    pub session: u64,
    /// Its number in the session, or any.
    pub sequence: u64,
    /// Its bytes; none of a tick, which says what time it is when it leaves.
    pub payload: Bytes,
    /// What it is at most in work for the state machine.
    work: u32,
    /// Who waits for its answer; none for all but the last fragment of a command, and for ticks.
    pub origin: Option<O>,
    /// Since when it waits.
    pub at: Now,
}

/// A client's request that the plane itself could not take.
#[derive(Clone, Debug)]
pub struct Request {
    /// Who asks.
    pub client: PlaneClient,
    /// A command or a piece of one.
    pub kind: EntryKind,
    /// The command, or the piece.
    pub payload: Bytes,
}

/// A client's request that the plane has put into the log.
#[derive(Clone, Copy, Debug)]
pub struct StoredRequest {
    /// Where.
    pub index: Index,
    /// The fast term.
    pub term: Term,
    /// Who asked.
    pub client: PlaneClient,
}

impl Request {
    /// What a plane told of it.
    #[must_use]
    pub fn of(event: &PlaneEvent<'_>) -> Option<Self> {
        match *event {
            PlaneEvent::Request {
                from,
                kind,
                session,
                sequence,
                payload,
            } => Some(Self {
                client: PlaneClient {
                    from,
                    session,
                    sequence,
                },
                kind,
                payload: Bytes::copy_from_slice(payload),
            }),
            PlaneEvent::Entry(_)
            | PlaneEvent::Committed(_)
            | PlaneEvent::Behind(_)
            | PlaneEvent::Foreign { .. } => None,
        }
    }
}

impl StoredRequest {
    /// Whoever asked waits for its index.
    #[must_use]
    pub fn proposal<O: From<PlaneClient>>(self, at: Now) -> Proposal<O> {
        Proposal {
            index: self.index,
            position: 0,
            term: self.term,
            origin: self.client.into(),
            at,
        }
    }
}

/// What one look at the plane has brought.
#[derive(Debug, Default)]
pub struct PlaneOutput {
    /// Records of the entries stored, in order.
    pub records: BytesMut,
    /// Clients' requests among them whose answers come from the host.
    pub asked: Vec<StoredRequest>,
    /// Clients' requests that it could not take.
    pub requests: Vec<Request>,
    /// Who asks for what its ring no longer holds.
    pub behind: Vec<ReplicaId>,
    /// Clients' questions for the lineage; at most [`QUESTIONS_MAX`].
    pub questions: Vec<Question>,
}

/// Most questions that wait for the host to look at them.
pub const QUESTIONS_MAX: usize = 64;

/// A client asks which cluster this is, if the host finds that it has the key.
#[derive(Clone, Debug)]
pub struct Question {
    /// Who asks.
    pub from: SocketAddr,
    /// The datagram.
    pub bytes: Bytes,
}

counters! {
    /// What a plane was given in bundles, and what of foreign datagrams was dropped.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct PlaneCounters {
        /// Entries that hold several commands, which this leader has given to the data plane
        pub bundles: "plane_bundles",
        /// Commands in these entries
        pub commands_bundled: "plane_commands_bundled",
        /// Questions for the lineage dropped because 64 waited for the server already
        pub foreign_dropped_full: "plane_foreign_dropped_full",
        /// Foreign datagrams dropped because they are no questions for the lineage
        pub foreign_dropped_unknown: "plane_foreign_dropped_unknown",
    }
}

/// How a plane is used.
#[derive(Clone, Debug)]
pub struct PlaneOptions {
    /// Which log.
    pub group: GroupId,
    /// Where the other planes reach it.
    pub endpoint: Option<Endpoint>,
    /// Whether it acknowledges only what is durable.
    pub held: bool,
    /// Names commands in fragments; at random, so that no two runs use the same.
    pub first_sequence: u64,
    /// Bytes of commands that may wait until the plane has room; then clients wait.
    pub waiting_bytes_max: usize,
    /// What a command is at most in work for the state machine, in its own measure.
    pub work_of: fn(&[u8]) -> usize,
}

/// An answer that fits no packet of the plane's: it was not sent.
#[derive(Clone, Copy, Debug)]
pub struct AnswerTooLong;

/// A plane, and what is on the way to it and from it. `P`: where it runs.
#[derive(Debug)]
pub struct Plane<O, P: DataPlane + ?Sized> {
    options: PlaneOptions,
    payload_bytes_max: usize,
    /// Where the planes of connected replicas are.
    endpoints: BTreeMap<ReplicaId, Endpoint>,
    /// The voters by slot, while engaged.
    slots: Vec<ReplicaId>,
    /// The last entry handed over.
    taken: Index,
    persisted: Index,
    waiting: VecDeque<Submission<O>>,
    waiting_bytes: usize,
    next_sequence: u64,
    /// What the last looks have brought; whoever drives the group takes it.
    pub brought: PlaneOutput,
    /// More may be there although nothing wakes us for it.
    pub has_more: bool,
    /// What it does without waking us is looked at this late at most.
    pub look_within: Option<Duration>,
    /// Some of what waits has not been offered to the data plane, which may have room.
    has_unoffered: bool,
    /// Of what waits, how many are ticks: one at most. `waiting` says it too, but may hold some hundred
    /// thousand short commands, and each tick that is due asks.
    ticks_waiting: usize,
    /// Entries made of several commands, and these.
    counters: PlaneCounters,
    inner: Box<P>,
}

impl<O, P: DataPlane + ?Sized> Plane<O, P> {
    /// A plane that is off.
    ///
    /// # Panics
    ///
    /// If the data plane carries no payloads.
    #[must_use]
    pub fn new(inner: Box<P>, options: PlaneOptions) -> Self {
        let payload_bytes_max = inner.limits().payload_bytes_max;
        assert!(
            payload_bytes_max > PIECE_HEADER_BYTES,
            "a plane carries payloads"
        );
        Self {
            payload_bytes_max,
            endpoints: BTreeMap::new(),
            slots: Vec::new(),
            taken: Index(0),
            persisted: Index(0),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            next_sequence: options.first_sequence,
            options,
            brought: PlaneOutput::default(),
            has_more: false,
            look_within: None,
            has_unoffered: false,
            ticks_waiting: 0,
            counters: PlaneCounters::default(),
            inner,
        }
    }

    /// Where it runs.
    #[must_use]
    pub const fn data_plane(&self) -> &P {
        &self.inner
    }

    /// The same, to tell it what is none of the log's business.
    pub const fn data_plane_mut(&mut self) -> &mut P {
        &mut self.inner
    }

    /// A replica said where its plane is. What is running uses it from now on. False: it has none that this
    /// one can reach.
    pub fn set_endpoint(&mut self, id: ReplicaId, endpoint: Option<Endpoint>) -> bool {
        let Some(endpoint) = endpoint.filter(|it| self.inner.can_reach(it)) else {
            self.endpoints.remove(&id);
            return false;
        };
        if let Some(slot) = self.slots.iter().position(|known| *known == id)
            && let Ok(slot) = u8::try_from(slot)
        {
            self.inner.set_peer(slot, &endpoint);
        }
        self.endpoints.insert(id, endpoint);
        true
    }

    /// Starts the plane as consensus asks for it.
    ///
    /// # Errors
    ///
    /// The data plane's own; then nothing has changed.
    pub fn engage(&mut self, engage: &Engage) -> Result<(), PlaneError> {
        let peer_of = |(slot, id): (usize, ReplicaId)| {
            let endpoint = if slot == usize::from(engage.me) {
                self.options.endpoint.as_ref()
            } else {
                self.endpoints.get(&id)
            };
            PlanePeer {
                id,
                endpoint: endpoint.cloned(),
            }
        };
        let slots: Vec<ReplicaId> = engage.voters.iter().map(|peer| peer.id).collect();
        let grant = Grant {
            group: engage.group,
            term: engage.term,
            last_index: engage.last_index,
            last_term: engage.last_term,
            commit_index: engage.commit_index,
            me: engage.me,
            leader: engage.leader,
            peers: slots.iter().copied().enumerate().map(peer_of).collect(),
            quorum: engage.quorum,
            held: self.options.held,
        };
        self.inner.engage(&grant)?;
        self.slots = slots;
        self.taken = engage.last_index;
        self.persisted = engage.last_index;
        Ok(())
    }

    /// Stops the plane and takes everything out of its ring.
    ///
    /// # Panics
    ///
    /// If the data plane breaks its promise to hand over what its ring holds.
    pub fn disengage(&mut self) -> Registers {
        let registers = self.inner.disengage();
        while self.taken < registers.last_index && !self.slots.is_empty() {
            let before = self.taken;
            self.poll_once();
            assert!(
                self.taken > before,
                "a stopped plane hands over what its ring holds"
            );
        }
        self.slots.clear();
        registers
    }

    /// The registers of this moment.
    #[must_use]
    pub fn registers(&self) -> Registers {
        self.inner.registers()
    }

    /// The last entry that was handed over.
    #[must_use]
    pub const fn taken(&self) -> Index {
        self.taken
    }

    /// Begins a round; whether somebody waits for what it brings.
    ///
    /// # Errors
    ///
    /// The data plane's own.
    pub fn heartbeat(&mut self, round: u64, is_awaited: bool) -> Result<(), PlaneError> {
        self.inner.expects_round(is_awaited);
        self.inner.heartbeat(round)
    }

    /// Whether the plane has put what a datagram to its host says into the log. Not before what waits.
    pub fn take_datagram(&mut self, from: SocketAddr, datagram: &[u8]) -> bool {
        let offload = self.inner.offload().filter(|_| self.waiting.is_empty());
        let taken = offload.is_some_and(|offload| offload.take_datagram(from, datagram));
        self.has_more |= taken && self.wakes_itself();
        taken
    }

    /// Whether what this host has put into the plane needs this host next, with no packet to say so: its own
    /// log has to have it, or nobody else is asked.
    const fn wakes_itself(&self) -> bool {
        self.options.held || self.slots.len() == 1
    }

    /// Entries are durable up to here.
    ///
    /// # Errors
    ///
    /// The data plane's own.
    pub fn set_persisted(&mut self, upto: Index) -> Result<(), PlaneError> {
        self.persisted = self.persisted.max(upto);
        if !self.options.held {
            return Ok(());
        }
        let committed_before = self.inner.registers().commit_index;
        self.inner.persisted(upto)?;
        // No packet brings word of what became committed with this.
        self.has_more |= self.inner.registers().commit_index > committed_before;
        Ok(())
    }

    /// What is durable and applied need not be kept: so a slow disk and a slow state machine hold up
    /// those who submit.
    ///
    /// # Errors
    ///
    /// The data plane's own.
    pub fn release(&mut self, applied: Index) -> Result<(), PlaneError> {
        if self.slots.is_empty() {
            return Ok(());
        }
        self.inner
            .release(applied.min(self.persisted).min(self.taken))
    }

    /// Answers a client that asked through the plane.
    ///
    /// # Errors
    ///
    /// If its payload fits no packet.
    pub fn answer(&mut self, answer: &Answer<'_>) -> Result<(), AnswerTooLong> {
        if answer.payload.len() > self.payload_bytes_max {
            return Err(AnswerTooLong);
        }
        self.inner.answer(answer);
        Ok(())
    }

    /// Sends a datagram that is none of the plane's packets.
    pub fn send_foreign(&mut self, to: SocketAddr, bytes: &[u8]) {
        self.inner.send_foreign(to, bytes);
    }

    /// Looks at what has come, a bounded amount of it; it gathers in `brought`.
    pub fn poll(&mut self) {
        for _ in 0..POLLS_PER_TURN {
            self.poll_once();
            self.look_within = self.inner.poll_again_within();
            self.has_more = self.look_within == Some(Duration::ZERO);
            if !self.has_more {
                return;
            }
        }
    }

    fn poll_once(&mut self) {
        let (brought, taken, slots) = (&mut self.brought, &mut self.taken, &self.slots);
        let group = self.options.group;
        let counters = &mut self.counters;
        self.inner.poll(POLL_BUDGET, &mut |event| match event {
            PlaneEvent::Entry(entry) => {
                assert!(
                    entry.index == taken.next(),
                    "a plane hands entries over in order"
                );
                *taken = entry.index;
                if brought.records.capacity() == 0 {
                    brought.records.reserve(BLOCK_BYTES);
                }
                append_record(&mut brought.records, group, &entry);
                brought
                    .asked
                    .extend(entry.requester.map(|from| StoredRequest {
                        index: entry.index,
                        term: entry.term,
                        client: PlaneClient {
                            from,
                            session: entry.command.session,
                            sequence: entry.command.sequence,
                        },
                    }));
            }
            PlaneEvent::Behind(slot) => {
                brought.behind.extend(slots.get(usize::from(slot)));
            }
            PlaneEvent::Request { .. } => brought.requests.extend(Request::of(&event)),
            PlaneEvent::Foreign { bytes, .. } if LineagePacket::decode(bytes).is_none() => {
                counters.foreign_dropped_unknown += 1;
            }
            PlaneEvent::Foreign { .. } if brought.questions.len() >= QUESTIONS_MAX => {
                counters.foreign_dropped_full += 1;
            }
            PlaneEvent::Foreign { from, bytes } => {
                let bytes = Bytes::copy_from_slice(bytes);
                brought.questions.push(Question { from, bytes });
            }
            PlaneEvent::Committed(_) => {} // the registers say it
        });
    }

    /// What was counted of it.
    #[must_use]
    pub const fn counters(&self) -> PlaneCounters {
        self.counters
    }

    /// Whether a command of this size may wait to be submitted.
    #[must_use]
    pub const fn has_room(&self, command_bytes: usize) -> bool {
        self.waiting_bytes == 0
            || self.waiting_bytes + command_bytes <= self.options.waiting_bytes_max
    }

    /// Whether nothing waits to be submitted.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether something waits although there may be room for it, and nothing will say so: it came after the
    /// last [`submit`](Self::submit).
    #[must_use]
    pub const fn has_unoffered(&self) -> bool {
        self.has_unoffered
    }

    /// What waits to be submitted, in order.
    pub fn waiting(&self) -> impl Iterator<Item = &Submission<O>> {
        self.waiting.iter()
    }

    /// Has a command wait until [`submit`](Self::submit); a long one in fragments.
    pub fn enqueue(&mut self, command: Bytes, origin: O, at: Now) {
        self.next_sequence = self.next_sequence.wrapping_add(1);
        self.enqueue_named((0, self.next_sequence), command, origin, at);
    }

    /// The same for a command with this session and sequence.
    ///
    /// # Panics
    ///
    /// If the command has more fragments than 32 bits can count.
    pub(crate) fn enqueue_named(&mut self, name: (u64, u64), command: Bytes, origin: O, at: Now) {
        if command.len() <= self.payload_bytes_max {
            return self.push_own(EntryKind::Command, name, command, Some(origin), at);
        }
        let chunk_bytes = self.payload_bytes_max - PIECE_HEADER_BYTES;
        let count = u32::try_from(command.len().div_ceil(chunk_bytes));
        let count = count.expect("a command has few fragments");
        let mut origin = Some(origin);
        for (number, chunk) in command.chunks(chunk_bytes).enumerate() {
            let mut payload = BytesMut::with_capacity(PIECE_HEADER_BYTES + chunk.len());
            let number = u32::try_from(number).expect("a command has few fragments");
            payload.extend_from_slice(&piece_header(number, count));
            payload.extend_from_slice(chunk);
            let last = origin.take_if(|_| number + 1 == count);
            self.push_own(EntryKind::Fragment, name, payload.freeze(), last, at);
        }
    }

    /// Has a client's own request wait, as it came.
    pub(crate) fn enqueue_request(&mut self, request: &Request, origin: O, at: Now) {
        let name = (request.client.session, request.client.sequence);
        let payload = request.payload.clone();
        self.push_own(request.kind, name, payload, Some(origin), at);
    }

    /// Has a tick wait.
    pub(crate) fn enqueue_tick(&mut self, at: Now) {
        if self.ticks_waiting == 0 {
            self.push_own(EntryKind::Tick, (0, 0), Bytes::new(), None, at);
        }
    }

    fn push_own(
        &mut self,
        kind: EntryKind,
        (session, sequence): (u64, u64),
        payload: Bytes,
        origin: Option<O>,
        at: Now,
    ) {
        let submission = Submission {
            kind,
            session,
            sequence,
            work: self.work_of(kind, &payload),
            payload,
            origin,
            at,
        };
        self.count_in(&submission);
        self.waiting.push_back(submission);
        self.has_unoffered = true;
    }

    /// What a submission is at most in work. What becomes of pieces is one command in an entry of its own.
    fn work_of(&self, kind: EntryKind, payload: &[u8]) -> u32 {
        let work = match kind {
            EntryKind::Command => (self.options.work_of)(payload),
            EntryKind::Fragment | EntryKind::Tick | EntryKind::Bundle => 0,
        };
        u32::try_from(work).unwrap_or(u32::MAX)
    }

    fn count_in(&mut self, submission: &Submission<O>) {
        self.waiting_bytes += submission.payload.len();
        self.ticks_waiting += usize::from(submission.kind == EntryKind::Tick);
    }

    /// Takes the next submission back, to go another way.
    pub fn take_back(&mut self) -> Option<Submission<O>> {
        self.has_unoffered = false;
        let next = self.waiting.pop_front()?;
        self.waiting_bytes -= next.payload.len();
        self.ticks_waiting -= usize::from(next.kind == EntryKind::Tick);
        Some(next)
    }

    /// Takes back those at the front that wait for too long. A tick among them stays in front of what
    /// waits on: that counts from it.
    pub fn take_late(&mut self, is_late: impl Fn(Now) -> bool) -> Vec<Submission<O>> {
        let (mut late, mut tick) = (Vec::new(), None);
        while self.waits_since().is_some_and(&is_late)
            && let Some(submission) = self.take_back()
        {
            match submission.kind {
                EntryKind::Tick => tick = Some(submission),
                EntryKind::Command | EntryKind::Fragment | EntryKind::Bundle => {
                    late.push(submission);
                }
            }
        }
        if let (Some(tick), Some(at)) = (tick, self.waits_since())
            && !mutant("late-tick-is-given-up")
        {
            self.put_back(Submission { at, ..tick });
        }
        late
    }

    /// Puts one back at the front.
    pub fn put_back(&mut self, submission: Submission<O>) {
        self.count_in(&submission);
        self.waiting.push_front(submission);
    }

    /// Since when the first submission waits.
    #[must_use]
    pub fn waits_since(&self) -> Option<Now> {
        self.waiting.front().map(|submission| submission.at)
    }

    /// Hands over what waits, as much as there is room for. Who waits for it waits for its index
    /// then.
    ///
    /// # Errors
    ///
    /// The data plane's own. No room is none.
    pub fn submit(
        &mut self,
        tick: Tick,
        term: Term,
        proposals: &mut Proposals<O>,
    ) -> Result<(), PlaneError> {
        self.has_unoffered = false;
        let tick = tick.encode();
        while !self.waiting.is_empty() {
            let waiting = self.waiting.iter().map(|it| WaitingCommand {
                command: it.command(tick.as_ref()),
                work: it.work as usize,
            });
            let entries = next_entries(waiting, self.payload_bytes_max, SUBMITTED_AT_ONCE);
            let commands: Vec<Command<'_>> = entries.iter().map(NextEntry::command).collect();
            let counts: Vec<u16> = entries.iter().map(|it| it.commands).collect();
            let mut firsts = Vec::new();
            let mut taken = 0;
            // A plane may take fewer at once than it has room for.
            let ended = loop {
                match self.inner.submit(&commands[taken..]) {
                    Ok((_, 0)) | Err(PlaneError::Full) => break Some(Ok(())),
                    Err(error) => break Some(Err(error)),
                    Ok((index, count)) => {
                        firsts.push((index, taken..taken + count));
                        taken += count;
                        self.has_more |= self.wakes_itself();
                    }
                }
                if taken == commands.len() {
                    break None;
                }
            };
            for (first, entries) in firsts {
                let mut index = first;
                for commands in &counts[entries] {
                    proposals.extend(self.given((index, *commands), term));
                    index = index.next();
                }
            }
            if let Some(ended) = ended {
                return ended;
            }
        }
        Ok(())
    }

    /// The first `commands` that wait are the plane's entry at `index` now: who waits for them.
    fn given(
        &mut self,
        (index, commands): (Index, u16),
        term: Term,
    ) -> impl Iterator<Item = Proposal<O>> {
        if commands > 1 {
            self.counters.bundles += 1;
            self.counters.commands_bundled += u64::from(commands);
        }
        (0..commands).filter_map(move |position| {
            let next = self.take_back()?;
            let at = next.at;
            next.proposal((index, position), term, at)
        })
    }
}

impl<O> Submission<O> {
    /// It stands in the log now: who waits for it, if anybody does.
    #[must_use]
    pub fn proposal(
        self,
        (index, position): (Index, u16),
        term: Term,
        at: Now,
    ) -> Option<Proposal<O>> {
        let origin = self.origin?;
        Some(Proposal {
            index,
            position,
            term,
            origin,
            at,
        })
    }

    /// It as a command. A tick says what time it is when it leaves, however long it has waited.
    #[must_use]
    pub fn command<'a>(&'a self, tick: &'a [u8]) -> Command<'a> {
        Command {
            kind: self.kind,
            session: self.session,
            sequence: self.sequence,
            payload: match self.kind {
                EntryKind::Tick => tick,
                EntryKind::Command | EntryKind::Fragment | EntryKind::Bundle => &self.payload,
            },
        }
    }
}

#[cfg(test)]
#[path = "plane_test.rs"]
mod tests;

//! The data plane as the server sees it: what waits to be submitted, what it has stored (as log
//! records), and where the planes of the other replicas are. Consensus decides when it is engaged.
use super::answers;
use super::core::Origin;
use crate::keys::ClusterKeys;
use crate::report::DataPlaneReport;
use bytes::{BufMut, Bytes, BytesMut};
use quorumwire_control::{Engage, NextEntry, Now, WaitingCommand, append_record, next_entries};
use quorumwire_interfaces::{
    Answer, Command, DataPlane, EntryKind, Grant, GroupId, Index, Lineage, MemcachedLeave,
    PlaneError, PlaneEvent, PlaneKeyPair, PlaneKeys, PlanePeer, Reason, Registers, ReplicaId, Term,
};
use quorumwire_kv::Command as Write;
use quorumwire_wire::Tick;
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// Packets taken in at once.
const POLL_BUDGET: usize = 256;
/// Rounds of that in one turn of the event loop.
const POLLS_PER_TURN: usize = 8;
/// Entries handed over at once.
const SUBMITTED_AT_ONCE: usize = 32;
/// Bytes of commands that may wait until the plane has room; then clients wait.
const WAITING_BYTES_MAX: usize = 8 << 20;
/// Bytes of one fragment before its part of the command: number and count.
const FRAGMENT_HEADER_BYTES: usize = 8;
/// Records are built in blocks of this size.
const BLOCK_BYTES: usize = 64 << 10;

/// A command on its way into the plane.
pub struct Submission {
    pub kind: EntryKind,
    /// Of the client that asked for it; 0: none.
    pub session: u64,
    pub sequence: u64,
    pub payload: Bytes,
    /// What it is at most in work for the state machine.
    work: u32,
    /// Who waits for its answer; none for all but the last fragment of a command, and for ticks.
    pub origin: Option<Origin>,
    pub at: Now,
}

/// A client's request that the plane itself could not take.
pub struct PlaneRequest {
    pub from: SocketAddr,
    pub kind: EntryKind,
    pub session: u64,
    pub sequence: u64,
    pub payload: Bytes,
}

/// A client's request that the plane has put into the log.
pub struct PlaneAsked {
    pub index: Index,
    pub term: Term,
    pub origin: Origin,
}

/// What one look at the plane has brought.
#[derive(Default)]
pub struct Brought {
    /// Records of the entries stored, in order.
    pub records: BytesMut,
    pub asked: Vec<PlaneAsked>,
    pub requests: Vec<PlaneRequest>,
    pub behind: Vec<ReplicaId>,
}

/// A plane before the server has it.
pub struct Opened {
    pub place: Box<dyn DataPlane>,
    /// Where it listens.
    pub bound: SocketAddr,
    /// Where it runs, in words, if it could be in several places.
    pub runs: Option<String>,
}

pub struct Plane {
    place: Box<dyn DataPlane>,
    /// As options and status call it.
    pub name: &'static str,
    /// Why it is this one.
    pub choice: Option<DataPlaneReport>,
    /// What keeps it from running, as people were last told.
    fault_told: Option<String>,
    /// Where others reach it.
    pub address: String,
    group: GroupId,
    held: bool,
    /// Those of the secret file.
    from_file: Option<ClusterKeys>,
    /// The cluster that they are for.
    lineage: Lineage,
    /// What replicas sign with in place of what the secret file says.
    agreed: Option<PlaneKeyPair>,
    payload_bytes_max: usize,
    /// Where the planes of connected replicas are.
    addresses: BTreeMap<ReplicaId, SocketAddr>,
    /// The voters by slot, while engaged.
    slots: Vec<ReplicaId>,
    /// The last entry handed over.
    taken: Index,
    persisted: Index,
    pub waiting: VecDeque<Submission>,
    waiting_bytes: usize,
    /// Names commands in fragments; begins at random so that no two runs use the same.
    next_sequence: u64,
    pub brought: Brought,
    /// More may be there although nothing wakes us for it.
    pub has_more: bool,
    /// What it does without waking us is looked at this late at most.
    pub look_within: Option<Duration>,
    /// Of what waits, how many are ticks: one at most. `waiting` says it too, but may hold some hundred
    /// thousand short commands, and each tick that is due asks.
    ticks_waiting: usize,
    /// Entries made of several commands, and these.
    bundles: u64,
    bundled: u64,
}

impl Plane {
    pub fn new(
        place: Box<dyn DataPlane>,
        name: &'static str,
        address: String,
        group: GroupId,
        held: bool,
        first_sequence: u64,
    ) -> Self {
        let payload_bytes_max = place.limits().payload_bytes_max;
        assert!(
            payload_bytes_max > FRAGMENT_HEADER_BYTES,
            "a plane carries payloads"
        );
        Self {
            place,
            name,
            choice: None,
            fault_told: None,
            address,
            group,
            held,
            from_file: None,
            lineage: Lineage::default(),
            agreed: None,
            payload_bytes_max,
            addresses: BTreeMap::new(),
            slots: Vec::new(),
            taken: Index(0),
            persisted: Index(0),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            next_sequence: first_sequence,
            brought: Brought::default(),
            has_more: false,
            look_within: None,
            ticks_waiting: 0,
            bundles: 0,
            bundled: 0,
        }
    }

    /// A replica said where its plane is. What is running uses it from now on.
    pub fn set_address(&mut self, id: ReplicaId, address: Option<SocketAddr>) {
        let Some(address) = address else {
            self.addresses.remove(&id);
            return;
        };
        self.addresses.insert(id, address);
        if let Some(slot) = self.slots.iter().position(|known| *known == id)
            && let Ok(slot) = u8::try_from(slot)
        {
            self.place.set_peer(slot, address);
        }
    }

    /// Takes the keys of the secret file; of those only what is clients', where replicas agree on theirs.
    pub fn set_keys(&mut self, keys: &ClusterKeys) {
        self.from_file = Some(keys.clone());
        self.give_keys();
    }

    /// Replicas sign with this from now on, whatever the secret file says.
    pub fn agree(&mut self, between_replicas: PlaneKeyPair) {
        self.agreed = Some(between_replicas);
        self.give_keys();
    }

    /// The log says which cluster it is. Not while engaged: members are changed in software only.
    pub fn set_lineage(&mut self, lineage: Lineage) {
        if self.lineage != lineage {
            self.lineage = lineage;
            self.give_keys();
        }
    }

    fn give_keys(&mut self) {
        let Some(from_file) = &self.from_file else {
            return;
        };
        let from_file = from_file.for_planes(self.lineage);
        let cluster = self.agreed.unwrap_or(from_file.cluster);
        self.place.set_keys(&PlaneKeys {
            cluster,
            clients: from_file.clients,
        });
    }

    /// Whether the plane runs now as it was asked to.
    pub fn engage(&mut self, engage: &Engage) -> bool {
        let nowhere = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
        let own = self.address.parse().unwrap_or(nowhere);
        let slot_of = |(slot, peer): (usize, &quorumwire_control::Peer)| PlanePeer {
            id: peer.id,
            address: if slot == usize::from(engage.me) {
                own
            } else {
                // Nothing reaches a replica that was never connected, until it is.
                self.addresses.get(&peer.id).copied().unwrap_or(nowhere)
            },
        };
        let grant = Grant {
            group: engage.group,
            term: engage.term,
            last_index: engage.last_index,
            last_term: engage.last_term,
            commit_index: engage.commit_index,
            me: engage.me,
            leader: engage.leader,
            peers: engage.voters.iter().enumerate().map(slot_of).collect(),
            quorum: engage.quorum,
            held: self.held,
        };
        let result = self.place.engage(&grant);
        if let Err(error) = result {
            // A fault is told once, not with every try.
            if self.tell_fault() {
                return false;
            }
            tracing::warn!(
                ?error,
                term = engage.term.0,
                "the data plane was not engaged"
            );
            return false;
        }
        self.slots = engage.voters.iter().map(|peer| peer.id).collect();
        self.taken = engage.last_index;
        self.persisted = engage.last_index;
        true
    }

    /// What keeps the plane from running.
    pub fn fault(&self) -> Option<&str> {
        self.place.fault()
    }

    /// Tells people, once, when something begins to keep the plane from running and when that has passed.
    /// Whether something does now.
    pub fn tell_fault(&mut self) -> bool {
        let fault = self.place.fault();
        if fault != self.fault_told.as_deref() {
            if let Some(fault) = fault {
                tracing::error!(fault, "the data plane cannot run");
            } else {
                tracing::info!("the data plane can run again");
            }
            self.fault_told = fault.map(str::to_owned);
        }
        self.fault_told.is_some()
    }

    /// Stops the plane and takes everything out of its ring.
    pub fn disengage(&mut self) -> Registers {
        let registers = self.place.disengage();
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

    pub fn registers(&self) -> Registers {
        self.place.registers()
    }

    /// Begins a round; whether somebody waits for what it brings.
    pub fn heartbeat(&mut self, round: u64, is_awaited: bool) -> Result<(), PlaneError> {
        self.place.expects_round(is_awaited);
        self.place.heartbeat(round)
    }

    /// Whether the plane has put a memcached client's datagram into the log. Not before what waits.
    pub fn take_memcached(&mut self, from: SocketAddr, datagram: &[u8]) -> bool {
        let taken = self.waiting.is_empty() && self.place.take_memcached(from, datagram);
        self.has_more |= taken && self.wakes_itself();
        taken
    }

    /// Whether what this host has put into the plane needs this host next, with no packet to say so: its own log has to
    /// have it, or nobody else is asked.
    fn wakes_itself(&self) -> bool {
        self.held || self.slots.len() == 1
    }

    /// As [`DataPlane::answer_bytes_max`].
    pub fn answer_bytes_max(&self) -> usize {
        self.place.answer_bytes_max()
    }

    /// As [`DataPlane::keep_answer`].
    pub fn keep_answer(&mut self, key: &[u8], answer: Option<&[u8]>) {
        self.place.keep_answer(key, answer);
    }

    /// As [`DataPlane::forget_answers`].
    pub fn forget_answers(&mut self) {
        self.place.forget_answers();
    }

    /// As [`DataPlane::allow_memcached`].
    pub fn allow_memcached(&mut self, leave: &MemcachedLeave) {
        self.place.allow_memcached(leave);
    }

    /// Entries are durable up to here.
    pub fn set_persisted(&mut self, upto: Index) -> Result<(), PlaneError> {
        self.persisted = self.persisted.max(upto);
        if !self.held {
            return Ok(());
        }
        let committed_before = self.place.registers().commit_index;
        self.place.persisted(upto)?;
        // No packet brings word of what became committed with this.
        self.has_more |= self.place.registers().commit_index > committed_before;
        Ok(())
    }

    /// What is durable and applied need not be kept: so a slow disk and a slow state machine hold up
    /// those who submit.
    pub fn release(&mut self, applied: Index) -> Result<(), PlaneError> {
        if self.slots.is_empty() {
            return Ok(());
        }
        self.place
            .release(applied.min(self.persisted).min(self.taken))
    }

    pub fn answer(&mut self, answer: &Answer<'_>) {
        if answer.payload.len() <= self.payload_bytes_max {
            return self.place.answer(answer);
        }
        let too_long = Reason::AnswerTooLong;
        self.place.answer(&Answer {
            refused: Some(too_long),
            payload: &answers::text(too_long, b""),
            ..*answer
        });
    }

    /// Looks at what has come, a bounded amount of it; it gathers in `brought`.
    pub fn poll(&mut self) {
        for _ in 0..POLLS_PER_TURN {
            self.poll_once();
            self.look_within = self.place.poll_again_within();
            self.has_more = self.look_within == Some(Duration::ZERO);
            if !self.has_more {
                return;
            }
        }
    }

    fn poll_once(&mut self) {
        let (brought, taken, slots) = (&mut self.brought, &mut self.taken, &self.slots);
        let group = self.group;
        self.place.poll(POLL_BUDGET, &mut |event| match event {
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
                let command = entry.command;
                brought.asked.extend(entry.asked_by.map(|from| PlaneAsked {
                    index: entry.index,
                    term: entry.term,
                    origin: Origin::Plane(from, command.session, command.sequence),
                }));
            }
            PlaneEvent::Behind(slot) => {
                brought.behind.extend(slots.get(usize::from(slot)));
            }
            PlaneEvent::Request {
                from,
                kind,
                session,
                sequence,
                payload,
            } => brought.requests.push(PlaneRequest {
                from,
                kind,
                session,
                sequence,
                payload: Bytes::copy_from_slice(payload),
            }),
            // The registers say the one, the plane has counted the other.
            PlaneEvent::Committed(_) | PlaneEvent::Foreign { .. } => {}
        });
    }

    /// The plane's own counters, named for a report.
    pub fn counters(&self) -> BTreeMap<String, u64> {
        let mut counters = BTreeMap::new();
        self.place.counters(&mut |name, count| {
            counters.insert(format!("plane_{name}"), count);
        });
        counters.insert("plane_bundles".to_owned(), self.bundles);
        counters.insert("plane_commands_bundled".to_owned(), self.bundled);
        counters
    }

    /// Whether a command of this size may wait to be submitted.
    pub fn has_room(&self, command_bytes: usize) -> bool {
        self.waiting_bytes == 0 || self.waiting_bytes + command_bytes <= WAITING_BYTES_MAX
    }

    /// Has a command wait until [`submit`](Self::submit); a long one in fragments.
    pub fn enqueue(&mut self, command: Bytes, origin: Origin, at: Now) {
        self.next_sequence = self.next_sequence.wrapping_add(1);
        self.enqueue_named((0, self.next_sequence), command, origin, at);
    }

    /// The same for a command with this session and sequence.
    pub fn enqueue_named(&mut self, name: (u64, u64), command: Bytes, origin: Origin, at: Now) {
        if command.len() <= self.payload_bytes_max {
            return self.push_own(EntryKind::Command, name, command, Some(origin), at);
        }
        let chunk_bytes = self.payload_bytes_max - FRAGMENT_HEADER_BYTES;
        let count = command.len().div_ceil(chunk_bytes);
        for (number, chunk) in command.chunks(chunk_bytes).enumerate() {
            let mut payload = BytesMut::with_capacity(FRAGMENT_HEADER_BYTES + chunk.len());
            payload.put_u32(u32::try_from(number).expect("a command has few fragments"));
            payload.put_u32(u32::try_from(count).expect("a command has few fragments"));
            payload.extend_from_slice(chunk);
            let origin = (number + 1 == count).then_some(origin);
            self.push_own(EntryKind::Fragment, name, payload.freeze(), origin, at);
        }
    }

    /// Has a client's own request wait, as it came.
    pub fn enqueue_request(&mut self, request: &PlaneRequest, origin: Origin, at: Now) {
        self.push(Submission {
            kind: request.kind,
            session: request.session,
            sequence: request.sequence,
            payload: request.payload.clone(),
            work: work_of(request.kind, &request.payload),
            origin: Some(origin),
            at,
        });
    }

    /// Has a tick wait.
    pub fn enqueue_tick(&mut self, at: Now) {
        if self.ticks_waiting == 0 {
            self.push_own(EntryKind::Tick, (0, 0), Bytes::new(), None, at);
        }
    }

    /// Has one wait that did not come through the plane.
    fn push_own(
        &mut self,
        kind: EntryKind,
        (session, sequence): (u64, u64),
        payload: Bytes,
        origin: Option<Origin>,
        at: Now,
    ) {
        self.push(Submission {
            kind,
            session,
            sequence,
            work: work_of(kind, &payload),
            payload,
            origin,
            at,
        });
    }

    fn push(&mut self, submission: Submission) {
        self.count_in(&submission);
        self.waiting.push_back(submission);
    }

    fn count_in(&mut self, submission: &Submission) {
        self.waiting_bytes += submission.payload.len();
        self.ticks_waiting += usize::from(submission.kind == EntryKind::Tick);
    }

    /// Takes the next submission back, to go another way.
    pub fn take_back(&mut self) -> Option<Submission> {
        let next = self.waiting.pop_front()?;
        self.waiting_bytes -= next.payload.len();
        self.ticks_waiting -= usize::from(next.kind == EntryKind::Tick);
        Some(next)
    }

    /// Puts one back at the front.
    pub fn put_back(&mut self, submission: Submission) {
        self.count_in(&submission);
        self.waiting.push_front(submission);
    }

    /// Since when the first submission waits.
    pub fn waits_since(&self) -> Option<Now> {
        self.waiting.front().map(|submission| submission.at)
    }

    /// Hands over what waits, as much as there is room for; each with the index it got, and which command of
    /// that entry it is.
    pub fn submit(
        &mut self,
        tick: Tick,
        mut submitted: impl FnMut(Index, u16, Submission),
    ) -> Result<(), PlaneError> {
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
                match self.place.submit(&commands[taken..]) {
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
                    self.give(index, *commands, &mut submitted);
                    index = index.next();
                }
            }
            if let Some(ended) = ended {
                return ended;
            }
        }
        Ok(())
    }

    /// The first `commands` that wait are the plane's entry at `index` now.
    fn give(
        &mut self,
        index: Index,
        commands: u16,
        submitted: &mut impl FnMut(Index, u16, Submission),
    ) {
        if commands > 1 {
            self.bundles += 1;
            self.bundled += u64::from(commands);
        }
        for position in 0..commands {
            let Some(submission) = self.take_back() else {
                return;
            };
            submitted(index, position, submission);
        }
    }
}

/// What a submission is at most in work. What becomes of pieces is one command in an entry of its own.
fn work_of(kind: EntryKind, payload: &[u8]) -> u32 {
    let work = match kind {
        EntryKind::Command => Write::decode(payload).map_or(0, |it| it.work_max()),
        EntryKind::Fragment | EntryKind::Tick | EntryKind::Bundle => 0,
    };
    u32::try_from(work).unwrap_or(u32::MAX)
}

impl Submission {
    /// It as a command. A tick says what time it is when it leaves, however long it has waited.
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

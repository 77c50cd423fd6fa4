//! The plane in ordinary memory: ring, keys and counters around the C step. Takes datagrams and gives
//! datagrams; has no socket, clock or thread, so the socket plane and a simulated one are thin around it.
use crate::counters::Counters;
use crate::endpoint::{address_of, address_of_peer};
use crate::memcached::memcached_set;
use crate::mutants::mutant;
use crate::register_store::{Memory, RegisterStore};
use crate::ring::{EntryHead, RING_SLOTS_MAX, ReplyAddress};
use crate::shared::{Gap, Outcome};
use crate::signing::Signing;
use crate::step;
use quorumwire_interfaces::{
    Answer, Command, Endpoint, EntryKind, Grant, GroupId, Index, Limits, PLANE_REPLICAS_MAX,
    PlaneEntry, PlaneError, PlaneEvent, PlaneKeys, Registers as Shown, Term,
};
use quorumwire_wire::packet::{
    ACTION_FANOUT, ACTION_TO_SOFTWARE, FLAG_BLIND, FLAG_BUNDLE, FLAG_FRAGMENT, FLAG_REFUSED,
    FLAG_TICK, Header, Kind, MAGIC, PAYLOAD_BYTES_MAX, PacketReason, REPLICAS_MAX, Registers, Role,
    SENDER_CLIENT, VERSION,
};
use quorumwire_wire::payload_checksum;
use std::net::SocketAddr;

mod carry_out;

const _: () = assert!(PLANE_REPLICAS_MAX == REPLICAS_MAX);

/// What a command's flags say of the entry it becomes.
const FLAGS_OF_ENTRIES: u8 = FLAG_BLIND | FLAG_TICK | FLAG_FRAGMENT | FLAG_BUNDLE;

/// Where an engine's datagrams go. A datagram that cannot be sent is lost; the protocol asks again.
pub trait Outbox {
    /// Sends one datagram.
    fn send(&mut self, to: SocketAddr, datagram: &[u8]);

    /// Sends one datagram to a memcached client, from where it asked. Only for those of
    /// [`Engine::take_memcached`].
    fn send_memcached(&mut self, _to: SocketAddr, _datagram: &[u8]) {}
}

/// What takes an engine's events.
pub type Sink<'a> = &'a mut dyn FnMut(PlaneEvent<'_>);

/// What an engine is made with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Options {
    /// The log it serves.
    pub group: GroupId,
    /// Entries its ring holds: a power of two, at most 65,536.
    pub ring_slots: u32,
    /// Leader: most entries that wait for a commit, 1 to `ring_slots`; never more than [`window_max`].
    pub window: u32,
}

/// Frames that the ring of a network device holds at least: those of veth devices. Nobody paces packets, so
/// what a leader has on its way to all others must fit, or a burst loses some.
const DEVICE_FRAMES: u32 = 256;
/// Of these, so many stay free of entries on their way for the first time: for answers, and what is sent
/// again.
const DEVICE_FRAMES_FREE: u32 = 64;

/// Entries that a leader has on their way at most, to so many others.
#[must_use]
pub const fn window_max(others: u32) -> u32 {
    let others = if others == 0 { 1 } else { others };
    (DEVICE_FRAMES - DEVICE_FRAMES_FREE) / others
}

/// A data plane without a network.
pub struct Engine<P = Memory> {
    register_store: P,
    peers: Vec<SocketAddr>,
    signing: Signing,
    counters: Counters,
    options: Options,
    /// Last entry handed to the host.
    taken_index: u64,
    /// Commit index that the host was told.
    told_commit: u64,
    /// What is asked for, where packets come to the engine.
    gap: Gap,
    /// Where datagrams are put together.
    datagram: Vec<u8>,
    /// Where commands of memcached clients are put together.
    command: Vec<u8>,
    /// What became of the commands submitted last.
    outcomes: Vec<Outcome>,
}

impl Engine {
    /// An engine in ordinary memory that is off. Refuses options outside of their ranges.
    pub fn new(options: Options) -> Result<Self, PlaneError> {
        Self::within(options, |options| Ok(Memory::new(options.ring_slots)))
    }
}

impl<P: RegisterStore> Engine<P> {
    /// An engine over another store, which is off and is made once the options are known to be in their
    /// ranges.
    pub fn within(
        options: Options,
        register_store: impl FnOnce(&Options) -> Result<P, PlaneError>,
    ) -> Result<Self, PlaneError> {
        if !options.ring_slots.is_power_of_two() || options.ring_slots > RING_SLOTS_MAX {
            return Err(PlaneError::Refused(
                "ring_slots must be a power of two, at most 65536",
            ));
        }
        if options.window == 0 || options.window > options.ring_slots {
            return Err(PlaneError::Refused("window must be 1 to ring_slots"));
        }
        Ok(Self {
            register_store: register_store(&options)?,
            peers: Vec::new(),
            signing: Signing::default(),
            counters: Counters::default(),
            options,
            taken_index: 0,
            told_commit: 0,
            gap: Gap::default(),
            datagram: Vec::new(),
            command: Vec::new(),
            outcomes: Vec::new(),
        })
    }

    /// As [`quorumwire_interfaces::DataPlane::limits`].
    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits {
            payload_bytes_max: PAYLOAD_BYTES_MAX,
            replicas_max: REPLICAS_MAX,
            ring_slots: self.options.ring_slots,
            authenticates: true,
        }
    }

    /// Signs and checks with these from now on.
    pub fn set_keys(&mut self, keys: &PlaneKeys) {
        self.signing.set(keys);
    }

    /// As [`quorumwire_interfaces::DataPlane::engage`].
    pub fn engage(&mut self, grant: &Grant) -> Result<(), PlaneError> {
        if self.is_engaged() && !mutant("engaged-twice") {
            return Err(PlaneError::Engaged);
        }
        if self.taken_index != self.state().last_index && !mutant("engaged-before-all-was-taken") {
            return Err(PlaneError::Refused(
                "the entries of the last fast term must be taken first",
            ));
        }
        if !self.signing.is_set() && !mutant("engaged-without-keys") {
            return Err(PlaneError::Refused("keys must be set first"));
        }
        if grant.group != self.options.group && !mutant("engaged-for-another-group") {
            return Err(PlaneError::Refused("the grant is of another group"));
        }
        let registers = self.granted(grant)?;
        if !step::registers_sound(&registers) {
            return Err(PlaneError::Refused(
                "the grant needs slots below the number of peers, a quorum that is a majority, and \
                 last_term and commit_index that fit term and last_index",
            ));
        }
        self.register_store.engage(&registers)?;
        self.peers = grant.peers.iter().map(address_of_peer).collect();
        self.taken_index = grant.last_index.0;
        self.told_commit = grant.commit_index.0;
        self.gap = Gap::behind(grant.last_index.0);
        Ok(())
    }

    fn granted(&self, grant: &Grant) -> Result<Registers, PlaneError> {
        let replicas = u8::try_from(grant.peers.len())
            .ok()
            .filter(|replicas| usize::from(*replicas) <= REPLICAS_MAX)
            .ok_or(PlaneError::Refused("the grant has more than 7 peers"))?;
        let leads = grant.me == grant.leader;
        let mut registers = Registers {
            term: grant.term.0,
            start_index: grant.last_index.0,
            last_index: grant.last_index.0,
            last_term: grant.last_term.0,
            commit_index: grant.commit_index.0,
            persisted_index: grant.last_index.0,
            released_index: grant.last_index.0,
            group: grant.group.0,
            ring_slots: self.options.ring_slots,
            window: self
                .options
                .window
                .min(window_max(u32::from(replicas).saturating_sub(1))),
            role: if leads { Role::Leader } else { Role::Follower } as u8,
            me: grant.me,
            leader: grant.leader,
            replicas,
            quorum: grant.quorum,
            held: u8::from(grant.held),
            ..Registers::default()
        };
        if let Some(own) = registers.match_index.get_mut(usize::from(grant.me)) {
            *own = grant.last_index.0;
        }
        Ok(registers)
    }

    /// As [`quorumwire_interfaces::DataPlane::disengage`]. Everything an engine says it has handed to
    /// its outbox before, so nothing is on its way here.
    pub fn disengage(&mut self) -> Shown {
        self.register_store.disengage();
        self.registers()
    }

    fn state(&self) -> &Registers {
        self.register_store.registers()
    }

    /// Looks at the registers anew, where packets move them without the engine's doing.
    pub fn refresh(&mut self) {
        self.register_store.refresh();
    }

    /// Where the step runs.
    pub fn register_store(&self) -> &P {
        &self.register_store
    }

    /// It, for what only its own plane asks of it.
    pub fn register_store_mut(&mut self) -> &mut P {
        &mut self.register_store
    }

    /// Whether it is off and has handed over all it had, so that nothing but registers holds it where it is.
    #[must_use]
    pub fn may_move(&self) -> bool {
        !self.is_engaged() && self.taken_index == self.state().last_index
    }

    /// Goes on over another store, which has the registers of this one and an empty ring.
    pub fn move_to(&mut self, register_store: P) {
        assert!(self.may_move(), "what it had would be left behind");
        assert!(register_store.registers() == self.register_store.registers());
        self.register_store = register_store;
    }

    /// The registers as the host sees them.
    #[must_use]
    pub fn registers(&self) -> Shown {
        shown(self.state())
    }

    /// The term it was last engaged in.
    #[must_use]
    pub fn term(&self) -> Term {
        Term(self.state().term)
    }

    /// The last index and the commit index, without the other registers.
    #[must_use]
    pub fn indexes(&self) -> (Index, Index) {
        let registers = self.state();
        (Index(registers.last_index), Index(registers.commit_index))
    }

    /// As [`quorumwire_interfaces::DataPlane::set_peer`].
    pub fn set_peer(&mut self, slot: u8, endpoint: &Endpoint) {
        let peer = self.peers.get_mut(usize::from(slot));
        if let (Some(peer), Some(address)) = (peer, address_of(endpoint)) {
            *peer = address;
        }
    }

    /// Whether it moves anything.
    #[must_use]
    pub fn is_engaged(&self) -> bool {
        self.state().role != Role::Off as u8
    }

    /// What it has done and not done.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    fn leads(&self) -> bool {
        self.state().role == Role::Leader as u8
    }

    /// As [`quorumwire_interfaces::DataPlane::submit`].
    pub fn submit(
        &mut self,
        commands: &[Command<'_>],
        outbox: &mut dyn Outbox,
    ) -> Result<(Index, usize), PlaneError> {
        if !self.leads() {
            return Err(PlaneError::NotEngaged);
        }
        if commands.is_empty() {
            return Ok((Index(self.state().last_index.saturating_add(1)), 0));
        }
        let some = commands.len().min(self.register_store.submit_max());
        let taken = self.submit_some(&commands[..some], outbox)?;
        let first = self.outcomes.first().map_or(0, |first| first.index);
        Ok((Index(first), taken))
    }

    /// Leader: as many of these as there is room for; an error if there is room for none.
    fn submit_some(
        &mut self,
        commands: &[Command<'_>],
        outbox: &mut dyn Outbox,
    ) -> Result<usize, PlaneError> {
        let fits = |command: &&Command<'_>| command.payload.len() <= PAYLOAD_BYTES_MAX;
        let headers: Vec<Header> = commands
            .iter()
            .take_while(fits)
            .map(|command| {
                let from = Header {
                    flags: match command.kind {
                        EntryKind::Command => 0,
                        EntryKind::Fragment => FLAG_FRAGMENT,
                        EntryKind::Bundle => FLAG_BUNDLE,
                        EntryKind::Tick => FLAG_TICK,
                    },
                    session: command.session,
                    sequence: command.sequence,
                    ..Header::default()
                };
                self.assigned(from, command.payload)
            })
            .collect();
        if headers.is_empty() {
            return Err(PlaneError::Refused("a payload is longer than the limit"));
        }
        let payloads = commands.iter().map(|command| (command.payload, None));
        self.assign(&headers, payloads, outbox)
    }

    /// A command that came in no packet; `from` has its flags, session and sequence. The payload is within
    /// the limit.
    fn assigned(&self, from: Header, payload: &[u8]) -> Header {
        Header {
            magic: MAGIC,
            version: VERSION,
            kind: Kind::Request as u8,
            sender: u8::try_from(SENDER_CLIENT).unwrap_or(u8::MAX),
            payload_bytes: u16::try_from(payload.len()).expect("within the limit"),
            group: self.state().group,
            payload_crc32c: payload_checksum(payload),
            ..from
        }
    }

    /// Leader: puts commands that came in no packet into the log, with who waits for them; how many there
    /// was room for. An error if there was room for none.
    fn assign<'a>(
        &mut self,
        headers: &[Header],
        payloads: impl Iterator<Item = (&'a [u8], Option<ReplyAddress>)>,
        outbox: &mut dyn Outbox,
    ) -> Result<usize, PlaneError> {
        let mut outcomes = std::mem::take(&mut self.outcomes);
        outcomes.clear();
        let submitted = self.register_store.submit(headers, &mut outcomes);
        let mut taken = 0;
        for ((header, outcome), (payload, requester)) in headers.iter().zip(&outcomes).zip(payloads)
        {
            if outcome.is_stored() {
                self.store(header, outcome, payload, requester);
                self.say(outcome, payload, outbox);
                taken += 1;
            } else {
                self.counters.note(outcome.reason());
            }
        }
        let no_index_left = outcomes
            .last()
            .is_some_and(|last| last.has(ACTION_TO_SOFTWARE));
        self.outcomes = outcomes;
        submitted?;
        match taken {
            0 if no_index_left => Err(PlaneError::Failed("the log has no index left".into())),
            0 => Err(PlaneError::Full),
            _ => Ok(taken),
        }
    }

    /// As [`quorumwire_interfaces::Offload::take_datagram`], for a memcached client: what is taken is a plain
    /// `set` without a lifetime.
    pub fn take_memcached(
        &mut self,
        from: SocketAddr,
        datagram: &[u8],
        outbox: &mut dyn Outbox,
    ) -> bool {
        if !self.leads() {
            return false;
        }
        let mut command = std::mem::take(&mut self.command);
        let taken = memcached_set(datagram, &mut command).is_some_and(|set| {
            // What a `set` answers is known as soon as it is committed.
            let blind = Header {
                flags: FLAG_BLIND,
                ..Header::default()
            };
            let requester = ReplyAddress::Memcached(from, set.request);
            let requester = (!set.noreply).then_some(requester);
            let header = self.assigned(blind, &command);
            let payloads = std::iter::once((&command[..], requester));
            self.assign(&[header], payloads, outbox).is_ok()
        });
        self.command = command;
        self.counters.memcached_taken += u64::from(taken);
        taken
    }

    /// As [`quorumwire_interfaces::DataPlane::heartbeat`].
    pub fn heartbeat(&mut self, round: u64, outbox: &mut dyn Outbox) -> Result<(), PlaneError> {
        if !self.leads() {
            return Err(PlaneError::NotEngaged);
        }
        let outcome = self.register_store.heartbeat(round)?;
        if !outcome.has(ACTION_FANOUT) {
            return Err(PlaneError::Refused("heartbeat rounds must ascend"));
        }
        self.say(&outcome, &[], outbox);
        Ok(())
    }

    /// As [`quorumwire_interfaces::DataPlane::persisted`].
    pub fn persisted(&mut self, upto: Index, outbox: &mut dyn Outbox) -> Result<(), PlaneError> {
        if !self.is_engaged() {
            return Err(PlaneError::NotEngaged);
        }
        let outcome = self.register_store.persisted(upto.0)?;
        if !matches!(
            outcome.reason(),
            PacketReason::None | PacketReason::Repeated
        ) {
            return Err(PlaneError::Refused(
                "only what was stored can be persisted, and only where that is held",
            ));
        }
        self.say(&outcome, &[], outbox);
        Ok(())
    }

    /// As [`quorumwire_interfaces::DataPlane::release`].
    pub fn release(&mut self, upto: Index) -> Result<(), PlaneError> {
        let untaken = upto.0 > self.taken_index && !mutant("released-before-taken");
        if untaken || !self.register_store.release(upto.0)? {
            return Err(PlaneError::Refused("only what was taken can be released"));
        }
        Ok(())
    }

    /// As [`quorumwire_interfaces::DataPlane::answer`]. A longer payload than the limit is not sent.
    pub fn answer(&mut self, answer: &Answer<'_>, outbox: &mut dyn Outbox) {
        let Some(payload_bytes) = u16::try_from(answer.payload.len())
            .ok()
            .filter(|bytes| usize::from(*bytes) <= PAYLOAD_BYTES_MAX)
        else {
            self.counters.note(PacketReason::Malformed);
            return;
        };
        let header = Header {
            flags: if answer.refused.is_some() {
                FLAG_REFUSED
            } else {
                0
            } | if answer.fragment { FLAG_FRAGMENT } else { 0 },
            payload_bytes,
            payload_crc32c: payload_checksum(answer.payload),
            index: answer.index.0,
            previous_term: answer.refused.map_or(0, |reason| reason.code().into()),
            session: answer.session,
            sequence: answer.sequence,
            ..self.said(Kind::Answer)
        };
        self.send(answer.to, header, [answer.payload, &[]], outbox);
    }

    /// Hands over what has happened: entries in the order of the log, then how far they are committed.
    /// How many events.
    pub fn take(&mut self, sink: Sink<'_>) -> usize {
        let mut events = 0;
        while self.taken_index < self.register_store.filled_index() {
            let index = self.taken_index + 1;
            let (stored, payload) = self
                .register_store
                .get(index)
                .expect("the step overwrites no entry that was not taken");
            let blind = stored.flags & FLAG_BLIND != 0;
            sink(PlaneEvent::Entry(PlaneEntry {
                index: Index(index),
                term: Term(self.state().term),
                command: Command {
                    kind: kind_of(stored.flags),
                    session: stored.session,
                    sequence: stored.sequence,
                    payload,
                },
                requester: stored.requester.and_then(|requester| match requester {
                    ReplyAddress::Packet(client) if !blind => Some(client),
                    ReplyAddress::Packet(_) | ReplyAddress::Memcached(..) => None,
                }),
            }));
            self.taken_index = index;
            events += 1;
        }
        let committed = self.state().commit_index.min(self.taken_index);
        if committed > self.told_commit {
            self.told_commit = committed;
            sink(PlaneEvent::Committed(Index(self.told_commit)));
            events += 1;
        }
        events
    }

    /// What every packet of this replica begins with.
    fn said(&self, kind: Kind) -> Header {
        Header {
            magic: MAGIC,
            version: VERSION,
            kind: kind as u8,
            sender: self.state().me,
            group: self.options.group.0,
            term: self.state().term,
            commit_index: self.state().commit_index,
            ..Header::default()
        }
    }

    /// Puts an entry into the ring. `from` has the command's own fields.
    fn store(
        &mut self,
        from: &Header,
        outcome: &Outcome,
        payload: &[u8],
        requester: Option<ReplyAddress>,
    ) {
        let previous_term = match Kind::from_byte(from.kind) {
            Some(Kind::Append) => from.previous_term,
            Some(
                Kind::Request
                | Kind::AppendOk
                | Kind::Retransmit
                | Kind::Heartbeat
                | Kind::HeartbeatOk
                | Kind::Answer
                | Kind::Forward
                | Kind::Submit
                | Kind::P1a
                | Kind::P1b
                | Kind::P2a
                | Kind::P2b
                | Kind::Admit
                | Kind::Checkpoint,
            )
            | None => outcome.header.previous_term,
        };
        let entry = EntryHead {
            index: outcome.index,
            previous_term,
            session: from.session,
            sequence: from.sequence,
            payload_crc32c: from.payload_crc32c,
            payload_bytes: u16::try_from(payload.len()).expect("within the limit"),
            flags: from.flags & FLAGS_OF_ENTRIES,
            requester,
        };
        self.register_store.put(entry, payload);
        self.counters.stored += 1;
    }
}

/// Registers as a host sees them.
#[must_use]
pub fn shown(registers: &Registers) -> Shown {
    Shown {
        term: Term(registers.term),
        last_index: Index(registers.last_index),
        last_term: Term(registers.last_term),
        commit_index: Index(registers.commit_index),
        persisted_index: Index(registers.persisted_index),
        round: registers.round,
        match_index: registers.match_index.map(Index),
        heard_round: registers.heard_round,
    }
}

fn kind_of(flags: u8) -> EntryKind {
    if flags & FLAG_TICK != 0 {
        EntryKind::Tick
    } else if flags & FLAG_FRAGMENT != 0 {
        EntryKind::Fragment
    } else if flags & FLAG_BUNDLE != 0 {
        EntryKind::Bundle
    } else {
        EntryKind::Command
    }
}

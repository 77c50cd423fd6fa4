//! A Paxos role's box: keys, counters and what waits for a disk around a store of registers and instances.
//! Takes datagrams and gives datagrams; has no socket, clock, disk or thread.
use crate::engine::Outbox;
use crate::paxos::paxos_sound;
use crate::paxos_counters::PaxosCounters;
use crate::paxos_store::{PaxosMemory, PaxosStepped, PaxosStore, Surroundings};
use crate::signing::Signing;
use quorumwire_interfaces::{PlaneError, PlaneKeys};
use quorumwire_wire::PaxosRecord;
use quorumwire_wire::packet::{
    ACTION_FANOUT, ACTION_HOLD, ACTION_REPLY, ACTION_STORE, ACTION_TO_SOFTWARE, ACTION_VOTE,
    Header, INSTANCE_WINDOW_MAX, PacketReason, PaxosRegisters, PaxosRole, PaxosSlot,
};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// Packets that may wait for the disk.
const HELD_MAX: usize = 4096;

/// What a box is made with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PaxosOptions {
    /// The deployment it serves.
    pub group: u32,
    /// Instances that can be open: a power of two, at most [`INSTANCE_WINDOW_MAX`].
    pub window: u32,
}

/// What a box tells its host.
#[derive(Debug)]
pub enum PaxosEvent<'a> {
    /// The role leaves this packet to software.
    ToSoftware {
        /// Whoever sent it.
        from: SocketAddr,
        /// The packet.
        header: Header,
        /// Its payload.
        payload: &'a [u8],
        /// Why.
        reason: PacketReason,
    },
    /// This has to be durable before what is held is said (see [`PaxosEngine::durable`]).
    Keep {
        /// What to keep.
        record: PaxosRecord,
        /// Everything up to this number is said when everything up to here is durable.
        number: u64,
    },
}

/// What takes a box's events.
pub type PaxosSink<'a> = &'a mut dyn FnMut(PaxosEvent<'_>);

/// Who gets what waits for the disk.
#[derive(Clone, Copy, Debug)]
enum Whom {
    All,
    /// All, and this one, who gets it once if it is among them.
    AllAnd(SocketAddr),
    One(SocketAddr),
}

struct Held {
    number: u64,
    whom: Whom,
    header: Header,
    payload: Vec<u8>,
}

/// How a box speaks.
#[derive(Default)]
struct Voice {
    signing: Signing,
    /// Where fan-out goes.
    destinations: Vec<SocketAddr>,
    counters: PaxosCounters,
    datagram: Vec<u8>,
}

impl Voice {
    fn say(&mut self, whom: Whom, header: Header, payload: &[u8], out: &mut dyn Outbox) {
        if !self
            .signing
            .seal(header, [payload, &[]], &mut self.datagram)
        {
            self.counters.without_key += 1;
            return;
        }
        match whom {
            Whom::One(to) => {
                self.counters.sent += 1;
                out.send(to, &self.datagram);
            }
            Whom::All | Whom::AllAnd(_) => {
                let also = match whom {
                    Whom::AllAnd(to) if !self.destinations.contains(&to) => Some(to),
                    Whom::All | Whom::AllAnd(_) | Whom::One(_) => None,
                };
                for to in self.destinations.iter().chain(&also) {
                    self.counters.sent += 1;
                    out.send(*to, &self.datagram);
                }
            }
        }
    }
}

fn check(options: PaxosOptions) -> Result<(), PlaneError> {
    if options.window.is_power_of_two() && options.window as usize <= INSTANCE_WINDOW_MAX {
        return Ok(());
    }
    Err(PlaneError::Refused(
        "window must be a power of two, at most 65536",
    ))
}

/// A box without a network.
pub struct PaxosEngine {
    options: PaxosOptions,
    store: Box<dyn PaxosStore>,
    voice: Voice,
    held: VecDeque<Held>,
    /// Of the last record that the host was given to keep.
    kept: u64,
    fault: Option<PlaneError>,
}

impl PaxosEngine {
    /// A box in ordinary memory that is off.
    ///
    /// # Errors
    /// The window is no power of two, or too large.
    pub fn new(options: PaxosOptions) -> Result<Self, PlaneError> {
        check(options)?;
        Self::within(options, Box::new(PaxosMemory::new(options.window)))
    }

    /// One with this store, which is off and was made for the window.
    ///
    /// # Errors
    /// The window is no power of two, or too large.
    pub fn within(options: PaxosOptions, store: Box<dyn PaxosStore>) -> Result<Self, PlaneError> {
        check(options)?;
        Ok(Self {
            options,
            store,
            voice: Voice::default(),
            held: VecDeque::new(),
            kept: 0,
            fault: None,
        })
    }

    /// Signs and checks with these from now on.
    pub fn set_keys(&mut self, keys: &PlaneKeys) {
        self.voice.signing.set(keys);
        let done = self.store.set_keys(keys);
        self.note(done);
    }

    /// Fans out to these from now on: a coordinator to the acceptors, an acceptor to the learners.
    pub fn set_destinations(&mut self, destinations: Vec<SocketAddr>) {
        let done = self.store.set_destinations(&destinations);
        self.note(done);
        self.voice.destinations = destinations;
    }

    /// The registers of this moment.
    #[must_use]
    pub fn registers(&self) -> PaxosRegisters {
        self.store.registers()
    }

    /// The round of an acceptor's vote for an instance; 0: none that it knows of.
    #[must_use]
    pub fn vote_round(&self, instance: u64) -> u64 {
        let slot = self.store.slot(instance);
        if slot.instance == instance {
            slot.vote_round
        } else {
            0
        }
    }

    /// What it has counted, and its store.
    #[must_use]
    pub fn counters(&self) -> PaxosCounters {
        let mut counters = self.voice.counters;
        let counts = self.store.counts();
        let of = |name| counts.get(name).copied().unwrap_or(0);
        counters.received += of("received");
        counters.sent += of("sent");
        counters.stored += of("entries_stored");
        counters.assigned += of("instances_assigned");
        for reason in PacketReason::ALL {
            counters.reasons.count_times(reason, of(reason.name()));
        }
        counters
    }

    /// What its store has counted without the engine's doing, by name. As far as a role has a counter for it,
    /// it is in [`counters`](Self::counters), too.
    #[must_use]
    pub fn counts_of_store(&self) -> BTreeMap<&'static str, u64> {
        self.store.counts()
    }

    /// Whether its store takes packets by itself, and what is wrong with its surroundings.
    #[must_use]
    pub fn surroundings(&self) -> Surroundings {
        self.store.surroundings()
    }

    /// Why it does nothing any more: its store failed.
    #[must_use]
    pub fn fault(&self) -> Option<&PlaneError> {
        self.fault.as_ref()
    }

    /// Once a second: looks after what its surroundings may have changed. What people should know.
    pub fn look_around(&mut self) -> Option<String> {
        let looked = self.store.look_around();
        self.note(looked)
    }

    fn note<T: Default>(&mut self, done: Result<T, PlaneError>) -> T {
        done.unwrap_or_else(|error| {
            self.fault.get_or_insert(error);
            T::default()
        })
    }

    /// Switches a role on with these registers and empty slots.
    ///
    /// # Errors
    /// The box is on, or no role can begin with these registers.
    pub fn switch_on(&mut self, registers: &PaxosRegisters) -> Result<(), PlaneError> {
        if self.registers().role != PaxosRole::Off as u8 {
            return Err(PlaneError::Refused("the box is on"));
        }
        let fits = registers.group == self.options.group && registers.window == self.options.window;
        if !fits || !paxos_sound(registers) {
            return Err(PlaneError::Refused(
                "no role can begin with these registers",
            ));
        }
        let done = self.store.switch_on(registers);
        if let Err(error) = &done {
            self.fault.get_or_insert(error.clone());
        }
        done
    }

    /// Puts back what an acceptor had voted for, from its disk. Only before anything was received.
    pub fn put_back(&mut self, slot: &PaxosSlot, value: &[u8]) {
        let done = self.store.put_back(slot, value);
        self.note(done);
    }

    /// Switches the role off: when this returns nothing more leaves the box. What was held is never said.
    pub fn switch_off(&mut self) {
        self.store.switch_off();
        self.held.clear();
    }

    /// Takes packets of this configuration from now on.
    pub fn configure(&mut self, configuration: u64) {
        let done = self.store.configure(configuration);
        self.note(done);
    }

    /// Forgets the instances up to this one; false if there can be no such instance.
    pub fn trim(&mut self, upto: u64) -> bool {
        let done = self.store.trim(upto);
        self.note(done)
    }

    /// Whether an acceptor is a member for this instance: it has not lost its memory since it voted there, or
    /// all learners have the instance.
    #[must_use]
    pub fn is_member_for(&self, instance: u64) -> bool {
        let PaxosRegisters { trimmed, bound, .. } = self.registers();
        let slot = self.store.slot(instance);
        let has_voted = slot.instance == instance && slot.vote_round > 0;
        has_voted || instance <= trimmed || instance > bound
    }

    /// All that has to be on disk for this box to go on: the registers, then each instance that is open.
    pub fn records(&self) -> impl Iterator<Item = PaxosRecord> {
        let registers = self.registers();
        let places = 0..u64::from(self.options.window);
        let slots = places.map(|place| self.store.slot(place));
        let open = slots.filter(move |slot| slot.instance > registers.trimmed);
        let slots = open.map(move |slot| {
            let value = self.store.value(slot.instance);
            slot_record(registers, slot, &value)
        });
        std::iter::once(PaxosRecord::Registers(Box::new(registers))).chain(slots)
    }

    /// Takes in a datagram.
    pub fn receive(
        &mut self,
        from: SocketAddr,
        datagram: &[u8],
        out: &mut dyn Outbox,
        sink: PaxosSink<'_>,
    ) {
        if self.fault.is_some() {
            return;
        }
        let counters = &mut self.voice.counters;
        counters.received += 1;
        let opened = self.voice.signing.open(datagram);
        let (header, payload) = match opened {
            Ok(opened) => opened,
            Err(reason) => return counters.reasons.count(reason),
        };
        if self.held.len() >= HELD_MAX {
            counters.disk_behind += 1;
            return;
        }
        let stepped = match self.store.step(&header, payload) {
            Ok(stepped) => stepped,
            Err(error) => {
                self.fault.get_or_insert(error);
                return;
            }
        };
        let outcome = stepped.outcome;
        counters.reasons.count(outcome.reason());
        if outcome.has(ACTION_TO_SOFTWARE) {
            // What belongs to another deployment is nothing to this one's software.
            if outcome.reason() != PacketReason::Group {
                let reason = outcome.reason();
                sink(PaxosEvent::ToSoftware {
                    from,
                    header,
                    payload,
                    reason,
                });
            }
            return;
        }
        if outcome.has(ACTION_STORE) {
            counters.stored += 1;
        } else if outcome.has(ACTION_FANOUT)
            && stepped.registers.role == PaxosRole::Coordinator as u8
        {
            counters.assigned += 1;
        }
        let whom = match (outcome.has(ACTION_FANOUT), outcome.has(ACTION_REPLY)) {
            (true, false) => Whom::All,
            (true, true) => Whom::AllAnd(from),
            (false, true) => Whom::One(from),
            (false, false) => return,
        };
        // The value is lent while it is sent: nothing is copied that does not wait for the disk.
        let behind = if outcome.has(ACTION_VOTE) {
            stepped.value
        } else if outcome.has(ACTION_FANOUT) {
            payload
        } else {
            &[]
        };
        if outcome.has(ACTION_HOLD) {
            self.kept += 1;
            self.held.push_back(Held {
                number: self.kept,
                whom,
                header: outcome.header,
                payload: behind.to_vec(),
            });
            let (record, number) = (record_of(&stepped), self.kept);
            sink(PaxosEvent::Keep { record, number });
        } else {
            self.voice.say(whom, outcome.header, behind, out);
        }
    }

    /// The number of the last record that the host was given to keep.
    #[must_use]
    pub fn last_kept(&self) -> u64 {
        self.kept
    }

    /// Everything up to this number is durable: says what waited for it.
    pub fn durable(&mut self, upto: u64, out: &mut dyn Outbox) {
        if self.fault.is_some() {
            return;
        }
        while let Some(held) = self.held.pop_front_if(|held| held.number <= upto) {
            self.voice.say(held.whom, held.header, &held.payload, out);
        }
    }

    /// Sends a packet of the host's, signed.
    pub fn send(&mut self, to: SocketAddr, header: Header, payload: &[u8], out: &mut dyn Outbox) {
        self.voice.say(Whom::One(to), header, payload, out);
    }
}

/// What has to be kept before what a step says is said.
fn record_of(stepped: &PaxosStepped<'_>) -> PaxosRecord {
    if stepped.outcome.header.index == 0 {
        return PaxosRecord::Registers(Box::new(stepped.registers));
    }
    slot_record(stepped.registers, stepped.slot, stepped.value)
}

/// Where only a promise was given, `value` is one of another instance.
fn slot_record(registers: PaxosRegisters, slot: PaxosSlot, value: &[u8]) -> PaxosRecord {
    let value = if slot.vote_round > 0 { value } else { &[] };
    PaxosRecord::Slot(Box::new(registers), Box::new(slot), value.to_vec())
}

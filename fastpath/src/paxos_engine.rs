//! A Paxos role's box in ordinary memory: registers, slots, values, keys and counters around the C step.
//! Takes datagrams and gives datagrams; has no socket, clock, disk or thread.
use crate::engine::Outbox;
use crate::paxos::{paxos_sound, paxos_step, paxos_trim};
use crate::signing::Signing;
use quorumwire_interfaces::{PlaneError, PlaneKeys};
use quorumwire_wire::PaxosRecord;
use quorumwire_wire::packet::{
    ACTION_FANOUT, ACTION_HOLD, ACTION_REPLY, ACTION_STORE, ACTION_TO_SOFTWARE, ACTION_VOTE,
    Header, INSTANCE_WINDOW_MAX, PacketReason, PaxosRegisters, PaxosRole, PaxosSlot,
};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Packets that may wait for the disk.
const HELD_MAX: usize = 4096;

/// Counts since the box was made. All are numbers of packets.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct PaxosCounters {
    /// Datagrams received.
    pub received: u64,
    /// Packets handed to the network.
    pub sent: u64,
    /// Values that an acceptor voted for.
    pub stored: u64,
    /// Values that a coordinator gave an instance.
    pub assigned: u64,
    /// Packets not sent because no key to sign them is known.
    pub without_key: u64,
    /// Packets dropped because too much waits for the disk.
    pub disk_behind: u64,
    reasons: [u64; PacketReason::ALL.len()],
}

impl PaxosCounters {
    /// How many packets were not taken, or not as the sender meant it, for this reason.
    #[must_use]
    pub const fn reason(&self, reason: PacketReason) -> u64 {
        self.reasons[reason as usize]
    }

    fn note(&mut self, reason: PacketReason) {
        self.reasons[reason as usize] += 1;
    }
}

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
    One(SocketAddr),
}

struct Held {
    number: u64,
    whom: Whom,
    header: Header,
    payload: Vec<u8>,
}

/// A box without a network.
pub struct PaxosEngine {
    options: PaxosOptions,
    registers: PaxosRegisters,
    slots: Vec<PaxosSlot>,
    values: Vec<Vec<u8>>,
    signing: Signing,
    /// Where fan-out goes.
    destinations: Vec<SocketAddr>,
    counters: PaxosCounters,
    held: VecDeque<Held>,
    /// Of the last record that the host was given to keep.
    kept: u64,
    datagram: Vec<u8>,
}

impl PaxosEngine {
    /// A box that is off.
    ///
    /// # Errors
    /// The window is no power of two, or too large.
    pub fn new(options: PaxosOptions) -> Result<Self, PlaneError> {
        if !options.window.is_power_of_two() || options.window as usize > INSTANCE_WINDOW_MAX {
            return Err(PlaneError::Refused(
                "window must be a power of two, at most 65536",
            ));
        }
        let window = options.window as usize;
        Ok(Self {
            options,
            registers: PaxosRegisters::default(),
            slots: vec![PaxosSlot::default(); window],
            values: vec![Vec::new(); window],
            signing: Signing::default(),
            destinations: Vec::new(),
            counters: PaxosCounters::default(),
            held: VecDeque::new(),
            kept: 0,
            datagram: Vec::new(),
        })
    }

    /// Signs and checks with these from now on.
    pub fn set_keys(&mut self, keys: &PlaneKeys) {
        self.signing.set(keys);
    }

    /// Fans out to these from now on: a coordinator to the acceptors, an acceptor to the learners and to the
    /// coordinators' hosts.
    pub fn set_destinations(&mut self, destinations: Vec<SocketAddr>) {
        self.destinations = destinations;
    }

    /// The registers.
    #[must_use]
    pub fn registers(&self) -> &PaxosRegisters {
        &self.registers
    }

    /// What it has counted.
    #[must_use]
    pub fn counters(&self) -> &PaxosCounters {
        &self.counters
    }

    /// Switches a role on with these registers and empty slots.
    ///
    /// # Errors
    /// The box is on, or no role can begin with these registers.
    pub fn switch_on(&mut self, registers: &PaxosRegisters) -> Result<(), PlaneError> {
        if self.is_on() {
            return Err(PlaneError::Refused("the box is on"));
        }
        let fits = registers.group == self.options.group && registers.window == self.options.window;
        if !fits || !paxos_sound(registers) {
            return Err(PlaneError::Refused(
                "no role can begin with these registers",
            ));
        }
        self.slots.fill(PaxosSlot::default());
        self.values.iter_mut().for_each(Vec::clear);
        self.registers = *registers;
        Ok(())
    }

    /// Puts back what an acceptor had voted for, from its disk. Only before anything was received.
    pub fn put_back(&mut self, slot: &PaxosSlot, value: &[u8]) {
        let place = self.place(slot.instance);
        self.slots[place] = *slot;
        self.values[place] = value.to_vec();
    }

    /// Switches the role off: when this returns nothing more leaves the box. What was held is never said.
    pub fn switch_off(&mut self) {
        self.registers.role = PaxosRole::Off as u8;
        self.held.clear();
    }

    fn is_on(&self) -> bool {
        self.registers.role != PaxosRole::Off as u8
    }

    /// Takes packets of this configuration from now on.
    pub fn configure(&mut self, configuration: u64) {
        self.registers.configuration = configuration;
    }

    /// Forgets the instances up to this one; false if there can be no such instance.
    pub fn trim(&mut self, upto: u64) -> bool {
        paxos_trim(&mut self.registers, upto)
    }

    /// Whether an acceptor is a member for this instance: it has not lost its memory since it voted there, or
    /// all learners have the instance.
    #[must_use]
    pub fn is_member_for(&self, instance: u64) -> bool {
        let PaxosRegisters { trimmed, bound, .. } = self.registers;
        let slot = &self.slots[self.place(instance)];
        let has_voted = slot.instance == instance && slot.vote_round > 0;
        has_voted || instance <= trimmed || instance > bound
    }

    /// All that has to be on disk for this box to go on: the registers, then each instance that is open.
    pub fn records(&self) -> impl Iterator<Item = PaxosRecord> {
        let registers = Box::new(self.registers);
        let open = self.slots.iter().zip(&self.values);
        let open = open.filter(|(slot, _)| slot.instance > self.registers.trimmed);
        let slots = open.map(|(slot, value)| self.slot_record(slot, value));
        std::iter::once(PaxosRecord::Registers(registers)).chain(slots)
    }

    /// Where only a promise was given, `value` is one of another instance.
    fn slot_record(&self, slot: &PaxosSlot, value: &[u8]) -> PaxosRecord {
        let has_voted = slot.vote_round > 0;
        let value = if has_voted {
            value.to_vec()
        } else {
            Vec::new()
        };
        PaxosRecord::Slot(Box::new(self.registers), Box::new(*slot), value)
    }

    fn place(&self, instance: u64) -> usize {
        let place = instance % u64::from(self.options.window);
        usize::try_from(place).expect("a window fits in memory")
    }

    /// Takes in a datagram.
    pub fn receive(
        &mut self,
        from: SocketAddr,
        datagram: &[u8],
        out: &mut dyn Outbox,
        sink: PaxosSink<'_>,
    ) {
        self.counters.received += 1;
        let opened = self.signing.open(datagram);
        let (header, payload) = match opened {
            Ok(opened) => opened,
            Err(reason) => return self.counters.note(reason),
        };
        if self.held.len() >= HELD_MAX {
            self.counters.disk_behind += 1;
            return;
        }
        let place = self.place(header.index);
        let outcome = paxos_step(&mut self.registers, &mut self.slots[place], &header);
        self.counters.note(outcome.reason());
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
            self.counters.stored += 1;
            payload.clone_into(&mut self.values[place]);
        } else if outcome.has(ACTION_FANOUT) && self.is_coordinator() {
            self.counters.assigned += 1;
        }
        let whom = match (outcome.has(ACTION_FANOUT), outcome.has(ACTION_REPLY)) {
            (true, _) => Whom::All,
            (_, true) => Whom::One(from),
            (false, false) => return,
        };
        // The value is lent while it is sent: nothing is copied that does not wait for the disk.
        let value = std::mem::take(&mut self.values[place]);
        let behind = if outcome.has(ACTION_VOTE) {
            &value[..]
        } else if outcome.has(ACTION_FANOUT) {
            payload
        } else {
            &[]
        };
        if outcome.has(ACTION_HOLD) {
            let payload = behind.to_vec();
            self.values[place] = value;
            self.hold(place, whom, outcome.header, payload, sink);
        } else {
            self.say(whom, outcome.header, behind, out);
            self.values[place] = value;
        }
    }

    fn is_coordinator(&self) -> bool {
        self.registers.role == PaxosRole::Coordinator as u8
    }

    /// Has the host keep what the box knows now, and says it then.
    fn hold(
        &mut self,
        place: usize,
        whom: Whom,
        header: Header,
        payload: Vec<u8>,
        sink: PaxosSink<'_>,
    ) {
        self.kept += 1;
        let record = if header.index == 0 {
            PaxosRecord::Registers(Box::new(self.registers))
        } else {
            self.slot_record(&self.slots[place], &self.values[place])
        };
        let number = self.kept;
        self.held.push_back(Held {
            number,
            whom,
            header,
            payload,
        });
        sink(PaxosEvent::Keep { record, number });
    }

    /// The number of the last record that the host was given to keep.
    #[must_use]
    pub fn last_kept(&self) -> u64 {
        self.kept
    }

    /// Everything up to this number is durable: says what waited for it.
    pub fn durable(&mut self, upto: u64, out: &mut dyn Outbox) {
        while let Some(held) = self.held.pop_front_if(|held| held.number <= upto) {
            self.say(held.whom, held.header, &held.payload, out);
        }
    }

    /// Sends a packet of the host's, signed.
    pub fn send(&mut self, to: SocketAddr, header: Header, payload: &[u8], out: &mut dyn Outbox) {
        self.say(Whom::One(to), header, payload, out);
    }

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
            Whom::All => {
                for to in &self.destinations {
                    self.counters.sent += 1;
                    out.send(*to, &self.datagram);
                }
            }
        }
    }
}

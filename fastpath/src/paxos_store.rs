//! Where a Paxos role's step runs: its registers, what it knows of each instance, and what moves them. In
//! ordinary memory it is [`PaxosMemory`]; a box that keeps them elsewhere, such as in the kernel, brings its
//! own.
use crate::paxos::{paxos_step, paxos_trim};
use crate::shared::Outcome;
use quorumwire_interfaces::{PlaneError, PlaneKeys};
use quorumwire_wire::packet::{ACTION_STORE, Header, PaxosRegisters, PaxosRole, PaxosSlot};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// What a step has done, and what is known then.
#[derive(Clone, Copy, Debug)]
pub struct PaxosStepped<'a> {
    /// What is to be done. A value that is to be stored is.
    pub outcome: Outcome,
    /// As the step left them.
    pub registers: PaxosRegisters,
    /// What is known of the packet's instance; of another one, if nothing is.
    pub slot: PaxosSlot,
    /// What was voted for there.
    pub value: &'a [u8],
}

/// Registers, and a slot and a value for each instance of the window. Packets may move them without the
/// engine's doing. An error means that the store failed: it moves nothing any more.
pub trait PaxosStore: Send {
    /// The registers of this moment.
    fn registers(&self) -> PaxosRegisters;

    /// Takes the step for a packet that has passed all checks, and stores the value that it says to store.
    ///
    /// # Errors
    /// The store failed.
    fn step(&mut self, header: &Header, payload: &[u8]) -> Result<PaxosStepped<'_>, PlaneError>;

    /// What is known of the instance that has this one's place.
    fn slot(&self, instance: u64) -> PaxosSlot;

    /// What was voted for there.
    fn value(&self, instance: u64) -> Vec<u8>;

    /// Begins with these registers and empty slots.
    ///
    /// # Errors
    /// The store failed.
    fn switch_on(&mut self, registers: &PaxosRegisters) -> Result<(), PlaneError>;

    /// Puts back what was voted for.
    ///
    /// # Errors
    /// The store failed.
    fn put_back(&mut self, slot: &PaxosSlot, value: &[u8]) -> Result<(), PlaneError>;

    /// The fence: afterwards no packet moves anything, and nothing leaves.
    fn switch_off(&mut self);

    /// Packets of this configuration are taken from now on.
    ///
    /// # Errors
    /// The store failed.
    fn configure(&mut self, configuration: u64) -> Result<(), PlaneError>;

    /// As [`paxos_trim`].
    ///
    /// # Errors
    /// The store failed.
    fn trim(&mut self, upto: u64) -> Result<bool, PlaneError>;

    /// What leaves by itself is signed with these.
    ///
    /// # Errors
    /// The store failed.
    fn set_keys(&mut self, _keys: &PlaneKeys) -> Result<(), PlaneError> {
        Ok(())
    }

    /// What leaves by itself goes to these.
    ///
    /// # Errors
    /// They cannot all be reached from here, or the store failed.
    fn set_destinations(&mut self, _destinations: &[SocketAddr]) -> Result<(), PlaneError> {
        Ok(())
    }

    /// What was counted without the engine's doing, by name: those of `PacketReason`, and what the plane
    /// counts.
    fn counts(&self) -> BTreeMap<&'static str, u64> {
        BTreeMap::new()
    }

    /// How its surroundings are. In a process it has none.
    fn surroundings(&self) -> Surroundings {
        Surroundings::default()
    }

    /// Looks after what its surroundings may have changed. What people should know.
    ///
    /// # Errors
    /// The store failed.
    fn look_around(&mut self) -> Result<Option<String>, PlaneError> {
        Ok(None)
    }
}

/// How the surroundings of a store are.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Surroundings {
    /// Packets are taken there by themselves, without the engine.
    pub is_engaged: bool,
    /// What is wrong.
    pub trouble: Option<String>,
}

/// In ordinary memory, which nobody else touches.
pub struct PaxosMemory {
    registers: PaxosRegisters,
    slots: Vec<PaxosSlot>,
    values: Vec<Vec<u8>>,
}

impl PaxosMemory {
    /// Off. `window` is a power of two.
    #[must_use]
    pub fn new(window: u32) -> Self {
        let window = window as usize;
        Self {
            registers: PaxosRegisters::default(),
            slots: vec![PaxosSlot::default(); window],
            values: vec![Vec::new(); window],
        }
    }

    fn place(&self, instance: u64) -> usize {
        let place = instance % u64::try_from(self.slots.len()).expect("a window is a small number");
        usize::try_from(place).expect("a window fits in memory")
    }
}

impl PaxosStore for PaxosMemory {
    fn registers(&self) -> PaxosRegisters {
        self.registers
    }

    fn step(&mut self, header: &Header, payload: &[u8]) -> Result<PaxosStepped<'_>, PlaneError> {
        let place = self.place(header.index);
        let outcome = paxos_step(&mut self.registers, &mut self.slots[place], header);
        if outcome.has(ACTION_STORE) {
            payload.clone_into(&mut self.values[place]);
        }
        Ok(PaxosStepped {
            outcome,
            registers: self.registers,
            slot: self.slots[place],
            value: &self.values[place],
        })
    }

    fn slot(&self, instance: u64) -> PaxosSlot {
        self.slots[self.place(instance)]
    }

    fn value(&self, instance: u64) -> Vec<u8> {
        self.values[self.place(instance)].clone()
    }

    fn switch_on(&mut self, registers: &PaxosRegisters) -> Result<(), PlaneError> {
        self.slots.fill(PaxosSlot::default());
        self.values.iter_mut().for_each(Vec::clear);
        self.registers = *registers;
        Ok(())
    }

    fn put_back(&mut self, slot: &PaxosSlot, value: &[u8]) -> Result<(), PlaneError> {
        let place = self.place(slot.instance);
        self.slots[place] = *slot;
        self.values[place] = value.to_vec();
        Ok(())
    }

    fn switch_off(&mut self) {
        self.registers.role = PaxosRole::Off as u8;
    }

    fn configure(&mut self, configuration: u64) -> Result<(), PlaneError> {
        self.registers.configuration = configuration;
        Ok(())
    }

    fn trim(&mut self, upto: u64) -> Result<bool, PlaneError> {
        Ok(paxos_trim(&mut self.registers, upto))
    }
}

//! Where the step runs: its registers, its ring, and what moves them. In ordinary memory it is [`Memory`];
//! a plane that keeps them elsewhere, such as in the kernel, brings its own.
use crate::ring::{EntryHead, Ring};
use crate::shared::Outcome;
use crate::step;
use quorumwire_interfaces::PlaneError;
use quorumwire_wire::packet::{Header, Registers, Role};

/// Registers and a ring. An error means that the store failed: it moves nothing any more.
pub trait RegisterStore {
    /// The registers as of the last method that changed them, or of [`refresh`](Self::refresh).
    fn registers(&self) -> &Registers;

    /// Looks at the registers anew, where packets move them without the engine's doing.
    fn refresh(&mut self) {}

    /// The last entry that the ring holds whole, and all before it.
    fn filled_index(&self) -> u64;

    /// Starts with these registers; the ring holds nothing behind their last index.
    fn engage(&mut self, registers: &Registers) -> Result<(), PlaneError>;

    /// The fence: afterwards no packet moves anything, and the registers say all there was.
    fn disengage(&mut self);

    /// Most commands that [`submit`](Self::submit) takes.
    fn submit_max(&self) -> usize;

    /// Leader: gives commands their indexes, one behind the other, up to the first that gets none; an
    /// outcome for each that was looked at.
    fn submit(
        &mut self,
        commands: &[Header],
        outcomes: &mut Vec<Outcome>,
    ) -> Result<(), PlaneError>;

    /// As [`step::heartbeat`].
    fn heartbeat(&mut self, round: u64) -> Result<Outcome, PlaneError>;

    /// As [`step::persisted`].
    fn persisted(&mut self, upto: u64) -> Result<Outcome, PlaneError>;

    /// As [`step::release`].
    fn release(&mut self, upto: u64) -> Result<bool, PlaneError>;

    /// Puts an entry into the ring that [`submit`](Self::submit) gave its index.
    fn put(&mut self, entry: EntryHead, payload: &[u8]);

    /// An entry with its payload, if the ring holds it.
    fn get(&self, index: u64) -> Option<(EntryHead, &[u8])>;
}

/// Registers and ring in ordinary memory, which nobody else touches.
pub struct Memory {
    pub(crate) registers: Registers,
    ring: Ring,
}

impl Memory {
    /// Off. `slots` must be a power of two, at most [`crate::RING_SLOTS_MAX`].
    pub(crate) fn new(slots: u32) -> Self {
        Self {
            registers: Registers::default(),
            ring: Ring::new(slots),
        }
    }
}

impl RegisterStore for Memory {
    fn registers(&self) -> &Registers {
        &self.registers
    }

    fn filled_index(&self) -> u64 {
        self.registers.last_index
    }

    fn engage(&mut self, registers: &Registers) -> Result<(), PlaneError> {
        self.registers = *registers;
        self.ring.clear();
        Ok(())
    }

    fn disengage(&mut self) {
        self.registers.role = Role::Off as u8;
    }

    fn submit_max(&self) -> usize {
        usize::MAX
    }

    fn submit(
        &mut self,
        commands: &[Header],
        outcomes: &mut Vec<Outcome>,
    ) -> Result<(), PlaneError> {
        for command in commands {
            let outcome = step::submit(&mut self.registers, command);
            outcomes.push(outcome);
            if !outcome.is_stored() {
                break;
            }
        }
        Ok(())
    }

    fn heartbeat(&mut self, round: u64) -> Result<Outcome, PlaneError> {
        Ok(step::heartbeat(&mut self.registers, round))
    }

    fn persisted(&mut self, upto: u64) -> Result<Outcome, PlaneError> {
        Ok(step::persisted(&mut self.registers, upto))
    }

    fn release(&mut self, upto: u64) -> Result<bool, PlaneError> {
        Ok(step::release(&mut self.registers, upto))
    }

    fn put(&mut self, entry: EntryHead, payload: &[u8]) {
        self.ring.put(entry, payload);
    }

    fn get(&self, index: u64) -> Option<(EntryHead, &[u8])> {
        self.ring.get(index)
    }
}

//! Registers in the core, and the ring that it writes. The host changes them by orders alone.
use crate::card::Card;
use crate::shared::Order;
use quorumwire_fastpath::shared::SlotHead;
use quorumwire_fastpath::{EntryHead, Outcome, RegisterStore};
use quorumwire_interfaces::PlaneError;
use quorumwire_wire::packet::{Header, Registers};

/// Commands that the host submits at once.
const SUBMIT_MAX: usize = 8;

/// One group's registers and ring.
pub struct CardRegisters {
    pub card: Card,
    slots: u32,
    /// As of the last order or look. The clock runs only within calls of the host's.
    registers: Registers,
    filled: u64,
    /// The core did not do what it was ordered.
    pub failed: Option<PlaneError>,
}

impl CardRegisters {
    pub fn new(card: Card, slots: u32) -> Self {
        Self {
            card,
            slots,
            registers: Registers::default(),
            filled: 0,
            failed: None,
        }
    }

    /// The entry's head, if its slot holds it.
    pub fn head(&self, index: u64) -> Option<&SlotHead> {
        let head = &self.card.slot(index).head;
        (index != 0 && head.index == index).then_some(head)
    }

    fn note_filled(&mut self) {
        while self.filled < self.registers.last_index && self.head(self.filled + 1).is_some() {
            self.filled += 1;
        }
    }

    fn made(&mut self) -> Result<(), PlaneError> {
        self.registers = self.card.made()?;
        self.note_filled();
        Ok(())
    }

    fn obey(&mut self, order: Order, number: u64) -> Result<Outcome, PlaneError> {
        let outcome = self.card.order(order, number)?;
        self.made()?;
        Ok(outcome)
    }
}

impl RegisterStore for CardRegisters {
    fn registers(&self) -> &Registers {
        &self.registers
    }

    fn refresh(&mut self) {
        match self.card.look() {
            Ok(registers) => self.registers = registers,
            Err(error) => self.failed = Some(error),
        }
        self.note_filled();
    }

    fn filled_index(&self) -> u64 {
        self.filled
    }

    fn engage(&mut self, registers: &Registers) -> Result<(), PlaneError> {
        // What an earlier term stored at an index that will be stored anew must not be taken for the new
        // entry.
        let stale = registers.last_index + 1..=self.registers.last_index;
        for index in stale.take(self.slots as usize) {
            self.card.slot_mut(index).head.index = 0;
        }
        let filled = std::mem::replace(&mut self.filled, registers.last_index);
        let engaged = self.card.engage(registers).and_then(|()| self.made());
        // Whoever hears of an error takes the core for off.
        engaged.inspect_err(|_| {
            self.filled = filled;
            let stopped = self.card.order(Order::Off, 0);
            assert!(stopped.is_ok(), "the core was not stopped");
        })
    }

    fn disengage(&mut self) {
        // A core that cannot be stopped could acknowledge what this replica no longer counts.
        let stopped = self.obey(Order::Off, 0);
        assert!(stopped.is_ok(), "the core was not stopped");
        let (filled, last) = (self.filled, self.registers.last_index);
        assert!(
            filled == last,
            "the ring ends at {filled}, the core's log at {last}"
        );
    }

    fn submit_max(&self) -> usize {
        SUBMIT_MAX
    }

    fn submit(
        &mut self,
        commands: &[Header],
        outcomes: &mut Vec<Outcome>,
    ) -> Result<(), PlaneError> {
        for command in commands {
            let outcome = self.card.submit(command)?;
            outcomes.push(outcome);
            if !outcome.is_stored() {
                break;
            }
        }
        self.made()
    }

    fn heartbeat(&mut self, round: u64) -> Result<Outcome, PlaneError> {
        self.obey(Order::Heartbeat, round)
    }

    fn persisted(&mut self, upto: u64) -> Result<Outcome, PlaneError> {
        self.obey(Order::Persisted, upto)
    }

    fn release(&mut self, upto: u64) -> Result<bool, PlaneError> {
        Ok(self.obey(Order::Release, upto)?.reason == 0)
    }

    fn put(&mut self, entry: EntryHead, payload: &[u8]) {
        let slot = self.card.slot_mut(entry.index);
        slot.head = SlotHead::of(&entry);
        slot.payload[..payload.len()].copy_from_slice(payload);
        slot.head.index = entry.index;
        self.note_filled();
    }

    fn get(&self, index: u64) -> Option<(EntryHead, &[u8])> {
        let head = self.head(index)?;
        let payload = &self.card.slot(index).payload[..usize::from(head.payload_bytes)];
        Some((head.entry(), payload))
    }
}

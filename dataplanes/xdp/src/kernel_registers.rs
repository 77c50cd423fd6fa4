//! Registers and ring in the kernel's maps. The host never changes registers itself: it has a program do so,
//! under the lock that packets' steps take.
use crate::ffi::{MapMemory, full_barrier};
use crate::mutants::mutant;
use crate::orders::{Fence, give, read_whole};
use crate::shared::{
    CONTROL_IN_AT, CONTROL_OUT_AT, ControlHead, GROUP_AWAITED_ROUND_AT, GROUP_BROKEN_AT,
    GROUP_BYTES, GROUP_IDLES_AT, GROUP_REGISTERS_AT, GROUP_SEEN_INDEX_AT, GROUP_VERSION_AT,
    GROUP_WOKEN_AT, Order, SUBMIT_MAX,
};
use quorumwire_fastpath::shared::{SLOT_BYTES, SlotHead};
use quorumwire_fastpath::{EntryHead, Outcome, RegisterStore};
use quorumwire_interfaces::PlaneError;
use quorumwire_wire::packet::{Header, Registers};
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Entries are read one behind the other, from memory that another processor wrote: so many are fetched
/// ahead, and so many bytes of each, which are the head and a short command.
const FETCH_AHEAD: u64 = 4;
/// See [`FETCH_AHEAD`].
const FETCH_BYTES: usize = 192;

/// What they are made of: what is one group's of the maps.
pub struct Parts {
    pub groups: MapMemory,
    pub ring: MapMemory,
    pub control: MapMemory,
    pub fence: Fence,
    /// Carries out an [`Order`].
    pub order: OwnedFd,
    /// Submits commands.
    pub submit: OwnedFd,
}

/// One group's registers and ring.
pub struct KernelRegisters {
    parts: Parts,
    group_slot: u32,
    ring_slots: u32,
    /// As last read.
    registers: Registers,
    filled: u64,
}

impl KernelRegisters {
    pub fn new(parts: Parts, group_slot: u32, ring_slots: u32) -> Self {
        let mut new = Self {
            parts,
            group_slot,
            ring_slots,
            registers: Registers::default(),
            filled: 0,
        };
        new.refresh();
        new
    }

    /// Goes on here, where all is new, from the registers of another store that is off, and whose entries
    /// have all been taken.
    pub fn go_on_from(&mut self, registers: &Registers) -> Result<(), PlaneError> {
        self.filled = registers.last_index;
        self.obey(Order::Engage, 0, *registers)
    }

    /// The time by the clock that the programs see.
    pub fn kernels_time(&self) -> Result<Duration, PlaneError> {
        self.order(Order::Clock, 0, Registers::default())?;
        let ControlHead { number, .. } = self.parts.control.read(0);
        Ok(Duration::from_nanos(number))
    }

    /// The registers of this moment.
    pub fn look(&self) -> Registers {
        let groups = &self.parts.groups;
        read_whole(groups.number(GROUP_VERSION_AT), || {
            groups.read(GROUP_REGISTERS_AT)
        })
    }

    /// The host looks at what happened from now on: what happens later and needs it wakes it again. If it
    /// then waits until something happens, everything does.
    pub fn about_to_look(&self, idles: bool) {
        let number = |offset| self.parts.groups.number(offset);
        number(GROUP_IDLES_AT).store(u64::from(idles), Ordering::Relaxed);
        number(GROUP_WOKEN_AT).store(0, Ordering::Relaxed);
        full_barrier();
    }

    /// The first answers to this round wake the host, and those to later ones; 0: none do.
    pub fn awaits_round(&self, round: u64) {
        let awaited = self.parts.groups.number(GROUP_AWAITED_ROUND_AT);
        awaited.store(round, Ordering::Relaxed);
        full_barrier();
    }

    /// The host has taken everything up to here.
    pub fn has_seen(&self, index: u64) {
        let seen = self.parts.groups.number(GROUP_SEEN_INDEX_AT);
        seen.store(index, Ordering::Relaxed);
    }

    /// Whether a program found that the plane must stop; its role says so from the next step on.
    pub fn is_broken(&self) -> bool {
        self.parts
            .groups
            .number(GROUP_BROKEN_AT)
            .load(Ordering::Acquire)
            != 0
    }

    /// Fences that had to wait for the kernel's grace period.
    pub fn slow_fences(&self) -> u64 {
        self.parts.fence.slow_fences()
    }

    /// As if there had never been a log. Nobody may be using them.
    pub fn forget_all(&self) {
        self.parts.groups.write_bytes(0, &[0; GROUP_BYTES]);
        for slot in 0..u64::from(self.ring_slots) {
            let index = self.parts.ring.number(self.slot_at(slot));
            index.store(0, Ordering::Relaxed);
        }
        full_barrier();
    }

    /// Copies done and copies ordered, over all processors.
    pub fn copies(&self) -> (u64, u64) {
        self.parts.fence.copies()
    }

    /// The entry's head, if its slot holds it.
    pub fn head(&self, index: u64) -> Option<SlotHead> {
        let at = self.slot_at(index);
        let filled = self.parts.ring.number(at);
        if index == 0 || filled.load(Ordering::Acquire) != index {
            return None;
        }
        let head = self.parts.ring.read(at);
        // Once it is released, a packet may fill the slot anew while it is read.
        std::sync::atomic::fence(Ordering::Acquire);
        (filled.load(Ordering::Relaxed) == index).then_some(head)
    }

    /// Looks how far the ring is filled, up to the last index that the registers say.
    fn note_filled(&mut self) {
        while self.filled < self.registers.last_index && self.head(self.filled + 1).is_some() {
            self.filled += 1;
        }
    }

    fn slot_at(&self, index: u64) -> usize {
        let slot = index & u64::from(self.ring_slots - 1);
        usize::try_from(slot).expect("less than the ring's slots") * SLOT_BYTES
    }

    /// An order after which the registers may be others.
    fn obey(&mut self, order: Order, number: u64, registers: Registers) -> Result<(), PlaneError> {
        self.order(order, number, registers)?;
        self.refresh();
        Ok(())
    }

    fn order(&self, order: Order, number: u64, registers: Registers) -> Result<(), PlaneError> {
        let head = ControlHead {
            order: order as u32,
            number,
            registers,
            ..ControlHead::default()
        };
        self.parts.control.write(0, &head);
        give(&self.parts.order, self.group_slot)
    }

    fn outcome(&self, place: usize) -> Outcome {
        let at = CONTROL_OUT_AT + place * size_of::<Outcome>();
        self.parts.control.read(at)
    }

    fn done(&self) -> u32 {
        self.parts.control.read::<ControlHead>(0).done
    }
}

impl RegisterStore for KernelRegisters {
    fn registers(&self) -> &Registers {
        &self.registers
    }

    fn refresh(&mut self) {
        self.registers = self.look();
        self.note_filled();
    }

    fn filled_index(&self) -> u64 {
        self.filled
    }

    fn engage(&mut self, registers: &Registers) -> Result<(), PlaneError> {
        // It is off, so nobody else touches the ring. What an earlier term stored at an index that will be
        // stored anew must not be taken for the new entry.
        let stale = registers.last_index + 1..=self.registers.last_index;
        let stale = stale.filter(|_| !mutant("xdp-stale-slots"));
        for index in stale.take(self.ring_slots as usize) {
            let index = self.parts.ring.number(self.slot_at(index));
            index.store(0, Ordering::Relaxed);
        }
        // Copies that an earlier fence did not wait for to the end may have been done since.
        self.parts.fence.forget_copies();
        // Filled up to here, as soon as the registers say so.
        let filled = std::mem::replace(&mut self.filled, registers.last_index);
        self.obey(Order::Engage, 0, *registers)
            .inspect_err(|_| self.filled = filled)
    }

    fn disengage(&mut self) {
        // A plane that cannot be stopped could acknowledge what this replica no longer counts.
        let stopped = self.obey(Order::Off, 0, Registers::default());
        assert!(stopped.is_ok(), "the kernel did not stop the plane");
        self.parts.fence.wait_for_steps();
        self.refresh();
        // An entry that was given its index, and maybe acknowledged by others' counting, must be there.
        let (filled, last) = (self.filled, self.registers.last_index);
        assert!(
            filled == last,
            "the kernel's ring ends at {filled}, its log at {last}"
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
        for (place, command) in commands.iter().enumerate() {
            let at = CONTROL_IN_AT + place * size_of::<Header>();
            self.parts.control.write(at, command);
        }
        let head = ControlHead {
            count: u32::try_from(commands.len()).expect("a small number"),
            ..ControlHead::default()
        };
        self.parts.control.write(0, &head);
        give(&self.parts.submit, self.group_slot)?;
        let done = self.done() as usize;
        outcomes.extend((0..commands.len().min(done + 1)).map(|place| self.outcome(place)));
        self.refresh();
        Ok(())
    }

    fn heartbeat(&mut self, round: u64) -> Result<Outcome, PlaneError> {
        self.obey(Order::Heartbeat, round, Registers::default())?;
        Ok(self.outcome(0))
    }

    fn persisted(&mut self, upto: u64) -> Result<Outcome, PlaneError> {
        self.obey(Order::Persisted, upto, Registers::default())?;
        Ok(self.outcome(0))
    }

    fn release(&mut self, upto: u64) -> Result<bool, PlaneError> {
        self.obey(Order::Release, upto, Registers::default())?;
        Ok(self.done() != 0)
    }

    fn put(&mut self, entry: EntryHead, payload: &[u8]) {
        let head = SlotHead::of(&entry);
        let at = self.slot_at(entry.index);
        // Whoever reads the slot meanwhile finds that it changes.
        self.parts.ring.number(at).store(0, Ordering::Relaxed);
        full_barrier();
        self.parts.ring.write(at, &head);
        let payload_at = at + size_of::<SlotHead>();
        self.parts.ring.write_bytes(payload_at, payload);
        let index = self.parts.ring.number(at);
        index.store(entry.index, Ordering::Release);
        self.note_filled();
    }

    fn get(&self, index: u64) -> Option<(EntryHead, &[u8])> {
        let soon = self.slot_at(index.wrapping_add(FETCH_AHEAD));
        self.parts.ring.fetch(soon, FETCH_BYTES);
        let head = self.head(index)?;
        let payload_at = self.slot_at(index) + size_of::<SlotHead>();
        let bytes = usize::from(head.payload_bytes);
        Some((head.entry(), self.parts.ring.slice(payload_at, bytes)))
    }
}

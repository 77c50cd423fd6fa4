//! A Paxos role's box in the kernel: its registers and instances are in the programs' maps. What is common
//! the program does by itself (`bpf/box.h`); for the rest the host has it take the step by an order.
use crate::attached::Note;
use crate::ffi::MapMemory;
use crate::interface::{InterfaceChoice, State, Watch};
use crate::load::{Attachment, Programs, Sizes};
use crate::orders::{Fence, give, read_whole};
use crate::refused::{Blames, Refused};
use crate::shared::{
    BOX_CONTROL_VALUE_AT, BOX_DESTINATIONS_AT, BOX_REGISTERS_AT, BOX_VERSION_AT, BoxControlHead,
    BoxOrder, COUNT_DROPPED_BUSY, COUNT_DROPPED_NOT_FOR_GROUP, COUNT_LOST_NO_NEIGHBOUR,
    COUNT_LOST_NO_SPACE, COUNT_LOST_UNSENT, INSTANCE_BYTES, INSTANCE_SLOT_AT, PEERS_STRIDE,
};
use crate::slot::Slot;
use quorumwire_fastpath::{PaxosStepped, PaxosStore, Surroundings};
use quorumwire_interfaces::{PlaneError, PlaneKeys};
use quorumwire_wire::packet::{Header, PaxosRegisters, PaxosRole, PaxosSlot};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The programs have a ring for replicas, which no box uses.
const RING_SLOTS: u32 = 64;

/// What is one box's of the maps.
pub struct BoxParts {
    pub boxes: MapMemory,
    pub instances: MapMemory,
    pub control: MapMemory,
    pub fence: Fence,
    /// Carries out a [`BoxOrder`].
    pub order: OwnedFd,
    pub group_slot: u32,
}

/// A box in the kernel's receive path, at an interface of its own. What it leaves to software comes to a
/// socket of the same address.
pub struct KernelBox {
    parts: BoxParts,
    slot: Slot,
    own: SocketAddr,
    destinations: Vec<SocketAddr>,
    watch: Watch,
    /// What was last said of the interface.
    said: Option<String>,
    /// Copies done and ordered when it last looked.
    copies_seen: (u64, u64),
    /// As its host wants it.
    is_on: bool,
    /// Packets that had not left when that was last said, and looks since.
    lost_said: u64,
    looks: u32,
}

/// What was lost is said in so many looks at most once.
const LOOKS_BETWEEN: u32 = 30;
/// What the program counts of packets that do not leave, or are not taken though nothing is wrong with them.
const LOST: [&str; 5] = [
    COUNT_DROPPED_NOT_FOR_GROUP,
    COUNT_LOST_NO_NEIGHBOUR,
    COUNT_LOST_NO_SPACE,
    COUNT_LOST_UNSENT,
    COUNT_DROPPED_BUSY,
];

impl KernelBox {
    /// A box that is off, with so many instances, a power of two; attached to the interface of this name, or
    /// to the one that has the address. It is noted before where. An error names what is missing. Its user
    /// must stay in the network namespace that this is called in.
    ///
    /// # Errors
    /// What stands in the way.
    pub fn attach(
        address: SocketAddr,
        interface: Option<&str>,
        window: u32,
        how: Attachment,
        note: &Note,
    ) -> Result<Self, Refused> {
        if address.ip().is_unspecified() || address.port() == 0 {
            let text = "it needs the address and the port of one network interface".to_owned();
            return Err(Refused::new(Blames::Address, text));
        }
        let watch = Watch::new(InterfaceChoice::new(address.ip(), interface, how.vlan))?;
        let sizes = Sizes {
            groups: 1,
            ring_slots: RING_SLOTS,
            window,
        };
        let programs = Programs::attach(watch.found(), sizes, (how, note), watch.blames())?;
        if !programs.copies.are_possible() {
            let text = "one frame can be sent as several neither by the driver nor behind it";
            return Err(Refused::new(Blames::System, text.to_owned()));
        }
        let slot = Slot::take(&Arc::new(programs), address)?;
        let parts = slot.box_parts()?;
        Ok(Self {
            copies_seen: parts.fence.copies(),
            parts,
            slot,
            own: address,
            destinations: Vec::new(),
            watch,
            said: None,
            is_on: false,
            lost_said: 0,
            looks: LOOKS_BETWEEN,
        })
    }

    /// Where the program runs, and why there, for people.
    #[must_use]
    pub fn described(&self) -> &str {
        &self.slot.programs().described
    }

    fn order(&self, head: &BoxControlHead, value: &[u8]) -> Result<BoxControlHead, PlaneError> {
        self.parts.control.write(0, head);
        self.parts.control.write_bytes(BOX_CONTROL_VALUE_AT, value);
        give(&self.parts.order, self.parts.group_slot)?;
        Ok(self.parts.control.read(0))
    }

    fn simple(&self, order: BoxOrder, number: u64) -> Result<BoxControlHead, PlaneError> {
        let head = BoxControlHead {
            order: order as u32,
            number,
            ..BoxControlHead::default()
        };
        self.order(&head, &[])
    }

    /// What is known of an instance. Whoever asks would do harm with less than all of it.
    fn look(&self, instance: u64) -> BoxControlHead {
        let looked = self.simple(BoxOrder::Look, instance);
        looked.expect("the kernel says what a box knows")
    }

    fn value_of(&self, slot: &PaxosSlot) -> &[u8] {
        let bytes = usize::from(slot.payload_bytes);
        self.parts.control.slice(BOX_CONTROL_VALUE_AT, bytes)
    }

    fn set_peers(&self) -> io::Result<()> {
        for (place, to) in (0_u8..).zip(&self.destinations) {
            self.slot.set_peer(place, *to)?;
        }
        Ok(())
    }

    /// How the interface is; `None` if it has not changed since that was last said.
    fn look_at_interface(&mut self) -> Option<String> {
        let (state, _) = self.watch.look(self.slot.programs().are_attached());
        let now = match state {
            State::Sound => None,
            State::Unfit(text) => Some(text),
            State::Lost(text) => {
                // Also where it is there and has another Ethernet address: nothing may leave with the old
                // one.
                self.slot.programs().detach();
                Some(format!(
                    "{text}; packets go by the socket until the switch is restarted"
                ))
            }
        };
        if now == self.said {
            return None;
        }
        let said = now.clone();
        self.said = now;
        Some(said.unwrap_or_else(|| "the interface serves the box again".to_owned()))
    }

    /// What was lost, if that is more than was said, and not too soon.
    fn look_at_losses(&mut self) -> Option<String> {
        self.looks = self.looks.saturating_add(1);
        if self.looks < LOOKS_BETWEEN {
            return None;
        }
        let counts = self.counts();
        let of = |name| counts.get(name).copied().unwrap_or(0);
        let sum = LOST.map(of).iter().sum();
        if sum <= self.lost_said {
            return None;
        }
        (self.lost_said, self.looks) = (sum, 0);
        let lost = LOST.map(|name| format!("{name} {}", of(name)));
        Some(format!(
            "packets were lost since the switch began: {}",
            lost.join(", ")
        ))
    }
}

fn failed(error: &io::Error) -> PlaneError {
    PlaneError::Failed(error.to_string().into())
}

impl PaxosStore for KernelBox {
    fn registers(&self) -> PaxosRegisters {
        let boxes = &self.parts.boxes;
        read_whole(boxes.number(BOX_VERSION_AT), || {
            boxes.read(BOX_REGISTERS_AT)
        })
    }

    fn step(&mut self, header: &Header, payload: &[u8]) -> Result<PaxosStepped<'_>, PlaneError> {
        let head = BoxControlHead {
            order: BoxOrder::Step as u32,
            number: header.index,
            header: *header,
            ..BoxControlHead::default()
        };
        let done = self.order(&head, payload)?;
        Ok(PaxosStepped {
            outcome: done.outcome,
            registers: done.registers,
            slot: done.slot,
            value: self.value_of(&done.slot),
        })
    }

    fn slot(&self, instance: u64) -> PaxosSlot {
        self.look(instance).slot
    }

    fn value(&self, instance: u64) -> Vec<u8> {
        let slot = self.look(instance).slot;
        self.value_of(&slot).to_vec()
    }

    fn switch_on(&mut self, registers: &PaxosRegisters) -> Result<(), PlaneError> {
        self.is_on = true;
        // It is off, so nobody else touches them.
        for place in 0..registers.window as usize {
            let slot = place * INSTANCE_BYTES + INSTANCE_SLOT_AT;
            let zeros = [0; size_of::<PaxosSlot>()];
            self.parts.instances.write_bytes(slot, &zeros);
        }
        // Copies that an earlier fence did not wait for to the end may have been done since.
        self.parts.fence.forget_copies();
        self.slot.programs().copies.try_again();
        let head = BoxControlHead {
            order: BoxOrder::SwitchOn as u32,
            registers: *registers,
            ..BoxControlHead::default()
        };
        self.order(&head, &[]).map(drop)
    }

    fn put_back(&mut self, slot: &PaxosSlot, value: &[u8]) -> Result<(), PlaneError> {
        let head = BoxControlHead {
            order: BoxOrder::PutBack as u32,
            number: slot.instance,
            slot: *slot,
            ..BoxControlHead::default()
        };
        self.order(&head, value).map(drop)
    }

    fn switch_off(&mut self) {
        self.is_on = false;
        // A box that cannot be stopped could say what its host no longer knows of.
        let stopped = self.simple(BoxOrder::Off, 0);
        assert!(stopped.is_ok(), "the kernel did not stop the box");
        self.parts.fence.wait_for_steps();
    }

    fn configure(&mut self, configuration: u64) -> Result<(), PlaneError> {
        self.simple(BoxOrder::Configure, configuration).map(drop)
    }

    fn trim(&mut self, upto: u64) -> Result<bool, PlaneError> {
        Ok(self.simple(BoxOrder::Trim, upto)?.done != 0)
    }

    fn set_keys(&mut self, keys: &PlaneKeys) -> Result<(), PlaneError> {
        self.slot.set_keys(keys).map_err(|error| failed(&error))
    }

    fn set_destinations(&mut self, destinations: &[SocketAddr]) -> Result<(), PlaneError> {
        let too_many = destinations.len() > PEERS_STRIDE as usize;
        let is_elsewhere =
            |to: &&SocketAddr| to.is_ipv4() != self.own.is_ipv4() || to.ip() == self.own.ip();
        let unreachable = destinations.iter().find(is_elsewhere);
        if too_many || unreachable.is_some() {
            let text = match unreachable {
                Some(to) => format!(
                    "{to} cannot be reached from {}: with the plane xdp all hosts have addresses of their own, of \
                     one family",
                    self.own
                ),
                None => format!(
                    "a packet would have to go to {} hosts; with the plane xdp at most {PEERS_STRIDE}",
                    destinations.len()
                ),
            };
            return Err(PlaneError::Failed(text.into()));
        }
        self.destinations = destinations.to_vec();
        self.set_peers().map_err(|error| failed(&error))?;
        let count = self.parts.boxes.number(BOX_DESTINATIONS_AT);
        count.store(destinations.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.slot.counters().collect()
    }

    fn surroundings(&self) -> Surroundings {
        Surroundings {
            is_engaged: self.is_on && self.slot.programs().are_attached(),
            trouble: self.said.clone(),
        }
    }

    fn look_around(&mut self) -> Result<Option<String>, PlaneError> {
        if self.is_on && self.registers().role == PaxosRole::Off as u8 {
            let text = "the program stopped by itself: a value did not get into its place";
            return Err(PlaneError::Failed(text.into()));
        }
        let copies = self.parts.fence.copies();
        let programs = self.slot.programs();
        programs.copies.look_after(copies, &mut self.copies_seen);
        // The system may know by now where they are, or that they have moved.
        let peers = self.set_peers();
        peers.map_err(|error| failed(&error))?;
        self.slot.seek(&self.destinations);
        let is_due = self.watch.is_due() || self.said.is_some();
        let news = is_due.then(|| self.look_at_interface()).flatten();
        let copies = (!self.slot.programs().copies.are_possible()).then(|| {
            "one frame can be sent as several neither by the driver nor behind it".to_owned()
        });
        Ok(news.or(copies).or_else(|| self.look_at_losses()))
    }
}

//! One group's part of the programs at an interface: what its host shares with them, and nobody else uses. It
//! is off when it is taken, and again when it is given back.
use crate::clock::KernelsClock;
use crate::ffi::{MapMemory, bytes_of, full_barrier, value_of};
use crate::interface::PlaneInterfaces;
use crate::kernel_box::BoxParts;
use crate::kernel_registers::{KernelRegisters, Parts};
use crate::load::{Programs, failed};
use crate::neighbours::Neighbours;
use crate::orders::{Fence, wait_for_all_programs};
use crate::recent::Recent;
use crate::refused::{Blames, Refused};
use crate::shared::{
    BOX_BYTES, BOX_CONTROL_BYTES, CONTROL_BYTES, COUNTS, COUNTS_OF_INTERFACE, CPUS_MAX,
    EVENTS_BYTES, GROUP_BYTES, GROUPS_MAX, IN_STEP_BYTES, INSTANCE_BYTES, KeysAt, LEAVE_BYTES,
    LEAVE_PORT_AT, NO_GROUP, OWN_AT_AT, OWN_BYTES, OWN_QUEUE_AT, PEERS_STRIDE, QUEUE_ANY,
};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};
use quorumwire_fastpath::shared::{ENDPOINT_PORT_AT, Endpoint, RECENT_BYTES, SLOT_BYTES};
use quorumwire_fastpath::{Keys, RECENT_PLACES};
use quorumwire_interfaces::PlaneKeys;
use quorumwire_wire::packet::PacketReason;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where the port stands of where a plane is.
const OWN_PORT_AT: usize = OWN_AT_AT + ENDPOINT_PORT_AT;

/// What a slot is used for.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Use {
    #[default]
    Free,
    /// By a plane with this port, which memcached clients ask at another one.
    Taken { port: u16, memcached: Option<u16> },
    /// It could not be made as it was, so nobody takes it any more.
    Lost,
}

/// Who has which slot.
pub struct Slots {
    uses: Mutex<Vec<Use>>,
}

impl Slots {
    pub fn of(groups: u32) -> Self {
        let uses = vec![Use::default(); groups as usize];
        Self {
            uses: Mutex::new(uses),
        }
    }

    fn uses(&self) -> MutexGuard<'_, Vec<Use>> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a free one for a plane with this port.
    fn take(&self, interface: &str, port: u16) -> Result<u32, Refused> {
        let mut uses = self.uses();
        is_nobodys(&uses, None, interface, port)?;
        let Some(free) = uses.iter().position(|one| *one == Use::Free) else {
            let text = format!(
                "interface {interface} was opened for {} groups, and has no place for another one (at most \
                 {GROUPS_MAX} are possible)",
                uses.len()
            );
            return Err(Refused::new(Blames::Interface, text));
        };
        uses[free] = Use::Taken {
            port,
            memcached: None,
        };
        Ok(u32::try_from(free).expect("a few"))
    }

    /// Notes where the memcached clients of a slot's plane ask.
    fn listen(&self, slot: u32, interface: &str, port: u16) -> Result<(), Refused> {
        let mut uses = self.uses();
        is_nobodys(&uses, Some(slot as usize), interface, port)?;
        if let Some(Use::Taken { memcached, .. }) = uses.get_mut(slot as usize) {
            *memcached = Some(port);
        }
        Ok(())
    }

    fn give_back(&self, slot: u32, is_clean: bool) {
        let mut uses = self.uses();
        uses[slot as usize] = if is_clean { Use::Free } else { Use::Lost };
    }
}

/// The program knows a group by its UDP port alone, so two planes must not have the same.
fn is_nobodys(uses: &[Use], but: Option<usize>, interface: &str, port: u16) -> Result<(), Refused> {
    let is_other = |(slot, one): (usize, &Use)| match one {
        Use::Taken {
            port: theirs,
            memcached,
        } => but != Some(slot) && (*theirs == port || *memcached == Some(port)),
        Use::Free | Use::Lost => false,
    };
    if !uses.iter().enumerate().any(is_other) {
        return Ok(());
    }
    let text = format!(
        "UDP port {port} is that of another group at interface {interface}, also if it has another address; each \
         group needs a port of its own there"
    );
    Err(Refused::new(Blames::Address, text))
}

/// One group's. Its plane is known to the program as long as this lives.
pub struct Slot {
    programs: Arc<Programs>,
    number: u32,
    own: MapMemory,
    leave: MapMemory,
    keys: MapHandle,
    keys_used: MapHandle,
    peers: MapHandle,
    neighbours: Neighbours,
    /// What the program tells this group's host.
    pub events: MapHandle,
}

impl Slot {
    /// For the plane at this address. In the interface's namespace.
    pub fn take(programs: &Arc<Programs>, address: SocketAddr) -> Result<Self, Refused> {
        let PlaneInterfaces {
            carrier, holder, ..
        } = &programs.found;
        let number = programs.slots.take(&carrier.name, address.port())?;
        let endpoint = Endpoint::new(address, holder.mac);
        // A slot that was taken and never used is as it was.
        Self::of(programs, number, &endpoint).map_err(|error| {
            programs.slots.give_back(number, true);
            Refused::from(error)
        })
    }

    fn of(programs: &Arc<Programs>, number: u32, endpoint: &Endpoint) -> io::Result<Self> {
        let options = libbpf_sys::bpf_map_create_opts {
            sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
            ..Default::default()
        };
        let events = MapHandle::create(
            MapType::RingBuf,
            Some("events"),
            0,
            0,
            EVENTS_BYTES,
            &options,
        );
        let events = events.map_err(failed("the kernel made no queue for events"))?;
        let descriptor = events.as_fd().as_raw_fd();
        programs
            .map("events")?
            .update(
                &number.to_ne_bytes(),
                &descriptor.to_ne_bytes(),
                MapFlags::ANY,
            )
            .map_err(failed("the kernel did not take a queue for events"))?;
        let place = number as usize;
        let slot = Self {
            programs: Arc::clone(programs),
            number,
            own: programs.mapped(".data.own", place * OWN_BYTES, OWN_BYTES)?,
            leave: programs.mapped("leaves", place * LEAVE_BYTES, LEAVE_BYTES)?,
            keys: programs.map("keys")?,
            keys_used: programs.map("keys_used")?,
            peers: programs.map("peers")?,
            neighbours: Neighbours::of(programs.found.holder.index)?,
            events,
        };
        let nowhere = Endpoint {
            port: [0; 2],
            ..*endpoint
        };
        slot.own.write(0, &nowhere);
        slot.set_queue(QUEUE_ANY);
        // What the program finds by its port is whole.
        full_barrier();
        slot.own
            .write(OWN_PORT_AT, &u16::from_ne_bytes(endpoint.port));
        Ok(slot)
    }

    pub fn programs(&self) -> &Programs {
        &self.programs
    }

    /// Where the group's step runs.
    pub fn kernel_registers(&self) -> io::Result<KernelRegisters> {
        let ring_slots = self.programs.sizes.ring_slots;
        let mapped = |name: &str, bytes: usize| {
            self.programs
                .mapped(name, self.number as usize * bytes, bytes)
        };
        let parts = Parts {
            groups: mapped("groups", GROUP_BYTES)?,
            ring: mapped("ring", ring_slots as usize * SLOT_BYTES)?,
            control: mapped("control", CONTROL_BYTES)?,
            fence: self.fence()?,
            order: self.programs.program("qw_order")?,
            submit: self.programs.program("qw_submit_orders")?,
        };
        Ok(KernelRegisters::new(parts, self.number, ring_slots))
    }

    fn fence(&self) -> io::Result<Fence> {
        const BYTES: usize = CPUS_MAX * IN_STEP_BYTES;
        let from = self.number as usize * BYTES;
        Ok(Fence::new(self.programs.mapped("in_step", from, BYTES)?))
    }

    /// Where a Paxos role's step runs, if the programs were loaded for those.
    pub fn box_parts(&self) -> io::Result<BoxParts> {
        let window = self.programs.sizes.window as usize;
        let mapped = |name: &str, bytes: usize| {
            self.programs
                .mapped(name, self.number as usize * bytes, bytes)
        };
        Ok(BoxParts {
            boxes: mapped("boxes", BOX_BYTES)?,
            instances: mapped("instances", window * INSTANCE_BYTES)?,
            control: mapped("box_control", BOX_CONTROL_BYTES)?,
            fence: self.fence()?,
            order: self.programs.program("qw_order_box")?,
            group_slot: self.number,
        })
    }

    /// What the group's memcached clients get from the program.
    pub fn recent(&self, clock: KernelsClock) -> io::Result<Recent> {
        let place = self.number as usize;
        let leave = self
            .programs
            .mapped("leaves", place * LEAVE_BYTES, LEAVE_BYTES)?;
        Ok(Recent::new(leave, self.recent_table()?, clock))
    }

    fn recent_table(&self) -> io::Result<MapMemory> {
        const BYTES: usize = RECENT_PLACES * RECENT_BYTES;
        self.programs
            .mapped("recent", self.number as usize * BYTES, BYTES)
    }

    /// Memcached clients ask at this port from now on.
    pub fn listen(&self, port: u16) -> Result<(), Refused> {
        let interface = &self.programs.found.carrier.name;
        self.programs.slots.listen(self.number, interface, port)?;
        self.leave.write(LEAVE_PORT_AT, &port.to_be());
        Ok(())
    }

    /// Packets that come by another receive queue are counted from now on.
    pub fn set_queue(&self, queue: u32) {
        self.own.write(OWN_QUEUE_AT, &queue);
    }

    /// From now on packets of the group are checked and signed with these.
    pub fn set_keys(&self, keys: &PlaneKeys) -> io::Result<()> {
        let at = KeysAt {
            keys: Keys::from(keys),
            sign_cluster: keys.cluster.epoch % 2,
            sign_clients: keys.clients.epoch % 2,
        };
        let refused = || failed("the kernel did not take the keys");
        let slot = self.number.to_ne_bytes();
        let found = self.keys_used.lookup(&slot, MapFlags::ANY);
        let used = found.map_err(refused())?.unwrap_or_default();
        let next = 1 - used.first().copied().unwrap_or(0) % 2;
        let place = 2 * self.number + u32::from(next);
        self.keys
            .update(&place.to_ne_bytes(), bytes_of(&at), MapFlags::ANY)
            .map_err(refused())?;
        self.keys_used
            .update(&slot, &u32::from(next).to_ne_bytes(), MapFlags::ANY)
            .map_err(refused())
    }

    /// Where the group's replica of a slot is. If the system does not know its Ethernet address, that is
    /// learnt from its packets.
    pub fn set_peer(&self, slot: u8, address: SocketAddr) -> io::Result<()> {
        let refused = || failed("the kernel did not take a replica's address");
        let place = (self.number * PEERS_STRIDE + u32::from(slot)).to_ne_bytes();
        let found = self.peers.lookup(&place, MapFlags::ANY);
        let known = found.map_err(refused())?.unwrap_or_default();
        let known = value_of::<Endpoint>(&known).unwrap_or_default();
        let mac = match address.ip() {
            IpAddr::V4(group) if group.is_multicast() => Some(mac_of_group(group)),
            ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => self.neighbours.mac_of(ip),
        };
        let mut endpoint = Endpoint::new(address, mac.unwrap_or_default());
        if mac.is_none() && known.socket_address() == address {
            endpoint.mac = known.mac;
        }
        self.peers
            .update(&place, bytes_of(&endpoint), MapFlags::ANY)
            .map_err(refused())
    }

    /// Has the system find out where these are, as it does for what it sends itself.
    pub fn seek(&self, addresses: &[SocketAddr]) {
        for address in addresses.iter().filter(|it| !it.ip().is_multicast()) {
            self.neighbours.seek(address.ip());
        }
    }

    /// The programs' counters for this group, by name, and what of the interface's cannot be told apart.
    pub fn counters(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let names = PacketReason::ALL
            .map(PacketReason::name)
            .into_iter()
            .chain(COUNTS);
        (0..).zip(names).map(|(number, name)| {
            let mut count = self.programs.counter(self.number, number);
            if COUNTS_OF_INTERFACE.contains(&name) {
                count += self.programs.counter(NO_GROUP, number);
            }
            (name, count)
        })
    }

    /// Nobody has this slot's port: what others find here is as if nobody had ever been here.
    fn empty(&self) -> io::Result<()> {
        // Packets that were found to be this group's before its port went.
        wait_for_all_programs();
        self.kernel_registers()?.forget_all();
        let table = self.recent_table()?;
        table.write_bytes(0, &vec![0; RECENT_PLACES * RECENT_BYTES]);
        self.leave.write_bytes(0, &[0; LEAVE_BYTES]);
        let refused = || failed("the kernel did not take zeros");
        let zeros = |map: &MapHandle, place: u32| {
            let zeros = vec![0; map.value_size() as usize];
            map.update(&place.to_ne_bytes(), &zeros, MapFlags::ANY)
                .map_err(refused())
        };
        zeros(&self.keys, 2 * self.number)?;
        zeros(&self.keys, 2 * self.number + 1)?;
        zeros(&self.keys_used, self.number)?;
        for peer in 0..PEERS_STRIDE {
            zeros(&self.peers, self.number * PEERS_STRIDE + peer)?;
        }
        self.programs.forget_counters(self.number)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // Its packets are nobody's from now on, whatever else can be done.
        self.own.write(OWN_PORT_AT, &0_u16);
        self.leave.write(LEAVE_PORT_AT, &0_u16);
        full_barrier();
        // Without anybody else the programs go, too.
        let is_shared = Arc::strong_count(&self.programs) > 1;
        let is_clean = is_shared && self.empty().is_ok();
        self.programs.slots.give_back(self.number, is_clean);
    }
}
/// The Ethernet address of a multicast group (RFC 1112, section 6.4).
fn mac_of_group(group: Ipv4Addr) -> [u8; 6] {
    let [_, high, middle, low] = group.octets();
    [0x01, 0x00, 0x5e, high & 0x7f, middle, low]
}

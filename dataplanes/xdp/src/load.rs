//! Loads the programs, sets what they are loaded for, and attaches the one that receives.
use crate::copies::Copies;
use crate::ffi::{Hook, Mapped, attach, bytes_of, value_of};
use crate::interface::Found;
use crate::links::Links;
use crate::mutants::left_out;
use crate::neighbours::Neighbours;
use crate::place::{KernelPlace, Parts};
use crate::recent::Recent;
use crate::refused::{
    Blames, NOT_PERMITTED, Refused, TO_CALCULATE, TO_LOAD, check_capabilities, not_attached,
};
use crate::shared::{
    CONTROL_BYTES, CPUS_MAX, Config, Endpoint, GROUP_BYTES, GROUPS_MAX, IN_STEP_BYTES, KeysAt,
    LEAVE_BYTES, PEERS_STRIDE, RECENT_BYTES, SLOT_BYTES,
};
use libbpf_rs::query::{LinkInfo, LinkTypeInfo, ProgInfoIter};
use libbpf_rs::{
    MapCore, MapFlags, MapHandle, Object, ObjectBuilder, OpenObject, ProgramMut, Xdp, XdpFlags,
};
use quorumwire_fastpath::RECENT_PLACES;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// What `bpf/plane.bpf.c` became.
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/plane.bpf.o"));
/// What `bpf/pass.bpf.c` became.
const PASS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/pass.bpf.o"));

/// Where the program that receives is attached.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum XdpMode {
    /// In the interface's driver, or in generic mode where that has no place for it.
    #[default]
    Auto,
    /// In the interface's driver.
    Driver,
    /// Where the system takes frames over from any driver: slower, and the same.
    Generic,
}

/// How a frame becomes several.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum XdpCopies {
    /// By the kernel's broadcast, where that is in the driver and a trial shows that it does; else by clones.
    #[default]
    Auto,
    /// By a program behind the receive path.
    Clone,
}

/// How a plane uses its interface.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Attachment {
    /// Where the program is attached.
    pub mode: XdpMode,
    /// How a frame becomes several.
    pub copies: XdpCopies,
    /// Where all replicas hear, if the network copies what the leader sends to all.
    pub multicast: Option<Ipv4Addr>,
    /// The number of the tag (802.1Q) that packets have at the interface, up to [`VLAN_MAX`]; 0: they have none.
    pub vlan: u16,
}

/// Highest number of a VLAN.
pub const VLAN_MAX: u16 = 4094;

/// Programs in the kernel, attached as long as this lives: no longer than the process, however it ends.
pub struct Programs {
    object: Object,
    /// Attached until this is closed. None: no longer.
    link: Option<OwnedFd>,
    keys: MapHandle,
    keys_used: MapHandle,
    peers: MapHandle,
    counters: MapHandle,
    neighbours: Neighbours,
    pub events: MapHandle,
    pub copies: Copies,
    /// Where the program is attached, and why there, for people.
    pub described: String,
}

/// Attaches a program that lets everything pass, until [`stop_passing`] or until the interface is gone. A
/// virtual Ethernet device (veth) delivers what a plane at its other end sends only if it has a program, too.
pub fn let_pass(interface: &str) -> io::Result<()> {
    check_capabilities(&[TO_LOAD])?;
    let object = load_passing()?;
    let program = program(&object, "qw_pass")?;
    Xdp::new(program.as_fd())
        .attach(index_of(interface)?, XdpFlags::UPDATE_IF_NOEXIST)
        .map_err(failed(
            "the kernel did not attach a program; has the interface one already",
        ))
}

/// Takes away what [`let_pass`] attached.
pub fn stop_passing(interface: &str) -> io::Result<()> {
    check_capabilities(&[TO_LOAD])?;
    let object = load_passing()?;
    let program = program(&object, "qw_pass")?;
    let (xdp, index) = (Xdp::new(program.as_fd()), index_of(interface)?);
    let refused = || failed("the kernel did not detach the interface's program");
    let attached = xdp.query_id(index, XdpFlags::NONE).map_err(refused())?;
    let mut known = ProgInfoIter::default();
    let is_ours = known.any(|one| one.id == attached && one.name == "qw_pass");
    if !is_ours {
        let text = "the interface's program is not that of veth-pass, or there is none";
        return Err(io::Error::new(io::ErrorKind::NotFound, text));
    }
    xdp.detach(index, XdpFlags::NONE).map_err(refused())
}

fn load_passing() -> io::Result<Object> {
    ObjectBuilder::default()
        .open_memory(PASS)
        .and_then(OpenObject::load)
        .map_err(failed("the kernel refused a program"))
}

fn index_of(interface: &str) -> io::Result<i32> {
    let all = Links::new()?.all()?;
    let Some(found) = all.iter().find(|one| one.name == interface) else {
        let names: Vec<&str> = all.iter().map(|one| &one.name[..]).collect();
        let text = format!(
            "there is no interface {interface}; there are: {}",
            names.join(", ")
        );
        return Err(io::Error::new(io::ErrorKind::NotFound, text));
    };
    i32::try_from(found.index).map_err(io::Error::other)
}

pub fn failed(what: &'static str) -> impl FnOnce(libbpf_rs::Error) -> io::Error {
    move |error| match error.kind() {
        libbpf_rs::ErrorKind::PermissionDenied => {
            io::Error::other(format!("{what}: {error}; {NOT_PERMITTED}"))
        }
        _ => io::Error::other(format!("{what}: {error}")),
    }
}

/// Attaches where it is wanted; also what people may want to know about it.
fn attach_as(
    how: Attachment,
    program: BorrowedFd<'_>,
    to: &Found,
) -> Result<(OwnedFd, Hook, String), String> {
    let mode = how.mode;
    let try_hook = |hook| attach(program, to.carrier.index, hook);
    let described = |hook, why: &str| match hook {
        Hook::Generic => format!("in generic mode at {}{why}", to.described(how.vlan)),
        Hook::Driver | Hook::BehindReceive => {
            format!("in the driver of {}", to.described(how.vlan))
        }
    };
    let hook = match mode {
        XdpMode::Auto | XdpMode::Driver => Hook::Driver,
        XdpMode::Generic => Hook::Generic,
    };
    match try_hook(hook) {
        Ok(link) => Ok((link, hook, described(hook, ""))),
        // A driver that can, but not now, is for the operator to look after.
        Err(error) if mode == XdpMode::Auto && error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
            let link = try_hook(Hook::Generic).map_err(|error| not_attached(to, &error))?;
            let instead = to.instead.as_ref();
            let instead = instead.map_or_else(String::new, |text| format!("; {text}"));
            let why = format!(", because its driver takes no XDP program: {error}{instead}");
            Ok((link, Hook::Generic, described(Hook::Generic, &why)))
        }
        Err(error) => Err(not_attached(to, &error)),
    }
}

impl Programs {
    /// Loads and attaches for one group, whose plane is at `address` there. `blames`: who is named if the
    /// interface does not take a program.
    pub fn attach(
        to: &Found,
        address: SocketAddr,
        ring_slots: u32,
        how: Attachment,
        blames: Blames,
    ) -> Result<Self, Refused> {
        check_capabilities(&[TO_LOAD, TO_CALCULATE])?;
        let mut open = ObjectBuilder::default()
            .open_memory(OBJECT)
            .map_err(failed("the plane's programs are not sound"))?;
        let mut own = [Endpoint::default(); GROUPS_MAX];
        own[0] = Endpoint::new(address, to.holder.mac);
        let config = Config {
            ring_slots,
            groups: 1,
            own,
            vlan: how.vlan.into(),
            multicast: how.multicast.map_or([0; 4], |ip| ip.octets()),
            secret: [secret()?, secret()?],
        };
        configure(&mut open, &config)?;
        let object = open.load().map_err(failed(
            "the kernel refused the plane's programs, which need Linux 5.18",
        ))?;
        let map = |name: &str| map(&object, name);
        let (keys, keys_used, peers) = (map("keys")?, map("keys_used")?, map("peers")?);
        let (counters, events) = (map("counters")?, map("events")?);
        let receive = program(&object, "qw_receive")?;
        let (link, hook, described) =
            attach_as(how, receive.as_fd(), to).map_err(|text| Refused::new(blames, text))?;
        // A trial shows what the driver's broadcast does; that of generic mode is another one.
        let clones = how.copies == XdpCopies::Clone || hook == Hook::Generic;
        let copies = Copies::new(&object, config, to.carrier.index, clones)?;
        Ok(Self {
            object,
            link: Some(link),
            keys,
            keys_used,
            peers,
            counters,
            neighbours: Neighbours::of(to.holder.index)?,
            events,
            copies,
            described,
        })
    }

    /// Whether the interface still has the program: not if it is gone, or if somebody detached that.
    pub fn are_attached(&self) -> bool {
        let info = self
            .link
            .as_ref()
            .map(|link| LinkInfo::from_fd(link.as_fd()));
        match info {
            Some(Ok(info)) => matches!(info.info, LinkTypeInfo::Xdp(link) if link.ifindex != 0),
            Some(Err(_)) | None => false,
        }
    }

    /// Takes the program off the interface.
    pub fn detach(&mut self) {
        self.link = None;
    }

    /// Where the group's step runs.
    pub fn place(&self, group_slot: u32, ring_slots: u32) -> io::Result<KernelPlace> {
        let mapped =
            |name: &str, bytes: usize| Mapped::new(map(&self.object, name)?.as_fd(), bytes);
        let descriptor = |name: &str| -> io::Result<OwnedFd> {
            program(&self.object, name)?.as_fd().try_clone_to_owned()
        };
        let parts = Parts {
            groups: mapped("groups", GROUPS_MAX * GROUP_BYTES)?,
            ring: mapped("ring", ring_slots as usize * SLOT_BYTES)?,
            control: mapped("control", CONTROL_BYTES)?,
            in_step: mapped("in_step", CPUS_MAX * IN_STEP_BYTES)?,
            order: descriptor("qw_order")?,
            submit: descriptor("qw_submit_orders")?,
        };
        Ok(KernelPlace::new(parts, group_slot, ring_slots))
    }

    /// What the group's memcached clients get from the program.
    pub fn recent(&self, group_slot: u32) -> io::Result<Recent> {
        let mapped =
            |name: &str, bytes: usize| Mapped::new(map(&self.object, name)?.as_fd(), bytes);
        let leaves = mapped("leaves", GROUPS_MAX * LEAVE_BYTES)?;
        let table = mapped("recent", RECENT_PLACES * RECENT_BYTES)?;
        Ok(Recent::new(leaves, table, group_slot))
    }

    /// From now on packets of the group are checked and signed with these.
    pub fn set_keys(&self, group_slot: u32, keys: &KeysAt) -> io::Result<()> {
        let refused = || failed("the kernel did not take the keys");
        let slot = group_slot.to_ne_bytes();
        let found = self.keys_used.lookup(&slot, MapFlags::ANY);
        let used = found.map_err(refused())?.unwrap_or_default();
        let next = 1 - used.first().copied().unwrap_or(0) % 2;
        let place = 2 * group_slot + u32::from(next);
        self.keys
            .update(&place.to_ne_bytes(), bytes_of(keys), MapFlags::ANY)
            .map_err(refused())?;
        self.keys_used
            .update(&slot, &u32::from(next).to_ne_bytes(), MapFlags::ANY)
            .map_err(refused())
    }

    /// Where the group's replica of a slot is. If the system does not know its Ethernet address, that is
    /// learnt from its packets.
    pub fn set_peer(&self, group_slot: u32, slot: u8, address: SocketAddr) -> io::Result<()> {
        let refused = || failed("the kernel did not take a replica's address");
        let place = (group_slot * PEERS_STRIDE + u32::from(slot)).to_ne_bytes();
        let found = self.peers.lookup(&place, MapFlags::ANY);
        let known = found.map_err(refused())?.unwrap_or_default();
        let known = value_of::<Endpoint>(&known).unwrap_or_default();
        let mac = self.neighbours.mac_of(address.ip());
        let mut endpoint = Endpoint::new(address, mac.unwrap_or_default());
        if mac.is_none() && known.socket_address() == address {
            endpoint.mac = known.mac;
        }
        self.peers
            .update(&place, bytes_of(&endpoint), MapFlags::ANY)
            .map_err(refused())
    }

    /// The programs' counter of a number, over all processors.
    pub fn counter(&self, number: u32) -> u64 {
        let found = self
            .counters
            .lookup_percpu(&number.to_ne_bytes(), MapFlags::ANY);
        let values = found.ok().flatten().unwrap_or_default();
        let value = |bytes: &Vec<u8>| bytes.first_chunk().map_or(0, |b| u64::from_ne_bytes(*b));
        values.iter().map(value).sum()
    }
}

fn secret() -> io::Result<u32> {
    getrandom::u32().map_err(|error| io::Error::other(error.to_string()))
}

pub fn configure(open: &mut OpenObject, config: &Config) -> io::Result<()> {
    for mut map in open.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        if name.ends_with(".rodata.config") {
            map.set_initial_value(bytes_of(config)).map_err(failed(
                "the plane's programs do not take their configuration",
            ))?;
        } else if let (true, Some(number)) = (name.ends_with(".rodata.mutant"), left_out()) {
            map.set_initial_value(&number.to_ne_bytes())
                .map_err(failed("the plane's programs do not take a mutant"))?;
        } else if name == "ring" {
            map.set_max_entries(config.ring_slots * config.groups)
                .map_err(failed("the ring cannot be as large as asked"))?;
        } else if name == "recent" {
            let places = u32::try_from(RECENT_PLACES).expect("some thousands");
            map.set_max_entries(places * config.groups)
                .map_err(failed("the table of answers cannot be as large as asked"))?;
        }
    }
    Ok(())
}

pub fn map(object: &Object, name: &str) -> io::Result<MapHandle> {
    let mut maps = object.maps();
    let found = maps.find(|map| map.name() == name);
    let found = found.ok_or_else(|| io::Error::other(format!("there is no map {name}")))?;
    MapHandle::try_from(&found).map_err(failed("a map has no descriptor"))
}

pub fn program<'a>(object: &'a Object, name: &str) -> io::Result<ProgramMut<'a>> {
    let mut programs = object.progs_mut();
    let found = programs.find(|program| program.name() == name);
    found.ok_or_else(|| io::Error::other(format!("there is no program {name}")))
}

//! Loads the programs, sets what they are loaded for, and attaches the one that receives.
use crate::attached::{Note, ProgramAt};
use crate::copies::Copies;
use crate::ffi::{Hook, MapMemory, attach, bytes_of};
use crate::interface::PlaneInterfaces;
use crate::links::Links;
use crate::mutants::left_out;
use crate::refused::{
    Blames, NOT_PERMITTED, Refused, TO_CALCULATE, TO_LOAD, check_capabilities, not_attached,
    unsupported,
};
use crate::shared::{COUNTS_STRIDE, CPUS_MAX, Config};
use crate::slot::Slots;
use libbpf_rs::query::{LinkInfo, LinkTypeInfo, ProgInfoIter};
use libbpf_rs::{
    ErrorKind, MapCore, MapFlags, MapHandle, Object, ObjectBuilder, OpenObject, Program,
    ProgramMut, Xdp, XdpFlags,
};
use quorumwire_fastpath::RECENT_PLACES;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

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
    /// The number of the tag (802.1Q) that packets have at the interface, up to [`VLAN_MAX`]; 0: they have
    /// none.
    pub vlan: u16,
    /// What orders the steps of a group.
    pub lock: XdpLock,
}

/// What orders the steps of a group on several processors.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum XdpLock {
    /// The programs' own where the kernel is fit for it, else the kernel's.
    #[default]
    Fit,
    /// The kernel's.
    Kernels,
}

impl XdpLock {
    fn is_kernels(self) -> bool {
        self == Self::Kernels || !runs_orders_undisturbed()
    }
}

/// Before Linux 6.4 a packet may interrupt the program that a host has run; with real-time scheduling
/// (`PREEMPT_RT`) whoever has a higher priority may. Then whoever holds a lock of our own could be kept from
/// letting go of it.
fn runs_orders_undisturbed() -> bool {
    let system = rustix::system::uname();
    let release = system.release().to_string_lossy();
    let is_real_time =
        std::fs::read("/sys/kernel/realtime").is_ok_and(|text| text.starts_with(b"1"));
    is_since(&release, (6, 4)) && !is_real_time
}

fn is_since(release: &str, first: (u32, u32)) -> bool {
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map_while(|n| n.parse().ok());
    let version = numbers.next().zip(numbers.next());
    version.is_some_and(|version| version >= first)
}

/// Highest number of a VLAN.
pub const VLAN_MAX: u16 = 4094;

/// How much there is room for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Sizes {
    /// Groups, 1 to [`GROUPS_MAX`](crate::shared::GROUPS_MAX).
    pub groups: u32,
    /// Of each group.
    pub ring_slots: u32,
    /// 0: the groups are replicas'. Else each is a box of a Paxos role with so many instances.
    pub window: u32,
}

/// Programs in the kernel at one interface, which several groups share; attached as long as this lives: no
/// longer than the process, however it ends.
pub struct Programs {
    object: Object,
    /// Attached until this is closed. None: no longer.
    link: Mutex<Option<OwnedFd>>,
    counters: MapHandle,
    /// For which they were loaded, as it was then.
    pub found: PlaneInterfaces,
    pub sizes: Sizes,
    pub slots: Slots,
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

#[expect(clippy::wildcard_enum_match_arm, reason = "foreign and growing")]
pub fn failed(what: &'static str) -> impl FnOnce(libbpf_rs::Error) -> io::Error {
    move |error| match error.kind() {
        ErrorKind::PermissionDenied => {
            io::Error::other(format!("{what}: {error}; {NOT_PERMITTED}"))
        }
        _ => io::Error::other(format!("{what}: {error}")),
    }
}

/// How often the kernel is asked at most.
const LOADS_MAX: u32 = 8;

/// Loads what `open` makes ready; again if a signal has interrupted the kernel while it looked at the
/// programs.
pub fn load(open: impl Fn() -> io::Result<OpenObject>, what: &'static str) -> io::Result<Object> {
    let mut loads = 1;
    loop {
        match open()?.load() {
            Err(error) if error.kind() == ErrorKind::WouldBlock && loads < LOADS_MAX => loads += 1,
            result => return result.map_err(failed(what)),
        }
    }
}

/// Attaches where it is wanted; also what people may want to know about it. `blames`: who is named if the
/// interface does not take a program.
fn attach_as(
    how: Attachment,
    program: BorrowedFd<'_>,
    to: &PlaneInterfaces,
    blames: Blames,
) -> Result<(OwnedFd, Hook, String), Refused> {
    let mode = how.mode;
    let try_hook = |hook| attach(program, to.carrier.index, hook);
    let refused = |error: &io::Error| Refused::new(blames, not_attached(to, error));
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
            let link = try_hook(Hook::Generic).map_err(|error| refused(&error))?;
            let instead = to.instead.as_ref();
            let instead = instead.map_or_else(String::new, |text| format!("; {text}"));
            let because = unsupported(&to.carrier);
            let why = format!(", because {because}: {error}{instead}");
            Ok((link, Hook::Generic, described(Hook::Generic, &why)))
        }
        Err(error) => {
            let mut refused = refused(&error);
            let unsupported = error.raw_os_error() == Some(libc::EOPNOTSUPP);
            if mode == XdpMode::Driver && unsupported && to.instead.is_none() {
                refused.blames = Blames::Mode;
                refused.text += "; `auto` and `generic` do without the driver";
            }
            Err(refused)
        }
    }
}

/// Says where a program is going to be attached.
fn note_before(note: &Note, program: BorrowedFd<'_>, to: &PlaneInterfaces) -> Result<(), Refused> {
    let number = Program::id_from_fd(program);
    let at = ProgramAt {
        interface: to.carrier.name.clone(),
        index: to.carrier.index,
        program: number.map_err(failed("the kernel does not number a program"))?,
    };
    note(&at).map_err(|error| {
        let text = format!("where its program is attached cannot be noted: {error}");
        Refused::new(Blames::System, text)
    })
}

/// What a plane copies frames by cannot be there. In generic mode those are clones, whoever asked for what.
fn no_copies(how: Attachment, hook: Hook, error: &io::Error) -> Refused {
    if hook == Hook::Generic && how.mode == XdpMode::Generic {
        let text = format!("{error}; `driver` does without it where a trial shows that it can");
        return Refused::new(Blames::Mode, text);
    }
    if hook != Hook::Generic && how.copies == XdpCopies::Clone {
        let text = format!("{error}; `auto` does without it where a trial shows that it can");
        return Refused::new(Blames::Copies, text);
    }
    Refused::new(Blames::System, error.to_string())
}

impl Programs {
    /// Loads for so many groups, and attaches, as it is noted before. `blames`: who is named if the interface
    /// does not take a program.
    pub fn attach(
        to: &PlaneInterfaces,
        sizes: Sizes,
        (how, note): (Attachment, &Note),
        blames: Blames,
    ) -> Result<Self, Refused> {
        if cfg!(not(target_arch = "x86_64")) {
            // The server sees a slot's words in the order in which the program stores them.
            let text = "the plane `xdp` runs on x86-64 only, whose processors keep stores in order: use `--plane socket`";
            return Err(Refused::new(Blames::System, text));
        }
        check_capabilities(&[TO_LOAD, TO_CALCULATE])?;
        let config = Config {
            ring_slots: sizes.ring_slots,
            groups: sizes.groups,
            vlan: how.vlan.into(),
            multicast: how.multicast.map_or([0; 4], |ip| ip.octets()),
            secret: [secret()?, secret()?],
            kernels_lock: how.lock.is_kernels().into(),
            window: sizes.window,
        };
        let open = || {
            let mut open = ObjectBuilder::default()
                .open_memory(OBJECT)
                .map_err(failed("the plane's programs are not sound"))?;
            configure(&mut open, &config)?;
            Ok(open)
        };
        let what = "the kernel refused the plane's programs, which need Linux 5.18";
        let object = load(open, what)?;
        let receive = program(&object, "qw_receive")?;
        note_before(note, receive.as_fd(), to)?;
        let (link, hook, described) = attach_as(how, receive.as_fd(), to, blames)?;
        // A trial shows what the driver's broadcast does; that of generic mode is another one.
        let clones = how.copies == XdpCopies::Clone || hook == Hook::Generic;
        let copies = Copies::new(&object, config, to.carrier.index, clones)
            .map_err(|error| no_copies(how, hook, &error))?;
        Ok(Self {
            counters: map(&object, "counters")?,
            object,
            link: Mutex::new(Some(link)),
            found: to.clone(),
            sizes,
            slots: Slots::of(sizes.groups),
            copies,
            described,
        })
    }

    /// Whether the interface still has the program: not if it is gone, or if somebody detached that.
    pub fn are_attached(&self) -> bool {
        let link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        let info = link.as_ref().map(|link| LinkInfo::from_fd(link.as_fd()));
        match info {
            Some(Ok(info)) => matches!(info.info, LinkTypeInfo::Xdp(link) if link.ifindex != 0),
            Some(Err(_)) | None => false,
        }
    }

    /// Takes the program off the interface, if it is there.
    pub fn detach(&self) {
        *self.link.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// A part of a map that host and programs share.
    pub fn mapped(&self, name: &str, from: usize, bytes: usize) -> io::Result<MapMemory> {
        MapMemory::new(self.map(name)?.as_fd(), from, bytes)
    }

    pub fn map(&self, name: &str) -> io::Result<MapHandle> {
        map(&self.object, name)
    }

    pub fn program(&self, name: &str) -> io::Result<OwnedFd> {
        program(&self.object, name)?.as_fd().try_clone_to_owned()
    }

    /// A counter of a group, or of [`NO_GROUP`](crate::shared::NO_GROUP), over all processors.
    pub fn counter(&self, group_slot: u32, number: u32) -> u64 {
        let place = group_slot * COUNTS_STRIDE + number;
        let found = self
            .counters
            .lookup_percpu(&place.to_ne_bytes(), MapFlags::ANY);
        let values = found.ok().flatten().unwrap_or_default();
        let value = |bytes: &Vec<u8>| bytes.first_chunk().map_or(0, |b| u64::from_ne_bytes(*b));
        values.iter().map(value).sum()
    }

    /// From now on all counters of a group, or of [`NO_GROUP`](crate::shared::NO_GROUP), are zero.
    pub fn forget_counters(&self, group_slot: u32) -> io::Result<()> {
        let processors = libbpf_rs::num_possible_cpus().map_err(io::Error::other)?;
        let zeros = vec![vec![0; 8]; processors];
        for number in 0..COUNTS_STRIDE {
            let place = group_slot * COUNTS_STRIDE + number;
            self.counters
                .update_percpu(&place.to_ne_bytes(), &zeros, MapFlags::ANY)
                .map_err(failed("the kernel did not take a counter"))?;
        }
        Ok(())
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
        } else if name == "in_step" {
            let places = u32::try_from(CPUS_MAX).expect("some hundreds");
            map.set_max_entries(places * config.groups).map_err(failed(
                "the map of what is under way cannot be as large as asked",
            ))?;
        } else if name == "ring" {
            map.set_max_entries(config.ring_slots.saturating_mul(config.groups))
                .map_err(failed("the ring cannot be as large as asked"))?;
        } else if name == "instances" {
            map.set_max_entries(config.window.saturating_mul(config.groups).max(1))
                .map_err(failed("there is no room for so many instances"))?;
        } else if name == "recent" && config.window == 0 {
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

#[cfg(test)]
mod tests {
    use super::{OBJECT, is_since};
    use object::{Object as _, ObjectSection as _, SectionKind};

    /// What an instruction of a program does, as far as it concerns locks (the kernel's `linux/bpf.h`).
    #[derive(Debug, Eq, PartialEq)]
    enum Does {
        Lock,
        Unlock,
        CallOrExit,
        /// Goes on at these, counted from itself.
        GoOn([Option<isize>; 2]),
    }

    const INSTRUCTION_BYTES: usize = 8;

    fn does(bytes: &[u8]) -> Does {
        const CALL: u8 = 0x85;
        const EXIT: u8 = 0x95;
        const GO_TO: u8 = 0x05;
        const LOAD_WIDE: u8 = 0x18; // takes two places
        const CLASSES_OF_JUMPS: [u8; 2] = [0x05, 0x06];
        const ATOMIC: u8 = 0xc3; // of 32 bits
        const EXCHANGE: i32 = 0xe1;
        const SPIN_LOCK: i32 = 93;
        const SPIN_UNLOCK: i32 = 94;
        let is_helper = bytes[1] >> 4 == 0;
        let offset = isize::from(i16::from_le_bytes([bytes[2], bytes[3]]));
        let number = i32::from_le_bytes(bytes[4..].try_into().expect("its second half"));
        match bytes[0] {
            CALL if is_helper && number == SPIN_LOCK => Does::Lock,
            CALL if is_helper && number == SPIN_UNLOCK => Does::Unlock,
            // Where the lock is our own, which is asked again; nothing else exchanges a word there.
            ATOMIC if number == EXCHANGE => Does::Unlock,
            CALL | EXIT => Does::CallOrExit,
            GO_TO => Does::GoOn([Some(1 + offset), None]),
            LOAD_WIDE => Does::GoOn([Some(2), None]),
            code if CLASSES_OF_JUMPS.contains(&(code & 7)) => {
                Does::GoOn([Some(1), Some(1 + offset)])
            }
            _ => Does::GoOn([Some(1), None]),
        }
    }

    /// Its verifier refuses that before Linux 6.9, and it is used before 6.4.
    #[test]
    fn nothing_is_called_under_the_kernels_lock() {
        let file = object::File::parse(OBJECT).expect("an ELF file");
        let mut locks = 0;
        for section in file.sections().filter(|it| it.kind() == SectionKind::Text) {
            let name = section.name().expect("it has a name");
            let bytes = section.data().expect("it is there");
            let all: Vec<_> = bytes.chunks_exact(INSTRUCTION_BYTES).map(does).collect();
            let locking = (0..all.len()).filter(|at| all[*at] == Does::Lock);
            let mut ahead: Vec<usize> = locking.map(|at| at + 1).collect();
            locks += ahead.len();
            let mut seen = vec![false; all.len()];
            while let Some(at) = ahead.pop() {
                if std::mem::replace(&mut seen[at], true) {
                    continue;
                }
                match &all[at] {
                    Does::Unlock => {}
                    Does::GoOn(places) => {
                        let places = places.iter().flatten();
                        ahead.extend(places.map(|by| at.strict_add_signed(*by)));
                    }
                    found @ (Does::Lock | Does::CallOrExit) => {
                        panic!("{found:?} at {at} of {name}")
                    }
                }
            }
        }
        assert!(
            locks >= 5,
            "packets, orders and submissions take it, of groups and of boxes: {locks}"
        );
    }

    #[test]
    fn a_kernels_release_is_read() {
        for release in ["6.4.0", "6.18.44-cloud-amd64", "7.0-rc1", "10.1"] {
            assert!(is_since(release, (6, 4)), "{release}");
        }
        for release in ["6.3.13", "6.1.0-28-amd64", "5.18.0", "", "x", "6"] {
            assert!(!is_since(release, (6, 4)), "{release}");
        }
    }
}

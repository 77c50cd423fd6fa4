//! Why the kernel's part of a plane cannot be, in words for whoever has to change that.
use crate::interface::PlaneInterfaces;
use crate::links::{Interface, Links};
use libbpf_rs::query::{LinkInfoIter, LinkTypeInfo, ProgInfoIter};
use rustix::thread::{CapabilitySet, capabilities};
use std::fmt;
use std::io;

/// What has to be another one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Blames {
    /// The interface that was named.
    Interface,
    /// The address, or the interface that has it.
    Address,
    /// The receive queue that was asked for.
    Queue,
    /// The mode, which was not left to the plane.
    Mode,
    /// The way of making copies, which was not left to the plane.
    Copies,
    /// The multicast address.
    Multicast,
    /// The kernel, or what the process may do there.
    System,
}

/// A plane was not attached.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refused {
    /// What has to be another one.
    pub blames: Blames,
    /// Why, and what would be accepted.
    pub text: String,
}

impl Refused {
    pub(crate) fn new(blames: Blames, text: impl Into<String>) -> Self {
        Self {
            blames,
            text: text.into(),
        }
    }
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        Self::new(Blames::System, error.to_string())
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Refused {}

/// A capability that the kernel wants of a process.
type Needed = (CapabilitySet, &'static str);

/// To load programs and attach them to an interface; by experiment, as the next.
pub const TO_LOAD: &[Needed] = &[
    (CapabilitySet::BPF, "CAP_BPF"),
    (CapabilitySet::NET_ADMIN, "CAP_NET_ADMIN"),
];
/// To load those of the plane, which calculate with pointers into packets.
pub const TO_CALCULATE: &[Needed] = &[(CapabilitySet::PERFMON, "CAP_PERFMON")];

/// All that a process takes whose plane is this one, for as long as it runs.
#[must_use]
pub fn capabilities_needed() -> CapabilitySet {
    let all = TO_LOAD.iter().chain(TO_CALCULATE);
    all.map(|(one, _)| *one).collect()
}

/// What to think of if the kernel does not permit something to a process that has what it takes.
pub const NOT_PERMITTED: &str = "the capabilities of a process within a user namespace, such as that of a \
                                 container without privileges, do not count";

/// Refuses a process that the kernel would refuse, and says what it lacks: the kernel itself says nothing
/// more than that it is not permitted.
pub fn check_capabilities(needed: &[&[Needed]]) -> io::Result<()> {
    let has = capabilities(None)?.effective;
    // Whoever has this one has the others where programs are concerned.
    if has.contains(CapabilitySet::SYS_ADMIN) {
        return Ok(());
    }
    let needed = needed.iter().copied().flatten();
    let names = |of: &[&Needed]| -> Vec<&str> { of.iter().map(|(_, name)| *name).collect() };
    let all: Vec<&Needed> = needed.collect();
    let mut lacks = all.clone();
    lacks.retain(|(one, _)| !has.contains(*one));
    if lacks.is_empty() {
        return Ok(());
    }
    let text = format!(
        "the process lacks {}; it takes root, or {}",
        names(&lacks).join(" and "),
        names(&all).join(" and ")
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

/// Every driver that takes a program takes one beside this.
const ORDINARY_MTU: u32 = 1500;

/// Why a driver supports no program, as far as that can be known.
pub fn unsupported(Interface { name, mtu, .. }: &Interface) -> String {
    const WHY: &str = "its driver has no native XDP, or not with its present settings";
    if *mtu <= ORDINARY_MTU {
        return WHY.to_owned();
    }
    format!("{WHY}, such as its MTU of {mtu}: ip link set dev {name} mtu {ORDINARY_MTU}")
}

/// Why the kernel did not attach a program to an interface. What it answers differs between drivers.
pub fn not_attached(to: &PlaneInterfaces, error: &io::Error) -> String {
    let Interface { name, mtu, .. } = &to.carrier;
    let why = match error.raw_os_error() {
        Some(libc::EBUSY | libc::EEXIST) => return has_another(&to.carrier),
        Some(libc::EOPNOTSUPP) => {
            let instead = to.instead.clone();
            instead.unwrap_or_else(|| unsupported(&to.carrier))
        }
        // veth; then what others say, to this and to other settings.
        Some(libc::ERANGE) => format!(
            "its MTU of {mtu}, or that at the other end of a veth pair, is larger than its driver takes for \
             XDP: ip link set dev {name} mtu {ORDINARY_MTU} (veth: at both ends); generic mode takes any"
        ),
        Some(libc::EINVAL | libc::E2BIG) => format!(
            "most often its MTU, now {mtu}, is larger than its driver takes for XDP: ip link set dev {name} \
             mtu {ORDINARY_MTU}; generic mode takes any; its driver's messages may say more: dmesg"
        ),
        Some(libc::ENOSPC) => format!(
            "it has fewer receive queues than the other end of its veth pair sends by: ethtool -L {name} rx N"
        ),
        Some(libc::EPERM) => NOT_PERMITTED.to_owned(),
        Some(libc::ENODEV) => "it has just gone".to_owned(),
        _ => "its driver's messages may say why: dmesg".to_owned(),
    };
    format!("the kernel did not attach the plane's program to interface {name}: {error}; {why}")
}

/// Which program an interface has already, and how one gets rid of it.
fn has_another(interface: &Interface) -> String {
    let name = &interface.name;
    let all = Links::new().and_then(|links| links.all());
    let now = all
        .ok()
        .into_iter()
        .flatten()
        .find(|one| one.index == interface.index);
    let Some(id) = now.and_then(|now| now.programs.first().copied()) else {
        return format!("interface {name} had another XDP program a moment ago; try again");
    };
    // Only who may see all programs is told these.
    let program = ProgInfoIter::default().find(|one| one.id == id);
    let called = program.map_or_else(String::new, |one| {
        format!(" ({})", one.name.to_string_lossy())
    });
    let remedy = remedy(name, interface.index, id);
    format!(
        "interface {name} has another XDP program, number {id}{called}, and only one can be there: {remedy}"
    )
}

/// How one gets rid of a program of an interface.
pub fn remedy(interface: &str, index: u32, program: u32) -> String {
    let is_its_link = |one: &libbpf_rs::query::LinkInfo| {
        one.prog_id == program
            && matches!(&one.info, LinkTypeInfo::Xdp(link) if link.ifindex == index)
    };
    match LinkInfoIter::default().find(is_its_link) {
        Some(link) => format!(
            "end the process that holds it, or: bpftool link detach id {}",
            link.id
        ),
        None => format!(
            "take it away with: ip link set dev {interface} xdp off; or, if that is refused, end the process that \
             holds it"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Drivers answer one of these; veth, which is at hand, the first.
    #[test]
    fn an_mtu_too_large_for_the_driver_is_said() {
        let carrier = Interface {
            name: "eth0".to_owned(),
            mtu: 9000,
            ..Interface::default()
        };
        let found = PlaneInterfaces {
            holder: carrier.clone(),
            carrier,
            instead: None,
        };
        for answer in [libc::ERANGE, libc::EINVAL, libc::E2BIG, libc::EOPNOTSUPP] {
            let error = io::Error::from_raw_os_error(answer);
            let text = not_attached(&found, &error);
            for part in [
                "interface eth0",
                "MTU",
                "9000",
                "ip link set dev eth0 mtu 1500",
            ] {
                assert!(text.contains(part), "{text}");
            }
        }
    }
}

//! Why the kernel's part of a plane cannot be, in words for whoever has to change that.
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

/// What the kernel wants of a process that loads and attaches the plane's programs; by experiment, see the tests
/// of `tests/cluster` called `capabilities`.
const NEEDED: [(CapabilitySet, &str); 3] = [
    (CapabilitySet::BPF, "CAP_BPF"),
    (CapabilitySet::NET_ADMIN, "CAP_NET_ADMIN"),
    (CapabilitySet::PERFMON, "CAP_PERFMON"),
];

/// Refuses a process that the kernel would refuse, and says what it lacks: the kernel itself says nothing more
/// than that it is not permitted.
pub fn check_capabilities() -> io::Result<()> {
    let has = capabilities(None)?.effective;
    // Whoever has this one has the others where programs are concerned.
    if has.contains(CapabilitySet::SYS_ADMIN) {
        return Ok(());
    }
    let lacks = NEEDED.iter().filter(|(needed, _)| !has.contains(*needed));
    let names: Vec<&str> = lacks.map(|(_, name)| *name).collect();
    if names.is_empty() {
        return Ok(());
    }
    let text = format!(
        "the process lacks {}; it takes root, or CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON",
        names.join(" and ")
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

/// Why the kernel did not attach a program to an interface. What it answers differs between drivers.
pub fn not_attached(to: &Interface, error: &io::Error) -> String {
    let Interface { name, mtu, .. } = to;
    let why = match error.raw_os_error() {
        Some(libc::EBUSY | libc::EEXIST) => return has_another(to),
        Some(libc::EOPNOTSUPP) => {
            "its driver has no native XDP, or not with its present settings".to_owned()
        }
        // veth, and most others in turn.
        Some(libc::ERANGE | libc::EINVAL | libc::E2BIG) => format!(
            "its MTU of {mtu}, or that at the other end of a veth pair, is larger than its driver takes for \
             XDP: ip link set dev {name} mtu 1500 (veth: at both ends)"
        ),
        Some(libc::EPERM) => {
            "it is not permitted; a process within a user namespace, such as that of a \
                              container without privileges, may not"
                .to_owned()
        }
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
    let is_its_link = |one: &libbpf_rs::query::LinkInfo| {
        one.prog_id == id
            && matches!(&one.info, LinkTypeInfo::Xdp(link) if link.ifindex == interface.index)
    };
    let remedy = match LinkInfoIter::default().find(is_its_link) {
        Some(link) => format!(
            "end the process that holds it, or: bpftool link detach id {}",
            link.id
        ),
        None => format!(
            "take it away with: ip link set dev {name} xdp off; or, if that is refused, end the process that \
             holds it"
        ),
    };
    format!(
        "interface {name} has another XDP program, number {id}{called}, and only one can be there: {remedy}"
    )
}

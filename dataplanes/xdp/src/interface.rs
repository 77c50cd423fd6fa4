//! What a plane needs of its network interface, and whether it has that: at the start, and ever after.
use crate::links::{Change, Interface, Links, News};
use crate::refused::{Blames, Refused};
use quorumwire_wire::packet::{HEADER_BYTES, PAYLOAD_BYTES_MAX};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

/// Headers before a packet.
const IPV4_BYTES: usize = 20;
const IPV6_BYTES: usize = 40;
const UDP_BYTES: usize = 8;

/// Which interface is wanted.
pub struct Wanted {
    address: IpAddr,
    /// None: the one that has the address.
    name: Option<String>,
}

impl Wanted {
    pub fn new(address: SocketAddr, name: Option<&str>) -> Self {
        Self {
            address: address.ip(),
            name: name.map(str::to_owned),
        }
    }

    /// Whose fault it is if the interface is not as it must be.
    pub fn blames(&self) -> Blames {
        match &self.name {
            Some(_) => Blames::Interface,
            None => Blames::Address,
        }
    }

    /// The one of them that is wanted, if the plane can run there.
    pub fn find(&self, all: &[Interface]) -> Result<Interface, Refused> {
        let refused = |text| Refused::new(self.blames(), text);
        let is_wanted = |one: &&Interface| match &self.name {
            Some(name) => one.name == *name,
            None => one.addresses.contains(&self.address),
        };
        let Some(found) = all.iter().find(is_wanted) else {
            let names: Vec<&str> = all.iter().map(|one| &one.name[..]).collect();
            let missing = match &self.name {
                Some(name) => format!("there is no interface {name}"),
                None => format!("no interface has the address {}", self.address),
            };
            return Err(refused(format!(
                "{missing}; there are: {}",
                names.join(", ")
            )));
        };
        let name = &found.name;
        if !found.addresses.contains(&self.address) {
            let has: Vec<String> = found.addresses.iter().map(ToString::to_string).collect();
            let text = format!(
                "interface {name} does not have the address {}; it has: {}",
                self.address,
                has.join(", ")
            );
            return Err(Refused::new(Blames::Address, text));
        }
        if found.mac == [0; 6] {
            return Err(refused(format!(
                "interface {name} has no Ethernet address; the plane needs an Ethernet interface"
            )));
        }
        let least = least_mtu(self.address);
        if (found.mtu as usize) < least {
            return Err(refused(format!(
                "interface {name} has an MTU of {}; the plane's longest packets need at least {least}: \
                 ip link set dev {name} mtu 1500",
                found.mtu
            )));
        }
        Ok(found.clone())
    }
}

/// What the longest packet takes.
fn least_mtu(address: IpAddr) -> usize {
    let ip_bytes = match address {
        IpAddr::V4(_) => IPV4_BYTES,
        IpAddr::V6(_) => IPV6_BYTES,
    };
    ip_bytes + UDP_BYTES + HEADER_BYTES + PAYLOAD_BYTES_MAX
}

/// How a plane's interface is.
pub enum State {
    Sound,
    /// The programs cannot do their work, and can again once it is as it was.
    Unfit(String),
    /// It is not the one that the programs were loaded for, or has lost them.
    Lost(String),
}

/// Keeps an eye on the interface of a plane. It is told of changes and looks only after these, so that it costs
/// one question to the kernel for each [`Watch::is_due`].
pub struct Watch {
    wanted: Wanted,
    links: Links,
    news: News,
    /// For which the programs were loaded.
    loaded_for: Interface,
}

impl Watch {
    /// Finds the interface that is wanted, in the namespace this is called in.
    pub fn new(wanted: Wanted) -> Result<Self, Refused> {
        let system = |error: io::Error| {
            let text = format!("the kernel does not say which interfaces there are: {error}");
            Refused::new(Blames::System, text)
        };
        // First, so that no change is missed.
        let news = News::new().map_err(system)?;
        let links = Links::new().map_err(system)?;
        let loaded_for = wanted.find(&links.all().map_err(system)?)?;
        Ok(Self {
            wanted,
            links,
            news,
            loaded_for,
        })
    }

    /// For which the programs were loaded.
    pub fn interface(&self) -> &Interface {
        &self.loaded_for
    }

    /// Whose fault it is if the interface is not as it must be.
    pub fn blames(&self) -> Blames {
        self.wanted.blames()
    }

    /// Programs are loaded for this one from now on.
    pub fn moved(&mut self, to: Interface) {
        self.loaded_for = to;
    }

    /// Whether anything has happened to it since the last call. Costs one system call.
    pub fn is_due(&mut self) -> bool {
        let (ours, wanted) = (&self.loaded_for, &self.wanted);
        self.news.take(|change| match change {
            Change::Link(index, name) => {
                index == ours.index || (name.is_some() && name == wanted.name.as_deref())
            }
            Change::Address(index, ip) => index == ours.index || ip == Some(wanted.address),
            Change::Unknown => true,
        })
    }

    /// How it is now; and the interface that is wanted, if there is one that would do.
    pub fn look(&self, has_programs: bool) -> (State, Option<Interface>) {
        let ours = &self.loaded_for;
        let all = match self.links.all() {
            Ok(all) => all,
            Err(error) => {
                let text = format!(
                    "the kernel does not say how interface {} is: {error}",
                    ours.name
                );
                return (State::Unfit(text), None);
            }
        };
        let is_same = |one: &Interface| one.index == ours.index && one.mac == ours.mac;
        let stands = has_programs && all.iter().any(is_same);
        match self.wanted.find(&all) {
            Err(refused) if stands => (State::Unfit(refused.text), None),
            Err(refused) if all.iter().any(|one| one.index == ours.index) => {
                let text = format!("{}: {}", lost_program(ours), refused.text);
                (State::Lost(text), None)
            }
            Err(refused) => {
                let text = format!("interface {} is gone: {}", ours.name, refused.text);
                (State::Lost(text), None)
            }
            Ok(found) if !stands || !is_same(&found) => {
                (State::Lost(lost_program(ours)), Some(found))
            }
            Ok(found) if !found.is_up => {
                let text = format!("interface {} is down", found.name);
                (State::Unfit(text), None)
            }
            Ok(_) => (State::Sound, None),
        }
    }
}

fn lost_program(interface: &Interface) -> String {
    format!("interface {} has lost the plane's program", interface.name)
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.news.as_fd()
    }
}

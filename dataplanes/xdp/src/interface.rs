//! What a plane needs of its network interface, and whether it has that: at the start, and ever after.
use crate::links::{Change, Interface, Links, News, Vlan};
use crate::load::VLAN_MAX;
use crate::refused::{Blames, Refused};
use quorumwire_wire::packet::{HEADER_BYTES, PAYLOAD_BYTES_MAX};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};

/// Headers before a packet.
const IPV4_BYTES: usize = 20;
const IPV6_BYTES: usize = 40;
const UDP_BYTES: usize = 8;

/// Which interface is wanted.
pub struct InterfaceChoice {
    address: IpAddr,
    /// Of the one that carries the packets. None: the one that has the address.
    name: Option<String>,
    /// The number of the tag that packets have there (802.1Q); 0: they have none.
    vlan: u16,
}

/// Where a plane can run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PlaneInterfaces {
    /// Its packets come in and leave there.
    pub carrier: Interface,
    /// Has its address; to neighbours its packets are from and to this one. Another one than the carrier only
    /// if packets are tagged.
    pub holder: Interface,
    /// Where its driver could take a program, if the carrier is a VLAN.
    pub instead: Option<String>,
}

impl PlaneInterfaces {
    /// Whether programs that were loaded for the one do for the other.
    pub fn is_same(&self, other: &Self) -> bool {
        self.carrier.index == other.carrier.index
            && self.holder.index == other.holder.index
            && self.holder.mac == other.holder.mac
    }

    /// The carrier's name, and how packets are tagged there.
    pub fn described(&self, vlan: u16) -> String {
        match vlan {
            0 => self.carrier.name.clone(),
            _ => format!("{}, VLAN {vlan}", self.carrier.name),
        }
    }
}

/// Refuses what is no VLAN's number.
fn check_vlan(number: u16) -> Result<(), Refused> {
    if number <= VLAN_MAX {
        return Ok(());
    }
    let text = format!("there is no VLAN {number}, only 1 to {VLAN_MAX}");
    Err(Refused::new(Blames::Interface, text))
}

impl InterfaceChoice {
    pub fn new(address: IpAddr, name: Option<&str>, vlan: u16) -> Self {
        Self {
            address,
            name: name.map(str::to_owned),
            vlan,
        }
    }

    /// Whose fault it is if the interface is not as it must be.
    pub fn blames(&self) -> Blames {
        match &self.name {
            Some(_) => Blames::Interface,
            None => Blames::Address,
        }
    }

    /// The one of them that is wanted, if the plane can run there and meets its packets.
    pub fn find_usable(
        &self,
        all: &[Interface],
        links: &Links,
    ) -> Result<PlaneInterfaces, Refused> {
        check_vlan(self.vlan)?;
        self.check_tags(self.find(all)?, links)
    }

    /// The one of them that is wanted, if it is fit for the plane.
    fn find(&self, all: &[Interface]) -> Result<PlaneInterfaces, Refused> {
        let refused = |text| Refused::new(self.blames(), text);
        let is_wanted = |one: &&Interface| match &self.name {
            Some(name) => one.name == *name,
            None => one.addresses.contains(&self.address),
        };
        let nobody_has = || format!("no interface has the address {}", self.address);
        let among = |missing: &str| {
            let names: Vec<&str> = all.iter().map(|one| &one.name[..]).collect();
            format!("{missing}; there are: {}", names.join(", "))
        };
        let Some(carrier) = all.iter().find(is_wanted) else {
            let missing = match &self.name {
                Some(name) => format!("there is no interface {name}"),
                None => nobody_has(),
            };
            return Err(refused(among(&missing)));
        };
        let instead = said_of_vlan(carrier, all);
        if let Some(instead) = instead.as_ref().filter(|_| self.vlan != 0) {
            return Err(refused(format!("packets have no tag there: {instead}")));
        }
        let has_address = |one: &&Interface| one.addresses.contains(&self.address);
        let holder = [carrier].into_iter().chain(all).find(has_address);
        let may_hold = |one: &&Interface| self.vlan != 0 || one.index == carrier.index;
        let Some(holder) = holder.filter(may_hold) else {
            let text = match self.vlan {
                0 => self.lacks_address(carrier, holder, all),
                _ => among(&nobody_has()),
            };
            return Err(Refused::new(Blames::Address, text));
        };
        let is_of_carrier = |vlan: Vlan| vlan.of == carrier.index && vlan.number == self.vlan;
        if holder.index != carrier.index
            && holder.vlan.is_some_and(|vlan| !is_of_carrier(vlan))
            && let Some(instead) = said_of_vlan(holder, all)
        {
            let text = format!("the address is another VLAN's: {instead}");
            return Err(Refused::new(Blames::Address, text));
        }
        for one in [carrier, holder] {
            self.check_link(one).map_err(refused)?;
        }
        Ok(PlaneInterfaces {
            carrier: carrier.clone(),
            holder: holder.clone(),
            instead,
        })
    }

    /// What to say of an interface that was named and does not have the address.
    fn lacks_address(
        &self,
        carrier: &Interface,
        holder: Option<&Interface>,
        all: &[Interface],
    ) -> String {
        let has: Vec<String> = carrier.addresses.iter().map(ToString::to_string).collect();
        let text = format!(
            "interface {} does not have the address {}; it has: {}",
            carrier.name,
            self.address,
            has.join(", ")
        );
        match holder.and_then(|holder| said_of_vlan(holder, all)) {
            Some(instead) => format!("{text}; the address is that of a VLAN: {instead}"),
            None => text,
        }
    }

    fn check_link(&self, one: &Interface) -> Result<(), String> {
        let Interface { name, mac, mtu, .. } = one;
        if *mac == [0; 6] {
            return Err(format!(
                "interface {name} has no Ethernet address; the plane needs an Ethernet interface"
            ));
        }
        let least = least_mtu(self.address);
        if (*mtu as usize) < least {
            return Err(format!(
                "interface {name} has an MTU of {mtu}; the plane's longest packets need at least {least}: \
                 ip link set dev {name} mtu 1500"
            ));
        }
        Ok(())
    }

    /// Refuses a carrier whose driver takes away the tags by which the program knows its packets: it would
    /// take none. The same in generic mode, where it does not see what a driver has taken out either.
    fn check_tags(
        &self,
        found: PlaneInterfaces,
        links: &Links,
    ) -> Result<PlaneInterfaces, Refused> {
        if self.vlan == 0 {
            return Ok(found);
        }
        let name = &found.carrier.name;
        match links.strips_vlan_tags(name) {
            Ok(false) => Ok(found),
            Ok(true) => {
                let text = format!(
                    "the driver of interface {name} takes VLAN tags out of packets before the plane sees them; \
                     have it leave them: ethtool -K {name} rxvlan off (veth: also txvlan off, at the other end)"
                );
                Err(Refused::new(self.blames(), text))
            }
            Err(error) => {
                let text = format!("interface {name} does not say what it does with tags: {error}");
                Err(Refused::new(self.blames(), text))
            }
        }
    }
}

/// Of an interface that is a VLAN, what would have its packets met in a driver.
fn said_of_vlan(one: &Interface, all: &[Interface]) -> Option<String> {
    let Vlan { of, number } = one.vlan?;
    let Interface { name, .. } = one;
    Some(match all.iter().find(|other| other.index == of) {
        Some(under) => format!(
            "interface {name} is VLAN {number} of {0}, whose driver can take the program with --interface {0} \
             --xdp-vlan {number}",
            under.name
        ),
        None => format!("interface {name} is VLAN {number} of one in another namespace"),
    })
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

/// Keeps an eye on the interface of a plane. It is told of changes and looks only after these, so that it
/// costs one question to the kernel for each [`Watch::is_due`].
pub struct Watch {
    wanted: InterfaceChoice,
    links: Links,
    news: News,
    /// For which the programs were loaded.
    loaded_for: PlaneInterfaces,
}

impl Watch {
    /// Finds the interface that is wanted, in the namespace this is called in.
    pub fn new(wanted: InterfaceChoice) -> Result<Self, Refused> {
        let system = |error: io::Error| {
            let text = format!("the kernel does not say which interfaces there are: {error}");
            Refused::new(Blames::System, text)
        };
        // First, so that no change is missed.
        let news = News::new().map_err(system)?;
        let links = Links::new().map_err(system)?;
        let loaded_for = wanted.find_usable(&links.all().map_err(system)?, &links)?;
        Ok(Self {
            wanted,
            links,
            news,
            loaded_for,
        })
    }

    /// For which the programs were loaded.
    pub fn found(&self) -> &PlaneInterfaces {
        &self.loaded_for
    }

    /// Whose fault it is if the interface is not as it must be.
    pub fn blames(&self) -> Blames {
        self.wanted.blames()
    }

    /// Programs are loaded for this one from now on.
    pub fn moved(&mut self, to: PlaneInterfaces) {
        self.loaded_for = to;
    }

    /// Whether anything has happened to it since the last call. Costs one system call.
    pub fn is_due(&mut self) -> bool {
        let (ours, wanted) = (&self.loaded_for, &self.wanted);
        let is_ours = |index| index == ours.carrier.index || index == ours.holder.index;
        self.news.take(|change| match change {
            Change::Link(index, name) => {
                is_ours(index) || (name.is_some() && name == wanted.name.as_deref())
            }
            Change::Address(index, ip) => is_ours(index) || ip == Some(wanted.address),
            Change::Unknown => true,
        })
    }

    /// How it is now; and the interface that is wanted, if there is one that would do.
    pub fn look(&self, has_programs: bool) -> (State, Option<PlaneInterfaces>) {
        let (ours, carrier) = (&self.loaded_for, &self.loaded_for.carrier);
        let all = match self.links.all() {
            Ok(all) => all,
            Err(error) => {
                let text = format!(
                    "the kernel does not say how interface {} is: {error}",
                    carrier.name
                );
                return (State::Unfit(text), None);
            }
        };
        let found = self.wanted.find_usable(&all, &self.links);
        let is_there = all.iter().any(|one| one.index == carrier.index);
        match found {
            Err(refused) if is_there && has_programs => (State::Unfit(refused.text), None),
            Err(refused) if is_there => {
                let text = format!("{}: {}", lost_program(carrier), refused.text);
                (State::Lost(text), None)
            }
            Err(refused) => {
                let text = format!("interface {} is gone: {}", carrier.name, refused.text);
                (State::Lost(text), None)
            }
            Ok(found) if !has_programs || !found.is_same(ours) => {
                (State::Lost(lost_program(carrier)), Some(found))
            }
            Ok(found) => match [&found.carrier, &found.holder]
                .iter()
                .find(|one| !one.is_up)
            {
                Some(down) => {
                    let text = format!("interface {} is down", down.name);
                    (State::Unfit(text), None)
                }
                None => (State::Sound, None),
            },
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

#[cfg(test)]
mod tests {
    use super::*;

    /// `eth0`, its VLAN 100, which has the address, and its VLAN 200, which has another one.
    fn eth0_and_vlans() -> [Interface; 3] {
        let interface = |name: &str, index, vlan: Option<u16>| Interface {
            name: name.to_owned(),
            index,
            mac: [2, 0, 0, 0, 0, 1],
            mtu: 1500,
            is_up: true,
            addresses: vec![IpAddr::from([
                10,
                0,
                u8::try_from(index).expect("small"),
                1,
            ])],
            vlan: vlan.map(|number| Vlan { of: 2, number }),
            ..Interface::default()
        };
        [
            interface("eth0", 2, None),
            interface("eth0.100", 3, Some(100)),
            interface("eth0.200", 4, Some(200)),
        ]
    }

    fn find(name: Option<&str>, vlan: u16, all: &[Interface]) -> Result<PlaneInterfaces, Refused> {
        InterfaceChoice::new([10, 0, 3, 1].into(), name, vlan).find(all)
    }

    const OPTIONS: &str = "interface eth0.100 is VLAN 100 of eth0, whose driver can take the program with \
                           --interface eth0 --xdp-vlan 100";

    #[test]
    fn the_address_of_a_vlan_is_found_above_its_carrier() {
        let all = eth0_and_vlans();
        let found = find(Some("eth0"), 100, &all).expect("so it is");
        assert_eq!((&found.carrier, &found.holder), (&all[0], &all[1]));
        assert_eq!(found.instead, None);
        let mut small = all;
        small[1].mtu = 1475;
        let refused = find(Some("eth0"), 100, &small).expect_err("too small");
        assert!(
            refused
                .text
                .contains("interface eth0.100 has an MTU of 1475")
        );
    }

    #[test]
    fn another_vlans_address_is_refused_with_what_would_do() {
        let all = eth0_and_vlans();
        let refused = find(Some("eth0"), 200, &all).expect_err("it is VLAN 100's");
        assert_eq!(refused.blames, Blames::Address);
        assert!(refused.text.ends_with(OPTIONS), "{refused}");
        let mut others = all;
        others[1].vlan = Some(Vlan { of: 9, number: 100 });
        let refused = find(Some("eth0"), 100, &others).expect_err("it is of another interface");
        let text = "interface eth0.100 is VLAN 100 of one in another namespace";
        assert!(refused.text.ends_with(text), "{refused}");
    }

    /// Without a tag the plane can run at a VLAN, only not in its driver, and not at what is below it.
    #[test]
    fn a_vlan_does_without_tag_and_says_what_is_better() {
        let all = eth0_and_vlans();
        for name in [None, Some("eth0.100")] {
            let found = find(name, 0, &all).expect("generic mode can");
            assert_eq!((&found.carrier, &found.holder), (&all[1], &all[1]));
            assert_eq!(found.instead.as_deref(), Some(OPTIONS));
            let unsupported = std::io::Error::from_raw_os_error(libc::EOPNOTSUPP);
            let text = crate::refused::not_attached(&found, &unsupported);
            assert!(text.ends_with(OPTIONS), "{text}");
            let refused = find(name, 100, &all).expect_err("no tag comes there");
            assert!(refused.text.ends_with(OPTIONS), "{refused}");
        }
        let refused = find(Some("eth0"), 0, &all).expect_err("another interface has it");
        assert_eq!(refused.blames, Blames::Address);
        assert!(refused.text.ends_with(OPTIONS), "{refused}");
    }
}

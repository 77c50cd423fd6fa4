//! The network interfaces of a namespace, and word of their changes, as the kernel tells them (netlink). The
//! namespace is the one that this was made in, wherever its thread is later. Judges nothing.
use crate::ffi::{Question, ask_driver};
use crate::steer::number;
use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoVlan, LinkAttribute, LinkFlags, LinkInfo, LinkMessage, LinkXdp, VlanProtocol,
};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};

/// Room for what the kernel says at once, which is never more.
const SAID_BYTES_MAX: usize = 64 << 10;
/// Groups of `rtnetlink(7)`: links, and addresses of either family.
const GROUP_LINKS: u32 = 1;
const GROUP_ADDRESSES_IPV4: u32 = 5;
const GROUP_ADDRESSES_IPV6: u32 = 9;

/// A network interface.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its number.
    pub index: u32,
    /// Its Ethernet address; zeros if it has none.
    pub mac: [u8; 6],
    /// Longest IP packet it sends.
    pub mtu: u32,
    /// Whether it is meant to work; its cable may be out all the same.
    pub is_up: bool,
    /// Receive queues that it was made with.
    pub receive_queues: u32,
    /// Numbers of the XDP programs attached to it.
    pub programs: Vec<u32>,
    /// Its IP addresses.
    pub addresses: Vec<IpAddr>,
    /// If it is a VLAN of another.
    pub vlan: Option<Vlan>,
}

/// An interface whose packets pass by another one's driver, with a tag (802.1Q).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Vlan {
    /// The number of that other one; 0 if it is in another namespace.
    pub of: u32,
    /// The tag's.
    pub number: u16,
}

/// A command of `linux/ethtool.h`, asked with a `struct ethtool_value`: its size, and where the answer
/// stands.
pub const ETHTOOL_GFLAGS: u32 = 0x25;
pub const FLAGS_BYTES: usize = 8;
const FLAGS_AT: usize = 4;
const ETH_FLAG_RXVLAN: u32 = 1 << 8;

/// Asks about interfaces.
pub struct Links {
    socket: Socket,
}

impl Links {
    /// Of the namespace this is called in.
    pub fn new() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket })
    }

    /// All interfaces, as they are now.
    pub fn all(&self) -> io::Result<Vec<Interface>> {
        let mut all = Vec::new();
        self.ask(
            RouteNetlinkMessage::GetLink(LinkMessage::default()),
            &mut |said| {
                if let RouteNetlinkMessage::NewLink(link) = said {
                    all.push(interface_of(&link));
                }
            },
        )?;
        let question = RouteNetlinkMessage::GetAddress(AddressMessage::default());
        self.ask(question, &mut |said| {
            if let RouteNetlinkMessage::NewAddress(address) = said {
                let index = address.header.index;
                if let Some(of) = all.iter_mut().find(|one| one.index == index) {
                    of.addresses.extend(ip_of(&address));
                }
            }
        })?;
        Ok(all)
    }

    /// Whether an interface's driver takes VLAN tags out of the frames that come in.
    pub fn strips_vlan_tags(&self, interface: &str) -> io::Result<bool> {
        let bytes = [ETHTOOL_GFLAGS.to_ne_bytes(), [0; 4]].concat();
        let mut question = Question::new(&bytes)?;
        ask_driver(self.socket.as_fd(), interface, &mut question)?;
        Ok(number(&question.bytes(), FLAGS_AT) & ETH_FLAG_RXVLAN != 0)
    }

    /// Asks one question and takes all of its answer.
    fn ask(
        &self,
        question: RouteNetlinkMessage,
        take: &mut dyn FnMut(RouteNetlinkMessage),
    ) -> io::Result<()> {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_DUMP;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::from(question));
        message.finalize();
        let mut bytes = vec![0; message.header.length as usize];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        let mut is_done = false;
        let mut said = Vec::with_capacity(SAID_BYTES_MAX);
        while !is_done {
            said.clear();
            self.socket.recv(&mut said, 0)?;
            let mut refused = None;
            each_message(&said, &mut |message| match message {
                Some(NetlinkPayload::InnerMessage(inner)) => take(inner),
                Some(NetlinkPayload::Done(_)) => is_done = true,
                Some(NetlinkPayload::Error(error)) => refused = Some(error.to_io()),
                // What cannot be read is of an interface of a kind that no plane runs on.
                Some(_) | None => {}
            });
            if let Some(error) = refused {
                return Err(error);
            }
        }
        Ok(())
    }
}

/// Word of changes.
pub struct News {
    socket: Socket,
    said: Vec<u8>,
}

/// What has changed.
pub enum Change<'a> {
    /// An interface of this number and name came, changed or went.
    Link(u32, Option<&'a str>),
    /// An interface of this number got or lost an address.
    Address(u32, Option<IpAddr>),
    /// It is not known what.
    Unknown,
}

impl News {
    /// Of the namespace this is called in, from now on.
    pub fn new() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.set_non_blocking(true)?;
        for group in [GROUP_LINKS, GROUP_ADDRESSES_IPV4, GROUP_ADDRESSES_IPV6] {
            socket.add_membership(group)?;
        }
        Ok(Self {
            socket,
            said: Vec::with_capacity(SAID_BYTES_MAX),
        })
    }

    /// Whether anything that was told since the last call concerns the caller.
    pub fn take(&mut self, concerns: impl Fn(Change<'_>) -> bool) -> bool {
        let mut found = false;
        loop {
            self.said.clear();
            match self.socket.recv(&mut self.said, 0) {
                Ok(_) => each_message(&self.said, &mut |message| {
                    found |= match message {
                        Some(NetlinkPayload::InnerMessage(inner)) => says(&inner, &concerns),
                        Some(_) => false,
                        None => concerns(Change::Unknown),
                    };
                }),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return found,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Some was lost for want of room. What is left can wait for the next call: it will be found.
                Err(_) => return concerns(Change::Unknown) || found,
            }
        }
    }
}

impl AsFd for News {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "what netlink says is much")]
fn says(message: &RouteNetlinkMessage, concerns: &impl Fn(Change<'_>) -> bool) -> bool {
    match message {
        RouteNetlinkMessage::NewLink(link) | RouteNetlinkMessage::DelLink(link) => {
            let name = link.attributes.iter().find_map(|one| match one {
                LinkAttribute::IfName(name) => Some(&name[..]),
                _ => None,
            });
            concerns(Change::Link(link.header.index, name))
        }
        RouteNetlinkMessage::NewAddress(address) | RouteNetlinkMessage::DelAddress(address) => {
            concerns(Change::Address(address.header.index, ip_of(address)))
        }
        _ => false,
    }
}

/// Each message of a datagram; `None` for what cannot be read.
fn each_message(bytes: &[u8], take: &mut dyn FnMut(Option<NetlinkPayload<RouteNetlinkMessage>>)) {
    const ALIGNED_TO: usize = 4;
    let mut rest = bytes;
    while let Some(length) = rest.first_chunk() {
        let length = u32::from_ne_bytes(*length) as usize;
        let message = rest.get(..length).filter(|message| !message.is_empty());
        let Some(message) = message else {
            return take(None);
        };
        let read = NetlinkMessage::<RouteNetlinkMessage>::deserialize(message);
        take(read.ok().map(|message| message.payload));
        let next = length.next_multiple_of(ALIGNED_TO);
        rest = rest.get(next..).unwrap_or_default();
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "what netlink says is much")]
fn interface_of(link: &LinkMessage) -> Interface {
    let mut interface = Interface {
        index: link.header.index,
        is_up: link.header.flags.contains(LinkFlags::Up),
        vlan: vlan_of(link),
        ..Interface::default()
    };
    for attribute in &link.attributes {
        match attribute {
            LinkAttribute::IfName(name) => interface.name.clone_from(name),
            LinkAttribute::Address(mac) => {
                interface.mac = mac[..].try_into().unwrap_or_default();
            }
            LinkAttribute::Mtu(mtu) => interface.mtu = *mtu,
            LinkAttribute::NumRxQueues(queues) => interface.receive_queues = *queues,
            LinkAttribute::Xdp(programs) => {
                interface
                    .programs
                    .extend(programs.iter().filter_map(|one| match one {
                        // One that stands alone is told twice: as itself, and by its kind.
                        LinkXdp::DrvProgId(id) | LinkXdp::SkbProgId(id) | LinkXdp::HwProgId(id) => {
                            Some(*id)
                        }
                        _ => None,
                    }));
            }
            _ => {}
        }
    }
    interface
}

/// If a link is a VLAN of another.
#[expect(clippy::wildcard_enum_match_arm, reason = "what netlink says is much")]
fn vlan_of(link: &LinkMessage) -> Option<Vlan> {
    let infos = link.attributes.iter().find_map(|one| match one {
        LinkAttribute::LinkInfo(infos) => Some(infos),
        _ => None,
    })?;
    let said = infos.iter().find_map(|one| match one {
        LinkInfo::Data(InfoData::Vlan(said)) => Some(said),
        _ => None,
    })?;
    if !said.contains(&InfoVlan::Protocol(VlanProtocol::Ieee8021Q)) {
        return None;
    }
    let number = said.iter().find_map(|one| match one {
        InfoVlan::Id(number) => Some(*number),
        _ => None,
    })?;
    let is_elsewhere = |one: &LinkAttribute| matches!(one, LinkAttribute::LinkNetNsId(_));
    let of = link.attributes.iter().find_map(|one| match one {
        LinkAttribute::Link(of) => Some(*of),
        _ => None,
    });
    let of = of.filter(|_| !link.attributes.iter().any(is_elsewhere));
    Some(Vlan {
        of: of.unwrap_or_default(),
        number,
    })
}

#[expect(clippy::wildcard_enum_match_arm, reason = "what netlink says is much")]
fn ip_of(address: &AddressMessage) -> Option<IpAddr> {
    // Of a link between two points, `Address` is the other end's.
    let local = address.attributes.iter().find_map(|one| match one {
        AddressAttribute::Local(ip) => Some(*ip),
        _ => None,
    });
    let alone = address.attributes.iter().find_map(|one| match one {
        AddressAttribute::Address(ip) => Some(*ip),
        _ => None,
    });
    local.or(alone)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel says of `eth0.101`, number 34, of the interface number 2.
    fn said(protocol: u16, further: &[u8]) -> Vec<u8> {
        let attribute = |kind: u16, value: &[u8]| {
            let length = u16::try_from(4 + value.len()).expect("short");
            let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
            bytes.extend_from_slice(value);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes
        };
        // IFLA_VLAN_PROTOCOL, IFLA_VLAN_ID
        let data = [
            attribute(5, &protocol.to_be_bytes()),
            attribute(1, &101_u16.to_ne_bytes()),
        ];
        // IFLA_INFO_KIND, IFLA_INFO_DATA
        let info = [attribute(1, b"vlan\0"), attribute(2, &data.concat())].concat();
        // `struct ifinfomsg`: Ethernet, and up
        let mut bytes = vec![0, 0, 1, 0];
        for number in [34_u32, 1, 0] {
            bytes.extend_from_slice(&number.to_ne_bytes());
        }
        // IFLA_IFNAME, IFLA_LINK, IFLA_LINKINFO
        bytes.extend(attribute(3, b"eth0.101\0"));
        bytes.extend(attribute(5, &2_u32.to_ne_bytes()));
        bytes.extend(attribute(18, &info));
        bytes.extend_from_slice(further);
        bytes
    }

    fn vlan_in(said: &[u8]) -> Option<Vlan> {
        use netlink_packet_core::Parseable as _;
        let link = LinkMessage::parse(said).expect("what the kernel says");
        let interface = interface_of(&link);
        assert_eq!((&interface.name[..], interface.index), ("eth0.101", 34));
        assert!(interface.is_up);
        interface.vlan
    }

    #[test]
    fn a_vlan_is_known_with_its_number_and_what_it_is_of() {
        let vlan = |of| Vlan { of, number: 101 };
        assert_eq!(vlan_in(&said(0x8100, &[])), Some(vlan(2)));
        // IFLA_LINK_NETNSID: number 2 is another one here.
        let elsewhere = [8, 0, 37, 0, 0, 0, 0, 0];
        assert_eq!(vlan_in(&said(0x8100, &elsewhere)), Some(vlan(0)));
        // The plane does not know the tags of 802.1ad.
        assert_eq!(vlan_in(&said(0x88a8, &[])), None);
    }
}

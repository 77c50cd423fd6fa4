//! The network interfaces of a namespace, and word of their changes, as the kernel tells them (netlink). The
//! namespace is the one that this was made in, wherever its thread is later. Judges nothing.
use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage, LinkXdp};
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
    /// Numbers of the XDP programs attached to it.
    pub programs: Vec<u32>,
    /// Its IP addresses.
    pub addresses: Vec<IpAddr>,
}

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

fn interface_of(link: &LinkMessage) -> Interface {
    let mut interface = Interface {
        index: link.header.index,
        is_up: link.header.flags.contains(LinkFlags::Up),
        ..Interface::default()
    };
    for attribute in &link.attributes {
        match attribute {
            LinkAttribute::IfName(name) => interface.name.clone_from(name),
            LinkAttribute::Address(mac) => {
                interface.mac = mac[..].try_into().unwrap_or_default();
            }
            LinkAttribute::Mtu(mtu) => interface.mtu = *mtu,
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

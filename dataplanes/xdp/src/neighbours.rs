//! Ethernet addresses of neighbours, as the system knows them. For replicas behind a router it knows none:
//! theirs are learnt from their packets.
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use std::io;
use std::net::IpAddr;

/// Longest answer to one question.
const ANSWER_BYTES_MAX: usize = 4096;

/// Asks the system; it answers at once.
pub struct Neighbours {
    socket: Socket,
    interface: u32,
}

impl Neighbours {
    /// Of the namespace this is called in.
    pub fn of(interface: u32) -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket, interface })
    }

    /// The Ethernet address of an IP address; `None` while the system does not know it.
    pub fn mac_of(&self, ip: IpAddr) -> Option<[u8; 6]> {
        self.ask(ip).ok().flatten()
    }

    /// Has the system find out where an IP address is, or whether it still is where it was. Behind a router
    /// it finds nothing.
    pub fn seek(&self, ip: IpAddr) {
        let mut used = self.message_about(ip);
        used.header.flags = NeighbourFlags::Use;
        let flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK;
        // Nothing depends on what it answers; but it must not be taken for the answer to the next question.
        let _ = self.exchange(RouteNetlinkMessage::NewNeighbour(used), flags);
    }

    fn ask(&self, ip: IpAddr) -> io::Result<Option<[u8; 6]>> {
        let question = RouteNetlinkMessage::GetNeighbour(self.message_about(ip));
        let NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewNeighbour(found)) =
            self.exchange(question, NLM_F_REQUEST)?.payload
        else {
            return Ok(None);
        };
        Ok(mac_in(&found))
    }

    fn message_about(&self, ip: IpAddr) -> NeighbourMessage {
        let mut question = NeighbourMessage::default();
        question.header.ifindex = self.interface;
        let address = match ip {
            IpAddr::V4(ip) => {
                question.header.family = AddressFamily::Inet;
                NeighbourAddress::Inet(ip)
            }
            IpAddr::V6(ip) => {
                question.header.family = AddressFamily::Inet6;
                NeighbourAddress::Inet6(ip)
            }
        };
        question
            .attributes
            .push(NeighbourAttribute::Destination(address));
        question
    }

    fn exchange(
        &self,
        said: RouteNetlinkMessage,
        flags: u16,
    ) -> io::Result<NetlinkMessage<RouteNetlinkMessage>> {
        let mut header = NetlinkHeader::default();
        header.flags = flags;
        let payload = NetlinkPayload::from(said);
        let mut message = NetlinkMessage::new(header, payload);
        message.finalize();
        let mut bytes = vec![0; message.header.length as usize];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        let mut answer = Vec::with_capacity(ANSWER_BYTES_MAX);
        let length = self.socket.recv(&mut answer, 0)?;
        NetlinkMessage::deserialize(&answer[..length]).map_err(io::Error::other)
    }
}

fn mac_in(found: &NeighbourMessage) -> Option<[u8; 6]> {
    let is_known = matches!(
        found.header.state,
        NeighbourState::Reachable
            | NeighbourState::Stale
            | NeighbourState::Delay
            | NeighbourState::Probe
            | NeighbourState::Permanent
    );
    if !is_known {
        return None;
    }
    found.attributes.iter().find_map(|attribute| {
        let NeighbourAttribute::LinkLayerAddress(mac) = attribute else {
            return None;
        };
        mac[..].try_into().ok()
    })
}

//! What a server has to know of this kind of plane.
use crate::{COUNTERS, Options, SocketPlane, endpoint_at, window_max};
use quorumwire_plane_door::{
    KindOptions, NotOpened, OpenPlane, OpenPlanes, PlaneKind, PlaneSetup, address_at,
};
use rustix::thread::CapabilitySet;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, AsRawFd as _};

/// A plane on a UDP socket.
pub static KIND: PlaneKind = PlaneKind {
    name: "socket",
    help: "in the fast path's step, over UDP",
    runs_on_loopback: true,
    options: &[],
    check: |_| Ok(()),
    open,
    capabilities: CapabilitySet::empty,
    descriptors_max: DESCRIPTORS_MAX,
    counters: &COUNTERS,
    remains: None,
    hand_complaints_to: |_| {},
    other_end: None,
    boxes: None,
};

/// Its socket, and the one by which it answers memcached clients.
const DESCRIPTORS_MAX: usize = 2;

fn open(kind_options: &KindOptions<'_>, setup: PlaneSetup) -> Result<OpenPlanes, NotOpened> {
    let (ring_slots, advertised) = (setup.ring_slots, setup.advertised);
    let groups = setup.numbered();
    let mut datagrams = setup.datagrams;
    let mut open_one = |listen: SocketAddr, number: u16, group| -> io::Result<OpenPlane> {
        let options = Options {
            group,
            ring_slots,
            window: window_max(1).min(ring_slots),
        };
        let mut plane = SocketPlane::bind(listen, options)?;
        if let Some(memcached) = datagrams.take() {
            plane.serve_memcached(memcached);
        }
        let advertised = advertised.map(|first| address_at(first, number));
        Ok(OpenPlane {
            endpoint: endpoint_at(advertised.unwrap_or(plane.local_address()?)),
            wakes: plane.as_fd().as_raw_fd(),
            plane: Box::new(plane),
        })
    };
    let mut planes = Vec::new();
    for (number, group) in groups {
        let listen = address_at(kind_options.listen, number);
        let opened = open_one(listen, number, group).map_err(|error| NotOpened {
            option: "listen-plane".to_owned(),
            text: format!("cannot listen on {listen}: {error}"),
        })?;
        planes.push(opened);
    }
    Ok(OpenPlanes { planes, runs: None })
}

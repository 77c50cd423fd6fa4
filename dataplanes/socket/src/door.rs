//! What a server has to know of this kind of plane.
use crate::{COUNTERS, Options, SocketPlane, endpoint_at, window_max};
use quorumwire_plane_door::{Asked, NotOpened, Opened, Opening, PlaneKind};
use rustix::thread::CapabilitySet;
use std::io;
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
};

/// Its socket, and the one by which it answers memcached clients.
const DESCRIPTORS_MAX: usize = 2;

fn open(asked: &Asked<'_>, opening: Opening) -> Result<Opened, NotOpened> {
    let listen = asked.listen;
    let options = Options {
        group: opening.group,
        ring_slots: opening.ring_slots,
        window: window_max(1).min(opening.ring_slots),
    };
    let opened = || -> io::Result<Opened> {
        let mut plane = SocketPlane::bind(listen, options)?;
        if let Some(memcached) = opening.datagrams {
            plane.serve_memcached(memcached);
        }
        Ok(Opened {
            endpoint: endpoint_at(opening.advertised.unwrap_or(plane.local_address()?)),
            wakes: plane.as_fd().as_raw_fd(),
            runs: None,
            plane: Box::new(plane),
        })
    };
    opened().map_err(|error| NotOpened {
        option: "listen-plane".to_owned(),
        text: format!("cannot listen on {listen}: {error}"),
    })
}

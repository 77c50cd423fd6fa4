//! What a server has to know of this kind of plane.
use crate::network::AtInterface;
use crate::{COUNTERS, FpgaPlane};
use quorumwire_fastpath::{Options, endpoint_at, window_max};
use quorumwire_interfaces::PlaneError;
use quorumwire_plane_door::{
    KindOptions, NotOpened, OpenPlane, OpenPlanes, PlaneKind, PlaneSetup, address_at,
};
use rustix::thread::CapabilitySet;
use std::io;
use std::net::SocketAddr;

/// A plane in the simulated core.
pub static KIND: PlaneKind = PlaneKind {
    name: "fpga-sim",
    help: "in the core in gates (dataplanes/fpga), simulated: for tests of the core, far slower than any other; needs root or CAP_NET_RAW",
    runs_on_loopback: false,
    options: &[],
    check: |_| Ok(()),
    open,
    capabilities: || CapabilitySet::NET_RAW,
    descriptors_max: DESCRIPTORS_MAX,
    counters: &COUNTERS,
    remains: None,
    hand_complaints_to: |_| {},
    other_end: None,
    boxes: None,
};

/// Its packet socket, and the one by which its host's datagrams leave.
const DESCRIPTORS_MAX: usize = 2;

/// Each group has a card of its own.
fn open(kind_options: &KindOptions<'_>, setup: PlaneSetup) -> Result<OpenPlanes, NotOpened> {
    let (ring_slots, advertised) = (setup.ring_slots, setup.advertised);
    let (mut planes, mut runs) = (Vec::new(), None);
    for (number, group) in (0..).zip(setup.groups) {
        let listen = address_at(kind_options.listen, number);
        let options = Options {
            group,
            ring_slots,
            window: window_max(1).min(ring_slots),
        };
        let opened = open_one(
            listen,
            options,
            advertised.map(|first| address_at(first, number)),
        );
        let (plane, described) = opened.map_err(|error| NotOpened {
            option: format!("{}: {listen}", kind_options.listen_option),
            text: error.to_string(),
        })?;
        runs.get_or_insert(described);
        planes.push(plane);
    }
    Ok(OpenPlanes { planes, runs })
}

fn open_one(
    listen: SocketAddr,
    options: Options,
    advertised: Option<SocketAddr>,
) -> io::Result<(OpenPlane, String)> {
    let network = AtInterface::open(listen)?;
    let (own, wakes) = (network.local_address()?, network.wakes());
    let described = network.described();
    let refused = |error: PlaneError| io::Error::other(error.to_string());
    let plane = FpgaPlane::new(own, options, network).map_err(refused)?;
    let opened = OpenPlane {
        endpoint: endpoint_at(advertised.unwrap_or(own)),
        wakes,
        plane: Box::new(plane),
    };
    Ok((opened, described))
}

//! Opens the data plane that the options ask for; for `auto`, the fastest that can run here. A plane that cannot
//! be is refused with the option that stands in its way.
use super::earlier_plane::{EarlierPlaneOff, note_in};
use super::plane::{Hosting, Opened, Plane, plane_options};
use super::{GROUP, TOKEN_PLANE};
use crate::options::{Durability, PlaneKind, ServerOptions, copies_word, mode_word};
use crate::report::{DataPlaneReport, RefusedPlaneReport};
use anyhow::Context as _;
use mio::unix::SourceFd;
use mio::{Interest, Registry};
use quorumwire_interfaces::PlaneKeyPair;
use quorumwire_plane_socket::{SocketPlane, endpoint_at};
use quorumwire_plane_xdp::{Blames, Refused, XdpPlane};
use std::net::UdpSocket;
use std::os::fd::{AsFd as _, AsRawFd as _, RawFd};

/// What a data plane holds.
const PLANE_OPTIONS: quorumwire_plane_socket::Options = quorumwire_plane_socket::Options {
    group: GROUP,
    ring_slots: 16 << 10,
    window: quorumwire_plane_socket::window_max(1),
};

/// A data plane that can be asked for by name.
#[derive(Clone, Copy)]
enum Candidate {
    Xdp,
    Socket,
}

/// What `auto` tries, the fastest first. A slower way to run one of them belongs here, behind the faster one.
const AUTO: [Candidate; 2] = [Candidate::Xdp, Candidate::Socket];

impl Candidate {
    /// As options and status call it.
    const fn name(self) -> &'static str {
        match self {
            Self::Xdp => "xdp",
            Self::Socket => "socket",
        }
    }

    /// Bound, off, without keys; and what wakes its host. It answers memcached clients from `udp`.
    fn open(
        self,
        options: &ServerOptions,
        udp: Option<UdpSocket>,
    ) -> anyhow::Result<(Opened, RawFd)> {
        let listen = options.listen_plane;
        match self {
            Self::Xdp => {
                let interface = options.interface.as_deref();
                let (how, note) = (options.xdp, note_in(&options.dir));
                let mut kernel =
                    XdpPlane::attach_noted(listen, interface, PLANE_OPTIONS, how, note)
                        .map_err(|refused| blamed(options, &refused))?;
                tracing::info!("the plane xdp runs {}", kernel.described());
                if let Some(udp) = udp {
                    let served = kernel.serve_memcached(udp);
                    served.map_err(|refused| blamed(options, &refused))?;
                }
                if let Some(queue) = options.xdp_queue {
                    let steered = kernel.steer(queue);
                    steered.map_err(|refused| blamed(options, &refused))?;
                }
                let bound = kernel.local_address()?;
                let descriptor = kernel.as_fd().as_raw_fd();
                let runs = Some(kernel.described().to_owned());
                let place = Box::new(kernel);
                Ok((Opened { place, bound, runs }, descriptor))
            }
            Self::Socket => {
                let mut socket = SocketPlane::bind(listen, PLANE_OPTIONS)
                    .with_context(|| format!("option listen-plane: cannot listen on {listen}"))?;
                if let Some(udp) = udp {
                    socket.serve_memcached(udp);
                }
                let bound = socket.local_address()?;
                let descriptor = socket.as_fd().as_raw_fd();
                let place = Box::new(socket);
                let runs = None;
                Ok((Opened { place, bound, runs }, descriptor))
            }
        }
    }
}

/// Says which option has to be another one.
fn blamed(options: &ServerOptions, refused: &Refused) -> anyhow::Error {
    let option = match (refused.blames, &options.interface) {
        (Blames::Interface, Some(name)) => format!("interface: {name}"),
        (Blames::Address, _) | (Blames::Interface, None) => {
            format!("listen-plane: {}", options.listen_plane)
        }
        (Blames::Queue, _) => match options.xdp_queue {
            Some(queue) => format!("xdp-queue: {queue}"),
            None => "xdp-queue".to_owned(),
        },
        (Blames::Mode, _) => format!("xdp-mode: {}", mode_word(options.xdp.mode)),
        (Blames::Copies, _) => format!("xdp-copies: {}", copies_word(options.xdp.copies)),
        (Blames::Multicast, _) => match options.xdp.multicast {
            Some(group) => format!("xdp-multicast: {group}"),
            None => "xdp-multicast".to_owned(),
        },
        (Blames::System, _) => "plane: xdp cannot run here".to_owned(),
    };
    anyhow::anyhow!("option {option}: {refused}")
}

/// The data plane that was asked for, bound and with its keys: those between replicas are `agreed`, or else the
/// secret file's. It answers memcached clients from `udp`. Earlier ones are off.
pub fn choose_plane(
    options: &ServerOptions,
    registry: &Registry,
    udp: Option<&UdpSocket>,
    agreed: Option<PlaneKeyPair>,
    _: &EarlierPlaneOff,
) -> anyhow::Result<Option<(Plane, Hosting)>> {
    let (candidates, chosen_by) = match options.plane {
        PlaneKind::None => return Ok(None),
        PlaneKind::Socket => (&[Candidate::Socket][..], "option"),
        PlaneKind::Xdp => (&[Candidate::Xdp][..], "option"),
        PlaneKind::Auto => (&AUTO[..], "auto"),
    };
    let mut refused: Vec<RefusedPlaneReport> = Vec::new();
    for candidate in candidates {
        let name = candidate.name();
        let udp = udp.map(UdpSocket::try_clone).transpose()?;
        let (opened, descriptor) = match candidate.open(options, udp) {
            Ok(opened) => opened,
            Err(error) if candidates.len() == 1 => return Err(error),
            Err(error) => {
                let why = format!("{error:#}");
                refused.push(RefusedPlaneReport {
                    name: name.to_owned(),
                    why,
                });
                continue;
            }
        };
        let wakes = Interest::READABLE | Interest::WRITABLE;
        registry.register(&mut SourceFd(&descriptor), TOKEN_PLANE, wakes)?;
        let choice = DataPlaneReport {
            name: name.to_owned(),
            runs: opened.runs,
            chosen_by: chosen_by.to_owned(),
            refused,
        };
        if options.plane == PlaneKind::Auto {
            tracing::info!("option plane: {}", choice.in_words());
        }
        let endpoint = endpoint_at(options.plane_address(opened.bound));
        let held = options.durability == Durability::Sync;
        let first_sequence = super::start::random_number()?;
        let plane_options = plane_options(GROUP, endpoint.clone(), held, first_sequence);
        let mut plane = Plane::new(opened.place, plane_options);
        let mut hosting = Hosting::new(name, endpoint);
        hosting.choice = Some(choice);
        if let Some(agreed) = agreed {
            hosting.agree(&mut plane, agreed);
        }
        hosting.set_keys(&mut plane, &options.load_keys()?);
        return Ok(Some((plane, hosting)));
    }
    let reasons = refused
        .iter()
        .map(|one| format!("{}: {}", one.name, one.why));
    let reasons: Vec<String> = reasons.collect();
    anyhow::bail!(
        "option plane: auto finds none that can run here: {}",
        reasons.join("; ")
    )
}

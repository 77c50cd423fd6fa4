//! Opens the data plane that the options ask for; for `auto`, the fastest that can run here. A plane that
//! cannot be is refused with the option that stands in its way.
use super::earlier_plane::{EarlierPlaneOff, note_in};
use super::plane::{Hosting, Plane, plane_options};
use super::{GROUP, TOKEN_PLANE};
use crate::options::{Durability, ServerOptions};
use crate::planes::{Opened, Opening, PlaneChoice, PlaneKind};
use crate::report::{DataPlaneReport, RefusedPlaneReport};
use mio::unix::SourceFd;
use mio::{Interest, Registry};
use quorumwire_interfaces::PlaneKeyPair;
use std::net::UdpSocket;

/// Entries that a data plane's ring holds.
const RING_SLOTS: u32 = 16 << 10;

/// One of this kind, bound, off, without keys. It answers memcached clients from `udp`.
fn open(
    kind: &PlaneKind,
    options: &ServerOptions,
    udp: Option<UdpSocket>,
) -> anyhow::Result<Opened> {
    let opening = Opening {
        group: GROUP,
        ring_slots: RING_SLOTS,
        advertised: options.advertise_plane,
        datagrams: udp,
        note: note_in(&options.dir),
    };
    let opened = (kind.open)(&options.asked_of(kind), opening)?;
    if let Some(runs) = &opened.runs {
        let name = kind.name;
        tracing::info!("the plane {name} runs {runs}");
    }
    Ok(opened)
}

/// The data plane that was asked for, bound and with its keys: those between replicas are `agreed`, or else
/// the secret file's. It answers memcached clients from `udp`. Earlier ones are off.
pub fn choose_plane(
    options: &ServerOptions,
    registry: &Registry,
    udp: Option<&UdpSocket>,
    agreed: Option<PlaneKeyPair>,
    _: &EarlierPlaneOff,
) -> anyhow::Result<Option<(Plane, Hosting)>> {
    let (alone, chosen_by) = match options.plane {
        PlaneChoice::None => return Ok(None),
        PlaneChoice::One(_) => (true, "option"),
        PlaneChoice::Auto => (false, "auto"),
    };
    let mut refused: Vec<RefusedPlaneReport> = Vec::new();
    for kind in options.plane.candidates() {
        let name = kind.name;
        let udp = udp.map(UdpSocket::try_clone).transpose()?;
        let opened = match open(kind, options, udp) {
            Ok(opened) => opened,
            Err(error) if alone => return Err(error),
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
        registry.register(&mut SourceFd(&opened.wakes), TOKEN_PLANE, wakes)?;
        let choice = DataPlaneReport {
            name: name.to_owned(),
            runs: opened.runs,
            chosen_by: chosen_by.to_owned(),
            refused,
        };
        if !alone {
            tracing::info!("option plane: {}", choice.in_words());
        }
        let held = options.durability == Durability::Sync;
        let first_sequence = super::start::random_number()?;
        let plane_options = plane_options(GROUP, opened.endpoint.clone(), held, first_sequence);
        let mut plane = Plane::new(opened.plane, plane_options);
        let mut hosting = Hosting::new(name, opened.endpoint);
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

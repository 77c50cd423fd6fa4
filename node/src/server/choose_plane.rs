//! Opens the data plane that the options ask for; for `auto`, the fastest that can run here. A plane that
//! cannot be is refused with the option that stands in its way.
use super::TOKEN_PLANE;
use super::earlier_plane::{EarlierPlaneOff, note_in};
use super::plane::{Hosting, Plane, plane_options};
use super::random::random_number;
use crate::options::{Durability, ServerOptions};
use crate::planes::{OpenPlanes, PlaneChoice, PlaneKind, PlaneSetup};
use crate::report::{DataPlaneReport, PlaneChooser, RefusedPlaneReport};
use mio::unix::SourceFd;
use mio::{Interest, Registry};
use quorumwire_interfaces::{GroupId, PlaneKeyPair};
use std::net::UdpSocket;

/// Entries that a data plane's ring holds.
const RING_SLOTS: u32 = 16 << 10;

/// Those of this kind, bound, off, without keys. The first may answer clients of the service from `udp`.
fn open(
    kind: &PlaneKind,
    options: &ServerOptions,
    groups: &[GroupId],
    udp: Option<UdpSocket>,
) -> anyhow::Result<OpenPlanes> {
    let setup = PlaneSetup {
        groups: groups.to_vec(),
        ring_slots: RING_SLOTS,
        advertised: options.advertise_plane,
        datagrams: udp,
        note: note_in(&options.dir),
    };
    let opened = (kind.open)(&options.options_of(kind), setup)?;
    if let Some(runs) = &opened.runs {
        let name = kind.name;
        tracing::info!("the plane {name} runs {runs}");
    }
    Ok(opened)
}

/// The data planes that were asked for, one for each of these groups or none at all, bound and with their
/// keys: those between replicas are `agreed`, or else the secret file's. The first may answer clients of the
/// service from `udp`; `work_of` tells what a command is in work at most. Earlier ones are off.
pub fn choose_plane(
    options: &ServerOptions,
    groups: &[GroupId],
    registry: &Registry,
    udp: Option<&UdpSocket>,
    agreed: &[PlaneKeyPair],
    work_of: fn(&[u8]) -> usize,
    _: &EarlierPlaneOff,
) -> anyhow::Result<Vec<(Plane, Hosting)>> {
    let (alone, chosen_by) = match options.plane {
        PlaneChoice::None => return Ok(Vec::new()),
        PlaneChoice::One(_) => (true, PlaneChooser::Option),
        PlaneChoice::Auto => (false, PlaneChooser::Auto),
    };
    let mut refused: Vec<RefusedPlaneReport> = Vec::new();
    for kind in options.plane.candidates() {
        let name = kind.name;
        let udp = udp.map(UdpSocket::try_clone).transpose()?;
        let opened = match open(kind, options, groups, udp) {
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
        let choice = DataPlaneReport {
            name: name.to_owned(),
            runs: opened.runs,
            chosen_by: chosen_by.clone(),
            refused,
        };
        if !alone {
            tracing::info!("option plane: {}", choice.in_words());
        }
        let held = options.durability == Durability::Sync;
        let keys = options.load_keys()?;
        let mut planes = Vec::new();
        for (place, (group, opened)) in groups.iter().zip(opened.planes).enumerate() {
            let wakes = Interest::READABLE | Interest::WRITABLE;
            registry.register(&mut SourceFd(&opened.wakes), TOKEN_PLANE, wakes)?;
            let first_sequence = random_number()?;
            let endpoint = opened.endpoint.clone();
            let plane_options = plane_options(*group, endpoint, held, first_sequence, work_of);
            let mut plane = Plane::new(opened.plane, plane_options);
            let mut hosting = Hosting::new(name, opened.endpoint);
            hosting.choice = Some(choice.clone());
            if let Some(agreed) = agreed.get(place) {
                hosting.agree(&mut plane, *agreed);
            }
            hosting.set_keys(&mut plane, &keys);
            planes.push((plane, hosting));
        }
        return Ok(planes);
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

//! The programs that planes of several groups share: one attachment to each network interface.
use crate::interface::{InterfaceChoice, PlaneInterfaces};
use crate::links::Links;
use crate::load::{Attachment, Programs, Sizes};
use crate::refused::{Blames, Refused};
use crate::shared::GROUPS_MAX;
use crate::{Options, XdpPlane};
use quorumwire_fastpath::RING_SLOTS_MAX;
use quorumwire_plane_door::{Note, noted_nowhere};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// What planes of several groups run on: of each interface the programs that are attached now.
pub struct Shared {
    /// The interface's name; `None`: the one that has a plane's address.
    pub name: Option<String>,
    pub sizes: Sizes,
    pub how: Attachment,
    /// Told before a program is attached.
    pub note: Arc<Note>,
    /// Most often of one interface. Of several while planes move from one to the other.
    all: Mutex<Vec<Weak<Programs>>>,
}

impl Shared {
    pub fn new(name: Option<&str>, sizes: Sizes, how: Attachment, note: Arc<Note>) -> Self {
        Self {
            name: name.map(str::to_owned),
            sizes,
            how,
            note,
            all: Mutex::new(Vec::new()),
        }
    }

    /// The programs at an interface: those that a neighbour has loaded, or new ones.
    pub fn programs_at(
        &self,
        to: &PlaneInterfaces,
        blames: Blames,
    ) -> Result<Arc<Programs>, Refused> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|one| one.strong_count() > 0);
        for one in all.iter().filter_map(Weak::upgrade) {
            if one.found.carrier.index != to.carrier.index {
                continue;
            }
            if one.found.is_same(to) && one.are_attached() {
                return Ok(one);
            }
            // Whoever still has these finds that they are of no use, and comes here, too.
            one.detach();
        }
        let programs = Programs::attach(to, self.sizes, (self.how, &*self.note), blames)?;
        let programs = Arc::new(programs);
        all.push(Arc::downgrade(&programs));
        Ok(programs)
    }
}

/// A network interface whose programs serve several groups. They are attached as long as this lives, or a
/// plane on it.
#[derive(Clone)]
pub struct XdpInterface {
    shared: Arc<Shared>,
    _programs: Arc<Programs>,
}

impl XdpInterface {
    /// Loads the programs for at most so many groups, with `ring_slots` for each, and attaches them to the
    /// interface of this name, or to the one that has the address. An error names what is missing.
    pub fn open(
        address: IpAddr,
        name: Option<&str>,
        groups: u32,
        ring_slots: u32,
        how: Attachment,
    ) -> Result<Self, Refused> {
        if groups == 0 || groups as usize > GROUPS_MAX {
            let text = format!("{groups} groups at one interface; allowed: 1 to {GROUPS_MAX}");
            return Err(Refused::new(Blames::System, text));
        }
        if !ring_slots.is_power_of_two() || ring_slots > RING_SLOTS_MAX {
            let text = format!(
                "ring_slots: {ring_slots}; allowed: a power of two, at most {RING_SLOTS_MAX}"
            );
            return Err(Refused::new(Blames::System, text));
        }
        let wanted = InterfaceChoice::new(address, name, how.vlan);
        let links = Links::new()?;
        let found = wanted.find_usable(&links.all()?, &links)?;
        let sizes = Sizes {
            groups,
            ring_slots,
            window: 0,
        };
        let shared = Arc::new(Shared::new(name, sizes, how, noted_nowhere()));
        let programs = shared.programs_at(&found, wanted.blames())?;
        Ok(Self {
            shared,
            _programs: programs,
        })
    }

    /// A plane of one more group, that is off. Its port must be no other group's here, and `ring_slots` what
    /// the interface was opened with. Must be polled in the network namespace that this is called in, by any
    /// thread.
    pub fn plane(&self, address: SocketAddr, options: Options) -> Result<XdpPlane, Refused> {
        let ring_slots = self.shared.sizes.ring_slots;
        if options.ring_slots != ring_slots {
            let text = format!(
                "ring_slots: {}; allowed: {ring_slots}, as the interface was opened with",
                options.ring_slots
            );
            return Err(Refused::new(Blames::System, text));
        }
        XdpPlane::on(&self.shared, address, options)
    }
}

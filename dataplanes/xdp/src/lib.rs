//! The common case in the kernel's receive path: a program attached to a network interface takes the steps
//! (`bpf/`), this is its host. What the program leaves to software comes to a UDP socket of the same address;
//! what the host has to say leaves through it.
mod copies;
mod ffi;
mod load;
mod neighbours;
mod place;
mod shared;

use libbpf_rs::{RingBuffer, RingBufferBuilder};
use load::Programs;
pub use load::{Attachment, XdpCopies, XdpMode, let_pass, stop_passing};
use place::KernelPlace;
use quorumwire_datagrams::{Datagrams, Incoming};
pub use quorumwire_fastpath::Options;
use quorumwire_fastpath::{Engine, Keys, shown};
use quorumwire_interfaces::{
    Answer, Command, DataPlane, Grant, Index, Limits, PLANE_REPLICAS_MAX, PlaneError, PlaneEvent,
    PlaneKeys, Registers,
};
use quorumwire_wire::packet::Reason;
use rustix::event::epoll;
use shared::{COUNTS, EVENT_ANSWER, EVENT_ANSWER_REST, EVENT_BEHIND, EVENT_RESEND, Event, KeysAt};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Frames that a device's ring holds at least: those of veth devices. What a leader has on its way to all others
/// must fit, or a burst loses some.
const DEVICE_FRAMES: u32 = 256;
/// Events taken in at once; the kernel's queue holds no more than some 2,000.
const EVENTS_MAX: usize = 4096;

/// A data plane in the kernel.
pub struct XdpPlane {
    engine: Engine<KernelPlace>,
    programs: Programs,
    wire: Datagrams,
    incoming: Incoming,
    waiting: RingBuffer<'static>,
    events: Arc<Mutex<Vec<Event>>>,
    /// Readable when the socket is, or when the program has something to tell.
    wakes: OwnedFd,
    group_slot: u32,
    /// The largest that was asked for.
    window: u32,
    more: bool,
    failed: Option<&'static str>,
    /// By the host: the program stops by itself only if something broke.
    engaged: bool,
    /// Copies done and ordered at the last heartbeat.
    copies_seen: (u64, u64),
    /// Keeps this host a member of the multicast group.
    _hears: Option<UdpSocket>,
}

impl XdpPlane {
    /// A plane that is off, attached to the interface of this name, or to the one that has the address. An
    /// error names what is missing.
    pub fn attach(
        address: SocketAddr,
        interface: Option<&str>,
        options: Options,
        how: Attachment,
    ) -> io::Result<Self> {
        let interface = interface_for(address, interface)?;
        let wire = Datagrams::bind(address)?;
        let address = wire.local_address()?;
        let hears = how
            .multicast
            .map(|group| hear(address, group))
            .transpose()?;
        let programs = Programs::attach(&interface, address, options.ring_slots, how)?;
        let place = programs.place(0, options.ring_slots)?;
        let engine = Engine::within(options, |_| Ok(place)).map_err(|error| match error {
            PlaneError::Refused(text) => io::Error::new(io::ErrorKind::InvalidInput, text),
            other => io::Error::other(format!("{other:?}")),
        })?;
        let events = Arc::new(Mutex::new(Vec::new()));
        let waiting = events_of(&programs, &events)?;
        Ok(Self {
            engine,
            programs,
            incoming: Incoming::default(),
            wakes: wakes_of(&wire, &waiting)?,
            wire,
            waiting,
            events,
            group_slot: 0,
            window: options.window,
            more: false,
            failed: None,
            engaged: false,
            copies_seen: (0, 0),
            _hears: hears,
        })
    }

    /// Where it listens.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.wire.local_address()
    }

    /// Answers memcached clients from this socket, which does not block.
    pub fn serve_memcached(&mut self, socket: UdpSocket) {
        self.wire.serve_memcached(socket);
    }

    /// Where the program runs, and why there, for people.
    #[must_use]
    pub fn described(&self) -> &str {
        &self.programs.described
    }

    /// Fences that had to wait for the kernel's grace period.
    #[must_use]
    pub fn slow_fences(&self) -> u64 {
        self.engine.place().slow_fences()
    }

    /// Takes in what the program tells the host.
    fn take_events(&mut self, sink: &mut dyn FnMut(PlaneEvent<'_>)) {
        if self.waiting.consume().is_err() {
            self.failed = Some("the kernel's events cannot be read");
        }
        let events = std::mem::take(&mut *self.events.lock().expect("nobody panics with it"));
        for event in events {
            match event.kind {
                EVENT_BEHIND => {
                    if let Ok(slot) = u8::try_from(event.slot) {
                        sink(PlaneEvent::Behind(slot));
                    }
                }
                EVENT_RESEND => {
                    if let Ok(slot) = u8::try_from(event.slot) {
                        self.engine.resend(slot, event.from, &mut self.wire);
                    }
                }
                EVENT_ANSWER | EVENT_ANSWER_REST => self.answer_range(&event),
                _ => {} // it only wakes
            }
        }
        self.wire.flush();
    }

    /// Answers blind writes that the program has committed and not answered.
    fn answer_range(&mut self, event: &Event) {
        for index in event.from..=event.upto {
            let left = match self.engine.place().head(index) {
                Some(head) => event.kind == EVENT_ANSWER || place::is_left_to_host(&head),
                None => false,
            };
            if left {
                self.engine.answer_blind_one(index, &mut self.wire);
            }
        }
    }

    /// If copies were ordered since the last heartbeat and none was made, their way works no more.
    fn look_after_copies(&mut self) {
        let (done, ordered) = self.engine.place().copies();
        let (done_before, ordered_before) = self.copies_seen;
        if ordered > ordered_before && done == done_before {
            self.programs.copies.try_again();
        }
        self.copies_seen = (done, ordered);
    }

    fn check(&self) -> Result<(), PlaneError> {
        self.failed
            .map_or(Ok(()), |text| Err(PlaneError::Failed(text)))
    }
}

fn events_of(
    programs: &Programs,
    into: &Arc<Mutex<Vec<Event>>>,
) -> io::Result<RingBuffer<'static>> {
    let into = Arc::clone(into);
    let mut builder = RingBufferBuilder::new();
    let refused = |error: libbpf_rs::Error| io::Error::other(error.to_string());
    builder
        .add(&programs.events, move |bytes: &[u8]| {
            let mut events = into.lock().expect("nobody panics with it");
            if let Some(event) = ffi::value_of(bytes)
                && events.len() < EVENTS_MAX
            {
                events.push(event);
            }
            0
        })
        .map_err(refused)?;
    builder.build().map_err(refused)
}

fn wakes_of(wire: &Datagrams, waiting: &RingBuffer<'_>) -> io::Result<OwnedFd> {
    let wakes = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let readable = epoll::EventFlags::IN;
    epoll::add(&wakes, wire.as_fd(), epoll::EventData::new_u64(0), readable)?;
    let waiting = ffi::borrowed(waiting);
    epoll::add(&wakes, waiting, epoll::EventData::new_u64(1), readable)?;
    Ok(wakes)
}

/// Makes this host a member of a multicast group, so that its frames come in: the device lets them through, and
/// switches that look learn of it. The program takes them; nothing comes to this socket.
fn hear(address: SocketAddr, group: Ipv4Addr) -> io::Result<UdpSocket> {
    let IpAddr::V4(own) = address.ip() else {
        let text = "the multicast address is one of IPv4, the plane's is not";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    };
    let socket = UdpSocket::bind((own, 0))?;
    socket.join_multicast_v4(&group, &own).map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("cannot join the multicast group {group}: {error}"),
        )
    })?;
    Ok(socket)
}

/// The interface of this name, or the one that has the address, if the plane can run there.
fn interface_for(address: SocketAddr, name: Option<&str>) -> io::Result<ffi::Interface> {
    let missing = name.map_or_else(
        || format!("no interface has the address {}", address.ip()),
        |name| format!("there is no interface {name}"),
    );
    let is_wanted = |one: &ffi::Interface| match name {
        Some(name) => one.name == name,
        None => one.addresses.contains(&address.ip()),
    };
    let found = load::find_interface(is_wanted, &missing)?;
    let refused = |text: String| io::Error::new(io::ErrorKind::InvalidInput, text);
    if !found.addresses.contains(&address.ip()) {
        return Err(refused(format!(
            "interface {} does not have the address {}; it has: {:?}",
            found.name,
            address.ip(),
            found.addresses
        )));
    }
    if found.mac == [0; 6] {
        return Err(refused(format!(
            "interface {} has no Ethernet address; the plane needs an Ethernet interface",
            found.name
        )));
    }
    Ok(found)
}

impl AsFd for XdpPlane {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wakes.as_fd()
    }
}

impl DataPlane for XdpPlane {
    fn limits(&self) -> Limits {
        self.engine.limits()
    }

    fn set_keys(&mut self, keys: &PlaneKeys) {
        let at = KeysAt {
            keys: Keys::from(keys),
            sign_cluster: keys.cluster.epoch % 2,
            sign_clients: keys.clients.epoch % 2,
        };
        if self.programs.set_keys(self.group_slot, &at).is_err() {
            self.failed = Some("the kernel did not take the keys");
        }
        self.engine.set_keys(keys);
    }

    fn set_peer(&mut self, slot: u8, address: SocketAddr) {
        if self
            .programs
            .set_peer(self.group_slot, slot, address)
            .is_err()
        {
            self.failed = Some("the kernel did not take a replica's address");
        }
        self.engine.set_peer(slot, address);
    }

    /// What the program and the host count alike is one number.
    fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        let reasons = Reason::ALL.map(Reason::name);
        let names = reasons.into_iter().chain(COUNTS);
        let mut kernels: Vec<_> = (0..)
            .zip(names)
            .map(|(number, name)| (name, self.programs.counter(number)))
            .collect();
        self.engine.counters().each(&mut |name, count| {
            let place = kernels.iter().position(|(other, _)| *other == name);
            let kernels_count = place.map_or(0, |place| kernels.swap_remove(place).1);
            sink(name, count + kernels_count);
        });
        for (name, count) in kernels {
            if name != Reason::None.name() {
                sink(name, count);
            }
        }
        let (trials, failed) = self.programs.copies.trials();
        sink("copy_trials", trials);
        sink("copy_trials_failed", failed);
        self.wire.counters().each(sink);
    }

    fn engage(&mut self, grant: &Grant) -> Result<(), PlaneError> {
        self.check()?;
        if self.engine.is_engaged() {
            return Err(PlaneError::Engaged);
        }
        // More than these the engine refuses.
        for (slot, peer) in (0_u8..).zip(grant.peers.iter().take(PLANE_REPLICAS_MAX)) {
            if self
                .programs
                .set_peer(self.group_slot, slot, peer.address)
                .is_err()
            {
                return Err(PlaneError::Failed(
                    "the kernel did not take a replica's address",
                ));
            }
        }
        let others = u32::try_from(grant.peers.len())
            .unwrap_or(1)
            .saturating_sub(1);
        let window = DEVICE_FRAMES / others.max(1);
        self.engine.set_window(window.min(self.window));
        // What the program told of an earlier term is of no use in this one.
        if self.waiting.consume().is_err() {
            return Err(PlaneError::Failed("the kernel's events cannot be read"));
        }
        self.events.lock().expect("nobody panics with it").clear();
        // Only a leader sends one frame as several.
        if grant.me == grant.leader {
            if !self.programs.copies.are_possible() {
                return Err(PlaneError::Failed(
                    "one frame can be sent as several neither by the driver nor behind it",
                ));
            }
            self.programs.copies.try_again();
        }
        self.engine.engage(grant)?;
        self.engaged = true;
        Ok(())
    }

    fn disengage(&mut self) -> Registers {
        self.engaged = false;
        self.engine.disengage()
    }

    fn registers(&self) -> Registers {
        shown(&self.engine.place().look())
    }

    fn submit(&mut self, commands: &[Command<'_>]) -> Result<(Index, usize), PlaneError> {
        self.check()?;
        let taken = self.engine.submit(commands, &mut self.wire);
        self.wire.flush();
        taken
    }

    fn take_memcached(&mut self, from: SocketAddr, datagram: &[u8]) -> bool {
        let serves = self.wire.serves_memcached();
        let taken = serves && self.engine.take_memcached(from, datagram, &mut self.wire);
        self.wire.flush();
        taken
    }

    fn heartbeat(&mut self, round: u64) -> Result<(), PlaneError> {
        self.check()?;
        self.look_after_copies();
        let begun = self.engine.heartbeat(round, &mut self.wire);
        self.wire.flush();
        begun
    }

    fn poll(&mut self, budget: usize, sink: &mut dyn FnMut(PlaneEvent<'_>)) -> usize {
        let mut events = 0;
        let mut counted = |event: PlaneEvent<'_>| {
            events += 1;
            sink(event);
        };
        // In this order: what wakes the host after it has begun to look is still there when it sleeps.
        self.take_events(&mut counted);
        self.engine.place().about_to_look();
        let engine = &mut self.engine;
        let mut take = |from, datagram: &[u8], _: &mut Datagrams| {
            engine.receive_passed(from, datagram, &mut counted);
        };
        self.more = self.incoming.receive(&mut self.wire, budget, &mut take);
        self.engine.refresh();
        if self.engaged && !self.engine.is_engaged() {
            self.failed = Some("the program stopped by itself: an entry did not get into the ring");
        }
        self.engine.take(&mut counted);
        events
    }

    fn persisted(&mut self, upto: Index) -> Result<(), PlaneError> {
        self.check()?;
        let done = self.engine.persisted(upto, &mut self.wire);
        self.wire.flush();
        done
    }

    fn release(&mut self, upto: Index) -> Result<(), PlaneError> {
        self.engine.release(upto)
    }

    fn answer(&mut self, answer: &Answer<'_>) {
        self.engine.answer(answer, &mut self.wire);
        self.wire.flush();
    }

    fn poll_again_within(&self) -> Option<Duration> {
        self.more.then_some(Duration::ZERO)
    }
}

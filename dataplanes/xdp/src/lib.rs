//! The common case in the kernel's receive path: a program attached to a network interface takes the steps
//! (`bpf/`), this is its host. What the program leaves to software comes to a UDP socket of the same address;
//! what the host has to say leaves through it.
mod attached;
mod clock;
mod complaints;
mod copies;
mod door;
mod ffi;
mod groups;
mod interface;
mod kernel_box;
mod kernel_registers;
mod links;
mod load;
mod mutants;
mod neighbours;
mod orders;
mod recent;
mod refused;
// Programs use all of it, the host what it needs.
#[allow(dead_code, clippy::pedantic)]
#[rustfmt::skip]
#[path = "generated/shared.rs"]
mod shared;
mod slot;
mod steer;

use crate::copies::TrialCounters;
pub use attached::{Note, ProgramAt, how_to_detach, still_attached, wait_for_all_programs};
use clock::KernelsClock;
pub use complaints::take_complaints;
pub use door::KIND;
use groups::Shared;
pub use groups::XdpInterface;
use interface::{InterfaceChoice, PlaneInterfaces, State, Watch};
pub use kernel_box::KernelBox;
use kernel_registers::KernelRegisters;
use libbpf_rs::{RingBuffer, RingBufferBuilder};
use load::Sizes;
pub use load::{Attachment, VLAN_MAX, XdpCopies, XdpLock, XdpMode, let_pass, stop_passing};
use mutants::mutant;
use quorumwire_datagrams::{Datagrams, Incoming, SocketCounters};
pub use quorumwire_fastpath::Options;
use quorumwire_fastpath::{
    Counters, Engine, Outbox as _, RECENT_TEXT_BYTES_MAX, ReasonCounters, RegisterStore,
    address_of, address_of_peer, shown,
};
use quorumwire_interfaces::{
    Answer, Command, Counter, CounterSink, DataPlane, Endpoint, Grant, Index, Leave, Limits,
    Offload, PLANE_REPLICAS_MAX, PlaneError, PlaneEvent, PlaneKeys, Registers,
};
use quorumwire_plane_door::noted_nowhere;
use quorumwire_wire::packet::PacketReason;
use recent::Recent;
pub use refused::{Blames, Refused, capabilities_needed};
use rustix::event::epoll;
use shared::{
    COUNT_EVENTS_LOST, COUNTERS_OF_PROGRAMS, COUNTS, EVENT_KIND_ANSWER, EVENT_KIND_ANSWER_REST,
    EVENT_KIND_BEHIND, EVENT_KIND_RESEND, Event,
};
use slot::Slot;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use steer::Steering;

/// What the program does without anybody waiting for the host, the host finds this late at most.
const LOOK_AGAIN_WITHIN: Duration = Duration::from_millis(5);
/// After so many looks in vain the host looks no more until it is woken.
const IDLE_POLLS: u32 = 10;
/// Events taken in at once; the kernel's queue holds no more than some 2,000.
const EVENTS_MAX: usize = 4096;

/// A data plane in the kernel.
pub struct XdpPlane {
    engine: Engine<KernelRegisters>,
    /// What it shares with planes of other groups.
    shared: Arc<Shared>,
    /// What is its own of that.
    slot: Slot,
    recent: Recent,
    wire: Datagrams,
    incoming: Incoming,
    waiting: RingBuffer<'static>,
    events: Arc<Mutex<Events>>,
    /// Readable when the socket is, or when the program has something to tell.
    wakes: OwnedFd,
    more: bool,
    /// Polls that brought nothing, one behind the other.
    idle_polls: u32,
    /// The answers to a round wake the host.
    expects_round: bool,
    watch: Watch,
    state: State,
    /// For programs that are loaded anew.
    keys: Option<PlaneKeys>,
    memcached_port: Option<u16>,
    /// By which its packets are to come.
    queue: Option<u32>,
    steered: Option<Steering>,
    /// What programs counted that are gone.
    counted_before: Vec<u64>,
    failed: Option<&'static str>,
    /// By the host: the program stops by itself only if something broke.
    engaged: bool,
    /// Copies done and ordered at the last heartbeat.
    copies_seen: (u64, u64),
    /// Keeps this host a member of the multicast group.
    member: Option<UdpSocket>,
}

impl XdpPlane {
    /// A plane that is off, attached to the interface of this name, or to the one that has the address. The
    /// address may be another interface's if packets are tagged. An error names what is missing. Must be
    /// polled in the network namespace that this is called in.
    pub fn attach(
        address: SocketAddr,
        interface: Option<&str>,
        options: Options,
        how: Attachment,
    ) -> Result<Self, Refused> {
        Self::attach_noted(address, interface, options, how, noted_nowhere())
    }

    /// The same; where its program is going to be attached is noted before it is, now and whenever it moves.
    pub fn attach_noted(
        address: SocketAddr,
        interface: Option<&str>,
        options: Options,
        how: Attachment,
        note: Arc<Note>,
    ) -> Result<Self, Refused> {
        let sizes = Sizes {
            groups: 1,
            ring_slots: options.ring_slots,
            window: 0,
        };
        let shared = Shared::new(interface, sizes, how, note);
        Self::on(&Arc::new(shared), address, options)
    }

    /// A plane beside others, or alone.
    fn on(shared: &Arc<Shared>, address: SocketAddr, options: Options) -> Result<Self, Refused> {
        let wanted = InterfaceChoice::new(address.ip(), shared.name.as_deref(), shared.how.vlan);
        let watch = Watch::new(wanted)?;
        let wire = Datagrams::bind(address).map_err(|error| {
            Refused::new(Blames::Address, format!("cannot listen there: {error}"))
        })?;
        let address = wire.local_address()?;
        let member = hear(address, shared.how)?;
        let programs = shared.programs_at(watch.found(), watch.blames())?;
        let slot = Slot::take(&programs, address)?;
        let kernel = slot.kernel_registers()?;
        let clock = KernelsClock::of(&kernel).map_err(io::Error::other)?;
        let copies_seen = kernel.copies();
        let engine = Engine::within(options, |_| Ok(kernel))
            .map_err(|error| Refused::new(Blames::System, error.to_string()))?;
        let events = Arc::new(Mutex::new(Events::default()));
        let waiting = events_of(&slot, &events)?;
        let wakes = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(io::Error::from)?;
        let mut plane = Self {
            engine,
            recent: slot.recent(clock)?,
            shared: Arc::clone(shared),
            slot,
            incoming: Incoming::default(),
            wakes,
            wire,
            waiting,
            events,
            more: false,
            idle_polls: 0,
            expects_round: false,
            watch,
            state: State::Sound,
            keys: None,
            memcached_port: None,
            queue: None,
            steered: None,
            counted_before: vec![0; PacketReason::ALL.len() + COUNTS.len()],
            failed: None,
            engaged: false,
            copies_seen,
            member,
        };
        plane.wake_for(plane.wire.as_fd())?;
        plane.wake_for(plane.watch.as_fd())?;
        plane.wake_for(ffi::borrowed(&plane.waiting))?;
        plane.look_at_interface();
        Ok(plane)
    }

    /// Where it listens.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.wire.local_address()
    }

    /// Answers memcached clients from this socket, which does not block. If it listens where the plane does,
    /// the program takes what it may before the socket does.
    pub fn serve_memcached(&mut self, socket: UdpSocket) -> Result<(), Refused> {
        let (own, theirs) = (self.wire.local_address()?, socket.local_addr()?);
        if theirs.ip().is_unspecified() || theirs.ip() == own.ip() {
            self.slot.listen(theirs.port())?;
            self.memcached_port = Some(theirs.port());
            if let Some(queue) = self.queue {
                self.steer(queue)?;
            }
        }
        self.wire.serve_memcached(socket);
        Ok(())
    }

    /// Has the network card bring the group's packets, and those of its memcached clients, by this receive
    /// queue, for as long as the plane lives. Refused where it cannot; then they come by any queue, as
    /// without this. Where they come by another one all the same, that is counted. In the namespace of
    /// [`attach`](Self::attach).
    pub fn steer(&mut self, queue: u32) -> Result<(), Refused> {
        self.steer_at(&self.slot.programs().found.carrier.clone(), queue)?;
        self.queue = Some(queue);
        self.slot.set_queue(queue);
        Ok(())
    }

    fn steer_at(&mut self, interface: &links::Interface, queue: u32) -> Result<(), Refused> {
        let own = self.wire.local_address()?;
        let ports = [Some(own.port()), self.memcached_port];
        let ports: Vec<u16> = ports.into_iter().flatten().collect();
        // First, or it would take the new rules for its own.
        self.steered = None;
        self.steered = Some(Steering::new(interface, own.ip(), &ports, queue)?);
        Ok(())
    }

    /// Where the program runs, and why there, for people.
    #[must_use]
    pub fn described(&self) -> &str {
        &self.slot.programs().described
    }

    /// Fences that had to wait for the kernel's grace period.
    #[must_use]
    pub fn slow_fences(&self) -> u64 {
        self.engine.register_store().slow_fences()
    }

    fn told(&self) -> MutexGuard<'_, Events> {
        self.events.lock().expect("nobody panics with it")
    }

    /// Takes in what the program tells the host.
    fn take_events(&mut self, sink: &mut dyn FnMut(PlaneEvent<'_>)) {
        if self.waiting.consume().is_err() {
            self.failed = Some("the kernel's events cannot be read");
        }
        let events = std::mem::take(&mut self.told().queue);
        if !events.is_empty() {
            // What is said because of them says how far the plane was when it told of them, or later.
            self.engine.refresh();
        }
        for event in events {
            match event.kind {
                EVENT_KIND_BEHIND => {
                    if let Ok(slot) = u8::try_from(event.slot) {
                        sink(PlaneEvent::Behind(slot));
                    }
                }
                EVENT_KIND_RESEND => {
                    if let Ok(slot) = u8::try_from(event.slot) {
                        self.engine
                            .resend(slot, event.from..=u64::MAX, &mut self.wire);
                    }
                }
                EVENT_KIND_ANSWER | EVENT_KIND_ANSWER_REST => self.answer_range(&event),
                _ => {} // it only wakes
            }
        }
        self.wire.flush();
    }

    /// Answers blind writes that the program has committed and not answered.
    fn answer_range(&mut self, event: &Event) {
        for index in event.from..=event.upto {
            let left = match self.engine.register_store().head(index) {
                Some(head) => event.kind == EVENT_KIND_ANSWER || head.is_left_to_host(),
                None => false,
            };
            if left {
                self.engine.answer_blind_one(index, &mut self.wire);
            }
        }
    }

    fn check(&self) -> Result<(), PlaneError> {
        match self.fault() {
            Some(text) => Err(PlaneError::Failed(text.to_owned().into())),
            None => Ok(()),
        }
    }

    fn wake_for(&self, source: BorrowedFd<'_>) -> io::Result<()> {
        let readable = epoll::EventFlags::IN;
        let nobody = epoll::EventData::new_u64(0); // who wakes is found by looking
        Ok(epoll::add(&self.wakes, source, nobody, readable)?)
    }

    /// Looks how the interface is, and attaches anew if there is one to attach to.
    fn look_at_interface(&mut self) {
        let (state, found) = self.watch.look(self.slot.programs().are_attached());
        self.state = state;
        let Some(found) = found.filter(|_| !self.engaged && self.engine.may_move()) else {
            return;
        };
        match self.attach_anew(&found) {
            Ok(()) => {
                self.watch.moved(found);
                self.state = self.watch.look(self.slot.programs().are_attached()).0;
            }
            Err(refused) => self.state = State::Lost(refused.text),
        }
    }

    /// Has the programs loaded anew for an interface, unless a neighbour has done so, and goes on there, off
    /// as before.
    fn attach_anew(&mut self, to: &PlaneInterfaces) -> Result<(), Refused> {
        let address = self.wire.local_address()?;
        self.member = hear(address, self.shared.how)?;
        let programs = self.shared.programs_at(to, self.watch.blames())?;
        let slot = Slot::take(&programs, address)?;
        let mut registers = slot.kernel_registers()?;
        registers
            .go_on_from(RegisterStore::registers(self.engine.register_store()))
            .map_err(io::Error::other)?;
        let waiting = events_of(&slot, &self.events)?;
        self.wake_for(ffi::borrowed(&waiting))?;
        let clock = KernelsClock::of(&registers).map_err(io::Error::other)?;
        let recent = slot.recent(clock)?;
        if let Some(port) = self.memcached_port {
            slot.listen(port)?;
        }
        if let Some(queue) = self.queue {
            self.steer_at(&to.carrier, queue)?;
            slot.set_queue(queue);
        }
        for (before, (_, count)) in self.counted_before.iter_mut().zip(self.slot.counters()) {
            *before += count;
        }
        self.recent = recent;
        self.copies_seen = registers.copies();
        self.engine.move_to(registers);
        self.waiting = waiting;
        self.slot = slot;
        if let Some(keys) = self.keys {
            self.set_keys(&keys);
        }
        Ok(())
    }
}

/// What the program has told and nobody has taken in.
#[derive(Default)]
struct Events {
    queue: Vec<Event>,
    /// More than there is room for. Counted with those that the program could not tell.
    lost: u64,
}

fn events_of(slot: &Slot, into: &Arc<Mutex<Events>>) -> io::Result<RingBuffer<'static>> {
    let into = Arc::clone(into);
    let mut builder = RingBufferBuilder::new();
    let refused = |error: libbpf_rs::Error| io::Error::other(error.to_string());
    builder
        .add(&slot.events, move |bytes: &[u8]| {
            let mut events = into.lock().expect("nobody panics with it");
            match ffi::value_of(bytes) {
                Some(event) if events.queue.len() < EVENTS_MAX => events.queue.push(event),
                _ => events.lost += 1,
            }
            0
        })
        .map_err(refused)?;
    builder.build().map_err(refused)
}

/// Makes this host a member of the multicast group, if there is one, so that its frames come in: the device
/// lets them through, and switches that look learn of it. The program takes them; nothing comes to this
/// socket.
fn hear(address: SocketAddr, how: Attachment) -> Result<Option<UdpSocket>, Refused> {
    let Some(group) = how.multicast else {
        return Ok(None);
    };
    let IpAddr::V4(own) = address.ip() else {
        let text = "the multicast address is one of IPv4, the plane's is not";
        return Err(Refused::new(Blames::Multicast, text));
    };
    let joined = || -> io::Result<UdpSocket> {
        let socket = UdpSocket::bind((own, 0))?;
        socket.join_multicast_v4(&group, &own)?;
        Ok(socket)
    };
    let text = |error| format!("cannot join the multicast group {group} at {own}: {error}");
    joined()
        .map(Some)
        .map_err(|error| Refused::new(Blames::Multicast, text(error)))
}

impl AsFd for XdpPlane {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wakes.as_fd()
    }
}

/// For memcached clients. A question is the key of a `get` that names no other.
impl Offload for XdpPlane {
    fn take_datagram(&mut self, from: SocketAddr, datagram: &[u8]) -> bool {
        let serves = self.wire.serves_memcached() && self.fault().is_none();
        let taken = serves && self.engine.take_memcached(from, datagram, &mut self.wire);
        self.wire.flush();
        taken
    }

    fn allow(&mut self, leave: &Leave) {
        if self.engaged {
            self.recent.allow(leave);
        }
    }

    fn answer_bytes_max(&self) -> usize {
        RECENT_TEXT_BYTES_MAX
    }

    fn keep_answer(&mut self, question: &[u8], answer: Option<&[u8]>) {
        self.recent.keep(question, answer);
    }

    fn forget_answers(&mut self) {
        self.recent.forget_all();
    }
}

/// All that this plane counts.
pub const COUNTERS: [&[Counter]; 5] = [
    Counters::DECLARED,
    ReasonCounters::DECLARED,
    COUNTERS_OF_PROGRAMS,
    TrialCounters::DECLARED,
    SocketCounters::DECLARED,
];

impl DataPlane for XdpPlane {
    fn can_reach(&self, endpoint: &Endpoint) -> bool {
        address_of(endpoint).is_some()
    }

    fn limits(&self) -> Limits {
        self.engine.limits()
    }

    fn set_keys(&mut self, keys: &PlaneKeys) {
        if self.slot.set_keys(keys).is_err() {
            self.failed = Some("the kernel did not take the keys");
        }
        self.engine.set_keys(keys);
        self.keys = Some(*keys);
    }

    fn set_peer(&mut self, slot: u8, endpoint: &Endpoint) {
        let Some(address) = address_of(endpoint) else {
            return;
        };
        if self.slot.set_peer(slot, address).is_err() {
            self.failed = Some("the kernel did not take a replica's address");
        }
        self.engine.set_peer(slot, endpoint);
    }

    /// What the program and the host count alike is one number.
    fn counters(&self, sink: CounterSink<'_>) {
        let kernels = self.slot.counters().zip(&self.counted_before);
        let kernels: BTreeMap<_, _> = kernels
            .map(|((name, count), before)| (name, before + count))
            .collect();
        let of_kernel = |counter: &Counter| kernels.get(counter.name).copied().unwrap_or(0);
        self.engine
            .counters()
            .each_and_reasons(&mut |counter, count| sink(counter, count + of_kernel(counter)));
        for counter in COUNTERS_OF_PROGRAMS {
            let here = match counter.name {
                COUNT_EVENTS_LOST => self.told().lost,
                _ => 0,
            };
            sink(counter, here + of_kernel(counter));
        }
        self.slot.programs().copies.trials().each(sink);
        self.wire.counters().each(sink);
    }

    fn engage(&mut self, grant: &Grant) -> Result<(), PlaneError> {
        if self.engine.is_engaged() {
            return Err(PlaneError::Engaged);
        }
        // Not every reason is one of which the kernel tells when it has passed, or when it comes.
        let is_sound = matches!(self.state, State::Sound) && self.slot.programs().are_attached();
        if self.watch.is_due() || !is_sound {
            self.look_at_interface();
        }
        self.check()?;
        // More than these the engine refuses.
        for (slot, peer) in (0_u8..).zip(grant.peers.iter().take(PLANE_REPLICAS_MAX)) {
            if self.slot.set_peer(slot, address_of_peer(peer)).is_err() {
                let text = "the kernel did not take a replica's address";
                return Err(PlaneError::Failed(text.into()));
            }
        }
        // What the program told of an earlier term is of no use in this one.
        if self.waiting.consume().is_err() {
            let text = "the kernel's events cannot be read";
            return Err(PlaneError::Failed(text.into()));
        }
        self.told().queue.clear();
        self.recent.allow(&Leave::default());
        self.recent.forget_all();
        // Only a leader sends one frame as several.
        if grant.me == grant.leader {
            let copies = &self.slot.programs().copies;
            if !copies.are_possible() {
                let text = "one frame can be sent as several neither by the driver nor behind it";
                return Err(PlaneError::Failed(text.into()));
            }
            copies.try_again();
        }
        self.engine.engage(grant)?;
        self.engaged = true;
        Ok(())
    }

    fn disengage(&mut self) -> Registers {
        self.engaged = false;
        let registers = self.engine.disengage();
        self.recent.allow(&Leave::default());
        registers
    }

    fn registers(&self) -> Registers {
        shown(&self.engine.register_store().look())
    }

    fn submit(&mut self, commands: &[Command<'_>]) -> Result<(Index, usize), PlaneError> {
        self.check()?;
        let taken = self.engine.submit(commands, &mut self.wire);
        self.wire.flush();
        taken
    }

    fn offload(&mut self) -> Option<&mut dyn Offload> {
        Some(self)
    }

    fn heartbeat(&mut self, round: u64) -> Result<(), PlaneError> {
        self.check()?;
        let copies = self.engine.register_store().copies();
        let programs = self.slot.programs();
        programs.copies.look_after(copies, &mut self.copies_seen);
        let awaited_round = if self.expects_round { round } else { 0 };
        self.engine.register_store().awaits_round(awaited_round);
        let begun = self.engine.heartbeat(round, &mut self.wire);
        self.wire.flush();
        begun
    }

    fn expects_round(&mut self, expected: bool) {
        self.expects_round = expected;
    }

    fn poll(&mut self, budget: usize, sink: &mut dyn FnMut(PlaneEvent<'_>)) -> usize {
        let mut events = 0;
        let mut counted = |event: PlaneEvent<'_>| {
            events += 1;
            sink(event);
        };
        if self.watch.is_due() {
            self.look_at_interface();
        }
        // In this order: what wakes the host after it has begun to look is still there when it sleeps.
        self.take_events(&mut counted);
        self.engine
            .register_store()
            .about_to_look(self.idle_polls >= IDLE_POLLS);
        let engine = &mut self.engine;
        let mut take = |from, datagram: &[u8], _: &mut Datagrams| {
            engine.receive_passed(from, datagram, &mut counted);
        };
        self.more = self.incoming.receive(&mut self.wire, budget, &mut take);
        self.engine.refresh();
        let broken = self.engine.register_store().is_broken() && !mutant("xdp-stops");
        if self.engaged && (broken || !self.engine.is_engaged()) {
            self.failed = Some("the program stopped by itself: an entry did not get into the ring");
        }
        self.engine.take(&mut counted);
        self.engine
            .register_store()
            .has_seen(self.engine.indexes().0.0);
        self.idle_polls = if events > 0 {
            0
        } else {
            self.idle_polls.saturating_add(1)
        };
        events
    }

    fn persisted(&mut self, upto: Index) -> Result<(), PlaneError> {
        self.check()?;
        let done = self.engine.persisted(upto, &mut self.wire);
        self.wire.flush();
        done
    }

    fn release(&mut self, upto: Index) -> Result<(), PlaneError> {
        self.check()?;
        self.engine.release(upto)
    }

    fn answer(&mut self, answer: &Answer<'_>) {
        self.engine.answer(answer, &mut self.wire);
        self.wire.flush();
    }

    fn send_foreign(&mut self, to: SocketAddr, bytes: &[u8]) {
        self.wire.send(to, bytes);
        self.wire.flush();
    }

    fn fault(&self) -> Option<&str> {
        match (&self.failed, &self.state) {
            (Some(text), _) => Some(text),
            (None, State::Unfit(text) | State::Lost(text)) => Some(text),
            (None, State::Sound) => None,
        }
    }

    fn poll_again_within(&self) -> Option<Duration> {
        if self.more {
            return Some(Duration::ZERO);
        }
        (self.engaged && self.idle_polls <= IDLE_POLLS).then_some(LOOK_AGAIN_WITHIN)
    }
}

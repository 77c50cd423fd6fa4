//! The data plane around a simulated card: hands it frames, does what it leaves to its host.
use crate::card::Card;
use crate::counters::Counted;
use crate::frame::{FRAME_BYTES_MAX, Network, datagram_in};
use crate::shared::LEFT_MAX;
use crate::store::CardRegisters;
use quorumwire_fastpath::shared::Endpoint as Place;
use quorumwire_fastpath::{Engine, Options, address_of, address_of_peer};
use quorumwire_interfaces::{
    Answer, Command, CounterSink, DataPlane, Endpoint, Grant, Index, Limits, PLANE_REPLICAS_MAX,
    PlaneError, PlaneEvent, PlaneKeys, Registers,
};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// How often the core's counters are looked at.
const COUNTS_PAUSE: Duration = Duration::from_millis(200);
/// Frames that the core gets before its host looks what is left to it: each may leave a range of entries.
const FRAMES_AT_ONCE_MAX: usize = LEFT_MAX / 2;
/// How often it is asked where a replica is that nobody knew, and where those are that were known.
const SEEK_PAUSE: Duration = Duration::from_millis(5);
const SEEK_AGAIN_PAUSE: Duration = Duration::from_millis(500);

/// A data plane in a core that is simulated.
pub struct FpgaPlane<N> {
    engine: Engine<CardRegisters>,
    network: N,
    own: SocketAddr,
    /// Replicas of the running grant, and their Ethernet addresses as the core knows them.
    peers: Vec<(SocketAddr, [u8; 6])>,
    /// Of these, this one.
    me: usize,
    /// Another one's Ethernet address is not known.
    is_unknown: bool,
    next_seek: Instant,
    failed: Option<PlaneError>,
    counted: Counted,
    next_count: Instant,
    /// The last poll ended before everything was taken in.
    more: bool,
}

impl<N: Network> FpgaPlane<N> {
    /// A plane that is off, at this address.
    ///
    /// # Errors
    /// The options are out of their ranges, or the core does not answer.
    pub fn new(own: SocketAddr, options: Options, network: N) -> Result<Self, PlaneError> {
        let engine = Engine::within(options, |options| {
            let mut card = Card::new(options.ring_slots)?;
            card.set_own(&Place::new(own, network.mac()))?;
            Ok(CardRegisters::new(card, options.ring_slots))
        })?;
        let now = Instant::now();
        Ok(Self {
            engine,
            network,
            own,
            peers: Vec::new(),
            me: 0,
            is_unknown: false,
            next_seek: now,
            failed: None,
            counted: Counted::default(),
            next_count: now,
            more: false,
        })
    }

    /// What it is connected to.
    pub fn network(&mut self) -> &mut N {
        &mut self.network
    }

    /// Network and memory take a beat of the core's in one clock of so many from now on; 1: in each.
    pub fn take_beats_in_one_clock_of(&mut self, clocks: u32) {
        self.card().take_beats_in_one_clock_of(clocks);
    }

    fn card(&mut self) -> &mut Card {
        &mut self.engine.register_store_mut().card
    }

    /// Notes what did not work; the plane is to be disengaged then.
    fn noted<T>(&mut self, done: Result<T, PlaneError>) -> Option<T> {
        match done {
            Ok(it) => Some(it),
            Err(error) => {
                self.failed.get_or_insert(error);
                None
            }
        }
    }

    fn check(&self) -> Result<(), PlaneError> {
        match &self.failed {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Tells the core where a replica is, with the Ethernet address that is known.
    fn tell_peer(&mut self, slot: u8, peer: SocketAddr) -> Result<(), PlaneError> {
        let mac = self.network.mac_of(peer.ip()).unwrap_or_default();
        if let Some(known) = self.peers.get_mut(usize::from(slot)) {
            *known = (peer, mac);
        }
        self.card().set_peer(slot, &Place::new(peer, mac))
    }

    /// Replicas may have moved to other Ethernet addresses. One that nobody knows any more is where it was.
    fn seek(&mut self) {
        let now = Instant::now();
        if now < self.next_seek {
            return;
        }
        self.is_unknown = false;
        for (slot, (peer, known)) in (0..).zip(self.peers.clone()) {
            let mac = self.network.mac_of(peer.ip()).unwrap_or(known);
            self.is_unknown |= mac == [0; 6] && usize::from(slot) != self.me;
            if mac != known {
                let told = self.tell_peer(slot, peer);
                self.noted(told);
            }
        }
        self.next_seek = now
            + if self.is_unknown {
                SEEK_PAUSE
            } else {
                SEEK_AGAIN_PAUSE
            };
    }

    /// What the core has sent leaves, and what its host has.
    fn send(&mut self) {
        let mut frame = [0; FRAME_BYTES_MAX];
        loop {
            let bytes = self.card().take(false, &mut frame);
            if bytes == 0 {
                break;
            }
            self.network.send_frame(&frame[..bytes]);
        }
        self.network.flush();
    }

    /// Frames that the core hands to its host. Those to others the system has seen, too.
    fn take_passed(&mut self, sink: &mut dyn FnMut(PlaneEvent<'_>)) {
        let mut frame = [0; FRAME_BYTES_MAX];
        loop {
            let bytes = self.card().take(true, &mut frame);
            if bytes == 0 {
                break;
            }
            let Some((from, to, datagram)) = datagram_in(&frame[..bytes]) else {
                continue;
            };
            if to == self.own {
                self.engine.receive_passed(from, datagram, sink);
            }
        }
    }

    /// What the core leaves to its host.
    fn do_what_is_left(&mut self, sink: &mut dyn FnMut(PlaneEvent<'_>)) -> Result<(), PlaneError> {
        while let Some(left) = self.card().left()? {
            if left.answers {
                for index in left.from..=left.upto {
                    self.engine.answer_blind_one(index, &mut self.network);
                }
            } else {
                self.engine
                    .resend(left.replica, left.from..=left.upto, &mut self.network);
            }
        }
        let behind = self.card().behind()?;
        for slot in (0..8).filter(|slot| behind >> slot & 1 != 0) {
            sink(PlaneEvent::Behind(slot));
        }
        Ok(())
    }

    fn look_at_counters(&mut self) {
        let now = Instant::now();
        if now >= self.next_count {
            self.next_count = now + COUNTS_PAUSE;
            self.network.look();
            let counted = Counted::of(self.card());
            if let Some(counted) = self.noted(counted) {
                self.counted = counted;
            }
        }
    }
}

impl<N: Network> DataPlane for FpgaPlane<N> {
    fn can_reach(&self, endpoint: &Endpoint) -> bool {
        address_of(endpoint).is_some_and(|it| it.is_ipv4())
    }

    fn limits(&self) -> Limits {
        self.engine.limits()
    }

    fn set_keys(&mut self, keys: &PlaneKeys) {
        let set = self.card().set_keys(keys);
        self.noted(set);
        self.engine.set_keys(keys);
    }

    fn engage(&mut self, grant: &Grant) -> Result<(), PlaneError> {
        self.check()?;
        if self.engine.is_engaged() {
            return Err(PlaneError::Engaged);
        }
        // More than these the engine refuses.
        let peers = grant.peers.iter().take(PLANE_REPLICAS_MAX);
        let peers: Vec<_> = peers.map(address_of_peer).collect();
        self.peers = peers.iter().map(|peer| (*peer, [0; 6])).collect();
        self.me = grant.me.into();
        for (slot, peer) in (0..).zip(peers) {
            self.tell_peer(slot, peer)?;
        }
        self.next_seek = Instant::now();
        self.seek();
        self.engine.engage(grant)
    }

    fn disengage(&mut self) -> Registers {
        let registers = self.engine.disengage();
        self.send();
        self.peers.clear();
        self.is_unknown = false;
        registers
    }

    fn set_peer(&mut self, slot: u8, endpoint: &Endpoint) {
        let Some(address) = address_of(endpoint) else {
            return;
        };
        if usize::from(slot) < self.peers.len() {
            let told = self.tell_peer(slot, address);
            self.noted(told);
            self.next_seek = Instant::now();
        }
        self.engine.set_peer(slot, endpoint);
    }

    /// The core moves them only within calls that look at them.
    fn registers(&self) -> Registers {
        self.engine.registers()
    }

    fn submit(&mut self, commands: &[Command<'_>]) -> Result<(Index, usize), PlaneError> {
        self.check()?;
        let taken = self.engine.submit(commands, &mut self.network);
        self.send();
        taken
    }

    fn heartbeat(&mut self, round: u64) -> Result<(), PlaneError> {
        self.check()?;
        self.seek();
        let begun = self.engine.heartbeat(round, &mut self.network);
        self.send();
        begun
    }

    fn poll(&mut self, budget: usize, sink: &mut dyn FnMut(PlaneEvent<'_>)) -> usize {
        let mut events = 0;
        let mut counted = |event: PlaneEvent<'_>| {
            events += 1;
            sink(event);
        };
        self.seek();
        let mut frame = [0; FRAME_BYTES_MAX];
        let mut left = budget;
        loop {
            let mut came = 0;
            while came < left.min(FRAMES_AT_ONCE_MAX)
                && let Some(bytes) = self.network.next_frame(&mut frame)
            {
                self.card().receive(&frame[..bytes]);
                came += 1;
            }
            left -= came;
            if came > 0 {
                let run = self.card().run();
                self.noted(run);
                self.engine.refresh();
            }
            self.take_passed(&mut counted);
            let done = self.do_what_is_left(&mut counted);
            self.noted(done);
            self.send();
            if came < FRAMES_AT_ONCE_MAX {
                break;
            }
        }
        self.more = left == 0;
        self.engine.take(&mut counted);
        self.look_at_counters();
        if let Some(error) = self.engine.register_store_mut().failed.take() {
            self.failed.get_or_insert(error);
        }
        events
    }

    fn persisted(&mut self, upto: Index) -> Result<(), PlaneError> {
        self.check()?;
        let done = self.engine.persisted(upto, &mut self.network);
        self.send();
        done
    }

    fn release(&mut self, upto: Index) -> Result<(), PlaneError> {
        self.check()?;
        self.engine.release(upto)
    }

    fn answer(&mut self, answer: &Answer<'_>) {
        self.engine.answer(answer, &mut self.network);
        self.network.flush();
    }

    fn send_foreign(&mut self, to: SocketAddr, bytes: &[u8]) {
        self.network.send(to, bytes);
        self.network.flush();
    }

    fn counters(&self, sink: CounterSink<'_>) {
        self.counted.each(self.engine.counters(), sink);
        self.network.count(sink);
    }

    fn fault(&self) -> Option<&str> {
        match &self.failed {
            Some(PlaneError::Failed(text)) => Some(text),
            Some(_) => Some("the core does not do what its host orders"),
            None => None,
        }
    }

    fn poll_again_within(&self) -> Option<Duration> {
        if self.more {
            return Some(Duration::ZERO);
        }
        self.is_unknown.then_some(SEEK_PAUSE)
    }
}

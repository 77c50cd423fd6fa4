//! The deployment as a whole: time, the network, and which faults strike whom.
use super::checks::Checks;
use super::nodes::{self, Checkpoint, Kept, LearnerPlace, Out, address, node_at};
use super::plan::{Node, Plan};
use crate::queue::{MICROSECOND, MILLISECOND, Nanos, Queue};
use crate::random::{Random, mix};
use quorumwire_fastpath::PaxosEngine;
use quorumwire_paxos::{Fate, Ignored, Noted, Turn, Values};
use quorumwire_paxos_hosts::{AcceptorHost, CoordinatorHost, Happened};
use quorumwire_wire::PaxosRecord;
use quorumwire_wire::packet::{HEADER_BYTES, Header, PacketReason};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

mod faults;

/// How often a host looks at the time.
const TICK: Nanos = 2 * MILLISECOND;
/// The shortest that a packet takes.
const DELAY_MIN: Nanos = 20 * MICROSECOND;

/// What is to happen.
enum Event {
    Arrive {
        to: Node,
        from: Node,
        datagram: Rc<[u8]>,
    },
    /// Of a host in this life of it.
    Tick(Node, u32),
    /// A disk has written up to this.
    Written {
        acceptor: u8,
        life: u32,
        upto: u64,
    },
    Strike(usize),
    Over(usize),
    Submit(u8),
}

/// With a bit that is another one.
fn garbled(datagram: &[u8], random: &mut Random) -> Rc<[u8]> {
    let mut other = datagram.to_vec();
    if let Some(byte) = usize::try_from(random.below(datagram.len() as u64))
        .ok()
        .and_then(|at| other.get_mut(at))
    {
        *byte ^= 1 << random.below(8);
    }
    other.into()
}

/// A place where a host runs, or does not.
pub(super) struct Place<H> {
    pub(super) host: Option<H>,
    /// How often it has started.
    starts: u32,
}

impl<H> Default for Place<H> {
    fn default() -> Self {
        Self {
            host: None,
            starts: 0,
        }
    }
}

pub(super) struct World {
    pub(super) plan: Plan,
    random: Random,
    pub(super) now: Nanos,
    queue: Queue<Event>,
    pub(super) coordinators: Vec<Place<CoordinatorHost>>,
    /// Behind those of the deployment one that has the number of one of them, if there is such a twin.
    acceptors: Vec<Place<AcceptorHost>>,
    /// Of an acceptor: what is on its disk.
    disks: Vec<Kept>,
    /// Of an acceptor in memory: its last life.
    lives: Vec<u64>,
    pub(super) learners: Vec<Place<LearnerPlace>>,
    pub(super) checkpoints: Vec<Checkpoint>,
    /// Of a learner: its application keeps nothing.
    keeps_nothing: BTreeSet<u8>,
    submitted: Vec<u64>,
    next_number: u64,
    /// The operator has declared values lost.
    declared_lost: bool,
    /// Values of which nobody knows what became: their proposer was killed, or their session forgotten.
    pub(super) unknown: usize,
    cut: BTreeMap<Node, u32>,
    parted: BTreeMap<(Node, Node), u32>,
    /// The second one does not hear the first one.
    deaf: BTreeMap<(Node, Node), u32>,
    garbled: u64,
    /// These stand still until then.
    paused: BTreeMap<Node, Nanos>,
    lost: u64,
    slow_disk: Nanos,
    pub(super) checks: Checks,
    pub(super) seen: BTreeMap<&'static str, u64>,
    pub(super) events: u64,
    pub(super) hash: u64,
    pub(super) trace: Vec<String>,
    loud: bool,
}

impl World {
    pub(super) fn new(plan: Plan, loud: bool) -> Self {
        let deployment = plan.settings.deployment;
        let nothing = Checkpoint {
            kept: 0,
            values: Values::default().to_bytes(),
        };
        let learners = usize::from(deployment.learners);
        let acceptors =
            usize::from(deployment.acceptors) + usize::from(plan.settings.twin_of.is_some());
        let checks = Checks::new(deployment.acceptors);
        let mut world = Self {
            random: Random::new(plan.settings.seed),
            now: 0,
            queue: Queue::default(),
            coordinators: (0..deployment.coordinators)
                .map(|_| Place::default())
                .collect(),
            acceptors: (0..acceptors).map(|_| Place::default()).collect(),
            disks: (0..acceptors).map(|_| Kept::default()).collect(),
            lives: vec![0; usize::from(deployment.acceptors)],
            learners: (0..deployment.learners).map(|_| Place::default()).collect(),
            checkpoints: vec![nothing; learners],
            keeps_nothing: BTreeSet::new(),
            submitted: vec![0; learners],
            next_number: 1,
            declared_lost: false,
            unknown: 0,
            cut: BTreeMap::new(),
            parted: BTreeMap::new(),
            deaf: BTreeMap::new(),
            garbled: 0,
            paused: BTreeMap::new(),
            lost: 0,
            slow_disk: 0,
            checks,
            seen: BTreeMap::new(),
            events: 0,
            hash: plan.settings.seed,
            trace: Vec::new(),
            loud,
            plan,
        };
        world.begin();
        world
    }

    fn begin(&mut self) {
        let deployment = self.plan.settings.deployment;
        for me in 0..deployment.acceptors {
            let host = nodes::acceptor(&self.plan.settings, me, &Kept::default());
            self.place_acceptor(me, host);
        }
        if let Some(of) = self.plan.settings.twin_of {
            let host = nodes::twin(&self.plan.settings, of);
            self.place_acceptor(deployment.acceptors, host);
        }
        for me in 0..deployment.coordinators {
            self.start(Node::Coordinator(me));
        }
        for me in 0..deployment.learners {
            self.start(Node::Learner(me));
            self.queue.set(0, Event::Submit(me));
        }
        for number in 0..self.plan.faults.len() {
            let at = self.plan.faults[number].at;
            self.queue.set(at, Event::Strike(number));
        }
    }

    pub(super) fn see(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    pub(super) fn say(&mut self, what: impl FnOnce() -> String) {
        if self.loud {
            let micros = self.now / MICROSECOND;
            let line = format!("{:>6}.{:03} ms  {}", micros / 1000, micros % 1000, what());
            self.trace.push(line);
        }
    }

    fn time(&self) -> Duration {
        Duration::from_nanos(self.now)
    }

    /// Lives until then, unless something is found wrong.
    pub(super) fn run_until(&mut self, end: Nanos) {
        while self.checks.violation.is_none() {
            match self.queue.take() {
                Some((at, event)) if at <= end => {
                    self.now = at;
                    self.events += 1;
                    self.hash = mix(self.hash ^ at);
                    self.happen(event);
                }
                Some((at, event)) => {
                    self.queue.set(at, event);
                    break;
                }
                None => break,
            }
        }
        self.now = self.now.max(end);
    }

    /// Until when whom this is about stands still.
    fn stands_still(&self, event: &Event) -> Option<Nanos> {
        let node = match event {
            Event::Arrive { to, .. } => *to,
            Event::Tick(node, _) => *node,
            Event::Written { acceptor, .. } => Node::Acceptor(*acceptor),
            Event::Strike(_) | Event::Over(_) | Event::Submit(_) => return None,
        };
        let until = self.paused.get(&node).copied();
        until.filter(|until| *until > self.now)
    }

    fn happen(&mut self, event: Event) {
        if let Some(until) = self.stands_still(&event) {
            self.see("stood still");
            return self.queue.set(until, event);
        }
        match event {
            Event::Arrive { to, from, datagram } => self.arrive(to, from, &datagram),
            Event::Tick(node, life) if self.starts(node) == life => self.tick(node, life),
            Event::Tick(..) => {}
            Event::Written {
                acceptor,
                life,
                upto,
            } => self.written(acceptor, life, upto),
            Event::Strike(number) => self.strike(number),
            Event::Over(number) => self.over(number),
            Event::Submit(learner) => self.submit(learner),
        }
    }

    fn starts(&self, node: Node) -> u32 {
        match node {
            Node::Coordinator(me) => self.coordinators[usize::from(me)].starts,
            Node::Acceptor(me) => self.acceptors[usize::from(me)].starts,
            Node::Learner(me) => self.learners[usize::from(me)].starts,
        }
    }

    fn runs(&self, node: Node) -> bool {
        match node {
            Node::Coordinator(me) => self.coordinators[usize::from(me)].host.is_some(),
            Node::Acceptor(me) => self.acceptors[usize::from(me)].host.is_some(),
            Node::Learner(me) => self.learners[usize::from(me)].host.is_some(),
        }
    }

    fn place_acceptor(&mut self, me: u8, host: AcceptorHost) {
        let place = &mut self.acceptors[usize::from(me)];
        place.host = Some(host);
        place.starts += 1;
        let starts = place.starts;
        self.queue
            .set(self.now, Event::Tick(Node::Acceptor(me), starts));
    }

    /// Starts a host that does not run.
    pub(super) fn start(&mut self, node: Node) {
        if self.runs(node) {
            return;
        }
        self.say(|| format!("{node:?} starts"));
        let seed = self.random.next();
        let settings = &self.plan.settings;
        let life = match node {
            Node::Coordinator(me) => {
                let host = nodes::coordinator(settings, me, self.now, seed);
                let place = &mut self.coordinators[usize::from(me)];
                place.host = Some(host);
                place.starts += 1;
                place.starts
            }
            Node::Acceptor(me) if settings.is_durable => {
                let host = nodes::acceptor(settings, me, &self.disks[usize::from(me)]);
                self.see("acceptor goes on from its disk");
                return self.place_acceptor(me, host);
            }
            Node::Acceptor(me) => {
                let life = &mut self.lives[usize::from(me)];
                *life += 1;
                let host = nodes::newcomer(settings, me, *life);
                return self.place_acceptor(me, host);
            }
            Node::Learner(me) => {
                let checkpoint = &self.checkpoints[usize::from(me)];
                let host = LearnerPlace::start(settings, me, checkpoint, seed);
                let place = &mut self.learners[usize::from(me)];
                place.host = Some(host);
                place.starts += 1;
                place.starts
            }
        };
        self.queue.set(self.now, Event::Tick(node, life));
    }

    pub(super) fn all_submitted(&self) -> bool {
        self.submitted
            .iter()
            .all(|it| *it >= self.plan.settings.values)
    }

    /// Those that others know.
    pub(super) fn acceptors(&self) -> &[Place<AcceptorHost>] {
        &self.acceptors[..usize::from(self.plan.settings.deployment.acceptors)]
    }

    // The network.

    /// What a host wants done is done.
    fn post(&mut self, from: Node, out: Out) {
        self.send(from, out.sent);
        for (number, record) in out.keep {
            self.write(from, number, record);
        }
        for happened in out.happened {
            self.happened(from, &happened);
        }
    }

    fn send(&mut self, from: Node, datagrams: Vec<(SocketAddr, Vec<u8>)>) {
        let mut seen: Option<Vec<u8>> = None;
        for (to, datagram) in datagrams {
            let Some(to) = node_at(to) else { continue };
            // One packet for many is one vote.
            if seen.as_ref() != Some(&datagram) {
                if let Some(head) = datagram.first_chunk::<HEADER_BYTES>() {
                    self.checks.on_vote(&Header::decode(head));
                }
                seen = Some(datagram.clone());
            }
            let copies = 1 + u64::from(self.random.permille(self.plan.settings.repeated));
            let datagram: Rc<[u8]> = datagram.into();
            for _ in 0..copies {
                if self.random.permille(self.lost) {
                    self.see("packet lost");
                    continue;
                }
                let delay = self
                    .random
                    .between(DELAY_MIN, self.plan.settings.delay_max.max(DELAY_MIN + 1));
                // Some packets take much longer.
                let delay = if self.random.permille(5) {
                    delay * 20
                } else {
                    delay
                };
                let is_garbled = self.garbled > 0 && self.random.permille(self.garbled);
                let datagram = if is_garbled {
                    self.see("packet garbled");
                    garbled(&datagram, &mut self.random)
                } else {
                    Rc::clone(&datagram)
                };
                self.queue
                    .set(self.now + delay, Event::Arrive { to, from, datagram });
            }
        }
    }

    fn hears(&self, from: Node, to: Node) -> bool {
        let is_cut = |node: Node| self.cut.get(&node).is_some_and(|count| *count > 0);
        let is_parted = |pair| self.parted.get(&pair).is_some_and(|count| *count > 0);
        let is_deaf = self.deaf.get(&(from, to)).is_some_and(|count| *count > 0);
        let is_apart = is_parted((from, to)) || is_parted((to, from));
        !is_cut(from) && !is_cut(to) && !is_apart && !is_deaf
    }

    fn arrive(&mut self, to: Node, from: Node, datagram: &[u8]) {
        if !self.hears(from, to) || !self.runs(to) {
            return;
        }
        let (time, from, mut out) = (self.time(), address(from), Out::default());
        match to {
            Node::Coordinator(me) => {
                if let Some(host) = &mut self.coordinators[usize::from(me)].host {
                    host.receive(time, from, datagram, &mut out);
                }
            }
            Node::Acceptor(me) => {
                if let Some(host) = &mut self.acceptors[usize::from(me)].host {
                    host.receive(from, datagram, &mut out);
                }
            }
            Node::Learner(me) => {
                if let Some(place) = &mut self.learners[usize::from(me)].host {
                    place.host.receive(time, from, datagram, &mut out);
                }
            }
        }
        self.post(to, out);
        if let Node::Learner(me) = to {
            self.learn(me);
        }
        self.count_reasons(to);
    }

    fn engine(&self, node: Node) -> Option<&PaxosEngine> {
        match node {
            Node::Coordinator(me) => {
                let host = self.coordinators[usize::from(me)].host.as_ref()?;
                Some(host.engine())
            }
            Node::Acceptor(me) => Some(self.acceptors[usize::from(me)].host.as_ref()?.engine()),
            Node::Learner(me) => {
                let place = self.learners[usize::from(me)].host.as_ref()?;
                Some(place.host.engine())
            }
        }
    }

    fn count_reasons(&mut self, node: Node) {
        let reasons = match node {
            Node::Coordinator(_) => &[(PacketReason::WindowFull, "window full")][..],
            Node::Acceptor(_) => &[
                (PacketReason::RoundOld, "round refused"),
                (PacketReason::RoundTaken, "round taken"),
                (PacketReason::Trimmed, "asked for a forgotten instance"),
                (PacketReason::NoMember, "no member for an instance"),
                (PacketReason::Configuration, "another configuration"),
                (PacketReason::TwoValues, "two values in a round"),
                (PacketReason::Repeated, "value repeated"),
            ],
            Node::Learner(_) => &[],
        };
        let Some(engine) = self.engine(node) else {
            return;
        };
        let counters = engine.counters();
        for (reason, name) in reasons {
            if counters.reason(*reason) > 0 {
                self.seen.entry(name).or_insert(1);
            }
        }
    }

    /// The disk of an acceptor gets a record.
    fn write(&mut self, node: Node, number: u64, record: PaxosRecord) {
        let Node::Acceptor(me) = node else { return };
        let disk = &mut self.disks[usize::from(me)];
        let is_idle = disk.writing.is_empty();
        disk.writing.push((number, record));
        if is_idle {
            self.set_written(me);
        }
    }

    fn set_written(&mut self, me: u8) {
        let disk = &self.disks[usize::from(me)];
        let Some((upto, _)) = disk.writing.last() else {
            return;
        };
        let takes = self.plan.settings.write + self.slow_disk;
        let written = Event::Written {
            acceptor: me,
            life: self.acceptors[usize::from(me)].starts,
            upto: *upto,
        };
        self.queue.set(self.now + takes, written);
    }

    fn written(&mut self, me: u8, life: u32, upto: u64) {
        let place = &mut self.acceptors[usize::from(me)];
        if place.starts != life {
            return;
        }
        let Some(host) = &mut place.host else { return };
        let disk = &mut self.disks[usize::from(me)];
        disk.written(upto);
        disk.compact(host);
        let mut out = Out::default();
        host.durable(upto, &mut out);
        self.post(Node::Acceptor(me), out);
        if !self.disks[usize::from(me)].writing.is_empty() {
            self.set_written(me);
        }
    }

    // The software.

    fn happened(&mut self, who: Node, happened: &Happened) {
        match happened {
            Happened::Turned(turn, _) => self.turned(who, *turn),
            Happened::Noted(noted) => {
                if *noted == Noted::LetIn {
                    self.see("acceptor let in");
                    self.say(|| format!("{who:?} is let in"));
                }
                let is_own = !matches!(noted, Noted::LaterLife { .. });
                self.checks
                    .require(is_own, || format!("P8: {who:?}: {noted:?}"));
            }
            Happened::TwoValues(header) => {
                let is_allowed = self.plan.settings.one_number;
                self.checks.require(is_allowed, || {
                    format!("P2: {who:?} is to vote for two values: {header:?}")
                });
            }
            Happened::Ignored(why, header) => {
                let is_sound = !matches!(why, Ignored::TwoValues | Ignored::Contradiction);
                self.checks
                    .require(is_sound, || format!("P2: {who:?}: {why:?}: {header:?}"));
            }
            Happened::Trimmed(_) => self.see("trimmed"),
            Happened::NoSuchInstance(_) | Happened::CannotBegin(_) => {
                self.checks
                    .require(false, || format!("{who:?}: {happened:?}"));
            }
        }
    }

    fn turned(&mut self, who: Node, turn: Turn) {
        let what = match turn {
            Turn::Nothing => return,
            Turn::Asks { .. } => "round asked for",
            Turn::Coordinates { .. } => "coordinates",
            Turn::StandsBy { .. } => "stands by",
            Turn::SameNumber => "two of one number found",
            Turn::NoRoundLeft => "no round left",
            Turn::Announced { .. } => "acceptor announces a life",
        };
        self.see(what);
        self.say(|| format!("{who:?}: {turn:?}"));
        let is_twin = self.plan.settings.one_number && who == Node::Coordinator(nodes::TWIN);
        let is_allowed = turn != Turn::SameNumber || is_twin;
        self.checks
            .require(is_allowed, || format!("P8: {who:?} finds its number taken"));
    }

    /// A learner gives on what is decided.
    fn learn(&mut self, me: u8) {
        let (who, time) = (Node::Learner(me), self.time());
        loop {
            let Some(place) = &mut self.learners[usize::from(me)].host else {
                return;
            };
            let mut out = Out::default();
            let Some((learned, settled)) = place.host.take(time, &mut out) else {
                return;
            };
            let expected = std::mem::replace(&mut place.given, learned.decided.instance) + 1;
            self.checks
                .require(learned.decided.instance == expected, || {
                    format!("P3: learner {me} gives on {learned:?}, not instance {expected}")
                });
            self.checks.on_learned(who, &learned);
            for settled in settled {
                let value = place
                    .outstanding
                    .remove(&settled.ticket)
                    .unwrap_or_default();
                if settled.instance.is_none() {
                    self.unknown += 1;
                }
                self.checks.on_settled(&value, settled.instance);
            }
            let what = match &learned.fate {
                Fate::NoOp if learned.decided.session == 0 => "no-op decided",
                Fate::NoOp => "session opened",
                Fate::Value(_) => "value delivered",
                Fate::Repeated => "value decided twice, delivered once",
                Fate::Piece => "piece of a value",
                Fate::Refused(_) => "value of an unknown session",
            };
            self.hash = mix(self.hash ^ learned.decided.instance);
            self.see(what);
            self.post(who, out);
        }
    }

    fn tick(&mut self, node: Node, life: u32) {
        let (time, mut out) = (self.time(), Out::default());
        match node {
            Node::Coordinator(me) => {
                if let Some(host) = &mut self.coordinators[usize::from(me)].host {
                    host.tick(time, &mut out);
                }
            }
            Node::Acceptor(me) => {
                if let Some(host) = &mut self.acceptors[usize::from(me)].host {
                    host.tick(time, &mut out);
                }
            }
            Node::Learner(me) => {
                self.keep(me);
                if let Some(place) = &mut self.learners[usize::from(me)].host {
                    place.host.tick(time, &mut out);
                }
            }
        }
        self.post(node, out);
        let next = self.now + TICK + self.random.below(TICK);
        self.queue.set(next, Event::Tick(node, life));
    }

    /// An application keeps what it has, now and then; one that is behind takes another one's.
    fn keep(&mut self, me: u8) {
        let place = usize::from(me);
        let Some(it) = &mut self.learners[place].host else {
            return;
        };
        if let Some(forgotten) = it.host.learner().is_behind() {
            let deployment = &self.plan.settings.deployment;
            let is_allowed = self.declared_lost || deployment.copies < deployment.learners;
            self.checks.require(is_allowed, || {
                format!("P9: learner {me} has not kept what is forgotten up to {forgotten}")
            });
            let best = self.checkpoints.iter().max_by_key(|it| it.kept).cloned();
            let Some(best) = best.filter(|it| it.kept >= forgotten) else {
                return;
            };
            let values = Values::from_bytes(&best.values).expect("what was kept");
            if it.host.begin_behind(best.kept, values) {
                it.given = best.kept;
                self.checkpoints[place] = best;
                self.see("behind another one's checkpoint");
            }
            return;
        }
        if self.keeps_nothing.contains(&me) || !self.random.permille(150) {
            return;
        }
        let kept = it.host.learner().next() - 1;
        let values = it.host.learner().values().to_bytes();
        it.host.keep(kept);
        self.checkpoints[place] = Checkpoint { kept, values };
    }

    /// A proposer gets a value to propose.
    fn submit(&mut self, me: u8) {
        let place = usize::from(me);
        let settings = &self.plan.settings;
        if self.submitted[place] >= settings.values {
            return;
        }
        let pause = self.random.below(2 * settings.pause) + 1;
        let bytes = 8 + self.random.below(settings.value_bytes_max);
        let time = Duration::from_nanos(self.now);
        let mut out = Out::default();
        if let Some(it) = &mut self.learners[place].host {
            let mut value = self.next_number.to_be_bytes().to_vec();
            value.resize(usize::try_from(bytes).unwrap_or(8), 7);
            if let Ok(ticket) = it.host.submit(time, &value, &mut out) {
                self.checks.submitted(self.next_number, &value);
                it.outstanding.insert(ticket, value);
                self.next_number += 1;
                self.submitted[place] += 1;
            } else {
                self.see("proposer's window full");
            }
        }
        self.post(Node::Learner(me), out);
        self.queue.set(self.now + pause, Event::Submit(me));
    }
}

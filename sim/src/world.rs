//! One simulated cluster: machines, network, clients and the order in which things happen. What goes
//! wrong is carried out in `strike.rs`.
use crate::checks::Checks;
use crate::clients::{Client, ClientOperation, ServerReply};
use crate::counts::Counts;
use crate::datagrams::Datagrams;
use crate::fault::{Moment, Strike};
use crate::latecomer::Stage;
use crate::lives::Lives;
use crate::long_values::Begun;
use crate::machine::{Arrival, Machine, Start};
use crate::moves::Moves;
use crate::network::{Envelope, Network, Saying, notice_delay};
use crate::plan::{ClusterShape, Plan};
use crate::plane_clients::PlaneClient;
use crate::queue::{MILLISECOND, Nanos, Queue, SECOND};
use crate::random::{Random, mix};
use crate::served::ServedWorld;
use crate::sever::SeversWhenRead;
use crate::term_keys::KeyJudge;
use crate::values::ValuesWorld;
use quorumwire_control::{Message, Peer};
use quorumwire_group::GroupMessage;
use quorumwire_interfaces::{Index, ReplicaId};
use std::collections::BTreeSet;

/// Connections that do not stand are tried again this often.
const DIAL_EVERY: Nanos = 50 * MILLISECOND;
/// A connection over which nothing comes is given up after this.
const SILENCE_MAX: Nanos = SECOND;
/// A folder is read in less than this.
const READS_MAX: Nanos = 750 * MILLISECOND;
/// Sets the world's chance apart from the plan's.
const WORLD: u64 = 0x005e_ed0f_7e57;
/// Lines of a trace that are kept.
const TRACE_LINES_MAX: usize = 4_000_000;

/// Something that happens.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A message arrives, by slot.
    Arrives(u32),
    /// A replica wanted to be woken.
    Wake(usize, u32),
    /// A process goes on after it stood still.
    GoesOn(usize, u32),
    /// A disk has done what was begun.
    LogDone(usize, u32),
    /// A snapshot thread has done a piece of work.
    SnapshotDone(usize, u32, u32),
    /// A machine starts its process.
    Boot(usize),
    /// A process notices that another one's is gone.
    Gone(usize, Peer),
    /// Connections are looked at.
    Dial,
    /// A fault of the plan begins.
    Fault(u16),
    /// It ends.
    Over(u16),
    /// A datagram arrives, by slot.
    Datagram(u32),
    /// A process is told that its plane has something.
    PlaneNews(usize, u32),
    /// A slow plane stops.
    Fence(usize, u32),
    /// A machine reads its secret file again.
    Keys(usize),
    /// A client acts.
    Client(u16),
    /// A client has waited for long.
    Impatient(u16, u32),
    /// A client's operation reaches a machine.
    Request(usize, u32),
    /// A client of planes acts.
    PlaneClient(u16),
    /// An answer reaches its client.
    Answer(u32, ServerReply),
    /// What is done to a voter that takes part late goes on.
    Latecomer,
    /// So many more requests of the client with this number reach a machine.
    Burst(usize, u32, u8),
    /// The connection of the client with this number is looked at.
    Pipe(usize, u32, u32),
    /// A machine is to lead again.
    Returns(usize),
    /// It has led again for a while, or does not.
    Returned(usize),
    /// Learners of values, and who asks for these, act.
    Values,
}

/// A fault that waits for its moment.
#[derive(Clone, Copy, Debug)]
pub struct ArmedFault {
    /// The fault, by number.
    pub fault: u16,
    /// The moment.
    pub on: Moment,
    /// How often it is let pass before.
    pub skip: u8,
    /// What then follows.
    pub then: Strike,
    /// For how long.
    pub lasts: Nanos,
    /// Decides what is left open.
    pub luck: u64,
}

/// A cluster and all around it.
pub struct World {
    /// What is to happen.
    pub plan: Plan,
    /// True time.
    pub now: Nanos,
    /// What happens next.
    pub queue: Queue<Event>,
    /// Chance, but for faults, which have their own.
    pub random: Random,
    /// The machines; the number of one is its replica's id.
    pub machines: Vec<Machine>,
    /// What is between them.
    pub network: Network,
    /// What is between their planes.
    pub datagrams: Datagrams,
    /// Stage of the newest keys.
    pub key_stage: u64,
    /// Keys of fast terms that were drawn.
    pub keys_drawn: u64,
    /// What is judged of them.
    pub key_judge: KeyJudge,
    /// The clients.
    pub clients: Vec<Client>,
    /// Clients that ask planes.
    pub plane_clients: Vec<PlaneClient>,
    /// Who was the only voter once.
    pub voted_alone: BTreeSet<ReplicaId>,
    /// Clients begin nothing after this.
    pub clients_stop_at: Nanos,
    /// All operations.
    pub asked: Vec<ClientOperation>,
    /// The judge.
    pub checks: Checks,
    /// Items with an end.
    pub lives: Lives,
    /// Where replicas were found.
    pub moves: Moves,
    /// Long commands whose fragments are not all in the log.
    pub long_commands: Begun,
    /// What clients have asked for that do not wait for answers: each of them is one.
    pub bursts: Vec<Vec<u32>>,
    /// The clients of a served program.
    pub served: ServedWorld,
    /// Values for learners, and these.
    pub values: ValuesWorld,
    /// What was reached.
    pub counts: Counts,
    /// Faults that wait for their moment.
    pub armed: Vec<ArmedFault>,
    /// What faults in force have cut, to be mended when they end.
    pub cuts: Vec<(u16, Vec<crate::network::Link>)>,
    /// The machine whose replica has lost its memory, or will, and is no voter again yet.
    pub forgetful: Option<usize>,
    /// Who is cut off when another one has read its folder.
    pub severs_when_read: Option<SeversWhenRead>,
    /// How far it is with the voter that takes part late.
    pub latecomer: Stage,
    /// Nothing goes wrong any more.
    pub peace: bool,
    /// Until when a machine that starts waits for a promise that its last process made.
    pub promises_waited_for: Nanos,
    /// The highest index anyone has applied, and when.
    pub applied_first: Index,
    /// See `applied_first`.
    pub applied_first_at: Nanos,
    /// Changes with everything that happens.
    pub hash: u64,
    /// Whether to write down what happens.
    pub loud: bool,
    /// What happened.
    pub trace: Vec<String>,
    /// Starts that failed, one after the other, by machine.
    pub failed_starts: Vec<u32>,
}

impl World {
    /// The world of a plan, before anything has happened.
    #[must_use]
    pub fn new(plan: Plan, loud: bool) -> Self {
        let settings = &plan.settings;
        let mut random = Random::new(mix(settings.seed ^ WORLD));
        let count = settings.voters + settings.spares;
        let beginners = match settings.shape {
            ClusterShape::BeginsAlone => 1,
            ClusterShape::Usual | ClusterShape::Shrinks | ClusterShape::Latecomer => {
                settings.voters
            }
        };
        let initial: Vec<ReplicaId> = (0..beginners).map(ReplicaId).collect();
        let mut machines: Vec<_> = (0..count)
            .map(|id| Machine::new(id, &initial, settings))
            .collect();
        for machine in &mut machines {
            machine.clock_offset = random.below(100 * MILLISECOND);
            let range = settings.drift_ppm_max * 2 + 1;
            let ppm = i64::try_from(random.below(range)).unwrap_or(0);
            let ppm = ppm - i64::try_from(settings.drift_ppm_max).unwrap_or(0);
            machine.clock_ppm = settings.clock_ppm(ppm);
        }
        let mut world = Self {
            now: 0,
            queue: Queue::default(),
            network: Network::new(machines.len(), settings.delay),
            datagrams: Datagrams::default(),
            key_stage: 0,
            keys_drawn: 0,
            key_judge: KeyJudge::default(),
            clients: vec![Client::default(); usize::from(settings.clients)],
            plane_clients: Vec::new(),
            voted_alone: BTreeSet::new(),
            clients_stop_at: Nanos::MAX,
            asked: Vec::new(),
            checks: Checks::default(),
            lives: Lives::default(),
            moves: Moves::default(),
            long_commands: Begun::default(),
            bursts: Vec::new(),
            served: ServedWorld::default(),
            values: ValuesWorld::default(),
            counts: Counts::default(),
            armed: Vec::new(),
            cuts: Vec::new(),
            forgetful: None,
            severs_when_read: None,
            latecomer: Stage::default(),
            peace: false,
            promises_waited_for: 0,
            applied_first: Index(0),
            applied_first_at: 0,
            hash: settings.seed,
            loud,
            trace: Vec::new(),
            failed_starts: vec![0; machines.len()],
            random,
            machines,
            plan,
        };
        world.datagrams.weather = world.plan.settings.datagrams;
        let settings = &world.plan.settings;
        world.checks.reads_judged = settings.clocks_are_sound || !settings.lease_reads;
        world.begin();
        world
    }

    fn begin(&mut self) {
        for machine in 0..self.machines.len() {
            let at = self.random.below(5 * MILLISECOND);
            self.queue.set(at, Event::Boot(machine));
        }
        self.queue.set(DIAL_EVERY, Event::Dial);
        for number in 0..self.plan.settings.clients {
            let at = SECOND + self.random.below(SECOND);
            self.queue.set(at, Event::Client(number));
        }
        self.begin_plane_clients();
        self.begin_values();
        for (number, fault) in self.plan.faults.iter().enumerate() {
            let number = u16::try_from(number).unwrap_or(u16::MAX);
            self.queue.set(fault.at, Event::Fault(number));
        }
    }

    /// Has everything happen up to this time, or until something is found wrong.
    pub fn run_until(&mut self, end: Nanos) {
        while self.checks.violation.is_none() {
            let Some((at, event)) = self.queue.take() else {
                return;
            };
            if at > end {
                self.queue.set(at, event);
                self.now = end;
                return;
            }
            self.now = at;
            self.counts.events += 1;
            self.happens(event);
        }
    }

    fn happens(&mut self, event: Event) {
        let (kind, detail) = number_of(event);
        self.hash = mix(self.hash.wrapping_add(self.now) ^ (kind << 56 ^ detail));
        match event {
            Event::Arrives(slot) => self.message_arrives(slot),
            Event::Wake(machine, run) => self.wakes(machine, run),
            Event::GoesOn(machine, run) => {
                let it = &self.machines[machine];
                if it.run == run && it.busy_until <= self.now {
                    self.turn(machine);
                }
            }
            Event::LogDone(machine, run) if self.machines[machine].run == run => {
                self.log_done(machine);
            }
            Event::SnapshotDone(machine, run, job) if self.machines[machine].run == run => {
                self.snapshot_done(machine, job);
            }
            Event::PlaneNews(machine, run) if self.machines[machine].run == run => {
                self.plane_news(machine);
            }
            Event::Pipe(machine, run, burst) if self.machines[machine].run == run => {
                self.arrive(machine, Arrival::Pipe(burst, Vec::new()));
            }
            Event::Fence(machine, run) if self.machines[machine].run == run => self.fence(machine),
            Event::LogDone(..)
            | Event::Pipe(..)
            | Event::SnapshotDone(..)
            | Event::PlaneNews(..)
            | Event::Fence(..) => {} // of a process that is gone
            Event::Boot(machine) => self.boot(machine),
            Event::Gone(machine, peer) => {
                // Connected again since, they were told so before they were told of that.
                if !self.network.is_connected(machine, usize::from(peer.id.0)) {
                    self.arrive(machine, Arrival::Down(peer));
                }
            }
            Event::Dial => self.dial(),
            Event::Fault(number) => self.fault_begins(number),
            Event::Over(number) => self.fault_ends(number),
            Event::Datagram(slot) => self.datagram_arrives(slot),
            Event::Keys(machine) => self.reload_keys(machine),
            Event::Client(number) => self.client_acts(number),
            Event::PlaneClient(number) => self.plane_client_wakes(number),
            Event::Impatient(number, operation) => self.client_gives_up(number, operation),
            Event::Request(machine, operation) => self.arrive(machine, Arrival::Request(operation)),
            Event::Answer(operation, told) => self.client_hears(operation, told),
            Event::Latecomer => self.latecomer_goes_on(),
            Event::Burst(machine, burst, requests) => self.burst(machine, burst, requests),
            Event::Returns(machine) => self.leadership_comes_back(machine),
            Event::Returned(machine) => self.leadership_came_back(machine),
            Event::Values => self.values_go_on(),
        }
    }

    fn wakes(&mut self, machine: usize, run: u32) {
        let now = self.now;
        let it = &mut self.machines[machine];
        if it.run != run || it.wake_at != now {
            return;
        }
        it.wake_at = Nanos::MAX;
        if it.busy_until > now {
            return; // it looks at the clock when it goes on
        }
        let clock = it.clock(now);
        let is_due = |process: &crate::machine::Process| process.group.replica.next_wake() <= clock;
        if it.process.as_ref().is_some_and(is_due) {
            self.turn(machine);
        } else {
            self.plan_ahead(machine);
        }
    }

    fn message_arrives(&mut self, slot: u32) {
        let Some(Envelope { from, to, message }) = self.network.arrive(slot) else {
            return;
        };
        let machine = usize::from(to.id.0);
        let summary = match &message {
            Saying::Consensus(message) => summary(message) ^ message.term.0 << 16,
            Saying::Key(message) => 0xd ^ message.term << 16,
            Saying::PassedOn(_, bytes) => 0xc ^ (bytes.len() as u64) << 8,
        };
        self.hash = mix(self.hash ^ u64::from(from.id.0) << 8 ^ summary);
        if self.machines[machine].peer != to {
            if matches!(message, Saying::Key(_)) {
                self.counts.see("key for a life that is over");
            }
            return; // for another life
        }
        if self.loud && self.machines[machine].process.is_some() {
            let said = match &message {
                Saying::Consensus(message) => crate::show::message(message),
                Saying::Key(message) | Saying::PassedOn(message, _) => {
                    format!("{:?}", message.body)
                }
            };
            let line = format!("hears {}: {said}", from.id.0);
            self.say(machine, &line);
        }
        match message {
            Saying::Consensus(message) => self.arrive(machine, Arrival::Message(from, message)),
            Saying::Key(message) => self.arrive(machine, Arrival::Key(from, message)),
            Saying::PassedOn(message, bytes) => match GroupMessage::from_proto(*message, bytes) {
                Ok(GroupMessage::PassedOn(it)) => self.arrive(machine, Arrival::PassedOn(from, it)),
                other => panic!("a request passed on is read as {other:?}"),
            },
        }
    }

    /// A replica says something to another one.
    pub fn send(&mut self, machine: usize, to: Peer, message: Saying) {
        let other = usize::from(to.id.0);
        let known = self.machines.get(other).is_some_and(|m| m.peer == to);
        if !known || other == machine || !self.network.is_connected(machine, other) {
            return;
        }
        if let Saying::Consensus(message) = &message
            && self.loses_first_entry(other, message)
        {
            return;
        }
        if self.network.is_cut((machine, other)) {
            self.counts.hit(crate::fault::Class::F4Partition);
            return;
        }
        let envelope = Envelope {
            from: self.machines[machine].peer,
            to,
            message,
        };
        let fate = self.network.send(
            self.now,
            (machine, other),
            envelope,
            &mut self.random,
            &mut self.counts,
        );
        for (at, slot) in [fate.first, fate.second].into_iter().flatten() {
            self.queue.set(at, Event::Arrives(slot));
        }
        self.checks.require(!fate.codec_fails, || {
            "a message does not survive its wire form".to_owned()
        });
        if fate.breaks {
            self.counts.see("connection broken by bytes");
            self.disconnect(machine, other);
        }
    }

    /// Two machines' connection ends; both notice.
    pub fn disconnect(&mut self, a: usize, b: usize) {
        if !self.network.is_connected(a, b) {
            return;
        }
        self.network.set_connected(a, b, false);
        for (here, there) in [(a, b), (b, a)] {
            let peer = self.machines[there].peer;
            let delay = notice_delay(&mut self.random);
            self.queue.set(self.now + delay, Event::Gone(here, peer));
        }
    }

    fn dial(&mut self) {
        self.queue.set(self.now + DIAL_EVERY, Event::Dial);
        let breaks = if self.now < self.plan.trouble {
            self.plan.settings.breaks
        } else {
            0
        };
        for a in 0..self.machines.len() {
            for b in a + 1..self.machines.len() {
                if self.network.is_connected(a, b) {
                    if self.network.silent_for(a, b, self.now) > SILENCE_MAX {
                        self.disconnect(a, b);
                    } else if breaks > 0 && self.random.permille(breaks) {
                        self.counts.see("connection broke");
                        self.disconnect(a, b);
                    }
                } else {
                    self.connect(a, b);
                }
            }
        }
        self.note_memory();
        for machine in 0..self.machines.len() {
            self.note_starvation(machine);
            self.put_copy_back_if_due(machine);
        }
    }

    /// Connects two machines, if nothing stands in the way.
    pub fn connect(&mut self, a: usize, b: usize) {
        let hears = |machine: usize| {
            let it = &self.machines[machine];
            it.process.is_some() && it.busy_until <= self.now
        };
        let cut = self.network.is_cut((a, b)) || self.network.is_cut((b, a));
        if cut || !hears(a) || !hears(b) {
            return;
        }
        if self.has_no_handle(a) || self.has_no_handle(b) {
            return self.counts.hit(crate::fault::Class::F11Starved);
        }
        self.network.set_connected(a, b, true);
        let (peer_a, peer_b) = (self.machines[a].peer, self.machines[b].peer);
        let promises = [b, a].map(|of| self.machines[of].promise(&self.plan.settings));
        for ((machine, peer), promise) in [(a, peer_b), (b, peer_a)].into_iter().zip(promises) {
            // The end of the last connection may not have been noticed yet.
            self.arrive(machine, Arrival::Down(peer));
            self.arrive(machine, Arrival::Up(peer, promise));
        }
    }

    /// Whether this one is all voters that it knows of.
    fn votes_alone(&self, machine: usize) -> bool {
        let it = &self.machines[machine];
        it.process.as_ref().is_some_and(|process| {
            let members = process.group.replica.membership();
            let peer = it.peer;
            members.is_voter(peer.id, peer.incarnation) && members.voters().count() == 1
        })
    }

    /// A process reads its folder before the plane of the one before it is known to be off: that goes on
    /// meanwhile, if it outlives its process at all.
    fn begins_to_read(&mut self, machine: usize) -> bool {
        let longest = self.plan.settings.leases.iter().max().copied();
        let it = &mut self.machines[machine];
        if self.peace || it.orphan.is_none() {
            return false;
        }
        if it.reads_since.is_some() {
            self.has_read(machine);
            return false;
        }
        it.reads_since = Some(it.clock(self.now));
        let promise = u64::try_from(it.promise(&self.plan.settings).lasts.as_nanos());
        let promise = promise.unwrap_or(READS_MAX).min(READS_MAX);
        // Where one is to be cut off then: nearly for as long as is promised.
        let (shortest, longest) = match self.severs_when_read {
            Some(_) => (promise / 4 * 3, promise),
            None => (0, longest.unwrap_or_default().min(READS_MAX)),
        };
        let lasts = self.random.between(shortest, longest).max(MILLISECOND);
        self.counts.see("plane went on while its folder was read");
        self.queue.set(self.now + lasts, Event::Boot(machine));
        true
    }

    fn boot(&mut self, machine: usize) {
        let now = self.now;
        let state = &mut self.machines[machine];
        if state.process.is_some() || self.begins_to_read(machine) {
            return;
        }
        let state = &mut self.machines[machine];
        let before = state.peer;
        let spoiled = self.forgetful == Some(machine);
        match state.start(now, &self.plan.settings, spoiled) {
            Start::Runs => {
                self.failed_starts[machine] = 0;
                let peer = self.machines[machine].peer;
                if peer != before {
                    self.counts.see("new life");
                }
                if self.loud {
                    let line = format!("starts as {peer:?}");
                    self.say(machine, &line);
                }
                let process = self.machines[machine].process.as_ref();
                let last_index = process.map_or(Index(0), |it| it.group.replica.last_index());
                self.checks.starts(peer, last_index);
                if self.votes_alone(machine) {
                    self.counts.see("only voter started");
                }
                self.turn(machine);
            }
            Start::Waits(until) => {
                self.counts.see("longer promise waited for");
                self.promises_waited_for = self.promises_waited_for.max(until);
                self.queue.set(until, Event::Boot(machine));
            }
            Start::Later(problem) => {
                if self.loud {
                    let line = format!("cannot start yet: {problem}");
                    self.say(machine, &line);
                }
                self.failed_starts[machine] += 1;
                self.counts.see("start put off");
                let failed = self.failed_starts[machine];
                self.checks.require(!self.peace || failed < 50, || {
                    format!("I14: {before:?} cannot start: {problem}")
                });
                let wait = self.random.between(20, 200) * MILLISECOND;
                self.queue.set(now + wait, Event::Boot(machine));
            }
            Start::Violation(problem) => self.checks.require(false, || problem),
        }
    }

    /// Writes down what happens to a machine.
    pub fn say(&mut self, machine: usize, line: &str) {
        if self.loud && self.trace.len() < TRACE_LINES_MAX {
            let (seconds, micros) = (self.now / SECOND, self.now % SECOND / 1_000);
            self.trace
                .push(format!("{seconds:>4}.{micros:06} {machine}: {line}"));
        }
    }
}

/// A few bits that tell messages apart.
fn summary(message: &Message) -> u64 {
    use quorumwire_control::Body;
    match &message.body {
        Body::Fresh { .. } => 1,
        Body::Bootstrap { .. } => 2,
        Body::VoteRequest {
            last_index,
            pre_vote,
            ..
        } => 3 ^ last_index.0 << 8 ^ u64::from(*pre_vote) << 7,
        Body::VoteReply { granted, .. } => 4 ^ u64::from(*granted) << 7,
        Body::Append {
            previous_index,
            round,
            ..
        } => 5 ^ previous_index.0 << 8 ^ round << 32,
        Body::AppendReply { index, round, .. } => 6 ^ index.0 << 8 ^ round << 32,
        Body::SnapshotChunk { offset, .. } => 7 ^ offset << 8,
        Body::SnapshotReply { offset, .. } => 8 ^ offset << 8,
        Body::TransferNow => 9,
        Body::EngageOffer { start_index } => 0xa ^ start_index.0 << 8,
        Body::Engaged { engaged, index } => 0xb ^ index.0 << 8 ^ u64::from(*engaged) << 7,
    }
}

fn number_of(event: Event) -> (u64, u64) {
    let pair = |machine: usize, number: u32| (machine as u64) << 32 | u64::from(number);
    match event {
        Event::Arrives(slot) => (1, u64::from(slot)),
        Event::Wake(machine, run) => (2, pair(machine, run)),
        Event::GoesOn(machine, run) => (3, pair(machine, run)),
        Event::LogDone(machine, run) => (4, pair(machine, run)),
        Event::SnapshotDone(machine, run, job) => (5, pair(machine, run ^ job << 16)),
        Event::Boot(machine) => (6, pair(machine, 0)),
        Event::Gone(machine, peer) => (7, pair(machine, u32::from(peer.id.0))),
        Event::Dial => (8, 0),
        Event::Fault(number) => (9, u64::from(number)),
        Event::Over(number) => (10, u64::from(number)),
        Event::Client(number) => (11, u64::from(number)),
        Event::Impatient(number, operation) => (12, pair(usize::from(number), operation)),
        Event::Request(machine, operation) => (13, pair(machine, operation)),
        Event::Answer(operation, _) => (14, u64::from(operation)),
        Event::Datagram(slot) => (15, u64::from(slot)),
        Event::PlaneNews(machine, run) => (16, pair(machine, run)),
        Event::Fence(machine, run) => (17, pair(machine, run)),
        Event::Keys(machine) => (18, pair(machine, 0)),
        Event::PlaneClient(number) => (19, u64::from(number)),
        Event::Latecomer => (20, 0),
        Event::Burst(machine, burst, _) => (21, pair(machine, burst)),
        Event::Pipe(machine, run, burst) => (24, pair(machine, run) ^ u64::from(burst) << 16),
        Event::Returns(machine) => (22, pair(machine, 0)),
        Event::Returned(machine) => (23, pair(machine, 0)),
        Event::Values => (25, 0),
    }
}

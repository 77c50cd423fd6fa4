//! Those that are given values (`values.rs`): the product's subscriptions, at both ends. A learner is at one
//! replica at a time. It takes values, saves what follows from them together with their instance, loses its
//! connection, is killed, and begins again behind what it has saved.
use crate::queue::{MICROSECOND, Nanos, SECOND};
use crate::random::{Random, mix};
use crate::world::{Event, World};
use quorumwire_client::Error;
use quorumwire_client::Settings as ClientSettings;
use quorumwire_client::machine::feed::{Feed, Item, counts};
use quorumwire_client::machine::{Action, LinkId};
use quorumwire_deliver::{Given, Instance, LEADERLESS_MAX, Learner, Subscription, Values};
use quorumwire_wire::client::{
    FromClient, FromServer, Pong, Refused, RefusedReason, Trimmed, Upto, Value, Welcome,
    from_client, from_server::Body,
};
use quorumwire_wire::{
    CLIENT_PROTOCOL_SUBSCRIPTIONS, ClientFrame, take_client_frame, write_client_frame,
};
use std::collections::VecDeque;
use std::time::Duration;

/// A learner is killed so many of 10,000 times that it acts, and its connection breaks.
const KILLED_IN_10_000: u64 = 15;
const BREAKS_IN_10_000: u64 = 40;
/// It is down for so long at most.
const DOWN_MAX: Nanos = 10 * SECOND;
/// It saves what it has so many of a thousand times.
const SAVES_PERMILLE: u64 = 200;
/// It takes what has come so many of a thousand times; a slow one.
const TAKES_PERMILLE: u64 = 600;
const TAKES_SLOWLY_PERMILLE: u64 = 60;
/// Bytes of values that wait at a learner, where it goes by that.
const WINDOWS: [u64; 3] = [100, 2_000, 1 << 20];
/// Bytes that are on their way to a learner, beyond which a replica gives no more.
const OUTPUT_BYTES_MAX: usize = 16 << 10;

/// A learner, and its disk.
pub struct SimulatedLearner {
    /// Who.
    pub id: Learner,
    /// Up to here it has saved what follows from the values; none: it has never begun.
    pub saved: Option<Instance>,
    process: Option<LearnerProcess>,
    begins_at: Nanos,
    luck: u64,
    runs: u64,
}

struct LearnerProcess {
    feed: Feed,
    /// The last that it was given.
    upto: Instance,
    /// Bytes of values that it has not taken.
    untaken: u64,
    is_slow: bool,
    /// It has begun in peace.
    is_calm: bool,
    connection: Option<Connection>,
}

/// What is between a learner and the process of a replica.
struct Connection {
    link: LinkId,
    machine: usize,
    /// Of the machine.
    run: u32,
    is_up: bool,
    up_at: Nanos,
    to_replica: VecDeque<(Nanos, Vec<u8>)>,
    to_learner: VecDeque<(Nanos, Vec<u8>)>,
    replica: ReplicaSide,
}

/// What the replica keeps of it.
#[derive(Default)]
struct ReplicaSide {
    rest: Vec<u8>,
    /// The number of its request, and what it hears.
    subscription: Option<(u64, Subscription)>,
    leaderless_since: Option<Nanos>,
}

impl SimulatedLearner {
    /// One that begins.
    pub const fn new(id: Learner, luck: u64) -> Self {
        Self {
            id,
            saved: None,
            process: None,
            begins_at: 0,
            luck,
            runs: 0,
        }
    }

    fn connection(&mut self) -> Option<&mut Connection> {
        self.process.as_mut()?.connection.as_mut()
    }
}

const fn since(now: Nanos) -> Duration {
    Duration::from_nanos(now)
}

impl World {
    /// It does what there is to do.
    pub fn learner_acts(&mut self, learner: usize) {
        let calm = self.peace;
        let luck = self.values_chance().below(10_000);
        let down = self.values_chance().below(DOWN_MAX);
        let it = &mut self.values.learners[learner];
        // In peace it begins anew, with room for all that it lacks.
        it.process.take_if(|it| calm && !it.is_calm);
        if it.process.is_none() {
            return self.learner_begins(learner);
        }
        if !calm && luck < KILLED_IN_10_000 {
            it.process = None;
            it.begins_at = self.now + down;
            return self.counts.see("values: learner killed");
        }
        let breaks = !calm && luck < KILLED_IN_10_000 + BREAKS_IN_10_000;
        self.learner_hears(learner, breaks);
        self.learner_takes(learner);
        self.learner_connects(learner);
        let connection = self.values.learners[learner].connection();
        if calm && let Some(it) = connection.filter(|it| it.is_up) {
            // As its bytes wake a server, which else has its turns when others speak.
            self.queue.set(self.now, Event::GoesOn(it.machine, it.run));
        }
    }

    fn learner_begins(&mut self, learner: usize) {
        let leader = self.leader();
        let it = &mut self.values.learners[learner];
        if self.now < it.begins_at && !self.peace {
            return;
        }
        let checkpoint = || {
            let process = self.machines[leader?].process.as_ref()?;
            let values = process.group.store.inner().values.as_deref()?;
            let learners = values.status().learners;
            let found = learners.into_iter().find(|(known, _)| *known == it.id)?;
            Some(found.1)
        };
        let Some(upto) = it.saved.or_else(checkpoint) else {
            return; // it is none yet
        };
        if it.saved.is_some() {
            self.counts.see("values: begun behind what was saved");
        }
        it.runs += 1;
        let luck = mix(it.luck ^ it.runs);
        let random = &mut Random::new(luck);
        let window = if self.peace {
            WINDOWS[2]
        } else {
            random.pick(&WINDOWS).unwrap_or(WINDOWS[0])
        };
        let addresses = (0..self.machines.len()).map(|it| it.to_string());
        let settings = ClientSettings::new(addresses);
        it.process = Some(LearnerProcess {
            feed: Feed::new(&settings, (it.id, upto + 1), window, luck),
            upto,
            untaken: 0,
            is_slow: random.permille(200),
            is_calm: self.peace,
            connection: None,
        });
        self.learner_connects(learner);
    }

    /// What has come over its connection, and what became of that.
    fn learner_hears(&mut self, learner: usize, breaks: bool) {
        let now = self.now;
        let Some(process) = &mut self.values.learners[learner].process else {
            return;
        };
        process.feed.time_passed(since(now));
        let Some(connection) = &mut process.connection else {
            return;
        };
        let (link, machine) = (connection.link, &self.machines[connection.machine]);
        let lives = machine.process.is_some();
        if !connection.is_up {
            if now < connection.up_at {
                return;
            }
            if lives && !breaks {
                connection.is_up = true;
                connection.run = machine.run;
                return process.feed.connected(since(now), link);
            }
        }
        let is_lost = breaks || !lives || machine.run != connection.run;
        while let Some((_, bytes)) = connection.to_learner.pop_front_if(|(at, _)| *at <= now) {
            process.feed.received(since(now), link, &bytes);
        }
        if is_lost {
            process.connection = None;
            process.feed.lost(since(now), link, "it broke".to_owned());
            self.counts.see("values: learner goes on elsewhere");
        }
    }

    /// What it was given is judged, and taken when it likes; what follows from that is saved.
    fn learner_takes(&mut self, learner: usize) {
        let calm = self.peace;
        let (luck, chance) = (
            self.values_chance().below(1000),
            self.values_chance().below(1000),
        );
        let it = &mut self.values.learners[learner];
        let (id, saved) = (it.id, it.saved);
        let Some(process) = &mut it.process else {
            return;
        };
        let mut problem = None;
        let mut lost = None;
        for item in process.feed.take_items() {
            let next = self.values.judge.behind(process.upto);
            match item {
                Item::Value(instance, value) => {
                    process.untaken += counts(&value);
                    if next.is_none_or(|(at, it)| *at != instance || *it != value) {
                        let given = String::from_utf8_lossy(&value).into_owned();
                        problem =
                            Some(format!("is given {instance}, {given:?}; next was {next:?}"));
                    }
                    process.upto = instance;
                    self.counts.see("values: given");
                }
                Item::Over(Error::Trimmed { upto }) => {
                    if upto > self.values.judge.lost || saved.is_some_and(|it| upto <= it) {
                        problem = Some(format!("is told that all up to {upto} is trimmed"));
                    }
                    lost = Some(upto);
                }
                Item::Over(error) => problem = Some(format!("is told {error}")),
            }
        }
        if process.feed.counters.malformed > 0 {
            problem = Some("is told what makes no sense".to_owned());
        }
        let (upto, saved) = (process.upto, saved.unwrap_or(0));
        if let Some(problem) = problem {
            self.checks.require(false, || {
                format!("I19: learner {id}, which has saved up to {saved} and has all up to {upto}, {problem}")
            });
        }
        if let Some(lost) = lost {
            // It goes on with the state of somebody who has had all that.
            it.saved = Some(lost);
            it.process = None;
            return self.counts.see("values: told up to where they are lost");
        }
        let takes = if process.is_slow {
            TAKES_SLOWLY_PERMILLE
        } else {
            TAKES_PERMILLE
        };
        if process.untaken > 0 && (calm || luck < takes) {
            let untaken = std::mem::take(&mut process.untaken);
            process.feed.taken(since(self.now), untaken);
        }
        if calm || chance < SAVES_PERMILLE {
            it.saved = Some(upto);
        }
    }

    /// What its subscription wants done.
    fn learner_connects(&mut self, learner: usize) {
        let now = self.now;
        let delay = self.values_chance().between(50, 20_000) * MICROSECOND;
        let Some(process) = &mut self.values.learners[learner].process else {
            return;
        };
        process.feed.time_passed(since(now));
        for action in process.feed.take_actions() {
            match action {
                Action::Connect(link, address) => {
                    process.connection = Some(Connection {
                        link,
                        machine: address.parse().unwrap_or(0),
                        run: 0,
                        is_up: false,
                        up_at: now + delay,
                        to_replica: VecDeque::new(),
                        to_learner: VecDeque::new(),
                        replica: ReplicaSide::default(),
                    });
                }
                Action::Send(link, bytes) => {
                    let connection = process.connection.as_mut();
                    if let Some(connection) = connection.filter(|it| it.link == link) {
                        connection.to_replica.push_back((now + delay, bytes));
                    }
                }
                Action::Close(link) => {
                    process.connection.take_if(|it| it.link == link);
                }
            }
        }
    }

    /// A process gives learners what it has for them.
    pub fn give_values(&mut self, machine: usize) {
        let now = self.now;
        let delay = self.values_chance().between(50, 20_000) * MICROSECOND;
        let it = &self.machines[machine];
        let Some(process) = &it.process else {
            return;
        };
        let Some(values) = process.group.store.inner().values.as_deref() else {
            return;
        };
        let is_led = process.group.replica.is_led();
        for learner in &mut self.values.learners {
            let Some(connection) = learner.connection() else {
                continue;
            };
            if !connection.is_up || connection.machine != machine || connection.run != it.run {
                continue;
            }
            let mut out = Vec::new();
            while let Some((_, bytes)) = connection.to_replica.pop_front_if(|(at, _)| *at <= now) {
                let side = &mut connection.replica;
                side.rest.extend_from_slice(&bytes);
                side.hears(values, &mut out);
            }
            let waiting = connection.to_learner.iter().map(|(_, it)| it.len()).sum();
            let seen = connection
                .replica
                .gives(values, (now, is_led), waiting, &mut out);
            if let Some(seen) = seen {
                self.counts.see(seen);
            }
            if !out.is_empty() {
                // What comes later does not overtake it.
                let last = connection.to_learner.back().map_or(0, |(at, _)| *at);
                connection
                    .to_learner
                    .push_back((last.max(now + delay), out));
            }
        }
    }

    /// What is not well yet, in peace: a learner that has not been given all.
    #[must_use]
    pub fn values_difference(&self) -> Option<String> {
        self.values.learners.iter().find_map(|it| {
            let upto = it.process.as_ref().map(|it| it.upto);
            let next = self.values.judge.behind(upto.unwrap_or(0));
            let lacks = next.map(|(at, _)| *at);
            (upto.is_none() || lacks.is_some()).then(|| {
                let trouble = it.process.as_ref().and_then(|it| it.feed.trouble());
                format!(
                    "learner {} has {upto:?}, and lacks {lacks:?}: {trouble:?}",
                    it.id
                )
            })
        })
    }
}

fn put(out: &mut Vec<u8>, request: u64, body: Body, value: &[u8]) {
    let body = Some(body);
    write_client_frame(out, &FromServer { request, body }, value);
}

impl ReplicaSide {
    fn hears(&mut self, values: &Values, out: &mut Vec<u8>) {
        let rest = std::mem::take(&mut self.rest);
        let mut left = &rest[..];
        while let Ok(ClientFrame::Whole {
            consumed, message, ..
        }) = take_client_frame::<FromClient>(left, 0)
        {
            left = &left[consumed..];
            let request = message.request;
            match message.body {
                Some(from_client::Body::Hello(_)) => {
                    let welcome = Welcome {
                        protocol: CLIENT_PROTOCOL_SUBSCRIPTIONS,
                        cluster: "sim/values".to_owned(),
                        ..Welcome::default()
                    };
                    put(out, request, Body::Welcome(welcome), b"");
                }
                Some(from_client::Body::Subscribe(asked)) => {
                    let learner = Learner::try_from(asked.learner).unwrap_or(0);
                    if values.has_learner(learner) {
                        let begins = Subscription::new(asked.from, asked.credit_bytes);
                        self.subscription = Some((request, begins));
                    } else {
                        put(out, request, refused(RefusedReason::Other), b"");
                    }
                }
                Some(from_client::Body::Credit(credit)) => {
                    if let Some((_, subscription)) = &mut self.subscription {
                        subscription.add_credit(credit.bytes);
                    }
                }
                Some(from_client::Body::Ping(_)) => put(out, request, Body::Pong(Pong {}), b""),
                Some(_) | None => {} // a learner asks nothing else here
            }
        }
        self.rest = left.to_vec();
    }

    /// As the node does; what is to be counted.
    fn gives(
        &mut self,
        values: &Values,
        (now, is_led): (Nanos, bool),
        waiting: usize,
        out: &mut Vec<u8>,
    ) -> Option<&'static str> {
        if is_led {
            self.leaderless_since = None;
        } else if Duration::from_nanos(now - *self.leaderless_since.get_or_insert(now))
            >= LEADERLESS_MAX
            && let Some((request, _)) = self.subscription.take()
        {
            put(out, request, refused(RefusedReason::NoLeader), b"");
            return Some("values: sent elsewhere, as nobody leads");
        }
        loop {
            let (request, subscription) = self.subscription.as_mut()?;
            let has_room = waiting + out.len() < OUTPUT_BYTES_MAX;
            let next = values.next(subscription.next());
            let body = match subscription.give(next, has_room) {
                Given::Value(instance, value) => {
                    put(out, *request, Body::Value(Value { instance }), value);
                    continue;
                }
                Given::Nothing if matches!(next, quorumwire_deliver::Next::Value(..)) => {
                    return Some("values: waited for credit");
                }
                Given::Nothing | Given::NoRoom => return None,
                Given::Upto(instance) => Body::Upto(Upto { instance }),
                Given::Trimmed(upto) => Body::Trimmed(Trimmed { upto }),
            };
            let is_over = matches!(body, Body::Trimmed(_));
            put(out, *request, body, b"");
            if is_over {
                self.subscription = None;
            }
            return None;
        }
    }
}

fn refused(reason: RefusedReason) -> Body {
    Body::Refused(Refused {
        reason: reason.into(),
        detail: format!("{reason:?}"),
    })
}

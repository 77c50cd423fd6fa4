//! Seeded random clusters: lossy, repeating, reordering, cut networks; crashes with and without disk;
//! slow disks; paused replicas; drifting clocks; membership changes, transfers and snapshots all the
//! time. Invariants are checked after every step, and in the end everything must work again.
use crate::environment;
use crate::trouble::{Random, Trouble};
use crate::world::{Content, Disk, ELECTION_TIMEOUT, World, config};
use quorumwire_control::{Body, Input, MemberChange, Peer, Role, Ticket};
use quorumwire_interfaces::{Index, ReplicaId};
use quorumwire_wire::{CommitQuorum, MemberRole};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long things go wrong, in simulated time.
const TROUBLE: Duration = Duration::from_secs(8);
/// How long they may then take to be well again.
const RECOVERY: Duration = Duration::from_secs(4);
const SEEDS_DEFAULT: u64 = 150;
const NETWORK_MAX: usize = 3_000;

/// Outcomes that must have been reached in a whole run.
const WANTED: &[&str] = &[
    "append rejected",
    "bootstrap",
    "candidate",
    "commit",
    "connection broken",
    "crash after a vote",
    "crash after engaging",
    "crash",
    "disengaged: commits_stand_still",
    "disengaged: higher_term",
    "disengaged: leader_silent",
    "disengaged: membership_change",
    "disengaged: plane_failed",
    "disengaged: software",
    "disengaged: too_few_engaged",
    "disengaged: transfer",
    "engage offer",
    "engage refused",
    "engage",
    "fast term in the end",
    "fence waited",
    "isolated after an append",
    "isolated while fast",
    "joined a fast term",
    "leader",
    "learner",
    "lease read in a fast term",
    "lease read",
    "left out",
    "log cut",
    "membership changed",
    "message lost",
    "message repeated",
    "not in the fast term",
    "own pause noticed",
    "packet lost",
    "partition",
    "pause",
    "plane alone",
    "plane commit",
    "plane heartbeat",
    "plane persisted",
    "planes cut",
    "pre-vote",
    "read served",
    "recovered from amnesia",
    "request done",
    "request refused",
    "snapshot asked for",
    "snapshot installed",
    "stall of a disk",
    "transfer election",
    "transfer now",
    "vote refused",
    "wipe",
];

/// How long voters' promises may last, up to the election timeout.
const LEASES: [Duration; 3] = [
    Duration::from_millis(25),
    Duration::from_millis(50),
    ELECTION_TIMEOUT,
];

pub struct Cluster {
    world: World,
    random: Random,
    trouble: Trouble,
    /// Since when, and until when.
    paused: BTreeMap<u16, (Duration, Duration)>,
    disk_due: BTreeMap<u16, Duration>,
    down: BTreeSet<u16>,
    /// The life that was lost last and has not been replaced by a voting one yet.
    amnesiac: Option<Peer>,
    next_action: Duration,
    healthy: bool,
    commands: u64,
    counts: BTreeMap<&'static str, u64>,
}

impl Cluster {
    pub fn new(seed: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let voter_count = random.pick(&[1, 2, 3, 3, 3, 5]).expect("a list");
        let trouble = Trouble::new(&mut random);
        let mut world = World::new();
        world.loud = environment::is_on(environment::TRACE);
        let initial: Vec<u16> = (0..voter_count).collect();
        let lease = random.pick(&LEASES).expect("a list");
        // By a chance of their own: leases that are not the same everywhere.
        let mut apart = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let differ = apart.permille(500);
        for id in 0..voter_count + 2 {
            let members: &[u16] = if id < voter_count { &initial } else { &[] };
            let mut config = config(id, 1, members);
            config.seed ^= seed;
            config.lease = if differ {
                apart.pick(&LEASES).expect("a list")
            } else {
                lease
            };
            world.planes = random.permille(trouble.planes).then_some(true);
            world.start(config, Disk::default());
            let node = world.nodes.get_mut(&id).expect("just started");
            node.slow_disk = true;
            node.slow_fence = trouble.slow_fences;
            node.clock_offset = random.micros(0, 50_000);
            // Two clocks differ by less than 9.5 %; the leases allow for 10 %.
            node.clock_ppm = i64::try_from(random.below(90_000)).expect("small") - 45_000;
        }
        Self {
            world,
            random,
            trouble,
            paused: BTreeMap::new(),
            disk_due: BTreeMap::new(),
            down: BTreeSet::new(),
            amnesiac: None,
            next_action: Duration::ZERO,
            healthy: false,
            commands: 0,
            counts: BTreeMap::new(),
        }
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// Trouble, then peace. The first violation, if any.
    pub fn run(&mut self) -> Option<String> {
        let end = self.world.time + TROUBLE;
        if let Some(violation) = self.run_until(end) {
            return Some(violation);
        }
        self.make_peace();
        let end = self.world.time + RECOVERY;
        self.run_until(end)
            .or_else(|| self.check_all_is_well())
            .map(|problem| format!("{problem}{}", self.describe()))
    }

    fn describe(&self) -> String {
        let nodes = self.world.nodes.values().map(|node| match &node.replica {
            None => format!("\n{:?}: down", node.peer),
            Some(replica) => format!("\n{:?}: {:?}", node.peer, replica.status()),
        });
        nodes.collect()
    }

    fn run_until(&mut self, end: Duration) -> Option<String> {
        while self.world.time < end {
            self.one_event();
            if let Some(violation) = self.world.checks.violation.take() {
                let at = self.world.time;
                return Some(format!("{violation} (at {at:?})"));
            }
        }
        None
    }

    /// Whatever comes next: a message, a wake-up, a piece of disk work, or something going wrong.
    fn one_event(&mut self) {
        for (id, node) in &mut self.world.nodes {
            node.looks = !self.paused.contains_key(id);
        }
        let message = self
            .world
            .network
            .iter()
            .enumerate()
            .filter(|(_, envelope)| {
                // A plane takes its packets also while its host is stopped.
                let frame = matches!(envelope.content, Content::Frame(_));
                frame || !self.paused.contains_key(&envelope.to.id.0)
            })
            .map(|(place, envelope)| (envelope.due, place))
            .min();
        let awake = |id: &u16| !self.paused.contains_key(id);
        let wake = self
            .world
            .nodes
            .iter()
            .filter(|(id, _)| awake(id))
            .filter_map(|(id, node)| Some((node.wake_time()?, *id)))
            .min();
        let disk = self
            .disk_due
            .iter()
            .filter(|(id, _)| awake(id))
            .map(|(id, due)| (*due, *id))
            .min();
        let times = [
            message.map(|m| m.0),
            wake.map(|w| w.0),
            disk.map(|d| d.0),
            Some(self.next_action),
        ];
        let next = times.into_iter().flatten().min().expect("an action is due");
        self.world.time = self.world.time.max(next);
        if times[0] == Some(next) {
            let place = message.expect("is next").1;
            let envelope = self.world.network.swap_remove(place);
            if self.paused.contains_key(&envelope.to.id.0) {
                self.count("plane alone");
            }
            self.world.deliver(envelope);
        } else if times[1] == Some(next) {
            self.world.input(wake.expect("is next").1, Input::Timeout);
        } else if times[2] == Some(next) {
            let id = disk.expect("is next").1;
            self.disk_due.remove(&id);
            if let Some(done) = self.world.do_job(id) {
                self.world.input(id, done);
            }
        } else {
            self.next_action = self.world.time + self.random.micros(500, 6_000);
            if self.healthy {
                self.finish_fences(1000);
                self.propose_anywhere();
            } else {
                self.act();
            }
        }
        self.route();
        self.schedule_disks();
    }

    /// Decides what becomes of the messages just sent, and strikes where it hurts: a voter right
    /// after its vote, a leader right after it appended.
    fn route(&mut self) {
        let mut struck = None;
        let (mut engaging, mut fast) = (None, None);
        let mut place = 0;
        while place < self.world.network.len() {
            let envelope = &self.world.network[place];
            if envelope.held {
                place += 1;
                continue;
            }
            let from = envelope.from.id.0;
            let body = match &envelope.content {
                Content::Message(message) => Some(&message.body),
                Content::Frame(_) => None,
            };
            match body {
                Some(Body::VoteReply {
                    granted: true,
                    pre_vote: false,
                    ..
                }) if !self.healthy && self.random.permille(3 * self.trouble.faults) => {
                    struck = Some((from, true));
                }
                Some(Body::Append { records, .. })
                    if !records.is_empty()
                        && !self.healthy
                        && self.random.permille(self.trouble.faults / 4) =>
                {
                    struck = Some((from, false));
                }
                Some(
                    Body::VoteReply { engaged: true, .. }
                    | Body::EngageOffer { .. }
                    | Body::Engaged { engaged: true, .. },
                ) if !self.healthy && self.random.permille(2 * self.trouble.faults) => {
                    engaging = Some(from);
                }
                None if !self.healthy && self.random.permille(self.trouble.faults / 10) => {
                    fast = Some(from);
                }
                _ => {}
            }
            if !self.healthy && self.random.permille(self.trouble.loss) {
                let frame = matches!(self.world.network[place].content, Content::Frame(_));
                self.count(if frame { "packet lost" } else { "message lost" });
                self.world.network.swap_remove(place);
                continue;
            }
            let late = !self.healthy && self.random.permille(self.trouble.late);
            let span = if late { 400_000 } else { 3_000 };
            let delay = self.random.micros(200, span);
            let repeat = !self.healthy && self.random.permille(self.trouble.repeat);
            let again = self.random.micros(200, 50_000);
            let now = self.world.time;
            let envelope = &mut self.world.network[place];
            envelope.due = now + delay;
            envelope.held = true;
            if repeat {
                let copy = crate::world::Envelope {
                    from: envelope.from,
                    to: envelope.to,
                    content: envelope.content.clone(),
                    due: now + again,
                    held: true,
                };
                self.count("message repeated");
                self.world.network.push(copy);
            }
            place += 1;
        }
        if self.world.network.len() > NETWORK_MAX {
            self.world.network.truncate(NETWORK_MAX / 2);
        }
        match struck {
            Some((voter, true)) => {
                self.count("crash after a vote");
                self.crash(voter);
            }
            Some((leader, false)) => {
                self.count("isolated after an append");
                self.isolate(leader);
            }
            None => {}
        }
        if let Some(id) = engaging {
            self.count("crash after engaging");
            self.crash(id);
        }
        if let Some(id) = fast {
            self.count("isolated while fast");
            self.isolate(id);
        }
    }

    fn schedule_disks(&mut self) {
        let idle: Vec<u16> = self
            .world
            .nodes
            .iter()
            .filter(|(id, node)| !node.jobs.is_empty() && !self.disk_due.contains_key(id))
            .map(|(id, _)| *id)
            .collect();
        for id in idle {
            let stall = !self.healthy && self.random.permille(self.trouble.stalls);
            if stall {
                self.count("stall of a disk");
            }
            let span = if stall { 300_000 } else { 1_500 };
            let due = self.world.time + self.random.micros(50, span);
            self.disk_due.insert(id, due);
        }
        let busy = &self.world.nodes;
        self.disk_due.retain(|id, _| !busy[id].jobs.is_empty());
    }

    /// Something a user, an operator or an enemy does.
    fn act(&mut self) {
        let now = self.world.time;
        self.wake_up(now);
        self.finish_fences(500);
        self.propose_anywhere();
        self.read_anywhere();
        self.note_recovery();
        if self.random.permille(self.trouble.snapshots)
            && let Some(id) = self.anyone()
            && let Some(meta) = self.world.take_snapshot(id)
        {
            self.world.input(id, Input::SnapshotTaken(meta));
        }
        if self.trouble.changes && self.random.permille(30) {
            self.change_something();
        }
        if self.random.permille(self.trouble.faults) {
            self.break_something();
        }
        if self.random.permille(25) {
            self.mend_something();
        }
    }

    fn anyone(&mut self) -> Option<u16> {
        let ids: Vec<u16> = self.world.nodes.keys().copied().collect();
        self.random.pick(&ids)
    }

    /// Those who were stopped for long enough go on, and most notice that they were.
    fn wake_up(&mut self, now: Duration) {
        let over = self.paused.iter().filter(|(_, (_, until))| *until <= now);
        let over: Vec<(u16, Duration)> = over.map(|(id, (since, _))| (*id, *since)).collect();
        for (id, since) in over {
            self.paused.remove(&id);
            if self.random.permille(800) && !self.down.contains(&id) {
                self.count("own pause noticed");
                self.world
                    .input(id, Input::StoodStill(now.saturating_sub(since)));
            }
        }
    }

    /// Those who run, are awake and believe they lead.
    fn leaders(&self) -> Vec<u16> {
        let nodes = self.world.nodes.iter();
        nodes
            .filter(|(id, _)| !self.paused.contains_key(id))
            .filter(|(_, node)| {
                node.replica
                    .as_ref()
                    .is_some_and(|r| r.role() == Role::Leader)
            })
            .map(|(id, _)| *id)
            .collect()
    }

    /// Planes that were told to stop do, some of them.
    fn finish_fences(&mut self, chance: u64) {
        let nodes = self.world.nodes.iter();
        let due: Vec<u16> = nodes
            .filter(|(id, node)| node.fence_due && !self.paused.contains_key(id))
            .map(|(id, _)| *id)
            .collect();
        for id in due {
            if self.random.permille(chance) {
                self.count("fence waited");
                self.world.finish_fence(id);
            }
        }
    }

    /// To the leader's software, or to its plane.
    fn give_command(&mut self, id: u16, payload: &[u8]) -> Option<Index> {
        let proposed = self.world.propose(id, payload).ok();
        proposed.or_else(|| self.world.submit(id, payload))
    }

    fn propose_anywhere(&mut self) {
        for id in self.leaders() {
            for _ in 0..self.random.below(3) {
                self.commands += 1;
                let payload = format!("command {}", self.commands);
                self.give_command(id, payload.as_bytes());
            }
            self.world.flush(id);
        }
    }

    fn read_anywhere(&mut self) {
        for id in self.leaders() {
            let now = self.world.now(id);
            self.world.turn(id);
            let node = &self.world.nodes[&id];
            let served = node.replica.as_ref().and_then(|r| r.lease_read(now));
            if let Some(index) = served {
                let peer = node.peer;
                let fast = node
                    .replica
                    .as_ref()
                    .is_some_and(|r| r.fast_term().is_some());
                self.world.checks.lease_read(peer, index);
                if fast {
                    self.count("lease read in a fast term");
                }
                self.count("lease read");
            }
            if self.random.permille(200) {
                self.commands += 1;
                let ticket = Ticket(self.commands);
                self.world.checks.read_asked(ticket);
                self.world.input(id, Input::Read(ticket));
            }
        }
    }

    fn change_something(&mut self) {
        let Some(leader) = self.random.pick(&self.leaders()) else {
            return;
        };
        let Some(id) = self.anyone() else { return };
        let target = ReplicaId(id);
        self.commands += 1;
        let ticket = Ticket(self.commands);
        let role = if self.random.permille(700) {
            MemberRole::Joining
        } else {
            MemberRole::Learner
        };
        let change = match self.random.below(10) {
            0 | 1 => {
                let target = self.random.permille(700).then_some(target);
                self.world.input(leader, Input::Transfer(ticket, target));
                return;
            }
            2..=4 => MemberChange::Add {
                id: target,
                role,
                peer_address: format!("host{id}:7400"),
            },
            5 => MemberChange::Promote(target),
            // With one voter lost for good, another one is not to be taken away.
            6 | 7 if self.amnesiac.is_none() => MemberChange::Remove(target),
            8 => MemberChange::Quorum(CommitQuorum::All),
            _ => MemberChange::Quorum(CommitQuorum::Majority),
        };
        self.world
            .input(leader, Input::ChangeMembers(ticket, change));
    }

    fn break_something(&mut self) {
        let Some(id) = self.anyone() else { return };
        match self.random.below(12) {
            10 | 11 => {
                if let Some(other) = self.anyone().filter(|other| *other != id) {
                    self.count("connection broken");
                    self.world.disconnect(id, other);
                }
            }
            7 => {
                if let Some(other) = self.anyone().filter(|other| *other != id) {
                    self.count("planes cut");
                    self.world.plane_cut.extend([(id, other), (other, id)]);
                }
            }
            8 => {
                if let Some(plane) = &mut self.world.node(id).plane {
                    plane.failed = true;
                    self.world.input(id, Input::PlaneFailed);
                }
            }
            9 => {
                if let Some(plane) = &mut self.world.node(id).plane {
                    plane.refuses = true;
                }
            }
            0 => self.crash(id),
            1 => self.isolate(id),
            2 => {
                if let Some(other) = self.anyone().filter(|other| *other != id) {
                    self.count("partition");
                    self.world.cut.insert((id, other));
                    if self.random.permille(500) {
                        self.world.cut.insert((other, id));
                    }
                }
            }
            3 => {
                self.count("pause");
                let until = self.world.time + self.random.micros(10_000, 400_000);
                let begun = self.world.time;
                let paused = self.paused.entry(id).or_insert((begun, until));
                paused.1 = until;
            }
            4 => {
                if let Some(leader) = self.random.pick(&self.leaders()) {
                    self.isolate(leader);
                }
            }
            5 => {
                self.count("damaged snapshot");
                let node = self.world.nodes.get_mut(&id).expect("known replica");
                node.snapshot_damaged = true;
            }
            _ => self.wipe(id),
        }
    }

    fn crash(&mut self, id: u16) {
        if self.down.insert(id) {
            self.world.say(format!("  {id}: crashes"));
            self.count("crash");
            self.disk_due.remove(&id);
            self.paused.remove(&id);
            self.world.crash(id);
        }
    }

    fn isolate(&mut self, id: u16) {
        self.count("partition");
        for other in self.world.nodes.keys().copied().filter(|o| *o != id) {
            self.world.cut.extend([(id, other), (other, id)]);
        }
    }

    /// Takes a voter's memory, if the group can bear it: no other voter is without its memory, and
    /// the membership that says so is committed.
    fn wipe(&mut self, id: u16) {
        let peer = self.world.nodes[&id].peer;
        let alone = self.world.nodes[&id].config.initial_members.len() == 1;
        let bearable =
            self.trouble.wipes && !alone && self.amnesiac.is_none() && self.settled(peer);
        if bearable {
            self.count("wipe");
            self.crash(id);
            self.world.wipe(id);
            self.amnesiac = Some(self.world.nodes[&id].peer);
        }
    }

    /// Whether the newest leader's membership is committed, has at least three voters, all of them
    /// in their present lives, and this one among them.
    fn settled(&self, peer: Peer) -> bool {
        let leaders = self.leaders();
        let replicas = leaders.iter().map(|id| &self.world.nodes[id].replica);
        let Some(leader) = replicas.flatten().max_by_key(|r| r.term()) else {
            return false;
        };
        let newest = self.world.nodes.values().filter_map(|n| n.replica.as_ref());
        let newest_term = newest.map(quorumwire_control::Replica::term).max();
        let (set_at, membership) = leader.membership_at(leader.last_index());
        let own_term = leader.term_at(leader.commit_index()) == Some(leader.term());
        let all_live = membership
            .members
            .iter()
            .all(|member| self.world.nodes[&member.id.0].peer.incarnation == member.incarnation);
        newest_term == Some(leader.term())
            && own_term
            && set_at <= leader.commit_index()
            && membership.voters().count() >= 3
            && all_live
            && membership.is_voter(peer.id, peer.incarnation)
    }

    fn note_recovery(&mut self) {
        if let Some(peer) = self.amnesiac
            && self.settled(peer)
        {
            self.amnesiac = None;
            self.count("recovered from amnesia");
        }
    }

    fn mend_something(&mut self) {
        let down: Vec<u16> = self.down.iter().copied().collect();
        if let Some(id) = self.random.pick(&down)
            && self.random.permille(600)
        {
            self.boot(id);
        } else {
            self.heal();
        }
    }

    fn boot(&mut self, id: u16) {
        self.down.remove(&id);
        self.world.say(format!("  {id}: starts"));
        self.world.boot(id);
    }

    fn heal(&mut self) {
        self.world.cut.clear();
        self.world.plane_cut.clear();
        for node in self.world.nodes.values_mut() {
            if let Some(plane) = &mut node.plane {
                plane.refuses = false;
            }
        }
        let ids: Vec<u16> = self.world.nodes.keys().copied().collect();
        for (place, a) in ids.iter().enumerate() {
            for b in &ids[place + 1..] {
                self.world.connect(*a, *b);
            }
        }
    }

    fn make_peace(&mut self) {
        self.healthy = true;
        self.world.say("  all is healed");
        self.paused.clear();
        let down = std::mem::take(&mut self.down);
        for id in down {
            self.world.boot(id);
        }
        self.heal();
    }

    /// A leader on its way into a fast term takes it a little later.
    fn give_the_last_command(&mut self, leader: u16) -> Option<Index> {
        for _ in 0..20 {
            if let Some(index) = self.give_command(leader, b"the last") {
                return Some(index);
            }
            let end = self.world.time + ELECTION_TIMEOUT / 10;
            if self.run_until(end).is_some() {
                return None;
            }
        }
        None
    }

    /// Where every voter has a plane, the group is in a fast term in the end.
    fn check_fast_term(&mut self, leader: u16) -> Option<String> {
        let replica = self.world.nodes[&leader].replica.as_ref()?;
        let with_planes = |id: u16| self.world.nodes[&id].plane.is_some();
        let expected = replica.membership().voters().all(|v| with_planes(v.id.0));
        if expected && replica.fast_term().is_none() {
            return Some("no fast term in the end".into());
        }
        if expected {
            self.count("fast term in the end");
        }
        None
    }

    /// One leader; it commits; every member has what it has.
    fn check_all_is_well(&mut self) -> Option<String> {
        let leaders = self.leaders();
        let [leader] = leaders[..] else {
            return Some(format!("leaders in the end: {leaders:?}"));
        };
        let before = self.world.checks.committed_upto();
        let Some(index) = self.give_the_last_command(leader) else {
            return Some("the leader takes no proposal in the end".into());
        };
        self.world.flush(leader);
        let end = self.world.time + 5 * ELECTION_TIMEOUT;
        if let Some(violation) = self.run_until(end) {
            return Some(violation);
        }
        let replica = self.world.nodes[&leader].replica.as_ref()?;
        if replica.commit_index() < index || index <= before {
            return Some(format!("{index} does not commit, {before} was before"));
        }
        for member in &replica.membership().members {
            let node = &self.world.nodes[&member.id.0];
            let other = node.replica.as_ref()?;
            if member.incarnation != node.peer.incarnation || other.commit_index() < index {
                return Some(format!(
                    "{member:?} is at {} in life {}, not {index}",
                    other.commit_index(),
                    node.peer.incarnation
                ));
            }
            if member.role == MemberRole::Joining {
                return Some(format!("{member:?} never became a voter"));
            }
        }
        self.check_fast_term(leader)
    }
}

/// Runs one seed; what it reached, or what went wrong.
pub fn run_seed(seed: u64) -> Result<BTreeMap<&'static str, u64>, String> {
    let mut cluster = Cluster::new(seed);
    let outcome = cluster.run();
    if cluster.world.loud {
        println!("{}", cluster.world.trace.join("\n"));
    }
    if let Some(problem) = outcome {
        return Err(problem);
    }
    let mut counts = std::mem::take(&mut cluster.counts);
    for (name, count) in &cluster.world.checks.seen {
        *counts.entry(name).or_default() += count;
    }
    Ok(counts)
}

#[test]
fn random_clusters_stay_consistent_and_recover() {
    let replayed = environment::number(environment::SEED);
    let first = replayed.unwrap_or(1);
    let wanted = replayed.map_or(SEEDS_DEFAULT, |_| 1);
    let count = environment::number(environment::SEEDS).unwrap_or(wanted);
    println!("seeds {first} to {}", first + count - 1);
    let mut reached: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in first..first + count {
        match run_seed(seed) {
            Ok(counts) => {
                for (name, count) in counts {
                    *reached.entry(name).or_default() += count;
                }
            }
            Err(problem) => panic!("QUORUMWIRE_SEED={seed}: {problem}"),
        }
    }
    for (name, count) in &reached {
        println!("{count:>10} {name}");
    }
    if replayed.is_none() {
        let missing: Vec<_> = WANTED
            .iter()
            .filter(|w| !reached.contains_key(**w))
            .collect();
        assert!(missing.is_empty(), "never reached: {missing:?}");
    }
}

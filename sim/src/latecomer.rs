//! A voter that takes part late in a cluster that begins. It answers the leader before it holds anything, and
//! is killed before it does: by that answer it has promised to elect nobody else, and its next process must
//! keep that. Chance alone hardly ever does this, so in some seeds it is done once, step by step.
use crate::network::Link;
use crate::plan::ClusterShape;
use crate::queue::{MILLISECOND, Nanos};
use crate::world::{Event, World};
use quorumwire_control::{Body, Message, Output};
use quorumwire_interfaces::Index;

/// A message is under way for less than this.
const DELIVERED_WITHIN: Nanos = 3 * MILLISECOND;
/// A step that waits for others is given up after so many heartbeats.
const HEARTBEATS_MAX: u64 = 40;

/// How far it is.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Stage {
    /// The cluster has not begun.
    #[default]
    Waits,
    /// The late voter hears nobody, since the first entry was made; until somebody leads, or this time.
    Deaf(Nanos),
    /// This leader and the others have lost each other.
    LeaderApart(usize),
    /// The late voter hears that leader, and nobody else.
    Hears(usize),
    /// It has answered and was killed.
    Killed(usize),
    /// It may vote for another leader, while this one hears nobody.
    MayVote(usize),
    /// There is no more to come.
    Over,
}

impl World {
    /// The late voter, where there is one: the last.
    fn latecomer(&self) -> Option<usize> {
        let settings = &self.plan.settings;
        let is_late = settings.shape == ClusterShape::Latecomer && !self.peace;
        is_late.then(|| usize::from(settings.voters) - 1)
    }

    /// Others than these two.
    fn others(&self, a: usize, b: usize) -> impl Iterator<Item = usize> + use<> {
        (0..self.machines.len()).filter(move |place| *place != a && *place != b)
    }

    /// The members have changed for the first time: the first entry was made, and nobody else was told.
    pub fn first_entry_made(&mut self) {
        let Some(late) = self.latecomer() else { return };
        if self.latecomer != Stage::Waits {
            return;
        }
        let links: Vec<Link> = self.others(late, late).map(|o| (o, late)).collect();
        self.network.cut(&links);
        let heartbeat = self.plan.settings.heartbeat;
        self.latecomer = Stage::Deaf(self.now + HEARTBEATS_MAX * heartbeat);
        self.queue.set(self.now + 3 * heartbeat, Event::Latecomer);
    }

    /// Whether a message would bring the late voter the first entry, before it has answered anybody.
    pub fn loses_first_entry(&self, to: usize, message: &Message) -> bool {
        let waits = match self.latecomer {
            Stage::Deaf(_) | Stage::LeaderApart(_) | Stage::Hears(_) => true,
            Stage::Waits | Stage::Killed(_) | Stage::MayVote(_) | Stage::Over => false,
        };
        waits && self.latecomer() == Some(to) && matches!(message.body, Body::Bootstrap { .. })
    }

    /// Whether the late voter answers its leader and holds nothing: then it is killed as soon as that is
    /// said.
    pub fn answers_with_nothing(&self, machine: usize, output: &Output) -> bool {
        let Stage::Hears(leader) = self.latecomer else {
            return false;
        };
        let (Some(late), Output::Send { to, message }) = (self.latecomer(), output) else {
            return false;
        };
        let answers = matches!(message.body, Body::AppendReply { round, .. } if round > 0);
        let holds_nothing = self.machines[machine].durable.last_index() == Index(0);
        machine == late && usize::from(to.id.0) == leader && answers && holds_nothing
    }

    /// It has answered.
    pub fn has_answered_with_nothing(&mut self, late: usize) {
        if let Stage::Hears(leader) = self.latecomer {
            self.counts.see("killed with an answer and nothing else");
            self.crash(late, false, MILLISECOND);
            self.latecomer = Stage::Killed(leader);
            self.queue
                .set(self.now + DELIVERED_WITHIN, Event::Latecomer);
        }
    }

    /// The next step.
    pub fn latecomer_goes_on(&mut self) {
        let Some(late) = self.latecomer() else { return };
        let heartbeat = self.plan.settings.heartbeat;
        match self.latecomer {
            Stage::Deaf(until) => match self.leader().filter(|leader| *leader != late) {
                Some(leader) => self.take_leader_apart(leader, late),
                None if self.now < until => {
                    self.queue.set(self.now + heartbeat, Event::Latecomer);
                }
                None => {
                    self.may_hear(late, late);
                    self.latecomer = Stage::Over;
                }
            },
            Stage::LeaderApart(leader) => {
                self.network.mend(&[(leader, late)]);
                self.latecomer = Stage::Hears(leader);
                self.queue.set(self.now + 3 * heartbeat, Event::Latecomer);
            }
            Stage::Hears(leader) => {
                // It holds something by now, or hears nobody for another reason.
                self.may_hear(late, leader);
                self.mend_both_ways(leader, late);
                self.latecomer = Stage::Over;
            }
            Stage::Killed(leader) => {
                self.network.cut(&[(leader, late), (late, leader)]);
                self.may_hear(late, leader);
                for other in self.others(late, leader).collect::<Vec<_>>() {
                    self.connect(other, late);
                }
                self.latecomer = Stage::MayVote(leader);
                let lasts = 2 * self.shortest_promise();
                self.queue.set(self.now + lasts, Event::Latecomer);
            }
            Stage::MayVote(leader) => {
                self.network.mend(&[(leader, late), (late, leader)]);
                self.mend_both_ways(leader, late);
                self.latecomer = Stage::Over;
            }
            Stage::Waits | Stage::Over => {}
        }
    }

    fn take_leader_apart(&mut self, leader: usize, late: usize) {
        for other in self.others(leader, late).collect::<Vec<_>>() {
            self.network.cut(&[(leader, other), (other, leader)]);
            self.disconnect(leader, other);
        }
        self.latecomer = Stage::LeaderApart(leader);
        // The others' promises pass, but not long before that of the late one will.
        let promise = self.shortest_promise();
        let lasts = promise * self.random.between(30, 90) / 100;
        self.queue.set(self.now + lasts, Event::Latecomer);
    }

    /// The late voter may hear all but this one again.
    fn may_hear(&mut self, late: usize, leader: usize) {
        let links: Vec<Link> = self.others(late, leader).map(|o| (o, late)).collect();
        self.network.mend(&links);
    }

    /// The leader and the others may hear each other again.
    fn mend_both_ways(&mut self, leader: usize, late: usize) {
        for other in self.others(leader, late).collect::<Vec<_>>() {
            self.network.mend(&[(leader, other), (other, leader)]);
        }
    }

    fn shortest_promise(&self) -> Nanos {
        let settings = &self.plan.settings;
        settings.leases.iter().min().copied().unwrap_or_default()
    }
}

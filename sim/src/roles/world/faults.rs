//! What a fault does, and how it ends.
use super::{Event, World};
use crate::roles::nodes::Out;
use crate::roles::plan::{Node, What};
use quorumwire_paxos_hosts::AcceptorHost;

impl World {
    /// Acceptors that count for the instance for which the fewest do, without one of them. For what is not
    /// begun yet all do that are let in.
    pub(in crate::roles) fn members(&self, without: Option<u8>) -> usize {
        let numbered = (0_u8..).zip(&self.acceptors);
        let others = numbered.filter(|(me, _)| Some(*me) != without);
        let hosts: Vec<&AcceptorHost> = others
            .filter_map(|(_, place)| place.host.as_ref())
            .filter(|host| !host.software().is_newcomer())
            .collect();
        let registers = || hosts.iter().map(|host| host.engine().registers());
        let trimmed = registers().map(|it| it.trimmed).max().unwrap_or(0);
        let bound = registers().map(|it| it.bound).max().unwrap_or(0);
        let counts = |instance| {
            let members = hosts
                .iter()
                .filter(|it| it.engine().is_member_for(instance));
            members.count()
        };
        let fewest = (trimmed + 1..=bound).map(counts).min();
        fewest.unwrap_or(hosts.len())
    }

    fn kill(&mut self, node: Node) -> bool {
        if !self.runs(node) {
            return false;
        }
        let settings = &self.plan.settings;
        if let Node::Acceptor(me) = node {
            let place = usize::from(me);
            let left = self.members(Some(me));
            let majority = self.acceptors.len() / 2 + 1;
            if !settings.is_durable && left < majority && !settings.beyond_minority {
                return false;
            }
            let waiting = self.disks[place].writing.len() as u64;
            let reached = usize::try_from(self.random.below(waiting + 1)).unwrap_or(0);
            self.disks[place].stop(reached);
            self.acceptors[place].host = None;
        }
        match node {
            Node::Coordinator(me) => self.coordinators[usize::from(me)].host = None,
            Node::Learner(me) => {
                let host = self.learners[usize::from(me)].host.take();
                self.unknown += host.map_or(0, |host| host.outstanding.len());
            }
            Node::Acceptor(_) => {}
        }
        self.say(|| format!("{node:?} is killed"));
        true
    }

    pub(super) fn strike(&mut self, number: usize) {
        let fault = self.plan.faults[number].clone();
        self.say(|| format!("{:?}", fault.what));
        match fault.what {
            What::Kill(node) => {
                if self.kill(node) {
                    self.see(match node {
                        Node::Coordinator(_) => "coordinator killed",
                        Node::Acceptor(_) => "acceptor killed",
                        Node::Learner(_) => "learner killed",
                    });
                }
            }
            What::Cut(node) => {
                *self.cut.entry(node).or_default() += 1;
                self.see("cut off");
            }
            What::Part(one, other) => {
                *self.parted.entry((one, other)).or_default() += 1;
                self.see("parted");
            }
            What::Deaf(from, to) => {
                *self.deaf.entry((from, to)).or_default() += 1;
                self.see("deaf to another one");
            }
            What::Garble(permille) => self.garbled = permille,
            What::Pause(node) => {
                let until = self.paused.entry(node).or_default();
                *until = (*until).max(self.now + fault.lasts);
            }
            What::Lose(permille) => self.lost = permille,
            What::SlowDisk(by) => self.slow_disk = by,
            What::TakeOver(me) => self.operator_takes_over(me),
            What::KeepNothing(me) => {
                self.keeps_nothing.insert(me);
            }
            What::Recover(me) => self.recover(me),
            What::DeclareLost => self.declare_lost(),
        }
        self.queue.set(self.now + fault.lasts, Event::Over(number));
    }

    pub(super) fn over(&mut self, number: usize) {
        match self.plan.faults[number].what {
            What::Kill(node) => self.start(node),
            What::Cut(node) => {
                if let Some(count) = self.cut.get_mut(&node) {
                    *count = count.saturating_sub(1);
                }
            }
            What::Part(one, other) => {
                if let Some(count) = self.parted.get_mut(&(one, other)) {
                    *count = count.saturating_sub(1);
                }
            }
            What::Deaf(from, to) => {
                if let Some(count) = self.deaf.get_mut(&(from, to)) {
                    *count = count.saturating_sub(1);
                }
            }
            What::Garble(_) => self.garbled = 0,
            What::Lose(_) => self.lost = 0,
            What::SlowDisk(_) => self.slow_disk = 0,
            What::KeepNothing(me) => {
                self.keeps_nothing.remove(&me);
            }
            What::TakeOver(_) | What::Recover(_) | What::DeclareLost | What::Pause(_) => {}
        }
    }

    /// Everything runs and hears again. Nobody keeps anything yet, so nothing is forgotten.
    pub(in crate::roles) fn make_peace(&mut self) {
        self.cut.clear();
        self.parted.clear();
        self.deaf.clear();
        self.paused.clear();
        self.garbled = 0;
        self.lost = 0;
        self.slow_disk = 0;
        let deployment = self.plan.settings.deployment;
        self.keeps_nothing = (0..deployment.learners).collect();
        (0..deployment.coordinators).for_each(|me| self.start(Node::Coordinator(me)));
        (0..deployment.acceptors).for_each(|me| self.start(Node::Acceptor(me)));
        (0..deployment.learners).for_each(|me| self.start(Node::Learner(me)));
    }

    /// Applications keep what they have.
    pub(in crate::roles) fn keep_again(&mut self) {
        self.keeps_nothing.clear();
    }

    fn operator_takes_over(&mut self, me: u8) {
        let (time, mut out) = (self.time(), Out::default());
        if let Some(host) = &mut self.coordinators[usize::from(me)].host {
            host.take_over(time, &mut out);
            self.see("operator has another one take over");
        }
        self.post(Node::Coordinator(me), out);
    }

    fn recover(&mut self, me: u8) {
        let (time, mut out) = (self.time(), Out::default());
        if let Some(place) = &mut self.learners[usize::from(me)].host {
            let next = place.host.learner().next();
            if place.host.recover(time, next, b"", &mut out).is_ok() {
                self.see("recover asked for");
            }
        }
        self.post(Node::Learner(me), out);
    }

    fn declare_lost(&mut self) {
        self.declared_lost = true;
        let upto = self.checkpoints.iter().map(|it| it.kept).max().unwrap_or(0);
        let deployment = self.plan.settings.deployment;
        for me in 0..deployment.acceptors {
            let mut out = Out::default();
            if let Some(host) = &mut self.acceptors[usize::from(me)].host {
                host.declare_lost(upto, &mut out);
            }
            self.post(Node::Acceptor(me), out);
        }
        for me in 0..deployment.coordinators {
            let mut out = Out::default();
            if let Some(host) = &mut self.coordinators[usize::from(me)].host {
                host.declare_lost(upto, &mut out);
            }
            self.post(Node::Coordinator(me), out);
        }
    }
}

//! Cuts one replica off: from everybody at once, or step by step while another one's plane goes on without
//! its process. Decides nothing about whom and when.
use crate::fault::{Fault, Kind, Shape};
use crate::network::Link;
use crate::queue::{MILLISECOND, Nanos};
use crate::random::Random;
use crate::world::{Event, World};

/// Who is cut off when another one has read its folder.
#[derive(Clone, Copy, Debug)]
pub struct SeversWhenRead {
    machine: usize,
    lasts: Nanos,
    luck: u64,
}

impl World {
    /// Nobody hears it, and it hears nobody.
    pub fn isolate(&mut self, machine: usize, lasts: Nanos, luck: u64) {
        let mut luck = Random::new(luck);
        if luck.permille(400) {
            let peer = self.machines[machine].peer;
            self.network.lose_from(peer);
        }
        let others: Vec<usize> = self.all_but(machine);
        self.part(machine, &others, lasts);
    }

    fn all_but(&self, machine: usize) -> Vec<usize> {
        let others = (0..self.machines.len()).filter(|other| *other != machine);
        others.collect()
    }

    /// It and these do not hear each other for a while.
    fn part(&mut self, machine: usize, others: &[usize], lasts: Nanos) {
        let links: Vec<Link> = others
            .iter()
            .flat_map(|other| [(machine, *other), (*other, machine)])
            .collect();
        self.network.cut(&links);
        // It ends as a fault of its own, behind those of the plan.
        let number = u16::try_from(self.plan.faults.len()).unwrap_or(u16::MAX);
        self.plan.faults.push(Fault {
            at: self.now,
            lasts,
            what: Kind::Partition(Shape::LeaderAlone),
            luck: 0,
        });
        self.queue.set(self.now + lasts, Event::Over(number));
        self.cuts.push((number, links));
    }

    /// It is isolated, all others notice at once, and all but one of them are killed and soon back.
    pub fn sever(&mut self, machine: usize, lasts: Nanos, luck: u64) {
        let planes_stay = self.plan.settings.plane_outlives;
        if planes_stay && Random::new(luck ^ 2).permille(500) {
            return self.sever_when_read(machine, lasts, luck);
        }
        self.isolate(machine, lasts, luck);
        let peer = self.machines[machine].peer;
        self.leave_all(machine, peer);
        let mut luck = Random::new(luck ^ 1);
        let others = self.all_but(machine);
        let spared = luck.pick(&others);
        for other in others {
            let back = luck.between(10, 50) * MILLISECOND;
            if Some(other) != spared && self.may_die(other) {
                self.crash(other, false, back);
            }
        }
        self.counts.see("severed");
    }

    /// Only some others go on answering it, as many as it needs, by the planes of processes that are killed;
    /// the rest has lost it. It is isolated when the next process of one of those has read its folder. So
    /// whoever the rest elects rests on promises that planes gave while a folder was read.
    fn sever_when_read(&mut self, machine: usize, lasts: Nanos, luck: u64) {
        let mut chance = Random::new(luck ^ 3);
        let machine = self.leader().unwrap_or(machine);
        let mut others = self.all_but(machine);
        chance.shuffle(&mut others);
        let lost = others.split_off(usize::from(self.plan.settings.voters) / 2);
        let longest = self.plan.settings.leases.iter().max().copied();
        let lasts = lasts + 2 * longest.unwrap_or_default();
        self.part(machine, &lost, lasts);
        for other in lost {
            self.disconnect(machine, other);
        }
        for other in others {
            let back = chance.between(1, 10) * MILLISECOND;
            if self.may_die(other) {
                self.crash(other, false, back);
            }
        }
        self.severs_when_read = Some(SeversWhenRead {
            machine,
            lasts,
            luck,
        });
        self.counts.see("severed when a folder is read");
    }

    /// A process has read its folder, while the plane of the one before it went on.
    pub fn has_read(&mut self, machine: usize) {
        let severs = self.severs_when_read.take_if(|it| it.machine != machine);
        if let Some(SeversWhenRead {
            machine,
            lasts,
            luck,
        }) = severs
        {
            self.isolate(machine, lasts, luck);
        }
    }
}

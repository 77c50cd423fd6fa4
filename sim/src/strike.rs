//! Carries out what a plan says shall go wrong, where the group can bear it: at most one voter without
//! its memory at a time, because nothing survives more.
use crate::fault::{Class, ClockFault, DiskFault, Kind, Moment, Shape, Strike, Target};
use crate::machine::Arrival;
use crate::network::{Link, notice_delay};
use crate::plan::{ClusterShape, Durability};
use crate::queue::{MILLISECOND, Nanos};
use crate::random::Random;
use crate::world::{ArmedFault, Event, World};
use quorumwire_control::{Peer, Role};
use quorumwire_interfaces::Index;
use quorumwire_storage::{Disk, DiskFile, FaultyDisk, MemoryDisk};
use std::io::IoSlice;

/// A clock that is ahead by more is set right when it is set again.
const DAY_MS: i64 = 86_400_000;

impl World {
    /// A fault of the plan begins.
    pub fn fault_begins(&mut self, number: u16) {
        if self.peace {
            return;
        }
        let fault = self.plan.faults[usize::from(number)];
        let mut luck = Random::new(fault.luck);
        if self.loud {
            self.say(99, &format!("fault {number}: {:?}", fault.what));
        }
        self.counts.planned += 1;
        let anyone = usize::try_from(luck.below(self.machines.len() as u64)).unwrap_or(0);
        match fault.what {
            Kind::RotateKeys => self.rotate_keys(fault.lasts),
            Kind::Network(weather) => self.network.weather.push((number, weather)),
            Kind::Unreadable => {
                let machine = self.leader().unwrap_or(anyone);
                if let Some(process) = &mut self.machines[machine].process {
                    process.unreadable_upto = process.group.replica.snapshot_index();
                }
            }
            Kind::PlaneRefuses => {
                self.machines[anyone].plane_refuses_until = self.now + fault.lasts;
            }
            Kind::Partition(shape) => self.cut(number, shape, &mut luck),
            Kind::Clog => self.clog(anyone, fault.lasts),
            Kind::SwizzleClog => self.swizzle(fault.lasts, &mut luck),
            Kind::Bytes(next) => self.network.byte_faults.push(next),
            Kind::Strike(strike, target) => {
                let machine = match target {
                    Target::Leader => self.leader().unwrap_or(anyone),
                    Target::Anyone => anyone,
                };
                self.strike(machine, strike, fault.lasts, luck.next());
            }
            Kind::PowerCutOfAll => self.cut_power_of_all(fault.lasts, &mut luck),
            Kind::Disk(disk) => self.break_disk(anyone, (disk, fault.lasts), &mut luck),
            Kind::NoMemory { after } => self.starve_of_memory(anyone, after, &mut luck),
            Kind::Clock(clock) => self.disturb_clock(anyone, clock),
            Kind::Members(change) => {
                let machine = self.leader().unwrap_or(anyone);
                self.arrive(machine, Arrival::Admin(change, luck.next()));
            }
            Kind::Returns { requests } => self.leadership_goes_away(anyone, requests, fault.lasts),
            Kind::Snapshot => self.arrive(anyone, Arrival::TakeSnapshot),
            Kind::Overload { commands } => {
                if let Some(machine) = self.leader() {
                    self.flood(machine, commands);
                }
            }
            Kind::Trigger { on, skip, then } => self.armed.push(ArmedFault {
                fault: number,
                on,
                skip,
                then,
                lasts: fault.lasts,
                luck: luck.next(),
            }),
        }
        self.queue.set(self.now + fault.lasts, Event::Over(number));
    }

    /// A fault of the plan ends.
    pub fn fault_ends(&mut self, number: u16) {
        let Some(fault) = self.plan.faults.get(usize::from(number)).copied() else {
            return;
        };
        self.network.weather.retain(|(by, _)| *by != number);
        if let Some(found) = self.cuts.iter().position(|(by, _)| *by == number) {
            let (_, links) = self.cuts.swap_remove(found);
            self.network.mend(&links);
        }
        let mut luck = Random::new(fault.luck);
        let machine = usize::try_from(luck.below(self.machines.len() as u64)).unwrap_or(0);
        match fault.what {
            Kind::Disk(disk) => self.mend_disk(machine, disk),
            Kind::Clock(ClockFault::Stops) => self.restart_clock(machine),
            Kind::Network(_)
            | Kind::Bytes(_)
            | Kind::Partition(_)
            | Kind::Clog
            | Kind::SwizzleClog
            | Kind::PlaneRefuses
            | Kind::RotateKeys
            | Kind::Strike(..)
            | Kind::PowerCutOfAll
            | Kind::Unreadable
            | Kind::NoMemory { .. }
            | Kind::Clock(ClockFault::Slews { .. } | ClockFault::Jumps { .. })
            | Kind::Members(_)
            | Kind::Returns { .. }
            | Kind::Snapshot
            | Kind::Overload { .. }
            | Kind::Trigger { .. } => {}
        }
    }

    /// Who leads the newest term, as far as anyone believes to lead.
    #[must_use]
    pub fn leader(&self) -> Option<usize> {
        let places = 0..self.machines.len();
        let leads = |place: &usize| {
            let process = self.machines[*place].process.as_ref();
            process.is_some_and(|process| process.group.replica.role() == Role::Leader)
        };
        places.filter(leads).max_by_key(|place| {
            let process = self.machines[*place].process.as_ref();
            process.map(|process| process.group.replica.term())
        })
    }

    fn cut(&mut self, number: u16, shape: Shape, luck: &mut Random) {
        let count = self.machines.len();
        let mut order: Vec<usize> = (0..count).collect();
        luck.shuffle(&mut order);
        let leader = self.leader().unwrap_or(order[0]);
        let half = 1 + usize::try_from(luck.below(count as u64 - 1)).unwrap_or(0);
        let side = |machine: usize| order.iter().position(|p| *p == machine) < Some(half);
        let all = (0..count).flat_map(|a| (0..count).map(move |b| (a, b)));
        let is_cut = |(a, b): &Link| {
            a != b
                && match shape {
                    Shape::Halves => side(*a) != side(*b),
                    Shape::OneWay => (*a, *b) == (order[0], order[1]),
                    Shape::Deaf => *b == order[0],
                    Shape::Bridge => {
                        let bridge = order[half];
                        *a != bridge && *b != bridge && side(*a) != side(*b)
                    }
                    Shape::Ring => {
                        let at =
                            |machine: usize| order.iter().position(|p| *p == machine).unwrap_or(0);
                        let (a, b) = (at(*a), at(*b));
                        (a + 1) % count != b && (b + 1) % count != a
                    }
                    Shape::LeaderAlone => *a == leader || *b == leader,
                }
        };
        let links: Vec<Link> = if shape == Shape::Bridge && half >= count {
            Vec::new()
        } else {
            all.filter(is_cut).collect()
        };
        self.network.cut(&links);
        self.cuts.push((number, links));
    }

    fn clog(&mut self, machine: usize, lasts: Nanos) {
        for other in 0..self.machines.len() {
            self.network.clog((other, machine), self.now + lasts);
        }
        self.counts.hit(Class::F5Clog);
    }

    fn swizzle(&mut self, lasts: Nanos, luck: &mut Random) {
        for machine in 0..self.machines.len() {
            if luck.permille(500) {
                let lasts = luck.between(lasts / 2, lasts * 2);
                self.clog(machine, lasts);
            }
        }
    }

    /// A process has come to a moment of the protocol: whatever waits for that strikes.
    pub fn reached(&mut self, machine: usize, moment: Moment) {
        if self.armed.is_empty() || self.peace {
            return;
        }
        let Some(at) = self.armed.iter().position(|armed| armed.on == moment) else {
            return;
        };
        if self.armed[at].skip > 0 {
            self.armed[at].skip -= 1;
            return;
        }
        let armed = self.armed.swap_remove(at);
        self.counts.see(moment.name());
        if self.loud {
            self.say(
                machine,
                &format!("fault {} at {moment:?}: {:?}", armed.fault, armed.then),
            );
        }
        self.strike(machine, armed.then, armed.lasts, armed.luck);
    }

    /// Something is done to one machine.
    pub fn strike(&mut self, machine: usize, strike: Strike, lasts: Nanos, luck: u64) {
        let (now, is_over) = (self.now, self.peace);
        let may_die = self.may_die(machine);
        let sync = self.plan.settings.durability == Durability::Sync;
        let it = &mut self.machines[machine];
        if it.process.is_none() || is_over {
            return;
        }
        it.down_for = lasts;
        match strike {
            Strike::Kill { after } if may_die => it.dies_after = Some((after, false)),
            Strike::PowerCut { after } if may_die => it.dies_after = Some((after, true)),
            Strike::KillInWrite { after } if may_die => {
                it.dies_in_write = Some((after, false));
            }
            Strike::PowerCutInWrite { after } if may_die => {
                it.dies_in_write = Some((after, true));
            }
            Strike::FailSync { after } if may_die && sync => {
                it.disk.faults().syncs_until_failure = Some(u64::from(after));
            }
            Strike::ResetPlane if may_die => self.reset_plane(machine, lasts),
            Strike::Kill { .. }
            | Strike::PowerCut { .. }
            | Strike::FailSync { .. }
            | Strike::KillInWrite { .. }
            | Strike::PowerCutInWrite { .. }
            | Strike::ResetPlane => {}
            Strike::BreakPlane => self.break_plane(machine),
            Strike::Administer(change) => self.arrive_later(machine, Arrival::Admin(change, luck)),
            Strike::Pause | Strike::PauseControl => {
                if it.busy_until <= now {
                    it.plane_goes_on = strike == Strike::PauseControl;
                }
                it.busy_until = it.busy_until.max(now + lasts);
                it.still_since = it.still_since.or(Some(it.clock(now)));
                let run = it.run;
                let until = it.busy_until;
                self.queue.set(until, Event::GoesOn(machine, run));
                self.counts.hit(Class::F10Pause);
            }
            Strike::Occupy => {
                it.occupied_until = it.occupied_until.max(now + lasts);
                self.queue
                    .set(it.occupied_until, Event::GoesOn(machine, it.run));
            }
            Strike::Isolate => {
                self.isolate(machine, lasts, luck);
                self.counts.see("isolated");
            }
            Strike::Sever => self.sever(machine, lasts, luck),
        }
    }

    /// In `memory` mode a process that dies has lost its memory.
    pub fn may_die(&mut self, machine: usize) -> bool {
        match self.plan.settings.durability {
            Durability::Sync => true,
            Durability::Memory => self.may_forget(machine),
        }
    }

    /// After each output: whether it was the last one.
    pub fn die_if_doomed(&mut self, machine: usize) {
        let it = &mut self.machines[machine];
        let Some((left, power)) = it.dies_after else {
            return;
        };
        if it.process.is_none() {
            return;
        }
        if left > 0 {
            it.dies_after = Some((left - 1, power));
            return;
        }
        it.dies_after = None;
        let lasts = it.down_for;
        if self.may_die(machine) {
            self.counts.hit(Class::F8Crash);
            self.crash(machine, power, lasts);
        }
    }

    /// Before the disk does something: whether that is when the process dies.
    pub fn dies_in_write(&mut self, machine: usize) -> bool {
        let it = &mut self.machines[machine];
        let Some((after, power)) = it.dies_in_write.take() else {
            return false;
        };
        let lasts = it.down_for;
        if !self.may_die(machine) {
            return false;
        }
        let it = &mut self.machines[machine];
        it.disk.faults().changes_until_death = Some(u64::from(after));
        if let Some(process) = &mut it.process {
            process.journal.write_and_die(&mut self.random);
        }
        self.counts.hit(Class::F12TornWrite);
        self.crash(machine, power, lasts);
        true
    }

    /// The process is gone; it starts again later. With a power cut, what was not synced may be, too.
    pub fn crash(&mut self, machine: usize, power: bool, lasts: Nanos) {
        let forgetful = self.forgetful == Some(machine);
        let sync = self.plan.settings.durability == Durability::Sync;
        let it = &mut self.machines[machine];
        let Some(process) = it.process.take() else {
            return;
        };
        it.occupied_until = 0;
        it.socket.clear();
        it.durable.unsure_from = process.journal.unsure_from();
        let outlives = self.plan.settings.plane_outlives && !power;
        it.orphan = process.group.plane.filter(|_| outlives);
        let before = *it.disk.faults();
        if before.starved > 0 {
            self.counts.hit(Class::F11Starved);
        }
        let mut files = it.disk.inner().clone();
        // A disk that holds damage which was not found yet must not look like one that was cut off in
        // the middle of a write: no single disk can tell these apart.
        if power && !forgetful {
            let random = &mut self.random;
            files = files.after_power_cut(&mut |bound| random.below(bound));
        }
        it.disk = FaultyDisk::new(files);
        it.disk.faults().space_bytes = before.space_bytes;
        it.disk.faults().opens_until_no_handle = before.opens_until_no_handle;
        it.run += 1;
        it.inbox.clear();
        it.wake_at = Nanos::MAX;
        it.busy_until = 0;
        it.still_since = None;
        it.dies_after = None;
        it.dies_in_write = None;
        if !sync {
            self.forgetful = Some(machine);
        }
        self.say(machine, if power { "loses power" } else { "is killed" });
        let peer = self.machines[machine].peer;
        self.leave_all(machine, peer);
        let lasts = lasts.max(MILLISECOND);
        self.queue.set(self.now + lasts, Event::Boot(machine));
    }

    /// The others notice, one after the other, that a process is not there any more.
    pub fn leave_all(&mut self, machine: usize, peer: Peer) {
        for other in 0..self.machines.len() {
            if other == machine || !self.network.is_connected(machine, other) {
                continue;
            }
            self.network.set_connected(machine, other, false);
            let delay = notice_delay(&mut self.random);
            self.queue.set(self.now + delay, Event::Gone(other, peer));
        }
    }

    /// The disk of a process has failed it: it stops, and does not try again before it is started anew.
    pub fn log_failed(&mut self, machine: usize) {
        self.counts.hit(Class::F13SyncFails);
        let lasts = self.random.between(10, 2_000) * MILLISECOND;
        self.crash(machine, false, lasts);
    }

    fn cut_power_of_all(&mut self, lasts: Nanos, luck: &mut Random) {
        if self.plan.settings.durability == Durability::Memory {
            return;
        }
        for machine in 0..self.machines.len() {
            if luck.permille(300) && self.machines[machine].process.is_some() {
                // In the middle of whatever its disk was at.
                let after = luck.below(6);
                let it = &mut self.machines[machine];
                it.disk.faults().changes_until_death = Some(after);
                if let Some(process) = &mut it.process {
                    process.journal.write_and_die(&mut self.random);
                }
            }
            let back = luck.between(lasts / 2, lasts + 100 * MILLISECOND);
            self.crash(machine, true, back);
        }
        self.counts.hit(Class::F9PowerCutOfAll);
    }

    fn disturb_clock(&mut self, machine: usize, fault: ClockFault) {
        match fault {
            ClockFault::Stops => self.stop_clock(machine),
            ClockFault::Slews { permille } => self.slew_clock(machine, permille),
            ClockFault::Jumps { seconds } => {
                // A clock that is far ahead is set right the next time.
                let it = &mut self.machines[machine];
                it.wall_set_at = Some(self.now);
                it.wall_offset_ms = match it.wall_offset_ms {
                    DAY_MS.. => 0,
                    offset_ms => offset_ms + i64::from(seconds) * 1_000,
                };
                self.counts.hit(Class::F19Clock);
            }
        }
    }

    fn break_disk(
        &mut self,
        machine: usize,
        (fault, lasts): (DiskFault, Nanos),
        luck: &mut Random,
    ) {
        match fault {
            DiskFault::SyncFails { after } => {
                let mut faults = self.machines[machine].disk.faults();
                faults.syncs_until_failure = Some(u64::from(after));
            }
            DiskFault::Full => {
                let room = luck.below(20_000);
                self.machines[machine].disk.faults().space_bytes = Some(room);
            }
            DiskFault::NoHandles { after } => {
                let mut faults = self.machines[machine].disk.faults();
                faults.opens_until_no_handle = Some(u64::from(after));
            }
            DiskFault::RollBack => self.copy_disk(machine, lasts, luck),
            DiskFault::Stall => {
                let it = &mut self.machines[machine];
                it.stalled_until = it.stalled_until.max(self.now + lasts);
                self.counts.hit(Class::F17Stall);
            }
            DiskFault::Wipe if self.may_forget(machine) => {
                self.forgetful = Some(machine);
                self.crash(machine, false, lasts);
                let it = &mut self.machines[machine];
                it.disk = FaultyDisk::new(MemoryDisk::with_power_cuts());
                if luck.permille(500) {
                    it.mark = None; // the file beside the folder is gone, too
                    if self.plan.settings.shape == ClusterShape::BeginsAlone {
                        // Told again to begin a cluster alone, it would: so it is told to join one.
                        it.initial.clear();
                    }
                }
                self.counts.hit(Class::F18Wipe);
            }
            DiskFault::Damage if self.may_forget(machine) => {
                self.forgetful = Some(machine);
                self.crash(machine, false, lasts);
                if damage(self.machines[machine].disk.inner(), luck) {
                    self.counts.hit(Class::F15Damage);
                }
            }
            DiskFault::Misdirected { after } if self.may_forget(machine) => {
                self.forgetful = Some(machine);
                let it = &mut self.machines[machine];
                let bytes = luck.between(1, 4_000);
                it.disk.faults().misdirect = Some((u64::from(after), bytes));
                it.down_for = lasts;
                it.dies_after = Some((u8::try_from(luck.between(20, 200)).unwrap_or(99), false));
                self.counts.hit(Class::F16Misdirected);
            }
            DiskFault::Wipe | DiskFault::Damage | DiskFault::Misdirected { .. } => {}
        }
    }

    fn mend_disk(&mut self, machine: usize, fault: DiskFault) {
        let mut faults = self.machines[machine].disk.faults();
        match fault {
            DiskFault::Full => faults.space_bytes = None,
            DiskFault::NoHandles { .. } => faults.opens_until_no_handle = None,
            DiskFault::SyncFails { .. }
            | DiskFault::Damage
            | DiskFault::Misdirected { .. }
            | DiskFault::Stall
            | DiskFault::Wipe
            | DiskFault::RollBack => {}
        }
    }

    /// Whether the group can bear that this one loses its memory: no other voter has, and that is
    /// settled: the newest leader's members are committed, at least three vote, all in their present
    /// lives.
    fn may_forget(&mut self, machine: usize) -> bool {
        if self.machines[machine].process.is_none() || self.is_memory_missing() {
            return false;
        }
        self.is_settled(machine)
    }

    /// Whether somebody has lost its memory, or a part of it, and does not have it back.
    #[must_use]
    pub fn is_memory_missing(&self) -> bool {
        let owes = |machine: &crate::machine::Machine| machine.owes.is_some();
        self.forgetful.is_some() || self.machines.iter().any(owes)
    }

    /// Whether the newest leader's members are committed, at least three, this one among them, all in their
    /// present lives, and none is about to be removed: that may wait for a plane to stop.
    #[must_use]
    pub fn is_settled(&self, machine: usize) -> bool {
        let Some(leader) = self.leader() else {
            return false;
        };
        let Some(process) = &self.machines[leader].process else {
            return false;
        };
        let replica = &process.group.replica;
        let terms = self.machines.iter().filter_map(|it| it.process.as_ref());
        let newest = terms.map(|process| process.group.replica.term()).max();
        let (set_at, membership) = replica.membership_at(replica.last_index());
        let own_term = replica.term_at(replica.commit_index()) == Some(replica.term());
        let in_present_life = membership.members.iter().all(|member| {
            let it = &self.machines[usize::from(member.id.0)];
            it.peer.incarnation == member.incarnation
        });
        let peer = self.machines[machine].peer;
        newest == Some(replica.term())
            && own_term
            && process.removal.is_none()
            && set_at <= replica.commit_index()
            && membership.voters().count() >= 3
            && in_present_life
            && membership.is_voter(peer.id, peer.incarnation)
    }

    /// Whoever had lost its memory may vote again.
    pub fn note_memory(&mut self) {
        for it in &mut self.machines {
            let has = |(index, term)| it.durable.holds(index, term);
            // What it had acknowledged still counts, until another entry is committed there.
            let is_settled = |(index, term)| {
                let committed = self.checks.committed_term(index);
                has((index, term)) || committed.is_some_and(|committed| committed != term)
            };
            let is_paid = |owes: &crate::machine::Owes| {
                has(owes.committed) && owes.held.entries().all(is_settled)
            };
            if it.process.is_some() && it.owes.as_ref().is_some_and(is_paid) {
                it.owes = None;
            }
        }
        if let Some(machine) = self.forgetful {
            let quiet = {
                let it = &self.machines[machine];
                it.dies_after.is_none() && it.disk.faults().misdirect.is_none()
            };
            if quiet && self.machines[machine].process.is_some() && self.is_settled(machine) {
                self.forgetful = None;
                self.counts.see("memory regained");
            }
        }
    }

    /// Nothing goes wrong any more, and what is broken is repaired.
    pub fn make_peace(&mut self) {
        self.peace = true;
        self.network.heal();
        self.datagrams.heal();
        self.cuts.clear();
        self.armed.clear();
        self.severs_when_read = None;
        for machine in 0..self.machines.len() {
            let it = &mut self.machines[machine];
            *it.disk.faults() = quorumwire_storage::Faults::default();
            it.old_copy = None;
            it.restart_clock(self.now);
            it.stalled_until = 0;
            it.occupied_until = 0;
            it.plane_refuses_until = 0;
            it.dies_after = None;
            it.dies_in_write = None;
            let run = it.run;
            let writing = it.process.as_ref().is_some_and(|p| p.journal.writing);
            if writing {
                // A disk that stood still goes on now.
                self.queue.set(self.now, Event::LogDone(machine, run));
            }
            if let Some(process) = &mut it.process {
                // And so do the snapshot threads, in their order.
                process.pieces_until = self.now;
                process.unreadable_upto = Index(0);
                for number in process.jobs.keys() {
                    let done = Event::SnapshotDone(machine, run, *number);
                    self.queue.set(self.now, done);
                }
            }
            if it.process.is_none() {
                self.queue.set(self.now, Event::Boot(machine));
            } else {
                it.busy_until = it.busy_until.min(self.now);
                self.queue.set(self.now, Event::GoesOn(machine, run));
            }
        }
    }
}

/// Changes some bytes of some file. Whether there was one.
fn damage(disk: &MemoryDisk, luck: &mut Random) -> bool {
    let Ok(names) = disk.list() else { return false };
    let place = usize::try_from(luck.below(names.len() as u64)).unwrap_or(0);
    // The newest segment has what was written last: it is met more often than others.
    let newest = names.iter().filter(|name| name.starts_with("log-")).max();
    let name = newest.filter(|_| luck.permille(400)).or(names.get(place));
    let Some(file) = name.and_then(|name| disk.open(name).ok()) else {
        return false;
    };
    damage_file(&*file, luck).is_ok()
}

fn damage_file(file: &dyn DiskFile, luck: &mut Random) -> std::io::Result<()> {
    let bytes = file.file_bytes()?;
    // Most of a log's file may be room that nothing was written to yet.
    let at = match luck.below(4) {
        0 => luck.below(bytes),
        3 => luck.below(used_bytes(file, bytes)?),
        1 => luck.below(bytes.min(2_000)),
        _ => luck.below(bytes.min(200)),
    };
    match luck.below(4) {
        0 => file.truncate(at)?,
        1 => {
            let sector = at / 512 * 512;
            let zeros = usize::try_from((bytes - sector).min(512)).unwrap_or(0);
            file.write_at(sector, &[IoSlice::new(&vec![0; zeros])])?;
        }
        _ => {
            let mut byte = [0];
            file.read_at(at, &mut byte)?;
            byte[0] ^= 1 << luck.below(8);
            file.write_at(at, &[IoSlice::new(&byte)])?;
        }
    }
    file.sync_data()
}

/// Where a file's trailing zeros begin; at least 1.
fn used_bytes(file: &dyn DiskFile, bytes: u64) -> std::io::Result<u64> {
    let mut content = vec![0; usize::try_from(bytes).unwrap_or(0)];
    file.read_at(0, &mut content)?;
    let last = content.iter().rposition(|byte| *byte != 0);
    Ok(last.map_or(1, |last| last as u64 + 1))
}

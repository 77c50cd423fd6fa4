//! Carries out faults of what a process is given to work with: memory, file handles, its clock, and a
//! disk that is put back to an old copy of itself.
use crate::fault::Class;
use crate::machine::{Machine, OldCopy, Owes};
use crate::plan::DRIFT_BOUND_PPM;
use crate::queue::{MILLISECOND, Nanos, SECOND};
use crate::random::Random;
use crate::world::{Event, World};
use quorumwire_control::Role;
use quorumwire_storage::{Disk, FaultyDisk, MemoryDisk};
use std::io::IoSlice;

/// The file that says how far a log was synced.
const MARK: &str = "mark";

impl World {
    /// An operation finds no memory, or the kernel kills a process for what it uses.
    pub fn starve_of_memory(&mut self, machine: usize, after: u8, luck: &mut Random) {
        if luck.permille(700) {
            let mut faults = self.machines[machine].disk.faults();
            faults.operations_until_no_memory = Some(u64::from(after));
            return;
        }
        if !self.may_die(machine) {
            return;
        }
        self.counts.hit(Class::F11Starved);
        let lasts = luck.between(1, 2_000) * MILLISECOND;
        self.crash(machine, false, lasts);
    }

    /// Whether a machine can open no file and make no connection.
    #[must_use]
    pub fn has_no_handle(&self, machine: usize) -> bool {
        self.machines[machine].disk.faults().opens_until_no_handle == Some(0)
    }

    /// Counts operations that failed for want of memory or handles.
    pub fn note_starvation(&mut self, machine: usize) {
        let starved = std::mem::take(&mut self.machines[machine].disk.faults().starved);
        if starved > 0 {
            self.counts.hit(Class::F11Starved);
            self.counts.see_many("disk operation starved", starved);
        }
    }

    /// A clock stands still.
    pub fn stop_clock(&mut self, machine: usize) {
        let now = self.now;
        let it = &mut self.machines[machine];
        if it.clock_stopped_at.is_none() {
            it.clock_stopped_at = Some(now);
            let leads = it
                .process
                .as_ref()
                .is_some_and(|process| process.group.replica.role() == Role::Leader);
            self.counts.hit(Class::F19ClockStops);
            if leads {
                self.counts.see("clock of a leader stands still");
            }
        }
    }

    /// A time daemon has a clock go at another speed, within what is allowed.
    pub fn slew_clock(&mut self, machine: usize, permille: i16) {
        let now = self.now;
        let max = i64::try_from(self.plan.settings.drift_ppm_max).unwrap_or(0);
        let ppm = self
            .plan
            .settings
            .clock_ppm(max * i64::from(permille) / 1_000);
        let it = &mut self.machines[machine];
        it.slew_clock(now, ppm);
        let run = it.run;
        self.counts.hit(Class::F19ClockSlews);
        // What it wants to be woken for comes at another time now.
        self.queue.set(now, Event::GoesOn(machine, run));
    }

    /// Whether the clock of this leader goes as slowly as it may, and that of another machine as fast as it
    /// may.
    #[must_use]
    pub fn are_clocks_at_bound(&self, leader: usize) -> bool {
        let bound = DRIFT_BOUND_PPM.cast_signed();
        let goes_at = |machine: &Machine, ppm| machine.clock_ppm == ppm;
        self.plan.settings.clocks_are_at_bound()
            && goes_at(&self.machines[leader], -bound)
            && self.machines.iter().any(|it| goes_at(it, bound))
    }

    /// It goes again.
    pub fn restart_clock(&mut self, machine: usize) {
        let now = self.now;
        let it = &mut self.machines[machine];
        it.restart_clock(now);
        let run = it.run;
        self.queue.set(now, Event::GoesOn(machine, run));
    }

    /// Its plane forgets all it has, and its process, which can no longer account for what the plane has
    /// acknowledged, stops at once.
    pub fn reset_plane(&mut self, machine: usize, lasts: Nanos) {
        let engaged = self.machines[machine]
            .plane()
            .is_some_and(|plane| plane.data_plane().is_engaged());
        if !engaged {
            return;
        }
        self.counts.hit(Class::F25PlaneBreaks);
        self.counts.see("plane reset");
        self.crash(machine, false, lasts);
        self.machines[machine].orphan = None;
    }

    /// Somebody copies a disk, to put the copy in its place later.
    pub fn copy_disk(&mut self, machine: usize, lasts: Nanos, luck: &mut Random) {
        let may_be_damaged = self.forgetful == Some(machine);
        let it = &mut self.machines[machine];
        let durable = it.durable.last_index();
        let Some(process) = &it.process else {
            return;
        };
        // Who finds that it is the only voter asks nobody, so nothing keeps it from going on alone.
        let is_alone = process
            .group
            .replica
            .membership_at(durable)
            .1
            .voters()
            .count()
            < 2;
        if it.old_copy.is_some() || may_be_damaged || is_alone {
            return;
        }
        it.old_copy = Some(OldCopy {
            files: it.disk.inner().copy(),
            incarnation: it.peer.incarnation,
            due: self.now + luck.between(50 * MILLISECOND, 20 * SECOND),
            by_halves: luck.permille(300),
            lasts,
        });
    }

    /// A disk is put back to its old copy, if the group can bear it now.
    pub fn put_copy_back_if_due(&mut self, machine: usize) {
        let it = &self.machines[machine];
        let due = it
            .old_copy
            .as_ref()
            .is_some_and(|copy| copy.due <= self.now);
        if !due || self.peace {
            return;
        }
        if !self.may_be_rolled_back(machine) {
            return;
        }
        let Some(copy) = self.machines[machine].old_copy.take() else {
            return;
        };
        if copy.incarnation != self.machines[machine].peer.incarnation {
            return; // a copy of an older life, whose member is another
        }
        let mark = read_whole(self.machines[machine].disk.inner(), MARK);
        let held = self.machines[machine].durable.clone();
        self.crash(machine, false, copy.lasts);
        let it = &mut self.machines[machine];
        let space_bytes = it.disk.faults().space_bytes;
        it.disk = FaultyDisk::new(copy.files);
        it.disk.faults().space_bytes = space_bytes;
        self.counts.hit(Class::F18RolledBack);
        match mark {
            Some(mark) if copy.by_halves => {
                // Now it must be found: what the mark names is not there.
                write_whole(it.disk.inner(), MARK, &mark);
                self.forgetful = Some(machine);
                self.counts.see("disk put back by halves");
            }
            Some(_) | None => {
                it.rolled_back = true;
                let committed = self.checks.last_committed();
                it.owes = committed.map(|committed| Owes { committed, held });
                let peer = it.peer;
                self.checks.forgets_promises(peer);
                self.counts.see("disk put back whole");
            }
        }
    }

    /// No check can tell such a disk from one that was never written to, and it has broken promises: it does
    /// no harm only while everybody else follows one leader in the newest term and holds, durably, all that
    /// it held; and while nobody is about that was removed: with an old copy that knows of no removal it
    /// could be a majority of the members of then. Nor may it ever have been the only voter: a list of then,
    /// of its old copy or of a snapshot that it gets, makes it elect itself (docs/operating.md says so to
    /// operators).
    fn may_be_rolled_back(&self, machine: usize) -> bool {
        if self.is_memory_missing() || !self.is_settled(machine) {
            return false;
        }
        let state = &self.machines[machine];
        if self.voted_alone.contains(&state.peer.id) {
            return false;
        }
        let Some(process) = &state.process else {
            return false;
        };
        let last_index = state.last_index();
        let Some(last_term) = process.group.replica.term_at(last_index) else {
            return false;
        };
        let (term, leader) = (process.group.replica.term(), process.group.replica.leader());
        let members = process.group.replica.membership();
        let removed = |it: &Machine| it.mark.is_some() && members.member(it.peer.id).is_none();
        if self.machines.iter().any(removed) {
            return false;
        }
        let mut others = members.members.iter().filter(|m| m.id != state.peer.id);
        others.all(|member| {
            let other = &self.machines[usize::from(member.id.0)];
            let Some(process) = &other.process else {
                return false;
            };
            let follows = process.group.replica.term() == term
                && leader.is_some()
                && process.group.replica.leader() == leader;
            follows && other.durable.term == term && other.durable.holds(last_index, last_term)
        })
    }
}

fn read_whole(disk: &MemoryDisk, name: &str) -> Option<Vec<u8>> {
    let file = disk.open(name).ok()?;
    let mut content = vec![0; usize::try_from(file.file_bytes().ok()?).ok()?];
    let read = file.read_at(0, &mut content).ok()?;
    (read == content.len()).then_some(content)
}

fn write_whole(disk: &MemoryDisk, name: &str, content: &[u8]) {
    let written = disk.create(name).and_then(|file| {
        file.write_at(0, &[IoSlice::new(content)])?;
        file.sync_data()?;
        disk.sync_folder()
    });
    assert!(written.is_ok(), "a disk in memory takes everything");
}

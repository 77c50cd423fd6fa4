//! Items with an end, which the simulator writes and looks at itself. Judges that none comes back once a read
//! has missed it, and that each lasts as long as it was given, whatever wall clocks are set to meanwhile.
use crate::clients::NOBODY;
use crate::fault::Class;
use crate::log_time::LogTimeBounds;
use crate::machine::Group;
use crate::machine::Origin;
use crate::queue::{MILLISECOND, Nanos, SECOND};
use crate::world::World;
use bytes::BytesMut;
use quorumwire_control::Role;
use quorumwire_interfaces::Application as _;
use quorumwire_interfaces::Term;
use quorumwire_kv::{Command, Exptime, Key, Written};
use std::collections::VecDeque;

/// How many items there are.
const LIVES: usize = 8;
/// What their keys begin with; a digit follows.
const KEY: &[u8] = b"life";
/// Each is looked at for so long, then the next one.
const LOOKED_AT: Nanos = 100 * MILLISECOND;
/// Writes that may be carried out yet, at most; older ones are not judged.
const WRITTEN_MAX: usize = 64;
/// A life counts from the tick before its write, and a tick calls 10 ms no difference: so much earlier or
/// later may it end.
const INEXACT: Nanos = 50 * MILLISECOND;
/// From so much on the log's time and the time of day are apart.
const APART_MS: u64 = 1_000;

/// What has been seen of the items.
#[derive(Clone, Debug, Default)]
pub struct Lives {
    seen: [Option<LifeSeen>; LIVES],
    /// What the items were given that the log has come to.
    given: [Option<LifeWrite>; LIVES],
    /// What those are given that it has not come to.
    written: VecDeque<LifeWrite>,
    /// As many were written.
    writes: u32,
    /// The newest term that somebody led.
    term: Term,
    /// The last look that wrote one, by its number: who looks again at once writes no second one.
    wrote_at_look: Nanos,
}

/// What has been seen of one.
#[derive(Clone, Copy, Debug)]
struct LifeSeen {
    /// The number of the command that wrote it.
    unique: u64,
    is_gone: bool,
}

/// What one write gave an item.
#[derive(Clone, Copy, Debug)]
struct LifeWrite {
    /// The number of the write, which the item keeps as its flags.
    write: u32,
    /// Who wrote it, and when.
    machine: usize,
    at: Nanos,
    /// By the writer's clock: the log's time, and whether the log is told the time of day.
    log_ms: u64,
    tells: bool,
    /// Until a point of time, which is one of the writer's wall clock, or for so long.
    is_point: bool,
    /// The log's time and the time of day are apart.
    is_apart: bool,
    /// When it ends in the log's time: not before, and not after.
    end: (Nanos, Nanos),
    /// Where the log's time is.
    log_time: LogTimeBounds,
}

impl Lives {
    /// A machine begins to lead a term, when its wall clock shows this.
    pub fn term_begins(&mut self, term: Term, now: Nanos, wall_ms: u64, drift_ppm: u64) {
        // Nothing comes of what one would do that leads an earlier term and has not begun it before.
        if term < self.term {
            return;
        }
        self.term = term;
        for given in self.given.iter_mut().flatten().chain(&mut self.written) {
            given.log_time.pass(now, drift_ppm);
            given.log_time.another_leads(wall_ms * MILLISECOND);
        }
    }
}

impl World {
    /// A leader that may answer reads looks at one of the items.
    pub fn look_at_a_life(&mut self, machine: usize) {
        if !self.checks.reads_judged || !self.plan.settings.clocks_are_sound || self.peace {
            return;
        }
        self.drive(machine, Group::begin_term);
        let look = self.now / LOOKED_AT;
        let number = usize::try_from(look).unwrap_or(0) % LIVES;
        let key = format!("life{number}");
        let upto = self.checks.committed_upto();
        let clock = self.machines[machine].clock(self.now);
        let Some(process) = &mut self.machines[machine].process else {
            return;
        };
        let may_read = process.group.replica.role() == Role::Leader
            && process.group.replica.lease_read(clock).is_some()
            && process.group.applied >= upto.max(process.group.term_start);
        if !may_read {
            return;
        }
        let query = format!("get {key}");
        let overdue = self.drive(machine, |group| group.overdue(query.as_bytes()));
        if overdue.flatten().is_some() {
            self.counts.see("a life that only the clock was past");
            return;
        }
        let Some(process) = &self.machines[machine].process else {
            return;
        };
        let store = &process.group.store.inner().store;
        let name = Key::new(key.as_bytes()).expect("a short word is a key");
        let found = store.get(name).map(|item| (item.unique, item.flags));
        match found {
            // Where there is no room for a tick, it is shown although it is past its end.
            Some((unique, write)) if !store.is_overdue(query.as_bytes()) => {
                self.judge_present(number, write);
                self.note_present(number, unique);
            }
            Some((unique, _)) => self.note_present(number, unique),
            None => self.judge_gone(number),
        }
        if found.is_none() && self.lives.wrote_at_look != look {
            self.lives.wrote_at_look = look;
            self.write_life(machine, number, name);
        }
    }

    fn note_present(&mut self, number: usize, unique: u64) {
        let seen = &mut self.lives.seen[number];
        let is_back = seen.is_some_and(|it| it.is_gone && unique <= it.unique);
        if seen.is_none_or(|it| it.unique != unique) {
            let is_gone = false;
            *seen = Some(LifeSeen { unique, is_gone });
        }
        let violation = || format!("I17: life{number} of {unique} was missed, and is back");
        self.checks.require(!is_back, violation);
    }

    /// It is there, and not past its end by the leader's clock: then the log's time cannot have come to its
    /// end.
    fn judge_present(&mut self, number: usize, write: u32) {
        let (now, drift_ppm) = (self.now, self.plan.settings.drift_ppm_max);
        let given = self.lives.given[number].as_mut();
        let Some(given) = given.filter(|it| it.write == write) else {
            return;
        };
        given.log_time.pass(now, drift_ppm);
        let given = *given;
        let violation = || {
            let (end, least) = (given.end.1, given.log_time.least());
            let late_ms = least.saturating_sub(end) / MILLISECOND;
            let at = given.at / MILLISECOND;
            format!("I17: life{number}, written at {at} ms, is there {late_ms} ms after its end")
        };
        let may_last = given.log_time.least() <= given.end.1;
        self.checks.require(may_last, violation);
    }

    /// It is missed: then the log's time must be able to have come to its end.
    fn judge_gone(&mut self, number: usize) {
        if let Some(seen) = &mut self.lives.seen[number] {
            if !seen.is_gone {
                self.counts.see("a life watched to its end");
            }
            seen.is_gone = true;
        }
        let (now, drift_ppm) = (self.now, self.plan.settings.drift_ppm_max);
        let Some(mut given) = self.lives.given[number].take() else {
            return;
        };
        given.log_time.pass(now, drift_ppm);
        self.counts.see("a life judged to be long enough");
        if self.counts.hits(Class::F19Clock) > 0 {
            self.counts.see("a life judged though a clock was set");
        }
        if given.is_point && given.is_apart {
            self.counts
                .see("a point of time judged, the log not at the day's");
        }
        let violation = || {
            let early_ms = given.end.0.saturating_sub(given.log_time.most()) / MILLISECOND;
            let (at, lived_ms) = (given.at / MILLISECOND, (now - given.at) / MILLISECOND);
            format!(
                "I17: life{number}, written at {at} ms, was missed after {lived_ms}, at least {early_ms} too early"
            )
        };
        let may_end = given.log_time.most() >= given.end.0;
        self.checks.require(may_end, violation);
    }

    fn write_life(&mut self, machine: usize, number: usize, key: Key<'_>) {
        if self.machines[machine]
            .process
            .as_ref()
            .is_some_and(|it| it.group.is_full || it.group.waits_since_fast_term())
        {
            return;
        }
        self.drive(machine, Group::tick_before_write);
        self.lives.writes += 1;
        let (given, exptime) = self.give_life(machine, number);
        let item = Written {
            key,
            flags: self.lives.writes,
            exptime,
            value: b"x",
        };
        let mut command = BytesMut::new();
        Command::Set(item).encode(&mut command);
        self.lives.written.extend(given);
        if self.lives.written.len() > WRITTEN_MAX {
            self.lives.written.pop_front();
        }
        self.drive(machine, |group| {
            // Or later.
            group.write(Origin::Operation(NOBODY), command.len(), |bytes| {
                bytes.extend_from_slice(&command);
            })
        });
    }

    /// What the next write gives this item. Half of them last until a point of time, which is one of the
    /// writer's clock.
    fn give_life(&self, machine: usize, number: usize) -> (Option<LifeWrite>, Exptime) {
        let it = &self.machines[machine];
        let wall = it.wall(self.now);
        let wall_ms = u64::try_from(wall.as_millis()).unwrap_or(0);
        let seconds = 2 + number as u64 / 2;
        let is_point = !number.is_multiple_of(2);
        let told = if is_point {
            wall.as_secs() + 1 + seconds
        } else {
            seconds
        };
        let exptime = Exptime(told.cast_signed());
        let Some(process) = &it.process else {
            return (None, exptime);
        };
        let log_ms = process.group.leader_time_ms();
        let tells = process.group.tick().wall_ms.is_some();
        let end_ms = match (is_point, tells) {
            (false, _) => log_ms + told * 1_000,
            (true, true) => (told * 1_000 + log_ms).saturating_sub(wall_ms),
            (true, false) => told * 1_000,
        };
        let end = end_ms * MILLISECOND;
        let given = LifeWrite {
            write: self.lives.writes,
            machine,
            at: self.now,
            log_ms,
            tells,
            is_point,
            is_apart: log_ms.abs_diff(wall_ms) >= APART_MS,
            end: (end - INEXACT, end + INEXACT),
            log_time: LogTimeBounds::at(self.now, log_ms * MILLISECOND),
        };
        (Some(given), exptime)
    }

    /// A machine is the first that carries out a command: it may write one of the items.
    pub fn note_life(&mut self, machine: usize, command: &[u8]) {
        let Ok(Command::Set(item)) = Command::decode(command) else {
            return;
        };
        let number = item.key.bytes().strip_prefix(KEY);
        let number = number.and_then(|it| it.first()?.checked_sub(b'0'));
        let Some(number) = number.map(usize::from).filter(|it| *it < LIVES) else {
            return;
        };
        let written = &mut self.lives.written;
        let at = written.iter().position(|it| it.write == item.flags);
        let given = at.and_then(|at| written.remove(at));
        self.lives.given[number] = given.and_then(|it| self.begun(machine, it));
    }

    /// A life as it begins, if it can be judged: what a machine carries out first gives it.
    fn begun(&self, machine: usize, mut given: LifeWrite) -> Option<LifeWrite> {
        let process = self.machines[machine].process.as_ref()?;
        let set_at = self.machines[given.machine].wall_set_at;
        // A point of time is one of the wall clock as the last tick before the write shows it.
        let is_sure = set_at.is_none_or(|at| at + INEXACT < given.at)
            && given.tells == process.group.store.inner().ahead_ms().is_some();
        // The write may have waited for room, and counts from the tick that waited with it.
        let waited_ms = process
            .group
            .store
            .inner()
            .log_time()
            .0
            .saturating_sub(given.log_ms);
        given.end.1 += waited_ms * MILLISECOND;
        if given.is_point {
            // Meanwhile the wall clock came ahead, and the tick says by how much: the point comes sooner.
            let drift_ppm = self.plan.settings.drift_ppm_max;
            given.end.0 -= LogTimeBounds::behind_by(waited_ms * MILLISECOND, drift_ppm);
        }
        (!given.is_point || is_sure).then_some(given)
    }
}

const _: () = assert!(LOOKED_AT < SECOND);

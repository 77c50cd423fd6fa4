//! Items with an end, which the simulator writes and looks at itself. Judges that none comes back once a read
//! has missed it, and that none is missed before its time.
use crate::clients::NOBODY;
use crate::fault::Class;
use crate::machine::Origin;
use crate::queue::{MILLISECOND, Nanos, SECOND};
use crate::world::World;
use bytes::BytesMut;
use quorumwire_control::Role;
use quorumwire_interfaces::EntryKind;
use quorumwire_kv::{Command, Exptime, Key, Written};
use quorumwire_wire::RecordKind;

/// How many items there are.
const LIVES: usize = 8;
/// Each is looked at for so long, then the next one.
const LOOKED_AT: Nanos = 100 * MILLISECOND;
/// The log's time runs faster by no more than one part in so many, and lives are shorter by as much.
const FASTER: i64 = 10;
/// What else may end a life early: the tick before a write is some milliseconds old, clocks drift apart from term to term.
const EARLY_MS_MAX: i64 = 200;

/// What has been seen of the items.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lives {
    seen: [Option<Seen>; LIVES],
    /// The last look that wrote one, by its number: who looks again at once writes no second one.
    wrote_at_look: Nanos,
}

/// What has been seen of one.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// The number of the command that wrote it.
    unique: u64,
    /// When it was seen first, and what time it had left.
    at: Nanos,
    left_ms: i64,
    is_gone: bool,
}

impl World {
    /// A leader that may answer reads looks at one of the items.
    pub fn look_at_a_life(&mut self, place: usize) {
        if !self.checks.reads_judged || !self.plan.settings.clocks_are_sound || self.peace {
            return;
        }
        self.begin_term(place);
        let look = self.now / LOOKED_AT;
        let number = usize::try_from(look).unwrap_or(0) % LIVES;
        let key = format!("life{number}");
        let upto = self.checks.committed_upto();
        let clock = self.machines[place].clock(self.now);
        let Some(process) = &mut self.machines[place].process else {
            return;
        };
        let may_read = process.replica.role() == Role::Leader
            && process.replica.lease_read(clock).is_some()
            && process.applied >= upto.max(process.term_start);
        if !may_read {
            return;
        }
        if self
            .overdue(place, format!("get {key}").as_bytes())
            .is_some()
        {
            self.counts.see("a life that only the clock was past");
            return;
        }
        let Some(process) = &self.machines[place].process else {
            return;
        };
        let store = process.store.inner();
        let name = Key::new(key.as_bytes()).expect("a short word is a key");
        let found = store
            .get(name)
            .map(|item| (item.unique, store.left_ms(name).unwrap_or(i64::MAX)));
        self.judge_life(number, found);
        if found.is_none() && self.lives.wrote_at_look != look {
            self.lives.wrote_at_look = look;
            self.write_life(place, number, name);
        }
    }

    fn judge_life(&mut self, number: usize, found: Option<(u64, i64)>) {
        let now = self.now;
        let seen = &mut self.lives.seen[number];
        match (found, seen) {
            (Some((unique, left_ms)), seen) => {
                let is_back = seen.is_some_and(|it| it.is_gone && unique <= it.unique);
                let is_known = seen.is_some_and(|it| it.unique == unique);
                if !is_known {
                    *seen = Some(Seen {
                        unique,
                        at: now,
                        left_ms,
                        is_gone: false,
                    });
                }
                let violation = || format!("I17: life{number} of {unique} was missed, and is back");
                self.checks.require(!is_back, violation);
            }
            (None, Some(seen)) if !seen.is_gone => {
                seen.is_gone = true;
                let seen = *seen;
                self.counts.see("a life watched to its end");
                // Who is set ahead, or leads after one whose clock stood still or was slower for long, may end it when
                // it begins to lead: nobody can tell.
                let classes = [Class::F19Clock, Class::F19ClockStops, Class::F19ClockSlews];
                if classes.into_iter().any(|it| self.counts.hits(it) > 0) {
                    return;
                }
                let lived_ms = i64::try_from((now - seen.at) / MILLISECOND).unwrap_or(i64::MAX);
                let drift = i64::from(self.plan.settings.drift_allowed_ppm);
                let faster_ms =
                    seen.left_ms / FASTER + seen.left_ms.saturating_mul(drift) / 1_000_000;
                let least_ms = seen.left_ms - faster_ms - EARLY_MS_MAX;
                let violation = || {
                    let left_ms = seen.left_ms;
                    format!(
                        "I17: life{number} had {left_ms} ms left, and was missed after {lived_ms}"
                    )
                };
                self.counts.see("a life judged to be long enough");
                self.checks.require(lived_ms >= least_ms, violation);
            }
            (None, _) => {}
        }
    }

    fn write_life(&mut self, place: usize, number: usize, key: Key<'_>) {
        let clock = self.machines[place].clock(self.now);
        if self.machines[place]
            .process
            .as_ref()
            .is_some_and(|it| it.journal.full)
        {
            return;
        }
        self.tick_before_write(place, clock);
        let now_s = i64::try_from(self.machines[place].wall(self.now).as_secs()).unwrap_or(0);
        let Some(process) = &mut self.machines[place].process else {
            return;
        };
        // Half of them until a point of time, which is one of the writer's clock.
        let seconds = 2 + i64::try_from(number).unwrap_or(0) / 2;
        let exptime = if number.is_multiple_of(2) {
            seconds
        } else {
            now_s + 1 + seconds
        };
        let item = Written {
            key,
            flags: 0,
            exptime: Exptime(exptime),
            value: b"x",
        };
        let mut command = BytesMut::new();
        Command::Set(item).encode(&mut command);
        if process.leads_fast_term() {
            process.enqueue(
                EntryKind::Command,
                command.freeze(),
                Origin::Operation(NOBODY),
            );
        } else {
            let put = |bytes: &mut BytesMut| bytes.extend_from_slice(&command);
            let _ = process.replica.propose(RecordKind::Command, put); // or later
        }
    }
}

const _: () = assert!(LOOKED_AT < SECOND);

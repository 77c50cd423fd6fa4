//! Commands on when keys end.
use super::options::{Unit, end_ms, invalid_time};
use super::{
    Answer, Arguments, At, Awaits, FOREVER, Fault, Footprint, Key, Life, Moment, NEVER, Outcome,
    Store, item, key, life, number,
};
use crate::redis::repeated;

/// On what the new end of a key depends.
#[derive(Default)]
struct Conditions {
    if_endless: bool,
    if_ending: bool,
    if_later: bool,
    if_earlier: bool,
}

impl Conditions {
    fn read(words: &Arguments<'_>) -> Result<Self, Fault> {
        let mut conditions = Self::default();
        for word in words {
            let is = |name: &[u8]| word.eq_ignore_ascii_case(name);
            match () {
                () if is(b"NX") => conditions.if_endless = true,
                () if is(b"XX") => conditions.if_ending = true,
                () if is(b"GT") => conditions.if_later = true,
                () if is(b"LT") => conditions.if_earlier = true,
                () => {
                    return Err(format!("ERR Unsupported option {}", repeated(word)).into());
                }
            }
        }
        let is_compared = conditions.if_later || conditions.if_earlier;
        if conditions.if_endless && (conditions.if_ending || is_compared) {
            return Err(
                "ERR NX and XX, GT or LT options at the same time are not compatible".into(),
            );
        }
        if conditions.if_later && conditions.if_earlier {
            return Err("ERR GT and LT options at the same time are not compatible".into());
        }
        Ok(conditions)
    }

    /// Whether a key that ends at `before_ms` may be given this end. What never ends, ends later than
    /// anything.
    fn hold(&self, before_ms: u64, end_ms: i64) -> bool {
        let is_endless = before_ms == NEVER;
        let is_earlier = u64::try_from(end_ms).is_ok_and(|end_ms| end_ms < before_ms) || end_ms < 0;
        let is_same = u64::try_from(end_ms) == Ok(before_ms);
        !(self.if_endless && !is_endless
            || self.if_ending && is_endless
            || self.if_later && (is_earlier || is_same)
            || self.if_earlier && !is_earlier)
    }
}

impl Store {
    /// `EXPIRE`, `PEXPIRE`, `EXPIREAT`, `PEXPIREAT`: `key time [NX|XX|GT|LT]`.
    pub(super) fn expire(
        &mut self,
        name: &str,
        words: &Arguments<'_>,
        at: At,
        answer: &mut Answer<'_>,
    ) -> Outcome {
        let key = key(words[1])?;
        let conditions = Conditions::read(&words[3..])?;
        let unit = Unit {
            is_seconds: !name.starts_with('p'),
            is_relative: !name.ends_with("at"),
        };
        let end_ms =
            end_ms(number(words[2])?, unit, at.moment()).ok_or_else(|| invalid_time(name))?;
        let found = self.live(key).map(|item| item.deadline_ms);
        let is_given = found.is_some_and(|before_ms| conditions.hold(before_ms, end_ms));
        if is_given {
            answer.spend(self.work_to_change(key, at))?;
            let life = Life {
                end_ms: u64::try_from(end_ms).unwrap_or(0),
                awaits: at.awaits(unit.is_relative),
            };
            self.give_life(key, life, at);
        }
        answer.integer(i64::from(is_given));
        Ok(())
    }

    pub(super) fn persist(
        &mut self,
        words: &Arguments<'_>,
        at: At,
        answer: &mut Answer<'_>,
    ) -> Outcome {
        let key = key(words[1])?;
        let ends = self.live(key).is_some_and(|item| life(item) != FOREVER);
        if ends {
            answer.spend(self.work_to_change(key, at))?;
            self.give_life(key, FOREVER, at);
        }
        answer.integer(i64::from(ends));
        Ok(())
    }

    /// Gives what is there another end, or removes it if that has come. Its number changes, so that who
    /// watches the key notices.
    pub(super) fn give_life(&mut self, key: Key<'_>, life: Life, at: At) {
        let hash = self.items.hash(key);
        if life.end_ms <= at.now_ms {
            self.remove(hash, key);
        } else if let Some(slot) = self.items.get_mut(hash, key) {
            let before = Footprint::of(slot);
            let item = item::make_mut(slot);
            item.deadline_ms = life.end_ms;
            item.awaits = life.awaits;
            item.unique = at.number;
            self.alarms.cover(item, hash);
            self.memory.changed(hash, before, Footprint::of(item));
            self.note_awaiting(hash, life.awaits);
        }
    }

    /// `TTL`, `PTTL`, `EXPIRETIME`, `PEXPIRETIME`.
    pub(super) fn time_left(
        &self,
        name: &str,
        words: &Arguments<'_>,
        moment: Moment,
        answer: &mut Answer<'_>,
    ) -> Outcome {
        let shown = match self.live(key(words[1])?) {
            None => -2,
            Some(item) if item.deadline_ms == NEVER => -1,
            Some(item) => {
                let ms = if name.ends_with("time") {
                    moment.unix_ms(item.deadline_ms)
                } else if item.awaits == Awaits::Time {
                    item.deadline_ms - self.log_time_ms // nothing of it has passed yet
                } else {
                    item.deadline_ms.saturating_sub(moment.now_ms)
                };
                let is_ms = name.starts_with('p');
                let units = if is_ms {
                    ms
                } else {
                    ms.saturating_add(500) / 1000
                };
                i64::try_from(units).unwrap_or(i64::MAX)
            }
        };
        answer.integer(shown);
        Ok(())
    }
}

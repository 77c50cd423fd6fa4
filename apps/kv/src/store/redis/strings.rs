//! Commands on whole values and their parts.
use super::options::{Allowed, Options};
use super::{
    Answer, Arguments, At, FOREVER, Footprint, Key, Outcome, Store, fits, item, key, number, range,
    reply, signed,
};

impl Store {
    /// `GET`
    pub(super) fn show(&self, name: &[u8], answer: &mut Answer<'_>) -> Outcome {
        answer.bulk_or_null(self.value(key(name)?))
    }

    pub(super) fn mget(&self, words: &Arguments<'_>, answer: &mut Answer<'_>) -> Outcome {
        reply::array_header(answer.out, words.len() - 1);
        for name in &words[1..] {
            self.show(name, answer)?;
            answer.has_room(0)?;
        }
        Ok(())
    }

    pub(super) fn strlen(&self, words: &Arguments<'_>, answer: &mut Answer<'_>) -> Outcome {
        let value = self.value(key(words[1])?);
        answer.count(value.map_or(0, <[u8]>::len));
        Ok(())
    }

    pub(super) fn getrange(&self, words: &Arguments<'_>, answer: &mut Answer<'_>) -> Outcome {
        let (start, end) = (number(words[2])?, number(words[3])?);
        let value = self.value(key(words[1])?).unwrap_or_default();
        let part = range(start, end, signed(value.len())).and_then(|(start, end)| {
            let (start, end) = (usize::try_from(start).ok()?, usize::try_from(end).ok()?);
            value.get(start..=end)
        });
        answer.bulk(part.unwrap_or_default())
    }

    /// `SET key value [NX|XX] [GET] [EX|PX|EXAT|PXAT time|KEEPTTL]`
    pub(super) fn set(
        &mut self,
        words: &Arguments<'_>,
        at: At,
        answer: &mut Answer<'_>,
    ) -> Outcome {
        let key = key(words[1])?;
        let options = Options::read(&words[3..], Allowed::Set)?;
        let life = options.life("set", at)?;
        // Most do not ask what is there, so it is not looked for.
        let found = options.looks().then(|| self.value(key)).flatten();
        if options.shows_value {
            answer.bulk_or_null(found)?;
        }
        let is_there = found.is_some();
        if (options.if_missing && is_there) || (options.if_there && !is_there) {
            if !options.shows_value {
                answer.null();
            }
            return Ok(());
        }
        let life = if options.keeps_life {
            self.frame(key).1
        } else {
            life.unwrap_or(FOREVER)
        };
        self.keep(key, words[2], (0, life), at);
        if !options.shows_value {
            answer.ok();
        }
        Ok(())
    }

    pub(super) fn setnx(
        &mut self,
        words: &Arguments<'_>,
        at: At,
        answer: &mut Answer<'_>,
    ) -> Outcome {
        let key = key(words[1])?;
        let is_free = self.live(key).is_none();
        if is_free {
            self.keep(key, words[2], (0, FOREVER), at);
        }
        answer.integer(i64::from(is_free));
        Ok(())
    }

    /// `SETEX` and `PSETEX`: `key time value`.
    pub(super) fn setex(
        &mut self,
        name: &str,
        words: &Arguments<'_>,
        at: At,
        answer: &mut Answer<'_>,
    ) -> Outcome {
        let key = key(words[1])?;
        let unit: &[u8] = if name == "setex" { b"EX" } else { b"PX" };
        let options = Options::read(&[unit, words[2]], Allowed::Set)?;
        let life = options.life(name, at)?.unwrap_or(FOREVER);
        self.keep(key, words[3], (0, life), at);
        answer.ok();
        Ok(())
    }

    pub(super) fn getset(
        &mut self,
        words: &Arguments<'_>,
        at: At,
        answer: &mut Answer<'_>,
    ) -> Outcome {
        self.show(words[1], answer)?;
        self.keep(key(words[1])?, words[2], (0, FOREVER), at);
        Ok(())
    }

    /// `GETEX key [EX|PX|EXAT|PXAT time|PERSIST]`
    pub(super) fn getex(
        &mut self,
        words: &Arguments<'_>,
        at: At,
        answer: &mut Answer<'_>,
    ) -> Outcome {
        let key = key(words[1])?;
        let options = Options::read(&words[2..], Allowed::Getex)?;
        if self.live(key).is_none() {
            answer.null();
            return Ok(());
        }
        let life = options.life("getex", at)?;
        self.show(words[1], answer)?;
        answer.spend(self.work_to_change(key, at))?;
        let ends = self.frame(key).1 != FOREVER;
        match life {
            Some(life) => self.give_life(key, life, at),
            None if options.persists && ends => self.give_life(key, FOREVER, at),
            None => {}
        }
        Ok(())
    }

    pub(super) fn getdel(&mut self, words: &Arguments<'_>, answer: &mut Answer<'_>) -> Outcome {
        self.show(words[1], answer)?;
        self.remove_live(key(words[1])?);
        Ok(())
    }

    pub(super) fn mset(
        &mut self,
        words: &Arguments<'_>,
        at: At,
        answer: &mut Answer<'_>,
    ) -> Outcome {
        self.keep_pairs(&pairs("mset", words)?, at);
        answer.ok();
        Ok(())
    }

    pub(super) fn msetnx(
        &mut self,
        words: &Arguments<'_>,
        at: At,
        answer: &mut Answer<'_>,
    ) -> Outcome {
        let pairs = pairs("msetnx", words)?;
        let are_free = pairs.iter().all(|(key, _)| self.live(*key).is_none());
        if are_free {
            self.keep_pairs(&pairs, at);
        }
        answer.integer(i64::from(are_free));
        Ok(())
    }

    fn keep_pairs(&mut self, pairs: &[(Key<'_>, &[u8])], at: At) {
        for (key, value) in pairs {
            self.keep(*key, value, (0, FOREVER), at);
        }
    }

    pub(super) fn append(
        &mut self,
        words: &Arguments<'_>,
        at: At,
        answer: &mut Answer<'_>,
    ) -> Outcome {
        let key = key(words[1])?;
        let hash = self.items.hash(key);
        let found = self.items.get_mut(hash, key);
        let bytes = if let Some(slot) = found.filter(|slot| slot.deadline_ms > at.now_ms) {
            let bytes = slot.value().len() + words[2].len();
            fits(bytes)?;
            answer.spend(bytes)?;
            let before = Footprint::of(slot);
            item::extend(slot, b"", words[2], at.number);
            self.memory.changed(hash, before, Footprint::of(slot));
            self.counts.total_items += 1;
            bytes
        } else {
            self.keep(key, words[2], (0, FOREVER), at);
            words[2].len()
        };
        answer.count(bytes);
        Ok(())
    }

    pub(super) fn setrange(
        &mut self,
        words: &Arguments<'_>,
        at: At,
        answer: &mut Answer<'_>,
    ) -> Outcome {
        let key = key(words[1])?;
        let Ok(start) = usize::try_from(number(words[2])?) else {
            return Err("ERR offset is out of range".into());
        };
        let part = words[3];
        let bytes = self.value(key).map_or(0, <[u8]>::len);
        if part.is_empty() {
            answer.count(bytes);
            return Ok(());
        }
        let end = start.saturating_add(part.len());
        fits(end)?;
        answer.spend(self.work_to_edit(key, end, at))?;
        self.edit(key, end, at, |value| {
            value[start..end].copy_from_slice(part);
            true
        });
        answer.count(bytes.max(end));
        Ok(())
    }
}

fn pairs<'w>(name: &str, words: &Arguments<'w>) -> Result<Vec<(Key<'w>, &'w [u8])>, super::Fault> {
    let (pairs, rest) = words[1..].as_chunks::<2>();
    if !rest.is_empty() {
        return Err(format!("ERR wrong number of arguments for '{name}' command").into());
    }
    let pair = |[name, value]: &[&'w [u8]; 2]| Ok((key(name)?, *value));
    pairs.iter().map(pair).collect()
}

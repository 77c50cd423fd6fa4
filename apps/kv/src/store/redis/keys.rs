//! Commands on keys, whatever their values.
use super::{
    Answer, Arguments, At, Fault, Key, Life, Outcome, SAME_OBJECT, SYNTAX, Store, key, life, reply,
};
use crate::redis::{NO_DATABASE, database, integer};

const NO_SUCH_KEY: &str = "ERR no such key";

/// Longest value that Redis keeps in one piece with its head, in bytes.
const EMBEDDED_BYTES_MAX: usize = 44;

/// What `OBJECT HELP` says.
const OBJECT_HELP: [&str; 11] = [
    "OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "ENCODING <key>",
    "    How Redis would keep the value of <key>: int, embstr or raw.",
    "FREQ <key>",
    "    Not kept.",
    "IDLETIME <key>",
    "    Not kept.",
    "REFCOUNT <key>",
    "    1 if <key> is there.",
    "HELP",
    "    Print this help.",
];

/// An item that is given another name, or a second one.
type Moved = (Vec<u8>, (u32, Life));

impl Store {
    pub(super) fn del(&mut self, words: &Arguments<'_>, answer: &mut Answer<'_>) -> Outcome {
        let keys: Result<Vec<Key<'_>>, Fault> = words[1..].iter().map(|name| key(name)).collect();
        let mut removed = 0;
        for key in keys? {
            removed += usize::from(self.remove_live(key));
        }
        answer.count(removed);
        Ok(())
    }

    pub(super) fn exists(&self, words: &Arguments<'_>, answer: &mut Answer<'_>) -> Outcome {
        let mut found = 0;
        for name in &words[1..] {
            found += usize::from(self.live(key(name)?).is_some());
        }
        answer.count(found);
        Ok(())
    }

    pub(super) fn type_of(&self, words: &Arguments<'_>, answer: &mut Answer<'_>) -> Outcome {
        let is_there = self.live(key(words[1])?).is_some();
        reply::simple(answer.out, if is_there { "string" } else { "none" });
        Ok(())
    }

    pub(super) fn rename(
        &mut self,
        words: &Arguments<'_>,
        at: At,
        answer: &mut Answer<'_>,
    ) -> Outcome {
        let (from, to) = (key(words[1])?, key(words[2])?);
        let moved = self.moved(from, answer)?.ok_or(NO_SUCH_KEY)?;
        if from != to {
            self.remove_live(from);
            self.keep(to, &moved.0, moved.1, at);
        }
        answer.ok();
        Ok(())
    }

    pub(super) fn renamenx(
        &mut self,
        words: &Arguments<'_>,
        at: At,
        answer: &mut Answer<'_>,
    ) -> Outcome {
        let (from, to) = (key(words[1])?, key(words[2])?);
        let moved = self.moved(from, answer)?.ok_or(NO_SUCH_KEY)?;
        let is_free = self.live(to).is_none();
        if is_free {
            self.remove_live(from);
            self.keep(to, &moved.0, moved.1, at);
        }
        answer.integer(i64::from(is_free));
        Ok(())
    }

    /// `COPY source destination [DB 0] [REPLACE]`
    pub(super) fn copy(
        &mut self,
        words: &Arguments<'_>,
        at: At,
        answer: &mut Answer<'_>,
    ) -> Outcome {
        let (from, to) = (key(words[1])?, key(words[2])?);
        let replaces = copy_options(&words[3..])?;
        if from == to {
            return Err(SAME_OBJECT.into());
        }
        let copied = match self.moved(from, answer)? {
            Some(moved) if replaces || self.live(to).is_none() => {
                self.keep(to, &moved.0, moved.1, at);
                true
            }
            Some(_) | None => false,
        };
        answer.integer(i64::from(copied));
        Ok(())
    }

    fn moved(&self, from: Key<'_>, answer: &mut Answer<'_>) -> Result<Option<Moved>, Fault> {
        let Some(item) = self.live(from) else {
            return Ok(None);
        };
        answer.spend(item.value().len())?;
        Ok(Some((item.value().to_vec(), (item.flags, life(item)))))
    }

    /// `FLUSHALL` and `FLUSHDB`: `[SYNC|ASYNC]`, which makes no difference.
    pub(super) fn flush_database(
        &mut self,
        words: &Arguments<'_>,
        answer: &mut Answer<'_>,
    ) -> Outcome {
        let is_how =
            |word: &[u8]| word.eq_ignore_ascii_case(b"SYNC") || word.eq_ignore_ascii_case(b"ASYNC");
        match words[1..] {
            [] => {}
            [how] if is_how(how) => {}
            _ => return Err(SYNTAX.into()),
        }
        self.flush();
        answer.ok();
        Ok(())
    }

    /// `MEMORY USAGE key [SAMPLES count]`: what the key is counted with. A string has nothing to take samples
    /// of.
    pub(super) fn memory_usage(&self, words: &Arguments<'_>, answer: &mut Answer<'_>) -> Outcome {
        match &words[3..] {
            [] => {}
            [option, count] if option.eq_ignore_ascii_case(b"samples") => {
                let count = integer(count).ok_or(super::NOT_AN_INTEGER)?;
                if count < 0 {
                    return Err(SYNTAX.into());
                }
            }
            _ => return Err(SYNTAX.into()),
        }
        match self.live(key(words[2])?) {
            Some(item) => {
                let bytes = item.bytes() as u64 + super::item::OVERHEAD_BYTES;
                answer.integer(i64::try_from(bytes).unwrap_or(i64::MAX));
            }
            None => answer.null(),
        }
        Ok(())
    }

    pub(super) fn object(
        &self,
        question: &str,
        words: &Arguments<'_>,
        answer: &mut Answer<'_>,
    ) -> Outcome {
        if question == "help" {
            reply::array_header(answer.out, OBJECT_HELP.len());
            for line in OBJECT_HELP {
                reply::simple(answer.out, line);
            }
            return Ok(());
        }
        let Some(value) = self.value(key(words[2])?) else {
            answer.null();
            return Ok(());
        };
        match question {
            "encoding" => answer.bulk(encoding(value))?,
            "refcount" => answer.integer(1),
            "freq" => {
                return Err(
                    "ERR An LFU maxmemory policy is not selected, access frequency not tracked."
                        .into(),
                );
            }
            _ => return Err("ERR idle times are not kept".into()),
        }
        Ok(())
    }
}

/// How Redis keeps a value that was set as a whole.
fn encoding(value: &[u8]) -> &'static [u8] {
    if integer(value).is_some() {
        b"int"
    } else if value.len() <= EMBEDDED_BYTES_MAX {
        b"embstr"
    } else {
        b"raw"
    }
}

/// Whether what is there is to be replaced.
fn copy_options(words: &Arguments<'_>) -> Result<bool, Fault> {
    let mut replaces = false;
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if word.eq_ignore_ascii_case(b"REPLACE") {
            replaces = true;
        } else if word.eq_ignore_ascii_case(b"DB") {
            if database(rest.next().ok_or(SYNTAX)?)? != 0 {
                return Err(NO_DATABASE.into());
            }
        } else {
            return Err(SYNTAX.into());
        }
    }
    Ok(replaces)
}

/// `MOVE key database`: there is no other database.
pub(super) fn move_to_database(words: &Arguments<'_>) -> Outcome {
    key(words[1])?;
    if database(words[2])? == 0 {
        Err(SAME_OBJECT.into())
    } else {
        Err(NO_DATABASE.into())
    }
}

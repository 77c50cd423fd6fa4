//! What a request is likely to cost, said before anybody carries it out: so that one client's expensive ones
//! do not stand in the log one behind the other, before those of all others. A guess from the values of now.
//! What nearly all requests are costs nothing here, not even a look at the store.
use super::Store;
use super::redis::work::{
    FREED_SHARE, PER_DIGIT, PER_KEY_SEEN, PER_PATTERN_STEP, PER_PIECE, PER_WORD,
};
use super::redis::{COUNT_MAX, COUNT_USUAL, WORDS_USUAL};
use super::work_done::PER_KEY;
use crate::memcached::{MetaKind, NO_KEY, ReadKind};
use crate::redis::{Extended, Kind, Script, Spec, Words, find, integer};
use crate::{Command, KEY_BYTES_MAX, Key, Keys, Query, VALUE_BYTES_MAX, WORK_MAX};

/// What a command of Redis works on, if that can be much.
#[derive(Clone, Copy)]
enum WorksOn {
    /// The values of the keys that it names.
    Values,
    /// The same with the word `GET`.
    ValuesIfAsked,
    /// The value of its key, or what that grows to; the place is in words from the second on.
    Growth,
    /// The digits of a number with a fraction.
    Digits,
    /// The table of commands.
    Table,
    /// All keys.
    Keys,
    /// Those that lie together.
    SomeKeys,
}

const EXPENSIVE: [(&[u8], WorksOn); 28] = [
    (b"append", WorksOn::Values),
    (b"bitcount", WorksOn::Values),
    (b"bitfield", WorksOn::Growth),
    (b"bitop", WorksOn::Values),
    (b"bitpos", WorksOn::Values),
    (b"command", WorksOn::Table),
    (b"copy", WorksOn::Values),
    (b"expire", WorksOn::Values),
    (b"expireat", WorksOn::Values),
    (b"get", WorksOn::Values),
    (b"getdel", WorksOn::Values),
    (b"getex", WorksOn::Values),
    (b"getrange", WorksOn::Values),
    (b"getset", WorksOn::Values),
    (b"incrbyfloat", WorksOn::Digits),
    (b"keys", WorksOn::Keys),
    (b"mget", WorksOn::Values),
    (b"persist", WorksOn::Values),
    (b"pexpire", WorksOn::Values),
    (b"pexpireat", WorksOn::Values),
    (b"randomkey", WorksOn::SomeKeys),
    (b"rename", WorksOn::Values),
    (b"renamenx", WorksOn::Values),
    (b"scan", WorksOn::SomeKeys),
    (b"set", WorksOn::ValuesIfAsked),
    (b"setbit", WorksOn::Growth),
    (b"setrange", WorksOn::Growth),
    (b"substr", WorksOn::Values),
];

impl Command<'_> {
    /// What it is in work at most, whatever values are there by then, as [`Store::expected_work`] has it.
    #[must_use]
    pub fn work_max(&self) -> usize {
        Estimate::Worst.of_command(self)
    }
}

impl Store {
    /// What a write is likely to be in work, in the measure of [`WORK_MAX`], beside its own bytes: 0 if that
    /// is little.
    #[must_use]
    pub fn expected_work(&self, command: &Command<'_>) -> usize {
        Estimate::From(self).of_command(command)
    }

    /// The same for a read.
    #[must_use]
    pub fn expected_work_of_query(&self, query: &Query<'_>) -> usize {
        Estimate::From(self).of_query(query)
    }
}

/// Bytes of an answer that describes all commands.
const TABLE_BYTES: usize = 128 << 10;

/// By which values work is estimated.
#[derive(Clone, Copy)]
enum Estimate<'s> {
    /// By those that are there.
    From(&'s Store),
    /// As if they were as long as they may be.
    Worst,
}

impl Estimate<'_> {
    fn of_command(self, command: &Command<'_>) -> usize {
        match command {
            Command::Append { key, .. } | Command::Prepend { key, .. } => self.value_bytes(*key),
            Command::GetAndTouch { keys, .. } => self.values_bytes(*keys),
            Command::Meta { meta, .. } => {
                let mode = meta.flags().mode;
                let extends = matches!(mode, Some(b'A' | b'P'));
                if meta.kind() == MetaKind::Get || (meta.kind() == MetaKind::Set && extends) {
                    self.value_bytes(meta.key(&mut NO_KEY.clone()))
                } else {
                    0
                }
            }
            Command::Redis(script) => self.of_script(script),
            Command::Set(_)
            | Command::Add(_)
            | Command::Replace(_)
            | Command::Cas { .. }
            | Command::Increment { .. }
            | Command::Decrement { .. }
            | Command::Touch { .. }
            | Command::Delete { .. }
            | Command::FlushAll { .. }
            | Command::Memory(_) => 0,
        }
    }

    fn of_query(self, query: &Query<'_>) -> usize {
        match query {
            Query::Memcached(read) => match read.kind() {
                ReadKind::Items { keys, .. } => self.values_bytes(keys),
                ReadKind::Meta(meta) => self.value_bytes(meta.key(&mut NO_KEY.clone())),
                ReadKind::Debug(_) => 0,
            },
            Query::Redis(read) => {
                let work = self.of_words(read.words(), read.spec(), false);
                (work + of_many(read.words().len(), PER_WORD)).min(WORK_MAX)
            }
            Query::NotOfRedis | Query::Nothing => 0,
        }
    }

    fn of_script(self, script: &Script<'_>) -> usize {
        let (mut work, mut count) = (0_usize, 0);
        for words in script.each_command() {
            work = work.saturating_add(self.of_words(&words, None, script.is_transaction));
            count += words.len();
        }
        work.saturating_add(of_many(count, PER_WORD)).min(WORK_MAX)
    }

    /// `spec` is what [`find`] finds, if it has been asked.
    fn of_words(
        self,
        words: &Words<'_>,
        spec: Option<&'static Spec>,
        is_one_of_many: bool,
    ) -> usize {
        let spec = || spec.or_else(|| find(words).ok());
        let name = words.get(0).unwrap_or_default();
        let known = EXPENSIVE
            .iter()
            .find(|(known, _)| name.eq_ignore_ascii_case(known));
        let work = match known.map(|(_, works_on)| works_on) {
            None => 0,
            Some(WorksOn::Values) => self.named_values_bytes(words, spec()),
            Some(WorksOn::ValuesIfAsked) => {
                let mut options = words.iter().skip(3);
                if options.any(|word| word.eq_ignore_ascii_case(b"get")) {
                    self.named_values_bytes(words, spec())
                } else {
                    0
                }
            }
            Some(WorksOn::Growth) => self.growth(words),
            Some(WorksOn::Digits) => self.digits(words) * PER_DIGIT,
            Some(WorksOn::Table) => TABLE_BYTES,
            Some(WorksOn::Keys) => {
                let each = PER_KEY_SEEN + words.get(1).map_or(0, of_pattern);
                self.key_count().saturating_mul(each)
            }
            Some(WorksOn::SomeKeys) => PER_PIECE + of_page(words),
        };
        let may_free = is_one_of_many || words.len() > WORDS_USUAL;
        let freed = if may_free {
            self.freed(words, spec())
        } else {
            0
        };
        work.saturating_add(freed).min(WORK_MAX)
    }

    /// A command with many words, or one of many, may do away with many values.
    fn freed(self, words: &Words<'_>, spec: Option<&Spec>) -> usize {
        let spec = spec.filter(|spec| spec.kind == Kind::Write);
        self.named_values_bytes(words, spec) / FREED_SHARE
    }

    /// Digits that are read and written of a number, and of what is added to it.
    fn digits(self, words: &Words<'_>) -> usize {
        let most = Extended::TEXT_BYTES_MAX;
        let change = words.get(2).unwrap_or_default();
        let key = words.get(1).and_then(Key::binary);
        let (bytes, written) = match (self, key) {
            (Self::Worst, _) => (most, most),
            (Self::From(_), None) => (0, 0),
            (Self::From(store), Some(key)) => {
                let value = store.value(key).unwrap_or_default();
                (value.len(), written_digits(value))
            }
        };
        (bytes + change.len()).min(2 * most) + written.max(written_digits(change))
    }

    fn named_values_bytes(self, words: &Words<'_>, spec: Option<&Spec>) -> usize {
        let Some(spec) = spec else { return 0 };
        let named = words.iter().enumerate();
        let named = named.filter(|(place, _)| spec.is_key(*place, words.len()));
        let bytes = named.filter_map(|(_, name)| Some(self.value_bytes(Key::binary(name)?)));
        bytes.sum()
    }

    /// How long a value is at least once it is written. A place is one of bytes, of bits, or of fields of up
    /// to 64 of these: the most that it can be is taken.
    fn growth(self, words: &Words<'_>) -> usize {
        let places = words.iter().skip(2).filter_map(|word| {
            let (word, factor) = match word.strip_prefix(b"#") {
                Some(number) => (number, 64),
                None => (word, 1),
            };
            let place = usize::try_from(integer(word)?).ok()?;
            Some(place.saturating_mul(factor))
        });
        let Some(key) = words.get(1).and_then(Key::binary) else {
            return 0;
        };
        let is_bytes = words
            .get(0)
            .is_some_and(|name| name.eq_ignore_ascii_case(b"setrange"));
        let end = places.max().unwrap_or(0) / if is_bytes { 1 } else { 8 };
        // A snapshot may hold on to a value that is long enough: then it is copied.
        end.min(VALUE_BYTES_MAX).max(self.value_bytes(key))
    }

    fn values_bytes(self, keys: Keys<'_>) -> usize {
        let bytes: usize = keys.iter().map(|key| self.value_bytes(key)).sum();
        bytes + of_many(keys.iter().count(), PER_KEY)
    }

    fn value_bytes(self, key: Key<'_>) -> usize {
        match self {
            Self::From(store) => store.value_bytes(key),
            Self::Worst => VALUE_BYTES_MAX,
        }
    }

    fn key_count(self) -> usize {
        match self {
            Self::From(store) => usize::try_from(store.items.count()).unwrap_or(usize::MAX),
            Self::Worst => usize::MAX,
        }
    }
}

/// What is the usual number of words or keys, or fewer, is not counted.
const fn of_many(count: usize, each: usize) -> usize {
    if count > WORDS_USUAL { count * each } else { 0 }
}

/// Comparing one key with a pattern.
fn of_pattern(pattern: &[u8]) -> usize {
    let front = pattern.strip_suffix(b"*").unwrap_or(pattern);
    let is_plain = !front.iter().any(|byte| matches!(byte, b'*' | b'['));
    let steps = if is_plain {
        front.len().min(KEY_BYTES_MAX)
    } else {
        front.len().saturating_mul(KEY_BYTES_MAX)
    };
    steps.saturating_mul(PER_PATTERN_STEP)
}

/// The items that a `SCAN` looks at.
fn of_page(words: &Words<'_>) -> usize {
    let (mut count, mut each) = (COUNT_USUAL, PER_KEY_SEEN);
    let mut options = words.iter().skip(2);
    while let (Some(name), Some(value)) = (options.next(), options.next()) {
        if name.eq_ignore_ascii_case(b"count") {
            let asked = integer(value).and_then(|it| usize::try_from(it).ok());
            count = asked.unwrap_or(COUNT_USUAL).min(COUNT_MAX);
        } else if name.eq_ignore_ascii_case(b"match") {
            each = PER_KEY_SEEN + of_pattern(value);
        }
    }
    count.saturating_mul(each)
}

/// How many digits a number has once it is written without an exponent, at most or nearly so.
fn written_digits(text: &[u8]) -> usize {
    let marker = |byte: &u8| matches!(byte, b'e' | b'E' | b'p' | b'P');
    let digits = match text.iter().position(marker) {
        None => text.len(),
        Some(place) => {
            let exponent = &text[place + 1..];
            let exponent = exponent.strip_prefix(b"+").unwrap_or(exponent);
            if exponent.starts_with(b"-") {
                text.len()
            } else {
                let number = integer(exponent).and_then(|it| usize::try_from(it).ok());
                text.len().saturating_add(number.unwrap_or(usize::MAX))
            }
        }
    };
    digits.min(Extended::TEXT_BYTES_MAX)
}

impl Store {
    fn value_bytes(&self, key: Key<'_>) -> usize {
        self.get(key).map_or(0, |item| item.value.len())
    }
}

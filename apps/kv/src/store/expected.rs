//! What a request is likely to cost, said before anybody carries it out: so that one client's expensive ones do not
//! stand in the log one behind the other, before those of all others. A guess from the values of now. What nearly all
//! requests are costs nothing here, not even a look at the store.
use super::Store;
use super::redis::work::{PER_KEY_SEEN, PER_PIECE};
use crate::memcached::{Asked, MetaKind, NO_KEY, Read};
use crate::redis::{Resp, Words, find, integer};
use crate::{Command, Key, Keys, VALUE_BYTES_MAX, WORK_MAX};

/// What a command of Redis works on, if that can be much.
#[derive(Clone, Copy)]
enum WorksOn {
    /// The values of the keys that it names.
    Values,
    /// The same with the word `GET`.
    ValuesIfAsked,
    /// The bytes that a value grows by; the place is in words from the second on.
    Growth,
    /// All keys.
    Keys,
    /// Those that lie together.
    SomeKeys,
}

const EXPENSIVE: [(&[u8], WorksOn); 21] = [
    (b"append", WorksOn::Values),
    (b"bitcount", WorksOn::Values),
    (b"bitfield", WorksOn::Growth),
    (b"bitop", WorksOn::Values),
    (b"bitpos", WorksOn::Values),
    (b"copy", WorksOn::Values),
    (b"get", WorksOn::Values),
    (b"getdel", WorksOn::Values),
    (b"getex", WorksOn::Values),
    (b"getrange", WorksOn::Values),
    (b"getset", WorksOn::Values),
    (b"keys", WorksOn::Keys),
    (b"mget", WorksOn::Values),
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
    /// What a write is likely to be in work, in the measure of [`WORK_MAX`], beside its own bytes: 0 if that is little.
    #[must_use]
    pub fn expected_work(&self, command: &Command<'_>) -> usize {
        Estimate::From(self).of_command(command)
    }

    /// The same for what [`query`](quorumwire_interfaces::StateMachine::query) takes.
    #[must_use]
    pub fn expected_work_of_query(&self, request: &[u8]) -> usize {
        Estimate::From(self).of_query(request)
    }
}

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
            Command::Meta { meta, .. } if meta.kind() == MetaKind::Get => {
                self.value_bytes(meta.key(&mut NO_KEY.clone()))
            }
            Command::Redis(script) => {
                let each = script.each_command().map(|words| self.of_words(&words));
                each.fold(0, usize::saturating_add).min(WORK_MAX)
            }
            Command::Set(_)
            | Command::Add(_)
            | Command::Replace(_)
            | Command::Cas { .. }
            | Command::Increment { .. }
            | Command::Decrement { .. }
            | Command::Touch { .. }
            | Command::Delete { .. }
            | Command::FlushAll { .. }
            | Command::Memory(_)
            | Command::Meta { .. } => 0,
        }
    }

    fn of_query(self, request: &[u8]) -> usize {
        if let Some((&version, text)) = request.split_first()
            && Resp::from_byte(version).is_some()
        {
            let words = Words::from_text(text);
            return words.map_or(0, |words| self.of_words(&words));
        }
        match Read::from_line(request).as_ref().map(Read::asked) {
            Some(Asked::Items { keys, .. }) => self.values_bytes(keys),
            Some(Asked::Meta(meta)) => self.value_bytes(meta.key(&mut NO_KEY.clone())),
            Some(Asked::Debug(_)) | None => 0,
        }
    }

    fn of_words(self, words: &Words<'_>) -> usize {
        let name = words.get(0).unwrap_or_default();
        let known = EXPENSIVE
            .iter()
            .find(|(known, _)| name.eq_ignore_ascii_case(known));
        let work = match known.map(|(_, works_on)| works_on) {
            None => 0,
            Some(WorksOn::Values) => self.named_values_bytes(words),
            Some(WorksOn::ValuesIfAsked) => {
                let mut options = words.iter().skip(3);
                if options.any(|word| word.eq_ignore_ascii_case(b"get")) {
                    self.named_values_bytes(words)
                } else {
                    0
                }
            }
            Some(WorksOn::Growth) => self.growth(words),
            Some(WorksOn::Keys) => {
                let keys = self.key_count();
                keys.saturating_mul(PER_KEY_SEEN)
            }
            Some(WorksOn::SomeKeys) => PER_PIECE,
        };
        work.min(WORK_MAX)
    }

    fn named_values_bytes(self, words: &Words<'_>) -> usize {
        let Ok(spec) = find(words) else { return 0 };
        let named = words.iter().enumerate();
        let named = named.filter(|(place, _)| spec.is_key(*place, words.len()));
        let bytes = named.filter_map(|(_, name)| Some(self.value_bytes(Key::binary(name)?)));
        bytes.sum()
    }

    /// How long a value is made that is shorter. A place is one of bytes, of bits, or of fields of up to 64 of these:
    /// the most that it can be is taken.
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
        let end = end.min(VALUE_BYTES_MAX);
        match self {
            Self::From(store) if store.value_bytes(key) >= end => 0,
            Self::From(_) | Self::Worst => end,
        }
    }

    fn values_bytes(self, keys: Keys<'_>) -> usize {
        keys.iter().map(|key| self.value_bytes(key)).sum()
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

impl Store {
    fn value_bytes(&self, key: Key<'_>) -> usize {
        self.get(key).map_or(0, |item| item.value.len())
    }
}

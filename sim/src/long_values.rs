//! Values that are longer than a plane's entry: which writes have one, what it looks like, and what becomes
//! of the fragments that a server makes of it. What a plane's client cuts itself is not looked at here.
use crate::clients::SESSIONS_FROM;
use crate::driver::operation_of;
use crate::plan::Settings;
use crate::random::{Random, mix};
use crate::state::is_beside_the_store;
use crate::world::World;
use quorumwire_interfaces::Index;
use quorumwire_kv::VALUE_BYTES_MAX;
use quorumwire_sessions::FRAGMENT_HEADER_BYTES;
use std::collections::BTreeMap;
use std::iter::repeat_n;

/// Sets these choices apart from all others of a seed.
const LONG: u64 = 0x0001_0096;
/// So many of a thousand seeds have long values, and there so many of a thousand writes.
const SEEDS_PERMILLE: u64 = 300;
const WRITES_PERMILLE: u64 = 150;
/// Most of them have so many bytes: a few fragments.
const USUAL: (u64, u64) = (1_000, 8_000);
/// A few have so many: Redis' inline commands end at 64 KiB.
const VERY_LONG: (u64, u64) = (16_000, 60_000);
/// No client takes more sessions than this many behind the first.
const SESSIONS: u64 = 1 << 16;

/// What a run must have seen of them.
pub const OUTCOMES: [&str; 8] = [
    "long value answered",
    "long value passed on",
    "long value read",
    "long value refused as busy",
    "value too long for anybody",
    "server's fragments assembled",
    "server's fragments assembled, others' commands between",
    "server's fragments cut short",
];

/// Commands of which a server's fragments are in the log, in the order of their names.
#[derive(Debug, Default)]
pub struct Begun(BTreeMap<(u64, u64), Pieces>);

#[derive(Debug)]
struct Pieces {
    count: u32,
    bytes: BTreeMap<u32, Vec<u8>>,
    first: Index,
}

impl Settings {
    /// Some clients write long values.
    #[must_use]
    pub fn has_long_values(&self) -> bool {
        Random::new(mix(self.seed ^ LONG)).permille(SEEDS_PERMILLE)
    }

    /// How many bytes the value has that this operation writes, at least.
    #[must_use]
    pub fn value_bytes(&self, operation: u32) -> usize {
        if !self.has_long_values() {
            return 0;
        }
        let random = &mut Random::new(mix(self.seed ^ LONG ^ (u64::from(operation) + 1) << 20));
        if !random.permille(WRITES_PERMILLE) {
            return 0;
        }
        let bytes = match random.below(200) {
            0 => VALUE_BYTES_MAX as u64 + 1,
            1..=5 => random.between(VERY_LONG.0, VERY_LONG.1),
            _ => random.between(USUAL.0, USUAL.1),
        };
        usize::try_from(bytes).unwrap_or(0)
    }
}

/// A value of at least so many bytes: the number, again and again, so that each part of it tells whose it is.
#[must_use]
pub fn text_of(number: u64, bytes: usize) -> String {
    let mut text = number.to_string();
    let again = format!(",{number}");
    let times = bytes.saturating_sub(text.len()).div_ceil(again.len());
    text.extend(repeat_n(again.as_str(), times));
    text
}

/// The number that a value is, if each part of it says the same.
#[must_use]
pub fn number_in(value: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(value).ok()?;
    let first = text.split(',').next()?;
    let is_same = text.split(',').all(|part| part == first);
    is_same.then(|| first.parse().ok()).flatten()
}

impl World {
    /// Judges and counts a fragment that was kept, or that was the last one, if a server has made it.
    pub fn note_own_fragment(
        &mut self,
        machine: usize,
        index: Index,
        payload: &[u8],
        is_last: bool,
    ) {
        let Some((header, bytes)) = payload.split_first_chunk::<FRAGMENT_HEADER_BYTES>() else {
            return;
        };
        let word = |at: usize, bytes: usize| {
            let part = header[at..at + bytes].iter();
            part.fold(0, |sum, byte| sum << 8 | u64::from(*byte))
        };
        let name = (word(0, 8), word(8, 8));
        let is_clients = (SESSIONS_FROM..SESSIONS_FROM + SESSIONS).contains(&name.0);
        if name.0 != 0 && !is_clients {
            return;
        }
        let [number, count] = [word(16, 4), word(20, 4)].map(|it| u32::try_from(it).unwrap_or(0));
        let begun = self.long_commands.0.remove(&name);
        let mut pieces = begun
            .filter(|it| it.count == count)
            .unwrap_or_else(|| Pieces {
                count,
                bytes: BTreeMap::new(),
                first: index,
            });
        pieces.bytes.insert(number, bytes.to_vec());
        if !is_last {
            self.long_commands.0.insert(name, pieces);
            return;
        }
        self.counts.see("server's fragments assembled");
        if index.0 - pieces.first.0 >= u64::from(count) {
            let seen = "server's fragments assembled, others' commands between";
            self.counts.see(seen);
        }
        let command: Vec<u8> = pieces.bytes.into_values().flatten().collect();
        if is_beside_the_store(&command) {
            return;
        }
        let operation = operation_of(&command);
        self.checks.require(operation.is_some(), || {
            format!("I2: the {count} fragments that end at {index} are no client's command")
        });
        if let Some(operation) = operation {
            self.note_carried_out(index, operation);
        }
        self.note_life(machine, &command);
    }

    /// A client has been shown this value.
    pub fn note_long_value_read(&mut self, value: Option<u64>) {
        let written_by = value.and_then(|value| usize::try_from(value).ok()?.checked_sub(1));
        let asked = written_by.and_then(|operation| self.asked.get(operation));
        if asked.is_some_and(|asked| asked.value_bytes > 0) {
            self.counts.see("long value read");
        }
    }

    /// At the end: these commands will never be whole.
    pub fn count_what_was_cut_short(&mut self) {
        let cut = self.long_commands.0.len() as u64;
        self.counts.see_many("server's fragments cut short", cut);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_value_is_its_number_and_none_with_a_part_of_another() {
        let text = text_of(123, 1_000);
        assert!((1_000..1_004).contains(&text.len()), "{}", text.len());
        assert_eq!(number_in(text.as_bytes()), Some(123));
        assert_eq!((text_of(7, 0), number_in(b"7")), ("7".to_owned(), Some(7)));
        let mixed = text.replacen(",123,", ",124,", 1);
        assert_eq!(number_in(mixed.as_bytes()), None);
        assert_eq!(number_in(&text.as_bytes()[..998]), None);
        assert_eq!(number_in(b""), None);
    }
}

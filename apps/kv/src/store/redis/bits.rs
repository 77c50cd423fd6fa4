//! Commands on the bits of a value. The first bit is the highest of the first byte.
use super::{
    Answer, Arguments, At, FOREVER, Fault, Key, Outcome, SYNTAX, Store, key, number, range,
    range_in_any_order, signed,
};
use crate::VALUE_BYTES_MAX;
use crate::redis::integer;

const BAD_OFFSET: &str = "ERR bit offset is not an integer or out of range";
const BAD_BIT: &str = "ERR bit is not an integer or out of range";

impl Store {
    pub(super) fn getbit(&self, words: &Arguments<'_>, answer: &mut Answer<'_>) -> Outcome {
        let offset = bit_offset(words[2])?;
        let value = self.value(key(words[1])?).unwrap_or_default();
        answer.integer(i64::from(bit(value, offset)));
        Ok(())
    }

    pub(super) fn setbit(
        &mut self,
        words: &Arguments<'_>,
        at: At,
        answer: &mut Answer<'_>,
    ) -> Outcome {
        let key = key(words[1])?;
        let offset = bit_offset(words[2])?;
        let is_set = match integer(words[3]) {
            Some(0) => false,
            Some(1) => true,
            _ => return Err(BAD_BIT.into()),
        };
        let mut before = false;
        answer.spend(self.work_to_edit(key, offset / 8 + 1, at))?;
        self.edit(key, offset / 8 + 1, at, |value| {
            before = bit(value, offset);
            let mask = 0x80 >> (offset % 8);
            let byte = &mut value[offset / 8];
            *byte = if is_set { *byte | mask } else { *byte & !mask };
            before != is_set
        });
        answer.integer(i64::from(before));
        Ok(())
    }

    /// `BITCOUNT key [start end [BYTE|BIT]]`
    pub(super) fn bitcount(&self, words: &Arguments<'_>, answer: &mut Answer<'_>) -> Outcome {
        let Some(value) = self.value(key(words[1])?) else {
            answer.integer(0);
            return Ok(());
        };
        let counted = match words.len() {
            2 => Some((0, value.len() * 8)),
            4 | 5 => {
                let (start, end) = (number(words[2])?, number(words[3])?);
                if start < 0 && end < 0 && start > end {
                    None // whatever the unit, as in Redis
                } else {
                    bit_range(words.get(4), value, |length| range(start, end, length))?
                }
            }
            _ => return Err(SYNTAX.into()),
        };
        answer.spend(counted.map_or(0, |(start, end)| (end - start) / 8))?;
        answer.count(counted.map_or(0, |(start, end)| count(value, start, end)));
        Ok(())
    }

    /// `BITPOS key bit [start [end [BYTE|BIT]]]`
    pub(super) fn bitpos(&self, words: &Arguments<'_>, answer: &mut Answer<'_>) -> Outcome {
        let wanted = match number(words[2])? {
            0 => false,
            1 => true,
            _ => return Err("ERR The bit argument must be 1 or 0.".into()),
        };
        let Some(value) = self.value(key(words[1])?) else {
            answer.integer(if wanted { -1 } else { 0 });
            return Ok(());
        };
        if words.len() > 6 {
            return Err(SYNTAX.into());
        }
        let start = words.get(3).map_or(Ok(0), |word| number(word))?;
        let is_bounded = words.len() > 4;
        if let Some(unit) = words.get(5) {
            is_in_bits(unit)?;
        }
        let end = words.get(4).map_or(Ok(-1), |word| number(word))?;
        let searched = bit_range(words.get(5), value, |length| {
            range_in_any_order(start, end, length)
        })?;
        let place = match searched {
            None => -1,
            Some((start, end)) => {
                let found = find(value, start, end, wanted);
                answer.spend((found.unwrap_or(end) - start) / 8)?;
                match found {
                    Some(place) => signed(place),
                    // Behind the value there are zeros, unless the range says where it ends.
                    None if !wanted && !is_bounded => signed(end),
                    None => -1,
                }
            }
        };
        answer.integer(place);
        Ok(())
    }

    /// `BITOP AND|OR|XOR|NOT destination key...`
    pub(super) fn bitop(
        &mut self,
        words: &Arguments<'_>,
        at: At,
        answer: &mut Answer<'_>,
    ) -> Outcome {
        let operation = Operation::named(words[1]).ok_or(SYNTAX)?;
        if operation == Operation::Not && words.len() != 4 {
            return Err("ERR BITOP NOT must be called with a single source key.".into());
        }
        let destination = key(words[2])?;
        let sources: Result<Vec<Key<'_>>, Fault> =
            words[3..].iter().map(|name| key(name)).collect();
        let sources = sources?;
        let lengths = sources.iter().filter_map(|&key| self.value(key));
        answer.spend(lengths.map(<[u8]>::len).sum())?;
        let result = self.combined(operation, &sources);
        answer.count(result.len());
        if result.is_empty() {
            self.remove_live(destination);
        } else {
            self.keep(destination, &result, (0, FOREVER), at);
        }
        Ok(())
    }

    /// As long as the longest value; the others have zeros behind them.
    fn combined(&self, operation: Operation, sources: &[Key<'_>]) -> Vec<u8> {
        let values = || {
            sources
                .iter()
                .map(|&key| self.value(key).unwrap_or_default())
        };
        let bytes = values().map(<[u8]>::len).max().unwrap_or(0);
        let mut result = vec![0; bytes];
        for (place, value) in values().enumerate() {
            if place == 0 {
                result[..value.len()].copy_from_slice(value);
                if operation == Operation::Not {
                    for byte in &mut result {
                        *byte = !*byte;
                    }
                }
                continue;
            }
            let (front, back) = result.split_at_mut(value.len());
            let pairs = front.iter_mut().zip(value);
            match operation {
                Operation::And => {
                    pairs.for_each(|(byte, other)| *byte &= other);
                    back.fill(0);
                }
                Operation::Or => pairs.for_each(|(byte, other)| *byte |= other),
                Operation::Xor | Operation::Not => pairs.for_each(|(byte, other)| *byte ^= other),
            }
        }
        result
    }
}

/// What `BITOP` makes of bits.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Operation {
    And,
    Or,
    Xor,
    Not,
}

impl Operation {
    fn named(name: &[u8]) -> Option<Self> {
        let all: [(&[u8], Self); 4] = [
            (b"AND", Self::And),
            (b"OR", Self::Or),
            (b"XOR", Self::Xor),
            (b"NOT", Self::Not),
        ];
        let mut all = all.into_iter();
        all.find(|(known, _)| name.eq_ignore_ascii_case(known))
            .map(|(_, operation)| operation)
    }
}

fn bit_offset(word: &[u8]) -> Result<usize, Fault> {
    integer(word)
        .and_then(|offset| usize::try_from(offset).ok())
        .filter(|offset| offset / 8 < VALUE_BYTES_MAX)
        .ok_or(BAD_OFFSET.into())
}

/// The same for fields of so many bits: behind a `#` they are counted, not bits.
pub(super) fn bit_offset_in(word: &[u8], bits: usize) -> Result<usize, Fault> {
    let Some(place) = word.strip_prefix(b"#") else {
        return bit_offset(word);
    };
    integer(place)
        .and_then(|place| usize::try_from(place).ok()?.checked_mul(bits))
        .filter(|offset| offset / 8 < VALUE_BYTES_MAX)
        .ok_or(BAD_OFFSET.into())
}

/// The bit at `offset`, clear behind the value.
fn bit(value: &[u8], offset: usize) -> bool {
    let byte = value.get(offset / 8).copied().unwrap_or(0);
    byte >> (7 - offset % 8) & 1 == 1
}

/// Whether a range is meant in bits, not in bytes.
fn is_in_bits(unit: &[u8]) -> Result<bool, Fault> {
    if unit.eq_ignore_ascii_case(b"BIT") {
        Ok(true)
    } else if unit.eq_ignore_ascii_case(b"BYTE") {
        Ok(false)
    } else {
        Err(SYNTAX.into())
    }
}

/// The bits of a range: the first, and the one behind the last.
type Bits = Option<(usize, usize)>;

/// What `range` makes of so many places, in bits.
fn bit_range(
    unit: Option<&&[u8]>,
    value: &[u8],
    range: impl FnOnce(i64) -> Option<(i64, i64)>,
) -> Result<Bits, Fault> {
    let in_bits = unit.map_or(Ok(false), |unit| is_in_bits(unit))?;
    let bits_per_place = if in_bits { 1 } else { 8 };
    let length = signed(value.len() * 8) / bits_per_place;
    let bits = range(length).and_then(|(start, end)| {
        let start = usize::try_from(start * bits_per_place).ok()?;
        let end = usize::try_from((end + 1) * bits_per_place).ok()?;
        Some((start, end))
    });
    Ok(bits)
}

/// How many bits from `start` to before `end` are set.
fn count(value: &[u8], start: usize, end: usize) -> usize {
    let mut ones = 0;
    let mut place = start;
    while place < end {
        if place.is_multiple_of(8) && end - place >= 8 {
            let whole = &value[place / 8..end / 8];
            let (words, bytes) = whole.as_chunks::<8>();
            let in_words = words
                .iter()
                .map(|word| u64::from_ne_bytes(*word).count_ones() as usize);
            let in_bytes = bytes.iter().map(|byte| byte.count_ones() as usize);
            ones += in_words.chain(in_bytes).sum::<usize>();
            place += whole.len() * 8;
        } else {
            ones += usize::from(bit(value, place));
            place += 1;
        }
    }
    ones
}

/// The first bit from `start` to before `end` that is as wanted.
fn find(value: &[u8], start: usize, end: usize, wanted: bool) -> Option<usize> {
    let unwanted = if wanted { 0 } else { 0xff };
    let mut place = start;
    while place < end {
        if place.is_multiple_of(8) && end - place >= 8 {
            let whole = &value[place / 8..end / 8];
            let (words, _) = whole.as_chunks::<8>();
            let in_words = words.iter().take_while(|&&word| word == [unwanted; 8]);
            let skipped = 8 * in_words.count();
            let rest = whole[skipped..].iter();
            let skipped = skipped + rest.take_while(|&&byte| byte == unwanted).count();
            if skipped > 0 {
                place += skipped * 8;
                continue;
            }
        }
        if bit(value, place) == wanted {
            return Some(place);
        }
        place += 1;
    }
    None
}

//! `BITFIELD`: integers of any width anywhere in a value.
use super::bits::bit_offset_in;
use super::{Answer, Arguments, At, Fault, Outcome, SYNTAX, Store, fits, key, number, reply};
use crate::redis::integer;

const BAD_TYPE: &str = "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not \
                        supported but i64 is.";

/// More bytes than one of the answers has.
const ANSWER_BYTES_MAX: usize = 24;

/// What becomes of a number that is too large for its field.
#[derive(Clone, Copy)]
enum Overflow {
    Wrap,
    Saturate,
    Fail,
}

impl Overflow {
    fn named(name: &[u8]) -> Option<Self> {
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        match () {
            () if is(b"WRAP") => Some(Self::Wrap),
            () if is(b"SAT") => Some(Self::Saturate),
            () if is(b"FAIL") => Some(Self::Fail),
            () => None,
        }
    }
}

/// What is done to a field.
#[derive(Clone, Copy)]
enum Action {
    Get,
    Set(i64, Overflow),
    Add(i64, Overflow),
}

/// Some bits, as a number.
#[derive(Clone, Copy)]
struct Field {
    is_signed: bool,
    bits: u32,
    offset: usize,
}

/// One step of a command.
struct Step {
    field: Field,
    action: Action,
}

/// Which action a word names.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Verb {
    Get,
    Set,
    Add,
}

impl Store {
    pub(super) fn bitfield(
        &mut self,
        words: &Arguments<'_>,
        at: At,
        answer: &mut Answer<'_>,
    ) -> Outcome {
        let key = key(words[1])?;
        let steps = steps(&words[2..])?;
        answer.has_room((steps.len() + 1) * ANSWER_BYTES_MAX)?;
        match bytes_written(&steps) {
            None => show_fields(self.value(key).unwrap_or_default(), &steps, answer),
            Some(bytes) => {
                fits(bytes)?;
                answer.spend(self.work_to_edit(key, bytes, at))?;
                reply::array_header(answer.out, steps.len());
                self.edit(key, bytes, at, |value| {
                    let mut is_changed = false;
                    for step in &steps {
                        is_changed |= step.run(value, answer);
                    }
                    is_changed
                });
            }
        }
        Ok(())
    }

    pub(super) fn bitfield_ro(&self, words: &Arguments<'_>, answer: &mut Answer<'_>) -> Outcome {
        let key = key(words[1])?;
        let steps = steps(&words[2..])?;
        if bytes_written(&steps).is_some() {
            return Err("ERR BITFIELD_RO only supports the GET subcommand".into());
        }
        answer.has_room((steps.len() + 1) * ANSWER_BYTES_MAX)?;
        show_fields(self.value(key).unwrap_or_default(), &steps, answer);
        Ok(())
    }
}

/// `[GET type offset | [OVERFLOW WRAP|SAT|FAIL] SET|INCRBY type offset number]...`
fn steps(words: &Arguments<'_>) -> Result<Vec<Step>, Fault> {
    let mut steps = Vec::new();
    let mut overflow = Overflow::Wrap;
    let mut rest = words;
    while let Some((name, behind)) = rest.split_first() {
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        let verb = match behind.len() {
            2.. if is(b"GET") => Verb::Get,
            3.. if is(b"SET") => Verb::Set,
            3.. if is(b"INCRBY") => Verb::Add,
            1.. if is(b"OVERFLOW") => {
                overflow =
                    Overflow::named(behind[0]).ok_or("ERR Invalid OVERFLOW type specified")?;
                rest = &behind[1..];
                continue;
            }
            _ => return Err(SYNTAX.into()),
        };
        let field = Field::read(behind[0], behind[1])?;
        let action = match verb {
            Verb::Get => Action::Get,
            Verb::Set => Action::Set(number(behind[2])?, overflow),
            Verb::Add => Action::Add(number(behind[2])?, overflow),
        };
        steps.push(Step { field, action });
        rest = &behind[if verb == Verb::Get { 2 } else { 3 }..];
    }
    Ok(steps)
}

/// How long a value must be to be written to; `None` if it is only read.
fn bytes_written(steps: &[Step]) -> Option<usize> {
    let written = steps.iter().filter_map(|step| match step.action {
        Action::Get => None,
        Action::Set(..) | Action::Add(..) => Some(step.field.end().div_ceil(8)),
    });
    written.max()
}

fn show_fields(value: &[u8], steps: &[Step], answer: &mut Answer<'_>) {
    reply::array_header(answer.out, steps.len());
    for step in steps {
        answer.integer(step.field.get(value));
    }
}

impl Step {
    /// Answers with what was there, or with the sum, or with nothing if that is too large. Tells whether
    /// it changed the value.
    fn run(&self, value: &mut [u8], answer: &mut Answer<'_>) -> bool {
        let field = self.field;
        let before = field.get(value);
        let (wanted, overflow, shows_sum) = match self.action {
            Action::Get => {
                answer.integer(before);
                return false;
            }
            Action::Set(number, overflow) => (field.as_written(number), overflow, false),
            Action::Add(change, overflow) => {
                (i128::from(before) + i128::from(change), overflow, true)
            }
        };
        match field.fitted(wanted, overflow) {
            None => {
                answer.null();
                false
            }
            Some(after) => {
                field.set(value, after);
                answer.integer(if shows_sum { after } else { before });
                after != before
            }
        }
    }
}

impl Field {
    /// `i16` or `u8`, and an offset in bits or, behind a `#`, in fields.
    fn read(kind: &[u8], offset: &[u8]) -> Result<Self, Fault> {
        let (is_signed, bits) = match kind {
            [b'i', bits @ ..] => (true, bits),
            [b'u', bits @ ..] => (false, bits),
            _ => return Err(BAD_TYPE.into()),
        };
        let bits_max = if is_signed { 64 } else { 63 };
        let bits = integer(bits)
            .and_then(|bits| u32::try_from(bits).ok())
            .filter(|bits| (1..=bits_max).contains(bits))
            .ok_or(BAD_TYPE)?;
        Ok(Self {
            is_signed,
            bits,
            offset: bit_offset_in(offset, bits as usize)?,
        })
    }

    const fn end(self) -> usize {
        self.offset + self.bits as usize
    }

    /// The number in the field; bits behind the value are clear.
    fn get(self, value: &[u8]) -> i64 {
        let first = self.offset / 8;
        let mut window: u128 = 0;
        for place in first..first + WINDOW_BYTES {
            window = window << 8 | u128::from(value.get(place).copied().unwrap_or(0));
        }
        let number = u64::try_from(window >> self.shift() & u128::from(self.mask()));
        let number = number.unwrap_or(0); // never: the mask has 64 bits
        let is_negative = self.is_signed && number >> (self.bits - 1) == 1;
        if is_negative {
            (number | !self.mask()).cast_signed()
        } else {
            number.cast_signed()
        }
    }

    /// Puts a number into the field, all of which the value has.
    fn set(self, value: &mut [u8], number: i64) {
        let number = u128::from(number.cast_unsigned() & self.mask()) << self.shift();
        let mask = u128::from(self.mask()) << self.shift();
        let first = self.offset / 8;
        for (distance, byte) in value.iter_mut().skip(first).take(WINDOW_BYTES).enumerate() {
            let shift = 8 * (WINDOW_BYTES - 1 - distance);
            let byte_of = |bits: u128| (bits >> shift).to_le_bytes()[0];
            *byte = *byte & !byte_of(mask) | byte_of(number);
        }
    }

    /// How far the field is from the end of the bytes that are looked at for it.
    const fn shift(self) -> usize {
        WINDOW_BYTES * 8 - self.offset % 8 - self.bits as usize
    }

    const fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits)
    }

    /// A number to be set: for a field without a sign a negative one is a very large one.
    const fn as_written(self, number: i64) -> i128 {
        if self.is_signed {
            number as i128
        } else {
            number.cast_unsigned() as i128
        }
    }

    /// What a number becomes in the field.
    fn fitted(self, number: i128, overflow: Overflow) -> Option<i64> {
        let (least, most) = if self.is_signed {
            let half = 1_i128 << (self.bits - 1);
            (-half, half - 1)
        } else {
            (0, i128::from(self.mask()))
        };
        let fitted = if (least..=most).contains(&number) {
            number
        } else {
            match overflow {
                Overflow::Fail => return None,
                Overflow::Saturate => number.clamp(least, most),
                Overflow::Wrap => {
                    let low = number & i128::from(self.mask());
                    if low > most {
                        low - (1 << self.bits)
                    } else {
                        low
                    }
                }
            }
        };
        i64::try_from(fitted).ok()
    }
}

/// The bytes in which any field is that begins in the first of them.
const WINDOW_BYTES: usize = 9;

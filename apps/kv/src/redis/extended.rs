//! Numbers with a fraction as Redis computes with them on x86, where C's `long double` has 64 bits of
//! mantissa: made here of integers, so that every replica of whatever machine gets the same digits, and
//! those that Redis writes.
use num_bigint::BigUint;

/// A number, or infinity.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extended {
    is_negative: bool,
    magnitude: Magnitude,
}

#[derive(Clone, Copy, Debug)]
enum Magnitude {
    /// `mantissa * 2^exponent`.
    Finite {
        mantissa: u64,
        exponent: i32,
    },
    Infinite,
}

/// The least exponent there is, with which the mantissa may be short.
const EXPONENT_LEAST: i32 = -16_445;

/// Numbers are less than two to this.
const BITS_MAX: i32 = 16_384;

/// More decimal digits before the point than any number has.
const DIGITS_MAX: i64 = 4_940;

/// More zeros behind the point than stand there in any number.
const ZEROS_MAX: i64 = 4_990;

/// Bits of a quotient, at least: two more than a mantissa has.
const QUOTIENT_BITS: i64 = 66;

/// Digits that are written behind the point.
const FRACTION_DIGITS: usize = 17;

impl Extended {
    /// Texts as long as this are no numbers, in bytes.
    pub(crate) const TEXT_BYTES_MAX: usize = 5 * 1024;

    /// The number that is all of `text`, as C's `strtold` reads it; `None` if it is none, or so small that
    /// nothing is left of it.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        if text.len() >= Self::TEXT_BYTES_MAX {
            return None;
        }
        let (is_negative, rest) = match text.split_first()? {
            (b'-', rest) => (true, rest),
            (b'+', rest) => (false, rest),
            _ => (false, text),
        };
        let magnitude =
            if rest.eq_ignore_ascii_case(b"inf") || rest.eq_ignore_ascii_case(b"infinity") {
                Magnitude::Infinite
            } else if let [b'0', b'x' | b'X', digits @ ..] = rest {
                hexadecimal(&Digits::read(digits, 16, b'p')?)?
            } else {
                decimal(&Digits::read(rest, 10, b'e')?)?
            };
        Some(Self {
            is_negative,
            magnitude,
        })
    }

    /// The sum; `None` if it is no finite number.
    pub(crate) fn plus(self, other: Self) -> Option<Self> {
        let (first, second) = (self.normal()?, other.normal()?);
        let (large, small) = if first.1 >= second.1 {
            ((self.is_negative, first), (other.is_negative, second))
        } else {
            ((other.is_negative, second), (self.is_negative, first))
        };
        let (large_is_negative, (large, exponent)) = large;
        let (small_is_negative, (small, small_exponent)) = small;
        let large = u128::from(large) << 63;
        let small = shifted_with_rest(u128::from(small) << 63, exponent.abs_diff(small_exponent));
        let (is_negative, sum) = if large_is_negative == small_is_negative {
            (large_is_negative, large + small)
        } else if large >= small {
            (large_is_negative, large - small)
        } else {
            (small_is_negative, small - large)
        };
        let magnitude = rounded(sum, exponent - 63, false);
        match magnitude {
            Magnitude::Finite { .. } => Some(Self {
                is_negative,
                magnitude,
            }),
            Magnitude::Infinite => None,
        }
    }

    /// Mantissa and exponent, with the mantissa's first bit set unless it is zero; that has an exponent
    /// less than any.
    fn normal(self) -> Option<(u64, i32)> {
        match self.magnitude {
            Magnitude::Infinite => None,
            Magnitude::Finite { mantissa: 0, .. } => Some((0, EXPONENT_LEAST - 64)),
            Magnitude::Finite { mantissa, exponent } => {
                let zeros = mantissa.leading_zeros();
                Some((mantissa << zeros, exponent - zeros.cast_signed()))
            }
        }
    }

    /// Its digits, rounded to [`FRACTION_DIGITS`] behind the point, without zeros at the end.
    pub(crate) fn text(self) -> String {
        let Magnitude::Finite { mantissa, exponent } = self.magnitude else {
            return if self.is_negative { "-inf" } else { "inf" }.to_owned();
        };
        let mut digits = if let Ok(shift) = usize::try_from(exponent) {
            (BigUint::from(mantissa) << shift).to_string()
        } else {
            fraction_text(mantissa, exponent.unsigned_abs())
        };
        if self.is_negative && digits != "0" {
            digits.insert(0, '-');
        }
        digits
    }
}

/// `number / 2^shift`, its last bit set if anything was lost.
fn shifted_with_rest(number: u128, shift: u32) -> u128 {
    match number.checked_shr(shift) {
        None => u128::from(number != 0),
        Some(shifted) => shifted | u128::from(shifted << shift != number),
    }
}

/// The digits of `mantissa / 2^shift`.
fn fraction_text(mantissa: u64, shift: u32) -> String {
    let scaled = u128::from(mantissa) * 10_u128.pow(17);
    let units = if shift >= u128::BITS {
        0 // less than half of the last digit
    } else {
        let whole = scaled >> shift;
        let rest = scaled - (whole << shift);
        let half = 1_u128 << (shift - 1);
        whole + u128::from(rest > half || (rest == half && whole & 1 == 1))
    };
    let digits = format!("{units:018}");
    let (whole, fraction) = digits.split_at(digits.len() - FRACTION_DIGITS);
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() {
        whole.to_owned()
    } else {
        format!("{whole}.{fraction}")
    }
}

/// The nearest number to `number * 2^exponent`, or to a little more than that; of two the even one.
fn rounded(number: u128, exponent: i32, is_more: bool) -> Magnitude {
    let bits = (u128::BITS - number.leading_zeros()).cast_signed();
    let excess = (bits - 64).max(EXPONENT_LEAST - exponent).max(0);
    let exponent = exponent + excess;
    let mantissa = match excess.unsigned_abs() {
        0 => number,
        excess if excess > u128::BITS => 0,
        excess => {
            let whole = number.checked_shr(excess).unwrap_or(0);
            let rest = number - whole.checked_shl(excess).unwrap_or(0);
            let half = 1_u128 << (excess - 1);
            let is_odd = whole & 1 == 1;
            whole + u128::from(rest > half || (rest == half && (is_more || is_odd)))
        }
    };
    // Rounding up may have carried into a 65th bit, all others being clear then.
    let carried = u32::from(mantissa >> 64 != 0);
    let exponent = exponent + carried.cast_signed();
    let mantissa = u64::try_from(mantissa >> carried).unwrap_or(u64::MAX); // never: 64 bits
    let bits = (u64::BITS - mantissa.leading_zeros()).cast_signed();
    if mantissa != 0 && bits + exponent > BITS_MAX {
        Magnitude::Infinite
    } else {
        Magnitude::Finite { mantissa, exponent }
    }
}

/// `digits * base^exponent`, or for hexadecimal digits `digits * 2^exponent`.
struct Digits {
    digits: Vec<u8>,
    exponent: i64,
}

impl Digits {
    /// Reads digits with or without a point, and an exponent behind `marker` if there is one.
    fn read(text: &[u8], base: u32, marker: u8) -> Option<Self> {
        let mut digits = Vec::new();
        let mut behind_point = 0;
        let mut has_point = false;
        let mut place = 0;
        for &byte in text {
            if byte == b'.' && !has_point {
                has_point = true;
            } else {
                let Some(digit) = char::from(byte).to_digit(base) else {
                    break;
                };
                digits.push(u8::try_from(digit).ok()?);
                behind_point += i64::from(has_point);
            }
            place += 1;
        }
        if digits.is_empty() {
            return None;
        }
        let per_digit = if base == 16 { 4 } else { 1 };
        let exponent = match text[place..].split_first() {
            None => 0,
            Some((byte, written)) if byte.eq_ignore_ascii_case(&marker) => exponent(written)?,
            Some(_) => return None,
        };
        let first = digits.iter().take_while(|&&digit| digit == 0).count();
        digits.drain(..first);
        Some(Self {
            digits,
            exponent: exponent - behind_point * per_digit,
        })
    }
}

/// An exponent; one too large for any number is cut down to another one.
fn exponent(text: &[u8]) -> Option<i64> {
    const LARGE: i64 = 1_000_000;
    let (sign, digits) = match text.split_first()? {
        (b'-', rest) => (-1, rest),
        (b'+', rest) => (1, rest),
        _ => (1, text),
    };
    if digits.is_empty() {
        return None;
    }
    let mut number = 0;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        number = (number * 10 + i64::from(digit - b'0')).min(LARGE);
    }
    Some(sign * number)
}

const ZERO: Magnitude = Magnitude::Finite {
    mantissa: 0,
    exponent: 0,
};

fn decimal(read: &Digits) -> Option<Magnitude> {
    let count = i64::try_from(read.digits.len()).ok()?;
    if count == 0 {
        return Some(ZERO);
    }
    if count + read.exponent > DIGITS_MAX {
        return None; // `strtold` finds it out of range
    }
    if count + read.exponent < -ZEROS_MAX {
        return None;
    }
    let digits = BigUint::from_radix_be(&read.digits, 10)?;
    let power = BigUint::from(10_u32).pow(u32::try_from(read.exponent.unsigned_abs()).ok()?);
    let (top, exponent, is_more) = if read.exponent >= 0 {
        top(&(digits * power))
    } else {
        quotient(digits, power)
    };
    let magnitude = rounded(top, exponent, is_more);
    in_range(magnitude)
}

fn hexadecimal(read: &Digits) -> Option<Magnitude> {
    if read.digits.is_empty() {
        return Some(ZERO);
    }
    let (top, exponent, is_more) = top(&BigUint::from_radix_be(&read.digits, 16)?);
    let exponent = i64::from(exponent) + read.exponent;
    let exponent = i32::try_from(exponent.clamp(-100_000, 100_000)).ok()?;
    in_range(rounded(top, exponent, is_more))
}

/// The first bits of a number, the power of two they count, and whether there is more below them.
fn top(number: &BigUint) -> (u128, i32, bool) {
    let below = number.bits().saturating_sub(u128::BITS.into());
    let top = u128::try_from(number >> below).unwrap_or(u128::MAX); // never: it has no more bits
    let is_more = number.trailing_zeros().is_some_and(|zeros| zeros < below);
    (top, i32::try_from(below).unwrap_or(i32::MAX), is_more)
}

/// The same of a quotient: at least [`QUOTIENT_BITS`] of it.
fn quotient(mut numerator: BigUint, mut divisor: BigUint) -> (u128, i32, bool) {
    let shift = QUOTIENT_BITS + divisor.bits().cast_signed() - numerator.bits().cast_signed();
    if shift >= 0 {
        numerator <<= shift.unsigned_abs();
    } else {
        divisor <<= shift.unsigned_abs();
    }
    let quotient = &numerator / &divisor;
    let is_more = &quotient * &divisor != numerator;
    let quotient = u128::try_from(quotient).unwrap_or(u128::MAX); // never: it has one bit more
    (quotient, i32::try_from(-shift).unwrap_or(i32::MAX), is_more)
}

/// What was written as a number other than zero must be one.
fn in_range(magnitude: Magnitude) -> Option<Magnitude> {
    match magnitude {
        Magnitude::Infinite | Magnitude::Finite { mantissa: 0, .. } => None,
        Magnitude::Finite { .. } => Some(magnitude),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(first: &str, second: &str) -> Option<String> {
        let first = Extended::parse(first.as_bytes())?;
        Some(first.plus(Extended::parse(second.as_bytes())?)?.text())
    }

    #[test]
    fn sums_have_the_digits_of_redis() {
        for (first, second, expected) in [
            ("0", "0", "0"),
            ("-0", "-0", "0"),
            ("3.0", "1.000000000000000001", "4"),
            ("10.50", "0.1", "10.6"),
            ("5.0e3", "2.0e2", "5200"),
            ("0.1", "0.2", "0.3"),
            ("1", "-1", "0"),
            ("-1e-20", "0", "0"),
            ("1e30", "1", "1000000000000000000024696061952"),
            ("0x10", ".5", "16.5"),
            ("0x1.8p1", "0", "3"),
            ("9007199254740993", "0.5", "9007199254740993.5"),
        ] {
            assert_eq!(
                sum(first, second).as_deref(),
                Some(expected),
                "{first} {second}"
            );
        }
        assert_eq!(sum("1e4932", "1e4932"), None);
        assert_eq!(sum("inf", "1"), None);
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in [
            "",
            " 1",
            "1 ",
            "+",
            "-",
            ".",
            "1e",
            "1e+",
            "0x",
            "0x.p1",
            "1x",
            "nan",
            "1e5000",
            "1e-5000",
            "infx",
            "1.2.3",
            "--1",
            "0x1p99999",
            "1\0",
        ] {
            assert!(Extended::parse(text.as_bytes()).is_none(), "{text:?}");
        }
        assert!(Extended::parse(&[b'1'; Extended::TEXT_BYTES_MAX]).is_none());
    }

    #[test]
    fn the_longest_texts_are_read_and_written() {
        let least = "3.6e-4951";
        assert_eq!(sum(least, "1").as_deref(), Some("1"));
        let zeros = format!("0.{}1", "0".repeat(4900));
        assert_eq!(sum(&zeros, "-2").as_deref(), Some("-2"));
        let large = sum("1e4931", "0").unwrap();
        assert_eq!(large.len(), 4932);
        assert_eq!(sum(&large, "0"), Some(large));
    }
}

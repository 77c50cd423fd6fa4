//! Integers as Redis reads them: exactly as they would be written. Knows no commands.

/// Digits and sign of the longest number.
const TEXT_BYTES_MAX: usize = "-9223372036854775808".len();

/// The number that is written exactly so: no blanks, no plus, no leading zeros, no `-0`.
#[must_use]
pub fn integer(text: &[u8]) -> Option<i64> {
    if text.len() > TEXT_BYTES_MAX {
        return None;
    }
    let (negative, digits) = match text.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    match digits {
        [b'0'] => return (!negative).then_some(0),
        [] | [b'0', ..] => return None,
        [_, ..] => {}
    }
    let mut magnitude: u64 = 0;
    for &digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        magnitude = magnitude
            .checked_mul(10)?
            .checked_add(u64::from(digit - b'0'))?;
    }
    if negative {
        0_i64.checked_sub_unsigned(magnitude)
    } else {
        i64::try_from(magnitude).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_written_in_one_way() {
        for (text, number) in [
            ("0", Some(0)),
            ("7", Some(7)),
            ("-7", Some(-7)),
            ("9223372036854775807", Some(i64::MAX)),
            ("9223372036854775808", None),
            ("-9223372036854775808", Some(i64::MIN)),
            ("-9223372036854775809", None),
            ("18446744073709551617", None),
            ("99999999999999999999", None),
            ("", None),
            ("-", None),
            ("-0", None),
            ("+7", None),
            ("07", None),
            ("-07", None),
            (" 7", None),
            ("7 ", None),
            ("7x", None),
        ] {
            assert_eq!(integer(text.as_bytes()), number, "{text:?}");
        }
    }
}

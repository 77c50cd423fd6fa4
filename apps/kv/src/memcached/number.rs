//! Numbers as memcached reads them, which is as C's `strtoull` and `strtoll` do. Knows no protocol.

/// The unsigned number at the start of `text`: blanks, a sign, digits, then the end, a blank or a NUL.
/// A minus sign is allowed where C's arithmetic hides it (`-0`), as in memcached.
pub(crate) fn unsigned(text: &[u8]) -> Option<u64> {
    let (magnitude, negative) = magnitude(text)?;
    let number = if negative {
        magnitude.wrapping_neg()
    } else {
        magnitude
    };
    let c_string = text.split(|&byte| byte == 0).next().unwrap_or_default();
    if number > i64::MAX.unsigned_abs() && c_string.contains(&b'-') {
        return None;
    }
    Some(number)
}

/// The signed number at the start of `text`, by the same rules.
pub(super) fn signed(text: &[u8]) -> Option<i64> {
    let (magnitude, negative) = magnitude(text)?;
    if negative {
        0_i64.checked_sub_unsigned(magnitude)
    } else {
        i64::try_from(magnitude).ok()
    }
}

fn magnitude(text: &[u8]) -> Option<(u64, bool)> {
    let blanks = text.iter().take_while(|&&byte| is_blank(byte)).count();
    let text = &text[blanks..];
    let negative = text.first() == Some(&b'-');
    let digits = text
        .strip_prefix(b"-")
        .or_else(|| text.strip_prefix(b"+"))
        .unwrap_or(text);
    let mut magnitude: u64 = 0;
    let mut digit_count = 0;
    for digit in digits.iter().take_while(|byte| byte.is_ascii_digit()) {
        magnitude = magnitude
            .checked_mul(10)?
            .checked_add(u64::from(digit - b'0'))?;
        digit_count += 1;
    }
    let ends = digits
        .get(digit_count)
        .is_none_or(|&byte| byte == 0 || is_blank(byte));
    (digit_count > 0 && ends).then_some((magnitude, negative))
}

const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | 0x09..=0x0d)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsigned_numbers_read_as_in_memcached() {
        for (text, number) in [
            (&b"0"[..], Some(0)),
            (b"+5", Some(5)),
            (b" 12", Some(12)),
            (b"12 ", Some(12)),
            (b"1 2", Some(1)),
            (b"5\x006", Some(5)),
            (b"5\t6", Some(5)),
            (b"5\r\n", Some(5)),
            (b"012", Some(12)),
            (b"000000000000000000001", Some(1)),
            (b"18446744073709551615", Some(u64::MAX)),
            (b"18446744073709551616", None),
            (b"18446744073709551615 -", None),
            (b"18446744073709551615\0-", Some(u64::MAX)),
            (b"-0", Some(0)),
            (b"-1", None),
            (b"-18446744073709551615", Some(1)),
            (b"", None),
            (b" ", None),
            (b"+", None),
            (b"+-1", None),
            (b"12a", None),
            (b"x", None),
            (b"0x5", None),
        ] {
            assert_eq!(unsigned(text), number, "{}", text.escape_ascii());
        }
    }

    #[test]
    fn signed_numbers_have_64_bits() {
        for (text, number) in [
            (&b"-1"[..], Some(-1)),
            (b"2147483648", Some(2_147_483_648)),
            (b"9223372036854775807", Some(i64::MAX)),
            (b"9223372036854775808", None),
            (b"-9223372036854775808", Some(i64::MIN)),
            (b"-9223372036854775809", None),
            (b"1.5", None),
            (b"-", None),
        ] {
            assert_eq!(signed(text), number, "{}", text.escape_ascii());
        }
    }
}

//! Words in a line, as people type them: blanks between them, quotes around them. Knows no commands.

/// The words of `line`; `None` if a quote is not closed, or something follows a closing one.
pub(super) fn split(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut rest = line;
    loop {
        let blanks = rest.iter().take_while(|&&byte| is_blank(byte)).count();
        rest = &rest[blanks..];
        if rest.is_empty() {
            return Some(words);
        }
        let mut word = Vec::new();
        rest = take_word(rest, &mut word)?;
        words.push(word);
    }
}

/// Takes a word, and gives what stands behind it. Quotes may begin within it, and end it.
fn take_word<'a>(text: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        match byte {
            b' ' | b'\n' | b'\r' | b'\t' => break,
            b'"' => return end_of_quotes(take_double(behind, word)?),
            b'\'' => return end_of_quotes(take_single(behind, word)?),
            other => word.push(other),
        }
        rest = behind;
    }
    Some(rest)
}

/// Up to the closing `"`; `\n`, `\x41` and the like are what they are in C.
fn take_double<'a>(text: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    let mut rest = text;
    loop {
        rest = match rest {
            [b'\\', b'x', high, low, behind @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                word.push(hex_digit(*high) << 4 | hex_digit(*low));
                behind
            }
            [b'\\', escaped, behind @ ..] => {
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 0x08,
                    b'a' => 0x07,
                    other => *other,
                });
                behind
            }
            [b'"', behind @ ..] => return Some(behind),
            [byte, behind @ ..] => {
                word.push(*byte);
                behind
            }
            [] => return None,
        };
    }
}

/// Up to the closing `'`; only `\'` is not what it looks like.
fn take_single<'a>(text: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    let mut rest = text;
    loop {
        rest = match rest {
            [b'\\', b'\'', behind @ ..] => {
                word.push(b'\'');
                behind
            }
            [b'\'', behind @ ..] => return Some(behind),
            [byte, behind @ ..] => {
                word.push(*byte);
                behind
            }
            [] => return None,
        };
    }
}

fn end_of_quotes(rest: &[u8]) -> Option<&[u8]> {
    rest.first()
        .is_none_or(|&byte| is_blank(byte))
        .then_some(rest)
}

const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | 0x09..=0x0d)
}

/// The value of a hexadecimal digit.
const fn hex_digit(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit - b'A' + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_split_as_by_redis() {
        let words = |text: &[u8]| -> Option<Vec<String>> {
            let words = split(text)?;
            Some(words.iter().map(|w| w.escape_ascii().to_string()).collect())
        };
        for (line, expected) in [
            (&b""[..], Some(vec![])),
            (b" \t\x0b ", Some(vec![])),
            (b"get a", Some(vec!["get", "a"])),
            (b"  get\t a\r ", Some(vec!["get", "a"])),
            (b"a\x0bb", Some(vec!["a\\x0bb"])),
            (b"set a \"\"", Some(vec!["set", "a", ""])),
            (b"'' \"\"", Some(vec!["", ""])),
            (b"\"a b\" 'c d'", Some(vec!["a b", "c d"])),
            (b"a\"b\" c", Some(vec!["ab", "c"])),
            (b"\"\\x41\\n\\q\\\"\"", Some(vec!["A\\nq\\\""])),
            (b"\"\\x4g\"", Some(vec!["x4g"])),
            (b"'\\x41\\''", Some(vec!["\\\\x41\\\'"])),
            (b"\"a\"b", None),
            (b"'a'b", None),
            (b"\"a", None),
            (b"'a", None),
            (b"\"a\\", None),
            (b"a\"", None),
        ] {
            let expected: Option<Vec<String>> =
                expected.map(|words| words.into_iter().map(String::from).collect());
            assert_eq!(words(line), expected, "{}", line.escape_ascii());
        }
    }
}

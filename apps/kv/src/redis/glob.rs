//! Patterns of keys, as `KEYS` and `SCAN` take them. Knows no keys.

/// Longest pattern, in bytes: longer ones could cost more than their worth, for every key.
pub(crate) const PATTERN_BYTES_MAX: usize = 1024;

/// A pattern.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Glob<'a>(&'a [u8]);

impl<'a> Glob<'a> {
    /// The pattern in `bytes`, or `None` if it is too long.
    pub(crate) fn new(bytes: &'a [u8]) -> Option<Self> {
        (bytes.len() <= PATTERN_BYTES_MAX).then_some(Self(bytes))
    }

    /// Whether `text` is what the pattern says.
    pub(crate) fn matches(self, text: &[u8]) -> bool {
        self.matches_counting(text, &mut 0)
    }

    /// The same; adds how many bytes of the pattern were compared, which is at most in the order of the
    /// product of both lengths.
    pub(crate) fn matches_counting(self, text: &[u8], steps: &mut usize) -> bool {
        let pattern = self.0;
        if pattern == b"*" {
            return true;
        }
        if text.is_empty() {
            // Like in Redis: even `**` matches only what has a byte.
            return pattern.is_empty();
        }
        let (mut place, mut read) = (0, 0);
        let mut last_star: Option<(usize, usize)> = None;
        while read < text.len() {
            *steps += 1;
            if pattern.get(place) == Some(&b'*') {
                place += 1;
                last_star = Some((place, read));
                continue;
            }
            if let Some(bytes) = one(&pattern[place..], text[read], steps) {
                place += bytes;
                read += 1;
            } else if let Some((behind_star, taken)) = last_star {
                // The star takes one byte more.
                place = behind_star;
                read = taken + 1;
                last_star = Some((behind_star, read));
            } else {
                return false;
            }
        }
        pattern[place..].iter().all(|&byte| byte == b'*')
    }
}

/// How many bytes at the start of `pattern` stand for this one byte, if they do.
fn one(pattern: &[u8], byte: u8, steps: &mut usize) -> Option<usize> {
    match *pattern {
        [] => None,
        [b'?', ..] => Some(1),
        [b'[', ..] => class(pattern, byte, steps),
        [b'\\', escaped, ..] => (escaped == byte).then_some(2),
        [plain, ..] => (plain == byte).then_some(1),
    }
}

/// `[abc]`, `[a-z]`, `[^a]`; one that is not closed ends with the pattern.
fn class(pattern: &[u8], byte: u8, steps: &mut usize) -> Option<usize> {
    let negated = pattern.get(1) == Some(&b'^');
    let mut place = 1 + usize::from(negated);
    let mut is_in = false;
    loop {
        match pattern[place..] {
            [] => break,
            [b'\\', escaped, ..] => {
                is_in |= escaped == byte;
                place += 2;
            }
            [b']', ..] => {
                place += 1;
                break;
            }
            [first, b'-', last, ..] => {
                // Bytes have signs in the C of Redis.
                let (first, last) = (first.cast_signed(), last.cast_signed());
                let range = first.min(last)..=first.max(last);
                is_in |= range.contains(&byte.cast_signed());
                place += 3;
            }
            [single, ..] => {
                is_in |= single == byte;
                place += 1;
            }
        }
    }
    *steps += place;
    (is_in != negated).then_some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_redis() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("**", "", false),
            ("", "", true),
            ("", "a", false),
            ("a*", "a", true),
            ("a**", "a", true),
            ("*a*b", "xaxab", true),
            ("*a*b", "xaxabc", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("[abc]", "b", true),
            ("[^abc]", "b", false),
            ("[a-c]x", "bx", true),
            ("[c-a]x", "bx", true),
            ("[a-c", "b", true),
            ("[\\]]", "]", true),
            ("[]a]", "a", false),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("a\\", "a\\", true),
            ("*[", "a", false),
            ("a*[b]*c", "axxbyyc", true),
        ] {
            let glob = Glob::new(pattern.as_bytes()).unwrap();
            assert_eq!(glob.matches(text.as_bytes()), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn many_stars_cost_little() {
        let pattern = b"*a".repeat(500);
        let glob = Glob::new(&pattern).unwrap();
        assert!(!glob.matches(&[b'a'; 250]));
        assert!(Glob::new(&[b'a'; PATTERN_BYTES_MAX + 1]).is_none());
    }
}

//! Keys and lists of keys, checked once where they enter. Says nothing about what they name.
use crate::KEY_BYTES_MAX;

/// A key: at most [`KEY_BYTES_MAX`] bytes. Of those that clients write as a word of text, at least one,
/// and none a space or an ASCII control character.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Key<'a>(&'a [u8]);

impl<'a> Key<'a> {
    /// The key in `bytes` that are a word of text, or `None` when they are none.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        let length_fits = (1..=KEY_BYTES_MAX).contains(&bytes.len());
        (length_fits && bytes.iter().all(|&byte| may_be_in_key(byte))).then_some(Self(bytes))
    }

    /// The key in any `bytes`: what the log and snapshots carry, and what clients write in an encoding
    /// of their own. `None` if there are too many; only here the empty key is one, too.
    #[must_use]
    pub const fn binary(bytes: &'a [u8]) -> Option<Self> {
        if bytes.len() <= KEY_BYTES_MAX {
            Some(Self(bytes))
        } else {
            None
        }
    }

    /// Whether it can be written as a word of text.
    #[must_use]
    pub fn is_text(self) -> bool {
        Self::new(self.0).is_some()
    }

    /// Its bytes.
    #[must_use]
    pub const fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// How many bytes it has, 0 to 250.
    pub(crate) fn length(self) -> u8 {
        u8::try_from(self.0.len()).unwrap_or(u8::MAX) // never: KEY_BYTES_MAX is 250
    }
}

const fn may_be_in_key(byte: u8) -> bool {
    byte > b' ' && byte != 0x7f
}

/// Keys as they stand in a request line, with spaces between them; possibly none.
#[derive(Clone, Copy, Debug)]
pub struct Keys<'a>(&'a [u8]);

impl<'a> Keys<'a> {
    /// The keys in `text`, or `None` when one of them is not a [`Key`].
    #[must_use]
    pub fn new(text: &'a [u8]) -> Option<Self> {
        let mut length = 0;
        for &byte in text {
            if byte == b' ' {
                length = 0;
            } else {
                length += 1;
                if length > KEY_BYTES_MAX || !may_be_in_key(byte) {
                    return None;
                }
            }
        }
        Some(Self(text))
    }

    /// The keys in a text that [`new`](Self::new) has seen to hold only such.
    pub(crate) const fn seen(text: &'a [u8]) -> Self {
        Self(text)
    }

    /// The keys, in order, repetitions included.
    pub fn iter(self) -> impl Iterator<Item = Key<'a>> {
        self.0
            .split(|&byte| byte == b' ')
            .filter(|key| !key.is_empty())
            .map(Key)
    }

    /// The keys as text.
    pub(crate) const fn text(self) -> &'a [u8] {
        self.0
    }
}

impl PartialEq for Keys<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Keys<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_one_to_250_bytes_and_no_control_characters() {
        assert!(Key::new(b"").is_none());
        assert!(Key::new(&[b'k'; KEY_BYTES_MAX]).is_some());
        assert!(Key::new(&[b'k'; KEY_BYTES_MAX + 1]).is_none());
        for byte in 0..=u8::MAX {
            let refused = byte <= b' ' || byte == 0x7f;
            assert_eq!(Key::new(&[b'a', byte]).is_none(), refused, "byte {byte}");
            assert_eq!(
                Keys::new(&[b'a', byte]).is_none(),
                refused && byte != b' ',
                "byte {byte}"
            );
        }
    }

    #[test]
    fn a_binary_key_is_any_bytes_but_not_too_many() {
        for byte in 0..=u8::MAX {
            let bytes = [byte];
            let key = Key::binary(&bytes).unwrap();
            assert_eq!(key.bytes(), bytes);
            assert_eq!(key.is_text(), Key::new(&bytes).is_some(), "byte {byte}");
        }
        assert!(Key::binary(b"").is_some_and(|key| !key.is_text() && key.length() == 0));
        assert!(Key::binary(&[0; KEY_BYTES_MAX]).is_some());
        assert!(Key::binary(&[0; KEY_BYTES_MAX + 1]).is_none());
    }

    #[test]
    fn keys_come_in_order_and_spaces_do_not_count() {
        let keys = Keys::new(b"  b a  b ").unwrap();
        let listed: Vec<_> = keys.iter().map(Key::bytes).collect();
        assert_eq!(listed, [b"b", b"a", b"b"]);
        assert_eq!(Keys::new(b"").unwrap().iter().count(), 0);
        let long = [b'k'; KEY_BYTES_MAX + 1];
        assert!(Keys::new(&long[1..]).is_some());
        assert!(Keys::new(&long).is_none());
    }
}

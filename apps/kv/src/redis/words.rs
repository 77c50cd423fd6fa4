//! One command's words, as the array of strings in which they travel, rest in the log and are forwarded.
use std::borrow::Cow;

use super::arithmetic::integer;
use super::{REQUEST_BYTES_MAX, WORDS_MAX, reply};
use crate::VALUE_BYTES_MAX;

/// The words of one command, at least one: `*n\r\n$l\r\n...`, whole and well formed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Words<'a> {
    text: Cow<'a, [u8]>,
    count: usize,
    /// Where the first word's length stands.
    start: usize,
}

impl<'a> Words<'a> {
    /// The words in `text`, or `None` if it is not one whole array of them, or longer than
    /// [`REQUEST_BYTES_MAX`].
    #[must_use]
    pub fn from_text(text: &'a [u8]) -> Option<Self> {
        let (words, rest) = Self::cut(text)?;
        rest.is_empty().then_some(words)
    }

    /// The words of the array at the start of `text`, and what stands behind it.
    pub(crate) fn cut(text: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let Length::Known { number, end: start } = length(text, b'*') else {
            return None;
        };
        let count = usize::try_from(number).ok()?;
        if !(1..=WORDS_MAX).contains(&count) {
            return None;
        }
        let mut place = start;
        for _ in 0..count {
            let Length::Known { number, end } = length(&text[place..], b'$') else {
                return None;
            };
            let bytes = usize::try_from(number).ok()?;
            if bytes > VALUE_BYTES_MAX {
                return None;
            }
            let word_end = place + end + bytes;
            if text.get(word_end..word_end + 2)? != b"\r\n" {
                return None;
            }
            place = word_end + 2;
        }
        if place > REQUEST_BYTES_MAX {
            return None;
        }
        let (text, rest) = text.split_at(place);
        Some((Self::checked(text, count, start), rest))
    }

    /// Words whose text was checked.
    pub(super) const fn checked(text: &'a [u8], count: usize, start: usize) -> Self {
        Self {
            text: Cow::Borrowed(text),
            count,
            start,
        }
    }

    /// How many words there are, and where the first one's length stands: what [`checked`](Self::checked)
    /// takes.
    pub(super) const fn shape(&self) -> (usize, usize) {
        (self.count, self.start)
    }

    /// The array of these words, at least one; for requests that came as a line.
    pub(super) fn from_words(words: &[Vec<u8>]) -> Self {
        let mut text = Vec::new();
        reply::array_header(&mut text, words.len());
        let start = text.len();
        for word in words {
            reply::bulk(&mut text, word);
        }
        Self {
            text: Cow::Owned(text),
            count: words.len(),
            start,
        }
    }

    /// The array's bytes.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// How many words there are.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "there is always a word")]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// The word at `place`, the command's name being at 0. Takes time linear in `place`.
    #[must_use]
    pub fn get(&self, place: usize) -> Option<&[u8]> {
        self.iter().nth(place)
    }

    /// The words in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        Iter(&self.text[self.start..])
    }
}

/// What stands behind the last word that was given.
struct Iter<'w>(&'w [u8]);

impl<'w> Iterator for Iter<'w> {
    type Item = &'w [u8];

    fn next(&mut self) -> Option<&'w [u8]> {
        let mut bytes: usize = 0;
        let mut place = 1;
        while let digit @ b'0'..=b'9' = *self.0.get(place)? {
            bytes = bytes * 10 + usize::from(digit - b'0');
            place += 1;
        }
        let start = place + 2;
        let word = self.0.get(start..start + bytes)?;
        self.0 = self.0.get(start + bytes + 2..)?;
        Some(word)
    }
}

/// The line at the start of an array or of a string.
pub(super) enum Length {
    /// It is not whole yet.
    Incomplete,
    /// Its end is farther away than any number is long.
    TooLong,
    /// It does not begin with its marker.
    NoMarker(u8),
    /// It has no number, or does not end as lines do.
    NoNumber,
    /// A number, possibly negative, and where the line ends.
    Known { number: i64, end: usize },
}

/// More bytes than a line with a number has.
const LINE_BYTES_MAX: usize = 32;

/// Reads a line with a number behind `marker`.
#[inline]
pub(super) fn length(text: &[u8], marker: u8) -> Length {
    usual_length(text, marker).unwrap_or_else(|| any_length(text, marker))
}

/// The same for what nearly all lines are: a number of a few digits, and all of it there.
#[inline]
fn usual_length(text: &[u8], marker: u8) -> Option<Length> {
    let (&first, digits) = text.split_first()?;
    if first != marker {
        return None;
    }
    let mut number = 0;
    for (place, &byte) in digits.iter().take(USUAL_DIGITS_MAX + 1).enumerate() {
        match byte {
            b'1'..=b'9' => number = number * 10 + i64::from(byte - b'0'),
            b'0' if place > 0 => number *= 10,
            b'\r' if place > 0 && digits.get(place + 1) == Some(&b'\n') => {
                let end = place + 3;
                return Some(Length::Known { number, end });
            }
            _ => return None,
        }
    }
    None
}

/// Digits of the longest value's length.
const USUAL_DIGITS_MAX: usize = 7;

fn any_length(text: &[u8], marker: u8) -> Length {
    match text.first() {
        None => return Length::Incomplete,
        Some(&first) if first != marker => return Length::NoMarker(first),
        Some(_) => {}
    }
    let line = &text[..text.len().min(LINE_BYTES_MAX)];
    let Some(end) = line.iter().position(|&byte| byte == b'\r') else {
        return if line.len() == LINE_BYTES_MAX {
            Length::TooLong
        } else {
            Length::Incomplete
        };
    };
    match (integer(&line[1..end]), text.get(end + 1)) {
        (Some(_), None) => Length::Incomplete,
        (Some(number), Some(b'\n')) => Length::Known {
            number,
            end: end + 2,
        },
        (None, _) | (Some(_), Some(_)) => Length::NoNumber,
    }
}

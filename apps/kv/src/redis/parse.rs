//! Cuts one request out of a connection's bytes: an array of strings, or a line. The same result however
//! the bytes were split on their way. Executes nothing.
use std::borrow::Cow;

use super::words::{Length, length};
use super::{INLINE_BYTES_MAX, REQUEST_BYTES_MAX, WORDS_MAX, Words, inline};
use crate::{VALUE_BYTES_MAX, WhyRefused};

/// What stands at the start of a connection's bytes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Parsed<'a> {
    /// Not a whole request yet.
    Incomplete {
        /// There is no request in it before the buffer holds this many bytes; more than it holds, at
        /// most [`REQUEST_BYTES_MAX`]. That it will never be one may show earlier.
        needed: usize,
    },
    /// Nothing to answer: an empty line, or an array of nothing.
    Nothing {
        /// How many bytes it took.
        consumed: usize,
    },
    /// A request.
    Request {
        /// How many bytes it took.
        consumed: usize,
        /// What it says.
        words: Words<'a>,
    },
    /// Something that is answered, and then the connection is closed: where the next request starts is
    /// not known.
    Refused {
        /// How many bytes it took.
        consumed: usize,
        /// The answer; empty if there is to be none.
        reply: Cow<'static, [u8]>,
        /// Why it is.
        why: WhyRefused,
    },
}

/// Bytes of the shortest word.
const WORD_BYTES_LEAST: usize = b"$0\r\n\r\n".len();

/// Names that a browser could be made to send here by somebody else's page. They are no commands, and
/// what follows them must not be run.
const OF_BROWSERS: [&[u8]; 2] = [b"post", b"host:"];

/// Looks for a request at the start of `buffer`. Takes time linear in the number of words, if it is an
/// array, whatever their lengths; and `needed` is such that a request of many pieces, looked at again
/// only as often as it asks for, costs little more than one look per word.
#[must_use]
pub fn parse(buffer: &[u8]) -> Parsed<'_> {
    let parsed = match buffer.first() {
        None => return Parsed::Incomplete { needed: 1 },
        Some(b'*') => array(buffer),
        Some(_) => line(buffer),
    };
    match &parsed {
        Parsed::Request { consumed, words } if is_of_browsers(words) => Parsed::Refused {
            consumed: *consumed,
            reply: Cow::Borrowed(b""),
            why: WhyRefused::NotServed,
        },
        Parsed::Request { .. }
        | Parsed::Incomplete { .. }
        | Parsed::Nothing { .. }
        | Parsed::Refused { .. } => parsed,
    }
}

fn is_of_browsers(words: &Words<'_>) -> bool {
    let first = words.get(0).unwrap_or_default();
    OF_BROWSERS
        .iter()
        .any(|name| first.eq_ignore_ascii_case(name))
}

fn array(buffer: &[u8]) -> Parsed<'_> {
    let (number, start) = match length(buffer, b'*') {
        Length::Known { number, end } => (number, end),
        Length::Incomplete => {
            let needed = buffer.len() + 1;
            return Parsed::Incomplete { needed };
        }
        Length::TooLong => return too_long(buffer, "too big mbulk count string"),
        Length::NoNumber | Length::NoMarker(_) => {
            return refused(buffer, "invalid multibulk length");
        }
    };
    if number <= 0 {
        return Parsed::Nothing { consumed: start };
    }
    match usize::try_from(number) {
        Ok(count) if count <= WORDS_MAX => words(buffer, count, start),
        _ => too_long(buffer, "invalid multibulk length"),
    }
}

/// The words of an array that begin at `start`.
fn words(buffer: &[u8], count: usize, start: usize) -> Parsed<'_> {
    let mut place = start;
    for missing in (0..count).rev() {
        let rest_bytes_least = missing * WORD_BYTES_LEAST;
        let (number, end) = match length(&buffer[place..], b'$') {
            Length::Known { number, end } => (number, end),
            Length::Incomplete => {
                let least = place + WORD_BYTES_LEAST + rest_bytes_least;
                return needed(buffer, least.max(buffer.len() + 1));
            }
            Length::TooLong => return too_long(buffer, "too big bulk count string"),
            Length::NoNumber => return refused(buffer, "invalid bulk length"),
            Length::NoMarker(found) => return refused_marker(buffer, found),
        };
        let bytes = match usize::try_from(number) {
            Ok(bytes) if bytes <= VALUE_BYTES_MAX => bytes,
            Ok(_) => return too_long(buffer, "invalid bulk length"),
            Err(_) => return refused(buffer, "invalid bulk length"),
        };
        let word_end = place + end + bytes;
        place = word_end + 2;
        if place + rest_bytes_least > REQUEST_BYTES_MAX || place > buffer.len() {
            return needed(buffer, place + rest_bytes_least);
        }
        if &buffer[word_end..place] != b"\r\n" {
            return refused(buffer, "expected the end of a string");
        }
    }
    Parsed::Request {
        consumed: place,
        words: Words::checked(&buffer[..place], count, start),
    }
}

fn needed(buffer: &[u8], bytes: usize) -> Parsed<'_> {
    if bytes > REQUEST_BYTES_MAX {
        return too_long(buffer, "too long request");
    }
    Parsed::Incomplete { needed: bytes }
}

fn line(buffer: &[u8]) -> Parsed<'_> {
    let near = &buffer[..buffer.len().min(INLINE_BYTES_MAX)];
    let Some(end) = memchr::memchr(b'\n', near) else {
        if near.len() == INLINE_BYTES_MAX {
            return too_long(buffer, "too big inline request");
        }
        let needed = buffer.len() + 1;
        return Parsed::Incomplete { needed };
    };
    let consumed = end + 1;
    match inline::split(&buffer[..end]) {
        None => refused(buffer, "unbalanced quotes in request"),
        Some(words) if words.is_empty() => Parsed::Nothing { consumed },
        Some(words) => Parsed::Request {
            consumed,
            words: Words::from_words(&words),
        },
    }
}

fn refused<'a>(buffer: &'a [u8], text: &str) -> Parsed<'a> {
    refused_as(buffer, WhyRefused::Malformed, text)
}

fn too_long<'a>(buffer: &'a [u8], text: &str) -> Parsed<'a> {
    refused_as(buffer, WhyRefused::TooLong, text)
}

fn refused_as<'a>(buffer: &'a [u8], why: WhyRefused, text: &str) -> Parsed<'a> {
    let reply = format!("-ERR Protocol error: {text}\r\n").into_bytes();
    Parsed::Refused {
        consumed: buffer.len(),
        reply: Cow::Owned(reply),
        why,
    }
}

/// Like in Redis, a line's end in an answer is a blank.
fn refused_marker(buffer: &[u8], found: u8) -> Parsed<'_> {
    let mut reply = b"-ERR Protocol error: expected '$', got '".to_vec();
    reply.push(match found {
        b'\r' | b'\n' => b' ',
        other => other,
    });
    reply.extend_from_slice(b"'\r\n");
    Parsed::Refused {
        consumed: buffer.len(),
        reply: Cow::Owned(reply),
        why: WhyRefused::Malformed,
    }
}

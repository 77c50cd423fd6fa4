//! What the key-value store answers, out of the bytes that it answers with (RESP3).
use std::str::from_utf8;

/// Deepest nesting read; the store's own answers have three.
const DEPTH_MAX: usize = 8;

/// An answer of the key-value store.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing is there.
    Null,
    /// A word, such as `OK`.
    Word(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A whole number.
    Integer(i64),
    /// Another number.
    Double(f64),
    /// Yes or no.
    Boolean(bool),
    /// Several values; also a set's.
    Array(Vec<Self>),
    /// Keys and values.
    Map(Vec<(Self, Self)>),
    /// The command was not carried out as it stands; only within a transaction's answers.
    Error(String),
}

impl Value {
    /// Reads an answer; `None`: it is none, or not a whole one.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let value = parse(&mut rest, DEPTH_MAX)?;
        rest.is_empty().then_some(value)
    }

    /// The bytes of a string, and of a word.
    #[must_use]
    pub fn into_bytes(self) -> Option<Vec<u8>> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Word(word) => Some(word.into_bytes()),
            Self::Null
            | Self::Integer(_)
            | Self::Double(_)
            | Self::Boolean(_)
            | Self::Array(_)
            | Self::Map(_)
            | Self::Error(_) => None,
        }
    }

    /// The number, if it is a whole one.
    #[must_use]
    pub const fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            Self::Null
            | Self::Word(_)
            | Self::Bytes(_)
            | Self::Double(_)
            | Self::Boolean(_)
            | Self::Array(_)
            | Self::Map(_)
            | Self::Error(_) => None,
        }
    }
}

/// The line at the start of `rest`, without its end.
fn line<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = rest.windows(2).position(|two| two == b"\r\n")?;
    let line = &rest[..end];
    *rest = &rest[end + 2..];
    Some(line)
}

fn number<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    from_utf8(text).ok()?.parse().ok()
}

fn bytes(rest: &mut &[u8], count: usize) -> Option<Vec<u8>> {
    let bytes = rest.get(..count)?.to_vec();
    let behind = rest.get(count..)?.strip_prefix(b"\r\n")?;
    *rest = behind;
    Some(bytes)
}

fn parse(rest: &mut &[u8], depth: usize) -> Option<Value> {
    let first = line(rest)?;
    let (&kind, text) = first.split_first()?;
    let said = || String::from_utf8_lossy(text).into_owned();
    Some(match kind {
        b'+' | b'(' => Value::Word(said()), // the second: a number that fits nothing else
        b'-' => Value::Error(said()),
        b':' => Value::Integer(number(text)?),
        b',' => Value::Double(match text {
            b"inf" => f64::INFINITY,
            b"-inf" => f64::NEG_INFINITY,
            text => number(text)?,
        }),
        b'#' => match text {
            b"t" => Value::Boolean(true),
            b"f" => Value::Boolean(false),
            _ => return None,
        },
        b'_' if text.is_empty() => Value::Null,
        b'$' | b'*' if text == b"-1" => Value::Null,
        b'$' => Value::Bytes(bytes(rest, number(text)?)?),
        b'=' => Value::Bytes(bytes(rest, number(text)?)?.get(4..)?.to_vec()), // behind `txt:`
        b'!' => {
            let text = bytes(rest, number(text)?)?;
            Value::Error(String::from_utf8_lossy(&text).into_owned())
        }
        b'*' | b'~' | b'>' => Value::Array(several(rest, number(text)?, depth)?),
        b'%' => {
            let count = number::<usize>(text)?.checked_mul(2)?;
            let mut all = several(rest, count, depth)?.into_iter();
            let pairs = std::iter::from_fn(|| Some((all.next()?, all.next()?)));
            Value::Map(pairs.collect())
        }
        _ => return None,
    })
}

/// So many values; no more memory is taken for them than there are bytes.
fn several(rest: &mut &[u8], count: usize, depth: usize) -> Option<Vec<Value>> {
    let depth = depth.checked_sub(1)?;
    if count > rest.len() {
        return None;
    }
    (0..count).map(|_| parse(rest, depth)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read() {
        let text = |text: &str| Value::Bytes(text.as_bytes().to_vec());
        let cases = [
            ("+OK\r\n", Value::Word("OK".into())),
            ("-ERR no\r\n", Value::Error("ERR no".into())),
            (":-7\r\n", Value::Integer(-7)),
            (",1.5\r\n", Value::Double(1.5)),
            (",-inf\r\n", Value::Double(f64::NEG_INFINITY)),
            ("#t\r\n", Value::Boolean(true)),
            ("_\r\n", Value::Null),
            ("$-1\r\n", Value::Null),
            ("*-1\r\n", Value::Null),
            ("$4\r\na\r\nb\r\n", text("a\r\nb")),
            ("=7\r\ntxt:abc\r\n", text("abc")),
            ("!3\r\nERR\r\n", Value::Error("ERR".into())),
            (
                "*2\r\n:1\r\n*0\r\n",
                Value::Array(vec![Value::Integer(1), Value::Array(vec![])]),
            ),
            ("~1\r\n$0\r\n\r\n", Value::Array(vec![text("")])),
            (
                "%1\r\n+a\r\n:1\r\n",
                Value::Map(vec![(Value::Word("a".into()), Value::Integer(1))]),
            ),
        ];
        for (bytes, value) in cases {
            assert_eq!(Value::parse(bytes.as_bytes()), Some(value), "{bytes:?}");
            for end in 0..bytes.len() {
                assert_eq!(Value::parse(&bytes.as_bytes()[..end]), None, "{bytes:?}");
            }
            let more = [bytes.as_bytes(), b"+"].concat();
            assert_eq!(Value::parse(&more), None);
        }
    }

    #[test]
    fn what_makes_no_sense_takes_neither_memory_nor_depth() {
        let deep = b"*1\r\n".repeat(1000);
        for bytes in [
            &deep[..],
            b"*999999999\r\n",
            b"%9223372036854775807\r\n",
            b"%18446744073709551615\r\n",
            b"$99999999999999\r\nabc",
            b"$-2\r\n",
            b"=2\r\nab\r\n",
            b"#x\r\n",
            b":\r\n",
            b"?\r\n",
        ] {
            assert_eq!(Value::parse(bytes), None);
        }
    }
}

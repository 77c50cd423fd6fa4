//! What processes and their clients say to each other over TCP.
//!
//! ```text
//!  | "QWEV" | version | kind | 0 (2) | bytes (4) | so many bytes |
//! ```
//! Little-endian: C writes it, too (`quorumwire_evpaxos_submit_head`). What makes no sense ends a connection.
use quorumwire_paxos_process::VALUE_BYTES_MAX;
use std::io::{self, Read, Write};

const MAGIC: [u8; 4] = *b"QWEV";
const VERSION: u8 = 1;
/// Bytes in front of each.
pub const HEAD_BYTES: usize = 12;
/// Longest frame that is taken from whoever connects: a value and its numbers.
pub const TAKEN_BYTES_MAX: usize = VALUE_BYTES_MAX + 16;
/// Longest one that a process takes from another that it has asked.
pub const ANSWER_BYTES_MAX: usize = 64 << 20;

/// What a frame is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub enum Kind {
    /// A value to be decided. No answer.
    Submit = 1,
    /// Who are you? The asker's tag.
    Who = 2,
    /// The answer: [`crate::evpaxos::founding::Standing`].
    IAm = 3,
    /// From which number on values are wanted, 0: from now on. Values are the answer.
    Subscribe = 4,
    /// A value, with its number.
    Value = 5,
    /// Values up to this number are gone.
    Trimmed = 6,
    /// Nothing to say, but alive.
    Idle = 7,
    /// Values up to this number are not needed any more. No answer.
    Trim = 8,
    /// A learner's state and all values are wanted.
    Join = 9,
    /// The answer: a checkpoint, and the number before the first value.
    Checkpoint = 10,
    /// Then a value with its instance, for each.
    Kept = 11,
    /// Then this.
    End = 12,
    /// Or: not now.
    NotReady = 13,
}

impl Kind {
    const ALL: [Self; 13] = [
        Self::Submit,
        Self::Who,
        Self::IAm,
        Self::Subscribe,
        Self::Value,
        Self::Trimmed,
        Self::Idle,
        Self::Trim,
        Self::Join,
        Self::Checkpoint,
        Self::Kept,
        Self::End,
        Self::NotReady,
    ];
}

fn nonsense(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

/// What stands in front of so many bytes.
pub fn head(kind: Kind, bytes: usize) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    head[..4].copy_from_slice(&MAGIC);
    head[4] = VERSION;
    head[5] = kind as u8;
    let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    head[8..].copy_from_slice(&bytes.to_le_bytes());
    head
}

/// Writes a frame of these parts.
pub fn write(to: &mut impl Write, kind: Kind, parts: &[&[u8]]) -> io::Result<()> {
    let bytes = parts.iter().map(|it| it.len()).sum();
    if bytes > ANSWER_BYTES_MAX {
        return Err(nonsense("a frame is too long"));
    }
    let mut frame = Vec::with_capacity(HEAD_BYTES + bytes);
    frame.extend_from_slice(&head(kind, bytes));
    for part in parts {
        frame.extend_from_slice(part);
    }
    to.write_all(&frame)
}

/// Reads the next frame, of at most so many bytes.
pub fn read(from: &mut impl Read, bytes_max: usize) -> io::Result<(Kind, Vec<u8>)> {
    let mut head = [0; HEAD_BYTES];
    from.read_exact(&mut head)?;
    if head[..4] != MAGIC || head[4] != VERSION || head[6..8] != [0, 0] {
        return Err(nonsense("no frame"));
    }
    let kind = Kind::ALL.into_iter().find(|it| *it as u8 == head[5]);
    let kind = kind.ok_or_else(|| nonsense("no such kind"))?;
    let bytes = u32::from_le_bytes([head[8], head[9], head[10], head[11]]);
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    if bytes > bytes_max {
        return Err(nonsense("a frame is too long"));
    }
    // As they come: somebody who announces much and sends nothing takes no memory.
    let mut body = Vec::new();
    let read = from.take(bytes as u64).read_to_end(&mut body)?;
    if read < bytes {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok((kind, body))
}

/// Takes numbers and bytes out of a frame, in their order.
pub struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub fn of(body: &'a [u8]) -> Self {
        Self(body)
    }

    pub fn bytes<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let (first, rest) = self
            .0
            .split_first_chunk()
            .ok_or_else(|| nonsense("a frame is too short"))?;
        self.0 = rest;
        Ok(*first)
    }

    pub fn u64(&mut self) -> io::Result<u64> {
        self.bytes().map(u64::from_le_bytes)
    }

    pub fn rest(self) -> &'a [u8] {
        self.0
    }

    /// That was all.
    pub fn end(self) -> io::Result<()> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(nonsense("a frame is too long"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_comes_back_and_what_is_none_is_refused() {
        let mut bytes = Vec::new();
        write(&mut bytes, Kind::Value, &[&7_u64.to_le_bytes(), b"value"]).unwrap();
        let (kind, body) = read(&mut &bytes[..], TAKEN_BYTES_MAX).unwrap();
        let mut fields = Fields::of(&body);
        assert_eq!((kind, fields.u64().unwrap()), (Kind::Value, 7));
        assert_eq!(fields.rest(), b"value");
        for cut in 0..bytes.len() {
            assert!(read(&mut &bytes[..cut], TAKEN_BYTES_MAX).is_err(), "{cut}");
        }
        assert!(read(&mut &bytes[..], 12).is_err(), "longer than allowed");
        for place in [0, 3, 4, 5, 6, 7] {
            let mut wrong = bytes.clone();
            wrong[place] ^= 0x80;
            assert!(
                read(&mut &wrong[..], TAKEN_BYTES_MAX).is_err(),
                "byte {place}"
            );
        }
        assert!(Fields::of(b"short").u64().is_err());
        assert!(Fields::of(b"more").end().is_err());
    }
}

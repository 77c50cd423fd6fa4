//! Files of a head and a body in checked blocks, as snapshots and backups are. Knows neither what a head
//! says nor a disk.
//!
//! ```text
//!  0       4         8            12       16
//!  | magic | version | head bytes | crc32c | head (protobuf) | block | block ... | end |
//!
//!  block: | body bytes, 1 to 262144 | crc32c | body ... |
//!  end:   | 0 | body bytes in all (8) | crc32c |
//! ```
//! Big-endian. Each checksum goes on from the one before it, so that blocks can be neither swapped,
//! left out nor repeated; nothing may follow the end.
use crate::SnapshotError;
use crate::limits::{SNAPSHOT_BLOCK_BYTES, SNAPSHOT_HEAD_BYTES_MAX};
use std::io::{self, Read, Write};

/// Bytes before the head.
const PREFIX_BYTES: usize = 16;
/// Those of them that say what file it is.
const MAGIC_BYTES: usize = 4;

/// Writes such a file. Without [`finish`](Self::finish) it has no end and no reader takes it.
#[derive(Debug)]
pub(crate) struct BlockWriter<W> {
    inner: W,
    block: Vec<u8>,
    body_bytes: u64,
    checksum: u32,
}

impl<W: Write> BlockWriter<W> {
    /// Writes the head.
    pub(crate) fn begin(mut inner: W, magic: u32, version: u32, head: &[u8]) -> io::Result<Self> {
        assert!(
            head.len() <= SNAPSHOT_HEAD_BYTES_MAX,
            "a membership and a name are limited"
        );
        let mut prefix = Vec::with_capacity(PREFIX_BYTES);
        prefix.extend_from_slice(&magic.to_be_bytes());
        prefix.extend_from_slice(&version.to_be_bytes());
        prefix.extend_from_slice(&length_word(head.len()));
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&prefix), head);
        prefix.extend_from_slice(&checksum.to_be_bytes());
        inner.write_all(&prefix)?;
        inner.write_all(head)?;
        Ok(Self {
            inner,
            block: Vec::with_capacity(SNAPSHOT_BLOCK_BYTES),
            body_bytes: 0,
            checksum,
        })
    }

    /// Writes the end and gives back what was written to, not flushed.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.write_block()?;
        let mut end = [0; 12];
        end[4..].copy_from_slice(&self.body_bytes.to_be_bytes());
        let checksum = crc32c::crc32c_append(self.checksum, &end);
        self.inner.write_all(&end)?;
        self.inner.write_all(&checksum.to_be_bytes())?;
        Ok(self.inner)
    }

    fn write_block(&mut self) -> io::Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let length = length_word(self.block.len());
        self.checksum = crc32c::crc32c_append(self.checksum, &length);
        self.checksum = crc32c::crc32c_append(self.checksum, &self.block);
        self.inner.write_all(&length)?;
        self.inner.write_all(&self.checksum.to_be_bytes())?;
        self.inner.write_all(&self.block)?;
        self.body_bytes += self.block.len() as u64;
        self.block.clear();
        Ok(())
    }
}

impl<W: Write> Write for BlockWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.block.len() == SNAPSHOT_BLOCK_BYTES {
            self.write_block()?;
        }
        let taken = bytes.len().min(SNAPSHOT_BLOCK_BYTES - self.block.len());
        self.block.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    /// Does nothing: blocks have a fixed size, so that equal states give equal files.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads such a file: what is read from it is the body. It gives out no byte whose block it has not
/// checked, holds one block in memory, and says the body is at its end (a read of 0 bytes) only after
/// the end was there, was right, and nothing followed it.
#[derive(Debug)]
pub(crate) struct BlockReader<R> {
    inner: R,
    block: Vec<u8>,
    /// First byte of `block` not given out yet.
    given: usize,
    body_bytes: u64,
    checksum: u32,
    ended: bool,
    broken: bool,
}

impl<R: Read> BlockReader<R> {
    /// Reads and checks the head of a file of this magic and version; the head.
    pub(crate) fn begin(
        mut inner: R,
        magic: u32,
        version: u32,
    ) -> Result<(Self, Vec<u8>), SnapshotError> {
        let mut prefix = [0; PREFIX_BYTES];
        // A file of a few bytes is another's, too, unless they are those that ours begin with.
        let there = read_what_is_there(&mut inner, &mut prefix[..MAGIC_BYTES])?;
        if prefix[..there] != magic.to_be_bytes()[..there] {
            let [a, b, c, d, ..] = prefix;
            let magic = u32::from_be_bytes([a, b, c, d]);
            return Err(SnapshotError::Magic { magic });
        }
        inner.read_exact(&mut prefix[there..])?;
        let word = |at: usize| {
            u32::from_be_bytes([prefix[at], prefix[at + 1], prefix[at + 2], prefix[at + 3]])
        };
        let head_bytes = word(8) as usize;
        if head_bytes > SNAPSHOT_HEAD_BYTES_MAX {
            return Err(SnapshotError::TooLong {
                what: "head",
                bytes: head_bytes,
                bytes_max: SNAPSHOT_HEAD_BYTES_MAX,
            });
        }
        let mut head = vec![0; head_bytes];
        inner.read_exact(&mut head)?;
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&prefix[..12]), &head);
        if checksum != word(12) {
            return Err(SnapshotError::Checksum("head"));
        }
        if word(4) != version {
            return Err(SnapshotError::Version { version: word(4) });
        }
        let reader = Self {
            inner,
            block: Vec::new(),
            given: 0,
            body_bytes: 0,
            checksum,
            ended: false,
            broken: false,
        };
        Ok((reader, head))
    }

    /// Reads to the end, checking everything; gives back the length of the body.
    pub(crate) fn verify(mut self) -> Result<u64, SnapshotError> {
        while !self.ended {
            self.read_block()?;
        }
        Ok(self.body_bytes)
    }

    fn read_block(&mut self) -> Result<(), SnapshotError> {
        self.block.clear();
        self.given = 0;
        let mut length = [0; 4];
        self.inner.read_exact(&mut length)?;
        let bytes = u32::from_be_bytes(length) as usize;
        if bytes == 0 {
            return self.read_end();
        }
        if bytes > SNAPSHOT_BLOCK_BYTES {
            return Err(SnapshotError::TooLong {
                what: "block",
                bytes,
                bytes_max: SNAPSHOT_BLOCK_BYTES,
            });
        }
        let mut said = [0; 4];
        self.inner.read_exact(&mut said)?;
        let mut block = std::mem::take(&mut self.block);
        block.resize(bytes, 0);
        self.inner.read_exact(&mut block)?;
        self.checksum = crc32c::crc32c_append(self.checksum, &length);
        self.checksum = crc32c::crc32c_append(self.checksum, &block);
        if self.checksum != u32::from_be_bytes(said) {
            return Err(SnapshotError::Checksum("body"));
        }
        self.body_bytes += bytes as u64;
        self.block = block;
        Ok(())
    }

    /// The end's leading 0 has been read.
    fn read_end(&mut self) -> Result<(), SnapshotError> {
        let mut end = [0; 12];
        self.inner.read_exact(&mut end[4..])?;
        let mut said = [0; 4];
        self.inner.read_exact(&mut said)?;
        if crc32c::crc32c_append(self.checksum, &end) != u32::from_be_bytes(said) {
            return Err(SnapshotError::Checksum("end"));
        }
        let [_, _, _, _, total @ ..] = end;
        let said = u64::from_be_bytes(total);
        if said != self.body_bytes {
            return Err(SnapshotError::Length {
                found: self.body_bytes,
                said,
            });
        }
        match self.inner.read_exact(&mut [0]) {
            Ok(()) => Err(SnapshotError::Trailing),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.ended = true;
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Fills `buffer` as far as there is something; how far.
fn read_what_is_there(inner: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match inner.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(bytes) => filled += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

impl<R: Read> Read for BlockReader<R> {
    /// Errors of the format come as `InvalidData` with a [`SnapshotError`] inside. After any error
    /// every later call fails too.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        if self.broken {
            return Err(SnapshotError::Checksum("body").into());
        }
        if self.given == self.block.len() && !self.ended {
            self.broken = true;
            self.read_block()?;
            self.broken = false;
        }
        let given = buffer.len().min(self.block.len() - self.given);
        buffer[..given].copy_from_slice(&self.block[self.given..self.given + given]);
        self.given += given;
        Ok(given)
    }
}

fn length_word(bytes: usize) -> [u8; 4] {
    u32::try_from(bytes)
        .expect("a block or head is limited")
        .to_be_bytes()
}

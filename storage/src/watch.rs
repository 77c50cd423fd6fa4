//! How far a long read is, for people who wait for it. Decides nothing.
use std::io::{self, Read};

/// What is being read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Part {
    /// The log, from its first to its last file. The last one is longer than what stands in it.
    Log,
    /// A snapshot, whose bytes are checked.
    Snapshot,
}

/// Hears how many bytes were read, and of how many, every now and then.
pub(crate) type Watch<'w> = dyn FnMut(u64, u64) + 'w;

/// A stream that tells how far it is.
pub(crate) struct WatchedReader<'w, 'f, R> {
    inner: R,
    read_bytes: u64,
    total_bytes: u64,
    watch: &'w mut Watch<'f>,
}

impl<'w, 'f, R> WatchedReader<'w, 'f, R> {
    pub(crate) fn new(inner: R, total_bytes: u64, watch: &'w mut Watch<'f>) -> Self {
        Self {
            inner,
            read_bytes: 0,
            total_bytes,
            watch,
        }
    }
}

impl<R: Read> Read for WatchedReader<'_, '_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.read_bytes += read as u64;
        (self.watch)(self.read_bytes, self.total_bytes);
        Ok(read)
    }
}

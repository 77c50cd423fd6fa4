//! Bytes on their way to a connection: small pieces are gathered in one buffer, large ones are sent
//! from where they lie, in order.
use bytes::{Buf, Bytes, BytesMut};
use std::collections::VecDeque;
use std::io::{self, IoSlice, Write};

/// Pieces smaller than this are copied together: cheaper than one more slice in the system call.
const COPY_BYTES_MAX: usize = 2048;
/// Slices in one system call.
const SLICES_MAX: usize = 64;
/// The gathering buffer is cut when it has grown to this.
const GATHER_BYTES: usize = 64 << 10;

/// A queue of bytes. Its owner bounds it by [`len`](Self::len).
#[derive(Default)]
pub struct Outbox {
    pieces: VecDeque<Bytes>,
    gathered: BytesMut,
    bytes: usize,
}

impl Outbox {
    /// Bytes waiting.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Appends what `write` adds to the gathering buffer.
    pub fn gather(&mut self, write: impl FnOnce(&mut BytesMut)) {
        let before = self.gathered.len();
        write(&mut self.gathered);
        self.bytes += self.gathered.len() - before;
        if self.gathered.len() >= GATHER_BYTES {
            self.cut();
        }
    }

    /// Appends a piece, without copying it if it is large.
    pub fn push(&mut self, piece: &Bytes) {
        if piece.len() < COPY_BYTES_MAX {
            self.gather(|buffer| buffer.extend_from_slice(piece));
            return;
        }
        self.cut();
        self.bytes += piece.len();
        self.pieces.push_back(piece.clone());
    }

    /// Writes as much as the connection takes. `WouldBlock` is not an error: what is left waits.
    pub fn write_to(&mut self, stream: &mut impl Write) -> io::Result<()> {
        self.cut();
        while !self.pieces.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let mut slice_count = 0;
            for (slice, piece) in slices.iter_mut().zip(&self.pieces) {
                *slice = IoSlice::new(piece);
                slice_count += 1;
            }
            match stream.write_vectored(&slices[..slice_count]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => self.consume(written),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn cut(&mut self) {
        if !self.gathered.is_empty() {
            self.pieces.push_back(self.gathered.split().freeze());
        }
    }

    fn consume(&mut self, mut written: usize) {
        self.bytes -= written;
        while written > 0 {
            let piece = self.pieces.front_mut().expect("written bytes were queued");
            let taken = written.min(piece.len());
            piece.advance(taken);
            written -= taken;
            if piece.is_empty() {
                self.pieces.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes at most `room` bytes in all, then would block.
    struct Narrow {
        taken: Vec<u8>,
        room: usize,
    }

    impl Write for Narrow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = bytes.len().min(self.room);
            if taken == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            self.taken.extend_from_slice(&bytes[..taken]);
            self.room -= taken;
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn order_is_kept_over_partial_writes() {
        let mut outbox = Outbox::default();
        let mut expected = Vec::new();
        for number in 0..50_u8 {
            let piece = vec![number; usize::from(number) * 97];
            expected.extend_from_slice(&piece);
            outbox.push(&Bytes::from(piece));
            outbox.gather(|buffer| buffer.extend_from_slice(&[number; 3]));
            expected.extend_from_slice(&[number; 3]);
        }
        assert_eq!(outbox.len(), expected.len());
        let mut stream = Narrow {
            taken: Vec::new(),
            room: 0,
        };
        while outbox.len() > 0 {
            stream.room = 1013;
            outbox.write_to(&mut stream).unwrap();
        }
        assert_eq!(stream.taken, expected);
    }
}

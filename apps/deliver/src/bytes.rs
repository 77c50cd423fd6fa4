//! Numbers in bytes, big-endian, read off the front.
use thiserror::Error;

/// What is no command, query or answer of this version.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("bytes that make no sense as what they claim to be")]
pub struct Malformed;

/// Bytes that are not read yet.
pub struct Left<'a>(pub &'a [u8]);

impl<'a> Left<'a> {
    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (array, rest) = self.0.split_first_chunk().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*array)
    }

    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(u8::from_be_bytes)
    }

    pub fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_be_bytes)
    }

    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_be_bytes)
    }

    /// All that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    /// Nothing is left.
    pub fn end(&self) -> Result<(), Malformed> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(Malformed)
        }
    }
}

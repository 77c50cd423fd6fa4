//! Memcached's protocol over UDP: one `get` or `set` of one key in a datagram, and its answer.
use crate::commands::KEYS;
use crate::wire::{ReceiveBuffers, Wire};
use anyhow::{Result, bail};
use std::time::Duration;

/// Number of the request, number and count of its datagrams, two bytes that are not used.
const HEAD_BYTES: usize = 8;
/// The only datagram of its request.
const ALONE: [u8; 6] = [0, 0, 0, 1, 0, 0];
/// So often a value is stored before nobody is believed to be there.
const STORE_TRIES_MAX: u32 = 100;

/// What is asked.
#[derive(Clone, Copy, clap::ValueEnum)]
pub enum RequestKind {
    /// Read values that were stored before
    Get,
    /// Write values
    Set,
}

/// Requests, made once; their numbers are written anew for each.
pub struct Requests {
    made: Vec<Vec<u8>>,
    done: &'static [u8],
}

impl Requests {
    pub fn new(kind: RequestKind, value_bytes: usize) -> Self {
        let head = [&[0, 0], &ALONE[..]].concat();
        let made = |number: u64| {
            let text = match kind {
                RequestKind::Get => format!("get key-{number:012}\r\n"),
                RequestKind::Set => format!(
                    "set key-{number:012} 0 0 {value_bytes}\r\n{}\r\n",
                    "v".repeat(value_bytes)
                ),
            };
            [&head, text.as_bytes()].concat()
        };
        Self {
            made: (0..KEYS).map(made).collect(),
            done: match kind {
                RequestKind::Get => b"VALUE ",
                RequestKind::Set => b"STORED\r\n",
            },
        }
    }

    /// A lane's request. Of its sequence its number has the last byte.
    pub fn of(&mut self, lane: u8, sequence: u64) -> &[u8] {
        let place = usize::try_from(sequence % KEYS).unwrap_or(0);
        let request = &mut self.made[place];
        request[..2].copy_from_slice(&[lane, last_byte(sequence)]);
        request
    }

    /// Lane and last byte of the sequence of an answer; whether it was done.
    pub fn answer(&self, datagram: &[u8]) -> Option<(u8, u8, bool)> {
        let (head, text) = datagram.split_at_checked(HEAD_BYTES)?;
        let (number, rest) = head.split_at(2);
        let whole = rest == ALONE;
        whole.then_some((number[0], number[1], text.starts_with(self.done)))
    }

    /// Stores all values that will be asked for.
    pub fn store_all(
        wire: &mut Wire,
        received: &mut ReceiveBuffers,
        value_bytes: usize,
        wait: Duration,
    ) -> Result<()> {
        let mut requests = Self::new(RequestKind::Set, value_bytes);
        for sequence in 0..KEYS {
            let mut tries = 0..STORE_TRIES_MAX;
            loop {
                if tries.next().is_none() {
                    bail!("no value could be stored in {STORE_TRIES_MAX} tries");
                }
                wire.send(requests.of(0, sequence))?;
                wire.flush()?;
                wire.receive(wait, received)?;
                let stored = Some((0, last_byte(sequence), true));
                if received.datagrams().any(|it| requests.answer(it) == stored) {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// What a request's number has of its sequence.
pub fn last_byte(sequence: u64) -> u8 {
    sequence.to_le_bytes()[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_what_memcached_reads() {
        let mut gets = Requests::new(RequestKind::Get, 2);
        assert_eq!(
            gets.of(7, 0x1_23),
            b"\x07\x23\0\0\0\x01\0\0get key-000000000035\r\n"
        );
        let mut sets = Requests::new(RequestKind::Set, 2);
        let set = b"\x01\x02\0\0\0\x01\0\0set key-000000000002 0 0 2\r\nvv\r\n";
        assert_eq!(sets.of(1, 2), set);
    }

    #[test]
    fn answers_are_told_from_misses_errors_and_parts() {
        let gets = Requests::new(RequestKind::Get, 2);
        let answer = |head: &[u8], text: &[u8]| gets.answer(&[head, text].concat());
        let head = b"\x07\x23\0\0\0\x01\0\0";
        assert_eq!(answer(head, b"VALUE key 0 2\r\n"), Some((7, 0x23, true)));
        assert_eq!(answer(head, b"END\r\n"), Some((7, 0x23, false)));
        assert_eq!(answer(b"\x07\x23\0\0\0\x02\0\0", b"VALUE "), None);
        assert_eq!(answer(b"\x07\x23", b""), None);
        let sets = Requests::new(RequestKind::Set, 2);
        assert_eq!(
            sets.answer(b"\0\0\0\0\0\x01\0\0STORED\r\n"),
            Some((0, 0, true))
        );
        assert_eq!(
            sets.answer(b"\0\0\0\0\0\x01\0\0SERVER_ERROR"),
            Some((0, 0, false))
        );
    }
}

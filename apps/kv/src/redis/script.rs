//! A write, or a whole transaction, as the log carries it. Knows the layout, runs nothing.
//!
//! ```text
//! script  op resp:1 is_transaction:1 watched_bytes:4 watched* command*
//! watched    key_length:1 key version:8
//! command    an array of words
//! ```
//!
//! All numbers are big-endian; `resp` is a digit.
use bytes::BufMut;

use super::{REQUEST_BYTES_MAX, Resp, TRANSACTION_COMMANDS_MAX, Words};
use crate::command::DecodeError;
use crate::{KEY_BYTES_MAX, Key};

/// What stands before the watched keys, with the operation's byte.
pub(super) const HEADER_BYTES: usize = 1 + 1 + 1 + 4;

/// A transaction or a single command.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Script<'a> {
    /// How it is answered.
    pub resp: Resp,
    /// Whether it is a transaction: it is answered with an array, one answer for each command.
    pub is_transaction: bool,
    /// What a transaction depends on, one [`watch`](Self::watch) after the other; nothing for a single
    /// command.
    pub watched: &'a [u8],
    /// The commands' texts one after the other: of a single command its own, of a transaction at most
    /// [`TRANSACTION_COMMANDS_MAX`]. With `watched` at most [`REQUEST_BYTES_MAX`].
    pub commands: &'a [u8],
}

impl<'a> Script<'a> {
    /// A single command.
    #[must_use]
    pub fn single(resp: Resp, words: &'a Words<'_>) -> Self {
        Self {
            resp,
            is_transaction: false,
            watched: b"",
            commands: words.text(),
        }
    }

    /// Appends a watched key to `list`: its transaction is carried out only if the key's version still
    /// is this one. See [`Store::version`](crate::Store::version).
    pub fn watch(list: &mut Vec<u8>, key: Key<'_>, version: u64) {
        list.push(key.length());
        list.extend_from_slice(key.bytes());
        list.extend_from_slice(&version.to_be_bytes());
    }

    /// The commands in order, as far as they are well formed.
    pub fn each_command(&self) -> impl Iterator<Item = Words<'a>> + use<'a> {
        let mut rest = self.commands;
        std::iter::from_fn(move || {
            let (words, behind) = Words::cut(rest)?;
            rest = behind;
            Some(words)
        })
    }

    /// The watched keys and the versions they had, as far as they are well formed.
    pub(crate) fn each_watched(&self) -> impl Iterator<Item = (Key<'a>, u64)> + use<'a> {
        let mut rest = self.watched;
        std::iter::from_fn(move || {
            let (&key_bytes, behind) = rest.split_first()?;
            let (key, behind) = behind.split_at_checked(usize::from(key_bytes))?;
            let (version, behind) = behind.split_first_chunk()?;
            rest = behind;
            Some((Key::binary(key)?, u64::from_be_bytes(*version)))
        })
    }

    pub(crate) fn encode(&self, out: &mut impl BufMut) {
        out.put_u8(self.resp.byte());
        out.put_u8(u8::from(self.is_transaction));
        out.put_u32(u32::try_from(self.watched.len()).unwrap_or(u32::MAX)); // never: it fits a command
        out.put_slice(self.watched);
        out.put_slice(self.commands);
    }

    pub(crate) const fn encoded_bytes(&self) -> usize {
        HEADER_BYTES - 1 + self.watched.len() + self.commands.len()
    }

    /// Reads what [`encode`](Self::encode) wrote; checks all of it.
    pub(crate) fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let (&[resp, is_transaction, a, b, c, d], texts) =
            bytes.split_first_chunk().ok_or(DecodeError::Truncated)?;
        if texts.len() > REQUEST_BYTES_MAX {
            return Err(DecodeError::Length);
        }
        let watched_bytes = u32::from_be_bytes([a, b, c, d]) as usize;
        let (watched, commands) = texts
            .split_at_checked(watched_bytes)
            .ok_or(DecodeError::Truncated)?;
        let script = Self {
            resp: Resp::from_byte(resp).ok_or(DecodeError::Script)?,
            is_transaction: match is_transaction {
                0 => false,
                1 => true,
                _ => return Err(DecodeError::Script),
            },
            watched,
            commands,
        };
        script.check()?;
        Ok(script)
    }

    fn check(&self) -> Result<(), DecodeError> {
        let watched_bytes: usize = self.each_watched().map(|(key, _)| watch_bytes(key)).sum();
        let mut command_count = 0;
        let mut commands_bytes = 0;
        for command in self.each_command() {
            command_count += 1;
            commands_bytes += command.text().len();
        }
        if watched_bytes != self.watched.len() || commands_bytes != self.commands.len() {
            return Err(DecodeError::Script);
        }
        if self.is_transaction {
            if command_count > TRANSACTION_COMMANDS_MAX {
                return Err(DecodeError::Length);
            }
        } else if command_count != 1 || !self.watched.is_empty() {
            return Err(DecodeError::Script);
        }
        Ok(())
    }
}

const fn watch_bytes(key: Key<'_>) -> usize {
    debug_assert!(key.bytes().len() <= KEY_BYTES_MAX);
    1 + key.bytes().len() + 8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Command;

    const GET: &[u8] = b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n";
    const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";

    fn encoded(script: Script<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        let command = Command::Redis(script);
        command.encode(&mut bytes);
        assert_eq!(bytes.len(), command.encoded_bytes());
        assert_eq!(Command::decode(&bytes), Ok(command));
        bytes
    }

    /// Typed by hand from the layout at the top of this file.
    #[test]
    fn scripts_are_the_bytes_typed_by_hand() {
        let words = Words::from_text(PING).unwrap();
        let single = encoded(Script::single(Resp::V2, &words));
        assert_eq!(single, b"\x1f2\0\0\0\0\0*1\r\n$4\r\nPING\r\n");
        let mut watched = Vec::new();
        Script::watch(&mut watched, Key::binary(b"ab").unwrap(), 0x0102);
        Script::watch(&mut watched, Key::binary(b"").unwrap(), u64::MAX);
        let script = Script {
            resp: Resp::V3,
            is_transaction: true,
            watched: &watched,
            commands: &[GET, PING].concat(),
        };
        let bytes = encoded(script);
        assert_eq!(
            bytes,
            b"\x1f3\x01\0\0\0\x14\
              \x02ab\0\0\0\0\0\0\x01\x02\
              \0\xff\xff\xff\xff\xff\xff\xff\xff\
              *2\r\n$3\r\nGET\r\n$1\r\na\r\n*1\r\n$4\r\nPING\r\n"
        );
        for end in 0..bytes.len() {
            let cut = Command::decode(&bytes[..end]);
            // Without commands a transaction is empty; what is left of one must be whole.
            let is_whole = [27, 27 + GET.len()].contains(&end);
            assert_eq!(cut.is_ok(), is_whole, "cut at {end}");
        }
    }

    #[test]
    fn what_is_no_script_is_refused() {
        let many = PING.repeat(TRANSACTION_COMMANDS_MAX + 1);
        for (bytes, error) in [
            (&b"2\0\0\0\0"[..], DecodeError::Truncated),
            (b"2\0\0\0\0\x01", DecodeError::Truncated),
            (b"2\0\0\0\0\0", DecodeError::Script),
            (b"1\x01\0\0\0\0", DecodeError::Script),
            (b"2\x02\0\0\0\0", DecodeError::Script),
            (b"2\x01\0\0\0\0PING\r\n", DecodeError::Script),
            (b"2\x01\0\0\0\0*0\r\n", DecodeError::Script),
            (b"2\x01\0\0\0\x08\0\0\0\0\0\0\0\0", DecodeError::Script),
            (b"2\x01\0\0\0\x09\x01\0\0\0\0\0\0\0\0", DecodeError::Script),
            (
                b"2\0\0\0\0\x09\0\0\0\0\0\0\0\0\0*1\r\n$4\r\nPING\r\n",
                DecodeError::Script,
            ),
            (
                b"2\0\0\0\0\0*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n",
                DecodeError::Script,
            ),
            (&[b"2\x01\0\0\0\0", &many[..]].concat(), DecodeError::Length),
        ] {
            let command = [b"\x1f", bytes].concat();
            let decoded = Command::decode(&command);
            assert_eq!(
                decoded,
                Err(error),
                "{}",
                bytes[..bytes.len().min(40)].escape_ascii()
            );
        }
        let long_key = [&b"\x1f2\x01\0\0\x01\x04\xfb"[..], &[b'k'; 251 + 8]].concat();
        assert_eq!(Command::decode(&long_key), Err(DecodeError::Script));
    }

    #[test]
    fn a_script_of_the_longest_request_fits_a_command() {
        let value = "v".repeat(crate::VALUE_BYTES_MAX);
        let key = "k".repeat(KEY_BYTES_MAX);
        let text = format!(
            "*8\r\n$3\r\nSET\r\n$250\r\n{key}\r\n$1048576\r\n{value}\r\n$4\r\nPXAT\r\n\
             $19\r\n9223372036854775807\r\n$2\r\nNX\r\n$3\r\nGET\r\n$7\r\nKEEPTTL\r\n"
        );
        let words = Words::from_text(text.as_bytes()).unwrap();
        assert!(encoded(Script::single(Resp::V2, &words)).len() <= crate::COMMAND_BYTES_MAX);
    }
}

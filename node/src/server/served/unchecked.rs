//! Which of a program's output is not compared, because each replica's says something else there by right:
//! what a client is told when it asks how much memory the process takes, say. What clients send is the same
//! everywhere, so all leave out the same.
//!
//! Clients speak as those of Redis do: a command is a line, or each of its words is one.
use memchr::memchr_iter;
use memchr::memmem::find_iter;
use std::collections::BTreeMap;

/// Longer than any word that is looked for.
const LINE_BYTES: usize = 16;
/// With this a script calls a command.
const CALL: &[u8] = b"call(";
const BEGINS: &str = "MULTI";
const ENDS: [&str; 2] = ["EXEC", "DISCARD"];

/// What connections have asked for.
pub struct Unchecked {
    /// Commands whose answers differ; none: all is compared.
    commands: &'static [&'static str],
    each: BTreeMap<u64, Asked>,
}

/// By one connection.
#[derive(Default)]
struct Asked {
    line: Line,
    /// In a transaction, whose commands are carried out at its end.
    is_inside: bool,
    is_left_out: bool,
}

/// How a line begins that has not ended yet.
#[derive(Default)]
struct Line {
    bytes: [u8; LINE_BYTES],
    count: usize,
}

impl Line {
    fn add(&mut self, bytes: &[u8]) {
        let room = &mut self.bytes[self.count..];
        let taken = room.len().min(bytes.len());
        room[..taken].copy_from_slice(&bytes[..taken]);
        self.count += taken;
    }

    fn first_word(&self) -> &[u8] {
        let line = &self.bytes[..self.count];
        let end = line.iter().position(u8::is_ascii_whitespace);
        &line[..end.unwrap_or(line.len())]
    }
}

fn is_one_of(word: &[u8], words: &[&str]) -> bool {
    words
        .iter()
        .any(|it| it.as_bytes().eq_ignore_ascii_case(word))
}

/// Whether a script calls one of them, as far as that can be seen.
fn calls_one_of(bytes: &[u8], commands: &[&str]) -> bool {
    find_iter(bytes, CALL).any(|at| {
        let behind = bytes[at + CALL.len()..].trim_ascii_start();
        let Some((b'\'' | b'"', name)) = behind.split_first() else {
            return false;
        };
        let end = name.iter().position(|it| !it.is_ascii_alphabetic());
        is_one_of(&name[..end.unwrap_or(name.len())], commands)
    })
}

impl Unchecked {
    pub const fn new(commands: &'static [&'static str]) -> Self {
        let each = BTreeMap::new();
        Self { commands, each }
    }

    /// The program begins: there is no connection.
    pub fn begin(&mut self) {
        self.each.clear();
    }

    pub fn gone(&mut self, connection: u64) {
        self.each.remove(&connection);
    }

    /// A client has sent this. Whether what it is told from now on is left out, if that changes: so it is
    /// until it sends something else, and in a transaction until that ends.
    pub fn sent(&mut self, connection: u64, bytes: &[u8]) -> Option<bool> {
        if self.commands.is_empty() {
            return None;
        }
        let asked = self.each.entry(connection).or_default();
        let goes_on = asked.is_inside || asked.line.count > 0;
        let asks = asked.take(bytes, self.commands);
        let is_left_out = asks || (asked.is_left_out && goes_on);
        let before = std::mem::replace(&mut asked.is_left_out, is_left_out);
        (before != is_left_out).then_some(is_left_out)
    }
}

impl Asked {
    /// Whether one of these commands is in it.
    fn take(&mut self, bytes: &[u8], commands: &[&str]) -> bool {
        let mut asks = calls_one_of(bytes, commands);
        let mut begin = 0;
        for end in memchr_iter(b'\n', bytes) {
            self.line.add(&bytes[begin..end]);
            let word = self.line.first_word();
            if word.first().is_some_and(u8::is_ascii_alphabetic) {
                asks |= is_one_of(word, commands);
                self.is_inside |= is_one_of(word, &[BEGINS]);
                self.is_inside &= !is_one_of(word, &ENDS);
            }
            self.line.count = 0;
            begin = end + 1;
        }
        self.line.add(&bytes[begin..]);
        asks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMANDS: &[&str] = &["INFO", "CLIENT"];

    /// What is left out behind each piece that a client sends.
    fn left_out(pieces: &[&str]) -> Vec<bool> {
        let mut unchecked = Unchecked::new(COMMANDS);
        let mut is_left_out = false;
        let sent = pieces.iter().map(|piece| {
            is_left_out = unchecked.sent(1, piece.as_bytes()).unwrap_or(is_left_out);
            is_left_out
        });
        sent.collect()
    }

    #[test]
    fn the_answer_to_a_command_is_left_out_until_something_else_is_sent() {
        let get = "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n";
        for info in [
            "*1\r\n$4\r\ninfo\r\n",
            "*2\r\n$4\r\nINFO\r\n$6\r\nmemory\r\n",
            "INFO\r\n",
            "info memory\n",
            "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*1\r\n$4\r\nINFO\r\n",
            "*3\r\n$4\r\nEVAL\r\n$25\r\nreturn redis.call('INFO')\r\n$1\r\n0\r\n",
            "eval \"return redis.pcall( 'info', 'cpu')\" 0\r\n",
        ] {
            assert_eq!(
                left_out(&[get, info, get, get]),
                [false, true, false, false],
                "{info}"
            );
        }
    }

    #[test]
    fn what_only_looks_like_one_is_compared() {
        for other in [
            "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$10\r\nmore INFO?\r\n",
            "*1\r\n$6\r\nINFORM\r\n",
            "*1\r\n$20\r\nINFO1234567890123456\r\n",
            "eval \"return redis.call('GET', 'INFO')\" 0\r\n",
            "eval \"return call(INFO)\" 0\r\n",
            "\r\n",
            "XINFO STREAM k\r\n",
        ] {
            assert_eq!(left_out(&[other]), [false], "{other}");
        }
    }

    #[test]
    fn a_command_may_come_in_pieces() {
        assert_eq!(
            left_out(&["IN", "FO", "\r\n", "GET k\r\n"]),
            [false, false, true, false]
        );
        // What is asked in front of a command that is not whole stays left out with that.
        assert_eq!(
            left_out(&["INFO\r\nGE", "T k\r\n", "GET k\r\n"]),
            [true, true, false]
        );
    }

    #[test]
    fn a_transaction_answers_at_its_end() {
        for end in ["EXEC\r\n", "discard\r\n"] {
            let pieces = ["MULTI\r\n", "INFO\r\n", "GET k\r\n", end, "GET k\r\n"];
            assert_eq!(left_out(&pieces), [false, true, true, true, false]);
        }
        assert_eq!(
            left_out(&["MULTI\r\n", "GET k\r\n", "EXEC\r\n"]),
            [false; 3]
        );
    }

    #[test]
    fn connections_are_apart_and_end() {
        let mut unchecked = Unchecked::new(COMMANDS);
        assert_eq!(unchecked.sent(1, b"INFO\r\n"), Some(true));
        assert_eq!(unchecked.sent(2, b"GET k\r\nIN"), None);
        unchecked.gone(2);
        assert_eq!(unchecked.sent(2, b"FO\r\n"), None);
        assert_eq!(unchecked.sent(1, b"INFO\r\n"), None, "it stays so");
        unchecked.begin();
        assert!(unchecked.each.is_empty());
        let mut all = Unchecked::new(&[]);
        assert_eq!((all.sent(1, b"INFO\r\n"), all.each.len()), (None, 0));
    }
}

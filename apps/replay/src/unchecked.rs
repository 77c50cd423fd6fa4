//! Which of a program's output is not compared, because each replica's says something else there by right:
//! what a client is told when it asks how much memory the process takes, say. What clients send is the same
//! everywhere, so all leave out the same.
//!
//! Clients speak as those of Redis do: a command is an array of words, each behind its length, or a line.
use memchr::memchr;
use memchr::memmem::find_iter;
use std::collections::BTreeMap;

/// Longer than any word that is looked for, and than what says how long a word is.
const LINE_BYTES: usize = 24;
/// With this a script calls a command.
const CALL: &[u8] = b"call(";
const SCRIPTS: [&str; 2] = ["EVAL", "EVAL_RO"];
const BEGINS: &str = "MULTI";
const ENDS: [&str; 2] = ["EXEC", "DISCARD"];
/// What ends a line, and a word of an array.
const LINE_END_BYTES: u64 = 2;

/// What connections have asked for.
pub struct Unchecked {
    /// Commands whose answers differ; none: all is compared.
    commands: &'static [&'static str],
    each: BTreeMap<u64, Asked>,
}

/// By one connection.
#[derive(Default)]
struct Asked {
    /// A line, or the name of a command, that has not ended.
    line: Line,
    /// Words of the array at hand that have not begun.
    words_left: u64,
    /// Bytes of the word at hand that have not come, with its end.
    word_left: u64,
    /// The word at hand is the command's name, or the next one is.
    is_name: bool,
    is_script: bool,
    /// In a transaction, whose commands are carried out at its end.
    is_inside: bool,
    is_left_out: bool,
}

/// How a line begins.
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

    /// With what has come of it last, if it did not come at once.
    fn joined<'a>(&'a mut self, last: &'a [u8]) -> &'a [u8] {
        if self.count == 0 {
            return last;
        }
        self.add(last);
        let count = std::mem::take(&mut self.count);
        &self.bytes[..count]
    }
}

fn first_word(line: &[u8]) -> &[u8] {
    let end = line.iter().position(u8::is_ascii_whitespace);
    &line[..end.unwrap_or(line.len())]
}

fn number(digits: &[u8]) -> Option<u64> {
    let digits = first_word(digits).iter();
    let mut digits = digits.map(|it| {
        it.is_ascii_digit()
            .then_some(u64::from(it.wrapping_sub(b'0')))
    });
    digits.try_fold(0_u64, |number, digit| {
        number.checked_mul(10)?.checked_add(digit?)
    })
}

fn is_one_of(word: &[u8], words: &[&str]) -> bool {
    let mut words = words.iter().map(|it| it.as_bytes());
    words.any(|it| it.len() == word.len() && it.eq_ignore_ascii_case(word))
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
    /// Of a program's clients who use these commands.
    #[must_use]
    pub const fn new(commands: &'static [&'static str]) -> Self {
        let each = BTreeMap::new();
        Self { commands, each }
    }

    /// The program begins: there is no connection.
    pub fn begin(&mut self) {
        self.each.clear();
    }

    /// The connection is gone.
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
        let goes_on = asked.is_inside || asked.is_within_a_command();
        let asks = asked.take(bytes, self.commands);
        let is_left_out = asks || (asked.is_left_out && goes_on);
        let before = std::mem::replace(&mut asked.is_left_out, is_left_out);
        (before != is_left_out).then_some(is_left_out)
    }
}

impl Asked {
    const fn is_within_a_command(&self) -> bool {
        self.line.count > 0 || self.words_left > 0 || self.word_left > 0
    }

    /// Whether one of these commands is in it.
    fn take(&mut self, mut bytes: &[u8], commands: &[&str]) -> bool {
        let mut asks = false;
        while !bytes.is_empty() {
            if self.word_left > 0 {
                let count = usize::try_from(self.word_left).unwrap_or(usize::MAX);
                let (word, behind) = bytes.split_at(count.min(bytes.len()));
                asks |= self.word(word, commands);
                bytes = behind;
            } else if let Some(end) = memchr(b'\n', bytes) {
                asks |= self.line_ended(&bytes[..end], commands);
                bytes = &bytes[end + 1..];
            } else {
                self.line.add(bytes);
                break;
            }
        }
        asks
    }

    /// Something of the word at hand has come.
    fn word(&mut self, bytes: &[u8], commands: &[&str]) -> bool {
        self.word_left -= bytes.len() as u64;
        if !self.is_name {
            return self.is_script && calls_one_of(bytes, commands);
        }
        if self.word_left > 0 {
            self.line.add(bytes);
            return false;
        }
        self.is_name = false;
        let kind = Kind::of(self.line.joined(bytes), commands);
        self.begins(kind)
    }

    /// `last`: what has come of it last.
    fn line_ended(&mut self, last: &[u8], commands: &[&str]) -> bool {
        let line = self.line.joined(last);
        match (line.split_first(), self.words_left) {
            (Some((b'*', count)), 0) => {
                self.words_left = number(count).unwrap_or(0);
                self.is_name = true;
                false
            }
            (Some((b'$', bytes)), 1..) => {
                self.words_left -= 1;
                match number(bytes) {
                    Some(bytes) => self.word_left = bytes.saturating_add(LINE_END_BYTES),
                    None => self.words_left = 0, // it is refused
                }
                false
            }
            (_, 1..) => {
                self.words_left = 0; // likewise
                false
            }
            _ => {
                let kind = Kind::of(line, commands);
                let asks = self.begins(kind);
                asks || (self.is_script && calls_one_of(last, commands))
            }
        }
    }

    /// A command of this kind begins. Whether it is one of those.
    fn begins(&mut self, kind: Kind) -> bool {
        self.is_script = kind == Kind::Script;
        match kind {
            Kind::Begins => self.is_inside = true,
            Kind::Ends => self.is_inside = false,
            Kind::Asks | Kind::Script | Kind::Other => {}
        }
        kind == Kind::Asks
    }
}

/// What a command is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    /// Its answer differs.
    Asks,
    /// It carries others out.
    Script,
    /// A transaction begins with it, or ends.
    Begins,
    Ends,
    Other,
}

impl Kind {
    /// That of a line that begins with its name.
    fn of(line: &[u8], commands: &[&str]) -> Self {
        let name = first_word(line);
        if is_one_of(name, commands) {
            Self::Asks
        } else if is_one_of(name, &SCRIPTS) {
            Self::Script
        } else if is_one_of(name, &[BEGINS]) {
            Self::Begins
        } else if is_one_of(name, &ENDS) {
            Self::Ends
        } else {
            Self::Other
        }
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
            "*0\r\n*1\r\n$4\r\nINFO\r\n",
            "*2\r\n$x\r\nINFO\r\n",
            "*3\r\n\r\nINFO\r\n",
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
            "*3\r\n$3\r\nSET\r\n$4\r\nINFO\r\n$6\r\nINFO\r\n\r\n",
            "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$22\r\nredis.call('INFO', 'x')\r\n",
            "*x\r\n$4\r\n",
            "*2\r\n$x\r\n$4\r\n",
            "*1\r\n$6\r\nINFORM\r\n",
            "*1\r\n$30\r\nINFO12345678901234567890123456\r\n",
            "eval \"return redis.call('GET', 'INFO')\" 0\r\n",
            "eval \"return call(INFO)\" 0\r\n",
            "\r\n",
            "XINFO STREAM k\r\n",
            "SET k \"redis.call('INFO')\"\r\n",
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
        let long = "x".repeat(LINE_BYTES - 1);
        assert_eq!(
            left_out(&[&long, &long, &long, "\r\nINFO\r\n"])[3..],
            [true]
        );
        let whole = "*2\r\n$4\r\nINFO\r\n$6\r\nmemory\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n";
        for end in 1..whole.len() {
            let pieces = [&whole[..end], &whole[end..], "PING\r\n"];
            let named = "*2\r\n$4\r\nINFO\r\n".len();
            let ends = "*2\r\n$4\r\nINFO\r\n$6\r\nmemory\r\n".len();
            // The answer may come with either piece, but for what ends before the second.
            assert_eq!(
                left_out(&pieces),
                [end >= named, end != ends, false],
                "{end}"
            );
        }
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

//! What a row of the command table says, and whether a request is a command at all. Runs nothing.
use std::sync::LazyLock;

use super::{Words, table};
use crate::WhyRefused;

/// Who carries a command out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// The log, as a [`Script`](super::Script).
    Write,
    /// The store, which stays as it is.
    Read,
    /// Whoever holds the connection.
    Connection,
}

/// One row of the command table. Texts with several words in them have a blank between those.
#[derive(Debug, Eq, PartialEq)]
pub struct Spec {
    /// Its name in small letters; that of a subcommand has its container's and a `|` in front.
    pub name: &'static str,
    /// How many words it has, its name included; if negative, at least so many.
    pub arity: i32,
    /// Who carries it out.
    pub kind: Kind,
    /// What clients and proxies must know of it.
    pub flags: &'static str,
    /// The groups that access rules speak of.
    pub categories: &'static str,
    /// Hints for clients of several servers.
    pub tips: &'static str,
    /// Which of its words are keys.
    pub keys: &'static [KeySpec],
    /// The version of Redis that had it first.
    pub since: &'static str,
    /// Where it stands in the manual.
    pub group: &'static str,
    /// How long it takes.
    pub complexity: &'static str,
    /// What it does.
    pub summary: &'static str,
    /// What its second word can be; nothing if that is free.
    pub subcommands: &'static [Self],
}

/// Keys among a command's words.
#[derive(Debug, Eq, PartialEq)]
pub struct KeySpec {
    /// Place of the first.
    pub begin: usize,
    /// Place of the last, counted from the first; if negative, from behind the last word.
    pub last: i32,
    /// From one to the next.
    pub step: usize,
    /// What is done to them.
    pub flags: &'static str,
    /// What else is to be said.
    pub notes: &'static str,
}

/// What a command without subcommands has.
pub(super) static NO_SUBCOMMANDS: &[Spec] = &[];

/// Rows of the command table, as `table/mod.rs` tells.
macro_rules! commands {
    ($(#[$doc:meta])* $visibility:vis static $rows:ident = {$(
        $name:literal $arity:literal $kind:ident $flags:literal $categories:literal $tips:literal
            [$({$begin:literal $last:literal $step:literal $key_flags:literal $notes:literal})*]
            $since:literal $group:literal $complexity:literal
            $summary:literal $subcommands:ident;
    )*}) => {
        $(#[$doc])* $visibility static $rows: &[crate::redis::spec::Spec] = &[$(
            crate::redis::spec::Spec {
                name: $name,
                arity: $arity,
                kind: crate::redis::spec::Kind::$kind,
                flags: $flags,
                categories: $categories,
                tips: $tips,
                keys: &[$(crate::redis::spec::KeySpec {
                    begin: $begin,
                    last: $last,
                    step: $step,
                    flags: $key_flags,
                    notes: $notes,
                }),*],
                since: $since,
                group: $group,
                complexity: $complexity,
                summary: $summary,
                subcommands: $subcommands,
            },
        )*];
    };
}
pub(super) use commands;

/// The row of the command called `name`, in whatever letters; of a subcommand, `container|name`.
#[must_use]
pub fn spec(name: &[u8]) -> Option<&'static Spec> {
    let mut parts = name.splitn(2, |&byte| byte == b'|');
    let container = row(parts.next()?)?;
    match parts.next() {
        None => Some(container),
        Some(subcommand) => container.subcommand(subcommand),
    }
}

/// Longest name of a command, in bytes.
const NAME_BYTES_MAX: usize = 16;

/// A name in small letters, as one number.
type Letters = u128;

fn letters(name: &[u8]) -> Option<Letters> {
    let mut letters = [0; NAME_BYTES_MAX];
    letters.get_mut(..name.len())?.copy_from_slice(name);
    letters.make_ascii_lowercase();
    Some(Letters::from_le_bytes(letters))
}

/// The rows by their names: every request looks for one, twice.
static PLACES: LazyLock<Vec<Option<(Letters, &'static Spec)>>> = LazyLock::new(|| {
    let mut places = vec![None; PLACE_COUNT];
    for spec in table::all() {
        let letters = letters(spec.name.as_bytes()).expect("names are short");
        let mut place = first_place(letters);
        while places[place].is_some() {
            place = (place + 1) % PLACE_COUNT;
        }
        places[place] = Some((letters, *spec));
    }
    places
});

/// Several times as many as there are rows.
const PLACE_COUNT: usize = 512;

/// Where a name would stand, if no other stood there.
fn first_place(letters: Letters) -> usize {
    let [low, high] = [letters, letters >> 64].map(|half| half & u128::from(u64::MAX));
    let mixed = (low ^ high.rotate_left(7)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    usize::from(mixed.to_le_bytes()[7]) << 1
}

fn row(name: &[u8]) -> Option<&'static Spec> {
    let wanted = letters(name)?;
    let mut place = first_place(wanted);
    loop {
        let (found, spec) = PLACES[place]?;
        // A name that ends in NULs is as a number the one without them.
        if found == wanted && spec.name.len() == name.len() {
            return Some(spec);
        }
        place = (place + 1) % PLACE_COUNT;
    }
}

impl Spec {
    /// Its last name: without its container's.
    #[must_use]
    pub fn own_name(&self) -> &'static str {
        self.name.rsplit('|').next().unwrap_or(self.name)
    }

    pub(super) fn subcommand(&self, name: &[u8]) -> Option<&'static Self> {
        let mut rows = self.subcommands.iter();
        rows.find(|row| row.own_name().as_bytes().eq_ignore_ascii_case(name))
    }

    /// Whether a request may have so many words.
    #[must_use]
    pub fn takes(&self, word_count: usize) -> bool {
        let least = self.arity.unsigned_abs() as usize;
        word_count == least || (self.arity < 0 && word_count > least)
    }

    /// Whether the word at `place`, in a request of so many, is a key.
    #[must_use]
    pub fn is_key(&self, place: usize, word_count: usize) -> bool {
        self.keys.iter().any(|keys| keys.holds(place, word_count))
    }
}

impl KeySpec {
    pub(super) fn holds(&self, place: usize, word_count: usize) -> bool {
        let distance = self.last.unsigned_abs() as usize;
        let end = if self.last < 0 {
            (word_count + 1).saturating_sub(distance)
        } else {
            self.begin + distance + 1
        };
        (self.begin..end.min(word_count)).contains(&place)
            && (place - self.begin).is_multiple_of(self.step)
    }
}

/// Who carries the command out; or the answer to what is none, as a whole error.
pub fn classify(words: &Words<'_>) -> Result<Kind, Vec<u8>> {
    find(words).map(|spec| spec.kind)
}

/// Why [`find`] refuses this.
#[must_use]
pub fn why_refused(words: &Words<'_>) -> WhyRefused {
    let is_known = row(words.get(0).unwrap_or_default()).is_some_and(|spec| {
        let second = words.get(1).filter(|_| !spec.subcommands.is_empty());
        second.is_none_or(|name| spec.subcommand(name).is_some())
    });
    if is_known {
        WhyRefused::Malformed
    } else {
        WhyRefused::UnknownCommand
    }
}

/// The row of the command, or of the subcommand if it has some; or the answer to what is none, as a whole
/// error.
pub fn find(words: &Words<'_>) -> Result<&'static Spec, Vec<u8>> {
    let mut first_words = words.iter();
    let name = first_words.next().unwrap_or_default();
    let Some(container) = row(name) else {
        return Err(unknown(words));
    };
    let found = match first_words.next() {
        Some(second) if !container.subcommands.is_empty() => {
            let Some(subcommand) = container.subcommand(second) else {
                return Err(unknown_subcommand(container, second));
            };
            subcommand
        }
        _ => container,
    };
    if found.takes(words.len()) {
        return Ok(found);
    }
    let mut reply = Vec::new();
    let text = format!("ERR wrong number of arguments for '{}' command", found.name);
    super::reply::error(&mut reply, text.as_bytes());
    Err(reply)
}

/// How much of what a client sent goes back in an error, in bytes.
pub const QUOTED_BYTES_MAX: usize = 128;

/// The start of a word as C shows it: up to a NUL.
#[must_use]
pub fn quoted(word: &[u8], bytes_max: usize) -> &[u8] {
    let start = &word[..word.len().min(bytes_max)];
    start.split(|&byte| byte == 0).next().unwrap_or_default()
}

fn unknown(words: &Words<'_>) -> Vec<u8> {
    let mut arguments = Vec::new();
    for word in words.iter().skip(1) {
        if arguments.len() >= QUOTED_BYTES_MAX {
            break;
        }
        let room = QUOTED_BYTES_MAX - arguments.len();
        arguments.push(b'\'');
        arguments.extend_from_slice(quoted(word, room));
        arguments.extend_from_slice(b"' ");
    }
    let name = quoted(words.get(0).unwrap_or_default(), QUOTED_BYTES_MAX);
    let text = [
        b"ERR unknown command '",
        name,
        b"', with args beginning with: ",
        &arguments,
    ];
    let mut reply = Vec::new();
    super::reply::error(&mut reply, &text.concat());
    reply
}

fn unknown_subcommand(container: &Spec, name: &[u8]) -> Vec<u8> {
    let container = container.name.to_ascii_uppercase();
    let text = [
        b"ERR unknown subcommand '",
        quoted(name, QUOTED_BYTES_MAX),
        b"'. Try ",
        container.as_bytes(),
        b" HELP.",
    ];
    let mut reply = Vec::new();
    super::reply::error(&mut reply, &text.concat());
    reply
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_found_by_its_name_and_by_no_other() {
        for known in table::all() {
            let name = known.name.as_bytes();
            for name in [name.to_vec(), name.to_ascii_uppercase()] {
                assert!(std::ptr::eq(spec(&name).unwrap(), *known));
                for other in [&[&name[..], b"\0"].concat()[..], &name[1..], b"\0versions"] {
                    assert!(spec(other).is_none_or(|found| found.name != known.name));
                }
            }
            for subcommand in known.subcommands {
                assert!(std::ptr::eq(
                    spec(subcommand.name.as_bytes()).unwrap(),
                    subcommand
                ));
            }
        }
        for name in ["", "\0", "get\0", "averylongnamethatis", "object|", "get|x"] {
            assert!(spec(name.as_bytes()).is_none(), "{name:?}");
        }
    }
}

//! A read of memcached's, which is judged once: what was seen of it then is kept beside its line, and the
//! same read is there again without another look at the line.
use super::meta::{self, Letters, NO_KEY};
use super::{Meta, MetaDebug, MetaKind, are_few};
use crate::{Command, Key, Keys};

/// A `get` or `gets`, an `me`, or an `mg` that asks for no change.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Read<'a> {
    line: &'a [u8],
    form: ReadForm,
}

/// What a line was seen to be when it was parsed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ReadForm(Form);

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Form {
    Items { with_unique: bool },
    Meta { key: KeySpan, letters: Letters },
    Debug { key: KeySpan, is_base64: bool },
}

/// Where in a line its only key stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct KeySpan {
    begin: u32,
    bytes: u8,
}

/// What a read is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReadKind<'a> {
    /// `get` and `gets`.
    Items {
        /// At least one key, in the order to be answered.
        keys: Keys<'a>,
        /// Whether the answer shows unique numbers, as `gets` does.
        with_unique: bool,
    },
    /// `mg`.
    Meta(Meta<'a>),
    /// `me`.
    Debug(MetaDebug<'a>),
}

impl<'a> Read<'a> {
    /// The read in a line as [`line`](Self::line) gives it, or `None` if it is none.
    #[must_use]
    pub fn from_line(line: &'a [u8]) -> Option<Self> {
        match meta::split_line(line) {
            (name @ (b"get" | b"gets"), _, _) => {
                let keys = Keys::new(line.strip_prefix(name)?).filter(|keys| are_few(*keys))?;
                keys.iter().next()?;
                Some(Self::items(line, name == b"gets"))
            }
            (b"mg", key, flags) => {
                let meta = Meta::new(MetaKind::Get, key, flags).ok()?;
                (!meta.writes()).then(|| Self::meta(line, &meta))
            }
            (b"me", key, flags) => {
                let debug = MetaDebug::new(key, flags).ok()?;
                Some(Self::debug(line, &debug, flags))
            }
            _ => None,
        }
    }

    /// The read in a line that was seen to be of this form.
    #[must_use]
    pub const fn of(form: ReadForm, line: &'a [u8]) -> Self {
        Self { line, form }
    }

    /// What `get` or `gets` asks for, behind which stand nothing but keys.
    pub(super) const fn items(line: &'a [u8], with_unique: bool) -> Self {
        let form = ReadForm(Form::Items { with_unique });
        Self { line, form }
    }

    /// The `mg` that this line is.
    pub(super) fn meta(line: &'a [u8], meta: &Meta<'a>) -> Self {
        let form = ReadForm(Form::Meta {
            key: KeySpan::of(line, meta.name(), meta.flags_text()),
            letters: meta.letters(),
        });
        Self { line, form }
    }

    /// The `me` that this line is, which ends in these flags.
    pub(super) fn debug(line: &'a [u8], debug: &MetaDebug<'a>, flags: &[u8]) -> Self {
        let form = ReadForm(Form::Debug {
            key: KeySpan::of(line, debug.name(), flags),
            is_base64: debug.is_base64(),
        });
        Self { line, form }
    }

    /// What was seen of it.
    #[must_use]
    pub const fn form(&self) -> ReadForm {
        self.form
    }

    /// The request line, from its first letter to its last key: a part of the bytes that were parsed,
    /// and what `query` takes.
    #[must_use]
    pub const fn line(&self) -> &'a [u8] {
        self.line
    }

    /// What is asked.
    #[must_use]
    pub fn kind(&self) -> ReadKind<'a> {
        match self.form.0 {
            Form::Items { with_unique } => {
                let name = if with_unique { "gets" } else { "get" };
                let keys = Keys::seen(&self.line[name.len()..]);
                ReadKind::Items { keys, with_unique }
            }
            Form::Meta { key, letters } => {
                let (name, flags) = key.split(self.line);
                ReadKind::Meta(Meta::seen(name, flags, letters))
            }
            Form::Debug { key, is_base64 } => {
                let (name, _) = key.split(self.line);
                ReadKind::Debug(MetaDebug::seen(name, is_base64))
            }
        }
    }

    /// How many keys are asked for, at least one.
    #[must_use]
    pub fn key_count(&self) -> usize {
        match self.kind() {
            ReadKind::Items { keys, .. } => keys.iter().count(),
            ReadKind::Meta(_) | ReadKind::Debug(_) => 1,
        }
    }

    /// Has `see` see the keys asked for, in order.
    pub fn for_each_key(&self, mut see: impl FnMut(Key<'_>)) {
        match self.kind() {
            ReadKind::Items { keys, .. } => keys.iter().for_each(see),
            ReadKind::Meta(meta) => see(meta.key(&mut NO_KEY.clone())),
            ReadKind::Debug(debug) => see(debug.key(&mut NO_KEY.clone())),
        }
    }

    /// The same as a write: what to do if the answer to the read is
    /// [`MUST_WRITE`](super::reply::MUST_WRITE).
    #[must_use]
    pub fn as_write(&self) -> Option<Command<'a>> {
        match self.kind() {
            ReadKind::Meta(meta) => Some(Command::Meta { meta, value: b"" }),
            ReadKind::Items { .. } | ReadKind::Debug(_) => None,
        }
    }
}

impl KeySpan {
    /// Of the key that stands right in front of a line's flags.
    fn of(line: &[u8], name: &[u8], flags: &[u8]) -> Self {
        let begin = line.len() - flags.len() - name.len();
        Self {
            begin: u32::try_from(begin).expect("no line is longer than a command"),
            bytes: u8::try_from(name.len()).expect("a key has a limit"),
        }
    }

    /// The key, and what stands behind it.
    fn split(self, line: &[u8]) -> (&[u8], &[u8]) {
        line[self.begin as usize..].split_at(usize::from(self.bytes))
    }
}

//! The line of a meta command: a key and flags, each a letter and perhaps a token. Checks them as memcached
//! does, in its order; carries out nothing.
use super::base64::{self, DECODED_BYTES_MAX};
use super::number::{signed, unsigned};
use super::reply::{self, RefusalReply};
use crate::{Exptime, KEY_BYTES_MAX, Key};

/// Most words of a meta command's line.
const WORDS_MAX: usize = 19;

/// Longest opaque token, its letter included.
const OPAQUE_BYTES_MAX: usize = 32;

/// Which meta command.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MetaKind {
    /// `mg`: show an item.
    Get,
    /// `ms`: store one.
    Set,
    /// `md`: remove one, or mark it as stale.
    Delete,
    /// `ma`: count.
    Arithmetic,
}

/// A meta command without its data block: the key and the flags as the client wrote them, known to be good.
/// The log carries them as they are, for the answer repeats some of them in their order.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Meta<'a> {
    kind: MetaKind,
    name: &'a [u8],
    flags: &'a [u8],
    letters: Letters,
}

/// Which letters the flags of a command have.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Letters(u64);

impl Letters {
    const fn bit(letter: u8) -> u64 {
        match letter {
            64..128 => 1 << (letter - 64),
            _ => 0, // no flag has such a one
        }
    }

    pub(crate) const fn has(self, letter: u8) -> bool {
        self.0 & Self::bit(letter) != 0
    }
}

/// Room for a key that is written in base64.
pub(crate) type KeyBuffer = [u8; DECODED_BYTES_MAX];

/// A [`KeyBuffer`] with nothing in it.
pub(crate) const NO_KEY: KeyBuffer = [0; DECODED_BYTES_MAX];

impl<'a> Meta<'a> {
    /// The command with this key and these flags, a blank or more between them; the error is what memcached
    /// answers to it.
    pub(crate) fn new(
        kind: MetaKind,
        name: &'a [u8],
        flags: &'a [u8],
    ) -> Result<Self, RefusalReply> {
        let Some(key) = Key::new(name) else {
            return Err(reply::BAD_FORMAT.into());
        };
        let words_before = match kind {
            MetaKind::Set => 3,
            MetaKind::Get | MetaKind::Delete | MetaKind::Arithmetic => 2,
        };
        if words(flags).nth(WORDS_MAX - words_before).is_some() {
            return Err(RefusalReply::too_long(match kind {
                MetaKind::Get => reply::TOO_MANY_FLAGS_OF_GET,
                MetaKind::Set | MetaKind::Delete | MetaKind::Arithmetic => reply::TOO_MANY_FLAGS,
            }));
        }
        let parsed = Flags::parse(flags, key).map_err(|error| match kind {
            MetaKind::Get | MetaKind::Set => error,
            MetaKind::Delete | MetaKind::Arithmetic => reply::BAD_FLAG,
        })?;
        match (kind, parsed.mode) {
            (MetaKind::Get | MetaKind::Delete, _)
            | (MetaKind::Set, None | Some(b'E' | b'A' | b'P' | b'R' | b'S'))
            | (MetaKind::Arithmetic, None | Some(b'I' | b'+' | b'D' | b'-')) => {}
            (MetaKind::Set, Some(_)) => return Err(reply::BAD_MODE_OF_SET.into()),
            (MetaKind::Arithmetic, Some(_)) => return Err(reply::BAD_MODE_OF_ARITHMETIC.into()),
        }
        if words(flags).any(|word| word[0] == b'O' && word.len() > OPAQUE_BYTES_MAX) {
            return Err(RefusalReply::too_long(reply::OPAQUE_TOO_LONG));
        }
        Ok(Self {
            kind,
            name,
            flags,
            letters: parsed.letters,
        })
    }

    /// The `mg` with what [`new`](Self::new) has seen to be a key and flags with these letters.
    pub(super) const fn seen(name: &'a [u8], flags: &'a [u8], letters: Letters) -> Self {
        Self {
            kind: MetaKind::Get,
            name,
            flags,
            letters,
        }
    }

    /// Which command it is.
    #[must_use]
    pub const fn kind(&self) -> MetaKind {
        self.kind
    }

    /// The key as the client wrote it.
    pub(crate) const fn name(&self) -> &'a [u8] {
        self.name
    }

    /// The flags as the client wrote them.
    pub(crate) const fn flags_text(&self) -> &'a [u8] {
        self.flags
    }

    /// The key, which may have to be decoded into `buffer`.
    pub(crate) fn key<'b>(&self, buffer: &'b mut KeyBuffer) -> Key<'b>
    where
        'a: 'b,
    {
        key_of(self.name, self.letters.has(b'b'), buffer)
    }

    /// Which flags it has.
    pub(crate) const fn letters(&self) -> Letters {
        self.letters
    }

    /// The flags of a command that changes nothing: no number that is in them counts.
    pub(crate) const fn flags_of_read(&self) -> Flags<'a> {
        Flags::new(self.name, self.flags, self.letters)
    }

    pub(crate) fn flags(&self) -> Flags<'a> {
        let key = Key::new(self.name).expect("`new` has seen that this is a key");
        Flags::parse(self.flags, key).expect("`new` has seen that these are flags")
    }

    /// Whether it changes something even if it only finds what it looks for.
    pub(crate) fn writes(&self) -> bool {
        match self.kind {
            MetaKind::Set | MetaKind::Delete | MetaKind::Arithmetic => true,
            MetaKind::Get => [b'N', b'T', b'R'].iter().any(|it| self.letters.has(*it)),
        }
    }
}

/// What the flags of a command say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flags<'a> {
    /// The key as the client wrote it.
    pub(crate) name: &'a [u8],
    text: &'a [u8],
    letters: Letters,
    /// `N`: the end of what is made if there is nothing.
    pub(crate) vivify: Option<Exptime>,
    /// `T`: a new end.
    pub(crate) touch: Option<Exptime>,
    /// `R`: who finds less time left than this is to store the item anew.
    pub(crate) recache: Option<Exptime>,
    /// `C`: the unique number the item must have.
    pub(crate) compare: Option<u64>,
    /// `F`: the client's own 32 bits.
    pub(crate) item_bits: u32,
    /// `M`.
    pub(crate) mode: Option<u8>,
    /// `J`: the number that is made if there is none.
    pub(crate) initial: u64,
    /// `D`: what to add or subtract.
    pub(crate) delta: u64,
}

impl<'a> Flags<'a> {
    /// Those with these letters; none says anything with its token.
    const fn new(name: &'a [u8], text: &'a [u8], letters: Letters) -> Self {
        Self {
            name,
            text,
            letters,
            vivify: None,
            touch: None,
            recache: None,
            compare: None,
            item_bits: 0,
            mode: None,
            initial: 0,
            delta: 1,
        }
    }

    /// Reads flags; where several are bad, the last one that memcached complains about counts.
    fn parse(text: &'a [u8], key: Key<'a>) -> Result<Self, &'static [u8]> {
        let mut flags = Self::new(key.bytes(), text, Letters::default());
        let mut complaint = reply::BAD_FORMAT;
        let mut is_good = true;
        for word in flags.words() {
            let letter = word[0];
            if letter >= 127 || flags.has(letter) {
                return Err(reply::DUPLICATE_FLAG);
            }
            flags.letters.0 |= Letters::bit(letter);
            match flags.take(letter, &word[1..]) {
                Ok(()) => {}
                Err(Complaint::Unknown) => return Err(reply::UNKNOWN_FLAG),
                Err(Complaint::Token(text)) => {
                    complaint = text;
                    is_good = false;
                }
                Err(Complaint::Unnamed) => is_good = false,
            }
        }
        if is_good { Ok(flags) } else { Err(complaint) }
    }

    fn take(&mut self, letter: u8, token: &[u8]) -> Result<(), Complaint> {
        let time = || signed(token).map(Exptime).ok_or(TOKEN);
        let number = |text| unsigned(token).ok_or(Complaint::Token(text));
        match letter {
            b'b' => {
                if base64::decode(self.name, &mut NO_KEY.clone()).is_none() {
                    return Err(Complaint::Token(reply::BAD_BASE64));
                }
            }
            b'N' => self.vivify = Some(time()?),
            b'T' => self.touch = Some(time()?),
            b'R' => self.recache = Some(time()?),
            b'F' => {
                let number = unsigned(token).ok_or(Complaint::Unnamed)?;
                self.item_bits = u32::try_from(number).map_err(|_| Complaint::Unnamed)?;
            }
            b'C' => self.compare = Some(unsigned(token).ok_or(TOKEN)?),
            b'M' => match token {
                [mode] => self.mode = Some(*mode),
                _ => return Err(Complaint::Token(reply::BAD_MODE_LENGTH)),
            },
            b'J' => self.initial = number(reply::BAD_INITIAL)?,
            b'D' => self.delta = number(reply::BAD_META_DELTA)?,
            b'I' | b'O' | b'P' | b'L' | b'c' | b'f' | b'h' | b'k' | b'l' | b'q' | b's' | b't'
            | b'u' | b'v' => {}
            _ => return Err(Complaint::Unknown),
        }
        Ok(())
    }

    /// Whether a flag with this letter was given.
    pub(crate) const fn has(&self, letter: u8) -> bool {
        self.letters.has(letter)
    }

    /// The flags in order, each with its letter first.
    pub(crate) fn words(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        words(self.text)
    }
}

/// What is wrong with a flag.
enum Complaint {
    /// There is no such flag; the rest is not looked at.
    Unknown,
    /// Its token is not what it must be.
    Token(&'static [u8]),
    /// Likewise, but memcached has no word for it.
    Unnamed,
}

const TOKEN: Complaint = Complaint::Token(reply::BAD_TOKEN);

fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|&byte| byte == b' ')
        .filter(|word| !word.is_empty())
}

/// A whole line of `mg` or `me`, name of the command included: its kind, key and flags.
pub(super) fn split_line(line: &[u8]) -> (&[u8], &[u8], &[u8]) {
    let (name, rest) = split_word(line);
    let (key, flags) = split_word(rest);
    (name, key, flags)
}

/// The first word and what stands behind it.
pub(super) fn split_word(text: &[u8]) -> (&[u8], &[u8]) {
    let blanks = text.iter().take_while(|&&byte| byte == b' ').count();
    let text = &text[blanks..];
    let end = memchr::memchr(b' ', text).unwrap_or(text.len());
    text.split_at(end)
}

/// `me`: the key it asks for, and whether that is written in base64.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MetaDebug<'a> {
    name: &'a [u8],
    is_base64: bool,
}

impl<'a> MetaDebug<'a> {
    /// The error is what memcached answers.
    pub(crate) fn new(name: &'a [u8], flags: &[u8]) -> Result<Self, &'static [u8]> {
        let is_base64 = words(flags).next() == Some(b"b");
        let is_good = name.len() <= KEY_BYTES_MAX
            && Key::new(name).is_some()
            && (!is_base64 || base64::decode(name, &mut NO_KEY.clone()).is_some());
        if is_good {
            Ok(Self { name, is_base64 })
        } else {
            Err(reply::BAD_FORMAT)
        }
    }

    /// The same for what this has seen to be good.
    pub(super) const fn seen(name: &'a [u8], is_base64: bool) -> Self {
        Self { name, is_base64 }
    }

    /// The key as the client wrote it.
    pub(crate) const fn name(&self) -> &'a [u8] {
        self.name
    }

    pub(super) const fn is_base64(&self) -> bool {
        self.is_base64
    }

    /// The key, which may have to be decoded into `buffer`.
    pub(crate) fn key<'b>(&self, buffer: &'b mut KeyBuffer) -> Key<'b>
    where
        'a: 'b,
    {
        key_of(self.name, self.is_base64, buffer)
    }
}

/// The key that a command names so, which it has been seen to be.
fn key_of<'b>(name: &'b [u8], is_base64: bool, buffer: &'b mut KeyBuffer) -> Key<'b> {
    let decoded = if is_base64 {
        base64::decode(name, buffer)
    } else {
        Some(name)
    };
    decoded
        .and_then(Key::binary)
        .expect("`new` has seen that this is a key")
}

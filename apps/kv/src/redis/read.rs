//! A read of Redis', which is judged once: what was seen of it then is kept beside its line, and the same
//! read is there again without another look at the line.
use super::{Resp, Spec, VERSIONS, Words, find};

/// The words of a command that is to change nothing, and the version of the protocol that it came in.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Read<'a> {
    form: ReadForm,
    words: Words<'a>,
}

/// What a line was seen to be when it was parsed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ReadForm {
    resp: Resp,
    /// Of a command that there is.
    spec: Option<&'static Spec>,
    word_count: u32,
    /// Where the first word's length stands.
    start: u8,
}

/// What a read is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReadKind {
    /// This command, which is none of those that write if it came in at the Redis port.
    Command(&'static Spec),
    /// [`VERSIONS`].
    Versions,
    /// Nothing: there is no such command, or it has other words.
    Unknown,
}

impl ReadKind {
    /// What these words ask.
    pub(crate) fn of(words: &Words<'_>) -> Self {
        Self::known(words, find(words).ok())
    }

    fn known(words: &Words<'_>, spec: Option<&'static Spec>) -> Self {
        match spec {
            Some(spec) => Self::Command(spec),
            None if words.get(0) == Some(VERSIONS) => Self::Versions,
            None => Self::Unknown,
        }
    }
}

impl ReadForm {
    /// The form of these words, for which [`find`] has found this.
    #[must_use]
    pub fn new(resp: Resp, spec: Option<&'static Spec>, words: &Words<'_>) -> Self {
        let (word_count, start) = words.shape();
        Self {
            resp,
            spec,
            word_count: u32::try_from(word_count).expect("words have a limit"),
            start: u8::try_from(start).expect("a number has a limit"),
        }
    }
}

impl<'a> Read<'a> {
    /// The read in a line that begins with a version of the protocol; `None`: no words stand behind that.
    #[must_use]
    pub fn from_text(resp: Resp, text: &'a [u8]) -> Option<Self> {
        let words = Words::from_text(text)?;
        let form = ReadForm::new(resp, find(&words).ok(), &words);
        Some(Self { form, words })
    }

    /// The read in the words of a line that was seen to be of this form.
    #[must_use]
    pub const fn of(form: ReadForm, text: &'a [u8]) -> Self {
        let (count, start) = (form.word_count as usize, form.start as usize);
        let words = Words::checked(text, count, start);
        Self { form, words }
    }

    /// What was seen of it.
    #[must_use]
    pub const fn form(&self) -> ReadForm {
        self.form
    }

    /// The version of the protocol that its answer is to be in.
    #[must_use]
    pub const fn resp(&self) -> Resp {
        self.form.resp
    }

    /// What is asked.
    #[must_use]
    pub fn kind(&self) -> ReadKind {
        ReadKind::known(&self.words, self.spec())
    }

    /// The command's row, if there is such a command.
    #[must_use]
    pub const fn spec(&self) -> Option<&'static Spec> {
        self.form.spec
    }

    /// The command's words.
    #[must_use]
    pub const fn words(&self) -> &Words<'a> {
        &self.words
    }

    /// Whether it looks for keys: it names none, and may look at any number.
    #[must_use]
    pub const fn is_search(&self) -> bool {
        matches!(self.spec(), Some(spec) if spec.keys.is_empty())
    }
}

//! What a refusal means, by the first words of its text. They are the server's promise, see the node's
//! answers.

/// What to do about a refused request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// Another try, here or elsewhere, may go better. Whether this one was carried out need not be
    /// known: the session sees to it that it runs once.
    TryAgain,
    /// Another try may go better after a while, and nowhere else. This one was not carried out.
    TryLater,
    /// Not carried out: this try of it.
    NotExecuted,
    /// Carried out; its answer is lost.
    AnswerGone,
    /// The replicas do not know the session (any more): this try of the command was not carried out,
    /// and a new session is needed.
    SessionGone,
    /// Nobody can tell any more whether it was carried out.
    Unknown,
}

/// Text in front, what it means; the first one that fits counts.
const WORDS: [(&str, Verdict); 12] = [
    ("not leader", Verdict::TryAgain),
    ("no leader", Verdict::TryAgain),
    ("busy", Verdict::TryAgain),
    // Said of this packet only: one sent before may be in the log and wait for the very disk.
    ("disk full", Verdict::TryAgain),
    ("outcome unknown", Verdict::TryAgain),
    ("not executed: another leader", Verdict::TryAgain),
    ("not executed: this replica is stopping", Verdict::TryAgain),
    ("not executed: too many sessions", Verdict::TryLater),
    ("not executed: unknown session", Verdict::SessionGone),
    ("not executed: sequence too old", Verdict::Unknown),
    ("already executed", Verdict::AnswerGone),
    ("executed", Verdict::AnswerGone),
];

impl Verdict {
    /// Of a refusal's text. What is not known here counts as not carried out, as a server that refuses
    /// says.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let text = text.strip_prefix("SERVER_ERROR ").unwrap_or(text);
        let known = WORDS.iter().find(|(words, _)| text.starts_with(words));
        known.map_or(Self::NotExecuted, |(_, verdict)| *verdict)
    }
}

//! The rules outside of the step that make a deployment safe. Each can be taken out of the model by itself.

/// One rule.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Rule {
    /// A coordinator proposes when a majority has promised its round.
    MajorityPromises,
    /// A coordinator proposes what was voted for in the highest round that its majority knows of.
    AdoptsHighestVote,
    /// A coordinator draws a new number for each round, also where another one has its own number.
    DrawsAnew,
    /// A promise names the question that it answers by what was drawn for it. It counts for no other one,
    /// such as one for the same round by whoever had forgotten that it had asked.
    PromiseNamesQuestion,
    /// A coordinator that begins anew asks for a new round.
    AsksAnew,
    /// Votes decide when they are of one round.
    OneRoundDecides,
    /// A vote is on disk before it is said (`Sync`).
    VoteIsDurable,
    /// Who has taken a configuration answers nothing of another one, and a promise given in one counts in no
    /// other.
    ConfigurationCounts,
    /// An acceptor takes a configuration only if that knows of each life that it knows of itself.
    TakesLaterLivesOnly,
    /// An acceptor that lost its memory is let in when a majority of the others has promised a round in the
    /// next configuration.
    MajorityOfOthers,
    /// It is let in as the life that the round was asked for: what it forgets later takes another round.
    LetsInOneLife,
    /// It is no member up to the highest instance that these have voted for.
    NoMemberUpToBound,
}

impl Rule {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::MajorityPromises,
        Self::AdoptsHighestVote,
        Self::DrawsAnew,
        Self::PromiseNamesQuestion,
        Self::AsksAnew,
        Self::OneRoundDecides,
        Self::VoteIsDurable,
        Self::ConfigurationCounts,
        Self::TakesLaterLivesOnly,
        Self::MajorityOfOthers,
        Self::LetsInOneLife,
        Self::NoMemberUpToBound,
    ];
}

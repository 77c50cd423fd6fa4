//! What a cluster replicates: its full name says so.

/// What a program is called in its cluster's name, whichever it is.
pub const PROGRAM: &str = "run";

/// Whether a cluster of this full name serves a program.
#[must_use]
pub fn is_of_program(cluster: &str) -> bool {
    Hosts::of(cluster) == Hosts::Program
}

/// What the values of a cluster are called in its name.
pub const VALUES: &str = "values";

/// What a cluster replicates, as its full name says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Hosts {
    /// A key-value store.
    Store,
    /// A program that was not written for it.
    Program,
    /// Values that are kept for learners.
    Values,
}

impl Hosts {
    /// What a cluster of this full name does.
    #[must_use]
    pub fn of(cluster: &str) -> Self {
        match cluster.rsplit_once('/') {
            Some((_, PROGRAM)) => Self::Program,
            Some((_, VALUES)) => Self::Values,
            Some(_) | None => Self::Store,
        }
    }

    /// How the full name of its cluster ends, so that neither replicas nor certificates of one kind and of
    /// another are mixed up.
    #[must_use]
    pub const fn end_of_name(self) -> &'static str {
        match self {
            Self::Store => "",
            Self::Program => "/run",
            Self::Values => "/values",
        }
    }

    /// What it is, behind "what there is is".
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Store => "a key-value store",
            Self::Program => "a served program's",
            Self::Values => "values for learners",
        }
    }
}

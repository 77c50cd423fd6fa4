//! Where the value of an option came from.
use std::fmt;
use std::path::PathBuf;

/// Where a value came from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Origin {
    /// The command line.
    Flag,
    /// The environment variable of this name.
    Environment(String),
    /// This configuration file.
    File(PathBuf),
    /// Nobody gave one.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("flag"),
            Self::Environment(variable) => write!(f, "environment variable {variable}"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

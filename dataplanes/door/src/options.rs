//! Options that only one kind of plane has, and what was given for them.
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// The multicast addresses that anybody may use. Those below are for protocols of one network; switches treat
/// them in their own ways.
pub const MULTICAST: RangeInclusive<Ipv4Addr> = RangeInclusive::new(
    Ipv4Addr::new(224, 0, 1, 0),
    Ipv4Addr::new(239, 255, 255, 255),
);

/// An option of a kind of plane.
#[derive(Clone, Copy, Debug)]
pub struct PlaneOption {
    /// Its name, as in `--name`.
    pub name: &'static str,
    /// What values it takes.
    pub kind: OptionKind,
    /// What holds when it is not given.
    pub unset: Unset,
    /// What it is for: one or two sentences.
    pub help: &'static str,
}

/// What values an option takes.
#[derive(Clone, Copy, Debug)]
pub enum OptionKind {
    /// A whole number between two bounds, both allowed.
    Number {
        /// The lowest value.
        min: u64,
        /// The highest value.
        max: u64,
    },
    /// One of a few words.
    Choice(&'static [&'static str]),
    /// Text that is not empty and at most so many bytes long.
    Text {
        /// The limit.
        bytes_max: usize,
    },
    /// An IPv4 address at which several hosts hear, out of [`MULTICAST`].
    Multicast,
}

/// What holds when an option is not given.
#[derive(Clone, Copy, Debug)]
pub enum Unset {
    /// This value, as it could have been given.
    Value(&'static str),
    /// What the text says.
    Otherwise(&'static str),
}

/// What was given for the options of all kinds of planes, or holds without; each is what its option takes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Values(BTreeMap<&'static str, String>);

impl Values {
    /// What was given for this option, or its value when nothing is.
    #[must_use]
    pub fn text(&self, option: &str) -> Option<&str> {
        self.0.get(option).map(String::as_str)
    }

    /// The same, as what it means. `None`, too, if it means nothing, which is refused before.
    #[must_use]
    pub fn parsed<T: FromStr>(&self, option: &str) -> Option<T> {
        self.text(option)?.parse().ok()
    }
}

impl FromIterator<(&'static str, String)> for Values {
    fn from_iter<I: IntoIterator<Item = (&'static str, String)>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

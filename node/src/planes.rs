//! The kinds of data planes that a server may have. Nothing else here or in whoever uses this crate knows one
//! by name: a folder in `dataplanes/` and a line here make a kind known everywhere.
use quorumwire_plane_door::OtherEnd;
pub use quorumwire_plane_door::{
    BoxOption, BoxSetup, Demand, KindOptions, MULTICAST, Note, OpenPlanes, OptionKind, PlaneKind,
    PlaneOption, PlaneSetup, ProgramAt, Remains, Unset, Values, noted_nowhere,
};

/// All of them.
pub static KINDS: &[&PlaneKind] = &[
    // The fastest first: so `auto` tries them. A slower way to run one of them belongs behind the faster one.
    &quorumwire_plane_xdp::KIND,
    &quorumwire_plane_socket::KIND,
    // Behind one that always can: `auto` never takes it.
    #[cfg(feature = "fpga-sim")]
    &quorumwire_plane_fpga::KIND,
];

/// Where the common case runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PlaneChoice {
    /// In the server.
    None,
    /// In a plane of this kind.
    One(&'static PlaneKind),
    /// In the fastest that can run where the server is.
    Auto,
}

impl PlaneChoice {
    /// What a word of the option `plane` means.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        match word {
            "none" => Some(Self::None),
            "auto" => Some(Self::Auto),
            _ => {
                let mut kinds = KINDS.iter().copied();
                kinds.find(|kind| kind.name == word).map(Self::One)
            }
        }
    }

    /// Whether it is this kind.
    #[must_use]
    pub fn wants(self, kind: &PlaneKind) -> Demand {
        match self {
            Self::One(one) if one == kind => Demand::Yes,
            Self::Auto => Demand::IfPossible,
            Self::One(_) | Self::None => Demand::No,
        }
    }

    /// Those kinds of which one is to be opened, the fastest first.
    pub fn candidates(self) -> impl Iterator<Item = &'static PlaneKind> {
        let is_wanted = move |kind: &&PlaneKind| self.wants(kind) != Demand::No;
        KINDS.iter().copied().filter(is_wanted)
    }
}

/// The words of the option `plane`.
#[must_use]
pub fn words() -> Vec<&'static str> {
    let names = KINDS.iter().rev().map(|kind| kind.name);
    ["none"].into_iter().chain(names).chain(["auto"]).collect()
}

/// Those of them that run over the loopback device, several on one.
#[must_use]
pub fn words_on_loopback() -> Vec<&'static str> {
    let kinds = KINDS.iter().rev().filter(|kind| kind.runs_on_loopback);
    let names = kinds.map(|kind| kind.name);
    ["none"].into_iter().chain(names).collect()
}

/// The fastest kind, if it takes a network of its own for each replica.
#[must_use]
pub fn beyond_loopback() -> Option<&'static PlaneKind> {
    KINDS.iter().copied().find(|kind| !kind.runs_on_loopback)
}

/// Whose option this is, if it is one of a kind's own.
#[must_use]
pub fn kind_with_option(name: &str) -> Option<&'static PlaneKind> {
    let has_it = |kind: &&PlaneKind| kind.options.iter().any(|option| option.name == name);
    KINDS.iter().copied().find(has_it)
}

/// The kind whose network has another end to be made ready.
///
/// # Panics
///
/// If no kind has: the command that does it would have nothing to do.
#[must_use]
pub fn other_end() -> OtherEnd {
    let mut ends = KINDS.iter().filter_map(|kind| kind.other_end);
    ends.next().expect("a kind has another end")
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorumwire_interfaces::Counter;
    use std::collections::BTreeSet;

    #[test]
    fn kinds_and_their_options_have_names_of_their_own() {
        let words = words();
        let different: BTreeSet<_> = words.iter().collect();
        assert_eq!(different.len(), KINDS.len() + 2, "{words:?}");
        for word in words {
            let choice = PlaneChoice::named(word).expect("a word means something");
            let count = choice.candidates().count();
            match choice {
                PlaneChoice::None => assert_eq!(count, 0),
                PlaneChoice::One(kind) => assert_eq!((kind.name, count), (word, 1)),
                PlaneChoice::Auto => assert_eq!(count, KINDS.len()),
            }
        }
        assert_eq!(PlaneChoice::named("other"), None);
        for &kind in KINDS {
            for option in kind.options {
                assert_eq!(kind_with_option(option.name), Some(kind));
            }
        }
        assert_eq!(kind_with_option("plane"), None);
    }

    #[test]
    fn what_a_kind_counts_is_told_once_and_in_words() {
        for kind in KINDS {
            let told: Vec<_> = kind.counters.iter().copied().flatten().collect();
            let names: BTreeSet<_> = told.iter().map(|counter| counter.name).collect();
            assert_eq!(names.len(), told.len(), "{told:?}");
            for Counter { name, help } in told {
                assert!(
                    help.len() > name.len() && !help.ends_with('.'),
                    "{name}: {help}"
                );
            }
        }
    }
}

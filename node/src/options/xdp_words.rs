//! The words of options that choose how the plane `xdp` uses its interface.
use quorumwire_plane_xdp::{XdpCopies, XdpMode};

/// The words of `xdp-mode`.
pub const XDP_MODES: &[(&str, XdpMode)] = &[
    ("auto", XdpMode::Auto),
    ("driver", XdpMode::Driver),
    ("generic", XdpMode::Generic),
];

/// The words of `xdp-copies`.
pub const XDP_COPIES: &[(&str, XdpCopies)] =
    &[("auto", XdpCopies::Auto), ("clone", XdpCopies::Clone)];

/// What one of an option's words stands for.
pub fn value_of<T: Copy>(words: &[(&str, T)], word: &str) -> Option<T> {
    let mut values = words.iter();
    values.find_map(|(known, value)| (*known == word).then_some(*value))
}

/// Which of an option's words stands for the value.
pub fn word_of<T: Copy + PartialEq>(words: &[(&'static str, T)], value: T) -> &'static str {
    let mut words = words.iter();
    let found = words.find_map(|(word, known)| (*known == value).then_some(*word));
    found.expect("each value has a word")
}

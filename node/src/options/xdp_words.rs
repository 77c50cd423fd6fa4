//! The words of options that choose how the plane `xdp` uses its interface.
use quorumwire_plane_xdp::{XdpCopies, XdpMode};

const MODES: [XdpMode; 3] = [XdpMode::Auto, XdpMode::Driver, XdpMode::Generic];
const COPIES: [XdpCopies; 2] = [XdpCopies::Auto, XdpCopies::Clone];

/// What `xdp-mode` may be.
pub const MODE_WORDS: [&str; 3] = [
    mode_word(MODES[0]),
    mode_word(MODES[1]),
    mode_word(MODES[2]),
];
/// What `xdp-copies` may be.
pub const COPIES_WORDS: [&str; 2] = [copies_word(COPIES[0]), copies_word(COPIES[1])];

pub const fn mode_word(mode: XdpMode) -> &'static str {
    match mode {
        XdpMode::Auto => "auto",
        XdpMode::Driver => "driver",
        XdpMode::Generic => "generic",
    }
}

pub const fn copies_word(copies: XdpCopies) -> &'static str {
    match copies {
        XdpCopies::Auto => "auto",
        XdpCopies::Clone => "clone",
    }
}

pub fn mode_of(word: &str) -> Option<XdpMode> {
    MODES.into_iter().find(|mode| mode_word(*mode) == word)
}

pub fn copies_of(word: &str) -> Option<XdpCopies> {
    COPIES
        .into_iter()
        .find(|copies| copies_word(*copies) == word)
}

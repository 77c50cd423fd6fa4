//! `COMMAND`: what clients ask to learn which commands there are. Runs none of them.
use super::{Resp, Words, reply};

/// Answers `COMMAND` and its subcommands.
pub fn answer_command(words: &Words<'_>, resp: Resp, out: &mut Vec<u8>) {
    let _ = (words, resp);
    reply::array_header(out, 0);
}

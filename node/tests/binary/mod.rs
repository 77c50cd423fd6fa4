//! The binary that is tested, for the test programs that run its commands.
use std::process::{Command, Stdio};

/// The command with these words, and nothing on its standard input.
pub fn quorumwire(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorumwire"));
    command.args(arguments).stdin(Stdio::null());
    command
}

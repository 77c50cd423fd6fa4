//! What the simulator prints. Whoever stops reading ends it; nothing panics for that.
use std::fmt::Display;
use std::io::{self, ErrorKind, Write as _};
use std::process;

/// What shells show for a program that SIGPIPE has ended.
const READER_GONE: i32 = 141;

/// Prints a line. If that cannot be, the process ends.
pub fn answer(line: impl Display) {
    match writeln!(io::stdout(), "{line}") {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => process::exit(READER_GONE),
        Err(error) => {
            complain(format_args!("standard output: {error}"));
            process::exit(1)
        }
    }
}

/// Prints a line for people, as well as it can be done.
pub fn complain(line: impl Display) {
    writeln!(io::stderr(), "{line}").ok();
}

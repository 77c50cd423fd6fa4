//! Where log messages go: standard error, as text or as JSON lines. Not for what a command answers.
use crate::options::{LogFormat, ServerOptions};
use std::io::IsTerminal as _;
use tracing_subscriber::fmt;

/// Starts logging for the rest of the process; called once.
pub fn start(options: &ServerOptions) {
    let builder = fmt()
        .with_max_level(options.log_level)
        .with_writer(std::io::stderr)
        .with_target(false)
        .with_ansi(std::io::stderr().is_terminal());
    match options.log_format {
        LogFormat::Text => builder.init(),
        LogFormat::Json => builder.json().flatten_event(true).init(),
    }
}

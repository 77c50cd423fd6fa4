//! The `quorumwire` binary: one server, or the tools around a cluster of them. Only reads the command line
//! and turns outcomes into exit codes: 0 done, 1 failed, 2 asked for something that makes no sense, 3 what
//! stands in the log ends the program that is served, 128 + N ended by signal N (141, as by SIGPIPE: nobody
//! read the answer).
#![warn(clippy::print_stdout, clippy::print_stderr)] // these panic where nobody reads: `output` does not
#[macro_use]
mod output;
mod commands;
#[cfg(test)]
mod docs_test;
mod flags;
mod utc;

use quorumwire_node::server::served::ended::EndedByLog;
use quorumwire_node::{logging, options};
use quorumwire_paxos_process::SwitchError;
use std::io::{self, Write as _};
use std::process::ExitCode;

fn main() -> ExitCode {
    let outcome = match commands::parse() {
        Ok(cli) => commands::run(cli),
        Err(error) => match error.downcast::<clap::Error>() {
            Ok(usage) => show_usage(&usage),
            Err(refused) => Err(refused),
        },
    };
    let code = outcome.unwrap_or_else(|error| code_of(&error));
    logging::end();
    code
}

/// What somebody asked for, such as the version, is an answer; anything else a complaint.
fn show_usage(usage: &clap::Error) -> anyhow::Result<ExitCode> {
    let shown = usage.print().and_then(|()| io::stdout().flush());
    if !usage.use_stderr() {
        shown.map_err(output::Unwritten::from)?;
    }
    Ok(ExitCode::from(u8::try_from(usage.exit_code())?))
}

/// Says what went wrong.
fn code_of(error: &anyhow::Error) -> ExitCode {
    let unwritten = error.downcast_ref::<output::Unwritten>();
    if let Some(code) = unwritten.and_then(output::Unwritten::quiet_exit_code) {
        return code;
    }
    if let Some(usage) = error.downcast_ref::<clap::Error>() {
        return show_usage(usage).unwrap_or(ExitCode::FAILURE); // what another command would be told
    }
    let words = format!("error: {error:#}\n");
    if !logging::takes_last_words(&words) {
        output::complain(words);
    }
    let of_switch = error.downcast_ref::<SwitchError>();
    if error.is::<options::Refused>() || of_switch.is_some_and(SwitchError::is_of_options) {
        ExitCode::from(2)
    } else if error.is::<EndedByLog>() {
        ExitCode::from(3)
    } else {
        ExitCode::FAILURE
    }
}

//! The `quorumwire` binary: one server, or the tools around a cluster of them. Only reads the command
//! line and turns outcomes into exit codes: 0 done, 1 failed, 2 asked for something that makes no sense.
mod accounts;
mod admin;
mod commands;
mod descriptors;
#[cfg(test)]
mod docs_test;
#[cfg(test)]
mod fuzz_test;
mod http;
mod key_folder;
mod keys;
mod live;
mod logging;
mod options;
mod privileges;
mod report;
mod server;
mod service_manager;
mod stage;
mod tls;

use clap::Parser as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let outcome = commands::run(commands::Cli::parse());
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        if error.is::<options::Refused>() {
            ExitCode::from(2)
        } else {
            ExitCode::FAILURE
        }
    })
}

//! The command line: which commands there are, and their arguments. Each command's work is in a file
//! of its name.
mod ask;
mod backup;
mod bench;
mod completions;
mod config;
mod confirm;
mod demo;
mod demo_host;
mod demo_network;
mod demo_program;
mod dev;
#[cfg(test)]
mod fuzz_test;
mod interrupt;
mod keys;
mod local_cluster;
mod man;
mod member;
mod memcached;
mod memory;
mod namespaces;
mod new_cluster;
mod progress;
mod quorum;
mod recover;
mod restore;
mod run;
mod server;
mod snapshot;
mod status;
mod switch;
mod top;
mod transfer;
mod values;
mod veth_pass;
mod view;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use quorumwire_node::options::Refused;
use std::ffi::OsString;
use std::process::ExitCode;

/// Replicated key-value store that memcached and Redis clients talk to: three replicas, one of which may fail
/// at any moment without anything acknowledged being lost.
#[derive(Debug, Parser)]
#[command(name = "quorumwire", version, propagate_version = true)]
#[command(max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run one replica
    Server(server::Arguments),
    /// Run one replica of a program that was not written for it
    Run(run::Arguments),
    /// Run a coordinator or an acceptor of a Paxos deployment
    Switch(switch::Arguments),
    /// Run a whole cluster on this machine, for trying things out
    Dev(dev::Arguments),
    /// Watch three replicas lose their leader and go on
    Demo(demo::Arguments),
    /// Break a network that decides values, and mend it, on a page of its own
    DemoNetwork(demo_network::Arguments),
    /// Be a host of `demo-network`, which starts it
    #[command(hide = true)]
    DemoHost(demo_host::Arguments),
    /// Show every replica's state; exit code 1 unless a leader serves
    Status(status::Arguments),
    /// Watch every replica's state and what the cluster does, second by second
    Top(top::Arguments),
    /// List, add, promote or remove members
    Member(member::Arguments),
    /// Transfer leadership
    Transfer(transfer::Arguments),
    /// Take a snapshot now, so that the log can be cut
    Snapshot(snapshot::Arguments),
    /// Copy a running cluster's data into a file, or check such a file
    Backup(backup::Arguments),
    /// Make the data folders of a new cluster out of a backup
    Restore(restore::Arguments),
    /// Make a cluster of one out of a replica whose cluster has lost its majority for good
    Recover(recover::Arguments),
    /// Show or set how many voters must hold a write before it is acknowledged
    Quorum(quorum::Arguments),
    /// Show or set how much memory the items may take, and what happens there
    Memory(memory::Arguments),
    /// Show what is kept for learners of values, or declare lost what one of them lacks
    Values(values::Arguments),
    /// Make and renew the certificates and secrets of a cluster
    Keys(keys::Arguments),
    /// Check a server's configuration without starting it
    Config(config::Arguments),
    #[command(about = quorumwire_node::planes::other_end().about)]
    VethPass(veth_pass::Arguments),
    /// Measure throughput and latency over memcached's or Redis' protocol
    Bench(bench::Arguments),
    /// Write completions for a shell
    Completions(completions::Arguments),
    /// Write manual pages
    Man(man::Arguments),
}

impl Cli {
    /// Refuses what the replica that it starts would refuse in its options.
    fn check_options(&self) -> Result<(), Refused> {
        if let Command::Server(arguments) = &self.command {
            arguments.check()?;
        }
        if let Command::Run(arguments) = &self.command {
            arguments.check()?;
        }
        Ok(())
    }
}

/// Reads the command line, and what the configuration file of `run` adds to it.
pub fn parse() -> anyhow::Result<Cli> {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    let matches = Cli::command().try_get_matches_from(&words)?;
    let cli = Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut Cli::command()))?;
    if let (Command::Run(arguments), Some(given)) =
        (&cli.command, matches.subcommand_matches("run"))
    {
        let of_file = arguments.words_of_file(given)?;
        if !of_file.is_empty() {
            let behind = 2; // the program's name, and the command's
            words.splice(behind..behind, of_file.into_iter().map(Into::into));
            return Ok(Cli::try_parse_from(words)?);
        }
    }
    Ok(cli)
}

/// Carries out a command; the answer is the process's exit code.
pub fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    match cli.command {
        Command::Server(arguments) => server::run(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::Switch(arguments) => switch::run(&arguments),
        Command::Dev(arguments) => dev::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::DemoNetwork(arguments) => demo_network::run(&arguments),
        Command::DemoHost(arguments) => demo_host::run(&arguments),
        Command::Status(arguments) => status::run(&arguments),
        Command::Top(arguments) => top::run(&arguments),
        Command::Member(arguments) => member::run(&arguments),
        Command::Transfer(arguments) => transfer::run(&arguments),
        Command::Snapshot(arguments) => snapshot::run(&arguments),
        Command::Backup(arguments) => backup::run(&arguments),
        Command::Restore(arguments) => restore::run(&arguments),
        Command::Recover(arguments) => recover::run(&arguments),
        Command::Quorum(arguments) => quorum::run(&arguments),
        Command::Memory(arguments) => memory::run(&arguments),
        Command::Values(arguments) => values::run(&arguments),
        Command::Keys(arguments) => keys::run(&arguments),
        Command::Config(arguments) => config::run(&arguments),
        Command::VethPass(arguments) => veth_pass::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Man(arguments) => man::run(&arguments),
    }
}

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}

//! Load for data planes: a client with an ordinary socket, one inside the kernel, and an echo to compare
//! with. Prints one JSON object; starts no replica and makes no network, which `bench/` does.
mod alone;
mod commands;
mod echo;
mod figures;
mod frames;
mod inside;
mod memcached;
mod outside;
mod programs;
mod steps;
mod watched;
mod wire;

use clap::{Args, Parser, Subcommand};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Measures data planes.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// A client with a UDP socket
    Outside(outside::Arguments),
    /// A client in the kernel: each answer becomes the next request there
    Inside(inside::Arguments),
    /// Send back what comes to a port, until standard input ends
    Echo(echo::Arguments),
    /// The plane's programs in several namespaces, without hosts, until standard input ends
    Alone(alone::Arguments),
    /// What a step costs, by role, packet and size, and what of that each check costs
    Steps(steps::Arguments),
}

/// What is asked of whom.
#[derive(Args)]
pub struct Load {
    /// Where the plane or the echo is
    #[arg(long)]
    pub to: SocketAddr,
    /// The clients' keys; none: ask an echo, without a tag
    #[arg(long)]
    pub keys: Option<PathBuf>,
    /// Requests that wait for an answer at a time
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub in_flight: u32,
    /// Bytes of a command, a multiple of 8
    #[arg(long, default_value_t = 64)]
    pub payload_bytes: usize,
    /// How long to measure
    #[arg(long, default_value_t = 1.0)]
    pub seconds: f64,
    /// How long to load before
    #[arg(long, default_value_t = 0.3)]
    pub warm_up_seconds: f64,
}

impl Load {
    /// Both times.
    fn times(&self) -> anyhow::Result<(Duration, Duration)> {
        let time = Duration::try_from_secs_f64;
        Ok((time(self.warm_up_seconds)?, time(self.seconds)?))
    }
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Outside(arguments) => outside::run(&arguments),
        Command::Inside(arguments) => inside::run(&arguments),
        Command::Echo(arguments) => echo::run(&arguments),
        Command::Alone(arguments) => alone::run(&arguments),
        Command::Steps(arguments) => steps::run(&arguments),
    };
    if let Err(error) = done {
        writeln!(io::stderr(), "{error:#}").ok();
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

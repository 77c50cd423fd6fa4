//! `quorumwire veth-pass`: lets frames of a plane at the other end of veth pairs through. Nothing of it stays
//! but a program in the kernel.
use anyhow::Context as _;
use quorumwire_node::planes::other_end;
use std::process::ExitCode;

/// Arguments of `quorumwire veth-pass`.
#[derive(Debug, clap::Args)]
#[command(long_about = other_end().long_about)]
pub struct Arguments {
    /// Names of the interfaces
    #[arg(required = true, value_name = "INTERFACE")]
    interfaces: Vec<String>,
    /// Take the programs away again
    #[arg(long)]
    off: bool,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let end = other_end();
    for interface in &arguments.interfaces {
        let done = if arguments.off {
            (end.undo)(interface)
        } else {
            (end.make_ready)(interface)
        };
        done.with_context(|| format!("interface {interface}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

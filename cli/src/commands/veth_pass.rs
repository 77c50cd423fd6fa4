//! `quorumwire veth-pass`: lets frames of a plane at the other end of veth pairs through. Nothing of it stays
//! but a program in the kernel.
use anyhow::Context as _;
use quorumwire_plane_xdp::{let_pass, stop_passing};
use std::process::ExitCode;

/// Arguments of `quorumwire veth-pass`.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Attach a program that lets everything pass to virtual Ethernet devices, until \
                        `--off` or until they are gone. A veth device delivers what the plane `xdp` at its \
                        other end sends only if it has a program, too: run it for the host's ends of \
                        containers whose replicas have that plane. Needs root, or CAP_BPF and CAP_NET_ADMIN."
)]
pub struct Arguments {
    /// Names of the interfaces
    #[arg(required = true, value_name = "INTERFACE")]
    interfaces: Vec<String>,
    /// Take the programs away again
    #[arg(long)]
    off: bool,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    for interface in &arguments.interfaces {
        let done = if arguments.off {
            stop_passing(interface)
        } else {
            let_pass(interface)
        };
        done.with_context(|| format!("interface {interface}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

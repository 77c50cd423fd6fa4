//! `echo`: the least that an answer from the kernel can cost.
use crate::programs::Programs;
use anyhow::Result;
use std::io::{Read as _, Write as _, stdin, stdout};

#[derive(clap::Args)]
pub struct Arguments {
    /// Network interface
    #[arg(long)]
    interface: String,
    /// UDP port
    #[arg(long)]
    port: u16,
}

/// Echoes until standard input ends.
pub fn run(arguments: &Arguments) -> Result<()> {
    let _programs = Programs::attach("load_echo", &arguments.interface, arguments.port, None)?;
    writeln!(stdout(), "ready")?;
    stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

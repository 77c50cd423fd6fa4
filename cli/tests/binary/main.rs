//! What the binary does as a process of its own: its commands, servers and small clusters, and what is
//! installed with it.
mod arguments;
mod dev;
mod memcached_clients;
mod outputs;
mod packaging;
mod plane_clients;
mod privileges;
mod secured_load;
mod terminals;
mod udp_cluster;
mod unread_log;

use std::process::{Command, Stdio};

/// The command with these words, and nothing on its standard input.
fn quorumwire(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorumwire"));
    command.args(arguments).stdin(Stdio::null());
    command
}

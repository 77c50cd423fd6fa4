//! What happens to the network interface that a data plane in the kernel is attached to, and to the process
//! behind it. Only for clusters whose planes may be in the kernel.

use anyhow::{Context as _, Result, ensure};

use crate::cluster::Cluster;
use crate::network::Machine;
use crate::process::CommandOutput;

/// The program that starts a server with less than root may do.
const STARTER: &str = "setpriv";

/// How [`STARTER`] is told that the server, and whatever it becomes, has no other capabilities than these.
fn only(capabilities: &[&str]) -> Vec<String> {
    let kept: Vec<_> = capabilities
        .iter()
        .map(|name| format!(",+{name}"))
        .collect();
    ["--pdeathsig", "KILL", "--bounding-set"]
        .into_iter()
        .map(String::from)
        .chain([format!("-all{}", kept.concat()), "--".into()])
        .collect()
}

impl Cluster<'_> {
    /// Starts a founder that has only these capabilities, as `setpriv` names them. Its user keeps the name
    /// `root`, so that it may read its files: the kernel asks for nothing but capabilities where programs are
    /// concerned.
    pub fn start_with_capabilities(&mut self, id: u16, capabilities: &[&str]) -> Result<()> {
        self.start_by(id, STARTER.as_ref(), only(capabilities))
    }

    /// As [`Cluster::start_with_capabilities`], for a server that ends by itself: what it said.
    pub fn try_with_capabilities(&self, id: u16, capabilities: &[&str]) -> Result<CommandOutput> {
        self.try_by(id, STARTER.as_ref(), only(capabilities))
    }

    /// Whether a replica's interface has a program.
    pub fn has_program(&self, id: u16) -> Result<bool> {
        Ok(self.network().link(id)?.contains("prog/xdp"))
    }

    /// Lays the cable of a replica anew, whose end at the replica has a new interface.
    pub fn lay_cable(&self, id: u16) -> Result<()> {
        let network = self.network();
        network.lay_cable(id)?;
        self.let_planes_through(&[Machine::Replica(id).port()])
    }

    /// Waits until a replica says that its plane cannot run, with this in the reason.
    pub fn wait_for_plane_fault(&self, id: u16, says: &str) -> Result<()> {
        self.wait_for(
            &format!("the plane of replica {id} to say {says:?}"),
            || {
                let faults = self.status(id)?.faults;
                Ok(faults.iter().any(|fault| fault.contains(says)))
            },
        )
    }

    /// Attaches a program to a replica's interface that lets everything pass.
    pub fn occupy(&self, id: u16) -> Result<()> {
        let done = self.run_at(Machine::Replica(id), &["veth-pass", "eth0"])?;
        ensure!(done.success, "{}", done.stderr);
        Ok(())
    }
    /// Takes it away again.
    pub fn vacate(&self, id: u16) -> Result<()> {
        let done = self.run_at(Machine::Replica(id), &["veth-pass", "--off", "eth0"])?;
        ensure!(done.success, "{}", done.stderr);
        Ok(())
    }

    /// The number of the program at a replica's interface.
    pub fn program(&self, id: u16) -> Result<String> {
        let link = self.network().link(id)?;
        let number = link.split_once("prog/xdp id ");
        let number = number.and_then(|(_, rest)| rest.split_whitespace().next());
        number.map(str::to_owned).context("it has no program")
    }
}

//! The process of a served program: a child of its replica's, which is no child of ours.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};

use crate::cluster::Cluster;

/// One process, told from another that gets its number later.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ServedProcess {
    pid: i32,
    /// When it was started, as the kernel counts.
    since: u64,
}

impl ServedProcess {
    /// The program of a replica that runs: its one child.
    pub fn of(cluster: &Cluster<'_>, id: u16) -> Result<Self> {
        let mut children = Vec::new();
        for thread in fs::read_dir(format!("/proc/{}/task", cluster.pid(id)?))? {
            let made = fs::read_to_string(thread?.path().join("children"))?;
            children.extend(made.split_whitespace().map(str::to_owned));
        }
        ensure!(
            children.len() == 1,
            "replica {id} has the children {children:?}"
        );
        let pid = children[0].parse()?;
        let (_, since) = state(pid).context("a child that is there")?;
        Ok(Self { pid, since })
    }

    /// Whether it is there, and not only its exit status.
    #[must_use]
    pub fn is_running(self) -> bool {
        state(self.pid).is_some_and(|(state, since)| since == self.since && state != 'Z')
    }

    /// Kills it (`SIGKILL`).
    pub fn kill(self) -> Result<()> {
        self.signal(Signal::KILL)
    }

    /// Has it stand still (`SIGSTOP`).
    pub fn halt(self) -> Result<()> {
        self.signal(Signal::STOP)
    }

    /// Has it go on (`SIGCONT`).
    pub fn resume(self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    fn signal(self, signal: Signal) -> Result<()> {
        ensure!(self.is_running(), "{self:?} is gone");
        let pid = Pid::from_raw(self.pid).context("a process id")?;
        Ok(kill_process(pid, signal)?)
    }

    /// The number of the user that it runs as.
    pub fn user(self) -> Result<u32> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid))?;
        let line = status.lines().find_map(|it| it.strip_prefix("Uid:"));
        let real = line.and_then(|it| it.split_whitespace().next());
        Ok(real.context("a user")?.parse()?)
    }
}

/// What a process does, in a letter, and when it was started; none: there is no such process.
fn state(pid: i32) -> Option<(char, u64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Its name, in parentheses, may hold anything.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

//! Limits on open files: of servers, when they start and while they run, and of the test that connects to
//! them.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};

use crate::cluster::Cluster;
use crate::process::CommandOutput;

const STARTER: &str = "prlimit";

impl Cluster<'_> {
    /// Starts a founder that may have so many files open, and not raise that.
    pub fn start_with_open_files(&mut self, id: u16, files: u64) -> Result<()> {
        self.start_by(id, Path::new(STARTER), limited_to(files))
    }

    /// As [`Self::start_with_open_files`], for a server that ends by itself: what it said.
    pub fn try_with_open_files(&self, id: u16, files: u64) -> Result<CommandOutput> {
        self.try_by(id, Path::new(STARTER), limited_to(files))
    }

    /// How many files a replica has open.
    pub fn open_files(&self, id: u16) -> Result<u64> {
        let path = format!("/proc/{}/fd", self.pid(id)?);
        Ok(fs::read_dir(&path).with_context(|| path)?.count() as u64)
    }

    /// From now on a replica may have no more files open than this; it keeps those that it has. What it might
    /// before.
    pub fn limit_open_files(&self, id: u16, files: u64) -> Result<u64> {
        let pid = i32::try_from(self.pid(id)?)?;
        let pid = Pid::from_raw(pid).context("a process has an id")?;
        // Nothing is changed to know what there is: the hard limit stays.
        let maximum = read_hard_limit(pid)?;
        let limit = Rlimit {
            current: Some(files),
            maximum: Some(maximum),
        };
        let before = prlimit(Some(pid), Resource::Nofile, limit)?;
        before.current.context("a limit on open files is a number")
    }
}

fn limited_to(files: u64) -> Vec<String> {
    vec![format!("--nofile={files}:{files}"), "--".into()]
}

fn read_hard_limit(pid: Pid) -> Result<u64> {
    let path = format!("/proc/{}/limits", pid.as_raw_nonzero());
    let limits = fs::read_to_string(&path).with_context(|| path)?;
    let line = limits
        .lines()
        .find_map(|it| it.strip_prefix("Max open files"));
    let hard = line.and_then(|it| it.split_whitespace().nth(1));
    Ok(hard.context("a limit on open files")?.parse()?)
}

/// Has this process, and those that it starts, have as many files open as it may allow itself; how many.
pub fn raise_own_limit() -> Result<u64> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, raised)?;
    limit.maximum.context("a limit on open files is a number")
}

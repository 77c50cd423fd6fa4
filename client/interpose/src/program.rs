//! How a program is started, with the library in it.
use crate::rings::Rings;
use crate::{LIBRARY, SERIAL_LIBRARY, ffi};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};

/// Variables of the environment that the program gets besides those that it is given.
const KEPT_VARIABLES: [&str; 4] = ["PATH", "HOME", "LANG", "TZ"];

/// What is to be started.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its file, or a name to be looked for in `PATH`.
    pub file: OsString,
    /// What it is told.
    pub arguments: Vec<OsString>,
    /// Where it begins.
    pub folder: PathBuf,
    /// More of its environment: an environment that differs is one more thing in which replicas differ.
    pub variables: Vec<(OsString, OsString)>,
    /// Several threads serve, one at a time.
    pub is_serial: bool,
}

/// A program that runs. It ends with the process that started it. Dropped, it is killed, and what it has
/// started with it.
#[derive(Debug)]
pub struct Started {
    /// The process.
    pub child: Child,
    _library: OwnedFd,
}

impl Drop for Started {
    fn drop(&mut self) {
        end_group(&mut self.child).ok();
    }
}

/// Kills the process group that this one leads, and waits for its end.
pub fn end_group(leader: &mut Child) -> io::Result<ExitStatus> {
    let group = i32::try_from(leader.id()).ok().and_then(Pid::from_raw);
    if let Some(group) = group {
        kill_process_group(group, Signal::KILL).ok(); // gone already
    }
    leader.wait()
}

fn library(is_serial: bool) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = rustix::fs::memfd_create("libquorumwire-interpose.so", flags)?;
    let mut left = if is_serial { SERIAL_LIBRARY } else { LIBRARY };
    while !left.is_empty() {
        left = &left[rustix::io::write(&file, left)?..];
    }
    let seals = SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    rustix::fs::fcntl_add_seals(&file, seals)?;
    Ok(file)
}

impl Program {
    /// Starts it.
    pub fn start(&self, rings: &Rings) -> io::Result<Started> {
        let library = library(self.is_serial)?;
        let [memory, door, replica_door] = rings.inherited();
        let kept: [BorrowedFd<'_>; 4] = [memory, door, replica_door, library.as_fd()];
        // As long everywhere: the environment lies on the stack, whose places programs see.
        let numbers = kept.map(|it| format!("{:07}", it.as_raw_fd())).join(",");
        let mut command = Command::new(&self.file);
        command
            .args(&self.arguments)
            .current_dir(&self.folder)
            .process_group(0)
            .env_clear()
            .envs(
                KEPT_VARIABLES
                    .iter()
                    .filter_map(|name| Some((name, std::env::var_os(name)?))),
            )
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .env("QUORUMWIRE_INTERPOSE", numbers)
            .env("LD_PRELOAD", library_path(&library));
        ffi::prepare(&mut command, &kept);
        let child = command.spawn()?;
        Ok(Started {
            child,
            _library: library,
        })
    }

    /// Of this file, without arguments, beginning in this folder.
    #[must_use]
    pub fn of(file: impl AsRef<OsStr>, folder: &Path) -> Self {
        Self {
            file: file.as_ref().to_owned(),
            arguments: Vec::new(),
            folder: folder.to_owned(),
            variables: Vec::new(),
            is_serial: false,
        }
    }
}

fn library_path(library: &OwnedFd) -> String {
    // As long everywhere, too.
    format!("/proc/self/fd{:/>8}", format!("/{}", library.as_raw_fd()))
}

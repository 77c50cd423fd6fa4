//! A terminal without a screen, and a program in it: what is typed goes in, and what would be seen can be
//! read.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use rustix::fs::{Mode, OFlags};
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};
use vt100::Parser;

use crate::cluster::Cluster;
use crate::process::Process;

/// How often a wait looks again.
const POLL_INTERVAL: Duration = Duration::from_millis(25);

/// How much is read at a time.
const CHUNK_BYTES: usize = 16 << 10;

/// A program in a terminal.
#[derive(Debug)]
pub struct Terminal {
    process: Process,
    keys: File,
    /// The program's side, kept open to see what it has set.
    inner: OwnedFd,
    screen: Arc<Mutex<Screen>>,
}

/// What the terminal shows.
struct Screen(Parser);

impl std::fmt::Debug for Screen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.screen().contents())
    }
}

impl Terminal {
    /// Runs a program in the client's machine, in a terminal of its own of that many lines and columns.
    pub fn start(
        cluster: &Cluster<'_>,
        program: &Path,
        arguments: &[String],
        size: (u16, u16),
    ) -> Result<Self> {
        let outer = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&outer)?;
        unlockpt(&outer)?;
        let name = ptsname(&outer, Vec::new())?;
        let path = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let inner = rustix::fs::open(path, flags, Mode::empty())?;
        tcsetwinsize(&outer, winsize(size))?;
        let standard = || inner.try_clone().map(Stdio::from);
        let standard = [standard()?, standard()?, standard()?];
        let process = cluster.start_beside(program, arguments, standard)?;
        let screen = Arc::new(Mutex::new(Screen(Parser::new(size.0, size.1, 0))));
        let output = File::from(outer.try_clone()?);
        let shown = Arc::clone(&screen);
        thread::spawn(move || read(output, &shown));
        Ok(Self {
            process,
            keys: File::from(outer),
            inner,
            screen,
        })
    }

    fn screen(&self) -> MutexGuard<'_, Screen> {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is seen, line by line.
    #[must_use]
    pub fn text(&self) -> String {
        self.screen().0.screen().contents()
    }

    /// Whether a program has the screen for itself.
    #[must_use]
    pub fn is_full_screen(&self) -> bool {
        self.screen().0.screen().alternate_screen()
    }

    /// Whether keys come one by one, unseen, as a program that draws wants them.
    pub fn is_raw(&self) -> Result<bool> {
        let modes = tcgetattr(&self.inner)?.local_modes;
        Ok(!modes.contains(rustix::termios::LocalModes::ICANON))
    }

    /// Waits until what is seen is as wanted.
    pub fn wait_for(
        &self,
        what: &str,
        deadline: Duration,
        condition: impl Fn(&str) -> bool,
    ) -> Result<()> {
        let end = Instant::now() + deadline;
        loop {
            let text = self.text();
            if condition(&text) {
                return Ok(());
            }
            if Instant::now() >= end {
                bail!("waited {deadline:?} in vain for {what}; seen is\n{text}");
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Types this.
    pub fn press(&mut self, keys: &[u8]) -> Result<()> {
        Ok(self.keys.write_all(keys)?)
    }

    /// Makes the terminal larger or smaller, and tells the program as a terminal does.
    pub fn resize(&mut self, size: (u16, u16)) -> Result<()> {
        self.screen().0.screen_mut().set_size(size.0, size.1);
        tcsetwinsize(self.keys.as_fd(), winsize(size))?;
        self.signal(Signal::WINCH)
    }

    /// Sends the program a signal.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        self.process.signal(signal)
    }

    /// Waits until the program has ended, and that it has left the terminal as it was.
    pub fn wait_for_end(&mut self, deadline: Duration) -> Result<ExitStatus> {
        let status = self.process.wait(deadline)?;
        self.wait_for("the end of what was said", deadline, |_| {
            !self.is_full_screen()
        })?;
        ensure!(!self.is_raw()?, "keys are still unseen");
        Ok(status)
    }
}

fn winsize((rows, columns): (u16, u16)) -> Winsize {
    Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

/// Shows what comes, until the terminal is gone.
fn read(mut output: File, screen: &Mutex<Screen>) {
    let mut chunk = vec![0; CHUNK_BYTES];
    while let Ok(length @ 1..) = output.read(&mut chunk) {
        let mut screen = screen.lock().unwrap_or_else(PoisonError::into_inner);
        screen.0.process(&chunk[..length]);
    }
}

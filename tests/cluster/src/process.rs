//! Child processes that cannot outlive the test: killed when dropped, and by the kernel when the test
//! process itself is killed. Knows nothing of what they run.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{self, SendError, Sender};
use std::thread;
use std::time::{Duration, Instant};
use std::{fs, io};

use crate::network::Network;
use anyhow::{Context as _, Result, anyhow, ensure};
use rustix::process::{Pid, Signal, kill_process};

/// How often a wait looks again.
pub const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// How long the programs that start the program may take.
const START_DEADLINE: Duration = Duration::from_secs(10);
/// The ports of a switch let planes through within this time.
const LET_THROUGH_WITHIN: Duration = Duration::from_secs(20);

/// The programs that start the program, and become it.
const STARTERS: [&str; 4] = ["nsenter", "setpriv", "setsid", "prlimit"];

/// How much of a log's end a failed test shows.
const LOG_TAIL_BYTES: u64 = 8 * 1024;

/// A running child process. Killed (`SIGKILL`) and reaped when dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    name: String,
}

impl Process {
    /// Starts `program` with `arguments` in a network namespace (a file as `nsenter --net=` takes it),
    /// with everything it says appended to `log`.
    pub fn start(
        name: &str,
        namespace: &Path,
        program: &Path,
        arguments: &[String],
        log: &Path,
    ) -> Result<Self> {
        let log = File::options().create(true).append(true).open(log)?;
        let mut command = in_namespace(namespace, program, arguments);
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let child = spawn(command).with_context(|| format!("starting {name}"))?;
        let mut process = Self {
            child,
            name: name.into(),
        };
        process.wait_for_program()?;
        Ok(process)
    }

    /// The same for a program that is spoken with: by its standard input and output, or what they are.
    pub fn start_with(
        namespace: &Path,
        program: &Path,
        arguments: &[String],
        [input, output, errors]: [Stdio; 3],
    ) -> Result<Self> {
        let name = program.display().to_string();
        let mut command = in_namespace(namespace, program, arguments);
        command.stdin(input).stdout(output).stderr(errors);
        let child = spawn(command).with_context(|| format!("starting {name}"))?;
        let mut process = Self { child, name };
        process.wait_for_program()?;
        Ok(process)
    }

    /// Where to write what it is to read, and to read what it writes, if these are pipes and were not taken
    /// yet.
    pub fn take_pipes(&mut self) -> Option<(ChildStdin, ChildStdout)> {
        self.child.stdin.take().zip(self.child.stdout.take())
    }

    /// The process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_none())
    }

    /// Sends it a signal; an error if it is gone.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let pid = i32::try_from(self.child.id())?;
        let pid = Pid::from_raw(pid).context("a child has a process id")?;
        kill_process(pid, signal).with_context(|| format!("signal {signal:?} to {}", self.name))
    }

    /// Waits until it has ended by itself; an error after `deadline`.
    pub fn wait(&mut self, deadline: Duration) -> Result<ExitStatus> {
        let end = Instant::now() + deadline;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            ensure!(
                Instant::now() < end,
                "{} has not ended after {deadline:?}",
                self.name
            );
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Waits until what starts the program has become the program: from then on it dies with us and
    /// signals reach it. A program that has already ended has been it, too.
    fn wait_for_program(&mut self) -> Result<()> {
        let end = Instant::now() + START_DEADLINE;
        let image = PathBuf::from(format!("/proc/{}/exe", self.pid()));
        while self.is_running()? {
            let current = fs::read_link(&image).unwrap_or_default();
            let name = current.file_name().unwrap_or_default();
            if !STARTERS.iter().any(|starter| name == *starter) {
                return Ok(());
            }
            ensure!(
                Instant::now() < end,
                "{} has not started after {START_DEADLINE:?}",
                self.name
            );
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Kills it (`SIGKILL`, works on a stopped process too) and waits until it is gone.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only when the process is already gone and reaped.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a finished command said.
#[derive(Clone, Debug)]
pub struct CommandOutput {
    /// Whether it exited with 0.
    pub success: bool,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

/// Runs a command in a network namespace to its end; killed, and an error, after `deadline`. What it
/// says goes through files in `scratch`, so that no full pipe can stop it.
pub fn run_to_end(
    namespace: &Path,
    program: &Path,
    arguments: &[String],
    scratch: &Path,
    deadline: Duration,
) -> Result<CommandOutput> {
    let paths: [PathBuf; 2] = [scratch.join("stdout"), scratch.join("stderr")];
    let mut command = in_namespace(namespace, program, arguments);
    command
        .stdin(Stdio::null())
        .stdout(File::create(&paths[0])?)
        .stderr(File::create(&paths[1])?);
    let mut process = Process {
        child: spawn(command)?,
        name: format!("{} {}", program.display(), arguments.join(" ")),
    };
    let status = process.wait(deadline)?;
    let [stdout, stderr] = paths.map(|path| fs::read(path).unwrap_or_default());
    Ok(CommandOutput {
        success: status.success(),
        stdout: String::from_utf8_lossy(&stdout).into_owned(),
        stderr: String::from_utf8_lossy(&stderr).into_owned(),
    })
}

/// The last lines of a log file, at most 8 KiB; says so if there is none.
#[must_use]
pub fn log_tail(path: &Path) -> String {
    use std::io::{Read as _, Seek as _, SeekFrom};
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(LOG_TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    match read() {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => format!("(no log: {error})"),
    }
}

/// `nsenter` and `setpriv` replace themselves by the program, so the process id stays the same and a
/// signal reaches the program itself.
fn in_namespace(namespace: &Path, program: &Path, arguments: &[String]) -> Command {
    let mut command = Command::new(STARTERS[0]);
    command
        .arg(format!("--net={}", namespace.display()))
        .args(["--", STARTERS[1], "--pdeathsig", "KILL", "--"])
        .arg(program)
        .args(arguments);
    command
}

type Order = (Command, Sender<io::Result<Child>>);

/// Starts a command from a thread that lives as long as this process: the kernel kills a child when
/// the *thread* that started it ends, and a test's threads come and go.
fn spawn(command: Command) -> Result<Child> {
    static SPAWNER: OnceLock<Sender<Order>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (sender, orders) = mpsc::channel::<Order>();
        thread::spawn(move || {
            for (mut command, answer) in orders {
                if let Err(SendError(Ok(mut unwanted))) = answer.send(command.spawn()) {
                    let _ = unwanted.kill();
                    let _ = unwanted.wait();
                }
            }
        });
        sender
    });
    let (answer, outcome) = mpsc::channel();
    spawner
        .send((command, answer))
        .map_err(|_| anyhow!("the thread that starts processes has ended"))?;
    Ok(outcome.recv()??)
}

#[cfg(test)]
#[path = "process_test.rs"]
mod tests;

/// The switch's ports deliver what a plane in the kernel sends only with a program of their own.
pub(crate) fn let_planes_through(
    network: &Network,
    ports: &[String],
    binary: &Path,
    scratch: &Path,
) -> Result<()> {
    let arguments: Vec<String> = ["veth-pass".to_owned()]
        .into_iter()
        .chain(ports.iter().cloned())
        .collect();
    let switch = network.switch_namespace();
    let done = run_to_end(&switch, binary, &arguments, scratch, LET_THROUGH_WITHIN)?;
    ensure!(done.success, "veth-pass: {}", done.stderr);
    Ok(())
}

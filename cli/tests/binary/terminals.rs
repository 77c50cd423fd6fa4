//! Commands whose terminal goes away, whose output nobody reads, whose input is closed, or which are told to
//! end: each ends at once and leaves nothing behind, no process, no folder, no network, no terminal that
//! shows nothing.
use super::quorumwire;
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Action, LocalModes, tcflow, tcgetattr};
use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, pipe};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Longest wait for anything; a machine with two busy cores is slow.
const DEADLINE: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// What a shell shows for a program that SIGHUP or SIGPIPE ended.
const HUNG_UP: i32 = 129;
const UNREAD: i32 = 141;

/// A terminal: whoever holds its outer side sees what is shown, and its inner side is a program's.
struct Terminal {
    /// Held only: with it the terminal goes.
    _outer: OwnedFd,
    inner: OwnedFd,
}

impl Terminal {
    fn new() -> Self {
        let outer = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&outer).unwrap();
        unlockpt(&outer).unwrap();
        let name = ptsname(&outer, Vec::new()).unwrap();
        let path = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let inner = rustix::fs::open(path, flags, Mode::empty()).unwrap();
        Self {
            _outer: outer,
            inner,
        }
    }

    fn standard(&self) -> Stdio {
        self.inner.try_clone().unwrap().into()
    }

    fn is_raw(&self) -> bool {
        let modes = tcgetattr(&self.inner).unwrap().local_modes;
        !modes.contains(LocalModes::ICANON)
    }
}

/// A command that runs. Killed when dropped.
struct Running(Child);

impl Running {
    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.0.id()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    /// Whether the process has said what it does upon this signal. Before, one that is ignored here is
    /// ignored there.
    fn catches(&self, signal: Signal) -> bool {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        mask.is_some_and(|mask| mask >> (signal.as_raw() - 1) & 1 == 1)
    }

    fn wait(&mut self) -> ExitStatus {
        let mut status = None;
        wait_for("the command to end", || {
            status = self.0.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    fn assert_runs(&mut self) {
        let ended = self.0.try_wait().unwrap();
        assert!(ended.is_none(), "{ended:?}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < DEADLINE, "waited too long for {what}");
        thread::sleep(POLL_INTERVAL);
    }
}

fn in_terminal(arguments: &[&str], terminal: &Terminal) -> Running {
    let mut command = quorumwire(arguments);
    command
        .stdin(terminal.standard())
        .stdout(terminal.standard())
        .stderr(terminal.standard());
    Running(command.spawn().unwrap())
}

/// Whether a process runs, not counting one that only waits to be reaped.
fn runs(pid: i64) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
    state.is_some_and(|state| !state.starts_with('Z'))
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().count() == 0
}

/// Shows a cluster that is not there; it is drawn all the same.
fn top(terminal: &Terminal) -> Running {
    let running = in_terminal(&["top", "--addr", "127.0.0.1:1"], terminal);
    wait_for("the screen", || terminal.is_raw());
    running
}

#[test]
fn top_ends_with_its_terminal() {
    let terminal = Terminal::new();
    let mut top = top(&terminal);
    drop(terminal);
    let status = top.wait();
    assert!(status.success(), "{status}");
}

#[test]
fn top_ends_though_its_terminal_stands_still() {
    let terminal = Terminal::new();
    let mut top = top(&terminal);
    tcflow(&terminal.inner, Action::OOff).unwrap(); // as Ctrl-S does
    top.signal(Signal::TERM);
    let status = top.wait();
    assert!(status.success(), "{status}");
    assert!(!terminal.is_raw(), "keys are still unseen");
}

/// A cluster of one in a temporary folder.
struct Dev {
    running: Running,
    replica: i64,
    output: Option<BufReader<std::process::ChildStdout>>,
    folder: tempfile::TempDir,
}

impl Dev {
    fn start(input: Stdio, errors: Stdio) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = quorumwire(&["dev", "--json", "--replicas=1", "--durability=memory"]);
        command.env("TMPDIR", folder.path());
        command.stdin(input).stdout(Stdio::piped()).stderr(errors);
        let mut running = Running(command.spawn().unwrap());
        let mut output = BufReader::new(running.0.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let line: Value = serde_json::from_str(&line).unwrap();
        let replica = line["replicas"][0]["pid"].as_i64().unwrap();
        assert!(runs(replica) && !is_empty(folder.path()));
        Self {
            running,
            replica,
            output: Some(output),
            folder,
        }
    }

    fn assert_ends(mut self, by: &str) {
        let status = self.running.wait();
        assert!(status.success(), "{by}: {status}");
        assert!(!runs(self.replica), "{by}: a replica runs on");
        assert!(is_empty(self.folder.path()), "{by}: a folder is left");
    }
}

#[test]
fn dev_ends_with_whatever_it_has_to_do_with() {
    let mut dev = Dev::start(Stdio::null(), Stdio::inherit());
    dev.output = None;
    dev.assert_ends("the reader of its output");

    let dev = Dev::start(Stdio::null(), Stdio::inherit());
    dev.running.signal(Signal::HUP);
    dev.assert_ends("SIGHUP");

    let mut dev = Dev::start(Stdio::piped(), Stdio::inherit());
    dev.running.assert_runs();
    dev.running.0.stdin = None;
    dev.assert_ends("the pipe on its input");

    let terminal = Terminal::new();
    let dev = Dev::start(terminal.standard(), terminal.standard());
    drop(terminal);
    dev.assert_ends("its terminal");
}

#[test]
fn dev_runs_on_without_input_and_without_a_reader_of_its_complaints() {
    let (input, writer) = pipe().unwrap();
    drop(writer);
    let (reader, errors) = pipe().unwrap();
    drop(reader);
    let mut dev = Dev::start(input.into(), errors.into());
    dev.running.assert_runs();
    dev.running.signal(Signal::TERM);
    dev.assert_ends("SIGTERM");
}

/// A demonstration whose replicas run.
struct Demo {
    running: Running,
    output: Option<BufReader<std::process::ChildStdout>>,
    replicas: Vec<i64>,
    folder: tempfile::TempDir,
}

impl Demo {
    fn start(input: Stdio, errors: Stdio) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = quorumwire(&["demo"]);
        command.env("TMPDIR", folder.path());
        command.stdin(input).stdout(Stdio::piped()).stderr(errors);
        let mut running = Running(command.spawn().unwrap());
        let mut output = BufReader::new(running.0.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("was elected leader") {
            line.clear();
            assert!(output.read_line(&mut line).unwrap() > 0, "it ended");
        }
        let children = format!("/proc/{0}/task/{0}/children", running.0.id());
        let children = fs::read_to_string(children).unwrap();
        let replicas = children.split_whitespace().map(|it| it.parse().unwrap());
        let replicas: Vec<i64> = replicas.collect();
        assert_eq!(replicas.len(), 3, "{children}");
        Self {
            running,
            output: Some(output),
            replicas,
            folder,
        }
    }

    fn assert_ends(mut self, by: &str) {
        let status = self.running.wait();
        // It may have found by itself that nobody reads.
        let is_unread = self.output.is_none() && status.code() == Some(UNREAD);
        assert!(is_unread || status.code() == Some(1), "{by}: {status}");
        for replica in self.replicas {
            assert!(!runs(replica), "{by}: replica {replica} runs on");
        }
        assert!(is_empty(self.folder.path()), "{by}: a folder is left");
        let mine = format!("qwdemo-{}-", self.running.0.id());
        let networks = fs::read_dir("/run/netns").into_iter().flatten();
        let mut networks = networks.map(|it| it.unwrap().file_name());
        let left = networks.find(|name| name.to_string_lossy().starts_with(&mine));
        assert_eq!(left, None, "{by}: a network is left");
    }
}

#[test]
fn the_demonstration_leaves_nothing_behind() {
    for signal in [Signal::HUP, Signal::TERM] {
        let demo = Demo::start(Stdio::null(), Stdio::inherit());
        demo.running.signal(signal);
        demo.assert_ends(&format!("{signal:?}"));
    }

    let mut demo = Demo::start(Stdio::null(), Stdio::inherit());
    demo.output = None;
    demo.assert_ends("the reader of its output");

    let mut demo = Demo::start(Stdio::piped(), Stdio::inherit());
    demo.running.assert_runs();
    demo.running.0.stdin = None;
    demo.assert_ends("the pipe on its input");

    let terminal = Terminal::new();
    let demo = Demo::start(terminal.standard(), terminal.standard());
    drop(terminal);
    demo.assert_ends("its terminal");
}

/// A server that takes every connection and says nothing.
fn silent_server() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

#[test]
fn bench_ends_before_its_time() {
    let (listener, address) = silent_server();
    let arguments = [
        "bench",
        "--seconds=600",
        "--connections=1",
        "--addr",
        &address,
    ];
    let bench = |command: &mut Command| {
        let running = Running(command.spawn().unwrap());
        // Not the connection alone: it may be that of a test which has left this port to the system.
        wait_for("signals to be caught", || running.catches(Signal::INT));
        listener.accept().unwrap();
        running
    };
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let mut bench = bench(quorumwire(&arguments).stdout(Stdio::null()));
        bench.signal(signal);
        let status = bench.wait();
        assert_eq!(status.signal(), Some(signal.as_raw()), "{status}");
    }
    let (reader, writer) = pipe().unwrap();
    let mut unread = bench(quorumwire(&arguments).stdout(writer));
    drop(reader);
    assert_eq!(unread.wait().code(), Some(UNREAD));

    let terminal = Terminal::new();
    let mut hung_up = bench(quorumwire(&arguments).stdout(terminal.standard()));
    drop(terminal);
    assert_eq!(hung_up.wait().code(), Some(HUNG_UP));
}

#[test]
fn a_backup_that_is_cut_short_leaves_no_file() {
    let (_listener, address) = silent_server();
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("backup");
    let to = to.to_str().unwrap();
    let arguments = ["backup", "--stale", "--to", to, "--addr", &address];
    let backup = |command: &mut Command| {
        let running = Running(command.spawn().unwrap());
        wait_for("a file to be begun", || !is_empty(folder.path()));
        running
    };
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let mut backup = backup(&mut quorumwire(&arguments));
        backup.signal(signal);
        let status = backup.wait();
        assert_eq!(status.signal(), Some(signal.as_raw()), "{status}");
        assert!(is_empty(folder.path()), "{signal:?} leaves a file");
    }
    let (reader, writer) = pipe().unwrap();
    let mut unread = backup(quorumwire(&arguments).stdout(writer));
    drop(reader);
    assert_eq!(unread.wait().code(), Some(UNREAD));
    assert!(is_empty(folder.path()), "a reader that goes leaves a file");

    let terminal = Terminal::new();
    let mut hung_up = backup(quorumwire(&arguments).stdout(terminal.standard()));
    drop(terminal);
    assert_eq!(hung_up.wait().code(), Some(HUNG_UP));
    assert!(
        is_empty(folder.path()),
        "a terminal that goes leaves a file"
    );
}

#[test]
fn who_is_to_outlive_a_terminal_does() {
    let (listener, address) = silent_server();
    let terminal = Terminal::new();
    let mut command = Command::new("sh");
    command
        .args(["-c", "trap '' HUP; exec \"$0\" \"$@\""])
        .arg(env!("CARGO_BIN_EXE_quorumwire"))
        .args([
            "bench",
            "--seconds=600",
            "--connections=1",
            "--addr",
            &address,
        ])
        .stdin(terminal.standard())
        .stdout(Stdio::null());
    let mut bench = Running(command.spawn().unwrap());
    let (mut asked, _) = listener.accept().unwrap();
    asked.read_exact(&mut [0; 3]).unwrap(); // it listens by now
    drop(terminal);
    bench.signal(Signal::HUP);
    asked.read_exact(&mut [0; 3]).unwrap();
    bench.assert_runs();
    bench.signal(Signal::TERM);
    assert_eq!(bench.wait().signal(), Some(Signal::TERM.as_raw()));
}

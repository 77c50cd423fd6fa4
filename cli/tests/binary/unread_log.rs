//! A server whose log cannot be written: nobody reads it any more, its disk is full, or whoever reads it
//! stands still. It serves on, says how much was lost, and ends in good order.
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _, pipe};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Longest wait for anything; a machine with two busy cores is slow.
const DEADLINE: Duration = Duration::from_mins(1);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// One replica that is a cluster, its data on disk. Killed when dropped.
struct Server {
    process: Child,
    memcached: String,
    http: String,
}

fn command(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorumwire"));
    command.arg("server").arg("--dir").arg(dir).args([
        "--id=0",
        "--members=0=127.0.0.1:1",
        "--listen-peer=127.0.0.1:0",
        "--listen-memcached=127.0.0.1:0",
        "--listen-redis=127.0.0.1:0",
        "--listen-client=127.0.0.1:0",
        "--listen-http=127.0.0.1:0",
        "--die-with-parent",
        &std::process::id().to_string(),
    ]);
    command.stdin(Stdio::null());
    command
}

impl Server {
    fn start(dir: &Path, stderr: impl Into<Stdio>) -> Self {
        Self::run(dir, command(dir).stderr(stderr))
    }

    /// Starts it, and waits until it serves.
    fn run(dir: &Path, command: &mut Command) -> Self {
        let mut server = Self {
            process: command.spawn().unwrap(),
            memcached: String::new(),
            http: String::new(),
        };
        server.wait_for("it to serve", |server| {
            let Ok(http) = fs::read_to_string(dir.join("http-address")) else {
                return false;
            };
            let status = Command::new(env!("CARGO_BIN_EXE_quorumwire"))
                .args(["status", "--json", "--addr", http.trim()])
                .output()
                .unwrap();
            let json: Value = serde_json::from_slice(&status.stdout).unwrap_or_default();
            let own = json["replicas"][0]["report"]["memcached"].as_str();
            http.trim().clone_into(&mut server.http);
            own.unwrap_or_default().clone_into(&mut server.memcached);
            status.status.success()
        });
        server
    }

    /// Waits for something while it runs.
    fn wait_for(&mut self, what: &str, mut condition: impl FnMut(&mut Self) -> bool) {
        let begun = Instant::now();
        while !condition(self) {
            let ended = self.process.try_wait().unwrap();
            assert!(
                ended.is_none(),
                "waited for {what}, and it ended: {ended:?}"
            );
            assert!(begun.elapsed() < DEADLINE, "waited too long for {what}");
            thread::sleep(POLL_INTERVAL);
        }
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.process.id()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    /// Has it log a line.
    fn reload(&self) {
        self.signal(Signal::HUP);
    }

    fn ask(address: &str, request: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn set(&self, key: &str) {
        let request = format!("set {key} 0 0 4\r\nkept\r\nquit\r\n");
        assert_eq!(Self::ask(&self.memcached, &request), "STORED\r\n");
    }

    fn has(&self, key: &str) -> bool {
        let request = format!("get {key}\r\nquit\r\n");
        Self::ask(&self.memcached, &request).starts_with("VALUE")
    }

    fn lines_dropped(&self) -> u64 {
        let page = Self::ask(
            &self.http,
            "GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
        );
        let name = "quorumwire_log_lines_dropped_total ";
        let count = page.lines().find_map(|line| line.strip_prefix(name));
        count.expect("the metric").parse().unwrap()
    }

    /// It is told to end, and does so in good order.
    fn stop(mut self) {
        self.signal(Signal::TERM);
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                break status;
            }
            assert!(begun.elapsed() < DEADLINE, "it does not end");
            thread::sleep(POLL_INTERVAL);
        };
        assert!(status.success(), "{status}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// What was acknowledged is there after the next start.
fn assert_kept(dir: &Path, key: &str) {
    let server = Server::start(dir, Stdio::null());
    assert!(server.has(key), "{key}");
    server.stop();
}

#[test]
fn a_log_that_nobody_reads_or_that_has_no_room_stops_nothing() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let (reader, unread) = pipe().unwrap();
    drop(reader);
    for nowhere in [Stdio::from(full), Stdio::from(unread)] {
        let dir = tempfile::tempdir().unwrap();
        let mut server = Server::start(dir.path(), nowhere);
        server.set("key");
        server.wait_for("lines to be dropped", |it| it.lines_dropped() > 0);
        let before = server.lines_dropped();
        server.reload();
        server.wait_for("one more", |it| it.lines_dropped() > before);
        server.stop();
        assert_kept(dir.path(), "key");
    }
}

#[test]
fn a_log_reader_that_stands_still_stops_nothing_not_even_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let (_reader, writer) = pipe().unwrap();
    let filler = writer.try_clone().unwrap();
    rustix::io::ioctl_fionbio(&filler, true).unwrap();
    while rustix::io::write(&filler, b"x").is_ok() {}
    rustix::io::ioctl_fionbio(&filler, false).unwrap(); // both are one
    let server = Server::start(dir.path(), writer);
    for n in 0..100 {
        server.reload();
        server.set(&format!("key-{n}"));
    }
    server.stop();
    assert_kept(dir.path(), "key-99");
}

#[test]
fn once_it_can_write_again_it_says_how_much_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let both = || File::options().read(true).write(true).open(&fifo).unwrap();
    let reader = both();
    let writer = File::options().write(true).open(&fifo).unwrap();
    let mut server = Server::start(&dir.path().join("data"), writer);
    assert_eq!(server.lines_dropped(), 0);
    drop(reader);
    server.reload();
    server.wait_for("a line to be dropped", |it| it.lines_dropped() > 0);
    let lost = server.lines_dropped();

    let reader = both();
    server.reload();
    let told = format!("or the disk was full count={lost}");
    let (read, lines) = mpsc::channel();
    thread::spawn(move || {
        let lines = BufReader::new(reader).lines().map_while(Result::ok);
        lines.for_each(|line| read.send(line).unwrap_or_default());
    });
    let line = loop {
        let line = lines.recv_timeout(DEADLINE).expect("a line in time");
        println!("{line}");
        if line.contains("WARN") && line.contains("dropped") {
            break line;
        }
    };
    assert!(line.ends_with(&told), "{line}");
    assert_eq!(server.lines_dropped(), lost, "nothing more was lost");
    server.stop();
}

#[test]
fn nothing_of_a_server_lands_where_its_standard_files_were_closed() {
    let dir = tempfile::tempdir().unwrap();
    let inner = command(dir.path());
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "exec \"$0\" \"$@\" <&- >&- 2>&-"])
        .arg(inner.get_program())
        .args(inner.get_args());
    let server = Server::run(dir.path(), &mut shell);
    for standard in 0..=2 {
        let at = fs::read_link(format!("/proc/{}/fd/{standard}", server.process.id())).unwrap();
        assert_eq!(at, Path::new("/dev/null"), "{standard}");
    }
    server.set("key");
    server.stop();
    assert_kept(dir.path(), "key");
}

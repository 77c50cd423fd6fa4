//! The option `user`, where a server is refused or warned; what it can do afterwards, `tests/cluster` tries.
//! As root: anybody else has nothing to give up.
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const UID: u32 = 65_534;
const DEADLINE: Duration = Duration::from_mins(1);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Without root these tests fail: one that did nothing would pass.
fn require_root() {
    assert!(
        rustix::process::geteuid().is_root(),
        "this takes root, as `make test` does"
    );
}

/// A replica alone, at ports that are free.
fn server(dir: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorumwire"));
    command
        .args(["server", "--id", "0", "--members", "0=127.0.0.1:1", "--dir"])
        .arg(dir)
        .args(["--advertise-peer", "127.0.0.1:1"])
        .args(more)
        .stdin(Stdio::null());
    for port in ["peer", "memcached", "redis", "client", "http"] {
        command.args([&format!("--listen-{port}"), "127.0.0.1:0"]);
    }
    command
}

fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < DEADLINE, "waited too long for {what}");
        thread::sleep(POLL_INTERVAL);
    }
}

fn refused(output: &Output, parts: &[&str]) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    for part in parts {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
}

/// A folder that every user may pass.
fn scratch() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

/// Copies the server by a process of its own: a file that this one writes is open for writing in children
/// that other tests start meanwhile, and then cannot be run.
fn copy_binary(to: &Path) {
    let copied = Command::new("cp")
        .arg(env!("CARGO_BIN_EXE_quorumwire"))
        .arg(to)
        .status()
        .unwrap();
    assert!(copied.success());
}

#[test]
fn a_user_that_cannot_be_is_refused_by_name() {
    require_root();
    let scratch = scratch();
    let dir = scratch.path().join("data");
    let output = server(&dir, &["--user", "no-such-user"]).output().unwrap();
    refused(&output, &["option user: no-such-user", "/etc/passwd"]);
    let output = server(&dir, &["--user", "1:x"]).output().unwrap();
    refused(&output, &["option user: 1:x", "two numbers"]);
    // Somebody else cannot become anybody.
    let binary = scratch.path().join("quorumwire");
    copy_binary(&binary);
    let output = Command::new("setpriv")
        .args(["--reuid", "65533", "--regid", "65533", "--clear-groups"])
        .arg(&binary)
        .args(server(&dir, &["--user", "nobody"]).get_args())
        .output()
        .unwrap();
    refused(
        &output,
        &["option user: nobody", "as user 65533", "only root"],
    );
}

#[test]
fn a_folder_that_is_not_the_users_is_refused_with_the_command_that_helps() {
    require_root();
    let scratch = scratch();
    let dir = scratch.path().join("data");
    let shown = dir.display().to_string();
    let run = || server(&dir, &["--user", "nobody"]).output().unwrap();
    fs::create_dir_all(dir.join("group-0")).unwrap();
    let helps = format!("chown -R {UID}:65534 {shown}");
    refused(&run(), &["option dir", "belongs to user 0", &helps]);
    // Something of an earlier start as root within it.
    chown(&dir, Some(UID), Some(UID)).unwrap();
    chown(dir.join("group-0"), Some(UID), Some(UID)).unwrap();
    fs::write(dir.join("group-0/log"), "").unwrap();
    refused(&run(), &[&format!("{shown}/group-0/log belongs to user 0")]);
    fs::remove_file(dir.join("group-0/log")).unwrap();
    // A folder above it does not let the user pass.
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o700)).unwrap();
    refused(&run(), &["option dir", "nobody (option user) cannot use"]);
}

/// A server that says to us that it serves. Killed when dropped.
struct Serving {
    process: Child,
    notices: UnixDatagram,
}

impl Serving {
    fn start(scratch: &Path, more: &[&str]) -> Self {
        let socket = scratch.join("notify");
        let notices = UnixDatagram::bind(&socket).unwrap();
        notices.set_read_timeout(Some(DEADLINE)).unwrap();
        // Whoever the server becomes may write there.
        fs::set_permissions(&socket, fs::Permissions::from_mode(0o777)).unwrap();
        let log = fs::File::create(scratch.join("log")).unwrap();
        let process = server(&scratch.join("data"), more)
            .env("NOTIFY_SOCKET", &socket)
            .stderr(log)
            .spawn()
            .unwrap();
        Self { process, notices }
    }

    fn wait_for(&self, notice: &str) {
        let mut bytes = [0; 256];
        loop {
            let length = self.notices.recv(&mut bytes).expect("a notice in time");
            let lines = String::from_utf8_lossy(&bytes[..length]).into_owned();
            if lines.lines().any(|line| line == notice) {
                return;
            }
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn systemd_hears_when_a_replica_serves_and_when_it_stops() {
    let scratch = scratch();
    let mut serving = Serving::start(scratch.path(), &[]);
    serving.wait_for("READY=1");
    let pid = rustix::process::Pid::from_child(&serving.process);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    serving.wait_for("STOPPING=1");
    assert!(serving.process.wait().unwrap().success());
}

#[test]
fn root_is_told_of_the_option_and_a_user_is_not() {
    require_root();
    for (more, warned, uid) in [
        (&[][..], true, 0),
        (&["--user", "root"], false, 0),
        (&["--user", "nobody"], false, UID),
        (&["--user", "65534:65533"], false, UID),
    ] {
        let scratch = scratch();
        let serving = Serving::start(scratch.path(), more);
        serving.wait_for("READY=1");
        let log = fs::read_to_string(scratch.path().join("log")).unwrap();
        assert_eq!(log.contains("set option user"), warned, "{log}");
        let mark = scratch.path().join("data/was-member");
        assert_eq!(fs::metadata(mark).unwrap().uid(), uid, "{more:?}");
    }
}

#[test]
fn a_port_that_takes_a_capability_keeps_it() {
    require_root();
    let scratch = scratch();
    let member = "0=127.77.0.1:77"; // no test beside this one listens there
    let log = scratch.path().join("log");
    let mut process = Command::new(env!("CARGO_BIN_EXE_quorumwire"))
        .args([
            "server",
            "--id",
            "0",
            "--members",
            member,
            "--insecure",
            "--dir",
        ])
        .arg(scratch.path().join("data"))
        .args(["--listen-peer", &member[2..], "--user", "nobody"])
        .args([
            "--listen-memcached",
            "127.0.0.1:0",
            "--listen-redis",
            "127.0.0.1:0",
            "--listen-client",
            "127.0.0.1:0",
        ])
        .args(["--listen-http", "127.0.0.1:0"])
        .stderr(fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    wait_for("the server to start", || {
        fs::read_to_string(&log)
            .unwrap()
            .contains("replica started")
    });
    let status = fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    process.kill().unwrap();
    process.wait().unwrap();
    assert!(status.contains("CapPrm:\t0000000000000400\n"), "{status}");
}

/// Under a service manager a server has a session of its own; whoever starts it from a shell shares that
/// shell's, which a container may not even show.
#[test]
fn the_priority_of_a_session_is_raised_if_it_is_the_servers_own() {
    const RAISED: &str = "nice -10";
    let session = |process: &str| fs::read_to_string(format!("/proc/{process}/autogroup"));
    require_root();
    let Ok(before) = session("self") else {
        let switch = Path::new("/proc/sys/kernel/sched_autogroup_enabled");
        assert!(
            !switch.exists(),
            "sessions have a share, which does not show"
        );
        println!("nothing to raise: this kernel gives sessions no share");
        return;
    };
    // Both become the server or end it with themselves; `setsid` leads no group of processes.
    let outside = ["unshare", "--pid", "--fork", "--kill-child"];
    for starter in [&[][..], &["setsid"], &outside] {
        let is_own = starter == ["setsid"];
        let scratch = scratch();
        let log = scratch.path().join("log");
        let server = server(&scratch.path().join("data"), &["--insecure"]);
        let mut command = if let [program, arguments @ ..] = starter {
            let mut command = Command::new(program);
            command
                .args(arguments)
                .arg(server.get_program())
                .args(server.get_args());
            command
        } else {
            server
        };
        let log_file = fs::File::create(&log).unwrap();
        let mut process = command.stderr(log_file).spawn().unwrap();
        wait_for("the server to start", || {
            let log = fs::read_to_string(&log).unwrap();
            log.contains("replica started") || process.try_wait().unwrap().is_some()
        });
        let found = session(&process.id().to_string());
        process.kill().unwrap();
        process.wait().unwrap();
        let (found, log) = (found.unwrap(), fs::read_to_string(&log).unwrap());
        assert!(log.contains("replica started"), "{log}");
        assert_eq!(found.trim_end().ends_with(RAISED), is_own, "{found}, {log}");
    }
    assert_eq!(session("self").unwrap(), before);
}

/// Whether a process runs, not counting one that only waits to be reaped.
fn runs(pid: u64) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
    state.is_some_and(|state| !state.starts_with('Z'))
}

/// The kernel forgets with whom a process dies when that becomes another user.
#[test]
fn replicas_that_became_another_user_still_end_with_their_parent() {
    require_root();
    let scratch = scratch();
    let data = scratch.path().join("data");
    let mut parent = Command::new("sh")
        .args(["-c", "\"$0\" \"$@\" --die-with-parent $$ & echo $!; wait"])
        .arg(env!("CARGO_BIN_EXE_quorumwire"))
        .args(server(&data, &["--user", "nobody"]).get_args())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(parent.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    let replica = line.trim().parse().unwrap();
    let serves = data.join("http-address");
    wait_for("the server to start", || serves.exists());
    let status = fs::read_to_string(format!("/proc/{replica}/status")).unwrap();
    assert!(status.contains("\nUid:\t65534\t"), "{status}");
    parent.kill().unwrap();
    parent.wait().unwrap();
    wait_for("the replica to end", || !runs(replica));
}

/// As the unit starts it: not as root, with capabilities that this plane does not take.
#[test]
fn what_systemd_gave_and_nobody_needs_is_given_up() {
    require_root();
    let scratch = scratch();
    let binary = scratch.path().join("quorumwire");
    copy_binary(&binary);
    chown(scratch.path(), Some(UID), Some(UID)).unwrap();
    let kept = "+bpf,+net_admin,+perfmon";
    let mut process = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .args(["--inh-caps", kept, "--ambient-caps", kept, "--"])
        .arg(&binary)
        .args(server(&scratch.path().join("data"), &["--user", "nobody"]).get_args())
        .spawn()
        .unwrap();
    let serves = scratch.path().join("data/http-address");
    wait_for("the server to start", || serves.exists());
    let status = fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    process.kill().unwrap();
    process.wait().unwrap();
    for name in ["CapEff", "CapPrm", "CapAmb", "CapInh"] {
        let none = format!("{name}:\t0000000000000000\n");
        assert!(status.contains(&none), "{status}");
    }
    assert!(status.contains("NoNewPrivs:\t1\n"), "{status}");
}

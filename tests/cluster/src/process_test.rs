//! Tests of child processes: they obey, and they do not outlive anybody.

use std::io::{BufRead as _, BufReader};

use super::*;
use crate::network::is_running;
use crate::switches::PLAYS_VICTIM;

const DEADLINE: Duration = Duration::from_secs(10);
const OWN_NAMESPACE: &str = "/proc/self/ns/net";

fn sleeper() -> Process {
    let arguments = ["1000".to_string()];
    let (namespace, log) = (Path::new(OWN_NAMESPACE), Path::new("/dev/null"));
    Process::start("sleeper", namespace, Path::new("sleep"), &arguments, log).expect("start")
}

fn wait_until_gone(pid: u32) -> bool {
    let end = Instant::now() + DEADLINE;
    while is_running(pid) && Instant::now() < end {
        thread::sleep(POLL_INTERVAL);
    }
    !is_running(pid)
}

#[test]
fn outlives_the_thread_that_started_it_but_not_its_handle() {
    let mut process = thread::spawn(sleeper).join().expect("join");
    let pid = process.pid();
    // The kernel delivers a dead thread's last wish before the thread can be joined.
    assert!(process.is_running().expect("wait"));
    drop(process);
    assert!(!is_running(pid));
}

#[test]
fn obeys_signals_and_the_deadline_of_a_wait() {
    let mut process = sleeper();
    let late = process.wait(Duration::from_millis(20));
    assert!(
        late.expect_err("still runs")
            .to_string()
            .contains("sleeper has not ended")
    );
    process.signal(Signal::STOP).expect("stop");
    process.signal(Signal::TERM).expect("term");
    process.signal(Signal::CONT).expect("continue");
    let status = process.wait(DEADLINE).expect("ends");
    assert!(!status.success());
}

#[test]
fn runs_commands_to_their_end_and_not_longer() {
    let scratch = std::env::temp_dir().join(format!("qwtest-{}-scratch", std::process::id()));
    fs::create_dir_all(&scratch).expect("scratch");
    let run = |script: &str, deadline| {
        let arguments = ["-c".to_string(), script.to_string()];
        let namespace = Path::new(OWN_NAMESPACE);
        run_to_end(namespace, Path::new("sh"), &arguments, &scratch, deadline)
    };
    let finished = run("echo said; echo complained >&2; exit 3", DEADLINE).expect("ends");
    assert!(!finished.success);
    assert_eq!(
        (&*finished.stdout, &*finished.stderr),
        ("said\n", "complained\n")
    );
    assert!(run("true", DEADLINE).expect("ends").success);
    let late = run("exec sleep 1000", Duration::from_millis(20));
    assert!(
        late.expect_err("too slow")
            .to_string()
            .contains("has not ended")
    );
    assert_eq!(log_tail(&scratch.join("stdout")), "");
    assert!(log_tail(&scratch.join("nothing")).starts_with("(no log"));
    fs::remove_dir_all(&scratch).expect("remove");
}

#[test]
fn children_die_with_a_run_that_is_killed() {
    if std::env::var_os(PLAYS_VICTIM).is_some() {
        let process = sleeper();
        println!("\nchild {}", process.pid());
        loop {
            thread::park();
        }
    }
    let mut victim = Command::new(std::env::current_exe().expect("own path"))
        .args([
            "--exact",
            "process::tests::children_die_with_a_run_that_is_killed",
        ])
        .arg("--nocapture")
        .env(PLAYS_VICTIM, "1")
        .stdout(Stdio::piped())
        .spawn()
        .expect("start");
    let output = BufReader::new(victim.stdout.take().expect("piped"));
    let child = output
        .lines()
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix("child ")?.parse::<u32>().ok());
    victim.kill().expect("kill");
    victim.wait().expect("wait");
    let child = child.expect("the victim names its child");
    assert!(wait_until_gone(child));
}

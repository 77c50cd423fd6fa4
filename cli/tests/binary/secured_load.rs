//! The load of `quorumwire bench` where servers speak TLS and clients have accounts.
use super::quorumwire;
use serde_json::Value;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Longest wait for anything; a machine with two busy cores is slow.
const DEADLINE: Duration = Duration::from_mins(1);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

fn run(arguments: &[&str]) -> Output {
    quorumwire(arguments).output().unwrap()
}

/// A server, killed when this is dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// A cluster of one with TLS and accounts at its ports for clients.
fn start(
    dir: &str,
    keys: &str,
    accounts: &str,
    [peer, memcached, redis, http]: &[String; 4],
) -> Server {
    let key = |file: &str| format!("{keys}/{file}");
    let process = quorumwire(&[
        "server",
        "--id",
        "0",
        "--dir",
        dir,
        "--durability",
        "memory",
    ])
    .args(["--cluster", "bench", "--members", &format!("0={peer}")])
    .args(["--listen-peer", peer, "--listen-memcached", memcached])
    .args(["--listen-redis", redis, "--listen-http", http])
    .args(["--listen-client", "127.0.0.1:0", "--client-tls", "on"])
    .args([
        "--tls-ca",
        &key("ca.pem"),
        "--tls-cert",
        &key("replica-0.pem"),
    ])
    .args(["--tls-key", &key("replica-0-key.pem")])
    .args(["--client-auth-file", accounts])
    .args(["--die-with-parent", &std::process::id().to_string()])
    .stderr(Stdio::null())
    .spawn()
    .unwrap();
    let begun = Instant::now();
    while !run(&["status", "--addr", http, "--tls-ca", &key("ca.pem")])
        .status
        .success()
    {
        assert!(begun.elapsed() < DEADLINE, "waited too long for a leader");
        thread::sleep(POLL_INTERVAL);
    }
    Server(process)
}

/// Addresses that nobody listens at just now.
fn free_addresses() -> [String; 4] {
    let held = [(); 4].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    held.each_ref()
        .map(|it| it.local_addr().unwrap().to_string())
}

fn written(path: &Path, text: &str) -> String {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn servers_with_tls_and_accounts_are_measured() {
    let dir = tempfile::tempdir().unwrap();
    let accounts = written(&dir.path().join("accounts"), "ann:secret\n");
    let wrong = written(&dir.path().join("wrong"), "ann:guess\n");
    let folder = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let keys = folder("keys");
    let made = [
        "keys",
        "new",
        "--dir",
        &keys,
        "--cluster",
        "bench",
        "--members",
        "0=127.0.0.1",
    ];
    assert!(run(&made).status.success());
    let addresses = free_addresses();
    let _server = start(&folder("data"), &keys, &accounts, &addresses);
    let ca = format!("{keys}/ca.pem");
    for (protocol, address) in [("memcached", &addresses[1]), ("redis", &addresses[2])] {
        let load = [
            "bench",
            "--json",
            "--operations",
            "500",
            "--write-percent",
            "50",
        ];
        let to = ["--protocol", protocol, "--addr", address];
        let bench = |more: &[&str]| run(&[&load[..], &to, more].concat());

        let measured = bench(&["--tls-ca", &ca, "--account-file", &accounts]);
        assert!(measured.status.success(), "{protocol}: {measured:?}");
        let figures: Value = serde_json::from_slice(&measured.stdout).unwrap();
        assert_eq!(figures["operations"], 500, "{protocol}: {figures}");
        assert_eq!(figures["misses"], 0, "{protocol}: {figures}");

        for (more, says) in [
            (vec![], "--tls-ca FILE"),
            (vec!["--tls-ca", &ca], "--account-file FILE"),
            (
                vec!["--tls-ca", &ca, "--account-file", &wrong],
                "--account-file FILE",
            ),
        ] {
            let refused = bench(&more);
            let said = String::from_utf8_lossy(&refused.stderr);
            assert_eq!(
                refused.status.code(),
                Some(1),
                "{protocol} {more:?}: {said}"
            );
            assert!(
                said.contains(says) && said.lines().count() == 1,
                "{protocol} {more:?}: {said}"
            );
        }
    }

    // Whoever administers it in the clear is told so at once, in one line, and that nothing was done.
    let http = &addresses[3];
    for command in [
        vec!["status"],
        vec!["transfer"],
        vec!["member", "list"],
        vec!["quorum", "all"],
        vec!["snapshot"],
    ] {
        let begun = Instant::now();
        let asked = run(&[&command[..], &["--addr", http]].concat());
        let said = [asked.stdout, asked.stderr].concat();
        // What is too long for a terminal of 80 columns goes on behind two blanks.
        let said = String::from_utf8(said).unwrap().replace("\n  ", " ");
        assert_eq!(asked.status.code(), Some(1), "{command:?}: {said}");
        assert!(said.contains("--tls-ca FILE"), "{command:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{command:?}: {said}");
        assert!(!said.contains("carried out"), "{command:?}: {said}");
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "{command:?}: {said}"
        );
    }
}

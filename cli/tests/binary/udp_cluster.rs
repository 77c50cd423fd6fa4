//! A cluster of `quorumwire dev`, and a memcached client that speaks UDP, made by hand.
use quorumwire_client::planes::ClientKeys;
use quorumwire_interfaces::PlaneKeyPair;
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Longest wait for anything; a machine with two busy cores is slow.
const DEADLINE: Duration = Duration::from_mins(1);
/// A datagram, or its answer, may be lost: asked again after this.
const ASK_AGAIN: Duration = Duration::from_secs(2);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

pub fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < DEADLINE, "waited too long for {what}");
        thread::sleep(POLL_INTERVAL);
    }
}

/// A running `quorumwire dev`. Killed when dropped, and its replicas with it.
pub struct Cluster {
    process: Child,
    dir: tempfile::TempDir,
    line: Value,
}

impl Cluster {
    pub fn start(dev_options: &[&str], server_options: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("dev");
        let mut process = Command::new(env!("CARGO_BIN_EXE_quorumwire"))
            .args(["dev", "--json", "--dir", data.to_str().unwrap()])
            .args(dev_options)
            .args(["--", "--election-timeout-ms", "600"])
            .args(server_options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in stdout.lines() {
                let _ = sender.send(line.unwrap());
            }
        });
        let mut cluster = Self {
            process,
            dir,
            line: Value::Null,
        };
        let line = lines.recv_timeout(DEADLINE).expect("one line in time");
        cluster.line = serde_json::from_str(&line).unwrap();
        cluster
    }

    fn status(&self) -> Value {
        let dir = self.dir.path().join("dev");
        let output = Command::new(env!("CARGO_BIN_EXE_quorumwire"))
            .args(["status", "--json", "--dir", dir.to_str().unwrap()])
            .output()
            .unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Waits until the leader, whoever it is, leads a fast term.
    pub fn wait_for_fast_term(&self) {
        wait_for("a fast term", || {
            let status = self.status();
            let leads = |seen: &&Value| seen["report"]["role"] == "leader";
            let leader = status["replicas"].as_array().unwrap().iter().find(leads);
            leader.is_some_and(|seen| !seen["report"]["fast_term"].is_null())
        });
    }

    pub fn leader(&self) -> usize {
        let mut leader = None;
        wait_for("a leader", || {
            leader = self.status()["leader"].as_u64();
            leader.is_some()
        });
        usize::try_from(leader.unwrap()).unwrap()
    }

    pub fn plane_address(&self, id: usize) -> SocketAddr {
        let status = self.status();
        let address = &status["replicas"][id]["report"]["plane_address"];
        address.as_str().unwrap().parse().unwrap()
    }

    pub fn counter(&self, id: usize, name: &str) -> u64 {
        let status = self.status();
        status["replicas"][id]["report"]["counters"][name]
            .as_u64()
            .unwrap()
    }

    pub fn memcached_address(&self, id: usize) -> SocketAddr {
        let address = &self.line["replicas"][id]["memcached"];
        address.as_str().unwrap().parse().unwrap()
    }

    /// The clients' keys, as an operator makes them.
    pub fn client_keys(&self) -> PlaneKeyPair {
        let data = self.dir.path().join("dev");
        let record = std::fs::read(data.join("dev.json")).unwrap();
        let record: Value = serde_json::from_slice(&record).unwrap();
        let out = self.dir.path().join("clients.toml");
        let output = Command::new(env!("CARGO_BIN_EXE_quorumwire"))
            .args(["keys", "plane-clients", "--cluster"])
            .arg(record["cluster"].as_str().unwrap())
            .arg("--file")
            .arg(data.join("keys/secret.toml"))
            .arg("--out")
            .arg(&out)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        ClientKeys::load(&out).unwrap().pair().unwrap()
    }

    pub fn kill(&self, id: usize) {
        let pid = self.line["replicas"][id]["pid"].as_i64().unwrap();
        signal(i32::try_from(pid).unwrap(), rustix::process::Signal::KILL);
    }

    pub fn get_over_tcp(&self, id: usize, key: &str) -> Vec<u8> {
        self.find_over_tcp(id, key).expect("the key is there")
    }

    pub fn find_over_tcp(&self, id: usize, key: &str) -> Option<Vec<u8>> {
        let mut stream = TcpStream::connect(self.memcached_address(id)).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream
            .write_all(format!("get {key}\r\nquit\r\n").as_bytes())
            .unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let line = answer.iter().position(|byte| *byte == b'\n').unwrap();
        let value = answer[line + 1..].strip_suffix(b"\r\nEND\r\n");
        assert!(value.is_some() || answer == b"END\r\n", "{answer:?}");
        value.map(<[u8]>::to_vec)
    }

    pub fn stop(mut self) {
        let pid = i32::try_from(self.process.id()).unwrap();
        signal(pid, rustix::process::Signal::TERM);
        let status = self.process.wait().unwrap();
        assert!(status.success(), "{status}");
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn signal(pid: i32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// A memcached client over UDP.
pub struct Memcached {
    socket: UdpSocket,
    last_request: u16,
}

impl Memcached {
    pub fn connect(address: SocketAddr) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(address).unwrap();
        socket.set_read_timeout(Some(ASK_AGAIN)).unwrap();
        Self {
            socket,
            last_request: 0x1200,
        }
    }

    pub fn send_raw(&self, datagram: &[u8]) {
        self.socket.send(datagram).unwrap();
    }

    /// Sends a request that wants no answer.
    pub fn send(&mut self, request: &[u8]) {
        self.last_request += 1;
        let number = self.last_request.to_be_bytes();
        let frame = [number[0], number[1], 0, 0, 0, 1, 0, 0];
        self.send_raw(&[&frame, request].concat());
    }

    /// Sends a request and puts its answer together. Asked again if none comes; for requests that may be
    /// carried out twice that only makes a test fail.
    pub fn ask(&mut self, request: &[u8]) -> Vec<u8> {
        for _ in 0..10 {
            self.send(request);
            if let Some(answer) = self.answer() {
                return answer;
            }
        }
        panic!("no answer to {}", String::from_utf8_lossy(request));
    }

    /// Sends a request in datagrams of so many bytes without their frames, the last one first.
    pub fn send_in_parts(&mut self, request: &[u8], part_bytes: usize) {
        self.last_request += 1;
        let count = u16::try_from(request.len().div_ceil(part_bytes)).unwrap();
        let parts: Vec<_> = (0_u16..).zip(request.chunks(part_bytes)).collect();
        for (number, part) in parts.into_iter().rev() {
            let frame = [self.last_request, number, count, 0].map(u16::to_be_bytes);
            self.send_raw(&[&frame.concat(), part].concat());
        }
    }

    /// As [`ask`](Self::ask), in several datagrams.
    pub fn ask_in_parts(&mut self, request: &[u8], part_bytes: usize) -> Vec<u8> {
        for _ in 0..10 {
            self.send_in_parts(request, part_bytes);
            if let Some(answer) = self.answer() {
                return answer;
            }
        }
        panic!("no answer to {} bytes in parts", request.len());
    }

    /// The next answer to the last request, if one comes.
    pub fn answer(&self) -> Option<Vec<u8>> {
        let mut parts = BTreeMap::new();
        let mut buffer = [0; 2048];
        loop {
            let bytes = self.socket.recv(&mut buffer).ok()?;
            assert!(bytes <= 1400);
            let field = |at: usize| u16::from_be_bytes([buffer[at], buffer[at + 1]]);
            assert_eq!(field(6), 0);
            if field(0) != self.last_request {
                continue; // to what was asked before
            }
            parts.insert(field(2), buffer[8..bytes].to_vec());
            if parts.len() == usize::from(field(4)) {
                return Some(parts.into_values().flatten().collect());
            }
        }
    }
}

/// Hands datagrams on between one client and one plane, not all of them and some twice. The plane may have
/// others answer.
pub struct BadNetwork {
    /// Where the client sends to.
    pub address: SocketAddr,
}

impl BadNetwork {
    /// Runs until the test's process ends. `QUORUMWIRE_SEED` makes it choose as it did before.
    pub fn start(plane: SocketAddr, lost_percent: u64, twice_percent: u64) -> Self {
        let seed = quorumwire_seed::seed();
        let to_client = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = to_client.local_addr().unwrap();
        let to_plane = UdpSocket::bind("127.0.0.1:0").unwrap();
        let (sender, clients) = mpsc::channel();
        let copies = move |chance: &mut SmallRng| {
            let percent = chance.random_range(0..100);
            match percent {
                _ if percent < lost_percent => 0,
                _ if percent < lost_percent + twice_percent => 2,
                _ => 1,
            }
        };
        let mut chance = SmallRng::seed_from_u64(seed);
        let (answers_in, answers_out) = (
            to_plane.try_clone().unwrap(),
            to_client.try_clone().unwrap(),
        );
        let mut other_chance = SmallRng::seed_from_u64(!seed);
        thread::spawn(move || {
            let mut buffer = [0; 2048];
            while let Ok((bytes, client)) = to_client.recv_from(&mut buffer) {
                let _ = sender.send(client);
                for _ in 0..copies(&mut chance) {
                    let _ = to_plane.send_to(&buffer[..bytes], plane);
                }
            }
        });
        thread::spawn(move || {
            let mut buffer = [0; 2048];
            let client = clients.recv().unwrap();
            while let Ok((bytes, _)) = answers_in.recv_from(&mut buffer) {
                for _ in 0..copies(&mut other_chance) {
                    let _ = answers_out.send_to(&buffer[..bytes], client);
                }
            }
        });
        Self { address }
    }
}

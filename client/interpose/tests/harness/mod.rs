//! A program that is served without a cluster: the test is its replica.
#![allow(dead_code)] // each test uses a part of it
use quorumwire_interpose::{Program, Rings, Said, Sizes, Start, Started};
use quorumwire_replay::TurnEvent;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

pub const PATIENCE: Duration = Duration::from_secs(20);
pub const MILLISECOND: u64 = 1_000_000;

#[derive(Clone, Copy, Eq, PartialEq)]
enum Way {
    Alone,
    Serial,
    Outbound,
}

/// A program that is served, and its clients.
pub struct Served {
    pub rings: Rings,
    pub started: Started,
    pub turn: u64,
    pub log_time_ns: u64,
    pub listens: Vec<SocketAddr>,
    pub said: BTreeMap<u64, Vec<u8>>,
    pub closed: Vec<u64>,
    pub datagrams: Vec<(SocketAddr, String)>,
    pub folder: tempfile::TempDir,
}

impl Served {
    pub fn start(file: &str, arguments: &[&str]) -> Self {
        Self::start_of(file, arguments, Way::Alone)
    }

    /// It may connect to other servers.
    pub fn start_outbound(file: &str, arguments: &[&str]) -> Self {
        Self::start_of(file, arguments, Way::Outbound)
    }

    /// Several threads serve.
    pub fn start_serial(file: &str, arguments: &[&str]) -> Self {
        Self::start_of(file, arguments, Way::Serial)
    }

    fn start_of(file: &str, arguments: &[&str], way: Way) -> Self {
        let start = Start {
            log_time_ns: 1_000_000 * MILLISECOND,
            wall_ns: 1_700_000_000_000 * MILLISECOND,
            step_ns: 1000,
            key: [7; 32],
            allow_outbound: way == Way::Outbound,
        };
        let sizes = Sizes {
            given: 2 << 20,
            said: 1 << 20,
        };
        let rings = Rings::new(sizes, &start).expect("memory");
        let folder = tempfile::tempdir().expect("a folder");
        let mut program = Program::of(file, folder.path());
        program.is_serial = way == Way::Serial;
        program.arguments = arguments.iter().map(Into::into).collect();
        let started = program.start(&rings).expect("it starts");
        Self {
            rings,
            started,
            turn: 0,
            log_time_ns: start.log_time_ns,
            listens: Vec::new(),
            said: BTreeMap::new(),
            closed: Vec::new(),
            datagrams: Vec::new(),
            folder,
        }
    }

    /// Takes in what it says, until something is there.
    pub fn until(&mut self, what: &str, is_there: impl Fn(&Self) -> bool) {
        let end = Instant::now() + PATIENCE;
        loop {
            assert!(
                Instant::now() < end,
                "waited in vain for {what}: {:?}",
                self.said
            );
            if let Some(why) = self.rings.refusal() {
                panic!("{why}");
            }
            let ended = self.started.child.try_wait().expect("it is ours");
            assert!(ended.is_none(), "it has ended: {ended:?}");
            while let Some((_, said)) = self.rings.take().expect("sense") {
                match said {
                    Said::Data { connection, bytes } => {
                        self.said
                            .entry(connection)
                            .or_default()
                            .extend_from_slice(bytes);
                    }
                    Said::Listen { at, .. } => self.listens.push(at),
                    Said::Close { connection } => self.closed.push(connection),
                    Said::Datagram { peer, bytes, .. } => {
                        let text = String::from_utf8_lossy(bytes).into_owned();
                        self.datagrams.push((peer, text));
                    }
                    Said::Shut { .. } | Said::Unlisten { .. } => {}
                }
            }
            if is_there(self) {
                return;
            }
            std::thread::yield_now();
        }
    }

    pub fn give(&mut self, events: &[TurnEvent<'_>]) {
        self.turn += 1;
        self.log_time_ns += 10 * MILLISECOND;
        let wall_ns = self.log_time_ns + 1_699_000_000_000 * MILLISECOND;
        assert!(
            self.rings
                .give(self.turn, self.log_time_ns, wall_ns, events)
        );
    }

    /// Until all its threads wait.
    pub fn end_turn(&mut self) {
        self.until("the turn's end", |it| it.rings.turn_done() == it.turn);
        self.until("what it said", |_| true);
    }

    /// Until all its threads wait for clients only: it is given a turn at each time at which it wants one.
    pub fn rest(&mut self) {
        loop {
            self.end_turn();
            let Some(deadline_ns) = self.rings.deadline_ns() else {
                return;
            };
            self.log_time_ns = deadline_ns.saturating_sub(10 * MILLISECOND);
            self.give(&[]);
        }
    }

    /// What a client is answered at a time that is not in the log: until then turns come as they are wanted.
    pub fn answer_by_itself(&mut self, connection: u64, answer: &str) {
        let end = Instant::now() + PATIENCE;
        while !self
            .said
            .get(&connection)
            .is_some_and(|it| it.ends_with(b"."))
        {
            assert!(Instant::now() < end, "waited in vain for {answer}");
            self.rest();
        }
        self.answer(connection, answer);
    }

    pub fn connect(&mut self, connection: u64, port: u16) {
        let peer = format!("127.0.0.1:{}", 40_000 + connection)
            .parse()
            .expect("an address");
        let own = format!("127.0.0.1:{port}").parse().expect("an address");
        self.give(&[TurnEvent::Accept {
            connection,
            peer,
            own,
        }]);
    }

    pub fn ask(&mut self, connection: u64, bytes: &[u8]) {
        self.give(&[TurnEvent::Data { connection, bytes }]);
    }

    pub fn answer(&mut self, connection: u64, answer: &str) {
        let bytes = answer.len();
        let has = |it: &Self| {
            it.said
                .get(&connection)
                .is_some_and(|said| said.len() >= bytes)
        };
        self.until(answer, has);
        let said = self.said.remove(&connection).expect("it is there");
        assert_eq!(String::from_utf8_lossy(&said), answer);
    }
}

/// One of the programs of this folder, compiled.
pub fn compiled(folder: &Path, name: &str) -> String {
    let program = folder.join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/programs/{name}.c"));
    let status = Command::new("cc")
        .args([
            "-std=gnu11",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-pthread",
            "-o",
        ])
        .args([&program, &source])
        .status()
        .expect("a C compiler");
    assert!(status.success(), "{name} does not compile");
    program.to_string_lossy().into_owned()
}

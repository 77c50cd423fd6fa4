//! Servers of replicated `LevelDB` as processes, and a client that speaks their protocol. Builds them with
//! sanitizers, so whatever they are made to do, they do it properly.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rustix::process::Signal;

use crate::c_programs::{install, repository, succeed};
use crate::process::Process;
use crate::waiting::wait_within;

/// Whatever is waited for comes within this time.
pub const DEADLINE: Duration = Duration::from_mins(1);
const GREETING: &[u8] = b"qwldb/1\n";
/// Memory that was freed is kept apart only so long: what a server takes is to be measured.
const SANITIZER: (&str, &str) = ("ASAN_OPTIONS", "quarantine_size_mb=4");

/// Builds the programs into this folder, and names the folder of the programs.
pub fn build(prefix: &Path) -> Result<PathBuf> {
    static BUILDING: Mutex<bool> = Mutex::new(false);
    let mut is_built = BUILDING.lock().unwrap_or_else(PoisonError::into_inner);
    if !*is_built {
        install(prefix)?;
        let mut build = Command::new(repository().join("apps/leveldb/build"));
        build.arg(format!("PREFIX={}", prefix.display()));
        succeed(build.args(["SANITIZE=address,undefined", "TESTS=yes"]))?;
        *is_built = true;
    }
    Ok(prefix.join("bin"))
}

/// Where servers run.
pub struct Place {
    /// Their programs.
    pub bin: PathBuf,
    /// Their folders and logs.
    pub scratch: PathBuf,
    /// Their network.
    pub namespace: PathBuf,
}

/// An address that nobody listens at.
pub fn free_address() -> Result<String> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string())
}

/// A server, and with which options it is started.
pub struct Server {
    program: PathBuf,
    namespace: PathBuf,
    options: Vec<String>,
    /// For clients.
    pub address: String,
    /// Its folder.
    pub dir: PathBuf,
    log: PathBuf,
    process: Option<Process>,
}

impl Server {
    /// One of this configuration file, with this learner's number, and more options.
    #[must_use]
    pub fn new(
        place: &Place,
        (file, learner): (&str, usize),
        address: String,
        more: &[&str],
    ) -> Self {
        let dir = place.scratch.join(format!("server-{learner}"));
        let mut options = vec![
            format!("--configuration={file}"),
            format!("--learner={learner}"),
            format!("--listen={address}"),
        ];
        if !more.contains(&"--application=echo") {
            options.push(format!("--dir={}", dir.display()));
        }
        options.extend(more.iter().map(|&it| it.to_owned()));
        Self {
            program: place.bin.join("quorumwire-leveldb"),
            namespace: place.namespace.clone(),
            options,
            address,
            dir,
            log: place.scratch.join(format!("server-{learner}.log")),
            process: None,
        }
    }

    /// Starts it.
    pub fn start(&mut self) -> Result<()> {
        let mut arguments = vec![format!("{}={}", SANITIZER.0, SANITIZER.1)];
        arguments.push(self.program.display().to_string());
        arguments.extend(self.options.clone());
        let env = Path::new("/usr/bin/env");
        let process = Process::start("leveldb", &self.namespace, env, &arguments, &self.log)?;
        self.process = Some(process);
        Ok(())
    }

    /// Waits until it takes clients.
    pub fn wait_until_it_serves(&mut self) -> Result<()> {
        let address = self.address.clone();
        let served = wait_within("a server that takes clients", DEADLINE, || {
            ensure!(self.process()?.is_running()?, "it has ended");
            Ok(Client::connect(&address).is_ok_and(|mut it| it.status().is_ok()))
        });
        served.with_context(|| self.said())
    }

    fn process(&mut self) -> Result<&mut Process> {
        self.process.as_mut().context("it runs")
    }

    /// Kills it (`SIGKILL`).
    pub fn kill(&mut self) -> Result<()> {
        let running = self.process()?.is_running()?;
        ensure!(running, "it has ended by itself: {}", self.said());
        self.process.take().context("it runs")?.kill()
    }

    /// Tells it to end, and waits until it has.
    pub fn terminate(&mut self) -> Result<ExitStatus> {
        self.process()?.signal(Signal::TERM)?;
        self.wait_for_exit()
    }

    /// Waits until it ends by itself.
    pub fn wait_for_exit(&mut self) -> Result<ExitStatus> {
        let mut process = self.process.take().context("it runs")?;
        process.wait(DEADLINE)
    }

    /// All that its processes have said.
    #[must_use]
    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The most memory that it has had, in MiB.
    pub fn peak_mib(&mut self) -> Result<u64> {
        let pid = self.process()?.pid();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
        let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:"));
        let kib = line.and_then(|it| it.split_whitespace().next());
        Ok(kib.context("VmHWM")?.parse::<u64>()? >> 10)
    }

    /// Runs the program with these options only: its exit code, and what it complains of.
    pub fn run_with(&self, options: &[&str]) -> Result<(Option<i32>, String)> {
        complaint(&run(&self.program, options)?)
    }
}

/// Runs a program.
pub fn run(program: &Path, arguments: &[&str]) -> Result<Output> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    Ok(command.output()?)
}

/// The exit code of a program that ran, and what it complained of.
pub fn complaint(output: &Output) -> Result<(Option<i32>, String)> {
    let said = String::from_utf8(output.stderr.clone())?;
    Ok((output.status.code(), said))
}

/// What a server answers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Answer {
    /// It was done.
    Done(Vec<u8>),
    /// Nothing is there.
    NotFound,
    /// Another status, and what it says.
    Other(u8, String),
}

/// What a status says.
pub const REFUSED: u8 = 16;
/// It was not carried out.
pub const NOT_CARRIED_OUT: u8 = 17;
/// Nobody knows.
pub const UNKNOWN: u8 = 18;
/// There is no such session.
pub const NO_SESSION: u8 = 19;
/// A later request of its session was carried out.
pub const SUPERSEDED: u8 = 20;
/// An answer has no room.
pub const BUSY: u8 = 21;

/// What a client asks.
#[derive(Clone, Copy, Debug)]
pub enum Ask<'a> {
    /// A session.
    Open,
    /// A linearizable read.
    Read(&'a [u8]),
    /// A get in the log.
    Get(&'a [u8]),
    /// In this session, with this sequence: a key and its value.
    Put(u64, u64, &'a [u8], &'a [u8]),
    /// The same: a key.
    Delete(u64, u64, &'a [u8]),
    /// Bytes that come back.
    Echo(&'a [u8]),
    /// How the server is.
    Status,
}

fn with_key(mut body: Vec<u8>, key: &[u8]) -> Vec<u8> {
    let bytes = u16::try_from(key.len()).unwrap_or(u16::MAX);
    body.extend(bytes.to_be_bytes());
    body.extend(key);
    body
}

impl Ask<'_> {
    /// As a frame with this number.
    #[must_use]
    pub fn frame(&self, number: u64) -> Vec<u8> {
        let of = |session: u64, sequence: u64| [session, sequence].map(u64::to_be_bytes).concat();
        let (kind, body) = match self {
            Self::Open => (1, Vec::new()),
            Self::Read(key) => (2, with_key(Vec::new(), key)),
            Self::Get(key) => (3, with_key(Vec::new(), key)),
            Self::Put(session, sequence, key, value) => {
                let mut body = with_key(of(*session, *sequence), key);
                body.extend(*value);
                (4, body)
            }
            Self::Delete(session, sequence, key) => (5, with_key(of(*session, *sequence), key)),
            Self::Echo(value) => (6, value.to_vec()),
            Self::Status => (7, Vec::new()),
        };
        let bytes = u32::try_from(9 + body.len()).unwrap_or(u32::MAX);
        let mut frame = bytes.to_be_bytes().to_vec();
        frame.push(kind);
        frame.extend(number.to_be_bytes());
        frame.extend(body);
        frame
    }
}

trait Socket: Read + Write + Send {}
impl<T: Read + Write + Send> Socket for T {}

/// A client's connection.
pub struct Client {
    socket: Box<dyn Socket>,
    asked: u64,
}

impl Client {
    /// Connects, and greets.
    pub fn connect(address: &str) -> io::Result<Self> {
        let mut client = Self::connect_silently(address)?;
        client.say(GREETING)?;
        Ok(client)
    }

    /// Connects, and says nothing.
    pub fn connect_silently(address: &str) -> io::Result<Self> {
        let patience = Some(DEADLINE);
        let socket: Box<dyn Socket> = if let Some(path) = address.strip_prefix("unix:") {
            let socket = UnixStream::connect(path)?;
            socket.set_read_timeout(patience)?;
            socket.set_write_timeout(patience)?;
            Box::new(socket)
        } else {
            let address: SocketAddr = address.parse().map_err(io::Error::other)?;
            let socket = TcpStream::connect(address)?;
            socket.set_nodelay(true)?;
            socket.set_read_timeout(patience)?;
            socket.set_write_timeout(patience)?;
            Box::new(socket)
        };
        Ok(Self { socket, asked: 0 })
    }

    /// Sends these bytes.
    pub fn say(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.socket.write_all(bytes)
    }

    /// The next answer, and the number of its request.
    pub fn hear(&mut self) -> io::Result<(u64, Answer)> {
        let mut head = [0; 13];
        self.socket.read_exact(&mut head)?;
        let bytes = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
        let mut number = [0; 8];
        number.copy_from_slice(&head[5..]);
        let mut body = vec![0; (bytes as usize).saturating_sub(9)];
        self.socket.read_exact(&mut body)?;
        let answer = match head[4] {
            0 => Answer::Done(body),
            1 => Answer::NotFound,
            status => Answer::Other(status, String::from_utf8_lossy(&body).into_owned()),
        };
        Ok((u64::from_be_bytes(number), answer))
    }

    /// Asks, and waits for the answer.
    pub fn ask(&mut self, what: Ask<'_>) -> io::Result<Answer> {
        self.asked += 1;
        self.say(&what.frame(self.asked))?;
        let (number, answer) = self.hear()?;
        if number == self.asked {
            Ok(answer)
        } else {
            Err(io::Error::other(format!("{number}: {answer:?}")))
        }
    }

    /// A new session.
    pub fn open(&mut self) -> io::Result<u64> {
        match self.ask(Ask::Open)? {
            Answer::Done(session) => {
                let session: [u8; 8] = session
                    .try_into()
                    .map_err(|it| io::Error::other(format!("{it:?} is no session")))?;
                Ok(u64::from_be_bytes(session))
            }
            other @ (Answer::NotFound | Answer::Other(..)) => {
                Err(io::Error::other(format!("{other:?}")))
            }
        }
    }

    /// What the server says of itself: a number for each name.
    pub fn status(&mut self) -> io::Result<BTreeMap<String, u64>> {
        let Answer::Done(text) = self.ask(Ask::Status)? else {
            return Err(io::Error::other("no status"));
        };
        let text = String::from_utf8_lossy(&text).into_owned();
        let line = |line: &str| {
            let (name, number) = line.split_once(' ')?;
            Some((name.to_owned(), number.parse().ok()?))
        };
        Ok(text.lines().filter_map(line).collect())
    }
}

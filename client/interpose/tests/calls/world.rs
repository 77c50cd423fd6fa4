//! What a program is run in: the kernel, or a replica. What its clients do is said by the program.
use rustix::process::{Pid, Signal};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fmt::Write as _;
use std::io::Read as _;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long a program may take for its next step.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// So many clients has a case, at most; the next number is the test's own connection.
pub const CLIENTS_MAX: u64 = 11;
/// The number of that.
pub const CONTROL: u64 = CLIENTS_MAX;

/// Where a case is. Its test has a network of its own: some ports are open at all addresses.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub host: Ipv4Addr,
    pub first_port: u16,
    first_client_port: u16,
}

impl Place {
    /// Of the case with this number.
    pub fn of(index: usize) -> Self {
        let index = u16::try_from(index).expect("few cases");
        assert!(index < 370, "there are ports for all cases");
        Self {
            host: Ipv4Addr::new(127, 64, 0, 1),
            first_port: 7000 + 10 * index,
            first_client_port: 61_000 + 12 * index,
        }
    }

    pub fn port(self, offset: u16) -> SocketAddrV4 {
        SocketAddrV4::new(self.host, self.first_port + offset)
    }

    /// Where the control connection comes to.
    pub fn control(self) -> SocketAddrV4 {
        self.port(9)
    }

    /// Where a client is.
    pub fn client(self, number: u64) -> SocketAddrV4 {
        let number = u16::try_from(number).expect("few clients");
        SocketAddrV4::new(self.host, self.first_client_port + number)
    }
}

/// What this thread starts from now on is in a network that has a loopback device and nobody else.
pub fn leave_the_network() {
    let script = "ip link set lo up && echo && read end";
    let mut its_maker = Command::new("unshare")
        .args(["--net", "sh", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("unshare of util-linux");
    let mut is_up = [0];
    let said = its_maker.stdout.as_mut().expect("it is a pipe");
    said.read_exact(&mut is_up)
        .expect("a network namespace, which takes root");
    let network = std::fs::File::open(format!("/proc/{}/ns/net", its_maker.id()));
    let network = network.expect("it waits for its end");
    move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))
        .expect("root may go there");
    drop(its_maker.stdin.take()); // the namespace stays for as long as somebody is in it
    its_maker.wait().expect("it ends with its input");
}

/// Whether the program waits in the kernel.
pub fn sleeps(program: &Child) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", program.id()));
    stat.is_ok_and(|stat| stat.contains(") S "))
}

/// Sends the program a signal where it waits.
pub fn kill(program: &Child, number: i32) -> Result<(), String> {
    let end = Instant::now() + PATIENCE;
    while !sleeps(program) {
        if Instant::now() > end {
            return Err("it does not wait".into());
        }
        std::thread::yield_now();
    }
    let signal = Signal::from_named_raw(number).ok_or("no such signal")?;
    rustix::process::kill_process(Pid::from_child(program), signal).map_err(|it| it.to_string())
}

/// What a client does.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Action {
    /// To the port of this offset.
    Connect(u64, u16),
    Send(u64, Vec<u8>),
    /// It sends no more.
    End(u64),
    Reset(u64),
    /// It has closed its connection; the kernel tells the program when it writes.
    Gone(u64),
    /// It reads so many bytes.
    Take(u64, usize),
    /// It reads until the program has ended its half.
    Ended(u64),
    /// A datagram to the port of this offset.
    Datagram(u64, u16, Vec<u8>),
    /// A datagram comes to it.
    TakeDatagram(u64),
    /// From the log, where there is one.
    Signal(i32),
    /// Past the log.
    Kill(i32),
}

impl Action {
    fn parse(text: &str) -> Self {
        let words: Vec<&str> = text.split_whitespace().collect();
        let number = |at: usize| -> u64 { words[at].parse().expect("a number") };
        let port = |at: usize| -> u16 { words[at].parse().expect("a port") };
        match words[0] {
            "connect" => Self::Connect(number(1), port(2)),
            "send" => Self::Send(number(1), words[2].into()),
            "fill" => {
                let count: usize = words[2].parse().expect("a count");
                Self::Send(number(1), (b'a'..=b'z').cycle().take(count).collect())
            }
            "end" => Self::End(number(1)),
            "reset" => Self::Reset(number(1)),
            "gone" => Self::Gone(number(1)),
            "take" => Self::Take(number(1), words[2].parse().expect("a count")),
            "ended" => Self::Ended(number(1)),
            "datagram" => {
                let text = words.get(3).copied().unwrap_or("");
                Self::Datagram(number(1), port(2), text.into())
            }
            "datagram-of" => {
                let count: usize = words[3].parse().expect("a count");
                let bytes = (b'a'..=b'z').cycle().take(count).collect();
                Self::Datagram(number(1), port(2), bytes)
            }
            "take-datagram" => Self::TakeDatagram(number(1)),
            "kill" => Self::Kill(words[1].parse().expect("a number")),
            "signal" => Self::Signal(words[1].parse().expect("a number")),
            other => panic!("no client does that: {other}"),
        }
    }
}

/// What is asked for in a line, and whether the program waits for it.
pub struct Wish {
    pub actions: Vec<Action>,
    pub is_answered: bool,
}

impl Wish {
    pub fn parse(line: &str) -> Self {
        let (how, what) = line.split_once(' ').expect("how and what");
        Self {
            actions: what.split(';').map(Action::parse).collect(),
            is_answered: how == "ask",
        }
    }
}

/// What a client was sent.
#[derive(Clone, Debug, Default)]
pub struct Heard {
    pub bytes: Vec<u8>,
    /// It does not read any more.
    pub is_deaf: bool,
    pub datagrams: Vec<(SocketAddrV4, Vec<u8>)>,
}

fn shown(bytes: &[u8]) -> String {
    if bytes.len() <= 64 {
        return format!("{:?}", String::from_utf8_lossy(bytes));
    }
    let sum = bytes.iter().fold(2_166_136_261_u32, |sum, byte| {
        (sum ^ u32::from(*byte)).wrapping_mul(16_777_619)
    });
    format!("{} bytes, sum {sum:08x}", bytes.len())
}

/// A world.
pub trait World: Sized {
    /// Starts the program.
    fn start(program: &Path, arguments: &[String], place: Place) -> Self;
    /// The next line that the program asks; none: it has ended.
    fn next_line(&mut self) -> Result<Option<String>, String>;
    /// Does it, and says so if that is asked for.
    fn fulfil(&mut self, wish: &Wish) -> Result<(), String>;
    /// How the program ended, and what clients have heard, by their numbers.
    fn finish(self) -> (Option<ExitStatus>, Vec<(u64, Heard)>);
}

/// Runs a case. What is printed and heard.
pub fn run<W: World>(program: &Path, name: &str, place: Place) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let print_out = folder.path().join("print-out");
    let arguments = [
        name.to_owned(),
        place.host.to_string(),
        place.first_port.to_string(),
        print_out.to_string_lossy().into_owned(),
    ];
    let mut world = W::start(program, &arguments, place);
    let mut fault = None;
    loop {
        let line = match world.next_line() {
            Ok(Some(line)) => line,
            Ok(None) => break,
            Err(why) => {
                fault = Some(why);
                break;
            }
        };
        if let Err(why) = world.fulfil(&Wish::parse(&line)) {
            fault = Some(format!("{line}: {why}"));
            break;
        }
    }
    let (status, heard) = world.finish();
    let mut text = String::from("\n");
    text += &String::from_utf8_lossy(&std::fs::read(&print_out).unwrap_or_default());
    if let Some(fault) = fault {
        writeln!(text, "the test: {fault}").expect("text");
    }
    if let Some(status) = status.filter(|status| !status.success()) {
        writeln!(text, "it ended: {status}").expect("text");
    }
    for (number, heard) in heard {
        if !heard.is_deaf && !heard.bytes.is_empty() {
            writeln!(text, "client {number} was sent {}", shown(&heard.bytes)).expect("text");
        }
        for (from, bytes) in heard.datagrams {
            writeln!(text, "client {number} got {} from {from}", shown(&bytes)).expect("text");
        }
    }
    text
}

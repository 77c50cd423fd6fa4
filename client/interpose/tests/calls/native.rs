//! The kernel answers the program; the test is its clients, over loopback.
use crate::world::{Action, CONTROL, Heard, PATIENCE, Place, Wish, World, kill};
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use rustix::thread::CpuSet;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, SocketAddrV4, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::Instant;

/// Other cases' programs do not inherit it.
const CLOEXEC: SocketFlags = SocketFlags::CLOEXEC;

pub struct Native {
    child: Child,
    place: Place,
    control: BufReader<TcpStream>,
    clients: BTreeMap<u64, TcpStream>,
    senders: BTreeMap<u64, UdpSocket>,
    heard: BTreeMap<u64, Heard>,
}

/// What one processor sends over loopback arrives in that order, before the send returns or after.
fn stay_on_this_processor() {
    let mut here = CpuSet::new();
    here.set(rustix::thread::sched_getcpu());
    rustix::thread::sched_setaffinity(None, &here).expect("the processor is there");
}

fn connected(from: SocketAddrV4, to: SocketAddrV4) -> std::io::Result<TcpStream> {
    let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, CLOEXEC, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    rustix::net::bind(&socket, &from)?;
    rustix::net::connect(&socket, &to)?;
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// What `TcpStream` says is an `io::Error`.
trait Told<T> {
    fn told(self) -> Result<T, String>;
}

impl<T> Told<T> for std::io::Result<T> {
    fn told(self) -> Result<T, String> {
        self.map_err(|error| error.to_string())
    }
}

impl Native {
    fn client(&mut self, number: u64) -> Result<&mut TcpStream, String> {
        self.clients
            .get_mut(&number)
            .ok_or_else(|| format!("client {number} is not connected"))
    }

    /// What it has heard.
    fn hear(&mut self, number: u64, bytes: &[u8]) {
        let heard = self.heard.entry(number).or_default();
        heard.bytes.extend_from_slice(bytes);
    }

    fn sender(&mut self, number: u64) -> &UdpSocket {
        let at = self.place.client(number);
        self.senders.entry(number).or_insert_with(|| {
            let socket = UdpSocket::bind(at).expect("nobody is there");
            socket.set_read_timeout(Some(PATIENCE)).expect("it can");
            socket
        })
    }

    fn act(&mut self, action: &Action) -> Result<(), String> {
        match action {
            Action::Connect(number, port) => {
                let stream = connected(self.place.client(*number), self.place.port(*port));
                self.clients.insert(*number, stream.told()?);
            }
            Action::Send(number, bytes) => self.client(*number)?.write_all(bytes).told()?,
            Action::End(number) => self.client(*number)?.shutdown(Shutdown::Write).told()?,
            Action::Reset(number) => {
                let stream = self.clients.remove(number).ok_or("it is not connected")?;
                sockopt::set_socket_linger(&stream, Some(std::time::Duration::ZERO))
                    .map_err(|error| error.to_string())?;
                self.heard.entry(*number).or_default().is_deaf = true;
            }
            Action::Gone(number) => {
                self.clients.remove(number);
                self.heard.entry(*number).or_default().is_deaf = true;
            }
            Action::Take(number, count) => {
                let mut bytes = vec![0; *count];
                self.client(*number)?.read_exact(&mut bytes).told()?;
                self.hear(*number, &bytes);
            }
            Action::Ended(number) => {
                let mut bytes = Vec::new();
                // An end or a reset.
                self.client(*number)?.read_to_end(&mut bytes).ok();
                self.hear(*number, &bytes);
            }
            Action::Datagram(number, port, bytes) => {
                let to = self.place.port(*port);
                self.sender(*number).send_to(bytes, to).told()?;
            }
            Action::TakeDatagram(number) => self.take_datagram(*number)?,
            Action::Signal(signal) | Action::Kill(signal) => kill(&self.child, *signal)?,
        }
        Ok(())
    }

    fn take_datagram(&mut self, number: u64) -> Result<(), String> {
        let mut bytes = vec![0; 1 << 16];
        let (count, from) = self.sender(number).recv_from(&mut bytes).told()?;
        bytes.truncate(count);
        let SocketAddr::V4(from) = from else {
            return Err(format!("it came from {from}"));
        };
        self.heard
            .entry(number)
            .or_default()
            .datagrams
            .push((from, bytes));
        Ok(())
    }
}

impl World for Native {
    fn start(program: &Path, arguments: &[String], place: Place) -> Self {
        stay_on_this_processor();
        let child = Command::new(program)
            .args(arguments)
            .spawn()
            .expect("it starts");
        let end = Instant::now() + PATIENCE;
        let control = loop {
            match connected(place.client(CONTROL), place.control()) {
                Ok(stream) => break stream,
                Err(error) => assert!(Instant::now() < end, "it does not listen: {error}"),
            }
            std::thread::yield_now();
        };
        Self {
            child,
            place,
            control: BufReader::new(control),
            clients: BTreeMap::new(),
            senders: BTreeMap::new(),
            heard: BTreeMap::new(),
        }
    }

    fn next_line(&mut self) -> Result<Option<String>, String> {
        let mut line = String::new();
        let count = self.control.read_line(&mut line).or_else(|error| {
            let is_reset = error.kind() == std::io::ErrorKind::ConnectionReset;
            if is_reset {
                Ok(0)
            } else {
                Err(format!("it does not come to an end: {error}"))
            }
        })?;
        Ok((count > 0).then_some(line))
    }

    fn fulfil(&mut self, wish: &Wish) -> Result<(), String> {
        for action in &wish.actions {
            self.act(action)?;
        }
        if wish.is_answered {
            self.control.get_mut().write_all(b"k").told()?;
        }
        Ok(())
    }

    fn finish(mut self) -> (Option<ExitStatus>, Vec<(u64, Heard)>) {
        drop(self.control); // if it still waits: for nothing
        let end = Instant::now() + PATIENCE;
        let status = loop {
            let status = self.child.try_wait().expect("it is ours");
            if status.is_some() || Instant::now() > end {
                break status;
            }
            std::thread::yield_now();
        };
        if status.is_none() {
            self.child.kill().ok();
            self.child.wait().ok();
        }
        for (number, client) in &mut self.clients {
            let heard = self.heard.entry(*number).or_default();
            client.read_to_end(&mut heard.bytes).ok(); // or it is reset
        }
        (status, self.heard.into_iter().collect())
    }
}

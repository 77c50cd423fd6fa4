//! A proposer in a process without an acceptor: what it is sent it passes on to an acceptor's process.
use crate::evpaxos::frames::{self, Kind};
use crate::evpaxos::queue::Queue;
use crate::evpaxos::server::{Server, Service};
use crate::evpaxos::{log, peers};
use quorumwire_paxos_process::VALUE_BYTES_MAX;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Until another one is tried.
const PAUSE: Duration = Duration::from_millis(50);

#[derive(Default)]
struct Values(Queue);

impl Service for Values {
    fn take(&self, kind: Kind, body: Vec<u8>, _: &mut TcpStream) -> io::Result<()> {
        if kind != Kind::Submit || body.len() > VALUE_BYTES_MAX {
            let text = format!("{kind:?} is sent to no proposer");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        if self.0.put_when_there_is_room(body) {
            Ok(())
        } else {
            Err(io::ErrorKind::ConnectionAborted.into())
        }
    }
}

/// It.
pub struct Relay {
    values: Arc<Values>,
    server: Option<Server>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// Listens here, for these acceptors; beginning with one that its number decides.
    ///
    /// # Errors
    /// It cannot listen.
    pub fn begin(
        own: SocketAddr,
        number: usize,
        acceptors: &[SocketAddr],
        nodelay: bool,
    ) -> io::Result<Self> {
        let values = Arc::new(Values::default());
        let server = Server::begin(own, nodelay, Arc::clone(&values) as Arc<dyn Service>)?;
        let (passed, mut all) = (Arc::clone(&values), acceptors.to_vec());
        all.rotate_left(number % acceptors.len().max(1));
        let run = move || pass_on(&passed.0, &all, nodelay);
        let thread = thread::Builder::new().name("evpaxos-relay".to_owned());
        Ok(Self {
            values,
            server: Some(server),
            thread: Some(thread.spawn(run)?),
        })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.values.0.close();
        self.server = None;
        self.thread.take().map(JoinHandle::join);
    }
}

/// A value whose frame was written is the other's affair, as it is a client's: none is written twice.
fn pass_on(queue: &Queue, acceptors: &[SocketAddr], nodelay: bool) {
    let mut stream = None;
    let mut next = acceptors.iter().cycle();
    while let Some(value) = queue.take() {
        queue.arrived(value.len());
        while !queue.is_closed() {
            if stream.is_none() {
                let Some(address) = next.next() else {
                    return;
                };
                stream = peers::connect(*address, nodelay).ok();
            }
            let written = stream
                .as_mut()
                .map(|it| frames::write(it, Kind::Submit, &[&value]));
            match written {
                Some(Ok(())) => break,
                Some(Err(error)) => {
                    log::debug(&format!("An acceptor is gone: {error}"));
                    stream = None;
                }
                None => thread::sleep(PAUSE),
            }
        }
    }
}

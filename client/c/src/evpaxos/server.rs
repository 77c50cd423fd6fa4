//! A process's TCP port: a thread for each connection, as many as may be. What makes no sense ends it.
use crate::evpaxos::frames::{self, Kind, TAKEN_BYTES_MAX};
use crate::evpaxos::log;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeMap;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Connections that there may be at a time.
pub const CONNECTIONS_MAX: usize = 256;
/// How soon it notices that it is to end.
const PAUSE: Duration = Duration::from_millis(50);
/// Whoever takes nothing for so long is hung up on.
const WRITING_MAX: Duration = Duration::from_secs(10);

/// What a process does with what it is sent.
pub trait Service: Send + Sync + 'static {
    /// Takes a frame, and answers it if there is an answer; an error ends the connection.
    fn take(&self, kind: Kind, body: Vec<u8>, stream: &mut TcpStream) -> io::Result<()>;
}

#[derive(Default)]
struct Connections {
    open: Mutex<(u64, BTreeMap<u64, TcpStream>)>,
    changed: Condvar,
}

impl Connections {
    fn lock(&self) -> MutexGuard<'_, (u64, BTreeMap<u64, TcpStream>)> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, stream: &TcpStream) -> Option<u64> {
        let mut open = self.lock();
        if open.1.len() >= CONNECTIONS_MAX {
            return None;
        }
        let stream = stream.try_clone().ok()?;
        open.0 += 1;
        let number = open.0;
        open.1.insert(number, stream);
        Some(number)
    }

    fn remove(&self, number: u64) {
        self.lock().1.remove(&number);
        self.changed.notify_all();
    }

    /// Ends all, and waits until they have.
    fn end(&self) {
        let open = self.lock();
        for stream in open.1.values() {
            stream.shutdown(Shutdown::Both).ok();
        }
        let is_open = |it: &mut (u64, BTreeMap<u64, TcpStream>)| !it.1.is_empty();
        drop(self.changed.wait_while(open, is_open));
    }
}

/// A port that is served.
pub struct Server {
    stop: Arc<AtomicBool>,
    connections: Arc<Connections>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves this address.
    pub fn begin(
        address: SocketAddr,
        nodelay: bool,
        service: Arc<dyn Service>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let stop = Arc::new(AtomicBool::new(false));
        let connections = Arc::new(Connections::default());
        let (is_over, open) = (Arc::clone(&stop), Arc::clone(&connections));
        let run = move || {
            while !is_over.load(Ordering::Acquire) {
                match listener.accept() {
                    Ok((stream, from)) => accept(stream, from, nodelay, &open, &service),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        wait_for_connection(&listener);
                    }
                    Err(_) => thread::sleep(PAUSE), // no descriptor is left, say
                }
            }
        };
        let thread = thread::Builder::new().name("evpaxos-port".to_owned());
        Ok(Self {
            stop,
            connections,
            thread: Some(thread.spawn(run)?),
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.thread.take().map(JoinHandle::join);
        self.connections.end();
    }
}

fn wait_for_connection(listener: &TcpListener) {
    let timeout = Timespec::try_from(PAUSE).ok();
    let mut descriptors = [PollFd::new(listener, PollFlags::IN)];
    poll(&mut descriptors, timeout.as_ref()).ok();
}

fn accept(
    mut stream: TcpStream,
    from: SocketAddr,
    nodelay: bool,
    open: &Arc<Connections>,
    service: &Arc<dyn Service>,
) {
    let prepared = stream
        .set_nonblocking(false)
        .and_then(|()| stream.set_nodelay(nodelay))
        .and_then(|()| stream.set_write_timeout(Some(WRITING_MAX)));
    let Some(number) = open.add(&stream).filter(|_| prepared.is_ok()) else {
        log::error(&format!(
            "A connection of {from} is refused: there are {CONNECTIONS_MAX}"
        ));
        return;
    };
    let (connections, service) = (Arc::clone(open), Arc::clone(service));
    let serve = move || {
        if let Err(error) = serve(&mut stream, &*service)
            && error.kind() == io::ErrorKind::InvalidData
        {
            log::error(&format!("The connection of {from} is ended: {error}"));
        }
        stream.shutdown(Shutdown::Both).ok();
        connections.remove(number);
    };
    let thread = thread::Builder::new().name("evpaxos-peer".to_owned());
    if thread.spawn(serve).is_err() {
        open.remove(number);
    }
}

fn serve(stream: &mut TcpStream, service: &dyn Service) -> io::Result<()> {
    loop {
        let (kind, body) = frames::read(stream, TAKEN_BYTES_MAX)?;
        service.take(kind, body, stream)?;
    }
}

//! A learner in a process without an acceptor: it is given the values by any acceptor's process, one after
//! the other when one dies.
use crate::evpaxos::founding::{self, Tag};
use crate::evpaxos::frames::{self, Fields, Kind, TAKEN_BYTES_MAX};
use crate::evpaxos::{log, peers};
use std::collections::VecDeque;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Bytes of values that may wait to be taken, and how many.
const BYTES_MAX: usize = 1 << 20;
const VALUES_MAX: usize = 1024;
/// Until another one is tried.
const PAUSE: Duration = Duration::from_millis(50);
/// Whoever says nothing for so long is taken for gone.
const SILENCE_MAX: Duration = Duration::from_secs(3);

struct Inner {
    /// The number of the next value that is wanted; 0: whichever comes next.
    next: u64,
    values: VecDeque<(u64, Vec<u8>)>,
    bytes: usize,
    /// Where they come from.
    stream: Option<TcpStream>,
    is_closed: bool,
}

struct Shared {
    acceptors: Vec<SocketAddr>,
    tag: Tag,
    nodelay: bool,
    inner: Mutex<Inner>,
    changed: Condvar,
    listener: Box<dyn Fn() + Send + Sync>,
}

/// It.
pub struct Follower {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Follower {
    /// Begins with the first value, or with the next one. `listener` is told when values come.
    ///
    /// # Errors
    /// There is no thread.
    pub fn begin(
        acceptors: &[SocketAddr],
        is_to_catch_up: bool,
        nodelay: bool,
        listener: Box<dyn Fn() + Send + Sync>,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            tag: founding::tag_of(acceptors),
            acceptors: acceptors.to_vec(),
            nodelay,
            inner: Mutex::new(Inner {
                next: u64::from(is_to_catch_up),
                values: VecDeque::new(),
                bytes: 0,
                stream: None,
                is_closed: false,
            }),
            changed: Condvar::new(),
            listener,
        });
        let run = Arc::clone(&shared);
        let thread = thread::Builder::new().name("evpaxos-learner".to_owned());
        Ok(Self {
            shared,
            thread: Some(thread.spawn(move || run.run())?),
        })
    }

    /// The next value and its number, if it is there.
    pub fn take(&self) -> Option<(u64, Vec<u8>)> {
        let mut inner = self.shared.lock();
        let taken = inner.values.pop_front()?;
        inner.bytes -= taken.1.len();
        drop(inner);
        self.shared.changed.notify_all();
        Some(taken)
    }

    /// From now on values from this number on.
    pub fn go_on_with(&self, next: u64) {
        let mut inner = self.shared.lock();
        inner.next = next;
        inner.values.clear();
        inner.bytes = 0;
        inner.hang_up();
        drop(inner);
        self.shared.changed.notify_all();
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let mut inner = self.shared.lock();
        inner.is_closed = true;
        inner.hang_up();
        drop(inner);
        self.shared.changed.notify_all();
        self.thread.take().map(JoinHandle::join);
    }
}

impl Inner {
    fn hang_up(&mut self) {
        if let Some(stream) = self.stream.take() {
            stream.shutdown(Shutdown::Both).ok();
        }
    }

    fn is_full(&self) -> bool {
        self.values.len() >= VALUES_MAX || self.bytes >= BYTES_MAX
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut last_said = String::new();
        for address in self.acceptors.iter().cycle() {
            if self.lock().is_closed {
                return;
            }
            if let Err(error) = self.follow(*address) {
                let text = format!("Values come no more from {address}: {error}");
                if text != last_said {
                    log::debug(&text);
                    last_said = text;
                }
            }
            thread::sleep(PAUSE);
        }
    }

    fn follow(&self, address: SocketAddr) -> io::Result<()> {
        let mut stream = peers::connect(address, self.nodelay)?;
        stream.set_read_timeout(Some(SILENCE_MAX))?;
        let mut inner = self.lock();
        if inner.is_closed {
            return Ok(());
        }
        let from = inner.next;
        inner.stream = Some(stream.try_clone()?);
        drop(inner);
        frames::write(
            &mut stream,
            Kind::Subscribe,
            &[&self.tag, &from.to_le_bytes()],
        )?;
        let mut expected = from;
        loop {
            let (kind, body) = frames::read(&mut stream, TAKEN_BYTES_MAX)?;
            let mut fields = Fields::of(&body);
            match kind {
                Kind::Idle => {}
                Kind::Value => {
                    let number = fields.u64()?;
                    if expected != 0 && number != expected {
                        return Err(io::ErrorKind::InvalidData.into());
                    }
                    if !self.put(number, fields.rest().to_vec()) {
                        return Ok(());
                    }
                    expected = number + 1;
                }
                Kind::Trimmed => {
                    let upto = fields.u64()?;
                    log::error(&format!(
                        "Values up to number {upto} are not kept any more: \
                         evlearner_set_instance_id says where to go on"
                    ));
                    return Ok(());
                }
                Kind::Submit
                | Kind::Who
                | Kind::IAm
                | Kind::Subscribe
                | Kind::Trim
                | Kind::Join
                | Kind::Checkpoint
                | Kind::Kept
                | Kind::End
                | Kind::NotReady => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
    }

    /// Waits for room; false: somebody wants other values now.
    fn put(&self, number: u64, value: Vec<u8>) -> bool {
        let mut inner = self.lock();
        while inner.is_full() && inner.stream.is_some() {
            inner = self
                .changed
                .wait(inner)
                .unwrap_or_else(PoisonError::into_inner);
        }
        let is_wanted = inner.next == 0 || inner.next == number;
        if inner.stream.is_none() || !is_wanted {
            return false;
        }
        inner.next = number + 1;
        inner.bytes += value.len();
        inner.values.push_back((number, value));
        drop(inner);
        (self.listener)();
        true
    }
}

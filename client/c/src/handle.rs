//! A client: what was submitted and is not called back for, the deliveries, and the one who polls.
use crate::backend::{Backend, Deliveries};
use crate::bell::Bell;
use crate::configuration::Configuration;
use crate::error::{Code, Failure};
use quorumwire_client::deliver::{Instance, Learner, Recovered};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::{Context, Poll, Waker};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

/// Submissions that may not be called back for yet.
pub const SUBMITS_MAX: usize = 1024;
/// Bytes of them.
pub const SUBMITS_BYTES_MAX: usize = 64 << 20;
/// Callbacks that one call makes at most.
pub const CALLBACKS_MAX: usize = 256;

/// Is told what became of a value.
pub type Submitted = Box<dyn FnOnce(Code, Instance) + Send>;
/// Is given a value.
pub type Delivered = Box<dyn FnMut(Instance, &[u8]) + Send>;

/// What became of a value, to be called back, and what it takes.
struct Completion {
    result: Result<Instance, Failure>,
    done: Submitted,
    bytes: usize,
}

struct Delivering {
    deliveries: Deliveries,
    delivered: Delivered,
}

/// What only the one who polls has.
struct Polled {
    completions: Receiver<Completion>,
    delivering: Option<Delivering>,
    /// Why deliveries have ended, if that is not said yet.
    ended: Option<Failure>,
}

/// It.
pub struct Handle {
    backend: Backend,
    bell: Arc<Bell>,
    completed: Sender<Completion>,
    polled: Mutex<Polled>,
    /// Who polls.
    polls: Mutex<Option<ThreadId>>,
    /// The deliveries that take the place of those that there are.
    next_delivering: Mutex<Option<Delivering>>,
    waiting: AtomicUsize,
    waiting_bytes: AtomicUsize,
    /// Whether nothing is to be delivered for now.
    is_held: AtomicBool,
    is_closed: AtomicBool,
    last_error: Mutex<String>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Handle {
    /// Connects.
    pub fn open(configuration: &Path) -> Result<Self, Failure> {
        let configuration = Configuration::load(configuration)
            .map_err(|text| Failure::new(Code::Configuration, text))?;
        let no_bell = |error: std::io::Error| Failure::new(Code::Internal, error.to_string());
        let bell = Bell::new().map_err(no_bell)?;
        let bell = Arc::new(bell);
        let rung = Arc::clone(&bell);
        let backend = Backend::open(configuration, move || rung.ring())?;
        let (completed, completions) = channel();
        Ok(Self {
            backend,
            bell,
            completed,
            polled: Mutex::new(Polled {
                completions,
                delivering: None,
                ended: None,
            }),
            polls: Mutex::new(None),
            next_delivering: Mutex::new(None),
            waiting: AtomicUsize::new(0),
            waiting_bytes: AtomicUsize::new(0),
            is_held: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            last_error: Mutex::new(String::new()),
        })
    }

    /// Submits a value; `done` is called by [`Self::poll`].
    pub fn submit(&self, value: Vec<u8>, done: Submitted) -> Result<(), Failure> {
        self.check_length(value.len())?;
        self.backend.must_live()?;
        let bytes = value.len();
        self.reserve(bytes)?;
        let (completed, bell) = (self.completed.clone(), Arc::clone(&self.bell));
        let submitted = self.backend.submit_then(value, move |result| {
            let completion = Completion {
                result,
                done,
                bytes,
            };
            completed.send(completion).ok(); // closed meanwhile
            bell.ring();
        });
        if submitted.is_err() {
            self.release(bytes);
        }
        submitted
    }

    fn reserve(&self, bytes: usize) -> Result<(), Failure> {
        let (waiting, waiting_bytes) = (&self.waiting, &self.waiting_bytes);
        let count = waiting.fetch_add(1, Ordering::Relaxed) + 1;
        let sum = waiting_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if count > SUBMITS_MAX || (sum > SUBMITS_BYTES_MAX && count > 1) {
            self.release(bytes);
            let text = format!(
                "as many submissions wait as may, {SUBMITS_MAX} or {SUBMITS_BYTES_MAX} bytes: poll first"
            );
            return Err(Failure::new(Code::Busy, text));
        }
        Ok(())
    }

    fn release(&self, bytes: usize) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Submits a value and waits.
    pub fn submit_wait(&self, value: &[u8]) -> Result<Instance, Failure> {
        self.check_length(value.len())?;
        self.backend.must_live()?;
        self.unless_closed(self.backend.submit(value))
    }

    /// What a call has come to that waited; if the handle was closed meanwhile, that says so.
    fn unless_closed<T>(&self, outcome: Result<T, Failure>) -> Result<T, Failure> {
        outcome.map_err(|failure| {
            if !self.is_closed.load(Ordering::Acquire) {
                return failure;
            }
            if failure.code == Code::OutcomeUnknown {
                let text = "the handle was closed: it may have been carried out, or may yet be";
                return Failure::new(failure.code, text);
            }
            if failure.code == Code::NotCarriedOut {
                return Failure::plain(Code::Handle);
            }
            failure
        })
    }

    /// Has values delivered by [`Self::poll`] from now on; 0: behind the learner's checkpoint.
    pub fn deliver(
        &self,
        learner: Learner,
        from: Instance,
        delivered: Delivered,
    ) -> Result<(), Failure> {
        self.backend.must_live()?;
        let deliveries = self.unless_closed(self.backend.deliver(learner, from))?;
        *locked(&self.next_delivering) = Some(Delivering {
            deliveries,
            delivered,
        });
        self.bell.ring();
        Ok(())
    }

    /// Whether deliveries from 0 on go on behind what earlier ones gave, not behind the checkpoint.
    pub fn gives_once(&self) -> bool {
        self.backend.gives_once()
    }

    /// Whether [`Self::poll`] delivers nothing from now on.
    pub fn hold(&self, is_held: bool) {
        if self.is_held.swap(is_held, Ordering::AcqRel) && !is_held {
            self.bell.ring(); // something may have come meanwhile
        }
    }

    /// What is known of an instance.
    pub fn recover(&self, instance: Instance) -> Result<Recovered, Failure> {
        self.backend.must_live()?;
        self.unless_closed(self.backend.recover(instance))
    }

    /// A learner's checkpoint; what is trimmed then.
    pub fn checkpoint(&self, learner: Learner, upto: Instance) -> Result<Instance, Failure> {
        self.backend.must_live()?;
        self.unless_closed(self.backend.checkpoint(learner, upto))
    }

    /// Nobody is given what stands up to there any more; what is trimmed then.
    pub fn declare_lost(&self, upto: Instance) -> Result<Instance, Failure> {
        self.backend.must_live()?;
        self.unless_closed(self.backend.declare_lost(upto))
    }

    /// The descriptor that is readable when there is something to call back.
    pub fn descriptor(&self) -> i32 {
        self.bell.number()
    }

    /// Calls back what there is; waits for the first, none: for ever.
    pub fn poll(&self, at_most: Option<Duration>) -> Result<usize, Failure> {
        let mut polled = match self.polled.try_lock() {
            Ok(polled) => polled,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Err(Failure::plain(Code::Busy)),
        };
        *locked(&self.polls) = Some(thread::current().id());
        let called = self.poll_alone(&mut polled, at_most);
        *locked(&self.polls) = None;
        called
    }

    fn poll_alone(&self, polled: &mut Polled, at_most: Option<Duration>) -> Result<usize, Failure> {
        let until = at_most.and_then(|it| Instant::now().checked_add(it));
        loop {
            // What rings from here on is looked at below, or in the next call.
            self.bell.still();
            if self.is_closed.load(Ordering::Acquire) {
                self.bell.ring();
                return Err(Failure::plain(Code::Handle));
            }
            if let Some(next) = locked(&self.next_delivering).take() {
                polled.delivering = Some(next);
                polled.ended = None; // of those before
            }
            let called = self.call_back(polled)?;
            if called > 0 {
                return Ok(called);
            }
            self.backend.must_live()?;
            let left = until.map(|it| it.saturating_duration_since(Instant::now()));
            if at_most.is_some() && left.is_none_or(|it| it.is_zero()) {
                return Ok(0);
            }
            let waited = self.bell.wait(left);
            waited.map_err(|error| Failure::new(Code::Internal, error.to_string()))?;
        }
    }

    /// Calls back what is there, as much as one call may.
    fn call_back(&self, polled: &mut Polled) -> Result<usize, Failure> {
        let waker = Waker::from(Arc::clone(&self.bell));
        let mut context = Context::from_waker(&waker);
        let mut called = 0;
        if let Some(failure) = polled.ended.take() {
            return Err(failure);
        }
        loop {
            let before = called;
            let completion = polled.completions.try_recv();
            if self.is_closed.load(Ordering::Acquire) {
                return Ok(called); // what has come of that is not called back
            }
            if let Ok(completion) = completion {
                called += 1;
                self.complete(completion);
            }
            match self.deliver_one(polled, &mut context) {
                Ok(has_delivered) => called += usize::from(has_delivered),
                Err(failure) if called == 0 => return Err(failure),
                Err(failure) => {
                    polled.ended = Some(failure); // said by the next call
                    self.bell.ring();
                    return Ok(called);
                }
            }
            if called == before {
                return Ok(called);
            }
            if called >= CALLBACKS_MAX {
                self.bell.ring();
                return Ok(called);
            }
        }
    }

    fn complete(&self, completion: Completion) {
        self.release(completion.bytes);
        let (code, instance) = match completion.result {
            Ok(instance) => (Code::Ok, instance),
            Err(failure) => {
                self.note(&failure);
                (failure.code, 0)
            }
        };
        (completion.done)(code, instance);
    }

    fn deliver_one(&self, polled: &mut Polled, context: &mut Context<'_>) -> Result<bool, Failure> {
        if self.is_held.load(Ordering::Acquire) {
            return Ok(false);
        }
        if locked(&self.next_delivering).is_some() {
            return Ok(false); // in its place: at the next turn
        }
        let Some(delivering) = &mut polled.delivering else {
            return Ok(false);
        };
        match delivering.deliveries.poll(context) {
            Poll::Pending => Ok(false),
            Poll::Ready(Some(Ok((instance, value)))) => {
                (delivering.delivered)(instance, &value);
                Ok(true)
            }
            Poll::Ready(Some(Err(failure))) => {
                polled.delivering = None;
                Err(failure)
            }
            Poll::Ready(None) => {
                polled.delivering = None;
                Ok(false)
            }
        }
    }

    /// Ends it, and what waits in calls of other threads. Whoever polls returns first; that may not be the
    /// caller.
    pub fn close(&self) -> Result<(), Failure> {
        if *locked(&self.polls) == Some(thread::current().id()) {
            return Err(Failure::plain(Code::Busy));
        }
        self.is_closed.store(true, Ordering::Release);
        self.bell.ring();
        self.backend.close();
        let mut polled = locked(&self.polled);
        polled.delivering = None;
        *locked(&self.next_delivering) = None;
        Ok(())
    }

    /// The longest value, in bytes.
    pub fn value_bytes_max(&self) -> usize {
        self.backend.value_bytes_max()
    }

    fn check_length(&self, bytes: usize) -> Result<(), Failure> {
        let max = self.value_bytes_max();
        if bytes > max {
            let text = format!("the value has {bytes} bytes; allowed: at most {max}");
            return Err(Failure::new(Code::TooLarge, text));
        }
        Ok(())
    }

    /// Keeps the text of an error, for this thread, too.
    pub fn note(&self, failure: &Failure) {
        failure.remember();
        locked(&self.last_error).clone_from(&failure.text);
    }

    /// The last one.
    pub fn last_error(&self) -> String {
        locked(&self.last_error).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::net::TcpListener;

    #[test]
    fn a_replica_inside_has_ended_when_it_is_closed_though_another_thread_has_the_handle() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name).display().to_string();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = listener.local_addr().unwrap();
        drop(listener);
        let text = format!(
            "id = 0\nmembers = \"0={peer}\"\nlearners = \"1\"\ndir = {:?}\nlisten_peer = \"{peer}\"\n\
             listen_client = \"127.0.0.1:0\"\nlisten_http = \"127.0.0.1:0\"\ndrain_timeout_ms = 100\n",
            file("data"),
        );
        fs::write(file("server.toml"), text).unwrap();
        let configuration = file("client.toml");
        let text = format!("replica = {:?}\n", file("server.toml"));
        fs::write(&configuration, text).unwrap();
        let open = || Handle::open(Path::new(&configuration));
        let within_a_call = open().map_err(|it| it.text).unwrap();
        let twice = open().map(drop).unwrap_err().text;
        assert!(twice.contains("in use by process"), "{twice}");
        within_a_call.close().map_err(|it| it.text).unwrap();
        let anew = open().map_err(|it| it.text).unwrap();
        anew.close().map_err(|it| it.text).unwrap();
    }
}

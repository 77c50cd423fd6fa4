//! A replica of the group that decides, inside the program: the server's own loop, on a thread of its own.
use crate::error::{Code, Failure};
use quorumwire_node::options::ServerOptions;
use quorumwire_node::{logging, server};
use quorumwire_ops::http::Http;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Once, OnceLock};
use std::thread::{self, JoinHandle};

/// It, until it is dropped: then it answers what it took on, has another one lead, and ends.
pub struct Replica {
    /// Where clients reach it from inside the program.
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    /// Why it has ended by itself.
    ended: Arc<OnceLock<String>>,
    thread: Option<JoinHandle<()>>,
}

impl Replica {
    /// Starts it, and returns once it takes clients: it has read its log then. `ring` is called when it ends.
    pub fn start(
        options: ServerOptions,
        ring: impl Fn() + Send + 'static,
    ) -> Result<Self, Failure> {
        static LOG: Once = Once::new();
        LOG.call_once(|| logging::start(&options));
        let wrong = |text: String| Failure::new(Code::Configuration, text);
        logging::start_writing().map_err(|error| wrong(format!("{error:#}")))?;
        let (stop, ended) = (Arc::default(), Arc::new(OnceLock::new()));
        let (tell, told) = channel();
        let run = {
            let (stop, ended) = (Arc::clone(&stop), Arc::clone(&ended));
            move || {
                let started = |address| {
                    tell.send(address).ok();
                };
                let serve = || server::run_values_within(&options, &Http, &stop, started);
                let outcome = catch_unwind(AssertUnwindSafe(serve));
                let why = match outcome {
                    Ok(Ok(())) => "it was stopped".to_owned(),
                    Ok(Err(error)) => format!("{error:#}"),
                    Err(_) => "it panicked: its log says where".to_owned(),
                };
                ended.set(why).ok();
                ring();
            }
        };
        let thread = thread::Builder::new().name("qw-replica".to_owned());
        let thread = thread.spawn(run);
        let thread = thread.map_err(|error| wrong(format!("no thread: {error}")))?;
        let Ok(address) = told.recv() else {
            thread.join().ok();
            let why = ended.get().cloned().unwrap_or_default();
            return Err(wrong(format!("replica: {why}")));
        };
        Ok(Self {
            address: reachable(address),
            stop,
            ended,
            thread: Some(thread),
        })
    }

    /// An error if it has ended.
    pub fn must_live(&self) -> Result<(), Failure> {
        match self.ended.get() {
            None => Ok(()),
            Some(why) => {
                let text = format!("the replica in this program has ended: {why}");
                Err(Failure::new(Code::Internal, text))
            }
        }
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// Where a socket that listens everywhere is reached from here.
fn reachable(address: SocketAddr) -> SocketAddr {
    let loopback = match address.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    SocketAddr::new(loopback, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_listens_everywhere_is_reached_at_loopback() {
        for (bound, reached) in [
            ("0.0.0.0:7", "127.0.0.1:7"),
            ("[::]:7", "[::1]:7"),
            ("10.0.0.1:7", "10.0.0.1:7"),
        ] {
            assert_eq!(reachable(bound.parse().unwrap()).to_string(), reached);
        }
    }
}

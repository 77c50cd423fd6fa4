//! A server that tests turn by hand: a group of one, on ports and in a folder of its own. Nobody else drives
//! it.
use super::*;
use crate::options::{Flags, Serves, resolve};
use crate::server::connection_id::ConnectionId;
use mio::Events;
use std::net::TcpStream;
use std::time::Instant;

/// What others do, the system and the threads of this process, comes within this.
const DEADLINE: Duration = Duration::from_secs(10);

/// A server and its folder.
pub struct Alone {
    pub server: Server<KeyValue>,
    _folder: tempfile::TempDir,
}

impl Alone {
    /// One that has not turned yet.
    pub fn start(flags: &[(&'static str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let any = "127.0.0.1:0";
        let enough = [
            ("id", "0"),
            ("dir", folder.path().to_str().unwrap()),
            ("members", "0=127.0.0.1:1"),
            ("durability", "memory"),
            ("plane", "none"),
            ("listen-peer", any),
            ("listen-memcached", any),
            ("listen-redis", any),
            ("listen-client", any),
            ("listen-http", any),
        ];
        let given = enough.iter().chain(flags);
        let flags = given.map(|(name, text)| (*name, (*text).to_owned()));
        let values = resolve(&Flags(flags.collect(), Serves::Store), &|_| None).unwrap();
        let options = ServerOptions::from_values(&values).unwrap();
        let poll = Poll::new().unwrap();
        let waker = Arc::new(Waker::new(poll.registry(), TOKEN_WAKE).unwrap());
        let disk = lock_folder(&options, group_at(0)).unwrap();
        let memories = open_all(&options, vec![disk], &waker, &mut |_| {}).unwrap();
        let peers = bind(options.listen_peer, "listen-peer").unwrap();
        let clients = bind_clients::<KeyValue>(&options).unwrap();
        let http = options.listen_http;
        let addresses = Addresses::of(&options, &peers, &clients, http).unwrap();
        let listeners = (peers, clients);
        let stop = AtomicBool::new(false);
        let server = join(&options, memories, poll, listeners, addresses, &stop).unwrap();
        Self {
            server,
            _folder: folder,
        }
    }

    /// One that leads, and has applied the beginning of its term.
    pub fn leading() -> Self {
        let mut alone = Self::start(&[]);
        alone.until("it leads", |server| {
            server.core.group.leads() && server.core.group.applied >= server.core.group.term_start
        });
        alone
    }

    /// Turns until this holds.
    pub fn until(&mut self, what: &str, holds: impl Fn(&Server<KeyValue>) -> bool) {
        let begun = Instant::now();
        while !holds(&self.server) {
            assert!(begun.elapsed() < DEADLINE, "{what}: not in time");
            let timeout = self.server.time_to_wait();
            self.server.attention.waits(timeout);
            let mut events = Events::with_capacity(64);
            self.server.wait_for_events(&mut events, timeout).unwrap();
            self.server.turn(&events).unwrap();
        }
    }

    /// A memcached client, and its connection here.
    pub fn connect(&mut self) -> (TcpStream, ConnectionId) {
        let before = self.server.clients.count();
        let socket = TcpStream::connect(&self.server.addresses.memcached).unwrap();
        socket.set_read_timeout(Some(DEADLINE)).unwrap();
        self.until("a client is let in", |server| {
            server.clients.count() > before
        });
        let newest = self.server.clients.iter().max_by_key(|it| it.id.number());
        (socket, newest.unwrap().id)
    }
}

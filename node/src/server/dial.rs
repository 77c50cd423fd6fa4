//! Where another replica is dialed: its address, looked up without holding up the event loop.
use quorumwire_control::Now;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;

/// Where a replica is to be dialed, and when next.
pub struct Dial {
    pub address: String,
    resolving: Option<Receiver<Option<SocketAddr>>>,
    /// What its name meant last.
    found: Option<IpAddr>,
    pub next: Now,
    pub link: Option<usize>,
    /// It was dialed before, if only in vain.
    pub tried: bool,
}

/// What looking an address up has come to.
pub enum Resolved {
    /// Here it is.
    Address(SocketAddr),
    /// Still being looked up.
    NotYet,
    /// The name server knows none, this time.
    Unknown,
}

impl Dial {
    /// To be dialed at once.
    pub fn new(address: String) -> Self {
        let found = address.parse().ok();
        Self {
            address,
            resolving: None,
            found: found.map(|found: SocketAddr| found.ip().to_canonical()),
            next: Now::default(),
            link: None,
            tried: false,
        }
    }

    /// Whether the replica is, or was when it was last dialed, at this address.
    pub fn is_at(&self, address: IpAddr) -> bool {
        self.found == Some(address)
    }

    /// The address to dial. Names are looked up by a thread of their own, one at a time for each
    /// replica, because a name server may take seconds.
    pub fn resolve(&mut self) -> Resolved {
        if let Ok(address) = self.address.parse() {
            return Resolved::Address(address);
        }
        let Some(answer) = &self.resolving else {
            let (sender, receiver) = mpsc::sync_channel(1);
            let name = self.address.clone();
            let lookup = move || {
                let address = name.to_socket_addrs().ok().and_then(|mut all| all.next());
                sender.send(address).ok();
            };
            if thread::Builder::new()
                .name("resolve".into())
                .spawn(lookup)
                .is_ok()
            {
                self.resolving = Some(receiver);
            }
            return Resolved::NotYet;
        };
        match answer.try_recv() {
            Err(TryRecvError::Empty) => Resolved::NotYet,
            Ok(Some(address)) => {
                self.resolving = None;
                self.found = Some(address.ip().to_canonical());
                Resolved::Address(address)
            }
            Ok(None) | Err(TryRecvError::Disconnected) => {
                self.resolving = None;
                Resolved::Unknown
            }
        }
    }
}

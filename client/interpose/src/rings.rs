//! The replica's side of the two rings. What the program writes is checked before it is believed.
use crate::ffi::Memory;
use crate::layout::{
    ACCEPT_BYTES, CONTROL_DEADLINE_NS_AT, CONTROL_DETAIL_AT, CONTROL_GIVEN_BYTES_AT,
    CONTROL_GIVEN_HEAD_AT, CONTROL_GIVEN_TAIL_AT, CONTROL_HOLDER_AT, CONTROL_KEY_AT,
    CONTROL_LOST_DATAGRAMS_AT, CONTROL_MAGIC_AT, CONTROL_OUTBOUND_AT, CONTROL_OUTBOUND_PASSES_AT,
    CONTROL_OUTBOUND_PORT_AT, CONTROL_PROGRAM_SLEEPS_AT, CONTROL_REPLICA_SLEEPS_AT,
    CONTROL_SAID_BYTES_AT, CONTROL_SAID_HEAD_AT, CONTROL_SAID_TAIL_AT,
    CONTROL_START_LOG_TIME_NS_AT, CONTROL_START_WALL_NS_AT, CONTROL_STEP_NS_AT,
    CONTROL_TURN_DONE_AT, CONTROL_UNREAD_BYTES_AT, CONTROL_VERSION_AT, CONTROL_WHY_AT,
    ENDPOINT_BYTES, GIVEN_ACCEPT, GIVEN_DATA, GIVEN_DATAGRAM, GIVEN_END, GIVEN_PAD, GIVEN_RESET,
    GIVEN_SIGNAL, GIVEN_TURN, LISTEN_BYTES, PAGE_BYTES, RECORD_BYTES, RECORD_BYTES_MAX,
    RINGS_MAGIC, RINGS_VERSION, SAID_CLOSE, SAID_DATA, SAID_DATAGRAM, SAID_LISTEN, SAID_PAD,
    SAID_SHUT, SAID_UNLISTEN, TURN_BYTES, WHY_BROKEN_RING, WHY_CALL, WHY_CHILDREN, WHY_INHERITED,
    WHY_NONE, WHY_OUT_OF_MEMORY, WHY_SECOND_READER, WHY_STRANGER,
};
use quorumwire_replay::TurnEvent;
use rustix::event::EventfdFlags;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use thiserror::Error;

/// How long the rings are, in bytes: powers of two, 512 KiB to 4 GiB.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Of what the program is given.
    pub given: usize,
    /// Of what it says.
    pub said: usize,
}

impl Default for Sizes {
    fn default() -> Self {
        Self {
            given: 32 << 20,
            said: 32 << 20,
        }
    }
}

/// What a program begins with.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// The log's time, in nanoseconds.
    pub log_time_ns: u64,
    /// The time of day then, in nanoseconds since 1970.
    pub wall_ns: u64,
    /// By how much time goes on at each look at a clock, in nanoseconds.
    pub step_ns: u64,
    /// What all chance follows from.
    pub key: [u8; 32],
    /// It may connect to other servers; what they say is not in the log.
    pub allow_outbound: bool,
}

/// An address and a port, as the program sees it.
pub type Endpoint = SocketAddr;

/// Bytes that an event takes in the ring, at most.
const fn ring_bytes(event: &TurnEvent<'_>) -> usize {
    match event {
        TurnEvent::Accept { .. } => RECORD_BYTES + ACCEPT_BYTES,
        TurnEvent::Data { bytes, .. } => {
            (bytes.len() / RECORD_BYTES_MAX + 1) * (RECORD_BYTES + 8) + bytes.len()
        }
        TurnEvent::End { .. } | TurnEvent::Reset { .. } => RECORD_BYTES,
        TurnEvent::Datagram { bytes, .. } => RECORD_BYTES + ACCEPT_BYTES + bytes.len() + 8,
    }
}

/// How many records it is.
const fn records(event: &TurnEvent<'_>) -> usize {
    match event {
        TurnEvent::Data { bytes, .. } => bytes.len().div_ceil(RECORD_BYTES_MAX),
        TurnEvent::Accept { .. }
        | TurnEvent::End { .. }
        | TurnEvent::Reset { .. }
        | TurnEvent::Datagram { .. } => 1,
    }
}

/// What the program says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Said<'a> {
    /// Bytes for a client.
    Data {
        /// For whom.
        connection: u64,
        /// What.
        bytes: &'a [u8],
    },
    /// It sends this client no more.
    Shut {
        /// Whom.
        connection: u64,
    },
    /// It has closed the connection.
    Close {
        /// Whose.
        connection: u64,
    },
    /// It listens there.
    Listen {
        /// Where.
        at: Endpoint,
        /// For UDP.
        is_datagrams: bool,
    },
    /// It does so no more.
    Unlisten {
        /// Where.
        at: Endpoint,
        /// For UDP.
        is_datagrams: bool,
    },
    /// A datagram for a client.
    Datagram {
        /// Where the client is.
        peer: Endpoint,
        /// From where it is sent.
        own: Endpoint,
        /// What.
        bytes: &'a [u8],
    },
}

/// Why a program may not go on.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum Refusal {
    /// Two threads.
    #[error(
        "a second thread (number {0}) reads clients' connections: start the program with one such thread (Redis: \
         `io-threads 1`), or say --serial, which serves threads that wait for each other by locks"
    )]
    SecondReader(u64),
    /// A child.
    #[error(
        "a child process uses a connection of a client: have the program serve clients in one process"
    )]
    Inherited,
    /// The kernel.
    #[error("the kernel cannot be told to make no child of it: error {0} of `seccomp`")]
    Children(u64),
    /// A call.
    #[error("it uses system call {0} in a way that is not served")]
    Call(u64),
    /// The replica's fault.
    #[error("what it was given makes no sense, at place {0}: this is a fault of quorumwire")]
    BrokenRing(u64),
    /// Memory.
    #[error("there is no memory for what its clients have sent")]
    OutOfMemory,
    /// A thread that the library has not made.
    #[error(
        "a thread (number {0}) takes part that pthread_create() has not made, or a signal's handler does while its thread waits: their turns have no order"
    )]
    Stranger(u64),
    /// A newer library.
    #[error("reason {0} is not known here")]
    Unknown(u32),
}

/// What the program has written makes no sense.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("what the program has written at place {0} of its ring makes no sense")]
pub struct Broken(pub u64);

/// Both rings, and the doorbells.
#[derive(Debug)]
pub struct Rings {
    memory: Memory,
    sizes: Sizes,
    program_door: OwnedFd,
    replica_door: OwnedFd,
    given_head: u64,
    said_tail: u64,
    /// A record that was taken out.
    taken: Vec<u8>,
}

const fn up_to_eight(bytes: usize) -> usize {
    (bytes + 7) & !7
}

fn put_endpoint(to: &mut Vec<u8>, endpoint: Endpoint) {
    let ip = match endpoint.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    to.extend_from_slice(&ip.octets());
    to.extend_from_slice(&endpoint.port().to_ne_bytes());
    to.extend_from_slice(&u16::from(endpoint.is_ipv6()).to_ne_bytes());
}

fn endpoint(from: &[u8]) -> Option<Endpoint> {
    let ip = Ipv6Addr::from(*from.first_chunk::<16>()?);
    let port = u16::from_ne_bytes(*from.get(16..)?.first_chunk()?);
    let is_ipv6 = u16::from_ne_bytes(*from.get(18..)?.first_chunk()?);
    let ip = match (is_ipv6, ip.to_ipv4_mapped()) {
        (0, Some(ip)) => IpAddr::V4(ip),
        (1, _) => IpAddr::V6(ip),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

impl Rings {
    /// New ones, with nothing in them.
    pub fn new(sizes: Sizes, start: &Start) -> io::Result<Self> {
        let is_size = |bytes: usize| {
            bytes.is_power_of_two() && (4 * RECORD_BYTES_MAX..=1 << 32).contains(&bytes)
        };
        if !is_size(sizes.given) || !is_size(sizes.said) {
            let text = "a ring is a power of two, 512 KiB to 4 GiB";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let memory = Memory::new("quorumwire-rings", PAGE_BYTES + sizes.given + sizes.said)?;
        let door = || rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        memory.store_half(CONTROL_MAGIC_AT, RINGS_MAGIC);
        memory.store_half(CONTROL_VERSION_AT, RINGS_VERSION);
        memory.store(CONTROL_GIVEN_BYTES_AT, sizes.given as u64);
        memory.store(CONTROL_SAID_BYTES_AT, sizes.said as u64);
        memory.store(CONTROL_STEP_NS_AT, start.step_ns);
        memory.store_half(CONTROL_OUTBOUND_PASSES_AT, u32::from(start.allow_outbound));
        memory.store(CONTROL_START_LOG_TIME_NS_AT, start.log_time_ns);
        memory.store(CONTROL_START_WALL_NS_AT, start.wall_ns);
        memory.store(CONTROL_DEADLINE_NS_AT, u64::MAX);
        memory.write(CONTROL_KEY_AT, &start.key);
        Ok(Self {
            memory,
            sizes,
            program_door: door()?,
            replica_door: door()?,
            given_head: 0,
            said_tail: 0,
            taken: Vec::new(),
        })
    }

    /// What the program inherits: the memory, its doorbell and the replica's.
    #[must_use]
    pub fn inherited(&self) -> [BorrowedFd<'_>; 3] {
        [
            self.memory.descriptor().as_fd(),
            self.program_door.as_fd(),
            self.replica_door.as_fd(),
        ]
    }

    /// Can be read when the program has said something since [`may_sleep`](Self::may_sleep).
    #[must_use]
    pub fn doorbell(&self) -> BorrowedFd<'_> {
        self.replica_door.as_fd()
    }

    // What the program is given.

    /// The longest turn.
    #[must_use]
    pub const fn turn_bytes_max(&self) -> usize {
        self.sizes.given / 4
    }

    /// Bytes that the program was given and has not taken.
    fn given_bytes(&self) -> u64 {
        let tail = self.memory.load(CONTROL_GIVEN_TAIL_AT);
        // A tail beyond the head is a fault of the program's; then nothing is given any more.
        self.given_head.checked_sub(tail).unwrap_or(u64::MAX)
    }

    /// Whether any turn of at most [`turn_bytes_max`](Self::turn_bytes_max) has room.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.given_bytes() <= (self.sizes.given / 2) as u64
    }

    /// Gives the program a turn. `number` is higher than the last one's. False: there is no room for it.
    pub fn give(
        &mut self,
        number: u64,
        log_time_ns: u64,
        wall_ns: u64,
        events: &[TurnEvent<'_>],
    ) -> bool {
        let bytes: usize = events.iter().map(ring_bytes).sum();
        if bytes > self.turn_bytes_max() || !self.has_room() {
            return false;
        }
        let count: usize = events.iter().map(records).sum();
        self.begin_turn(number, (log_time_ns, wall_ns), count);
        for event in events {
            self.put_event(event, number);
        }
        self.end_turn();
        true
    }

    /// Gives it a turn in which it gets a signal, as if somebody had sent it.
    pub fn give_signal(&mut self, number: u64, log_time_ns: u64, wall_ns: u64, signal: u8) -> bool {
        if !self.has_room() {
            return false;
        }
        self.begin_turn(number, (log_time_ns, wall_ns), 1);
        self.put(GIVEN_SIGNAL, u64::from(signal), number, &[]);
        self.end_turn();
        true
    }

    /// `count`: the records that follow.
    fn begin_turn(&mut self, number: u64, (log_time_ns, wall_ns): (u64, u64), count: usize) {
        let mut body = Vec::with_capacity(TURN_BYTES);
        body.extend_from_slice(&log_time_ns.to_ne_bytes());
        body.extend_from_slice(&wall_ns.to_ne_bytes());
        body.extend_from_slice(&u32::try_from(count).unwrap_or(u32::MAX).to_ne_bytes());
        body.extend_from_slice(&0_u32.to_ne_bytes());
        self.put(GIVEN_TURN, 0, number, &[&body]);
    }

    /// Shows it to the program.
    fn end_turn(&self) {
        self.memory.store(CONTROL_GIVEN_HEAD_AT, self.given_head);
        if self.memory.load_half(CONTROL_PROGRAM_SLEEPS_AT) == 1 {
            self.memory.store_half(CONTROL_PROGRAM_SLEEPS_AT, 0);
            self.ring_program();
        }
    }

    fn put_event(&mut self, event: &TurnEvent<'_>, number: u64) {
        let ends = |peer, own| {
            let mut ends = Vec::with_capacity(ACCEPT_BYTES);
            put_endpoint(&mut ends, peer);
            put_endpoint(&mut ends, own);
            ends
        };
        match *event {
            TurnEvent::Accept {
                connection,
                peer,
                own,
            } => self.put(GIVEN_ACCEPT, connection, number, &[&ends(peer, own)]),
            TurnEvent::Data { connection, bytes } => {
                for piece in bytes.chunks(RECORD_BYTES_MAX) {
                    self.put(GIVEN_DATA, connection, number, &[piece]);
                }
            }
            TurnEvent::End { connection } => self.put(GIVEN_END, connection, number, &[]),
            TurnEvent::Reset { connection } => self.put(GIVEN_RESET, connection, number, &[]),
            TurnEvent::Datagram { peer, own, bytes } => {
                self.put(GIVEN_DATAGRAM, 0, number, &[&ends(peer, own), bytes]);
            }
        }
    }

    /// Writes a record behind the last one. There is room: nobody sees it until the head moves.
    fn put(&mut self, kind: u32, connection: u64, number: u64, parts: &[&[u8]]) {
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        let size = self.sizes.given;
        let mut place = self.place(self.given_head, size);
        let room = size - place;
        if room < RECORD_BYTES + up_to_eight(bytes) {
            if room >= RECORD_BYTES {
                self.put_head(place, GIVEN_PAD, 0, 0, 0);
            }
            self.given_head += room as u64;
            place = 0;
        }
        self.put_head(place, kind, bytes, connection, number);
        let mut at = PAGE_BYTES + place + RECORD_BYTES;
        for part in parts {
            self.memory.write(at, part);
            at += part.len();
        }
        self.given_head += (RECORD_BYTES + up_to_eight(bytes)) as u64;
    }

    fn put_head(&self, place: usize, kind: u32, bytes: usize, connection: u64, number: u64) {
        let mut head = [0; RECORD_BYTES];
        head[..4].copy_from_slice(&kind.to_ne_bytes());
        head[4..8].copy_from_slice(&u32::try_from(bytes).unwrap_or(u32::MAX).to_ne_bytes());
        head[8..16].copy_from_slice(&connection.to_ne_bytes());
        head[16..].copy_from_slice(&number.to_ne_bytes());
        self.memory.write(PAGE_BYTES + place, &head);
    }

    #[allow(clippy::unused_self, clippy::cast_possible_truncation)] // less than the ring's size
    const fn place(&self, count: u64, size: usize) -> usize {
        (count & (size as u64 - 1)) as usize
    }

    fn ring_program(&self) {
        // Its count cannot be at the most there is: the program reads it whenever it wakes.
        rustix::io::write(&self.program_door, &1_u64.to_ne_bytes()).ok();
    }

    // What it says.

    /// The next that it has said, and the number of the turn in which.
    pub fn take(&mut self) -> Result<Option<(u64, Said<'_>)>, Broken> {
        let head = self.memory.load(CONTROL_SAID_HEAD_AT);
        let size = self.sizes.said;
        loop {
            let waiting = head.wrapping_sub(self.said_tail);
            if waiting == 0 {
                return Ok(None);
            }
            let broken = Broken(self.said_tail);
            let place = self.place(self.said_tail, size);
            let room = size - place;
            if waiting > size as u64 {
                return Err(broken);
            }
            let from = PAGE_BYTES + self.sizes.given + place;
            let mut record = [0; RECORD_BYTES];
            if room >= RECORD_BYTES {
                self.memory.read(from, &mut record);
            }
            let number =
                |at: usize| u64::from_ne_bytes(*record[at..].first_chunk().expect("of 8 bytes"));
            let half =
                |at: usize| u32::from_ne_bytes(*record[at..].first_chunk().expect("of 4 bytes"));
            let (kind, bytes, connection, turn) =
                (half(0), half(4) as usize, number(8), number(16));
            if room < RECORD_BYTES || kind == SAID_PAD {
                if waiting < room as u64 {
                    return Err(broken);
                }
                self.said_tail += room as u64;
                continue;
            }
            let whole = RECORD_BYTES + up_to_eight(bytes);
            if bytes > RECORD_BYTES_MAX || whole > room || whole as u64 > waiting {
                return Err(broken);
            }
            self.taken.resize(bytes, 0);
            self.memory.read(from + RECORD_BYTES, &mut self.taken);
            self.said_tail += whole as u64;
            self.memory.store(CONTROL_SAID_TAIL_AT, self.said_tail);
            let said = said(kind, connection, &self.taken).ok_or(broken)?;
            return Ok(Some((turn, said)));
        }
    }

    /// Whether nothing is there to be taken, so that the replica may wait for the doorbell. The program rings
    /// it for the next thing that it says, or when it waits for a turn.
    #[must_use]
    pub fn may_sleep(&self) -> bool {
        self.memory.store_half(CONTROL_REPLICA_SLEEPS_AT, 1);
        self.memory.load(CONTROL_SAID_HEAD_AT) == self.said_tail
    }

    /// The doorbell has rung.
    pub fn heard(&self) {
        let mut count = [0; 8];
        rustix::io::read(&self.replica_door, &mut count).ok(); // nothing in it: it has not
    }

    // What it does.

    /// The last turn that it has carried out, and after which it wants another one.
    #[must_use]
    pub fn turn_done(&self) -> u64 {
        self.memory.load(CONTROL_TURN_DONE_AT)
    }

    /// Whether it has taken a turn.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.memory.load(CONTROL_GIVEN_TAIL_AT) > 0
    }

    /// The kernel's number of the thread whose turn it is, of a program of which several serve.
    #[must_use]
    pub fn holder(&self) -> u32 {
        self.memory.load_half(CONTROL_HOLDER_AT)
    }

    /// The log's time at which a wait of the program's ends, in nanoseconds; none: it waits for clients only.
    #[must_use]
    pub fn deadline_ns(&self) -> Option<u64> {
        let deadline = self.memory.load(CONTROL_DEADLINE_NS_AT);
        (deadline != u64::MAX).then_some(deadline)
    }

    /// Bytes of clients that it was given and has not read.
    #[must_use]
    pub fn unread_bytes(&self) -> u64 {
        self.memory.load(CONTROL_UNREAD_BYTES_AT)
    }

    /// Datagrams of clients that it had no room for.
    #[must_use]
    pub fn lost_datagrams(&self) -> u64 {
        self.memory.load(CONTROL_LOST_DATAGRAMS_AT)
    }

    /// How often it wanted to connect to another server, and at which port the last time. It was told that
    /// nobody listens there.
    #[must_use]
    pub fn outbound(&self) -> (u64, u32) {
        let count = self.memory.load(CONTROL_OUTBOUND_AT);
        (count, self.memory.load_half(CONTROL_OUTBOUND_PORT_AT))
    }

    /// Why it may not go on.
    #[must_use]
    pub fn refusal(&self) -> Option<Refusal> {
        let why = self.memory.load_half(CONTROL_WHY_AT);
        let detail = self.memory.load(CONTROL_DETAIL_AT);
        Some(match why {
            WHY_NONE => return None,
            WHY_SECOND_READER => Refusal::SecondReader(detail),
            WHY_INHERITED => Refusal::Inherited,
            WHY_CHILDREN => Refusal::Children(detail),
            WHY_CALL => Refusal::Call(detail),
            WHY_BROKEN_RING => Refusal::BrokenRing(detail),
            WHY_OUT_OF_MEMORY => Refusal::OutOfMemory,
            WHY_STRANGER => Refusal::Stranger(detail),
            unknown => Refusal::Unknown(unknown),
        })
    }
}

fn said(kind: u32, connection: u64, bytes: &[u8]) -> Option<Said<'_>> {
    let listens = || {
        let at = endpoint(bytes)?;
        let is_datagrams = u32::from_ne_bytes(*bytes.get(ENDPOINT_BYTES..)?.first_chunk()?);
        (bytes.len() == LISTEN_BYTES && is_datagrams <= 1).then_some((at, is_datagrams == 1))
    };
    Some(match kind {
        SAID_DATA => Said::Data { connection, bytes },
        SAID_SHUT => Said::Shut { connection },
        SAID_CLOSE => Said::Close { connection },
        SAID_LISTEN => {
            let (at, is_datagrams) = listens()?;
            Said::Listen { at, is_datagrams }
        }
        SAID_UNLISTEN => {
            let (at, is_datagrams) = listens()?;
            Said::Unlisten { at, is_datagrams }
        }
        SAID_DATAGRAM => Said::Datagram {
            peer: endpoint(bytes)?,
            own: endpoint(bytes.get(ENDPOINT_BYTES..)?)?,
            bytes: bytes.get(ACCEPT_BYTES..)?,
        },
        _ => return None,
    })
}

//! The memcached protocol over UDP: a request, and its answer, in one datagram or a few. Requests that come
//! together are carried out one after the other, each with an answer of its own. Nothing is sent
//! again and nothing is known twice: a client that asks again asks anew, as with memcached. A `set` that a
//! fast term's plane takes is answered by the plane; all else here.
//!
//! Whoever sends a datagram can name somebody else as its sender, who then gets the answer. So an answer
//! is never much longer than its request, and what could be another server's answer is not answered.
use super::Core;
use super::Server;
use super::memcached::{LocalAnswer, local_answer};
use super::meta_reads::MetaRead;
use super::reads::KEY_WORK;
use crate::server::budget::Purpose;
use crate::server::clients::AnswerKind;
use crate::server::origin::{Origin, Reader};
use crate::server::route_outcome::RouteOutcome;
use crate::server::{TOKEN_DATAGRAMS, answers, clock};
use bytes::Bytes;
use mio::net::UdpSocket;
use mio::{Interest, Registry};
use quorumwire_control::Now;
use quorumwire_group::Reader::{Follower, Here};
use quorumwire_group::{Gate, REQUEST_TIMEOUT};
use quorumwire_interfaces::{Application as _, Index, Reason, counters};
use quorumwire_kv::memcached::{Local, Parsed, ReadKind, Request, parse, reply};
use quorumwire_kv::{Command, Query, QueryForm};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd as _;

mod assembly;
mod frame;

use assembly::Assembly;
pub use assembly::AssemblyCounters;
use frame::{Frame, HEADER_BYTES, answer_bytes_max};

/// Requests that may wait for their answers; more are dropped.
const WAITING_MAX: usize = 4096;
/// Bytes of requests that may wait for those they came with.
const REST_BYTES_MAX: usize = 16 << 20;
/// Datagrams taken in one turn of the event loop.
const DATAGRAMS_PER_TURN: usize = 256;
/// Largest datagram there is.
const DATAGRAM_BYTES_MAX: usize = 64 << 10;

const TOO_LARGE: &[u8] = b"SERVER_ERROR answer too large for UDP, ask over TCP\r\n";
const TOO_LARGE_EXECUTED: &[u8] = b"SERVER_ERROR executed: answer too large for UDP\r\n";

counters! {
    /// Counted since the start.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct DatagramCounters {
        /// Requests on memcached's UDP port
        pub requests: "datagram_requests",
        /// Answers sent over memcached's UDP port
        pub answers: "datagram_answers",
        /// Answers replaced by an error because they are too large for UDP
        pub answers_too_large: "datagram_answers_too_large",
        /// Datagrams dropped on memcached's UDP port because they are no requests
        pub dropped_malformed: "datagram_dropped_malformed",
        /// Datagrams dropped on memcached's UDP port because too many requests waited
        pub dropped_too_many: "datagram_dropped_too_many",
        /// Requests on memcached's UDP port given up without an answer
        pub expired: "datagram_requests_expired",
        /// Datagrams of such answers that the system did not take
        pub not_sent: "datagram_answers_not_sent",
        /// Bytes of datagrams taken on memcached's UDP port, frames included
        pub bytes_in: "datagram_bytes_in",
        /// Bytes of datagrams sent from memcached's UDP port, frames included
        pub bytes_out: "datagram_bytes_out",
    }
}

/// A request that waits for its answer.
struct Waiting {
    from: SocketAddr,
    /// The client's number for it.
    request: u16,
    datagram_bytes: usize,
    /// A read's line; empty for a write.
    line: Bytes,
    /// What that was seen to be.
    form: QueryForm,
    noreply: bool,
    /// What came behind it, for when it is answered.
    rest: Rest,
    at: Now,
}

/// What came behind a request.
#[derive(Clone, Default)]
struct Rest {
    bytes: Bytes,
    /// Bytes of the buffer of which they are a part.
    held_bytes: usize,
}

impl Rest {
    fn copied(bytes: &[u8]) -> Self {
        Self {
            bytes: Bytes::copy_from_slice(bytes),
            held_bytes: bytes.len(),
        }
    }

    fn behind(&self, at: usize) -> Self {
        Self {
            bytes: self.bytes.slice(at..),
            held_bytes: self.held_bytes,
        }
    }
}

/// Requests whose turn has come, because what came before them is answered.
struct Following {
    from: SocketAddr,
    request: u16,
    body: Rest,
}

/// The UDP side of the memcached port.
pub struct Datagrams {
    socket: UdpSocket,
    /// By a number of ours, ascending with time.
    waiting: BTreeMap<u64, Waiting>,
    following: VecDeque<Following>,
    /// Held for `following`, and for what came behind those that wait.
    rest_bytes: usize,
    /// Requests of which not all datagrams have come.
    assembly: Assembly,
    next: u64,
    /// More may be there although nothing wakes us for it.
    pub has_more: bool,
    pub counters: DatagramCounters,
}

impl Datagrams {
    fn new(socket: UdpSocket) -> Self {
        Self {
            socket,
            waiting: BTreeMap::new(),
            following: VecDeque::new(),
            rest_bytes: 0,
            assembly: Assembly::default(),
            next: 0,
            has_more: false,
            counters: DatagramCounters::default(),
        }
    }

    /// Binds the UDP side of the memcached port.
    pub fn open(address: SocketAddr, registry: &Registry) -> io::Result<Self> {
        let socket = std::net::UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        let mut socket = UdpSocket::from_std(socket);
        registry.register(&mut socket, TOKEN_DATAGRAMS, Interest::READABLE)?;
        Ok(Self::new(socket))
    }

    /// Its socket once more, from which a plane may answer.
    pub fn socket(&self) -> anyhow::Result<std::net::UdpSocket> {
        let own = self.socket.as_fd().try_clone_to_owned()?;
        Ok(own.into())
    }

    /// What became of requests in several datagrams.
    pub fn assembled(&self) -> AssemblyCounters {
        self.assembly.counters
    }

    /// Whether every request taken on is answered.
    pub fn are_idle(&self) -> bool {
        self.waiting.is_empty() && self.following.is_empty()
    }

    fn receive(&mut self, buffer: &mut [u8]) -> Option<(usize, SocketAddr)> {
        // An error is that of a datagram sent before, to a port where nobody listens, or that there is
        // nothing more.
        self.socket.recv_from(buffer).ok()
    }

    fn wait(&mut self, waiting: Waiting) -> u64 {
        let id = self.next;
        self.next += 1;
        self.rest_bytes += waiting.rest.held_bytes;
        self.waiting.insert(id, waiting);
        id
    }

    fn answer(&mut self, id: u64, answer: &[u8]) {
        let Some(waiting) = self.waiting.remove(&id) else {
            return; // given up earlier
        };
        self.rest_bytes -= waiting.rest.held_bytes;
        if !waiting.noreply {
            self.send(&waiting, answer);
        }
        self.go_on(&waiting);
    }

    fn refuse(&mut self, id: u64, reason: Reason, instead: &[u8]) {
        let mut text = Vec::new();
        answers::put_memcached(&mut text, reason, instead);
        self.answer(id, &text);
    }

    fn go_on(&mut self, behind: &Waiting) {
        if !behind.rest.bytes.is_empty() {
            self.has_more = true;
            self.rest_bytes += behind.rest.held_bytes;
            self.following.push_back(Following {
                from: behind.from,
                request: behind.request,
                body: behind.rest.clone(),
            });
        }
    }

    fn send(&mut self, to: &Waiting, answer: &[u8]) {
        if answer.is_empty() {
            return; // the client asked for silence
        }
        let is_read = !to.line.is_empty();
        let answer = if answer.len() <= answer_bytes_max(to.datagram_bytes) {
            answer
        } else {
            self.counters.answers_too_large += 1;
            if is_read {
                TOO_LARGE
            } else {
                TOO_LARGE_EXECUTED
            }
        };
        self.counters.answers += 1;
        for datagram in frame::datagrams(to.request, answer) {
            match self.socket.send_to(&datagram, to.from) {
                Ok(bytes) => self.counters.bytes_out += bytes as u64,
                Err(_) => self.counters.not_sent += 1,
            }
        }
    }
}

/// Whether the parser's refusal is told. A server's answer is no request either: two servers made to talk
/// to each other would not stop.
fn is_told(text: &[u8], close: bool) -> bool {
    !close && !text.is_empty() && text != reply::ERROR
}

impl Server {
    /// Takes requests in, a bounded number of them.
    pub fn poll_datagrams(&mut self) {
        let Some(mut datagrams) = self.core.service.datagrams.take() else {
            return;
        };
        let mut scratch = std::mem::take(&mut self.scratch);
        let buffer = &mut scratch[..DATAGRAM_BYTES_MAX];
        datagrams.has_more = true;
        self.budget.begin(clock::now(), self.core.work_done());
        for _ in 0..DATAGRAMS_PER_TURN {
            if !self.budget.may_go_on(Purpose::Datagrams) {
                break;
            }
            let work_done = self.core.work_done();
            (self.budget).worked(Purpose::Datagrams, work_done, clock::now);
            if let Some(next) = datagrams.following.pop_front() {
                datagrams.rest_bytes -= next.body.held_bytes;
                self.core.group.now = clock::now();
                let rest = |at| next.body.behind(at);
                let to = (next.from, next.request);
                take_request(
                    &mut self.core,
                    &mut datagrams,
                    to,
                    (&next.body.bytes, 0),
                    rest,
                );
                continue;
            }
            let Some((bytes, from)) = datagrams.receive(buffer) else {
                datagrams.has_more = false;
                break;
            };
            datagrams.counters.bytes_in += bytes as u64;
            self.core.group.now = clock::now(); // after the bytes came: a lease is judged by this
            let core = &mut self.core;
            take_datagram(core, &mut datagrams, from, &buffer[..bytes]);
        }
        self.scratch = scratch;
        self.core.service.datagrams = Some(datagrams);
    }

    /// Answers a request, unless it was given up.
    pub fn complete_datagram(&mut self, id: u64, said: AnswerKind, answer: &[u8]) {
        if let Some(datagrams) = &mut self.core.service.datagrams {
            match said {
                AnswerKind::Answer | AnswerKind::Repeated => datagrams.answer(id, answer),
                AnswerKind::Refused(reason) => datagrams.refuse(id, reason, answer),
            }
        }
    }

    /// Answers a read that has leave to be answered at `index`, now or later.
    pub fn answer_datagram_at(&mut self, index: Index, id: u64) {
        let Some(mut datagrams) = self.core.service.datagrams.take() else {
            return;
        };
        if let Some(waiting) = datagrams.waiting.get(&id) {
            match self.core.group.gate_granted(index, true, &waiting.line) {
                Gate::Overdue => datagrams.refuse(id, Reason::Overdue, b""),
                Gate::Wait(index) => {
                    (self.core.group).wait_for(index, Here(Reader::Service(id)));
                }
                Gate::Open | Gate::NoLease | Gate::NotLeader => {
                    if self.budget.may_go_on(Purpose::Datagrams) {
                        self.budget.begin(clock::now(), self.core.work_done());
                        answer_read(&mut self.core, &mut datagrams, id);
                        let work_done = self.core.work_done();
                        (self.budget).worked(Purpose::Datagrams, work_done, clock::now);
                    } else {
                        (self.core.group).wait_for_time(index, Here(Reader::Service(id)));
                    }
                }
            }
        }
        self.core.service.datagrams = Some(datagrams);
    }

    /// Gives up what has waited for too long. Writes were told before, as those of other clients.
    pub fn time_out_datagrams(&mut self) {
        let now = self.core.group.now;
        let Some(datagrams) = &mut self.core.service.datagrams else {
            return;
        };
        datagrams.assembly.time_out(now);
        let before = datagrams.counters.expired;
        while let Some(first) = datagrams.waiting.first_entry()
            && now.0.saturating_sub(first.get().at.0) > REQUEST_TIMEOUT
        {
            let given_up = first.remove();
            datagrams.rest_bytes -= given_up.rest.held_bytes;
            datagrams.counters.expired += 1;
        }
        if datagrams.counters.expired == before {
            return;
        }
        self.core.group.reads.keep(|reader| match reader {
            Here(Reader::Service(id)) => datagrams.waiting.contains_key(id),
            Here(Reader::Client(_)) | Follower(_) => true,
        });
    }
}

fn take_datagram(core: &mut Core, datagrams: &mut Datagrams, from: SocketAddr, bytes: &[u8]) {
    if core.plane_takes_memcached(from, bytes) {
        datagrams.counters.requests += 1;
        core.service.counters.set_commands += 1;
        return;
    }
    let Some(frame) = Frame::split(bytes) else {
        datagrams.counters.dropped_malformed += 1;
        return;
    };
    let (request, now) = (frame.request, core.group.now);
    if frame.count == 1 {
        let rest = |at| Rest::copied(&frame.body[at..]);
        let body = (frame.body, HEADER_BYTES);
        return take_request(core, datagrams, (from, request), body, rest);
    }
    if let Some(whole) = datagrams.assembly.take(from, &frame, bytes.len(), now) {
        let frames_bytes = whole.datagram_bytes - whole.body.len();
        let rest = |at| Rest::copied(&whole.body[at..]);
        let body = (&whole.body[..], frames_bytes);
        take_request(core, datagrams, (from, request), body, rest);
    }
}

/// Takes the first request in `body`. What it came with beside itself counts for how long its answer may be;
/// what comes behind it does not, and is what `rest` gives. What is refused takes all of that with it.
fn take_request(
    core: &mut Core,
    datagrams: &mut Datagrams,
    (from, request): (SocketAddr, u16),
    (body, frames_bytes): (&[u8], usize),
    rest: impl FnOnce(usize) -> Rest,
) {
    let has_room = datagrams.rest_bytes + body.len() <= REST_BYTES_MAX;
    if datagrams.waiting.len() >= WAITING_MAX || !has_room {
        datagrams.counters.dropped_too_many += 1;
        return;
    }
    let mut waiting = Waiting {
        from,
        request,
        datagram_bytes: frames_bytes + body.len(),
        line: Bytes::new(),
        form: QueryForm::default(),
        noreply: false,
        rest: Rest::default(),
        at: core.group.now,
    };
    match parse(body) {
        Parsed::Request {
            consumed,
            request: asked,
        } => {
            datagrams.counters.requests += 1;
            waiting.datagram_bytes = frames_bytes + consumed;
            if consumed < body.len() {
                waiting.rest = rest(consumed);
            }
            match asked {
                Request::Write { command, noreply } => {
                    waiting.noreply = noreply;
                    write(core, datagrams, waiting, &command);
                }
                Request::Read(asked) => {
                    waiting.line = Bytes::copy_from_slice(asked.line());
                    waiting.form = asked.form().into();
                    read(core, datagrams, waiting);
                }
                Request::Local(local) => answer_local(core, datagrams, &waiting, local),
            }
        }
        Parsed::Refused {
            reply, why, close, ..
        } if is_told(reply, close) => {
            core.service.counters.refused.count(why);
            core.service.counters.too_large_values += u64::from(reply == reply::TOO_LARGE);
            datagrams.send(&waiting, reply);
        }
        Parsed::Incomplete { .. } | Parsed::Refused { .. } => {
            datagrams.counters.dropped_malformed += 1;
        }
    }
}

fn write(core: &mut Core, datagrams: &mut Datagrams, waiting: Waiting, command: &Command<'_>) {
    let id = datagrams.wait(waiting);
    let origin = Origin::Service(id);
    core.service.counters.count_command(command);
    let routed = core.write_or_limit(origin, command);
    settle(core, datagrams, id, routed);
}

fn settle(core: &Core, datagrams: &mut Datagrams, id: u64, routed: RouteOutcome) {
    match routed {
        RouteOutcome::Pending => {}
        RouteOutcome::Stalled => datagrams.refuse(id, core.why_stalled(), b""),
        RouteOutcome::Refused(reason, instead) => datagrams.refuse(id, reason, instead.as_bytes()),
    }
}

fn read(core: &mut Core, datagrams: &mut Datagrams, waiting: Waiting) {
    let line = waiting.line.clone();
    let id = datagrams.wait(waiting);
    if !core.group.leads() {
        return match core.forward_read(Origin::Service(id), &line) {
            Ok(_) => {}
            Err(routed) => settle(core, datagrams, id, routed),
        };
    }
    let must_apply = core.group.read_barrier();
    match core.group.gate(must_apply, true, &line) {
        Gate::Open => answer_read(core, datagrams, id),
        Gate::Overdue => datagrams.refuse(id, Reason::Overdue, b""),
        Gate::Wait(index) => core.group.wait_for(index, Here(Reader::Service(id))),
        Gate::NoLease => {
            (core.group).ask_round(must_apply, Here(Reader::Service(id)));
        }
        Gate::NotLeader => datagrams.refuse(id, Reason::NotLeader, b""),
    }
}

/// Answers a read out of the store as it is now; stops where the answer is too large.
fn answer_read(core: &mut Core, datagrams: &mut Datagrams, id: u64) {
    let Some(waiting) = datagrams.waiting.get(&id) else {
        return;
    };
    let Query::Memcached(read) = Query::of(waiting.form, &waiting.line) else {
        return datagrams.answer(id, reply::ERROR);
    };
    let bytes_max = answer_bytes_max(waiting.datagram_bytes);
    let mut answer = Vec::new();
    let ReadKind::Items { keys, with_unique } = read.kind() else {
        let origin = Origin::Service(id);
        return match core.answer_meta_read(origin, &read, true, &mut answer) {
            MetaRead::Answer => datagrams.answer(id, &answer),
            MetaRead::Write(routed) => settle(core, datagrams, id, routed),
        };
    };
    for key in keys.iter() {
        if answer.len() > bytes_max {
            break;
        }
        core.service.counters.get_keys += 1;
        if let Some(item) = core.group.store.inner().get(key) {
            core.service.counters.get_hits += 1;
            reply::push_item(&mut answer, key, &item, with_unique);
        }
    }
    answer.extend_from_slice(reply::END);
    let work = read.key_count() * KEY_WORK + answer.len();
    core.group.store.inner().add_work(work);
    core.keep_in_plane(&read);
    datagrams.answer(id, &answer);
}

fn answer_local(core: &mut Core, datagrams: &mut Datagrams, to: &Waiting, local: Local<'_>) {
    match local_answer(local) {
        LocalAnswer::Text(text) => datagrams.send(to, text),
        LocalAnswer::Connections => datagrams.send(to, TOO_LARGE),
        LocalAnswer::Stats(asked) => {
            let mut answer = Vec::new();
            core.write_stats(asked, &mut answer);
            datagrams.send(to, &answer);
        }
        LocalAnswer::Nothing => {}
        LocalAnswer::Quit => return, // nothing behind it counts
    }
    datagrams.go_on(to);
}

const _: () = assert!(HEADER_BYTES < frame::DATAGRAM_BYTES);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_never_answered() {
        let answers: [&[u8]; 29] = [
            reply::STORED,
            reply::NOT_STORED,
            reply::EXISTS,
            reply::NOT_FOUND,
            reply::DELETED,
            reply::TOUCHED,
            reply::OK,
            reply::END,
            reply::RESET,
            reply::META_NOOP,
            reply::ERROR,
            reply::BAD_FORMAT,
            reply::BAD_CHUNK,
            reply::TOO_LARGE,
            reply::REPLY_TOO_LARGE,
            TOO_LARGE,
            TOO_LARGE_EXECUTED,
            b"SERVER_ERROR busy: too many requests under way, nothing was changed\r\n",
            b"VALUE key 0 5\r\nhello\r\nEND\r\n",
            b"STAT pid 1\r\nEND\r\n",
            b"VERSION 1.6.18\r\n",
            b"12\r\n",
            b"HD Otoken\r\n",
            b"EN\r\n",
            b"NF kkey\r\n",
            b"NS\r\n",
            b"EX c0\r\n",
            b"VA 4 X W\r\nmn\r\n\r\n",
            b"ME key exp=-1\r\n",
        ];
        for answer in answers {
            let told = match parse(answer) {
                Parsed::Request { .. } => true,
                Parsed::Refused { reply, close, .. } => is_told(reply, close),
                Parsed::Incomplete { .. } => false,
            };
            assert!(!told, "{}", String::from_utf8_lossy(answer));
        }
        assert!(is_told(reply::BAD_FORMAT, false) && !is_told(reply::BAD_FORMAT, true));
    }
}

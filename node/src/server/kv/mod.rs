//! The key-value server: memcached clients over TCP and UDP, Redis clients, and what the store wants of a
//! server beside being replicated.
mod apply;
mod counters;
mod datagrams;
mod memcached;
mod memory;
mod meta_reads;
mod offload;
mod queries;
mod reads;
mod redis;
mod refusals;
mod searches;
mod server_questions;
mod stats;
mod writes;

pub use quorumwire_kv::QueryForm;
#[cfg(test)]
pub use reads::{line_to_forward, take_part};

use self::counters::RequestCounters;
use self::datagrams::{AssemblyCounters, DatagramCounters, Datagrams};
use self::memory::MemoryOption;
use self::offload::KernelReadLease;
use self::searches::Searches;
use self::server_questions::ServerQuestions;
use self::stats::Serving;
use super::admission::Admission;
use super::answers;
use super::clients::{AnswerKind, Connection, Statistics};
use super::connection_id::ConnectionId;
use super::core::Hosted;
use super::fronts::{Front, Protocol};
use super::origin::Origin;
use super::read_line::ReadProgress;
use super::read_line::{AnswerTime, ReadLine};
use super::service::Service;
use super::take_outcome::TakeOutcome;
use crate::admin::AdminError;
use crate::options::ServerOptions;
use crate::report::{Report, ReportedPolicy};
use anyhow::Context as _;
use mio::Registry;
use quorumwire_control::Entry;
use quorumwire_group::FollowerRead;
use quorumwire_interfaces::{CounterSink, Index, Term};
use quorumwire_kv::{
    Command, ERROR_BYTES_MAX, MemoryChange, MemoryCounters, MemoryPolicy, REPLY_BYTES_MAX, Store,
};
use quorumwire_sessions::ANSWER_BYTES_MAX;
use quorumwire_wire::limits::ATTACHMENT_BYTES_MAX;
use std::net::{SocketAddr, UdpSocket};
use tokio::sync::oneshot;

// A follower's client gets the leader's answer in one message.
const _: () = assert!(REPLY_BYTES_MAX <= ATTACHMENT_BYTES_MAX);
// What a command was refused for is still known when it is asked again.
const _: () = assert!(ERROR_BYTES_MAX <= ANSWER_BYTES_MAX);

/// A server of the store.
pub type Server = super::Server<KeyValue>;
/// A group that replicates the store.
pub type Core = super::core::Core<KeyValue>;

/// What a server keeps for the store beside the group.
#[derive(Default)]
pub struct KeyValue {
    /// What the plane knows of the store.
    pub read_lease: KernelReadLease,
    /// Reads that look through all keys, and take longer than a turn.
    searches: Searches,
    /// The term of ours in which a change of the memory limit was last put into the log, or was to be.
    pub limit_changed_in: Option<Term>,
    memory_option: MemoryOption,
    /// Memcached clients that speak UDP, if that is wanted.
    datagrams: Option<Datagrams>,
    /// What clients ask of the whole server.
    questions: ServerQuestions,
    /// For so many turns the entry that is next was put off, see `puts_off`.
    turns_put_off: u64,
    counters: RequestCounters,
    /// What `stats` tells of the clients.
    serving: Serving,
}

impl Hosted for KeyValue {
    type Application = Store;
}

impl Service for KeyValue {
    const PROTOCOLS: &'static [Protocol] = &[Protocol::Memcached, Protocol::Redis];

    fn open(
        options: &ServerOptions,
        address: Option<SocketAddr>,
        registry: &Registry,
    ) -> anyhow::Result<Self> {
        let mut service = Self::default();
        if let Some(address) = address.filter(|_| options.memcached_udp) {
            let opened = Datagrams::open(address, registry);
            let opened = opened.with_context(|| {
                format!("option memcached-udp: cannot listen on {address} (UDP)")
            })?;
            service.datagrams = Some(opened);
        }
        service.read_lease.reads =
            options.memcached_udp && options.plane_reads && options.lease_reads;
        Ok(service)
    }

    fn socket(&self) -> Option<anyhow::Result<UdpSocket>> {
        self.datagrams.as_ref().map(Datagrams::socket)
    }

    fn begin(server: &mut Server) {
        server.core.service.serving = Serving::begin(server.started);
        server.core.group.refusal_words = |reason| {
            let mut text = Vec::new();
            answers::put_memcached(&mut text, reason, b"");
            text.into()
        };
        server.note_settings();
    }

    fn take_first(
        admission: &mut Admission,
        core: &mut Core,
        connection: &mut Connection,
        bytes: &[u8],
    ) -> TakeOutcome {
        if connection.redis().is_some() {
            redis::take_first(admission, core, connection, bytes)
        } else {
            memcached::take_first(admission, core, connection, bytes)
        }
    }

    fn answer_first(
        core: &mut Core,
        connection: &mut Connection,
        progress: ReadProgress,
        room: usize,
    ) -> bool {
        reads::answer_first(core, connection, progress, room)
    }

    fn answer_now(
        core: &mut Core,
        origin: Origin,
        read: ReadLine<'_>,
        keys_done: u32,
        out: &mut Vec<u8>,
    ) {
        reads::answer_now(core, origin, read, keys_done, out);
    }

    fn put_read_answer(
        connection: &mut Connection,
        line_bytes_form: (u32, QueryForm),
        said: (AnswerKind, bool),
        answer: &[u8],
    ) {
        reads::put_read_answer(connection, line_bytes_form, said, answer);
    }

    fn line_to_forward(progress: ReadProgress, line: &[u8]) -> Vec<u8> {
        reads::line_to_forward(progress, line)
    }

    fn reads_in_parts(connection: &Connection) -> bool {
        matches!(connection.front, Front::Memcached)
    }

    fn take_part(connection: &mut Connection, answer: &[u8]) {
        reads::take_part(connection, answer);
    }

    fn put_statistics(core: &mut Core, connection: &mut Connection, asked: Statistics) {
        stats::put(core, connection, asked);
    }

    fn form_of_query(query: &[u8]) -> Option<(QueryForm, u32)> {
        queries::form_of_query(query)
    }

    fn work_of_read(core: &Core, read: ReadLine<'_>) -> usize {
        let store = core.group.store.inner();
        store.expected_work_of_query(&read.query())
    }

    fn asks_for_too_many(command: &[u8]) -> Option<String> {
        queries::asks_for_too_many(command)
    }

    fn answer_at_once(core: &Core, read: ReadLine<'_>, out: &mut Vec<u8>) {
        core.group.store.inner().answer(&read.query(), out);
    }

    fn answer_query(
        core: &mut Core,
        origin: Origin,
        read: ReadLine<'_>,
        out: &mut Vec<u8>,
    ) -> AnswerTime {
        core.answer_query(origin, &read.query(), out)
    }

    fn answer_follower(core: &mut Core, read: FollowerRead) {
        core.answer_follower(read);
    }

    fn before_write(core: &mut Core, command: &[u8]) {
        if Command::is_memory(command) {
            core.limit_is_on_its_way();
        }
    }

    fn forget(core: &mut Core, connection: ConnectionId) {
        core.service.searches.forget(connection);
    }

    fn complete(server: &mut Server, number: u64, said: AnswerKind, answer: &[u8]) {
        server.complete_datagram(number, said, answer);
    }

    fn answer_at(server: &mut Server, index: Index, number: u64) {
        server.answer_datagram_at(index, number);
    }

    fn look_at_clients(server: &mut Server) {
        server.count_clients();
    }

    fn take_in(server: &mut Server) {
        server.poll_datagrams();
    }

    fn go_on(server: &mut Server) {
        if server.core.service.searches.are_under_way() {
            server.search_some();
        }
    }

    fn end_turn(server: &mut Server) {
        server.answer_questions();
    }

    fn is_busy(core: &Core) -> bool {
        let service = &core.service;
        service.searches.are_under_way()
            || service.questions.are_due()
            || service.datagrams.as_ref().is_some_and(|it| it.has_more)
    }

    fn is_idle(core: &Core) -> bool {
        let datagrams = core.service.datagrams.as_ref();
        datagrams.is_none_or(Datagrams::are_idle)
    }

    fn housekeeping(server: &mut Server) {
        server.keep_memory_option();
        server.time_out_datagrams();
    }

    fn lend_to_plane(core: &mut Core) {
        core.lend_to_plane();
    }

    fn puts_off(server: &mut Server, entry: &Entry) -> bool {
        server.puts_off(entry)
    }

    fn applied(server: &mut Server) {
        server.free_discarded();
    }

    fn report(core: &Core, report: &mut Report) {
        let store = core.group.store.inner().stats();
        let limit = core.group.store.inner().memory_limit();
        report.items = store.curr_items;
        report.items_bytes = store.bytes;
        report.memory_limit_bytes = limit.bytes;
        report.memory_used_bytes = store.limited_bytes;
        report.memory_policy = match limit.policy {
            MemoryPolicy::Refuse => ReportedPolicy::Refuse,
            MemoryPolicy::Evict => ReportedPolicy::Evict,
        };
    }

    fn count(&self, store: &Store, sink: CounterSink<'_>) {
        self.counters.each(sink);
        self.counters.refused.each(sink);
        store.stats().memory.each(sink);
        if let Some(datagrams) = &self.datagrams {
            datagrams.counters.each(sink);
            datagrams.assembled().each(sink);
        }
    }

    fn declare(sink: CounterSink<'_>) {
        let counters = RequestCounters::default();
        counters.each(sink);
        counters.refused.each(sink);
        MemoryCounters::default().each(sink);
        DatagramCounters::default().each(sink);
        AssemblyCounters::default().each(sink);
    }

    fn outcome(answer: &[u8]) -> Result<(), AdminError> {
        memory::outcome(answer)
    }

    fn change_memory(
        server: &mut Server,
        change: MemoryChange,
        answer: oneshot::Sender<Result<(), AdminError>>,
    ) {
        server.change_memory(change, answer);
    }
}

//! The answers to `stats`, in the names that memcached's tools read. Only what is measured is told: how
//! writes turned out, as this replica applied them, whoever asked; reads where they were answered, which is
//! at the leader; all else of this replica's own clients.
use super::Core;
use super::Server;
use crate::server::clients::{ClientCounters, Connection, Statistics};
use crate::server::clock;
use quorumwire_control::Now;
use quorumwire_interfaces::Application as _;
use quorumwire_kv::memcached::reply;
use quorumwire_kv::{MemoryPolicy, VALUE_BYTES_MAX};
use std::io::{self, Write};
use std::net::SocketAddr;

/// The memcached version whose behaviour this is comes first: clients choose by it.
pub const VERSION: &str = concat!("1.6.18-quorumwire-", env!("CARGO_PKG_VERSION"));

/// Connections that `stats conns` tells of.
const CONNECTIONS_TOLD_MAX: usize = 1024;

/// What statistics are in work for each byte of them: they are made of hundreds of numbers.
const WORK_PER_BYTE: usize = 16;

/// What `stats` tells of the server and its clients, as of the turn's beginning.
#[derive(Default)]
pub struct Serving {
    started: Now,
    pub counters: ClientCounters,
    pub open: u64,
    pub open_max: u64,
    /// Of datagrams, frames included.
    pub datagram_bytes_in: u64,
    pub datagram_bytes_out: u64,
    pub settings: String,
    /// What `stats` counts from: see [`Core::write_stats`].
    figures_at_reset: Vec<u64>,
}

impl Serving {
    /// Of a server that begins now.
    pub fn begin(now: Now) -> Self {
        Self {
            started: now,
            ..Self::default()
        }
    }
}

/// Figures that `stats reset` sets to 0.
type Resettable = [(&'static str, u64); 28];

impl Core {
    /// Answers all kinds of `stats` but `stats conns`, which is asked of the whole server.
    pub fn write_stats(&mut self, asked: Statistics, output: &mut Vec<u8>) {
        match asked {
            Statistics::General => self.write_general(output),
            Statistics::Settings => {
                let limit = self.group.store.inner().memory_limit();
                let evictions = match limit.policy {
                    MemoryPolicy::Refuse => "off",
                    MemoryPolicy::Evict => "on",
                };
                push(output, "maxbytes", limit.bytes);
                push(output, "evictions", evictions);
                output.extend_from_slice(self.service.serving.settings.as_bytes());
            }
            Statistics::Slabs => {
                let bytes = self.group.store.inner().stats().memory_bytes;
                push(output, "active_slabs", 0);
                push(output, "total_malloced", bytes);
            }
            Statistics::Sizes => push(output, "sizes_status", "disabled"),
            Statistics::Reset => {
                let figures = self.resettable();
                self.service.serving.figures_at_reset = figures.map(|(_, count)| count).to_vec();
                return output.extend_from_slice(reply::RESET);
            }
        }
        output.extend_from_slice(reply::END);
    }

    fn write_general(&self, output: &mut Vec<u8>) {
        let stats = self.group.store.inner().stats();
        let uptime = self
            .group
            .now
            .0
            .saturating_sub(self.service.serving.started.0)
            .as_secs();
        push(output, "pid", std::process::id());
        push(output, "uptime", uptime);
        push(output, "time", clock::wall_ms() / 1000);
        push(output, "version", VERSION);
        push(output, "pointer_size", usize::BITS);
        if let Some([user, system]) = clock::processor_times() {
            push(output, "rusage_user", format_args!("{user:.6}"));
            push(output, "rusage_system", format_args!("{system:.6}"));
        }
        push(output, "max_connections", self.service.serving.open_max);
        push(output, "curr_connections", self.service.serving.open);
        for (place, (name, count)) in self.resettable().into_iter().enumerate() {
            let before = self
                .service
                .serving
                .figures_at_reset
                .get(place)
                .copied()
                .unwrap_or(0);
            // A snapshot from the leader has the store count anew.
            push(output, name, count.saturating_sub(before));
        }
        push(output, "accepting_conns", u8::from(!self.draining));
        push(output, "threads", 1); // that serve clients
        push(output, "bytes", stats.bytes);
        push(output, "curr_items", stats.curr_items);
        push(
            output,
            "limit_maxbytes",
            self.group.store.inner().memory_limit().bytes,
        );
        push(output, "commit_index", self.group.replica.commit_index().0);
        push(output, "applied_index", self.group.applied.0);
        push(output, "term", self.group.replica.term().0);
        push(output, "role", self.role().as_str());
    }

    fn resettable(&self) -> Resettable {
        let stats = self.group.store.inner().stats();
        let found = stats.outcomes;
        let asked = &self.service.counters;
        let serving = &self.service.serving;
        let get_misses = asked.get_keys.saturating_sub(asked.get_hits) + found.get_misses;
        let get_hits = asked.get_hits + found.get_hits;
        [
            ("total_connections", serving.counters.accepted),
            ("rejected_connections", serving.counters.refused_too_many),
            ("cmd_get", get_hits + get_misses),
            ("cmd_set", asked.set_commands),
            ("cmd_flush", asked.flush_commands),
            ("cmd_touch", found.touch_hits + found.touch_misses),
            ("cmd_meta", asked.meta_debug_commands),
            ("get_hits", get_hits),
            ("get_misses", get_misses),
            ("delete_misses", found.delete_misses),
            ("delete_hits", found.delete_hits),
            ("incr_misses", found.incr_misses),
            ("incr_hits", found.incr_hits),
            ("decr_misses", found.decr_misses),
            ("decr_hits", found.decr_hits),
            ("cas_misses", found.cas_misses),
            ("cas_hits", found.cas_hits),
            ("cas_badval", found.cas_badval),
            ("touch_hits", found.touch_hits),
            ("touch_misses", found.touch_misses),
            ("store_too_large", asked.too_large_values),
            (
                "bytes_read",
                serving.counters.bytes_in + serving.datagram_bytes_in,
            ),
            (
                "bytes_written",
                serving.counters.bytes_out + serving.datagram_bytes_out,
            ),
            ("total_items", stats.total_items),
            ("expired", stats.expired),
            ("evictions", stats.memory.evicted),
            ("flushed", stats.flushes),
            ("refused_requests", asked.refused.sum()),
        ]
    }
}

/// Writes these statistics as they are now.
pub fn put(core: &mut Core, connection: &mut Connection, asked: Statistics) {
    let before = connection.output.len();
    core.write_stats(asked, &mut connection.output);
    let bytes = connection.output.len() - before;
    core.group.store.inner().add_work(bytes * WORK_PER_BYTE);
}

impl Server {
    /// Notes what `stats` tells of the clients.
    pub fn count_clients(&mut self) {
        let serving = &mut self.core.service.serving;
        serving.counters = self.clients.counters;
        serving.open = self.clients.count() as u64;
        if let Some(datagrams) = &self.core.service.datagrams {
            serving.datagram_bytes_in = datagrams.counters.bytes_in;
            serving.datagram_bytes_out = datagrams.counters.bytes_out;
        }
    }

    /// What `stats settings` answers, and what else does not change while the server runs.
    pub fn note_settings(&mut self) {
        let memcached = &self.addresses.memcached;
        let (host, port) = memcached.rsplit_once(':').unwrap_or((memcached, "0"));
        let udp_port = if self.core.service.datagrams.is_some() {
            port
        } else {
            "0"
        };
        let options = &self.options;
        let yes = |yes: bool| if yes { "yes" } else { "no" };
        let connections_max = options.connections_max;
        let mut text = Vec::new();
        push(&mut text, "maxconns", connections_max);
        push(&mut text, "tcpport", port);
        push(&mut text, "udpport", udp_port);
        push(&mut text, "inter", host);
        push(&mut text, "verbosity", 0);
        push(&mut text, "domain_socket", "NULL");
        push(&mut text, "num_threads", 1);
        push(&mut text, "cas_enabled", "yes");
        push(&mut text, "binding_protocol", "ascii");
        push(&mut text, "auth_enabled_sasl", "no");
        push(
            &mut text,
            "auth_enabled_ascii",
            yes(options.client_auth_file.is_some()),
        );
        push(&mut text, "item_size_max", VALUE_BYTES_MAX);
        push(&mut text, "maxconns_fast", "yes");
        push(&mut text, "flush_enabled", "yes");
        push(&mut text, "dump_enabled", "no");
        push(&mut text, "idle_timeout", 0);
        push(&mut text, "track_sizes", "no");
        push(&mut text, "ssl_enabled", yes(options.client_tls.is_some()));
        self.core.service.serving.settings = String::from_utf8_lossy(&text).into_owned();
        self.core.service.serving.open_max = connections_max as u64;
    }

    /// `stats conns`
    pub fn write_connections(&self, out: &mut Vec<u8>) {
        for told in self.clients.iter().take(CONNECTIONS_TOLD_MAX) {
            push_connection(out, told, self.core.group.now);
        }
        out.extend_from_slice(reply::END);
    }
}

fn push_connection(output: &mut Vec<u8>, connection: &Connection, now: Now) {
    let (number, [from, to]) = connection.address();
    let address = |address: io::Result<SocketAddr>| match address {
        Ok(address @ SocketAddr::V4(_)) => format!("tcp:{address}"),
        Ok(address @ SocketAddr::V6(_)) => format!("tcp6:{address}"),
        Err(_) => "unknown".to_owned(), // closed meanwhile
    };
    let state = if connection.slots.is_empty() {
        "conn_waiting"
    } else {
        "conn_parse_cmd"
    };
    let idle = now.0.saturating_sub(connection.last_request.0).as_secs();
    push(output, &format!("{number}:addr"), address(from));
    push(output, &format!("{number}:listen_addr"), address(to));
    push(output, &format!("{number}:state"), state);
    push(output, &format!("{number}:secs_since_last_cmd"), idle);
}

/// A line of an answer.
fn push(output: &mut Vec<u8>, name: &str, value: impl std::fmt::Display) {
    write!(output, "STAT {name} {value}\r\n").ok(); // writing to memory cannot fail
}

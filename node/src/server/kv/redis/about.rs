//! What a Redis client can learn of the server: `INFO`, `CONFIG`, `CLIENT LIST`.
use super::super::Server;
use super::about_clients::shown;
use super::errors::{SYNTAX, quoting};
use super::memory;
use crate::options::Durability;
use crate::server::clients::Connection;
use crate::server::clock;
use crate::server::fronts::redis::{RedisClient, Transaction};
use quorumwire_control::{Now, Role};
use quorumwire_kv::redis::{Resp, fits, reply};
use std::fmt::Write as _;

/// The version of Redis whose behaviour this is: clients choose by it.
pub const REDIS_VERSION: &str = "7.0.15";

/// The sections of `INFO`, in order, as their titles have them.
const SECTIONS: [&str; 9] = [
    "Server",
    "Clients",
    "Memory",
    "Persistence",
    "Stats",
    "Replication",
    "CPU",
    "Cluster",
    "Keyspace",
];

impl RedisClient {
    /// Its line of `CLIENT LIST`, as Redis has it. What belongs to what there is not here (channels,
    /// arguments that came without their command, the highest mark of a buffer) is 0; what newer versions of
    /// Redis show stands behind.
    pub fn line(&self, now: Now, connection: &Connection, is_waiting: bool) -> String {
        let seconds = |at: Now| now.0.saturating_sub(at.0).as_secs();
        let (fd, to) = connection.own_end();
        let held = connection.parts();
        let queued = self.transaction.as_ref().map(Transaction::count);
        let queued = queued.map_or(-1, |count| i64::try_from(count).unwrap_or(i64::MAX));
        let mut line = format!(
            "id={} addr={} laddr={} fd={fd} name={} age={} idle={} flags={} db=0 sub=0 psub=0 ssub=0 multi={queued} ",
            connection.id.number(),
            self.from,
            shown(to),
            String::from_utf8_lossy(&self.name),
            seconds(self.since),
            seconds(self.last_at),
            self.flags(connection, is_waiting),
        );
        let _ = write!(
            line,
            "qbuf={} qbuf-free={} argv-mem=0 multi-mem={} rbs={} rbp=0 obl={} oll={} omem={} tot-mem={} events={} ",
            held.requests,
            held.request_room,
            self.transaction.as_ref().map_or(0, Transaction::held_bytes),
            held.output_buffer,
            held.output,
            held.answer_count,
            held.answers,
            held.all,
            if held.output > 0 { "rw" } else { "r" },
        );
        let _ = writeln!(
            line,
            "cmd={} user={} redir=-1 resp={} lib-name={} lib-ver={} watch={}",
            self.last_command.unwrap_or("NULL"),
            graphic(self.user()),
            self.resp.byte() - b'0',
            String::from_utf8_lossy(&self.library[0]),
            String::from_utf8_lossy(&self.library[1]),
            self.watched.count(),
        );
        line
    }

    /// In Redis' letters: in a transaction, waiting, and about to be closed.
    fn flags(&self, connection: &Connection, is_waiting: bool) -> String {
        let flags = [
            (self.transaction.is_some(), 'x'),
            (is_waiting, 'b'),
            (connection.closing, 'c'),
        ];
        let set: String = flags
            .iter()
            .filter_map(|(is_set, flag)| is_set.then_some(*flag))
            .collect();
        if set.is_empty() { "N".to_owned() } else { set }
    }
}

/// A name without what would take a line apart.
fn graphic(name: &[u8]) -> String {
    let plain = |&byte: &u8| {
        if byte.is_ascii_graphic() {
            char::from(byte)
        } else {
            '?'
        }
    };
    name.iter().map(plain).collect()
}

/// Processor time of this process in seconds; nothing where the system does not say.
fn info_cpu() -> Vec<(&'static str, String)> {
    let Some([own, in_kernel]) = clock::processor_times() else {
        return Vec::new();
    };
    vec![
        ("used_cpu_sys", format!("{in_kernel:.6}")),
        ("used_cpu_user", format!("{own:.6}")),
    ]
}

impl Server {
    /// The answer to `INFO` with these words; none, `all`, `default` and `everything` stand for all sections.
    pub fn redis_info(&self, words: &[String], resp: Resp, out: &mut Vec<u8>) {
        let wants = |section: &str| {
            words.is_empty()
                || words.iter().any(|word| {
                    let word = word.to_ascii_lowercase();
                    word == section || matches!(word.as_str(), "all" | "default" | "everything")
                })
        };
        let mut text = String::new();
        for title in SECTIONS {
            let section = title.to_ascii_lowercase();
            if !wants(&section) {
                continue;
            }
            if !text.is_empty() {
                text.push_str("\r\n");
            }
            let _ = write!(text, "# {title}\r\n");
            for (name, value) in self.redis_section(&section) {
                let _ = write!(text, "{name}:{value}\r\n");
            }
        }
        reply::verbatim(out, resp, text.as_bytes());
    }

    fn redis_section(&self, section: &str) -> Vec<(&'static str, String)> {
        let store = self.core.group.store.inner().stats();
        let limit = self.core.group.store.inner().memory_limit();
        match section {
            "server" => self.info_server(),
            "clients" => vec![
                ("connected_clients", self.clients.count().to_string()),
                ("maxclients", self.options.connections_max.to_string()),
                (
                    "blocked_clients",
                    self.core.service.questions.waits_count().to_string(),
                ),
            ],
            "memory" => vec![
                ("used_memory", store.memory_bytes.to_string()),
                ("used_memory_rss", clock::resident_bytes().to_string()),
                ("mem_clients_normal", self.clients.held.bytes.to_string()),
                ("used_memory_dataset", store.memory_bytes.to_string()),
                ("used_memory_limited", store.limited_bytes.to_string()),
                ("maxmemory", limit.bytes.to_string()),
                ("maxmemory_policy", limit.policy.redis_name().to_owned()),
            ],
            "persistence" => vec![
                ("loading", "0".to_owned()),
                (
                    "rdb_last_save_time",
                    self.admission.last_saved_s.to_string(),
                ),
                ("aof_enabled", u8::from(self.is_durable()).to_string()),
            ],
            "stats" => self.info_stats(),
            "replication" => self.info_replication(),
            "cpu" => info_cpu(),
            "cluster" => vec![("cluster_enabled", "0".to_owned())],
            "keyspace" if store.curr_items > 0 => {
                let keys = store.curr_items;
                let with_end = store.with_end;
                vec![("db0", format!("keys={keys},expires={with_end},avg_ttl=0"))]
            }
            _ => Vec::new(),
        }
    }

    fn is_durable(&self) -> bool {
        match self.options.durability {
            Durability::Sync => true,
            Durability::Memory => false,
        }
    }

    fn info_server(&self) -> Vec<(&'static str, String)> {
        let uptime = self
            .core
            .group
            .now
            .0
            .saturating_sub(self.started.0)
            .as_secs();
        let port = |address: &str| {
            let port = address.rsplit(':').next();
            port.unwrap_or_default().to_owned()
        };
        vec![
            ("redis_version", REDIS_VERSION.to_owned()),
            ("redis_mode", "standalone".to_owned()),
            ("quorumwire_version", env!("CARGO_PKG_VERSION").to_owned()),
            ("os", std::env::consts::OS.to_owned()),
            ("arch_bits", usize::BITS.to_string()),
            ("process_id", std::process::id().to_string()),
            ("run_id", self.incarnation.to_string()),
            ("tcp_port", port(&self.addresses.redis)),
            ("uptime_in_seconds", uptime.to_string()),
            ("uptime_in_days", (uptime / 86_400).to_string()),
        ]
    }

    fn info_stats(&self) -> Vec<(&'static str, String)> {
        let own = &self.core.service.counters;
        let clients = &self.clients.counters;
        let store = self.core.group.store.inner().stats();
        vec![
            ("total_connections_received", clients.accepted.to_string()),
            ("rejected_connections", clients.refused_too_many.to_string()),
            ("expired_keys", store.expired.to_string()),
            ("evicted_keys", store.memory.evicted.to_string()),
            (
                "total_commands_processed",
                (own.redis_reads + own.redis_writes + own.redis_transactions).to_string(),
            ),
            ("total_net_input_bytes", clients.bytes_in.to_string()),
            ("total_net_output_bytes", clients.bytes_out.to_string()),
            ("total_reads_processed", own.redis_reads.to_string()),
            ("total_writes_processed", own.redis_writes.to_string()),
            (
                "total_transactions_processed",
                own.redis_transactions.to_string(),
            ),
        ]
    }

    /// Clients write to any replica, so each says that it is a master; what else it is has names of its own.
    fn info_replication(&self) -> Vec<(&'static str, String)> {
        let status = self.core.group.replica.status();
        let mut lines = vec![
            ("role", "master".to_owned()),
            ("connected_slaves", status.followers.len().to_string()),
            ("master_repl_offset", status.commit_index.0.to_string()),
            ("quorumwire_role", self.core.role().to_string()),
            ("quorumwire_term", status.term.0.to_string()),
        ];
        if status.role != Role::Leader {
            lines.retain(|(name, _)| *name != "connected_slaves");
        }
        if let Some(leader) = status.leader {
            lines.push(("quorumwire_leader", leader.to_string()));
        }
        lines
    }

    /// `CONFIG GET|SET|RESETSTAT|REWRITE`
    pub fn redis_config(&self, words: &[String], resp: Resp, out: &mut Vec<u8>) {
        let what = words.first().map(|word| word.to_ascii_lowercase());
        let refusal = match what.as_deref() {
            Some("get") => return self.config_get(&words[1..], resp, out),
            Some("set") => self.refusal_to_set(&words[1..]),
            Some("resetstat") => {
                b"ERR counters are not reset while a replica runs: they are those of its metrics, too".to_vec()
            }
            _ => b"ERR The server is running without a config file".to_vec(),
        };
        reply::error(out, &refusal);
    }

    /// Why these options are not set; only the memory limit is, and that not here.
    fn refusal_to_set(&self, words: &[String]) -> Vec<u8> {
        let settings = self.settings();
        let (pairs, rest) = words.as_chunks::<2>();
        let mut set = Vec::new();
        for [given, _] in pairs.iter().filter(|_| rest.is_empty()) {
            let name = given.to_ascii_lowercase();
            if !settings.iter().any(|(one, _)| *one == name) {
                let before = "ERR Unknown option or number of arguments for CONFIG SET - '";
                return quoting(before, given.as_bytes(), "'");
            }
            if !name.starts_with("maxmemory") {
                return memory::failed(given.as_bytes(), "can't set immutable config");
            }
            if set.contains(&name) {
                return memory::failed(given.as_bytes(), "duplicate parameter");
            }
            set.push(name);
        }
        SYNTAX.to_vec()
    }

    fn config_get(&self, patterns: &[String], resp: Resp, out: &mut Vec<u8>) {
        let is_asked = |name: &str| {
            let mut patterns = patterns.iter();
            patterns.any(|it| fits(it.to_ascii_lowercase().as_bytes(), name.as_bytes()))
        };
        let found: Vec<_> = self
            .settings()
            .into_iter()
            .filter(|(name, _)| is_asked(name))
            .collect();
        reply::map_header(out, resp, found.len());
        for (name, value) in found {
            reply::bulk(out, name.as_bytes());
            reply::bulk(out, value.as_bytes());
        }
    }

    /// What Redis has names for; all are given when the server starts, but for the memory limit.
    fn settings(&self) -> Vec<(&'static str, String)> {
        let yes = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
        let bound = self.options.listen_redis;
        let limit = self.core.group.store.inner().memory_limit();
        vec![
            ("appendfsync", "always".to_owned()),
            ("appendonly", yes(self.is_durable())),
            ("bind", bound.ip().to_string()),
            ("databases", "1".to_owned()),
            ("dir", self.options.dir.display().to_string()),
            ("maxclients", self.options.connections_max.to_string()),
            ("maxmemory", limit.bytes.to_string()),
            ("maxmemory-policy", limit.policy.redis_name().to_owned()),
            ("port", bound.port().to_string()),
            (
                "proto-max-bulk-len",
                quorumwire_kv::VALUE_BYTES_MAX.to_string(),
            ),
            ("save", String::new()),
            ("timeout", "0".to_owned()),
        ]
    }
}

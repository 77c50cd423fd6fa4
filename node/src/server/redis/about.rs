//! What a Redis client can learn of the server: `INFO`, `CONFIG`, `CLIENT LIST`.
use super::super::Server;
use super::super::clients::Connection;
use super::super::clock;
use super::super::reporting::role_name;
use super::RedisClient;
use crate::options::Durability;
use quorumwire_control::{Now, Role};
use quorumwire_kv::redis::{Resp, fits, reply};
use std::fmt::Write as _;

/// The version of Redis whose behaviour this is: clients choose by it.
pub const REDIS_VERSION: &str = "7.0.15";

/// The sections of `INFO`, in order.
const SECTIONS: [&str; 8] = [
    "server",
    "clients",
    "memory",
    "persistence",
    "stats",
    "replication",
    "cluster",
    "keyspace",
];

impl RedisClient {
    /// Its line of `CLIENT LIST`.
    pub fn line(&self, id: i64, now: Now, connection: &Connection) -> String {
        let seconds = |at: Now| now.0.saturating_sub(at.0).as_secs();
        let queued = match &self.transaction {
            Some(transaction) => i64::try_from(transaction.count()).unwrap_or(i64::MAX),
            None => -1,
        };
        format!(
            "id={id} addr={} name={} age={} idle={} flags={} db=0 sub=0 psub=0 multi={queued} watch={} \
             obl={} cmd={} user=default lib-name={} lib-ver={} resp={}\n",
            self.from,
            String::from_utf8_lossy(&self.name),
            seconds(self.since),
            seconds(self.last_at),
            if queued >= 0 { "x" } else { "N" },
            self.watched.count(),
            connection.output_waiting(),
            if self.last_command.is_empty() {
                "NULL"
            } else {
                &self.last_command
            },
            String::from_utf8_lossy(&self.library[0]),
            String::from_utf8_lossy(&self.library[1]),
            self.resp.byte() - b'0',
        )
    }
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
        for section in SECTIONS.into_iter().filter(|section| wants(section)) {
            if !text.is_empty() {
                text.push_str("\r\n");
            }
            let (initial, others) = section.split_at(1);
            let _ = write!(text, "# {}{others}\r\n", initial.to_ascii_uppercase());
            for (name, value) in self.redis_section(section) {
                let _ = write!(text, "{name}:{value}\r\n");
            }
        }
        reply::verbatim(out, resp, text.as_bytes());
    }

    fn redis_section(&self, section: &str) -> Vec<(&'static str, String)> {
        let store = self.core.store.inner().stats();
        let limit = self.core.store.inner().memory_limit();
        match section {
            "server" => self.info_server(),
            "clients" => vec![
                ("connected_clients", self.clients.count().to_string()),
                ("maxclients", self.options.connections_max.to_string()),
                ("blocked_clients", self.core.asks.waits_count().to_string()),
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
                ("rdb_last_save_time", self.core.last_saved_s.to_string()),
                ("aof_enabled", u8::from(self.is_durable()).to_string()),
            ],
            "stats" => self.info_stats(),
            "replication" => self.info_replication(),
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
        let uptime = self.core.now.0.saturating_sub(self.started.0).as_secs();
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
        let own = &self.core.counters;
        let clients = &self.clients.counters;
        let store = self.core.store.inner().stats();
        vec![
            ("total_connections_received", clients.accepted.to_string()),
            ("rejected_connections", clients.refused_too_many.to_string()),
            ("expired_keys", store.expired.to_string()),
            ("evicted_keys", store.evicted.to_string()),
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
        let status = self.core.replica.status();
        let mut lines = vec![
            ("role", "master".to_owned()),
            ("connected_slaves", status.followers.len().to_string()),
            ("master_repl_offset", status.commit_index.0.to_string()),
            ("quorumwire_role", role_name(status.role).to_owned()),
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

    /// `CONFIG GET|SET|RESETSTAT|REWRITE|HELP`
    pub fn redis_config(&self, words: &[String], resp: Resp, out: &mut Vec<u8>) {
        let what = words.first().map(|word| word.to_ascii_lowercase());
        match (what.as_deref(), words.len()) {
            (Some("get"), 2..) => self.config_get(&words[1..], resp, out),
            (Some("set"), 3..) => {
                let name = words[1].to_ascii_lowercase();
                let known = self.settings().iter().any(|(one, _)| *one == name);
                let text = if known {
                    format!(
                        "ERR CONFIG SET failed (possibly related to argument '{name}') - can't set immutable config"
                    )
                } else {
                    format!("ERR Unknown option or number of arguments for CONFIG SET - '{name}'")
                };
                reply::error(out, text.as_bytes());
            }
            (Some("resetstat"), 1) => {
                let text = b"ERR counters are not reset while a replica runs: they are those of its metrics, too";
                reply::error(out, text);
            }
            (Some("rewrite"), 1) => reply::error(
                out,
                b"ERR The server is running without a config file that it may write",
            ),
            (Some("help"), 1) => {
                reply::array_header(out, 3);
                reply::simple(
                    out,
                    "CONFIG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
                );
                reply::simple(out, "GET <pattern> [<pattern> ...]");
                reply::simple(out, "HELP");
            }
            _ => {
                let what = what.unwrap_or_default();
                let text = format!(
                    "ERR unknown subcommand or wrong number of arguments for '{what}'. Try CONFIG HELP."
                );
                reply::error(out, text.as_bytes());
            }
        }
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
        let limit = self.core.store.inner().memory_limit();
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

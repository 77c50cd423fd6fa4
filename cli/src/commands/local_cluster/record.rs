//! What a cluster's folder remembers: its name, what it serves, and where its replicas listen.
use super::OWN_PORTS;
use anyhow::{Context as _, bail};
use quorumwire_node::options::{Durability, Hosts};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::Read as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;

/// Its file in the folder.
const RECORD_FILE: &str = "dev.json";
/// Largest record read.
const RECORD_BYTES_MAX: u64 = 1 << 20;
/// Ports are taken from here: below those the kernel gives to outgoing connections, which could
/// otherwise take the port of a replica that is down.
const PORTS: std::ops::Range<u16> = 15_000..32_000;
/// Places for a cluster's ports looked at before giving up.
const PORT_TRIES_MAX: usize = 1_000;

/// A cluster's folder, so that it starts again as it was.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ClusterRecord {
    /// Name of the cluster.
    pub cluster: String,
    /// sync or memory.
    pub durability: String,
    /// What is served, unless it is the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Program>,
    /// The replicas.
    pub replicas: Vec<ReplicaAddresses>,
}

/// A program that was not written for it, of which each replica runs one.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Program {
    /// Its file, and what it is told.
    pub command: Vec<String>,
    /// Where it listens, as it thinks.
    pub port: u16,
}

/// Where a replica listens.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ReplicaAddresses {
    /// Its id.
    pub id: u16,
    /// For other replicas.
    pub peer: String,
    /// For clients of what is served.
    #[serde(flatten)]
    pub service: ServiceAddresses,
    /// For clients of the native protocol.
    pub client: String,
    /// For status and administration.
    pub http: String,
}

/// Where clients of what is served connect.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub enum ServiceAddresses {
    /// Those of the store.
    Store {
        /// For memcached clients.
        memcached: String,
        /// For Redis clients.
        redis: String,
    },
    /// Those of a program.
    Program {
        /// In place of the port that the program listens at.
        server: String,
    },
}

impl ServiceAddresses {
    /// For memcached clients.
    #[must_use]
    pub fn memcached(&self) -> Option<&str> {
        match self {
            Self::Store { memcached, .. } => Some(memcached),
            Self::Program { .. } => None,
        }
    }

    /// In place of the program's port.
    #[must_use]
    pub fn program(&self) -> Option<&str> {
        match self {
            Self::Store { .. } => None,
            Self::Program { server } => Some(server),
        }
    }

    /// Each with what it is for.
    pub(super) fn each(&self) -> Vec<(&'static str, &String)> {
        match self {
            Self::Store { memcached, redis } => vec![("memcached", memcached), ("redis", redis)],
            Self::Program { server } => vec![("server", server)],
        }
    }
}

impl ClusterRecord {
    /// Reads a cluster's folder; `None` if it is none.
    pub fn read(dir: &Path) -> anyhow::Result<Option<Self>> {
        let path = dir.join(RECORD_FILE);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("reading {}", path.display())),
        };
        let mut text = String::new();
        file.take(RECORD_BYTES_MAX)
            .read_to_string(&mut text)
            .with_context(|| format!("reading {}", path.display()))?;
        let recorded = serde_json::from_str(&text)
            .with_context(|| format!("{} is damaged", path.display()))?;
        Ok(Some(recorded))
    }

    pub(super) fn write(&self, dir: &Path) -> anyhow::Result<()> {
        let path = dir.join(RECORD_FILE);
        let aside = dir.join("dev.json.new");
        fs::write(&aside, serde_json::to_vec_pretty(self)?)
            .and_then(|()| fs::rename(&aside, &path))
            .with_context(|| format!("writing {}", path.display()))
    }

    pub(super) fn new(
        replica_count: u16,
        durability: Durability,
        program: Option<&Program>,
    ) -> anyhow::Result<Self> {
        let mut addresses =
            free_addresses(usize::from(replica_count) * OWN_PORTS.len())?.into_iter();
        let mut next = || addresses.next().context("as many addresses as asked for");
        let replicas = (0..replica_count).map(|id| {
            Ok(ReplicaAddresses {
                id,
                peer: next()?,
                service: if program.is_some() {
                    ServiceAddresses::Program { server: next()? }
                } else {
                    ServiceAddresses::Store {
                        memcached: next()?,
                        redis: next()?,
                    }
                },
                client: next()?,
                http: next()?,
            })
        });
        Ok(Self {
            cluster: fresh_name()?,
            durability: word(durability).to_owned(),
            program: program.cloned(),
            replicas: replicas.collect::<anyhow::Result<_>>()?,
        })
    }

    /// The name that its certificates are for, where its servers do this.
    pub(super) fn name_in_keys(&self, hosts: Hosts) -> String {
        format!("{}{}", self.cluster, hosts.end_of_name())
    }
}

pub(super) const fn word(durability: Durability) -> &'static str {
    match durability {
        Durability::Sync => "sync",
        Durability::Memory => "memory",
    }
}

/// A name no other cluster has, so that replicas of an earlier one can never meet this one.
pub(super) fn fresh_name() -> anyhow::Result<String> {
    Ok(format!("dev-{:016x}", getrandom::u64()?))
}

/// Loopback addresses nobody listens on at this moment: neighbours, and never some of another cluster's of
/// this size, whose own could be down just now. So two of them are in each other's way once in a thousand
/// times.
fn free_addresses(count: usize) -> anyhow::Result<Vec<String>> {
    let size = u16::try_from(count)?;
    let blocks = u32::from((PORTS.end - PORTS.start) / size.max(1));
    for _ in 0..PORT_TRIES_MAX {
        let block = u16::try_from(getrandom::u32()? % blocks.max(1))?;
        let first = PORTS.start + block * size;
        let bind = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        let held: Result<Vec<_>, _> = (first..first + size).map(bind).collect();
        if let Ok(held) = held {
            let addresses = held.iter().map(TcpListener::local_addr);
            let addresses: Result<Vec<SocketAddr>, _> = addresses.collect();
            return Ok(addresses?.iter().map(ToString::to_string).collect());
        }
    }
    bail!(
        "no {count} free ports between {} and {}",
        PORTS.start,
        PORTS.end
    )
}

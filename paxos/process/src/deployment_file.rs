//! A deployment's file: what all its hosts agree on. Every host has a copy.
use hkdf::Hkdf;
use quorumwire_client::planes::ClientKeys;
use quorumwire_fastpath::PaxosStore;
use quorumwire_interfaces::{PlaneError, PlaneKeyPair, PlaneKeys};
use quorumwire_paxos::{Deployment, Impossible};
use quorumwire_paxos_hosts::{Addresses, Place};
use quorumwire_plane_door::MULTICAST;
use quorumwire_wire::limits::CLUSTER_NAME_BYTES_MAX;
use quorumwire_wire::packet::{ACCEPTORS_MAX, INSTANCE_WINDOW_MAX, ROUND_OWNERS};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Longest file.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Instances that can be open, unless the file says otherwise.
const WINDOW: u32 = 4096;
/// A backup takes over after so long, unless the file says otherwise, and the least and most it may say.
const SILENCE_MS: u64 = 40;
const SILENCE_MS_RANGE: std::ops::RangeInclusive<u64> = 10..=60_000;
/// Signs of life in the time after which a backup takes over, and the longest time between two. Others wait
/// in proportion to that.
const HEARTBEATS_IN_SILENCE: u32 = 8;
const HEARTBEAT_MAX: Duration = Duration::from_millis(10);

/// What stands in the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Text {
    name: String,
    coordinators: Vec<SocketAddr>,
    acceptors: Vec<SocketAddr>,
    learners: Vec<SocketAddr>,
    key_file: PathBuf,
    multicast: Option<Ipv4Addr>,
    window: Option<u32>,
    silence_ms: Option<u64>,
}

/// How long hosts wait.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Timing {
    /// A backup that hears no coordinator for so long takes over.
    pub silence: Duration,
    /// How often who coordinates says that it lives.
    pub heartbeat: Duration,
    /// What was not answered is asked for again after this.
    pub retry: Duration,
}

/// A deployment that no file describes: a program has made it up, and all its hosts with it.
#[derive(Clone, Debug)]
pub struct DeploymentParts {
    /// Its name, 1 to 64 bytes.
    pub name: String,
    /// Where its hosts are.
    pub addresses: Addresses,
    /// Learners that have to keep what is forgotten: one that was away has it from them.
    pub copies: u8,
    /// Instances that can be open.
    pub window: u32,
    /// After so long a backup takes over.
    pub silence: Duration,
    /// What packets are signed with.
    pub key: [u8; 16],
}

/// A deployment, as its file says.
#[derive(Clone, Debug)]
pub struct DeploymentFile {
    /// Its name.
    pub name: String,
    /// How many there are of each role. The group follows from the name and these numbers: hosts that
    /// disagree about them do not hear each other.
    pub deployment: Deployment,
    /// Where they are.
    pub addresses: Arc<Addresses>,
    /// How long they wait.
    pub timing: Timing,
    key: Key,
}

/// Where the key is.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Key {
    File(PathBuf),
    Here([u8; 16]),
}

/// Why a file is not used.
#[derive(Debug, thiserror::Error)]
pub enum DeploymentError {
    /// It cannot be read.
    #[error("{0}: {1}")]
    File(PathBuf, io::Error),
    /// What stands in it makes no sense.
    #[error("{0}: {1}")]
    Content(PathBuf, String),
    /// The file with its key cannot be used.
    #[error("key-file {0}: {1}")]
    Key(PathBuf, String),
    /// There can be no box with its window.
    #[error("{0}")]
    Box(PlaneError),
}

impl DeploymentFile {
    /// Reads and checks a file. A path in it is one from where the file is.
    ///
    /// # Errors
    /// What is wrong with it, with the values that are allowed.
    pub fn load(path: &Path) -> Result<Self, DeploymentError> {
        let failed = |error| DeploymentError::File(path.to_owned(), error);
        let mut text = String::new();
        let file = File::open(path).map_err(failed)?;
        let read = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text);
        read.map_err(failed)?;
        let content = |what| DeploymentError::Content(path.to_owned(), what);
        if text.len() as u64 > FILE_BYTES_MAX {
            return Err(content(format!("allowed: at most {FILE_BYTES_MAX} bytes")));
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::parse(&text, folder).map_err(content)
    }

    pub(crate) fn parse(text: &str, folder: &Path) -> Result<Self, String> {
        let text: Text = toml::from_str(text).map_err(|error| error.to_string())?;
        let silence_ms = text.silence_ms.unwrap_or(SILENCE_MS);
        if !SILENCE_MS_RANGE.contains(&silence_ms) {
            return Err(format!(
                "silence-ms is {silence_ms}; allowed: {} to {}",
                SILENCE_MS_RANGE.start(),
                SILENCE_MS_RANGE.end()
            ));
        }
        let copies = count("learners", &text.learners)?;
        let together = |group| at_group(group, &text.acceptors, &text.coordinators);
        let all_acceptors = text.multicast.map(together);
        let parts = DeploymentParts {
            name: text.name,
            addresses: Addresses {
                coordinators: text.coordinators,
                acceptors: text.acceptors,
                learners: text.learners,
                all_acceptors: all_acceptors.transpose()?,
            },
            copies,
            window: text.window.unwrap_or(WINDOW),
            silence: Duration::from_millis(silence_ms),
            key: [0; 16],
        };
        let mut file = Self::of_parts(parts)?;
        file.key = Key::File(folder.join(text.key_file));
        Ok(file)
    }

    /// A deployment that no file describes.
    ///
    /// # Errors
    /// What is wrong with it, with the values that are allowed.
    pub fn of_parts(parts: DeploymentParts) -> Result<Self, String> {
        let DeploymentParts {
            name,
            addresses,
            copies,
            window,
            silence,
            key,
        } = parts;
        if name.is_empty() || name.len() > CLUSTER_NAME_BYTES_MAX {
            return Err(format!(
                "name has {} bytes; allowed: 1 to {CLUSTER_NAME_BYTES_MAX}",
                name.len()
            ));
        }
        let mut deployment = Deployment {
            group: 0,
            acceptors: count("acceptors", &addresses.acceptors)?,
            coordinators: count("coordinators", &addresses.coordinators)?,
            learners: count("learners", &addresses.learners)?,
            copies,
            window,
        };
        deployment.check().map_err(|it| in_words(it).to_owned())?;
        deployment.group = group_of(&name, &deployment);
        let mut seen = BTreeSet::new();
        let all = [
            &addresses.coordinators,
            &addresses.acceptors,
            &addresses.learners,
        ];
        for address in all.into_iter().flatten() {
            if address.port() == 0 || address.ip().is_unspecified() {
                return Err(format!(
                    "{address} can be reached by nobody; allowed: an address with a port"
                ));
            }
            if address.is_ipv4() != addresses.acceptors.iter().all(SocketAddr::is_ipv4) {
                return Err(format!(
                    "{address} is of another family than others; allowed: all IPv4, or all IPv6"
                ));
            }
            if !seen.insert(address) {
                return Err(format!(
                    "{address} stands there twice; allowed: one for each host"
                ));
            }
        }
        let heartbeat = (silence / HEARTBEATS_IN_SILENCE).min(HEARTBEAT_MAX);
        Ok(Self {
            name,
            deployment,
            addresses: Arc::new(addresses),
            timing: Timing {
                silence,
                heartbeat,
                retry: 2 * heartbeat,
            },
            key: Key::Here(key),
        })
    }

    /// A box at this address of it, with the keys.
    ///
    /// # Errors
    /// The file with the key cannot be used; or there can be no such box.
    pub(crate) fn place(&self, own: SocketAddr) -> Result<Place, DeploymentError> {
        let keys = self.load_keys()?;
        let addresses = Arc::clone(&self.addresses);
        Place::new(&self.deployment, addresses, own, &keys).map_err(DeploymentError::Box)
    }

    /// The same; its step runs here.
    ///
    /// # Errors
    /// As above.
    pub(crate) fn place_within(
        &self,
        own: SocketAddr,
        store: Box<dyn PaxosStore>,
    ) -> Result<Place, DeploymentError> {
        let keys = self.load_keys()?;
        let addresses = Arc::clone(&self.addresses);
        let place = Place::within(&self.deployment, addresses, own, &keys, store);
        place.map_err(DeploymentError::Box)
    }

    /// The keys that its packets are signed with.
    ///
    /// # Errors
    /// The file with the key cannot be used.
    pub fn load_keys(&self) -> Result<PlaneKeys, DeploymentError> {
        let keys = match &self.key {
            Key::File(path) => ClientKeys::load(path)
                .and_then(|file| file.pair())
                .map_err(|error| DeploymentError::Key(path.clone(), error.to_string()))?,
            Key::Here(key) => PlaneKeyPair {
                key: *key,
                ..PlaneKeyPair::default()
            },
        };
        let of = |purpose: &[u8]| PlaneKeyPair {
            epoch: keys.epoch,
            key: derived(&keys.key, &self.name, purpose),
            other: keys.other.map(|it| derived(&it, &self.name, purpose)),
        };
        Ok(PlaneKeys {
            cluster: of(b"quorumwire packets 2 roles"),
            clients: of(b"quorumwire packets 2 proposers"),
        })
    }
}

/// Where acceptors hear together, beside each at its own address.
fn at_group(
    group: Ipv4Addr,
    acceptors: &[SocketAddr],
    coordinators: &[SocketAddr],
) -> Result<SocketAddr, String> {
    if !MULTICAST.contains(&group) {
        return Err(format!(
            "multicast is {group}; allowed: {} to {}",
            MULTICAST.start(),
            MULTICAST.end()
        ));
    }
    let mut ports: Vec<u16> = acceptors.iter().map(SocketAddr::port).collect();
    ports.dedup();
    let is_ipv4 = acceptors
        .iter()
        .chain(coordinators)
        .all(SocketAddr::is_ipv4);
    match ports[..] {
        [port] if is_ipv4 => Ok(SocketAddrV4::new(group, port).into()),
        _ => Err("multicast: the acceptors differ in their ports, or an acceptor or a coordinator has no IPv4 \
                  address; allowed: IPv4 addresses, the acceptors' with one port"
            .to_owned()),
    }
}

fn derived(key: &[u8; 16], name: &str, purpose: &[u8]) -> [u8; 16] {
    let mut derived = [0; 16];
    let hkdf = Hkdf::<Sha256>::new(Some(name.as_bytes()), key);
    hkdf.expand(purpose, &mut derived).expect("a key is short");
    derived
}

/// One that is too large stays so.
fn count(option: &str, addresses: &[SocketAddr]) -> Result<u8, String> {
    u8::try_from(addresses.len())
        .map_err(|_| format!("{option} are {}; allowed: at most 255", addresses.len()))
}

fn in_words(what: Impossible) -> &'static str {
    const _: () = assert!(ACCEPTORS_MAX == 7 && ROUND_OWNERS == 256);
    const _: () = assert!(INSTANCE_WINDOW_MAX == 65_536);
    match what {
        Impossible::Acceptors => "acceptors: allowed are 1 to 7 addresses",
        Impossible::Coordinators => "coordinators: at least one address is needed",
        Impossible::Learners => "learners: at least one address is needed",
        Impossible::Copies => "copies: allowed are 1 to as many as there are learners",
        Impossible::Owners => "coordinators and learners: allowed are 256 addresses together",
        Impossible::Window => "window: allowed is a power of two, at most 65536",
    }
}

/// What hosts that hear each other agree on.
fn group_of(name: &str, deployment: &Deployment) -> u32 {
    let mut hash = Sha256::new();
    hash.update(b"quorumwire deployment 1");
    hash.update([
        deployment.coordinators,
        deployment.acceptors,
        deployment.learners,
    ]);
    if deployment.copies < deployment.learners {
        hash.update([deployment.copies]);
    }
    hash.update(deployment.window.to_be_bytes());
    hash.update(name.as_bytes());
    let first = hash.finalize();
    let first = first.first_chunk().map(|it| u32::from_be_bytes(*it));
    first.unwrap_or_default().max(1)
}

#[cfg(test)]
#[path = "deployment_file_test.rs"]
mod tests;

//! The folder in which an operator keeps a cluster's keys: the authority, a certificate for each replica and
//! for whoever changes something, and the data planes' secret. Made and changed here; servers read copies.
//!
//! ```text
//! ca.pem                              the authorities that are accepted     every machine
//! replica-N.pem, replica-N-key.pem    what replica N shows                  machine N
//! secret.toml                         the data planes' secret               every machine
//! operator.pem, operator-key.pem      what an operator shows                where commands are given
//! ca-key.pem                          signs new certificates                stays here
//! ca-next-key.pem                     the same, in a rotation's middle      stays here
//! clients-ca.pem                      the clients' authorities, if any      every machine
//! client-NAME.pem, client-NAME-key.pem    what a client shows               that client
//! clients-ca-key.pem, clients-ca-next-key.pem    sign clients' certificates stay here
//! folder.toml                         what this folder is for               stays here
//! ```
use crate::keys::{SecretFile, Stage, read_private};
use crate::tls::{
    OwnFiles, PeerFiles, client_name, operator_name, read_certificates, replica_name,
};
use anyhow::{Context as _, bail, ensure};
use quorumwire_interfaces::ReplicaId;
use quorumwire_wire::limits::{CLUSTER_NAME_BYTES_MAX, MEMBERS_MAX};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use x509_parser::prelude::{FromDer as _, X509Certificate};

const RECORD_FILE: &str = "folder.toml";
const SECRET_FILE: &str = "secret.toml";
const OPERATOR: &str = "operator";
/// Largest record, or key.
const FILE_BYTES_MAX: u64 = 64 << 10;
/// Ends each certificate in a file.
const PEM_END: &str = "-----END CERTIFICATE-----\n";
const DAY: Duration = Duration::from_hours(24);
/// How long an authority lasts: longer than anybody should wait with a rotation.
const AUTHORITY_DAYS: u32 = DAYS_MAX;
/// Longest that a certificate may last.
pub const DAYS_MAX: u32 = 3650;
/// Clocks may be behind that of the machine that makes certificates.
const CLOCKS_BEHIND: Duration = Duration::from_hours(1);
/// By these a replica is reached on its own machine.
const OWN_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Most clients with a certificate of this folder.
const CLIENTS_MAX: usize = 1024;

/// Who signs certificates.
struct Authority {
    /// The certificates of those that are accepted.
    file: &'static str,
    /// The key of the one that is used.
    key_file: &'static str,
    /// That of the one that is used next, while it is not.
    next_key_file: &'static str,
    /// Whose certificates it signs, for people.
    of: &'static str,
}

/// That of replicas and operators.
const REPLICAS: Authority = Authority {
    file: "ca.pem",
    key_file: "ca-key.pem",
    next_key_file: "ca-next-key.pem",
    of: "authority",
};

/// That of clients: another one, so that no client can speak as a replica or an operator.
const CLIENTS: Authority = Authority {
    file: "clients-ca.pem",
    key_file: "clients-ca-key.pem",
    next_key_file: "clients-ca-next-key.pem",
    of: "clients' authority",
};

/// What a folder is for.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
struct Record {
    cluster: String,
    /// How long certificates last.
    days: u32,
    /// Replicas, by id, and the host names or addresses by which clients reach them.
    members: BTreeMap<String, Vec<String>>,
    /// Clients with a certificate, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    clients: Vec<String>,
}

impl Record {
    fn parse(text: &str) -> anyhow::Result<Self> {
        let record: Self = toml::from_str(text)?;
        record.check()?;
        Ok(record)
    }

    /// Refuses what no command of ours writes: certificates are made of it, and files are named by it.
    fn check(&self) -> anyhow::Result<()> {
        let bytes = self.cluster.len();
        ensure!(
            (1..=CLUSTER_NAME_BYTES_MAX).contains(&bytes),
            "the cluster's name has {bytes} bytes; allowed: 1 to {CLUSTER_NAME_BYTES_MAX}"
        );
        ensure!(
            (1..=DAYS_MAX).contains(&self.days),
            "days: {}; allowed: 1 to {DAYS_MAX}",
            self.days
        );
        ensure!(
            self.members.len() <= MEMBERS_MAX,
            "{} replicas; allowed: {MEMBERS_MAX}",
            self.members.len()
        );
        for id in self.members.keys() {
            let is_one = id.parse::<u16>().is_ok_and(|it| it.to_string() == *id);
            ensure!(is_one, "replica {id:?}; allowed: 0 to {}", u16::MAX);
        }
        ensure!(
            self.clients.len() <= CLIENTS_MAX,
            "{} clients; allowed: {CLIENTS_MAX}",
            self.clients.len()
        );
        for (at, name) in self.clients.iter().enumerate() {
            let is_one = client_name(name, &self.cluster).is_some();
            let is_new = !self.clients[..at].contains(name);
            ensure!(
                is_one && is_new,
                "client {name:?}; allowed: lower-case letters, digits and dashes, up to 63, each name once"
            );
        }
        Ok(())
    }
}

/// The folder of one cluster.
#[derive(Debug)]
pub struct KeyFolder {
    dir: PathBuf,
    record: Record,
    /// When certificates made now begin to hold.
    now: SystemTime,
}

/// A step of a rotation; done on every replica before the next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Step {
    /// Make a new authority and secret; both are accepted and not used yet.
    Add,
    /// Use them: new certificates for all.
    Use,
    /// Accept the old ones no longer.
    Remove,
}

impl Step {
    /// Where things stand before it, and after it.
    const fn stages(self) -> (Stage, Stage) {
        match self {
            Self::Add => (Stage::NoRotation, Stage::Added),
            Self::Use => (Stage::Added, Stage::Used),
            Self::Remove => (Stage::Used, Stage::NoRotation),
        }
    }
}

impl KeyFolder {
    /// Makes everything for a new cluster. Refused if the folder is used already.
    pub fn create(
        dir: &Path,
        cluster: &str,
        members: &BTreeMap<ReplicaId, Vec<String>>,
        days: u32,
    ) -> anyhow::Result<Self> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        let made = builder.create(dir);
        made.with_context(|| format!("making {}", dir.display()))?;
        let folder = Self {
            dir: dir.to_owned(),
            now: SystemTime::now(),
            record: Record {
                cluster: cluster.to_owned(),
                days,
                members: members
                    .iter()
                    .map(|(id, names)| (id.to_string(), names.clone()))
                    .collect(),
                clients: Vec::new(),
            },
        };
        let taken = [RECORD_FILE, REPLICAS.file, SECRET_FILE];
        if let Some(file) = taken.iter().find(|file| folder.path(file).exists()) {
            bail!(
                "{} is there already: it is kept",
                folder.path(file).display()
            );
        }
        folder.begin(&REPLICAS)?;
        folder.issue_all(&REPLICAS)?;
        SecretFile::generate()?.create(&folder.secret_file())?;
        folder.write_record()?;
        Ok(folder)
    }

    /// Reads what the folder is for.
    pub fn open(dir: &Path) -> anyhow::Result<Self> {
        let path = dir.join(RECORD_FILE);
        let text = read_private(&path, FILE_BYTES_MAX)
            .with_context(|| format!("{} is no folder of keys", dir.display()))?;
        let record = Record::parse(&text).with_context(|| path.display().to_string())?;
        Ok(Self {
            dir: dir.to_owned(),
            record,
            now: SystemTime::now(),
        })
    }

    /// The cluster it is for.
    #[must_use]
    pub fn cluster(&self) -> &str {
        &self.record.cluster
    }

    /// The data planes' secret.
    #[must_use]
    pub fn secret_file(&self) -> PathBuf {
        self.path(SECRET_FILE)
    }

    /// What this replica is given.
    #[must_use]
    pub fn peer_files(&self, id: ReplicaId) -> PeerFiles {
        let name = file_of(id);
        PeerFiles {
            authorities: self.path(REPLICAS.file),
            own: OwnFiles {
                certificate: self.path(&certificate_file(&name)),
                key: self.path(&key_file(&name)),
            },
        }
    }

    /// Makes what one more replica needs.
    pub fn add_member(&mut self, id: ReplicaId, names: &[String]) -> anyhow::Result<()> {
        let members = &mut self.record.members;
        ensure!(
            members.len() < MEMBERS_MAX,
            "there are {MEMBERS_MAX} replicas, which is the limit"
        );
        let is_new = members.insert(id.to_string(), names.to_vec()).is_none();
        ensure!(is_new, "replica {id} is there already");
        let issuer = self.issuer(&REPLICAS, REPLICAS.key_file)?;
        self.issue_replica(&issuer, id, names)?;
        self.write_record()
    }

    /// Makes what a client shows, and with the first one the clients' authority.
    pub fn add_client(&mut self, name: &str) -> anyhow::Result<()> {
        ensure!(
            client_name(name, self.cluster()).is_some(),
            "{name:?} can be no client's name; allowed: lower-case letters, digits and dashes, up to 63"
        );
        let clients = &self.record.clients;
        ensure!(
            !clients.iter().any(|it| it == name),
            "client {name} is there already"
        );
        ensure!(
            clients.len() < CLIENTS_MAX,
            "there are {CLIENTS_MAX} clients, which is the limit"
        );
        if !self.path(CLIENTS.file).exists() {
            self.begin(&CLIENTS)?;
        }
        let issuer = self.issuer(&CLIENTS, CLIENTS.key_file)?;
        self.issue_client(&issuer, name)?;
        self.record.clients.push(name.to_owned());
        self.write_record()
    }

    /// Makes all certificates anew, under the authority that is used.
    pub fn renew(&self) -> anyhow::Result<()> {
        self.authorities().try_for_each(|of| self.issue_all(of))
    }

    /// Makes all certificates as if it were `now`.
    #[cfg(test)]
    pub(crate) fn renew_as_of(&mut self, now: SystemTime) -> anyhow::Result<()> {
        self.now = now;
        self.renew()
    }

    /// One step of replacing authority and secret. What was cut short is completed by the same step.
    pub fn rotate(&self, step: Step) -> anyhow::Result<()> {
        let mut secrets = SecretFile::load(&self.secret_file())?;
        let (before, after) = step.stages();
        let mut stages = Vec::new();
        for of in self.authorities() {
            stages.push((of.of, self.stage(of)?));
        }
        stages.push(("secret", secrets.stage()));
        let is_due = stages.iter().any(|(_, it)| *it == before);
        if !is_due || !stages.iter().all(|(_, it)| [before, after].contains(it)) {
            let stages = stages
                .iter()
                .map(|(of, it)| format!("{of}: {}", it.in_words()));
            bail!(
                "not now: {}; the order is add, use, remove",
                stages.collect::<Vec<_>>().join(", ")
            );
        }
        for of in self.authorities() {
            if self.stage(of)? == before {
                self.rotate_authority(of, step)?;
            }
        }
        if secrets.stage() == before {
            match step {
                Step::Add => secrets.add()?,
                Step::Use => secrets.use_newest()?,
                Step::Remove => secrets.remove_oldest()?,
            }
            secrets.replace(&self.secret_file())?;
        }
        Ok(())
    }

    /// Whether clients have certificates of it.
    #[must_use]
    pub fn has_clients(&self) -> bool {
        self.path(CLIENTS.file).exists()
    }

    /// Those that there are.
    fn authorities(&self) -> impl Iterator<Item = &'static Authority> {
        let has_clients = self.has_clients();
        std::iter::once(&REPLICAS).chain(has_clients.then_some(&CLIENTS))
    }

    /// A first authority.
    fn begin(&self, of: &Authority) -> anyhow::Result<()> {
        let (authority, key) = new_authority(of, self.cluster())?;
        self.write(of.key_file, &key.serialize_pem())?;
        self.write(of.file, &authority)
    }

    fn rotate_authority(&self, of: &Authority, step: Step) -> anyhow::Result<()> {
        match step {
            Step::Add => {
                let (authority, key) = new_authority(of, self.cluster())?;
                let old = self.path(of.file);
                let old = fs::read_to_string(&old)
                    .with_context(|| format!("reading {}", old.display()))?;
                self.write(of.next_key_file, &key.serialize_pem())?;
                self.write(of.file, &format!("{old}{authority}"))
            }
            Step::Use => {
                self.issue_by(of, &self.issuer(of, of.next_key_file)?)?;
                let (next, used) = (self.path(of.next_key_file), self.path(of.key_file));
                fs::rename(&next, &used).with_context(|| format!("replacing {}", used.display()))
            }
            Step::Remove => {
                let kept = self.authority_of(of, &self.key(of.key_file)?)?;
                self.write(of.file, &kept)
            }
        }
    }

    /// Where an authority's rotation stands.
    fn stage(&self, of: &Authority) -> anyhow::Result<Stage> {
        let authorities = read_certificates(&self.path(of.file))?;
        Ok(match authorities.len() {
            1 => Stage::NoRotation,
            _ if self.path(of.next_key_file).exists() => Stage::Added,
            _ => Stage::Used,
        })
    }

    /// For people.
    pub fn describe(&self) -> anyhow::Result<String> {
        let ids: Vec<&str> = self.record.members.keys().map(String::as_str).collect();
        let secrets = SecretFile::load(&self.secret_file())?;
        let mut parts = vec![format!("replicas {}", ids.join(", "))];
        if !self.record.clients.is_empty() {
            parts.push(format!("clients {}", self.record.clients.join(", ")));
        }
        let mut text = format!("cluster {:?}, {}", self.cluster(), parts.join(", "));
        for of in self.authorities() {
            text.extend(["; ", of.of, ": ", self.stage(of)?.in_words()]);
        }
        Ok(format!("{text}; secret: {}", secrets.describe()))
    }

    fn issue_all(&self, of: &Authority) -> anyhow::Result<()> {
        self.issue_by(of, &self.issuer(of, of.key_file)?)
    }

    fn issue_by(&self, of: &Authority, issuer: &Issuer<'_, KeyPair>) -> anyhow::Result<()> {
        if of.file == CLIENTS.file {
            let mut clients = self.record.clients.iter();
            return clients.try_for_each(|name| self.issue_client(issuer, name));
        }
        for (id, names) in &self.record.members {
            let id = id.parse().with_context(|| format!("{RECORD_FILE}: {id}"))?;
            self.issue_replica(issuer, ReplicaId(id), names)?;
        }
        let name = operator_name(self.cluster());
        let called = format!("operator of {}", self.cluster());
        self.issue_asking(issuer, OPERATOR, name, &called)
    }

    fn issue_client(&self, issuer: &Issuer<'_, KeyPair>, name: &str) -> anyhow::Result<()> {
        let full = client_name(name, self.cluster());
        let full = full.with_context(|| format!("{RECORD_FILE}: client {name:?}"))?;
        let called = format!("client {name} of {}", self.cluster());
        self.issue_asking(issuer, &format!("client-{name}"), full, &called)
    }

    /// For who asks and is not asked.
    fn issue_asking(
        &self,
        issuer: &Issuer<'_, KeyPair>,
        file: &str,
        name: String,
        called: &str,
    ) -> anyhow::Result<()> {
        let mut params = CertificateParams::new([name])?;
        params.distinguished_name = named(called);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.issue(issuer, file, params)
    }

    fn issue_replica(
        &self,
        issuer: &Issuer<'_, KeyPair>,
        id: ReplicaId,
        names: &[String],
    ) -> anyhow::Result<()> {
        let mut all = vec![replica_name(id, self.cluster())];
        all.extend(OWN_NAMES.map(str::to_owned));
        all.extend(
            names
                .iter()
                .filter(|it| !OWN_NAMES.contains(&it.as_str()))
                .cloned(),
        );
        let mut params = CertificateParams::new(all)
            .with_context(|| format!("a name of replica {id} is none: {names:?}"))?;
        params.distinguished_name = named(&format!("replica {id} of {}", self.cluster()));
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        self.issue(issuer, &file_of(id), params)
    }

    fn issue(
        &self,
        issuer: &Issuer<'_, KeyPair>,
        name: &str,
        mut params: CertificateParams,
    ) -> anyhow::Result<()> {
        set_validity(&mut params, self.now, self.record.days);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, issuer)?;
        self.write(&key_file(name), &key.serialize_pem())?;
        self.write(&certificate_file(name), &certificate.pem())
    }

    /// The authority to which this key belongs.
    fn issuer(&self, of: &Authority, key: &str) -> anyhow::Result<Issuer<'static, KeyPair>> {
        let key = self.key(key)?;
        let authority = self.authority_of(of, &key)?;
        Ok(Issuer::from_ca_cert_pem(&authority, key)?)
    }

    fn key(&self, file: &str) -> anyhow::Result<KeyPair> {
        let text = read_private(&self.path(file), FILE_BYTES_MAX)?;
        KeyPair::from_pem(&text).with_context(|| format!("{file} holds no key"))
    }

    /// The certificate (PEM) of the authority whose key this is.
    fn authority_of(&self, of: &Authority, key: &KeyPair) -> anyhow::Result<String> {
        let path = self.path(of.file);
        let text =
            fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let is_its = |text: &&str| {
            let Ok(authority) = CertificateDer::from_pem_slice(text.as_bytes()) else {
                return false;
            };
            X509Certificate::from_der(&authority).is_ok_and(|(_, parsed)| {
                parsed.public_key().subject_public_key.data[..] == *key.public_key_raw()
            })
        };
        let mut authorities = text.split_inclusive(PEM_END);
        authorities
            .find(is_its)
            .map(str::to_owned)
            .with_context(|| format!("{} and the authority's key do not belong together", of.file))
    }

    fn write_record(&self) -> anyhow::Result<()> {
        self.write(RECORD_FILE, &toml::to_string(&self.record)?)
    }

    /// Writes a file that its owner only can read; a reader sees the old one or the new one.
    fn write(&self, file: &str, text: &str) -> anyhow::Result<()> {
        let (path, aside) = (self.path(file), self.path(&format!("{file}.new")));
        fs::remove_file(&aside).ok(); // left by a crash
        let write = || {
            let mut made = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&aside)?;
            made.write_all(text.as_bytes())?;
            made.sync_all()?;
            fs::rename(&aside, &path)
        };
        write().with_context(|| format!("writing {}", path.display()))
    }

    fn path(&self, file: &str) -> PathBuf {
        self.dir.join(file)
    }
}

fn file_of(id: ReplicaId) -> String {
    format!("replica-{id}")
}

fn certificate_file(name: &str) -> String {
    format!("{name}.pem")
}

fn key_file(name: &str) -> String {
    format!("{name}-key.pem")
}

/// An authority's certificate (PEM) and its key.
fn new_authority(of: &Authority, cluster: &str) -> anyhow::Result<(String, KeyPair)> {
    let mut params = CertificateParams::default();
    // Two of one cluster are told apart by people, too.
    let number = getrandom::u32()?;
    params.distinguished_name = named(&format!("{} {number:08x} of {cluster}", of.of));
    set_validity(&mut params, SystemTime::now(), AUTHORITY_DAYS);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    Ok((certificate.pem(), key))
}

fn set_validity(params: &mut CertificateParams, now: SystemTime, days: u32) {
    params.not_before = (now - CLOCKS_BEHIND).into();
    params.not_after = (now + DAY * days).into();
}

fn named(name: &str) -> DistinguishedName {
    let mut named = DistinguishedName::new();
    named.push(DnType::OrganizationName, "quorumwire");
    named.push(DnType::CommonName, name);
    named
}

#[cfg(test)]
#[path = "key_folder_fuzz_test.rs"]
mod fuzz_test;
#[cfg(test)]
#[path = "key_folder_test.rs"]
mod tests;

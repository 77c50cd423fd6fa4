//! The cluster's secret file, and the keys of the data planes that are made from it. Talks to nobody: the
//! file is the same on all replicas because an operator put it there. Replicas that speak TLS take only the
//! clients' keys out of it (see `group/src/term_keys.rs`).
//!
//! A rotation takes three steps, each done on every replica before the next: *add* (packets under the
//! new key are accepted), *use* (they are sent), *remove* (the old key is no longer accepted).
use anyhow::{Context, bail, ensure};
use hkdf::Hkdf;
use quorumwire_client::planes::{ClientKey, ClientKeys, lineage};
use quorumwire_interfaces::{Lineage, PlaneKeyPair, PlaneKeys};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, chown};
use std::path::Path;

/// Bytes of a secret.
const SECRET_BYTES: usize = 32;
/// Bytes of a key.
pub(crate) const KEY_BYTES: usize = 16;
/// Bytes of a secret's fingerprint.
const FINGERPRINT_BYTES: usize = 8;
/// Largest secret file.
const FILE_BYTES_MAX: u64 = 4096;

/// What the file says.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SecretFile {
    /// The epoch whose key packets are sent under.
    #[serde(rename = "use")]
    in_use: u32,
    /// One, or two of consecutive epochs.
    secret: Vec<Secret>,
}

#[derive(Clone, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
struct Secret {
    epoch: u32,
    hex: String,
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "secret of epoch {}", self.epoch)
    }
}

/// Where a rotation stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stage {
    /// None is under way.
    NoRotation,
    /// The new one is accepted, the old one used.
    Added,
    /// The new one is used, the old one still accepted.
    Used,
}

impl Stage {
    /// For people.
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::NoRotation => "no rotation under way",
            Self::Added => "added and not used",
            Self::Used => "used, the old one not removed",
        }
    }
}

/// The keys of one epoch.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct EpochKeys {
    /// Its number; the lowest bit travels in packets.
    pub epoch: u32,
    /// Between replicas of a cluster that has no lineage yet.
    replicas: [u8; KEY_BYTES],
    /// What those between replicas of one lineage are made from.
    of_lineages: [u8; SECRET_BYTES],
    /// Between clients and replicas.
    pub clients: [u8; KEY_BYTES],
    fingerprint: [u8; FINGERPRINT_BYTES],
}

impl EpochKeys {
    /// By it replicas see whether they have the same secret; it goes over the network in the clear. Nothing
    /// else is made from these bytes, and HKDF gives no way back from them or over to a key. They let anybody
    /// check a guess of the secret without asking; so does each packet of a plane, which is signed with a key
    /// out of the same secret, and only replicas with a plane tell it. A secret has 256 bits by chance, which
    /// nobody guesses. A file with another length is refused; one that was typed by hand is as weak as its
    /// packets.
    pub(crate) fn fingerprint(&self) -> String {
        hex::encode(self.fingerprint)
    }

    /// Between replicas of this cluster. What was signed in another one, such as an earlier one of the same
    /// name and secret, is refused.
    pub(crate) fn between_replicas(&self, lineage: Lineage) -> [u8; KEY_BYTES] {
        if !lineage.is_known() {
            return self.replicas;
        }
        let hkdf = Hkdf::<Sha256>::new(Some(&lineage.0.to_be_bytes()), &self.of_lineages);
        let mut key = [0; KEY_BYTES];
        hkdf.expand(b"quorumwire packets 2 replicas", &mut key)
            .expect("a key is short");
        key
    }
}

/// All keys that are accepted, and which one is used.
#[derive(Clone, Eq, PartialEq)]
pub struct ClusterKeys {
    /// The epoch to send under.
    pub in_use: u32,
    /// One, or two of consecutive epochs.
    pub accepted: Vec<EpochKeys>,
}

impl ClusterKeys {
    /// As planes of this lineage want them.
    pub(crate) fn for_planes(&self, lineage: Lineage) -> PlaneKeys {
        PlaneKeys {
            cluster: self.pair(&|it| it.between_replicas(lineage)),
            clients: lineage::keys_of(&self.of_clients_files(), lineage),
        }
    }

    /// As clients read them in their files.
    pub(crate) fn of_clients_files(&self) -> PlaneKeyPair {
        self.pair(&|it| it.clients)
    }

    fn pair(&self, key: &dyn Fn(&EpochKeys) -> [u8; KEY_BYTES]) -> PlaneKeyPair {
        let of = |in_use| {
            let mut accepted = self.accepted.iter();
            accepted
                .find(|it| (it.epoch == self.in_use) == in_use)
                .map(key)
        };
        PlaneKeyPair {
            epoch: u64::from(self.in_use),
            key: of(true).expect("a secret file has the secret it uses"),
            other: of(false),
        }
    }
}

impl ClusterKeys {
    /// What clients may have.
    pub fn for_clients(&self) -> anyhow::Result<ClientKeys> {
        let keys = self.accepted.iter();
        let keys = keys.map(|it| ClientKey::new(it.epoch, it.clients));
        Ok(ClientKeys::new(self.in_use, keys.collect())?)
    }
}

/// Reads a file with secrets in it. Refused: others may read it, it is too long.
pub fn read_private(path: &Path, bytes_max: u64) -> anyhow::Result<String> {
    let name = path.display();
    let meta = fs::metadata(path).with_context(|| format!("reading {name}"))?;
    let mode = meta.permissions().mode() & 0o777;
    ensure!(
        mode.trailing_zeros() >= 6,
        "{name} can be read or written by others (mode {mode:03o}); allowed: 600 or less"
    );
    ensure!(
        meta.len() <= bytes_max,
        "{name} has {} bytes; allowed: at most {bytes_max}",
        meta.len()
    );
    fs::read_to_string(path).with_context(|| format!("reading {name}"))
}

impl SecretFile {
    /// A first secret.
    pub fn generate() -> anyhow::Result<Self> {
        Ok(Self {
            in_use: 1,
            secret: vec![Secret::generate(1)?],
        })
    }

    /// First step of a rotation: a new secret, accepted and not used.
    pub fn add(&mut self) -> anyhow::Result<()> {
        let [only] = &self.secret[..] else {
            bail!("a rotation is under way: finish it with `keys use` and `keys remove` first");
        };
        let next = only.epoch.checked_add(1).context("no more epochs")?;
        self.secret.push(Secret::generate(next)?);
        Ok(())
    }

    /// Second step: packets are sent under the newer secret.
    pub fn use_newest(&mut self) -> anyhow::Result<()> {
        let [_, new] = &self.secret[..] else {
            bail!("there is one secret only: `keys add` comes first");
        };
        ensure!(
            self.in_use != new.epoch,
            "the newer secret is in use already"
        );
        self.in_use = new.epoch;
        Ok(())
    }

    /// Third step: the older secret is no longer accepted.
    pub fn remove_oldest(&mut self) -> anyhow::Result<()> {
        let [old, _] = &self.secret[..] else {
            bail!("there is one secret only: nothing to remove");
        };
        ensure!(
            self.in_use != old.epoch,
            "the older secret is in use: `keys use` comes first"
        );
        self.secret.remove(0);
        Ok(())
    }

    /// Where a rotation stands.
    #[must_use]
    pub fn stage(&self) -> Stage {
        match &self.secret[..] {
            [_, new] if new.epoch == self.in_use => Stage::Used,
            [_, _] => Stage::Added,
            _ => Stage::NoRotation,
        }
    }

    /// For people: the epochs, and which one is used.
    #[must_use]
    pub fn describe(&self) -> String {
        let epochs: Vec<_> = self.secret.iter().map(|it| it.epoch.to_string()).collect();
        format!(
            "accepted: epoch {}; used: epoch {}",
            epochs.join(", "),
            self.in_use
        )
    }

    /// Reads and checks a file. Refused: others may read it, it is too long, it makes no sense.
    pub fn load(path: &Path) -> anyhow::Result<Self> {
        Self::parse(&read_private(path, FILE_BYTES_MAX)?, path)
    }

    /// The secrets in the text of this file.
    pub(crate) fn parse(text: &str, path: &Path) -> anyhow::Result<Self> {
        let name = path.display();
        let file: Self = toml::from_str(text).map_err(|error| {
            // What the parser says may show a value, also that of another key: a secret in the wrong place.
            let before = error.span().map_or(0, |it| it.start);
            let lines = text.bytes().take(before).filter(|it| *it == b'\n').count();
            anyhow::anyhow!(
                "{name} is no secret file: line {}; allowed: `use`, and `[[secret]]` with `epoch` and `hex`",
                lines + 1
            )
        })?;
        file.check().with_context(|| format!("{name}"))?;
        Ok(file)
    }

    fn check(&self) -> anyhow::Result<()> {
        match &self.secret[..] {
            [_] => {}
            [old, new] if Some(new.epoch) == old.epoch.checked_add(1) => {}
            _ => bail!("allowed: one secret, or two of consecutive epochs"),
        }
        let known = self.secret.iter().any(|it| it.epoch == self.in_use);
        ensure!(
            known,
            "`use` names epoch {}, which has no secret",
            self.in_use
        );
        for secret in &self.secret {
            secret.bytes()?;
        }
        Ok(())
    }

    /// Writes a new file, readable by its owner only. Refused if there is one.
    pub fn create(&self, path: &Path) -> anyhow::Result<()> {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .with_context(|| format!("creating {}", path.display()))?;
        file.write_all(self.text()?.as_bytes())?;
        file.sync_all()?;
        Ok(())
    }

    /// Replaces a file in one step: a reader sees the old one or the new one.
    pub fn replace(&self, path: &Path) -> anyhow::Result<()> {
        let aside = path.with_extension("new");
        fs::remove_file(&aside).ok(); // left by a crash
        self.create(&aside)?;
        // The server that reads it may be another user than whoever replaces it, such as root.
        let (old, new) = (fs::metadata(path)?, fs::metadata(&aside)?);
        if old.uid() != new.uid() {
            chown(&aside, Some(old.uid()), Some(old.gid()))
                .with_context(|| format!("giving {} to its owner", aside.display()))?;
        }
        fs::rename(&aside, path).with_context(|| format!("replacing {}", path.display()))
    }

    fn text(&self) -> anyhow::Result<String> {
        let body = toml::to_string(self)?;
        Ok(format!(
            "# Secrets of a quorumwire cluster: the same file on every replica, readable by its owner only.\n\
             {body}"
        ))
    }

    /// The keys of a cluster of this name.
    pub fn keys(&self, cluster: &str) -> anyhow::Result<ClusterKeys> {
        let accepted: anyhow::Result<Vec<_>> =
            self.secret.iter().map(|it| it.keys(cluster)).collect();
        Ok(ClusterKeys {
            in_use: self.in_use,
            accepted: accepted?,
        })
    }
}

impl Secret {
    fn generate(epoch: u32) -> anyhow::Result<Self> {
        let mut bytes = [0; SECRET_BYTES];
        getrandom::fill(&mut bytes)?;
        let hex = hex::encode(bytes);
        Ok(Self { epoch, hex })
    }

    fn bytes(&self) -> anyhow::Result<[u8; SECRET_BYTES]> {
        let mut bytes = [0; SECRET_BYTES];
        hex::decode_to_slice(&self.hex, &mut bytes).map_err(|error| {
            let epoch = self.epoch;
            anyhow::anyhow!(
                "the secret of epoch {epoch} is not {SECRET_BYTES} bytes in hex: {error}"
            )
        })?;
        Ok(bytes)
    }

    /// HKDF-SHA256 (RFC 5869) of the secret, salted with the cluster's name; a key for each use.
    fn keys(&self, cluster: &str) -> anyhow::Result<EpochKeys> {
        let hkdf = Hkdf::<Sha256>::new(Some(cluster.as_bytes()), &self.bytes()?);
        let fill = |version: u8, used_between: &str, key: &mut [u8]| {
            let info = format!("quorumwire packets {version} {used_between} {}", self.epoch);
            hkdf.expand(info.as_bytes(), key)
                .map_err(|error| anyhow::anyhow!("{error}"))
        };
        let mut keys = EpochKeys {
            epoch: self.epoch,
            replicas: [0; KEY_BYTES],
            of_lineages: [0; SECRET_BYTES],
            clients: [0; KEY_BYTES],
            fingerprint: [0; FINGERPRINT_BYTES],
        };
        fill(1, "replicas", &mut keys.replicas)?;
        fill(2, "lineages", &mut keys.of_lineages)?;
        fill(1, "clients", &mut keys.clients)?;
        fill(1, "fingerprint", &mut keys.fingerprint)?;
        Ok(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str, mode: u32) -> anyhow::Result<SecretFile> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("secret.toml");
        fs::write(&path, text)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
        SecretFile::load(&path)
    }

    fn secret(epoch: u32) -> String {
        format!(
            "[[secret]]\nepoch = {epoch}\nhex = \"{}\"\n",
            "07".repeat(32)
        )
    }

    #[test]
    fn a_rotation_keeps_two_epochs_and_refuses_to_skip_steps() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret.toml");
        let mut file = SecretFile::generate().unwrap();
        file.create(&path).unwrap();
        assert!(file.create(&path).is_err(), "an existing file is kept");
        assert!(file.use_newest().is_err() && file.remove_oldest().is_err());
        file.add().unwrap();
        assert!(file.add().is_err() && file.remove_oldest().is_err());
        assert_eq!(file.describe(), "accepted: epoch 1, 2; used: epoch 1");
        file.replace(&path).unwrap();
        let mut file = SecretFile::load(&path).unwrap();
        file.use_newest().unwrap();
        assert!(file.use_newest().is_err());
        assert_eq!(file.keys("c").unwrap().in_use, 2);
        file.remove_oldest().unwrap();
        assert_eq!(file.describe(), "accepted: epoch 2; used: epoch 2");
        file.replace(&path).unwrap();
        assert_eq!(SecretFile::load(&path).unwrap(), file);
    }

    #[test]
    fn every_cluster_epoch_and_use_has_its_own_key() {
        let file = written(&format!("use = 1\n{}{}", secret(1), secret(2)), 0o600).unwrap();
        let mut keys = Vec::new();
        for cluster in ["a", "b"] {
            for epoch in file.keys(cluster).unwrap().accepted {
                keys.extend([epoch.replicas, epoch.clients]);
                keys.extend([1, 2].map(|number| epoch.between_replicas(Lineage(number))));
            }
        }
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 16);
    }

    /// Made with another implementation of RFC 5869.
    #[test]
    fn a_key_is_what_it_always_was() {
        let file = written(&format!("use = 1\n{}", secret(1)), 0o400).unwrap();
        let keys = file.keys("quorumwire").unwrap().accepted[0];
        assert_eq!(hex::encode(keys.replicas), REPLICAS);
        assert_eq!(hex::encode(keys.clients), CLIENTS);
        assert_eq!(keys.fingerprint(), FINGERPRINT);
        let lineage = Lineage(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff);
        assert_eq!(hex::encode(keys.between_replicas(lineage)), OF_LINEAGE);
        assert_eq!(keys.between_replicas(Lineage::default()), keys.replicas);
    }
    const OF_LINEAGE: &str = "b48b47f29d102105aa0d684512bb38f2";
    const FINGERPRINT: &str = "2c6b79f9e9cb1e9c";
    const REPLICAS: &str = "b5695847ecdc0d993b20adebebbae54b";
    const CLIENTS: &str = "225e30e6076484970bb80ff424b45df9";

    #[test]
    fn a_file_that_makes_no_sense_is_refused_without_showing_a_secret() {
        let two_apart = format!("use = 1\n{}{}", secret(1), secret(3));
        let none_used = format!("use = 2\n{}", secret(1));
        let short = "use = 1\n[[secret]]\nepoch = 1\nhex = \"070707\"\n".to_owned();
        let no_hex = format!("use = 1\n{}", secret(1).replace("07", "0g"));
        let broken = format!("use = 1\n{}broken", secret(1));
        let texts = [
            String::new(),
            "use = 1\n".into(),
            two_apart,
            none_used,
            short,
            no_hex,
            broken,
        ];
        for text in texts {
            let error = format!("{:#}", written(&text, 0o600).unwrap_err());
            assert!(!error.contains("0707"), "{error}");
        }
        let long = format!("use = 1\n{}#{}", secret(1), "x".repeat(5000));
        assert!(written(&long, 0o600).is_err());
    }

    #[test]
    fn clients_get_their_keys_and_no_others() {
        let file = written(&format!("use = 2\n{}{}", secret(1), secret(2)), 0o600).unwrap();
        let keys = file.keys("c").unwrap();
        let pair = keys.for_clients().unwrap().pair().unwrap();
        assert!(pair == keys.for_planes(Lineage::default()).clients);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clients.toml");
        keys.for_clients().unwrap().write(&path).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        for epoch in &keys.accepted {
            assert!(text.contains(&hex::encode(epoch.clients)));
            assert!(!text.contains(&hex::encode(epoch.replicas)));
        }
        assert!(!text.contains("0707"), "no secret either");
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let text = format!("use = 1\n{}", secret(1));
        assert!(written(&text, 0o600).is_ok());
        for mode in [0o640, 0o604, 0o620, 0o666, 0o601] {
            let error = written(&text, mode).unwrap_err().to_string();
            assert!(error.contains("600"), "{error}");
        }
    }
}

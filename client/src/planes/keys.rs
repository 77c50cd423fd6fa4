//! The file with the clients' keys: what a client needs and no more, so that it can ask but not speak as a
//! replica. Made by `quorumwire keys plane-clients`.
use quorumwire_interfaces::PlaneKeyPair;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// Bytes of a key.
const KEY_BYTES: usize = 16;
/// Largest file read.
const FILE_BYTES_MAX: u64 = 4096;

/// The clients' keys of one cluster.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ClientKeys {
    /// The epoch whose key requests are sent under.
    #[serde(rename = "use")]
    in_use: u32,
    /// One, or two of consecutive epochs.
    key: Vec<ClientKey>,
}

/// The key of one epoch.
#[derive(Clone, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ClientKey {
    epoch: u32,
    hex: String,
}

impl std::fmt::Debug for ClientKey {
    /// Shows no key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "clients' key of epoch {}", self.epoch)
    }
}

/// Why a key file is not used, or not written.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// It cannot be read or written.
    #[error("{0}")]
    File(#[from] io::Error),
    /// Others may read or write it.
    #[error("it can be read or written by others (mode {0:03o}); allowed: 600 or less")]
    Mode(u32),
    /// It makes no sense; the text says what would, and shows no key.
    #[error("it is no key file: {0}")]
    Content(String),
}

impl ClientKey {
    /// The key of an epoch.
    #[must_use]
    pub fn new(epoch: u32, key: [u8; KEY_BYTES]) -> Self {
        let hex = hex::encode(key);
        Self { epoch, hex }
    }

    fn bytes(&self) -> Option<[u8; KEY_BYTES]> {
        let mut bytes = [0; KEY_BYTES];
        hex::decode_to_slice(&self.hex, &mut bytes).ok()?;
        Some(bytes)
    }
}

impl ClientKeys {
    /// Refused: not one key or two of consecutive epochs, or none for the epoch in use.
    pub fn new(in_use: u32, key: Vec<ClientKey>) -> Result<Self, KeyFileError> {
        let keys = Self { in_use, key };
        keys.pair()?;
        Ok(keys)
    }

    /// Reads and checks a file. Refused: others may read it, it is too long, it makes no sense.
    pub fn load(path: &Path) -> Result<Self, KeyFileError> {
        let file = File::open(path)?;
        let mode = file.metadata()?.permissions().mode() & 0o777;
        if mode.trailing_zeros() < 6 {
            return Err(KeyFileError::Mode(mode));
        }
        let mut text = String::new();
        file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
        if text.len() as u64 > FILE_BYTES_MAX {
            let text = format!("more than {FILE_BYTES_MAX} bytes");
            return Err(KeyFileError::Content(text));
        }
        Self::parse(&text)
    }

    /// The same of the text of such a file.
    pub fn parse(text: &str) -> Result<Self, KeyFileError> {
        let keys: Self = toml::from_str(text).map_err(|error| {
            // What the parser says may show a value, also that of another key: a key in the wrong place.
            let before = error.span().map_or(0, |it| it.start);
            let lines = text.bytes().take(before).filter(|it| *it == b'\n').count();
            KeyFileError::Content(format!(
                "line {}; allowed: `use`, and `[[key]]` with `epoch` and `hex`",
                lines + 1
            ))
        })?;
        keys.pair()?;
        Ok(keys)
    }

    /// Writes the file, readable by its owner only, in place of an older one.
    pub fn write(&self, path: &Path) -> Result<(), KeyFileError> {
        let body =
            toml::to_string(self).map_err(|error| KeyFileError::Content(error.to_string()))?;
        let aside = path.with_extension("new");
        fs::remove_file(&aside).ok(); // left by a crash
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&aside)?;
        let head = "# Keys for clients of a quorumwire cluster: readable by their owner only.\n";
        file.write_all(head.as_bytes())?;
        file.write_all(body.as_bytes())?;
        file.sync_all()?;
        Ok(fs::rename(&aside, path)?)
    }

    /// As [`super::Settings`] want them.
    pub fn pair(&self) -> Result<PlaneKeyPair, KeyFileError> {
        let wrong = |text: &str| KeyFileError::Content(text.to_owned());
        match &self.key[..] {
            [_] => {}
            [old, new] if Some(new.epoch) == old.epoch.checked_add(1) => {}
            _ => return Err(wrong("allowed: one key, or two of consecutive epochs")),
        }
        let mut pair = PlaneKeyPair {
            epoch: u64::from(self.in_use),
            ..PlaneKeyPair::default()
        };
        let mut is_known = false;
        for key in &self.key {
            let bytes = key
                .bytes()
                .ok_or_else(|| wrong("a key is 16 bytes in hex"))?;
            if key.epoch == self.in_use {
                pair.key = bytes;
                is_known = true;
            } else {
                pair.other = Some(bytes);
            }
        }
        if !is_known {
            return Err(wrong("`use` names an epoch that has no key"));
        }
        Ok(pair)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str, mode: u32) -> Result<ClientKeys, KeyFileError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clients.toml");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        ClientKeys::load(&path)
    }

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clients.toml");
        let keys = vec![ClientKey::new(4, [4; 16]), ClientKey::new(5, [5; 16])];
        let keys = ClientKeys::new(5, keys).unwrap();
        keys.write(&path).unwrap();
        keys.write(&path).unwrap(); // in place of the first
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let pair = ClientKeys::load(&path).unwrap().pair().unwrap();
        let expected = PlaneKeyPair {
            epoch: 5,
            key: [5; 16],
            other: Some([4; 16]),
        };
        assert!(pair == expected);
    }

    #[test]
    fn a_file_that_makes_no_sense_is_refused_without_showing_a_key() {
        let key = |epoch: u32, hex: &str| format!("[[key]]\nepoch = {epoch}\nhex = \"{hex}\"\n");
        let good = "07".repeat(16);
        assert!(written(&format!("use = 1\n{}", key(1, &good)), 0o600).is_ok());
        for text in [
            String::new(),
            "use = 1\n".to_owned(),
            format!("use = 2\n{}", key(1, &good)),
            format!("use = 1\n{}{}", key(1, &good), key(3, &good)),
            format!("use = 1\n{}", key(1, "0707")),
            format!("use = 1\n{}", key(1, &good.replace("07", "0g"))),
            format!("use = 1\n{}broken", key(1, &good)),
            format!("use = 1\n{}#{}", key(1, &good), "x".repeat(5000)),
        ] {
            let error = written(&text, 0o600).unwrap_err();
            assert!(matches!(error, KeyFileError::Content(_)), "{error}");
            assert!(!error.to_string().contains("0707"), "{error}");
        }
        for mode in [0o640, 0o604, 0o601] {
            let error = written(&format!("use = 1\n{}", key(1, &good)), mode).unwrap_err();
            assert!(matches!(error, KeyFileError::Mode(_)), "{error}");
        }
    }
}

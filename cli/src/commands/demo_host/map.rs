//! What a host of `demo-network` has made of the values that were decided: a map of at most some keys. It is
//! written into a file before the learner is told that it is safe.
use anyhow::Context as _;
use quorumwire_paxos_process::Instance;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Longest key and value.
pub const KEY_BYTES_MAX: usize = 64;
pub const VALUE_BYTES_MAX: usize = 256;
/// One more key makes the first other one in the alphabet go: at every host the same.
const KEYS_MAX: usize = 256;

/// What is decided.
#[derive(Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Decided {
    /// A key has this value.
    Put(String, String),
    /// Nothing, for the load.
    Load,
}

impl Decided {
    pub fn to_bytes(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(self)
    }
}

/// What was learned.
#[derive(Debug, Default, Deserialize, Serialize)]
struct Learned {
    /// Up to here.
    instance: Instance,
    values: u64,
    map: BTreeMap<String, String>,
}

/// The map, and where it is kept.
#[derive(Debug)]
pub struct Map {
    learned: Learned,
    file: PathBuf,
}

impl Map {
    /// What this folder holds, which is made if it is missing.
    pub fn open(dir: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
        let file = dir.join("map.json");
        let learned = match fs::read(&file) {
            Ok(bytes) => {
                serde_json::from_slice(&bytes).with_context(|| file.display().to_string())?
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Learned::default(),
            Err(error) => return Err(error).context(file.display().to_string()),
        };
        Ok(Self { learned, file })
    }

    /// Takes a value. One that the file held already comes again where the host was killed before it
    /// checkpointed.
    pub fn learn(&mut self, instance: Instance, value: &[u8]) {
        if instance <= self.learned.instance {
            return;
        }
        self.learned.instance = instance;
        self.learned.values += 1;
        if let Ok(Decided::Put(key, value)) = serde_json::from_slice(value) {
            let map = &mut self.learned.map;
            map.insert(key.clone(), value);
            if map.len() > KEYS_MAX
                && let Some(other) = map.keys().find(|it| **it != key).cloned()
            {
                map.remove(&other);
            }
        }
    }

    /// Writes it. It survives the process, which is all that dies in the demonstration.
    pub fn keep(&self) -> anyhow::Result<()> {
        let next = self.file.with_extension("next");
        let written = fs::write(&next, serde_json::to_vec(&self.learned)?);
        let written = written.and_then(|()| fs::rename(&next, &self.file));
        written.with_context(|| self.file.display().to_string())
    }

    pub fn get(&self, key: &str) -> Option<&str> {
        self.learned.map.get(key).map(String::as_str)
    }

    pub fn instance(&self) -> Instance {
        self.learned.instance
    }

    pub fn values(&self) -> u64 {
        self.learned.values
    }

    pub fn keys(&self) -> usize {
        self.learned.map.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(key: &str, value: &str) -> Vec<u8> {
        let put = Decided::Put(key.to_owned(), value.to_owned());
        put.to_bytes().expect("it is text")
    }

    #[test]
    fn what_was_kept_is_there_again_and_does_not_count_twice() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut map = Map::open(dir.path()).expect("a new one");
        map.learn(3, &put("a", "1"));
        map.learn(4, b"foreign");
        map.keep().expect("written");
        map.learn(5, &put("a", "2"));
        let mut again = Map::open(dir.path()).expect("the file");
        assert_eq!((again.instance(), again.values()), (4, 2));
        again.learn(3, &put("a", "0"));
        assert_eq!((again.get("a"), again.values()), (Some("1"), 2));
        again.learn(5, &put("a", "2"));
        assert_eq!((again.get("a"), again.values()), (Some("2"), 3));
    }

    #[test]
    fn it_has_so_many_keys_and_no_more() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut map = Map::open(dir.path()).expect("a new one");
        for number in (0..=KEYS_MAX).rev() {
            map.learn(
                1 + (KEYS_MAX - number) as u64,
                &put(&format!("{number:04}"), "x"),
            );
        }
        assert_eq!(map.keys(), KEYS_MAX);
        assert_eq!((map.get("0000"), map.get("0001")), (Some("x"), None));
    }
}

//! Who may use the ports for clients: names and passwords out of a file that operators write. One file for
//! memcached's and Redis' protocols, in the form of memcached's own.
use crate::keys::read_private;
use anyhow::ensure;
use sha2::{Digest as _, Sha256};
use std::path::Path;
use subtle::ConstantTimeEq as _;

/// Largest file.
const FILE_BYTES_MAX: u64 = 64 << 10;
/// Most accounts: each try is compared with all of them.
const ACCOUNTS_MAX: usize = 1024;
/// Longest name, in bytes.
const NAME_BYTES_MAX: usize = 250;
/// Longest password, in bytes.
const PASSWORD_BYTES_MAX: usize = 256;
/// The name that stands for none, as in Redis.
pub const DEFAULT_NAME: &[u8] = b"default";

/// Who may use the ports for clients.
#[derive(Clone)]
pub struct Accounts {
    accounts: Vec<Account>,
}

/// Passwords are kept as digests, so that comparing takes as long for each, and a dump of memory shows none.
#[derive(Clone)]
struct Account {
    name: [u8; 32],
    password: [u8; 32],
}

impl Accounts {
    /// Reads and checks a file: lines `name:password`; empty ones and those that begin with `#` say nothing.
    pub fn load(path: &Path) -> anyhow::Result<Self> {
        Self::parse(&read_private(path, FILE_BYTES_MAX)?, path)
    }

    /// The accounts in the text of this file.
    pub(crate) fn parse(text: &str, path: &Path) -> anyhow::Result<Self> {
        let mut accounts = Vec::new();
        for (place, line) in text.lines().enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let number = place + 1;
            let (name, password) = line.split_once(':').unwrap_or((line, ""));
            ensure!(
                (1..=NAME_BYTES_MAX).contains(&name.len())
                    && (1..=PASSWORD_BYTES_MAX).contains(&password.len()),
                "{}, line {number}: allowed: NAME:PASSWORD, a name of up to {NAME_BYTES_MAX} bytes and a \
                 password of up to {PASSWORD_BYTES_MAX}",
                path.display()
            );
            accounts.push(Account {
                name: Sha256::digest(name).into(),
                password: Sha256::digest(password).into(),
            });
        }
        ensure!(
            (1..=ACCOUNTS_MAX).contains(&accounts.len()),
            "{} has {} accounts; allowed: 1 to {ACCOUNTS_MAX}",
            path.display(),
            accounts.len()
        );
        Ok(Self { accounts })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.accounts.len()
    }

    /// Whether there is somebody of this name; only for who is one of them.
    pub fn knows(&self, name: &[u8]) -> bool {
        let name: [u8; 32] = Sha256::digest(name).into();
        self.accounts.iter().any(|account| account.name == name)
    }

    /// Whether somebody of this name has this password. Takes as long whatever is wrong.
    pub fn has(&self, name: &[u8], password: &[u8]) -> bool {
        let name: [u8; 32] = Sha256::digest(name).into();
        let password: [u8; 32] = Sha256::digest(password).into();
        let mut found = subtle::Choice::from(0);
        for account in &self.accounts {
            found |= account.name.ct_eq(&name) & account.password.ct_eq(&password);
        }
        found.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    fn load(text: &str, mode: u32) -> anyhow::Result<Accounts> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("accounts");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        Accounts::load(&path)
    }

    #[test]
    fn a_name_goes_with_its_password() {
        let accounts = load("# ours\nann:a:b\n\ndefault:secret\n", 0o600).unwrap();
        assert_eq!(accounts.count(), 2);
        for (name, password, has) in [
            ("ann", "a:b", true),
            ("default", "secret", true),
            ("ann", "secret", false),
            ("ann", "a", false),
            ("", "", false),
            ("bob", "a:b", false),
        ] {
            assert_eq!(
                accounts.has(name.as_bytes(), password.as_bytes()),
                has,
                "{name}:{password}"
            );
        }
        assert!(accounts.knows(b"ann") && accounts.knows(b"default"));
        assert!(!accounts.knows(b"bob") && !accounts.knows(b"a:b"));
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_its_line() {
        for (text, says) in [
            ("ann:a\nbob\n", "line 2"),
            ("ann:\n", "line 1"),
            (":a\n", "line 1"),
            ("# nobody\n", "has 0 accounts"),
        ] {
            let error = load(text, 0o600).err().unwrap().to_string();
            assert!(error.contains(says), "{error}");
            assert!(!error.contains("ann:a"), "{error}");
        }
        let many = "a:b\n".repeat(ACCOUNTS_MAX + 1);
        assert!(load(&many, 0o600).is_err());
        let error = load("ann:a\n", 0o640).err().unwrap().to_string();
        assert!(error.contains("mode 640"), "{error}");
    }
}

//! The configuration file: which deployment, and how it is reached.
use quorumwire_client::{Account, Settings, Tls};
use serde::Deserialize;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Largest configuration file, and largest file of an account.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// What `deployment` may say.
const REPLICAS: &str = "replicas";
/// What may wait to be delivered, in KiB.
const WINDOW_KIB_MAX: u64 = 1 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    deployment: Option<String>,
    addresses: Vec<String>,
    deadline_ms: Option<u64>,
    patience_ms: Option<u64>,
    window_kib: Option<u64>,
    account_file: Option<PathBuf>,
    tls_ca: Option<PathBuf>,
    tls_cert: Option<PathBuf>,
    tls_key: Option<PathBuf>,
}

/// What it says.
pub struct Configuration {
    pub settings: Settings,
    pub window_bytes: u64,
}

impl Configuration {
    /// Reads it. The error is for people, and names the file.
    pub fn load(path: &Path) -> Result<Self, String> {
        let named = |problem: String| format!("{}: {problem}", path.display());
        Self::parse(&read(path)?).map_err(named)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let keys: Keys = toml::from_str(text).map_err(|error| error.message().to_owned())?;
        if let Some(other) = keys.deployment.filter(|it| it != REPLICAS) {
            return Err(format!(
                "deployment: {other:?} is given; allowed: {REPLICAS:?}"
            ));
        }
        let mut settings = Settings::new(keys.addresses);
        if let Some(deadline) = keys.deadline_ms {
            settings.deadline = Duration::from_millis(deadline);
            settings.patience = settings.patience.min(settings.deadline);
            settings.retry_max = settings.retry_max.min(settings.deadline);
            settings.retry_min = settings.retry_min.min(settings.retry_max);
        }
        if let Some(patience) = keys.patience_ms {
            settings.patience = Duration::from_millis(patience);
        }
        settings.account = keys.account_file.as_deref().map(account).transpose()?;
        settings.tls = tls(keys.tls_ca, keys.tls_cert, keys.tls_key)?;
        settings.check().map_err(|error| error.to_string())?;
        let window_kib = keys.window_kib.unwrap_or(1024);
        if !(1..=WINDOW_KIB_MAX).contains(&window_kib) {
            let allowed = format!("allowed: 1 to {WINDOW_KIB_MAX}");
            return Err(format!("window_kib: {window_kib} is given; {allowed}"));
        }
        Ok(Self {
            settings,
            window_bytes: window_kib << 10,
        })
    }
}

fn read(path: &Path) -> Result<String, String> {
    let named = |problem: String| format!("{}: {problem}", path.display());
    let file = File::open(path).map_err(|error| named(error.to_string()))?;
    let mut text = String::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text);
    read.map_err(|error| named(error.to_string()))?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(named(format!("longer than {FILE_BYTES_MAX} bytes")));
    }
    Ok(text)
}

/// The file's first line, `NAME:PASSWORD`.
fn account(path: &Path) -> Result<Account, String> {
    let text = read(path)?;
    let line = text.lines().next().unwrap_or_default();
    let split = line.split_once(':');
    let (name, password) =
        split.ok_or_else(|| format!("{}: its first line is no NAME:PASSWORD", path.display()))?;
    Ok(Account {
        name: name.to_owned(),
        password: password.to_owned(),
    })
}

fn tls(
    ca: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
) -> Result<Option<Tls>, String> {
    let told = |error: quorumwire_client::Error| error.to_string();
    match (ca, certificate, key) {
        (None, None, None) => Ok(None),
        (Some(ca), None, None) => Tls::from_ca_file(ca).map(Some).map_err(told),
        (Some(ca), Some(certificate), Some(key)) => {
            let tls = Tls::from_ca_file(ca).map_err(told)?;
            tls.with_certificate(certificate, key)
                .map(Some)
                .map_err(told)
        }
        (None, _, _) | (Some(_), Some(_), None) | (Some(_), None, Some(_)) => {
            Err("tls_ca is given alone, or together with tls_cert and tls_key".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESSES: &str = "addresses = [\"127.0.0.1:7402\"]\n";

    fn refused(more: &str) -> String {
        let text = format!("{ADDRESSES}{more}");
        Configuration::parse(&text).err().expect(more)
    }

    #[test]
    fn addresses_are_enough_and_everything_else_may_be_said() {
        let plain = Configuration::parse(ADDRESSES).unwrap();
        assert_eq!(plain.settings.addresses, ["127.0.0.1:7402"]);
        assert_eq!(plain.window_bytes, 1 << 20);
        let more =
            "deployment = \"replicas\"\ndeadline_ms = 100\npatience_ms = 50\nwindow_kib = 8\n";
        let more = Configuration::parse(&format!("{ADDRESSES}{more}")).unwrap();
        assert_eq!(more.settings.deadline, Duration::from_millis(100));
        assert_eq!(more.settings.patience, Duration::from_millis(50));
        assert_eq!(more.window_bytes, 8192);
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        for (more, name) in [
            ("adresses = []", "adresses"),
            ("deployment = \"paxos\"", "allowed: \"replicas\""),
            ("deadline_ms = 0", "deadline"),
            ("deadline_ms = 1000000", "deadline"),
            ("patience_ms = 60000", "patience"),
            ("window_kib = 0", "window_kib"),
            ("window_kib = 99999999", "window_kib"),
            ("tls_cert = \"a\"", "tls_ca"),
            ("tls_ca = \"a\"\ntls_key = \"b\"", "tls_ca"),
            ("account_file = \"/nowhere/at/all\"", "/nowhere/at/all"),
        ] {
            let said = refused(more);
            assert!(said.contains(name), "{more}: {said}");
        }
        assert!(Configuration::parse("").is_err());
        assert!(Configuration::parse("addresses = []").is_err());
        assert!(Configuration::parse("addresses = [\"a\"]").is_err());
        let nowhere = Configuration::load(Path::new("/nowhere/at/all")).err();
        assert!(nowhere.unwrap().starts_with("/nowhere/at/all: "));
        let endless = Configuration::load(Path::new("/dev/zero")).err();
        assert!(endless.unwrap().contains("longer than"));
    }

    #[test]
    fn an_account_is_the_first_line_of_its_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "shop:a:b\nother:c\n").unwrap();
        let account = account(file.path()).unwrap();
        assert_eq!((&*account.name, &*account.password), ("shop", "a:b"));
        std::fs::write(file.path(), "shop").unwrap();
        assert!(super::account(file.path()).is_err());
    }
}

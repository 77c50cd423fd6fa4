//! The configuration file: which deployment, and how it is reached.
use quorumwire_client::{Account, Settings, Tls};
use quorumwire_node::options::ServerOptions;
use serde::Deserialize;
use std::fs::File;
use std::io::Read as _;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Largest configuration file, and largest file of an account.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// What `deployment` may say.
const REPLICAS: &str = "replicas";
const PAXOS: &str = "paxos";
/// A call at a Paxos deployment waits so long at most, unless the file says otherwise.
const DEADLINE_MS: u64 = 10_000;
/// The longest that it may say.
const DEADLINE_MS_MAX: u64 = 600_000;
/// The longest that a thread may look for packets before it sleeps.
const BUSY_POLL_US_MAX: u64 = 1_000_000;
/// What may wait to be delivered, in KiB.
const WINDOW_KIB_MAX: u64 = 1 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    deployment: Option<String>,
    addresses: Option<Vec<String>>,
    replica: Option<PathBuf>,
    deployment_file: Option<PathBuf>,
    learner: Option<u8>,
    dir: Option<PathBuf>,
    busy_poll_us: Option<u64>,
    only_submits: Option<bool>,
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
    pub decider: Decider,
    pub window_bytes: u64,
}

/// Who decides.
pub enum Decider {
    /// Replicas, reached so; and the one that runs in this program, whose address is to be added.
    Replicas(Box<Settings>, Option<Box<ServerOptions>>),
    /// A Paxos deployment.
    Deployment(Deployment),
}

/// Which part of a Paxos deployment this is.
pub struct Deployment {
    pub file: PathBuf,
    pub learner: u8,
    pub dir: PathBuf,
    pub only_submits: bool,
    pub deadline: Duration,
    pub busy_poll: Duration,
}

impl Configuration {
    /// Reads it. The error is for people, and names the file.
    pub fn load(path: &Path) -> Result<Self, String> {
        let named = |problem: String| format!("{}: {problem}", path.display());
        Self::parse(&read(path)?).map_err(named)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut keys: Keys = toml::from_str(text).map_err(|error| error.message().to_owned())?;
        let window_kib = keys.window_kib.unwrap_or(1024);
        must_be_within("window_kib", window_kib, 1..=WINDOW_KIB_MAX)?;
        let decider = match keys.deployment.take().as_deref() {
            None | Some(REPLICAS) => keys.replicas()?,
            Some(PAXOS) => Decider::Deployment(keys.deployment()?),
            Some(other) => {
                return Err(format!(
                    "deployment: {other:?} is given; allowed: {REPLICAS:?}, {PAXOS:?}"
                ));
            }
        };
        Ok(Self {
            decider,
            window_bytes: window_kib << 10,
        })
    }
}

impl Keys {
    fn replicas(self) -> Result<Decider, String> {
        let of_others = [
            ("deployment_file", self.deployment_file.is_some()),
            ("learner", self.learner.is_some()),
            ("dir", self.dir.is_some()),
            ("busy_poll_us", self.busy_poll_us.is_some()),
            ("only_submits", self.only_submits.is_some()),
        ];
        must_not_be_given(&of_others, PAXOS)?;
        let inside = self.replica.as_deref().map(ServerOptions::load_file);
        let inside = inside.transpose().map_err(|error| error.to_string())?;
        let addresses = match (self.addresses, &inside) {
            (Some(addresses), _) => addresses,
            // Where it would be reached if it listened there: it is known once it does.
            (None, Some(options)) => vec![options.listen_client.to_string()],
            (None, None) => return Err("missing field `addresses`, or `replica`".to_owned()),
        };
        let mut settings = Settings::new(addresses);
        if let Some(deadline) = self.deadline_ms {
            settings.deadline = Duration::from_millis(deadline);
            settings.patience = settings.patience.min(settings.deadline);
            settings.retry_max = settings.retry_max.min(settings.deadline);
            settings.retry_min = settings.retry_min.min(settings.retry_max);
        }
        if let Some(patience) = self.patience_ms {
            settings.patience = Duration::from_millis(patience);
        }
        settings.account = self.account_file.as_deref().map(account).transpose()?;
        settings.tls = tls(self.tls_ca, self.tls_cert, self.tls_key)?;
        settings.check().map_err(|error| error.to_string())?;
        Ok(Decider::Replicas(Box::new(settings), inside.map(Box::new)))
    }

    fn deployment(self) -> Result<Deployment, String> {
        let of_others = [
            ("addresses", self.addresses.is_some()),
            ("replica", self.replica.is_some()),
            ("patience_ms", self.patience_ms.is_some()),
            ("account_file", self.account_file.is_some()),
            ("tls_ca", self.tls_ca.is_some()),
            ("tls_cert", self.tls_cert.is_some()),
            ("tls_key", self.tls_key.is_some()),
        ];
        must_not_be_given(&of_others, REPLICAS)?;
        let deadline_ms = self.deadline_ms.unwrap_or(DEADLINE_MS);
        must_be_within("deadline_ms", deadline_ms, 1..=DEADLINE_MS_MAX)?;
        let busy_poll_us = self.busy_poll_us.unwrap_or(0);
        must_be_within("busy_poll_us", busy_poll_us, 0..=BUSY_POLL_US_MAX)?;
        Ok(Deployment {
            file: self
                .deployment_file
                .ok_or("missing field `deployment_file`")?,
            learner: self.learner.ok_or("missing field `learner`")?,
            dir: self.dir.ok_or("missing field `dir`")?,
            only_submits: self.only_submits.unwrap_or(false),
            deadline: Duration::from_millis(deadline_ms),
            busy_poll: Duration::from_micros(busy_poll_us),
        })
    }
}

/// Refuses keys that say something of another kind of deployment only.
fn must_not_be_given(keys: &[(&str, bool)], of: &str) -> Result<(), String> {
    match keys.iter().find(|(_, is_given)| *is_given) {
        Some((name, _)) => Err(format!("{name} is of deployment = {of:?} only")),
        None => Ok(()),
    }
}

fn must_be_within(name: &str, value: u64, allowed: RangeInclusive<u64>) -> Result<(), String> {
    if allowed.contains(&value) {
        return Ok(());
    }
    let (least, most) = allowed.into_inner();
    Err(format!(
        "{name}: {value} is given; allowed: {least} to {most}"
    ))
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
        let settings = |configuration: &Configuration| match &configuration.decider {
            Decider::Replicas(settings, None) => Settings::clone(settings),
            Decider::Replicas(_, Some(_)) => panic!("no replica is inside"),
            Decider::Deployment(_) => panic!("it is of replicas"),
        };
        let plain = Configuration::parse(ADDRESSES).unwrap();
        assert_eq!(settings(&plain).addresses, ["127.0.0.1:7402"]);
        assert_eq!(plain.window_bytes, 1 << 20);
        let more =
            "deployment = \"replicas\"\ndeadline_ms = 100\npatience_ms = 50\nwindow_kib = 8\n";
        let more = Configuration::parse(&format!("{ADDRESSES}{more}")).unwrap();
        assert_eq!(settings(&more).deadline, Duration::from_millis(100));
        assert_eq!(settings(&more).patience, Duration::from_millis(50));
        assert_eq!(more.window_bytes, 8192);
    }

    #[test]
    fn a_paxos_deployment_has_keys_of_its_own() {
        const PAXOS: &str = "deployment = \"paxos\"\ndeployment_file = \"orders.toml\"\nlearner = 1\n\
                             dir = \"learner\"\n";
        let Decider::Deployment(found) = Configuration::parse(PAXOS).unwrap().decider else {
            panic!("it is of a deployment");
        };
        assert_eq!(
            (found.learner, found.file),
            (1, PathBuf::from("orders.toml"))
        );
        assert_eq!(found.deadline, Duration::from_millis(DEADLINE_MS));
        for (more, name) in [
            ("addresses = [\"127.0.0.1:7402\"]", "addresses"),
            ("deadline_ms = 0", "1 to 600000"),
            ("busy_poll_us = 1000001", "0 to 1000000"),
            ("tls_ca = \"a\"", "tls_ca"),
        ] {
            let said = Configuration::parse(&format!("{PAXOS}{more}")).err();
            assert!(said.expect(more).contains(name), "{more}");
        }
        let without = PAXOS.replace("learner = 1\n", "");
        assert!(
            Configuration::parse(&without)
                .err()
                .unwrap()
                .contains("learner")
        );
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        for (more, name) in [
            ("adresses = []", "adresses"),
            ("deployment = \"raft\"", "allowed: \"replicas\", \"paxos\""),
            ("learner = 1", "learner"),
            ("deadline_ms = 0", "deadline"),
            ("deadline_ms = 1000000", "deadline"),
            ("patience_ms = 60000", "patience"),
            ("window_kib = 0", "window_kib"),
            ("window_kib = 99999999", "window_kib"),
            ("tls_cert = \"a\"", "tls_ca"),
            ("replica = \"/nowhere/at/all\"", "/nowhere/at/all"),
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

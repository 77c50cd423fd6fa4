//! What a client is told at its start, checked. Nothing is opened here.
use crate::Error;
use crate::tls::Tls;
use quorumwire_wire::limits::{ACCOUNT_BYTES_MAX, ADDRESS_BYTES_MAX};
use std::fmt;
use std::time::Duration;

/// Most addresses to try.
pub const ADDRESSES_MAX: usize = 16;

/// Most commands of one client that may be unanswered: what the replicas remember of a session.
pub const COMMANDS_MAX: usize = 64;

/// Most queries of one client that may be unanswered.
pub const QUERIES_MAX: usize = 256;

/// Longest time for which a request is tried.
pub const DEADLINE_MAX: Duration = Duration::from_mins(1);

/// Shortest wait before something is tried again.
pub const RETRY_MIN: Duration = Duration::from_millis(1);

/// A name and a password, as the replicas' `client-auth-file` has them.
#[derive(Clone, Eq, PartialEq)]
pub struct Account {
    /// Who the client is.
    pub name: String,
    /// How it shows that.
    pub password: String,
}

impl fmt::Debug for Account {
    /// Shows no password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "account {:?}", self.name)
    }
}

/// How a client asks.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where replicas serve clients (their option `listen-client`), each `HOST:PORT`; 1 to
    /// [`ADDRESSES_MAX`]. One that is up is enough; the client finds the leader by itself.
    pub addresses: Vec<String>,
    /// Who the client is, if replicas ask for that.
    pub account: Option<Account>,
    /// How connections are secured; none: not at all.
    pub tls: Option<Tls>,
    /// For how long a request is tried; at most [`DEADLINE_MAX`].
    pub deadline: Duration,
    /// How long a connection may take to come about, and how long a replica may say nothing while it owes an
    /// answer: then another one is asked.
    pub patience: Duration,
    /// How long to wait before something is tried again, by chance up to half as long again; twice as long
    /// each time, up to `retry_max`.
    pub retry_min: Duration,
    /// See `retry_min`.
    pub retry_max: Duration,
    /// Commands that may be unanswered; more of them wait. 1 to [`COMMANDS_MAX`].
    pub commands_max: usize,
    /// Queries that may be unanswered; more of them wait. 1 to [`QUERIES_MAX`].
    pub queries_max: usize,
    /// Seed of the waits that are left to chance, for tests; `None`: the system's. Sessions are always
    /// named by the system's.
    pub seed: Option<u64>,
}

impl Settings {
    /// The usual ones: tried for 10 s, another replica after 2 s of silence, and no TLS.
    pub fn new<A: Into<String>>(addresses: impl IntoIterator<Item = A>) -> Self {
        Self {
            addresses: addresses.into_iter().map(Into::into).collect(),
            account: None,
            tls: None,
            deadline: Duration::from_secs(10),
            patience: Duration::from_secs(2),
            retry_min: Duration::from_millis(5),
            retry_max: Duration::from_millis(500),
            commands_max: COMMANDS_MAX,
            queries_max: COMMANDS_MAX,
            seed: None,
        }
    }

    /// Refuses what is out of range.
    pub fn check(&self) -> Result<(), Error> {
        let refuse = |name: &str, given: &dyn fmt::Debug, allowed: &str| {
            let text = format!("{name}: {given:?} is given; allowed: {allowed}");
            Err(Error::Invalid(text))
        };
        let count = self.addresses.len();
        if !(1..=ADDRESSES_MAX).contains(&count) {
            return refuse("addresses", &count, "1 to 16 of them");
        }
        let is_bad = |address: &&String| {
            let port = address
                .rsplit_once(':')
                .map(|(_, port)| port.parse::<u16>());
            address.len() > ADDRESS_BYTES_MAX || !matches!(port, Some(Ok(_)))
        };
        if let Some(address) = self.addresses.iter().find(is_bad) {
            return refuse("addresses", address, "HOST:PORT, up to 256 bytes");
        }
        if let Some(account) = &self.account
            && account.name.len().max(account.password.len()) > ACCOUNT_BYTES_MAX
        {
            return refuse("account", account, "up to 1,024 bytes each");
        }
        if self.deadline > DEADLINE_MAX || self.deadline < RETRY_MIN {
            return refuse("deadline", &self.deadline, "1 ms to 60 s");
        }
        if self.patience > self.deadline || self.patience < RETRY_MIN {
            return refuse("patience", &self.patience, "1 ms to the deadline");
        }
        if self.retry_min < RETRY_MIN {
            return refuse("retry_min", &self.retry_min, "1 ms or more");
        }
        if self.retry_max < self.retry_min || self.retry_max > self.deadline {
            let allowed = "retry_min to the deadline";
            return refuse("retry_max", &self.retry_max, allowed);
        }
        if !(1..=COMMANDS_MAX).contains(&self.commands_max) {
            return refuse("commands_max", &self.commands_max, "1 to 64");
        }
        if !(1..=QUERIES_MAX).contains(&self.queries_max) {
            return refuse("queries_max", &self.queries_max, "1 to 256");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Change = fn(&mut Settings);

    #[test]
    fn settings_out_of_range_are_refused_by_name() {
        let good = Settings::new(["127.0.0.1:7402", "[::1]:7402", "host:1"]);
        assert_eq!(good.check(), Ok(()));
        let cases: [(&str, Change); 13] = [
            ("addresses", |it| it.addresses.clear()),
            ("addresses", |it| it.addresses = vec!["a:1".into(); 17]),
            ("addresses", |it| it.addresses = vec!["a".into()]),
            ("addresses", |it| it.addresses = vec!["a:65536".into()]),
            ("account", |it| {
                let (name, password) = ("a".into(), "a".repeat(ACCOUNT_BYTES_MAX + 1));
                it.account = Some(Account { name, password });
            }),
            ("deadline", |it| it.deadline = DEADLINE_MAX * 2),
            ("patience", |it| it.patience = it.deadline * 2),
            ("patience", |it| it.patience = Duration::ZERO),
            ("retry_min", |it| it.retry_min = Duration::ZERO),
            ("retry_max", |it| it.retry_max = it.deadline * 2),
            ("retry_max", |it| it.retry_max = it.retry_min / 2),
            ("commands_max", |it| it.commands_max = COMMANDS_MAX + 1),
            ("queries_max", |it| it.queries_max = 0),
        ];
        for (name, change) in cases {
            let mut settings = good.clone();
            change(&mut settings);
            let Err(Error::Invalid(text)) = settings.check() else {
                panic!("{name} was taken");
            };
            assert!(text.starts_with(&format!("{name}: ")), "{text}");
            assert!(!text.contains("aaaaaaaa"), "a password is shown");
        }
    }
}

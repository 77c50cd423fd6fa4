//! Clients of a quorumwire cluster.
//!
//! - [`Client`], blocking, and [`AsyncClient`], on tokio: over TCP, at the port of the servers' option
//!   `listen-client`. Any number of threads or tasks share one.
//! - [`planes`]: commands over UDP, straight to the replicas' data planes.
//!
//! ```no_run
//! use quorumwire_client::{Client, Settings};
//! use std::time::Duration;
//!
//! let addresses = ["10.0.0.1:7402", "10.0.0.2:7402", "10.0.0.3:7402"];
//! let client = Client::connect(&Settings::new(addresses))?;
//! client.set("greeting", "hello")?;
//! assert_eq!(client.get("greeting")?.as_deref(), Some(&b"hello"[..]));
//! let visits = client.increment("visits", 1)?;
//! client.set_for("session:7", "anna", Duration::from_secs(60))?;
//! # Ok::<(), quorumwire_client::Error>(())
//! ```
//!
//! # What a result means
//!
//! A command is carried out once, however often it has to be sent, to however many replicas, whoever leads:
//! the client numbers it in a session, and the replicas remember what they answered. So it is tried, at one
//! replica after the other, until it is answered or its deadline is over, and the result is always one of
//! three ([`Error::outcome`]):
//!
//! - it was carried out: `Ok` and what was answered, or [`Error::AnswerGone`] if an answer longer than 128
//!   bytes got lost on its way and was not kept for the repeated question, or one is longer than 2 MiB;
//! - it was not carried out and will not be: [`Error::NotCarriedOut`], [`Error::Answered`] if the store
//!   refused it, and others;
//! - nobody knows: [`Error::OutcomeUnknown`]. It may yet be carried out, though not twice.
//!
//! ```no_run
//! # use quorumwire_client::{AsyncClient, Error, Outcome, Settings};
//! # async fn example() -> Result<(), Error> {
//! let client = AsyncClient::connect(Settings::new(["10.0.0.1:7402"])).await?;
//! match client.increment("sold", 1).await {
//!     Ok(sold) => println!("sold {sold}"),
//!     Err(error) => match error.outcome() {
//!         Outcome::CarriedOut => println!("sold one"),
//!         Outcome::NotCarriedOut => println!("not sold: {error}"),
//!         Outcome::Unknown => println!("look before you sell it again"),
//!     },
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Commands
//!
//! [`Client::submit`] and [`Client::query`] carry bytes that only the state machine understands. For the
//! key-value store there is [`Client::command`], which takes the words of a command as Redis has them, and
//! finds out by itself whether it is a read; [`Client::transaction`]; and a few of them by name. See [`kv`].
//!
//! # Who may
//!
//! ```no_run
//! # use quorumwire_client::{Account, Client, Settings, Tls};
//! let mut settings = Settings::new(["db-0.example:7402", "db-1.example:7402"]);
//! let authorities = Tls::from_ca_file("/etc/quorumwire/ca.pem")?;
//! // Only where servers ask for a certificate, with their option `client-tls-ca`.
//! let shown = authorities.with_certificate("/etc/shop/client-shop.pem", "/etc/shop/client-shop-key.pem")?;
//! settings.tls = Some(shown);
//! settings.account = Some(Account {
//!     name: "shop".into(),
//!     password: "another one".into(),
//! });
//! let client = Client::connect(&settings)?;
//! # Ok::<(), quorumwire_client::Error>(())
//! ```
pub mod addresses;
mod asynchronous;
mod blocking;
mod certificate_time;
pub mod deliver;
mod driver;
mod error;
pub mod kv;
pub mod machine;
pub mod planes;
mod settings;
mod tls;
mod wires;

pub use asynchronous::AsyncClient;
pub use blocking::Client;
pub use certificate_time::CertificateTime;
pub use error::{Error, Outcome};
pub use settings::{
    ADDRESSES_MAX, Account, COMMANDS_MAX, DEADLINE_MAX, QUERIES_MAX, RETRY_MIN, Settings,
};
pub use tls::Tls;

/// What a client has done and not done, since its start.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counters {
    /// Connections begun.
    pub connects: u64,
    /// Of these, those that did not come about or were not let in.
    pub connects_failed: u64,
    /// Connections lost after they had come about.
    pub links_lost: u64,
    /// Times that the client moved to another leader while its connection still stood.
    pub leaders_followed: u64,
    /// Sessions begun.
    pub sessions: u64,
    /// Commands and queries sent.
    pub sent: u64,
    /// Of these, those sent again.
    pub sent_again: u64,
    /// Of these, those sent to another replica than before.
    pub sent_elsewhere: u64,
    /// Commands and queries answered.
    pub answered: u64,
    /// Of these, commands that had run before and were answered as they were then.
    pub answered_repeated: u64,
    /// Refusals, those that another try followed included.
    pub refused: u64,
    /// Commands given up without anybody knowing their outcome.
    pub outcomes_unknown: u64,
    /// Answers that nothing waited for.
    pub not_awaited: u64,
    /// Connections given up because what came was not the protocol.
    pub malformed: u64,
}

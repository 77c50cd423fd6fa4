//! Values that replicas keep for learners, in the order of the log (servers with the option `learners`).
//!
//! ```no_run
//! use quorumwire_client::deliver::{Begin, Values};
//! use quorumwire_client::{Client, Settings};
//!
//! let addresses = ["10.0.0.1:7402", "10.0.0.2:7402", "10.0.0.3:7402"];
//! let values = Values::connect(&Settings::new(addresses))?;
//! let instance = values.submit(b"anna pays 3 to bob")?;
//! // Each learner is given all values, in the same order, whichever replica dies meanwhile.
//! for delivery in values.deliver(1, Begin::AtCheckpoint)? {
//!     let (instance, value) = delivery?;
//!     println!("{instance}: {}", String::from_utf8_lossy(&value));
//!     values.checkpoint(1, instance)?; // what follows from it is safe: it will not be needed again
//! }
//! # Ok::<(), quorumwire_client::Error>(())
//! ```
mod blocking;
mod driver;

pub use crate::machine::feed::FeedCounters;
pub use blocking::{Deliveries, Values};
pub use quorumwire_deliver::{Instance, Learner, Refusal, Status, VALUE_BYTES_MAX};

use crate::machine::feed::{Item, counts};
use crate::{AsyncClient, Error, Settings};
use driver::{Ends, FeedDriver};
use futures_core::Stream;
use quorumwire_deliver::{Answer, Command, Query, QueryAnswer, Recovered as Found};
use std::pin::Pin;
use std::sync::PoisonError;
use std::task::{Context, Poll};

/// Bytes of values that may wait to be taken, unless it is said otherwise; each counts 64 more than it has.
pub const WINDOW_BYTES: u64 = 1 << 20;

/// Where a learner begins.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Begin {
    /// Behind what it has checkpointed.
    AtCheckpoint,
    /// With this instance, or the first behind it that holds a value. From 1 on.
    At(Instance),
}

/// What is known of an instance.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Recovered {
    /// It holds this value.
    Decided(Vec<u8>),
    /// It is decided, and holds no value.
    NoOp,
    /// It is kept by nobody any more, as all up to this one.
    Trimmed(Instance),
    /// It is beyond this one, the last that is decided.
    NotDecided(Instance),
}

/// Who submits values and is given them, on tokio. Cheap to clone.
#[derive(Clone)]
pub struct AsyncValues {
    client: AsyncClient,
    settings: Settings,
}

impl AsyncValues {
    /// Connects, as [`AsyncClient::connect`].
    pub async fn connect(settings: Settings) -> Result<Self, Error> {
        let client = AsyncClient::connect(settings.clone()).await?;
        Ok(Self { client, settings })
    }

    pub(crate) const fn behind(client: AsyncClient, settings: Settings) -> Self {
        Self { client, settings }
    }

    /// Has a value decided, once; its instance. Waits while as many commands as the settings allow are
    /// unanswered. [`Error::TooLong`]: it is longer than [`VALUE_BYTES_MAX`]. [`Error::Refused`]: no more may
    /// be kept; the refusal names the learner that is furthest behind.
    pub async fn submit(&self, value: &[u8]) -> Result<Instance, Error> {
        if value.len() > VALUE_BYTES_MAX {
            return Err(Error::TooLong {
                bytes: value.len(),
                max: VALUE_BYTES_MAX,
            });
        }
        match self.run(&Command::Value(value)).await? {
            Answer::Decided(instance) => Ok(instance),
            Answer::Trimmed(_) => Err(Error::StrangeAnswer),
            Answer::Refused(refusal) => Err(Error::Refused(refusal)),
        }
    }

    /// The learner needs nothing up to this instance any more. What no learner needs is trimmed: up to which
    /// instance, 0 for none.
    pub async fn checkpoint(&self, learner: Learner, upto: Instance) -> Result<Instance, Error> {
        self.trim(&Command::Checkpoint { learner, upto }).await
    }

    /// Nobody is given what stands up to this instance any more, whoever may lack it: for an operator, when a
    /// learner is gone for good.
    pub async fn declare_lost(&self, upto: Instance) -> Result<Instance, Error> {
        self.trim(&Command::DeclareLost { upto }).await
    }

    async fn trim(&self, command: &Command<'_>) -> Result<Instance, Error> {
        match self.run(command).await? {
            Answer::Trimmed(upto) => Ok(upto),
            Answer::Decided(_) => Err(Error::StrangeAnswer),
            Answer::Refused(refusal) => Err(Error::Refused(refusal)),
        }
    }

    async fn run(&self, command: &Command<'_>) -> Result<Answer, Error> {
        let answer = self.client.submit(&command.encode()).await?;
        Answer::decode(&answer).map_err(|_| Error::StrangeAnswer)
    }

    /// What is known of an instance, from 1 on. It shows all that was decided before it was asked.
    pub async fn recover(&self, instance: Instance) -> Result<Recovered, Error> {
        if instance == 0 {
            return Err(Error::Invalid("instances begin with 1".to_owned()));
        }
        let answer = self
            .client
            .query(&Query::Recover(instance).encode())
            .await?;
        match QueryAnswer::decode(&answer) {
            Ok(QueryAnswer::Recovered(found)) => Ok(match found {
                Found::Decided(value) => Recovered::Decided(value.to_vec()),
                Found::NoOp => Recovered::NoOp,
                Found::Trimmed(upto) => Recovered::Trimmed(upto),
                Found::NotDecided(last) => Recovered::NotDecided(last),
            }),
            Ok(QueryAnswer::Status(_) | QueryAnswer::Malformed) | Err(_) => Err(no_values()),
        }
    }

    /// How far all are.
    pub async fn status(&self) -> Result<Status, Error> {
        let answer = self.client.query(&Query::Status.encode()).await?;
        match QueryAnswer::decode(&answer) {
            Ok(QueryAnswer::Status(status)) => Ok(status),
            Ok(QueryAnswer::Recovered(_) | QueryAnswer::Malformed) | Err(_) => Err(no_values()),
        }
    }

    /// All values for this learner, in their order, from the beginning that is named. They come from any
    /// replica, as long as one is there: when it dies, from the next one. [`WINDOW_BYTES`] of them may wait.
    pub async fn deliver(&self, learner: Learner, begin: Begin) -> Result<DeliveryStream, Error> {
        self.deliver_within(learner, begin, WINDOW_BYTES).await
    }

    /// The same with another number of bytes that may wait, 1 at least. One value is given however long it
    /// is.
    pub async fn deliver_within(
        &self,
        learner: Learner,
        begin: Begin,
        window_bytes: u64,
    ) -> Result<DeliveryStream, Error> {
        let (driver, stream) = self.begin(learner, begin, window_bytes).await?;
        tokio::spawn(driver.run());
        Ok(stream)
    }

    /// How the values are, once the log of a new group knows who learns them: its first leader tells it.
    async fn status_once_told(&self) -> Result<Status, Error> {
        let mut status = self.status().await?;
        let told = async {
            while status.learners.is_empty() {
                tokio::time::sleep(self.settings.retry_min).await;
                status = self.status().await?;
            }
            Ok::<(), Error>(())
        };
        match tokio::time::timeout(self.settings.deadline, told).await {
            Ok(told) => told.map(|()| status),
            Err(_) => Ok(status),
        }
    }

    pub(crate) async fn begin(
        &self,
        learner: Learner,
        begin: Begin,
        window_bytes: u64,
    ) -> Result<(FeedDriver, DeliveryStream), Error> {
        let status = self.status_once_told().await?;
        let known = status.learners.iter().find(|(it, _)| *it == learner);
        let Some((_, checkpoint)) = known else {
            return Err(Error::Refused(Refusal::UnknownLearner(learner)));
        };
        let from = match begin {
            Begin::AtCheckpoint => checkpoint + 1,
            Begin::At(0) => return Err(Error::Invalid("instances begin with 1".to_owned())),
            Begin::At(from) => from,
        };
        if from <= status.trimmed {
            let upto = status.trimmed;
            return Err(Error::Trimmed { upto });
        }
        let (driver, ends) = FeedDriver::new(&self.settings, (learner, from), window_bytes)?;
        let stream = DeliveryStream {
            ends,
            given: 0,
            is_over: false,
        };
        Ok((driver, stream))
    }
}

fn no_values() -> Error {
    Error::NoAnswer("the replicas keep no values for learners".to_owned())
}

/// A learner's values, on tokio. A value counts as taken when the next one is asked for.
pub struct DeliveryStream {
    ends: Ends,
    /// What the value counts that was given last.
    given: u64,
    is_over: bool,
}

impl DeliveryStream {
    /// The next value and its instance. Waits until there is one; while no replica can be reached, that is
    /// until one can. After an error nothing comes any more.
    pub async fn next(&mut self) -> Option<Result<(Instance, Vec<u8>), Error>> {
        std::future::poll_fn(|context| self.poll(context)).await
    }

    /// What was done.
    #[must_use]
    pub fn counters(&self) -> FeedCounters {
        let shown = self.ends.shown.lock();
        shown.unwrap_or_else(PoisonError::into_inner).counters
    }

    /// Why no values come now, in words; none: they come from a replica.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        let shown = self.ends.shown.lock();
        let shown = shown.unwrap_or_else(PoisonError::into_inner);
        shown.trouble.clone()
    }

    /// The value that was given last is taken: as much more may come.
    pub(crate) fn take_given(&mut self) {
        if self.given > 0 {
            let given = std::mem::take(&mut self.given);
            self.ends.taken.send(given).ok(); // it is over: that comes next
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Delivery, Error>>> {
        self.take_given();
        if self.is_over {
            return Poll::Ready(None);
        }
        self.ends.items.poll_recv(context).map(|item| match item {
            Some(Item::Value(instance, value)) => {
                self.given = counts(&value);
                Some(Ok((instance, value)))
            }
            Some(Item::Over(error)) => {
                self.is_over = true;
                Some(Err(error))
            }
            None => {
                self.is_over = true;
                let text = "the client's runtime has ended".to_owned();
                Some(Err(Error::NoAnswer(text)))
            }
        })
    }
}

/// A value's instance, and the value.
pub type Delivery = (Instance, Vec<u8>);

impl Stream for DeliveryStream {
    type Item = Result<Delivery, Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll(context)
    }
}

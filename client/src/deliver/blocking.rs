//! The same for programs without a runtime.
use super::{
    AsyncValues, Begin, Delivery, DeliveryStream, FeedCounters, Instance, Learner, Recovered,
    Status, WINDOW_BYTES,
};
use crate::{Client, Error, Settings};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::timeout;

/// Who submits values and is given them. Calls block. Cheap to clone, to be used by any number of threads.
#[derive(Clone)]
pub struct Values {
    client: Client,
    values: AsyncValues,
}

impl Values {
    /// Connects, as [`Client::connect`].
    pub fn connect(settings: &Settings) -> Result<Self, Error> {
        let client = Client::connect(settings)?;
        let values = AsyncValues::behind(client.behind().clone(), settings.clone());
        Ok(Self { client, values })
    }

    /// As [`AsyncValues::submit`].
    pub fn submit(&self, value: &[u8]) -> Result<Instance, Error> {
        self.client.wait_for(self.values.submit(value))
    }

    /// Has a value decided, as [`AsyncValues::submit`], and returns at once. What became of it is told on the
    /// client's thread, which is not to be kept waiting. Values of several calls may be decided in any order.
    pub fn submit_then(
        &self,
        value: Vec<u8>,
        done: impl FnOnce(Result<Instance, Error>) + Send + 'static,
    ) {
        let values = self.values.clone();
        (self.client).spawn(async move { done(values.submit(&value).await) });
    }

    /// As [`AsyncValues::checkpoint`].
    pub fn checkpoint(&self, learner: Learner, upto: Instance) -> Result<Instance, Error> {
        self.client.wait_for(self.values.checkpoint(learner, upto))
    }

    /// As [`AsyncValues::declare_lost`].
    pub fn declare_lost(&self, upto: Instance) -> Result<Instance, Error> {
        self.client.wait_for(self.values.declare_lost(upto))
    }

    /// As [`AsyncValues::recover`].
    pub fn recover(&self, instance: Instance) -> Result<Recovered, Error> {
        self.client.wait_for(self.values.recover(instance))
    }

    /// As [`AsyncValues::status`].
    pub fn status(&self) -> Result<Status, Error> {
        self.client.wait_for(self.values.status())
    }

    /// As [`AsyncValues::deliver`].
    pub fn deliver(&self, learner: Learner, begin: Begin) -> Result<Deliveries, Error> {
        self.deliver_within(learner, begin, WINDOW_BYTES)
    }

    /// As [`AsyncValues::deliver_within`].
    pub fn deliver_within(
        &self,
        learner: Learner,
        begin: Begin,
        window_bytes: u64,
    ) -> Result<Deliveries, Error> {
        let beginning = self.values.begin(learner, begin, window_bytes);
        let (driver, stream) = self.client.wait_for(beginning)?;
        self.client.spawn(driver.run());
        Ok(Deliveries {
            stream,
            client: self.client.clone(),
        })
    }

    /// Ends what waits in calls of other threads, and refuses what is asked from now on: of all clones, but
    /// not of [`Deliveries`]. A value whose submission waited may still be decided
    /// ([`Error::OutcomeUnknown`]).
    pub fn close(&self) {
        self.client.behind().close();
    }

    /// The same on tokio: what runs there shares this one's connection.
    #[must_use]
    pub const fn asynchronous(&self) -> &AsyncValues {
        &self.values
    }
}

/// A learner's values. A value counts as taken when the next one is asked for; so what somebody does with a
/// value keeps nobody waiting but this learner.
pub struct Deliveries {
    stream: DeliveryStream,
    client: Client,
}

impl Deliveries {
    /// As the iterator's next one, but waits at most so long. `Ok(None)`: none came.
    pub fn next_within(&mut self, at_most: Duration) -> Result<Option<Delivery>, Error> {
        let next = async { timeout(at_most, self.stream.next()).await };
        match self.client.wait_for(next) {
            Err(_) => Ok(None),
            Ok(Some(delivery)) => delivery.map(Some),
            Ok(None) => Err(Error::NoAnswer("the subscription is over".to_owned())),
        }
    }

    /// The next one, if it is there; else the context is woken when it may be. For who waits for several
    /// things, on any thread.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Delivery, Error>>> {
        self.stream.poll(context)
    }

    /// As [`DeliveryStream::counters`].
    #[must_use]
    pub fn counters(&self) -> FeedCounters {
        self.stream.counters()
    }

    /// As [`DeliveryStream::trouble`].
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.stream.trouble()
    }
}

impl Iterator for Deliveries {
    type Item = Result<Delivery, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.client.wait_for(self.stream.next())
    }
}

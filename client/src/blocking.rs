//! The client for programs without a runtime.
use crate::asynchronous::AsyncClient;
use crate::settings::Settings;
use crate::{Counters, Error};
use std::thread;
use tokio::runtime::{Builder, Handle};

/// A client of a cluster whose calls block. Cheap to clone, to be used by any number of threads at once;
/// behind it is an [`AsyncClient`] on a thread of its own. On a tokio runtime use that one: these calls panic
/// there.
#[derive(Clone)]
pub struct Client {
    client: AsyncClient,
    runtime: Handle,
}

impl Client {
    /// Connects, within the settings' deadline.
    pub fn connect(settings: &Settings) -> Result<Self, Error> {
        let (client, background) = AsyncClient::prepare(settings)?;
        let failed = |error: std::io::Error| Error::Invalid(format!("no runtime: {error}"));
        let runtime = Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(failed)?;
        let handle = runtime.handle().clone();
        // Ends by itself when the last client is dropped.
        thread::Builder::new()
            .name("quorumwire".to_owned())
            .spawn(move || runtime.block_on(background.run()))
            .map_err(failed)?;
        let client = Self {
            client,
            runtime: handle,
        };
        client.wait_for(client.client.greet())?;
        Ok(client)
    }

    /// As [`AsyncClient::submit`].
    pub fn submit(&self, command: &[u8]) -> Result<Vec<u8>, Error> {
        self.wait_for(self.client.submit(command))
    }

    /// As [`AsyncClient::query`].
    pub fn query(&self, query: &[u8]) -> Result<Vec<u8>, Error> {
        self.wait_for(self.client.query(query))
    }

    /// What was done and not done.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.client.counters()
    }

    /// The client behind this one.
    pub(crate) fn behind(&self) -> &AsyncClient {
        &self.client
    }

    /// Has this run beside the client.
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(future);
    }

    pub(crate) fn wait_for<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }
}

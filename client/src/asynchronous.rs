//! The client for programs on tokio.
use crate::driver::{Driver, Request, RequestBody, Requests};
use crate::settings::Settings;
use crate::wires::LinkEvent;
use crate::{Counters, Error};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// A client of a cluster. Cheap to clone; all clones share one connection and one session, and any number of
/// tasks may ask at once. When the last one is dropped, its connection ends, and with it what nobody waits
/// for.
///
/// Dropping a future of a command does not take the command back: it may be carried out, once.
#[derive(Clone)]
pub struct AsyncClient {
    shared: Arc<Shared>,
}

struct Shared {
    requests: Requests,
    commands: Arc<Semaphore>,
    queries: Arc<Semaphore>,
    counters: Arc<Mutex<Counters>>,
}

/// What is to run beside the client.
pub(crate) struct Background {
    driver: Driver,
    requests: tokio::sync::mpsc::UnboundedReceiver<Request>,
    incoming: tokio::sync::mpsc::UnboundedReceiver<LinkEvent>,
}

impl Background {
    /// Runs until no client is left.
    pub(crate) async fn run(self) {
        self.driver.run(self.requests, self.incoming).await;
    }
}

impl AsyncClient {
    /// Connects, within the settings' deadline. To be called on a tokio runtime with time and I/O, on which
    /// the client's own task then runs.
    pub async fn connect(settings: Settings) -> Result<Self, Error> {
        let (client, background) = Self::prepare(&settings)?;
        tokio::spawn(background.run());
        client.greet().await?;
        Ok(client)
    }

    /// A client, and what must run for it.
    pub(crate) fn prepare(settings: &Settings) -> Result<(Self, Background), Error> {
        settings.check()?;
        let (driver, incoming) = Driver::new(settings)?;
        let (requests_in, requests) = unbounded_channel();
        let shared = Shared {
            requests: requests_in,
            commands: Arc::new(Semaphore::new(settings.commands_max)),
            queries: Arc::new(Semaphore::new(settings.queries_max)),
            counters: driver.shown(),
        };
        let client = Self {
            shared: Arc::new(shared),
        };
        let background = Background {
            driver,
            requests,
            incoming,
        };
        Ok((client, background))
    }

    /// Waits until some replica has let the client in.
    pub(crate) async fn greet(&self) -> Result<(), Error> {
        let ended = Error::NoAnswer("the client was closed".to_owned());
        self.ask(RequestBody::Greeting, None, ended).await.map(drop)
    }

    /// Has a command carried out, once, and gives what the state machine said. Waits while as many commands
    /// as the settings allow are unanswered.
    pub async fn submit(&self, command: &[u8]) -> Result<Vec<u8>, Error> {
        let permit = permit(&self.shared.commands).await?;
        let body = RequestBody::Command(command.to_vec());
        self.ask(body, Some(permit), Error::OutcomeUnknown).await
    }

    /// Answers a read, which shows every command that was answered before it was asked, whoever submitted it.
    pub async fn query(&self, query: &[u8]) -> Result<Vec<u8>, Error> {
        let permit = permit(&self.shared.queries).await?;
        let body = RequestBody::Query(query.to_vec());
        let ended = Error::NoAnswer("the client was closed".to_owned());
        self.ask(body, Some(permit), ended).await
    }

    /// Ends what waits, in all clones, and refuses what is asked from now on. A command that waited may still
    /// be carried out.
    pub(crate) fn close(&self) {
        let (reply, _) = oneshot::channel();
        let request = Request {
            body: RequestBody::Close,
            reply,
            permit: None,
        };
        self.shared.requests.send(request).ok(); // nothing waits where the runtime has ended
    }

    /// What was done and not done.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let counters = self.shared.counters.lock();
        *counters.unwrap_or_else(PoisonError::into_inner)
    }

    /// `ended`: what is known if the runtime ends meanwhile.
    async fn ask(
        &self,
        body: RequestBody,
        permit: Option<OwnedSemaphorePermit>,
        ended: Error,
    ) -> Result<Vec<u8>, Error> {
        let (reply, answer) = oneshot::channel();
        let request = Request {
            body,
            reply,
            permit,
        };
        if self.shared.requests.send(request).is_err() {
            let text = "the client's runtime has ended".to_owned();
            return Err(Error::NotCarriedOut(text));
        }
        answer.await.unwrap_or(Err(ended))
    }
}

async fn permit(of: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Error> {
    let permit = Arc::clone(of).acquire_owned().await;
    permit.map_err(|error| Error::NotCarriedOut(error.to_string())) // never: nobody closes it
}

//! The commands, for both clients. The blocking ones wait for the others.
use super::{
    Value, Watched, Way, transaction_of, value_of, values_of, versions_query, watched_of, way_of,
};
use crate::{AsyncClient, Client, Error};
use std::time::Duration;

/// Times that [`AsyncClient::compare_and_set`] looks again because the key's version changed and its value
/// did not.
const COMPARISONS_MAX: usize = 16;

fn milliseconds(lifetime: Duration) -> Result<String, Error> {
    match lifetime.as_millis() {
        0 => Err(Error::Invalid("a lifetime is 1 ms or more".to_owned())),
        ms => Ok(ms.to_string()),
    }
}

impl AsyncClient {
    /// Carries one command out, given by its words, such as `["SET", "key", "value", "EX", "10"]`. What the
    /// store answers with an error is [`Error::Answered`].
    pub async fn command<W: AsRef<[u8]>>(&self, words: &[W]) -> Result<Value, Error> {
        let answer = match way_of(words)? {
            Way::Query(query) => self.query(&query).await?,
            Way::Command(command) => self.submit(&command).await?,
        };
        value_of(&answer)
    }

    /// Carries several commands out as one: all or none of them are, and nothing comes between. One value for
    /// each; a command that is refused for what it finds is [`Value::Error`], and does not hold up the
    /// others.
    pub async fn transaction<W: AsRef<[u8]>>(
        &self,
        commands: &[impl AsRef<[W]>],
    ) -> Result<Vec<Value>, Error> {
        let done = self.transaction_if(&Watched::default(), commands).await?;
        done.ok_or(Error::StrangeAnswer)
    }

    /// The same, if the watched keys have not changed since. `None`: one has, and nothing was done.
    pub async fn transaction_if<W: AsRef<[u8]>>(
        &self,
        watched: &Watched,
        commands: &[impl AsRef<[W]>],
    ) -> Result<Option<Vec<Value>>, Error> {
        let command = transaction_of(watched, commands)?;
        values_of(&self.submit(&command).await?)
    }

    /// Notes the versions of keys, for [`Self::transaction_if`]. Read their values after this, not before.
    pub async fn watch<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Watched, Error> {
        let query = versions_query(keys)?;
        watched_of(keys, &self.query(&query).await?)
    }

    /// The value of a key, if there is one.
    pub async fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, Error> {
        let value = self.command(&[b"GET", key.as_ref()]).await?;
        if value == Value::Null {
            return Ok(None);
        }
        value.into_bytes().map(Some).ok_or(Error::StrangeAnswer)
    }

    /// Gives a key a value, for good.
    pub async fn set(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<(), Error> {
        let words = [&b"SET"[..], key.as_ref(), value.as_ref()];
        self.command(&words).await.map(drop)
    }

    /// Gives a key a value that ends after a while.
    pub async fn set_for(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        lifetime: Duration,
    ) -> Result<(), Error> {
        let ms = milliseconds(lifetime)?;
        let words = [b"SET", key.as_ref(), value.as_ref(), b"PX", ms.as_bytes()];
        self.command(&words).await.map(drop)
    }

    /// Removes a key; whether it was there.
    pub async fn delete(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        let removed = self.command(&[b"DEL", key.as_ref()]).await?.as_integer();
        Ok(removed.ok_or(Error::StrangeAnswer)? == 1)
    }

    /// Adds to a number, which is 0 if there is none; the sum.
    pub async fn increment(&self, key: impl AsRef<[u8]>, by: i64) -> Result<i64, Error> {
        let by = by.to_string();
        let words = [b"INCRBY", key.as_ref(), by.as_bytes()];
        let sum = self.command(&words).await?.as_integer();
        sum.ok_or(Error::StrangeAnswer)
    }

    /// Gives a key a new value if it has the expected one (`None`: if it has none); whether it did. An
    /// error's outcome is that of the change.
    pub async fn compare_and_set(
        &self,
        key: impl AsRef<[u8]>,
        expected: Option<&[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<bool, Error> {
        let key = key.as_ref();
        for _ in 0..COMPARISONS_MAX {
            let watched = self.watch(&[key]).await?;
            if self.get(key).await?.as_deref() != expected {
                return Ok(false);
            }
            let set: [&[u8]; 3] = [b"SET", key, value.as_ref()];
            if self.transaction_if(&watched, &[set]).await?.is_some() {
                return Ok(true);
            }
        }
        let text = "the key changes all the time".to_owned();
        Err(Error::NotCarriedOut(text))
    }
}

impl Client {
    /// As [`AsyncClient::command`].
    pub fn command<W: AsRef<[u8]>>(&self, words: &[W]) -> Result<Value, Error> {
        self.wait_for(self.behind().command(words))
    }

    /// As [`AsyncClient::transaction`].
    pub fn transaction<W: AsRef<[u8]>>(
        &self,
        commands: &[impl AsRef<[W]>],
    ) -> Result<Vec<Value>, Error> {
        self.wait_for(self.behind().transaction(commands))
    }

    /// As [`AsyncClient::transaction_if`].
    pub fn transaction_if<W: AsRef<[u8]>>(
        &self,
        watched: &Watched,
        commands: &[impl AsRef<[W]>],
    ) -> Result<Option<Vec<Value>>, Error> {
        self.wait_for(self.behind().transaction_if(watched, commands))
    }

    /// As [`AsyncClient::watch`].
    pub fn watch<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Watched, Error> {
        self.wait_for(self.behind().watch(keys))
    }

    /// As [`AsyncClient::get`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, Error> {
        self.wait_for(self.behind().get(key))
    }

    /// As [`AsyncClient::set`].
    pub fn set(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<(), Error> {
        self.wait_for(self.behind().set(key, value))
    }

    /// As [`AsyncClient::set_for`].
    pub fn set_for(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        lifetime: Duration,
    ) -> Result<(), Error> {
        self.wait_for(self.behind().set_for(key, value, lifetime))
    }

    /// As [`AsyncClient::delete`].
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        self.wait_for(self.behind().delete(key))
    }

    /// As [`AsyncClient::increment`].
    pub fn increment(&self, key: impl AsRef<[u8]>, by: i64) -> Result<i64, Error> {
        self.wait_for(self.behind().increment(key, by))
    }

    /// As [`AsyncClient::compare_and_set`].
    pub fn compare_and_set(
        &self,
        key: impl AsRef<[u8]>,
        expected: Option<&[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<bool, Error> {
        self.wait_for(self.behind().compare_and_set(key, expected, value))
    }
}

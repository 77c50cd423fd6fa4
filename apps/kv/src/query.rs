//! A read of either protocol: what [`query`](quorumwire_interfaces::Application::query) takes, once it is
//! parsed. On each machine that is done once; beside the kept bytes of a read stands its [`QueryForm`].
use crate::redis::Resp;
use crate::{memcached, redis};

/// A read. Its line is that of memcached's, or a version of the Redis protocol and the text of a command.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Query<'a> {
    /// Of memcached.
    Memcached(memcached::Read<'a>),
    /// Of Redis: memcached has no request that begins so.
    Redis(redis::Read<'a>),
    /// Begins as one of Redis, and is none.
    NotOfRedis,
    /// No read of either.
    Nothing,
}

/// What a line was seen to be when it was parsed; that of no line, at first.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct QueryForm(Form);

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Form {
    Memcached(memcached::ReadForm),
    Redis(redis::ReadForm),
    NotOfRedis,
    #[default]
    Nothing,
}

impl<'a> Query<'a> {
    /// The read that a line is.
    #[must_use]
    pub fn from_line(line: &'a [u8]) -> Self {
        if let Some((&version, text)) = line.split_first()
            && let Some(resp) = Resp::from_byte(version)
        {
            return redis::Read::from_text(resp, text).map_or(Self::NotOfRedis, Self::Redis);
        }
        memcached::Read::from_line(line).map_or(Self::Nothing, Self::Memcached)
    }

    /// The read in a line that was seen to be of this form.
    #[must_use]
    pub fn of(form: QueryForm, line: &'a [u8]) -> Self {
        match form.0 {
            Form::Memcached(form) => Self::Memcached(memcached::Read::of(form, line)),
            Form::Redis(form) => Self::Redis(redis::Read::of(form, &line[1..])),
            Form::NotOfRedis => Self::NotOfRedis,
            Form::Nothing => Self::Nothing,
        }
    }

    /// What was seen of it.
    #[must_use]
    pub fn form(&self) -> QueryForm {
        QueryForm(match self {
            Self::Memcached(read) => Form::Memcached(read.form()),
            Self::Redis(read) => Form::Redis(read.form()),
            Self::NotOfRedis => Form::NotOfRedis,
            Self::Nothing => Form::Nothing,
        })
    }
}

impl From<memcached::ReadForm> for QueryForm {
    fn from(form: memcached::ReadForm) -> Self {
        Self(Form::Memcached(form))
    }
}

impl From<redis::ReadForm> for QueryForm {
    fn from(form: redis::ReadForm) -> Self {
        Self(Form::Redis(form))
    }
}

#[cfg(test)]
#[path = "query_test.rs"]
mod tests;

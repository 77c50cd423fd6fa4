//! What clients speak, and what is kept of each for that. A front knows no connection and no group: here is
//! how answers are written, and what connections ask of it. What it takes off a client's bytes, and how it
//! reads, is listed in `by_front.rs`; a front is added here and there.
pub mod native;
pub mod redis;

use self::native::NativeClient;
use self::redis::RedisClient;
use super::answers;
use crate::options::ServerOptions;
use quorumwire_control::Now;
use quorumwire_group::AnswerKind;
use std::borrow::Cow;
use std::net::SocketAddr;

/// What a client speaks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Protocol {
    /// Memcached's text protocol.
    Memcached,
    /// Redis' protocol.
    Redis,
    /// That of `wire/client.proto`.
    Native,
}

impl Protocol {
    /// All that there are.
    pub const ALL: [Self; 3] = [Self::Memcached, Self::Redis, Self::Native];

    /// The option that says where its clients connect, and what that says.
    pub const fn listen(self) -> (&'static str, fn(&ServerOptions) -> SocketAddr) {
        match self {
            Self::Memcached => ("listen-memcached", |options| options.listen_memcached),
            Self::Redis => ("listen-redis", |options| options.listen_redis),
            Self::Native => ("listen-client", |options| options.listen_client),
        }
    }

    /// As the port's option has it, behind `listen-`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memcached => "memcached",
            Self::Redis => "redis",
            Self::Native => "client",
        }
    }

    /// What a client is told that is one too many.
    pub fn too_many(self) -> Cow<'static, [u8]> {
        match self {
            Self::Memcached => b"SERVER_ERROR too many connections\r\n".into(),
            Self::Redis => b"-ERR max number of clients reached\r\n".into(),
            Self::Native => native::too_many_connections().into(),
        }
    }
}

/// What a client speaks, and what is kept of it for that.
pub enum Front {
    /// Memcached's text protocol.
    Memcached,
    /// Redis' protocol.
    Redis(Box<RedisClient>),
    /// That of `wire/client.proto`.
    Native(Box<NativeClient>),
}

impl Front {
    /// Of a client that connects now.
    pub fn new(protocol: Protocol, from: SocketAddr, now: Now) -> Self {
        match protocol {
            Protocol::Memcached => Self::Memcached,
            Protocol::Redis => Self::Redis(Box::new(RedisClient::new(from, now))),
            Protocol::Native => Self::Native(Box::default()),
        }
    }

    /// Whether answers are those of carrying its requests out one after the other. The native protocol
    /// promises no order.
    pub const fn keeps_order(&self) -> bool {
        match self {
            Self::Memcached | Self::Redis(_) => true,
            Self::Native(_) => false,
        }
    }

    /// Whether the client wants no answer to what it asks now.
    pub const fn is_quiet(&self) -> bool {
        match self {
            Self::Redis(client) => client.is_quiet(),
            Self::Memcached | Self::Native(_) => false,
        }
    }

    /// Whether the rest of a request is still to come, to be thrown away.
    pub const fn is_skipping(&self) -> bool {
        match self {
            Self::Redis(client) => client.is_skipping(),
            Self::Memcached | Self::Native(_) => false,
        }
    }

    /// The request being looked at waits for its answer from now on.
    pub fn took_on(&mut self) {
        match self {
            Self::Native(client) => client.took_on(),
            Self::Memcached | Self::Redis(_) => {}
        }
    }

    /// The first of those that wait is answered.
    pub fn done_with_first(&mut self) {
        match self {
            Self::Native(client) => client.done_with_first(),
            Self::Memcached | Self::Redis(_) => {}
        }
    }

    /// Writes the answer to the first request that waits, in the words of the protocol.
    pub fn put_answer(&mut self, output: &mut Vec<u8>, said: AnswerKind, answer: &[u8]) {
        match (self, said) {
            (Self::Native(client), _) => client.put_answer(output, said, answer),
            (Self::Redis(_), AnswerKind::Refused(why)) => redis::put_refusal(output, why, answer),
            (Self::Memcached, AnswerKind::Refused(why)) => {
                answers::put_memcached(output, why, answer);
            }
            (Self::Memcached | Self::Redis(_), AnswerKind::Answer | AnswerKind::Repeated) => {
                output.extend_from_slice(answer);
            }
        }
    }

    /// Memory of what is kept between the client's requests.
    pub fn held_bytes(&self) -> usize {
        match self {
            Self::Redis(client) => client.held_bytes(),
            Self::Memcached | Self::Native(_) => 0,
        }
    }
}

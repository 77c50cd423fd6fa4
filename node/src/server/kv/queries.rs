//! What of clients of the native protocol the store is asked, in the words of memcached and Redis.
use crate::server::read_line::KEYS_OF_A_QUERY;
use crate::server::read_line::KEYS_OF_A_SEARCH;
use quorumwire_kv::memcached::{LINE_BYTES_MAX, READ_KEYS_MAX, ReadKind, are_few};
use quorumwire_kv::{Command, Query, QueryForm};

/// What such a query is, and how many keys it counts for; `None`: it is none that is served. Of memcached's
/// meta reads the state machine does not answer all without changing anything.
pub fn form_of_query(line: &[u8]) -> Option<(QueryForm, u32)> {
    let query = Query::from_line(line);
    let keys = match &query {
        Query::Redis(read) if read.is_search() => KEYS_OF_A_SEARCH,
        Query::Redis(_) | Query::NotOfRedis => KEYS_OF_A_QUERY,
        Query::Memcached(read) => match read.kind() {
            ReadKind::Items { .. } if line.len() <= LINE_BYTES_MAX => KEYS_OF_A_QUERY,
            ReadKind::Items { .. } | ReadKind::Meta(_) | ReadKind::Debug(_) => return None,
        },
        Query::Nothing => return None,
    };
    Some((query.form(), keys))
}

/// Whether a command reads more keys than a request of memcached's: each may be an item, and all are answered
/// at once. It is refused before it is in the log, where all replicas must take it alike, whatever their
/// limits.
pub fn asks_for_too_many(command: &[u8]) -> Option<String> {
    let reads_many = || match Command::decode(command) {
        Ok(Command::GetAndTouch { keys, .. }) => !are_few(keys),
        Ok(_) | Err(_) => false,
    };
    (command.len() > READ_KEYS_MAX && reads_many())
        .then(|| format!("a request asks for at most {READ_KEYS_MAX} keys"))
}

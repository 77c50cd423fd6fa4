//! What of clients of the native protocol the store is asked, in the words of memcached and Redis.
use super::redis;
use crate::server::native::KEYS_OF_A_QUERY;
use crate::server::requests::KEYS_OF_A_SEARCH;
use quorumwire_kv::Command;
use quorumwire_kv::memcached::{Asked, LINE_BYTES_MAX, READ_KEYS_MAX, Read, are_few};

/// How many keys such a query counts for; `None`: it is none that is served.
pub fn keys_of_query(query: &[u8]) -> Option<u32> {
    if redis::is_read(query) && redis::is_search(query) {
        return Some(KEYS_OF_A_SEARCH);
    }
    is_query(query).then_some(KEYS_OF_A_QUERY)
}

/// Whether the state machine answers this without changing anything; some of memcached's meta reads do.
fn is_query(query: &[u8]) -> bool {
    if redis::is_read(query) {
        return true;
    }
    if query.len() > LINE_BYTES_MAX {
        return false;
    }
    let read = Read::from_line(query);
    read.is_some_and(|read| matches!(read.asked(), Asked::Items { .. }))
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

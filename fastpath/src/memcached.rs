//! Memcached's `set` by UDP as safe Rust around `qw_memcached.h`. Nothing is decided here.
use crate::ffi;
use crate::shared::{MEMCACHED_ANSWER_BYTES, MemcachedSet as Set};
use crate::store::MEMCACHED_COMMAND_HEAD_BYTES;

/// What a plane makes of a memcached client's datagram.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MemcachedSet {
    /// The client's number for its request.
    pub request: u16,
    /// It wants no answer.
    pub noreply: bool,
}

/// Reads a datagram and puts the store's command into `command`, cleared before. `None`: it is not a plain
/// `set` without a lifetime whose command fits a packet.
#[must_use]
pub fn memcached_set(datagram: &[u8], command: &mut Vec<u8>) -> Option<MemcachedSet> {
    let mut set = Set::default();
    if ffi::memcached_read(datagram, &mut set) == 0 {
        return None;
    }
    let part = |at: u16, bytes: u16| datagram.get(usize::from(at)..)?.get(..usize::from(bytes));
    let key = part(set.key_at, set.key_bytes)?;
    let value = part(set.value_at, set.value_bytes)?;
    let mut head = [0; MEMCACHED_COMMAND_HEAD_BYTES];
    ffi::memcached_command_head(&set, &mut head);
    command.clear();
    for part in [&head, key, value] {
        command.extend_from_slice(part);
    }
    Some(MemcachedSet {
        request: set.request,
        noreply: set.noreply != 0,
    })
}

/// The datagram that says that a `set` is stored.
#[must_use]
pub fn memcached_stored(request: u16) -> [u8; MEMCACHED_ANSWER_BYTES] {
    let mut bytes = [0; MEMCACHED_ANSWER_BYTES];
    ffi::memcached_stored(request, &mut bytes);
    bytes
}

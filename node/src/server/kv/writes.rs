//! Writes of memcached and Redis clients, which go into the log as one kind of command.
use super::Core;
use crate::server::admission::Admission;
use crate::server::clients::Connection;
use crate::server::take_on;
use quorumwire_kv::Command;

/// Puts a write into the log, or sends it to the leader. False: it must be offered again.
pub fn take_write(
    admission: &mut Admission,
    core: &mut Core,
    connection: &mut Connection,
    command: &Command<'_>,
    noreply: bool,
) -> bool {
    let work = core.group.store.inner().expected_work(command);
    let taken = take_on::take_write(
        admission,
        core,
        connection,
        (work, noreply),
        |core, origin| core.write_or_limit(origin, command),
    );
    if taken {
        core.service.counters.count_command(command);
    }
    taken
}

//! Requests of clients are taken on: each gets its place in the row of its connection, and goes into the log,
//! or to the leader, or waits to be answered here. Knows no protocol.
use super::admission::Admission;
use super::clients::{AnswerKind, Connection, ReadState};
use super::core::Core;
use super::origin::Origin;
use super::read_line::{KEYS_OF_A_SEARCH, ReadLine};
use super::route_outcome::RouteOutcome;
use super::service::Service;
use quorumwire_group::BeginRead;

/// Keys of reads that may wait on a connection when a write behind them is put into the log: they will
/// have to be answered in one go, with or without room, before that write is applied.
const KEYS_BEFORE_WRITE_MAX: usize = 16;

/// Reads of one connection that may be on their way to the leader.
const FORWARDED_READS_MAX: usize = 16;
const _: () = assert!(KEYS_OF_A_SEARCH as usize > KEYS_BEFORE_WRITE_MAX);
/// What taking a request on is in work, beside its bytes.
const REQUEST_WORK: usize = 256;

/// A request of so many bytes was taken on.
pub fn count_request<S: Service>(core: &Core<S>, bytes: usize) {
    core.add_work(REQUEST_WORK + bytes);
}

/// Most bytes that a client may have on their way here before it has said who it is.
pub const UNKNOWN_CLIENT_BYTES_MAX: usize = 4 << 10;

/// Takes on a write that is likely to cost so much; `quiet`: its client wants no answer. `route` puts it into
/// the log, or sends it to the leader. False: it must be offered again.
pub fn take_write<S: Service>(
    admission: &mut Admission,
    core: &mut Core<S>,
    connection: &mut Connection,
    (work, quiet): (usize, bool),
    route: impl FnOnce(&mut Core<S>, Origin) -> RouteOutcome,
) -> bool {
    if !has_room_for_write(core, connection, work) {
        return false;
    }
    let origin = Origin::Client(connection.id, connection.next_slot());
    let routed = if admission.in_flight.admits(connection.id, work) {
        route(core, origin)
    } else {
        RouteOutcome::Stalled
    };
    match refused_if_late(core, connection, routed) {
        RouteOutcome::Pending => {
            let slot = connection.next_slot();
            admission.in_flight.begin(connection.id, slot, work);
            connection.push_write(quiet, work);
        }
        RouteOutcome::Stalled => return false,
        RouteOutcome::Refused(reason, instead) => {
            connection.push_refused_write(quiet, reason, &instead);
        }
    }
    true
}

/// Whether a write that is likely to cost so much may be put behind what waits. If not, it is offered again
/// once some of that is answered.
fn has_room_for_write<S: Service>(core: &Core<S>, connection: &Connection, work: usize) -> bool {
    let keys_max = if core.group.takes_write_behind_reads() {
        KEYS_BEFORE_WRITE_MAX
    } else {
        0
    };
    connection.keys_waiting <= keys_max && connection.has_room_for_work(work)
}

/// Takes a read on that asks for so many items. False: it must be offered again.
pub fn take_read<S: Service>(
    core: &mut Core<S>,
    connection: &mut Connection,
    read: ReadLine<'_>,
    keys: u32,
) -> bool {
    if !connection.has_room_for_line() {
        return false; // offered again once some are answered
    }
    // A read of the other protocols shows the connection's writes before it. The native protocol promises no
    // such order: its requests have numbers, and who wants a query to show a command waits for the answer, as
    // it must where the two go over different connections.
    let behind_writes = connection.slots.writes() > 0 && connection.front.keeps_order();
    let begin = core.group.begin_read(behind_writes);
    if let BeginRead::Here(state) = begin {
        connection.must_refuse = false;
        connection.push_read_line(read, keys, state);
        return true;
    }
    if connection.slots.reads() >= FORWARDED_READS_MAX {
        return false; // each may be answered by as much as a message holds
    }
    if connection.keys_waiting >= KEYS_OF_A_SEARCH as usize {
        return false; // it keeps the leader busy; other connections here go on meanwhile
    }
    let work = S::work_of_read(core, read);
    if !connection.has_room_for_work(work) {
        return false; // so long may their answers be, nearly
    }
    if begin == BeginRead::Later {
        return false; // offered again once they are answered
    }
    let slot_number = connection.next_slot();
    let routed = match core.forward_read(Origin::Client(connection.id, slot_number), read.line) {
        Ok(request) => {
            connection.must_refuse = false;
            connection.push_forwarded_read(read, keys, request, work);
            return true;
        }
        Err(routed) => refused_if_late(core, connection, routed),
    };
    let RouteOutcome::Refused(reason, instead) = routed else {
        return false;
    };
    connection.push_read_line(read, keys, ReadState::ANEW);
    connection.keep_answer(slot_number, AnswerKind::Refused(reason), instead.as_bytes());
    true
}

/// What becomes of a request: one that can go nowhere is refused if the connection has waited for long
/// enough.
fn refused_if_late<S: Service>(
    core: &Core<S>,
    connection: &mut Connection,
    routed: RouteOutcome,
) -> RouteOutcome {
    match routed {
        RouteOutcome::Pending => connection.must_refuse = false,
        RouteOutcome::Stalled if connection.must_refuse => {
            return RouteOutcome::refused(core.why_stalled());
        }
        RouteOutcome::Stalled | RouteOutcome::Refused(..) => {}
    }
    routed
}

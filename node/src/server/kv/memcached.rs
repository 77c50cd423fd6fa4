//! Clients of memcached's text protocol over TCP: their bytes into requests, and requests about the server.
use super::Core;
use super::server_questions::{self, ServerQuestion};
use super::writes::take_write;
use crate::server::admission::Admission;
use crate::server::clients::{Connection, SlotKind, Statistics};
use crate::server::read_line::ReadLine;
use crate::server::take_on::{self, UNKNOWN_CLIENT_BYTES_MAX, count_request};
use crate::server::take_outcome::TakeOutcome;
use quorumwire_kv::memcached::{Local, Parsed, Read, Request, parse, parse_on, reply};
use quorumwire_kv::{Command, WhyRefused};

/// The first request of a memcached client that must say who it is: a `set` of any key to name and password.
fn let_in(
    admission: &mut Admission,
    core: &mut Core,
    connection: &mut Connection,
    bytes: &[u8],
) -> TakeOutcome {
    let (consumed, reply, is_over) = match parse(bytes) {
        Parsed::Incomplete { needed: long, .. } | Parsed::Request { consumed: long, .. }
            if long > UNKNOWN_CLIENT_BYTES_MAX =>
        {
            (bytes.len(), reply::NOT_LET_IN, true)
        }
        Parsed::Incomplete { needed, .. } => return TakeOutcome::Waits { used: 0, needed },
        Parsed::Request { consumed, request } => match request {
            Request::Write {
                command: Command::Set(item),
                ..
            } => {
                let mut words = item.value.splitn(2, |byte| *byte == b' ');
                let (name, password) = (words.next(), words.next());
                connection.is_let_in =
                    admission.is_account(name.unwrap_or_default(), password.unwrap_or_default());
                let told = [reply::WRONG_ACCOUNT, reply::STORED];
                (consumed, told[usize::from(connection.is_let_in)], false)
            }
            Request::Local(Local::Quit) => (consumed, &b""[..], true),
            Request::Write { .. } | Request::Read(_) | Request::Local(_) => {
                (consumed, reply::NOT_LET_IN, false)
            }
        },
        Parsed::Refused {
            consumed,
            reply,
            why: why @ WhyRefused::Tls,
            ..
        } => {
            core.service.counters.refused.count(why);
            (consumed, reply, true)
        }
        Parsed::Refused {
            consumed,
            swallow,
            close,
            ..
        } => (consumed, reply::NOT_LET_IN, close || swallow > 0),
    };
    if reply == reply::NOT_LET_IN {
        core.service
            .counters
            .refused
            .count(WhyRefused::Unauthenticated);
    }
    connection.push(SlotKind::Text(reply), None);
    if is_over {
        connection.hang_up(!reply.is_empty());
    }
    TakeOutcome::Bytes(consumed)
}

/// How many of these bytes belong to a request that was refused.
fn swallow(connection: &mut Connection, bytes: &[u8]) -> usize {
    let swallowed = connection.swallow.min(bytes.len());
    connection.swallow -= swallowed;
    swallowed
}

/// Takes the first request off `bytes`.
pub fn take_first(
    admission: &mut Admission,
    core: &mut Core,
    connection: &mut Connection,
    bytes: &[u8],
) -> TakeOutcome {
    if connection.swallow > 0 {
        let used = swallow(connection, bytes);
        return match connection.swallow {
            0 => TakeOutcome::Bytes(used),
            _ => TakeOutcome::Waits { used, needed: 1 },
        };
    }
    if !connection.is_let_in {
        return let_in(admission, core, connection, bytes);
    }
    match parse_on(bytes, std::mem::take(&mut connection.searched)) {
        Parsed::Incomplete { needed, searched } => {
            connection.searched = searched;
            TakeOutcome::Waits { used: 0, needed }
        }
        Parsed::Request { consumed, request } => {
            if !take_request(admission, core, connection, request) {
                return TakeOutcome::Stalled;
            }
            count_request(core, consumed);
            TakeOutcome::Bytes(consumed)
        }
        Parsed::Refused {
            consumed,
            swallow: behind,
            reply,
            why,
            close,
        } => {
            core.service.counters.refused.count(why);
            core.service.counters.too_large_values += u64::from(reply == reply::TOO_LARGE);
            count_request(core, consumed);
            connection.push(SlotKind::Text(reply), None);
            if close {
                connection.hang_up(!reply.is_empty());
            }
            connection.swallow = behind;
            TakeOutcome::Bytes(consumed + swallow(connection, &bytes[consumed..]))
        }
    }
}

/// Takes one request on. False: it can go nowhere now and must be offered again.
fn take_request(
    admission: &mut Admission,
    core: &mut Core,
    connection: &mut Connection,
    request: Request<'_>,
) -> bool {
    connection.last_request = core.group.now;
    match request {
        Request::Write { command, noreply } => {
            take_write(admission, core, connection, &command, noreply)
        }
        Request::Read(read) => take_read(core, connection, &read),
        Request::Local(local) => take_local(core, connection, local),
    }
}

fn take_read(core: &mut Core, connection: &mut Connection, read: &Read<'_>) -> bool {
    let keys = u32::try_from(read.key_count()).expect("a read has a limit of keys");
    let (line, form) = (read.line(), read.form().into());
    take_on::take_read(core, connection, ReadLine { line, form }, keys)
}

/// Takes a request about the server on. False: it must be offered again.
fn take_local(core: &mut Core, connection: &mut Connection, local: Local<'_>) -> bool {
    let kind = match local_answer(local) {
        LocalAnswer::Nothing => return true,
        LocalAnswer::Connections => {
            return server_questions::push(core, connection, ServerQuestion::Connections);
        }
        LocalAnswer::Text(text) => SlotKind::Text(text),
        LocalAnswer::Stats(asked) => SlotKind::Stats(asked),
        LocalAnswer::Quit => {
            connection.closing = true;
            SlotKind::Quit
        }
    };
    connection.push(kind, None);
    true
}

/// What a request about the server is answered with.
pub enum LocalAnswer {
    /// The client wants none.
    Nothing,
    /// This text.
    Text(&'static [u8]),
    /// Statistics.
    Stats(Statistics),
    /// What all connections are.
    Connections,
    /// The client goes.
    Quit,
}

/// The answer to a request about the server.
pub fn local_answer(local: Local<'_>) -> LocalAnswer {
    LocalAnswer::Text(match local {
        Local::Version => concat!(
            "VERSION 1.6.18-quorumwire-",
            env!("CARGO_PKG_VERSION"),
            "\r\n"
        )
        .as_bytes(), // as `stats::VERSION`
        Local::Tuning { noreply: true } => return LocalAnswer::Nothing,
        Local::Tuning { noreply: false } => reply::OK,
        Local::Stats { argument } => {
            return LocalAnswer::Stats(match argument {
                None => Statistics::General,
                Some(b"settings") => Statistics::Settings,
                Some(b"slabs") => Statistics::Slabs,
                Some(b"sizes") => Statistics::Sizes,
                Some(b"conns") => return LocalAnswer::Connections,
                Some(b"reset") => Statistics::Reset,
                // There are no classes of items.
                Some(b"items" | b"cachedump") => return LocalAnswer::Text(reply::END),
                Some(_) => return LocalAnswer::Text(reply::ERROR),
            });
        }
        Local::MetaNoop => reply::META_NOOP,
        Local::Quit => return LocalAnswer::Quit,
    })
}

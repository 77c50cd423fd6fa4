//! `MULTI`, `EXEC`, `DISCARD`, `WATCH`, `UNWATCH`: commands are kept here until `EXEC`, which puts them into
//! the log as one entry. A watched key is remembered with its version, which the entry carries; whoever
//! applies it compares.
use super::super::Core;
use super::{answer, errors, read_line, state, take_script};
use crate::server::admission::Admission;
use crate::server::clients::Connection;
use crate::server::fronts::redis::Transaction;
use crate::server::read_line::ReadLine;
use crate::server::take_on;
use quorumwire_kv::redis::{Kind, Resp, Script, TRANSACTION_COMMANDS_MAX, VERSIONS, Words, reply};
use quorumwire_kv::{COMMAND_BYTES_MAX, KEY_BYTES_MAX, Query, WhyRefused};

/// Keys that one connection may watch.
const WATCHED_MAX: usize = 1024;

/// Commands that are not kept for `EXEC`.
pub fn is_immediate(words: &Words<'_>) -> bool {
    const NAMES: [&[u8]; 6] = [b"exec", b"discard", b"multi", b"watch", b"reset", b"quit"];
    let name = words.get(0).unwrap_or_default();
    NAMES.iter().any(|one| name.eq_ignore_ascii_case(one))
}

/// Commands about the connection that the state machine answers where they stand in a transaction.
fn may_be_kept(words: &Words<'_>) -> bool {
    const NAMES: [&[u8]; 7] = [
        b"ping", b"echo", b"select", b"swapdb", b"time", b"unwatch", b"command",
    ];
    let name = words.get(0).unwrap_or_default();
    NAMES.iter().any(|one| name.eq_ignore_ascii_case(one))
}

/// Keeps a command for `EXEC`.
pub fn queue(core: &mut Core, connection: &mut Connection, kind: Kind, words: &Words<'_>) {
    let Some(transaction) = &mut state(connection).transaction else {
        return;
    };
    let text = words.text();
    let refusal = match kind {
        Kind::Connection if !may_be_kept(words) => {
            Some(b"-ERR Command not allowed inside a transaction\r\n".to_vec())
        }
        Kind::Write | Kind::Read | Kind::Connection
            if transaction.count >= TRANSACTION_COMMANDS_MAX =>
        {
            core.service.counters.refused.count(WhyRefused::TooLong);
            Some(errors::too_many_commands())
        }
        Kind::Write | Kind::Read | Kind::Connection
            if transaction.commands.len() + text.len() > COMMAND_BYTES_MAX =>
        {
            core.service.counters.refused.count(WhyRefused::TooLong);
            Some(errors::too_long(false))
        }
        Kind::Write | Kind::Read | Kind::Connection => None,
    };
    if let Some(text) = refusal {
        transaction.fail();
        return answer(connection, text);
    }
    if !transaction.has_failed {
        transaction.commands.extend_from_slice(text);
    }
    transaction.count += 1;
    answer(connection, b"+QUEUED\r\n".to_vec());
}

/// `MULTI`
pub fn multi(connection: &mut Connection) {
    let client = state(connection);
    if client.transaction.is_some() {
        return answer(
            connection,
            b"-ERR MULTI calls can not be nested\r\n".to_vec(),
        );
    }
    client.transaction = Some(Transaction::default());
    answer(connection, b"+OK\r\n".to_vec());
}

/// `DISCARD`. False: it must be offered again.
pub fn discard(connection: &mut Connection) -> bool {
    let client = state(connection);
    if client.watched.is_asked() {
        return false; // what is still to come would be watched
    }
    let text: &[u8] = match client.transaction.take() {
        Some(_) => b"+OK\r\n",
        None => b"-ERR DISCARD without MULTI\r\n",
    };
    forget(connection);
    answer(connection, text.to_vec());
    true
}

/// `UNWATCH`. False: it must be offered again.
pub fn unwatch(connection: &mut Connection) -> bool {
    if state(connection).watched.is_asked() {
        return false;
    }
    forget(connection);
    answer(connection, b"+OK\r\n".to_vec());
    true
}

fn forget(connection: &mut Connection) {
    let watched = &mut state(connection).watched;
    watched.keys = Vec::new();
    watched.count = 0;
}

/// `EXEC`. False: it must be offered again.
pub fn exec(admission: &mut Admission, core: &mut Core, connection: &mut Connection) -> bool {
    if state(connection).watched.is_asked() {
        return false; // the versions come first
    }
    let client = state(connection);
    let Some(transaction) = client.transaction.take() else {
        answer(connection, b"-ERR EXEC without MULTI\r\n".to_vec());
        return true;
    };
    if transaction.has_failed {
        forget(connection);
        let text = b"-EXECABORT Transaction discarded because of previous errors.\r\n";
        answer(connection, text.to_vec());
        return true;
    }
    if transaction.count == 0 && client.watched.count == 0 {
        answer(connection, b"*0\r\n".to_vec());
        return true;
    }
    let watched = std::mem::take(&mut client.watched);
    let script = Script {
        resp: client.resp,
        is_transaction: true,
        watched: &watched.keys,
        commands: &transaction.commands,
    };
    if take_script(admission, core, connection, script) {
        core.service.counters.redis_transactions += 1;
        return true;
    }
    let client = state(connection);
    client.transaction = Some(transaction);
    client.watched = watched;
    false
}

/// `WATCH key...`. False: it must be offered again.
pub fn watch(core: &mut Core, connection: &mut Connection, words: &Words<'_>) -> bool {
    let client = state(connection);
    if client.transaction.is_some() {
        let text = b"-ERR WATCH inside MULTI is not allowed\r\n";
        answer(connection, text.to_vec());
        return true;
    }
    if client.watched.count + client.watched.asked_count + words.len() - 1 > WATCHED_MAX {
        core.service.counters.refused.count(WhyRefused::TooLong);
        let text = format!("-ERR more than {WATCHED_MAX} watched keys\r\n");
        answer(connection, text.into_bytes());
        return true;
    }
    if words.iter().skip(1).any(|key| key.len() > KEY_BYTES_MAX) {
        core.service.counters.refused.count(WhyRefused::TooLong);
        let text = format!("-ERR key is longer than {KEY_BYTES_MAX} bytes\r\n");
        answer(connection, text.into_bytes());
        return true;
    }
    let mut question = Vec::new();
    reply::array_header(&mut question, words.len());
    reply::bulk(&mut question, VERSIONS);
    for key in words.iter().skip(1) {
        reply::bulk(&mut question, key);
    }
    let line = &read_line(Resp::V2, &question);
    let form = Query::from_line(line).form();
    let keys = u32::try_from(words.len() - 1).unwrap_or(u32::MAX);
    if !take_on::take_read(core, connection, ReadLine { line, form }, keys) {
        return false;
    }
    let watched = &mut state(connection).watched;
    watched.asked += 1;
    watched.asked_count += words.len() - 1;
    true
}

/// Takes the answer to a read that `WATCH` made of itself: what the client is told instead.
pub fn take_versions(
    connection: &mut Connection,
    asked: &Words<'_>,
    answer: &[u8],
) -> Option<Vec<u8>> {
    let watched = &mut state(connection).watched;
    watched.asked = watched.asked.saturating_sub(1);
    watched.asked_count = watched.asked_count.saturating_sub(asked.len() - 1);
    let Some(versions) = Words::from_text(answer).filter(|it| it.len() + 1 == asked.len()) else {
        return Some(answer.to_vec()); // an error: nothing is watched
    };
    for (key, version) in asked.iter().skip(1).zip(versions.iter()) {
        let version = std::str::from_utf8(version).ok()?.parse::<u64>().ok()?;
        watched.keys.push(u8::try_from(key.len()).ok()?);
        watched.keys.extend_from_slice(key);
        watched.keys.extend_from_slice(&version.to_be_bytes());
        watched.count += 1;
    }
    Some(b"+OK\r\n".to_vec())
}

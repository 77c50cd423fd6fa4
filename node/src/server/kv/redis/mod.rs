//! Redis clients: what they say, in the order in which they say it. What commands do to items is the state
//! machine's business; here is what belongs to a connection (its protocol, its transaction, its name) and
//! what belongs to the server.
mod about;
mod about_clients;
mod client;
mod connection;
mod errors;
mod help;
mod memory;
mod transactions;

use super::Core;
use super::writes::take_write;
use crate::server::admission::Admission;
use crate::server::clients::{AnswerKind, Connection, ReadState, SlotKind};
use crate::server::fronts::redis::RedisClient;
use crate::server::origin::Origin;
use crate::server::read_line::KEYS_OF_A_SEARCH;
use crate::server::read_line::ReadProgress;
use crate::server::read_line::{AnswerTime, ReadLine};
use crate::server::take_on::{self, UNKNOWN_CLIENT_BYTES_MAX};
use crate::server::take_outcome::TakeOutcome;
use quorumwire_kv::redis::{
    Broken, Kind, Parsed, ReadForm, ReadKind, Resp, Script, Skip, Skipped, Spec, Words, find,
    parse, why_refused,
};
use quorumwire_kv::{COMMAND_BYTES_MAX, Command, Query, QueryForm, WhyRefused};

/// A read's answer may be as long as several items; so many keys it stands for at least.
const KEYS_OF_A_READ_MIN: usize = 4;
/// What it is in work to make a byte of what is said about the server or the connection.
const WORK_PER_BYTE_MADE: usize = 16;
/// Longest name that a client gives itself or its library, in bytes.
const NAME_BYTES_MAX: usize = 256;
/// Most words of a command that is carried out here: it may look at each for each of them, or for each
/// connection.
const CONNECTION_WORDS_MAX: usize = 128;

/// Takes the first request off `bytes`.
pub fn take_first(
    admission: &mut Admission,
    core: &mut Core,
    connection: &mut Connection,
    bytes: &[u8],
) -> TakeOutcome {
    if let Some(skip) = &mut state(connection).skip {
        let taken = match skip.take(bytes) {
            Skipped::Some { consumed, needed } => {
                return TakeOutcome::Waits {
                    used: consumed,
                    needed,
                };
            }
            Skipped::All { consumed } => consumed,
            Skipped::Broken(broken) => {
                refuse(core, connection, broken);
                bytes.len()
            }
        };
        state(connection).skip = None;
        return TakeOutcome::Bytes(taken);
    }
    match parse(bytes) {
        Parsed::Incomplete { needed: long } | Parsed::Request { consumed: long, .. }
            if !connection.is_let_in && long > UNKNOWN_CLIENT_BYTES_MAX =>
        {
            refuse(core, connection, errors::unknown_client_too_long());
            TakeOutcome::Bytes(bytes.len())
        }
        Parsed::TooLong { .. } if !connection.is_let_in => {
            refuse(core, connection, errors::unknown_client_too_long());
            TakeOutcome::Bytes(bytes.len())
        }
        Parsed::Incomplete { needed } => TakeOutcome::Waits { used: 0, needed },
        Parsed::Nothing { consumed } => TakeOutcome::Bytes(consumed),
        Parsed::Request { consumed, words } => {
            if !take_request(admission, core, connection, &words) {
                return TakeOutcome::Stalled;
            }
            let made_bytes = std::mem::take(&mut state(connection).made_bytes);
            take_on::count_request(core, consumed + made_bytes * WORK_PER_BYTE_MADE);
            TakeOutcome::Bytes(consumed)
        }
        Parsed::TooLong {
            consumed,
            skip,
            reply,
        } => {
            pass_over(core, connection, skip, reply);
            TakeOutcome::Bytes(consumed)
        }
        Parsed::Refused(broken) => {
            refuse(core, connection, broken);
            TakeOutcome::Bytes(bytes.len())
        }
    }
}

/// Answers a request that is longer than it may be; what is still to come of it is thrown away.
fn pass_over(core: &mut Core, connection: &mut Connection, skip: Skip, text: Vec<u8>) {
    core.service.counters.refused.count(WhyRefused::TooLong);
    let client = state(connection);
    client.begin_request();
    client.skip = Some(skip);
    if let Some(transaction) = &mut client.transaction {
        transaction.fail();
    }
    answer(connection, text);
}

/// What follows cannot be understood: says why, and closes.
fn refuse(core: &mut Core, connection: &mut Connection, broken: Broken) {
    core.service.counters.refused.count(broken.why);
    let client = state(connection);
    client.is_quiet = client.replies_off;
    let is_told = !broken.reply.is_empty();
    answer(connection, broken.reply.into_owned());
    connection.hang_up(is_told);
}

/// The client's state: a connection that came here has one.
fn state(connection: &mut Connection) -> &mut RedisClient {
    connection
        .redis_mut()
        .expect("requests of Redis clients only come here")
}

/// Answers on the spot, in the order of requests.
fn answer(connection: &mut Connection, text: Vec<u8>) {
    state(connection).made_bytes += text.len();
    connection.push(SlotKind::Question, Some(text.into()));
}

/// Takes one request on. False: it can go nowhere now and must be offered again.
fn take_request(
    admission: &mut Admission,
    core: &mut Core,
    connection: &mut Connection,
    words: &Words<'_>,
) -> bool {
    let is_skipped = state(connection).begin_request();
    let taken = dispatch(admission, core, connection, words);
    let client = state(connection);
    if taken {
        client.last_at = core.group.now;
    } else {
        client.skips_next = is_skipped;
    }
    taken
}

fn dispatch(
    admission: &mut Admission,
    core: &mut Core,
    connection: &mut Connection,
    words: &Words<'_>,
) -> bool {
    let found = find(words);
    state(connection).last_command = found.as_ref().ok().map(|spec| spec.name);
    let spec = match found {
        Ok(spec) => spec,
        Err(text) => {
            core.service.counters.refused.count(why_refused(words));
            if let Some(transaction) = &mut state(connection).transaction {
                transaction.fail();
            }
            answer(connection, text);
            return true;
        }
    };
    let kind = spec.kind;
    if !connection.is_let_in && !connection::is_for_unknown(words) {
        core.service
            .counters
            .refused
            .count(WhyRefused::Unauthenticated);
        answer(connection, errors::NOT_LET_IN.to_vec());
        return true;
    }
    if kind == Kind::Connection && words.len() > CONNECTION_WORDS_MAX && !has_own_limit(words) {
        core.service.counters.refused.count(WhyRefused::TooLong);
        if let Some(transaction) = &mut state(connection).transaction {
            transaction.fail();
        }
        answer(connection, errors::too_many_words(CONNECTION_WORDS_MAX));
        return true;
    }
    if state(connection).transaction.is_some() && !transactions::is_immediate(words) {
        transactions::queue(core, connection, kind, words);
        return true;
    }
    match kind {
        Kind::Write => take_single(admission, core, connection, words),
        Kind::Read => take_read(core, connection, spec, words),
        Kind::Connection => connection::take(admission, core, connection, words),
    }
}

/// `WATCH` may have as many keys as are watched at most, `COMMAND` as many words as its answer has room for;
/// neither looks at one more than a few times.
fn has_own_limit(words: &Words<'_>) -> bool {
    let name = words.get(0).unwrap_or_default();
    name.eq_ignore_ascii_case(b"watch") || name.eq_ignore_ascii_case(b"command")
}

fn take_single(
    admission: &mut Admission,
    core: &mut Core,
    connection: &mut Connection,
    words: &Words<'_>,
) -> bool {
    let script = Script {
        resp: state(connection).resp,
        is_transaction: false,
        watched: &[],
        commands: words.text(),
    };
    let taken = take_script(admission, core, connection, script);
    core.service.counters.redis_writes += u64::from(taken);
    taken
}

/// Puts writes into the log.
fn take_script(
    admission: &mut Admission,
    core: &mut Core,
    connection: &mut Connection,
    script: Script<'_>,
) -> bool {
    if connection.is_asking {
        return false; // what was asked before it must not be told of it
    }
    let is_one = !script.is_transaction;
    let command = Command::Redis(script);
    if command.encoded_bytes() > COMMAND_BYTES_MAX {
        core.service.counters.refused.count(WhyRefused::TooLong);
        answer(connection, errors::too_long(is_one));
        return true;
    }
    let quiet = state(connection).is_quiet;
    take_write(admission, core, connection, &command, quiet)
}

/// What a read is kept and passed on as.
fn read_line(resp: Resp, words: &[u8]) -> Vec<u8> {
    [&[resp.byte()], words].concat()
}

/// Writes the answer of the first read, if there is room for one.
pub fn answer_read(
    core: &mut Core,
    connection: &mut Connection,
    progress: ReadProgress,
    room: usize,
) -> bool {
    if room == 0 {
        connection.cut = true;
        return false;
    }
    let quiet = connection.slots.first().is_some_and(|slot| slot.quiet);
    let is_plain = !quiet && !state(connection).watched.is_asked();
    let origin = Origin::Client(connection.id, connection.slots.first_number());
    let (line, output) = connection.first_line_and_output(progress.line_bytes);
    let query = Query::of(progress.form, line);
    let mut text = Vec::new();
    let out = if is_plain { output } else { &mut text };
    if core.answer_query(origin, &query, out) == AnswerTime::Later {
        connection.slots.set_first_state(ReadState::UnderWay);
        return false;
    }
    if is_plain {
        return true;
    }
    let read = (progress.line_bytes, progress.form);
    put_read_answer(connection, read, (AnswerKind::Answer, quiet), &text);
    true
}

/// Writes an answer to the first read.
pub fn put_read_answer(
    connection: &mut Connection,
    (line_bytes, form): (u32, QueryForm),
    (said, quiet): (AnswerKind, bool),
    answer: &[u8],
) {
    let mut instead = None;
    if state(connection).watched.is_asked() {
        let (line, _) = connection.first_line_and_output(line_bytes);
        let line = line.to_vec();
        if let Query::Redis(read) = Query::of(form, &line)
            && read.kind() == ReadKind::Versions
        {
            match said {
                AnswerKind::Answer | AnswerKind::Repeated => {
                    instead = transactions::take_versions(connection, read.words(), answer);
                }
                AnswerKind::Refused(_) => {
                    transactions::take_versions(connection, read.words(), b""); // nothing is watched
                }
            }
        }
    }
    if !quiet {
        let text = instead.as_deref().unwrap_or(answer);
        connection.put_answer(said, text);
    }
}

/// Takes a read on.
fn take_read(
    core: &mut Core,
    connection: &mut Connection,
    spec: &'static Spec,
    words: &Words<'_>,
) -> bool {
    let resp = state(connection).resp;
    let line = &read_line(resp, words.text());
    let form = ReadForm::new(resp, Some(spec), words).into();
    let keys = if spec.keys.is_empty() {
        KEYS_OF_A_SEARCH
    } else {
        u32::try_from((words.len() - 1).max(KEYS_OF_A_READ_MIN)).unwrap_or(u32::MAX)
    };
    let taken = take_on::take_read(core, connection, ReadLine { line, form }, keys);
    core.service.counters.redis_reads += u64::from(taken);
    taken
}

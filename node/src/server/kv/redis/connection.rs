//! Commands about a connection and the server: its protocol, who its client is, its end, and what there is to
//! know.
use super::super::Core;
use super::super::server_questions::{ServerQuestion, push};
use super::super::writes::take_write;
use super::client::{self, is_name};
use super::{about_clients, answer, errors, help, memory, state, transactions};
use crate::accounts::DEFAULT_NAME;
use crate::server::admission::Admission;
use crate::server::clients::{Connection, SlotKind};
use crate::server::clock;
use quorumwire_interfaces::Index;
use quorumwire_kv::redis::{Resp, Words, integer, reply};
use quorumwire_kv::{Command, WhyRefused};

/// Carries one out. False: it must be offered again.
pub fn take(
    admission: &mut Admission,
    core: &mut Core,
    connection: &mut Connection,
    words: &Words<'_>,
) -> bool {
    let resp = state(connection).resp;
    let name = words.get(0).unwrap_or_default().to_ascii_lowercase();
    let mut out = Vec::new();
    match name.as_slice() {
        b"multi" => transactions::multi(connection),
        b"exec" => return transactions::exec(admission, core, connection),
        b"discard" => return transactions::discard(connection),
        b"watch" => return transactions::watch(core, connection, words),
        b"unwatch" => return transactions::unwatch(connection),
        b"wait" => return about_clients::wait(core, connection, words),
        b"client" => return client::take(admission, core, connection, words),
        b"config" => return config(admission, core, connection, words),
        b"info" => {
            return look(
                core,
                connection,
                ServerQuestion::Info(resp, texts(words, 1)),
            );
        }
        b"quit" => {
            answer(connection, b"+OK\r\n".to_vec());
            connection.push(SlotKind::Quit, None);
            connection.closing = true;
        }
        b"reset" => {
            if state(connection).watched.is_asked() {
                return false; // whose answer would be taken for that of a `WATCH` behind this
            }
            state(connection).reset();
            let was_let_in = connection.is_let_in;
            connection.is_let_in = admission.accounts.is_none();
            if was_let_in {
                connection.unknown_since = core.group.now; // who was not yet wins no time by it
            }
            answer(connection, b"+RESET\r\n".to_vec());
        }
        b"hello" => hello(admission, core, connection, words),
        b"auth" => auth(admission, connection, words),
        // What needs no connection is the state machine's: transactions may hold it, too.
        b"command" | b"ping" | b"echo" | b"select" | b"swapdb" => {
            core.group.store.inner().redis_read(resp, words, &mut out);
            answer(connection, out);
        }
        _ => {
            let at = (admission.last_saved_s, core.group.applied);
            if let Err(why) = at_once(at, resp, words, &mut out) {
                core.service.counters.refused.count(why);
            }
            answer(connection, out);
        }
    }
    true
}

/// `CONFIG ...`. False: it must be offered again.
fn config(
    admission: &mut Admission,
    core: &mut Core,
    connection: &mut Connection,
    words: &Words<'_>,
) -> bool {
    let client = state(connection);
    let (resp, quiet) = (client.resp, client.is_quiet);
    let mut out = Vec::new();
    if words
        .get(1)
        .is_some_and(|it| it.eq_ignore_ascii_case(b"help"))
    {
        help::write("config", &mut out);
        answer(connection, out);
        return true;
    }
    match memory::change(words) {
        Some(Ok(_)) if connection.is_asking => false,
        Some(Ok(change)) => {
            take_write(admission, core, connection, &Command::Memory(change), quiet)
        }
        Some(Err(text)) => {
            reply::error(&mut out, &text);
            answer(connection, out);
            true
        }
        None => look(
            core,
            connection,
            ServerQuestion::Config(resp, texts(words, 1)),
        ),
    }
}

/// Asks for what the writes before it may change. False: it must be offered again, once they are answered.
fn look(core: &mut Core, connection: &mut Connection, ask: ServerQuestion) -> bool {
    connection.slots.writes() == 0 && push(core, connection, ask)
}

/// What needs little but the command: when a snapshot was taken, and what is applied. An error has its
/// answer, too, and is to be counted.
fn at_once(
    (last_saved_s, applied): (u64, Index),
    resp: Resp,
    words: &Words<'_>,
    out: &mut Vec<u8>,
) -> Result<(), WhyRefused> {
    let small = |place| words.get(place).map(<[u8]>::to_ascii_lowercase);
    let name = small(0).unwrap_or_default();
    let what = small(1).unwrap_or_default();
    match name.as_slice() {
        b"lastsave" => {
            reply::integer(out, i64::try_from(last_saved_s).unwrap_or(i64::MAX));
        }
        b"slowlog" => slow_log(&what, words, out),
        b"latency" => latency(&what, resp, words, out),
        b"memory" if what == b"help" => help::write("memory", out),
        b"time" => {
            let now = clock::wall_ms();
            reply::array_header(out, 2);
            reply::bulk(out, (now / 1000).to_string().as_bytes());
            reply::bulk(out, (now % 1000 * 1000).to_string().as_bytes());
        }
        b"role" => {
            reply::array_header(out, 3);
            reply::bulk(out, b"master");
            reply::integer(out, i64::try_from(applied.0).unwrap_or(i64::MAX));
            reply::array_header(out, 0);
        }
        b"readonly" | b"readwrite" => {
            reply::error(out, b"ERR This instance has cluster support disabled");
        }
        _ => {
            not_served(&name, &what, out);
            return Err(WhyRefused::NotServed);
        }
    }
    Ok(())
}

fn not_served(name: &[u8], what: &[u8], out: &mut Vec<u8>) {
    let what = &what[..what.len().min(WORD_SHOWN_MAX)];
    let name = [name, what].join(&b' ').to_ascii_uppercase();
    let name = String::from_utf8_lossy(&name);
    let text = format!(
        "ERR {} is not served: see `quorumwire status` and the metrics",
        name.trim()
    );
    reply::error(out, text.as_bytes());
}

/// As much of a foreign word as an error repeats.
const WORD_SHOWN_MAX: usize = 32;

/// No command is noted for having been slow: how long they take is in the metrics.
fn slow_log(what: &[u8], words: &Words<'_>, out: &mut Vec<u8>) {
    let least = |word| integer(word).is_some_and(|count| count >= -1);
    match (what, words.len()) {
        (b"get", 2 | 3) if words.get(2).is_none_or(least) => reply::array_header(out, 0),
        (b"get", 3) => reply::error(out, b"ERR count should be greater than or equal to -1"),
        (b"len", _) => reply::integer(out, 0),
        (b"reset", _) => reply::ok(out),
        (b"help", _) => help::write("slowlog", out),
        _ => reply::error(out, &errors::no_such_form(words)),
    }
}

/// No events are noted for having taken long: how long a write and a turn take is in the metrics.
fn latency(what: &[u8], resp: Resp, words: &Words<'_>, out: &mut Vec<u8>) {
    match what {
        b"latest" | b"history" => reply::array_header(out, 0),
        b"histogram" => reply::map_header(out, resp, 0),
        b"reset" => reply::integer(out, 0),
        b"graph" => {
            let event = words.get(2).unwrap_or_default();
            let before = "ERR No samples available for event '";
            reply::error(out, &errors::quoting(before, event, "'"));
        }
        b"doctor" => reply::verbatim(
            out,
            resp,
            b"No latencies are noted here. How long writes and the server's turns take is in its metrics: \
              quorumwire_commit_seconds and quorumwire_turn_seconds at /metrics.\n",
        ),
        b"help" => help::write("latency", out),
        _ => reply::error(out, &errors::no_such_form(words)),
    }
}

/// The words of a command from a place on, as text.
pub fn texts(words: &Words<'_>, from: usize) -> Vec<String> {
    let rest = words.iter().skip(from);
    rest.map(|word| String::from_utf8_lossy(word).into_owned())
        .collect()
}

/// Commands of clients that have not said who they are.
pub fn is_for_unknown(words: &Words<'_>) -> bool {
    const NAMES: [&[u8]; 4] = [b"auth", b"hello", b"quit", b"reset"];
    let name = words.get(0).unwrap_or_default();
    NAMES.iter().any(|one| name.eq_ignore_ascii_case(one))
}

/// Whether this is somebody; without accounts it is whoever gives no other name than that of everybody.
fn is_somebody(admission: &mut Admission, user: &[u8], password: &[u8]) -> bool {
    let everybody = admission.accounts.is_none() && user == DEFAULT_NAME;
    everybody || admission.is_account(user, password)
}

/// `AUTH [user] password`
fn auth(admission: &mut Admission, connection: &mut Connection, words: &Words<'_>) {
    let (user, password) = match (words.get(1), words.get(2)) {
        (Some(password), None) => (DEFAULT_NAME, password),
        (user, password) => (user.unwrap_or_default(), password.unwrap_or_default()),
    };
    let text: &[u8] = if words.len() > 3 {
        b"-ERR syntax error\r\n"
    } else if admission.accounts.is_none() && words.len() == 2 {
        errors::NO_ACCOUNTS
    } else if is_somebody(admission, user, password) {
        connection.is_let_in = true;
        state(connection).user = user.to_vec();
        b"+OK\r\n"
    } else {
        errors::WRONG_ACCOUNT
    };
    answer(connection, text.to_vec());
}

/// The version of the protocol that a word names, or the answer to another.
fn version(word: &[u8]) -> Result<Resp, &'static [u8]> {
    match integer(word) {
        Some(2) => Ok(Resp::V2),
        Some(3) => Ok(Resp::V3),
        Some(_) => Err(b"-NOPROTO unsupported protocol version\r\n"),
        None => Err(b"-ERR Protocol version is not an integer or out of range\r\n"),
    }
}

/// `HELLO [version [AUTH user password] [SETNAME name]]`
fn hello(
    admission: &mut Admission,
    core: &mut Core,
    connection: &mut Connection,
    words: &Words<'_>,
) {
    let client = state(connection);
    let resp = match words.get(1).map_or(Ok(client.resp), version) {
        Ok(resp) => resp,
        Err(text) => return answer(connection, text.to_vec()),
    };
    let mut name = None;
    let mut user = None;
    let options: Vec<&[u8]> = words.iter().skip(2).collect();
    let mut left = options.as_slice();
    while let [option, values @ ..] = left {
        match (option.to_ascii_lowercase().as_slice(), values) {
            (b"setname", [given, behind @ ..]) if is_name(given) => {
                name = Some(given.to_vec());
                left = behind;
            }
            (b"setname", [_, ..]) => return refuse(connection, client::BAD_NAME),
            (b"auth", [given, password, behind @ ..]) => {
                if !is_somebody(admission, given, password) {
                    return answer(connection, errors::WRONG_ACCOUNT.to_vec());
                }
                user = Some(given.to_vec());
                left = behind;
            }
            _ => {
                let text = errors::quoting("ERR Syntax error in HELLO option '", option, "'");
                return refuse(connection, &text);
            }
        }
    }
    if user.is_none() && !connection.is_let_in {
        core.service
            .counters
            .refused
            .count(WhyRefused::Unauthenticated);
        return answer(connection, errors::HELLO_NOT_LET_IN.to_vec());
    }
    connection.is_let_in = true;
    let client = state(connection);
    client.resp = resp;
    if let Some(name) = name {
        client.name = name;
    }
    if let Some(user) = user {
        client.user = user;
    }
    let mut out = Vec::new();
    write_hello(connection, resp, &mut out);
    answer(connection, out);
}

fn refuse(connection: &mut Connection, text: &[u8]) {
    let mut out = Vec::new();
    reply::error(&mut out, text);
    answer(connection, out);
}

fn write_hello(connection: &Connection, resp: Resp, out: &mut Vec<u8>) {
    reply::map_header(out, resp, 7);
    reply::bulk(out, b"server");
    reply::bulk(out, b"redis");
    reply::bulk(out, b"version");
    reply::bulk(out, super::about::REDIS_VERSION.as_bytes());
    reply::bulk(out, b"proto");
    reply::integer(out, i64::from(resp.byte() - b'0'));
    reply::bulk(out, b"id");
    reply::integer(out, connection.id.number());
    reply::bulk(out, b"mode");
    reply::bulk(out, b"standalone");
    reply::bulk(out, b"role");
    // Every replica takes writes, whoever leads.
    reply::bulk(out, b"master");
    reply::bulk(out, b"modules");
    reply::array_header(out, 0);
}

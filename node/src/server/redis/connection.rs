//! Commands about a connection: its protocol, its name, its end.
use super::super::asks::{Ask, push};
use super::super::clients::{Connection, SlotKind};
use super::super::core::Core;
use super::super::requests::{is_account, take_write};
use super::{NAME_BYTES_MAX, RedisClient, answer, asks, errors, memory, state, transactions};
use crate::accounts::DEFAULT_NAME;
use quorumwire_kv::redis::{Resp, Words, reply};
use quorumwire_kv::{Command, WhyRefused};

/// Carries one out. False: it must be offered again.
pub fn take(core: &mut Core, connection: &mut Connection, words: &Words<'_>) -> bool {
    let resp = state(connection).resp;
    let name = words.get(0).unwrap_or_default().to_ascii_lowercase();
    let mut out = Vec::new();
    match name.as_slice() {
        b"multi" => transactions::multi(connection),
        b"exec" => return transactions::exec(core, connection),
        b"discard" => transactions::discard(connection),
        b"watch" => return transactions::watch(core, connection, words),
        b"unwatch" => return transactions::unwatch(connection),
        b"wait" => return asks::wait(core, connection, words),
        b"client" => return client(core, connection, words),
        b"config" => return config(core, connection, words),
        b"info" => return push(core, connection, Ask::Info(resp, texts(words, 1))),
        b"quit" => {
            answer(connection, b"+OK\r\n".to_vec());
            connection.push(SlotKind::Quit, None);
            connection.closing = true;
        }
        b"reset" => {
            state(connection).reset();
            let was_let_in = connection.is_let_in;
            connection.is_let_in = core.accounts.is_none();
            if was_let_in {
                connection.unknown_since = core.now; // who was not yet wins no time by it
            }
            answer(connection, b"+RESET\r\n".to_vec());
        }
        b"hello" => hello(core, connection, words),
        b"auth" => auth(core, connection, words),
        // What needs no connection is the state machine's: transactions may hold it, too.
        b"command" | b"ping" | b"echo" | b"select" | b"swapdb" => {
            core.store.inner().redis_read(resp, words, &mut out);
            answer(connection, out);
        }
        _ => {
            at_once(core, words, &mut out);
            core.counters.refused.count_if_not_served(&out);
            answer(connection, out);
        }
    }
    true
}

/// `CONFIG ...`. False: it must be offered again.
fn config(core: &mut Core, connection: &mut Connection, words: &Words<'_>) -> bool {
    let client = state(connection);
    let (resp, quiet) = (client.resp, client.is_quiet);
    match memory::change(words) {
        Some(Ok(change)) => take_write(core, connection, &Command::Memory(change), quiet),
        Some(Err(text)) => {
            let mut out = Vec::new();
            reply::error(&mut out, text.as_bytes());
            answer(connection, out);
            true
        }
        None => push(core, connection, Ask::Config(resp, texts(words, 1))),
    }
}

/// What needs nothing but the command.
fn at_once(core: &Core, words: &Words<'_>, out: &mut Vec<u8>) {
    let small = |place| words.get(place).map(<[u8]>::to_ascii_lowercase);
    let name = small(0).unwrap_or_default();
    let what = small(1).unwrap_or_default();
    match name.as_slice() {
        b"lastsave" => {
            reply::integer(out, i64::try_from(core.last_saved_s).unwrap_or(i64::MAX));
        }
        b"slowlog" => slow_log(&what, words, out),
        b"latency" => latency(&what, words, out),
        b"time" => {
            let now = super::super::clock::wall_ms();
            reply::array_header(out, 2);
            reply::bulk(out, (now / 1000).to_string().as_bytes());
            reply::bulk(out, (now % 1000 * 1000).to_string().as_bytes());
        }
        b"role" => {
            reply::array_header(out, 3);
            reply::bulk(out, b"master");
            reply::integer(out, i64::try_from(core.applied.0).unwrap_or(i64::MAX));
            reply::array_header(out, 0);
        }
        b"readonly" | b"readwrite" => {
            reply::error(out, b"ERR This instance has cluster support disabled");
        }
        _ => not_served(&name, &what, out),
    }
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
    match (what, words.len()) {
        (b"get", 2 | 3) => reply::array_header(out, 0),
        (b"len", 2) => reply::integer(out, 0),
        (b"reset", 2) => reply::ok(out),
        _ => not_served(b"slowlog", what, out),
    }
}

/// No events are noted for having taken long: how long a write and a turn take is in the metrics.
fn latency(what: &[u8], words: &Words<'_>, out: &mut Vec<u8>) {
    match (what, words.len()) {
        (b"latest", 2) | (b"history", 3) => reply::array_header(out, 0),
        (b"reset", 2..) => reply::integer(out, 0),
        (b"doctor", 2) => reply::bulk(
            out,
            b"No latencies are noted here. How long writes and the server's turns take is in its metrics: \
              quorumwire_commit_seconds and quorumwire_turn_seconds at /metrics.\n",
        ),
        _ => not_served(b"latency", what, out),
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

/// `AUTH [user] password`
fn auth(core: &mut Core, connection: &mut Connection, words: &Words<'_>) {
    let (user, password) = match (words.get(1), words.get(2)) {
        (Some(password), None) => (DEFAULT_NAME, password),
        (user, password) => (user.unwrap_or_default(), password.unwrap_or_default()),
    };
    let text: &[u8] = if words.len() > 3 {
        b"-ERR syntax error\r\n"
    } else if core.accounts.is_none() && words.len() == 2 {
        errors::NO_ACCOUNTS
    } else if core.accounts.is_none() && user == DEFAULT_NAME {
        b"+OK\r\n"
    } else if is_account(core, user, password) {
        connection.is_let_in = true;
        b"+OK\r\n"
    } else {
        errors::WRONG_ACCOUNT
    };
    answer(connection, text.to_vec());
}

/// `HELLO [version [AUTH user password] [SETNAME name]]`
fn hello(core: &mut Core, connection: &mut Connection, words: &Words<'_>) {
    let client = state(connection);
    let resp = match words.get(1) {
        None => client.resp,
        Some(b"2") => Resp::V2,
        Some(b"3") => Resp::V3,
        Some(number) if number.iter().all(u8::is_ascii_digit) => {
            return answer(
                connection,
                b"-NOPROTO unsupported protocol version\r\n".to_vec(),
            );
        }
        Some(_) => {
            let text = b"-ERR Protocol version is not an integer or out of range\r\n";
            return answer(connection, text.to_vec());
        }
    };
    let mut name = None;
    let mut is_let_in = connection.is_let_in;
    let options: Vec<&[u8]> = words.iter().skip(2).collect();
    let mut left = options.as_slice();
    while let [option, values @ ..] = left {
        match (option.to_ascii_lowercase().as_slice(), values) {
            (b"setname", [given, behind @ ..]) if is_name(given) => {
                name = Some(given.to_vec());
                left = behind;
            }
            (b"setname", [_, ..]) => return answer(connection, BAD_NAME.to_vec()),
            (b"auth", [user, password, behind @ ..]) => {
                if core.accounts.is_some() && !is_account(core, user, password) {
                    return answer(connection, errors::WRONG_ACCOUNT.to_vec());
                }
                is_let_in = true;
                left = behind;
            }
            _ => {
                let option = String::from_utf8_lossy(option);
                let text = format!("-ERR Syntax error in HELLO option '{option}'\r\n");
                return answer(connection, text.into_bytes());
            }
        }
    }
    if !is_let_in {
        core.counters.refused.count(WhyRefused::Unauthenticated);
        return answer(connection, errors::HELLO_NOT_LET_IN.to_vec());
    }
    connection.is_let_in = true;
    let client = state(connection);
    client.resp = resp;
    if let Some(name) = name {
        client.name = name;
    }
    let mut out = Vec::new();
    write_hello(connection, resp, &mut out);
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

const BAD_NAME: &[u8] =
    b"-ERR Client names cannot contain spaces, newlines or special characters.\r\n";

fn is_name(name: &[u8]) -> bool {
    name.len() <= NAME_BYTES_MAX && name.iter().all(u8::is_ascii_graphic)
}

/// `CLIENT ...`. False: it must be offered again.
fn client(core: &mut Core, connection: &mut Connection, words: &Words<'_>) -> bool {
    let number = connection.id.number();
    let client = state(connection);
    let resp = client.resp;
    let what = words.get(1).unwrap_or_default().to_ascii_lowercase();
    let mut out = Vec::new();
    match (what.as_slice(), words.len()) {
        (b"id", 2) => reply::integer(&mut out, number),
        (b"getname", 2) if client.name.is_empty() => reply::null(&mut out, resp),
        (b"getname", 2) => reply::bulk(&mut out, &client.name),
        (b"setname", 3) => match words.get(2).filter(|name| is_name(name)) {
            Some(name) => {
                client.name = name.to_vec();
                reply::ok(&mut out);
            }
            None => out.extend_from_slice(BAD_NAME),
        },
        (b"setinfo", 4) => set_info(client, words, &mut out),
        (b"reply", 3) => {
            set_reply(connection, words.get(2).unwrap_or_default());
            return true;
        }
        (b"getredir", 2) => reply::integer(&mut out, -1),
        (b"no-evict" | b"no-touch", 3) => reply::ok(&mut out),
        (b"info", 2) => {
            return push(
                core,
                connection,
                Ask::Clients(resp, asks::Filter::one(number)),
            );
        }
        (b"list", _) => match asks::Filter::of_list(words) {
            Ok(filter) => return push(core, connection, Ask::Clients(resp, filter)),
            Err(text) => out.extend_from_slice(&text),
        },
        (b"kill", 3..) => match asks::Filter::of_kill(words, number) {
            Ok(filter) => return push(core, connection, Ask::Kill(filter)),
            Err(text) => out.extend_from_slice(&text),
        },
        (b"help", 2) => write_help(&mut out),
        _ => {
            core.counters.refused.count(WhyRefused::UnknownCommand);
            let what = String::from_utf8_lossy(words.get(1).unwrap_or_default());
            let text = format!(
                "ERR unknown subcommand or wrong number of arguments for '{what}'. Try CLIENT HELP."
            );
            reply::error(&mut out, text.as_bytes());
        }
    }
    answer(connection, out);
    true
}

fn write_help(out: &mut Vec<u8>) {
    const LINES: [&str; 22] = [
        "CLIENT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        "GETNAME",
        "    Return the name of the current connection.",
        "GETREDIR",
        "    Return -1: there is no tracking.",
        "ID",
        "    Return the ID of the current connection.",
        "INFO",
        "    Return information about the current connection.",
        "KILL <ip:port>",
        "    Kill connection made from <ip:port>.",
        "KILL <option> <value> [<option> <value> [...]]",
        "    Kill connections: ADDR <ip:port>, ID <client-id>, SKIPME (YES|NO), TYPE NORMAL.",
        "LIST [TYPE NORMAL | ID <client-id> [...]]",
        "    Return information about client connections.",
        "REPLY (ON|OFF|SKIP)",
        "    Control the replies sent to the current connection.",
        "SETINFO (LIB-NAME|LIB-VER) <value>",
        "    Set what CLIENT LIST shows as the client's library.",
        "SETNAME <name>",
        "    Assign the name <name> to the current connection.",
        "HELP",
    ];
    reply::array_header(out, LINES.len());
    for line in LINES {
        reply::simple(out, line);
    }
}

fn set_info(client: &mut RedisClient, words: &Words<'_>, out: &mut Vec<u8>) {
    let place = match words
        .get(2)
        .unwrap_or_default()
        .to_ascii_lowercase()
        .as_slice()
    {
        b"lib-name" => 0,
        b"lib-ver" => 1,
        other => {
            let other = String::from_utf8_lossy(other);
            return reply::error(out, format!("ERR Unrecognized option '{other}'").as_bytes());
        }
    };
    if let Some(value) = words.get(3).filter(|value| is_name(value)) {
        client.library[place] = value.to_vec();
        reply::ok(out);
    } else {
        let text =
            b"ERR lib-name and lib-ver cannot contain spaces, newlines or special characters.";
        reply::error(out, text);
    }
}

/// `CLIENT REPLY`: only `ON` is answered.
fn set_reply(connection: &mut Connection, how: &[u8]) {
    let client = state(connection);
    match how.to_ascii_lowercase().as_slice() {
        b"on" => {
            client.replies_off = false;
            client.is_quiet = false;
            answer(connection, b"+OK\r\n".to_vec());
        }
        b"off" => client.replies_off = true,
        b"skip" => client.skips_next = !client.replies_off,
        _ => answer(connection, b"-ERR syntax error\r\n".to_vec()),
    }
}

//! `CLIENT`: what a connection is called and how it is answered, and questions about the others.
use super::super::Core;
use super::super::server_questions::{Filter, ServerQuestion, push};
use super::errors::{self, NOT_AN_INTEGER, SYNTAX};
use super::{NAME_BYTES_MAX, answer, help, state};
use crate::accounts::DEFAULT_NAME;
use crate::server::admission::Admission;
use crate::server::clients::Connection;
use crate::server::fronts::redis::RedisClient;
use quorumwire_kv::WhyRefused;
use quorumwire_kv::redis::{Resp, Words, integer, reply};

/// `CLIENT ...`. False: it must be offered again.
pub fn take(
    admission: &Admission,
    core: &mut Core,
    connection: &mut Connection,
    words: &Words<'_>,
) -> bool {
    let number = connection.id.number();
    let client = state(connection);
    let resp = client.resp;
    let what = words.get(1).unwrap_or_default().to_ascii_lowercase();
    let mut out = Vec::new();
    let ask = match what.as_slice() {
        b"info" => Ok(ServerQuestion::Clients(resp, Filter::one(number))),
        b"list" => Filter::of_list(words).map(|filter| ServerQuestion::Clients(resp, filter)),
        b"kill" => Filter::of_kill(words, number, |name| is_user(admission, name))
            .map(ServerQuestion::Kill),
        b"unblock" => unblock(words),
        b"reply" => {
            set_reply(connection, words.get(2).unwrap_or_default());
            return true;
        }
        _ => {
            at_once(client, number, &what, words, &mut out);
            if out.get(1..).is_some_and(|it| it.starts_with(NO_TRACKING)) {
                core.service.counters.refused.count(WhyRefused::NotServed);
            }
            answer(connection, out);
            return true;
        }
    };
    match ask {
        Ok(ask) => push(core, connection, ask),
        Err(text) => {
            reply::error(&mut out, &text);
            answer(connection, out);
            true
        }
    }
}

/// Whether clients may say that they are this user.
fn is_user(admission: &Admission, name: &[u8]) -> bool {
    let accounts = admission.accounts.as_ref();
    name == DEFAULT_NAME || accounts.is_some_and(|accounts| accounts.knows(name))
}

/// What needs nothing but the connection.
fn at_once(
    client: &mut RedisClient,
    number: i64,
    what: &[u8],
    words: &Words<'_>,
    out: &mut Vec<u8>,
) {
    let word = words.get(2).unwrap_or_default();
    match what {
        b"id" => reply::integer(out, number),
        b"getname" if client.name.is_empty() => reply::null(out, client.resp),
        b"getname" => reply::bulk(out, &client.name),
        b"setname" if is_name(word) => {
            client.name = word.to_vec();
            reply::ok(out);
        }
        b"setname" => reply::error(out, BAD_NAME),
        b"setinfo" => set_info(client, words, out),
        b"no-evict" | b"no-touch" => match word.to_ascii_lowercase().as_slice() {
            b"on" | b"off" => reply::ok(out),
            _ => reply::error(out, SYNTAX),
        },
        b"getredir" => reply::integer(out, -1),
        b"tracking" => match tracking(words) {
            Ok(()) => reply::ok(out),
            Err(text) => reply::error(out, text),
        },
        b"trackinginfo" => tracking_info(client.resp, out),
        b"caching" => reply::error(out, NOT_TRACKING),
        b"help" => help::write("client", out),
        _ => reply::error(out, &errors::no_such_form(words)),
    }
}

pub const BAD_NAME: &[u8] =
    b"ERR Client names cannot contain spaces, newlines or special characters.";
const NOT_TRACKING: &[u8] =
    b"ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN \
    or OPTOUT mode enabled";
const NO_TRACKING: &[u8] = b"ERR CLIENT TRACKING is not served: nobody is told which keys change";

/// Whether a client may give itself, or its library, this name.
pub fn is_name(name: &[u8]) -> bool {
    name.len() <= NAME_BYTES_MAX && name.iter().all(u8::is_ascii_graphic)
}

fn set_info(client: &mut RedisClient, words: &Words<'_>, out: &mut Vec<u8>) {
    let option = words.get(2).unwrap_or_default();
    let place = match option.to_ascii_lowercase().as_slice() {
        b"lib-name" => 0,
        b"lib-ver" => 1,
        _ => {
            let text = errors::quoting("ERR Unrecognized option '", option, "'");
            return reply::error(out, &text);
        }
    };
    if let Some(value) = words.get(3).filter(|value| is_name(value)) {
        client.library[place] = value.to_vec();
        reply::ok(out);
    } else {
        let why = " cannot contain spaces, newlines or special characters.";
        reply::error(out, &errors::quoting("ERR ", option, why));
    }
}

/// `CLIENT TRACKING ON|OFF [option...]`: it is off, and can be nothing else.
fn tracking(words: &Words<'_>) -> Result<(), &'static [u8]> {
    let mut options = words.iter().skip(3);
    while let Some(option) = options.next() {
        match option.to_ascii_lowercase().as_slice() {
            b"bcast" | b"optin" | b"optout" | b"noloop" => {}
            b"prefix" => drop(options.next().ok_or(SYNTAX)?),
            b"redirect" => {
                let id = options.next().ok_or(SYNTAX)?;
                integer(id).ok_or(NOT_AN_INTEGER)?;
            }
            _ => return Err(SYNTAX),
        }
    }
    let how = words.get(2).unwrap_or_default();
    match how.to_ascii_lowercase().as_slice() {
        b"off" => Ok(()),
        b"on" => Err(NO_TRACKING),
        _ => Err(SYNTAX),
    }
}

fn tracking_info(resp: Resp, out: &mut Vec<u8>) {
    reply::map_header(out, resp, 3);
    reply::bulk(out, b"flags");
    reply::set_header(out, resp, 1);
    reply::bulk(out, b"off");
    reply::bulk(out, b"redirect");
    reply::integer(out, -1);
    reply::bulk(out, b"prefixes");
    reply::array_header(out, 0);
}

/// `CLIENT UNBLOCK id [TIMEOUT|ERROR]`
fn unblock(words: &Words<'_>) -> Result<ServerQuestion, Vec<u8>> {
    let how = words.get(3).map(<[u8]>::to_ascii_lowercase);
    let with_error = match (how.as_deref(), words.len()) {
        (_, 5..) => return Err(errors::no_such_form(words)),
        (None | Some(b"timeout"), _) => false,
        (Some(b"error"), _) => true,
        (Some(_), _) => {
            return Err(b"ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR".to_vec());
        }
    };
    let number = words.get(2).and_then(integer).ok_or(NOT_AN_INTEGER)?;
    Ok(ServerQuestion::Unblock { number, with_error })
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

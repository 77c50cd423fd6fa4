//! What a Redis client asks about other clients and replicas: `CLIENT LIST`, `CLIENT KILL` and `WAIT`.
use super::super::Server;
use super::super::asks::{self, Ask, Wait};
use super::super::clients::{Connection, ConnectionId};
use super::super::core::Core;
use super::answer;
use quorumwire_control::{Now, Status};
use quorumwire_interfaces::Index;
use quorumwire_kv::redis::{Resp, Words, reply};
use std::time::Duration;

/// Which connections.
#[derive(Default)]
pub struct Filter {
    ids: Vec<i64>,
    address: Option<String>,
    /// Not this one.
    but: Option<i64>,
    /// The old form of `CLIENT KILL`, whose answer is another.
    is_old_form: bool,
}

impl Filter {
    pub fn one(id: i64) -> Self {
        Self {
            ids: vec![id],
            ..Self::default()
        }
    }

    /// Of `CLIENT LIST [TYPE normal|...] [ID id...]`.
    pub fn of_list(words: &Words<'_>) -> Result<Self, Vec<u8>> {
        let mut filter = Self::default();
        let lowered = |place| words.get(place).map(<[u8]>::to_ascii_lowercase);
        match (lowered(2).as_deref(), words.len()) {
            (None, _) => {}
            (Some(b"type"), 4) => match lowered(3).as_deref() {
                Some(b"normal") => {}
                Some(b"master" | b"replica" | b"slave" | b"pubsub") => filter.ids = vec![0],
                _ => return Err(unknown_type(words.get(3))),
            },
            (Some(b"id"), 4..) => {
                for word in words.iter().skip(3) {
                    filter.ids.push(id(word)?);
                }
            }
            (Some(_), _) => return Err(b"-ERR syntax error\r\n".to_vec()),
        }
        Ok(filter)
    }

    /// Of `CLIENT KILL address` and `CLIENT KILL option value...`; `me` is who says so.
    pub fn of_kill(words: &Words<'_>, me: i64) -> Result<Self, Vec<u8>> {
        let text = |word: &[u8]| String::from_utf8_lossy(word).into_owned();
        if words.len() == 3 {
            return Ok(Self {
                address: words.get(2).map(text),
                is_old_form: true,
                ..Self::default()
            });
        }
        let mut filter = Self {
            but: Some(me),
            ..Self::default()
        };
        let options: Vec<&[u8]> = words.iter().skip(2).collect();
        let (options, rest) = options.as_chunks::<2>();
        for [option, value] in options {
            match option.to_ascii_lowercase().as_slice() {
                b"id" => filter.ids.push(id(value)?),
                b"addr" => filter.address = Some(text(value)),
                b"skipme" if value.eq_ignore_ascii_case(b"yes") => filter.but = Some(me),
                b"skipme" if value.eq_ignore_ascii_case(b"no") => filter.but = None,
                b"type" if value.eq_ignore_ascii_case(b"normal") => {}
                b"type" => return Err(unknown_type(Some(value))),
                _ => return Err(b"-ERR syntax error\r\n".to_vec()),
            }
        }
        if !rest.is_empty() {
            return Err(b"-ERR syntax error\r\n".to_vec());
        }
        Ok(filter)
    }

    fn fits(&self, id: i64, address: &str) -> bool {
        (self.ids.is_empty() || self.ids.contains(&id))
            && self.address.as_ref().is_none_or(|it| it == address)
            && self.but != Some(id)
    }
}

fn id(word: &[u8]) -> Result<i64, Vec<u8>> {
    let number = std::str::from_utf8(word).ok();
    let number = number.and_then(|text| text.parse::<i64>().ok());
    let number = number.filter(|number| *number > 0);
    number.ok_or_else(|| b"-ERR client-id should be greater than 0\r\n".to_vec())
}

fn unknown_type(word: Option<&[u8]>) -> Vec<u8> {
    let word = String::from_utf8_lossy(word.unwrap_or_default());
    let word = word.replace(['\r', '\n'], " ");
    format!("-ERR Unknown client type '{word}'\r\n").into_bytes()
}

/// `WAIT replicas milliseconds`. False: it must be offered again, once the writes before it are answered.
///
/// An answered write is on a majority already. The leader knows of more; another replica only of that.
pub fn wait(core: &mut Core, connection: &mut Connection, words: &Words<'_>) -> bool {
    let number = |place: usize| {
        let word = std::str::from_utf8(words.get(place)?).ok()?;
        word.parse::<i64>().ok()
    };
    let refusal: &[u8] = match (number(1), number(2)) {
        (Some(_), Some(0..)) => b"",
        (Some(_), Some(_)) => b"-ERR timeout is negative\r\n",
        (Some(_), None) => b"-ERR timeout is not an integer or out of range\r\n",
        (None, _) => b"-ERR value is not an integer or out of range\r\n",
    };
    if !refusal.is_empty() {
        answer(connection, refusal.to_vec());
        return true;
    }
    if connection.writes_waiting > 0 {
        return false;
    }
    let timeout = number(2).and_then(|ms| u64::try_from(ms).ok()).unwrap_or(0);
    let until =
        (timeout > 0).then(|| Now(core.now.0.saturating_add(Duration::from_millis(timeout))));
    let wait = Wait {
        replicas: number(1).and_then(|it| u64::try_from(it).ok()).unwrap_or(0),
        index: core.applied,
        until,
    };
    asks::push(core, connection, Ask::Wait(wait))
}

impl Server {
    /// `CLIENT LIST`
    pub fn client_list(&mut self, filter: &Filter, resp: Resp, out: &mut Vec<u8>) {
        let now = self.core.now;
        let mut lines = String::new();
        for connection in self.clients.iter() {
            let Some(client) = &connection.redis else {
                continue;
            };
            let id = connection.id.number();
            if filter.fits(id, &client.from.to_string()) {
                lines.push_str(&client.line(id, now, connection));
            }
        }
        reply::verbatim(out, resp, lines.as_bytes());
    }

    /// `CLIENT KILL`: ends connections at once, also such as take no answers. Only who kills itself is told
    /// so first.
    pub fn kill_clients(&mut self, filter: &Filter, by: ConnectionId, out: &mut Vec<u8>) {
        let mut killed = Vec::new();
        for connection in self.clients.iter() {
            let Some(client) = &connection.redis else {
                continue;
            };
            if filter.fits(connection.id.number(), &client.from.to_string()) {
                killed.push(connection.id);
            }
        }
        for id in &killed {
            if *id != by {
                self.clients.kill(*id);
                self.core.forget_connection(*id);
            } else if let Some(connection) = self.clients.get(by) {
                connection.closing = true;
            }
        }
        match (filter.is_old_form, killed.len()) {
            (true, 0) => reply::error(out, b"ERR No such client"),
            (true, _) => reply::ok(out),
            (false, count) => reply::integer(out, i64::try_from(count).unwrap_or(i64::MAX)),
        }
    }
}

/// Replicas beside the leader that have stored everything up to here, which is applied here, as far as this
/// one knows: a majority has, or it would not be.
pub fn replicas_that_have(status: &Status, index: Index) -> u64 {
    let voters = status.membership.voters().count() as u64;
    let followers = status.followers.iter();
    let have = followers.filter(|it| it.match_index >= index).count() as u64;
    have.max(voters / 2)
}

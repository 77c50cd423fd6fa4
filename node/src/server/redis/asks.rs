//! What a Redis client asks of the whole server: answered between the turns of connections, in the order of the
//! client's requests.
use super::super::Server;
use super::super::clients::{Connection, ConnectionId, Said, SlotKind};
use super::super::core::Core;
use super::{answer, state};
use quorumwire_control::{Now, Status};
use quorumwire_interfaces::Index;
use quorumwire_kv::redis::{Resp, Words, reply};
use std::time::Duration;

/// One question, and who asks.
pub struct Asked {
    id: ConnectionId,
    slot: u64,
    resp: Resp,
    ask: Ask,
}

/// What is asked.
pub enum Ask {
    /// `INFO` with these sections.
    Info(Vec<String>),
    /// `CONFIG` with these words.
    Config(Vec<String>),
    /// `CLIENT LIST`, `CLIENT INFO`
    Clients(Filter),
    /// `CLIENT KILL`
    Kill(Filter),
    /// `WAIT`
    Wait {
        /// So many replicas beside the leader shall have everything up to here.
        replicas: u64,
        /// See `replicas`.
        index: Index,
        /// Then the answer is how many have; `None`: never.
        until: Option<Now>,
    },
}

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
        let mut place = 2;
        while let Some(option) = words.get(place) {
            let Some(value) = words.get(place + 1) else {
                return Err(b"-ERR syntax error\r\n".to_vec());
            };
            match option.to_ascii_lowercase().as_slice() {
                b"id" => filter.ids.push(id(value)?),
                b"addr" => filter.address = Some(text(value)),
                b"skipme" if value.eq_ignore_ascii_case(b"yes") => filter.but = Some(me),
                b"skipme" if value.eq_ignore_ascii_case(b"no") => filter.but = None,
                b"type" if value.eq_ignore_ascii_case(b"normal") => {}
                b"type" => return Err(unknown_type(Some(value))),
                _ => return Err(b"-ERR syntax error\r\n".to_vec()),
            }
            place += 2;
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

/// Takes a question on; it is answered before the turn ends, but for `WAIT`.
pub fn push(core: &mut Core, connection: &mut Connection, ask: Ask) {
    let slot = connection.next_slot();
    connection.push(SlotKind::Asked, None);
    core.asks.push(Asked {
        id: connection.id,
        slot,
        resp: state(connection).resp,
        ask,
    });
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
    let ask = Ask::Wait {
        replicas: number(1).and_then(|it| u64::try_from(it).ok()).unwrap_or(0),
        index: core.applied,
        until,
    };
    push(core, connection, ask);
    true
}

impl Server {
    /// Answers what can be answered.
    pub fn answer_asks(&mut self) {
        if self.core.asks.is_empty() {
            return;
        }
        let status = self.core.replica.status();
        for asked in std::mem::take(&mut self.core.asks) {
            if self.clients.get(asked.id).is_none() {
                continue; // gone meanwhile
            }
            match self.answer_to(&asked, &status) {
                Some(text) => self.complete(asked.id, asked.slot, Said::Answer, &text),
                None => self.core.asks.push(asked),
            }
        }
    }

    fn answer_to(&mut self, asked: &Asked, status: &Status) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        match &asked.ask {
            Ask::Info(sections) => {
                let text = self.redis_info(sections);
                reply::verbatim(&mut out, asked.resp, text.as_bytes());
            }
            Ask::Config(words) => self.redis_config(words, asked.resp, &mut out),
            Ask::Clients(filter) => {
                let text = self.client_list(filter);
                reply::verbatim(&mut out, asked.resp, text.as_bytes());
            }
            Ask::Kill(filter) => self.kill_clients(filter, &mut out),
            Ask::Wait {
                replicas,
                index,
                until,
            } => {
                let have = replicas_that_have(status, *index);
                let is_over = until.is_some_and(|until| self.core.now >= until);
                // Only a leader hears of others that get there.
                if have < *replicas && self.core.leads() && !is_over {
                    return None;
                }
                reply::integer(&mut out, i64::try_from(have).unwrap_or(i64::MAX));
            }
        }
        Some(out)
    }

    fn client_list(&mut self, filter: &Filter) -> String {
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
        lines
    }

    fn kill_clients(&mut self, filter: &Filter, out: &mut Vec<u8>) {
        let mut killed = 0;
        for connection in self.clients.iter_mut() {
            let Some(client) = &connection.redis else {
                continue;
            };
            if filter.fits(connection.id.number(), &client.from.to_string()) {
                connection.closing = true;
                killed += 1;
            }
        }
        self.clients.attend_all();
        match (filter.is_old_form, killed) {
            (true, 0) => reply::error(out, b"ERR No such client"),
            (true, _) => reply::ok(out),
            (false, _) => reply::integer(out, killed),
        }
    }
}

/// Replicas beside the leader that have stored everything up to here, which is applied here, as far as this
/// one knows: a majority has, or it would not be.
fn replicas_that_have(status: &Status, index: Index) -> u64 {
    let voters = status.membership.voters().count() as u64;
    let followers = status.followers.iter();
    let have = followers.filter(|it| it.match_index >= index).count() as u64;
    have.max(voters / 2)
}

//! What a Redis client asks about other clients and replicas: `CLIENT LIST`, `CLIENT KILL` and `WAIT`.
use super::super::Core;
use super::super::Server;
use super::super::server_questions::{self, Filter, ServerQuestion, Wait};
use super::answer;
use super::errors::{SYNTAX, quoting};
use crate::server::clients::Connection;
use crate::server::connection_id::ConnectionId;
use crate::server::fronts::redis::RedisClient;
use quorumwire_control::Now;
use quorumwire_kv::redis::{Resp, Words, integer, reply};
use std::collections::HashSet;
use std::net::SocketAddr;
use std::time::Duration;

impl Filter {
    pub fn one(id: i64) -> Self {
        Self {
            ids: Some(vec![id]),
            ..Self::default()
        }
    }

    /// Of `CLIENT LIST [TYPE type | ID id...]`.
    pub fn of_list(words: &Words<'_>) -> Result<Self, Vec<u8>> {
        let mut filter = Self::default();
        let how = words.get(2).map(<[u8]>::to_ascii_lowercase);
        match (how.as_deref(), words.len()) {
            (None, _) => {}
            (Some(b"type"), 4) => filter.of_type(words.get(3).unwrap_or_default())?,
            (Some(b"id"), 4..) => {
                let ids: Option<Vec<i64>> = words.iter().skip(3).map(integer).collect();
                filter.ids = Some(ids.ok_or(b"ERR Invalid client ID")?);
            }
            (Some(_), _) => return Err(SYNTAX.to_vec()),
        }
        Ok(filter)
    }

    /// Of `CLIENT KILL address` and `CLIENT KILL option value...`; `me` is who says so.
    pub fn of_kill(
        words: &Words<'_>,
        me: i64,
        is_user: impl Fn(&[u8]) -> bool,
    ) -> Result<Self, Vec<u8>> {
        let mut filter = Self::default();
        if words.len() == 3 {
            filter.address = words.get(2).map(<[u8]>::to_vec);
            filter.is_old_form = true;
            return Ok(filter);
        }
        filter.but = Some(me);
        let options: Vec<&[u8]> = words.iter().skip(2).collect();
        let (options, rest) = options.as_chunks::<2>();
        for [option, value] in options {
            match option.to_ascii_lowercase().as_slice() {
                b"id" => {
                    let id = integer(value).filter(|id| *id > 0);
                    filter.ids = Some(vec![id.ok_or(b"ERR client-id should be greater than 0")?]);
                }
                b"addr" => filter.address = Some(value.to_vec()),
                b"laddr" => filter.local_address = Some(value.to_vec()),
                b"user" if is_user(value) => filter.user = Some(value.to_vec()),
                b"user" => return Err(quoting("ERR No such user '", value, "'")),
                b"skipme" if value.eq_ignore_ascii_case(b"yes") => filter.but = Some(me),
                b"skipme" if value.eq_ignore_ascii_case(b"no") => filter.but = None,
                b"type" => filter.of_type(value)?,
                _ => return Err(SYNTAX.to_vec()),
            }
        }
        if rest.is_empty() {
            Ok(filter)
        } else {
            Err(SYNTAX.to_vec())
        }
    }

    /// Only those of this type; all there are are normal ones.
    fn of_type(&mut self, name: &[u8]) -> Result<(), Vec<u8>> {
        self.is_nobody = match name.to_ascii_lowercase().as_slice() {
            b"normal" => false,
            b"master" | b"replica" | b"slave" | b"pubsub" => true,
            _ => return Err(quoting("ERR Unknown client type '", name, "'")),
        };
        Ok(())
    }

    fn fits(&self, client: &RedisClient, connection: &Connection) -> bool {
        let id = connection.id.number();
        let is_one = !self.is_nobody
            && self.but != Some(id)
            && self.ids.as_ref().is_none_or(|ids| ids.contains(&id))
            && self.user.as_ref().is_none_or(|user| user == client.user());
        let same = |wanted: &Option<Vec<u8>>, address: &dyn Fn() -> String| {
            let wanted = wanted.as_ref();
            wanted.is_none_or(|wanted| wanted == address().as_bytes())
        };
        is_one
            && same(&self.address, &|| client.from.to_string())
            && same(&self.local_address, &|| shown(connection.own_end().1))
    }
}

/// An address as `CLIENT LIST` has it.
pub fn shown(address: Option<SocketAddr>) -> String {
    address.map_or_else(String::new, |address| address.to_string())
}

/// `WAIT replicas milliseconds`. False: it must be offered again, once the writes before it are answered.
///
/// An answered write is on a majority already. The leader knows of more; another replica only of that.
pub fn wait(core: &mut Core, connection: &mut Connection, words: &Words<'_>) -> bool {
    let number = |place: usize| integer(words.get(place)?);
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
    if connection.slots.writes() > 0 {
        return false;
    }
    let timeout = number(2).and_then(|ms| u64::try_from(ms).ok()).unwrap_or(0);
    let until = (timeout > 0).then(|| {
        Now(core
            .group
            .now
            .0
            .saturating_add(Duration::from_millis(timeout)))
    });
    let wait = Wait {
        replicas: number(1).and_then(|it| u64::try_from(it).ok()).unwrap_or(0),
        index: core.group.applied,
        until,
    };
    server_questions::push(core, connection, ServerQuestion::Wait(wait))
}

impl Server {
    /// `CLIENT LIST`
    pub fn client_list(&mut self, filter: &Filter, resp: Resp, out: &mut Vec<u8>) {
        let now = self.core.group.now;
        let waiting: HashSet<i64> = self
            .core
            .service
            .questions
            .waiting()
            .map(ConnectionId::number)
            .collect();
        let mut lines = String::new();
        for connection in self.clients.iter() {
            let Some(client) = connection.redis() else {
                continue;
            };
            if filter.fits(client, connection) {
                let is_waiting = waiting.contains(&connection.id.number());
                lines.push_str(&client.line(now, connection, is_waiting));
            }
        }
        reply::verbatim(out, resp, lines.as_bytes());
    }

    /// `CLIENT KILL`: ends connections at once, also such as take no answers. Only who kills itself is told
    /// so first.
    pub fn kill_clients(&mut self, filter: &Filter, by: ConnectionId, out: &mut Vec<u8>) {
        let mut killed = Vec::new();
        for connection in self.clients.iter() {
            let Some(client) = connection.redis() else {
                continue;
            };
            if filter.fits(client, connection) {
                killed.push(connection.id);
            }
        }
        for id in &killed {
            if *id != by {
                self.clients.kill(*id);
                self.forget_reads_of(*id);
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

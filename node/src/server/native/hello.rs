//! The beginning and the end of a connection: who is there, and why it is closed.
use super::super::admission::Admission;
use super::super::clients::{Clients, Connection};
use super::super::core::Core;
use super::super::fronts::native::{CloseReason, goodbye, put};
use super::super::service::Service;
use super::{push_frame, state};
use crate::accounts::DEFAULT_NAME;
use quorumwire_control::Now;
use quorumwire_wire::client::{self, from_server::Body};
use quorumwire_wire::limits::{ACCOUNT_BYTES_MAX, SESSION_COMMAND_BYTES_MAX};
use quorumwire_wire::{CLIENT_PROTOCOL_VERSION_MAX, CLIENT_PROTOCOL_VERSION_MIN};
use std::time::Duration;

/// A client that has not said hello by then is closed.
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);

/// Looked at once in a while.
const HELLOS_LOOKED_AT: Duration = Duration::from_secs(1);

/// Takes nothing more from the client, and says why once all that it asked before is answered.
pub fn close(connection: &mut Connection, why: CloseReason, detail: String) {
    tracing::debug!(reason = why.name(), detail, "client closed");
    let client = state(connection);
    client.counters.closed.count(why);
    client.request = 0;
    push_frame(connection, goodbye(why.reason(), detail));
    connection.hang_up(true);
}

/// The client's first message.
pub fn take<S: Service>(
    admission: &mut Admission,
    core: &Core<S>,
    connection: &mut Connection,
    hello: &client::Hello,
) {
    let version = hello.protocol_max.min(CLIENT_PROTOCOL_VERSION_MAX);
    if version < hello.protocol_min.max(CLIENT_PROTOCOL_VERSION_MIN) {
        let detail = format!(
            "protocol {} to {}, ours is {CLIENT_PROTOCOL_VERSION_MIN} to {CLIENT_PROTOCOL_VERSION_MAX}",
            hello.protocol_min, hello.protocol_max
        );
        return close(connection, CloseReason::ProtocolVersion, detail);
    }
    if hello.name.len().max(hello.password.len()) > ACCOUNT_BYTES_MAX {
        let detail = format!("a name and a password have at most {ACCOUNT_BYTES_MAX} bytes");
        return close(connection, CloseReason::Malformed, detail);
    }
    let name = if hello.name.is_empty() {
        DEFAULT_NAME
    } else {
        &hello.name
    };
    if admission.accounts.is_some() && !admission.is_account(name, &hello.password) {
        let detail = "not a name and its password".to_owned();
        return close(connection, CloseReason::NotLetIn, detail);
    }
    connection.is_let_in = true;
    let leader = leader(admission, core).map(told);
    let client = state(connection);
    client.is_welcome = true;
    client.protocol = version;
    client.counters.welcomed += 1;
    client.told.clone_from(&leader);
    let welcome = client::Welcome {
        protocol: version,
        replica: admission.identity.replica,
        cluster: admission.identity.cluster.clone(),
        leader,
        command_bytes_max: u32::try_from(SESSION_COMMAND_BYTES_MAX).unwrap_or(u32::MAX),
        in_flight_max: u32::try_from(super::super::clients::SLOTS_MAX).unwrap_or(u32::MAX),
    };
    put(&mut connection.output, 0, Body::Welcome(welcome), b"");
}

/// Who leads, as far as this replica knows, and where its clients connect.
pub fn leader<'a, S: Service>(
    admission: &'a Admission,
    core: &'a Core<S>,
) -> Option<(u32, &'a str)> {
    let id = core.group.replica.leader()?;
    let replica = u32::from(id.0);
    let address = if replica == admission.identity.replica {
        &core.native_address
    } else {
        let said = core.hellos.of(id);
        said.map_or("", |it| it.native_address.as_str())
    };
    Some((replica, address))
}

/// As a message tells it.
pub fn told((replica, address): (u32, &str)) -> client::Leader {
    client::Leader {
        replica,
        address: address.to_owned(),
    }
}

impl Clients {
    /// Has those closed that do not say hello.
    pub fn time_out_hellos(&mut self, now: Now) {
        if now < self.hellos_next {
            return;
        }
        self.hellos_next = Now(now.0 + HELLOS_LOOKED_AT);
        let is_late = |it: &&Connection| {
            let is_due = || {
                let waited = now.0.saturating_sub(it.unknown_since.0);
                !it.is_in_handshake() && !it.closing && waited > HELLO_TIMEOUT
            };
            it.native().is_some_and(|client| !client.is_welcome) && is_due()
        };
        let late: Vec<_> = self.iter().filter(is_late).map(|it| it.id).collect();
        for id in late {
            if let Some(connection) = self.get(id) {
                let detail = format!("no hello within {} s", HELLO_TIMEOUT.as_secs());
                close(connection, CloseReason::NoHello, detail);
            }
            self.attend(id);
        }
    }
}

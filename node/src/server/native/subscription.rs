//! A client that is given values as they are applied here, in their order. What waits for it is what it has
//! credit for and has not taken; everything else is read out of the state when its turn comes. So a slow
//! client costs others nothing.
use super::super::Server;
use super::super::admission::Admission;
use super::super::clients::{Connection, OUTPUT_BYTES_MAX};
use super::super::core::Core;
use super::super::fronts::Front;
use super::super::fronts::native::{CloseReason, Subscription, put, put_refused};
use super::super::service::Service;
use super::{hello, state};
use quorumwire_deliver::{Given, OVERHEAD_BYTES};
use quorumwire_interfaces::Reason;
use quorumwire_wire::CLIENT_PROTOCOL_SUBSCRIPTIONS;
use quorumwire_wire::client::{self, from_server};
use quorumwire_wire::limits::VALUE_OVERHEAD_BYTES;

/// Begins one.
pub fn take<S: Service>(
    core: &mut Core<S>,
    connection: &mut Connection,
    asked: &client::Subscribe,
) {
    let client = state(connection);
    let is_known = client.protocol >= CLIENT_PROTOCOL_SUBSCRIPTIONS;
    if !is_known || asked.from == 0 || client.subscription.is_some() {
        let detail =
            "a subscription begins with an instance from 1 on, one at a time, from version 2 on";
        return hello::close(connection, CloseReason::Malformed, detail.to_owned());
    }
    let refusal = match S::next_value(core, asked.from) {
        None => Some((Reason::NotServed, "no values are kept here".to_owned())),
        Some(_) if !S::has_learner(core, asked.learner) => {
            let text = format!("there is no learner {}", asked.learner);
            Some((Reason::NotServed, text))
        }
        Some(_) => None,
    };
    if let Some((reason, text)) = refusal {
        let request = client.request;
        let counted = put_refused(&mut connection.output, request, reason, text.as_bytes());
        state(connection).counters.count_refused(counted);
        return;
    }
    client.counters.subscriptions += 1;
    client.subscription = Some(Subscription {
        request: client.request,
        values: quorumwire_deliver::Subscription::new(asked.from, asked.credit_bytes),
    });
    core.subscribers.add(connection.id);
}

/// More may be on its way. One that comes after the subscription has ended is late.
pub fn take_credit(connection: &mut Connection, credit: client::Credit) {
    if let Some(subscription) = &mut state(connection).subscription {
        subscription.values.add_credit(credit.bytes);
    }
}

/// Gives a client what it has credit and room for, as far as its share of this turn goes.
pub fn give<S: Service>(admission: &Admission, core: &mut Core<S>, connection: &mut Connection) {
    let closing = connection.closing;
    let waiting = connection.output_waiting();
    let id = connection.id;
    let Front::Native(client) = &mut connection.front else {
        return;
    };
    let Some(subscription) = client.subscription.as_mut().filter(|_| !closing) else {
        return;
    };
    let before = connection.output.len();
    loop {
        let has_room = waiting + (connection.output.len() - before) < OUTPUT_BYTES_MAX;
        let has_room = has_room && admission.has_share(core.work_done());
        let Some(next) = S::next_value(core, subscription.values.next()) else {
            return;
        };
        let request = subscription.request;
        match subscription.values.give(next, has_room) {
            Given::Nothing => return,
            Given::NoRoom => {
                connection.cut = true; // goes on when there is room again, or in a later turn
                return;
            }
            Given::Value(instance, value) => {
                let body = from_server::Body::Value(client::Value { instance });
                put(&mut connection.output, request, body, value);
                client.counters.values += 1;
                client.counters.value_bytes += value.len() as u64;
                core.add_work(value.len() + VALUE_WORK);
            }
            Given::Upto(instance) => {
                let body = from_server::Body::Upto(client::Upto { instance });
                put(&mut connection.output, request, body, b"");
                return;
            }
            Given::Trimmed(upto) => {
                let body = from_server::Body::Trimmed(client::Trimmed { upto });
                put(&mut connection.output, request, body, b"");
                client.counters.subscriptions_trimmed += 1;
                client.subscription = None;
                core.subscribers.remove(id);
                return;
            }
        }
    }
}

const _: () = assert!(VALUE_OVERHEAD_BYTES == OVERHEAD_BYTES); // what the protocol counts, and what is kept

/// What giving a value is in work, beside its bytes.
const VALUE_WORK: usize = 128;

impl<S: Service> Server<S> {
    /// Has those looked at who are given values, if something was decided since the last time.
    pub fn attend_subscribers(&mut self) {
        let last = S::last_instance(&self.core);
        for id in self.core.subscribers.due(last) {
            if self.clients.get(id).is_none() {
                self.core.subscribers.remove(id);
            }
            self.clients.attend(id);
        }
    }

    /// This replica may be cut off, or is no member any more: what it gives is right, and may be all for a
    /// long time.
    pub fn end_stale_subscriptions(&mut self) {
        let (now, is_led) = (self.core.group.now, self.core.group.replica.is_led());
        let stale = self.core.subscribers.take_leaderless(now, is_led);
        for id in stale {
            if let Some(connection) = self.clients.get(id) {
                end(connection);
                self.clients.attend(id);
            }
        }
    }
}

fn end(connection: &mut Connection) {
    let Front::Native(client) = &mut connection.front else {
        return;
    };
    if let Some(subscription) = client.subscription.take() {
        let request = subscription.request;
        let reason = put_refused(&mut connection.output, request, Reason::NoLeader, b"");
        client.counters.count_refused(reason);
    }
}

#[cfg(test)]
#[path = "subscription_test.rs"]
mod tests;

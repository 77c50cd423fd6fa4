//! Clients of the cluster's native protocol (`wire/client.proto`): their frames into requests, answers into
//! frames. Commands have sessions, so that each is carried out once however often and wherever it is asked
//! for; what that takes is `group/sessions`' business.
//!
//! Answers leave in the order of requests, as those of other protocols do. Clients match them by their
//! numbers and count on no order.
mod counters;
mod hello;
mod words;

pub use counters::NativeCounters;
pub use hello::too_many_connections;

use super::clients::{AnswerKind, Connection, ReadState, SlotKind, Speaks};
use super::core::{Core, Origin};
use super::front::Front;
use super::reads::ReadProgress;
use super::requests::{self, TakeOutcome, UNKNOWN_CLIENT_BYTES_MAX};
use super::security::say_tls;
use super::service::{AnswerTime, ReadLine, Service};
use counters::CloseReason;
use quorumwire_interfaces::{Application as _, Reason};
use quorumwire_wire::client::{self, FromClient, FromServer, from_client, from_server};
use quorumwire_wire::limits::{ATTACHMENT_BYTES_MAX, SESSION_COMMAND_BYTES_MAX};
use quorumwire_wire::{ClientFrame, take_client_frame, write_client_frame};
use rustls::ContentType;
use std::collections::VecDeque;

/// A query's answer may be as long as several items; it stands for so many keys.
pub const KEYS_OF_A_QUERY: u32 = 4;

/// What is known of a client; nothing, when it has just connected.
#[derive(Default)]
pub struct NativeClient {
    /// It has said hello, and has been welcomed.
    is_welcome: bool,
    /// The number of the request that is being taken on.
    request: u64,
    /// Those of the requests that wait, in their order.
    waiting: VecDeque<u64>,
    /// Who it was told leads.
    told: Option<client::Leader>,
    /// Not added to those of all yet.
    counters: NativeCounters,
}

impl NativeClient {
    /// The request being looked at waits for its answer from now on.
    pub fn took_on(&mut self) {
        self.waiting.push_back(self.request);
    }

    /// The first of those that wait is answered.
    pub fn done_with_front(&mut self) {
        self.waiting.pop_front();
    }

    /// Writes the answer to the first of the requests that wait; one that fits no message is none.
    pub fn put_answer(&mut self, output: &mut Vec<u8>, said: AnswerKind, answer: &[u8]) {
        let request = self.waiting.front().copied().unwrap_or_default();
        let (said, answer) = match said {
            AnswerKind::Answer | AnswerKind::Repeated if answer.len() > ATTACHMENT_BYTES_MAX => {
                (AnswerKind::Refused(Reason::AnswerTooLong), &b""[..])
            }
            AnswerKind::Answer | AnswerKind::Repeated | AnswerKind::Refused(_) => (said, answer),
        };
        let (body, attachment) = match said {
            AnswerKind::Answer | AnswerKind::Repeated => {
                let repeated = said == AnswerKind::Repeated;
                self.counters.answers_repeated += u64::from(repeated);
                let answered = client::Answer { repeated };
                (from_server::Body::Answer(answered), answer)
            }
            AnswerKind::Refused(reason) => {
                let refused = words::refused(reason, answer);
                self.counters.count_refused(refused.reason());
                (from_server::Body::Refused(refused), &b""[..])
            }
        };
        put(output, request, body, attachment);
    }

    /// What was counted since this was asked last.
    pub fn take_counters(&mut self) -> NativeCounters {
        std::mem::take(&mut self.counters)
    }
}

fn put(output: &mut Vec<u8>, request: u64, body: from_server::Body, attachment: &[u8]) {
    let message = FromServer {
        request,
        body: Some(body),
    };
    write_client_frame(output, &message, attachment);
}

/// The client's state: a connection that came here has one.
fn state(connection: &mut Connection) -> &mut NativeClient {
    connection
        .native_mut()
        .expect("requests of clients of the native protocol only come here")
}

/// Takes the frame at the front of `bytes`; see [`requests::take_each`].
pub fn take_frame<S: Service>(
    front: &mut Front,
    core: &mut Core<S>,
    connection: &mut Connection,
    bytes: &[u8],
) -> TakeOutcome {
    let is_welcome = state(connection).is_welcome;
    let attachment_bytes_max = if is_welcome {
        SESSION_COMMAND_BYTES_MAX
    } else {
        0
    };
    match take_client_frame::<FromClient>(bytes, attachment_bytes_max) {
        Ok(
            ClientFrame::Incomplete { needed: long } | ClientFrame::Whole { consumed: long, .. },
        ) if !is_welcome && long > UNKNOWN_CLIENT_BYTES_MAX => {
            let detail = format!("{long} bytes before a hello");
            hello::close(connection, CloseReason::Malformed, detail);
            TakeOutcome::Bytes(bytes.len())
        }
        Ok(ClientFrame::Incomplete { needed }) => TakeOutcome::Waits { used: 0, needed },
        Ok(ClientFrame::Whole {
            consumed,
            message,
            attachment,
        }) => {
            if !take_message(front, core, connection, message, attachment) {
                return TakeOutcome::Stalled;
            }
            requests::count_request(core, consumed);
            TakeOutcome::Bytes(consumed)
        }
        Err(error) => {
            if !is_welcome && bytes.first() == Some(&u8::from(ContentType::Handshake)) {
                say_tls();
            }
            hello::close(connection, CloseReason::Malformed, error.to_string());
            TakeOutcome::Bytes(bytes.len())
        }
    }
}

/// Takes one message on. False: it can go nowhere now and must be offered again.
fn take_message<S: Service>(
    front: &mut Front,
    core: &mut Core<S>,
    connection: &mut Connection,
    message: FromClient,
    attachment: &[u8],
) -> bool {
    use from_client::Body;
    let client = state(connection);
    client.request = message.request;
    match (client.is_welcome, message.body) {
        (false, Some(Body::Hello(hello))) => hello::take(front, core, connection, &hello),
        (true, Some(Body::Submit(submit))) => {
            connection.last_request = core.group.now;
            return take_submit(front, core, connection, &submit, attachment);
        }
        (true, Some(Body::Query(client::Query {}))) => {
            connection.last_request = core.group.now;
            return take_query(core, connection, attachment);
        }
        (true, Some(Body::Ping(client::Ping {}))) if attachment.is_empty() => {
            let client = state(connection);
            client.counters.pings += 1;
            let pong = from_server::Body::Pong(client::Pong {});
            put(&mut connection.output, message.request, pong, b"");
        }
        (true, Some(Body::Ping(_) | Body::Hello(_)) | None) | (false, _) => {
            let detail = "a hello comes first, once; then commands, queries and pings".to_owned();
            hello::close(connection, CloseReason::Malformed, detail);
        }
    }
    true
}

fn take_submit<S: Service>(
    front: &mut Front,
    core: &mut Core<S>,
    connection: &mut Connection,
    submit: &client::Submit,
    command: &[u8],
) -> bool {
    if submit.session == 0 || submit.sequence == 0 {
        let detail = "a session and a sequence are not 0".to_owned();
        hello::close(connection, CloseReason::Malformed, detail);
        return true;
    }
    if let Some(instead) = S::asks_for_too_many(command) {
        connection.push_refused_write(false, Reason::TooManyKeys, &instead);
        return true;
    }
    let work = core.group.store.inner().work_of(command);
    let name = (submit.session, submit.sequence);
    let taken = requests::take_write(front, core, connection, (work, false), |core, origin| {
        core.write_in_session(origin, name, command)
    });
    if !taken {
        return false;
    }
    state(connection).counters.submits += 1;
    true
}

fn take_query<S: Service>(core: &mut Core<S>, connection: &mut Connection, query: &[u8]) -> bool {
    let Some((form, keys)) = S::form_of_query(query) else {
        connection.push_refused_write(false, Reason::NotServed, "");
        return true;
    };
    let read = ReadLine { line: query, form };
    let taken = requests::take_read(core, connection, read, keys);
    state(connection).counters.queries += u64::from(taken);
    taken
}

/// Writes the answer of the query at the front, if there is room for one; see [`requests::advance`].
pub fn answer_query<S: Service>(
    core: &mut Core<S>,
    connection: &mut Connection,
    progress: ReadProgress,
    room: usize,
) -> bool {
    if room == 0 {
        connection.cut = true;
        return false;
    }
    let mut text = Vec::new();
    let origin = Origin::Client(connection.id, connection.slots.first_number());
    let before = core.counted_by_application();
    let (line, _) = connection.front_line_and_output(progress.line_bytes);
    let form = progress.form;
    if S::answer_query(core, origin, ReadLine { line, form }, &mut text) == AnswerTime::Later {
        connection.slots.set_first_state(ReadState::UnderWay);
        return false;
    }
    core.count_unless_counted(before);
    connection.put_answer(AnswerKind::Answer, &text);
    true
}

/// Tells a client who leads, if that is another than it was told.
pub fn tell_leader<S: Service>(front: &Front, core: &Core<S>, connection: &mut Connection) {
    let closing = connection.closing;
    let Speaks::Native(client) = &mut connection.speaks else {
        return;
    };
    if !client.is_welcome || closing {
        return;
    }
    let Some(leader) = hello::leader(front, core) else {
        return;
    };
    let told = client.told.as_ref();
    if told.is_none_or(|told| leader != (told.replica, told.address.as_str())) {
        let leader = hello::told(leader);
        client.told = Some(leader.clone());
        let said = from_server::Body::Leader(leader);
        put(&mut connection.output, 0, said, b"");
    }
}

/// What is pushed for a connection about to be closed: a frame that is ready.
fn push_frame(connection: &mut Connection, frame: Vec<u8>) {
    connection.push(SlotKind::Asked, Some(frame.into()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorumwire_wire::client::RefusedReason;

    /// A frame holds no more; whoever asked hears that there was more to say.
    #[test]
    fn an_answer_that_fits_no_message_is_refused() {
        for (bytes, is_told) in [
            (ATTACHMENT_BYTES_MAX, true),
            (ATTACHMENT_BYTES_MAX + 1, false),
        ] {
            let mut output = Vec::new();
            NativeClient::default().put_answer(&mut output, AnswerKind::Answer, &vec![0; bytes]);
            let frame = take_client_frame::<FromServer>(&output, ATTACHMENT_BYTES_MAX).unwrap();
            let ClientFrame::Whole { message, .. } = frame else {
                panic!("half a frame");
            };
            match message.body.unwrap() {
                from_server::Body::Answer(_) => assert!(is_told),
                from_server::Body::Refused(refused) => {
                    assert!(!is_told && refused.reason() == RefusedReason::AnswerGone);
                }
                other @ (from_server::Body::Welcome(_)
                | from_server::Body::Goodbye(_)
                | from_server::Body::Leader(_)
                | from_server::Body::Pong(_)) => panic!("{other:?}"),
            }
        }
    }
}

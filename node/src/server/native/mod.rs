//! Clients of the cluster's native protocol (`wire/client.proto`): their frames into requests, answers into
//! frames. Commands have sessions, so that each is carried out once however often and wherever it is asked
//! for; what that takes is `group/sessions`' business.
//!
//! Answers leave in the order of requests, as those of other protocols do. Clients match them by their
//! numbers and count on no order.
mod hello;
pub mod subscription;

use super::admission::Admission;
use super::clients::{AnswerKind, Connection, ReadState, SlotKind};
use super::core::Core;
use super::fronts::Front;
use super::fronts::native::{CloseReason, NativeClient, put};
use super::origin::Origin;
use super::read_line::{AnswerTime, ReadLine, ReadProgress};
use super::service::Service;
use super::take_on::{self, UNKNOWN_CLIENT_BYTES_MAX};
use super::take_outcome::TakeOutcome;
use super::unexpected_tls::say_tls;
use quorumwire_interfaces::{Application as _, Reason};
use quorumwire_wire::client::{self, FromClient, from_client, from_server};
use quorumwire_wire::limits::SESSION_COMMAND_BYTES_MAX;
use quorumwire_wire::{ClientFrame, take_client_frame};
use rustls::ContentType;

/// The client's state: a connection that came here has one.
fn state(connection: &mut Connection) -> &mut NativeClient {
    connection
        .native_mut()
        .expect("requests of clients of the native protocol only come here")
}

/// Takes the first frame off `bytes`.
pub fn take_first<S: Service>(
    admission: &mut Admission,
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
            if !take_message(admission, core, connection, message, attachment) {
                return TakeOutcome::Stalled;
            }
            take_on::count_request(core, consumed);
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
    admission: &mut Admission,
    core: &mut Core<S>,
    connection: &mut Connection,
    message: FromClient,
    attachment: &[u8],
) -> bool {
    use from_client::Body;
    let client = state(connection);
    client.request = message.request;
    match (client.is_welcome, message.body) {
        (false, Some(Body::Hello(hello))) => hello::take(admission, core, connection, &hello),
        (true, Some(Body::Submit(submit))) => {
            connection.last_request = core.group.now;
            return take_submit(admission, core, connection, &submit, attachment);
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
        (true, Some(Body::Subscribe(asked))) if attachment.is_empty() => {
            connection.last_request = core.group.now;
            subscription::take(core, connection, &asked);
        }
        (true, Some(Body::Credit(credit))) if attachment.is_empty() => {
            subscription::take_credit(connection, credit);
        }
        (
            true,
            Some(Body::Ping(_) | Body::Hello(_) | Body::Subscribe(_) | Body::Credit(_)) | None,
        )
        | (false, _) => {
            let detail = "a hello comes first, once; then commands, queries and pings".to_owned();
            hello::close(connection, CloseReason::Malformed, detail);
        }
    }
    true
}

fn take_submit<S: Service>(
    admission: &mut Admission,
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
    let taken = take_on::take_write(
        admission,
        core,
        connection,
        (work, false),
        |core, origin| core.write_in_session(origin, name, command),
    );
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
    let taken = take_on::take_read(core, connection, read, keys);
    state(connection).counters.queries += u64::from(taken);
    taken
}

/// Writes the answer of the first query, if there is room for one.
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
    let (line, _) = connection.first_line_and_output(progress.line_bytes);
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
pub fn tell_leader<S: Service>(admission: &Admission, core: &Core<S>, connection: &mut Connection) {
    let closing = connection.closing;
    let Front::Native(client) = &mut connection.front else {
        return;
    };
    if !client.is_welcome || closing {
        return;
    }
    let Some(leader) = hello::leader(admission, core) else {
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
    connection.push(SlotKind::Question, Some(frame.into()));
}

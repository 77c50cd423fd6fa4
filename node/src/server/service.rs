//! What a server does for one application beside replicating it: the protocols of its own that clients speak,
//! and what is to be done for it from turn to turn. The native protocol is spoken by every server.
use super::Server;
use super::admission::Admission;
use super::clients::{AnswerKind, Connection, Statistics};
use super::connection_id::ConnectionId;
use super::core::{Core, Hosted};
use super::fronts::Protocol;
use super::origin::Origin;
use super::read_line::{AnswerTime, KEYS_OF_A_QUERY, ReadLine, ReadProgress};
use super::take_outcome::TakeOutcome;
use crate::admin::AdminError;
use crate::options::ServerOptions;
use crate::report::Report;
use mio::Registry;
use quorumwire_control::Entry;
use quorumwire_deliver::Next;
use quorumwire_group::FollowerRead;
use quorumwire_interfaces::{Application, CounterSink, Index};
use quorumwire_kv::{MemoryChange, QueryForm};
use rustls::ServerConfig;
use std::marker::PhantomData;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use tokio::sync::oneshot;

/// What a server does for one application. The object is what the server keeps for it beside the group.
///
/// What has a body here suits an application without a protocol of its own.
pub trait Service: Hosted {
    /// What its clients speak beside the native protocol. A port is opened for each.
    const PROTOCOLS: &'static [Protocol];

    // When the server begins.

    /// Opens what it serves beside ports for connections; `address` is where clients of the first of its
    /// protocols connect.
    fn open(_: &ServerOptions, _address: Option<SocketAddr>, _: &Registry) -> anyhow::Result<Self> {
        Ok(Self::default())
    }

    /// The socket from which a plane may answer its clients.
    fn socket(&self) -> Option<anyhow::Result<UdpSocket>> {
        None
    }

    /// Secures connections of its own that come from now on.
    fn secure(&mut self, _: &Arc<ServerConfig>) {}

    /// All is joined; nothing has turned.
    fn begin(_: &mut Server<Self>) {}

    // What clients ask.

    /// Takes the first request off `bytes`, of a client that speaks one of its protocols.
    fn take_first(
        _: &mut Admission,
        _: &mut Core<Self>,
        _: &mut Connection,
        bytes: &[u8],
    ) -> TakeOutcome {
        TakeOutcome::Bytes(bytes.len())
    }

    /// Writes the answer of the first read of such a client, as far as `room` goes. True: all of it.
    fn answer_first(_: &mut Core<Self>, _: &mut Connection, _: ReadProgress, _room: usize) -> bool {
        true
    }

    /// Writes the answer of a read of such a client that need not be the first, without its first keys.
    fn answer_now(
        _: &mut Core<Self>,
        _: Origin,
        _: ReadLine<'_>,
        _keys_done: u32,
        _out: &mut Vec<u8>,
    ) {
    }

    /// Writes the answer that came from the leader to the first read of such a client.
    fn put_read_answer(
        _: &mut Connection,
        _line_bytes_form: (u32, QueryForm),
        _said_quiet: (AnswerKind, bool),
        _answer: &[u8],
    ) {
    }

    /// What to ask the leader for next of any client's read.
    fn line_to_forward(_: ReadProgress, line: &[u8]) -> Vec<u8> {
        line.to_vec()
    }

    /// Whether a read whose answer fits no message is sent to the leader anew, for fewer of its keys.
    fn reads_in_parts(_: &Connection) -> bool {
        false
    }

    /// The leader's answer for some keys of the first read, whose line was made shorter.
    fn take_part(connection: &mut Connection, answer: &[u8]) {
        let first = connection.slots.first_number();
        connection.keep_answer(first, AnswerKind::Answer, answer);
    }

    /// Writes these statistics as they are now.
    fn put_statistics(_: &mut Core<Self>, _: &mut Connection, _: Statistics) {}

    // What clients of the native protocol ask, and followers.

    /// What a query is, and how many keys it counts for; `None`: it is not one that is served.
    fn form_of_query(_query: &[u8]) -> Option<(QueryForm, u32)> {
        Some((QueryForm::default(), KEYS_OF_A_QUERY))
    }

    /// What a read is likely to be in work, beside its own bytes.
    fn work_of_read(core: &Core<Self>, read: ReadLine<'_>) -> usize {
        core.group.store.inner().work_of_query(read.line)
    }

    /// Why a command is not put into the log, because of more keys than a request may have.
    fn asks_for_too_many(_command: &[u8]) -> Option<String> {
        None
    }

    /// What a learner is given next that has had all before this instance; `None`: no values are kept here.
    fn next_value(_: &Core<Self>, _from: u64) -> Option<Next<'_>> {
        None
    }

    /// Whether it is one of the learners.
    fn has_learner(_: &Core<Self>, _learner: u32) -> bool {
        false
    }

    /// The last instance that is decided; it grows with whatever a learner could be given.
    fn last_instance(_: &Core<Self>) -> u64 {
        0
    }

    /// Answers a read out of the state as it is now.
    fn answer_at_once(core: &Core<Self>, read: ReadLine<'_>, out: &mut Vec<u8>) {
        core.group.store.query(read.line, out);
    }

    /// The same, or begins to.
    fn answer_query(
        core: &mut Core<Self>,
        _: Origin,
        read: ReadLine<'_>,
        out: &mut Vec<u8>,
    ) -> AnswerTime {
        Self::answer_at_once(core, read, out);
        AnswerTime::Now
    }

    /// Answers a follower's read out of the state as it is now, or begins to.
    fn answer_follower(core: &mut Core<Self>, read: FollowerRead) {
        let mut answer = Vec::new();
        let origin = Origin::Follower(read.from);
        let (form, _) = Self::form_of_query(&read.line).unwrap_or_default();
        let line = ReadLine {
            line: &read.line,
            form,
        };
        if Self::answer_query(core, origin, line, &mut answer) == AnswerTime::Now {
            core.group.answer_follower_read(read.from, answer.into());
        }
    }

    /// A follower has passed on this write, which goes into the log next.
    fn before_write(_: &mut Core<Self>, _command: &[u8]) {}

    /// Nobody waits for what this connection has asked for any more.
    fn forget(_: &mut Core<Self>, _: ConnectionId) {}

    // Requests that it knows by a number of its own.

    /// Hands over the answer of one.
    fn complete(_: &mut Server<Self>, _number: u64, _: AnswerKind, _answer: &[u8]) {}

    /// One that is a read has leave to be answered at `index`, now or later.
    fn answer_at(_: &mut Server<Self>, _index: Index, _number: u64) {}

    // Turns.

    /// Connections are about to be looked at.
    fn look_at_clients(_: &mut Server<Self>) {}

    /// Takes in what came elsewhere than on connections.
    fn take_in(_: &mut Server<Self>) {}

    /// Goes on with what is longer than a turn.
    fn go_on(_: &mut Server<Self>) {}

    /// Links were written to; answers can still be sent in this turn.
    fn end_turn(_: &mut Server<Self>) {}

    /// Whether the next turn has something to do although nothing wakes it.
    fn is_busy(_: &Core<Self>) -> bool {
        false
    }

    /// Whether all that was taken on, but for requests of connections, is answered.
    fn is_idle(_: &Core<Self>) -> bool {
        true
    }

    /// Every now and then.
    fn housekeeping(_: &mut Server<Self>) {}

    /// A snapshot of another replica took the place of this state.
    fn state_replaced(_: &mut Server<Self>, _before: &mut Self::Application) {}

    /// Somebody wants a state, of which the application has none now. Whether one will be there.
    fn makes_state(_: &mut Server<Self>) -> bool {
        false
    }

    /// Why there will never be a state of the application that could be copied, if that is so.
    fn has_no_state(_: &Core<Self>) -> Option<&'static str> {
        None
    }

    /// Why the digest of a state says nothing about the application, if that is so.
    fn has_no_digest() -> Option<&'static str> {
        None
    }

    /// Whether its clients are served, as far as this replica can know.
    fn serves(_: &Core<Self>) -> bool {
        true
    }

    /// Whether it can go on; the error says why not, and ends the server.
    fn check(_: &mut Server<Self>) -> anyhow::Result<()> {
        Ok(())
    }

    /// Has the plane know what it may do for clients by itself.
    fn lend_to_plane(_: &mut Core<Self>) {}

    /// Whether this entry is put off, because it would take longer than a turn has time for.
    fn puts_off(_: &mut Server<Self>, _: &Entry) -> bool {
        false
    }

    /// A command was applied.
    fn applied(_: &mut Server<Self>) {}

    // People.

    /// What is wrong with what it serves, in words.
    fn faults(_: &Core<Self>) -> Vec<String> {
        Vec::new()
    }

    /// Writes what the report says of the application.
    fn report(_: &Core<Self>, _: &mut Report) {}

    /// What it has counted.
    fn count(&self, _: &Self::Application, _: CounterSink<'_>) {}

    /// All that it could count.
    fn declare(_: CounterSink<'_>) {}

    /// What the answer to a person's command says.
    fn outcome(_answer: &[u8]) -> Result<(), AdminError> {
        Ok(())
    }

    /// How much memory its items may take is to change.
    fn change_memory(
        _: &mut Server<Self>,
        _: MemoryChange,
        answer: oneshot::Sender<Result<(), AdminError>>,
    ) {
        let none = "what this server replicates has no limit of memory";
        answer.send(Err(AdminError::Failed(none.to_owned()))).ok(); // gone: whoever asked has stopped waiting
    }

    /// Nobody is to be given values up to this instance any more.
    fn declare_lost(
        _: &mut Server<Self>,
        _upto: u64,
        answer: oneshot::Sender<Result<(), AdminError>>,
    ) {
        let none = "this server keeps no values for learners";
        answer.send(Err(AdminError::Failed(none.to_owned()))).ok(); // gone: likewise
    }
}

impl<S: Service> Core<S> {
    /// Whether the next turn has something to do although nothing wakes it.
    pub fn is_busy(&self) -> bool {
        S::is_busy(self)
            || self.group.reads.has_late
            || self.group.can_apply()
            || self.group.has_unflushed()
            || self.group.plane_has_more()
    }
}

/// The service of an application that has no protocol of its own: its clients speak the native one.
pub struct Native<A>(PhantomData<A>);

impl<A> Default for Native<A> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<A: Application + Default + 'static> Hosted for Native<A> {
    type Application = A;
}

impl<A: Application + Default + 'static> Service for Native<A> {
    const PROTOCOLS: &'static [Protocol] = &[];
}

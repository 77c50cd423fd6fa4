//! Commands of sessions on their way into the log, here or at the leader.
use super::super::core::{Core, ForwardKind, Origin, Routed};
use bytes::BufMut as _;
use quorumwire_control::Peer;
use quorumwire_interfaces::{Reason, Term};
use quorumwire_kv::ERROR_BYTES_MAX;
use quorumwire_sessions::{ANSWER_BYTES_MAX, SESSION_HEADER_BYTES};
use quorumwire_wire::limits::{COMMAND_BYTES_MAX, SESSION_COMMAND_BYTES_MAX};

/// What a command was refused for is still known when it is asked again.
const _: () = assert!(ERROR_BYTES_MAX <= ANSWER_BYTES_MAX);
const _: () = assert!(SESSION_COMMAND_BYTES_MAX + SESSION_HEADER_BYTES == COMMAND_BYTES_MAX);

impl Core {
    /// A command with its session and its sequence: into the log if we lead, to the leader otherwise.
    pub fn write_in_session(&mut self, origin: Origin, name: (u64, u64), command: &[u8]) -> Routed {
        if self.draining {
            return Routed::refused(Reason::Stopping);
        }
        if self.group.leads() || self.group.waits_since_fast_term() {
            let submitted = self.group.write_in_session(origin, name, command);
            return self.routed(submitted);
        }
        let leader = match (self.route(), origin) {
            (Err(routed), _) => return routed,
            (Ok(_), Origin::Peer(..) | Origin::Plane(..)) => {
                return Routed::refused(Reason::NotLeader);
            }
            (Ok(leader), Origin::Client(..) | Origin::Datagram(_) | Origin::Admin(_)) => leader,
        };
        let bytes = SESSION_HEADER_BYTES + command.len();
        let whole = self
            .group
            .encoded(bytes, |buffer| put(buffer, name, command));
        match self.forward(leader, origin, ForwardKind::Session, whole) {
            Some(_) => Routed::Pending,
            None => self.stall(),
        }
    }

    /// A command of a session that a follower forwarded in this term.
    pub fn take_forward_session(&mut self, from: Peer, term: Term, request: u64, whole: &[u8]) {
        let may = self.member(from.id) == Some(from) && self.takes_writes_of(term);
        let reason = match split(whole) {
            Some(_) if may && self.group.is_full => Reason::DiskFull,
            Some((name, command)) if may => {
                let origin = Origin::Peer(from, request);
                let routed = self.write_in_session(origin, name, command);
                return self.reply_unless_pending(from, request, &routed);
            }
            Some(_) | None => Reason::NotLeader,
        };
        self.refuse_forward(from, request, reason);
    }
}

/// As it goes to the leader.
fn put(buffer: &mut bytes::BytesMut, (session, sequence): (u64, u64), command: &[u8]) {
    buffer.put_u64(session);
    buffer.put_u64(sequence);
    buffer.extend_from_slice(command);
}

/// What [`put`] wrote; `None`: it is something else.
fn split(whole: &[u8]) -> Option<((u64, u64), &[u8])> {
    let (session, rest) = whole.split_first_chunk()?;
    let (sequence, command) = rest.split_first_chunk()?;
    let name = (u64::from_be_bytes(*session), u64::from_be_bytes(*sequence));
    let is_one = name.0 != 0 && name.1 != 0 && command.len() <= SESSION_COMMAND_BYTES_MAX;
    is_one.then_some((name, command))
}

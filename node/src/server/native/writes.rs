//! Commands of sessions on their way into the log, here or at the leader.
use super::super::core::{Core, Origin, Routed};
use super::super::service::Service;
use bytes::BufMut as _;
use quorumwire_group::{Follower, ForwardKind};
use quorumwire_interfaces::Reason;
use quorumwire_sessions::SESSION_HEADER_BYTES;
use quorumwire_wire::limits::{COMMAND_BYTES_MAX, SESSION_COMMAND_BYTES_MAX};

const _: () = assert!(SESSION_COMMAND_BYTES_MAX + SESSION_HEADER_BYTES == COMMAND_BYTES_MAX);

impl<S: Service> Core<S> {
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
            (Ok(_), Origin::Follower(_) | Origin::Plane(..)) => {
                return Routed::refused(Reason::NotLeader);
            }
            (Ok(leader), Origin::Client(..) | Origin::Service(_) | Origin::Admin(_)) => leader,
        };
        let bytes = SESSION_HEADER_BYTES + command.len();
        let whole = self
            .group
            .encoded(bytes, |buffer| put(buffer, name, command));
        match (self.group).forward(leader, origin, ForwardKind::Session, whole) {
            Some(_) => Routed::Pending,
            None => self.stall(),
        }
    }

    /// A command of a session that a follower passed on, and that may be put into the log.
    pub fn take_session_command(&mut self, from: Follower, whole: &[u8]) {
        let Some((name, command)) = split(whole) else {
            return self.group.refuse_follower(from, Reason::NotLeader);
        };
        let routed = self.write_in_session(Origin::Follower(from), name, command);
        self.group.answer_unless_pending(from, routed.into());
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

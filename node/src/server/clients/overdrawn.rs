//! What one connection may keep the others waiting for: it has used up its share of a turn, or has sent what
//! costs much on its way.
use super::{Clients, Connection, ConnectionId, ReadState};
use crate::server::read_line::ReadLine;

/// What the requests of one connection may cost together that are on their way, through the log or to the
/// leader, but for one of them; in bytes that are looked at or moved. The next expensive one waits here,
/// so that those of other connections come between them.
const WORK_WAITING_MAX: usize = 4 << 20;

impl Connection {
    /// Whether a request that is likely to cost so much may be sent on its way.
    pub fn has_room_for_work(&self, work: usize) -> bool {
        work == 0 || self.work_waiting == 0 || self.work_waiting + work <= WORK_WAITING_MAX
    }

    /// Adds a read that is likely to cost the leader so much, and keeps its line.
    pub fn push_forwarded_read(
        &mut self,
        read: ReadLine<'_>,
        keys: u32,
        request: u64,
        work: usize,
    ) {
        self.push_read_line(read, keys, ReadState::Forwarded(request));
        if let Some(slot) = self.slots.last_mut() {
            slot.work = u32::try_from(work).unwrap_or(u32::MAX);
            self.work_waiting += slot.work as usize;
        }
    }
}

impl Clients {
    /// Has the connection looked at in the next turn, behind those that ask for something there.
    pub fn attend_behind_others(&mut self, id: ConnectionId) {
        if let Some(connection) = self.get(id)
            && !connection.is_overdrawn
        {
            connection.is_overdrawn = true;
            self.overdrawn.push(id);
        }
    }

    /// Has those looked at that had used up their share; not before who has just asked for something.
    pub fn let_overdrawn_in(&mut self) {
        if self.has_readable() {
            return; // they wait for a turn at most
        }
        for id in std::mem::take(&mut self.overdrawn) {
            if let Some(connection) = self.get(id) {
                connection.is_overdrawn = false;
                self.enqueue(id.place);
            }
        }
    }

    /// Whether some wait for the next turn who had used up their share.
    pub fn has_overdrawn(&self) -> bool {
        !self.overdrawn.is_empty()
    }
}

//! The ring of entries: a conveyor belt from the plane to its host that also serves what is asked for
//! again. Which slot may be overwritten is decided by the step, not here.
use quorumwire_wire::packet::PAYLOAD_BYTES_MAX;
use std::net::SocketAddr;

/// Most slots of a ring: about 90 MB of payloads.
pub const RING_SLOTS_MAX: u32 = 1 << 16;

/// An entry without its payload.
#[derive(Clone, Copy, Debug, Default)]
pub struct EntryHead {
    /// Its index in the log; 0 in a slot that was never filled.
    pub index: u64,
    /// Term of the entry before.
    pub previous_term: u64,
    /// Client session of the command.
    pub session: u64,
    /// Its number in the session.
    pub sequence: u64,
    /// Checksum of the payload, as it came.
    pub payload_crc32c: u32,
    /// Bytes of the payload.
    pub payload_bytes: u16,
    /// Those that go with a command.
    pub flags: u8,
    /// Leader: the client that waits for an answer.
    pub requester: Option<ReplyAddress>,
}

/// A client that waits for an answer, and how it asked.
#[derive(Clone, Copy, Debug)]
pub enum ReplyAddress {
    /// By a REQUEST.
    Packet(SocketAddr),
    /// By memcached's protocol, with its number for the request.
    Memcached(SocketAddr, u16),
}

/// A power of two of slots.
pub struct Ring {
    stored: Vec<EntryHead>,
    /// One piece of memory for all payloads, taken once.
    payloads: Vec<u8>,
}

impl Ring {
    /// An empty ring. `slots` must be a power of two, at most [`RING_SLOTS_MAX`].
    pub fn new(slots: u32) -> Self {
        assert!(slots.is_power_of_two() && slots <= RING_SLOTS_MAX);
        let slots = slots as usize;
        Self {
            stored: vec![EntryHead::default(); slots],
            payloads: vec![0; slots * PAYLOAD_BYTES_MAX],
        }
    }

    /// Forgets all entries.
    pub fn clear(&mut self) {
        self.stored.fill(EntryHead::default());
    }

    /// Puts an entry into its slot, over whatever was there.
    pub fn put(&mut self, entry: EntryHead, payload: &[u8]) {
        let slot = self.slot(entry.index);
        let start = slot * PAYLOAD_BYTES_MAX;
        self.payloads[start..start + payload.len()].copy_from_slice(payload);
        self.stored[slot] = entry;
    }

    /// An entry with its payload, if its slot holds it.
    pub fn get(&self, index: u64) -> Option<(EntryHead, &[u8])> {
        let slot = self.slot(index);
        let stored = self.stored[slot];
        if index == 0 || stored.index != index {
            return None;
        }
        let start = slot * PAYLOAD_BYTES_MAX;
        let payload = &self.payloads[start..start + usize::from(stored.payload_bytes)];
        Some((stored, payload))
    }

    fn slot(&self, index: u64) -> usize {
        let mask = self.stored.len() as u64 - 1;
        usize::try_from(index & mask).expect("less than the number of slots")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_holds_the_last_entry_put_there() {
        let mut ring = Ring::new(4);
        for index in 1..=6 {
            let payload = vec![u8::try_from(index).unwrap(); usize::try_from(index).unwrap()];
            let entry = EntryHead {
                index,
                payload_bytes: u16::try_from(index).unwrap(),
                ..EntryHead::default()
            };
            ring.put(entry, &payload);
        }
        assert!(ring.get(2).is_none() && ring.get(7).is_none() && ring.get(0).is_none());
        let (stored, payload) = ring.get(3).unwrap();
        assert_eq!((stored.index, payload), (3, &[3, 3, 3][..]));
        ring.clear();
        assert!(ring.get(3).is_none());
    }
}

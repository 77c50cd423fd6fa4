//! What a plane has done and not done, in numbers.
use quorumwire_wire::packet::Reason;

/// Counts since the plane was made. All are numbers of packets.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counters {
    /// Datagrams that came in.
    pub received: u64,
    /// Of these, handed to the host because they are none of ours.
    pub foreign: u64,
    /// Datagrams handed to the network.
    pub sent: u64,
    /// Entries stored.
    pub stored: u64,
    /// Of what was sent: entries sent again.
    pub resent: u64,
    /// Answers given to blind writes.
    pub blind_answers: u64,
    /// Gaps that were not asked for, since the same question was on its way.
    pub gaps_not_asked: u64,
    /// Not sent for want of a key.
    pub without_key: u64,
    /// Not taken, or not as the sender meant it, by the number of the [`Reason`].
    pub by_reason: [u64; Reason::ALL.len()],
}

impl Counters {
    /// How many packets had this reason.
    #[must_use]
    pub fn reason(&self, reason: Reason) -> u64 {
        self.by_reason[reason as usize]
    }

    pub(crate) fn note(&mut self, reason: Reason) {
        if reason != Reason::None {
            self.by_reason[reason as usize] += 1;
        }
    }
}

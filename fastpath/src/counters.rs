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
    /// Answers given to blind writes, memcached clients' too.
    pub blind_answers: u64,
    /// `set` datagrams of memcached clients that were put into the log.
    pub memcached_taken: u64,
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

    /// All of them, by name.
    pub fn each(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("received", self.received);
        sink("foreign", self.foreign);
        sink("sent", self.sent);
        sink("entries_stored", self.stored);
        sink("entries_resent", self.resent);
        sink("blind_answers", self.blind_answers);
        sink("memcached_taken", self.memcached_taken);
        sink("gaps_not_asked", self.gaps_not_asked);
        sink("not_sent_without_key", self.without_key);
        for reason in Reason::ALL {
            if reason != Reason::None {
                sink(reason.name(), self.reason(reason));
            }
        }
    }

    pub(crate) fn note(&mut self, reason: Reason) {
        if reason != Reason::None {
            self.by_reason[reason as usize] += 1;
        }
    }
}

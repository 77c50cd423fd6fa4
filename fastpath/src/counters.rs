//! What a plane has done and not done, in numbers. On a metrics page `plane_` stands in front of their names.
use quorumwire_interfaces::{CounterSink, counters, counters_by};
use quorumwire_wire::packet::PacketReason;

counters! {
    /// Counts since the plane was made. All are numbers of packets.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct Counters {
        /// Datagrams that the data plane received
        pub received: "received",
        /// Datagrams to the data plane that are none of its protocol, clients' questions for the lineage
        /// among them
        pub foreign: "foreign",
        /// Packets that the data plane handed to the network
        pub sent: "sent",
        /// Entries that the data plane stored
        pub stored: "entries_stored",
        /// Entries that the data plane sent again because they were asked for
        pub resent: "entries_resent",
        /// Answers that the data plane gave to blind writes at their commit
        pub blind_answers: "blind_answers",
        /// Memcached `set`s by UDP that the data plane put into the log itself
        pub memcached_taken: "memcached_taken",
        /// Times that nothing was asked behind a gap because the question was on its way
        pub gaps_not_asked: "gaps_not_asked",
        /// Packets not sent because no key to sign them is known
        pub without_key: "not_sent_without_key",
    }
    with {
        /// Not taken, or not as the sender meant it.
        pub reasons: ReasonCounters,
    }
}

counters_by! {
    /// What was not taken, or not as the sender meant it, by reason. A replica's step has none of the Paxos
    /// roles' own reasons.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct ReasonCounters: PacketReason but not [
        None, Configuration, RoundOld, RoundTaken, TwoValues, Trimmed, NoMember
    ] {
        /// Packets dropped because they are too short to be the data plane's
        NotOurs: "not_ours",
        /// Packets dropped because their format's version is unknown
        Version: "version",
        /// Packets with lengths or fields that the data plane does not take
        Malformed: "malformed",
        /// Packets dropped because their authentication tag is wrong; under TLS also those of a fast term
        /// that this replica has no part in
        Tag: "tag",
        /// Packets dropped because their payload's checksum is wrong
        Checksum: "checksum",
        /// Packets dropped because they belong to another log
        Group: "group",
        /// Packets that came while the data plane was not engaged; software serves the requests among
        /// them
        Off: "off",
        /// Packets dropped because their term is earlier than the data plane's
        TermOld: "term_old",
        /// Packets dropped because their term is later than the data plane's
        TermNew: "term_new",
        /// Packets dropped because their sender has no such part in the fast term
        Stranger: "stranger",
        /// Packets dropped because this replica's role takes none of that kind
        Unexpected: "unexpected",
        /// Entries dropped because they are from before the fast term, where software moved them
        BeforeStart: "before_start",
        /// Entries not stored because the one before is not what the leader means
        History: "history",
        /// Packets about an index that was never assigned
        BeyondLast: "beyond_last",
        /// Requests for entries that the data plane no longer holds, or for too many at once; software
        /// repairs the replica that asked
        BehindRing: "behind_ring",
        /// Entries and commands not taken because the server had not taken enough out of the data plane
        /// yet
        RingFull: "ring_full",
        /// Commands not taken because too many entries wait for a commit
        WindowFull: "window_full",
        /// Entries that came again and were acknowledged again
        Repeated: "repeated",
        /// Packets behind entries that are missing, which are asked for
        Gap: "gap",
    }
}

impl Counters {
    /// How many packets had this reason.
    #[must_use]
    pub const fn reason(&self, reason: PacketReason) -> u64 {
        self.reasons.of(reason)
    }

    /// How much each has counted, the reasons among them.
    pub fn each_and_reasons(&self, sink: CounterSink<'_>) {
        self.each(sink);
        self.reasons.each(sink);
    }

    pub(crate) fn note(&mut self, reason: PacketReason) {
        self.reasons.count(reason);
    }
}

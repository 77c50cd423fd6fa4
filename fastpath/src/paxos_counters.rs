//! What a Paxos role's box has done and not done, in numbers. On a metrics page `switch_` stands in front of
//! their names.
use quorumwire_interfaces::{CounterSink, counters, counters_by};
use quorumwire_wire::packet::PacketReason;

counters! {
    /// Counts since the box was made. All are numbers of packets.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct PaxosCounters {
        /// Datagrams that the switch received, those among them that its plane took by itself
        pub received: "received",
        /// Packets that the switch handed to the network
        pub sent: "sent",
        /// Values that an acceptor voted for
        pub stored: "votes",
        /// Values that a coordinator gave an instance
        pub assigned: "values_assigned",
        /// Packets not sent because no key to sign them is known
        pub without_key: "not_sent_without_key",
        /// Packets dropped because too much waits for the disk
        pub disk_behind: "disk_behind",
    }
    with {
        /// Not taken, or not as the sender meant it.
        pub reasons: PaxosReasonCounters,
    }
}

counters_by! {
    /// What was not taken, or not as the sender meant it, by reason. A Paxos role's step has none of a
    /// replica's own reasons.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct PaxosReasonCounters: PacketReason but not [
        None, TermOld, TermNew, BeforeStart, History, BehindRing, RingFull, Gap
    ] {
        /// Packets dropped because they are too short to be the deployment's
        NotOurs: "not_ours",
        /// Packets dropped because their format's version is unknown
        Version: "version",
        /// Packets with lengths or fields that the role does not take
        Malformed: "malformed",
        /// Packets dropped because their authentication tag is wrong
        Tag: "tag",
        /// Packets dropped because their payload's checksum is wrong
        Checksum: "checksum",
        /// Packets dropped because they belong to another deployment, or to one with other numbers of hosts
        /// or another window
        Group: "group",
        /// Packets that came while the box was off: it is a backup, or waits to be let in; software takes
        /// those that are for it
        Off: "off",
        /// Packets that are left to software because their sender has no such part in the deployment
        Stranger: "stranger",
        /// Packets that are left to software because the box takes none of that kind
        Unexpected: "unexpected",
        /// Values not taken because there is no instance left
        BeyondLast: "beyond_last",
        /// Values and questions not taken because their instance is beyond the window: a learner has to
        /// checkpoint
        WindowFull: "window_full",
        /// Values that came again and were voted for again
        Repeated: "repeated",
        /// Packets that are left to software because they are of another configuration
        Configuration: "configuration",
        /// Packets refused because a higher round was promised
        RoundOld: "round_old",
        /// Packets refused because their round was promised to another coordinator of the same number
        RoundTaken: "round_taken",
        /// Values not voted for because another one was voted for in this round
        TwoValues: "two_values",
        /// Packets refused because their instance is forgotten: all learners have it
        Trimmed: "trimmed",
        /// Packets dropped because this acceptor has lost its memory and does not count for their instance
        NoMember: "no_member",
    }
}

impl PaxosCounters {
    /// How many packets were not taken, or not as the sender meant it, for this reason.
    #[must_use]
    pub const fn reason(&self, reason: PacketReason) -> u64 {
        self.reasons.of(reason)
    }

    /// How much each has counted, the reasons among them.
    pub fn each_and_reasons(&self, sink: CounterSink<'_>) {
        self.each(sink);
        self.reasons.each(sink);
    }
}

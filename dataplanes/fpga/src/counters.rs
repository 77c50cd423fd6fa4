//! What the core has counted, as its host shows it.
use crate::card::Card;
use crate::shared::{
    COUNT_ENTRIES, COUNT_FRAMES_BROKEN, COUNT_FRAMES_LOST, COUNT_FRAMES_NOT_TAKEN,
    COUNT_FRAMES_SENT, COUNT_LEFT_LOST, COUNT_NO_NEIGHBOUR, COUNT_NOT_FOR_GROUP,
};
use quorumwire_datagrams::SocketCounters;
use quorumwire_fastpath::{Counters, ReasonCounters};
use quorumwire_interfaces::{Counter, CounterSink, PlaneError, counters};
use quorumwire_wire::packet::PacketReason;
use std::collections::BTreeMap;

counters! {
    /// What the core counts beside the reasons.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct CoreCounters {
        /// Frames for which the core had no room
        pub frames_lost: "core_frames_lost",
        /// Frames that came to the core broken
        pub frames_broken: "core_frames_broken",
        /// Frames that the core had for its host, and for which there was no room
        pub frames_not_taken: "core_frames_not_taken",
        /// Frames that the core sent
        pub frames_sent: "core_frames_sent",
        /// Packets that the core did not send because no Ethernet address was known
        pub no_neighbour: "core_no_neighbour",
        /// Ranges of entries that the core left to its host, and for which there was no room
        pub left_lost: "core_left_lost",
        /// Entries that the core wrote into the log
        pub entries: "core_entries",
        /// Packets that the core dropped because they came to the address of all replicas, and must not
        pub not_for_group: "core_not_for_group",
        /// Frames dropped because too many waited for the simulated core
        pub frames_dropped: "core_frames_dropped",
    }
}

counters! {
    /// What happened between the card and its network.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct NetworkCounters {
        /// Frames that came to the simulated card
        pub received: "card_frames_received",
        /// Frames that the system dropped because too many waited for the simulated card
        pub dropped: "card_frames_dropped",
        /// Frames that the system did not take from the simulated card
        pub not_sent: "card_frames_not_sent",
        /// Times that the system gave the simulated card no frame because of an error
        pub receive_errors: "card_receive_errors",
    }
}

/// As of the last look.
#[derive(Default)]
pub struct Counted {
    core: CoreCounters,
    /// What the engine counts, too: packets handed to the network, entries stored, and the reasons.
    alike: BTreeMap<&'static str, u64>,
}

impl Counted {
    /// What the core has counted by now.
    pub fn of(card: &mut Card) -> Result<Self, PlaneError> {
        let reasons = PacketReason::ALL.len();
        let mut own = |number: u32| card.count(reasons + number as usize);
        let core = CoreCounters {
            frames_lost: own(COUNT_FRAMES_LOST)?,
            frames_broken: own(COUNT_FRAMES_BROKEN)?,
            frames_not_taken: own(COUNT_FRAMES_NOT_TAKEN)?,
            frames_sent: own(COUNT_FRAMES_SENT)?,
            no_neighbour: own(COUNT_NO_NEIGHBOUR)?,
            left_lost: own(COUNT_LEFT_LOST)?,
            entries: own(COUNT_ENTRIES)?,
            not_for_group: own(COUNT_NOT_FOR_GROUP)?,
            frames_dropped: card.frames_dropped(),
        };
        let alike = [("sent", core.frames_sent), ("entries_stored", core.entries)];
        let names = PacketReason::ALL.map(PacketReason::name);
        let counts = names
            .into_iter()
            .enumerate()
            .map(|(number, name)| Ok((name, card.count(number)?)));
        let counts = alike.into_iter().map(Ok).chain(counts);
        Ok(Self {
            core,
            alike: counts.collect::<Result<_, PlaneError>>()?,
        })
    }

    /// All that the engine and the core have counted; what both count is one number.
    pub fn each(&self, engine: &Counters, sink: CounterSink<'_>) {
        engine.each_and_reasons(&mut |counter, count| {
            let in_core = self.alike.get(counter.name).copied().unwrap_or(0);
            sink(counter, count + in_core);
        });
        self.core.each(sink);
    }
}

/// All that this plane counts.
pub const COUNTERS: [&[Counter]; 5] = [
    Counters::DECLARED,
    ReasonCounters::DECLARED,
    CoreCounters::DECLARED,
    NetworkCounters::DECLARED,
    SocketCounters::DECLARED,
];

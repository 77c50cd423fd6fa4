//! What a server counts since its start, whatever it replicates: what the node counts by itself, and all of
//! it for a report.
use super::admission::AdmissionCounters;
use super::budget::CutCounters;
use super::clients::ClientCounters;
use super::fronts::native::NativeCounters;
use super::group_counters::GroupCounters;
use super::in_flight::WorkCounters;
use super::kv::KeyValue;
use super::links::LinkCounters;
use super::plane::Questions;
use super::served::Served;
use super::service::Service;
use super::values::Delivering;
use crate::planes::KINDS;
use crate::report::Durations;
use quorumwire_control::{Counters as RaftCounters, FastCounters};
use quorumwire_group::{ForwardCounters, PlaneCounters, ReadCounters};
use quorumwire_interfaces::{Counter, CounterSink, counters};
use quorumwire_storage::LogCounters;
use std::collections::BTreeMap;

counters! {
    /// What the event loop of this process has done.
    #[derive(Clone, Debug, Default)]
    pub struct LoopCounters {
        /// Peer messages dropped because they belong to no log served here
        pub unknown_group: "message_dropped_unknown_group",
        /// Times this process did not run although it wanted to
        pub pauses: "process_pauses",
        /// How long those times were together
        pub pauses_ms: "process_pauses_milliseconds",
        /// Waits for others or the disk that began with looking, without sleep (option `busy-poll-us`)
        pub busy_polls: "busy_polls",
        /// Those of them that ended with sleep because nothing had come by then
        pub busy_polls_in_vain: "busy_polls_in_vain",
    }
    with {
        /// One turn of the event loop.
        pub turn: Durations,
    }
}

counters! {
    /// What lacked, as of a report.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct WantCounters {
        /// Times a client waited at listen-memcached, listen-redis or listen-client and no file
        /// descriptor was left for it
        pub client_descriptors: "client_accepts_without_descriptor",
        /// Times somebody waited at listen-peer and no file descriptor was left
        pub peer_descriptors: "peer_accepts_without_descriptor",
        /// Lines of this server's log that could not be written to standard error: the reader is too slow
        /// or gone, or the disk is full
        pub log_lines: "log_lines_dropped",
    }
}

/// All that a server counts, as of a report. What there is only with an option is not there without it.
#[derive(Default)]
pub struct Counted {
    pub admission: AdmissionCounters,
    pub work: WorkCounters,
    pub clients: ClientCounters,
    pub native: NativeCounters,
    pub group: GroupCounters,
    pub forwards: ForwardCounters,
    pub reads: ReadCounters,
    pub raft: RaftCounters,
    pub fast: FastCounters,
    pub log: Option<LogCounters>,
    pub links: LinkCounters,
    /// Whether replicas agree on keys of fast terms.
    pub agrees_on_keys: bool,
    pub plane: Option<(PlaneCounters, Questions)>,
    pub turns: CutCounters,
    pub event_loop: LoopCounters,
    pub wants: WantCounters,
}

impl Counted {
    /// Each counter that there is.
    pub fn each(&self, sink: CounterSink<'_>) {
        self.admission.each(sink);
        self.work.each(sink);
        self.clients.each(sink);
        self.native.each(sink);
        self.native.refused.each(sink);
        self.native.closed.each(sink);
        self.group.each(sink);
        self.forwards.each(sink);
        self.reads.each(sink);
        self.raft.each(sink);
        self.fast.each(sink);
        self.fast.left.each(sink);
        if let Some(log) = &self.log {
            log.each(sink);
        }
        self.links.each(sink);
        self.links.refused_by_tls.each(sink);
        if self.agrees_on_keys {
            self.group.term_keys.each(sink);
            self.group.term_keys.dropped.each(sink);
        }
        if let Some((plane, questions)) = &self.plane {
            plane.each(sink);
            questions.each(sink);
        }
        self.turns.each(sink);
        self.event_loop.each(sink);
        self.wants.each(sink);
    }
}

/// The name of every counter that a report of the key-value server can have, and what it counts.
#[must_use]
pub fn declared_counters() -> BTreeMap<String, &'static str> {
    let all = Counted {
        log: Some(LogCounters::default()),
        agrees_on_keys: true,
        plane: Some(Default::default()),
        ..Counted::default()
    };
    let mut declared = BTreeMap::new();
    let mut declare = |counter: &'static Counter, _| {
        let before = declared.insert(counter.name.to_owned(), counter.help);
        assert!(before.is_none(), "{} is declared twice", counter.name);
    };
    all.each(&mut declare);
    KeyValue::declare(&mut declare);
    Served::declare(&mut declare);
    Delivering::declare(&mut declare);
    let of_planes = KINDS.iter().flat_map(|kind| kind.counters).copied();
    let of_planes = of_planes
        .flatten()
        .map(|it| (format!("plane_{}", it.name), it.help));
    declared.extend(of_planes); // planes have most in common
    declared
}

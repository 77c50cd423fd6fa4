//! Whether the program serves its clients, as far as this replica can know: it comes back from its turns, and
//! listens where clients are to connect.
use super::super::core::Core;
use super::program::{Late, Serving, TURN_LATE};
use super::{Served, Server};
use quorumwire_interfaces::counters;

counters! {
    /// Counted since the start.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct HealthCounters {
        /// Times the served program had not come back from a turn in 10 s
        pub turns_late: "served_turns_late",
    }
}

fn late(core: &Core<Served>) -> Option<Late> {
    core.group
        .store
        .inner()
        .program
        .as_ref()
        .and_then(Serving::late)
}

/// What of it is wrong now.
pub fn faults(core: &Core<Served>) -> Vec<String> {
    let late = late(core).map(|it| {
        let (turn, entry, seconds) = (it.turn, it.entry, TURN_LATE.as_secs());
        if it.has_begun {
            format!(
                "the served program has not come back from turn {turn} (of the log's entry {entry}) in {seconds} s: its \
                 clients wait"
            )
        } else {
            format!("the served program has taken no turn in {seconds} s since it was started: its clients wait")
        }
    });
    let service = &core.service;
    let clients = service.clients.iter();
    let missing = clients.flat_map(|it| it.missing_ports(&service.published));
    let missing = missing.map(|port| {
        format!("the served program does not listen at port {port}, which is published: nobody is served there")
    });
    late.into_iter().chain(missing).collect()
}

impl Server {
    /// Whoever reads the log learns of each once.
    pub(super) fn tell_health(&mut self) {
        let late = late(&self.core);
        let service = &mut self.core.service;
        match (service.told_late, late) {
            (None, Some(Late { turn, entry, .. })) => {
                service.health.turns_late += 1;
                let seconds = TURN_LATE.as_secs();
                tracing::warn!(
                    turn,
                    entry,
                    seconds,
                    "the served program has not come back from a turn"
                );
            }
            (Some(Late { turn, entry, .. }), None) => {
                tracing::warn!(
                    turn,
                    entry,
                    "the served program has come back from a turn that took long"
                );
            }
            (None, None) | (Some(_), Some(_)) => {}
        }
        service.told_late = late;
    }
}

//! Asks a switch how it does, in its namespace, which no cut link keeps from that. On a thread of its own:
//! one that hangs keeps nobody waiting.
use super::super::ask;
use super::super::namespaces::Namespaces;
use quorumwire_paxos_process::SwitchReport;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Where each switch is asked; nothing else is in its namespace.
pub const ADDRESS: &str = "127.0.0.1:7480";
const PAUSE: Duration = Duration::from_millis(100);
const TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Default)]
struct Told {
    report: Mutex<Option<SwitchReport>>,
    is_over: AtomicBool,
}

/// What a switch says, until this is dropped.
pub struct Watch(Arc<Told>);

impl Watch {
    /// Begins to ask the one on this machine.
    pub fn start(network: &Namespaces, id: u16) -> anyhow::Result<Self> {
        let told = Arc::<Told>::default();
        let watch = Self(Arc::clone(&told));
        network.spawn_within(id, move || {
            while !told.is_over.load(Ordering::Relaxed) {
                let report = ask::switch(ADDRESS, TIMEOUT);
                *told.report.lock().unwrap_or_else(PoisonError::into_inner) = report;
                thread::sleep(PAUSE);
            }
        })?;
        Ok(watch)
    }

    /// What it said last; none if it does not answer.
    pub fn report(&self) -> Option<SwitchReport> {
        let report = self.0.report.lock();
        report.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }
}

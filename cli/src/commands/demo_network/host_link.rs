//! The demonstration's end of the pipes to a host: orders go in, answers and reports come out.
use super::page::{Outcome, Refusal};
use crate::commands::demo_host::{Order, Report, Said};
use anyhow::Context as _;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;
use tokio::sync::oneshot;

/// Who waits for an answer, and until when.
struct Waiting {
    answer: oneshot::Sender<Outcome>,
    until: Instant,
}

#[derive(Default)]
struct Heard {
    report: Report,
    waiting: BTreeMap<u64, Waiting>,
}

/// A host's pipes.
pub struct HostLink {
    input: ChildStdin,
    heard: Arc<Mutex<Heard>>,
    next_id: u64,
}

fn locked(heard: &Mutex<Heard>) -> MutexGuard<'_, Heard> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl HostLink {
    /// Takes the pipes of a host that was just started. `report` is what it said before.
    pub fn new(child: &mut Child, report: &Report) -> anyhow::Result<Self> {
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (input, output) = pipes.context("its pipes were asked for")?;
        let heard = Arc::new(Mutex::new(Heard {
            report: Report {
                values_per_second: 0.0,
                median_micros: None,
                ..report.clone()
            },
            waiting: BTreeMap::new(),
        }));
        let told = Arc::clone(&heard);
        thread::Builder::new()
            .name("host".to_owned())
            .spawn(move || hear(output, &told))?;
        Ok(Self {
            input,
            heard,
            next_id: 0,
        })
    }

    /// Tells it something that has no answer. One that has ended is found out elsewhere.
    pub fn tell(&mut self, order: &Order) {
        if let Ok(mut line) = serde_json::to_vec(order) {
            line.push(b'\n');
            self.input.write_all(&line).ok();
        }
    }

    /// Asks it something; whoever waits has the answer by then, or is given up by [`Self::expire`].
    pub fn ask(
        &mut self,
        until: Instant,
        answer: oneshot::Sender<Outcome>,
        order: impl FnOnce(u64) -> Order,
    ) {
        let id = self.next_id;
        self.next_id += 1;
        let waiting = Waiting { answer, until };
        locked(&self.heard).waiting.insert(id, waiting);
        self.tell(&order(id));
    }

    /// Tells those that have waited long enough why there is no answer.
    pub fn expire(&self, why: impl Fn() -> Refusal) {
        let now = Instant::now();
        let mut heard = locked(&self.heard);
        let late = heard.waiting.extract_if(.., |_, it| it.until <= now);
        for (_, waiting) in late {
            waiting.answer.send(Err(why())).ok();
        }
    }

    /// How it does, as it said last.
    pub fn report(&self) -> Report {
        locked(&self.heard).report.clone()
    }
}

/// Hears a host until it ends.
fn hear(output: ChildStdout, heard: &Mutex<Heard>) {
    for line in BufReader::new(output).lines() {
        let Some(said) = line.ok().and_then(|it| serde_json::from_str(&it).ok()) else {
            break;
        };
        match said {
            Said::Report(report) => locked(heard).report = report,
            Said::Answer { id, outcome } => {
                if let Some(waiting) = locked(heard).waiting.remove(&id) {
                    let outcome = outcome.map(|it| json!(it)).map_err(Refusal::no_answer);
                    waiting.answer.send(outcome).ok();
                }
            }
        }
    }
    for waiting in std::mem::take(&mut locked(heard).waiting).into_values() {
        let ended = "the host has ended: it is not known whether the value was decided";
        let ended = Refusal::no_answer(ended.to_owned());
        waiting.answer.send(Err(ended)).ok();
    }
}

//! The server of values that are kept for learners: what it has put into the log by itself, and what it tells
//! people.
use super::core::{Core, Hosted};
use super::fronts::Protocol;
use super::origin::Origin;
use super::route_outcome::RouteOutcome;
use super::service::Service;
use crate::admin::AdminError;
use crate::report::{LearnerReport, Report, ReportedPolicy, ValuesReport};
use bytes::BufMut as _;
use quorumwire_control::Now;
use quorumwire_deliver::{Answer, Command, Learner, Next, ValueCounters, Values};
use quorumwire_interfaces::CounterSink;
use std::time::Duration;
use tokio::sync::oneshot;

/// A leader whose options are not what the log says asks for them again after so long.
const ASK_AGAIN: Duration = Duration::from_secs(1);

type Server = super::Server<Delivering>;

/// What a server keeps for the values beside the group.
#[derive(Default)]
pub struct Delivering {
    /// When this leader has asked for what its options say.
    asked_at: Option<Now>,
}

impl Hosted for Delivering {
    type Application = Values;
}

impl Service for Delivering {
    const PROTOCOLS: &'static [Protocol] = &[];

    fn next_value(core: &Core<Self>, from: u64) -> Option<Next<'_>> {
        Some(core.group.store.inner().next(from))
    }

    fn has_learner(core: &Core<Self>, learner: u32) -> bool {
        let learner = Learner::try_from(learner);
        learner.is_ok_and(|it| core.group.store.inner().has_learner(it))
    }

    fn last_instance(core: &Core<Self>) -> u64 {
        core.group.store.inner().last()
    }

    fn housekeeping(server: &mut Server) {
        server.keep_configuration();
        server.core.group.store.inner_mut().free_some();
    }

    fn faults(core: &Core<Self>) -> Vec<String> {
        let values = core.group.store.inner();
        if !values.is_nearly_full() {
            return Vec::new();
        }
        let behind = values.furthest_behind();
        let behind = behind.map_or("there is no learner".to_owned(), |(learner, checkpoint)| {
            format!("learner {learner} is furthest behind, its checkpoint is {checkpoint}")
        });
        vec![format!(
            "less than the longest value may still be kept, so values are refused: {behind}"
        )]
    }

    fn outcome(answer: &[u8]) -> Result<(), AdminError> {
        match Answer::decode(answer) {
            Ok(Answer::Decided(_) | Answer::Trimmed(_)) => Ok(()),
            Ok(Answer::Refused(refusal)) => Err(AdminError::Failed(refusal.to_string())),
            Err(malformed) => Err(AdminError::Failed(malformed.to_string())),
        }
    }

    fn declare_lost(
        server: &mut Server,
        upto: u64,
        answer: oneshot::Sender<Result<(), AdminError>>,
    ) {
        let bytes = Command::DeclareLost { upto }.encode();
        server.write_for_operator(answer, |core, origin| {
            core.write(origin, bytes.len(), |it| it.put_slice(&bytes))
        });
    }

    fn report(core: &Core<Self>, report: &mut Report) {
        let status = core.group.store.inner().status();
        report.items = status.kept;
        report.items_bytes = status.kept_bytes;
        report.memory_used_bytes = status.kept_bytes;
        report.memory_limit_bytes = status.kept_bytes_max;
        report.memory_policy = ReportedPolicy::Refuse;
        let learner = |(id, checkpoint)| LearnerReport { id, checkpoint };
        report.values = Some(ValuesReport {
            last: status.last,
            trimmed: status.trimmed,
            learners: status.learners.into_iter().map(learner).collect(),
        });
    }

    fn count(&self, values: &Values, sink: CounterSink<'_>) {
        values.counters().each(sink);
    }

    fn declare(sink: CounterSink<'_>) {
        ValueCounters::default().each(sink);
    }
}

impl Server {
    /// A leader asks for the learners of its options where the log says something else. Replicas compare
    /// these options when they meet.
    fn keep_configuration(&mut self) {
        let Some(options) = &self.options.values else {
            return;
        };
        let core = &mut self.core;
        let wanted = (&options.learners, options.kept_bytes_max);
        let found = core.group.store.inner().configuration();
        let is_current = core.group.leads() && core.group.applied >= core.group.term_start;
        let now = core.group.now;
        let has_asked = (core.service.asked_at).is_some_and(|at| now.0 < at.0 + ASK_AGAIN);
        if !is_current || has_asked || found.as_ref().map(|it| (&it.0, it.1)) == Some(wanted) {
            return;
        }
        let command = Command::Configure {
            learners: options.learners.clone(),
            kept_bytes_max: options.kept_bytes_max,
        };
        let bytes = command.encode();
        let ticket = core.group.next_ticket(); // nobody waits for it
        let routed = core.write(Origin::Admin(ticket), bytes.len(), |it| {
            it.put_slice(&bytes);
        });
        if matches!(routed, RouteOutcome::Pending) {
            core.service.asked_at = Some(now);
            tracing::info!(
                learners = ?options.learners,
                kept_bytes_max = options.kept_bytes_max,
                "the log is told who the learners are"
            );
        }
    }
}

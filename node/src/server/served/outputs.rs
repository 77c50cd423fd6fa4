//! What replicas' programs say is compared through the log. Here people are told what came of it, and a
//! replica that is outvoted ends.
use super::super::core::Core;
use super::super::given_up::give_up;
use super::{Served, Server};
use crate::report::{OutputDifference, Report};
use quorumwire_interfaces::Incarnation;
use quorumwire_replay::{Judgement, Verdict};
use quorumwire_wire::Membership;

/// What people are shown.
fn difference(verdict: &Verdict, membership: &Membership) -> OutputDifference {
    let Verdict {
        judgement,
        reporter,
        window,
        others,
    } = *verdict;
    let life = Incarnation(reporter.life);
    let mut members = membership.members.iter();
    OutputDifference {
        replica: reporter.replica,
        incarnation: life.to_string(),
        quarantined: judgement == Judgement::Outvoted,
        is_member: members.any(|it| it.id.0 == reporter.replica && it.incarnation == life),
        connection: window.connection,
        first_byte: window.first_byte,
        bytes: u64::from(window.bytes),
        turn: window.turn,
        sum: format!("{:016x}", window.sum),
        others_bytes: u64::from(others.bytes),
        others_sum: format!("{:016x}", others.sum),
    }
}

fn differences(core: &Core<Served>) -> impl Iterator<Item = OutputDifference> {
    let membership = core.group.replica.membership();
    let verdicts = core.group.store.inner().outputs().verdicts();
    verdicts.map(|verdict| difference(verdict, membership))
}

/// Shows people what is known.
pub fn report(core: &Core<Served>, report: &mut Report) {
    report.output_differences = differences(core).collect();
}

/// What of it is wrong now.
pub fn faults(core: &Core<Served>) -> Vec<String> {
    let now = differences(core).filter(|it| it.is_member);
    let texts = now.map(|it| {
        let (replica, place) = (it.replica, it.place());
        if it.quarantined {
            return format!(
                "the program of replica {replica} has said something else than those of most ({place}): it is \
                 quarantined, and is seeded anew when it is started again"
            );
        }
        format!(
            "the program of replica {replica} has said something else than the leader's ({place}), and nobody knows \
             which is right: the leader's stays"
        )
    });
    texts.collect()
}

impl Server {
    /// Whoever reads the log learns of each once. One of a life that is over is history: a replica that
    /// starts carries out the entries that say so again.
    pub(super) fn tell_verdicts(&mut self) {
        let outputs = self.core.group.store.inner().outputs();
        let counts = outputs.counts();
        let known = counts.outvoted + counts.undecided;
        let told = std::mem::replace(&mut self.core.service.told_verdicts, known);
        let new = usize::try_from(known.saturating_sub(told)).unwrap_or(usize::MAX);
        let of_all = outputs.verdicts().count();
        let new = differences(&self.core).skip(of_all.saturating_sub(new));
        for it in new.filter(|it| it.is_member) {
            let (replica, place) = (it.replica, it.place());
            let (sum, others_sum) = (it.sum, it.others_sum);
            if it.quarantined {
                tracing::error!(
                    replica,
                    place,
                    sum,
                    others_sum,
                    "the program of a replica has said something else than those of most: the replica is quarantined"
                );
            } else {
                tracing::error!(
                    replica,
                    place,
                    sum,
                    others_sum,
                    "the program of a replica has said something else than the leader's, and nobody knows which is right"
                );
            }
        }
    }

    /// What this replica's program holds is not what those of most hold: this life of it is over.
    pub(super) fn end_if_outvoted(&mut self) -> anyhow::Result<()> {
        let replay = self.core.group.store.inner();
        if !replay.is_outvoted() {
            return Ok(());
        }
        let own = self.incarnation.to_string();
        let mut differences = differences(&self.core);
        let differs = differences.find(|it| it.quarantined && it.incarnation == own);
        let place = differs.map(|it| it.place()).unwrap_or_default();
        let why = format!(
            "its program has said something else than those of most replicas ({place}): it was quarantined"
        );
        give_up(&self.options.dir, self.incarnation, &why)?;
        anyhow::bail!(
            "{why}. At its next start its data are put aside (given-up-*), and the others bring it up to date"
        )
    }
}

//! What replicas' programs say is compared through the log: this replica reports its part, the leader says
//! what becomes of who differs, and one that is outvoted ends.
use super::super::core::Core;
use super::super::given_up::give_up;
use super::{OUTPUTS, Served, Server, VERDICT};
use crate::report::{OutputDifference, Report};
use quorumwire_control::Now;
use quorumwire_interfaces::{Incarnation, ReplicaId};
use quorumwire_replay::{Command, Judgement, Place, Reporter, Verdict, Voter};
use quorumwire_wire::{MemberRole, Membership};
use std::collections::BTreeMap;
use std::time::Duration;

/// What differs is looked at this often.
const LOOKED_AT_EVERY: Duration = Duration::from_millis(200);
/// A voter that has said nothing of a window on which others differ is not waited for any longer.
const UNDECIDED_AFTER: Duration = Duration::from_secs(10);
/// Windows on which replicas differ whose time is taken.
const TIMED_MAX: usize = 1024;
/// Who lacks more entries than this does again what the log says, and does not report of it.
const BEHIND_MAX: u64 = 1024;

/// What a server keeps for it.
#[derive(Default)]
pub struct Comparison {
    /// What the log says has been done up to now, once.
    has_caught_up: bool,
    /// A verdict is on its way into the log.
    judges: bool,
    not_before: Now,
    /// When it was first seen that replicas differ there.
    since: BTreeMap<Place, Now>,
    /// So many verdicts were told to people.
    told: u64,
}

impl Comparison {
    /// Notes on which windows replicas differ now, with nobody told yet. Whatever is timed already goes on,
    /// so that none waits for ever behind others.
    fn see(&mut self, open: impl Iterator<Item = Place>, now: Now) {
        let mut new = Vec::new();
        let mut since = BTreeMap::new();
        for place in open {
            match self.since.get(&place) {
                Some(at) => {
                    since.insert(place, *at);
                }
                None if new.len() < TIMED_MAX => new.push(place),
                None => {}
            }
        }
        let room = TIMED_MAX - since.len();
        since.extend(new.into_iter().take(room).map(|place| (place, now)));
        self.since = since;
    }

    fn is_overdue(&self, place: Place, now: Now) -> bool {
        let since = self.since.get(&place);
        since.is_some_and(|since| now.0.saturating_sub(since.0) >= UNDECIDED_AFTER)
    }
}

/// Those whose word counts, by their present lives.
fn voters(membership: &Membership, is_heard: impl Fn(ReplicaId) -> bool) -> Vec<Voter> {
    let voters = membership.members.iter();
    let voters = voters.filter(|it| it.role == MemberRole::Voter);
    let voters = voters.map(|it| Voter {
        reporter: Reporter {
            replica: it.id.0,
            life: it.incarnation.0,
        },
        is_heard: is_heard(it.id),
    });
    voters.collect()
}

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
    /// Reports what this replica's program has said, and judges who differs if this replica leads.
    pub(super) fn compare_outputs(&mut self, now: Now) {
        self.tell_verdicts();
        let replay = self.core.group.store.inner();
        if !replay.has_begun() || replay.is_outvoted() {
            return;
        }
        self.report_outputs(now);
        if self.core.group.leads() {
            self.judge_outputs(now);
        } else {
            self.core.service.comparison.since.clear();
        }
    }

    fn report_outputs(&mut self, now: Now) {
        let group = &mut self.core.group;
        let lacks = group
            .replica
            .commit_index()
            .0
            .saturating_sub(group.applied.0);
        if lacks > BEHIND_MAX || group.replica.leader().is_none() {
            return;
        }
        let members = group.replica.membership().members.len();
        let replay = group.store.inner_mut();
        let last_turn = replay.outputs().last_turn();
        let (Some(program), Some(reporter)) = (&mut replay.program, replay.reporter) else {
            return;
        };
        if !std::mem::replace(&mut self.core.service.comparison.has_caught_up, true) {
            program.checker.skip_before(last_turn);
        }
        let Some(windows) = program.checker.next_report(now) else {
            return;
        };
        let command = Command::Outputs {
            reporter,
            members: u16::try_from(members).unwrap_or(u16::MAX),
            windows,
        };
        if !self.propose(OUTPUTS, &command.encode()) {
            self.comparison_said(true, false);
        }
    }

    /// What became of a report, or of a verdict.
    pub(super) fn comparison_said(&mut self, is_report: bool, is_done: bool) {
        if !is_report {
            self.core.service.comparison.judges = false;
        } else if let Some(program) = &mut self.core.group.store.inner_mut().program {
            program.checker.report_ended(is_done);
        }
    }

    fn judge_outputs(&mut self, now: Now) {
        let comparison = &mut self.core.service.comparison;
        if comparison.judges || now < comparison.not_before {
            return;
        }
        comparison.not_before = Now(now.0 + LOOKED_AT_EVERY);
        let replay = self.core.group.store.inner();
        let outputs = replay.outputs();
        let Some(reporter) = replay.reporter.filter(|_| outputs.are_disputed()) else {
            comparison.since.clear();
            return;
        };
        comparison.see(outputs.undecided(reporter), now);
        let connected = &self.core.group.peers.connected;
        let is_heard = |id: ReplicaId| id.0 == reporter.replica || connected.contains_key(&id);
        let voters = voters(self.core.group.replica.membership(), is_heard);
        let is_overdue = |place| comparison.is_overdue(place, now);
        if let Some(verdict) = outputs.next_verdict((reporter, &voters), is_overdue) {
            let command = Command::Verdict { verdict, voters };
            let judges = self.propose(VERDICT, &command.encode());
            self.core.service.comparison.judges = judges;
        }
    }

    /// Whoever reads the log learns of each once.
    fn tell_verdicts(&mut self) {
        let outputs = self.core.group.store.inner().outputs();
        let counts = outputs.counts();
        let known = counts.outvoted + counts.undecided;
        let told = std::mem::replace(&mut self.core.service.comparison.told, known);
        let new = usize::try_from(known.saturating_sub(told)).unwrap_or(usize::MAX);
        let of_all = outputs.verdicts().count();
        for it in differences(&self.core).skip(of_all.saturating_sub(new)) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_replicas_differ_in_is_overdue_after_a_while() {
        let mut comparison = Comparison::default();
        let at = |seconds: u64| Now(Duration::from_secs(100 + seconds));
        let (first, second) = ((1, 0), (1, 1536));
        comparison.see([first].into_iter(), at(0));
        comparison.see([first, second].into_iter(), at(4));
        assert!(!comparison.is_overdue(first, at(9)));
        assert!(comparison.is_overdue(first, at(10)) && !comparison.is_overdue(second, at(10)));
        // They agree there, and differ again later.
        comparison.see([second].into_iter(), at(11));
        comparison.see([first, second].into_iter(), at(12));
        assert!(comparison.is_overdue(second, at(14)) && !comparison.is_overdue(first, at(14)));
        // Of many the first are timed, and go on being timed when others come in front of them.
        comparison.see((1000..4000).map(|byte| (2, byte)), at(20));
        assert_eq!(comparison.since.len(), TIMED_MAX);
        comparison.see((0..4000).map(|byte| (2, byte)), at(29));
        comparison.see((1000..4000).map(|byte| (2, byte)), at(30));
        assert!(comparison.is_overdue((2, 1000), at(30)));
        assert!(!comparison.is_overdue((2, 3000), at(30)));
        // They are decided: those behind them come to their turn.
        comparison.see((3000..4000).map(|byte| (2, byte)), at(31));
        comparison.see((3000..4000).map(|byte| (2, byte)), at(41));
        assert!(comparison.is_overdue((2, 3999), at(41)));
    }
}

//! Why writes are refused, or wait, and for whom; and whether a clock is wrong. For people: decides nothing.
use super::clock;
use super::core::{Core, Hosted};
use quorumwire_control::{LOG_TIME_FAULT_MS, Status};
use quorumwire_wire::{CommitQuorum, MemberRole};
use std::time::Duration;

/// Writes that a quorum lacks for less than this are on their way.
const USUAL: Duration = Duration::from_secs(1);

impl<S: Hosted> Core<S> {
    /// Looks at how far writes have come, and at the clock.
    pub fn watch_commits_and_clock(&mut self) {
        let index = self.group.replica.commit_index();
        if !self.waits_for_commit() || index != self.last_commit.index {
            self.last_commit.at = self.group.now;
            self.last_commit.index = index;
        }
        let fault = self.clock_fault();
        let was_off = std::mem::replace(&mut self.last_commit.clock_is_off, fault.is_some());
        match fault {
            Some(fault) if !was_off => {
                tracing::warn!(fault, "the log's time and this replica's clock differ");
            }
            None if was_off => {
                tracing::info!("the log's time and this replica's clock agree again");
            }
            Some(_) | None => {}
        }
    }

    fn waits_for_commit(&self) -> bool {
        self.group.leads() && self.group.last_index() > self.group.replica.commit_index()
    }

    /// Why no write is carried out now, as far as this replica knows.
    pub fn why_no_writes(&self) -> Option<String> {
        let stands = self.group.now.0.saturating_sub(self.last_commit.at.0) > USUAL;
        if self.waits_for_commit() && stands {
            let text = who_lacks(&self.group.replica.status(), self.group.is_full);
            return text.or_else(|| self.journal.fault());
        }
        self.journal.fault()
    }

    /// By how much the log's time is ahead of this replica's clock, in milliseconds; of a leader also by how
    /// much it is behind.
    pub fn log_time_ahead_ms(&self) -> i64 {
        if self.group.leads() {
            return self.group.clock.ahead_ms(self.group.now);
        }
        let ahead_ms = self.group.told_time().0.saturating_sub(clock::wall_ms());
        i64::try_from(ahead_ms).unwrap_or(i64::MAX)
    }

    /// What is wrong with the clock, or was with a leader's.
    pub fn clock_fault(&self) -> Option<String> {
        let ahead_ms = self.log_time_ahead_ms();
        if ahead_ms.unsigned_abs() <= LOG_TIME_FAULT_MS {
            return None;
        }
        let side = if ahead_ms > 0 { "ahead of" } else { "behind" };
        Some(format!(
            "the log's time is {} s {side} this replica's clock: a clock is wrong, or was; until both agree, time \
             runs slower or faster by a tenth",
            ahead_ms.unsigned_abs() / 1000
        ))
    }
}

/// Of a leader whose next entry is not committed: which voters have not stored it.
fn who_lacks(status: &Status, is_full: bool) -> Option<String> {
    let next = status.commit_index.next();
    let mut lacking = Vec::new();
    for member in &status.membership.members {
        if member.role != MemberRole::Voter {
            continue;
        }
        let follower = status.followers.iter().find(|it| it.id == member.id);
        lacking.extend(match follower {
            Some(it) if it.match_index >= next => None,
            Some(it) if it.active => Some(format!("{} (its disk may be full)", member.id)),
            Some(_) => Some(format!("{} (not heard)", member.id)),
            None if status.persisted_index >= next => None,
            None if is_full => Some(format!("{} (disk full)", member.id)),
            None => Some(format!("{} (its disk is behind)", member.id)),
        });
    }
    let of = match status.membership.quorum {
        CommitQuorum::Majority => "a majority",
        CommitQuorum::All => "all (quorum all)",
    };
    let commit = status.commit_index;
    (!lacking.is_empty()).then(|| {
        format!(
            "writes are not carried out: {of} must store what stands behind entry {commit}, and these have not: \
             replica {}",
            lacking.join(", ")
        )
    })
}

#[cfg(test)]
#[path = "standstill_test.rs"]
mod tests;

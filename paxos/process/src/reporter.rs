//! What a host's driver tells people: what has changed, and what goes wrong, seldom enough to be read.
use crate::status::SwitchCounters;
use quorumwire_fastpath::PaxosCounters;
use quorumwire_paxos::{Ignored, Noted, Turn};
use quorumwire_paxos_hosts::{Happened, Since};
use quorumwire_wire::packet::PacketReason;
use std::net::SocketAddr;
use std::time::Duration;

/// The same complaint comes at most this often.
const COMPLAINT_PAUSE: Duration = Duration::from_secs(1);
/// Who announces a new life of an acceptor for so long, and does not answer where others know that one, is
/// another one, or cannot be reached.
const UNREACHED: Duration = Duration::from_secs(1);
/// When it was heard before that, it is gone.
const UNREACHED_GONE: Duration = Duration::from_secs(2);

/// An acceptor that announces a new life, from an address.
#[derive(Clone, Copy, Debug)]
struct Announcing {
    acceptor: u8,
    from: SocketAddr,
    since: Since,
    last: Since,
}

#[derive(Default)]
pub(crate) struct Reporter {
    /// What has happened, for the metrics.
    pub(crate) counters: SwitchCounters,
    now: Since,
    next_of_window: Since,
    next_of_values: Since,
    window_full: u64,
    announcing: Option<Announcing>,
    next_of_unreached: Since,
}

impl Reporter {
    /// Something has happened.
    pub(crate) fn happened(&mut self, what: &Happened) {
        self.count(what);
        match what {
            Happened::Turned(Turn::Announced { acceptor }, Some(from)) => {
                self.announced(*acceptor, *from);
            }
            Happened::Turned(turn, by) => turned(*turn, *by),
            Happened::Noted(Noted::LetIn) => tracing::info!("the acceptor was let in"),
            Happened::Noted(Noted::LaterLife { life }) => {
                let is_due = self.is_values_due();
                if is_due {
                    tracing::error!(
                        life,
                        "somebody knows of a later life of this acceptor: another one runs with its number, or its folder is an old copy; it says nothing until that is mended"
                    );
                }
            }
            Happened::TwoValues(header) if self.is_values_due() => {
                tracing::error!(
                    instance = header.index,
                    round = header.term,
                    "two values in one round: two coordinators have one number"
                );
            }
            Happened::Ignored(why @ (Ignored::TwoValues | Ignored::Contradiction), header)
                if self.is_values_due() =>
            {
                tracing::error!(
                    ?why,
                    instance = header.index,
                    acceptor = header.sender,
                    "votes contradict each other"
                );
            }
            Happened::NoSuchInstance(upto) => {
                tracing::warn!(upto, "there is no such instance to be forgotten");
            }
            Happened::CannotBegin(error) => {
                tracing::error!(?error, "the box takes no role");
            }
            Happened::Trimmed(_)
            | Happened::Noted(Noted::Nothing)
            | Happened::TwoValues(_)
            | Happened::Ignored(..) => {}
        }
    }

    fn count(&mut self, what: &Happened) {
        let counters = &mut self.counters;
        match what {
            Happened::Turned(Turn::Asks { .. }, _) => counters.rounds_asked += 1,
            Happened::Turned(Turn::Coordinates { .. }, _) => counters.take_overs += 1,
            Happened::Turned(Turn::StandsBy { .. }, _) => counters.stood_by += 1,
            Happened::Noted(Noted::LetIn) => counters.let_in += 1,
            Happened::Noted(Noted::LaterLife { .. }) => counters.later_lives += 1,
            Happened::Trimmed(_) => counters.trims += 1,
            Happened::Turned(Turn::Announced { .. }, _) => counters.announcements += 1,
            Happened::Turned(Turn::Nothing | Turn::SameNumber | Turn::NoRoundLeft, _)
            | Happened::Noted(Noted::Nothing)
            | Happened::TwoValues(_)
            | Happened::Ignored(..)
            | Happened::NoSuchInstance(_)
            | Happened::CannotBegin(_) => {}
        }
    }

    /// Votes were made durable, in this time.
    pub(crate) fn synced(&mut self, lasted: Duration) {
        let counters = &mut self.counters;
        counters.syncs += 1;
        counters.sync_us += micros(lasted);
        counters.sync_longest_us = counters.sync_longest_us.max(micros(lasted));
    }

    /// The folder was written anew, in this time.
    pub(crate) fn rewritten(&mut self, lasted: Duration) {
        self.counters.rewrites += 1;
        self.counters.rewrite_us += micros(lasted);
    }

    /// Time has passed.
    pub(crate) fn tick(&mut self, now: Since) {
        self.now = now;
    }

    /// Looks at what the box has counted. `last`: which learner has kept least, and how far.
    pub(crate) fn look(&mut self, counters: &PaxosCounters, last: Option<(u8, u64)>) {
        let now = self.now;
        let full = counters.reason(PacketReason::WindowFull);
        if full > self.window_full && now >= self.next_of_window {
            self.next_of_window = now + COMPLAINT_PAUSE;
            let values = full - self.window_full;
            if let Some((learner, kept)) = last {
                tracing::warn!(
                    values,
                    learner,
                    kept,
                    "the window is full: values are not taken until this learner has checkpointed more"
                );
            } else {
                tracing::warn!(
                    values,
                    "the window is full, and nothing was heard of several learners: values are not taken until they \
                     have checkpointed more"
                );
            }
            self.window_full = full;
        }
    }

    /// Of several that do so, the one that was first.
    fn announced(&mut self, acceptor: u8, from: SocketAddr) {
        let now = self.now;
        let new = Announcing {
            acceptor,
            from,
            since: now,
            last: now,
        };
        let going_on = self
            .announcing
            .filter(|it| now.saturating_sub(it.last) < UNREACHED_GONE);
        let mut announcing = going_on.unwrap_or(new);
        if (announcing.acceptor, announcing.from) == (acceptor, from) {
            announcing.last = now;
        }
        self.announcing = Some(announcing);
        if let Some((acceptor, from)) = self.unreached()
            && now >= self.next_of_unreached
        {
            self.next_of_unreached = now + COMPLAINT_PAUSE;
            tracing::error!(
                acceptor,
                heard_from = %from,
                "an acceptor announces a new life and does not answer where the deployment's file has it: two have its number, or nothing reaches it there"
            );
        }
    }

    /// An acceptor that announces itself from there, and does not answer where others know it.
    pub(crate) fn unreached(&self) -> Option<(u8, SocketAddr)> {
        let it = self.announcing?;
        let goes_on = self.now.saturating_sub(it.last) < UNREACHED_GONE;
        (goes_on && it.last.saturating_sub(it.since) >= UNREACHED).then_some((it.acceptor, it.from))
    }

    fn is_values_due(&mut self) -> bool {
        let is_due = self.now >= self.next_of_values;
        if is_due {
            self.next_of_values = self.now + COMPLAINT_PAUSE;
        }
        is_due
    }
}

fn micros(lasted: Duration) -> u64 {
    u64::try_from(lasted.as_micros()).unwrap_or(u64::MAX)
}

fn turned(turn: Turn, by: Option<SocketAddr>) {
    match turn {
        Turn::Nothing | Turn::Announced { .. } => {}
        Turn::Asks { round } => tracing::info!(round, "the coordinator asks for a round"),
        Turn::Coordinates { round, next } => tracing::info!(round, next, "it coordinates"),
        Turn::StandsBy { round } => {
            tracing::info!(round, "another one coordinates; it is a backup");
        }
        Turn::NoRoundLeft => {
            tracing::error!("there are no higher rounds: it does not coordinate any more");
        }
        Turn::SameNumber => tracing::error!(
            heard_from = by.map(|it| it.to_string()),
            "another coordinator has this number: this one stops until it is told to take over"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever is asked where it is answers soon; who goes on announcing itself is said, until it is gone.
    #[test]
    fn an_acceptor_that_announces_itself_and_is_not_reached_is_said() {
        let from: SocketAddr = "10.0.0.9:7500".parse().expect("an address");
        let mut reporter = Reporter::default();
        let mut announced = |ms, acceptor| {
            reporter.tick(Duration::from_millis(ms));
            reporter.happened(&Happened::Turned(Turn::Announced { acceptor }, Some(from)));
            reporter.unreached()
        };
        assert_eq!([0, 20, 900].map(|ms| announced(ms, 1)), [None; 3]);
        assert_eq!(announced(950, 2), None);
        assert_eq!(announced(1000, 1), Some((1, from)));
        assert_eq!(announced(1100, 2), Some((1, from)), "the first one");
        assert_eq!(announced(3100, 2), None, "another one, from now on");
        assert_eq!(reporter.counters.announcements, 7);
        reporter.tick(Duration::from_secs(9));
        assert_eq!(reporter.unreached(), None);
    }
}

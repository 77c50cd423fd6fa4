//! Writes that were sent to a leader which another has replaced. It may still find out what became of them: one that
//! handed its office over is alive and soon does. One that hangs, or is cut off, does not, and its connection looks
//! alive for much longer than it takes to elect another.
use super::Server;
use super::core::{Core, Forward};
use quorumwire_control::{Now, RoleChange};
use quorumwire_interfaces::{ReplicaId, Term};
use std::time::Duration;

/// Who leads.
#[derive(Clone, Copy, Debug)]
struct Successor {
    id: ReplicaId,
    term: Term,
    /// For how long that has been known.
    known_for: Duration,
}

/// Since when the leader has been known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Succession {
    term: Term,
    since: Now,
}

impl Succession {
    /// Leadership changed hands, or may have.
    pub fn note(&mut self, change: &RoleChange, now: Now) {
        if change.leader.is_some() && change.term > self.term {
            self.term = change.term;
            self.since = now;
        }
    }
}

impl Forward {
    /// Whether its answer is waited for no longer: whoever was to give it leads no more, and says nothing at all, or has
    /// had its time to find out.
    fn is_left_behind(&self, by: Successor, is_quiet: bool, patience: Duration) -> bool {
        let is_replaced = !self.is_read && self.term < by.term && self.to.id != by.id;
        is_replaced && (is_quiet || by.known_for > patience)
    }
}

impl Core {
    /// The numbers of those that are left behind. Nearly always there is nothing to look at.
    fn left_behind(&self, patience: Duration) -> Vec<u64> {
        let term = self.group.replica.term();
        let sent_before = |forward: &Forward| forward.term < term;
        let (Some(first), Some(id)) = (self.forwards.values().next(), self.group.replica.leader())
        else {
            return Vec::new();
        };
        if !sent_before(first) {
            return Vec::new(); // nor is any behind it: terms only grow
        }
        let known_for = self.group.now.0.saturating_sub(self.succession.since.0);
        let successor = Successor {
            id,
            term,
            known_for,
        };
        let sent_before = self.forwards.iter().take_while(|(_, it)| sent_before(it));
        let left_behind = sent_before.filter(|(_, forward)| {
            let is_quiet = self.peers.is_quiet(forward.to, self.group.now);
            forward.is_left_behind(successor, is_quiet, patience)
        });
        left_behind.map(|(request, _)| *request).collect()
    }
}

impl Server {
    /// Answers writes whose leader was replaced, as those that nobody can tell what became of. They are not sent
    /// again: they may be in the log.
    pub fn give_up_left_behind(&mut self) {
        let left_behind = self.core.left_behind(self.options.election_timeout);
        self.give_up_forwards(left_behind);
    }
}

#[cfg(test)]
mod tests {
    use super::super::core::{Origin, Routed};
    use super::super::plane_turn::tests::{HEARTBEAT, config, core_of_one, core_with};
    use super::*;
    use quorumwire_control::{Config, Input, Output, Peer, Promise, Role};
    use quorumwire_interfaces::{Incarnation, Index, Reason};

    const PATIENCE: Duration = Duration::from_millis(400);

    fn forward(to: u16, term: u64) -> Forward {
        Forward {
            origin: Origin::Datagram(1),
            is_read: false,
            to: Peer {
                id: ReplicaId(to),
                ..Peer::default()
            },
            term: Term(term),
            at: Now::default(),
        }
    }

    fn successor(id: u16, term: u64, known_for: Duration) -> Successor {
        Successor {
            id: ReplicaId(id),
            term: Term(term),
            known_for,
        }
    }

    #[test]
    fn a_write_sent_to_a_silent_leader_is_given_up_once_another_leads() {
        let at_once = successor(2, 6, Duration::ZERO);
        assert!(forward(1, 5).is_left_behind(at_once, true, PATIENCE));
        // Who leads, or led on, answers by itself; and of this term's leader nothing else is known.
        assert!(!forward(2, 5).is_left_behind(at_once, true, PATIENCE));
        assert!(!forward(1, 6).is_left_behind(at_once, true, PATIENCE));
        let read = Forward {
            is_read: true,
            ..forward(1, 5)
        };
        assert!(!read.is_left_behind(at_once, true, PATIENCE));
    }

    #[test]
    fn a_leader_that_can_still_be_heard_has_a_while_to_find_out() {
        for (known_for, is_given_up) in [
            (Duration::ZERO, false),
            (PATIENCE, false),
            (PATIENCE + Duration::from_millis(1), true),
        ] {
            let successor = successor(2, 6, known_for);
            let given_up = forward(1, 5).is_left_behind(successor, false, PATIENCE);
            assert_eq!(given_up, is_given_up, "{known_for:?}");
        }
    }

    /// Nothing can be kept for a client that speaks UDP, so it hears why its request would have to wait.
    #[test]
    fn without_a_leader_nobody_is_told_that_there_are_too_many_requests() {
        let core = core_of_one();
        assert_eq!(core.why_stalled(), Reason::NoLeader);
        assert_eq!(core.why_not_read(forward(1, 5).to), Reason::NoLeader);
    }

    fn member(id: u16) -> Peer {
        Peer {
            id: ReplicaId(id),
            incarnation: Incarnation(1),
        }
    }

    /// Two replicas, 0 and 1, that have met.
    fn two() -> [Core; 2] {
        [0, 1].map(|id| {
            let mut core = core_with(Config {
                me: member(id),
                initial_members: vec![ReplicaId(0), ReplicaId(1)],
                plane: false,
                ..config()
            });
            core.group
                .step(Input::PeerUp(member(1 - id), Promise::default()));
            core
        })
    }

    /// Does what they ask for until they ask for nothing.
    fn exchange(cores: &mut [Core; 2]) {
        let mut is_quiet = false;
        while !is_quiet {
            is_quiet = true;
            for (from, to) in [(0_u16, 1_u16), (1, 0)] {
                let core = &mut cores[usize::from(from)];
                core.group
                    .replica
                    .flush(core.group.now, &mut core.group.outputs);
                for output in std::mem::take(&mut core.group.outputs) {
                    is_quiet = false;
                    if let Output::Persist {
                        ticket,
                        hard_state,
                        entries,
                    } = output
                    {
                        let core = &mut cores[usize::from(from)];
                        let done = core.journal.persist(ticket, hard_state, &entries);
                        core.group.step(Input::Persisted(done.unwrap().unwrap()));
                    } else if let Output::Send { message, .. } = output {
                        let from = member(from);
                        cores[usize::from(to)]
                            .group
                            .step(Input::Message { from, message });
                    }
                }
            }
        }
    }

    /// Its clients wait for another leader: they have not sent too much.
    #[test]
    fn while_a_leader_hands_over_nobody_is_told_that_there_are_too_many_requests() {
        let mut cores = two();
        for _ in 0..50 {
            for core in &mut cores {
                core.group.now.0 += HEARTBEAT;
                core.group.step(Input::Timeout);
            }
            exchange(&mut cores);
        }
        let core = &mut cores[0];
        assert!(core.group.leads() && core.group.replica.commit_index() > Index(0));
        assert_eq!(core.why_stalled(), Reason::Busy);
        let ticket = core.next_ticket();
        core.group.step(Input::Transfer(ticket, Some(ReplicaId(1))));
        let routed = core.write(Origin::Datagram(1), 1, |it| it.extend_from_slice(b"x"));
        assert!(matches!(routed, Routed::Stalled) && core.group.leads());
        assert_eq!(core.why_stalled(), Reason::NoLeader);
    }

    #[test]
    fn that_while_begins_with_the_first_word_of_each_new_leader() {
        let change = |term: u64, leader: Option<u16>| RoleChange {
            role: Role::Follower,
            term: Term(term),
            leader: leader.map(ReplicaId),
        };
        let at = |ms: u64| Now(Duration::from_millis(ms));
        let mut succession = Succession::default();
        for (ms, change, since) in [
            (10, change(1, None), 0),
            (20, change(1, Some(1)), 20),
            (30, change(1, Some(1)), 20),
            (40, change(2, None), 20),
            (50, change(2, Some(2)), 50),
        ] {
            succession.note(&change, at(ms));
            assert_eq!(succession.since, at(since), "at {ms} ms");
        }
    }
}

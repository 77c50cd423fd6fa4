//! What all hosts of a deployment agree on.
use quorumwire_wire::packet::{
    ACCEPTORS_MAX, Header, INSTANCE_WINDOW_MAX, Kind, MAGIC, PAYLOAD_BYTES_MAX, ROUND_OWNERS,
    VERSION,
};
use quorumwire_wire::payload_checksum;

/// There are instances up to here, and a window behind. No deployment lives so long.
pub(crate) const INSTANCE_MAX: u64 = u64::MAX - 2 * INSTANCE_WINDOW_MAX as u64;

/// How many there are of each role, numbered from 0.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Deployment {
    /// Which deployment: the group of its packets.
    pub group: u32,
    /// 1 to 7.
    pub acceptors: u8,
    /// At least 1: who coordinates first, and its backups.
    pub coordinators: u8,
    /// At least 1.
    pub learners: u8,
    /// Acceptors forget what so many learners have kept: all, unless one that was away is given the values by
    /// the others.
    pub copies: u8,
    /// Instances that can be open at a time: a power of two, at most [`INSTANCE_WINDOW_MAX`].
    pub window: u32,
}

/// Why there can be no such deployment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Impossible {
    /// 1 to 7 acceptors.
    Acceptors,
    /// At least one coordinator.
    Coordinators,
    /// At least one learner.
    Learners,
    /// One to all learners have to have a copy.
    Copies,
    /// Coordinators and learners together have at most 256 numbers of rounds.
    Owners,
    /// The window is no power of two, or too large.
    Window,
}

impl Deployment {
    /// Whether there can be such a deployment.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self) -> Result<(), Impossible> {
        let owners = usize::from(self.coordinators) + usize::from(self.learners);
        if self.acceptors == 0 || usize::from(self.acceptors) > ACCEPTORS_MAX {
            Err(Impossible::Acceptors)
        } else if self.coordinators == 0 {
            Err(Impossible::Coordinators)
        } else if self.learners == 0 {
            Err(Impossible::Learners)
        } else if self.copies == 0 || self.copies > self.learners {
            Err(Impossible::Copies)
        } else if owners > ROUND_OWNERS {
            Err(Impossible::Owners)
        } else if !self.window.is_power_of_two() || self.window as usize > INSTANCE_WINDOW_MAX {
            Err(Impossible::Window)
        } else {
            Ok(())
        }
    }

    /// Whose number a learner's rounds have: those behind the coordinators'.
    #[must_use]
    pub fn owner_of_learner(&self, learner: u8) -> u8 {
        self.coordinators.saturating_add(learner)
    }

    /// Whether rounds of this owner are a coordinator's, for all instances.
    #[must_use]
    pub fn is_coordinators(&self, owner: u8) -> bool {
        owner < self.coordinators
    }

    /// What a packet begins with.
    pub(crate) fn header(&self, kind: Kind, sender: u8) -> Header {
        Header {
            magic: MAGIC,
            version: VERSION,
            kind: kind as u8,
            sender,
            group: self.group,
            ..Header::default()
        }
    }
}

/// Puts a payload's size and checksum into its header. A longer one than a packet takes is cut by nobody: who
/// makes payloads knows the limit.
pub(crate) fn with_payload(header: Header, payload: &[u8]) -> Header {
    debug_assert!(payload.len() <= PAYLOAD_BYTES_MAX);
    Header {
        payload_bytes: u16::try_from(payload.len()).unwrap_or(u16::MAX),
        payload_crc32c: payload_checksum(payload),
        ..header
    }
}

/// Some of a deployment's acceptors.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Acceptors(u8);

const _: () = assert!(ACCEPTORS_MAX <= 8, "a bit for each");

impl Acceptors {
    /// One more; false if it was there.
    pub(crate) fn insert(&mut self, acceptor: u8) -> bool {
        let bit = 1 << acceptor;
        let is_new = self.0 & bit == 0;
        self.0 |= bit;
        is_new
    }

    pub(crate) fn contains(self, acceptor: u8) -> bool {
        self.0 >> acceptor & 1 == 1
    }

    /// Whether these are more than half of all.
    pub(crate) fn are_majority(self, deployment: &Deployment) -> bool {
        self.0.count_ones() > u32::from(deployment.acceptors) / 2
    }

    /// Whether the others are not more than half of all.
    pub(crate) fn leave_no_majority(self, deployment: &Deployment) -> bool {
        let all = u32::from(deployment.acceptors);
        all - self.0.count_ones() <= all / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: Deployment = Deployment {
        group: 7,
        acceptors: 5,
        coordinators: 2,
        learners: 3,
        copies: 3,
        window: 16,
    };

    #[test]
    fn what_cannot_be_is_refused() {
        assert_eq!(GOOD.check(), Ok(()));
        for (wrong, why) in [
            (
                Deployment {
                    acceptors: 0,
                    ..GOOD
                },
                Impossible::Acceptors,
            ),
            (
                Deployment {
                    acceptors: 8,
                    ..GOOD
                },
                Impossible::Acceptors,
            ),
            (
                Deployment {
                    coordinators: 0,
                    ..GOOD
                },
                Impossible::Coordinators,
            ),
            (
                Deployment {
                    learners: 0,
                    ..GOOD
                },
                Impossible::Learners,
            ),
            (
                Deployment {
                    learners: 255,
                    ..GOOD
                },
                Impossible::Owners,
            ),
            (Deployment { copies: 0, ..GOOD }, Impossible::Copies),
            (Deployment { copies: 4, ..GOOD }, Impossible::Copies),
            (Deployment { window: 0, ..GOOD }, Impossible::Window),
            (Deployment { window: 12, ..GOOD }, Impossible::Window),
            (
                Deployment {
                    window: 1 << 17,
                    ..GOOD
                },
                Impossible::Window,
            ),
        ] {
            assert_eq!(wrong.check(), Err(why), "{wrong:?}");
        }
    }

    #[test]
    fn a_majority_is_more_than_half() {
        for (acceptors, majority) in [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (7, 4)] {
            let deployment = Deployment { acceptors, ..GOOD };
            let mut some = Acceptors::default();
            for acceptor in 0..acceptors {
                assert_eq!(some.are_majority(&deployment), acceptor >= majority);
                assert!(some.insert(acceptor) && !some.insert(acceptor));
            }
        }
    }
}

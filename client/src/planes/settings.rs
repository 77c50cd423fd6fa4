//! What a client is told at its start, checked. Nothing is opened here.
use quorumwire_interfaces::{GroupId, PlaneKeyPair};
use std::net::SocketAddr;
use std::time::Duration;

/// Commands of one session that may be unanswered at a time: what the replicas remember of it.
pub const WINDOW: u64 = 64;

/// A command is not sent again after this. Replicas may forget a session that was silent for a minute,
/// and a command sent again after that would run twice; half of it is left for packets on their way and
/// for clocks that differ.
pub const DEADLINE_MAX: Duration = Duration::from_secs(30);

/// A client that was silent for so long begins a new session: the replicas may have forgotten the old
/// one.
pub const IDLE_MAX: Duration = Duration::from_secs(30);

/// Shortest wait before a request is sent again.
pub const RETRY_MIN: Duration = Duration::from_millis(1);

/// Most replicas to ask.
pub const REPLICAS_MAX: usize = 16;

/// How a client asks.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the replicas' planes are; 1 to [`REPLICAS_MAX`].
    pub replicas: Vec<SocketAddr>,
    /// The clients' keys, as their file has them.
    pub keys: PlaneKeyPair,
    /// Which log.
    pub group: GroupId,
    /// How long to wait for an answer before the request is sent again, by chance up to half as long
    /// again; twice as long each time, up to eight times. At least [`RETRY_MIN`].
    pub retry: Duration,
    /// How long a command is tried; at most [`DEADLINE_MAX`].
    pub deadline: Duration,
    /// Seed of what is left to chance, for tests; `None`: the system's.
    pub seed: Option<u64>,
}

/// Settings that make no sense.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum SettingsError {
    /// Their number.
    #[error("replicas: {0} addresses are given; allowed: 1 to {REPLICAS_MAX}")]
    Replicas(usize),
    /// It is too short, or longer than the deadline.
    #[error("retry: {0:?} is given; allowed: {RETRY_MIN:?} to the deadline")]
    Retry(Duration),
    /// It is too long.
    #[error("deadline: {0:?} is given; allowed: up to {DEADLINE_MAX:?}")]
    Deadline(Duration),
}

impl Settings {
    /// The usual ones: sent again after 100 ms, given up after 10 s.
    #[must_use]
    pub fn new(replicas: Vec<SocketAddr>, keys: PlaneKeyPair) -> Self {
        Self {
            replicas,
            keys,
            group: GroupId(0),
            retry: Duration::from_millis(100),
            deadline: Duration::from_secs(10),
            seed: None,
        }
    }

    /// Refuses what is out of range.
    pub fn check(&self) -> Result<(), SettingsError> {
        if !(1..=REPLICAS_MAX).contains(&self.replicas.len()) {
            return Err(SettingsError::Replicas(self.replicas.len()));
        }
        if self.deadline > DEADLINE_MAX {
            return Err(SettingsError::Deadline(self.deadline));
        }
        if self.retry < RETRY_MIN || self.retry > self.deadline {
            return Err(SettingsError::Retry(self.retry));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_out_of_range_are_refused() {
        let replica = SocketAddr::from(([127, 0, 0, 1], 7401));
        let good = Settings::new(vec![replica], PlaneKeyPair::default());
        assert_eq!(good.check(), Ok(()));
        let with = |change: fn(&mut Settings)| {
            let mut settings = good.clone();
            change(&mut settings);
            settings.check()
        };
        assert_eq!(
            with(|it| it.replicas.clear()),
            Err(SettingsError::Replicas(0))
        );
        let many = with(|it| it.replicas = vec![it.replicas[0]; REPLICAS_MAX + 1]);
        assert_eq!(many, Err(SettingsError::Replicas(REPLICAS_MAX + 1)));
        let late = with(|it| it.deadline = DEADLINE_MAX + Duration::from_millis(1));
        assert!(matches!(late, Err(SettingsError::Deadline(_))));
        for change in [
            (|it| it.retry = Duration::ZERO) as fn(&mut Settings),
            |it| it.retry = it.deadline * 2,
        ] {
            assert!(matches!(with(change), Err(SettingsError::Retry(_))));
        }
    }
}

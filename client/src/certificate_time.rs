//! The time of day by which certificates are judged. That of rustls panics before 1970, where a machine
//! without a clock may begin; here nothing is valid then.
use rustls::pki_types::UnixTime;
use rustls::time_provider::TimeProvider;
use std::time::{SystemTime, UNIX_EPOCH};

/// Of handshakes.
#[derive(Debug)]
pub struct CertificateTime;

impl TimeProvider for CertificateTime {
    fn current_time(&self) -> Option<UnixTime> {
        Some(Self::now())
    }
}

impl CertificateTime {
    /// For a look at a certificate without a handshake.
    #[must_use]
    pub fn now() -> UnixTime {
        at(SystemTime::now())
    }
}

fn at(time: SystemTime) -> UnixTime {
    let since_epoch = time.duration_since(UNIX_EPOCH);
    UnixTime::since_unix_epoch(since_epoch.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_clock_before_1970_is_at_its_beginning() {
        let five = Duration::from_secs(5);
        assert_eq!(at(UNIX_EPOCH + five).as_secs(), 5);
        assert_eq!(at(UNIX_EPOCH - five).as_secs(), 0);
    }
}

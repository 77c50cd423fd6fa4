//! The payload of an entry that moves the log's time.

/// Where the log's time and the time of day differ by no more than this, they are the same, in milliseconds.
pub const LOG_TIME_AGREES_MS: u64 = 10;

/// What an entry of the log says about the time.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Tick {
    /// The log's time, in milliseconds since 1970; where the log had come to more before, that counts.
    pub log_time_ms: u64,
    /// The time of day then, by the leader's wall clock. `None`: it does not say, because a member's code
    /// would not read it.
    pub wall_ms: Option<u64>,
}

/// Most bytes that a tick's payload has.
pub const TICK_BYTES_MAX: usize = 16;

impl Tick {
    /// The payload: the log's time, and the time of day if it says that (64 bits each, big-endian).
    #[must_use]
    pub fn encode(self) -> TickBytes {
        let mut bytes = [0; TICK_BYTES_MAX];
        bytes[..8].copy_from_slice(&self.log_time_ms.to_be_bytes());
        let Some(wall_ms) = self.wall_ms else {
            return TickBytes { bytes, length: 8 };
        };
        bytes[8..].copy_from_slice(&wall_ms.to_be_bytes());
        TickBytes {
            bytes,
            length: TICK_BYTES_MAX,
        }
    }

    /// What a payload says; `None` if it is too short for any.
    #[must_use]
    pub fn decode(payload: &[u8]) -> Option<Self> {
        let (time, rest) = payload.split_first_chunk()?;
        Some(Self {
            log_time_ms: u64::from_be_bytes(*time),
            wall_ms: rest.first_chunk().map(|wall| u64::from_be_bytes(*wall)),
        })
    }

    /// By how much the log's time is ahead of the time of day then, if it has come to this; 0 where they
    /// agree. `None` if the tick does not say: code that reads only the log's time must come to the same
    /// state.
    #[must_use]
    pub fn ahead_ms(self, log_time_ms: u64) -> Option<i64> {
        let wall_ms = self.wall_ms?;
        let apart = log_time_ms.abs_diff(wall_ms);
        let ahead = i64::try_from(apart).unwrap_or(i64::MAX);
        Some(match apart {
            0..=LOG_TIME_AGREES_MS => 0,
            _ if log_time_ms > wall_ms => ahead,
            _ => -ahead,
        })
    }
}

/// A tick's payload.
#[derive(Clone, Copy, Debug)]
pub struct TickBytes {
    bytes: [u8; TICK_BYTES_MAX],
    length: usize,
}

impl AsRef<[u8]> for TickBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_says_the_time_of_day_or_does_not() {
        // 1,700,000,000,000 ms, and 30 s less.
        let short = [0, 0, 1, 0x8b, 0xcf, 0xe5, 0x68, 0];
        let same = [short, short].concat();
        let other = [short, [0, 0, 1, 0x8b, 0xcf, 0xe4, 0xf2, 0xd0]].concat();
        for (wall_ms, bytes) in [
            (None, &short[..]),
            (Some(1_700_000_000_000), &same[..]),
            (Some(1_699_999_970_000), &other[..]),
        ] {
            let tick = Tick {
                log_time_ms: 1_700_000_000_000,
                wall_ms,
            };
            assert_eq!(tick.encode().as_ref(), bytes);
            assert_eq!(Tick::decode(bytes), Some(tick));
        }
        assert_eq!(Tick::decode(&short[..7]), None);
    }

    #[test]
    fn the_log_is_ahead_by_what_it_had_come_to() {
        let tick = |wall_ms| Tick {
            log_time_ms: 1000,
            wall_ms,
        };
        for (log_time_ms, ahead_ms) in [(1000, 0), (1010, 0), (1011, 11), (31_000, 30_000)] {
            assert_eq!(tick(Some(1000)).ahead_ms(log_time_ms), Some(ahead_ms));
            assert_eq!(tick(None).ahead_ms(log_time_ms), None);
        }
        assert_eq!(tick(Some(u64::MAX)).ahead_ms(1000), Some(-i64::MAX));
    }
}

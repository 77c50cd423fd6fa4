//! Moments in words that people everywhere read alike.
use std::time::Duration;
use time::OffsetDateTime;

/// The date and the time of day in UTC, to the millisecond, of a moment after the beginning of 1970.
pub fn in_words(since_epoch: Duration) -> String {
    let seconds = i64::try_from(since_epoch.as_secs()).ok();
    let moment = seconds.and_then(|it| OffsetDateTime::from_unix_timestamp(it).ok());
    let Some(moment) = moment else {
        return format!("{} s since 1970", since_epoch.as_secs()); // after the year 9999
    };
    let (date, time) = (moment.date(), moment.time());
    format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:03} UTC",
        date.year(),
        u8::from(date.month()),
        date.day(),
        time.hour(),
        time.minute(),
        time.second(),
        since_epoch.subsec_millis()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_has_a_date() {
        let of = |ms| in_words(Duration::from_millis(ms));
        assert_eq!(of(0), "1970-01-01 00:00:00.000 UTC");
        assert_eq!(of(1_795_738_530_665), "2026-11-27 00:15:30.665 UTC");
        assert_eq!(of(951_782_399_999), "2000-02-28 23:59:59.999 UTC");
        assert!(of(u64::MAX).ends_with("s since 1970"));
    }
}

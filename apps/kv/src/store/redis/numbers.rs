//! Commands that count.
use super::work::PER_DIGIT;
use super::{Answer, Arguments, At, Outcome, Store, key, number};
use crate::redis::Extended;

impl Store {
    /// `INCR`, `DECR`, `INCRBY`, `DECRBY`.
    pub(super) fn increment(
        &mut self,
        name: &str,
        words: &Arguments<'_>,
        at: At,
        answer: &mut Answer<'_>,
    ) -> Outcome {
        let key = key(words[1])?;
        let change = words.get(2).map_or(Ok(1), |word| number(word))?;
        let change = if name.starts_with("decr") {
            change.checked_neg().ok_or("ERR decrement would overflow")?
        } else {
            change
        };
        let before = self.value(key).map_or(Ok(0), number)?;
        let after = before
            .checked_add(change)
            .ok_or("ERR increment or decrement would overflow")?;
        let frame = self.frame(key);
        self.keep(key, after.to_string().as_bytes(), frame, at);
        answer.integer(after);
        Ok(())
    }

    pub(super) fn incrbyfloat(
        &mut self,
        words: &Arguments<'_>,
        at: At,
        answer: &mut Answer<'_>,
    ) -> Outcome {
        const NOT_A_FLOAT: &str = "ERR value is not a valid float";
        let key = key(words[1])?;
        let value = self.value(key).unwrap_or(b"0");
        answer
            .spend((value.len() + words[2].len()).min(2 * Extended::TEXT_BYTES_MAX) * PER_DIGIT)?;
        let before = Extended::parse(value).ok_or(NOT_A_FLOAT)?;
        let change = Extended::parse(words[2]).ok_or(NOT_A_FLOAT)?;
        let after = before
            .plus(change)
            .ok_or("ERR increment would produce NaN or Infinity")?
            .text();
        answer.spend(after.len() * PER_DIGIT)?;
        answer.bulk(after.as_bytes())?;
        let frame = self.frame(key);
        self.keep(key, after.as_bytes(), frame, at);
        Ok(())
    }
}

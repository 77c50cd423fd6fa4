//! Makes a failing plan small: leaves out faults as long as something still goes wrong.
use crate::trial::{Judged, Trial};

/// Runs usually tried at most.
pub const TRIES_MAX: u32 = 400;

/// The numbers of the faults that suffice for a failure, and that failure; after at most so many runs.
#[must_use]
pub fn shrink<T: Trial>(seed: u64, failed: T::Verdict, tries_max: u32) -> (Vec<usize>, T::Verdict) {
    let mut kept: Vec<usize> = (0..T::of(seed).faults().len()).collect();
    let wanted = kind(&failed);
    let mut last = failed;
    let mut piece = kept.len().div_ceil(2);
    let mut tries = 0;
    while piece > 0 && tries < tries_max {
        let mut at = 0;
        while at < kept.len() && tries < tries_max {
            let end = (at + piece).min(kept.len());
            let fewer = [&kept[..at], &kept[end..]].concat();
            let verdict = T::of(seed).keeping(&fewer).run(false);
            tries += 1;
            if kind(&verdict) == wanted {
                kept = fewer;
                last = verdict;
            } else {
                at = end;
            }
        }
        piece /= 2;
    }
    (kept, last)
}

/// Which invariant does not hold: what stands before the first colon.
fn kind(verdict: &impl Judged) -> Option<String> {
    let (kind, _) = verdict.violation()?.split_once(':')?;
    Some(kind.to_owned())
}

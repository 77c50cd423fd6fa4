//! Numbers that nobody can guess.
use quorumwire_group::{TERM_KEY_BYTES, TermKey};
use quorumwire_interfaces::Lineage;

/// A number that nobody can guess.
pub fn random_number() -> anyhow::Result<u64> {
    Ok(getrandom::u64()?)
}

/// A number for a cluster that has none yet.
pub fn random_lineage() -> anyhow::Result<Lineage> {
    let (high, low) = (random_number()?, random_number()?);
    Ok(Lineage(u128::from(high) << 64 | u128::from(low.max(1))))
}

/// A key that nobody can guess.
pub fn random_key() -> anyhow::Result<TermKey> {
    let mut bytes = [0; TERM_KEY_BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(TermKey(bytes))
}

//! How the words of a scenario's command are read: numbers, times, replicas and links.
use quorumwire_control::Peer;
use quorumwire_interfaces::{Incarnation, ReplicaId};
use std::str::FromStr;
use std::time::Duration;

/// A replica in one of its lives.
pub fn peer(id: u16, life: u64) -> Peer {
    Peer {
        id: ReplicaId(id),
        incarnation: Incarnation(life),
    }
}

/// `A->B`, `A->`, `->B` or nothing for all.
pub fn link(words: &[&str]) -> Result<(Option<u16>, Option<u16>), String> {
    let Some(word) = words.first() else {
        return Ok((None, None));
    };
    let (from, to) = word.split_once("->").ok_or("which link?")?;
    let side = |text: &str| (!text.is_empty()).then(|| parse(text)).transpose();
    Ok((side(from)?, side(to)?))
}

/// Numbers, and nothing else.
pub fn numbers(words: &[&str]) -> Result<Vec<u16>, String> {
    words.iter().map(|word| parse(word)).collect()
}

/// `ID/LIFE`, or `ID` in its first life.
pub fn named(word: &str) -> Result<Peer, String> {
    let (id, life) = word.split_once('/').unwrap_or((word, "1"));
    Ok(peer(parse(id)?, parse(life)?))
}

/// The word at this place, a number.
pub fn number(words: &[&str], place: usize) -> Result<u16, String> {
    parse(words.get(place).ok_or("a number is missing")?)
}

/// A number of any kind.
pub fn parse<N: FromStr>(word: &str) -> Result<N, String> {
    word.parse().map_err(|_| format!("`{word}` is no number"))
}

/// That a number is too large, in words.
pub fn text(error: std::num::TryFromIntError) -> String {
    error.to_string()
}

/// `50ms`.
pub fn duration(word: &str) -> Result<Duration, String> {
    let count = word.strip_suffix("ms").ok_or("a time ends in ms")?;
    Ok(Duration::from_millis(parse(count)?))
}

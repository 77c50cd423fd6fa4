//! A configuration: which life of each acceptor counts
//! ([decision 25](../../docs/decisions/0025-which-life-of-an-acceptor-counts.md)).
use crate::mutants::mutant;
use quorumwire_wire::packet::LIFE_BYTES;
use sha2::{Digest as _, Sha256};

/// A life for each acceptor. A life is a number that its acceptor never had before; 0 is the first one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Lives(Vec<u64>);

impl Lives {
    /// As a deployment begins.
    #[must_use]
    pub fn first(acceptors: u8) -> Self {
        Self(vec![0; usize::from(acceptors)])
    }

    /// An acceptor's; 0 if there is none.
    #[must_use]
    pub fn of(&self, acceptor: u8) -> u64 {
        self.0.get(usize::from(acceptor)).copied().unwrap_or(0)
    }

    /// The same but for one acceptor.
    #[must_use]
    pub fn with(mut self, acceptor: u8, life: u64) -> Self {
        if let Some(of_acceptor) = self.0.get_mut(usize::from(acceptor)) {
            *of_acceptor = life;
        }
        self
    }

    /// Whether it knows, for each acceptor, of at least the life that the other one knows of.
    #[must_use]
    pub fn knows_all_of(&self, other: &Self) -> bool {
        let mut both = self.0.iter().zip(&other.0);
        both.all(|(mine, theirs)| mine >= theirs) || mutant("takes-earlier-lives")
    }

    /// The later life of each acceptor.
    #[must_use]
    pub fn joined(&self, other: &Self) -> Self {
        let both = self.0.iter().zip(&other.0);
        Self(both.map(|(mine, theirs)| *mine.max(theirs)).collect())
    }

    /// The number that stands for it in packets, never 0.
    #[must_use]
    pub fn number(&self) -> u64 {
        let digest: [u8; 32] = Sha256::digest(self.encode()).into();
        let first = digest.first_chunk().map(|it| u64::from_be_bytes(*it));
        first.unwrap_or_default().max(1)
    }

    /// As it stands in packets.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        self.0.iter().flat_map(|life| life.to_be_bytes()).collect()
    }

    /// What stands in a packet, for so many acceptors, which says that this number stands for it. `None`:
    /// that is not so.
    #[must_use]
    pub fn decode(bytes: &[u8], acceptors: u8, number: u64) -> Option<Self> {
        let (lives, rest) = bytes.as_chunks::<LIFE_BYTES>();
        if lives.len() != usize::from(acceptors) || !rest.is_empty() {
            return None;
        }
        let lives = Self(lives.iter().map(|life| u64::from_be_bytes(*life)).collect());
        (lives.number() == number).then_some(lives)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_goes_into_packets_and_back() {
        let lives = Lives::first(3).with(1, 0x1_c0de);
        let number = lives.number();
        assert_eq!(
            number, 0xadea_4782_f2ad_777b,
            "as in wire/vectors/packets.txt"
        );
        let bytes = lives.encode();
        assert_eq!(Lives::decode(&bytes, 3, number), Some(lives.clone()));
        assert_eq!(Lives::decode(&bytes, 3, number + 1), None);
        assert_eq!(Lives::decode(&bytes, 4, number), None);
        assert_eq!(Lives::decode(&bytes[..23], 3, number), None);
        assert_eq!(Lives::decode(&bytes[..16], 3, number), None);
        assert_ne!(lives.number(), Lives::first(3).number());
    }

    #[test]
    fn of_two_configurations_both_or_one_or_none_knows_all() {
        let (one, other) = (Lives::first(3).with(0, 5), Lives::first(3).with(2, 4));
        let both = one.joined(&other);
        assert!(!one.knows_all_of(&other) && !other.knows_all_of(&one));
        assert!(both.knows_all_of(&one) && both.knows_all_of(&other));
        assert!(one.knows_all_of(&one));
        assert_eq!(
            (both.of(0), both.of(1), both.of(2), both.of(9)),
            (5, 0, 4, 0)
        );
    }
}

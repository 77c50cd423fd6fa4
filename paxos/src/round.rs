//! Numbers of rounds.
use quorumwire_wire::packet::ROUND_OWNERS;

const OWNERS: u64 = ROUND_OWNERS as u64;

/// The lowest round of this owner that is above another one; `None` at the end of all numbers. The owner's
/// number is one that nobody else proposes with.
#[must_use]
pub const fn round_above(round: u64, owner: u8) -> Option<u64> {
    let owner = owner as u64;
    let same_count = round - round % OWNERS + owner;
    // Rounds with count 0 are none.
    if same_count > round && round >= OWNERS {
        return Some(same_count);
    }
    match (round / OWNERS + 1).checked_mul(OWNERS) {
        Some(count) => count.checked_add(owner),
        None => None,
    }
}

/// Whose round it is.
#[must_use]
pub const fn owner_of(round: u64) -> u8 {
    let [.., owner] = round.to_be_bytes();
    owner
}

const _: () = assert!(OWNERS == 256, "the owner is the last byte");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_above_is_the_next_one_of_its_owner() {
        assert_eq!(round_above(0, 0), Some(0x100));
        assert_eq!(round_above(0, 3), Some(0x103));
        assert_eq!(round_above(0x103, 3), Some(0x203));
        assert_eq!(round_above(0x103, 4), Some(0x104));
        assert_eq!(round_above(0x103, 2), Some(0x202));
        assert_eq!(round_above(u64::MAX, 255), None);
        assert_eq!(round_above(u64::MAX - 1, 255), Some(u64::MAX));
        assert_eq!(round_above(u64::MAX - 1, 7), None);
        for (round, owner) in [(0, 9), (0x1ff, 0), (0x1234, 0x34), (0x1234, 0x35)] {
            let above = round_above(round, owner).unwrap();
            assert!(above > round && owner_of(above) == owner);
        }
    }
}

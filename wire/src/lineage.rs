//! Lineages in messages.
use crate::peer;
use quorumwire_interfaces::Lineage;

/// The message form; none where none is known.
#[must_use]
pub fn lineage_to_proto(lineage: Lineage) -> Option<peer::Lineage> {
    let half = |shift: u32| u64::try_from((lineage.0 >> shift) & u128::from(u64::MAX));
    lineage.is_known().then(|| peer::Lineage {
        high: half(64).expect("64 bits"),
        low: half(0).expect("64 bits"),
    })
}

/// Reads the message form.
#[must_use]
pub fn lineage_from_proto(proto: Option<&peer::Lineage>) -> Lineage {
    proto.map_or(Lineage::default(), |it| {
        Lineage(u128::from(it.high) << 64 | u128::from(it.low))
    })
}

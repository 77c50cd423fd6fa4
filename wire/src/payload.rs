//! What a packet's payload brings with it.

/// The checksum of a payload as it stands in a header: 0 for none.
#[must_use]
pub fn payload_checksum(payload: &[u8]) -> u32 {
    if payload.is_empty() {
        0
    } else {
        crc32c::crc32c(payload)
    }
}

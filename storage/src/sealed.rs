//! Small files and slots whose first four bytes are the CRC32C of all behind them.
use crate::segment::u32_at;

const SEAL_BYTES: usize = 4;

/// Writes the checksum of what stands behind its place.
pub(crate) fn seal(bytes: &mut [u8]) {
    let checksum = crc32c::crc32c(&bytes[SEAL_BYTES..]);
    bytes[..SEAL_BYTES].copy_from_slice(&checksum.to_be_bytes());
}

/// Whether the checksum is the one of what stands behind it.
pub(crate) fn is_whole(bytes: &[u8]) -> bool {
    bytes.len() >= SEAL_BYTES && crc32c::crc32c(&bytes[SEAL_BYTES..]) == u32_at(bytes, 0)
}

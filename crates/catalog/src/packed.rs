//! Reads the data files under `assets`, which are compiled into the binary.
//!
//! Their tables are in their final layout, so nothing is parsed or copied at start, and
//! memory pages that are not used are never loaded.

/// The little-endian number at index `at` of a file of numbers.
pub(crate) fn read_u16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at * 2], bytes[at * 2 + 1]])
}

/// The little-endian number at index `at` of a file of numbers.
pub(crate) fn read_u32(bytes: &[u8], at: usize) -> u32 {
    let at = at * 4;
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

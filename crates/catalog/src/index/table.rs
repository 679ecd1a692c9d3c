//! The table of token embeddings that is compiled into the binary.
//!
//! One row of 256 values per WordPiece, and a hash table of the pieces, which
//! `scripts/pack_table.py` writes: nothing is parsed or copied at start, and memory pages
//! that no query uses are never loaded. The values of a row are ordered by how much rows
//! differ in them, so a prefix of a row is a good approximation of it, and the first 64
//! have eight bits each, the others four. Measured, that finds as much as eight bits for
//! all of them, in five eighths of the space.

use crate::packed::{read_u16, read_u32};

/// The number of values of a row.
pub(crate) const WIDTH: usize = 256;

/// How many values of a row have eight bits.
const FINE: usize = 64;
/// How many bytes a row takes: one per fine value, one per two of the others.
const ROW: usize = FINE + (WIDTH - FINE) / 2;

static ROWS: &[u8] = include_bytes!("../../assets/table.rows");
static SCALES: &[u8] = include_bytes!("../../assets/table.f32");
static WORDS: &[u8] = include_bytes!("../../assets/table.words");
static STARTS: &[u8] = include_bytes!("../../assets/table.starts");
static SLOTS: &[u8] = include_bytes!("../../assets/table.slots");

/// The row of a piece, written as WordPiece writes it (`##ing`).
///
/// The two halves are hashed and compared as one, so that looking for `##`
/// continuations needs no joined copy.
pub(crate) fn row(prefix: &str, piece: &str) -> Option<u16> {
    let bytes = || prefix.bytes().chain(piece.bytes());
    let mut slot = usize::from(hash(bytes()));
    loop {
        let row = read_u16(SLOTS, slot).checked_sub(1)?;
        if word(row).iter().copied().eq(bytes()) {
            return Some(row);
        }
        slot = (slot + 1) % (SLOTS.len() / 2);
    }
}

/// Adds a row to a sum, or a prefix of a row to a shorter sum.
pub(crate) fn add<const N: usize>(row: u16, sum: &mut [f32; N]) {
    let at = usize::from(row);
    let scale = |part| f32::from_bits(read_u32(SCALES, at * 2 + part));
    let (fine, coarse) = ROWS[at * ROW..(at + 1) * ROW].split_at(FINE);
    let (scale_fine, scale_coarse) = (scale(0), scale(1));
    for (sum, value) in sum.iter_mut().zip(fine) {
        *sum += scale_fine * f32::from(value.cast_signed());
    }
    // Two values a byte, the first in its lower half; 8 stands for zero.
    for (sums, pair) in sum[N.min(FINE)..].chunks_exact_mut(2).zip(coarse) {
        sums[0] += scale_coarse * (f32::from(pair & 0xF) - 8.0);
        sums[1] += scale_coarse * (f32::from(pair >> 4) - 8.0);
    }
}

fn word(row: u16) -> &'static [u8] {
    let at = usize::from(row);
    let (start, end) = (read_u32(STARTS, at) as usize, read_u32(STARTS, at + 1) as usize);
    &WORDS[start..end - 1]
}

/// FNV-1a, folded to 16 bits.
fn hash(bytes: impl Iterator<Item = u8>) -> u16 {
    let value = bytes
        .fold(2_166_136_261_u32, |value, byte| (value ^ u32::from(byte)).wrapping_mul(16_777_619));
    (value ^ (value >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_piece_is_found_at_its_own_row() {
        let n_rows = ROWS.len() / ROW;
        assert_eq!((SCALES.len(), STARTS.len()), (n_rows * 8, n_rows * 4 + 4));
        for at in 0..n_rows {
            let at = u16::try_from(at).unwrap();
            let piece = std::str::from_utf8(word(at)).unwrap();
            assert_eq!(row("", piece), Some(at), "{piece}");
        }
        assert_eq!(row("##", "ing"), row("", "##ing"));
        assert_eq!(row("", "[UNK]"), None);
    }
}

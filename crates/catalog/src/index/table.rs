//! The table of token embeddings that is compiled into the binary.
//!
//! One int8 row per WordPiece with one scale each, and a hash of the pieces
//! laid out beforehand by `scripts/pack_table.py`: nothing is parsed or copied
//! at start, and pages that no query touches are never loaded. The values of a
//! row stand in the order in which rows differ most, so the beginning of a row
//! is an outline of the whole.

use crate::packed::{read_u16, read_u32};

pub(crate) const WIDTH: usize = 256;

static ROWS: &[u8] = include_bytes!("../../assets/table.i8");
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

/// Adds a row to a sum, or the beginning of a row to a shorter sum.
pub(crate) fn add<const N: usize>(row: u16, sum: &mut [f32; N]) {
    let at = usize::from(row);
    let scale = f32::from_bits(read_u32(SCALES, at));
    for (sum, value) in sum.iter_mut().zip(&ROWS[at * WIDTH..(at + 1) * WIDTH]) {
        *sum += scale * f32::from(value.cast_signed());
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
        let n_rows = ROWS.len() / WIDTH;
        assert_eq!((SCALES.len(), STARTS.len()), (n_rows * 4, n_rows * 4 + 4));
        for at in 0..n_rows {
            let at = u16::try_from(at).unwrap();
            let piece = std::str::from_utf8(word(at)).unwrap();
            assert_eq!(row("", piece), Some(at), "{piece}");
        }
        assert_eq!(row("##", "ing"), row("", "##ing"));
        assert_eq!(row("", "[UNK]"), None);
    }
}

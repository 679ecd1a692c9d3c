//! Byte-pair merging: counts the tokens of one piece. Neighbouring parts are merged,
//! lowest rank first, until no two of them make a token.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::vocabulary::rank;

/// Merges the parts of one piece. It is reused for many pieces to save allocations.
#[derive(Default)]
pub(super) struct Merger {
    /// By start of a part: its end; 0 where no part starts.
    ends: Vec<usize>,
    /// By end of a part: its start.
    starts: Vec<usize>,
    /// Two neighbours that make a token: its rank, their start and their end. Outdated
    /// pairs stay in and are skipped.
    pairs: BinaryHeap<Reverse<(u32, usize, usize)>>,
}

impl Merger {
    /// The number of tokens of a piece, in O(n log n).
    pub(super) fn count(&mut self, piece: &[u8]) -> usize {
        if piece.len() < 2 || rank(piece).is_some() {
            return usize::from(!piece.is_empty());
        }
        self.split_into_bytes(piece);
        let mut n_parts = piece.len();
        while let Some(Reverse((_, start, end))) = self.pairs.pop() {
            let middle = self.ends[start];
            if middle == 0 || middle >= end || self.ends[middle] != end {
                continue;
            }
            self.ends[start] = end;
            self.ends[middle] = 0;
            self.starts[end] = start;
            n_parts -= 1;
            if start > 0 {
                self.offer(piece, self.starts[start], end);
            }
            if end < piece.len() {
                self.offer(piece, start, self.ends[end]);
            }
        }
        n_parts
    }

    /// Makes every byte a part.
    fn split_into_bytes(&mut self, piece: &[u8]) {
        self.pairs.clear();
        self.ends.clear();
        self.ends.extend(1..=piece.len());
        self.starts.clear();
        self.starts.push(0);
        self.starts.extend(0..piece.len());
        for start in 0..piece.len() - 1 {
            self.offer(piece, start, start + 2);
        }
    }

    /// Adds two neighbours if they make a token.
    fn offer(&mut self, piece: &[u8], start: usize, end: usize) {
        if let Some(rank) = rank(&piece[start..end]) {
            self.pairs.push(Reverse((rank, start, end)));
        }
    }
}

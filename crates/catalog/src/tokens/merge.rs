//! Counts the tokens of one piece: neighbours are merged, lowest rank first, until
//! no two of them make a token.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::vocabulary::rank;

/// Joins the parts of one piece after another, in the same memory.
#[derive(Default)]
pub(super) struct Merger {
    /// Where the part that starts at a byte ends; 0 where none starts.
    ends: Vec<usize>,
    /// Where the part that ends at a byte starts.
    starts: Vec<usize>,
    /// Two neighbours that make a token: its rank, then where they start and end.
    /// What was joined otherwise meanwhile stays in and is passed over.
    pairs: BinaryHeap<Reverse<(u32, usize, usize)>>,
}

impl Merger {
    /// The number of tokens of a piece. The cost grows with its length times the
    /// logarithm of that, whatever it holds.
    pub(super) fn count(&mut self, piece: &[u8]) -> usize {
        if piece.len() < 2 || rank(piece).is_some() {
            return usize::from(!piece.is_empty());
        }
        self.part(piece);
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

    /// Every byte a part of its own.
    fn part(&mut self, piece: &[u8]) {
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

    fn offer(&mut self, piece: &[u8], start: usize, end: usize) {
        if let Some(rank) = rank(&piece[start..end]) {
            self.pairs.push(Reverse((rank, start, end)));
        }
    }
}

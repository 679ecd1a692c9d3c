//! What somebody probably meant.

use crate::name;

/// From this likeness on a name is taken for a slip of the pen.
pub const CLOSE: f32 = 0.7;
/// Names that are less alike have nothing to do with each other.
const FAINT: f32 = 0.45;

/// A name that leads nowhere.
pub struct Wanted(String);

impl Wanted {
    pub fn new(name: &str) -> Wanted {
        Wanted(name::canonical(name))
    }

    /// How alike another name is, at most 1; none when it shares too little.
    pub fn rate(&self, candidate: &str) -> Option<f32> {
        let score = likeness(&self.0, &name::canonical(candidate));
        (FAINT <= score).then_some(score)
    }
}

/// The names that are alike, best first, with their likeness.
pub fn rated<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<(f32, &'a str)> {
    let wanted = Wanted::new(wanted);
    let rate = |candidate: &'a str| Some((wanted.rate(candidate)?, candidate));
    let mut rated: Vec<(f32, &str)> = names.into_iter().filter_map(rate).collect();
    rated.sort_by(|left, right| right.0.total_cmp(&left.0).then(left.1.cmp(right.1)));
    rated
}

/// The `limit` names closest to `wanted`, best first; names that share too
/// little with it are left out.
pub fn nearest<'a>(
    wanted: &str,
    names: impl IntoIterator<Item = &'a str>,
    limit: usize,
) -> Vec<&'a str> {
    rated(wanted, names).into_iter().take(limit).map(|(_, candidate)| candidate).collect()
}

/// How alike two canonical names are, from 0 to 1: the edit distance, lifted
/// when one contains the other (`ship` for `shiporder`).
fn likeness(wanted: &str, candidate: &str) -> f32 {
    let longest = wanted.chars().count().max(candidate.chars().count());
    if longest == 0 {
        return 0.0;
    }
    let edits = strokes(wanted, candidate);
    let closeness = 1.0 - edits as f32 / longest as f32;
    let shorter = wanted.len().min(candidate.len());
    let contains = 3 <= shorter && (candidate.contains(wanted) || wanted.contains(candidate));
    if contains { closeness.max(0.6 + 0.3 * shorter as f32 / longest as f32) } else { closeness }
}

/// The number of insertions, deletions, replacements and swaps of neighbours
/// between two words. Only the first 64 characters count: a hostile name must
/// not cost quadratic time.
fn strokes(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().take(64).collect();
    let right: Vec<char> = right.chars().take(64).collect();
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for row in 1..=left.len() {
        let mut line = vec![row];
        for column in 1..=right.len() {
            let cost = usize::from(left[row - 1] != right[column - 1]);
            let mut best =
                (last[column] + 1).min(line[column - 1] + 1).min(last[column - 1] + cost);
            let swapped = 1 < row
                && 1 < column
                && left[row - 1] == right[column - 2]
                && left[row - 2] == right[column - 1];
            if swapped {
                best = best.min(before[column - 2] + 1);
            }
            line.push(best);
        }
        before = std::mem::replace(&mut last, line);
    }
    last[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(wanted: &str, names: &[&str], expected: &[&str]) {
        assert_eq!(nearest(wanted, names.iter().copied(), 3), expected);
    }

    #[test]
    fn a_slip_of_the_pen_finds_its_word_first() {
        check("serach", &["search", "list", "sear"], &["search", "sear"]);
        check("Create_Ordr", &["create_order", "cancel_order"], &["create_order", "cancel_order"]);
    }

    #[test]
    fn a_part_of_a_name_finds_it() {
        check("ship", &["create", "ship_order_now"], &["ship_order_now"]);
    }

    #[test]
    fn nothing_alike_is_nothing_at_all() {
        check("zzz", &["create", "list"], &[]);
        check("", &["create"], &[]);
    }
}

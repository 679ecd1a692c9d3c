//! Finds the known names that are most similar to a misspelt one.

use crate::name;

/// From this similarity on, a name is taken for a typo of another.
pub const TYPO_SIMILARITY: f32 = 0.7;
/// Names that are less similar are unrelated.
const MIN_SIMILARITY: f32 = 0.45;
/// The weight of a match with one word of a name.
const WORD_MATCH_WEIGHT: f32 = 0.9;
/// The edit distance is computed for this many characters only: a hostile name must not
/// cost quadratic time.
const MAX_EDIT_CHARS: usize = 64;
/// Names are unrelated if one is this many times longer than the other.
const MAX_LENGTH_RATIO: usize = 16;

/// Computes how similar other names are to one name.
pub struct NameMatcher(Vec<char>);

impl NameMatcher {
    pub fn new(name: &str) -> NameMatcher {
        NameMatcher(name::canonical(name).chars().collect())
    }

    /// The similarity of another name, at most 1; `None` when it is unrelated.
    pub fn similarity(&self, candidate: &str) -> Option<f32> {
        let score = canonical_similarity(&self.0, &name::canonical(candidate));
        (MIN_SIMILARITY <= score).then_some(score)
    }

    /// The similarity of another name, or of a word in it where that is higher.
    pub fn word_similarity(&self, candidate: &str) -> Option<f32> {
        let words = candidate.split(|c: char| !c.is_alphanumeric());
        let of_words = words.filter_map(|word| Some(WORD_MATCH_WEIGHT * self.similarity(word)?));
        of_words.chain(self.similarity(candidate)).max_by(f32::total_cmp)
    }
}

/// The similar names with their similarity, best first.
pub fn rank_by_similarity<'a>(
    wanted: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Vec<(f32, &'a str)> {
    let wanted = NameMatcher::new(wanted);
    let rank = |candidate: &'a str| Some((wanted.similarity(candidate)?, candidate));
    let mut ranked: Vec<(f32, &str)> = names.into_iter().filter_map(rank).collect();
    ranked.sort_by(|left, right| right.0.total_cmp(&left.0).then(left.1.cmp(right.1)));
    ranked
}

/// The `limit` names closest to `wanted`, best first; names that share too
/// little with it are left out.
pub fn nearest<'a>(
    wanted: &str,
    names: impl IntoIterator<Item = &'a str>,
    limit: usize,
) -> Vec<&'a str> {
    rank_by_similarity(wanted, names)
        .into_iter()
        .take(limit)
        .map(|(_, candidate)| candidate)
        .collect()
}

/// The similarity of two canonical names, from 0 to 1: by edit distance, higher when one
/// contains the other (`ship` and `shiporder`).
fn canonical_similarity(wanted: &[char], candidate: &str) -> f32 {
    let candidate: Vec<char> = candidate.chars().collect();
    let (shortest, longest) = match wanted.len() <= candidate.len() {
        true => (wanted, candidate.as_slice()),
        false => (candidate.as_slice(), wanted),
    };
    // A name that is so much longer cannot be similar, so it is not even compared.
    if longest.is_empty() || MAX_LENGTH_RATIO * shortest.len() < longest.len() {
        return 0.0;
    }
    let edits =
        edit_distance(head(shortest), head(longest)) + tail_distance(tail(shortest), tail(longest));
    let closeness = 1.0 - edits as f32 / longest.len() as f32;
    // One or two letters occur in any long text.
    let is_part =
        3 <= shortest.len() && longest.windows(shortest.len()).any(|part| part == shortest);
    let share = shortest.len() as f32 / longest.len() as f32;
    if is_part { closeness.max(0.6 + 0.3 * share) } else { closeness }
}

fn head(name: &[char]) -> &[char] {
    &name[..name.len().min(MAX_EDIT_CHARS)]
}

fn tail(name: &[char]) -> &[char] {
    &name[name.len().min(MAX_EDIT_CHARS)..]
}

/// An estimate of the number of characters in which two tails differ.
fn tail_distance(left: &[char], right: &[char]) -> usize {
    let same = left.iter().rev().zip(right.iter().rev()).take_while(|(l, r)| l == r).count();
    left.len().max(right.len()) - same
}

/// The number of insertions, deletions, replacements and swaps of neighbours
/// between two words.
fn edit_distance(left: &[char], right: &[char]) -> usize {
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

    #[test]
    fn a_long_name_is_like_no_other_only_because_it_is_long() {
        let endless = "abcdefghij_".repeat(1_000);
        check("zzz", &["create", &endless], &[]);
        check("create", &["create_it", &endless], &["create_it"]);
        check(&endless, &["create", "list"], &[]);
        check("abc", &[&endless], &[]);
    }

    #[test]
    fn a_slip_in_a_long_name_finds_it() {
        let name = |slip: &str| format!("list_{slip}_{}", "of_the_organisation_".repeat(10));
        let name = |slip: &str| name(slip).trim_end_matches('_').to_owned();
        check(&name("memebrs"), &[&name("members")], &[&name("members")]);
        check(&name("member"), &[&name("members"), "list"], &[&name("members")]);
    }
}

//! Compares two texts line by line.

/// One line of the difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    Same(&'a str),
    Added(&'a str),
    Removed(&'a str),
    /// The number of unchanged lines that are not shown.
    Skipped(usize),
}

/// How many lines around a change are shown.
const CONTEXT_LINES: usize = 3;
/// When more lines than this differ, all of them are shown as removed and added.
const MAX_LINES: usize = 2_000;

/// Returns the lines of both texts in order, without those far from a change.
pub(crate) fn diff<'a>(before: &'a str, after: &'a str) -> Vec<Line<'a>> {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = |(one, other): &(&&str, &&str)| one == other;
    let head = old.iter().zip(&new).take_while(same).count();
    let room = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(same).count().min(room);
    let mut lines: Vec<Line<'a>> = old[..head].iter().map(|line| Line::Same(line)).collect();
    lines.extend(diff_middle(&old[head..old.len() - tail], &new[head..new.len() - tail]));
    lines.extend(old[old.len() - tail..].iter().map(|line| Line::Same(line)));
    hide_far_lines(&lines)
}

/// Compares the middle, after equal lines at both ends were cut off, by the longest common
/// subsequence.
fn diff_middle<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<Line<'a>> {
    if MAX_LINES < old.len() || MAX_LINES < new.len() {
        let removed = old.iter().map(|line| Line::Removed(line));
        return removed.chain(new.iter().map(|line| Line::Added(line))).collect();
    }
    // The length of the longest common subsequence from each pair of lines on.
    let mut common = vec![vec![0_u32; new.len() + 1]; old.len() + 1];
    for (i, one) in old.iter().enumerate().rev() {
        for (j, other) in new.iter().enumerate().rev() {
            common[i][j] = match one == other {
                true => common[i + 1][j + 1] + 1,
                false => common[i + 1][j].max(common[i][j + 1]),
            };
        }
    }
    let (mut i, mut j, mut lines) = (0, 0, Vec::new());
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            lines.push(Line::Same(old[i]));
            (i, j) = (i + 1, j + 1);
        } else if i < old.len() && (j == new.len() || common[i][j + 1] <= common[i + 1][j]) {
            lines.push(Line::Removed(old[i]));
            i += 1;
        } else {
            lines.push(Line::Added(new[j]));
            j += 1;
        }
    }
    lines
}

fn hide_far_lines<'a>(lines: &[Line<'a>]) -> Vec<Line<'a>> {
    let is_near = |at: usize| {
        let around =
            &lines[at.saturating_sub(CONTEXT_LINES)..(at + CONTEXT_LINES + 1).min(lines.len())];
        around.iter().any(|line| !matches!(line, Line::Same(_)))
    };
    let mut shown = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        match (is_near(at), shown.last_mut()) {
            (true, _) => shown.push(*line),
            (false, Some(Line::Skipped(n_lines))) => *n_lines += 1,
            (false, _) => shown.push(Line::Skipped(1)),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_shown_with_the_lines_around_it() {
        let before = "1\n2\n3\n4\n5\n6\n7\n8\n9";
        let after = "1\n2\n3\n4\nfive\n6\n7\n8\n9";
        use Line::{Added, Removed, Same, Skipped};
        let expected = [
            Skipped(1),
            Same("2"),
            Same("3"),
            Same("4"),
            Removed("5"),
            Added("five"),
            Same("6"),
            Same("7"),
            Same("8"),
            Skipped(1),
        ];
        assert_eq!(diff(before, after), expected);
    }

    #[test]
    fn what_is_added_taken_out_or_equal_is_told() {
        assert_eq!(diff("", "a"), [Line::Added("a")]);
        assert_eq!(diff("a\n", ""), [Line::Removed("a")]);
        assert_eq!(diff("a\nb", "a\nb"), [Line::Skipped(2)]);
        assert_eq!(diff("a\na", "a"), [Line::Same("a"), Line::Removed("a")]);
    }
}

//! The last lines of the log, with room of its own for every upstream: one that writes
//! without end displaces its own lines only.

use std::collections::{HashMap, VecDeque};

/// How many lines are kept that are about no upstream, or about one beyond the limit.
const MAX_LINES: usize = 2_000;
/// How many lines are kept about one upstream.
const MAX_OF_UPSTREAM: usize = 200;
/// How many upstreams have room of their own.
const MAX_UPSTREAMS: usize = 128;

/// The field of a line that says which upstream it is about.
const FIELD: &str = " upstream=\"";

#[derive(Debug, Default)]
pub(super) struct RecentLines {
    /// How many lines there were so far.
    n_lines: u64,
    others: Ring,
    by_upstream: HashMap<String, Ring>,
}

/// Lines with their numbers, the oldest first.
type Ring = VecDeque<(u64, String)>;

impl RecentLines {
    pub(super) fn push(&mut self, line: String) {
        self.n_lines += 1;
        let label = label(&line).map(str::to_owned);
        let has_room = self.by_upstream.len() < MAX_UPSTREAMS;
        let (ring, most) = match label {
            Some(label) if has_room || self.by_upstream.contains_key(&label) => {
                (self.by_upstream.entry(label).or_default(), MAX_OF_UPSTREAM)
            }
            Some(_) | None => (&mut self.others, MAX_LINES),
        };
        if ring.len() == most {
            ring.pop_front();
        }
        ring.push_back((self.n_lines, line));
    }

    /// Returns the last lines about whatever, at most `n_lines`, in their order.
    pub(super) fn last(&self, n_lines: usize) -> Vec<String> {
        let rings = self.by_upstream.values().chain([&self.others]);
        let mut lines: Vec<&(u64, String)> = rings.flatten().collect();
        lines.sort_unstable_by_key(|(number, _)| *number);
        last(lines.into_iter(), n_lines)
    }

    /// Returns the last lines about an upstream, at most `n_lines`.
    pub(super) fn last_of(&self, upstream: &str, n_lines: usize) -> Vec<String> {
        let own = self.by_upstream.get(upstream).unwrap_or(&self.others).iter();
        let own: Vec<_> = own.filter(|(_, line)| label(line) == Some(upstream)).collect();
        last(own.into_iter(), n_lines)
    }
}

fn last<'a>(
    lines: impl ExactSizeIterator<Item = &'a (u64, String)>,
    n_lines: usize,
) -> Vec<String> {
    let n_before = lines.len().saturating_sub(n_lines);
    lines.skip(n_before).map(|(_, line)| line.clone()).collect()
}

/// Returns the label of the upstream that a line is about. The text that an upstream writes
/// comes before the fields, so it forges none: the last one counts.
fn label(line: &str) -> Option<&str> {
    let (_, rest) = line.rsplit_once(FIELD)?;
    let (label, _) = rest.split_once('"')?;
    (!label.contains('\\')).then_some(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(label: &str, n: usize) -> String {
        format!("10:00 INFO line {n} upstream=\"{label}\"")
    }

    #[test]
    fn a_noisy_upstream_displaces_only_its_own_lines() {
        let mut lines = RecentLines::default();
        lines.push("10:00 INFO gatelet listens".to_owned());
        lines.push(about("quiet", 0));
        (0..10_000).for_each(|n| lines.push(about("noisy", n)));
        assert_eq!(lines.last_of("quiet", 10), [about("quiet", 0)]);
        assert_eq!(lines.last_of("noisy", 2), [about("noisy", 9_998), about("noisy", 9_999)]);
        let all = lines.last(usize::MAX);
        assert_eq!(all.len(), 2 + MAX_OF_UPSTREAM);
        assert_eq!(all[..2], ["10:00 INFO gatelet listens".to_owned(), about("quiet", 0)]);
        assert_eq!(lines.last(1), [about("noisy", 9_999)]);
    }

    #[test]
    fn thousands_of_labels_take_no_more_than_their_room() {
        let mut lines = RecentLines::default();
        (0..10_000).for_each(|n| lines.push(about(&format!("u{n}"), n)));
        assert_eq!(lines.by_upstream.len(), MAX_UPSTREAMS);
        assert_eq!(lines.last(usize::MAX).len(), MAX_UPSTREAMS + MAX_LINES);
        assert_eq!(lines.last_of("u9999", 1), [about("u9999", 9_999)]);
        assert!(lines.last_of("nobody", 1).is_empty());
    }

    #[test]
    fn a_line_belongs_to_the_upstream_of_its_last_field() {
        assert_eq!(label(r#"INFO I am upstream="files" upstream="evil""#), Some("evil"));
        assert_eq!(label(r#"WARN it is gone upstream="files" reason="x""#), Some("files"));
        assert_eq!(
            label(r#"WARN it is gone upstream="files" reason="it said upstream=\"evil\"""#),
            Some("files")
        );
        assert_eq!(label("INFO gatelet listens"), None);
    }
}

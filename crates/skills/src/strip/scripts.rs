//! Finds script elements, as opposed to text that mentions one.
//!
//! `` `<script>` `` in a code span is a word about a script and stays. What
//! counts as code is read narrowly: only where every reader of Markdown agrees.
//! Whoever hides an element behind odd back-ticks gains nothing.

use super::quoted;

/// Stands where a script was.
const NOTE: &str = "[script omitted]";

/// The text without script elements, and how many were left out.
pub(super) fn omit(text: &str) -> (String, usize) {
    let lower = text.to_ascii_lowercase();
    let quoted = quoted::ranges(text);
    let is_prose = |at: &usize| {
        let before = quoted.partition_point(|range| range.end <= *at);
        quoted.get(before).is_none_or(|range| *at < range.start)
    };
    let closing: Vec<usize> = tags(&lower, "</script").collect();
    let page = Page {
        text,
        closing_in_prose: closing.iter().copied().filter(is_prose).collect(),
        closing,
    };
    let (mut kept, mut rest, mut omitted) = (String::new(), 0, 0);
    for start in tags(&lower, "<script").filter(is_prose) {
        if rest <= start {
            kept.push_str(&text[rest..start]);
            kept.push_str(NOTE);
            (rest, omitted) = (page.end_of(start), omitted + 1);
        }
    }
    kept.push_str(&text[rest..]);
    (kept, omitted)
}

/// Returns where tags of this name start: `<script>`, not `<script_path>`.
fn tags<'t>(lower: &'t str, name: &'t str) -> impl Iterator<Item = usize> + 't {
    let ends = |next: u8| next.is_ascii_whitespace() || matches!(next, b'>' | b'/' | 0x0b);
    let starts = lower.match_indices(name).map(|(start, _)| start);
    starts.filter(move |start| {
        lower.as_bytes().get(start + name.len()).is_none_or(|next| ends(*next))
    })
}

struct Page<'t> {
    text: &'t str,
    closing: Vec<usize>,
    closing_in_prose: Vec<usize>,
}

impl Page<'_> {
    /// Returns where the element ends that starts here.
    ///
    /// One that is never closed takes the rest of its paragraph when it starts
    /// a line, as HTML does; a tag amid a sentence takes only itself.
    fn end_of(&self, start: usize) -> usize {
        let before = self.text[..start].trim_end_matches([' ', '\t', '>']);
        let opens_line = before.is_empty() || before.ends_with('\n');
        let closing = if opens_line { &self.closing } else { &self.closing_in_prose };
        match closing.get(closing.partition_point(|at| *at < start)) {
            Some(close) => self.past_tag(*close, &['>', '<']),
            None if opens_line => self.paragraph_end(start),
            None => self.past_tag(start, &['>', '<', '\n']),
        }
    }

    /// Behind the `>` of a tag, or behind its name where none comes.
    fn past_tag(&self, start: usize, ends: &[char]) -> usize {
        let tag = &self.text[start + 1..];
        match tag.find(ends) {
            Some(at) if tag[at..].starts_with('>') => start + 1 + at + 1,
            Some(_) | None => {
                let name = tag.find(|c: char| c != '/' && !c.is_ascii_alphabetic());
                name.map_or(self.text.len(), |at| start + 1 + at)
            }
        }
    }

    fn paragraph_end(&self, start: usize) -> usize {
        let mut at = start;
        for line in self.text[start..].split_inclusive('\n') {
            if line.trim().is_empty() {
                return at.saturating_sub(1);
            }
            at += line.len();
        }
        self.text.len()
    }
}

//! Removes script elements, but not text that mentions them.
//!
//! `` `<script>` `` in a code span only mentions a script, and stays. A part counts as
//! code only if every Markdown parser agrees, so odd back-ticks cannot hide an element.

use super::code_ranges::code_ranges;

/// The text in place of a script.
const NOTE: &str = "[script omitted]";

/// Replaces script elements by a note; returns the text, and how many were replaced.
pub(super) fn omit(text: &str) -> (String, usize) {
    let lower = text.to_ascii_lowercase();
    let code = code_ranges(text);
    let is_prose = |at: &usize| {
        let before = code.partition_point(|range| range.end <= *at);
        code.get(before).is_none_or(|range| *at < range.start)
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

/// A text and the positions of its closing tags.
struct Page<'t> {
    text: &'t str,
    closing: Vec<usize>,
    closing_in_prose: Vec<usize>,
}

impl Page<'_> {
    /// Returns where the element ends that starts here.
    ///
    /// An element without a closing tag ends with its paragraph if it starts a line, as in
    /// Markdown; a tag within a line is removed alone.
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

    /// Returns the position after the `>` of a tag, or after its name if there is none.
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

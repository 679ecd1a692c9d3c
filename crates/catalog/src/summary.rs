//! Reduces a description to one line.

pub use tool::text::cut;

/// The first sentence of `text` on one line, at most `limit` characters.
///
/// A sentence ends at `.`, `!` or `?` before white space and a capital letter,
/// at an empty line, or where a list or heading begins. What is cut ends with `…`.
pub fn sentence(text: &str, limit: usize) -> String {
    let line = first_line(text);
    cut(&line[..end_of_sentence(&line)], limit)
}

/// The sentence after the first, where both stand in one paragraph.
pub fn second_sentence(text: &str, limit: usize) -> Option<String> {
    let line = first_line(text);
    let rest = line[end_of_sentence(&line)..].trim_start();
    (!rest.is_empty()).then(|| cut(&rest[..end_of_sentence(rest)], limit))
}

/// The first paragraph on one line.
fn first_line(text: &str) -> String {
    first_paragraph(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Untrusted text made safe to be quoted between backticks: on one line and short.
pub fn echo(text: &str) -> String {
    let head: String = text.chars().take(ECHO + 1).collect();
    // Removes characters that could hide or reorder the text around it.
    let breaks = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    let head = head.replace(breaks, " ");
    let plain = |c: char| if c == '`' { ' ' } else { c };
    cut(&tool::text::without_invisible(&head).chars().map(plain).collect::<String>(), ECHO)
}

/// The most characters that are quoted.
const ECHO: usize = 80;

fn first_paragraph(text: &str) -> String {
    let mut lines: Vec<&str> = Vec::new();
    // A heading says less than the text below it, where there is any.
    let is_heading = |line: &str| line.trim_start().starts_with('#');
    let skips = text.lines().any(|line| !line.trim().is_empty() && !is_heading(line));
    let kept = text.lines().filter(|line| !skips || !is_heading(line));
    for line in kept.map(|line| line.trim().trim_start_matches('#').trim()) {
        let ends = line.is_empty() || starts_block(line);
        if ends && !lines.is_empty() {
            break;
        }
        if !line.is_empty() {
            lines.push(line);
        }
    }
    lines.join(" ")
}

fn starts_block(line: &str) -> bool {
    ["- ", "* ", "```", "| ", "1. "].iter().any(|mark| line.starts_with(mark))
}

/// The byte offset at which the first sentence of a line ends.
pub(crate) fn end_of_sentence(line: &str) -> usize {
    const SHORT: [&str; 6] = ["e.g.", "i.e.", "etc.", "vs.", "approx.", "incl."];
    for (at, mark) in line.match_indices(['.', '!', '?']) {
        let end = at + mark.len();
        let after = &line[end..];
        let next = after.trim_start().chars().next();
        let breaks = after.starts_with(' ') && next.is_none_or(|c| !c.is_lowercase());
        if breaks && !SHORT.iter().any(|short| line[..end].ends_with(short)) {
            return end;
        }
    }
    line.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(sentence(text, 40), expected);
    }

    #[test]
    fn the_first_sentence_is_enough() {
        check("Search orders. Needs a query.", "Search orders.");
        check("Search v1.2 files e.g. Rust ones. More.", "Search v1.2 files e.g. Rust ones.");
        check("# Title\n\nBody text", "Body text");
        check("# Title", "Title");
        check("List them:\n- a\n- b", "List them:");
        check("  spread\n over lines  ", "spread over lines");
        check("", "");
    }

    #[test]
    fn what_somebody_wrote_is_repeated_on_one_short_line() {
        assert_eq!(echo("a`b\nc\u{2028}d"), "a b c d");
        assert_eq!(echo(&"x".repeat(100_000)).chars().count(), ECHO);
    }

    #[test]
    fn what_is_too_long_is_cut_at_a_word() {
        check(&"word ".repeat(20), "word word word word word word word…");
        check(&"ö".repeat(60), &format!("{}…", "ö".repeat(39)));
    }
}

//! Reduces upstream text to one short line.

use crate::summary;

/// The most words of a line.
pub const WORDS: usize = 12;
/// The most characters of a line: some scripts have no spaces.
const CHARS: usize = 120;

/// Upstream text as one line of at most [`WORDS`] words.
pub fn one_line(text: &str) -> String {
    cut(&cleaned(text))
}

/// Upstream text on one line, without control characters, formatting characters and the
/// punctuation of Markdown.
pub(super) fn cleaned(text: &str) -> String {
    let kept = |c: &char| !matches!(c, '`' | '*' | '#' | '|' | '<' | '>' | '[' | ']' | '{' | '}');
    let plain: String = text.chars().filter(kept).filter(|c| !is_invisible(*c)).collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_invisible(c: char) -> bool {
    let formats = matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}');
    formats || (c.is_control() && !c.is_whitespace())
}

/// At most [`WORDS`] words; what is cut ends with `…`.
pub(super) fn cut(line: &str) -> String {
    let mut words = line.split(' ');
    let kept = words.by_ref().take(WORDS).collect::<Vec<_>>().join(" ");
    let kept = match words.next() {
        Some(_) => format!("{}…", kept.trim_end_matches([',', ';', ':', '.', '-'])),
        None => kept.trim_end_matches(['.', ';', ':']).to_owned(),
    };
    summary::cut(&kept, CHARS)
}

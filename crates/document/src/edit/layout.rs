//! How a text is laid out: its line ends and its indentation.

/// The line end that a text uses.
pub(super) fn newline(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        Some(_) | None => "\n",
    }
}

/// Returns where the line of a place begins.
pub(super) fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |end| end + 1)
}

/// Returns where the line of a place ends, before its line end.
pub(super) fn line_end(text: &str, at: usize) -> usize {
    let end = text[at..].find('\n').map_or(text.len(), |end| at + end);
    if text[at..end].ends_with('\r') { end - 1 } else { end }
}

/// Returns where the line of a place ends, with its line end.
pub(super) fn next_line(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |end| at + end + 1)
}

/// The line end before a line, with what stands before it left alone; `None`
/// in the first line.
pub(super) fn break_before(text: &str, line_start: usize) -> Option<usize> {
    let before = text[..line_start].strip_suffix('\n')?;
    Some(before.strip_suffix('\r').unwrap_or(before).len())
}

/// Returns what a line is indented by, if nothing else stands before the place.
pub(super) fn indent_before(text: &str, at: usize) -> Option<&str> {
    let before = &text[line_start(text, at)..at];
    before.bytes().all(|b| matches!(b, b' ' | b'\t')).then_some(before)
}

/// Returns what the line of a place is indented by.
pub(super) fn indent_of_line(text: &str, at: usize) -> &str {
    let line = &text[line_start(text, at)..];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

//! Parses and writes inline Markdown: code spans, bold labels, table rows.

/// Splits a table row into its cells, unescaping `\|`.
///
/// A pipe inside a code span does not separate cells. If a row ends inside a code span (it
/// has an odd number of back-ticks), it is split at every pipe, and `balanced` is false.
pub(crate) fn split_row(line: &str) -> Row {
    let body = line.trim();
    let body = body.strip_prefix('|').unwrap_or(body);
    let body = strip_last_pipe(body);
    let (cells, in_code) = split(body, true);
    if in_code {
        return Row { cells: split(body, false).0, balanced: false };
    }
    Row { cells, balanced: true }
}

/// The cells of one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) cells: Vec<String>,
    /// Whether the row has an even number of back-ticks.
    pub(crate) balanced: bool,
}

fn strip_last_pipe(body: &str) -> &str {
    match body.strip_suffix('|') {
        Some(rest) if !rest.ends_with('\\') => rest,
        Some(_) | None => body,
    }
}

fn split(body: &str, respect_code: bool) -> (Vec<String>, bool) {
    let (mut cells, mut cell, mut in_code) = (Vec::new(), String::new(), false);
    let mut letters = body.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if letters.peek() == Some(&'|') => {
                letters.next();
                cell.push('|');
            }
            '`' => {
                in_code = !in_code;
                cell.push('`');
            }
            '|' if !(respect_code && in_code) => {
                cells.push(cell.trim().to_owned());
                cell = String::new();
            }
            other => cell.push(other),
        }
    }
    cells.push(cell.trim().to_owned());
    (cells, in_code)
}

/// Returns whether this is the line under a table's header.
pub(crate) fn is_delimiter_row(line: &str) -> bool {
    let line = line.trim();
    line.contains('-')
        && line.contains('|')
        && line.chars().all(|letter| matches!(letter, '|' | '-' | ':' | ' ' | '\t'))
}

/// Writes a table row, with cells escaped and on one line.
pub(crate) fn write_row(cells: &[String]) -> String {
    let escape = |cell: &String| {
        // A cell cannot contain line breaks, and a lone back-tick would open a code span
        // that includes the pipes after it.
        let mut flat = cell.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|");
        // A backslash at the end of a cell would escape the pipe.
        if flat.ends_with('\\') {
            flat.pop();
            flat.push_str("&#92;");
        }
        if flat.matches('`').count() % 2 == 0 { flat } else { flat.replace('`', "'") }
    };
    let cells: Vec<String> = cells.iter().map(escape).collect();
    format!("| {} |", cells.join(" | "))
}

/// Writes a code span with any text.
pub(crate) fn code_span(text: &str) -> String {
    let longest = text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
    let ticks = "`".repeat(longest + 1);
    let pad =
        if text.starts_with('`') || text.ends_with('`') || text.is_empty() { " " } else { "" };
    format!("{ticks}{pad}{text}{pad}{ticks}")
}

/// The contents of all code spans in a line.
pub(crate) fn code_spans(text: &str) -> Vec<String> {
    let mut spans = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('`') {
        let n_ticks = rest[start..].bytes().take_while(|&byte| byte == b'`').count();
        let ticks = &rest[start..start + n_ticks];
        let body = &rest[start + n_ticks..];
        let Some(end) = find_run(body, ticks) else {
            rest = body;
            continue;
        };
        spans.push(unpad(&body[..end], n_ticks));
        rest = &body[end + n_ticks..];
    }
    spans
}

/// Returns where a run of exactly as many back-ticks starts.
fn find_run(body: &str, ticks: &str) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = body[at..].find('`') {
        let start = at + found;
        let run = body[start..].bytes().take_while(|&byte| byte == b'`').count();
        if run == ticks.len() {
            return Some(start);
        }
        at = start + run;
    }
    None
}

fn unpad(span: &str, n_ticks: usize) -> String {
    let padded = span.starts_with(' ') && span.ends_with(' ') && 2 <= span.len();
    let ticky = span.trim().starts_with('`') || span.trim().ends_with('`');
    if padded && (ticky || 1 < n_ticks || span.trim().is_empty()) {
        return span[1..span.len() - 1].to_owned();
    }
    span.to_owned()
}

/// Removes the marks around a text: code span, bold, italics.
pub(crate) fn plain(text: &str) -> String {
    let text = text.trim();
    if let [span] = code_spans(text).as_slice()
        && code_span(span) == text
    {
        return span.trim().to_owned();
    }
    text.trim_matches(|letter| matches!(letter, '*' | '`')).trim().to_owned()
}

/// Parses `**Label**: rest` or `**Label:** rest` into label and rest.
pub(crate) fn label(line: &str) -> Option<(&str, &str)> {
    let body = line.trim_start().strip_prefix("**")?;
    let (inside, after) = body.split_once("**")?;
    if let Some(name) = inside.strip_suffix(':') {
        return Some((name.trim(), after.trim()));
    }
    let rest = after.trim_start().strip_prefix(':');
    match rest {
        Some(rest) => Some((inside.trim(), rest.trim())),
        None if after.trim().is_empty() => Some((inside.trim(), "")),
        None => None,
    }
}

/// Parses `**A**: x | **B**: y` into pairs of a label and a value.
pub(crate) fn pairs(line: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for part in split_pairs(line) {
        if let Some((name, value)) = label(part) {
            found.push((name.to_owned(), value.to_owned()));
        }
    }
    found
}

/// Splits a line at pipes before a label; other pipes belong to a value.
fn split_pairs(line: &str) -> Vec<&str> {
    let (mut parts, mut start) = (Vec::new(), 0);
    for (at, _) in line.match_indices('|') {
        if line[at + 1..].trim_start().starts_with("**") && label(&line[at + 1..]).is_some() {
            parts.push(line[start..at].trim());
            start = at + 1;
        }
    }
    parts.push(line[start..].trim());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn row(line: &str, cells: &[&str]) {
        assert_eq!(split_row(line).cells, cells);
    }

    #[test]
    fn pipes_in_code_or_escaped_stay_in_their_cell() {
        row("| `a` | `str | None` | x \\| y |", &["`a`", "`str | None`", "x | y"]);
        row("a | b", &["a", "b"]);
        row("| a | |", &["a", ""]);
    }

    #[test]
    fn a_cell_that_ends_in_a_backslash_escapes_nothing() {
        let line = write_row(&["C:\\".to_owned(), "x".to_owned()]);
        assert_eq!(line, "| C:&#92; | x |");
        row(&line, &["C:&#92;", "x"]);
    }

    #[test]
    fn a_row_with_an_odd_back_tick_is_split_at_every_pipe_and_says_so() {
        let row = split_row("| `a | b | c |");
        assert_eq!((row.cells.len(), row.balanced), (3, false));
    }

    #[test]
    fn a_code_span_holds_any_text() {
        for text in ["a", "`", "a`b", "``", " x ", "`` ` ``", ""] {
            let spans = code_spans(&format!("see {} there", code_span(text)));
            assert_eq!(spans, [text], "{}", code_span(text));
        }
    }

    #[test]
    fn labels_have_their_colon_inside_or_outside() {
        assert_eq!(label("**Returns**: x"), Some(("Returns", "x")));
        assert_eq!(label("**Returns:** x"), Some(("Returns", "x")));
        assert_eq!(label("**Returns**"), Some(("Returns", "")));
        assert_eq!(label("**Bold** words"), None);
    }

    #[test]
    fn pairs_share_a_line() {
        let line = "**Version**: v1.0 | **Status**: a | b | **Last Updated**: May 2026";
        let pairs = pairs(line);
        assert_eq!(pairs.len(), 3);
        assert_eq!(pairs[1].1, "a | b");
    }
}

//! The views of text: ranges of lines, and rows of a table.

use serde_json::json;

use crate::view::piece::{Budget, View, clip};
use crate::view::span::Span;
use crate::view::table;

/// The lines of `span`, as many as fit.
pub(super) fn lines(text: &str, span: Span, budget: &Budget) -> View {
    pieces("lines", text, &split(text), span, budget)
}

/// The records of `span`. In a table a record may span lines.
pub(super) fn rows(text: &str, media_type: &str, span: Span, budget: &Budget) -> View {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    let declared = match essence {
        "text/csv" | "application/csv" => Some(','),
        "text/tab-separated-values" => Some('\t'),
        _ => None,
    };
    match table::delimiter(text).or(declared) {
        Some(delimiter) => {
            let records: Vec<&str> = table::records(text, delimiter).collect();
            pieces("rows", text, &records, span, budget)
        }
        None => pieces("rows", text, &split(text), span, budget),
    }
}

/// The lines of a text, at every kind of line end that Unicode knows.
pub(super) fn split(text: &str) -> Vec<&str> {
    let ends = |c: char| {
        matches!(
            c,
            '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'
                ..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
        )
    };
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(ends) {
        lines.push(&rest[..at]);
        let end = rest[at..].chars().next().map_or(1, char::len_utf8);
        let pair = rest[at..].starts_with("\r\n");
        rest = &rest[at + if pair { 2 } else { end }..];
    }
    if !rest.is_empty() {
        lines.push(rest);
    }
    lines
}

/// The pieces of `text` in `span`, as many as fit.
fn pieces(kind: &str, text: &str, all: &[&str], span: Span, budget: &Budget) -> View {
    let range = span.within(all.len());
    let mut body = String::new();
    let mut room = budget.chars;
    let mut end = range.start;
    for piece in &all[range.clone()] {
        let length = piece.chars().count() + usize::from(end != range.start);
        if room < length && end != range.start {
            break;
        }
        if end != range.start {
            body.push('\n');
        }
        // A first piece that is too long by itself is shown as far as it goes.
        let (shown, whole) = clip(piece, room);
        body.push_str(&shown);
        room = room.saturating_sub(length);
        end += 1;
        if !whole {
            body.push('…');
            let before = text[..piece.as_ptr().addr() - text.as_ptr().addr()].chars().count();
            let note = format!(
                "{kind} {} of {}, cut after {} of its {length} chars",
                range.start + budget.first_line,
                all.len(),
                budget.chars,
            );
            let start = before + budget.chars;
            let next = json!({"type": "head", "start": start, "chars": budget.chars});
            return View::text(body, note, Some(next));
        }
    }
    let first = match end == range.start {
        true => range.start,
        false => range.start + budget.first_line,
    };
    let note = match range.is_empty() && !all.is_empty() && all.len() <= range.start {
        true => format!("nothing is there: {} {kind} in all", all.len()),
        false => format!("{kind} {first}-{end} of {}", all.len()),
    };
    let mut next = json!({"type": kind, "start": end});
    if range.end != all.len() {
        next["end"] = json!(range.end);
    }
    View::text(body, note, (end < range.end).then_some(next))
}

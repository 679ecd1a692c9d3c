//! The views of text: ranges of lines, and rows of a table.

use serde_json::json;

use crate::view::piece::{Budget, View, clip};
use crate::view::span::Span;
use crate::view::table;

/// Shows the lines of `span`, as many as fit.
pub(super) fn lines(text: &str, span: Span, budget: &Budget) -> View {
    select("lines", text, &split_lines(text), span, budget)
}

/// Shows the records of a table, as many as fit; lines if the text is not a table.
/// A record may have several lines.
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
            select("rows", text, &records, span, budget)
        }
        None => select("rows", text, &split_lines(text), span, budget),
    }
}

/// Splits a text into lines, at every line end of Unicode.
pub(super) fn split_lines(text: &str) -> Vec<&str> {
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

/// Shows the `items` of `text` in `span`, as many as fit. `kind` is the type of the
/// selector that continues, and names the items.
fn select(kind: &str, text: &str, items: &[&str], span: Span, budget: &Budget) -> View {
    let range = span.within(items.len());
    let mut body = String::new();
    let mut room = budget.chars;
    let mut end = range.start;
    for item in &items[range.clone()] {
        let length = item.chars().count() + usize::from(end != range.start);
        if room < length && end != range.start {
            break;
        }
        if end != range.start {
            body.push('\n');
        }
        // A first item that is too long by itself is shown as far as it goes.
        let (shown, whole) = clip(item, room);
        body.push_str(&shown);
        room = room.saturating_sub(length);
        end += 1;
        if !whole {
            body.push('…');
            let before = text[..item.as_ptr().addr() - text.as_ptr().addr()].chars().count();
            let note = format!(
                "{kind} {} of {}, cut after {} of its {length} chars",
                range.start + budget.first_line,
                items.len(),
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
    let note = match range.is_empty() && !items.is_empty() && items.len() <= range.start {
        true => format!("nothing is there: {} {kind} in all", items.len()),
        false => format!("{kind} {first}-{end} of {}", items.len()),
    };
    let mut next = json!({"type": kind, "start": end});
    if range.end != items.len() {
        next["end"] = json!(range.end);
    }
    View::text(body, note, (end < range.end).then_some(next))
}

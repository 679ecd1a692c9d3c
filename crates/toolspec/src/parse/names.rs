//! What is the name of a tool, and what only looks like one.

use crate::block::{Block, Kind, Table};
use crate::finding::Place;
use crate::markdown::{code_spans, plain};
use crate::section::{Topic, normal, without_number};

/// Whether a heading says itself that it is a tool: `Tool: x`.
pub(super) fn is_marked(text: &str) -> bool {
    let text = without_number(text);
    text.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("tool:"))
}

/// Whether tools are expected below a heading.
pub(super) fn is_group(text: &str) -> bool {
    let text = normal(text);
    text.split(|letter: char| !letter.is_alphanumeric())
        .any(|word| word == "tool" || word == "tools")
        && !text.contains("no mcp tool")
}

/// The names in a heading that introduces a tool.
///
/// `marked` says that other headings of the document are `Tool: x`; then a
/// heading that is not is a tool only where tools are expected.
pub(super) fn tool_names(text: &str, in_group: bool, marked: bool) -> Option<Vec<String>> {
    if is_marked(text) {
        let rest = without_number(text)[5..].trim();
        let names = spans_or_words(rest);
        return Some(if names.is_empty() { vec![rest.to_owned()] } else { names });
    }
    if Topic::of_title(text).is_some() || (marked && !in_group) {
        return None;
    }
    let text = without_number(text);
    if text.starts_with('`') {
        let names: Vec<String> =
            code_spans(text).into_iter().map(|span| call_name(&span).to_owned()).collect();
        let all = !names.is_empty() && names.iter().all(|name| is_identifier(name));
        return all.then_some(names);
    }
    let bare = is_identifier(text) && text == text.to_lowercase();
    let telling = text.contains(['_', '.']) && !text.ends_with(".md");
    (bare && (telling || in_group)).then(|| vec![text.to_owned()])
}

/// The names in what follows `Tool:`.
fn spans_or_words(text: &str) -> Vec<String> {
    let spans = code_spans(text);
    if !spans.is_empty() {
        return spans.iter().map(|span| call_name(span).to_owned()).collect();
    }
    let names: Vec<&str> = text.split(" / ").map(str::trim).collect();
    if names.iter().all(|name| is_identifier(name)) {
        return names.into_iter().map(str::to_owned).collect();
    }
    // `Tool: name — what it does`
    let first = text.split_whitespace().next().unwrap_or("");
    if is_identifier(first) { vec![first.to_owned()] } else { Vec::new() }
}

/// `f(x)` is called `f`.
fn call_name(span: &str) -> &str {
    span.split('(').next().unwrap_or(span).trim()
}

pub(super) fn is_identifier(text: &str) -> bool {
    let starts = text.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_');
    starts
        && text
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.' | '-' | '/'))
}

/// A heading or a sentence that says that there are no tools.
pub(super) fn says_no_tools(block: &Block) -> Option<Place> {
    let text = match &block.kind {
        Kind::Heading { text, .. } | Kind::Text(text) | Kind::Bullet { text, .. } => text,
        Kind::Fence { .. } | Kind::Table(_) | Kind::Rule | Kind::Comment => return None,
    };
    let words = text.to_lowercase().replace(['*', '`', '\n'], " ");
    let phrases = [
        "no mcp tools",
        "no tools defined",
        "no tools are defined",
        "does not expose any mcp tools",
        "does not expose mcp tools",
        "does not define any mcp tools",
        "does not currently expose",
        "no mcp-exposed tools",
        "exposes no mcp tools",
        "exposes no tools",
    ];
    let found = phrases.iter().any(|phrase| words.contains(phrase));
    found.then(|| Place::line(block.lines.start + 1))
}

/// One row of an inventory.
pub(super) struct InventoryRow {
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) parameters: String,
    pub(super) description: String,
}

/// A table whose first column names tools.
pub(super) fn inventory_tools(table: &Table) -> Option<Vec<InventoryRow>> {
    let columns: Vec<String> = table.header.iter().map(|cell| normal(cell)).collect();
    let first = columns.first()?;
    if !["tool", "tool name", "tools", "exposed name", "function"].contains(&first.as_str()) {
        return None;
    }
    let cell = |cells: &[String], names: &[&str]| {
        let at = columns.iter().position(|column| names.contains(&column.as_str()));
        at.and_then(|at| cells.get(at).cloned()).unwrap_or_default()
    };
    let rows: Vec<InventoryRow> = table
        .rows
        .iter()
        .filter_map(|(line, cells)| {
            let name = call_name(&plain(cells.first()?)).to_owned();
            is_identifier(&name).then(|| InventoryRow {
                name,
                place: Place::line(line + 1),
                parameters: cell(
                    cells,
                    &["parameters", "key parameters", "arguments", "signature"],
                ),
                description: cell(
                    cells,
                    &["description", "summary", "purpose", "return", "returns"],
                ),
            })
        })
        .collect();
    (!rows.is_empty()).then_some(rows)
}

/// `` `name`: text `` or `` **`name`** - text ``
pub(super) fn bare_bullet_tool(text: &str) -> Option<(String, String)> {
    let body = text.trim_start_matches('*');
    let name = code_spans(body).first().map(|span| call_name(span).to_owned())?;
    if !body.starts_with('`') || !is_identifier(&name) {
        return None;
    }
    let after = body.splitn(3, '`').nth(2).unwrap_or("");
    let rest = after.trim_start_matches([':', '*', '-', '—', '–', ' ']).trim();
    Some((name, rest.to_owned()))
}

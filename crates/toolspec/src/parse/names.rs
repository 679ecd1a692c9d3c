//! What is the name of a tool, and what only looks like one.

use crate::block::{Block, Kind, Table};
use crate::finding::Position;
use crate::markdown::{code_spans, plain};
use crate::section::{Topic, normal, without_number};

/// Returns what stands behind `Tool:` or `Tool 2:` in a heading that says so
/// itself.
pub(super) fn marked(text: &str) -> Option<&str> {
    let text = without_number(text);
    let rest = text.get(..4).filter(|start| start.eq_ignore_ascii_case("tool"))?;
    let rest = text[rest.len()..].trim_start();
    let rest = rest.trim_start_matches(|letter: char| letter.is_ascii_digit());
    rest.trim_start().strip_prefix(':').map(str::trim)
}

/// Returns whether tools are expected below a heading.
pub(super) fn is_group(text: &str) -> bool {
    let text = normal(text);
    text.split(|letter: char| !letter.is_alphanumeric())
        .any(|word| word == "tool" || word == "tools")
        && !text.contains("no mcp tool")
}

/// What else is known about a heading.
#[derive(Clone, Copy)]
pub(super) struct HeadingContext {
    /// Tools are expected here.
    pub(super) in_group: bool,
    /// Other headings of the document are `Tool: x`.
    pub(super) marked: bool,
    /// What follows has the sections of a tool.
    pub(super) has_sections: bool,
}

/// The names in a heading that introduces a tool.
///
/// Where other headings are `Tool: x`, one that is not is a tool only where
/// tools are expected, or when it reads like one.
pub(super) fn tool_names(text: &str, around: HeadingContext) -> Option<Vec<String>> {
    if let Some(rest) = marked(text) {
        let names = spans_or_words(rest);
        return Some(if names.is_empty() { vec![rest.to_owned()] } else { names });
    }
    let foreign = around.marked && !around.in_group && !around.has_sections;
    if Topic::from_title(text).is_some() || foreign {
        return None;
    }
    let text = without_number(text);
    if let Some(names) = leading_spans(text) {
        return names.iter().all(|name| is_identifier(name)).then_some(names);
    }
    // `name (deprecated)`, `name - what it does`
    let name = text.split([' ', ':']).next().unwrap_or(text);
    let rest = text[name.len()..].trim_start();
    let alone = rest.is_empty() || rest.starts_with(['(', '-', '–', '—', ':', '[']);
    let bare = is_identifier(name) && name == name.to_lowercase() && alone;
    let other = is_file(name) || is_version(name);
    let expected = around.in_group && (rest.is_empty() || around.has_sections);
    (bare && !other && (name.contains(['_', '.']) || expected)).then(|| vec![name.to_owned()])
}

/// The code spans that a heading starts with, in bold or as a link too:
/// `` `a` / `b` ``. A span further on is part of the sentence.
fn leading_spans(text: &str) -> Option<Vec<String>> {
    let mut rest = text.trim_start_matches(['*', '_', '[']);
    let mut names = Vec::new();
    while rest.starts_with('`') {
        let span = code_spans(rest).into_iter().next()?;
        names.push(call_name(&span).to_owned());
        rest = rest.splitn(3, '`').nth(2)?.trim_start_matches(['*', '_']).trim_start();
        let joint = ["/", ",", "and ", "&"].iter().find_map(|joint| rest.strip_prefix(joint));
        rest = joint.map_or("", |next| next.trim_start().trim_start_matches(['*', '_', '[']));
    }
    (!names.is_empty()).then_some(names)
}

/// `server.py` heads a section about a file.
fn is_file(name: &str) -> bool {
    let kinds = ["md", "py", "rs", "ts", "js", "json", "yaml", "yml", "toml", "txt", "sh"];
    name.rsplit_once('.').is_some_and(|(_, kind)| kinds.contains(&kind))
}

/// `v1.2.0` heads what changed in it.
fn is_version(name: &str) -> bool {
    let numbers = name.trim_start_matches('v');
    !numbers.is_empty() && numbers.chars().all(|letter| letter.is_ascii_digit() || letter == '.')
}

/// The names in what follows `Tool:`.
fn spans_or_words(text: &str) -> Vec<String> {
    let leading = text.starts_with(['`', '*', '_', '[']).then(|| leading_spans(text)).flatten();
    if let Some(names) = leading {
        return names;
    }
    let spans = code_spans(text);
    if !spans.is_empty() {
        return spans.iter().map(|span| call_name(span).to_owned()).collect();
    }
    let names: Vec<&str> = text.split(" / ").map(str::trim).collect();
    if names.iter().all(|name| is_identifier(name)) {
        return names.into_iter().map(str::to_owned).collect();
    }
    // `Tool: name — what it does`
    let first = text.split_whitespace().next().unwrap_or("").trim_end_matches(':');
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
pub(super) fn says_no_tools(block: &Block) -> Option<Position> {
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
    found.then(|| Position::line(block.lines.start + 1))
}

/// One row of an inventory.
pub(super) struct InventoryRow {
    pub(super) name: String,
    pub(super) place: Position,
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
                place: Position::line(line + 1),
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

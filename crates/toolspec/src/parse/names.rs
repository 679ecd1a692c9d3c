//! Recognises the names of tools in headings, tables and bullets.

use crate::block::{Block, BlockKind, Table};
use crate::finding::Position;
use crate::markdown::{code_spans, plain};
use crate::section::{Topic, normalize_title, without_number};

/// Returns the text after `Tool:` or `Tool 2:` in a heading that begins so.
pub(super) fn marked(text: &str) -> Option<&str> {
    let text = without_number(text);
    let rest = text.get(..4).filter(|start| start.eq_ignore_ascii_case("tool"))?;
    let rest = text[rest.len()..].trim_start();
    let rest = rest.trim_start_matches(|letter: char| letter.is_ascii_digit());
    rest.trim_start().strip_prefix(':').map(str::trim)
}

/// Returns whether a heading, such as `Tools`, announces tools below it.
pub(super) fn is_group(text: &str) -> bool {
    let text = normalize_title(text);
    text.split(|letter: char| !letter.is_alphanumeric())
        .any(|word| word == "tool" || word == "tools")
        && !text.contains("no mcp tool")
}

/// The context of a heading, by which it is recognised as that of a tool.
#[derive(Clone, Copy)]
pub(super) struct HeadingContext {
    /// Whether a heading above announces tools.
    pub(super) in_group: bool,
    /// Whether some headings of the document are `Tool: x`.
    pub(super) marked: bool,
    /// Whether the sections of a tool follow.
    pub(super) has_sections: bool,
}

/// Returns the names in a heading, if it introduces a tool.
///
/// In a document with headings such as `Tool: x`, another heading introduces a tool only
/// if one above it announces tools, or sections of a tool follow.
pub(super) fn tool_names(text: &str, context: HeadingContext) -> Option<Vec<String>> {
    if let Some(rest) = marked(text) {
        let names = spans_or_words(rest);
        return Some(if names.is_empty() { vec![rest.to_owned()] } else { names });
    }
    let foreign = context.marked && !context.in_group && !context.has_sections;
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
    let expected = context.in_group && (rest.is_empty() || context.has_sections);
    (bare && !other && (name.contains(['_', '.']) || expected)).then(|| vec![name.to_owned()])
}

/// Returns the code spans at the start of a heading, also in bold or as links:
/// `` `a` / `b` ``. A later span is part of the sentence.
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

/// Returns whether a name is that of a file, such as `server.py`.
fn is_file(name: &str) -> bool {
    let kinds = ["md", "py", "rs", "ts", "js", "json", "yaml", "yml", "toml", "txt", "sh"];
    name.rsplit_once('.').is_some_and(|(_, kind)| kinds.contains(&kind))
}

/// Returns whether a name is a version, such as `v1.2.0`, the heading of a changelog entry.
fn is_version(name: &str) -> bool {
    let numbers = name.trim_start_matches('v');
    !numbers.is_empty() && numbers.chars().all(|letter| letter.is_ascii_digit() || letter == '.')
}

/// Returns the names in the text after `Tool:`.
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

/// Returns the name of a call: `f` for `f(x)`.
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

/// Returns the position of a heading or sentence that says that there are no tools.
pub(super) fn says_no_tools(block: &Block) -> Option<Position> {
    let text = match &block.kind {
        BlockKind::Heading { text, .. }
        | BlockKind::Text(text)
        | BlockKind::Bullet { text, .. } => text,
        BlockKind::Fence { .. } | BlockKind::Table(_) | BlockKind::Rule | BlockKind::Comment => {
            return None;
        }
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

/// One row of a table of tools.
pub(super) struct InventoryRow {
    pub(super) name: String,
    pub(super) place: Position,
    pub(super) parameters: String,
    pub(super) description: String,
}

/// Parses a table of tools, whose first column has their names.
pub(super) fn inventory_tools(table: &Table) -> Option<Vec<InventoryRow>> {
    let columns: Vec<String> = table.header.iter().map(|cell| normalize_title(cell)).collect();
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

/// Parses `` `name`: text `` or `` **`name`** - text `` into name and text.
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

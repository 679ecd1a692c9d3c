//! Computes the replacements that set or remove a value in a JSON text.
//!
//! A new member goes to the end of its table, laid out like its neighbours; a comment
//! behind the last member stays beside it.

use serde_json::Value as Json;

use super::layout::{break_before, indent_before, indent_of_line, line_end, line_start, newline};
use super::splice::{Place, Splice, find, nested};
use super::write::{self, Layout};
use crate::tree::{Member, Node, Value};

/// Computes the replacements that set the value at `keys`; `None` if its layout cannot be
/// edited.
pub(super) fn set(text: &str, root: &Node, keys: &[&str], value: &Json) -> Option<Vec<Splice>> {
    if text.trim().is_empty() {
        let layout = Layout::Lines { newline: "\n", indent: String::new(), unit: "  ".to_owned() };
        let document = write::json(&nested(keys, value), &layout);
        return Some(vec![(0..text.len(), format!("{document}\n"))]);
    }
    let mut node = root;
    for (depth, key) in keys.iter().enumerate() {
        if !matches!(node.value, Value::Table(_)) {
            let layout = layout_at(text, root, node.span.start);
            let instead = write::json(&nested(&keys[depth..], value), &layout);
            return Some(vec![(node.span.clone(), instead)]);
        }
        match node.get(key) {
            Some(below) => node = below,
            None => {
                let below = nested(&keys[depth + 1..], value);
                return Some(match node.members().last() {
                    Some(last) => insert(text, root, node, key, &below, Place::Behind(last)),
                    None => vec![insert_first(text, root, node, key, &below)],
                });
            }
        }
    }
    let layout = match text[node.span.clone()].contains('\n') {
        true => layout_at(text, root, node.span.start),
        false if is_key_on_own_line(text, root, keys) => layout_at(text, root, node.span.start),
        false => one_line_layout(&text[root.span.clone()]),
    };
    Some(vec![(node.span.clone(), write::json(value, &layout))])
}

/// Computes the replacements that remove the member at `keys`; `None` if its layout cannot
/// be edited.
pub(super) fn remove(text: &str, root: &Node, keys: &[&str]) -> Option<Vec<Splice>> {
    let (key, parents) = keys.split_last()?;
    let table = find(root, parents)?;
    let at = table.members().iter().position(|member| member.key == *key)?;
    let (previous, rest) = table.members().split_at(at);
    let member = &rest[0];
    let previous_end = previous.last().map(|member| member.node.span.end);
    let comma = comma_after(text, member.node.span.end);
    let own_line = indent_before(text, member.key_span.start).is_some();
    let start = line_start(text, member.key_span.start);
    if let (Some(next), Some(comma)) = (rest.get(1), comma) {
        return Some(vec![(span_up_to_next(text, member, next, comma, own_line), String::new())]);
    }
    // With the last member goes the comma before it, unless it has one behind it.
    let end = comma.map_or(member.node.span.end, |comma| comma + 1);
    let comma_before = previous_end.and_then(|end| comma_after(text, end));
    let mut splices = Vec::new();
    let from = match (own_line.then(|| break_before(text, start)).flatten(), comma_before) {
        (Some(line_break), Some(comma_before)) => {
            if comma.is_none() {
                splices.push((comma_before..comma_before + 1, String::new()));
            }
            line_break.max(comma_before + 1)
        }
        (Some(line_break), None) => line_break,
        (None, Some(comma_before)) if comma.is_none() => comma_before,
        (None, Some(comma_before)) => end_of_comments(text, comma_before + 1),
        (None, None) => member.key_span.start,
    };
    let from = from.max(table.span.start + 1);
    let inside = (table.span.start + 1, table.span.end - 1);
    let remains = [&text[inside.0..from], &text[end..inside.1]];
    match previous_end.is_none() && remains.iter().all(|text| text.trim().is_empty()) {
        true => splices.push((inside.0..inside.1, String::new())),
        false => splices.push((from..end, String::new())),
    }
    Some(splices)
}

/// Returns the range to remove for a member that another one follows.
fn span_up_to_next(
    text: &str,
    member: &Member,
    next: &Member,
    comma: usize,
    own_line: bool,
) -> std::ops::Range<usize> {
    let start = member.key_span.start;
    let line_rest = &text[comma + 1..line_end(text, comma + 1)];
    if own_line && line_rest.trim().is_empty() && line_end(text, comma + 1) < next.key_span.start {
        return line_start(text, start)..super::layout::next_line(text, comma + 1);
    }
    // A comment behind it stays, and so does the next line.
    let between = &text[comma + 1..next.key_span.start];
    let n_blanks = between.len() - between.trim_start_matches([' ', '\t']).len();
    start..comma + 1 + n_blanks
}

/// Inserts a member into a table that has others.
pub(super) fn insert(
    text: &str,
    root: &Node,
    table: &Node,
    key: &str,
    value: &Json,
    place: Place<'_>,
) -> Vec<Splice> {
    let inside = &text[table.span.start + 1..table.span.end - 1];
    if !inside.contains('\n') {
        let layout = one_line_layout(inside);
        let blank = if matches!(layout, Layout::Dense) { "" } else { " " };
        let member =
            format!("{}{}{}", write::quoted(key), layout.colon(), write::json(value, &layout));
        return vec![match place {
            Place::Before(next) => {
                (next.key_span.start..next.key_span.start, format!("{member},{blank}"))
            }
            Place::Behind(before) => {
                let (behind, has_comma) = end_with_comma(text, before);
                let at = end_of_comments(text, behind);
                let new = match has_comma {
                    true => format!("{blank}{member},"),
                    false => format!(",{blank}{member}"),
                };
                (at..at, new)
            }
        }];
    }
    let indent = table.members().iter().rev().find_map(|m| indent_before(text, m.key_span.start));
    let unit = indent_unit(text, root);
    let indent = indent
        .map_or_else(|| format!("{}{unit}", indent_of_line(text, table.span.start)), str::to_owned);
    let newline = newline(text);
    let layout = Layout::Lines { newline, indent: indent.clone(), unit };
    let member = format!("{}: {}", write::quoted(key), write::json(value, &layout));
    match place {
        Place::Before(next) => {
            let at = next.key_span.start;
            vec![(at..at, format!("{member},{newline}{indent}"))]
        }
        Place::Behind(before) => {
            let (behind, has_comma) = end_with_comma(text, before);
            let at = end_of_comments(text, behind);
            let comma = if has_comma { "," } else { "" };
            let mut splices = vec![(at..at, format!("{newline}{indent}{member}{comma}"))];
            if !has_comma {
                splices.insert(0, (behind..behind, ",".to_owned()));
            }
            splices
        }
    }
}

/// Returns the end of a member, with the comma behind it, and whether there is one.
fn end_with_comma(text: &str, member: &Member) -> (usize, bool) {
    let end = member.node.span.end;
    comma_after(text, end).map_or((end, false), |comma| (comma + 1, true))
}

/// Inserts the first member of a table, below the comments in it.
fn insert_first(text: &str, root: &Node, table: &Node, key: &str, value: &Json) -> Splice {
    let (start, end) = (table.span.start + 1, table.span.end - 1);
    let comments = text[start..end].trim_end();
    let Layout::Lines { newline, indent: outer, unit } = layout_at(text, root, table.span.start)
    else {
        unreachable!("`layout_at` lays out in lines");
    };
    let indent = format!("{outer}{unit}");
    let layout = Layout::Lines { newline, indent: indent.clone(), unit };
    let member = format!("{}: {}", write::quoted(key), write::json(value, &layout));
    match comments.trim().is_empty() {
        true => (start..end, format!("{newline}{indent}{member}{newline}{outer}")),
        false => {
            let at = start + comments.len();
            (at..at, format!("{newline}{indent}{member}"))
        }
    }
}

/// Returns the layout of a value over several lines that starts on the line of `at`.
fn layout_at(text: &str, root: &Node, at: usize) -> Layout {
    let indent = indent_of_line(text, at).to_owned();
    Layout::Lines { newline: newline(text), indent, unit: indent_unit(text, root) }
}

/// Returns the layout of a text on one line.
fn one_line_layout(text: &str) -> Layout {
    if text.contains("\": ") || text.contains("\" :") { Layout::Spaced } else { Layout::Dense }
}

fn is_key_on_own_line(text: &str, root: &Node, keys: &[&str]) -> bool {
    let Some((key, parents)) = keys.split_last() else { return false };
    let table = find(root, parents);
    let member = table.and_then(|table| table.members().iter().find(|member| member.key == *key));
    member.is_some_and(|member| indent_before(text, member.key_span.start).is_some())
}

/// Returns one level of indentation, as the first indented member has it.
fn indent_unit(text: &str, root: &Node) -> String {
    fn first_indent(text: &str, node: &Node) -> Option<String> {
        let outer = indent_of_line(text, node.span.start);
        let own = node.members().iter().find_map(|member| {
            let inner = indent_before(text, member.key_span.start)?;
            inner.strip_prefix(outer).filter(|unit| !unit.is_empty()).map(str::to_owned)
        });
        own.or_else(|| node.members().iter().find_map(|member| first_indent(text, &member.node)))
    }
    first_indent(text, root).unwrap_or_else(|| "  ".to_owned())
}

/// Returns the offset of the comma behind a value that ends at `at`.
fn comma_after(text: &str, at: usize) -> Option<usize> {
    let mut at = at;
    loop {
        let rest = &text[at..];
        let trimmed = rest.trim_start();
        at += rest.len() - trimmed.len();
        if trimmed.starts_with("//") {
            at += trimmed.find('\n')?;
        } else if trimmed.starts_with("/*") {
            at += trimmed.find("*/")? + 2;
        } else {
            return trimmed.starts_with(',').then_some(at);
        }
    }
}

/// Returns the end of the comments that follow offset `at` on the same line.
fn end_of_comments(text: &str, at: usize) -> usize {
    let end = line_end(text, at);
    let mut behind = at;
    loop {
        let rest = &text[behind..end];
        let trimmed = rest.trim_start_matches([' ', '\t']);
        let start = behind + rest.len() - trimmed.len();
        if trimmed.starts_with("//") {
            return end;
        }
        match trimmed.strip_prefix("/*").and_then(|inner| inner.find("*/")) {
            Some(length) => behind = start + length + 4,
            None => return behind,
        }
    }
}

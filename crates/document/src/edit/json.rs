//! Which pieces of a JSON text change.
//!
//! A new member goes to the end of its table, laid out like its neighbours; a
//! comment behind the last one stays beside it.

use serde_json::Value as Json;

use super::layout::{break_before, indent_before, indent_of_line, line_end, line_start, newline};
use super::pieces::{Splice, find, nested};
use super::write::{self, Layout};
use crate::tree::{Member, Node, Value};

pub(super) fn set(text: &str, root: &Node, keys: &[&str], value: &Json) -> Option<Vec<Splice>> {
    if text.trim().is_empty() {
        let layout = Layout::Lines { newline: "\n", indent: String::new(), unit: "  ".to_owned() };
        let document = write::json(&nested(keys, value), &layout);
        return Some(vec![(0..text.len(), format!("{document}\n"))]);
    }
    let mut node = root;
    for (depth, key) in keys.iter().enumerate() {
        if !matches!(node.value, Value::Table(_)) {
            let layout = layout_of(text, root, node.span.start);
            let instead = write::json(&nested(&keys[depth..], value), &layout);
            return Some(vec![(node.span.clone(), instead)]);
        }
        match node.get(key) {
            Some(below) => node = below,
            None => return Some(insert(text, root, node, key, &nested(&keys[depth + 1..], value))),
        }
    }
    let layout = match text[node.span.clone()].contains('\n') {
        true => layout_of(text, root, node.span.start),
        false if indent_before_key(text, root, keys) => layout_of(text, root, node.span.start),
        false => one_line(&text[root.span.clone()]),
    };
    Some(vec![(node.span.clone(), write::json(value, &layout))])
}

pub(super) fn remove(text: &str, root: &Node, keys: &[&str]) -> Option<Vec<Splice>> {
    let (key, way) = keys.split_last()?;
    let table = find(root, way)?;
    let at = table.members().iter().position(|member| member.key == *key)?;
    let (before, rest) = table.members().split_at(at);
    let member = &rest[0];
    let previous_end = before.last().map(|member| member.node.span.end);
    let comma = comma_after(text, member.node.span.end);
    let own_line = indent_before(text, member.key_span.start).is_some();
    let start = line_start(text, member.key_span.start);
    if let (Some(next), Some(comma)) = (rest.get(1), comma) {
        return Some(vec![(before_next(text, member, next, comma, own_line), String::new())]);
    }
    // The last one takes the comma before it along, unless it has one behind it.
    let end = comma.map_or(member.node.span.end, |comma| comma + 1);
    let comma_before = previous_end.and_then(|end| comma_after(text, end));
    let mut splices = Vec::new();
    let from = match (own_line.then(|| break_before(text, start)).flatten(), comma_before) {
        (Some(line_break), Some(before)) => {
            if comma.is_none() {
                splices.push((before..before + 1, String::new()));
            }
            line_break.max(before + 1)
        }
        (Some(line_break), None) => line_break,
        (None, Some(before)) if comma.is_none() => before,
        (None, Some(before)) => behind_comments(text, before + 1),
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

/// Returns what goes with a member that another one follows.
fn before_next(
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
    // A comment behind it stays, and so does what is in the next line.
    let between = &text[comma + 1..next.key_span.start];
    let n_blanks = between.len() - between.trim_start_matches([' ', '\t']).len();
    start..comma + 1 + n_blanks
}

fn insert(text: &str, root: &Node, table: &Node, key: &str, value: &Json) -> Vec<Splice> {
    let inside = &text[table.span.start + 1..table.span.end - 1];
    let Some(last) = table.members().last() else {
        return vec![insert_first(text, root, table, key, value)];
    };
    let has_comma = comma_after(text, last.node.span.end);
    let behind = has_comma.map_or(last.node.span.end, |comma| comma + 1);
    let at = behind_comments(text, behind);
    if !inside.contains('\n') {
        let layout = one_line(inside);
        let blank = if matches!(layout, Layout::Dense) { "" } else { " " };
        let member =
            format!("{}{}{}", write::quoted(key), layout.colon(), write::json(value, &layout));
        let new = match has_comma {
            Some(_) => format!("{blank}{member},"),
            None => format!(",{blank}{member}"),
        };
        return vec![(at..at, new)];
    }
    let indent = table.members().iter().rev().find_map(|m| indent_before(text, m.key_span.start));
    let unit = unit(text, root);
    let indent = indent
        .map_or_else(|| format!("{}{unit}", indent_of_line(text, table.span.start)), str::to_owned);
    let newline = newline(text);
    let layout = Layout::Lines { newline, indent: indent.clone(), unit };
    let comma = if has_comma.is_some() { "," } else { "" };
    let member = format!("{}: {}", write::quoted(key), write::json(value, &layout));
    let mut splices = vec![(at..at, format!("{newline}{indent}{member}{comma}"))];
    if has_comma.is_none() {
        splices.insert(0, (behind..behind, ",".to_owned()));
    }
    splices
}

/// The first member of a table, below the comments that may be in it.
fn insert_first(text: &str, root: &Node, table: &Node, key: &str, value: &Json) -> Splice {
    let (start, end) = (table.span.start + 1, table.span.end - 1);
    let comments = text[start..end].trim_end();
    let Layout::Lines { newline, indent: outer, unit } = layout_of(text, root, table.span.start)
    else {
        unreachable!("`layout_of` lays out in lines");
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

fn layout_of(text: &str, root: &Node, at: usize) -> Layout {
    let indent = indent_of_line(text, at).to_owned();
    Layout::Lines { newline: newline(text), indent, unit: unit(text, root) }
}

/// Returns how a text that stands in one line is spaced.
fn one_line(text: &str) -> Layout {
    if text.contains("\": ") || text.contains("\" :") { Layout::Spaced } else { Layout::Dense }
}

fn indent_before_key(text: &str, root: &Node, keys: &[&str]) -> bool {
    let Some((key, way)) = keys.split_last() else { return false };
    let table = find(root, way);
    let member = table.and_then(|table| table.members().iter().find(|member| member.key == *key));
    member.is_some_and(|member| indent_before(text, member.key_span.start).is_some())
}

/// By how much a table's members are indented, as the text does it first.
fn unit(text: &str, root: &Node) -> String {
    fn of(text: &str, node: &Node) -> Option<String> {
        let outer = indent_of_line(text, node.span.start);
        let own = node.members().iter().find_map(|member| {
            let inner = indent_before(text, member.key_span.start)?;
            inner.strip_prefix(outer).filter(|unit| !unit.is_empty()).map(str::to_owned)
        });
        own.or_else(|| node.members().iter().find_map(|member| of(text, &member.node)))
    }
    of(text, root).unwrap_or_else(|| "  ".to_owned())
}

/// Returns where the comma behind a value is.
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

/// The end of the comments that stand in the same line.
fn behind_comments(text: &str, at: usize) -> usize {
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

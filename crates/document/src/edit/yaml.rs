//! Which pieces of a YAML text change.
//!
//! A new member goes below the last line of its mapping, indented like its
//! neighbours, or beside them inside of braces.

use serde_json::Value as Json;

use super::layout::{
    break_before, indent_before, indent_of_line, line_end, line_start, newline, next_line,
};
use super::pieces::{Splice, find, nested};
use super::write::{self, Layout};
use crate::tree::{Member, Node, Value};

pub(super) fn set(text: &str, root: &Node, keys: &[&str], value: &Json) -> Option<Vec<Splice>> {
    let mut node = root;
    let mut member: Option<&Member> = None;
    for (depth, key) in keys.iter().enumerate() {
        if !matches!(node.value, Value::Table(_))
            || node.members().is_empty() && !is_flow(text, node)
        {
            let below = nested(&keys[depth + 1..], value);
            return insert_below(text, node, member, key, &below);
        }
        let found = node.members().iter().find(|member| member.key == *key);
        let Some(found) = found else {
            return insert(text, node, key, &nested(&keys[depth + 1..], value));
        };
        member = Some(found);
        node = &found.node;
    }
    replace(text, root, member?, keys, value)
}

pub(super) fn remove(text: &str, root: &Node, keys: &[&str]) -> Option<Vec<Splice>> {
    let (key, way) = keys.split_last()?;
    let table = find(root, way)?;
    let at = table.members().iter().position(|member| member.key == *key)?;
    let member = &table.members()[at];
    if is_flow(text, table) {
        let range = match (at.checked_sub(1), table.members().get(at + 1)) {
            (Some(before), _) => end(text, &table.members()[before])..end(text, member),
            (None, Some(next)) => member.key_span.start..next.key_span.start,
            (None, None) => table.span.start + 1..table.span.end - 1,
        };
        return Some(vec![(range, String::new())]);
    }
    indent_before(text, member.key_span.start)?;
    let start = line_start(text, member.key_span.start);
    let last = line_end(text, end(text, member));
    let range = match break_before(text, start) {
        Some(before) => before..last,
        None => start..next_line(text, last),
    };
    let mut splices = vec![(range, String::new())];
    if table.members().len() == 1
        && let Some(around) = way.split_last().and_then(|(key, way)| {
            find(root, way)?.members().iter().find(|member| member.key == *key)
        })
    {
        // A mapping without members would be nothing at all.
        let colon = colon_after(text, around.key_span.end)?;
        splices.insert(0, (colon..colon, " {}".to_owned()));
    }
    Some(splices)
}

fn is_flow(text: &str, node: &Node) -> bool {
    text[node.span.start.min(text.len())..].starts_with('{')
}

/// Returns where a member's text ends, without the empty lines behind it.
fn end(text: &str, member: &Member) -> usize {
    let end = member.node.span.end.max(member.key_span.end);
    let end = member.key_span.end + text[member.key_span.end..end].trim_end().len();
    // A key without a value has its colon behind it.
    match member.node.span.is_empty() {
        true => colon_after(text, member.key_span.end).map_or(end, |colon| end.max(colon)),
        false => end,
    }
}

/// Behind the colon of a key.
fn colon_after(text: &str, at: usize) -> Option<usize> {
    let rest = &text[at..];
    let trimmed = rest.trim_start_matches([' ', '\t']);
    trimmed.starts_with(':').then(|| at + rest.len() - trimmed.len() + 1)
}

fn insert(text: &str, table: &Node, key: &str, value: &Json) -> Option<Vec<Splice>> {
    let last = table.members().last();
    if is_flow(text, table) {
        let member = format!("{}: {}", write::quoted(key), write::json(value, &Layout::Spaced));
        return Some(vec![match last {
            Some(last) => (end(text, last)..end(text, last), format!(", {member}")),
            None => (table.span.start + 1..table.span.end - 1, member),
        }]);
    }
    let last = last?;
    let indent =
        table.members().iter().rev().find_map(|m| indent_before(text, m.key_span.start))?;
    let at = line_end(text, end(text, last));
    let newline = newline(text);
    let lines = write::yaml(key, value, indent, newline);
    Some(vec![(at..at, format!("{newline}{indent}{lines}"))])
}

/// A member of what is nothing yet: below its key, or the whole document.
fn insert_below(
    text: &str,
    node: &Node,
    around: Option<&Member>,
    key: &str,
    value: &Json,
) -> Option<Vec<Splice>> {
    let newline = newline(text);
    let Some(around) = around else {
        let lines = write::yaml(key, value, "", newline);
        let new = match text.is_empty() || text.ends_with('\n') {
            true => format!("{lines}{newline}"),
            false => format!("{newline}{lines}"),
        };
        return Some(vec![(text.len()..text.len(), new)]);
    };
    if !node.span.is_empty() {
        // `null` or `~` gives way.
        let flow = write::json(&nested(&[key], value), &Layout::Spaced);
        return Some(vec![(node.span.clone(), flow)]);
    }
    let indent = format!("{}  ", indent_of_line(text, around.key_span.start));
    let at = line_end(text, colon_after(text, around.key_span.end)?);
    let lines = write::yaml(key, value, &indent, newline);
    Some(vec![(at..at, format!("{newline}{indent}{lines}"))])
}

fn replace(
    text: &str,
    root: &Node,
    member: &Member,
    keys: &[&str],
    value: &Json,
) -> Option<Vec<Splice>> {
    let (key, way) = keys.split_last()?;
    if is_flow(text, find(root, way)?) {
        let flow = write::json(value, &Layout::Spaced);
        return Some(vec![(member.node.span.clone(), flow)]);
    }
    let indent = indent_before(text, member.key_span.start)?;
    let lines = write::yaml(key, value, indent, newline(text));
    Some(vec![(member.key_span.start..end(text, member), lines)])
}

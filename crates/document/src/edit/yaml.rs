//! Computes the replacements that set or remove a value in a YAML text.
//!
//! A new member goes below the last line of its mapping, indented like its
//! neighbours, or beside them in a flow mapping.

use serde_json::Value as Json;

use super::layout::{
    break_before, indent_before, indent_of_line, line_end, line_start, newline, next_line,
};
use super::splice::{Place, Splice, find, nested};
use super::write::{self, Layout};
use crate::tree::{Member, Node, Value};

/// Computes the replacements that set the value at `keys`; `None` if its layout cannot be
/// edited.
pub(super) fn set(text: &str, root: &Node, keys: &[&str], value: &Json) -> Option<Vec<Splice>> {
    let mut node = root;
    let mut member: Option<&Member> = None;
    for (depth, key) in keys.iter().enumerate() {
        // Null or nothing: there is no member yet whose layout a new one can follow.
        if !matches!(node.value, Value::Table(_))
            || node.members().is_empty() && !is_flow(text, node)
        {
            let below = nested(&keys[depth + 1..], value);
            return insert_first_member(text, node, member, key, &below);
        }
        let found = node.members().iter().find(|member| member.key == *key);
        let Some(found) = found else {
            let below = nested(&keys[depth + 1..], value);
            return match node.members().last() {
                Some(last) => insert(text, node, key, &below, Place::Behind(last)),
                None => Some(vec![insert_in_empty_flow(node, key, &below)]),
            };
        };
        member = Some(found);
        node = &found.node;
    }
    replace(text, root, member?, keys, value)
}

/// Computes the replacements that remove the member at `keys`; `None` if its layout cannot
/// be edited.
pub(super) fn remove(text: &str, root: &Node, keys: &[&str]) -> Option<Vec<Splice>> {
    let (key, parents) = keys.split_last()?;
    let table = find(root, parents)?;
    let at = table.members().iter().position(|member| member.key == *key)?;
    let member = &table.members()[at];
    if is_flow(text, table) {
        let range = match (at.checked_sub(1), table.members().get(at + 1)) {
            (Some(previous), _) => end(text, &table.members()[previous])..end(text, member),
            (None, Some(next)) => member.key_span.start..next.key_span.start,
            (None, None) => table.span.start + 1..table.span.end - 1,
        };
        return Some(vec![(range, String::new())]);
    }
    indent_before(text, member.key_span.start)?;
    let start = line_start(text, member.key_span.start);
    let last = line_end(text, end(text, member));
    let range = match break_before(text, start) {
        Some(line_break) => line_break..last,
        None => start..next_line(text, last),
    };
    let mut splices = vec![(range, String::new())];
    if table.members().len() == 1
        && let Some(parent_member) = parents.split_last().and_then(|(key, parents)| {
            find(root, parents)?.members().iter().find(|member| member.key == *key)
        })
    {
        // With nothing after its colon, the emptied mapping would turn into null.
        let at = after_colon(text, parent_member.key_span.end)?;
        splices.insert(0, (at..at, " {}".to_owned()));
    }
    Some(splices)
}

/// Returns whether a value is written as a flow mapping: `{a: 1}`.
fn is_flow(text: &str, node: &Node) -> bool {
    text[node.span.start.min(text.len())..].starts_with('{')
}

/// Returns the end of a member, without the empty lines behind it.
fn end(text: &str, member: &Member) -> usize {
    let end = member.node.span.end.max(member.key_span.end);
    let end = member.key_span.end + text[member.key_span.end..end].trim_end().len();
    // A member without a value ends with its colon.
    match member.node.span.is_empty() {
        true => after_colon(text, member.key_span.end).map_or(end, |at| end.max(at)),
        false => end,
    }
}

/// Returns the offset behind the colon of a key that ends at `key_end`; `None` if no colon
/// follows on its line, as with a key that is written `? key`.
fn after_colon(text: &str, key_end: usize) -> Option<usize> {
    let rest = &text[key_end..];
    let trimmed = rest.trim_start_matches([' ', '\t']);
    trimmed.starts_with(':').then(|| key_end + rest.len() - trimmed.len() + 1)
}

/// Inserts a member into a mapping that has others.
pub(super) fn insert(
    text: &str,
    table: &Node,
    key: &str,
    value: &Json,
    place: Place<'_>,
) -> Option<Vec<Splice>> {
    if is_flow(text, table) {
        let member = flow_member(key, value);
        return Some(vec![match place {
            Place::Before(next) => {
                (next.key_span.start..next.key_span.start, format!("{member}, "))
            }
            Place::Behind(before) => {
                let at = end(text, before);
                (at..at, format!(", {member}"))
            }
        }]);
    }
    let indent =
        table.members().iter().rev().find_map(|m| indent_before(text, m.key_span.start))?;
    let newline = newline(text);
    let lines = write::yaml(key, value, indent, newline);
    Some(vec![match place {
        Place::Before(next) => {
            let at = next.key_span.start;
            (at..at, format!("{lines}{newline}{indent}"))
        }
        Place::Behind(before) => {
            let at = line_end(text, end(text, before));
            (at..at, format!("{newline}{indent}{lines}"))
        }
    }])
}

fn insert_in_empty_flow(table: &Node, key: &str, value: &Json) -> Splice {
    (table.span.start + 1..table.span.end - 1, flow_member(key, value))
}

fn flow_member(key: &str, value: &Json) -> String {
    format!("{}: {}", write::quoted(key), write::json(value, &Layout::Spaced))
}

/// Inserts the first member where there is no mapping yet: in place of the empty or null
/// value `node` of `parent_member`, or into an empty document if that is `None`.
fn insert_first_member(
    text: &str,
    node: &Node,
    parent_member: Option<&Member>,
    key: &str,
    value: &Json,
) -> Option<Vec<Splice>> {
    let newline = newline(text);
    let Some(parent_member) = parent_member else {
        let lines = write::yaml(key, value, "", newline);
        let new = match text.is_empty() || text.ends_with('\n') {
            true => format!("{lines}{newline}"),
            false => format!("{newline}{lines}"),
        };
        return Some(vec![(text.len()..text.len(), new)]);
    };
    if !node.span.is_empty() {
        // A written null, `null` or `~`, is replaced.
        let flow = write::json(&nested(&[key], value), &Layout::Spaced);
        return Some(vec![(node.span.clone(), flow)]);
    }
    let indent = format!("{}  ", indent_of_line(text, parent_member.key_span.start));
    let at = line_end(text, after_colon(text, parent_member.key_span.end)?);
    let lines = write::yaml(key, value, &indent, newline);
    Some(vec![(at..at, format!("{newline}{indent}{lines}"))])
}

/// Replaces the value of `member`, which is at `keys`.
fn replace(
    text: &str,
    root: &Node,
    member: &Member,
    keys: &[&str],
    value: &Json,
) -> Option<Vec<Splice>> {
    let (key, parents) = keys.split_last()?;
    if is_flow(text, find(root, parents)?) {
        let flow = write::json(value, &Layout::Spaced);
        return Some(vec![(member.node.span.clone(), flow)]);
    }
    let indent = indent_before(text, member.key_span.start)?;
    let lines = write::yaml(key, value, indent, newline(text));
    Some(vec![(member.key_span.start..end(text, member), lines)])
}

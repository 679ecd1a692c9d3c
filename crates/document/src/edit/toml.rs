//! Computes the replacements that set or remove a value in a TOML text.
//!
//! A new table becomes a block at the end of the document; only in an inline table it
//! goes beside the other members. To remove a table, every line that belongs to it is
//! removed.

use std::ops::Range;

use serde_json::Value as Json;
use toml_parser::Source;
use toml_parser::parser::{Event, EventKind, RecursionGuard, parse_document};

use super::layout::{break_before, line_start, newline, next_line};
use super::splice::{Place, Splice, find, nested};
use super::write;
use crate::tree::{Node, Value};

/// Computes the replacements that set the value at `keys`; `None` if its layout cannot be
/// edited.
pub(super) fn set(text: &str, root: &Node, keys: &[&str], value: &Json) -> Option<Vec<Splice>> {
    let statements = statements(text);
    let about = statements_about(&statements, keys);
    if !about.is_empty() {
        return replace(text, &statements, &about, keys, value);
    }
    if let Some(node) = find(root, keys).filter(|_| is_in_braces(text, &statements, root, keys)) {
        return Some(vec![(node.span.clone(), write::toml(value)?)]);
    }
    let depth = (0..keys.len()).rev().find(|depth| find(root, &keys[..*depth]).is_some())?;
    let table = find(root, &keys[..depth])?;
    if is_in_braces(text, &statements, root, &keys[..depth]) {
        return insert_in_braces(text, table, &keys[depth..], value);
    }
    let newline = newline(text);
    let block = block(keys, value, newline)?;
    let new = match text {
        "" => format!("{block}{newline}"),
        _ if text.ends_with('\n') => format!("{newline}{block}{newline}"),
        _ => format!("{newline}{newline}{block}"),
    };
    Some(vec![(text.len()..text.len(), new)])
}

/// Inserts a table beside others of its kind.
pub(super) fn insert(
    text: &str,
    root: &Node,
    keys: &[&str],
    value: &Json,
    place: Place<'_>,
) -> Option<Vec<Splice>> {
    let (key, parents) = keys.split_last()?;
    let statements = statements(text);
    let (Place::Before(sibling) | Place::Behind(sibling)) = place;
    if is_in_braces(text, &statements, root, parents) {
        let member = format!("{} = {}", write::toml_key(key), write::toml(value)?);
        let (start, end) = (sibling.key_span.start, sibling.node.span.end);
        return Some(vec![match place {
            Place::Before(_) => (start..start, format!("{member}, ")),
            Place::Behind(_) => (end..end, format!(", {member}")),
        }]);
    }
    let about: Vec<&str> = parents.iter().copied().chain([sibling.key.as_str()]).collect();
    let runs = statements_about(&statements, &about);
    let newline = newline(text);
    let block = block(keys, value, newline)?;
    // Between keys of the same table a header would take those that follow.
    let is_table = |run: &Range<usize>| statements[run.start].is_header;
    Some(vec![match place {
        Place::Before(_) => {
            let first = runs.first().filter(|run| is_table(run))?;
            let at = start_of_comments(text, statements[first.start].span.start);
            // No blank lines are left at the top, where a removed table stood.
            let start = if text[..at].trim().is_empty() { 0 } else { at };
            (start..at, format!("{block}{newline}{newline}"))
        }
        Place::Behind(_) => {
            let last = runs.last().filter(|run| is_table(run))?;
            let at = next_line(text, statements[last.end - 1].span.end);
            match text[..at].ends_with('\n') {
                true => (at..at, format!("{newline}{block}{newline}")),
                false => (at..at, format!("{newline}{newline}{block}")),
            }
        }
    }])
}

/// Returns the start of the comments right above a line, or of the line itself.
fn start_of_comments(text: &str, at: usize) -> usize {
    let mut start = line_start(text, at);
    while let Some(end) = break_before(text, start) {
        let above = line_start(text, end);
        if !text[above..end].trim_start().starts_with('#') {
            break;
        }
        start = above;
    }
    start
}

/// Computes the replacements that remove the member at `keys`; `None` if its layout cannot
/// be edited.
pub(super) fn remove(text: &str, root: &Node, keys: &[&str]) -> Option<Vec<Splice>> {
    let statements = statements(text);
    let runs = statements_about(&statements, keys);
    if runs.is_empty() {
        return remove_from_braces(text, root, keys);
    }
    Some(runs.into_iter().map(|run| (whole_lines(text, &statements[run]), String::new())).collect())
}

/// One statement of a document: `[table]`, `[[table]]` or `key = value`.
#[derive(Debug)]
struct Statement {
    /// The path from the root.
    keys: Vec<String>,
    is_header: bool,
    span: Range<usize>,
    /// The span of the value; empty for a header.
    value: Range<usize>,
}

/// Splits a document without syntax errors into statements.
fn statements(text: &str) -> Vec<Statement> {
    let source = Source::new(text);
    let tokens = source.lex().into_vec();
    let mut events: Vec<Event> = Vec::new();
    let mut receiver = |event: Event| events.push(event);
    let mut errors: Vec<toml_parser::ParseError> = Vec::new();
    let mut guarded = RecursionGuard::new(&mut receiver, 100);
    parse_document(&tokens, &mut guarded, &mut errors);
    let mut found = StatementCollector::default();
    for event in events {
        found.event(&source, &event);
    }
    found.finish()
}

#[derive(Default)]
struct StatementCollector {
    table: Vec<String>,
    statements: Vec<Statement>,
    current: Option<Statement>,
    depth: usize,
}

impl StatementCollector {
    fn event(&mut self, source: &Source<'_>, event: &Event) {
        let span = event.span().start()..event.span().end();
        match event.kind() {
            EventKind::StdTableOpen | EventKind::ArrayTableOpen => {
                self.begin(Vec::new(), true, &span);
            }
            EventKind::StdTableClose | EventKind::ArrayTableClose => {
                self.extend(&span);
                if let Some(header) = &self.current {
                    self.table.clone_from(&header.keys);
                }
            }
            EventKind::SimpleKey if self.depth == 0 => {
                let is_open = |statement: &Statement| {
                    statement.value.is_empty()
                        && (statement.is_header || statement.value.start == 0)
                };
                if !self.current.as_ref().is_some_and(is_open) {
                    self.begin(self.table.clone(), false, &span);
                }
                let mut key = std::borrow::Cow::Borrowed("");
                let raw = source.get(event);
                raw.inspect(|raw| raw.decode_key(&mut key, &mut ()));
                self.current.iter_mut().for_each(|statement| statement.keys.push(key.to_string()));
                self.extend(&span);
            }
            EventKind::KeyValSep if self.depth == 0 => {
                self.current.iter_mut().for_each(|statement| statement.value = span.end..span.end);
            }
            EventKind::Scalar => self.extend_value(&span),
            EventKind::ArrayOpen | EventKind::InlineTableOpen => {
                self.extend_value(&span);
                self.depth += 1;
            }
            EventKind::ArrayClose | EventKind::InlineTableClose => {
                self.depth = self.depth.saturating_sub(1);
                self.extend_value(&span);
            }
            EventKind::Newline if self.depth == 0 => self.close(),
            EventKind::Newline
            | EventKind::SimpleKey
            | EventKind::KeySep
            | EventKind::KeyValSep
            | EventKind::ValueSep
            | EventKind::Whitespace
            | EventKind::Comment
            | EventKind::Error => {}
        }
    }

    fn begin(&mut self, keys: Vec<String>, is_header: bool, span: &Range<usize>) {
        self.close();
        self.current = Some(Statement { keys, is_header, span: span.clone(), value: 0..0 });
    }

    fn extend(&mut self, span: &Range<usize>) {
        self.current.iter_mut().for_each(|statement| statement.span.end = span.end);
    }

    fn extend_value(&mut self, span: &Range<usize>) {
        self.extend(span);
        if let Some(statement) = &mut self.current {
            let is_empty = statement.value.is_empty();
            let start = if is_empty { span.start } else { statement.value.start };
            statement.value = start..span.end;
        }
    }

    fn close(&mut self) {
        self.statements.extend(self.current.take());
    }

    fn finish(mut self) -> Vec<Statement> {
        self.close();
        self.statements
    }
}

/// Returns the runs of consecutive statements about the value at `keys` or inside it.
fn statements_about(statements: &[Statement], keys: &[&str]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (at, statement) in statements.iter().enumerate() {
        let is_about = statement.keys.len() >= keys.len()
            && statement.keys.iter().zip(keys).all(|(one, other)| one == other);
        if !is_about {
            continue;
        }
        match runs.last_mut().filter(|run| run.end == at) {
            Some(run) => run.end = at + 1,
            None => runs.push(at..at + 1),
        }
    }
    runs
}

/// Returns the span of all lines of statements, with the empty line before a table header.
fn whole_lines(text: &str, statements: &[Statement]) -> Range<usize> {
    let (Some(first), Some(last)) = (statements.first(), statements.last()) else { return 0..0 };
    let start = line_start(text, first.span.start);
    let end = next_line(text, last.span.end);
    let is_empty = |end: usize| text[line_start(text, end)..end].trim().is_empty();
    let break_before_lines = break_before(text, start);
    let start = match break_before_lines {
        Some(line_break) if first.is_header && is_empty(line_break) => line_start(text, line_break),
        Some(_) | None => start,
    };
    // At the end of a text without a final line end, the line end before goes, too.
    let reaches_end = end == text.len() && !text.ends_with('\n');
    let start = if reaches_end { break_before(text, start).unwrap_or(start) } else { start };
    start..end
}

/// Replaces a value that is written in `runs` of statements; `None` if TOML cannot hold the
/// new one.
fn replace(
    text: &str,
    statements: &[Statement],
    runs: &[Range<usize>],
    keys: &[&str],
    value: &Json,
) -> Option<Vec<Splice>> {
    let first = &statements[runs[0].start];
    // One line by itself: `gatelet = { … }`.
    if runs.len() == 1 && runs[0].len() == 1 && !first.is_header && first.keys.len() == keys.len() {
        return Some(vec![(first.value.clone(), write::toml(value)?)]);
    }
    let newline = newline(text);
    let block = block(keys, value, newline)?;
    let mut splices: Vec<Splice> = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        let run = &statements[run.clone()];
        if at == 0 && run[0].is_header {
            splices.push((run[0].span.start..run.last()?.span.end, block.clone()));
        } else {
            splices.push((whole_lines(text, run), String::new()));
        }
    }
    if !first.is_header {
        let lead = if text.ends_with('\n') { newline.to_owned() } else { newline.repeat(2) };
        splices.push((text.len()..text.len(), format!("{lead}{block}{newline}")));
    }
    Some(splices)
}

/// Renders a table as lines, without the last line end.
fn block(keys: &[&str], value: &Json, newline: &str) -> Option<String> {
    let path: Vec<String> = keys.iter().map(|key| write::toml_key(key)).collect();
    let Json::Object(members) = value else {
        return Some(format!("{} = {}", path.join("."), write::toml(value)?));
    };
    let mut lines = vec![format!("[{}]", path.join("."))];
    for (key, value) in members {
        lines.push(format!("{} = {}", write::toml_key(key), write::toml(value)?));
    }
    Some(lines.join(newline))
}

/// Returns whether a table is an inline table, or inside one.
fn is_in_braces(text: &str, statements: &[Statement], root: &Node, keys: &[&str]) -> bool {
    (1..=keys.len()).any(|depth| {
        let parents = &keys[..depth];
        let is_it = |statement: &&Statement| {
            !statement.is_header && statement.keys.iter().eq(parents.iter().copied())
        };
        find(root, parents).is_some()
            && statements
                .iter()
                .find(is_it)
                .is_some_and(|statement| text[statement.value.clone()].starts_with('{'))
    })
}

/// Inserts the value at `keys`, counted from `table`, into that inline table.
fn insert_in_braces(text: &str, table: &Node, keys: &[&str], value: &Json) -> Option<Vec<Splice>> {
    let Value::Table(members) = &table.value else { return None };
    let value = write::toml(&nested(&keys[1..], value))?;
    let member = format!("{} = {value}", write::toml_key(keys[0]));
    Some(vec![match members.iter().map(|member| member.node.span.end).max() {
        Some(end) => (end..end, format!(", {member}")),
        None => {
            let inside = table.span.start + 1..table.span.end.checked_sub(1)?;
            (inside.clone(), text[inside].trim().is_empty().then(|| format!(" {member} "))?)
        }
    }])
}

/// Removes a member from the inline table that it is in.
fn remove_from_braces(text: &str, root: &Node, keys: &[&str]) -> Option<Vec<Splice>> {
    let (key, parents) = keys.split_last()?;
    let table = find(root, parents)?;
    let at = table.members().iter().position(|member| member.key == *key)?;
    let member = &table.members()[at];
    let range = match (at.checked_sub(1), table.members().get(at + 1)) {
        (Some(previous), _) => table.members()[previous].node.span.end..member.node.span.end,
        (None, Some(next)) => member.key_span.start..next.key_span.start,
        (None, None) => table.span.start + 1..table.span.end.checked_sub(1)?,
    };
    text.get(range.clone()).map(|_| vec![(range, String::new())])
}

//! Adds, removes and changes single upstreams in the text of gatelet's configuration
//! file and keeps everything else: comments, order, blank lines.
//!
//! Every changed text is parsed again. Unless it means the old configuration with
//! exactly this change, the change is refused. This module does not write files.

use std::ops::Range;
use std::path::Path as FilePath;

use catalog::name;
use toml_edit::{DocumentMut, Item, Value};

use super::{
    Raw, SourceFile, foreign, parse_raw as raw_of_tree, parse_tree, problem::Problems,
    raw_upstream, self_reference::OwnAddress, upstream,
};

/// One change to the list of upstreams.
#[derive(Clone, Debug)]
pub enum Edit<'a> {
    Add(&'a raw_upstream::Raw),
    Remove(&'a str),
    /// Sets a key of an upstream, or removes the key when `value` is `None`.
    Set {
        label: &'a str,
        key: &'a str,
        value: Option<serde_json::Value>,
    },
}

/// Why an edit was refused. One variant per remedy.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    #[error(
        "`{0}` is the file of another client and not ours to change: turn it into our own with `gatelet \
         import {0} --output gatelet.toml`"
    )]
    Foreign(String),
    #[error("there is an upstream called `{0}` already; --replace puts this one in its place")]
    Taken(String),
    #[error("no upstream is called `{wanted}`{}", there_are(.known))]
    Unknown { wanted: String, known: Vec<String> },
    #[error("`{file}` cannot be changed without changing more than `{label}`: edit it by hand")]
    Unsafe { file: String, label: String },
    #[error(transparent)]
    Wrong(#[from] Box<Problems>),
}

fn there_are(labels: &[String]) -> String {
    if labels.is_empty() { String::new() } else { format!("; there are: {}", labels.join(", ")) }
}

/// Returns the text with the change applied. `file` is the name of the file in messages.
pub fn apply(file: &str, text: &str, edit: &Edit<'_>) -> Result<String, EditError> {
    let before = parse_raw(file, text)?;
    let expected = expected(&before, edit)?;
    let changed = match edit {
        Edit::Add(raw) => add(text, raw),
        Edit::Remove(label) => remove(text, position(&before, label)?),
        Edit::Set { label, key, value } => {
            set(text, position(&before, label)?, key, value.as_ref())
        }
    };
    let is_meant = |changed: &String| parse_raw(file, changed).is_ok_and(|after| after == expected);
    changed
        .filter(is_meant)
        .ok_or_else(|| EditError::Unsafe { file: file.to_owned(), label: edit.label().to_owned() })
}

/// Returns every upstream as written in the text.
pub fn upstreams(file: &str, text: &str) -> Result<Vec<raw_upstream::Raw>, EditError> {
    Ok(parse_raw(file, text)?.upstream)
}

/// Returns the upstream of that label as written in the text.
pub fn find(file: &str, text: &str, label: &str) -> Result<raw_upstream::Raw, EditError> {
    let raw = parse_raw(file, text)?;
    let at = position(&raw, label)?;
    Ok(raw.upstream[at].clone())
}

impl Edit<'_> {
    fn label(&self) -> &str {
        match self {
            Edit::Add(raw) => raw.label.as_deref().unwrap_or_default(),
            Edit::Remove(label) | Edit::Set { label, .. } => label,
        }
    }
}

/// Parses the text of gatelet's own file, without defaults.
fn parse_raw(file: &str, text: &str) -> Result<Raw, EditError> {
    let source = SourceFile { name: file.to_owned(), text: text.to_owned() };
    let is_json = source.is_json();
    let (root, mut problems) = parse_tree(source);
    if problems.has_errors() {
        return Err(Box::new(problems).into());
    }
    if is_json || foreign::is_foreign(&root) {
        return Err(EditError::Foreign(file.to_owned()));
    }
    let raw = raw_of_tree(&root, &mut problems);
    if problems.has_errors() { Err(Box::new(problems).into()) } else { Ok(raw) }
}

fn position(raw: &Raw, wanted: &str) -> Result<usize, EditError> {
    let labels = || raw.upstream.iter().map(|one| one.label.clone().unwrap_or_default());
    let position = labels().position(|label| name::means(&label, wanted));
    position
        .ok_or_else(|| EditError::Unknown { wanted: wanted.to_owned(), known: labels().collect() })
}

fn expected(before: &Raw, edit: &Edit<'_>) -> Result<Raw, EditError> {
    let mut after = before.clone();
    match edit {
        Edit::Add(raw) => {
            let label = edit.label();
            if position(before, label).is_ok() {
                return Err(EditError::Taken(label.to_owned()));
            }
            after.upstream.push((*raw).clone());
        }
        Edit::Remove(label) => drop(after.upstream.remove(position(before, label)?)),
        Edit::Set { label, key, value } => {
            let place = &mut after.upstream[position(before, label)?];
            let mut members = serde_json::to_value(&*place).unwrap_or_default();
            match value {
                Some(value) => members[*key] = value.clone(),
                None => drop(members.as_object_mut().and_then(|members| members.remove(*key))),
            }
            let unsafe_edit =
                || EditError::Unsafe { file: String::new(), label: (*label).to_owned() };
            *place = serde_json::from_value(members).map_err(|_| unsafe_edit())?;
        }
    }
    Ok(after)
}

/// Appends the upstream at the end of the file, where TOML allows `[[upstream]]` whatever
/// stands between; an inline list gets a new item.
fn add(text: &str, raw: &raw_upstream::Raw) -> Option<String> {
    let document: DocumentMut = text.parse().ok()?;
    let entry = raw_upstream::upstreams_to_toml(vec![raw.clone()]);
    match document.get("upstream") {
        None | Some(Item::ArrayOfTables(_)) => {
            let gap = match text {
                "" => "",
                text if text.ends_with("\n\n") => "",
                text if text.ends_with('\n') => "\n",
                _ => "\n\n",
            };
            Some(format!("{text}{gap}{entry}"))
        }
        Some(_) => {
            let mut document = document;
            let mut own: DocumentMut = entry.parse().ok()?;
            let table = own["upstream"].as_array_of_tables_mut()?.remove_first()?;
            document["upstream"].as_array_mut()?.push(Value::InlineTable(table));
            Some(document.to_string())
        }
    }
}

/// Takes the first table of a list as an inline table.
trait RemoveFirst {
    fn remove_first(&mut self) -> Option<toml_edit::InlineTable>;
}

impl RemoveFirst for toml_edit::ArrayOfTables {
    fn remove_first(&mut self) -> Option<toml_edit::InlineTable> {
        Some(self.iter().next()?.clone().into_inline_table())
    }
}

fn remove(text: &str, at: usize) -> Option<String> {
    let spanned = toml_edit::Document::parse(text).ok()?;
    let Some(Item::ArrayOfTables(tables)) = spanned.get("upstream") else {
        let mut document: DocumentMut = text.parse().ok()?;
        document["upstream"].as_array_mut()?.remove(at);
        return Some(document.to_string());
    };
    let mut pieces = Vec::new();
    spans(tables.get(at)?, &mut pieces);
    let mut whole: Vec<Range<usize>> = pieces.iter().map(|span| with_lines(text, span)).collect();
    whole.sort_by_key(|span| std::cmp::Reverse(span.start));
    let mut left = text.to_owned();
    let mut end = usize::MAX;
    for span in whole {
        left.replace_range(span.start..span.end.min(end), "");
        end = span.start;
    }
    Some(left)
}

/// Collects the span of a table, from its header to its last value, and of its subtables.
fn spans(table: &toml_edit::Table, found: &mut Vec<Range<usize>>) {
    if let Some(head) = table.span().filter(|_| !table.is_dotted()) {
        found.push(head.start..end_of_values(table).max(head.end));
    }
    for (_, item) in table.iter() {
        match item {
            Item::Table(inner) => spans(inner, found),
            Item::ArrayOfTables(inner) => inner.iter().for_each(|inner| spans(inner, found)),
            Item::None | Item::Value(_) => {}
        }
    }
}

/// Returns the offset where the last value of a table ends.
fn end_of_values(table: &toml_edit::Table) -> usize {
    let ends = table.iter().map(|(_, item)| match item {
        Item::Value(value) => value.span().map_or(0, |span| span.end),
        Item::Table(dotted) if dotted.is_dotted() => end_of_values(dotted),
        Item::None | Item::Table(_) | Item::ArrayOfTables(_) => 0,
    });
    ends.max().unwrap_or(0)
}

/// Extends a span to whole lines, with the comment right above and the blank line below.
fn with_lines(text: &str, span: &Range<usize>) -> Range<usize> {
    let line_start = |at: usize| text[..at].rfind('\n').map_or(0, |end| end + 1);
    let line_end = |at: usize| text[at..].find('\n').map_or(text.len(), |end| at + end + 1);
    let mut start = line_start(span.start);
    while start != 0 {
        let above = line_start(start - 1);
        if !text[above..start].trim_start().starts_with('#') {
            break;
        }
        start = above;
    }
    // A comment at the top of the file belongs to the file.
    if start == 0 && span.start != 0 && text.starts_with('#') {
        start = line_start(span.start);
    }
    let mut end = line_end(span.end);
    if text[end..].starts_with('\n') {
        end += 1;
    }
    start..end
}

fn set(text: &str, at: usize, key: &str, value: Option<&serde_json::Value>) -> Option<String> {
    let mut document: DocumentMut = text.parse().ok()?;
    let table: &mut dyn toml_edit::TableLike = match &mut document["upstream"] {
        Item::ArrayOfTables(tables) => tables.get_mut(at)?,
        Item::Value(Value::Array(items)) => items.get_mut(at)?.as_inline_table_mut()?,
        Item::None | Item::Value(_) | Item::Table(_) => return None,
    };
    match value {
        None => drop(table.remove(key)),
        Some(value) => {
            let new = to_toml_value(value)?;
            match table.get_mut(key).and_then(Item::as_value_mut) {
                // Keep the comment behind the value.
                Some(old) => {
                    let decor = old.decor().clone();
                    *old = new;
                    *old.decor_mut() = decor;
                }
                None => drop(table.insert(key, Item::Value(new))),
            }
        }
    }
    Some(document.to_string())
}

fn to_toml_value(value: &serde_json::Value) -> Option<Value> {
    Some(match value {
        serde_json::Value::Bool(value) => (*value).into(),
        serde_json::Value::String(text) => text.as_str().into(),
        serde_json::Value::Number(number) => number.as_i64()?.into(),
        serde_json::Value::Array(items) => {
            Value::Array(items.iter().map(to_toml_value).collect::<Option<_>>()?)
        }
        serde_json::Value::Object(members) => {
            let pairs =
                members.iter().map(|(key, value)| Some((key.as_str(), to_toml_value(value)?)));
            Value::InlineTable(pairs.collect::<Option<Vec<_>>>()?.into_iter().collect())
        }
        serde_json::Value::Null => return None,
    })
}

/// Parses and validates one upstream as if it were written in `file`.
pub fn parse_upstream(
    raw: &raw_upstream::Raw,
    file: &FilePath,
    environment: &dyn super::Environment,
) -> Result<(super::Upstream, Problems), Problems> {
    let text = raw_upstream::upstreams_to_toml(vec![raw.clone()]);
    let shown = file.display().to_string();
    let (_, mut problems) = parse_tree(SourceFile { name: shown.clone(), text });
    let whole = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let base = whole.parent().unwrap_or(FilePath::new("/"));
    let own_address = OwnAddress::with_defaults(&shown, base, None);
    let path = document::tree::Path::default().key("upstream").index(0);
    let raw = raw_upstream::Raw { disabled: false, ..raw.clone() };
    let entry = raw_upstream::UpstreamEntry { path, raw };
    let found = upstream::parse(vec![entry], &own_address, environment, &mut problems).pop();
    match found.filter(|_| !problems.has_errors()) {
        Some(upstream) => Ok((upstream, problems)),
        None => Err(problems),
    }
}

#[cfg(test)]
mod tests;

//! Changes single upstreams in our own configuration file and keeps everything
//! else: comments, order, blank lines.
//!
//! Every change is made in the text and then read back. Unless the new text
//! means the old configuration with exactly this change, nothing is written.

use std::ops::Range;
use std::path::Path as FilePath;

use catalog::name;
use toml_edit::{DocumentMut, Item, Value};

use super::{
    Raw, Source, foreign, problem::Problems, raw as meaning, raw_upstream,
    self_reference::OwnAddress, tree, upstream,
};

/// One change.
#[derive(Clone, Debug)]
pub enum Edit<'a> {
    Add(&'a raw_upstream::Raw),
    Remove(&'a str),
    /// Sets a key of an upstream, or takes it out.
    Set {
        label: &'a str,
        key: &'a str,
        value: Option<serde_json::Value>,
    },
}

/// Why a file stays as it is. One variant per remedy.
#[derive(Debug, thiserror::Error)]
pub enum Unedited {
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

/// The text with the change in it. `file` is how the text is called in messages.
pub fn apply(file: &str, text: &str, edit: &Edit<'_>) -> Result<String, Unedited> {
    let before = read(file, text)?;
    let expected = expected(&before, edit)?;
    let changed = match edit {
        Edit::Add(raw) => add(text, raw),
        Edit::Remove(label) => remove(text, at(&before, label)?),
        Edit::Set { label, key, value } => set(text, at(&before, label)?, key, value.as_ref()),
    };
    let is_meant = |changed: &String| read(file, changed).is_ok_and(|after| after == expected);
    changed
        .filter(is_meant)
        .ok_or_else(|| Unedited::Unsafe { file: file.to_owned(), label: edit.label().to_owned() })
}

/// Every upstream, as it is written.
pub fn all(file: &str, text: &str) -> Result<Vec<raw_upstream::Raw>, Unedited> {
    Ok(read(file, text)?.upstream)
}

/// The upstream of that name, as it is written.
pub fn find(file: &str, text: &str, label: &str) -> Result<raw_upstream::Raw, Unedited> {
    let raw = read(file, text)?;
    let at = at(&raw, label)?;
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

/// Returns what a text means, as far as it was written down.
fn read(file: &str, text: &str) -> Result<Raw, Unedited> {
    let source = Source { name: file.to_owned(), text: text.to_owned() };
    let is_json = source.is_json();
    let (root, mut problems) = tree(source);
    if problems.has_errors() {
        return Err(Box::new(problems).into());
    }
    if is_json || foreign::is_foreign(&root) {
        return Err(Unedited::Foreign(file.to_owned()));
    }
    let raw = meaning(&root, &mut problems);
    if problems.has_errors() { Err(Box::new(problems).into()) } else { Ok(raw) }
}

fn at(raw: &Raw, wanted: &str) -> Result<usize, Unedited> {
    let labels = || raw.upstream.iter().map(|one| one.label.clone().unwrap_or_default());
    let position = labels().position(|label| name::means(&label, wanted));
    position
        .ok_or_else(|| Unedited::Unknown { wanted: wanted.to_owned(), known: labels().collect() })
}

fn expected(before: &Raw, edit: &Edit<'_>) -> Result<Raw, Unedited> {
    let mut after = before.clone();
    match edit {
        Edit::Add(raw) => {
            let label = edit.label();
            if at(before, label).is_ok() {
                return Err(Unedited::Taken(label.to_owned()));
            }
            after.upstream.push((*raw).clone());
        }
        Edit::Remove(label) => drop(after.upstream.remove(at(before, label)?)),
        Edit::Set { label, key, value } => {
            let place = &mut after.upstream[at(before, label)?];
            let mut members = serde_json::to_value(&*place).unwrap_or_default();
            match value {
                Some(value) => members[*key] = value.clone(),
                None => drop(members.as_object_mut().and_then(|members| members.remove(*key))),
            }
            let unsafe_edit =
                || Unedited::Unsafe { file: String::new(), label: (*label).to_owned() };
            *place = serde_json::from_value(members).map_err(|_| unsafe_edit())?;
        }
    }
    Ok(after)
}

/// A table of tables may go on at the end of a file, whatever stands between.
fn add(text: &str, raw: &raw_upstream::Raw) -> Option<String> {
    let document: DocumentMut = text.parse().ok()?;
    let entry = raw_upstream::write(vec![raw.clone()]);
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

/// The first table of a list, as it is written between braces.
trait First {
    fn remove_first(&mut self) -> Option<toml_edit::InlineTable>;
}

impl First for toml_edit::ArrayOfTables {
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

/// Where a table stands, from its head to its last value, and the tables in it.
fn spans(table: &toml_edit::Table, found: &mut Vec<Range<usize>>) {
    if let Some(head) = table.span().filter(|_| !table.is_dotted()) {
        found.push(head.start..last(table).max(head.end));
    }
    for (_, item) in table.iter() {
        match item {
            Item::Table(inner) => spans(inner, found),
            Item::ArrayOfTables(inner) => inner.iter().for_each(|inner| spans(inner, found)),
            Item::None | Item::Value(_) => {}
        }
    }
}

/// Returns where the last value of a table ends.
fn last(table: &toml_edit::Table) -> usize {
    let ends = table.iter().map(|(_, item)| match item {
        Item::Value(value) => value.span().map_or(0, |span| span.end),
        Item::Table(dotted) if dotted.is_dotted() => last(dotted),
        Item::None | Item::Table(_) | Item::ArrayOfTables(_) => 0,
    });
    ends.max().unwrap_or(0)
}

/// The whole lines, with the comment that stands right above and the blank
/// line below.
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
    // What heads the file belongs to the file.
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
            let new = written(value)?;
            match table.get_mut(key).and_then(Item::as_value_mut) {
                // The comment behind it stays.
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

fn written(value: &serde_json::Value) -> Option<Value> {
    Some(match value {
        serde_json::Value::Bool(value) => (*value).into(),
        serde_json::Value::String(text) => text.as_str().into(),
        serde_json::Value::Number(number) => number.as_i64()?.into(),
        serde_json::Value::Array(items) => {
            Value::Array(items.iter().map(written).collect::<Option<_>>()?)
        }
        serde_json::Value::Object(members) => {
            let pairs = members.iter().map(|(key, value)| Some((key.as_str(), written(value)?)));
            Value::InlineTable(pairs.collect::<Option<Vec<_>>>()?.into_iter().collect())
        }
        serde_json::Value::Null => return None,
    })
}

/// An upstream as it would be meant in a file of this directory.
pub fn parsed(
    raw: &raw_upstream::Raw,
    file: &FilePath,
    environment: &dyn super::Environment,
) -> Result<(super::Upstream, Problems), Problems> {
    let text = raw_upstream::write(vec![raw.clone()]);
    let shown = file.display().to_string();
    let (_, mut problems) = tree(Source { name: shown.clone(), text });
    let whole = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let base = whole.parent().unwrap_or(FilePath::new("/"));
    let here = OwnAddress::usual(&shown, base, None);
    let path = document::tree::Path::default().key("upstream").index(0);
    let raw = raw_upstream::Raw { disabled: false, ..raw.clone() };
    let entry = raw_upstream::Entry { path, raw };
    let found = upstream::parse(vec![entry], &here, environment, &mut problems).pop();
    match found.filter(|_| !problems.has_errors()) {
        Some(upstream) => Ok((upstream, problems)),
        None => Err(problems),
    }
}

#[cfg(test)]
mod tests;

//! Skills with holes in them: `{{ customer_id }}`, `{% if %}` and `{% for %}`.
//!
//! The engine is a real one, and what it may do is little: no other template
//! can be reached, nothing can be named or kept, and work, values and output
//! are bounded. A hole that nobody fills stays as it is and is named, so that a
//! text about `{{ braces }}` reads as it was written.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use catalog::name;
use minijinja::value::{Object, Value, ValueKind};
use minijinja::{Environment, ErrorKind, State, UndefinedBehavior, filters, syntax::SyntaxConfig};
use tool::Json;

/// The tags there are. Without `set`, `macro` and the like no value can grow.
const TAGS: [&str; 7] = ["if", "elif", "else", "endif", "for", "endfor", "raw"];

/// Steps that filling in one text may take.
const FUEL: u64 = 50_000;
/// How long one expression or tag may be.
const EXPRESSION: usize = 500;
/// How long all values together may be.
const VALUES: usize = 16 << 10;
/// How long the result may be.
const OUTPUT: usize = 2 << 20;
const DEPTH: usize = 32;
const LINES: usize = 20_000;
const COLUMNS: usize = 20_000;

/// Why a text cannot be filled in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The text is no template that is understood here.
    #[error("is no template: {0}")]
    Malformed(String),
    /// The values do not fit, or it takes too much.
    #[error("{0}")]
    Failed(String),
}

/// Whether there is anything to fill in.
pub(super) fn has_holes(text: &str) -> bool {
    text.contains("{{") || text.contains("{%")
}

/// The names that a text can be given values for.
pub(super) fn holes(text: &str) -> Result<BTreeSet<String>, TemplateError> {
    if !has_holes(text) {
        return Ok(BTreeSet::new());
    }
    inspect(text)?;
    let engine = engine();
    let template = engine.template_from_str(text).map_err(|error| malformed(&error))?;
    Ok(template.undeclared_variables(false).into_iter().collect())
}

/// Fills in a text. Also gives the names that nobody gave a value for.
pub(super) fn fill(
    text: &str,
    values: &[(&str, &Json)],
) -> Result<(String, Vec<String>), TemplateError> {
    let holes = holes(text)?;
    if VALUES < values.iter().map(|(_, value)| value.as_str().len()).sum() {
        let why = format!("the kwargs are over {} KiB together", VALUES >> 10);
        return Err(TemplateError::Failed(why));
    }
    let mut missing: Vec<(String, Arc<AtomicBool>)> = Vec::new();
    let bind = |hole: String| {
        let given = values.iter().find(|(key, _)| name::same(key, &hole));
        let value = match given.and_then(|(_, value)| value.value().ok()) {
            Some(value) => read(&value),
            None => {
                let replaced = Arc::<AtomicBool>::default();
                missing.push((hole.clone(), Arc::clone(&replaced)));
                Value::from_object(Hole { name: hole.clone(), replaced })
            }
        };
        (hole, value)
    };
    let context: BTreeMap<String, Value> = holes.into_iter().map(bind).collect();
    let context = Value::from(context);
    let engine = engine();
    let template = engine.template_from_str(text).map_err(|error| malformed(&error))?;
    let mut page = Page::default();
    let done = template.render_captured_to(context, &mut page).map(drop);
    match done {
        Ok(()) => {
            let text = String::from_utf8_lossy(&page.written).into_owned();
            // A default stands for what nobody gave, unless it is used without one as well.
            let shown = |name: &str| {
                text.contains(&format!("{{{{ {name} }}}}"))
                    || text.contains(&format!("{{{{ {name}."))
            };
            missing.retain(|(name, replaced)| !replaced.load(Ordering::Relaxed) || shown(name));
            let missing = missing.into_iter().map(|(name, _)| name).collect();
            Ok((text, missing))
        }
        Err(_) if page.full => Err(failed(format!("it grows over {} MiB", OUTPUT >> 20))),
        Err(error) if error.kind() == ErrorKind::OutOfFuel => {
            Err(failed("it takes too many steps".to_owned()))
        }
        Err(error) => Err(failed(said(&error))),
    }
}

fn failed(why: String) -> TemplateError {
    TemplateError::Failed(why)
}

fn malformed(error: &minijinja::Error) -> TemplateError {
    TemplateError::Malformed(said(error))
}

/// What the engine says, and where.
fn said(error: &minijinja::Error) -> String {
    let detail = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    match error.line() {
        Some(line) => format!("line {line}: {detail}"),
        None => detail,
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "values of the engine are of many kinds")]
fn engine() -> Environment<'static> {
    let mut engine = Environment::empty();
    // A heading may have an anchor, `{#like-this}`, which is no comment.
    let syntax = SyntaxConfig::builder()
        .comment_delimiters("{#!comment", "comment!#}")
        .keep_trailing_newline(true)
        .build()
        .expect("the delimiters differ");
    engine.set_syntax(syntax);
    engine.set_undefined_behavior(UndefinedBehavior::Strict);
    engine.set_fuel(Some(FUEL));
    engine.set_recursion_limit(DEPTH);
    engine.set_formatter(|out, _, value| match value.kind() {
        ValueKind::Bool => Ok(write!(out, "{}", value.is_true())?),
        ValueKind::None => Ok(write!(out, "null")?),
        _ => Ok(write!(out, "{value}")?),
    });
    engine.add_filter("upper", filters::upper);
    engine.add_filter("lower", filters::lower);
    engine.add_filter("trim", filters::trim);
    engine.add_filter("title", filters::title);
    engine.add_filter("capitalize", filters::capitalize);
    engine.add_filter("length", filters::length);
    engine.add_filter("first", filters::first);
    engine.add_filter("last", filters::last);
    engine.add_filter("join", filters::join);
    engine.add_filter("default", or_else);
    engine
}

/// `{{ place | default("here") }}`; a hole counts as nothing.
fn or_else(_: &State<'_, '_>, value: Value, other: Option<Value>) -> Value {
    let hole = value.downcast_object_ref::<Hole>();
    if let Some(hole) = hole {
        hole.replaced.store(true, Ordering::Relaxed);
    }
    if value.is_undefined() || value.is_none() || hole.is_some() {
        other.unwrap_or_else(|| Value::from(""))
    } else {
        value
    }
}

/// Refuses what could grow or hide: long expressions, other tags, repetition.
fn inspect(text: &str) -> Result<(), TemplateError> {
    let refuse = |why: String| Err(TemplateError::Malformed(why));
    // The engine counts lines and columns in 16 bits.
    if LINES < text.lines().count() || text.lines().any(|line| COLUMNS < line.len()) {
        return refuse("it has too many or too long lines".to_owned());
    }
    let mut rest = text;
    while let Some((at, close)) = next(rest) {
        let inner = &rest[at + 2..];
        let Some(length) = inner.find(close) else { return Ok(()) };
        let inside = inner[..length].trim_matches(['-', '+', ' ', '\t', '\r', '\n']);
        if EXPRESSION < inside.len() {
            return refuse(format!("an expression is over {EXPRESSION} characters"));
        }
        if outside_quotes(inside).any(|c| c == '*') {
            return refuse("`*` is not understood".to_owned());
        }
        rest = &inner[length + 2..];
        if close == "%}" {
            let tag = inside.split([' ', '\t', '\n', '(']).next().unwrap_or_default();
            if !TAGS.contains(&tag) {
                return refuse(format!("the tag `{}` is not known", summary(tag)));
            }
            if tag == "raw" {
                // Nothing in there is read; the engine looks for the end itself.
                let end = rest.find("endraw").map_or(rest.len(), |end| end + "endraw".len());
                rest = rest[end..].trim_start_matches(['-', '+', ' ']);
                rest = rest.strip_prefix("%}").unwrap_or(rest);
            }
        }
    }
    Ok(())
}

/// Where the next expression or tag begins, and what closes it.
fn next(text: &str) -> Option<(usize, &'static str)> {
    let close = |at: usize| match text.as_bytes().get(at + 1) {
        Some(b'{') => Some((at, "}}")),
        Some(b'%') => Some((at, "%}")),
        Some(_) | None => None,
    };
    text.match_indices('{').find_map(|(at, _)| close(at))
}

fn outside_quotes(text: &str) -> impl Iterator<Item = char> {
    let mut quote = None;
    text.chars().filter(move |c| match quote {
        Some(open) if open == *c => {
            quote = None;
            false
        }
        Some(_) => false,
        None if matches!(c, '"' | '\'') => {
            quote = Some(*c);
            false
        }
        None => true,
    })
}

fn summary(text: &str) -> String {
    catalog::summary::cut(text, 40)
}

/// A name that nobody gave a value for. It reads as it was written, and counts
/// as nothing where it is asked about.
#[derive(Debug)]
struct Hole {
    name: String,
    /// Whether a default was taken for it.
    replaced: Arc<AtomicBool>,
}

impl Object for Hole {
    fn get_value(self: &Arc<Hole>, key: &Value) -> Option<Value> {
        let name = format!("{}.{key}", self.name);
        Some(Value::from_object(Hole { name, replaced: Arc::clone(&self.replaced) }))
    }

    fn is_true(self: &Arc<Hole>) -> bool {
        false
    }

    fn render(self: &Arc<Hole>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{{ {} }}}}", self.name)
    }
}

fn read(value: &serde_json::Value) -> Value {
    match value {
        serde_json::Value::Null => Value::from(()),
        serde_json::Value::Bool(flag) => Value::from(*flag),
        serde_json::Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Value::from(whole),
            // As it is written, where no number here can hold it.
            _ => Value::from(number.to_string()),
        },
        serde_json::Value::String(text) => Value::from(text.as_str()),
        serde_json::Value::Array(items) => items.iter().map(read).collect(),
        serde_json::Value::Object(members) => {
            let members = members.iter().map(|(key, value)| (key.clone(), read(value)));
            Value::from(members.collect::<BTreeMap<String, Value>>())
        }
    }
}

/// Where the text goes, as long as there is room.
#[derive(Default)]
struct Page {
    written: Vec<u8>,
    full: bool,
}

impl io::Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if OUTPUT < self.written.len() + bytes.len() {
            self.full = true;
            return Err(io::Error::other("the page is full"));
        }
        self.written.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;

//! Fills in the placeholders of skills: `{{ customer_id }}`, `{% if %}` and `{% for %}`.
//!
//! The engine is a restricted Jinja: templates cannot include others or define anything,
//! and steps, values and output are limited. A placeholder without a value stays as
//! written and is reported, so that a text about `{{ braces }}` stays readable. A text with
//! unknown filters, tags or calls is about another template language, and is not treated
//! as a template.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use catalog::name;
use minijinja::value::{Object, Rest, Value, ValueKind};
use minijinja::{
    Environment, Error, ErrorKind, State, UndefinedBehavior, filters, syntax::SyntaxConfig,
};
use tool::Json;

/// The allowed tags. `set`, `macro` and the like are not among them, so no value can grow.
const TAGS: [&str; 7] = ["if", "elif", "else", "endif", "for", "endfor", "raw"];

/// The allowed filters.
const FILTERS: [&str; 10] =
    ["upper", "lower", "trim", "title", "capitalize", "length", "first", "last", "join", "default"];

/// Words that may come before a parenthesis without being a call.
const KEYWORDS: [&str; 8] = ["if", "elif", "else", "for", "in", "not", "and", "or"];

/// How many steps of the engine filling in one text may take.
const FUEL: u64 = 100_000;
/// The length of the longest expression or tag.
const MAX_EXPRESSION: usize = 500;
/// The length of all values together.
const MAX_VALUES: usize = 16 << 10;
/// The length of the longest result.
const MAX_OUTPUT: usize = 2 << 20;
/// How deep tags may be nested.
const MAX_DEPTH: usize = 32;
const MAX_LINES: usize = 20_000;
const MAX_COLUMNS: usize = 20_000;

/// Why a text cannot be filled in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The text is not a valid template.
    #[error("is not a template: {0}")]
    Malformed(String),
    /// The values do not fit, or a limit was reached.
    #[error("{0}")]
    Failed(String),
}

/// Returns whether a text may contain placeholders.
pub(super) fn has_placeholders(text: &str) -> bool {
    text.contains("{{") || text.contains("{%")
}

/// Returns the names of the placeholders in a text.
pub(super) fn placeholders(text: &str) -> Result<BTreeSet<String>, TemplateError> {
    if !has_placeholders(text) {
        return Ok(BTreeSet::new());
    }
    inspect(text)?;
    let engine = engine(Arc::default());
    let template = engine.template_from_str(text).map_err(|error| malformed(&error))?;
    Ok(template.undeclared_variables(false).into_iter().collect())
}

/// Fills in a text; returns the result, and the names of placeholders without a value.
pub(super) fn fill(
    text: &str,
    values: &[(&str, &Json)],
) -> Result<(String, Vec<String>), TemplateError> {
    let placeholders = placeholders(text)?;
    if MAX_VALUES < values.iter().map(|(_, value)| value.as_str().len()).sum() {
        let why = format!("the kwargs are over {} KiB together", MAX_VALUES >> 10);
        return Err(TemplateError::Failed(why));
    }
    let mut missing: Vec<(String, Arc<Usage>)> = Vec::new();
    let bind = |placeholder: String| {
        let given = values.iter().find(|(key, _)| name::same(key, &placeholder));
        let value = match given.and_then(|(_, value)| value.to_value().ok()) {
            Some(value) => to_engine_value(&value),
            None => {
                let usage = Arc::<Usage>::default();
                missing.push((placeholder.clone(), Arc::clone(&usage)));
                Value::from_object(Placeholder { name: placeholder.clone(), usage })
            }
        };
        (placeholder, value)
    };
    let context: BTreeMap<String, Value> = placeholders.into_iter().map(bind).collect();
    let context = Value::from(context);
    let counted = Arc::<AtomicBool>::default();
    let mut engine = engine(Arc::clone(&counted));
    let (traced, originals) = traced(text);
    let shown = move |value: Value, at: usize| match value.downcast_object_ref::<Placeholder>() {
        None if !counted.load(Ordering::Relaxed) => value,
        placeholder => {
            placeholder
                .inspect(|placeholder| placeholder.usage.shown.store(true, Ordering::Relaxed));
            originals.get(at).map_or(value.clone(), |original| Value::from(original.as_str()))
        }
    };
    engine.add_filter("__shut", move |_: Value, value: Value, at: usize| shown(value, at));
    // The engine may disagree about where an expression ends; then the text is used as it is.
    let template = engine.template_from_str(&traced).or_else(|_| engine.template_from_str(text));
    let template = template.map_err(|error| malformed(&error))?;
    let mut output = BoundedOutput::default();
    let done = template.render_captured_to(context, &mut output).map(drop);
    match done {
        Ok(()) => {
            let text = String::from_utf8_lossy(&output.written).into_owned();
            // A placeholder with a default is not missing, unless it is also used without one.
            missing.retain(|(_, usage)| {
                !usage.replaced.load(Ordering::Relaxed) || usage.shown.load(Ordering::Relaxed)
            });
            let missing = missing.into_iter().map(|(name, _)| name).collect();
            Ok((text, missing))
        }
        Err(_) if output.full => Err(failed(format!("it grows over {} MiB", MAX_OUTPUT >> 20))),
        Err(error) if error.kind() == ErrorKind::OutOfFuel => {
            Err(failed("it takes too many steps".to_owned()))
        }
        Err(error) if UNKNOWN.contains(&error.kind()) => Err(malformed(&error)),
        Err(error) => Err(failed(message(&error))),
    }
}

/// The errors of the engine for something that it does not know.
const UNKNOWN: [ErrorKind; 4] = [
    ErrorKind::UnknownFilter,
    ErrorKind::UnknownTest,
    ErrorKind::UnknownFunction,
    ErrorKind::UnknownMethod,
];

/// Wraps every expression with a filter in a call with its number; returns the text and
/// the original expressions by number. So an expression whose placeholder has no value can
/// be restored as it was written.
fn traced(text: &str) -> (String, Vec<String>) {
    let (mut traced, mut originals, mut done) = (String::new(), Vec::new(), 0);
    for piece in pieces(text).filter(|piece| piece.kind == Kind::Expression) {
        let inner = &text[piece.at + 2..piece.end - 2];
        let begin = inner.len() - inner.trim_start_matches(['-', '+']).len();
        let end = inner.trim_end_matches(['-', '+']).len();
        if end <= begin || !outside_quotes(inner).any(|c| c == '|') {
            continue;
        }
        traced.push_str(&text[done..piece.at + 2 + begin]);
        let at = originals.len();
        traced.push_str(&format!("0|__open|__shut({},{at})", &inner[begin..end]));
        done = piece.at + 2 + end;
        originals.push(text[piece.at..piece.end].to_owned());
    }
    traced.push_str(&text[done..]);
    (traced, originals)
}

fn failed(why: String) -> TemplateError {
    TemplateError::Failed(why)
}

fn malformed(error: &minijinja::Error) -> TemplateError {
    TemplateError::Malformed(message(error))
}

/// Renders an error of the engine, with its line.
fn message(error: &minijinja::Error) -> String {
    let detail = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    match error.line() {
        Some(line) => format!("line {line}: {detail}"),
        None => detail,
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "values of the engine are of many kinds")]
fn engine(counted: Arc<AtomicBool>) -> Environment<'static> {
    let mut engine = Environment::empty();
    // A heading may have an anchor, `{#like-this}`, which must not start a comment.
    let syntax = SyntaxConfig::builder()
        .comment_delimiters("{#!comment", "comment!#}")
        .keep_trailing_newline(true)
        .build()
        .expect("the delimiters differ");
    engine.set_syntax(syntax);
    engine.set_undefined_behavior(UndefinedBehavior::Strict);
    engine.set_fuel(Some(FUEL));
    engine.set_recursion_limit(MAX_DEPTH);
    engine.set_formatter(|out, _, value| match value.kind() {
        ValueKind::Bool => Ok(write!(out, "{}", value.is_true())?),
        ValueKind::None => Ok(write!(out, "null")?),
        _ => Ok(write!(out, "{value}")?),
    });
    // Registered under names that no template can use; the filters below wrap them.
    engine.add_filter("upper!", filters::upper);
    engine.add_filter("lower!", filters::lower);
    engine.add_filter("trim!", filters::trim);
    engine.add_filter("title!", filters::title);
    engine.add_filter("capitalize!", filters::capitalize);
    engine.add_filter("length!", filters::length);
    engine.add_filter("first!", filters::first);
    engine.add_filter("last!", filters::last);
    engine.add_filter("join!", filters::join);
    for name in FILTERS {
        let counted = Arc::clone(&counted);
        engine.add_filter(
            name,
            move |state: &mut State<'_, '_>, value: Value, rest: Rest<Value>| {
                filtered(state, name, &value, rest.0, &counted)
            },
        );
    }
    engine.add_filter("__open", move |_: Value| counted.store(false, Ordering::Relaxed));
    engine
}

/// Applies a filter. A placeholder without a value stays one; its `length` is 0, which is
/// noted in `counted`.
fn filtered(
    state: &mut State<'_, '_>,
    name: &str,
    value: &Value,
    rest: Vec<Value>,
    counted: &AtomicBool,
) -> Result<Value, Error> {
    let placeholder = value.downcast_object_ref::<Placeholder>();
    match (name, placeholder) {
        ("default", _) => Ok(or_else(value.clone(), rest.into_iter().next())),
        ("length", Some(placeholder)) => {
            counted.store(true, Ordering::Relaxed);
            placeholder.usage.shown.store(true, Ordering::Relaxed);
            Ok(Value::from(0))
        }
        (_, Some(placeholder)) => {
            let name = format!("{} | {name}", placeholder.name);
            Ok(Value::from_object(Placeholder { name, usage: Arc::clone(&placeholder.usage) }))
        }
        (_, None) => {
            let all: Vec<Value> = std::iter::once(value.clone()).chain(rest).collect();
            state.apply_filter(&format!("{name}!"), &all)
        }
    }
}

/// Applies the filter `default`, for which a placeholder without a value is undefined.
fn or_else(value: Value, other: Option<Value>) -> Value {
    let placeholder = value.downcast_object_ref::<Placeholder>();
    if let Some(placeholder) = placeholder {
        placeholder.usage.replaced.store(true, Ordering::Relaxed);
    }
    if value.is_undefined() || value.is_none() || placeholder.is_some() {
        other.unwrap_or_else(|| Value::from(""))
    } else {
        value
    }
}

/// Refuses templates with long expressions, with tags that are not allowed, with
/// repetition of texts (`*`), and with anything that the engine does not know.
fn inspect(text: &str) -> Result<(), TemplateError> {
    let refuse = |why: String| Err(TemplateError::Malformed(why));
    // The engine counts lines and columns in 16 bits.
    if MAX_LINES < text.lines().count() || text.lines().any(|line| MAX_COLUMNS < line.len()) {
        return refuse("it has too many or too long lines".to_owned());
    }
    for Piece { kind, inside, .. } in pieces(text) {
        if MAX_EXPRESSION < inside.len() {
            return refuse(format!("an expression is over {MAX_EXPRESSION} characters"));
        }
        if outside_quotes(inside).any(|c| c == '*') {
            return refuse("`*` is not understood".to_owned());
        }
        let tag = tag(inside);
        if kind == Kind::Tag && !TAGS.contains(&tag) {
            return refuse(format!("the tag `{}` is not known", summary(tag)));
        }
        if let Some(what) = unknown_construct(inside) {
            return refuse(format!("{what} is not known"));
        }
    }
    Ok(())
}

/// The first filter, test or call in an expression that is not known.
fn unknown_construct(inside: &str) -> Option<String> {
    let tokens = tokens(inside);
    let at = |at: usize| tokens.get(at).map_or("", String::as_str);
    let is_word = |token: &str| token.chars().all(is_letter) && !token.is_empty();
    (0..tokens.len()).find_map(|here| {
        let before = here.checked_sub(1).map_or("", at);
        match at(here) {
            "|" if !FILTERS.contains(&at(here + 1)) => {
                Some(format!("the filter `{}`", summary(at(here + 1))))
            }
            "is" if !before.is_empty() && before != "." => {
                let test = if at(here + 1) == "not" { at(here + 2) } else { at(here + 1) };
                Some(format!("the test `{}`", summary(test)))
            }
            word if is_word(word)
                && at(here + 1) == "("
                && before != "|"
                && !KEYWORDS.contains(&word) =>
            {
                Some(format!("`{}(…)`", summary(word)))
            }
            _ => None,
        }
    })
}

/// Splits an expression into words and single characters; each quoted text is one
/// character.
fn tokens(inside: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut grows = false;
    for c in unquoted(inside) {
        match tokens.last_mut() {
            Some(word) if grows && is_letter(c) => word.push(c),
            Some(_) | None if !c.is_whitespace() => tokens.push(c.to_string()),
            Some(_) | None => {}
        }
        grows = is_letter(c);
    }
    tokens
}

fn is_letter(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn tag(inside: &str) -> &str {
    inside.split([' ', '\t', '\n', '(']).next().unwrap_or_default()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// `{{ … }}`
    Expression,
    /// `{% … %}`
    Tag,
}

/// An expression or a tag of a template.
struct Piece<'a> {
    kind: Kind,
    /// Where it begins and ends, with its braces.
    at: usize,
    end: usize,
    /// The text between the braces, trimmed.
    inside: &'a str,
}

/// Iterates over the expressions and tags of a template.
fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let (at, kind, close) = next(&text[from..])?;
        let at = from + at;
        let inner = &text[at + 2..];
        let length = inner.find(close)?;
        let inside = inner[..length].trim_matches(['-', '+', ' ', '\t', '\r', '\n']);
        let end = at + 2 + length + 2;
        from = end;
        if kind == Kind::Tag && tag(inside) == "raw" {
            // A raw block is skipped as the engine does: up to the next `endraw`.
            let rest = &text[end..];
            let skipped = rest.find("endraw").map_or(rest.len(), |end| end + "endraw".len());
            let rest = rest[skipped..].trim_start_matches(['-', '+', ' ']);
            let rest = rest.strip_prefix("%}").unwrap_or(rest);
            from = text.len() - rest.len();
        }
        Some(Piece { kind, at, end, inside })
    })
}

/// Returns where the next expression or tag begins, its kind, and its closing delimiter.
fn next(text: &str) -> Option<(usize, Kind, &'static str)> {
    let close = |at: usize| match text.as_bytes().get(at + 1) {
        Some(b'{') => Some((at, Kind::Expression, "}}")),
        Some(b'%') => Some((at, Kind::Tag, "%}")),
        Some(_) | None => None,
    };
    text.match_indices('{').find_map(|(at, _)| close(at))
}

fn outside_quotes(text: &str) -> impl Iterator<Item = char> {
    unquoted(text).filter(|c| *c != QUOTED)
}

/// The character in place of a quoted text.
const QUOTED: char = '"';

/// Replaces each quoted text by [`QUOTED`].
fn unquoted(text: &str) -> impl Iterator<Item = char> {
    let mut quote = None;
    text.chars().filter_map(move |c| match quote {
        Some(open) if open == c => {
            quote = None;
            Some(QUOTED)
        }
        Some(_) => None,
        None if matches!(c, '"' | '\'') => {
            quote = Some(c);
            None
        }
        None => Some(c),
    })
}

fn summary(text: &str) -> String {
    catalog::summary::cut(text, 40)
}

/// A placeholder without a value. It renders as it was written, and is false in conditions.
#[derive(Debug)]
struct Placeholder {
    /// The name, with the filters that were applied to it.
    name: String,
    usage: Arc<Usage>,
}

/// How a placeholder without a value was used.
#[derive(Debug, Default)]
struct Usage {
    /// Whether a default was used in its place.
    replaced: AtomicBool,
    /// Whether it occurs in the result.
    shown: AtomicBool,
}

impl Object for Placeholder {
    fn get_value(self: &Arc<Placeholder>, key: &Value) -> Option<Value> {
        let name = format!("{}.{key}", self.name);
        Some(Value::from_object(Placeholder { name, usage: Arc::clone(&self.usage) }))
    }

    fn is_true(self: &Arc<Placeholder>) -> bool {
        false
    }

    fn render(self: &Arc<Placeholder>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.usage.shown.store(true, Ordering::Relaxed);
        write!(f, "{{{{ {} }}}}", self.name)
    }
}

/// Converts JSON to a value of the engine.
fn to_engine_value(value: &serde_json::Value) -> Value {
    match value {
        serde_json::Value::Null => Value::from(()),
        serde_json::Value::Bool(flag) => Value::from(*flag),
        serde_json::Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Value::from(whole),
            // Other numbers become texts, so that they are rendered exactly.
            _ => Value::from(number.to_string()),
        },
        serde_json::Value::String(text) => Value::from(text.as_str()),
        serde_json::Value::Array(items) => items.iter().map(to_engine_value).collect(),
        serde_json::Value::Object(members) => {
            let members = members.iter().map(|(key, value)| (key.clone(), to_engine_value(value)));
            Value::from(members.collect::<BTreeMap<String, Value>>())
        }
    }
}

/// The output of the engine, up to its maximum length.
#[derive(Default)]
struct BoundedOutput {
    written: Vec<u8>,
    full: bool,
}

impl io::Write for BoundedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if MAX_OUTPUT < self.written.len() + bytes.len() {
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

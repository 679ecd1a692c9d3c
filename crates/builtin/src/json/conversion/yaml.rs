//! Parses YAML into a [`Tree`].
//!
//! The YAML parser makes a floating-point number of every number that is not an
//! integer of 64 bits. Its text in the document is used instead, so that no digit is
//! lost.

use std::fmt;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Number;
use serde_saphyr::{NonFiniteFloatPolicy, Spanned};

use native::ToolError;

use super::tree::Tree;
use crate::bounded::{MAX_OUTPUT_BYTES, too_long};

/// The deepest nesting of a document, the same as for JSON.
const DEPTH: usize = 127;

/// The stack size for parsing, which takes tens of kilobytes per level in a debug
/// build.
const STACK: usize = 32 << 20;

/// Parses a document as YAML 1.2, on a thread with a stack that is large enough for
/// the deepest nesting.
pub(super) fn parse(text: &str) -> Result<Tree, ToolError> {
    std::thread::scope(|scope| {
        let reader = std::thread::Builder::new().stack_size(STACK);
        match reader
            .spawn_scoped(scope, || parse_on_this_thread(text))
            .map(|reading| reading.join())
        {
            Ok(Ok(read)) => read,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(error) => Err(ToolError::new("Busy", format!("no thread can be started: {error}"))),
        }
    })
}

fn parse_on_this_thread(text: &str) -> Result<Tree, ToolError> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_depth: DEPTH },
        strict_booleans: true,
        reject_unsupported_tags: true,
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        with_snippet: false,
    };
    let read: Result<Spanned<Node>, _> = serde_saphyr::from_str_with_options(text, options);
    match read {
        Ok(root) => tree(root, text),
        Err(error) if error.to_string().contains(GROWN) => Err(too_long()),
        Err(error) => {
            Err(ToolError::new("InvalidDocument", format!("the text is not YAML: {error}")))
        }
    }
}

/// A value, and the size of its text.
#[derive(Default)]
struct Node {
    value: Value,
    size: usize,
}

#[derive(Default)]
enum Value {
    #[default]
    Null,
    Bool(bool),
    Whole(Number),
    Real(f64),
    Text(String),
    List(Vec<Spanned<Node>>),
    Table(Vec<(String, Spanned<Node>)>),
}

/// The error if references to anchors make the document too long.
const GROWN: &str = "grows too long";

/// The size of an item in addition to its text.
const ITEM: usize = 2;

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(Reading)
    }
}

struct Reading;

impl<'de> Visitor<'de> for Reading {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::default())
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node { value: Value::Bool(value), size: 0 })
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node { value: Value::Whole(value.into()), size: 0 })
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node { value: Value::Whole(value.into()), size: 0 })
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node { value: Value::Real(value), size: 0 })
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node { size: text.len(), value: Value::Text(text.to_owned()) })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let (mut list, mut size) = (Vec::new(), 0);
        while let Some(item) = items.next_element::<Spanned<Node>>()? {
            size = grown(size, item.value.size)?;
            list.push(item);
        }
        Ok(Node { value: Value::List(list), size })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Node, A::Error> {
        let (mut table, mut size) = (Vec::new(), 0);
        while let Some((key, value)) = members.next_entry::<String, Spanned<Node>>()? {
            size = grown(size, key.len() + value.value.size)?;
            table.push((key, value));
        }
        Ok(Node { value: Value::Table(table), size })
    }
}

fn grown<E: serde::de::Error>(size: usize, by: usize) -> Result<usize, E> {
    let size = size + by + ITEM;
    if MAX_OUTPUT_BYTES < size { Err(E::custom(GROWN)) } else { Ok(size) }
}

fn tree(node: Spanned<Node>, text: &str) -> Result<Tree, ToolError> {
    let span = node.defined.span();
    let written = || {
        let start = usize::try_from(span.byte_offset()?).ok()?;
        text.get(start..start + usize::try_from(span.byte_len()?).ok()?)
    };
    Ok(match node.value.value {
        Value::Null => Tree::Null,
        Value::Bool(value) => Tree::Bool(value),
        Value::Whole(number) => Tree::Number(number),
        Value::Real(value) => real(value, written().unwrap_or_default().trim())?,
        Value::Text(text) => Tree::Text(text),
        Value::List(items) => {
            Tree::List(items.into_iter().map(|item| tree(item, text)).collect::<Result<_, _>>()?)
        }
        Value::Table(members) => {
            let members = members.into_iter().map(|(key, value)| Ok((key, tree(value, text)?)));
            Tree::Table(members.collect::<Result<_, ToolError>>()?)
        }
    })
}

/// Converts a number that the parser gave as floating point, using its text.
fn real(value: f64, written: &str) -> Result<Tree, ToolError> {
    let plain = written.strip_prefix('+').unwrap_or(written);
    let digits = plain.trim_start_matches('-');
    if let Some(rest) = digits.strip_prefix('0').filter(|rest| is_digits(rest)) {
        let message = format!(
            "`{written}` is a decimal number in YAML 1.2 and an octal one in YAML 1.1; write it as \
             text in quotes, without the zero, or as `0o{rest}`"
        );
        return Err(ToolError::new("AmbiguousNumber", message));
    }
    match serde_json::from_str::<Number>(plain) {
        Ok(number) => Ok(Tree::Number(number)),
        Err(_) => Ok(Tree::from_float(value)),
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

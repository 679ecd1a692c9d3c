//! Converts a document to another format. A conversion either preserves every
//! value or fails.

mod tree;
mod unique;
mod yaml;

use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Number, Value};

use native::ToolError;
use schemars::JsonSchema;

use crate::bounded::{Bounded, MAX_OUTPUT_BYTES, too_long};
use tree::Tree;

/// A format for documents.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Format {
    Json,
    Yaml,
    Toml,
}

/// Parses a document.
pub(super) fn parse(text: &str, format: Format) -> Result<Tree, ToolError> {
    let wrong = |error: String| {
        ToolError::new("InvalidDocument", format!("the text is not {}: {error}", format.name()))
    };
    match format {
        Format::Json => {
            let value = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
            if let Err(twice) = serde_json::from_str::<unique::Unique>(text) {
                return Err(cannot_convert(twice.to_string()));
            }
            Ok(from_json(value))
        }
        Format::Yaml => yaml::parse(text),
        Format::Toml => {
            let table: toml::Table = toml::from_str(text).map_err(|e| wrong(e.to_string()))?;
            Ok(from_toml(toml::Value::Table(table)))
        }
    }
}

/// Serializes a document. It fails if the format cannot represent a value in it.
pub(super) fn serialize(tree: &Tree, format: Format) -> Result<String, ToolError> {
    let mut unsupported = Vec::new();
    find_unsupported(tree, format, &mut String::new(), &mut unsupported);
    if !unsupported.is_empty() {
        return Err(cannot_convert(describe_unsupported(&unsupported)));
    }
    let serialized = Serialized { tree, format };
    let mut text = Bounded::default();
    match format {
        Format::Json => {
            let written = serde_json::to_writer_pretty(&mut text, &serialized);
            written.map_err(|error| {
                if error.is_io() { too_long() } else { cannot_convert(error.to_string()) }
            })?;
        }
        Format::Yaml => {
            let written = serde_saphyr::to_fmt_writer(&mut text, &serialized);
            // The writer fails only when its size limit is reached.
            written.map_err(|error| {
                let is_full = matches!(error, serde_saphyr::ser::Error::Format { .. });
                if is_full { too_long() } else { cannot_convert(error.to_string()) }
            })?;
        }
        Format::Toml => {
            if !matches!(tree, Tree::Table(_)) {
                return Err(cannot_convert(format!(
                    "a TOML document is a table, not {}",
                    kind_name(tree)
                )));
            }
            // Every TOML table header repeats the path to its table.
            check_headers(tree, 0, &mut MAX_OUTPUT_BYTES.clone())?;
            let written =
                toml::to_string(&serialized).map_err(|error| cannot_convert(error.to_string()))?;
            text.push(&written)?;
        }
    }
    Ok(text.into_text())
}

impl Format {
    fn name(self) -> &'static str {
        match self {
            Format::Json => "JSON",
            Format::Yaml => "YAML",
            Format::Toml => "TOML",
        }
    }
}

fn cannot_convert(message: String) -> ToolError {
    ToolError::new("CannotConvert", message)
}

fn kind_name(tree: &Tree) -> &'static str {
    match tree {
        Tree::Null => "null",
        Tree::Bool(_) => "true or false",
        Tree::Number(_) | Tree::NonFinite(_) => "a number",
        Tree::Datetime(_) | Tree::Text(_) => "text",
        Tree::List(_) => "a list",
        Tree::Table(_) => "a table",
    }
}

fn from_json(value: Value) -> Tree {
    match value {
        Value::Null => Tree::Null,
        Value::Bool(value) => Tree::Bool(value),
        Value::Number(number) => Tree::Number(number),
        Value::String(text) => Tree::Text(text),
        Value::Array(items) => Tree::List(items.into_iter().map(from_json).collect()),
        Value::Object(members) => {
            Tree::Table(members.into_iter().map(|(key, value)| (key, from_json(value))).collect())
        }
    }
}

fn from_toml(value: toml::Value) -> Tree {
    match value {
        toml::Value::Boolean(value) => Tree::Bool(value),
        toml::Value::Integer(value) => Tree::Number(value.into()),
        toml::Value::Float(value) => Tree::from_float(value),
        toml::Value::Datetime(datetime) => Tree::Datetime(datetime),
        toml::Value::String(text) => Tree::Text(text),
        toml::Value::Array(items) => Tree::List(items.into_iter().map(from_toml).collect()),
        toml::Value::Table(members) => {
            Tree::Table(members.into_iter().map(|(key, value)| (key, from_toml(value))).collect())
        }
    }
}

/// Collects the values that a format cannot represent: their path, and why.
fn find_unsupported(
    tree: &Tree,
    format: Format,
    place: &mut String,
    unsupported: &mut Vec<(String, &'static str)>,
) {
    if MAX_NAMED < unsupported.len() {
        return;
    }
    let length = place.len();
    match tree {
        Tree::List(items) => {
            for (at, item) in items.iter().enumerate() {
                *place += &format!("[{at}]");
                find_unsupported(item, format, place, unsupported);
                place.truncate(length);
            }
        }
        Tree::Table(members) => {
            for (key, value) in members {
                *place += if length == 0 { "" } else { "." };
                *place += key;
                find_unsupported(value, format, place, unsupported);
                place.truncate(length);
            }
        }
        Tree::Null
        | Tree::Bool(_)
        | Tree::Number(_)
        | Tree::NonFinite(_)
        | Tree::Datetime(_)
        | Tree::Text(_) => {
            if let Some(why) = why_not(tree, format) {
                unsupported.push((shortened(place), why));
            }
        }
    }
}

/// At most this many paths are named in an error.
const MAX_NAMED: usize = 8;

fn shortened(place: &str) -> String {
    match place.char_indices().nth(60) {
        Some((at, _)) => format!("{}…", &place[..at]),
        None => place.to_owned(),
    }
}

fn describe_unsupported(unsupported: &[(String, &'static str)]) -> String {
    let places = |why: &str| {
        let of_it = unsupported.iter().take(MAX_NAMED).filter(|(_, other)| *other == why);
        of_it.map(|(place, _)| format!("`{place}`")).collect::<Vec<_>>().join(", ")
    };
    let mut reasons: Vec<&str> = unsupported.iter().take(MAX_NAMED).map(|(_, why)| *why).collect();
    reasons.sort_unstable();
    reasons.dedup();
    let written: Vec<String> =
        reasons.iter().map(|why| format!("{why}: {}", places(why))).collect();
    let more = if MAX_NAMED < unsupported.len() { ", and more" } else { "" };
    written.join("; ") + more
}

/// Returns why a format cannot represent a value, or `None` if it can.
fn why_not(tree: &Tree, format: Format) -> Option<&'static str> {
    match (tree, format) {
        (Tree::Null, Format::Toml) => Some("TOML has no null"),
        (Tree::NonFinite(_), Format::Json) => Some("JSON has neither nan nor infinity"),
        (Tree::Number(number), Format::Toml) => match width(number) {
            Width::Short | Width::Real => None,
            Width::Long | Width::Longer => Some("TOML's integers have 64 bits"),
            Width::Lossy => Some("TOML's numbers do not have as many digits"),
        },
        (Tree::Number(number), Format::Yaml) => match width(number) {
            Width::Short | Width::Real | Width::Long => None,
            Width::Longer => Some("integers are written to YAML with up to 128 bits"),
            Width::Lossy => Some(
                "floating-point numbers are written to YAML with 64 bits, which cannot represent",
            ),
        },
        (
            Tree::Null
            | Tree::Bool(_)
            | Tree::Number(_)
            | Tree::NonFinite(_)
            | Tree::Datetime(_)
            | Tree::Text(_)
            | Tree::List(_)
            | Tree::Table(_),
            Format::Json | Format::Yaml | Format::Toml,
        ) => None,
    }
}

/// The type that can represent a number exactly.
enum Width {
    /// A signed integer of 64 bits.
    Short,
    /// An integer of 128 bits, signed or unsigned.
    Long,
    /// A longer integer.
    Longer,
    /// A floating-point number of 64 bits.
    Real,
    /// A number that 64-bit floating point cannot represent exactly.
    Lossy,
}

fn width(number: &Number) -> Width {
    let text = number.to_string();
    if !text.contains(['.', 'e', 'E']) {
        return match (number.as_i64(), text.parse::<i128>(), text.parse::<u128>()) {
            (Some(_), _, _) => Width::Short,
            (None, Ok(_), _) | (None, _, Ok(_)) => Width::Long,
            (None, Err(_), Err(_)) => Width::Longer,
        };
    }
    let real = text.parse::<f64>().ok().filter(|real| real.is_finite());
    match real.map(|real| decimal(&format!("{real:e}")) == decimal(&text)) {
        Some(true) => Width::Real,
        Some(false) | None => Width::Lossy,
    }
}

/// The digits of a decimal number without leading and trailing zeros, and the
/// power of ten of the last digit. Every zero gives the same result.
fn decimal(text: &str) -> Option<(String, i64)> {
    let text = text.trim_start_matches('-');
    let (mantissa, power) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    let kept = digits.trim_end_matches('0');
    if kept.is_empty() {
        return Some((String::new(), 0));
    }
    let n_zeros = i64::try_from(digits.len() - kept.len()).ok()?;
    let n_fraction = i64::try_from(fraction.len()).ok()?;
    Some((kept.to_owned(), power.parse::<i64>().ok()?.checked_add(n_zeros)? - n_fraction))
}

/// Subtracts the length of all table headers from `left`.
fn check_headers(tree: &Tree, path: usize, left: &mut usize) -> Result<(), ToolError> {
    match tree {
        Tree::Table(members) => {
            *left = left.checked_sub(path).ok_or_else(too_long)?;
            members
                .iter()
                .try_for_each(|(key, value)| check_headers(value, path + key.len() + 1, left))
        }
        Tree::List(items) => items.iter().try_for_each(|item| check_headers(item, path, left)),
        Tree::Null
        | Tree::Bool(_)
        | Tree::Number(_)
        | Tree::NonFinite(_)
        | Tree::Datetime(_)
        | Tree::Text(_) => Ok(()),
    }
}

/// Serializes a tree whose values the format can all represent.
struct Serialized<'t> {
    tree: &'t Tree,
    format: Format,
}

impl Serialize for Serialized<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let format = self.format;
        let below = |tree| Serialized { tree, format };
        match self.tree {
            Tree::Null => serializer.serialize_none(),
            Tree::Bool(value) => serializer.serialize_bool(*value),
            // JSON keeps the digits as they were written.
            Tree::Number(number) if format == Format::Json => number.serialize(serializer),
            Tree::Number(number) => {
                let text = number.to_string();
                let broken = || S::Error::custom(format!("`{text}` cannot be written"));
                match width(number) {
                    Width::Short => serializer.serialize_i64(number.as_i64().ok_or_else(broken)?),
                    Width::Long => match (text.parse(), text.parse()) {
                        (Ok(whole), _) => serializer.serialize_i128(whole),
                        (Err(_), Ok(whole)) => serializer.serialize_u128(whole),
                        (Err(_), Err(_)) => Err(broken()),
                    },
                    Width::Real => serializer.serialize_f64(text.parse().map_err(|_| broken())?),
                    Width::Longer | Width::Lossy => Err(broken()),
                }
            }
            Tree::NonFinite(value) => serializer.serialize_f64(*value),
            Tree::Datetime(datetime) if format == Format::Toml => datetime.serialize(serializer),
            Tree::Datetime(datetime) => serializer.serialize_str(&datetime.to_string()),
            Tree::Text(text) => serializer.serialize_str(text),
            Tree::List(items) => serializer.collect_seq(items.iter().map(below)),
            Tree::Table(members) => {
                serializer.collect_map(members.iter().map(|(key, value)| (key, below(value))))
            }
        }
    }
}

//! Parses TOML into a tree with positions.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::tree::{Member, Node, Span, Value};

/// Parses TOML and returns all syntax errors, each with its position, beside what could be
/// parsed.
pub fn parse(text: &str) -> (Node, Vec<(Span, String)>) {
    let (table, errors) = DeTable::parse_recoverable(text);
    let span = table.span();
    let errors = errors
        .into_iter()
        .map(|error| (error.span().unwrap_or(0..0), error.message().to_owned()))
        .collect();
    (Node { span, value: from_table(table.into_inner()) }, errors)
}

fn from_table(table: DeTable<'_>) -> Value {
    let mut members: Vec<Member> = table
        .into_iter()
        .map(|(key, value)| Member {
            key_span: key.span(),
            key: key.into_inner().into_owned(),
            node: from_toml(value),
        })
        .collect();
    // The parser sorts by key; restore the order of the text.
    members.sort_by_key(|member| member.key_span.start);
    Value::Table(members)
}

fn from_toml(value: Spanned<DeValue<'_>>) -> Node {
    let span = value.span();
    let value = match value.into_inner() {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Integer(integer) => integer_value(integer.as_str(), integer.radix()),
        DeValue::Float(float) => {
            let number = float.as_str().parse().ok().and_then(serde_json::Number::from_f64);
            number.map_or_else(|| Value::Text(float.as_str().to_owned()), Value::Number)
        }
        DeValue::Boolean(value) => Value::Bool(value),
        DeValue::Datetime(moment) => Value::DateTime(moment.to_string()),
        DeValue::Array(items) => Value::List(items.into_iter().map(from_toml).collect()),
        DeValue::Table(table) => from_table(table),
    };
    Node { span, value }
}

fn integer_value(digits: &str, radix: u32) -> Value {
    if let Ok(integer) = i64::from_str_radix(digits, radix) {
        return Value::Number(integer.into());
    }
    // A number that is too large for an integer is still a number.
    let about = digits.chars().filter_map(|digit| digit.to_digit(radix));
    let about = about.fold(0.0, |sum, digit| sum * f64::from(radix) + f64::from(digit));
    let about = if digits.starts_with('-') { -about } else { about };
    let number = serde_json::Number::from_f64(about);
    number.map_or_else(|| Value::Text(digits.to_owned()), Value::Number)
}

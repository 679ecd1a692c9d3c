//! Parses the arguments about template variables (TVs) and tags.

use serde_json::Value;

use super::coerce::shorten;
use super::terms::{
    Operator, check_list_length, member_values, operator_text, parse_direction, parse_operator,
};
use super::{Arguments, InvalidArguments, MAX_TEXT, coerce};
use crate::models::is_sensitive;
use crate::query::{
    Cast, Condition, Direction, Fallback, MAX_SCALE, Operand, Order, OrderKey, Tags, Tv, TvFilter,
};

/// How many template variables one call may name.
const MAX_TVS: usize = 100;

/// Parses the variables to return. Each name is listed once; it has its default as the
/// fallback if any of its mentions asks for that.
pub(super) fn parse_with_tvs(arguments: &Arguments<'_>) -> Result<Vec<Tv>, InvalidArguments> {
    let mut tvs: Vec<Tv> = Vec::new();
    for entry in member_values(arguments.get("with_tvs")).filter_map(Value::as_str) {
        let entry = entry.trim_matches(coerce::BLANKS);
        if entry.is_empty() {
            continue;
        }
        let (name, fallback) = match entry.strip_suffix(":d") {
            Some(name) => (name, Fallback::Default),
            None => (entry, Fallback::Null),
        };
        if !is_tv_name(name) {
            return Err(InvalidArguments(format!("Invalid with_tvs entry [{}].", shorten(entry))));
        }
        match tvs.iter_mut().find(|tv| tv.name == name) {
            Some(tv) if fallback == Fallback::Default => tv.fallback = fallback,
            Some(_) => {}
            None => tvs.push(Tv { name: name.to_owned(), fallback }),
        }
    }
    if tvs.len() > MAX_TVS {
        return Err(InvalidArguments(format!(
            "with_tvs must not name more than {MAX_TVS} variables."
        )));
    }
    Ok(tvs)
}

pub(super) fn parse_tv_filter(filter: &Value) -> Result<TvFilter, InvalidArguments> {
    let tv = parse_tv(filter)?;
    let op = operator_text(filter);
    let operator = parse_operator(op)
        .ok_or_else(|| InvalidArguments(format!("Invalid tv operator [{}].", shorten(op))))?;
    let cast = parse_cast(filter)?;
    let condition = match operator {
        Operator::Null => Condition::Null,
        Operator::NotNull => Condition::NotNull,
        Operator::In => Condition::In(parse_list(op, &filter["value"])?),
        Operator::NotIn => Condition::NotIn(parse_list(op, &filter["value"])?),
        Operator::Like(position) => {
            if cast.is_some() {
                let message = "Numeric casts are allowed only for comparison operators.";
                return Err(InvalidArguments(message.to_owned()));
            }
            Condition::Like { position, text: parse_scalar(op, &filter["value"])? }
        }
        Operator::Compare(comparison) => {
            let text = parse_scalar(op, &filter["value"])?;
            let operand = match &cast {
                Some((name, _)) => parse_number(name, &text)?,
                None => Operand::Text(text),
            };
            Condition::Compare { op: comparison, operand, cast: cast.map(|(_, cast)| cast) }
        }
    };
    Ok(TvFilter { tv, condition })
}

pub(super) fn parse_tv_order(term: &Value) -> Result<Order, InvalidArguments> {
    let tv = parse_tv(term)?;
    let direction = match term["dir"].as_str().map(|dir| dir.trim_matches(coerce::BLANKS)) {
        None => Direction::Ascending,
        Some(dir) => parse_direction(dir).ok_or_else(|| {
            InvalidArguments(format!("Invalid tv sort direction [{}].", shorten(dir)))
        })?,
    };
    let cast = match parse_cast(term)? {
        Some((_, Cast::Decimal { .. })) => {
            let message = "DECIMAL cast is not supported for tv_order; use SIGNED or UNSIGNED.";
            return Err(InvalidArguments(message.to_owned()));
        }
        Some((_, cast)) => Some(cast),
        None => None,
    };
    Ok(Order { by: OrderKey::Tv { tv, cast }, direction })
}

/// Parses the variable that a filter or a sort term names.
fn parse_tv(term: &Value) -> Result<Tv, InvalidArguments> {
    let name = term["tv"].as_str().unwrap_or_default().trim_matches(coerce::BLANKS);
    if !is_tv_name(name) {
        return Err(InvalidArguments(format!("Invalid tv name [{}].", shorten(name))));
    }
    let default = term.get("use_default").and_then(coerce::flag).unwrap_or(false);
    let fallback = if default { Fallback::Default } else { Fallback::Null };
    Ok(Tv { name: name.to_owned(), fallback })
}

pub(super) fn parse_tags(arguments: &Arguments<'_>) -> Result<Option<Tags>, InvalidArguments> {
    let Some(data) =
        arguments.get("tags_data").filter(|data| coerce::count_members(data) != Some(0))
    else {
        return Ok(None);
    };
    let mut names = Vec::new();
    for tag in member_values(data.get("tags")) {
        let tag = tag.as_str().unwrap_or_default().trim_matches(coerce::BLANKS);
        if tag.is_empty() || tag.contains([':', ';', '\0']) || tag.len() > MAX_TEXT {
            return Err(InvalidArguments(format!("Invalid tag value [{}].", shorten(tag))));
        }
        names.push(tag.to_owned());
    }
    check_list_length("tags_data.tags", names.len())?;
    let tv_id = data.get("tv_id").and_then(coerce::integer).unwrap_or_default();
    Ok(Some(Tags { tv_id, names }))
}

/// Parses the cast of a filter or a sort term; returns its name in capitals too.
fn parse_cast(term: &Value) -> Result<Option<(String, Cast)>, InvalidArguments> {
    let text = term["cast"].as_str().unwrap_or_default().trim_matches(coerce::BLANKS);
    if text.is_empty() {
        return Ok(None);
    }
    let name = text.to_uppercase();
    let cast = match name.as_str() {
        "UNSIGNED" | "SIGNED" => Some(Cast::Integer),
        _ => parse_decimal(&name),
    };
    match cast {
        Some(cast) => Ok(Some((name, cast))),
        None => Err(InvalidArguments(format!("Invalid tv cast [{}].", shorten(&name)))),
    }
}

/// Parses `DECIMAL(p,s)` with one or two digits each.
fn parse_decimal(name: &str) -> Option<Cast> {
    let (precision, scale) = name.strip_prefix("DECIMAL(")?.strip_suffix(')')?.split_once(',')?;
    let digits =
        |text: &str| (1..=2).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(precision) || !digits(scale) {
        return None;
    }
    let scale: u8 = scale.parse().ok()?;
    Some(Cast::Decimal { scale: scale.min(MAX_SCALE) })
}

/// Parses the values of `in`: a list, or text with commas.
fn parse_list(op: &str, value: &Value) -> Result<Vec<Operand>, InvalidArguments> {
    let bad = || InvalidArguments(format!("Invalid value for operator [{op}]."));
    let texts: Vec<String> = match coerce::count_members(value) {
        Some(_) => member_values(Some(value))
            .map(|item| coerce::text(item).ok_or_else(bad))
            .collect::<Result<_, _>>()?,
        None => {
            let text = coerce::text(value).ok_or_else(bad)?;
            text.split(',').map(str::to_owned).collect()
        }
    };
    if texts.is_empty() {
        return Err(InvalidArguments(format!("Operator [{op}] requires at least one value.")));
    }
    check_list_length("value", texts.len())?;
    let operand = |text: String| {
        let text = text.trim_matches(coerce::BLANKS);
        let odd = text.is_empty() || text.contains([':', ';', '\0']) || text.len() > MAX_TEXT;
        if odd { Err(bad()) } else { Ok(Operand::Text(text.to_owned())) }
    };
    texts.into_iter().map(operand).collect()
}

/// Parses the value of a comparison. Separators of the CMS's own filter language are
/// refused, as the contract's test suite expects.
fn parse_scalar(op: &str, value: &Value) -> Result<String, InvalidArguments> {
    let text = coerce::text(value).unwrap_or_default();
    let text = text.trim_matches(coerce::BLANKS);
    if text.is_empty() {
        return Err(InvalidArguments(format!("Operator [{op}] requires a value.")));
    }
    if text.contains([':', ';', '\0']) || text.len() > MAX_TEXT {
        return Err(InvalidArguments(format!("Invalid value [{}].", shorten(text))));
    }
    Ok(text.to_owned())
}

/// Parses a number for a cast: digits with an optional minus and an optional fraction.
fn parse_number(cast: &str, text: &str) -> Result<Operand, InvalidArguments> {
    let bare = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = match bare.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (bare, None),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !fraction.is_none_or(digits) {
        return Err(InvalidArguments(format!("Cast [{cast}] requires a numeric value.")));
    }
    if let Ok(integer) = text.parse() {
        return Ok(Operand::Integer(integer));
    }
    let real: f64 = text.parse().unwrap_or(f64::INFINITY);
    if real.is_finite() {
        return Ok(Operand::Decimal(text.to_owned()));
    }
    Err(InvalidArguments(format!("Cast [{cast}] requires a numeric value.")))
}

/// Returns whether the contract allows this name of a variable. A variable with the
/// name of a sensitive field is as sensitive as that field.
fn is_tv_name(name: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    !name.is_empty() && name.len() <= 255 && name.bytes().all(legal) && !is_sensitive(name)
}

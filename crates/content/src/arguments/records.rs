//! Parses the arguments of the `evo.model.*` tools into queries.

use serde_json::Value;

use super::coerce::shown;
use super::terms::{Operator, members, operator, order_dir, too_many, written_operator};
use super::{ArgumentType, Arguments, InvalidArguments, MAX_TEXT, Presence, Rule, coerce};
use crate::config::Limits;
use crate::models::{self, Model};
use crate::query::{Condition, Direction, FieldFilter, Operand, Page, RecordQuery};

const MODEL: Rule = Rule { path: "model", need: Presence::Required, shape: ArgumentType::Text };

const LIST: &[Rule] = &[
    MODEL,
    Rule { path: "filters", need: Presence::Optional, shape: ArgumentType::List },
    Rule { path: "filters.where", need: Presence::Optional, shape: ArgumentType::List },
    Rule {
        path: "filters.where.*.field",
        need: Presence::With("filters.where"),
        shape: ArgumentType::Text,
    },
    Rule {
        path: "filters.where.*.op",
        need: Presence::With("filters.where"),
        shape: ArgumentType::Text,
    },
    Rule { path: "order_by", need: Presence::Optional, shape: ArgumentType::Text },
    Rule { path: "order_dir", need: Presence::Optional, shape: ArgumentType::Text },
    Rule { path: "limit", need: Presence::Required, shape: ArgumentType::Integer { least: 1 } },
    Rule { path: "offset", need: Presence::Optional, shape: ArgumentType::Integer { least: 0 } },
];

const GET: &[Rule] = &[
    MODEL,
    Rule { path: "id", need: Presence::Required, shape: ArgumentType::Integer { least: 1 } },
];

/// More conditions than this in one call are refused.
const MAX_FILTERS: usize = 100;

pub(crate) fn list(arguments: &Value, limits: &Limits) -> Result<RecordQuery, InvalidArguments> {
    let arguments = Arguments::read(arguments, LIST)?;
    let page = arguments.page(limits.max_result_items, limits.model_offset)?;
    let model = model(&arguments)?;
    let conditions = arguments.get("filters").and_then(|filters| filters.get("where"));
    let filters: Vec<FieldFilter> =
        members(conditions).map(|term| filter(model, term)).collect::<Result<_, _>>()?;
    if filters.len() > MAX_FILTERS {
        let message = format!("filters.where must not have more than {MAX_FILTERS} entries.");
        return Err(InvalidArguments(message));
    }
    let order = match arguments.text("order_by") {
        Some(name) => (field(model, name)?, order_dir(&arguments)?),
        None => ("id", Direction::Ascending),
    };
    Ok(RecordQuery { model, filters, order, page })
}

pub(crate) fn get(arguments: &Value, _: &Limits) -> Result<RecordQuery, InvalidArguments> {
    let arguments = Arguments::read(arguments, GET)?;
    let model = model(&arguments)?;
    let test = Condition::Compare {
        op: crate::query::Comparison::Equal,
        with: Operand::Integer(arguments.required("id")?),
        cast: None,
    };
    let filters = vec![FieldFilter { field: "id", test }];
    let page = Page { limit: 1, offset: 0 };
    Ok(RecordQuery { model, filters, order: ("id", Direction::Ascending), page })
}

fn model(arguments: &Arguments<'_>) -> Result<&'static Model, InvalidArguments> {
    let name = arguments.text("model").unwrap_or_default().trim_matches(coerce::BLANKS);
    models::find(name)
        .ok_or_else(|| InvalidArguments(format!("Model [{}] is not allowlisted.", shown(name))))
}

/// A column as the model's fixed list spells it.
fn field(model: &Model, name: &str) -> Result<&'static str, InvalidArguments> {
    let name = name.trim_matches(coerce::BLANKS);
    let mut bytes = name.bytes();
    let identifier = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if !identifier {
        return Err(InvalidArguments(format!("Invalid field [{}].", shown(name))));
    }
    model.field(name).ok_or_else(|| {
        let name = shown(name);
        InvalidArguments(format!("Field [{name}] is not allowlisted for model [{}].", model.name))
    })
}

fn filter(model: &Model, term: &Value) -> Result<FieldFilter, InvalidArguments> {
    let field = field(model, term["field"].as_str().unwrap_or_default())?;
    let op = written_operator(term);
    let operator = operator(op)
        .ok_or_else(|| InvalidArguments(format!("Unsupported operator [{}].", shown(op))))?;
    let value = &term["value"];
    let test = match operator {
        Operator::Null => Condition::Null,
        Operator::NotNull => Condition::NotNull,
        Operator::In => Condition::In(list_of(op, value)?),
        Operator::NotIn => Condition::NotIn(list_of(op, value)?),
        Operator::Like(place) => {
            let text = scalar(op, value)?;
            if text.is_empty() {
                return Err(InvalidArguments(format!("Operator [{op}] requires non-empty value.")));
            }
            Condition::Like { place, text }
        }
        Operator::Compare(comparison) => {
            let with = Operand::Text(scalar(op, value)?);
            Condition::Compare { op: comparison, with, cast: None }
        }
    };
    Ok(FieldFilter { field, test })
}

fn scalar(op: &str, value: &Value) -> Result<String, InvalidArguments> {
    let text = plain(value)
        .ok_or_else(|| InvalidArguments(format!("Operator [{op}] requires scalar value.")))?;
    usable(op, text)
}

/// A scalar as text; here, unlike in template variables, `false` is zero.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::Bool(false) => Some("0".to_owned()),
        Value::Null
        | Value::Bool(true)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => coerce::text(value),
    }
}

fn usable(op: &str, text: String) -> Result<String, InvalidArguments> {
    if text.contains('\0') || text.len() > MAX_TEXT {
        return Err(InvalidArguments(format!(
            "Operator [{op}] takes at most {MAX_TEXT} bytes of text without NUL."
        )));
    }
    Ok(text)
}

/// The values of `in`: a list, or text with commas; blanks are dropped.
fn list_of(op: &str, value: &Value) -> Result<Vec<Operand>, InvalidArguments> {
    let texts: Vec<String> = match coerce::members(value) {
        Some(_) => {
            // In a list nothing and `false` are blanks, unlike alone.
            let scalar = |item: &Value| {
                let text = if item.is_null() { Some(String::new()) } else { coerce::text(item) };
                text.ok_or_else(|| {
                    InvalidArguments(format!("Operator [{op}] expects scalar values."))
                })
            };
            members(Some(value)).map(scalar).collect::<Result<_, _>>()?
        }
        None => {
            let text = plain(value).unwrap_or_default();
            text.split(',').map(str::to_owned).collect()
        }
    };
    too_many("value", texts.len())?;
    let mut operands = Vec::new();
    for text in texts {
        let text = text.trim_matches(coerce::BLANKS);
        if !text.is_empty() {
            operands.push(Operand::Text(usable(op, text.to_owned())?));
        }
    }
    if operands.is_empty() {
        return Err(InvalidArguments(format!("Operator [{op}] requires at least one value.")));
    }
    Ok(operands)
}

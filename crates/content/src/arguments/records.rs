//! Parses the arguments of the `evo.model.*` tools into record queries.

use serde_json::Value;

use super::coerce::shorten;
use super::terms::{
    Operator, check_list_length, member_values, operator_text, order_dir, parse_operator,
};
use super::{ArgumentType, Arguments, InvalidArguments, MAX_TEXT, Presence, Rule, coerce};
use crate::config::Limits;
use crate::models::{self, Model};
use crate::query::{Condition, Direction, FieldFilter, Operand, Page, RecordQuery};

const MODEL: Rule =
    Rule { path: "model", presence: Presence::Required, argument_type: ArgumentType::Text };

const LIST: &[Rule] = &[
    MODEL,
    Rule { path: "filters", presence: Presence::Optional, argument_type: ArgumentType::List },
    Rule { path: "filters.where", presence: Presence::Optional, argument_type: ArgumentType::List },
    Rule {
        path: "filters.where.*.field",
        presence: Presence::With("filters.where"),
        argument_type: ArgumentType::Text,
    },
    Rule {
        path: "filters.where.*.op",
        presence: Presence::With("filters.where"),
        argument_type: ArgumentType::Text,
    },
    Rule { path: "order_by", presence: Presence::Optional, argument_type: ArgumentType::Text },
    Rule { path: "order_dir", presence: Presence::Optional, argument_type: ArgumentType::Text },
    Rule {
        path: "limit",
        presence: Presence::Required,
        argument_type: ArgumentType::Integer { min: 1 },
    },
    Rule {
        path: "offset",
        presence: Presence::Optional,
        argument_type: ArgumentType::Integer { min: 0 },
    },
];

const GET: &[Rule] = &[
    MODEL,
    Rule {
        path: "id",
        presence: Presence::Required,
        argument_type: ArgumentType::Integer { min: 1 },
    },
];

/// How many filters one call may have.
const MAX_FILTERS: usize = 100;

pub(crate) fn list(arguments: &Value, limits: &Limits) -> Result<RecordQuery, InvalidArguments> {
    let arguments = Arguments::parse(arguments, LIST)?;
    let page = arguments.page(limits.max_result_items, limits.model_offset)?;
    let model = parse_model(&arguments)?;
    let conditions = arguments.get("filters").and_then(|filters| filters.get("where"));
    let filters: Vec<FieldFilter> = member_values(conditions)
        .map(|term| parse_filter(model, term))
        .collect::<Result<_, _>>()?;
    if filters.len() > MAX_FILTERS {
        let message = format!("filters.where must not have more than {MAX_FILTERS} entries.");
        return Err(InvalidArguments(message));
    }
    let order = match arguments.text("order_by") {
        Some(name) => (parse_field(model, name)?, order_dir(&arguments)?),
        None => ("id", Direction::Ascending),
    };
    Ok(RecordQuery { model, filters, order, page })
}

pub(crate) fn get(arguments: &Value, _: &Limits) -> Result<RecordQuery, InvalidArguments> {
    let arguments = Arguments::parse(arguments, GET)?;
    let model = parse_model(&arguments)?;
    let condition = Condition::Compare {
        op: crate::query::Comparison::Equal,
        operand: Operand::Integer(arguments.required_integer("id")?),
        cast: None,
    };
    let filters = vec![FieldFilter { field: "id", condition }];
    let page = Page { limit: 1, offset: 0 };
    Ok(RecordQuery { model, filters, order: ("id", Direction::Ascending), page })
}

fn parse_model(arguments: &Arguments<'_>) -> Result<&'static Model, InvalidArguments> {
    let name = arguments.text("model").unwrap_or_default().trim_matches(coerce::BLANKS);
    models::find(name)
        .ok_or_else(|| InvalidArguments(format!("Model [{}] is not allowlisted.", shorten(name))))
}

/// Finds a field in the model's fixed list of fields.
fn parse_field(model: &Model, name: &str) -> Result<&'static str, InvalidArguments> {
    let name = name.trim_matches(coerce::BLANKS);
    let mut bytes = name.bytes();
    let identifier = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if !identifier {
        return Err(InvalidArguments(format!("Invalid field [{}].", shorten(name))));
    }
    model.field(name).ok_or_else(|| {
        let name = shorten(name);
        InvalidArguments(format!("Field [{name}] is not allowlisted for model [{}].", model.name))
    })
}

fn parse_filter(model: &Model, term: &Value) -> Result<FieldFilter, InvalidArguments> {
    let field = parse_field(model, term["field"].as_str().unwrap_or_default())?;
    let op = operator_text(term);
    let operator = parse_operator(op)
        .ok_or_else(|| InvalidArguments(format!("Unsupported operator [{}].", shorten(op))))?;
    let value = &term["value"];
    let condition = match operator {
        Operator::Null => Condition::Null,
        Operator::NotNull => Condition::NotNull,
        Operator::In => Condition::In(parse_list(op, value)?),
        Operator::NotIn => Condition::NotIn(parse_list(op, value)?),
        Operator::Like(position) => {
            let text = parse_scalar(op, value)?;
            if text.is_empty() {
                return Err(InvalidArguments(format!("Operator [{op}] requires non-empty value.")));
            }
            Condition::Like { position, text }
        }
        Operator::Compare(comparison) => {
            let operand = Operand::Text(parse_scalar(op, value)?);
            Condition::Compare { op: comparison, operand, cast: None }
        }
    };
    Ok(FieldFilter { field, condition })
}

fn parse_scalar(op: &str, value: &Value) -> Result<String, InvalidArguments> {
    let text = scalar_text(value)
        .ok_or_else(|| InvalidArguments(format!("Operator [{op}] requires scalar value.")))?;
    check_text(op, text)
}

/// Converts a scalar to text; here, unlike for template variables, `false` is `0`.
fn scalar_text(value: &Value) -> Option<String> {
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

/// Checks that a text can be bound to a statement.
fn check_text(op: &str, text: String) -> Result<String, InvalidArguments> {
    if text.contains('\0') || text.len() > MAX_TEXT {
        return Err(InvalidArguments(format!(
            "Operator [{op}] takes at most {MAX_TEXT} bytes of text without NUL."
        )));
    }
    Ok(text)
}

/// Parses the values of `in`: a list, or text with commas; blanks are dropped.
fn parse_list(op: &str, value: &Value) -> Result<Vec<Operand>, InvalidArguments> {
    let texts: Vec<String> = match coerce::count_members(value) {
        Some(_) => {
            // In a list, null and `false` count as blanks.
            let scalar = |item: &Value| {
                let text = if item.is_null() { Some(String::new()) } else { coerce::text(item) };
                text.ok_or_else(|| {
                    InvalidArguments(format!("Operator [{op}] expects scalar values."))
                })
            };
            member_values(Some(value)).map(scalar).collect::<Result<_, _>>()?
        }
        None => {
            let text = scalar_text(value).unwrap_or_default();
            text.split(',').map(str::to_owned).collect()
        }
    };
    check_list_length("value", texts.len())?;
    let mut operands = Vec::new();
    for text in texts {
        let text = text.trim_matches(coerce::BLANKS);
        if !text.is_empty() {
            operands.push(Operand::Text(check_text(op, text.to_owned())?));
        }
    }
    if operands.is_empty() {
        return Err(InvalidArguments(format!("Operator [{op}] requires at least one value.")));
    }
    Ok(operands)
}

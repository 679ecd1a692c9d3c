//! The jq program that a caller means.

use serde_json::Value;
use tool::Json;

/// What `pick` takes, for whoever wrote something else.
const EXPECTED: &str = "must be a jq program such as \".items[] | {id, name}\", a list of fields, or \
     an object with `fields`, `limit` or `count`";

/// What `fields` takes.
const NAMES: &str = "`fields` must be 1 to 100 names such as \"id\", \"owner.login\"";

/// How many fields are picked at most.
const MAX_FIELDS: usize = 100;

/// The rows of the data: an array itself, or the only array in an object, unless
/// the object itself has one of the fields.
fn rows(fields: &[Value]) -> String {
    let first = |field: &Value| {
        let name = field.as_str()?.split('.').next()?;
        Some(format!("has({})", quoted(name)))
    };
    let own: Vec<String> =
        ["false".to_owned()].into_iter().chain(fields.iter().filter_map(first)).collect();
    format!(
        "(if type != \"object\" then . elif {} then . else [.[] | select(type == \"array\")] \
         as $lists | if ($lists | length) == 1 then $lists[0] else . end end)",
        own.join(" or ")
    )
}

pub(super) fn of(value: &Json) -> Result<String, String> {
    match value.to_value().map_err(|_| EXPECTED.to_owned())? {
        Value::String(program) if !program.trim().is_empty() => Ok(program),
        Value::Array(fields) => Ok(format!("{} | {}", rows(&fields), projection(&fields)?)),
        Value::Object(members) => from_members(&members),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {
            Err(EXPECTED.to_owned())
        }
    }
}

fn from_members(members: &serde_json::Map<String, Value>) -> Result<String, String> {
    let known = ["fields", "limit", "count"];
    if members.is_empty() || members.keys().any(|key| !known.contains(&key.as_str())) {
        return Err(EXPECTED.to_owned());
    }
    let fields = members.get("fields").map(|fields| fields.as_array().ok_or(NAMES)).transpose()?;
    let mut steps = vec![rows(fields.map_or(&[], Vec::as_slice))];
    if let Some(limit) = members.get("limit") {
        let limit = limit.as_u64().ok_or("`limit` must be a whole number")?;
        steps.push(format!("if type == \"array\" then .[:{limit}] else . end"));
    }
    if let Some(fields) = fields {
        steps.push(projection(fields)?);
    }
    match members.get("count") {
        None | Some(Value::Bool(false)) => {}
        Some(Value::Bool(true)) => steps.push("length".to_owned()),
        Some(_) => return Err("`count` must be true or false".to_owned()),
    }
    Ok(steps.join(" | "))
}

/// Only these fields of an object, or of every object in an array.
fn projection(fields: &[Value]) -> Result<String, String> {
    let wrong = || NAMES.to_owned();
    if fields.is_empty() || MAX_FIELDS < fields.len() {
        return Err(wrong());
    }
    let member = |field: &Value| {
        let name = field.as_str().filter(|name| !name.is_empty()).ok_or_else(wrong)?;
        let path: String = name.split('.').map(|key| format!("[{}]", quoted(key))).collect();
        // What has no such field still is a row.
        Ok(format!("{}: (try .{path} catch null)", quoted(name)))
    };
    let members: Result<Vec<String>, String> = fields.iter().map(member).collect();
    let object = format!("{{{}}}", members?.join(", "));
    Ok(format!("if type == \"array\" then map({object}) else {object} end"))
}

/// A text as jq writes it: as JSON does, which leaves no single backslash before
/// a parenthesis, so that nothing in it is run.
fn quoted(text: &str) -> String {
    Json::encode(text).to_string()
}

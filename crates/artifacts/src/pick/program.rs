//! Turns what a caller wrote as `pick` into a jq program.

use serde_json::Value;
use tool::Json;

/// The error for a `pick` that is malformed.
const EXPECTED: &str = "must be a jq program such as \".items[] | {id, name}\", a list of fields, or \
     an object with `fields`, `limit` or `count`";

/// The error for `fields` that are malformed.
const EXPECTED_FIELDS: &str = "`fields` must be 1 to 100 names such as \"id\", \"owner.login\"";

/// The largest number of fields.
const MAX_FIELDS: usize = 100;

/// The longest pick, in bytes: it is compiled before the call is made.
const MAX_BYTES: usize = 64 << 10;

/// Returns jq for the rows of the data: the data if it is an array, or the only
/// array in an object, unless the object itself has one of the fields.
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

/// Returns the jq program, or an error that says what `pick` must be.
pub(super) fn parse(value: &Json) -> Result<String, String> {
    if MAX_BYTES < value.as_bytes().len() {
        return Err(format!("must be shorter than {MAX_BYTES} bytes"));
    }
    match value.to_value().map_err(|_| EXPECTED.to_owned())? {
        Value::String(program) if !program.trim().is_empty() => Ok(program),
        Value::Array(fields) => {
            let projection = projection(&fields)?;
            Ok(format!("{} | {projection}", rows(&fields)))
        }
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
    let fields =
        members.get("fields").map(|fields| fields.as_array().ok_or(EXPECTED_FIELDS)).transpose()?;
    let projection = fields.map(|fields| projection(fields)).transpose()?;
    let mut steps = vec![rows(fields.map_or(&[], Vec::as_slice))];
    if let Some(limit) = members.get("limit") {
        let limit = limit.as_u64().ok_or("`limit` must be a whole number")?;
        steps.push(format!("if type == \"array\" then .[:{limit}] else . end"));
    }
    steps.extend(projection);
    match members.get("count") {
        None | Some(Value::Bool(false)) => {}
        Some(Value::Bool(true)) => steps.push("length".to_owned()),
        Some(_) => return Err("`count` must be true or false".to_owned()),
    }
    Ok(steps.join(" | "))
}

/// Returns jq for these fields of an object, or of every object in an array.
fn projection(fields: &[Value]) -> Result<String, String> {
    let wrong = || EXPECTED_FIELDS.to_owned();
    if fields.is_empty() || MAX_FIELDS < fields.len() {
        return Err(wrong());
    }
    let member = |field: &Value| {
        let name = field.as_str().filter(|name| !name.is_empty()).ok_or_else(wrong)?;
        let path: String = name.split('.').map(|key| format!("[{}]", quoted(key))).collect();
        // A row without such a field still is a row.
        Ok(format!("{}: (try .{path} catch null)", quoted(name)))
    };
    let members: Result<Vec<String>, String> = fields.iter().map(member).collect();
    let object = format!("{{{}}}", members?.join(", "));
    Ok(format!("if type == \"array\" then map({object}) else {object} end"))
}

/// Quotes a text as a jq string. JSON escapes every backslash, so no `\(` is left
/// that jq would run.
fn quoted(text: &str) -> String {
    Json::encode(text).to_string()
}

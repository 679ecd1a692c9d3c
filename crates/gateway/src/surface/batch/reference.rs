//! References in the arguments of a call to the result of an earlier call of the batch:
//! `{"$ref": "0.items[0].id"}`.

use std::collections::BTreeMap;

use artifacts::Owner;
use artifacts::view::{self, Budget, Outputs};
use catalog::summary::echo;
use serde_json::Value;
use tool::{Json, Reply};

use super::answer::{self, AnsweredCall};
use super::make_call::MakeCall;

/// The only member of an object that is a reference.
const REF: &str = "$ref";

/// The most characters of all values together that references put into a call. A short
/// reference may be repeated and lead to a long value.
const MAX_CHARS: usize = 1 << 20;

/// The most different references of one call.
const MAX_REFERENCES: usize = 100;

/// Returns whether a call refers to an earlier one.
pub(super) fn has_any(call: &Json) -> bool {
    call.mentions("\"$ref\"") && call.to_value().is_ok_and(|value| contains_reference(&value))
}

fn contains_reference(value: &Value) -> bool {
    reference(value).is_some()
        || match value {
            Value::Array(items) => items.iter().any(contains_reference),
            Value::Object(members) => members.values().any(contains_reference),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        }
}

/// Returns the text of a reference, if the value is one.
fn reference(value: &Value) -> Option<&str> {
    let members = value.as_object().filter(|members| members.len() == 1)?;
    members.get(REF)?.as_str()
}

/// Replaces every reference in a call by the value that it leads to.
pub(super) async fn resolve(
    call: &Json,
    earlier: &[AnsweredCall],
    call_maker: &dyn MakeCall,
) -> Result<Json, String> {
    let mut value = call.to_value().map_err(|error| error.to_string())?;
    let mut wanted = BTreeMap::new();
    count_references(&value, &mut wanted);
    if MAX_REFERENCES < wanted.len() {
        return Err(format!(
            "it refers to {} values, and {MAX_REFERENCES} are allowed",
            wanted.len()
        ));
    }
    let mut found = BTreeMap::new();
    let mut room = MAX_CHARS;
    for (text, n_times) in wanted {
        let (target, n_chars) = lookup(&text, earlier, call_maker).await?;
        let left = n_chars.checked_mul(n_times).and_then(|more| room.checked_sub(more));
        room = left.ok_or_else(|| {
            format!("the values that it refers to have over {MAX_CHARS} characters together")
        })?;
        found.insert(text, target);
    }
    replace(&mut value, &found);
    Ok(value.into())
}

/// Counts the references, by their text.
fn count_references(value: &Value, into: &mut BTreeMap<String, usize>) {
    match (reference(value), value) {
        (Some(text), _) => *into.entry(text.to_owned()).or_default() += 1,
        (None, Value::Array(items)) => items.iter().for_each(|item| count_references(item, into)),
        (None, Value::Object(members)) => {
            members.values().for_each(|item| count_references(item, into))
        }
        (None, Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {}
    }
}

fn replace(value: &mut Value, found: &BTreeMap<String, Value>) {
    if let Some(text) = reference(value) {
        if let Some(target) = found.get(text) {
            *value = target.clone();
        }
        return;
    }
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, found)),
        Value::Object(members) => members.values_mut().for_each(|item| replace(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the value that a reference leads to, and its length in characters.
async fn lookup(
    text: &str,
    earlier: &[AnsweredCall],
    call_maker: &dyn MakeCall,
) -> Result<(Value, usize), String> {
    let shown = format!("`{{\"$ref\": \"{}\"}}`", echo(text));
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, path) = text.split_at(digits);
    let at: usize = number.parse().map_err(|_| {
        format!("{shown} must begin with the number of an earlier call, such as \"0.items[0].id\"")
    })?;
    let answered =
        earlier.get(at).ok_or_else(|| format!("{shown} does not lead to an earlier call"))?;
    if answered.is_error() {
        return Err(format!("call {at}, to which it refers, failed"));
    }
    let data = match answered.oversized() {
        Some(oversized) => {
            let owner = Owner::from_context(call_maker.context());
            let artifact = call_maker.artifacts().get(&owner, &oversized.handle).await;
            let artifact = artifact.map_err(|away| format!("{shown}: {away}"))?;
            artifact.and_then(|kept| answer::result_data(&Reply::Result(kept.result.clone())))
        }
        None => answer::result_data(&answered.reply),
    };
    let data = data.ok_or_else(|| format!("call {at} has no data for {shown}"))?;
    let filter = if path.starts_with('.') { path.to_owned() } else { format!(".{path}") };
    let work = move |stop: &offload::StopFlag| {
        let budget = Budget { chars: MAX_CHARS, ..Budget::default() };
        let outputs = view::jq(data.as_bytes(), "application/json", &filter, &budget, stop);
        outputs.map(|outputs| (outputs, artifacts::shape::Shape::of_text(&data)))
    };
    let (outputs, shape) = offload::run(work)
        .await
        .map_err(|slow| format!("{shown}: {slow}"))?
        .map_err(|why| format!("{shown}: {why}"))?;
    let Outputs { text, results_shown, at_least } = outputs;
    let value = serde_json::from_str(&text).ok();
    match value.filter(|_| results_shown == 1 && at_least.is_none()) {
        None => Err(format!("{shown} must lead to one value of at most {MAX_CHARS} characters")),
        Some(Value::Null) => {
            let shape = catalog::summary::cut(&shape.describe(), 300);
            Err(format!("{shown} leads to nothing: the data of call {at} is {shape}"))
        }
        Some(value) => Ok((value, text.len())),
    }
}

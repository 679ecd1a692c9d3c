//! Values that a call takes from the result of an earlier one:
//! `{"$ref": "0.items[0].id"}`.

use std::collections::BTreeMap;

use artifacts::Owner;
use artifacts::view::{self, Budget, Outputs};
use catalog::summary::echo;
use serde_json::Value;
use tool::{Json, Reply};

use super::answer::{self, Answered};
use super::make_call::MakeCall;

/// The only member of an object that refers to something.
const REF: &str = "$ref";

/// How long a value may be that is put into a call, in characters, and all of them
/// together: a few bytes refer to a long one, as often as they are written.
const LONGEST: usize = 1 << 20;

/// How many values a call may refer to.
const MOST: usize = 100;

/// Whether a call refers to an earlier one.
pub(super) fn has_any(call: &Json) -> bool {
    call.mentions("\"$ref\"") && call.to_value().is_ok_and(|value| refers(&value))
}

fn refers(value: &Value) -> bool {
    reference(value).is_some()
        || match value {
            Value::Array(items) => items.iter().any(refers),
            Value::Object(members) => members.values().any(refers),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        }
}

fn reference(value: &Value) -> Option<&str> {
    let members = value.as_object().filter(|members| members.len() == 1)?;
    members.get(REF)?.as_str()
}

/// The call with every reference replaced by what it leads to.
pub(super) async fn resolved(
    call: &Json,
    earlier: &[Answered],
    by: &dyn MakeCall,
) -> Result<Json, String> {
    let mut value = call.to_value().map_err(|error| error.to_string())?;
    let mut wanted = BTreeMap::new();
    collect(&value, &mut wanted);
    if MOST < wanted.len() {
        return Err(format!("it refers to {} values, and {MOST} are allowed", wanted.len()));
    }
    let mut found = BTreeMap::new();
    let mut room = LONGEST;
    for (text, n_times) in wanted {
        let (led_to, n_chars) = lookup(&text, earlier, by).await?;
        let left = n_chars.checked_mul(n_times).and_then(|more| room.checked_sub(more));
        room = left.ok_or_else(|| {
            format!("the values that it refers to have over {LONGEST} characters together")
        })?;
        found.insert(text, led_to);
    }
    replace(&mut value, &found);
    Ok(value.into())
}

/// Counts how often each reference is written.
fn collect(value: &Value, into: &mut BTreeMap<String, usize>) {
    match (reference(value), value) {
        (Some(text), _) => *into.entry(text.to_owned()).or_default() += 1,
        (None, Value::Array(items)) => items.iter().for_each(|item| collect(item, into)),
        (None, Value::Object(members)) => members.values().for_each(|item| collect(item, into)),
        (None, Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {}
    }
}

fn replace(value: &mut Value, found: &BTreeMap<String, Value>) {
    if let Some(text) = reference(value) {
        if let Some(led_to) = found.get(text) {
            *value = led_to.clone();
        }
        return;
    }
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, found)),
        Value::Object(members) => members.values_mut().for_each(|item| replace(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// What a reference leads to, and how long that is.
async fn lookup(
    text: &str,
    earlier: &[Answered],
    by: &dyn MakeCall,
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
    let data = match answered.over() {
        Some(over) => {
            let owner = Owner::from_context(by.context());
            let artifact = by.artifacts().get(&owner, &over.handle).await;
            let artifact = artifact.map_err(|away| format!("{shown}: {away}"))?;
            artifact.and_then(|kept| answer::data_of(&Reply::Result(kept.result.clone())))
        }
        None => answer::data_of(&answered.reply),
    };
    let data = data.ok_or_else(|| format!("call {at} has no data for {shown}"))?;
    let filter = if path.starts_with('.') { path.to_owned() } else { format!(".{path}") };
    let work = move |stop: &offload::Stop| {
        let budget = Budget { chars: LONGEST, ..Budget::default() };
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
        None => Err(format!("{shown} must lead to one value of at most {LONGEST} characters")),
        Some(Value::Null) => {
            let shape = catalog::summary::cut(&shape.describe(), 300);
            Err(format!("{shown} leads to nothing: the data of call {at} is {shape}"))
        }
        Some(value) => Ok((value, text.len())),
    }
}

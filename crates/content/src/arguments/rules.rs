//! Checks the type of every argument, and reports all failures together.
//!
//! Plain arguments are looked at first, in the order of the rules, then the
//! members of lists. A plain name is shown with spaces for underscores; the
//! path of a list member is shown as it is.

use serde_json::Value;

use super::coerce;

/// The rule for one argument, or for the members of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    /// Names joined by dots; `*` stands for every member of a list.
    pub(crate) path: &'static str,
    pub(crate) need: Presence,
    pub(crate) shape: ArgumentType,
}

/// When an argument must be given.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Presence {
    Required,
    /// Required as soon as the other argument says something.
    With(&'static str),
    Optional,
    /// May be missing or blank, but not null.
    NotNull,
}

/// The type that an argument must have.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ArgumentType {
    Integer { least: i64 },
    Flag,
    Text,
    List,
}

/// Returns the messages of all failures, in order.
pub(crate) fn check(rules: &[Rule], arguments: &Value) -> Vec<String> {
    let (members, plain): (Vec<&Rule>, Vec<&Rule>) =
        rules.iter().partition(|rule| rule.path.contains('*'));
    let mut failures = Vec::new();
    for rule in plain {
        let value = find(arguments, rule.path);
        judge(rule, &rule.path.replace('_', " "), value, arguments, &mut failures);
    }
    for rule in members {
        for path in expand(arguments, rule.path) {
            // An object may be used as a list, and its keys are the caller's.
            let name = coerce::shown(&path);
            judge(rule, &name, find(arguments, &path), arguments, &mut failures);
            if failures.len() >= MAX_FAILURES {
                return failures;
            }
        }
    }
    failures
}

/// A caller that sends a thousand wrong members learns enough from these.
const MAX_FAILURES: usize = 50;

fn judge(
    rule: &Rule,
    name: &str,
    value: Option<&Value>,
    arguments: &Value,
    failures: &mut Vec<String>,
) {
    let says_something = value.is_some_and(is_filled);
    match rule.need {
        Presence::Required if !says_something => {
            return failures.push(format!("The {name} field is required."));
        }
        Presence::With(other) if !says_something => {
            if find(arguments, other).is_some_and(is_filled) {
                let other = other.replace('_', " ");
                failures.push(format!("The {name} field is required when {other} is present."));
            }
            return;
        }
        Presence::NotNull => match value {
            None => return,
            Some(Value::Null) => {}
            Some(value) if coerce::is_blank(value) => return,
            Some(_) => {}
        },
        Presence::Optional if value.is_none_or(coerce::is_blank) => return,
        Presence::Required | Presence::With(_) | Presence::Optional => {}
    }
    let value = value.unwrap_or(&Value::Null);
    match rule.shape {
        ArgumentType::Integer { least } => {
            if coerce::integer(value).is_none() {
                failures.push(format!("The {name} must be an integer."));
            }
            if below(value, least) {
                failures.push(format!("The {name} must be at least {least}."));
            }
        }
        ArgumentType::Flag if coerce::flag(value).is_none() => {
            failures.push(format!("The {name} field must be true or false."));
        }
        ArgumentType::Text if !value.is_string() => {
            failures.push(format!("The {name} must be a string."));
        }
        ArgumentType::List if coerce::members(value).is_none() => {
            failures.push(format!("The {name} must be an array."));
        }
        ArgumentType::Flag | ArgumentType::Text | ArgumentType::List => {}
    }
}

#[expect(clippy::cast_precision_loss, reason = "bounds are 0 or 1")]
fn below(value: &Value, least: i64) -> bool {
    coerce::size(value) < least as f64
}

/// Neither null nor blank nor an empty list.
fn is_filled(value: &Value) -> bool {
    !coerce::is_blank(value) && coerce::members(value) != Some(0)
}

/// The value at a path of names and positions.
fn find<'a>(arguments: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(arguments, |value, key| match value {
        Value::Object(members) => members.get(key),
        Value::Array(items) => items.get(key.parse::<usize>().ok()?),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    })
}

/// Every path that a pattern with one `*` stands for.
fn expand(arguments: &Value, pattern: &str) -> Vec<String> {
    let Some((before, after)) = pattern.split_once(".*") else { return Vec::new() };
    let keys: Vec<String> = match find(arguments, before) {
        Some(Value::Array(items)) => (0..items.len()).map(|at| at.to_string()).collect(),
        Some(Value::Object(members)) => {
            members.keys().filter(|key| !key.contains('.')).cloned().collect()
        }
        _ => Vec::new(),
    };
    keys.into_iter().take(1000).map(|key| format!("{before}.{key}{after}")).collect()
}

//! Checks presence and type of every argument, and reports all failures together.
//!
//! As the contract demands, rules for plain arguments come first, in their order, then
//! rules for members of lists. In messages the underscores of a plain name are
//! replaced by spaces; the path of a list member stays as it is.

use serde_json::Value;

use super::coerce;

/// The rule for one argument, or for the members of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    /// Names joined by dots; `*` stands for every member of a list.
    pub(crate) path: &'static str,
    pub(crate) presence: Presence,
    pub(crate) argument_type: ArgumentType,
}

/// When an argument must be given.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Presence {
    Required,
    /// Required if the other argument has a value.
    With(&'static str),
    Optional,
    /// May be missing or blank, but not null.
    NotNull,
}

/// The type that an argument must have.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ArgumentType {
    Integer { min: i64 },
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
        check_rule(rule, &rule.path.replace('_', " "), value, arguments, &mut failures);
    }
    for rule in members {
        for path in expand_wildcard(arguments, rule.path) {
            // An object may be used as a list, and then the caller chose its keys.
            let name = coerce::shorten(&path);
            check_rule(rule, &name, find(arguments, &path), arguments, &mut failures);
            if failures.len() >= MAX_FAILURES {
                return failures;
            }
        }
    }
    failures
}

/// After so many failures the check of list members stops.
const MAX_FAILURES: usize = 50;

/// Checks one rule; `name` is the argument's name for messages.
fn check_rule(
    rule: &Rule,
    name: &str,
    value: Option<&Value>,
    arguments: &Value,
    failures: &mut Vec<String>,
) {
    let has_value = value.is_some_and(is_filled);
    match rule.presence {
        Presence::Required if !has_value => {
            return failures.push(format!("The {name} field is required."));
        }
        Presence::With(other) if !has_value => {
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
    match rule.argument_type {
        ArgumentType::Integer { min } => {
            if coerce::integer(value).is_none() {
                failures.push(format!("The {name} must be an integer."));
            }
            if is_below(value, min) {
                failures.push(format!("The {name} must be at least {min}."));
            }
        }
        ArgumentType::Flag if coerce::flag(value).is_none() => {
            failures.push(format!("The {name} field must be true or false."));
        }
        ArgumentType::Text if !value.is_string() => {
            failures.push(format!("The {name} must be a string."));
        }
        ArgumentType::List if coerce::count_members(value).is_none() => {
            failures.push(format!("The {name} must be an array."));
        }
        ArgumentType::Flag | ArgumentType::Text | ArgumentType::List => {}
    }
}

#[expect(clippy::cast_precision_loss, reason = "bounds are 0 or 1")]
fn is_below(value: &Value, min: i64) -> bool {
    coerce::size(value) < min as f64
}

/// Returns whether a value is neither null nor blank nor an empty list.
fn is_filled(value: &Value) -> bool {
    !coerce::is_blank(value) && coerce::count_members(value) != Some(0)
}

/// Returns the value at a path of names and positions, joined by dots.
fn find<'a>(arguments: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(arguments, |value, key| match value {
        Value::Object(members) => members.get(key),
        Value::Array(items) => items.get(key.parse::<usize>().ok()?),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    })
}

/// Returns every path that a pattern with one `*` stands for.
fn expand_wildcard(arguments: &Value, pattern: &str) -> Vec<String> {
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

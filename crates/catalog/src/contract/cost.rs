//! Bounds the work that validating one value may take.
//!
//! A schema of a few lines can refer to itself, or to the same part twice at
//! every step, and so ask for more comparisons than anybody has time for. What
//! would is weighed here, before a validator sees it. Nothing here decides
//! whether a value fits.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

/// How many parts of a schema may look at one place of a value.
const AT_ONE_PLACE: u64 = 4096;
/// A schema that has no more parts than this, written out in full, is light.
const LIGHT: u64 = 1024;
/// How long a chain of parts may be; each is a level of a validator's stack.
const CHAIN: usize = 512;
/// How many looks each place of a value is worth, and how many any value is.
const LOOKS_A_PLACE: usize = 256;
const LOOKS: usize = 10_000;
/// No value is worth more.
const MOST_LOOKS: usize = 1_000_000;

/// What a schema asks of a validator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cost {
    /// Little, whatever the value.
    Light,
    /// It depends on the value: see [`fits_budget`].
    Depends,
}

/// Weighs a schema; says why when no value could be checked by it.
pub(super) fn measure(root: &Value) -> Result<Cost, String> {
    let mut scale = Scale { root, whole: HashMap::new(), here: HashMap::new() };
    let whole = scale.whole(root, &mut Vec::new())?;
    Ok(if whole <= LIGHT { Cost::Light } else { Cost::Depends })
}

/// Returns whether a value can be checked with a bounded number of looks.
pub(super) fn fits_budget(root: &Value, value: &Value) -> bool {
    let worth = LOOKS + LOOKS_A_PLACE.saturating_mul(places(value));
    look(root, root, value, &mut worth.min(MOST_LOOKS))
}

/// The parts of a schema that one part leads to.
#[derive(Default)]
struct Parts<'a> {
    /// Those that look at the same place of a value.
    here: Vec<&'a Value>,
    /// Those that look at its members or items.
    below: Vec<&'a Value>,
}

struct Scale<'a> {
    root: &'a Value,
    /// How many parts there are in all, written out in full.
    whole: HashMap<*const Value, u64>,
    /// How many of them look at the same place.
    here: HashMap<*const Value, u64>,
}

impl<'a> Scale<'a> {
    fn whole(&mut self, part: &'a Value, way: &mut Vec<*const Value>) -> Result<u64, String> {
        if let Some(known) = self.whole.get(&std::ptr::from_ref(part)) {
            return Ok(*known);
        }
        // A part that contains itself has no end.
        if way.contains(&std::ptr::from_ref(part)) {
            return Ok(u64::MAX);
        }
        if CHAIN < way.len() {
            return Err("it is nested too deep".to_owned());
        }
        self.here(part, &mut HashSet::new())?;
        let parts = parts(self.root, part)?;
        way.push(part);
        let mut sum = 1_u64;
        for next in parts.here.into_iter().chain(parts.below) {
            sum = sum.saturating_add(self.whole(next, way)?);
        }
        way.pop();
        self.whole.insert(part, sum);
        Ok(sum)
    }

    fn here(&mut self, part: &'a Value, way: &mut HashSet<*const Value>) -> Result<u64, String> {
        if let Some(known) = self.here.get(&std::ptr::from_ref(part)) {
            return Ok(*known);
        }
        if CHAIN < way.len() {
            return Err("it is nested too deep".to_owned());
        }
        if !way.insert(part) {
            return Err("it refers to itself without end".to_owned());
        }
        let mut sum = 1_u64;
        for next in parts(self.root, part)?.here {
            sum = sum.saturating_add(self.here(next, way)?);
        }
        way.remove(&std::ptr::from_ref(part));
        if AT_ONE_PLACE < sum {
            return Err("it has too many alternatives".to_owned());
        }
        self.here.insert(part, sum);
        Ok(sum)
    }
}

fn parts<'a>(root: &'a Value, part: &'a Value) -> Result<Parts<'a>, String> {
    let mut parts = Parts::default();
    let Some(members) = part.as_object() else { return Ok(parts) };
    for (key, value) in members {
        match key.as_str() {
            "$ref" | "$dynamicRef" | "$recursiveRef" => {
                parts.here.extend(value.as_str().map(|to| target(root, to)).transpose()?.flatten());
            }
            "allOf" | "anyOf" | "oneOf" => {
                parts.here.extend(value.as_array().into_iter().flatten())
            }
            "not" | "if" | "then" | "else" => parts.here.push(value),
            "dependentSchemas" | "dependencies" => parts.here.extend(each(value)),
            "properties" | "patternProperties" => parts.below.extend(each(value)),
            "additionalProperties" | "unevaluatedProperties" | "propertyNames" => {
                parts.below.push(value);
            }
            "items" | "prefixItems" | "additionalItems" | "contains" | "unevaluatedItems" => {
                match value.as_array() {
                    Some(items) => parts.below.extend(items),
                    None => parts.below.push(value),
                }
            }
            // It moves what `#` means. (`#name` is what old dialects call an anchor.)
            "$id"
                if !std::ptr::eq(root, part)
                    && value.as_str().is_some_and(|id| !id.starts_with('#')) =>
            {
                return Err("a part of it has an `$id` of its own".to_owned());
            }
            _ => {}
        }
    }
    Ok(parts)
}

fn each(map: &Value) -> impl Iterator<Item = &Value> {
    map.as_object().into_iter().flat_map(serde_json::Map::values)
}

/// Returns what a reference means; nothing where it leads out of the schema.
fn target<'a>(root: &'a Value, reference: &str) -> Result<Option<&'a Value>, String> {
    let own = root.get("$id").and_then(Value::as_str).unwrap_or_default();
    let local = reference.strip_prefix(own.trim_end_matches('#')).unwrap_or(reference);
    if local.is_empty() {
        return Ok(Some(root));
    }
    match local.strip_prefix('#') {
        Some(pointer) if pointer.is_empty() || pointer.starts_with('/') => {
            Ok(root.pointer(&decoded(pointer)))
        }
        // One of the dialects, or another document: a validator says what it is.
        None if root.get("$id").is_none() || reference.contains("://json-schema.org/") => Ok(None),
        Some(_) | None => Err(format!("it refers to `{}`", crate::summary::cut(reference, 80))),
    }
}

/// A pointer in a reference, as it is outside of one: `%3C` is `<`.
fn decoded(pointer: &str) -> String {
    let mut bytes = Vec::with_capacity(pointer.len());
    let mut rest = pointer.as_bytes();
    while let [first, more @ ..] = rest {
        let hex = more.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|_| *first == b'%');
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &more[2..] } else { more };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn places(value: &Value) -> usize {
    match value {
        Value::Object(members) => 1 + members.values().map(places).sum::<usize>(),
        Value::Array(items) => 1 + items.iter().map(places).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

/// Looks at a value as a validator would that never stops early.
fn look<'a>(root: &'a Value, part: &'a Value, value: &Value, left: &mut usize) -> bool {
    let Some(rest) = left.checked_sub(1) else { return false };
    *left = rest;
    let Ok(parts) = parts(root, part) else { return false };
    parts.here.into_iter().all(|next| look(root, next, value, left))
        && match value {
            Value::Object(members) => members.iter().all(|(key, below)| {
                of_member(part, key).into_iter().all(|next| look(root, next, below, left))
            }),
            Value::Array(items) => items.iter().enumerate().all(|(at, below)| {
                of_item(part, at).into_iter().all(|next| look(root, next, below, left))
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        }
}

/// The parts that look at a member: its own, and those for members of any name.
fn of_member<'a>(part: &'a Value, key: &str) -> Vec<&'a Value> {
    let own = part.get("properties").and_then(|map| map.get(key));
    let any = ["additionalProperties", "unevaluatedProperties", "propertyNames"];
    let any = any.iter().filter_map(|key| part.get(key));
    let by_pattern = part.get("patternProperties").into_iter().flat_map(each);
    own.into_iter().chain(any).chain(by_pattern).collect()
}

fn of_item(part: &Value, at: usize) -> Vec<&Value> {
    let keys = ["items", "prefixItems", "additionalItems", "contains", "unevaluatedItems"];
    let parts = keys.iter().filter_map(|key| part.get(key));
    parts.filter_map(|part| part.as_array().map_or(Some(part), |list| list.get(at))).collect()
}

//! Bounds the work of validating a value against an untrusted schema.
//!
//! A schema of a few lines can refer to itself, or to the same subschema twice at every
//! step, and so make a validator work without end. The cost is measured here, before a
//! validator gets the schema. Nothing here decides whether a value is valid.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

/// The most subschemas that may be applied to one node of a value.
const MAX_AT_ONE_NODE: u64 = 4096;
/// A schema with at most this many subschemas, written out in full, is cheap.
const CHEAP: u64 = 1024;
/// The most nested subschemas; each takes a level of a validator's stack.
const MAX_NESTING: usize = 512;
/// The budget of steps for each node of a value, and for any value.
const STEPS_PER_NODE: usize = 256;
const BASE_STEPS: usize = 10_000;
/// The most steps for any value.
const MAX_STEPS: usize = 1_000_000;

/// How much work a schema makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cost {
    /// Little, whatever the value.
    Cheap,
    /// It depends on the value: see [`fits_budget`].
    Depends,
}

/// Measures a schema. The error says why it cannot be used to check any value.
pub(super) fn measure(root: &Value) -> Result<Cost, String> {
    let mut meter = CostMeter { root, totals: HashMap::new(), at_node: HashMap::new() };
    let total = meter.total(root, &mut Vec::new())?;
    Ok(if total <= CHEAP { Cost::Cheap } else { Cost::Depends })
}

/// Whether a value can be checked with a bounded number of steps.
pub(super) fn fits_budget(root: &Value, value: &Value) -> bool {
    let budget = BASE_STEPS + STEPS_PER_NODE.saturating_mul(n_nodes(value));
    simulate(root, root, value, &mut budget.min(MAX_STEPS))
}

/// The subschemas directly within a schema.
#[derive(Default)]
struct Subschemas<'a> {
    /// Those that apply to the same node of a value.
    same_node: Vec<&'a Value>,
    /// Those that apply to its members or items.
    below: Vec<&'a Value>,
}

/// Counts subschemas, by the address of the schema.
struct CostMeter<'a> {
    root: &'a Value,
    /// All subschemas, written out in full.
    totals: HashMap<*const Value, u64>,
    /// Those that apply to the same node of a value.
    at_node: HashMap<*const Value, u64>,
}

impl<'a> CostMeter<'a> {
    /// The number of all subschemas. `path` are the schemas that lead to this one.
    fn total(&mut self, part: &'a Value, path: &mut Vec<*const Value>) -> Result<u64, String> {
        if let Some(known) = self.totals.get(&std::ptr::from_ref(part)) {
            return Ok(*known);
        }
        // A schema that contains itself has no end.
        if path.contains(&std::ptr::from_ref(part)) {
            return Ok(u64::MAX);
        }
        if MAX_NESTING < path.len() {
            return Err("it is nested too deep".to_owned());
        }
        self.at_node(part, &mut HashSet::new())?;
        let parts = subschemas(self.root, part)?;
        path.push(part);
        let mut sum = 1_u64;
        for next in parts.same_node.into_iter().chain(parts.below) {
            sum = sum.saturating_add(self.total(next, path)?);
        }
        path.pop();
        self.totals.insert(part, sum);
        Ok(sum)
    }

    /// The number of subschemas that apply to the same node.
    fn at_node(
        &mut self,
        part: &'a Value,
        path: &mut HashSet<*const Value>,
    ) -> Result<u64, String> {
        if let Some(known) = self.at_node.get(&std::ptr::from_ref(part)) {
            return Ok(*known);
        }
        if MAX_NESTING < path.len() {
            return Err("it is nested too deep".to_owned());
        }
        if !path.insert(part) {
            return Err("it refers to itself without end".to_owned());
        }
        let mut sum = 1_u64;
        for next in subschemas(self.root, part)?.same_node {
            sum = sum.saturating_add(self.at_node(next, path)?);
        }
        path.remove(&std::ptr::from_ref(part));
        if MAX_AT_ONE_NODE < sum {
            return Err("it has too many alternatives".to_owned());
        }
        self.at_node.insert(part, sum);
        Ok(sum)
    }
}

fn subschemas<'a>(root: &'a Value, part: &'a Value) -> Result<Subschemas<'a>, String> {
    let mut parts = Subschemas::default();
    let Some(members) = part.as_object() else { return Ok(parts) };
    for (key, value) in members {
        match key.as_str() {
            "$ref" | "$dynamicRef" | "$recursiveRef" => {
                parts
                    .same_node
                    .extend(value.as_str().map(|to| target(root, to)).transpose()?.flatten());
            }
            "allOf" | "anyOf" | "oneOf" => {
                parts.same_node.extend(value.as_array().into_iter().flatten())
            }
            "not" | "if" | "then" | "else" => parts.same_node.push(value),
            "dependentSchemas" | "dependencies" => parts.same_node.extend(each(value)),
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
            // It changes what `#` refers to. (`#name` is an anchor in old dialects.)
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

/// The target of a reference; `None` where it leads out of the schema.
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
        // A dialect or another document: the validator reports what it is.
        None if root.get("$id").is_none() || reference.contains("://json-schema.org/") => Ok(None),
        Some(_) | None => Err(format!("it refers to `{}`", crate::summary::cut(reference, 80))),
    }
}

/// Decodes the percent escapes of a pointer: `%3C` is `<`.
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

/// The number of nodes of a JSON value.
fn n_nodes(value: &Value) -> usize {
    match value {
        Value::Object(members) => 1 + members.values().map(n_nodes).sum::<usize>(),
        Value::Array(items) => 1 + items.iter().map(n_nodes).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

/// Goes through a value like a validator that never stops early; `false` when the steps
/// in `left` do not suffice.
fn simulate<'a>(root: &'a Value, part: &'a Value, value: &Value, left: &mut usize) -> bool {
    let Some(rest) = left.checked_sub(1) else { return false };
    *left = rest;
    let Ok(parts) = subschemas(root, part) else { return false };
    parts.same_node.into_iter().all(|next| simulate(root, next, value, left))
        && match value {
            Value::Object(members) => members.iter().all(|(key, below)| {
                member_schemas(part, key).into_iter().all(|next| simulate(root, next, below, left))
            }),
            Value::Array(items) => items.iter().enumerate().all(|(at, below)| {
                item_schemas(part, at).into_iter().all(|next| simulate(root, next, below, left))
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        }
}

/// The subschemas that apply to a member: its own, and those for any name.
fn member_schemas<'a>(part: &'a Value, key: &str) -> Vec<&'a Value> {
    let own = part.get("properties").and_then(|map| map.get(key));
    let any = ["additionalProperties", "unevaluatedProperties", "propertyNames"];
    let any = any.iter().filter_map(|key| part.get(key));
    let by_pattern = part.get("patternProperties").into_iter().flat_map(each);
    own.into_iter().chain(any).chain(by_pattern).collect()
}

/// The subschemas that apply to the item at a position.
fn item_schemas(part: &Value, at: usize) -> Vec<&Value> {
    let keys = ["items", "prefixItems", "additionalItems", "contains", "unevaluatedItems"];
    let parts = keys.iter().filter_map(|key| part.get(key));
    parts.filter_map(|part| part.as_array().map_or(Some(part), |list| list.get(at))).collect()
}

//! Which arguments a schema names, wherever at its root it names them.
//!
//! Most schemas have `properties`. Some put them together with `allOf`, or let
//! a caller choose with `oneOf` or `anyOf`; some say only what is `required`.

use serde_json::{Value, json};

use super::kind;

/// How deep parts of a schema are looked into. Schemas come from strangers.
const DEPTH: usize = 3;
/// How many parts of one kind are.
const PARTS: usize = 16;

/// One argument, as far as the schema says.
#[derive(Clone, Debug)]
pub(super) struct Member {
    /// What the schema says of its value.
    pub(super) part: Value,
    pub(super) required: bool,
}

type Members = Vec<(String, Member)>;

/// The arguments that a schema names, in its order.
pub(super) fn of(schema: &Value) -> Members {
    read(schema, schema, DEPTH)
}

fn read(root: &Value, schema: &Value, depth: usize) -> Members {
    let schema = kind::resolve(root, schema);
    let mut members = Members::new();
    let properties = schema.get("properties").and_then(Value::as_object);
    for (key, part) in properties.into_iter().flatten() {
        members.push((key.clone(), Member { part: part.clone(), required: false }));
    }
    if 0 < depth {
        let below = |key: &str| -> Vec<Members> {
            let parts = schema.get(key).and_then(Value::as_array).into_iter().flatten();
            parts.take(PARTS).map(|part| read(root, part, depth - 1)).collect()
        };
        for part in below("allOf") {
            part.into_iter().for_each(|(key, member)| add(&mut members, key, member));
        }
        for choice in [below("anyOf"), below("oneOf")] {
            chosen(&choice).into_iter().for_each(|(key, member)| add(&mut members, key, member));
        }
    }
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    for key in required.filter_map(Value::as_str) {
        match members.iter_mut().find(|(name, _)| name == key) {
            Some((_, member)) => member.required = true,
            None => members.push((key.to_owned(), Member { part: json!({}), required: true })),
        }
    }
    members
}

/// Something that holds as well as what is known already.
fn add(members: &mut Members, key: String, more: Member) {
    match members.iter_mut().find(|(name, _)| *name == key) {
        Some((_, member)) => {
            member.required |= more.required;
            // A part that only says what is required says nothing of a value.
            if member.part == json!({}) {
                member.part = more.part;
            }
        }
        None => members.push((key, more)),
    }
}

/// What a choice names: required only where every choice requires it.
fn chosen(choices: &[Members]) -> Members {
    let mut members = Members::new();
    for (key, member) in choices.iter().flatten() {
        if members.iter().any(|(name, _)| name == key) {
            continue;
        }
        let mut parts: Vec<&Value> = Vec::new();
        let own = |choice: &Members| {
            choice.iter().find(|(name, _)| name == key).map(|(_, member)| member.required)
        };
        for (_, other) in choices.iter().flatten().filter(|(name, _)| name == key) {
            if !parts.contains(&&other.part) && other.part != json!({}) {
                parts.push(&other.part);
            }
        }
        let part = match parts.as_slice() {
            [] => member.part.clone(),
            [one] => (*one).clone(),
            several => json!({"anyOf": several}),
        };
        let required = choices.iter().all(|choice| own(choice) == Some(true));
        members.push((key.clone(), Member { part, required }));
    }
    members
}

/// A form of a choice in a few words: its type, or the members it has.
pub(super) fn form(root: &Value, schema: &Value) -> String {
    let members = read(root, schema, DEPTH);
    if members.is_empty() {
        return kind::describe(root, schema);
    }
    let name = |(key, member): &(String, Member)| {
        let mark = if member.required { "" } else { "?" };
        match kind::describe(root, &member.part).as_str() {
            "any" => format!("{key}{mark}"),
            kind => format!("{key}{mark}: {kind}"),
        }
    };
    let named: Vec<String> = members.iter().take(6).map(name).collect();
    let more = if named.len() < members.len() { ", …" } else { "" };
    format!("{{{}{more}}}", named.join(", "))
}

//! Finds the arguments that a schema names, wherever at its root it names them.
//!
//! Most schemas have `properties`. Some put them together with `allOf`, or let
//! a caller choose with `oneOf` or `anyOf`; some say only what is `required`.

use std::collections::HashMap;

use serde_json::{Value, json};
use tool::text::without_invisible;

use super::schema_type;

/// How deep parts of a schema are looked into. Schemas come from strangers.
const DEPTH: usize = 3;
/// How many parts of one kind are.
const PARTS: usize = 16;
/// How many parts in all, however often a schema refers to itself.
const NODES: usize = 256;
/// How many members, counted wherever they are read.
const READ: usize = 16_384;

/// How the members of an object are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notation {
    /// `{old: string, count?: integer}`
    Typed,
    /// `{old, count?}`
    Names,
}

/// One argument, as far as the schema says.
#[derive(Clone, Debug)]
pub(super) struct Member {
    /// What the schema says of its value.
    pub(super) part: Value,
    pub(super) required: bool,
}

/// The arguments that a schema names, in its order.
pub(super) fn read(schema: &Value) -> Vec<(String, Member)> {
    Reader::new(schema).members(schema)
}

/// Reads members out of one schema, within one budget.
pub(super) struct Reader<'a> {
    root: &'a Value,
    nodes: usize,
    members: usize,
    /// The parts that are being read: none is read again inside itself.
    way: Vec<&'a Value>,
}

/// What is known of a member while it is read.
#[derive(Clone, Default)]
struct MemberDraft<'a> {
    /// What its value may be: any of these.
    parts: Vec<&'a Value>,
    required: bool,
}

/// Members in the order in which they were found.
#[derive(Default)]
struct Members<'a> {
    known: Vec<(&'a str, MemberDraft<'a>)>,
    at: HashMap<&'a str, usize>,
}

impl<'a> Members<'a> {
    fn get(&mut self, key: &'a str) -> &mut MemberDraft<'a> {
        let at = *self.at.entry(key).or_insert_with(|| {
            self.known.push((key, MemberDraft::default()));
            self.known.len() - 1
        });
        &mut self.known[at].1
    }

    /// Something that holds as well as what is known already.
    fn add(&mut self, key: &'a str, more: MemberDraft<'a>) {
        let known = self.get(key);
        known.required |= more.required;
        // A part that only says what is required says nothing of a value.
        if known.parts.is_empty() {
            known.parts = more.parts;
        }
    }

    /// Returns what a choice names: required only where every choice requires it.
    fn chosen(choices: Vec<Members<'a>>) -> Members<'a> {
        let mut members = Members::default();
        let mut n_requiring = HashMap::new();
        let n_choices = choices.len();
        for (key, more) in choices.into_iter().flat_map(|choice| choice.known) {
            *n_requiring.entry(key).or_insert(0) += usize::from(more.required);
            let known = members.get(key);
            for part in more.parts {
                if known.parts.len() < PARTS && !known.parts.contains(&part) {
                    known.parts.push(part);
                }
            }
        }
        for (key, known) in &mut members.known {
            known.required = n_requiring.get(key) == Some(&n_choices);
        }
        members
    }
}

impl<'a> Reader<'a> {
    pub(super) fn new(root: &'a Value) -> Reader<'a> {
        Reader { root, nodes: NODES, members: READ, way: Vec::new() }
    }

    pub(super) fn members(&mut self, schema: &'a Value) -> Vec<(String, Member)> {
        let members = self.read(schema, DEPTH).unwrap_or_default();
        let owned = |(key, known): (&str, MemberDraft<'_>)| {
            let part = match known.parts.as_slice() {
                [] => json!({}),
                [one] => (*one).clone(),
                several => json!({"anyOf": several}),
            };
            (key.to_owned(), Member { part, required: known.required })
        };
        members.known.into_iter().map(owned).collect()
    }

    /// Nothing where the budget is spent, or a part leads back to itself.
    fn read(&mut self, schema: &'a Value, depth: usize) -> Option<Members<'a>> {
        let schema = schema_type::resolve(self.root, schema);
        if self.members == 0 || self.way.iter().any(|part| std::ptr::eq(*part, schema)) {
            return None;
        }
        self.nodes = self.nodes.checked_sub(1)?;
        let mut members = Members::default();
        let properties = schema.get("properties").and_then(Value::as_object);
        for (key, part) in properties.into_iter().flatten() {
            members.get(key).parts.extend((*part != json!({})).then_some(part));
        }
        if 0 < depth {
            self.way.push(schema);
            for part in self.below(schema, "allOf", depth) {
                part.known.into_iter().for_each(|(key, known)| members.add(key, known));
            }
            for key in ["anyOf", "oneOf"] {
                let chosen = Members::chosen(self.below(schema, key, depth));
                chosen.known.into_iter().for_each(|(key, known)| members.add(key, known));
            }
            self.way.pop();
        }
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        for key in required.filter_map(Value::as_str) {
            members.get(key).required = true;
        }
        self.members = self.members.saturating_sub(members.known.len());
        Some(members)
    }

    fn below(&mut self, schema: &'a Value, key: &str, depth: usize) -> Vec<Members<'a>> {
        let parts = schema.get(key).and_then(Value::as_array).into_iter().flatten().take(PARTS);
        parts.filter_map(|part| self.read(part, depth - 1)).collect()
    }

    /// A form of a choice in a few words: its type, or the members it has.
    pub(super) fn form(&mut self, schema: &'a Value, notation: Notation) -> String {
        let root = self.root;
        let members = self.members(schema);
        if members.is_empty() {
            return schema_type::type_notation(root, schema);
        }
        let name = |(key, member): &(String, Member)| {
            let (key, mark) = (shown(key), if member.required { "" } else { "?" });
            let kind = match notation {
                Notation::Typed => schema_type::type_notation(root, &member.part),
                Notation::Names => "any".to_owned(),
            };
            match kind.as_str() {
                "any" => format!("{key}{mark}"),
                kind => format!("{key}{mark}: {kind}"),
            }
        };
        let named: Vec<String> = members.iter().take(6).map(name).collect();
        let more = if named.len() < members.len() { ", …" } else { "" };
        format!("{{{}{more}}}", named.join(", "))
    }
}

/// A member's name where it is shown: names come from strangers and must not
/// write lines of a page.
fn shown(key: &str) -> String {
    let line = without_invisible(key).split_whitespace().collect::<Vec<_>>().join(" ");
    crate::summary::cut(&line, LONGEST_KEY)
}

/// How much of a member's name is shown.
const LONGEST_KEY: usize = 64;

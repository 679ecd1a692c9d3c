//! Finds the members (arguments) that a schema declares.
//!
//! Most schemas have `properties`. Some combine several with `allOf`, or let a caller
//! choose with `oneOf` or `anyOf`; some only list what is `required`.

use std::collections::HashMap;

use serde_json::{Value, json};
use tool::text::without_invisible;

use super::schema_type;

/// The bounds below are needed because schemas are untrusted. This is the most levels of
/// subschemas that are followed.
const DEPTH: usize = 3;
/// The most alternatives of one `allOf`, `anyOf` or `oneOf`.
const MAX_ALTERNATIVES: usize = 16;
/// The most subschemas in all, however often a schema refers to itself.
const MAX_SUBSCHEMAS: usize = 256;
/// The most members in all subschemas together.
const MAX_MEMBERS: usize = 16_384;

/// How the members of an object are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notation {
    /// `{old: string, count?: integer}`
    Typed,
    /// `{old, count?}`
    Names,
}

/// What a schema says about one member.
#[derive(Clone, Debug)]
pub(super) struct Member {
    /// The schema of its value.
    pub(super) schema: Value,
    pub(super) required: bool,
}

/// The members that a schema declares, with their names, in its order.
pub(super) fn parse(schema: &Value) -> Vec<(String, Member)> {
    MemberParser::new(schema).members(schema)
}

/// Finds the members of a schema, within one budget.
pub(super) struct MemberParser<'a> {
    root: &'a Value,
    subschemas_left: usize,
    members_left: usize,
    /// The subschemas that are being parsed, to detect one that contains itself.
    open: Vec<&'a Value>,
}

/// A member while its schema is being parsed.
#[derive(Clone, Default)]
struct MemberDraft<'a> {
    /// Schemas of its value, of which any may fit.
    schemas: Vec<&'a Value>,
    required: bool,
}

/// Members in the order in which they were found.
#[derive(Default)]
struct Members<'a> {
    list: Vec<(&'a str, MemberDraft<'a>)>,
    positions: HashMap<&'a str, usize>,
}

impl<'a> Members<'a> {
    fn get_or_add(&mut self, key: &'a str) -> &mut MemberDraft<'a> {
        let at = *self.positions.entry(key).or_insert_with(|| {
            self.list.push((key, MemberDraft::default()));
            self.list.len() - 1
        });
        &mut self.list[at].1
    }

    /// Adds what another subschema, which holds as well, says about a member.
    fn add(&mut self, key: &'a str, more: MemberDraft<'a>) {
        let member = self.get_or_add(key);
        member.required |= more.required;
        // A subschema that only lists what is required has no schema for the value.
        if member.schemas.is_empty() {
            member.schemas = more.schemas;
        }
    }

    /// The members of several alternatives: required only where every alternative requires
    /// them.
    fn any_of(choices: Vec<Members<'a>>) -> Members<'a> {
        let mut members = Members::default();
        let mut n_requiring = HashMap::new();
        let n_choices = choices.len();
        for (key, more) in choices.into_iter().flat_map(|choice| choice.list) {
            *n_requiring.entry(key).or_insert(0) += usize::from(more.required);
            let member = members.get_or_add(key);
            for schema in more.schemas {
                if member.schemas.len() < MAX_ALTERNATIVES && !member.schemas.contains(&schema) {
                    member.schemas.push(schema);
                }
            }
        }
        for (key, member) in &mut members.list {
            member.required = n_requiring.get(key) == Some(&n_choices);
        }
        members
    }
}

impl<'a> MemberParser<'a> {
    pub(super) fn new(root: &'a Value) -> MemberParser<'a> {
        MemberParser {
            root,
            subschemas_left: MAX_SUBSCHEMAS,
            members_left: MAX_MEMBERS,
            open: Vec::new(),
        }
    }

    pub(super) fn members(&mut self, schema: &'a Value) -> Vec<(String, Member)> {
        let members = self.parse(schema, DEPTH).unwrap_or_default();
        let owned = |(key, member): (&str, MemberDraft<'_>)| {
            let schema = match member.schemas.as_slice() {
                [] => json!({}),
                [one] => (*one).clone(),
                several => json!({"anyOf": several}),
            };
            (key.to_owned(), Member { schema, required: member.required })
        };
        members.list.into_iter().map(owned).collect()
    }

    /// The members of one subschema; `None` where the budget is spent, or where the
    /// subschema contains itself.
    fn parse(&mut self, schema: &'a Value, depth: usize) -> Option<Members<'a>> {
        let schema = schema_type::resolve(self.root, schema);
        let is_open = |open: &&Value| std::ptr::eq(*open, schema);
        if self.members_left == 0 || self.open.iter().any(is_open) {
            return None;
        }
        self.subschemas_left = self.subschemas_left.checked_sub(1)?;
        let mut members = Members::default();
        let properties = schema.get("properties").and_then(Value::as_object);
        for (key, value) in properties.into_iter().flatten() {
            members.get_or_add(key).schemas.extend((*value != json!({})).then_some(value));
        }
        if 0 < depth {
            self.open.push(schema);
            for part in self.alternatives(schema, "allOf", depth) {
                part.list.into_iter().for_each(|(key, member)| members.add(key, member));
            }
            for key in ["anyOf", "oneOf"] {
                let any_of = Members::any_of(self.alternatives(schema, key, depth));
                any_of.list.into_iter().for_each(|(key, member)| members.add(key, member));
            }
            self.open.pop();
        }
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        for key in required.filter_map(Value::as_str) {
            members.get_or_add(key).required = true;
        }
        self.members_left = self.members_left.saturating_sub(members.list.len());
        Some(members)
    }

    /// The members of each subschema in the list under `key`.
    fn alternatives(&mut self, schema: &'a Value, key: &str, depth: usize) -> Vec<Members<'a>> {
        let parts = schema.get(key).and_then(Value::as_array).into_iter().flatten();
        let parts = parts.take(MAX_ALTERNATIVES);
        parts.filter_map(|part| self.parse(part, depth - 1)).collect()
    }

    /// A schema in a few words: its members, or its type where it has none.
    pub(super) fn describe(&mut self, schema: &'a Value, notation: Notation) -> String {
        let root = self.root;
        let members = self.members(schema);
        if members.is_empty() {
            return schema_type::type_notation(root, schema);
        }
        let name = |(key, member): &(String, Member)| {
            let (key, mark) = (displayed(key), if member.required { "" } else { "?" });
            let kind = match notation {
                Notation::Typed => schema_type::type_notation(root, &member.schema),
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

/// A member's name as it is shown. Names are untrusted, so it is cut to one short line.
fn displayed(key: &str) -> String {
    let line = without_invisible(key).split_whitespace().collect::<Vec<_>>().join(" ");
    crate::summary::cut(&line, LONGEST_KEY)
}

/// The most characters of a member's name that are shown.
const LONGEST_KEY: usize = 64;

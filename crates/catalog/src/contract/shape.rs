//! Describes the structure of an argument, one level deep.

use serde_json::Value;

use super::members::{self, Notation};
use super::{Contract, Parameter, schema_type};

/// The most characters of the description of one argument.
const LONGEST: usize = 200;
/// The most nested lists and choices that are followed.
const DEPTH: usize = 3;

impl Contract {
    /// Every required argument that is an object or a list of objects, with its members and
    /// their types: `edits`, `{oldText: string, newText: string}[]`.
    pub fn shapes(&self) -> Vec<(&Parameter, String)> {
        self.describe_all(Notation::Typed)
    }

    /// Like [`Contract::shapes`], without types: `edits`, `{oldText, newText}[]`.
    pub fn member_names(&self) -> Vec<(&Parameter, String)> {
        self.describe_all(Notation::Names)
    }

    fn describe_all(&self, notation: Notation) -> Vec<(&Parameter, String)> {
        let required = || self.parameters.iter().filter(|parameter| parameter.required);
        if !required().any(|parameter| parameter.kind.contains("object")) {
            return Vec::new();
        }
        let Ok(schema) = self.schema.to_value() else { return Vec::new() };
        let all = members::parse(&schema);
        let shape = |parameter: &Parameter| {
            let (_, member) = all.iter().find(|(name, _)| *name == parameter.name)?;
            describe(&schema, &member.schema, notation, DEPTH)
        };
        required().filter_map(|parameter| Some((parameter, shape(parameter)?))).collect()
    }
}

fn describe(root: &Value, part: &Value, notation: Notation, depth: usize) -> Option<String> {
    let part = schema_type::resolve(root, part);
    if let Some(items) = part.get("items").filter(|_| 0 < depth) {
        return Some(format!("{}[]", describe(root, items, notation, depth - 1)?));
    }
    let choice = ["anyOf", "oneOf"].iter().find_map(|key| part.get(key)?.as_array());
    if let (Some(choice), true) = (choice, 0 < depth && part.get("properties").is_none()) {
        let is_null = |one: &&Value| one.get("type").and_then(Value::as_str) == Some("null");
        let mut others = choice.iter().filter(|one| !is_null(one));
        let only = others.next().filter(|_| others.next().is_none())?;
        return describe(root, only, notation, depth - 1);
    }
    let text = members::MemberParser::new(root).describe(part, notation);
    let fits = text.starts_with('{') && text.chars().count() <= LONGEST;
    fits.then_some(text)
}

//! A contract: the arguments that a function takes, derived from its schema.
//!
//! A contract folds the spellings a caller used to the schema's own, turns
//! text into the numbers, booleans and structures the schema asks for, and
//! says everything that is wrong at once. Only the top level is touched:
//! deeper keys and values are data. A schema that cannot be understood
//! constrains nothing; the upstream remains the judge of its arguments.

mod check;
mod checker;
mod cost;
mod members;
mod normalize;
mod sample;
mod schema_type;
mod shape;

use std::collections::HashMap;
use std::sync::OnceLock;

use serde_json::Value;
use tool::Json;

use crate::name;

pub use check::Problem;
use checker::Checker;
use members::Member;
pub use normalize::NormalizedArguments;
pub use sample::Sample;
pub(crate) use schema_type::Types;

/// Returns why arguments are not checked against a schema that breaks no rule, if
/// they are not: it asks for more work than any call is worth.
pub fn unchecked(schema: &Value) -> Option<String> {
    cost::measure(schema).err()
}

/// The arguments of one function.
#[derive(Debug)]
pub struct Contract {
    /// In the order of the schema, required ones first.
    pub parameters: Vec<Parameter>,
    declared: bool,
    schema: Json,
    checker: OnceLock<Result<Checker, String>>,
}

/// One argument.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// As the schema spells it.
    pub name: String,
    /// The type in a few characters: `string`, `"a"|"b"`, `integer[]`.
    pub kind: String,
    pub required: bool,
    pub description: Option<String>,
    /// The default, as JSON text.
    pub default: Option<String>,
    canonical: String,
    /// Another parameter has the same canonical name, so only the exact
    /// spelling means this one.
    ambiguous: bool,
    types: Types,
}

impl Contract {
    /// Reads a schema; what is odd in it is read as absent.
    pub fn read(schema: &Json) -> Contract {
        let parsed = schema.to_value().unwrap_or(Value::Null);
        let mut parameters = parameters(&parsed);
        mark_ambiguous(&mut parameters);
        parameters.sort_by_key(|parameter| !parameter.required);
        let declared = !parameters.is_empty() || names_members(&parsed);
        Contract { parameters, declared, schema: schema.clone(), checker: OnceLock::new() }
    }

    /// Whether the schema says which arguments there are, be it none. One without
    /// `properties` says nothing: the function may want some all the same.
    pub fn is_declared(&self) -> bool {
        self.declared
    }

    /// The parameter that `key` means, if it means one.
    pub fn parameter(&self, key: &str) -> Option<&Parameter> {
        let exact = self.parameters.iter().find(|parameter| parameter.name == key);
        exact.or_else(|| {
            let folded = name::canonical(&name::alias(key));
            self.parameters.iter().find(|p| !p.ambiguous && p.canonical == folded)
        })
    }

    /// Returns why the schema cannot be used to check arguments, if it cannot.
    pub fn damage(&self) -> Option<&str> {
        self.checker().as_ref().err().map(String::as_str)
    }

    fn checker(&self) -> &Result<Checker, String> {
        self.checker.get_or_init(|| Checker::compile(&self.schema))
    }
}

impl Parameter {
    /// The name as it is shown: legal where the schema's own is not. Both are
    /// understood.
    pub fn display(&self) -> String {
        if self.ambiguous { self.name.clone() } else { name::alias(&self.name) }
    }

    /// Returns whether other parameters differ from this one only in `_` and case.
    pub fn is_ambiguous(&self) -> bool {
        self.ambiguous
    }
}

/// Whether a schema names its members, or says that there are no others.
pub(crate) fn names_members(schema: &Value) -> bool {
    schema.get("properties").is_some_and(Value::is_object)
        || schema.get("additionalProperties") == Some(&Value::Bool(false))
}

fn parameters(schema: &Value) -> Vec<Parameter> {
    let members = members::read(schema);
    let parameter = |(key, member): &(String, Member)| {
        let part = &member.part;
        let resolved = schema_type::resolve(schema, part);
        let text = |member: &str| {
            let own = part.get(member).or_else(|| resolved.get(member));
            own.and_then(Value::as_str).map(str::to_owned)
        };
        Parameter {
            name: key.clone(),
            kind: schema_type::type_notation(schema, part),
            required: member.required,
            description: text("description"),
            default: part.get("default").map(Value::to_string),
            canonical: name::canonical(&name::alias(key)),
            ambiguous: false,
            types: Types::of_schema(schema, part),
        }
    };
    members.iter().map(parameter).collect()
}

fn mark_ambiguous(parameters: &mut [Parameter]) {
    let mut n_named: HashMap<String, usize> = HashMap::new();
    for parameter in parameters.iter() {
        *n_named.entry(parameter.canonical.clone()).or_default() += 1;
    }
    for parameter in parameters {
        parameter.ambiguous = n_named.get(&parameter.canonical).is_some_and(|n| 1 < *n);
    }
}

#[cfg(test)]
mod tests;

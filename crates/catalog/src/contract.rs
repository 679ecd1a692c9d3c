//! A contract: the arguments that a function takes, derived from its schema.
//!
//! A contract changes the caller's spelling of argument names to the schema's, parses
//! strings into the numbers, booleans and structures that the schema asks for, and
//! reports all problems at once. Only the top level is changed. A schema that cannot be
//! understood allows everything; then the upstream judges the arguments.

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

/// Why checking arguments against this schema would take too much work; `None` if it would
/// not. Such a schema is not used for checking.
pub fn too_costly(schema: &Value) -> Option<String> {
    cost::measure(schema).err()
}

/// The arguments of one function.
#[derive(Debug)]
pub struct Contract {
    /// In the order of the schema, required parameters first.
    pub parameters: Vec<Parameter>,
    declared: bool,
    schema: Json,
    checker: OnceLock<Result<Checker, String>>,
}

/// One argument.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// The name as the schema spells it.
    pub name: String,
    /// The type in a few characters: `string`, `"a"|"b"`, `integer[]`.
    pub kind: String,
    pub required: bool,
    pub description: Option<String>,
    /// The default, as JSON text.
    pub default: Option<String>,
    canonical: String,
    /// Whether another parameter has the same canonical name, so that only the exact
    /// spelling means this one.
    ambiguous: bool,
    types: Types,
}

impl Contract {
    /// Parses a schema. Parts that are not understood are ignored.
    pub fn parse(schema: &Json) -> Contract {
        let parsed = schema.to_value().unwrap_or(Value::Null);
        let mut parameters = parameters(&parsed);
        mark_ambiguous(&mut parameters);
        parameters.sort_by_key(|parameter| !parameter.required);
        let declared = !parameters.is_empty() || names_members(&parsed);
        Contract { parameters, declared, schema: schema.clone(), checker: OnceLock::new() }
    }

    /// Whether the schema declares its arguments, even if there are none. A schema without
    /// `properties` does not: the function may still take some.
    pub fn is_declared(&self) -> bool {
        self.declared
    }

    /// The parameter that `key` means, in any spelling, if exactly one fits.
    pub fn parameter(&self, key: &str) -> Option<&Parameter> {
        let exact = self.parameters.iter().find(|parameter| parameter.name == key);
        exact.or_else(|| {
            let folded = name::canonical(&name::alias(key));
            self.parameters.iter().find(|p| !p.ambiguous && p.canonical == folded)
        })
    }

    /// The reason why the schema is invalid, if it is. One that is [`too_costly`] to check is
    /// not.
    pub fn schema_error(&self) -> Option<&str> {
        self.checker().as_ref().err().map(String::as_str)
    }

    fn checker(&self) -> &Result<Checker, String> {
        self.checker.get_or_init(|| Checker::compile(&self.schema))
    }
}

impl Parameter {
    /// The name to show: the schema's own, or its alias where that is not legal. Both are
    /// accepted.
    pub fn display(&self) -> String {
        if self.ambiguous { self.name.clone() } else { name::alias(&self.name) }
    }

    /// Whether another parameter's name differs from this one only in `_` and case.
    pub fn is_ambiguous(&self) -> bool {
        self.ambiguous
    }
}

/// Whether a schema declares its members, or says that there are none.
pub(crate) fn names_members(schema: &Value) -> bool {
    schema.get("properties").is_some_and(Value::is_object)
        || schema.get("additionalProperties") == Some(&Value::Bool(false))
}

fn parameters(schema: &Value) -> Vec<Parameter> {
    let members = members::parse(schema);
    let parameter = |(key, member): &(String, Member)| {
        let part = &member.schema;
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

//! Rewrites the caller's argument names and types to those of the schema.

use std::collections::HashMap;

use serde_json::Value;
use tool::{Json, Object};

use super::{Contract, Parameter, Problem, Types};
use crate::name;

/// Arguments with the names and types of the schema.
#[derive(Debug, Default)]
pub struct NormalizedArguments {
    /// The rewritten arguments; `None` if the given ones already match, so that
    /// they are forwarded byte for byte.
    pub rewritten: Option<Object>,
    /// Arguments that cannot be matched to one parameter. They are left out of
    /// `rewritten`, so that the remaining arguments can still be validated.
    pub problems: Vec<Problem>,
}

impl Contract {
    /// Renames every key to its spelling in the schema and parses strings where
    /// the schema expects another type.
    pub fn normalize(&self, arguments: &Object) -> NormalizedArguments {
        if arguments.iter().all(|(key, value)| self.fits(key, value)) {
            return NormalizedArguments::default();
        }
        let mut rewritten = Rewriting::default();
        for (key, value) in arguments.iter() {
            match self.match_key(key) {
                KeyMatch::Parameter(parameter) => {
                    let value = coerce(parameter.types, value).unwrap_or_else(|| value.clone());
                    rewritten.put(&parameter.name, value);
                }
                KeyMatch::Unknown => rewritten.put(key, value.clone()),
                KeyMatch::Ambiguous(candidates) => rewritten.problems.push(Problem::new(
                    key,
                    format!("could be any of {}: use the exact spelling", candidates.join(", ")),
                )),
            }
        }
        let Rewriting { arguments, problems, .. } = rewritten;
        NormalizedArguments { rewritten: Some(arguments.into_iter().collect()), problems }
    }

    fn fits(&self, key: &str, value: &Json) -> bool {
        match self.match_key(key) {
            KeyMatch::Parameter(parameter) => {
                parameter.name == key && coerce(parameter.types, value).is_none()
            }
            KeyMatch::Unknown => true,
            KeyMatch::Ambiguous(_) => false,
        }
    }

    fn match_key(&self, key: &str) -> KeyMatch<'_> {
        if let Some(exact) = self.parameters.iter().find(|parameter| parameter.name == key) {
            return KeyMatch::Parameter(exact);
        }
        let folded = name::canonical(&name::alias(key));
        let mut candidates = self.parameters.iter().filter(|p| p.canonical == folded);
        match (candidates.next(), candidates.next()) {
            (None, _) => KeyMatch::Unknown,
            (Some(only), None) => KeyMatch::Parameter(only),
            (Some(first), Some(second)) => {
                let rest = candidates.map(quoted);
                KeyMatch::Ambiguous(
                    [quoted(first), quoted(second)].into_iter().chain(rest).collect(),
                )
            }
        }
    }
}

/// The parameter that a key means; or the candidates, if there are several.
enum KeyMatch<'a> {
    Parameter(&'a Parameter),
    Unknown,
    Ambiguous(Vec<String>),
}

fn quoted(parameter: &Parameter) -> String {
    format!("`{}`", parameter.name)
}

/// The arguments rewritten so far.
#[derive(Default)]
struct Rewriting {
    arguments: Vec<(String, Json)>,
    /// The index of each argument by its name.
    positions: HashMap<String, usize>,
    problems: Vec<Problem>,
}

impl Rewriting {
    fn put(&mut self, key: &str, value: Json) {
        match self.positions.get(key) {
            None => {
                self.positions.insert(key.to_owned(), self.arguments.len());
                self.arguments.push((key.to_owned(), value));
            }
            Some(earlier) if self.arguments[*earlier].1 == value => {}
            Some(_) => self.problems.push(Problem::new(
                key,
                "was given twice under different spellings with different values".to_owned(),
            )),
        }
    }
}

/// Parses a string as the type that the schema expects, if the schema does not
/// accept strings and the whole text is a value of that type. Nothing else is
/// converted.
fn coerce(types: Types, value: &Json) -> Option<Json> {
    if types.intersects(Types::STRING) || !value.as_str().starts_with('"') {
        return None;
    }
    let text: String = value.parse_as().ok()?;
    let is_boolean =
        |word: &str| types.intersects(Types::BOOLEAN) && text.trim().eq_ignore_ascii_case(word);
    if is_boolean("true") || is_boolean("false") {
        return Some(Json::encode(&is_boolean("true")));
    }
    let parsed = Json::parse(text.trim().to_owned()).ok()?;
    let wanted = match parsed.to_value().ok()? {
        Value::Bool(_) => types.intersects(Types::BOOLEAN),
        Value::Number(_) => {
            // The size is not checked: the upstream decides which numbers it can hold.
            let is_whole = !parsed.as_str().contains(['.', 'e', 'E']);
            types.intersects(Types::NUMBER) || (types.intersects(Types::INTEGER) && is_whole)
        }
        Value::Object(_) => types.intersects(Types::OBJECT),
        Value::Array(_) => types.intersects(Types::ARRAY),
        Value::Null => types.intersects(Types::NULL),
        Value::String(_) => false,
    };
    wanted.then_some(parsed)
}

//! The caller's spelling and types, brought to the schema's.

use std::collections::HashMap;

use serde_json::Value;
use tool::{Json, Object};

use super::{Contract, Parameter, Problem, Types};
use crate::name;

/// Arguments as the schema spells them.
#[derive(Debug, Default)]
pub struct NormalizedArguments {
    /// `None` when there is nothing to change, so that arguments which are
    /// right already are never written anew.
    pub arguments: Option<Object>,
    /// What could not be brought to the schema's spelling. It is left out of
    /// the arguments, so that the rest of them can be judged.
    pub problems: Vec<Problem>,
}

impl Contract {
    /// Renames every key to the schema's spelling of it and turns text into
    /// what the schema asks for.
    pub fn normalize(&self, arguments: &Object) -> NormalizedArguments {
        if arguments.iter().all(|(key, value)| self.fits(key, value)) {
            return NormalizedArguments::default();
        }
        let mut folded = Normalizing::default();
        for (key, value) in arguments.iter() {
            match self.match_key(key) {
                KeyMatch::Parameter(parameter) => {
                    let value = coerce(parameter.types, value).unwrap_or_else(|| value.clone());
                    folded.put(&parameter.name, value);
                }
                KeyMatch::Unknown => folded.put(key, value.clone()),
                KeyMatch::Ambiguous(candidates) => folded.problems.push(Problem::new(
                    key,
                    format!("could be any of {}: use the exact spelling", candidates.join(", ")),
                )),
            }
        }
        let arguments = Some(folded.arguments.into_iter().collect());
        NormalizedArguments { arguments, problems: folded.problems }
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

enum KeyMatch<'a> {
    Parameter(&'a Parameter),
    Unknown,
    Ambiguous(Vec<String>),
}

fn quoted(parameter: &Parameter) -> String {
    format!("`{}`", parameter.name)
}

/// Arguments on their way.
#[derive(Default)]
struct Normalizing {
    arguments: Vec<(String, Json)>,
    /// Where each of them is.
    places: HashMap<String, usize>,
    problems: Vec<Problem>,
}

impl Normalizing {
    fn put(&mut self, key: &str, value: Json) {
        match self.places.get(key) {
            None => {
                self.places.insert(key.to_owned(), self.arguments.len());
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

/// Text as what the schema asks for, when it asks for no text and the text
/// says exactly that. Nothing else is ever converted.
fn coerce(types: Types, value: &Json) -> Option<Json> {
    if types.admits(Types::STRING) || !value.as_str().starts_with('"') {
        return None;
    }
    let text: String = value.read().ok()?;
    let said = |word: &str| types.admits(Types::BOOLEAN) && text.trim().eq_ignore_ascii_case(word);
    if said("true") || said("false") {
        return Some(Json::encode(&said("true")));
    }
    let parsed = Json::parse(text.trim().to_owned()).ok()?;
    let wanted = match parsed.value().ok()? {
        Value::Bool(_) => types.admits(Types::BOOLEAN),
        Value::Number(_) => {
            // Of any size: what holds it is not ours to say.
            let is_whole = !parsed.as_str().contains(['.', 'e', 'E']);
            types.admits(Types::NUMBER) || (types.admits(Types::INTEGER) && is_whole)
        }
        Value::Object(_) => types.admits(Types::OBJECT),
        Value::Array(_) => types.admits(Types::ARRAY),
        Value::Null => types.admits(Types::NULL),
        Value::String(_) => false,
    };
    wanted.then_some(parsed)
}

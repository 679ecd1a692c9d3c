//! Validates arguments against the whole schema and reports all problems at once.

use serde_json::Value;
use validator::{TypeKind, ValidationError, ValidationErrorKind, Validator};

use super::checker::Checker;
use super::cost::{self, Cost};
use super::members::{self, Notation};
use super::{Contract, schema_type};
use crate::nearest;
use crate::summary::echo;

/// The most problems that are reported. More do not help a model, and hostile arguments
/// must not cause a long answer.
const MAX_PROBLEMS: usize = 12;

/// The most characters for all alternatives of a choice together.
const FORMS_CHARS: usize = 300;

/// The most alternatives that are described.
const MAX_FORMS: usize = 16;

/// How the message about an unknown argument begins.
const UNKNOWN_ARGUMENT: &str = "no such argument";

/// One thing that is wrong with the arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The place of the problem: `items[0].quantity`; empty for the arguments as a whole.
    pub at: String,
    pub message: String,
}

impl Problem {
    /// A problem at a place. `at` may hold untrusted names; they are made safe to show.
    pub fn new(at: &str, message: String) -> Problem {
        Problem { at: echo(at), message }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.at.is_empty() {
            write!(f, "{}", self.message)
        } else {
            write!(f, "`{}` {}", self.at, self.message)
        }
    }
}

impl Contract {
    /// All problems with `arguments`; none when the schema itself is invalid or checking
    /// would take too long.
    pub fn check(&self, arguments: &Value) -> Vec<Problem> {
        self.check_after(Vec::new(), arguments)
    }

    /// Like [`Contract::check`], but adds to `problems` that were found before.
    pub fn check_after(&self, mut problems: Vec<Problem>, arguments: &Value) -> Vec<Problem> {
        let mut is_cut = MAX_PROBLEMS < problems.len();
        problems.truncate(MAX_PROBLEMS);
        let mut has_unknown = false;
        if let Some((validator, schema)) = self.failing_validator(arguments, problems.is_empty()) {
            let room = MAX_PROBLEMS - problems.len();
            let errors = validator.errors(arguments, room + 1);
            for error in errors.iter().take(room) {
                let problem = describe(error, &schema);
                if !problems.contains(&problem) {
                    problems.push(problem);
                }
            }
            has_unknown =
                problems.iter().any(|problem| problem.message.starts_with(UNKNOWN_ARGUMENT));
            is_cut |= room < errors.len();
        }
        if problems.is_empty() {
            return problems;
        }
        let mut unknown_arguments = self.unknown_arguments(arguments).filter(|_| !has_unknown);
        problems.extend(unknown_arguments.by_ref().take(MAX_PROBLEMS - problems.len()));
        if is_cut || unknown_arguments.next().is_some() {
            problems.push(Problem::new("", "there is more; these come first".to_owned()));
        }
        problems
    }

    /// The validator and the schema, if the arguments are invalid and can be checked in
    /// time. `is_clean` says that no problem was found before.
    fn failing_validator(&self, arguments: &Value, is_clean: bool) -> Option<(&Validator, Value)> {
        let Ok(Checker { validator: Some(validator), cost }) = self.checker() else {
            return None;
        };
        // Most arguments are valid; then the schema need not be parsed again.
        if is_clean && *cost == Cost::Cheap && validator.is_valid(arguments) {
            return None;
        }
        let schema = self.schema.to_value().unwrap_or(Value::Null);
        let is_bounded = match cost {
            Cost::Cheap => true,
            Cost::Depends => cost::fits_budget(&schema, arguments),
        };
        (is_bounded && !validator.is_valid(arguments)).then_some((validator, schema))
    }

    /// Arguments that the schema allows but does not declare. When something else is
    /// wrong they are reported: most are misspelt.
    fn unknown_arguments<'a>(&'a self, arguments: &'a Value) -> impl Iterator<Item = Problem> + 'a {
        let keys = arguments.as_object().into_iter().flat_map(|members| members.keys());
        let unknown = keys.filter(|key| self.parameter(key).is_none());
        unknown.map(|key| {
            let names = self.parameters.iter().map(|parameter| parameter.name.as_str());
            let near = nearest::nearest(key, names, 1);
            let meant = near.first().map(|name| format!("; did you mean `{}`?", echo(name)));
            Problem::new(key, format!("is not an argument{}", meant.unwrap_or_default()))
        })
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "a foreign enum; its own words do for the rest")]
fn describe(error: &ValidationError<'_>, schema: &Value) -> Problem {
    let at = readable_path(error.instance_path().as_str());
    let message = match error.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            let at = if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
            return Problem::new(&at, "is required".to_owned());
        }
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            let names: Vec<String> =
                unexpected.iter().take(5).map(|n| format!("`{}`", echo(n))).collect();
            format!("has {UNKNOWN_ARGUMENT}: {}", names.join(", "))
        }
        ValidationErrorKind::Type { kind } => {
            format!("must be {}, not {}", types(kind), name_of(error.instance()))
        }
        ValidationErrorKind::Enum { options } => {
            format!("must be one of {}", short(&options.to_string()))
        }
        ValidationErrorKind::AnyOf { .. } | ValidationErrorKind::OneOfNotValid { .. } => {
            fits_none(schema, error.schema_path().as_str())
        }
        ValidationErrorKind::OneOfMultipleValid { .. } => {
            let forms = forms(schema, error.schema_path().as_str());
            format!("must fit only one of {}", short(&forms.join(" or ")))
        }
        // The place is shown before the message.
        _ => {
            let text = error.masked_with("it").to_string();
            short(text.strip_prefix("it ").filter(|_| !at.is_empty()).unwrap_or(&text))
        }
    };
    let message = match message.strip_prefix("has ") {
        Some(rest) if at.is_empty() && rest.starts_with(UNKNOWN_ARGUMENT) => rest.to_owned(),
        _ => message,
    };
    Problem::new(&at, message)
}

/// The message for a value that fits none of the alternatives at a place of the schema.
fn fits_none(schema: &Value, place: &str) -> String {
    let forms = forms(schema, place);
    match forms.is_empty() {
        true => "fits none of the allowed forms".to_owned(),
        false => format!("must be {}", crate::summary::cut(&forms.join(" or "), FORMS_CHARS)),
    }
}

/// Descriptions of the alternatives at a place in a schema.
///
/// The place is a JSON pointer that may lead through references, which are followed.
fn forms(schema: &Value, place: &str) -> Vec<String> {
    let mut here = schema;
    for step in place.split('/').skip(1) {
        if step == "$ref" {
            here = schema_type::resolve(schema, here);
            continue;
        }
        let step = step.replace("~1", "/").replace("~0", "~");
        let below = here.get(&step).or_else(|| here.get(step.parse::<usize>().ok()?));
        let Some(below) = below else { return Vec::new() };
        here = below;
    }
    let mut forms: Vec<String> = Vec::new();
    let parts = here.as_array().into_iter().flatten().take(MAX_FORMS);
    let parts: Vec<Value> =
        parts.flat_map(|part| choices(schema, part, CHOICE_DEPTH)).take(MAX_FORMS).collect();
    let mut parser = members::MemberParser::new(schema);
    for part in &parts {
        let form = parser.describe(part, Notation::Typed);
        if !forms.contains(&form) {
            forms.push(form);
        }
    }
    forms
}

/// How many levels of nested choices are described.
const CHOICE_DEPTH: usize = 2;

/// The alternatives of a schema that is a choice itself, each combined with what they have
/// in common; otherwise the schema alone.
fn choices(root: &Value, part: &Value, depth: usize) -> Vec<Value> {
    let part = schema_type::resolve(root, part);
    let own = ["anyOf", "oneOf"].into_iter().find(|key| part.get(key).is_some_and(Value::is_array));
    let (Some(key), true) = (own, 0 < depth) else { return vec![part.clone()] };
    let mut common = part.clone();
    let inner = common.as_object_mut().and_then(|members| members.remove(key));
    let is_object = ["properties", "required", "allOf"].iter().any(|key| common.get(key).is_some());
    let inner = inner.as_ref().and_then(Value::as_array).into_iter().flatten().take(MAX_PROBLEMS);
    let inner = inner.flat_map(|one| choices(root, one, depth - 1));
    match is_object {
        true => inner.map(|one| serde_json::json!({"allOf": [&common, one]})).collect(),
        false => inner.collect(),
    }
}

fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => one.to_string(),
        TypeKind::Multiple(many) => {
            many.iter().map(|one| one.to_string()).collect::<Vec<_>>().join(" or ")
        }
    }
}

fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn short(text: &str) -> String {
    crate::summary::cut(text, 160)
}

/// A JSON pointer in the notation of code: `items[0].quantity`.
fn readable_path(pointer: &str) -> String {
    let mut place = String::new();
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        if !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()) {
            place.push_str(&format!("[{part}]"));
        } else {
            if !place.is_empty() {
                place.push('.');
            }
            place.push_str(&part);
        }
    }
    place
}

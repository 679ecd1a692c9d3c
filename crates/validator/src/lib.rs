//! Whether a JSON value fits a JSON Schema, and whether a schema is one.
//!
//! Schemas and values come from strangers, so nothing is ever fetched for a
//! reference and a pattern has bounds of work and size. This is the only crate
//! that uses `jsonschema`: its validators are generic, and every crate that
//! compiled a schema by itself would bring a copy of all of them. It knows
//! nothing of tools.

use serde_json::Value;

pub use jsonschema::error::{TypeKind, ValidationErrorKind};
pub use jsonschema::{Draft, ValidationError};

/// How many steps back the matching of a pattern may take.
const BACKTRACK: usize = 20_000;

/// How many bytes a compiled pattern may have.
const PATTERN: usize = 1 << 20;

/// A schema that is ready to check values.
#[derive(Debug)]
pub struct Validator(jsonschema::Validator);

/// Which rules a schema is read by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Those that its `$schema` names, or the newest.
    Named,
    Is(Draft),
}

impl Validator {
    /// Makes a schema ready, without fetching anything; a reference to anything
    /// outside of it is an error.
    pub fn compile(
        schema: &Value,
        dialect: Dialect,
    ) -> Result<Validator, ValidationError<'static>> {
        let patterns = jsonschema::PatternOptions::fancy_regex()
            .backtrack_limit(BACKTRACK)
            .size_limit(PATTERN);
        let options = match dialect {
            Dialect::Named => jsonschema::options(),
            Dialect::Is(draft) => jsonschema::options().with_draft(draft),
        };
        options.offline().with_pattern_options(patterns).build(schema).map(Validator)
    }

    pub fn is_valid(&self, value: &Value) -> bool {
        self.0.is_valid(value)
    }

    /// Where a value does not fit, at most `most` places.
    pub fn errors<'a>(&'a self, value: &'a Value, most: usize) -> Vec<ValidationError<'a>> {
        self.0.iter_errors(value).take(most).collect()
    }
}

/// Checks whether a schema keeps the rules that its own `$schema` names.
pub fn check_by_its_own_rules(schema: &Value) -> Result<(), ValidationError<'_>> {
    jsonschema::meta::validate(schema)
}

/// Checks whether a schema keeps the newest rules.
pub fn check_by_newest_rules(schema: &Value) -> Result<(), ValidationError<'_>> {
    jsonschema::draft202012::meta::validate(schema)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_is_fetched_for_a_reference() {
        for elsewhere in ["https://example.com/schema.json", "file:///etc/passwd", "other.json"] {
            let schema = json!({ "$ref": elsewhere });
            assert!(Validator::compile(&schema, Dialect::Named).is_err(), "{elsewhere}");
        }
    }

    #[test]
    fn a_pattern_that_would_run_for_ever_ends() {
        let schema = json!({ "type": "string", "pattern": "^(a+)+(?!x)$" });
        let validator = Validator::compile(&schema, Dialect::Named).unwrap();
        assert!(!validator.is_valid(&json!(format!("{}!", "a".repeat(60)))));
    }

    #[test]
    fn a_pattern_that_would_fill_the_memory_is_refused() {
        let schema = json!({ "type": "string", "pattern": r"(?:\w{1000}){1000}" });
        assert!(Validator::compile(&schema, Dialect::Named).is_err());
    }

    #[test]
    fn at_most_so_many_errors_are_told() {
        let schema = json!({ "items": { "type": "string" } });
        let validator = Validator::compile(&schema, Dialect::Named).unwrap();
        let value = json!([1, 2, 3, 4]);
        assert_eq!(validator.errors(&value, 3).len(), 3);
        assert_eq!(validator.errors(&value, 9).len(), 4);
        assert!(validator.errors(&json!(["a"]), 9).is_empty());
    }

    #[test]
    fn a_dialect_that_is_given_wins_over_none() {
        // An exclusive minimum was a boolean in draft 4.
        let schema = json!({ "minimum": 1, "exclusiveMinimum": true });
        assert!(Validator::compile(&schema, Dialect::Is(Draft::Draft4)).is_ok());
        assert!(Validator::compile(&schema, Dialect::Is(Draft::Draft202012)).is_err());
    }
}

//! Validates JSON values against JSON Schemas, and schemas against their own rules.
//!
//! Schemas and values are untrusted, so references are never fetched, and the work and
//! size of patterns are bounded. This is the only crate that uses `jsonschema`: its
//! validators are generic, and every crate that used it directly would compile a copy of
//! all of them. It does not know tools.

use serde_json::Value;

pub use jsonschema::error::{TypeKind, ValidationErrorKind};
pub use jsonschema::{Draft, ValidationError};

/// The most backtracking steps of a pattern.
const MAX_BACKTRACKING: usize = 20_000;

/// The most bytes of a compiled pattern.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// A compiled schema that checks values.
#[derive(Debug)]
pub struct Validator(jsonschema::Validator);

/// The version of JSON Schema by which a schema is interpreted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// The version that its `$schema` names, or else the newest.
    Declared,
    /// This version, whatever the schema says.
    Fixed(Draft),
}

impl Validator {
    /// Compiles a schema without fetching anything; a reference to another document is an
    /// error.
    pub fn compile(
        schema: &Value,
        dialect: Dialect,
    ) -> Result<Validator, ValidationError<'static>> {
        let patterns = jsonschema::PatternOptions::fancy_regex()
            .backtrack_limit(MAX_BACKTRACKING)
            .size_limit(MAX_PATTERN_BYTES);
        let options = match dialect {
            Dialect::Declared => jsonschema::options(),
            Dialect::Fixed(draft) => jsonschema::options().with_draft(draft),
        };
        options.offline().with_pattern_options(patterns).build(schema).map(Validator)
    }

    pub fn is_valid(&self, value: &Value) -> bool {
        self.0.is_valid(value)
    }

    /// The first `most` errors of a value.
    pub fn errors<'a>(&'a self, value: &'a Value, most: usize) -> Vec<ValidationError<'a>> {
        self.0.iter_errors(value).take(most).collect()
    }
}

/// Validates a schema against the version that its own `$schema` names.
pub fn check_by_its_own_rules(schema: &Value) -> Result<(), ValidationError<'_>> {
    jsonschema::meta::validate(schema)
}

/// Validates a schema against the newest version.
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
            assert!(Validator::compile(&schema, Dialect::Declared).is_err(), "{elsewhere}");
        }
    }

    #[test]
    fn a_pattern_that_would_run_for_ever_ends() {
        let schema = json!({ "type": "string", "pattern": "^(a+)+(?!x)$" });
        let validator = Validator::compile(&schema, Dialect::Declared).unwrap();
        assert!(!validator.is_valid(&json!(format!("{}!", "a".repeat(60)))));
    }

    #[test]
    fn a_pattern_that_would_fill_the_memory_is_refused() {
        let schema = json!({ "type": "string", "pattern": r"(?:\w{1000}){1000}" });
        assert!(Validator::compile(&schema, Dialect::Declared).is_err());
    }

    #[test]
    fn at_most_so_many_errors_are_told() {
        let schema = json!({ "items": { "type": "string" } });
        let validator = Validator::compile(&schema, Dialect::Declared).unwrap();
        let value = json!([1, 2, 3, 4]);
        assert_eq!(validator.errors(&value, 3).len(), 3);
        assert_eq!(validator.errors(&value, 9).len(), 4);
        assert!(validator.errors(&json!(["a"]), 9).is_empty());
    }

    #[test]
    fn a_dialect_that_is_given_wins_over_none() {
        // An exclusive minimum was a boolean in draft 4.
        let schema = json!({ "minimum": 1, "exclusiveMinimum": true });
        assert!(Validator::compile(&schema, Dialect::Fixed(Draft::Draft4)).is_ok());
        assert!(Validator::compile(&schema, Dialect::Fixed(Draft::Draft202012)).is_err());
    }
}

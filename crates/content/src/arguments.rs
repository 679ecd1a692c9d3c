//! Parses the arguments of the tools into queries, strictly as the contract says.
//!
//! There are two steps. First *rules* check presence and type of every argument, and
//! all failures are reported together. Then the parser of each tool checks what the
//! arguments mean, and stops at the first error. Invalid arguments never reach SQL.

mod coerce;
mod rules;
mod terms;
mod variables;

pub(crate) mod documents;
pub(crate) mod records;

use serde_json::Value;

pub(crate) use rules::{ArgumentType, Presence, Rule, check};

use crate::config::Limits;
use crate::query::Page;

/// Why arguments are refused; the message is worded by the contract.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct InvalidArguments(pub(crate) String);

/// The longest text that is compared with anything in the database. Longer texts
/// match nothing on a real site, and engines limit their patterns.
pub(crate) const MAX_TEXT: usize = 10_000;

/// The arguments object of one call, which passed the rules.
pub(crate) struct Arguments<'a>(&'a Value);

impl<'a> Arguments<'a> {
    /// Checks the rules and returns all failures in one message.
    pub(crate) fn parse(
        value: &'a Value,
        rules: &[Rule],
    ) -> Result<Arguments<'a>, InvalidArguments> {
        let failures = check(rules, value);
        if failures.is_empty() {
            Ok(Arguments(value))
        } else {
            Err(InvalidArguments(failures.join(" ")))
        }
    }

    /// Returns an argument, unless it is missing, null or blank text.
    pub(crate) fn get(&self, key: &str) -> Option<&'a Value> {
        self.0.get(key).filter(|value| !coerce::is_blank(value))
    }

    /// Returns an argument, unless it is missing or null. Blank text passes the rules
    /// and is not the same as a missing argument.
    fn given(&self, key: &str) -> Option<&'a Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    /// Returns an integer; blank text is zero, which most arguments refuse.
    pub(crate) fn integer(&self, key: &str) -> Option<i64> {
        let value = self.given(key)?;
        if coerce::is_blank(value) { Some(0) } else { coerce::integer(value) }
    }

    /// Returns a flag; blank text is `false`.
    pub(crate) fn flag(&self, key: &str) -> Option<bool> {
        let value = self.given(key)?;
        if coerce::is_blank(value) { Some(false) } else { coerce::flag(value) }
    }

    pub(crate) fn text(&self, key: &str) -> Option<&'a str> {
        self.given(key).and_then(Value::as_str)
    }

    /// Returns an integer that must be there, which the rules have checked already.
    pub(crate) fn required_integer(&self, key: &str) -> Result<i64, InvalidArguments> {
        self.integer(key).ok_or_else(|| InvalidArguments(format!("The {key} field is required.")))
    }

    /// Returns `limit` and `offset`, each checked against its maximum.
    pub(crate) fn page(&self, max_limit: i64, max_offset: i64) -> Result<Page, InvalidArguments> {
        let limit = self.required_integer("limit")?;
        require_between("limit", limit, 1, max_limit)?;
        let offset = self.integer("offset").unwrap_or(0);
        require_between("offset", offset, 0, max_offset)?;
        Ok(Page { limit, offset })
    }

    /// Returns `depth`, checked against its maximum.
    pub(crate) fn depth(&self, limits: &Limits) -> Result<Option<i64>, InvalidArguments> {
        let depth = self.integer("depth");
        if let Some(depth) = depth {
            require_between("depth", depth, 1, limits.max_depth)?;
        }
        Ok(depth)
    }
}

/// Checks that a number is in a range.
fn require_between(name: &str, number: i64, min: i64, max: i64) -> Result<(), InvalidArguments> {
    if (min..=max).contains(&number) {
        return Ok(());
    }
    Err(InvalidArguments(format!("{name} must be between {min} and {max}.")))
}

#[cfg(test)]
mod tests;

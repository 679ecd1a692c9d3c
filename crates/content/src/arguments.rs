//! Parses the arguments of the tools, strictly.
//!
//! The contract has two families of messages. *Rules* look at the shape of
//! every argument and all their failures are reported together; *tool
//! messages* look at what the arguments mean and stop at the first. Nothing
//! that fails here reaches SQL.

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

/// Why arguments are refused, in the words of the contract.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct InvalidArguments(pub(crate) String);

/// The longest text that is compared with anything in the database. Longer texts
/// match nothing on a real site, and engines limit their patterns.
pub(crate) const MAX_TEXT: usize = 10_000;

/// The arguments of one call that passed the rules.
pub(crate) struct Arguments<'a>(&'a Value);

impl<'a> Arguments<'a> {
    /// Applies the rules; all failures come back in one message.
    pub(crate) fn read(
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

    /// An argument with a value: not missing, not null, not blank.
    pub(crate) fn get(&self, key: &str) -> Option<&'a Value> {
        self.0.get(key).filter(|value| !coerce::is_blank(value))
    }

    /// An argument that was given at all. Blank text passes the rules, and is
    /// then nothing of the kind that was asked for: not an absent argument.
    fn given(&self, key: &str) -> Option<&'a Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    /// An integer; blank text is zero, which most arguments refuse.
    pub(crate) fn integer(&self, key: &str) -> Option<i64> {
        let value = self.given(key)?;
        if coerce::is_blank(value) { Some(0) } else { coerce::integer(value) }
    }

    /// A flag; blank text is `false`.
    pub(crate) fn flag(&self, key: &str) -> Option<bool> {
        let value = self.given(key)?;
        if coerce::is_blank(value) { Some(false) } else { coerce::flag(value) }
    }

    pub(crate) fn text(&self, key: &str) -> Option<&'a str> {
        self.given(key).and_then(Value::as_str)
    }

    /// An integer that the rules have required already.
    pub(crate) fn required(&self, key: &str) -> Result<i64, InvalidArguments> {
        self.integer(key).ok_or_else(|| InvalidArguments(format!("The {key} field is required.")))
    }

    pub(crate) fn page(&self, max_limit: i64, max_offset: i64) -> Result<Page, InvalidArguments> {
        let limit = self.required("limit")?;
        between("limit", limit, 1, max_limit)?;
        let offset = self.integer("offset").unwrap_or(0);
        between("offset", offset, 0, max_offset)?;
        Ok(Page { limit, offset })
    }

    pub(crate) fn depth(&self, limits: &Limits) -> Result<Option<i64>, InvalidArguments> {
        let depth = self.integer("depth");
        if let Some(depth) = depth {
            between("depth", depth, 1, limits.max_depth)?;
        }
        Ok(depth)
    }
}

/// `Ok` when the number is in the range, the contract's words otherwise.
fn between(name: &str, number: i64, least: i64, most: i64) -> Result<(), InvalidArguments> {
    if (least..=most).contains(&number) {
        return Ok(());
    }
    Err(InvalidArguments(format!("{name} must be between {least} and {most}.")))
}

#[cfg(test)]
mod tests;

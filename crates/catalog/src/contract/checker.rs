//! A compiled schema that validates arguments.

use serde_json::Value;
use tool::Json;
use validator::{Dialect, Validator};

use super::cost::{self, Cost};

/// A compiled schema.
#[derive(Debug)]
pub(super) struct Checker {
    /// `None` where compiling or validating would take too much work.
    pub(super) validator: Option<Validator>,
    pub(super) cost: Cost,
}

impl Checker {
    /// Compiles without fetching anything; a remote reference is an error.
    pub(super) fn compile(schema: &Json) -> Result<Checker, String> {
        let mut value = schema.to_value().map_err(|error| error.to_string())?;
        // An unknown dialect is treated as the newest one.
        let is_known = |dialect: &Value| {
            dialect.as_str().is_some_and(|dialect| dialect.contains("://json-schema.org/"))
        };
        if let Some(members) = value.as_object_mut()
            && members.get("$schema").is_some_and(|dialect| !is_known(dialect))
        {
            members.remove("$schema");
        }
        let Ok(cost) = cost::measure(&value) else {
            return Ok(Checker { validator: None, cost: Cost::Depends });
        };
        Validator::compile(&value, Dialect::Declared)
            .map(|validator| Checker { validator: Some(validator), cost })
            .map_err(|error| error.masked().to_string())
    }
}

//! `[console]`: the console in the browser.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The console in the browser, where gatelet serves over HTTP.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Console")]
pub(crate) struct Raw {
    /// Whether it is served at `/console`. On when left out; nobody gets in without logging in.
    enabled: Option<bool>,
}

pub(crate) fn parse(raw: &Raw) -> bool {
    raw.enabled.unwrap_or(true)
}

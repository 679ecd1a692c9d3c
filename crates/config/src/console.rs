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
    /// Whether arguments and answers of the last calls can be looked at; they are kept in memory only. Off when left out.
    payloads: Option<bool>,
}

/// The validated `[console]` section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Console {
    /// Whether it is served.
    pub enabled: bool,
    /// Whether arguments and answers of the last calls are kept in memory and shown.
    pub payloads: bool,
}

pub(crate) fn parse(raw: &Raw) -> Console {
    Console { enabled: raw.enabled.unwrap_or(true), payloads: raw.payloads.unwrap_or(false) }
}

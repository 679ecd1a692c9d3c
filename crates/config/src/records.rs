//! `[records]`: one line per call, for `gatelet stats`.

use std::path::{Path as FilePath, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::text::Environment;

/// One line of JSON per call: names, sizes and how it ended, never what was said.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Records")]
pub(crate) struct Raw {
    /// The file that records are appended to, relative to this file. No records when left out.
    file: Option<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Records {
    pub file: Option<PathBuf>,
}

pub(crate) fn parse(raw: Raw, base: &FilePath, environment: &dyn Environment) -> Records {
    Records { file: raw.file.map(|file| super::text::place(file, base, environment)) }
}

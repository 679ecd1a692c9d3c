//! `[skills]`: instructions that a model can ask for.

use std::path::{Path as FilePath, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::text::{self, Environment};

/// Instructions that a model can ask for.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Skills")]
pub(crate) struct Raw {
    /// Directories of skills: each holds directories with a `SKILL.md`, relative to this file.
    #[serde(default)]
    directories: Vec<PathBuf>,
}

/// The validated `[skills]` section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skills {
    /// Directories that hold directories with a `SKILL.md`.
    pub directories: Vec<PathBuf>,
}

pub(crate) fn parse(raw: Raw, base: &FilePath, environment: &dyn Environment) -> Skills {
    let absolute = |path| text::resolve_path(path, base, environment);
    Skills { directories: raw.directories.into_iter().map(absolute).collect() }
}

//! `[records]`: the file to which every call is logged as one line of JSON.

use std::path::{Path as FilePath, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::text::{self, Environment};

/// One line of JSON per call: names, sizes and how it ended, never what was said.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Records")]
pub(crate) struct Raw {
    /// The file that records are appended to, relative to this file. No records when left out.
    file: Option<PathBuf>,
    /// When the file is larger, it is put aside under a name with the time, and another is begun. 100 when
    /// left out.
    #[schemars(range(min = 1, max = 100000))]
    rotate_megabytes: Option<u64>,
    /// How many days files that were put aside are kept. For ever when left out.
    #[schemars(range(min = 1, max = 36500))]
    keep_days: Option<u64>,
}

/// The validated `[records]` section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Records {
    /// No records are written when `None`.
    pub file: Option<PathBuf>,
    /// The size at which the file is rotated.
    pub rotate_bytes: u64,
    /// How long rotated files are kept; for ever when `None`.
    pub keep: Option<Duration>,
}

pub(crate) fn parse(raw: Raw, base: &FilePath, environment: &dyn Environment) -> Records {
    Records {
        file: raw.file.map(|file| text::resolve_path(file, base, environment)),
        rotate_bytes: raw.rotate_megabytes.unwrap_or(100) << 20,
        keep: raw.keep_days.map(|days| Duration::from_secs(days * 24 * 60 * 60)),
    }
}

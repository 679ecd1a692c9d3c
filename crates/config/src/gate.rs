//! `[gate]`: the size limit above which an answer is stored and summarised.

use document::tree::Path;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::problem::Problems;

/// How much of an answer a model reads at once.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Gate")]
pub(crate) struct Raw {
    /// Answers over this many characters are kept and summarised. 10000 when left out.
    #[schemars(range(min = 1))]
    limit: Option<usize>,
    /// No `sizelimit` of a caller lets more characters than this through. No ceiling when left out.
    #[schemars(range(min = 1))]
    ceiling: Option<usize>,
    /// Whether a summarised answer is marked as an error, as a strict reading of CaSH has it.
    gated_is_error: Option<bool>,
    /// What goes out of an answer whose text is the JSON of its structured content: `text` when
    /// left out, `structured` for hosts that read only that, or `both`. `direct` always sends both.
    same_data: Option<SameData>,
}

/// What goes out of an answer whose text is the JSON of its structured content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SameData {
    #[default]
    Text,
    Structured,
    Both,
}

/// The validated `[gate]` section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gate {
    /// Answers over this many characters are stored and summarised.
    pub limit: usize,
    /// The most characters that a caller's `sizelimit` lets through.
    pub ceiling: Option<usize>,
    /// Whether a summarised answer is marked as an error.
    pub gated_is_error: bool,
    /// What goes out of an answer whose text is the JSON of its structured content.
    pub same_data: SameData,
}

pub(crate) fn parse(raw: &Raw, problems: &mut Problems) -> Gate {
    if let (Some(limit), Some(ceiling)) = (raw.limit, raw.ceiling)
        && ceiling < limit
    {
        let path = Path::default().key("gate").key("limit");
        let hint = "raise `ceiling`, or lower `limit`";
        problems.error(&path, format!("is above the ceiling of {ceiling}"), Some(hint));
    }
    Gate {
        limit: raw.limit.unwrap_or(10_000),
        ceiling: raw.ceiling,
        gated_is_error: raw.gated_is_error.unwrap_or(false),
        same_data: raw.same_data.unwrap_or_default(),
    }
}

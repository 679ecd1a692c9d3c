//! `[search]`: whether searches for functions compare the meaning of words.

use catalog::index::Meaning;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How functions are found.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Search")]
pub(crate) struct Raw {
    /// Compare what a query and a function mean, by the table inside the program, besides
    /// their words. On unless switched off; words alone find less and cost a little less.
    #[serde(default = "on")]
    meaning: bool,
}

impl Default for Raw {
    fn default() -> Raw {
        Raw { meaning: on() }
    }
}

fn on() -> bool {
    true
}

pub(crate) fn parse(raw: &Raw) -> Meaning {
    if raw.meaning { Meaning::Compared } else { Meaning::Ignored }
}

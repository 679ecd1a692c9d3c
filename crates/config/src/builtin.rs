//! `[builtin]`: the tools that come with gatelet.

use document::tree::Path;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::problem::Problems;
use ::builtin::{LABELS, labels_beside};

/// The tools that come with gatelet: time, text, JSON, units, memory.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Builtin")]
pub(crate) struct Raw {
    /// Whether they are offered beside the upstreams. Off when left out.
    tools: Option<bool>,
}

/// Returns whether the built-in tools are on; `labels` are the labels of all upstreams. An
/// upstream with the label of a built-in namespace is a warning.
pub(crate) fn parse(raw: &Raw, labels: &[&str], problems: &mut Problems) -> bool {
    let is_on = raw.tools.unwrap_or(false);
    let own = LABELS.iter().map(|(label, _)| *label).filter(|_| is_on);
    for (own, called) in
        own.zip(labels_beside(labels.iter().copied())).filter(|(own, called)| own != called)
    {
        let message = format!(
            "an upstream is called `{own}`, so the built-in namespace of that name is `{called}` here; \
             rules for `{own}` are about the upstream"
        );
        problems.warning(&Path::default().key("builtin").key("tools"), message, None);
    }
    is_on
}

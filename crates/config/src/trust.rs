//! `[trust]`: how strict gatelet is with tools that change or destroy.

use std::collections::BTreeMap;

use document::tree::Path;
use policy::pattern::Pattern;
use policy::trust::{self, Danger, Policy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::approvals::Confirm;
use super::controls::check_label;
use super::problem::Problems;

/// How strict gatelet is with tools that change behind our back or destroy something.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Trust")]
pub(crate) struct Raw {
    /// For every upstream. `warn` when left out: what says that it destroys asks first.
    mode: Option<Strictness>,
    /// For single upstreams, by label.
    #[serde(default)]
    upstreams: BTreeMap<String, Strictness>,
    /// What tools do, whatever they say themselves: the first rule that fits counts.
    #[serde(default)]
    rule: Vec<Rule>,
    /// How a call is confirmed whose client cannot ask its user. `queue` when left out: somebody decides outside of the conversation.
    pub(super) confirm: Option<Confirm>,
}

/// How strict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Mode")]
enum Strictness {
    /// No questions
    Off,
    /// What changed passes with a warning; what says that it destroys asks
    Warn,
    /// What changed does not pass; what may destroy asks
    Enforce,
}

/// What some tools do.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Rule {
    /// `files:write_file`, `files.write_file` or `write_file`; `*` and `?` work.
    tool: String,
    /// Whether it may delete or overwrite something.
    destructive: bool,
}

/// Parses the section; `labels` are the labels of all upstreams.
pub(crate) fn parse(raw: Raw, labels: &[&str], problems: &mut Problems) -> trust::Config {
    let path = Path::default().key("trust").key("upstreams");
    for label in raw.upstreams.keys() {
        check_label(label, labels, &path.key(label), problems);
    }
    let rule = |rule: &Rule| {
        let danger = if rule.destructive { Danger::Destructive } else { Danger::Safe };
        (Pattern::new(&rule.tool), danger)
    };
    trust::Config {
        policy: raw.mode.map_or(Policy::Warn, Strictness::to_policy),
        upstreams: raw
            .upstreams
            .into_iter()
            .map(|(label, mode)| (label, mode.to_policy()))
            .collect(),
        rules: raw.rule.iter().map(rule).collect(),
        ..trust::Config::default()
    }
}

impl Strictness {
    fn to_policy(self) -> Policy {
        match self {
            Strictness::Off => Policy::Off,
            Strictness::Warn => Policy::Warn,
            Strictness::Enforce => Policy::Enforce,
        }
    }
}

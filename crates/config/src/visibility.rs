//! `[visibility]`: which callers see which tools, skills, resources and prompts.

use document::tree::Path;
use policy::visibility::{self, CallerPattern, DefaultVisibility, ItemPattern};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::problem::Problems;

/// Who sees what. What a caller does not see does not exist for them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Visibility")]
pub(crate) struct Raw {
    /// What no rule speaks of: `show` (when left out) or `hide`.
    default: Option<RawVisibility>,
    /// The first rule that speaks of both the caller and the thing decides.
    #[serde(default)]
    rule: Vec<RawRule>,
}

/// What some callers see, and what they do not.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "VisibilityRule")]
pub(crate) struct RawRule {
    /// Whom it concerns: `role:…`, `scope:…`, `group:…`, `key:…`, `cert:…`, `subject:…`,
    /// `anonymous`, `*`; everybody when left out.
    #[serde(default)]
    callers: Vec<String>,
    /// What they see: `orders`, `orders.list_*`, `function:…`, `skill:…`, `resource:…`, `prompt:…`.
    #[serde(default)]
    show: Vec<String>,
    /// What they do not see, unless it is in `show`.
    #[serde(default)]
    hide: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "VisibilityDefault")]
enum RawVisibility {
    Show,
    Hide,
}

pub(crate) fn parse(raw: &Raw, problems: &mut Problems) -> visibility::Config {
    let path = Path::default().key("visibility").key("rule");
    let rules = raw.rule.iter().enumerate().map(|(at, raw)| rule(raw, &path.index(at), problems));
    let rules = rules.collect();
    let default = match raw.default {
        Some(RawVisibility::Hide) => DefaultVisibility::Hidden,
        Some(RawVisibility::Show) | None => DefaultVisibility::Shown,
    };
    visibility::Config { default, rules }
}

fn rule(raw: &RawRule, path: &Path, problems: &mut Problems) -> visibility::Rule {
    if raw.show.is_empty() && raw.hide.is_empty() {
        let hint = "hide = [\"billing\"]";
        problems.error(path, "a rule needs `show` or `hide`", Some(hint));
    }
    let callers =
        parse_list(&raw.callers, &path.key("callers"), problems, str::parse::<CallerPattern>);
    let show = parse_list(&raw.show, &path.key("show"), problems, str::parse::<ItemPattern>);
    let hide = parse_list(&raw.hide, &path.key("hide"), problems, str::parse::<ItemPattern>);
    visibility::Rule { callers, show, hide }
}

fn parse_list<T>(
    raw: &[String],
    path: &Path,
    problems: &mut Problems,
    parser: impl Fn(&str) -> Result<T, visibility::InvalidPattern>,
) -> Vec<T> {
    let item = |(at, text): (usize, &String)| problems.parse(&path.index(at), text, &parser);
    raw.iter().enumerate().filter_map(item).collect()
}

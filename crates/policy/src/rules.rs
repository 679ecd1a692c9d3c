//! Rules that allow, deny or ask before a call.
//!
//! The first rule that fits decides; where none fits, the default does.

use catalog::Catalog;
use tool::Context;

use crate::admission::{Admission, Check};
use crate::call::{Completed, SubscriptionChange, What};
use crate::pattern::{Breadth, Named, Pattern, Shown};
use crate::question::Question;
use crate::refusal::{Refusal, Refused};
use crate::validate::ValidCall;
use artifacts::Artifact;

/// The operator's rules. Everything is allowed by default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub default: Action,
    pub rules: Vec<Rule>,
}

/// What a rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Allow,
    Deny,
    /// The user has to agree first.
    Ask,
}

/// One rule. What is `None` or empty fits everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub action: Action,
    /// `tool_execute`, `tool_view`, `resource_read`, `prompt_get`.
    pub meta_tool: Option<String>,
    pub namespace: Option<Pattern>,
    /// Tried on the id and on the upstream's name of the tool.
    pub tool: Option<Pattern>,
    /// All of these must be there.
    pub tags: Vec<String>,
    pub read_only: Option<bool>,
    /// What to tell who is refused.
    pub reason: Option<String>,
}

/// What is to be judged.
#[derive(Clone, Debug)]
pub struct Subject<'a> {
    pub meta_tool: &'a str,
    /// Another word whose rules hold as well.
    pub ruled_as: Option<&'a str>,
    pub id: &'a str,
    pub namespace: &'a str,
    /// The upstream's own name for the tool.
    pub name: &'a str,
    pub shown: Shown<'a>,
    pub read_only: bool,
    pub tags: Vec<&'a str>,
}

/// What the rules say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub action: Action,
    pub reason: String,
    /// The position of the rule that decided; `None` for the default.
    pub rule: Option<usize>,
}

impl Default for Config {
    fn default() -> Config {
        Config { default: Action::Allow, rules: Vec::new() }
    }
}

impl Config {
    pub fn decide(&self, subject: &Subject<'_>) -> Decision {
        let found = self.rules.iter().enumerate().find(|(_, rule)| rule.fits(subject));
        match found {
            Some((at, rule)) => {
                let word = rule.action.as_str();
                let reason = rule.reason.clone();
                let reason = reason.unwrap_or_else(|| format!("matched rule #{at} ({word})"));
                Decision { action: rule.action, reason, rule: Some(at) }
            }
            None => {
                let reason = format!("default ({})", self.default.as_str());
                Decision { action: self.default, reason, rule: None }
            }
        }
    }
}

impl Action {
    pub fn as_str(self) -> &'static str {
        match self {
            Action::Allow => "allow",
            Action::Deny => "deny",
            Action::Ask => "require_approval",
        }
    }
}

impl Rule {
    /// A rule that fits everything.
    pub fn any(action: Action) -> Rule {
        Rule {
            action,
            meta_tool: None,
            namespace: None,
            tool: None,
            tags: Vec::new(),
            read_only: None,
            reason: None,
        }
    }

    fn fits(&self, subject: &Subject<'_>) -> bool {
        let words = [Some(subject.meta_tool), subject.ruled_as];
        self.meta_tool.as_ref().is_none_or(|name| words.contains(&Some(name)))
            && self.namespace.as_ref().is_none_or(|pattern| {
                let breadth = match self.action {
                    Action::Allow => Breadth::Exact,
                    Action::Deny | Action::Ask => Breadth::Wide,
                };
                pattern.names_namespace(subject.namespace, subject.name, breadth)
            })
            && self.tool.as_ref().is_none_or(|pattern| {
                let Subject { id, namespace: upstream, name, shown, .. } = *subject;
                let named = Named { id, upstream, name, shown };
                match self.action {
                    Action::Allow => pattern.means(named),
                    Action::Deny | Action::Ask => pattern.may_mean(named),
                }
            })
            && self.tags.iter().all(|tag| subject.tags.contains(&tag.as_str()))
            && self.read_only.is_none_or(|read_only| read_only == subject.read_only)
    }
}

/// The rules as a check of calls.
pub struct Rules {
    config: Config,
}

/// What rules call a view of something kept.
pub const VIEW: &str = "tool_view";

impl Rules {
    pub fn new(config: Config) -> Rules {
        Rules { config }
    }

    fn judge(&self, call: &ValidCall) -> Result<Admission, Refusal> {
        if let What::Subscription { change: SubscriptionChange::End, .. } = call.what {
            // Rules may have become stricter since it began.
            return Ok(Admission::Free);
        }
        let read_only = call.annotations.read_only == Some(true);
        let mut tags = vec!["mcp"];
        tags.extend(match call.what {
            What::Tool(_) | What::Task { .. } | What::Help { .. } => None,
            What::Resource { .. }
            | What::Subscription { .. }
            | What::Completion { of: Completed::Resource(_), .. } => Some("resource"),
            What::Prompt { .. } | What::Completion { of: Completed::Prompt(_), .. } => {
                Some("prompt")
            }
            What::Skill { .. } => Some("skill"),
        });
        tags.extend(read_only.then_some("read-only"));
        tags.extend((call.annotations.destructive == Some(true)).then_some("destructive"));
        let subject = Subject {
            meta_tool: call.meta_tool(),
            ruled_as: call.what.ruled_as(),
            id: &call.callee.id,
            namespace: &call.callee.upstream,
            name: &call.callee.tool,
            shown: call.callee.shown(),
            read_only,
            tags,
        };
        let admission = admission(self.config.decide(&subject), &subject)?;
        // Whoever agreed to a call agreed to what it began, and nobody need
        // agree to being told how a function is called.
        Ok(if call.what.is_aside() { Admission::Free } else { admission })
    }

    /// What is kept is there because its call was admitted, so nobody is asked
    /// again unless a rule is about viewing.
    fn judge_view(&self, kept: &Artifact) -> Result<Admission, Refusal> {
        let subject = Subject {
            meta_tool: VIEW,
            ruled_as: None,
            id: &kept.id,
            namespace: &kept.upstream,
            name: &kept.tool,
            // Its call was allowed, whatever else is spelled like it.
            shown: Shown::AsNamed,
            read_only: true,
            tags: vec!["mcp", "read-only"],
        };
        let decision = self.config.decide(&subject);
        let rule = decision.rule.map(|at| &self.config.rules[at]);
        let is_about_viewing = rule.is_some_and(|rule| rule.meta_tool.is_some());
        match decision.action {
            Action::Ask if !is_about_viewing => Ok(Admission::Free),
            Action::Ask | Action::Allow | Action::Deny => admission(decision, &subject),
        }
    }
}

/// A decision in the words of the pipeline.
fn admission(decision: Decision, subject: &Subject<'_>) -> Result<Admission, Refusal> {
    let Decision { action, reason, .. } = decision;
    let (meta_tool, id) = (subject.meta_tool, subject.id);
    match action {
        Action::Allow => Ok(Admission::Free),
        Action::Ask => {
            let text = format!("{meta_tool} for '{id}' requires approval: {reason}");
            Ok(Admission::Ask(Question { text, ended_by_trust: false }))
        }
        Action::Deny => {
            let message = format!("policy denied {meta_tool} for '{id}': {reason}");
            Err(Refusal { code: Refused::Denied, message, retry_after: None })
        }
    }
}

impl Check for Rules {
    fn admit(&self, _: &Catalog, call: &ValidCall, _: &Context) -> Result<Admission, Refusal> {
        self.judge(call)
    }

    fn admit_view(&self, kept: &Artifact) -> Result<Admission, Refusal> {
        self.judge_view(kept)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn text(value: &Value) -> Option<String> {
        value.as_str().map(str::to_owned)
    }

    fn action(value: &Value) -> Action {
        match value.as_str().unwrap() {
            "allow" => Action::Allow,
            "deny" => Action::Deny,
            _ => Action::Ask,
        }
    }

    #[test]
    fn decisions_are_those_of_the_vectors() {
        let vectors = include_str!("../tests/vectors/contextweaver_controls.json");
        let vectors: Value = serde_json::from_str(vectors).unwrap();
        let written = &vectors["policy_config"];
        let rule = |rule: &Value| Rule {
            action: action(&rule["action"]),
            meta_tool: text(&rule["meta_tool"]),
            namespace: text(&rule["namespace"]).map(|text| Pattern::new(&text)),
            tool: text(&rule["tool"]).map(|text| Pattern::new(&text)),
            tags: rule["tags"].as_array().into_iter().flatten().filter_map(text).collect(),
            read_only: rule["read_only"].as_bool(),
            reason: text(&rule["reason"]),
        };
        let config = Config {
            default: action(&written["default"]),
            rules: written["rules"].as_array().unwrap().iter().map(rule).collect(),
        };
        for case in vectors["policy_decisions"].as_array().unwrap() {
            let context = &case["ctx"];
            let own = |key: &str| context[key].as_str().unwrap();
            let subject = Subject {
                ruled_as: None,
                shown: Shown::AsNamed,
                meta_tool: own("meta_tool"),
                id: own("tool_id"),
                namespace: own("namespace"),
                name: own("tool_name"),
                read_only: context["read_only"] == true,
                tags: context["tags"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .filter_map(Value::as_str)
                    .collect(),
            };
            let decision = config.decide(&subject);
            assert_eq!(decision.action, action(&case["action"]), "{case}");
            assert_eq!(decision.reason, case["reason"]);
            assert_eq!(decision.rule.map(|at| at as u64), case["rule_index"].as_u64());
            // What nobody has agreed to is refused by whoever asks for it.
            let (code, message) = match admission(decision, &subject) {
                Ok(Admission::Free) => (Value::Null, Value::Null),
                Ok(Admission::Ask(question)) => ("AUTH_REQUIRED".into(), question.text.into()),
                Err(refusal) => {
                    (serde_json::to_value(refusal.code.code()).unwrap(), refusal.message.into())
                }
            };
            assert_eq!((&code, &message), (&case["error"]["error"], &case["error"]["message"]));
        }
    }

    #[test]
    fn without_rules_everything_is_allowed() {
        let subject = Subject {
            ruled_as: None,
            shown: Shown::AsNamed,
            meta_tool: "tool_execute",
            id: "a:b#1",
            namespace: "a",
            name: "b",
            read_only: false,
            tags: vec![],
        };
        assert_eq!(Config::default().decide(&subject).action, Action::Allow);
    }
}

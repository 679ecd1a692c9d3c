//! Rules that allow, deny or ask before a call.
//!
//! The first rule that fits decides; where none fits, the default does.

use catalog::Catalog;
use tool::Context;

use crate::admission::{Admission, Check};
use crate::call::{CompletionSubject, SubscriptionChange, TargetKind};
use crate::pattern::{Breadth, ExposedNameRef, Names, Pattern};
use crate::question::Question;
use crate::refusal::{Refusal, RefusalCode};
use crate::validate::ValidCall;
use artifacts::Artifact;

/// The operator's rules. Everything is allowed by default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub default: Action,
    pub rules: Vec<Rule>,
}

/// What a rule does with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Allow,
    Deny,
    /// The user has to agree first.
    Ask,
}

/// One rule. A field that is `None` or empty matches everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub action: Action,
    /// `tool_execute`, `tool_view`, `resource_read`, `prompt_get`.
    pub meta_tool: Option<String>,
    pub namespace: Option<Pattern>,
    /// Compared with the tool's id and with the upstream's name for it.
    pub tool: Option<Pattern>,
    /// The call must have all of these tags: `mcp`, `resource`, `prompt`, `skill`,
    /// `read-only`, `destructive`.
    pub tags: Vec<String>,
    pub read_only: Option<bool>,
    /// The reason that a refused caller is given.
    pub reason: Option<String>,
}

/// The properties of a call that rules are compared with.
#[derive(Clone, Debug)]
pub struct Subject<'a> {
    pub meta_tool: &'a str,
    /// A second meta-tool whose rules apply as well.
    pub ruled_as: Option<&'a str>,
    pub id: &'a str,
    pub namespace: &'a str,
    /// The upstream's own name for the tool.
    pub name: &'a str,
    pub exposed: ExposedNameRef<'a>,
    pub read_only: bool,
    pub tags: Vec<&'a str>,
}

/// The decision of the rules about one call.
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
    /// A rule that matches everything.
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
                pattern.matches_namespace(subject.namespace, subject.name, breadth)
            })
            && self.tool.as_ref().is_none_or(|pattern| {
                let Subject { id, namespace: upstream, name, exposed, .. } = *subject;
                let names = Names { id, upstream, name, exposed };
                match self.action {
                    Action::Allow => pattern.matches_exactly(names),
                    Action::Deny | Action::Ask => pattern.may_match(names),
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

/// The meta-tool name under which rules speak of viewing an artifact.
pub const VIEW: &str = "tool_view";

impl Rules {
    pub fn new(config: Config) -> Rules {
        Rules { config }
    }

    fn judge(&self, call: &ValidCall) -> Result<Admission, Refusal> {
        if let TargetKind::Subscription { change: SubscriptionChange::End, .. } = call.kind {
            // A subscription may always be ended: rules may be stricter than when it
            // began.
            return Ok(Admission::Free);
        }
        let read_only = call.annotations.read_only == Some(true);
        let mut tags = vec!["mcp"];
        tags.extend(match call.kind {
            TargetKind::Tool(_) | TargetKind::Task { .. } | TargetKind::Help { .. } => None,
            TargetKind::Resource { .. }
            | TargetKind::Subscription { .. }
            | TargetKind::Completion { subject: CompletionSubject::Resource(_), .. } => {
                Some("resource")
            }
            TargetKind::Prompt { .. }
            | TargetKind::Completion { subject: CompletionSubject::Prompt(_), .. } => {
                Some("prompt")
            }
            TargetKind::Skill { .. } => Some("skill"),
        });
        tags.extend(read_only.then_some("read-only"));
        tags.extend((call.annotations.destructive == Some(true)).then_some("destructive"));
        let subject = Subject {
            meta_tool: call.meta_tool(),
            ruled_as: call.kind.ruled_as(),
            id: &call.callee.id,
            namespace: &call.callee.upstream,
            name: &call.callee.tool,
            exposed: call.callee.exposed_name_ref(),
            read_only,
            tags,
        };
        let admission = admission(self.config.decide(&subject), &subject)?;
        // Whoever agreed to a call agreed to the task that it began, and reading the
        // help of a function needs no approval.
        Ok(if call.kind.belongs_to_other_call() { Admission::Free } else { admission })
    }

    /// An artifact exists because its call was admitted, so nobody is asked again
    /// unless a rule is about viewing.
    fn judge_view(&self, artifact: &Artifact) -> Result<Admission, Refusal> {
        let subject = Subject {
            meta_tool: VIEW,
            ruled_as: None,
            id: &artifact.id,
            namespace: &artifact.upstream,
            name: &artifact.tool,
            // Its call was allowed already, so lookalikes do not matter.
            exposed: ExposedNameRef::UpstreamName,
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

/// Turns a decision of the rules into an admission or a refusal.
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
            Err(Refusal { code: RefusalCode::Denied, message, retry_after: None })
        }
    }
}

impl Check for Rules {
    fn admit(&self, _: &Catalog, call: &ValidCall, _: &Context) -> Result<Admission, Refusal> {
        self.judge(call)
    }

    fn admit_view(&self, artifact: &Artifact) -> Result<Admission, Refusal> {
        self.judge_view(artifact)
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
                exposed: ExposedNameRef::UpstreamName,
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
            exposed: ExposedNameRef::UpstreamName,
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

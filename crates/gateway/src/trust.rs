//! Which tools may run, and how much they are trusted.
//!
//! A tool is known by a digest of everything a model sees of it, so a tool
//! that changes behind our back is not the tool that was trusted: it falls
//! back, and the operator sees what [`drift`]ed. What was granted stands in a
//! signed [`ledger`]; a call that destroys needs trust, or somebody who
//! [`confirm`]s it.
//!
//! Trust is never granted by a call. This module decides and knows no files:
//! the ledger comes in and goes out as text.

pub mod confirm;
pub mod drift;
pub mod ledger;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tool::{Annotations, Json, Tool, hex};

pub use drift::{Drift, drift};
pub use ledger::{Book, Entry, Ledger, Tampered};

use crate::stage::pattern::{Named, Pattern};

/// How much a tool is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Nobody vouches for it.
    Untrusted,
    /// The operator knows it; what destroys asks first.
    Verified,
    /// It may do everything it does.
    Trusted,
}

/// How strict the gate is with an upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// No questions.
    Off,
    /// What drifted passes with a warning; what says that it destroys asks.
    #[default]
    Warn,
    /// What drifted does not pass; what may destroy asks.
    Enforce,
}

/// What a call of a tool may do to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Danger {
    Safe,
    Destructive,
    /// It does not say.
    Unknown,
}

/// The operator's decisions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// For upstreams that have none of their own.
    pub policy: Policy,
    pub upstreams: Vec<(String, Policy)>,
    /// What a tool does, whatever it says itself; the first that fits counts.
    pub rules: Vec<(Pattern, Danger)>,
    /// What a tool is that was never seen before.
    pub first: State,
}

/// What identifies a tool as it is: changes with anything a model sees of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Digest(String);

/// What the operator vouched for, kept so that a change can be shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    pub description: String,
    pub input: Value,
    pub output: Value,
    pub annotations: Value,
}

/// Where a tool stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Standing {
    /// Never seen before.
    New,
    Known(State),
    /// It was seen in another shape, with this state.
    Drifted {
        was: State,
        drift: Vec<Drift>,
    },
}

/// What becomes of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Allow,
    /// It passes, and the operator should know.
    Warn(String),
    /// Somebody has to agree.
    Confirm(String),
    Refuse(String),
}

impl Default for Config {
    /// A fresh install: the operator listed the upstreams, so their tools are
    /// verified.
    fn default() -> Config {
        Config {
            policy: Policy::default(),
            upstreams: Vec::new(),
            rules: Vec::new(),
            first: State::Verified,
        }
    }
}

impl Config {
    pub fn policy(&self, upstream: &str) -> Policy {
        let own = self.upstreams.iter().find(|(label, _)| label == upstream);
        own.map_or(self.policy, |(_, policy)| *policy)
    }

    /// What a tool does: by the operator's rules, then by its own hints. Never
    /// by its name.
    pub fn danger(&self, named: Named<'_>, annotations: &Annotations) -> Danger {
        let ruled = self.rules.iter().find(|(pattern, _)| pattern.names(named));
        match (ruled, annotations.read_only, annotations.destructive) {
            (Some((_, danger)), _, _) => *danger,
            (None, Some(true), _) | (None, _, Some(false)) => Danger::Safe,
            (None, _, Some(true)) => Danger::Destructive,
            (None, Some(false) | None, None) => Danger::Unknown,
        }
    }

    /// Decides about a call of the tool `name` (as `upstream/tool`).
    pub fn decide(
        &self,
        policy: Policy,
        standing: &Standing,
        danger: Danger,
        name: &str,
    ) -> Verdict {
        let state = match (policy, standing) {
            (Policy::Off, _) => return Verdict::Allow,
            (_, Standing::New) => self.first,
            (_, Standing::Known(state)) => *state,
            (Policy::Enforce, Standing::Drifted { drift, .. }) => {
                return Verdict::Refuse(format!(
                    "`{name}` changed since it was {}; the operator can look at it with \
                     `gatelet trust show {name}` and accept it with `gatelet trust grant {name}`",
                    summary(drift)
                ));
            }
            // Revoked is revoked, whatever it has become.
            (Policy::Warn, Standing::Drifted { was: State::Untrusted, .. }) => State::Untrusted,
            // A tool that may do harm and is not what it was asks, however
            // trusted the old one was.
            (Policy::Warn, Standing::Drifted { drift, .. }) => {
                let text = format!("`{name}` changed: {}", listed(drift));
                return match danger {
                    Danger::Safe => Verdict::Warn(text),
                    Danger::Destructive | Danger::Unknown => Verdict::Confirm(text),
                };
            }
        };
        let destructive = match (policy, danger) {
            (_, Danger::Destructive) | (Policy::Enforce, Danger::Unknown) => true,
            (_, Danger::Safe) | (Policy::Off | Policy::Warn, Danger::Unknown) => false,
        };
        match (state, destructive) {
            (State::Untrusted, _) => Verdict::Refuse(format!(
                "`{name}` is not trusted; the operator can grant it with `gatelet trust grant {name}`"
            )),
            (State::Verified, true) => {
                Verdict::Confirm(format!("`{name}` may delete or overwrite something"))
            }
            (State::Verified, false) | (State::Trusted, _) => Verdict::Allow,
        }
    }
}

fn summary(drift: &[Drift]) -> String {
    format!("vouched for ({})", listed(drift))
}

fn listed(drift: &[Drift]) -> String {
    drift.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl Digest {
    /// The digest of a tool as it is listed.
    pub fn of(tool: &Tool) -> Digest {
        let seen = Seen::of(tool);
        let mut whole = serde_json::json!({
            "name": tool.name,
            "title": tool.title,
            "description": seen.description,
            "input": seen.input,
            "output": seen.output,
            "annotations": seen.annotations,
        });
        whole.sort_all_objects();
        let hash = Sha256::digest(whole.to_string().as_bytes());
        Digest(hex::encode(&hash))
    }

    /// The first characters, enough to tell two apart by eye.
    pub fn short(&self) -> &str {
        self.0.get(..12).unwrap_or(&self.0)
    }
}

impl Seen {
    pub fn of(tool: &Tool) -> Seen {
        // What cannot be understood is compared as text.
        let value =
            |json: &Json| json.value().unwrap_or_else(|_| Value::String(json.as_str().to_owned()));
        let member = |key: &str| tool.raw.member(key).as_ref().map_or(Value::Null, value);
        Seen {
            description: tool.description.clone().unwrap_or_default(),
            input: value(&tool.input_schema),
            output: tool.output_schema.as_ref().map_or(Value::Null, value),
            annotations: member("annotations"),
        }
    }

    /// What it said of itself.
    pub fn hints(&self) -> Annotations {
        let said = |key: &str| self.annotations.get(key).and_then(Value::as_bool);
        Annotations {
            read_only: said("readOnlyHint"),
            destructive: said("destructiveHint"),
            idempotent: said("idempotentHint"),
            open_world: said("openWorldHint"),
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            State::Untrusted => "untrusted",
            State::Verified => "verified",
            State::Trusted => "trusted",
        })
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRIFTED: Standing = Standing::Drifted { was: State::Trusted, drift: Vec::new() };

    #[track_caller]
    fn check(policy: Policy, standing: &Standing, danger: Danger, expected: &str) {
        let verdict = match Config::default().decide(policy, standing, danger, "up/t") {
            Verdict::Allow => "allow",
            Verdict::Warn(_) => "warn",
            Verdict::Confirm(_) => "confirm",
            Verdict::Refuse(_) => "refuse",
        };
        assert_eq!(verdict, expected, "{policy:?} {standing:?} {danger:?}");
    }

    #[test]
    fn the_table_of_decisions() {
        use Danger::{Destructive, Safe, Unknown};
        use Policy::{Enforce, Off, Warn};
        let known = Standing::Known;
        for danger in [Safe, Destructive, Unknown] {
            check(Off, &known(State::Untrusted), danger, "allow");
            check(Warn, &known(State::Untrusted), danger, "refuse");
            check(Enforce, &known(State::Untrusted), danger, "refuse");
            check(Enforce, &DRIFTED, danger, "refuse");
            check(Warn, &known(State::Trusted), danger, "allow");
            check(Enforce, &known(State::Trusted), danger, "allow");
        }
        check(Warn, &Standing::New, Safe, "allow");
        check(Warn, &Standing::New, Destructive, "confirm");
        check(Warn, &Standing::New, Unknown, "allow");
        check(Enforce, &known(State::Verified), Safe, "allow");
        check(Enforce, &known(State::Verified), Destructive, "confirm");
        check(Enforce, &known(State::Verified), Unknown, "confirm");
        let revoked = Standing::Drifted { was: State::Untrusted, drift: Vec::new() };
        for danger in [Safe, Destructive, Unknown] {
            check(Warn, &revoked, danger, "refuse");
        }
        check(Warn, &DRIFTED, Safe, "warn");
        check(Warn, &DRIFTED, Destructive, "confirm");
    }

    #[test]
    fn danger_comes_from_rules_and_hints_never_from_names() {
        let mut config = Config::default();
        let named = |name: &'static str| Named { id: "up:x#12345678", upstream: "up", name };
        let hints = |read_only, destructive| Annotations {
            read_only,
            destructive,
            ..Annotations::default()
        };
        assert_eq!(config.danger(named("delete_all"), &hints(None, None)), Danger::Unknown);
        assert_eq!(config.danger(named("delete_all"), &hints(Some(true), None)), Danger::Safe);
        assert_eq!(config.danger(named("presets"), &hints(None, Some(true))), Danger::Destructive);
        assert_eq!(config.danger(named("t"), &hints(Some(false), Some(false))), Danger::Safe);
        config.rules = vec![(Pattern::new("delete_all"), Danger::Destructive)];
        assert_eq!(
            config.danger(named("delete_all"), &hints(Some(true), None)),
            Danger::Destructive
        );
    }

    #[test]
    fn the_digest_changes_with_all_that_a_model_sees() {
        let tool = |text: &str| Tool::read(Json::parse(text.to_owned()).unwrap()).unwrap();
        let base = tool(r#"{"name":"t","description":"d","inputSchema":{"a":1,"b":2}}"#);
        let same = tool(r#"{"inputSchema":{"b":2,"a":1},"description":"d","name":"t","_meta":{}}"#);
        assert_eq!(Digest::of(&base), Digest::of(&same));
        for other in [
            r#"{"name":"u","description":"d","inputSchema":{"a":1,"b":2}}"#,
            r#"{"name":"t","description":"D","inputSchema":{"a":1,"b":2}}"#,
            r#"{"name":"t","description":"d","inputSchema":{"a":1}}"#,
            r#"{"name":"t","description":"d","inputSchema":{"a":1,"b":2},"outputSchema":{}}"#,
            r#"{"name":"t","description":"d","inputSchema":{"a":1,"b":2},"annotations":{"readOnlyHint":true}}"#,
        ] {
            assert_ne!(Digest::of(&base), Digest::of(&tool(other)), "{other}");
        }
    }
}

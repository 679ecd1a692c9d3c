//! Decides about a call by what is known of its tool.

use catalog::{name, summary};
use serde::{Deserialize, Serialize};
use tool::{Annotations, shell};

use crate::pattern::{Named, Pattern};
use crate::trust::digest::TrustLevel;
use crate::trust::drift::Drift;
use crate::trust::ledger::TrustState;

/// How strict gatelet is with an upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// No questions.
    Off,
    /// What drifted asks unless it only reads; what says that it destroys asks.
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
    pub first: TrustLevel,
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
            first: TrustLevel::Verified,
        }
    }
}

impl Config {
    pub fn policy(&self, upstream: &str) -> Policy {
        let own = self.upstreams.iter().find(|(label, _)| name::means(label, upstream));
        own.map_or(self.policy, |(_, policy)| *policy)
    }

    /// What a tool does: by the operator's rules, then by its own hints. Never
    /// by its name.
    pub fn danger(&self, named: Named<'_>, annotations: &Annotations) -> Danger {
        match (self.ruled(named), annotations.read_only, annotations.destructive) {
            (Some(danger), _, _) => danger,
            (None, Some(true), _) | (None, _, Some(false)) => Danger::Safe,
            (None, _, Some(true)) => Danger::Destructive,
            (None, Some(false) | None, None) => Danger::Unknown,
        }
    }

    /// What a tool does that changed since it was vouched for. Nobody accepted what it
    /// says of itself now, so a change earns no trust: it is safe only if it always said
    /// that it only reads, or if the operator's rules say that it is.
    pub fn danger_of_changed(
        &self,
        named: Named<'_>,
        before: &Annotations,
        now: &Annotations,
    ) -> Danger {
        let only_reads =
            |said: &Annotations| said.read_only == Some(true) && said.destructive != Some(true);
        let destroys = |said: &Annotations| said.destructive == Some(true);
        match self.ruled(named) {
            Some(danger) => danger,
            None if only_reads(before) && only_reads(now) => Danger::Safe,
            None if destroys(before) || destroys(now) => Danger::Destructive,
            None => Danger::Unknown,
        }
    }

    /// What the operator says of a tool.
    fn ruled(&self, named: Named<'_>) -> Option<Danger> {
        let ruled = self.rules.iter().find(|(pattern, danger)| match danger {
            Danger::Safe => pattern.means(named),
            Danger::Destructive | Danger::Unknown => pattern.may_mean(named),
        });
        ruled.map(|(_, danger)| *danger)
    }

    /// Decides about a call of the tool `name` (as `upstream/tool`).
    pub fn decide(
        &self,
        policy: Policy,
        state_of_tool: &TrustState,
        danger: Danger,
        name: &str,
    ) -> Verdict {
        // A name is the server's; the sentence around it, and the command, are ours.
        let shown = || summary::echo(name);
        let word = || shell::word(name).unwrap_or_else(|| "NAME".to_owned());
        let state = match (policy, state_of_tool) {
            (Policy::Off, _) => return Verdict::Allow,
            (_, TrustState::New) => self.first,
            (_, TrustState::Known(state)) => *state,
            (Policy::Enforce, TrustState::Drifted { drift, .. }) => {
                return Verdict::Refuse(format!(
                    "`{}` changed since it was {}; the operator can look at it with \
                     `gatelet trust show {word}` and accept it with `gatelet trust grant {word}`",
                    shown(),
                    vouched(drift),
                    word = word(),
                ));
            }
            // Revoked is revoked, whatever it has become.
            (Policy::Warn, TrustState::Drifted { was: TrustLevel::Untrusted, .. }) => {
                TrustLevel::Untrusted
            }
            // A tool that may do harm and is not what it was asks, however
            // trusted the old one was.
            (Policy::Warn, TrustState::Drifted { drift, .. }) => {
                let text = format!(
                    "`{}` changed: {} (the operator accepts it as it is now with \
                     `gatelet trust grant {}`)",
                    shown(),
                    listed(drift),
                    word(),
                );
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
            (TrustLevel::Untrusted, _) => Verdict::Refuse(format!(
                "`{}` is not trusted; the operator can grant it with `gatelet trust grant {}`",
                shown(),
                word(),
            )),
            (TrustLevel::Verified, true) => {
                Verdict::Confirm(format!("`{}` may delete or overwrite something", shown()))
            }
            (TrustLevel::Verified, false) | (TrustLevel::Trusted, _) => Verdict::Allow,
        }
    }
}

fn vouched(drift: &[Drift]) -> String {
    format!("vouched for ({})", listed(drift))
}

fn listed(drift: &[Drift]) -> String {
    drift.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRIFTED: TrustState = TrustState::Drifted { was: TrustLevel::Trusted, drift: Vec::new() };

    #[track_caller]
    fn check(policy: Policy, state_of_tool: &TrustState, danger: Danger, expected: &str) {
        let verdict = match Config::default().decide(policy, state_of_tool, danger, "up/t") {
            Verdict::Allow => "allow",
            Verdict::Warn(_) => "warn",
            Verdict::Confirm(_) => "confirm",
            Verdict::Refuse(_) => "refuse",
        };
        assert_eq!(verdict, expected, "{policy:?} {state_of_tool:?} {danger:?}");
    }

    #[test]
    fn the_table_of_decisions() {
        use Danger::{Destructive, Safe, Unknown};
        use Policy::{Enforce, Off, Warn};
        let known = TrustState::Known;
        for danger in [Safe, Destructive, Unknown] {
            check(Off, &known(TrustLevel::Untrusted), danger, "allow");
            check(Warn, &known(TrustLevel::Untrusted), danger, "refuse");
            check(Enforce, &known(TrustLevel::Untrusted), danger, "refuse");
            check(Enforce, &DRIFTED, danger, "refuse");
            check(Warn, &known(TrustLevel::Trusted), danger, "allow");
            check(Enforce, &known(TrustLevel::Trusted), danger, "allow");
        }
        check(Warn, &TrustState::New, Safe, "allow");
        check(Warn, &TrustState::New, Destructive, "confirm");
        check(Warn, &TrustState::New, Unknown, "allow");
        check(Enforce, &known(TrustLevel::Verified), Safe, "allow");
        check(Enforce, &known(TrustLevel::Verified), Destructive, "confirm");
        check(Enforce, &known(TrustLevel::Verified), Unknown, "confirm");
        let revoked = TrustState::Drifted { was: TrustLevel::Untrusted, drift: Vec::new() };
        for danger in [Safe, Destructive, Unknown] {
            check(Warn, &revoked, danger, "refuse");
        }
        check(Warn, &DRIFTED, Safe, "warn");
        check(Warn, &DRIFTED, Destructive, "confirm");
        check(Warn, &DRIFTED, Unknown, "confirm");
    }

    #[test]
    fn danger_comes_from_rules_and_hints_never_from_names() {
        let mut config = Config::default();
        let shown = crate::pattern::Shown::AsNamed;
        let named = |name: &'static str| Named { id: "up:x#12345678", upstream: "up", name, shown };
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
}

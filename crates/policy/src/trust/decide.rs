//! Decides about a call by the trust state of its tool and by what the tool may do.

use catalog::{name, summary};
use serde::{Deserialize, Serialize};
use tool::{Annotations, shell};

use crate::pattern::{Names, Pattern};
use crate::trust::digest::TrustLevel;
use crate::trust::drift::Drift;
use crate::trust::ledger::TrustState;

/// How strict gatelet is with an upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// Trust is not checked.
    Off,
    /// A changed tool needs approval unless it only reads; a tool that says that it is
    /// destructive needs approval.
    #[default]
    Warn,
    /// A changed tool is refused; a tool that may be destructive needs approval.
    Enforce,
}

/// What a call of a tool may do to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Danger {
    Safe,
    Destructive,
    /// Neither rules nor hints say.
    Unknown,
}

/// The operator's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The policy of upstreams that have none of their own.
    pub policy: Policy,
    /// The policies of single upstreams, by label.
    pub upstreams: Vec<(String, Policy)>,
    /// The danger of tools, whatever their own hints say; the first match counts.
    pub rules: Vec<(Pattern, Danger)>,
    /// The trust level of a tool that is seen for the first time.
    pub first: TrustLevel,
}

/// The decision about a call. The texts say why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Allow,
    /// The call passes, and the reason is logged.
    Warn(String),
    /// A person has to agree first.
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
    /// The policy of an upstream.
    pub fn policy(&self, upstream: &str) -> Policy {
        let own = self.upstreams.iter().find(|(label, _)| name::means(label, upstream));
        own.map_or(self.policy, |(_, policy)| *policy)
    }

    /// The danger of a tool: by the operator's rules, then by its own hints, never by
    /// its name.
    pub fn danger(&self, names: Names<'_>, annotations: &Annotations) -> Danger {
        match (self.danger_by_rule(names), annotations.read_only, annotations.destructive) {
            (Some(danger), _, _) => danger,
            (None, Some(true), _) | (None, _, Some(false)) => Danger::Safe,
            (None, _, Some(true)) => Danger::Destructive,
            (None, Some(false) | None, None) => Danger::Unknown,
        }
    }

    /// The danger of a tool that changed since the operator vouched for it. Its present
    /// hints were not accepted, so it is safe only if it said that it only reads both
    /// before and now, or if the operator's rules say so.
    pub fn danger_of_changed(
        &self,
        names: Names<'_>,
        before: &Annotations,
        now: &Annotations,
    ) -> Danger {
        let only_reads =
            |hints: &Annotations| hints.read_only == Some(true) && hints.destructive != Some(true);
        let destroys = |hints: &Annotations| hints.destructive == Some(true);
        match self.danger_by_rule(names) {
            Some(danger) => danger,
            None if only_reads(before) && only_reads(now) => Danger::Safe,
            None if destroys(before) || destroys(now) => Danger::Destructive,
            None => Danger::Unknown,
        }
    }

    /// The danger of a tool by the operator's rules, if one matches.
    fn danger_by_rule(&self, names: Names<'_>) -> Option<Danger> {
        let rule = self.rules.iter().find(|(pattern, danger)| match danger {
            Danger::Safe => pattern.matches_exactly(names),
            Danger::Destructive | Danger::Unknown => pattern.may_match(names),
        });
        rule.map(|(_, danger)| *danger)
    }

    /// Decides about a call of the tool `name` (as `upstream/tool`).
    pub fn decide(
        &self,
        policy: Policy,
        state_of_tool: &TrustState,
        danger: Danger,
        name: &str,
    ) -> Verdict {
        // The name comes from the server, so it is escaped for text and for a shell.
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
            // A revoked tool stays revoked when it changes.
            (Policy::Warn, TrustState::Drifted { was: TrustLevel::Untrusted, .. }) => {
                TrustLevel::Untrusted
            }
            // A changed tool that may do harm needs approval, however trusted it was
            // before.
            (Policy::Warn, TrustState::Drifted { drift, .. }) => {
                let text = format!(
                    "`{}` changed: {} (the operator accepts it as it is now with \
                     `gatelet trust grant {}`)",
                    shown(),
                    join(drift),
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
    format!("vouched for ({})", join(drift))
}

fn join(drift: &[Drift]) -> String {
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
        let exposed = crate::pattern::ExposedNameRef::UpstreamName;
        let named =
            |name: &'static str| Names { id: "up:x#12345678", upstream: "up", name, exposed };
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

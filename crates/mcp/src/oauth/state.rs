//! Decides what to do with a grant at a given time, as functions over values.

use std::time::Duration;

use tool::Backoff;

use super::Grant;
use crate::connect::credential::RefusalBackoff;

/// A token is renewed this long before it ends.
const EARLY: u64 = 30;

/// Between two requests to a token endpoint that fails.
const RENEWAL: Backoff =
    Backoff::doubling(Duration::from_secs(2), Duration::from_secs(300)).with_jitter(0.5);

/// What is known beside the grant.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct State {
    pub(super) grant: Option<Grant>,
    pub(super) trouble: Option<RenewalFailure>,
    /// The token that was refused last.
    pub(super) dead: Option<String>,
    /// How often it was renewed since a server last let us in.
    pub(super) renewals: u32,
    /// How often the server refused what it let in before.
    pub(super) refused: RefusalBackoff,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum RenewalFailure {
    /// Only a human can help.
    Human,
    /// The token endpoint is not asked before `until`, in milliseconds.
    Later { until: u64, backoff: Backoff, reason: String },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Use(String),
    Renew,
    Wait(String),
    Human,
}

impl State {
    /// Returns what to do at `now`, in milliseconds.
    pub(super) fn step(&self, now: u64) -> Step {
        let Some(grant) = &self.grant else {
            return match &self.trouble {
                Some(RenewalFailure::Later { until, reason, .. }) if now < *until => {
                    Step::Wait(told(reason, *until, now))
                }
                Some(RenewalFailure::Later { .. } | RenewalFailure::Human) | None => Step::Human,
            };
        };
        if self.trouble == Some(RenewalFailure::Human) {
            return Step::Human;
        }
        let seconds = now / 1000;
        if self.refused.is_standing() && !self.refused.is_over(now) {
            return Step::Human;
        }
        let is_dead = self.dead.as_ref() == Some(&grant.access_token);
        let ends = |early: u64| grant.expires_at.is_some_and(|at| at <= seconds + early);
        if !is_dead && !ends(EARLY) {
            return Step::Use(grant.access_token.clone());
        }
        if !grant.renews() {
            // Without a way to renew it, it is good to its last second.
            let usable = !is_dead && !ends(0);
            return if usable { Step::Use(grant.access_token.clone()) } else { Step::Human };
        }
        match &self.trouble {
            Some(RenewalFailure::Later { until, reason, .. }) if now < *until => {
                if !is_dead && !ends(0) {
                    return Step::Use(grant.access_token.clone());
                }
                Step::Wait(told(reason, *until, now))
            }
            Some(RenewalFailure::Later { .. } | RenewalFailure::Human) | None => Step::Renew,
        }
    }

    /// Notes that renewing failed in a way that may pass.
    pub(super) fn fail(&mut self, now: u64, reason: String, after: Option<Duration>, chance: f64) {
        let mut backoff = match &self.trouble {
            Some(RenewalFailure::Later { backoff, .. }) => *backoff,
            Some(RenewalFailure::Human) | None => RENEWAL,
        };
        let pause = backoff.fail_with(chance).max(after.unwrap_or_default());
        let until = now + u64::try_from(pause.as_millis()).unwrap_or(u64::MAX / 2);
        self.trouble = Some(RenewalFailure::Later { until, backoff, reason });
    }

    /// Takes up a grant, unless it is one that was found dead.
    pub(super) fn take(&mut self, grant: Grant) {
        if self.dead.as_ref() == Some(&grant.access_token) || self.grant.as_ref() == Some(&grant) {
            return;
        }
        *self = State { grant: Some(grant), renewals: self.renewals, ..State::default() };
    }

    /// Takes up what a grant was renewed to.
    pub(super) fn renew(&mut self, grant: Grant) {
        let (renewals, refused) = (self.renewals + 1, self.refused);
        *self = State { grant: Some(grant), renewals, refused, ..State::default() };
    }

    /// A token was refused. It is renewed where that may help; else it is left
    /// alone for a while, once that is about us and not about what was asked.
    pub(super) fn refuse(&mut self, token: &str, now: u64) {
        let Some(grant) = &self.grant else { return };
        if grant.access_token != token {
            return;
        }
        // A token that was just renewed and never worked will not work after
        // another renewal either.
        if grant.renews() && self.renewals == 0 {
            self.dead = Some(token.to_owned());
            return;
        }
        self.refuse_again(token, now);
    }

    /// It was refused, and there is no better one.
    pub(super) fn refuse_again(&mut self, token: &str, now: u64) {
        if self.grant.as_ref().is_some_and(|grant| grant.access_token == token) {
            self.refused.again(now);
        }
    }

    /// A server let us in.
    pub(super) fn accept(&mut self) {
        self.renewals = 0;
        self.refused.forget();
    }
}

/// Why there is no token yet, and when there may be one.
fn told(reason: &str, until: u64, now: u64) -> String {
    format!("{reason}; tried again in {} s", (until - now).div_ceil(1000))
}

#[cfg(test)]
mod tests {
    use super::super::{GrantKind, Method};
    use super::*;

    fn grant(token: &str, expires_at: Option<u64>, renews: bool) -> Grant {
        Grant {
            access_token: token.to_owned(),
            refresh_token: renews.then(|| "r".to_owned()),
            expires_at,
            scopes: Vec::new(),
            issuer: None,
            token_endpoint: String::new(),
            revocation_endpoint: None,
            server: String::new(),
            resource: String::new(),
            client_id: String::new(),
            client_secret: None,
            method: Method::None,
            kind: GrantKind::Login,
        }
    }

    fn state(grant: Grant) -> State {
        State { grant: Some(grant), ..State::default() }
    }

    #[test]
    fn a_token_is_renewed_shortly_before_it_ends() {
        let state = state(grant("a", Some(100), true));
        assert_eq!(state.step(69_000), Step::Use("a".into()));
        assert_eq!(state.step(70_000), Step::Renew);
        assert_eq!(State::default().step(0), Step::Human);
    }

    #[test]
    fn what_cannot_be_renewed_is_used_to_its_end() {
        let state = state(grant("a", Some(100), false));
        assert_eq!(state.step(99_000), Step::Use("a".into()));
        assert_eq!(state.step(100_000), Step::Human);
    }

    #[test]
    fn one_refusal_of_a_token_that_works_is_about_what_was_asked() {
        let mut state = state(grant("a", None, false));
        state.accept();
        for _ in 0..3 {
            state.refuse("a", 0);
            assert_eq!(state.step(0), Step::Use("a".into()));
        }
        state.refuse("a", 0);
        assert_eq!(state.step(0), Step::Human);
        state.accept();
        assert_eq!(state.step(0), Step::Use("a".into()));
    }

    #[test]
    fn pauses_grow_and_are_kept() {
        let mut state = state(grant("a", Some(10), true));
        for (failures, pause) in [(1, 2), (2, 4), (3, 8), (12, 300)] {
            while !matches!(&state.trouble, Some(RenewalFailure::Later { backoff, .. }) if backoff.failures() == failures)
            {
                state.fail(100_000, "down".into(), None, 1.0);
            }
            let told = format!("down; tried again in {pause} s");
            assert_eq!(state.step(100_000), Step::Wait(told));
            assert_eq!(state.step(100_000 + pause * 1000), Step::Renew);
        }
        state.fail(0, "busy".into(), Some(Duration::from_secs(900)), 1.0);
        assert_eq!(state.step(899_000), Step::Wait("busy; tried again in 1 s".into()));
    }

    #[test]
    fn a_refused_token_is_renewed_once_and_then_left_to_a_human() {
        let mut state = state(grant("a", None, true));
        state.refuse("other", 0);
        assert_eq!(state.step(0), Step::Use("a".into()));
        state.refuse("a", 0);
        assert_eq!(state.step(0), Step::Renew);
        state.renew(grant("b", None, true));
        assert_eq!(state.step(0), Step::Use("b".into()));
        state.refuse("b", 0);
        assert_eq!(state.step(0), Step::Human);
        state.take(grant("b", None, true));
        assert_eq!(state.step(0), Step::Human);
        // It is tried again, but not soon.
        assert_eq!(state.step(59_999), Step::Human);
        assert_eq!(state.step(60_000), Step::Use("b".into()));
        state.take(grant("c", None, true));
        assert_eq!(state.step(0), Step::Use("c".into()));
    }
}

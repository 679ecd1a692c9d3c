//! The state of a grant: decides whether to use its token, renew it, wait or ask for a
//! login. Pure functions of state and time.

use std::time::Duration;

use tool::Backoff;

use super::Grant;
use crate::connect::credential::RefusalBackoff;

/// A token is renewed this many seconds before it expires.
const RENEW_EARLY_SECONDS: u64 = 30;

/// The pauses between requests to a token endpoint that fails.
const RENEWAL_BACKOFF: Backoff =
    Backoff::doubling(Duration::from_secs(2), Duration::from_secs(300)).with_jitter(0.5);

/// A grant, and what is known about its token. Times are in milliseconds since 1970.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct GrantState {
    pub(super) grant: Option<Grant>,
    pub(super) renewal_failure: Option<RenewalFailure>,
    /// The access token that the server refused last; it has to be renewed.
    pub(super) refused_token: Option<String>,
    /// How often the token was renewed since the server last accepted one.
    pub(super) n_renewals: u32,
    /// The refusals that renewing did not help against.
    pub(super) refusals: RefusalBackoff,
}

/// Why the token cannot be renewed now.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RenewalFailure {
    /// Only a login of the user can help.
    NeedsHuman,
    /// No request to the token endpoint before `until`.
    Later { until: u64, backoff: Backoff, reason: String },
}

/// What to do before the next request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NextStep {
    /// Send this token.
    Use(String),
    Renew,
    /// Send nothing; the text tells why and for how long.
    Wait(String),
    NeedsHuman,
}

impl GrantState {
    /// Returns what to do at `now`.
    pub(super) fn step(&self, now: u64) -> NextStep {
        let Some(grant) = &self.grant else {
            return match &self.renewal_failure {
                Some(RenewalFailure::Later { until, reason, .. }) if now < *until => {
                    NextStep::Wait(wait_reason(reason, *until, now))
                }
                Some(RenewalFailure::Later { .. } | RenewalFailure::NeedsHuman) | None => {
                    NextStep::NeedsHuman
                }
            };
        };
        if self.renewal_failure == Some(RenewalFailure::NeedsHuman) {
            return NextStep::NeedsHuman;
        }
        let seconds = now / 1000;
        if self.refusals.is_persistent() && !self.refusals.is_pause_over(now) {
            return NextStep::NeedsHuman;
        }
        let is_refused = self.refused_token.as_ref() == Some(&grant.access_token);
        let ends = |early: u64| grant.expires_at.is_some_and(|at| at <= seconds + early);
        if !is_refused && !ends(RENEW_EARLY_SECONDS) {
            return NextStep::Use(grant.access_token.clone());
        }
        if !grant.is_renewable() {
            // A token that cannot be renewed is used until it expires.
            let usable = !is_refused && !ends(0);
            return if usable {
                NextStep::Use(grant.access_token.clone())
            } else {
                NextStep::NeedsHuman
            };
        }
        match &self.renewal_failure {
            Some(RenewalFailure::Later { until, reason, .. }) if now < *until => {
                if !is_refused && !ends(0) {
                    return NextStep::Use(grant.access_token.clone());
                }
                NextStep::Wait(wait_reason(reason, *until, now))
            }
            Some(RenewalFailure::Later { .. } | RenewalFailure::NeedsHuman) | None => {
                NextStep::Renew
            }
        }
    }

    /// Notes a temporary failure to renew. `retry_after` is the pause that the server asked
    /// for, `random` a number from 0 to 1.
    pub(super) fn note_failure(
        &mut self,
        now: u64,
        reason: String,
        retry_after: Option<Duration>,
        random: f64,
    ) {
        let mut backoff = match &self.renewal_failure {
            Some(RenewalFailure::Later { backoff, .. }) => *backoff,
            Some(RenewalFailure::NeedsHuman) | None => RENEWAL_BACKOFF,
        };
        let pause = backoff.fail_with(random).max(retry_after.unwrap_or_default());
        let until = now + u64::try_from(pause.as_millis()).unwrap_or(u64::MAX / 2);
        self.renewal_failure = Some(RenewalFailure::Later { until, backoff, reason });
    }

    /// Uses a loaded grant, unless its token was refused.
    pub(super) fn adopt(&mut self, grant: Grant) {
        if self.refused_token.as_ref() == Some(&grant.access_token)
            || self.grant.as_ref() == Some(&grant)
        {
            return;
        }
        *self =
            GrantState { grant: Some(grant), n_renewals: self.n_renewals, ..GrantState::default() };
    }

    /// Uses a renewed grant.
    pub(super) fn adopt_renewed(&mut self, grant: Grant) {
        let (n_renewals, refusals) = (self.n_renewals + 1, self.refusals);
        *self = GrantState { grant: Some(grant), n_renewals, refusals, ..GrantState::default() };
    }

    /// Notes that the server refused a token. It is renewed if that may help; otherwise the
    /// refusal counts, and too many in a row cause a pause.
    pub(super) fn note_refused(&mut self, token: &str, now: u64) {
        let Some(grant) = &self.grant else { return };
        if grant.access_token != token {
            return;
        }
        // A token that was just renewed and never worked will not work after
        // another renewal either.
        if grant.is_renewable() && self.n_renewals == 0 {
            self.refused_token = Some(token.to_owned());
            return;
        }
        self.note_refused_again(token, now);
    }

    /// Notes that the server refused a token, and renewing cannot help.
    pub(super) fn note_refused_again(&mut self, token: &str, now: u64) {
        if self.grant.as_ref().is_some_and(|grant| grant.access_token == token) {
            self.refusals.note_refusal(now);
        }
    }

    /// Notes that the server accepted the token.
    pub(super) fn note_accepted(&mut self) {
        self.n_renewals = 0;
        self.refusals.note_accepted();
    }
}

/// Returns the reason with the seconds until the next attempt.
fn wait_reason(reason: &str, until: u64, now: u64) -> String {
    format!("{reason}; tried again in {} s", (until - now).div_ceil(1000))
}

#[cfg(test)]
mod tests {
    use super::super::{ClientAuth, GrantKind};
    use super::*;

    fn grant(token: &str, expires_at: Option<u64>, is_renewable: bool) -> Grant {
        Grant {
            access_token: token.to_owned(),
            refresh_token: is_renewable.then(|| "r".to_owned()),
            expires_at,
            scopes: Vec::new(),
            issuer: None,
            token_endpoint: String::new(),
            revocation_endpoint: None,
            server: String::new(),
            resource: String::new(),
            client_id: String::new(),
            client_secret: None,
            method: ClientAuth::None,
            kind: GrantKind::Login,
        }
    }

    fn state(grant: Grant) -> GrantState {
        GrantState { grant: Some(grant), ..GrantState::default() }
    }

    #[test]
    fn a_token_is_renewed_shortly_before_it_ends() {
        let state = state(grant("a", Some(100), true));
        assert_eq!(state.step(69_000), NextStep::Use("a".into()));
        assert_eq!(state.step(70_000), NextStep::Renew);
        assert_eq!(GrantState::default().step(0), NextStep::NeedsHuman);
    }

    #[test]
    fn what_cannot_be_renewed_is_used_to_its_end() {
        let state = state(grant("a", Some(100), false));
        assert_eq!(state.step(99_000), NextStep::Use("a".into()));
        assert_eq!(state.step(100_000), NextStep::NeedsHuman);
    }

    #[test]
    fn one_refusal_of_a_token_that_works_is_about_what_was_asked() {
        let mut state = state(grant("a", None, false));
        state.note_accepted();
        for _ in 0..3 {
            state.note_refused("a", 0);
            assert_eq!(state.step(0), NextStep::Use("a".into()));
        }
        state.note_refused("a", 0);
        assert_eq!(state.step(0), NextStep::NeedsHuman);
        state.note_accepted();
        assert_eq!(state.step(0), NextStep::Use("a".into()));
    }

    #[test]
    fn pauses_grow_and_are_kept() {
        let mut state = state(grant("a", Some(10), true));
        for (failures, pause) in [(1, 2), (2, 4), (3, 8), (12, 300)] {
            while !matches!(&state.renewal_failure, Some(RenewalFailure::Later { backoff, .. }) if backoff.failures() == failures)
            {
                state.note_failure(100_000, "down".into(), None, 1.0);
            }
            let wait_reason = format!("down; tried again in {pause} s");
            assert_eq!(state.step(100_000), NextStep::Wait(wait_reason));
            assert_eq!(state.step(100_000 + pause * 1000), NextStep::Renew);
        }
        state.note_failure(0, "busy".into(), Some(Duration::from_secs(900)), 1.0);
        assert_eq!(state.step(899_000), NextStep::Wait("busy; tried again in 1 s".into()));
    }

    #[test]
    fn a_refused_token_is_renewed_once_and_then_left_to_a_human() {
        let mut state = state(grant("a", None, true));
        state.note_refused("other", 0);
        assert_eq!(state.step(0), NextStep::Use("a".into()));
        state.note_refused("a", 0);
        assert_eq!(state.step(0), NextStep::Renew);
        state.adopt_renewed(grant("b", None, true));
        assert_eq!(state.step(0), NextStep::Use("b".into()));
        state.note_refused("b", 0);
        assert_eq!(state.step(0), NextStep::NeedsHuman);
        state.adopt(grant("b", None, true));
        assert_eq!(state.step(0), NextStep::NeedsHuman);
        // It is tried again, but not soon.
        assert_eq!(state.step(59_999), NextStep::NeedsHuman);
        assert_eq!(state.step(60_000), NextStep::Use("b".into()));
        state.adopt(grant("c", None, true));
        assert_eq!(state.step(0), NextStep::Use("c".into()));
    }
}

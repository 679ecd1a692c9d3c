//! Decides whether a failed call is made again, and when.
//!
//! Only failures are ever retried, never an answer that reports an error. A
//! call that may have run is made again only when running twice does no harm:
//! the tool is read-only or idempotent, by the operator's word or, where the
//! operator trusts them, by its own hints.

use std::time::Duration;

use tool::{Annotations, Backoff, Failure, Sent};

use crate::code::{Code, classify};
use crate::pattern::{Names, Pattern};

/// When a failed call is made again.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Attempts in all; 1 means that nothing is retried.
    pub attempts: u32,
    /// The pause before the second attempt; doubled before each further one.
    pub base_delay: Duration,
    /// The longest pause, whatever the upstream asks for.
    pub max_delay: Duration,
    /// The fraction of a pause that is random, from 0 to 1.
    pub jitter: f64,
    /// The kinds of failure that are worth another attempt.
    pub codes: Vec<Code>,
    /// Tools that may run twice, whatever their own hints say.
    pub repeatable: Vec<Pattern>,
    /// Whether a tool's own `readOnlyHint` or `idempotentHint` is believed.
    pub hints: Hints,
}

/// Whether an upstream's hints about its own tools are believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hints {
    Believed,
    Ignored,
}

/// Why a retry configuration makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRetry {
    #[error("`attempts` must be at least 1")]
    Attempts,
    #[error("`jitter` must be from 0 to 1")]
    Jitter,
    #[error("`{0}` never passes by itself, so it cannot be retried")]
    Code(String),
}

impl Default for Config {
    fn default() -> Config {
        Config {
            attempts: 1,
            base_delay: Duration::from_millis(100),
            max_delay: Duration::from_secs(5),
            jitter: 0.0,
            codes: vec![Code::UpstreamTimeout, Code::UpstreamUnavailable],
            repeatable: Vec::new(),
            hints: Hints::Believed,
        }
    }
}

impl Config {
    /// Checks what was configured.
    pub fn check(&self) -> Result<(), InvalidRetry> {
        if self.attempts == 0 {
            return Err(InvalidRetry::Attempts);
        }
        if !(0.0..=1.0).contains(&self.jitter) {
            return Err(InvalidRetry::Jitter);
        }
        match self.codes.iter().find(|code| !code.is_transient()) {
            Some(code) => Err(InvalidRetry::Code(code.as_str())),
            None => Ok(()),
        }
    }

    /// The pause before retry `index` (0 for the first). `random`, from 0 to 1, says how
    /// much of the jitter is taken off.
    pub fn delay(&self, index: u32, random: f64) -> Duration {
        let backoff = Backoff::doubling(self.base_delay, self.max_delay);
        backoff.with_jitter(self.jitter).pause_after(index.saturating_add(1), 1.0 - random)
    }

    /// The pause before the call is made again after `done` attempts; `None` when it is
    /// not made again. `repeatable` says that running twice does no harm, and `random`
    /// is a number from 0 to 1 for the jitter.
    pub fn pause_before_retry(
        &self,
        failure: &Failure,
        repeatable: bool,
        done: u32,
        random: f64,
    ) -> Option<Duration> {
        let safe = failure.sent() == Sent::No || repeatable;
        let code = classify(failure);
        if self.attempts <= done || !safe || !self.codes.contains(&code) {
            return None;
        }
        let pause = self.delay(done - 1, random);
        match failure.retry_after() {
            // Before the time that the upstream names, a retry is useless.
            Some(after) => (after <= self.max_delay).then_some(pause.max(after)),
            None => Some(pause),
        }
    }

    /// Whether running a tool twice does no harm.
    pub fn is_repeatable(&self, names: Names<'_>, annotations: &Annotations) -> bool {
        let hinted = annotations.read_only == Some(true) || annotations.idempotent == Some(true);
        (self.hints == Hints::Believed && hinted)
            || self.repeatable.iter().any(|pattern| pattern.matches_exactly(names))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn config() -> Config {
        Config { attempts: 3, ..Config::default() }
    }

    #[test]
    fn pauses_are_those_of_the_vectors() {
        let text = include_str!("../tests/vectors/contextweaver_controls.json");
        let vectors: Value = serde_json::from_str(text).unwrap();
        for case in vectors["backoff"].as_array().unwrap() {
            let seconds =
                |key: &str| Duration::from_secs_f64(case["policy"][key].as_f64().unwrap());
            let config = Config {
                base_delay: seconds("base_delay"),
                max_delay: seconds("max_delay"),
                jitter: case["policy"]["jitter"].as_f64().unwrap(),
                ..Config::default()
            };
            let index = case["attempt_index"].as_u64().unwrap() as u32;
            let delay = config.delay(index, case["jitter_fraction"].as_f64().unwrap());
            let expected = case["delay"].as_f64().unwrap();
            assert!((delay.as_secs_f64() - expected).abs() < 1e-6, "{case}");
        }
    }

    #[test]
    fn a_call_that_never_left_is_made_again() {
        let failure = Failure::Unavailable { reason: "refused".into() };
        assert_eq!(
            config().pause_before_retry(&failure, false, 1, 0.0),
            Some(Duration::from_millis(100))
        );
        assert_eq!(
            config().pause_before_retry(&failure, false, 2, 0.0),
            Some(Duration::from_millis(200))
        );
        assert_eq!(config().pause_before_retry(&failure, false, 3, 0.0), None);
        assert_eq!(Config::default().pause_before_retry(&failure, true, 1, 0.0), None);
    }

    #[test]
    fn a_call_that_may_have_run_is_made_again_only_if_that_does_no_harm() {
        let failure = Failure::Timeout { after: Duration::from_secs(1) };
        assert_eq!(config().pause_before_retry(&failure, false, 1, 0.0), None);
        assert!(config().pause_before_retry(&failure, true, 1, 0.0).is_some());
    }

    #[test]
    fn what_does_not_pass_by_itself_is_not_tried_again() {
        for failure in [
            Failure::Unauthorized { reason: "401".into(), sent: Sent::No },
            Failure::Unusable { reason: "x".into() },
            Failure::Cancelled,
            Failure::RateLimited { retry_after: None, sent: Sent::No },
        ] {
            assert_eq!(config().pause_before_retry(&failure, true, 1, 0.0), None, "{failure}");
        }
    }

    #[test]
    fn an_upstream_that_names_a_time_is_given_it() {
        let config = Config { codes: vec![Code::RateLimited], ..config() };
        let after = |seconds, sent| {
            let retry_after = Some(Duration::from_secs(seconds));
            Failure::RateLimited { retry_after, sent }
        };
        let two = Some(Duration::from_secs(2));
        assert_eq!(config.pause_before_retry(&after(2, Sent::No), false, 1, 0.0), two);
        assert_eq!(config.pause_before_retry(&after(60, Sent::No), false, 1, 0.0), None);
        assert_eq!(config.pause_before_retry(&after(2, Sent::Perhaps), true, 1, 0.0), two);
        assert_eq!(
            config.pause_before_retry(&after(2, Sent::Perhaps), false, 1, 0.0),
            None,
            "it may have run"
        );
    }

    #[test]
    fn harm_is_judged_by_the_operator_first() {
        let hinted = Annotations { read_only: Some(true), ..Annotations::default() };
        let exposed = crate::pattern::ExposedNameRef::UpstreamName;
        let named =
            |name: &'static str| Names { id: "up:x#12345678", upstream: "up", name, exposed };
        assert!(config().is_repeatable(named("read"), &hinted));
        let strict = Config {
            hints: Hints::Ignored,
            repeatable: vec![Pattern::new("up:list_*")],
            ..config()
        };
        assert!(!strict.is_repeatable(named("read"), &hinted));
        assert!(strict.is_repeatable(named("list_all"), &Annotations::default()));
    }

    #[test]
    fn senseless_configurations_are_refused() {
        assert_eq!(Config { attempts: 0, ..config() }.check(), Err(InvalidRetry::Attempts));
        assert_eq!(Config { jitter: 1.5, ..config() }.check(), Err(InvalidRetry::Jitter));
        let codes = vec![Code::ArgsInvalid];
        assert!(matches!(Config { codes, ..config() }.check(), Err(InvalidRetry::Code(_))));
        assert_eq!(config().check(), Ok(()));
    }
}

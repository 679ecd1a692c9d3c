//! The circuit breaker: stops calling an upstream that keeps failing.
//!
//! While it is closed, calls go through and failures in a row are counted. While
//! it is open, no call goes through until a pause has passed. Then it is
//! half-open: a few calls at a time go through as probes, and their outcome closes
//! or reopens it. A probe that is cancelled does not count, and neither does a call
//! from before the last change of state.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tool::{Failure, Reply};

/// When the breaker opens, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Failures in a row that open the breaker; 0 keeps it closed for ever.
    pub failures: u32,
    /// How long it stays open.
    pub pause: Duration,
    /// The most probes that may run at the same time after that.
    pub probes: u32,
    /// Successful probes in a row that close it again.
    pub answers: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config { failures: 0, pause: Duration::from_secs(30), probes: 1, answers: 1 }
    }
}

/// The breaker of one upstream, as plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breaker {
    state: State,
    /// Grows with every change of state, so that calls from before are recognised.
    epoch: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Closed { failures: u32 },
    Open { until: Duration },
    HalfOpen { under_way: u32, answers: u32 },
}

/// The right to make one call, to be given back with how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    epoch: u64,
}

/// What the outcome of a call says about its upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    Healthy,
    Failing,
    /// The call was cancelled, not authorized, or throttled, which says nothing.
    Unknown,
}

impl Default for Breaker {
    fn default() -> Breaker {
        Breaker { state: State::Closed { failures: 0 }, epoch: 0 }
    }
}

impl Breaker {
    /// Lets a call through; the error says how long to wait.
    pub fn admit(&mut self, config: &Config, now: Duration) -> Result<Pass, Duration> {
        if let State::Open { until } = self.state {
            if now < until {
                return Err(until - now);
            }
            self.set_state(State::HalfOpen { under_way: 0, answers: 0 });
        }
        if let State::HalfOpen { under_way, .. } = &mut self.state {
            if config.probes.max(1) <= *under_way {
                return Err(Duration::from_secs(1));
            }
            *under_way += 1;
        }
        Ok(Pass { epoch: self.epoch })
    }

    /// Takes back the pass of a call that ended, and counts its outcome.
    pub fn report(&mut self, config: &Config, pass: Pass, health: Health, now: Duration) {
        if pass.epoch != self.epoch || config.failures == 0 {
            return;
        }
        match (&mut self.state, health) {
            (State::Closed { failures }, Health::Healthy) => *failures = 0,
            (State::Closed { failures }, Health::Failing) => {
                *failures += 1;
                if config.failures <= *failures {
                    self.set_state(State::Open { until: now + config.pause });
                }
            }
            (State::HalfOpen { under_way, answers }, Health::Healthy) => {
                *under_way -= 1;
                *answers += 1;
                if config.answers <= *answers {
                    self.set_state(State::Closed { failures: 0 });
                }
            }
            (State::HalfOpen { .. }, Health::Failing) => {
                self.set_state(State::Open { until: now + config.pause });
            }
            (State::HalfOpen { under_way, .. }, Health::Unknown) => *under_way -= 1,
            (State::Closed { .. }, Health::Unknown) | (State::Open { .. }, _) => {}
        }
    }

    /// The state in one word, for status pages.
    pub fn state(&self) -> &'static str {
        match self.state {
            State::Closed { .. } => "closed",
            State::Open { .. } => "open",
            State::HalfOpen { .. } => "half-open",
        }
    }

    fn set_state(&mut self, state: State) {
        self.state = state;
        self.epoch += 1;
    }
}

impl Health {
    /// An answer that reports an error is still an answer: the upstream is healthy.
    pub fn from_outcome(outcome: &Result<Reply, Failure>) -> Health {
        match outcome {
            Ok(_) => Health::Healthy,
            Err(
                Failure::Unavailable { .. }
                | Failure::Timeout { .. }
                | Failure::Lost { .. }
                | Failure::Unusable { .. },
            ) => Health::Failing,
            Err(
                Failure::Unauthorized { .. }
                | Failure::Forbidden { .. }
                | Failure::RateLimited { .. }
                | Failure::Cancelled
                | Failure::Unsupported { .. },
            ) => Health::Unknown,
        }
    }
}

/// The breakers of all upstreams, by label.
#[derive(Debug)]
pub struct Breakers {
    config: Config,
    breakers: Mutex<HashMap<String, Breaker>>,
}

/// Holds a pass, and gives it back as [`Health::Unknown`] when the call is dropped.
#[derive(Debug)]
pub struct Guard {
    breakers: Arc<Breakers>,
    upstream: String,
    pass: Option<Pass>,
    now: Duration,
}

impl Breakers {
    pub fn new(config: Config) -> Breakers {
        Breakers { config, breakers: Mutex::default() }
    }

    /// Lets a call to `upstream` through; the error says how long to wait.
    pub fn admit(self: &Arc<Breakers>, upstream: &str, now: Duration) -> Result<Guard, Duration> {
        let pass = self.with_breaker(upstream, |breaker, config| breaker.admit(config, now))?;
        let (breakers, upstream) = (Arc::clone(self), upstream.to_owned());
        Ok(Guard { breakers, upstream, pass: Some(pass), now })
    }

    /// The state of the breaker of every upstream that was called, by label.
    pub fn states(&self) -> Vec<(String, &'static str)> {
        let breakers = self.breakers.lock();
        let mut states: Vec<_> =
            breakers.iter().map(|(name, breaker)| (name.clone(), breaker.state())).collect();
        states.sort_unstable();
        states
    }

    fn with_breaker<T>(&self, upstream: &str, work: impl FnOnce(&mut Breaker, &Config) -> T) -> T {
        let mut breakers = self.breakers.lock();
        work(breakers.entry(upstream.to_owned()).or_default(), &self.config)
    }
}

impl Guard {
    /// Gives the pass back with the outcome of the call.
    pub fn report(mut self, health: Health, now: Duration) {
        self.now = now;
        self.give_back(health);
    }

    fn give_back(&mut self, health: Health) {
        if let Some(pass) = self.pass.take() {
            let now = self.now;
            self.breakers.with_breaker(&self.upstream, |breaker, config| {
                breaker.report(config, pass, health, now);
            });
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.give_back(Health::Unknown);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ON: Config =
        Config { failures: 2, pause: Duration::from_secs(10), probes: 1, answers: 1 };

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn opened() -> Breaker {
        let mut breaker = Breaker::default();
        for _ in 0..2 {
            let pass = breaker.admit(&ON, at(0)).unwrap();
            breaker.report(&ON, pass, Health::Failing, at(0));
        }
        breaker
    }

    #[test]
    fn failures_in_a_row_open_it_and_time_half_opens_it() {
        let mut breaker = opened();
        assert_eq!(breaker.state(), "open");
        assert_eq!(breaker.admit(&ON, at(4)), Err(at(6)));
        assert!(breaker.admit(&ON, at(10)).is_ok());
        assert_eq!(breaker.state(), "half-open");
    }

    #[test]
    fn an_answer_in_between_starts_the_count_again() {
        let mut breaker = Breaker::default();
        for verdict in [Health::Failing, Health::Healthy, Health::Failing] {
            let pass = breaker.admit(&ON, at(0)).unwrap();
            breaker.report(&ON, pass, verdict, at(0));
        }
        assert_eq!(breaker.state(), "closed");
    }

    #[test]
    fn only_as_many_probes_as_allowed_are_under_way_at_once() {
        let mut breaker = opened();
        let probe = breaker.admit(&ON, at(10)).unwrap();
        assert!(breaker.admit(&ON, at(10)).is_err());
        breaker.report(&ON, probe, Health::Healthy, at(11));
        assert_eq!(breaker.state(), "closed");
    }

    #[test]
    fn a_failed_probe_opens_it_again_for_the_whole_pause() {
        let mut breaker = opened();
        let probe = breaker.admit(&ON, at(10)).unwrap();
        breaker.report(&ON, probe, Health::Failing, at(12));
        assert_eq!(breaker.admit(&ON, at(13)), Err(at(9)));
    }

    #[test]
    fn a_cancelled_probe_gives_its_place_back_and_decides_nothing() {
        let mut breaker = opened();
        let probe = breaker.admit(&ON, at(10)).unwrap();
        breaker.report(&ON, probe, Health::Unknown, at(10));
        assert_eq!(breaker.state(), "half-open");
        assert!(breaker.admit(&ON, at(10)).is_ok());
    }

    #[test]
    fn a_call_from_before_it_opened_says_nothing_about_now() {
        let mut breaker = Breaker::default();
        let slow = breaker.admit(&ON, at(0)).unwrap();
        for _ in 0..2 {
            let pass = breaker.admit(&ON, at(0)).unwrap();
            breaker.report(&ON, pass, Health::Failing, at(0));
        }
        let probe = breaker.admit(&ON, at(10)).unwrap();
        breaker.report(&ON, slow, Health::Failing, at(11));
        assert_eq!(breaker.state(), "half-open");
        breaker.report(&ON, probe, Health::Healthy, at(12));
        assert_eq!(breaker.state(), "closed");
    }

    #[test]
    fn switched_off_it_never_opens() {
        let off = Config::default();
        let mut breaker = Breaker::default();
        for _ in 0..100 {
            let pass = breaker.admit(&off, at(0)).unwrap();
            breaker.report(&off, pass, Health::Failing, at(0));
        }
        assert_eq!(breaker.state(), "closed");
    }

    #[test]
    fn a_dropped_call_gives_its_pass_back() {
        let panel = Arc::new(Breakers::new(ON));
        for _ in 0..2 {
            panel.admit("up", at(0)).unwrap().report(Health::Failing, at(0));
        }
        assert!(panel.admit("up", at(1)).is_err());
        assert!(panel.admit("other", at(1)).is_ok());
        drop(panel.admit("up", at(10)).unwrap());
        assert!(panel.admit("up", at(10)).is_ok());
        assert_eq!(panel.states()[1], ("up".to_owned(), "half-open"));
    }
}

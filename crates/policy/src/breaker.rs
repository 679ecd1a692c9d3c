//! The circuit breaker: stops calling an upstream that keeps failing.
//!
//! Closed, calls go through and failures in a row are counted. Open, none do,
//! until some time has passed. Then half-open: a few probes at a time may try,
//! and what becomes of *them* decides. A probe that is cancelled gives its
//! place back without counting, and a call from before the breaker opened
//! says nothing about now, however late it ends.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tool::{Failure, Reply};

/// When to stop asking, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Failures in a row that open the breaker; 0 keeps it closed for ever.
    pub failures: u32,
    /// How long nothing is asked then.
    pub pause: Duration,
    /// How many probes may be under way at once after that.
    pub probes: u32,
    /// Answers to probes in a row that close it again.
    pub answers: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config { failures: 0, pause: Duration::from_secs(30), probes: 1, answers: 1 }
    }
}

/// One breaker, as plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breaker {
    state: State,
    /// Grows with every change of state, so that old calls can be told.
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

/// What a call says about the health of its upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Well,
    Ill,
    /// Nothing: it was cancelled, refused for who asked, or throttled.
    Unknown,
}

impl Default for Breaker {
    fn default() -> Breaker {
        Breaker { state: State::Closed { failures: 0 }, epoch: 0 }
    }
}

impl Breaker {
    /// Lets a call through, or says how long none will be.
    pub fn admit(&mut self, config: &Config, now: Duration) -> Result<Pass, Duration> {
        if let State::Open { until } = self.state {
            if now < until {
                return Err(until - now);
            }
            self.become_(State::HalfOpen { under_way: 0, answers: 0 });
        }
        if let State::HalfOpen { under_way, .. } = &mut self.state {
            if config.probes.max(1) <= *under_way {
                return Err(Duration::from_secs(1));
            }
            *under_way += 1;
        }
        Ok(Pass { epoch: self.epoch })
    }

    /// Takes back a pass.
    pub fn settle(&mut self, config: &Config, pass: Pass, verdict: Verdict, now: Duration) {
        if pass.epoch != self.epoch || config.failures == 0 {
            return;
        }
        match (&mut self.state, verdict) {
            (State::Closed { failures }, Verdict::Well) => *failures = 0,
            (State::Closed { failures }, Verdict::Ill) => {
                *failures += 1;
                if config.failures <= *failures {
                    self.become_(State::Open { until: now + config.pause });
                }
            }
            (State::HalfOpen { under_way, answers }, Verdict::Well) => {
                *under_way -= 1;
                *answers += 1;
                if config.answers <= *answers {
                    self.become_(State::Closed { failures: 0 });
                }
            }
            (State::HalfOpen { .. }, Verdict::Ill) => {
                self.become_(State::Open { until: now + config.pause });
            }
            (State::HalfOpen { under_way, .. }, Verdict::Unknown) => *under_way -= 1,
            (State::Closed { .. }, Verdict::Unknown) | (State::Open { .. }, _) => {}
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

    fn become_(&mut self, state: State) {
        self.state = state;
        self.epoch += 1;
    }
}

impl Verdict {
    /// What an outcome says. An answer that reports an error is an answer.
    pub fn of(outcome: &Result<Reply, Failure>) -> Verdict {
        match outcome {
            Ok(_) => Verdict::Well,
            Err(
                Failure::Unavailable { .. }
                | Failure::Timeout { .. }
                | Failure::Lost { .. }
                | Failure::Unusable { .. },
            ) => Verdict::Ill,
            Err(
                Failure::Unauthorized { .. }
                | Failure::Forbidden { .. }
                | Failure::RateLimited { .. }
                | Failure::Cancelled
                | Failure::Unsupported { .. },
            ) => Verdict::Unknown,
        }
    }
}

/// The breakers of all upstreams, by label.
#[derive(Debug)]
pub struct Breakers {
    config: Config,
    breakers: Mutex<HashMap<String, Breaker>>,
}

/// A pass that gives itself back as unknown when its call is dropped.
#[derive(Debug)]
pub struct Guard {
    panel: Arc<Breakers>,
    upstream: String,
    pass: Option<Pass>,
    now: Duration,
}

impl Breakers {
    pub fn new(config: Config) -> Breakers {
        Breakers { config, breakers: Mutex::default() }
    }

    /// Lets a call to `upstream` through, or says how long none will be.
    pub fn admit(self: &Arc<Breakers>, upstream: &str, now: Duration) -> Result<Guard, Duration> {
        let pass = self.with(upstream, |breaker, config| breaker.admit(config, now))?;
        Ok(Guard { panel: Arc::clone(self), upstream: upstream.to_owned(), pass: Some(pass), now })
    }

    /// Every breaker that ever saw a call, with its state.
    pub fn states(&self) -> Vec<(String, &'static str)> {
        let breakers = self.breakers.lock();
        let mut states: Vec<_> =
            breakers.iter().map(|(name, breaker)| (name.clone(), breaker.state())).collect();
        states.sort_unstable();
        states
    }

    fn with<T>(&self, upstream: &str, act: impl FnOnce(&mut Breaker, &Config) -> T) -> T {
        let mut breakers = self.breakers.lock();
        act(breakers.entry(upstream.to_owned()).or_default(), &self.config)
    }
}

impl Guard {
    /// Gives the pass back with what the call says.
    pub fn settle(mut self, verdict: Verdict, now: Duration) {
        self.now = now;
        self.give_back(verdict);
    }

    fn give_back(&mut self, verdict: Verdict) {
        if let Some(pass) = self.pass.take() {
            let now = self.now;
            self.panel.with(&self.upstream, |breaker, config| {
                breaker.settle(config, pass, verdict, now);
            });
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.give_back(Verdict::Unknown);
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
            breaker.settle(&ON, pass, Verdict::Ill, at(0));
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
        for verdict in [Verdict::Ill, Verdict::Well, Verdict::Ill] {
            let pass = breaker.admit(&ON, at(0)).unwrap();
            breaker.settle(&ON, pass, verdict, at(0));
        }
        assert_eq!(breaker.state(), "closed");
    }

    #[test]
    fn only_as_many_probes_as_allowed_are_under_way_at_once() {
        let mut breaker = opened();
        let probe = breaker.admit(&ON, at(10)).unwrap();
        assert!(breaker.admit(&ON, at(10)).is_err());
        breaker.settle(&ON, probe, Verdict::Well, at(11));
        assert_eq!(breaker.state(), "closed");
    }

    #[test]
    fn a_failed_probe_opens_it_again_for_the_whole_pause() {
        let mut breaker = opened();
        let probe = breaker.admit(&ON, at(10)).unwrap();
        breaker.settle(&ON, probe, Verdict::Ill, at(12));
        assert_eq!(breaker.admit(&ON, at(13)), Err(at(9)));
    }

    #[test]
    fn a_cancelled_probe_gives_its_place_back_and_decides_nothing() {
        let mut breaker = opened();
        let probe = breaker.admit(&ON, at(10)).unwrap();
        breaker.settle(&ON, probe, Verdict::Unknown, at(10));
        assert_eq!(breaker.state(), "half-open");
        assert!(breaker.admit(&ON, at(10)).is_ok());
    }

    #[test]
    fn a_call_from_before_it_opened_says_nothing_about_now() {
        let mut breaker = Breaker::default();
        let slow = breaker.admit(&ON, at(0)).unwrap();
        for _ in 0..2 {
            let pass = breaker.admit(&ON, at(0)).unwrap();
            breaker.settle(&ON, pass, Verdict::Ill, at(0));
        }
        let probe = breaker.admit(&ON, at(10)).unwrap();
        breaker.settle(&ON, slow, Verdict::Ill, at(11));
        assert_eq!(breaker.state(), "half-open");
        breaker.settle(&ON, probe, Verdict::Well, at(12));
        assert_eq!(breaker.state(), "closed");
    }

    #[test]
    fn switched_off_it_never_opens() {
        let off = Config::default();
        let mut breaker = Breaker::default();
        for _ in 0..100 {
            let pass = breaker.admit(&off, at(0)).unwrap();
            breaker.settle(&off, pass, Verdict::Ill, at(0));
        }
        assert_eq!(breaker.state(), "closed");
    }

    #[test]
    fn a_dropped_call_gives_its_pass_back() {
        let panel = Arc::new(Breakers::new(ON));
        for _ in 0..2 {
            panel.admit("up", at(0)).unwrap().settle(Verdict::Ill, at(0));
        }
        assert!(panel.admit("up", at(1)).is_err());
        assert!(panel.admit("other", at(1)).is_ok());
        drop(panel.admit("up", at(10)).unwrap());
        assert!(panel.admit("up", at(10)).is_ok());
        assert_eq!(panel.states()[1], ("up".to_owned(), "half-open"));
    }
}

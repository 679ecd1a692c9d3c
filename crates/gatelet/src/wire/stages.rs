//! The stages of a call, as the configuration has them.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use gateway::clock::Clock;
use gateway::redact::{self, Scrubber};
use gateway::stage::approval::Consent;
use gateway::stage::attempt::{self, Caller};
use gateway::stage::cache::Kept;
use gateway::stage::policy::{self, Rules};
use gateway::stage::quota::{self, Limiter};
use gateway::stage::{Approval, Cache, Open, Quota, Retry, Stages, Trust};

use super::trust;
use crate::config::Config;

/// The stages in force, kept to take over what a changed configuration leaves
/// as it is: counts, kept answers and broken circuits stay where the settings
/// that they belong to stay.
#[derive(Default)]
pub(super) struct Current(Mutex<Option<Made>>);

struct Made {
    config: Config,
    clock: Arc<dyn Clock>,
    /// Who is trusted, before the rules.
    trust: Arc<dyn Trust>,
    stages: Stages,
}

impl Current {
    /// The stages of the configuration that a gate begins with.
    pub(super) fn first(&self, config: &Config, state: &Path, clock: &Arc<dyn Clock>) -> Stages {
        let trust = trust::trust(config, state, clock);
        let stages = Stages {
            trust: rules(config, &trust),
            approval: Arc::new(Consent::new(Arc::clone(clock))) as Arc<dyn Approval>,
            quota: quota(config, clock),
            cache: cache(config, clock),
            retry: retry(config, clock),
            scrubber: scrubber(config),
        };
        let (config, clock) = (config.clone(), Arc::clone(clock));
        let made = Made { config, clock, trust, stages: stages.clone() };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(made);
        stages
    }

    /// The stages of a configuration that has changed.
    pub(super) fn next(&self, config: &Config, state: &Path) -> Stages {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // There is a first one before there is a next.
        let Some(Made { config: before, clock, trust, stages }) = &mut *made else {
            return Stages::default();
        };
        if !trust::is_same(before, config) {
            *trust = trust::trust(config, state, clock);
        }
        let (old, new) = (&before.controls, &config.controls);
        // Whom somebody agreed with is remembered whatever changes.
        stages.trust = rules(config, trust);
        if old.rates != new.rates {
            stages.quota = quota(config, clock);
        }
        if old.cache != new.cache {
            stages.cache = cache(config, clock);
        }
        if old.calls != new.calls {
            stages.retry = retry(config, clock);
        }
        if old.redact != new.redact {
            stages.scrubber = scrubber(config);
        }
        before.clone_from(config);
        stages.clone()
    }
}

// What is not configured stays as it is by default, and costs nothing.

fn rules(config: &Config, trust: &Arc<dyn Trust>) -> Arc<dyn Trust> {
    let rules = &config.controls.rules;
    match *rules == policy::Config::default() {
        true => Arc::clone(trust),
        false => Arc::new(Rules::new(rules.clone(), Arc::clone(trust))),
    }
}

fn quota(config: &Config, clock: &Arc<dyn Clock>) -> Arc<dyn Quota> {
    let rates = &config.controls.rates;
    match *rates == quota::Config::default() {
        true => Arc::new(Open),
        false => Arc::new(Limiter::new(rates.clone(), Arc::clone(clock))),
    }
}

fn cache(config: &Config, clock: &Arc<dyn Clock>) -> Arc<dyn Cache> {
    let cache = &config.controls.cache;
    match cache.read_only {
        true => Arc::new(Kept::new(cache.clone(), Arc::clone(clock))),
        false => Arc::new(Open),
    }
}

fn retry(config: &Config, clock: &Arc<dyn Clock>) -> Arc<dyn Retry> {
    let calls = &config.controls.calls;
    match *calls == attempt::Config::default() {
        true => Arc::new(Open),
        false => Arc::new(Caller::new(calls.clone(), Arc::clone(clock), rand::random::<f64>)),
    }
}

fn scrubber(config: &Config) -> Arc<Scrubber> {
    match config.controls.redact {
        true => Arc::default(),
        false => Arc::new(Scrubber::new(redact::Config { enabled: false, known: Vec::new() })),
    }
}

//! The stages of a call, as the configuration has them.

use std::sync::Arc;

use gateway::clock::Clock;
use gateway::redact::{self, Scrubber};
use gateway::stage::approval::Consent;
use gateway::stage::attempt::{self, Caller};
use gateway::stage::cache::Kept;
use gateway::stage::policy::{self, Rules};
use gateway::stage::quota::{self, Limiter};
use gateway::stage::{Stages, Trust};

use crate::config::Controls;

/// What is not configured stays as it is by default, and costs nothing.
pub(super) fn stages(controls: &Controls, trust: Arc<dyn Trust>, clock: &Arc<dyn Clock>) -> Stages {
    let approval = Arc::new(Consent::new(Arc::clone(clock)));
    let mut stages = Stages { trust, approval, ..Stages::default() };
    if controls.rules != policy::Config::default() {
        stages.trust = Arc::new(Rules::new(controls.rules.clone(), stages.trust));
    }
    if controls.rates != quota::Config::default() {
        stages.quota = Arc::new(Limiter::new(controls.rates.clone(), Arc::clone(clock)));
    }
    if controls.cache.read_only {
        stages.cache = Arc::new(Kept::new(controls.cache.clone(), Arc::clone(clock)));
    }
    if controls.calls != attempt::Config::default() {
        let chance = rand::random::<f64>;
        stages.retry = Arc::new(Caller::new(controls.calls.clone(), Arc::clone(clock), chance));
    }
    if !controls.redact {
        let off = redact::Config { enabled: false, known: Vec::new() };
        stages.scrubber = Arc::new(Scrubber::new(off));
    }
    stages
}

//! How an upstream is asked: not while it is ill, not too often at once, not
//! for ever, and again when that is safe.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Semaphore;
use tool::{Failure, Reply};

use super::breaker::{self, Panel, Verdict};
use super::{Attempt, Retry, ValidCall, retry};
use crate::clock::Clock;

/// What holds for the calls to one upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lane {
    /// How long one attempt may take; the upstream's own limit when `None`.
    pub timeout: Option<Duration>,
    /// How many calls may be under way at once.
    pub at_once: Option<usize>,
    /// How long a call waits for its turn before it is refused.
    pub patience: Option<Duration>,
}

/// How upstreams are asked. Once each, without limits, by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    pub retry: retry::Config,
    pub breaker: breaker::Config,
    /// For upstreams that have no lane of their own.
    pub lane: Lane,
    /// By label.
    pub lanes: HashMap<String, Lane>,
}

/// The stage.
pub struct Caller {
    config: Config,
    panel: Arc<Panel>,
    turns: Mutex<HashMap<String, Arc<Semaphore>>>,
    clock: Arc<dyn Clock>,
    /// A number from 0 to 1, for jitter.
    chance: Box<dyn Fn() -> f64 + Send + Sync>,
}

impl Caller {
    pub fn new(
        config: Config,
        clock: Arc<dyn Clock>,
        chance: impl Fn() -> f64 + Send + Sync + 'static,
    ) -> Caller {
        let panel = Arc::new(Panel::new(config.breaker.clone()));
        Caller { config, panel, turns: Mutex::default(), clock, chance: Box::new(chance) }
    }

    /// The breakers, for status pages.
    pub fn panel(&self) -> &Arc<Panel> {
        &self.panel
    }

    async fn once(&self, upstream: &str, attempt: &dyn Attempt) -> Result<Reply, Failure> {
        let unavailable = |reason: String| Failure::Unavailable { reason };
        let guard = self.panel.admit(upstream, self.clock.elapsed()).map_err(|after| {
            let seconds = after.as_secs_f64().ceil();
            unavailable(format!("it failed repeatedly and is left alone for {seconds} s"))
        })?;
        let lane = self.config.lanes.get(upstream).unwrap_or(&self.config.lane);
        let turn = match self.turn(upstream, lane) {
            Some(turns) => {
                let patience = lane.patience.unwrap_or(Duration::from_secs(30));
                let turn = tokio::time::timeout(patience, turns.acquire_owned()).await;
                let busy = |_| unavailable(format!("busy: no turn within {patience:?}"));
                Some(turn.map_err(busy)?)
            }
            None => None,
        };
        let outcome = match lane.timeout {
            Some(after) => tokio::time::timeout(after, attempt.attempt())
                .await
                .unwrap_or(Err(Failure::Timeout { after })),
            None => attempt.attempt().await,
        };
        drop(turn);
        guard.settle(Verdict::of(&outcome), self.clock.elapsed());
        outcome
    }

    fn turn(&self, upstream: &str, lane: &Lane) -> Option<Arc<Semaphore>> {
        let at_once = lane.at_once?;
        let mut turns = self.turns.lock().expect("nothing panics while it holds this");
        let turns = turns.entry(upstream.to_owned());
        Some(Arc::clone(turns.or_insert_with(|| Arc::new(Semaphore::new(at_once.max(1))))))
    }
}

#[async_trait]
impl Retry for Caller {
    async fn run(&self, call: &ValidCall, attempt: &dyn Attempt) -> (Result<Reply, Failure>, u32) {
        let retry = &self.config.retry;
        let repeatable = retry.repeatable(call.callee.named(), &call.annotations);
        let mut done = 0;
        loop {
            let outcome = self.once(&call.callee.upstream, attempt).await;
            done += 1;
            let Err(failure) = &outcome else { return (outcome, done) };
            match retry.again(failure, repeatable, done, (self.chance)()) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return (outcome, done),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use catalog::{Catalog, Slot, Source};
    use serde_json::json;
    use testkit::{listing, tool};
    use tool::Json;

    use super::*;
    use crate::clock::Fake;
    use crate::dispatch::{Callee, Request, Target};
    use crate::stage::validate;

    fn call() -> ValidCall {
        let listed = Arc::new(listing(vec![tool("do", "", &json!({}))]));
        let (catalog, _) = Catalog::build(vec![Source::new("up", listed)]);
        let callee = Arc::new(Callee::new("up:do#1", "up", "do"));
        validate::check(&catalog, Request::new(Target::of(Slot(0), callee), Json::empty_object()))
            .unwrap()
    }

    /// Fails with `failure` so many times, then answers; or never answers.
    struct Script {
        failures: u32,
        failure: Failure,
        hangs: bool,
        asked: AtomicU32,
    }

    impl Script {
        fn new(failures: u32, failure: Failure) -> Script {
            Script { failures, failure, hangs: false, asked: AtomicU32::new(0) }
        }
    }

    #[async_trait]
    impl Attempt for Script {
        async fn attempt(&self) -> Result<Reply, Failure> {
            let before = self.asked.fetch_add(1, Ordering::SeqCst);
            if self.hangs {
                std::future::pending::<()>().await;
            }
            if before < self.failures { Err(self.failure.clone()) } else { Ok(Reply::text("ok")) }
        }
    }

    fn refused() -> Failure {
        Failure::Unavailable { reason: "refused".into() }
    }

    fn caller(config: Config) -> (Caller, Arc<Fake>) {
        let clock = Arc::new(Fake::default());
        (Caller::new(config, Arc::clone(&clock) as _, || 0.0), clock)
    }

    fn thrice() -> retry::Config {
        retry::Config { attempts: 3, ..retry::Config::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn what_never_left_is_tried_again_with_growing_pauses() {
        let (caller, _) = caller(Config { retry: thrice(), ..Config::default() });
        let script = Script::new(2, refused());
        let before = tokio::time::Instant::now();
        let (outcome, attempts) = caller.run(&call(), &script).await;
        assert_eq!((outcome.is_ok(), attempts), (true, 3));
        assert_eq!(before.elapsed(), Duration::from_millis(300));
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_have_run_is_asked_once() {
        let (caller, _) = caller(Config { retry: thrice(), ..Config::default() });
        let script = Script::new(2, Failure::Timeout { after: Duration::from_secs(1) });
        let (outcome, attempts) = caller.run(&call(), &script).await;
        assert_eq!((outcome.is_err(), attempts), (true, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_hung_upstream_is_given_up() {
        let lane = Lane { timeout: Some(Duration::from_secs(3)), ..Lane::default() };
        let (caller, _) = caller(Config { lane, ..Config::default() });
        let script = Script { hangs: true, ..Script::new(0, refused()) };
        let (outcome, _) = caller.run(&call(), &script).await;
        assert_eq!(outcome, Err(Failure::Timeout { after: Duration::from_secs(3) }));
    }

    #[tokio::test(start_paused = true)]
    async fn an_ill_upstream_is_left_alone_and_then_probed() {
        let breaker = breaker::Config { failures: 2, ..breaker::Config::default() };
        let (caller, clock) = caller(Config { breaker, ..Config::default() });
        let script = Script::new(2, refused());
        for _ in 0..4 {
            assert!(caller.run(&call(), &script).await.0.is_err());
        }
        assert_eq!(script.asked.load(Ordering::SeqCst), 2);
        clock.advance(Duration::from_secs(30));
        assert!(caller.run(&call(), &script).await.0.is_ok());
        assert_eq!(caller.panel().states(), [("up".to_owned(), "closed")]);
    }

    #[tokio::test(start_paused = true)]
    async fn calls_wait_for_their_turn_and_not_for_ever() {
        let lane = Lane {
            timeout: Some(Duration::from_secs(60)),
            at_once: Some(1),
            patience: Some(Duration::from_secs(5)),
        };
        let (caller, _) = caller(Config { lane, ..Config::default() });
        let hanging = Script { hangs: true, ..Script::new(0, refused()) };
        let quick = Script::new(0, refused());
        let call = call();
        let (first, second) = tokio::join!(caller.run(&call, &hanging), caller.run(&call, &quick));
        assert!(matches!(first.0, Err(Failure::Timeout { .. })));
        assert!(matches!(second.0, Err(Failure::Unavailable { .. })));
        assert_eq!(quick.asked.load(Ordering::SeqCst), 0);
        assert!(caller.run(&call, &quick).await.0.is_ok());
    }
}

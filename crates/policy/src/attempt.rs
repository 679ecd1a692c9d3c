//! Makes a call to an upstream, with circuit breaker, concurrency limit, timeout,
//! and retries where they are safe.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use catalog::name;
use fair::{Key, Priority, Semaphore};
use parking_lot::Mutex;
use tool::{Context, Failure, Reply};

use crate::breaker::{self, Breakers, Guard, Health};
use crate::retry;
use crate::validate::ValidCall;
use tool::clock::Clock;

/// The retry stage: decides whether and when an attempt is made. [`run`] makes the
/// attempts.
pub trait Retry: Send + Sync {
    /// Allows an attempt, under certain limits, or fails it at once.
    fn begin(&self, call: &ValidCall, context: &Context) -> Result<Permit, Failure>;

    /// The pause before the next attempt, after `done` attempts; `None` when the call is
    /// not made again.
    fn pause_before_retry(
        &self,
        call: &ValidCall,
        failure: &Failure,
        done: u32,
    ) -> Option<Duration>;

    /// The number of calls that wait for their turn, by upstream, where any do.
    fn waiting(&self) -> HashMap<String, usize> {
        HashMap::new()
    }
}

/// The permission for one attempt.
pub enum Permit {
    /// It may run at once and without limits.
    Free,
    /// Boxed, because most attempts are free.
    Limited(Box<AttemptLimits>),
}

/// The limits of calls to one upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpstreamLimits {
    /// How long one attempt may take; the upstream's own limit when `None`.
    pub timeout: Option<Duration>,
    /// The most calls that may run at the same time.
    pub at_once: Option<usize>,
    /// How long a call waits for its turn before it is refused.
    pub patience: Option<Duration>,
}

/// How long a call waits for its turn by default.
const DEFAULT_PATIENCE: Duration = Duration::from_secs(30);

/// The most calls of one session that wait for their turn.
const MAX_WAITING: usize = 1024;

/// How upstreams are called. By default: one attempt, no limits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    pub retry: retry::Config,
    pub breaker: breaker::Config,
    /// The limits of upstreams that have none of their own.
    pub default_limits: UpstreamLimits,
    /// The limits of single upstreams, by label.
    pub upstream_limits: HashMap<String, UpstreamLimits>,
}

impl Config {
    /// The limits of an upstream, by any spelling of its label.
    pub fn limits_of(&self, upstream: &str) -> &UpstreamLimits {
        let own = self.upstream_limits.get(upstream).or_else(|| {
            let mut all = self.upstream_limits.iter();
            all.find(|(label, _)| name::means(label, upstream)).map(|(_, limits)| limits)
        });
        own.unwrap_or(&self.default_limits)
    }
}

/// The retry stage, with the breakers and queues of all upstreams.
pub struct UpstreamCaller {
    config: Config,
    breakers: Arc<Breakers>,
    /// Limits concurrency, by upstream.
    semaphores: Mutex<HashMap<String, Semaphore>>,
    clock: Arc<dyn Clock>,
    /// Makes a random number from 0 to 1, for jitter.
    random: Box<dyn Fn() -> f64 + Send + Sync>,
}

/// The limits of one attempt. What it holds is given back when it ends.
pub struct AttemptLimits {
    breaker: Option<BreakerPass>,
    queue: Option<TurnQueue>,
    timeout: Option<Duration>,
}

/// The queue in which an attempt waits for its turn, shared fairly between callers.
struct TurnQueue {
    semaphore: Semaphore,
    key: Key,
    patience: Duration,
}

/// The breaker's permission for one attempt, and the clock to report its end.
struct BreakerPass {
    guard: Guard,
    clock: Arc<dyn Clock>,
}

/// Makes attempts until one succeeds or `retry` ends it. Returns the last outcome and
/// the number of attempts.
#[expect(clippy::manual_async_fn, reason = "an `async fn` keeps its arguments twice")]
pub fn run<A: Future<Output = Result<Reply, Failure>>>(
    retry: &dyn Retry,
    call: &ValidCall,
    context: &Context,
    attempt: impl Fn() -> A,
) -> impl Future<Output = (Result<Reply, Failure>, u32)> {
    async move {
        let mut done = 0;
        loop {
            let outcome = match retry.begin(call, context) {
                Ok(Permit::Free) => attempt().await,
                Ok(Permit::Limited(limits)) => Box::pin(limits.apply_to(attempt())).await,
                Err(failure) => Err(failure),
            };
            done += 1;
            let Err(failure) = &outcome else { return (outcome, done) };
            match retry.pause_before_retry(call, failure, done) {
                Some(pause) => Box::pin(tokio::time::sleep(pause)).await,
                None => return (outcome, done),
            }
        }
    }
}

impl UpstreamCaller {
    pub fn new(
        config: Config,
        clock: Arc<dyn Clock>,
        random: impl Fn() -> f64 + Send + Sync + 'static,
    ) -> UpstreamCaller {
        let breakers = Arc::new(Breakers::new(config.breaker.clone()));
        let semaphores = Mutex::default();
        UpstreamCaller { config, breakers, semaphores, clock, random: Box::new(random) }
    }

    /// The breakers of all upstreams, for status pages.
    pub fn breakers(&self) -> &Arc<Breakers> {
        &self.breakers
    }

    /// Asks the upstream's breaker; `None` where breakers are switched off.
    fn breaker_pass(&self, upstream: &str) -> Result<Option<BreakerPass>, Failure> {
        if self.config.breaker.failures == 0 {
            return Ok(None);
        }
        let guard = self.breakers.admit(upstream, self.clock.elapsed()).map_err(|after| {
            let seconds = after.as_secs_f64().ceil();
            unavailable(format!("it failed repeatedly and is left alone for {seconds} s"))
        })?;
        Ok(Some(BreakerPass { guard, clock: Arc::clone(&self.clock) }))
    }

    fn queue(
        &self,
        upstream: &str,
        limits: &UpstreamLimits,
        context: &Context,
    ) -> Option<TurnQueue> {
        let permits = limits.at_once?.max(1);
        let fair_limits = fair::Limits { permits, reserved: 0, waiting: MAX_WAITING };
        let mut semaphores = self.semaphores.lock();
        let semaphore =
            semaphores.entry(upstream.to_owned()).or_insert_with(|| Semaphore::new(fair_limits));
        let key = semaphore.key(context.caller.caller_key(), &*context.session);
        let patience = limits.patience.unwrap_or(DEFAULT_PATIENCE);
        Some(TurnQueue { semaphore: semaphore.clone(), key, patience })
    }
}

impl Retry for UpstreamCaller {
    fn begin(&self, call: &ValidCall, context: &Context) -> Result<Permit, Failure> {
        let upstream = &call.callee.upstream;
        let breaker = self.breaker_pass(upstream)?;
        let limits = self.config.limits_of(upstream);
        let (queue, timeout) = (self.queue(upstream, limits, context), limits.timeout);
        Ok(match (&breaker, &queue, timeout) {
            (None, None, None) => Permit::Free,
            _ => Permit::Limited(Box::new(AttemptLimits { breaker, queue, timeout })),
        })
    }

    fn pause_before_retry(
        &self,
        call: &ValidCall,
        failure: &Failure,
        done: u32,
    ) -> Option<Duration> {
        let retry = &self.config.retry;
        let repeatable = retry.is_repeatable(call.callee.names(), &call.annotations);
        retry.pause_before_retry(failure, repeatable, done, (self.random)())
    }

    fn waiting(&self) -> HashMap<String, usize> {
        let semaphores = self.semaphores.lock();
        let waiting =
            semaphores.iter().map(|(upstream, semaphore)| (upstream.clone(), semaphore.waiting()));
        waiting.filter(|(_, n_calls)| *n_calls != 0).collect()
    }
}

impl AttemptLimits {
    /// Makes one attempt within these limits. An attempt that is dropped gives back what
    /// it holds and does not count for the breaker.
    async fn apply_to<A: Future<Output = Result<Reply, Failure>>>(
        self,
        attempt: A,
    ) -> Result<Reply, Failure> {
        let AttemptLimits { breaker, queue, timeout } = self;
        let turn = match queue {
            Some(queue) => Some(queue.turn().await?),
            None => None,
        };
        let outcome = match timeout {
            Some(after) => tokio::time::timeout(after, attempt)
                .await
                .unwrap_or(Err(Failure::Timeout { after })),
            None => attempt.await,
        };
        drop(turn);
        if let Some(BreakerPass { guard, clock }) = breaker {
            guard.report(Health::from_outcome(&outcome), clock.elapsed());
        }
        outcome
    }
}

impl TurnQueue {
    async fn turn(&self) -> Result<fair::Permit, Failure> {
        let turn = self.semaphore.acquire(self.key, Priority::Normal);
        match tokio::time::timeout(self.patience, turn).await {
            Ok(Ok(turn)) => Ok(turn),
            Ok(Err(full)) => Err(unavailable(format!("busy: {full}"))),
            Err(_) => Err(unavailable(format!("busy: no turn within {:?}", self.patience))),
        }
    }
}

fn unavailable(reason: String) -> Failure {
    Failure::Unavailable { reason }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use catalog::{Catalog, Slot, Source};
    use serde_json::json;
    use testkit::{listing, tool};
    use tool::Json;

    use super::*;
    use crate::call::{Callee, Request, Target};
    use crate::validate;
    use tool::clock::Fake;

    fn call() -> ValidCall {
        let listed = Arc::new(listing(vec![tool("do", "", &json!({}))]));
        let (catalog, _) = Catalog::build(vec![Source::new("up", listed)]);
        let callee = Arc::new(Callee::new("up:do#1", "up", "do"));
        validate::check(
            &catalog,
            Request::new(Target::function(Slot(0), callee), Json::empty_object()),
        )
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

    fn caller(config: Config) -> (UpstreamCaller, Arc<Fake>) {
        let clock = Arc::new(Fake::default());
        (UpstreamCaller::new(config, Arc::clone(&clock) as _, || 0.0), clock)
    }

    fn thrice() -> retry::Config {
        retry::Config { attempts: 3, ..retry::Config::default() }
    }

    impl UpstreamCaller {
        async fn ask(&self, script: &Script) -> (Result<Reply, Failure>, u32) {
            run(self, &call(), &Context::anonymous(), || script.attempt()).await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_never_left_is_tried_again_with_growing_pauses() {
        let (caller, _) = caller(Config { retry: thrice(), ..Config::default() });
        let script = Script::new(2, refused());
        let before = tokio::time::Instant::now();
        let (outcome, attempts) = caller.ask(&script).await;
        assert_eq!((outcome.is_ok(), attempts), (true, 3));
        assert_eq!(before.elapsed(), Duration::from_millis(300));
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_have_run_is_asked_once() {
        let (caller, _) = caller(Config { retry: thrice(), ..Config::default() });
        let script = Script::new(2, Failure::Timeout { after: Duration::from_secs(1) });
        let (outcome, attempts) = caller.ask(&script).await;
        assert_eq!((outcome.is_err(), attempts), (true, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_hung_upstream_is_given_up() {
        let default_limits =
            UpstreamLimits { timeout: Some(Duration::from_secs(3)), ..UpstreamLimits::default() };
        let (caller, _) = caller(Config { default_limits, ..Config::default() });
        let script = Script { hangs: true, ..Script::new(0, refused()) };
        let (outcome, _) = caller.ask(&script).await;
        assert_eq!(outcome, Err(Failure::Timeout { after: Duration::from_secs(3) }));
    }

    #[tokio::test(start_paused = true)]
    async fn an_ill_upstream_is_left_alone_and_then_probed() {
        let breaker = breaker::Config { failures: 2, ..breaker::Config::default() };
        let (caller, clock) = caller(Config { breaker, ..Config::default() });
        let script = Script::new(2, refused());
        for _ in 0..4 {
            assert!(caller.ask(&script).await.0.is_err());
        }
        assert_eq!(script.asked.load(Ordering::SeqCst), 2);
        clock.advance(Duration::from_secs(30));
        assert!(caller.ask(&script).await.0.is_ok());
        assert_eq!(caller.breakers().states(), [("up".to_owned(), "closed")]);
    }

    #[tokio::test(start_paused = true)]
    async fn calls_wait_for_their_turn_and_not_for_ever() {
        let default_limits = UpstreamLimits {
            timeout: Some(Duration::from_secs(60)),
            at_once: Some(1),
            patience: Some(Duration::from_secs(5)),
        };
        let (caller, _) = caller(Config { default_limits, ..Config::default() });
        let hanging = Script { hangs: true, ..Script::new(0, refused()) };
        let quick = Script::new(0, refused());
        let (first, second) = tokio::join!(caller.ask(&hanging), caller.ask(&quick));
        assert!(matches!(first.0, Err(Failure::Timeout { .. })));
        assert!(matches!(second.0, Err(Failure::Unavailable { .. })));
        assert_eq!(quick.asked.load(Ordering::SeqCst), 0);
        assert!(caller.ask(&quick).await.0.is_ok());
    }

    #[tokio::test(start_paused = true)]
    #[expect(clippy::disallowed_methods, reason = "a test supervises what it starts")]
    async fn one_call_waits_for_one_turn_behind_hundreds_of_somebody_else() {
        let default_limits = UpstreamLimits { at_once: Some(8), ..UpstreamLimits::default() };
        let (caller, _) = caller(Config { default_limits, ..Config::default() });
        let caller = Arc::new(caller);
        let by = |session: &str| Context { session: session.into(), ..Context::anonymous() };
        let tenth = || async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            Ok(Reply::text("ok"))
        };
        let heavy: Vec<_> = (0..500)
            .map(|_| {
                let (caller, context) = (Arc::clone(&caller), by("heavy"));
                tokio::spawn(async move { run(&*caller, &call(), &context, tenth).await.0 })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(50)).await;
        let before = tokio::time::Instant::now();
        assert!(run(&*caller, &call(), &by("light"), tenth).await.0.is_ok());
        let waited = before.elapsed();
        assert!(waited <= Duration::from_millis(200), "waited for {waited:?}");
        for call in heavy {
            assert!(call.await.unwrap().is_ok());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_that_is_dropped_gives_back_its_turn_and_its_pass() {
        let default_limits = UpstreamLimits { at_once: Some(1), ..UpstreamLimits::default() };
        let breaker = breaker::Config { failures: 1, ..breaker::Config::default() };
        let (caller, clock) = caller(Config { default_limits, breaker, ..Config::default() });
        assert!(caller.ask(&Script::new(1, refused())).await.0.is_err());
        clock.advance(Duration::from_secs(30));
        let hanging = Script { hangs: true, ..Script::new(0, refused()) };
        let probe = tokio::time::timeout(Duration::from_secs(1), caller.ask(&hanging)).await;
        assert!(probe.is_err());
        assert_eq!(caller.breakers().states(), [("up".to_owned(), "half-open")]);
        assert!(caller.ask(&Script::new(0, refused())).await.0.is_ok());
    }

    #[test]
    fn a_call_without_limits_is_permitted_without_limits() {
        let default_limits = |default_limits| {
            caller(Config { default_limits, retry: thrice(), ..Config::default() }).0
        };
        let timeout = Some(Duration::from_secs(1));
        assert!(matches!(
            default_limits(UpstreamLimits::default()).begin(&call(), &Context::anonymous()),
            Ok(Permit::Free)
        ));
        let bound = UpstreamLimits { timeout, ..UpstreamLimits::default() };
        assert!(matches!(
            default_limits(bound).begin(&call(), &Context::anonymous()),
            Ok(Permit::Limited(_))
        ));
    }
}

//! Makes a call to an upstream: with circuit breaker, concurrency limit, timeout,
//! and retries where they are safe.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use catalog::name;
use fair::{Key, Semaphore, Urgency};
use parking_lot::Mutex;
use tool::{Context, Failure, Reply};

use crate::breaker::{self, Breakers, Guard, Verdict};
use crate::retry;
use crate::validate::ValidCall;
use tool::clock::Clock;

/// How a call is attempted: once, or again when it is safe to.
///
/// It only decides; [`run`] does what it says.
pub trait Retry: Send + Sync {
    /// Whether an attempt may begin, and what it has to keep to.
    fn begin(&self, call: &ValidCall, context: &Context) -> Result<Permit, Failure>;

    /// The pause before the next attempt after so many; `None` when this
    /// failure is the end of the call.
    fn again(&self, call: &ValidCall, failure: &Failure, done: u32) -> Option<Duration>;

    /// How many calls wait for their turn, by upstream; only where some do.
    fn waiting(&self) -> HashMap<String, usize> {
        HashMap::new()
    }
}

/// How one attempt may go.
pub enum Permit {
    /// At once, and for as long as the upstream may take.
    Free,
    /// Boxed: most calls need no room for it.
    Limited(Box<Limits>),
}

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

/// How long a call waits for its turn where nobody says.
const PATIENCE: Duration = Duration::from_secs(30);

/// How many calls of one session wait for their turn.
const WAITING: usize = 1024;

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

impl Config {
    /// The lane of an upstream, by any spelling of its label.
    pub fn lane(&self, upstream: &str) -> &Lane {
        let own = self.lanes.get(upstream).or_else(|| {
            let found = self.lanes.iter().find(|(label, _)| name::means(label, upstream));
            found.map(|(_, lane)| lane)
        });
        own.unwrap_or(&self.lane)
    }
}

/// The stage.
pub struct Caller {
    config: Config,
    breakers: Arc<Breakers>,
    turns: Mutex<HashMap<String, Semaphore>>,
    clock: Arc<dyn Clock>,
    /// A number from 0 to 1, for jitter.
    chance: Box<dyn Fn() -> f64 + Send + Sync>,
}

/// What one attempt has to keep to, and what is given back when it ends.
pub struct Limits {
    watch: Option<Watch>,
    /// Where it waits for its turn.
    queue: Option<Queue>,
    timeout: Option<Duration>,
}

/// Where an attempt waits for its turn: callers wait side by side, and take
/// turns.
struct Queue {
    turns: Semaphore,
    key: Key,
    patience: Duration,
}

/// The breaker's pass, and the time that it asks for in the end.
struct Watch {
    guard: Guard,
    clock: Arc<dyn Clock>,
}

/// Has a call answered, as often as the policy wants it tried: the last
/// outcome, and how many attempts it took.
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
                Ok(Permit::Limited(limits)) => Box::pin(limits.keep(attempt())).await,
                Err(failure) => Err(failure),
            };
            done += 1;
            let Err(failure) = &outcome else { return (outcome, done) };
            match retry.again(call, failure, done) {
                Some(pause) => Box::pin(tokio::time::sleep(pause)).await,
                None => return (outcome, done),
            }
        }
    }
}

impl Caller {
    pub fn new(
        config: Config,
        clock: Arc<dyn Clock>,
        chance: impl Fn() -> f64 + Send + Sync + 'static,
    ) -> Caller {
        let breakers = Arc::new(Breakers::new(config.breaker.clone()));
        Caller { config, breakers, turns: Mutex::default(), clock, chance: Box::new(chance) }
    }

    /// The breakers, for status pages.
    pub fn breakers(&self) -> &Arc<Breakers> {
        &self.breakers
    }

    /// Asks the breaker, where there is one.
    fn watch(&self, upstream: &str) -> Result<Option<Watch>, Failure> {
        if self.config.breaker.failures == 0 {
            return Ok(None);
        }
        let guard = self.breakers.admit(upstream, self.clock.elapsed()).map_err(|after| {
            let seconds = after.as_secs_f64().ceil();
            unavailable(format!("it failed repeatedly and is left alone for {seconds} s"))
        })?;
        Ok(Some(Watch { guard, clock: Arc::clone(&self.clock) }))
    }

    fn queue(&self, upstream: &str, lane: &Lane, context: &Context) -> Option<Queue> {
        let permits = lane.at_once?.max(1);
        let mut turns = self.turns.lock();
        let limits = fair::Limits { permits, reserve: 0, waiting: WAITING };
        let turns = turns.entry(upstream.to_owned()).or_insert_with(|| Semaphore::new(limits));
        let key = turns.key(context.caller.caller_key(), &*context.session);
        Some(Queue { turns: turns.clone(), key, patience: lane.patience.unwrap_or(PATIENCE) })
    }
}

impl Retry for Caller {
    fn begin(&self, call: &ValidCall, context: &Context) -> Result<Permit, Failure> {
        let upstream = &call.callee.upstream;
        let watch = self.watch(upstream)?;
        let lane = self.config.lane(upstream);
        let (queue, timeout) = (self.queue(upstream, lane, context), lane.timeout);
        Ok(match (&watch, &queue, timeout) {
            (None, None, None) => Permit::Free,
            _ => Permit::Limited(Box::new(Limits { watch, queue, timeout })),
        })
    }

    fn again(&self, call: &ValidCall, failure: &Failure, done: u32) -> Option<Duration> {
        let retry = &self.config.retry;
        let repeatable = retry.repeatable(call.callee.named(), &call.annotations);
        retry.again(failure, repeatable, done, (self.chance)())
    }

    fn waiting(&self) -> HashMap<String, usize> {
        let turns = self.turns.lock();
        let waiting = turns.iter().map(|(upstream, turns)| (upstream.clone(), turns.waiting()));
        waiting.filter(|(_, n_calls)| *n_calls != 0).collect()
    }
}

impl Limits {
    /// Has one attempt keep to them. When it is dropped, what it holds goes
    /// back, and it says nothing about the upstream.
    async fn keep<A: Future<Output = Result<Reply, Failure>>>(
        self,
        attempt: A,
    ) -> Result<Reply, Failure> {
        let Limits { watch, queue, timeout } = self;
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
        if let Some(Watch { guard, clock }) = watch {
            guard.settle(Verdict::of(&outcome), clock.elapsed());
        }
        outcome
    }
}

impl Queue {
    async fn turn(&self) -> Result<fair::Permit, Failure> {
        let turn = self.turns.acquire(self.key, Urgency::Ordinary);
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

    impl Caller {
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
        let lane = Lane { timeout: Some(Duration::from_secs(3)), ..Lane::default() };
        let (caller, _) = caller(Config { lane, ..Config::default() });
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
        let lane = Lane {
            timeout: Some(Duration::from_secs(60)),
            at_once: Some(1),
            patience: Some(Duration::from_secs(5)),
        };
        let (caller, _) = caller(Config { lane, ..Config::default() });
        let hanging = Script { hangs: true, ..Script::new(0, refused()) };
        let quick = Script::new(0, refused());
        let (first, second) = tokio::join!(caller.ask(&hanging), caller.ask(&quick));
        assert!(matches!(first.0, Err(Failure::Timeout { .. })));
        assert!(matches!(second.0, Err(Failure::Unavailable { .. })));
        assert_eq!(quick.asked.load(Ordering::SeqCst), 0);
        assert!(caller.ask(&quick).await.0.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn one_call_waits_for_one_turn_behind_hundreds_of_somebody_else() {
        let lane = Lane { at_once: Some(8), ..Lane::default() };
        let (caller, _) = caller(Config { lane, ..Config::default() });
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
        let lane = Lane { at_once: Some(1), ..Lane::default() };
        let breaker = breaker::Config { failures: 1, ..breaker::Config::default() };
        let (caller, clock) = caller(Config { lane, breaker, ..Config::default() });
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
        let lane = |lane| caller(Config { lane, retry: thrice(), ..Config::default() }).0;
        let timeout = Some(Duration::from_secs(1));
        assert!(matches!(
            lane(Lane::default()).begin(&call(), &Context::anonymous()),
            Ok(Permit::Free)
        ));
        let bound = Lane { timeout, ..Lane::default() };
        assert!(matches!(
            lane(bound).begin(&call(), &Context::anonymous()),
            Ok(Permit::Limited(_))
        ));
    }
}

//! Rate limits that several replicas count together.
//!
//! All limits of a call are spent in one operation of the store; a call without
//! limits does not use the store. While the store is unavailable, each replica
//! counts alone or every limited call is refused, as the operator has configured,
//! and the log says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use policy::quota::{
    Config, Exceeded, Limiter, Quota, QuotaFuture, RateClaim, Usage, ready_now, usage,
};
use policy::refusal::{Refusal, RefusalCode};
use policy::validate::ValidCall;
use tool::Context;
use tool::clock::Clock;

use crate::state::{Claim, Counters, Spending, StateError};

/// How long counting may delay a call.
const TIMEOUT: Duration = Duration::from_secs(2);

/// How calls are limited while the store is unavailable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnLoss {
    /// Each replica counts alone.
    Local,
    /// Every call that has a limit is refused.
    Refuse,
}

/// A quota that counts for all replicas together.
pub struct SharedLimiter {
    config: Config,
    counters: Arc<dyn Counters>,
    on_loss: OnLoss,
    local: Limiter,
    store_is_away: AtomicBool,
}

/// Whether claims are spent or only checked.
#[derive(Clone, Copy)]
enum ClaimUse {
    Spend,
    Check,
}

impl SharedLimiter {
    pub fn new(
        config: Config,
        counters: Arc<dyn Counters>,
        on_loss: OnLoss,
        clock: Arc<dyn Clock>,
    ) -> SharedLimiter {
        let local = Limiter::new(config.clone(), clock);
        SharedLimiter { config, counters, on_loss, local, store_is_away: AtomicBool::new(false) }
    }

    fn apply<'a>(
        &'a self,
        usage: &Usage<'_>,
        claim_use: ClaimUse,
        apply_locally: impl FnOnce() -> QuotaFuture<'a, Result<(), Refusal>> + Send + 'a,
    ) -> QuotaFuture<'a, Result<(), Refusal>> {
        let wanted = self.config.claims(usage);
        if wanted.is_empty() {
            return ready_now(Ok(()));
        }
        QuotaFuture::Right(Box::pin(async move {
            let claims = claims(&wanted);
            let spending = match claim_use {
                ClaimUse::Spend => self.counters.spend(&claims, TIMEOUT).await,
                ClaimUse::Check => self.counters.check(&claims, TIMEOUT).await,
            };
            match spending {
                Ok(spending) => {
                    self.note_back();
                    to_result(&wanted, spending)
                }
                Err(error) => {
                    self.note_away(&error);
                    match self.on_loss {
                        OnLoss::Local => apply_locally().await,
                        OnLoss::Refuse => Err(cannot_count()),
                    }
                }
            }
        }))
    }

    fn give_back<'a>(
        &'a self,
        usage: &Usage<'_>,
        apply_locally: impl FnOnce() -> QuotaFuture<'a, ()> + Send + 'a,
    ) -> QuotaFuture<'a, ()> {
        let wanted = self.config.claims(usage);
        if wanted.is_empty() {
            return ready_now(());
        }
        QuotaFuture::Right(Box::pin(async move {
            match self.counters.give_back(&claims(&wanted), TIMEOUT).await {
                Ok(()) => self.note_back(),
                Err(error) => {
                    self.note_away(&error);
                    if self.on_loss == OnLoss::Local {
                        apply_locally().await;
                    }
                }
            }
        }))
    }

    /// Logs once that the store is unavailable.
    fn note_away(&self, error: &StateError) {
        if self.store_is_away.swap(true, Ordering::Relaxed) {
            return;
        }
        match self.on_loss {
            OnLoss::Local => {
                tracing::warn!(%error, "limits are counted by this replica alone until the store is back");
            }
            OnLoss::Refuse => {
                tracing::warn!(%error, "calls with limits are refused until the store is back");
            }
        }
    }

    fn note_back(&self) {
        if self.store_is_away.swap(false, Ordering::Relaxed) {
            tracing::info!("limits are counted by all replicas together again");
        }
    }
}

fn claims(wanted: &[RateClaim]) -> Vec<Claim<'_>> {
    let mut claims = Vec::with_capacity(wanted.len());
    for RateClaim { key, limit, window, scope: _ } in wanted {
        claims.push(Claim { key, amount: 1, limit: *limit, window: *window });
    }
    claims
}

fn to_result(wanted: &[RateClaim], spending: Spending) -> Result<(), Refusal> {
    match spending {
        Spending::Granted => Ok(()),
        Spending::Refused { claim_index, retry_after } => {
            let scope =
                wanted.get(claim_index).map(|claim| claim.scope.clone()).unwrap_or_default();
            Err(Exceeded { scope, retry_after }.into())
        }
    }
}

/// The refusal of a call whose limits cannot be counted.
fn cannot_count() -> Refusal {
    Refusal {
        code: RefusalCode::RateLimited,
        message:
            "the limits of this call cannot be counted, because the store that replicas share \
                  is away. Nothing was done; try again in a moment"
                .to_owned(),
        retry_after: Some(Duration::from_secs(1)),
    }
}

impl Quota for SharedLimiter {
    fn spend<'a>(
        &'a self,
        call: &'a ValidCall,
        context: &'a Context,
    ) -> QuotaFuture<'a, Result<(), Refusal>> {
        let usage = usage(call.meta_tool(), Some(call), context);
        self.apply(&usage, ClaimUse::Spend, || self.local.spend(call, context))
    }

    fn check<'a>(
        &'a self,
        call: &'a ValidCall,
        context: &'a Context,
    ) -> QuotaFuture<'a, Result<(), Refusal>> {
        let usage = usage(call.meta_tool(), Some(call), context);
        self.apply(&usage, ClaimUse::Check, || self.local.check(call, context))
    }

    fn spend_meta<'a>(
        &'a self,
        tool: &'a str,
        context: &'a Context,
    ) -> QuotaFuture<'a, Result<(), Refusal>> {
        self.apply(&usage(tool, None, context), ClaimUse::Spend, || {
            self.local.spend_meta(tool, context)
        })
    }

    fn refund<'a>(&'a self, call: &'a ValidCall, context: &'a Context) -> QuotaFuture<'a, ()> {
        let usage = usage(call.meta_tool(), Some(call), context);
        self.give_back(&usage, || self.local.refund(call, context))
    }

    fn refund_meta<'a>(&'a self, tool: &'a str, context: &'a Context) -> QuotaFuture<'a, ()> {
        self.give_back(&usage(tool, None, context), || self.local.refund_meta(tool, context))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures::FutureExt;
    use policy::quota::Rate;
    use tool::Identity;
    use tool::clock::Fake;

    use super::*;
    use crate::memory::{Limits, Memory};
    use crate::state::{StateFuture, ready};

    /// A store that counts what it is asked, and may be away.
    struct Watched {
        memory: Memory,
        n_asked: Mutex<usize>,
        store_is_away: AtomicBool,
    }

    impl Watched {
        fn answer<'a, T>(&self, answer: StateFuture<'a, T>) -> StateFuture<'a, T> {
            *self.n_asked.lock().unwrap() += 1;
            match self.store_is_away.load(Ordering::Relaxed) {
                true => ready(Err(StateError::unavailable("away"))),
                false => answer,
            }
        }
    }

    impl Counters for Watched {
        fn spend<'a>(
            &'a self,
            claims: &'a [Claim<'a>],
            timeout: Duration,
        ) -> StateFuture<'a, Spending> {
            if self.store_is_away.load(Ordering::Relaxed) {
                return self.answer(ready(Ok(Spending::Granted)));
            }
            self.answer(self.memory.spend(claims, timeout))
        }

        fn check<'a>(
            &'a self,
            claims: &'a [Claim<'a>],
            timeout: Duration,
        ) -> StateFuture<'a, Spending> {
            self.answer(self.memory.check(claims, timeout))
        }

        fn give_back<'a>(
            &'a self,
            claims: &'a [Claim<'a>],
            timeout: Duration,
        ) -> StateFuture<'a, ()> {
            self.answer(self.memory.give_back(claims, timeout))
        }
    }

    struct Replicas {
        store: Arc<Watched>,
        each: Vec<SharedLimiter>,
    }

    fn replicas(on_loss: OnLoss) -> Replicas {
        let clock = Arc::new(Fake::default());
        let memory = Memory::new(Arc::clone(&clock) as _, Limits::default());
        let store =
            Arc::new(Watched { memory, n_asked: Mutex::new(0), store_is_away: false.into() });
        let rate = Rate { per_minute: Some(2), per_session: None };
        let config = Config { meta: vec![("help".into(), rate)], ..Config::default() };
        let limiter = |_| {
            let counters = Arc::clone(&store) as Arc<dyn Counters>;
            SharedLimiter::new(config.clone(), counters, on_loss, Arc::clone(&clock) as _)
        };
        let each = (0..2).map(limiter).collect();
        Replicas { store, each }
    }

    fn caller(name: &str) -> Context {
        let caller = Identity { subject: name.to_owned(), ..Identity::default() };
        Context { caller: Arc::new(caller), ..Context::anonymous() }
    }

    fn spend(limiter: &SharedLimiter, tool: &str, name: &str) -> Result<(), Refusal> {
        limiter.spend_meta(tool, &caller(name)).now_or_never().expect("memory is always ready")
    }

    #[test]
    fn replicas_count_together_and_callers_apart() {
        let Replicas { each, .. } = replicas(OnLoss::Refuse);
        assert!(spend(&each[0], "help", "ann").is_ok());
        assert!(spend(&each[1], "help", "ann").is_ok());
        let refused = spend(&each[0], "help", "ann").unwrap_err();
        assert_eq!(refused.message, "rate limit exceeded (help/minute)");
        assert_eq!(refused.retry_after, Some(Duration::from_secs(60)));
        assert!(spend(&each[1], "help", "bob").is_ok());
        let given_back = each[0].refund_meta("help", &caller("ann")).now_or_never();
        assert!(given_back.is_some() && spend(&each[1], "help", "ann").is_ok());
    }

    #[test]
    fn what_has_no_limit_asks_nothing_and_what_has_asks_once() {
        let Replicas { store, each } = replicas(OnLoss::Refuse);
        assert!(spend(&each[0], "call", "ann").is_ok());
        assert_eq!(*store.n_asked.lock().unwrap(), 0);
        assert!(spend(&each[0], "help", "ann").is_ok());
        assert_eq!(*store.n_asked.lock().unwrap(), 1);
    }

    #[test]
    fn while_the_store_is_away_each_counts_alone_or_nobody_is_let_through() {
        for (on_loss, expected) in
            [(OnLoss::Local, [true, true, false]), (OnLoss::Refuse, [false; 3])]
        {
            let Replicas { store, each } = replicas(on_loss);
            store.store_is_away.store(true, Ordering::Relaxed);
            for limiter in &each {
                let let_through = [0; 3].map(|_| spend(limiter, "help", "ann").is_ok());
                assert_eq!(let_through, expected, "{on_loss:?}");
            }
            assert!(spend(&each[0], "call", "ann").is_ok(), "what has no limit goes on");
            store.store_is_away.store(false, Ordering::Relaxed);
            assert!(spend(&each[0], "help", "ann").is_ok(), "it comes back by itself");
        }
    }
}
